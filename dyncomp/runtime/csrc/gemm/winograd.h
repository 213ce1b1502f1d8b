/* Convolutions with kernels of three by three elements that move by one, with fewer multiplications. Included once per
 * instruction set.
 *
 * The method is F(2x2, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015): a tile of
 * two by two places of the result sees four by four elements of the image. Sums of these and of the kernels' elements
 * are made first, 16 of each; then 16 products of matrices, over the channels, take 4 multiplications for a place in
 * place of 9, and each place of the result is a sum of 9 of what they give. Of all that goes into this sum no element
 * lies outside of what the place sees: an element of the image changes no place that does not see it, whatever it is.
 * Where the sum is not finite, however, it may be so by the method alone (a difference of infinite terms, a sum that is
 * too large): such places are computed again as products.
 *
 * Some rows of tiles are a strip; the sums over the image for it stay in the cache while rows of kernels go over them,
 * group by group. Each place is the same sum for any strips and any number of threads. */

/* Sums over a tile, and bytes of those of a strip. */
constexpr i64 kSums = 16;
constexpr i64 kSumsBytes = 768 << 10;
/* Channels, kernels and places from which on the method pays (fewer where sums of the kernels are kept), and tiles of a
 * strip where there are more. */
constexpr i64 kWinogradChannels = 16, kWinogradKernels = 16, kWinogradPlaces = 144, kWinogradPlacesKept = 36;
constexpr i64 kTilesOfStrip = 48;
/* Channels whose kernels are read at once, and terms that are made at once where places are computed again. */
constexpr i64 kChannelsAtOnce = 8, kAgainTerms = 128;
/* What says that a kept copy holds such sums. */
constexpr i64 kWinogradTag = 0x46323233;

/* Elements of two vectors in turn: the first or the second half of all. */
template <class T, int kHalf>
__attribute__((always_inline)) inline typename Lanes<T>::Vector in_turn(typename Lanes<T>::Vector even,
                                                                        typename Lanes<T>::Vector odd) {
  typedef typename Lanes<T>::Lane Mask __attribute__((vector_size(kVectorBytes)));
  constexpr int kWidth = Lanes<T>::kWidth;
  Mask mask;
#pragma GCC unroll 16
  for (int lane = 0; lane < kWidth; ++lane) mask[lane] = kHalf * kWidth / 2 + lane / 2 + lane % 2 * kWidth;
  return __builtin_shuffle(even, odd, mask);
}

template <class T>
struct Winograd {
  static constexpr i64 kWidth = Lanes<T>::kWidth;
  using Vector = typename Lanes<T>::Vector;
  using Unaligned = typename Lanes<T>::Unaligned;

  const Product<T>& product;
  const Gemm& g;
  const Windows& w;
  Windows apart; /* the same with steps of two, as columns of tiles lie */
  i64 channels, rows, tiles_down, tiles_across;
  i64 strip, strips, tiles;   /* rows of tiles, strips, and tiles of a strip, whole vectors of them */
  i64 half, line;             /* elements of the even columns of a copied row, and of the row */
  i64 tile_rows, tile_vectors, panel, rows_per_block, row_blocks;
  i64 groups;
  const T* kernels = nullptr; /* for each group of rows and each sum a matrix, a column for each row */

  Winograd(const Product<T>& of, i64 products) : product(of), g(of.g), w(*of.g.windows), apart(w) {
    apart.stride[1] = 2;
    channels = g.k / 9;
    rows = g.n / w.columns;
    tiles_down = ceil_div(rows, 2);
    tiles_across = ceil_div(w.columns, 2);
    half = tiles_across + 1 + kWidth;
    line = 2 * half;
    groups = 1;
    for (int axis = 0; axis < g.axes; ++axis)
      if (g.a_batch[axis] != 0) groups *= g.batch[axis];
    if (pays()) choose(products);
  }

  bool pays() const {
    for (int axis = 0; axis < 2; ++axis)
      if (w.kernel[axis] != 3 || w.stride[axis] != 1 || w.dilation[axis] != 1) return false;
    if (g.n < kWinogradPlaces && (g.n < kWinogradPlacesKept || !keeps() || !kept_counts().can_watch)) return false;
    return channels >= kWinogradChannels && g.m >= kWinogradKernels &&
           channels * kSums * kWidth * static_cast<i64>(sizeof(T)) * ceil_div(tiles_across, kWidth) <= kSumsBytes;
  }

  /* Whether some kernel has elements that are zero in all channels beside others: it sees nothing of what lies there,
   * but sums with large elements of that would lose digits of the rest. Mostly one channel tells. */
  bool has_holes() const {
    for (i64 number = 0; number < groups * g.m; ++number) {
      const T* const kernel = product.a_of(number / g.m) + number % g.m * g.a_row;
      int holes = 0;
      for (i64 p = 0; p < 9; ++p) {
        i64 channel = 0;
        while (channel < channels && kernel[(channel * 9 + p) * g.a_col] == 0) ++channel;
        holes += channel == channels;
      }
      if (holes > 0 && holes < 9) return true;
    }
    return false;
  }

  i64 padded(i64 of_rows) const { return ceil_div(of_rows * tiles_across, kWidth) * kWidth; }

  /* The strips with the fewest vectors among those that fit, as few as possible of them if not for threads. */
  void choose(i64 products) {
    const i64 fitting = kSumsBytes / static_cast<i64>(sizeof(T)) / (kSums * channels);
    const i64 wanted = num_threads() > 1 ? ceil_div(2 * num_threads(), products) : 1;
    i64 least_cost = 0;
    strips = 0;
    for (i64 count = 1; count <= tiles_down; ++count) {
      const i64 now = ceil_div(tiles_down, count), number = ceil_div(tiles_down, now), cost = number * padded(now);
      if (padded(now) > fitting && now > 1) continue;
      const bool more = strips < wanted && padded(now) >= kTilesOfStrip; /* pieces for the threads */
      if (least_cost && cost >= least_cost && !more) continue;
      least_cost = cost, strip = now, strips = number;
    }
    tiles = padded(strip);
    row_blocks = 1;
    if (strips * products < num_threads())
      row_blocks = most(1, least(ceil_div(num_threads(), strips * products), g.m / kRowsPerPiece));
    const i64 vectors = tiles / kWidth;
    tile_vectors = ceil_div(vectors, ceil_div(vectors, kTileVectors));
    panel = tile_vectors * kWidth;
    const i64 row_groups = ceil_div(g.m, most_rows(tile_vectors));
    tile_rows = ceil_div(g.m, row_groups);
    rows_per_block = ceil_div(row_groups, row_blocks) * tile_rows;
    row_blocks = ceil_div(g.m, rows_per_block);
  }

  /* -- the kernels -------------------------------------------------------------------------- */
  i64 group_size() const { return g.m * channels * kSums; }
  i64 packed_size() const { return groups * group_size() + kWidth; }

  bool keeps() const {
    const i64 extent = (g.m - 1) * g.a_row + (g.k - 1) * g.a_col + 1;
    return g.kept && groups == 1 && g.a_row >= 1 && g.a_col >= 1 && extent <= 2 * g.m * g.k &&
           g.m * g.k * static_cast<i64>(sizeof(T)) >= kKeptBytes;
  }

  /* Sums of the elements of kernels: groups of rows [from, end) of those of all groups. */
  void sum_kernels(T* to, i64 from, i64 end) const {
    const i64 row_groups = ceil_div(g.m, tile_rows);
    for (i64 number = from; number < end; ++number) {
      const i64 row = number % row_groups * tile_rows, high = least(tile_rows, g.m - row);
      const T* const a = product.a_of(number / row_groups) + row * g.a_row;
      T* const start = to + number / row_groups * group_size() + row * channels * kSums;
      for (i64 channel = 0; channel < channels; channel += kChannelsAtOnce)
        for (i64 r = 0; r < high; r += kWidth)
          sum_channels(a + r * g.a_row, channel, least(kChannelsAtOnce, channels - channel), r, high, start);
    }
  }

  /* Those of some channels and of a vector of rows from `r` on, of which there are `high`. */
  void sum_channels(const T* a, i64 channel, i64 count, i64 r, i64 high, T* to) const {
    T seen[kChannelsAtOnce * 9][kWidth] __attribute__((aligned(64)));
    const i64 lanes = least(kWidth, high - r);
    for (i64 lane = 0; lane < lanes; ++lane) {
      const T* const from = a + lane * g.a_row + channel * 9 * g.a_col;
      for (i64 p = 0; p < count * 9; ++p) seen[p][lane] = from[p * g.a_col];
    }
    for (i64 lane = lanes; lane < kWidth; ++lane)
      for (i64 p = 0; p < count * 9; ++p) seen[p][lane] = 0;
    for (i64 k = 0; k < count; ++k) {
      const i64 place = (channel + k) * high + r;
      /* what follows is overwritten by the next channel, but where that was written before or is of another sum */
      const bool whole = lanes == kWidth || (r == 0 && place + kWidth <= channels * high);
      sum_kernel(seen + k * 9, whole ? kWidth : lanes, to + place, channels * high);
    }
  }

  /* G g G^T with G = (1 0 0, 1/2 1/2 1/2, 1/2 -1/2 1/2, 0 0 1), of a vector of kernels. */
  static void sum_kernel(const T (*from)[kWidth], i64 lanes, T* to, i64 apart_by) {
    Vector down[4][3];
#pragma GCC unroll 4
    for (int x = 0; x < 3; ++x) {
      const Vector top = *reinterpret_cast<const Unaligned*>(from[x]);
      const Vector middle = *reinterpret_cast<const Unaligned*>(from[3 + x]) * T(0.5);
      const Vector low = *reinterpret_cast<const Unaligned*>(from[6 + x]);
      const Vector both = (top + low) * T(0.5);
      down[0][x] = top;
      down[1][x] = both + middle;
      down[2][x] = both - middle;
      down[3][x] = low;
    }
#pragma GCC unroll 4
    for (int y = 0; y < 4; ++y) {
      const Vector both = (down[y][0] + down[y][2]) * T(0.5), middle = down[y][1] * T(0.5);
      const Vector sums[4] = {down[y][0], both + middle, both - middle, down[y][2]};
#pragma GCC unroll 4
      for (int x = 0; x < 4; ++x, to += apart_by)
        if (lanes == kWidth)
          *reinterpret_cast<Unaligned*>(to) = sums[x];
        else
          __builtin_memcpy(to, &sums[x], static_cast<size_t>(lanes) * sizeof(T));
    }
  }

  /* -- a strip -------------------------------------------------------------------------------- */
  /* The sums lie a cache line more apart than they are long, lest they fall on each other in the cache. */
  i64 sum_size() const { return channels * tiles + kWidth; }
  i64 made_size() const { return tile_rows * tiles + kWidth; }
  i64 copy_size() const { return (2 * strip + 2) * line + kWidth; }
  i64 held_size() const { return g.c ? 0 : tile_rows * 2 * strip * w.columns; }
  i64 again_size() const { return (kAgainTerms + tile_rows) * panel + 2 * kSlack<T>; }
  i64 scratch_size() const {
    return kSums * (sum_size() + made_size()) + 2 * kWidth + copy_size() + held_size() + again_size();
  }

  struct Strip {
    i64 index, row, end;  /* product, and rows of it */
    i64 from, count;      /* rows of tiles */
    const T* kernels;
    T *sums, *made, *copy, *held, *again;
  };

  void block(i64 number, T* scratch) const {
    Strip at;
    at.index = number / (row_blocks * strips);
    at.row = number % row_blocks * rows_per_block;
    at.end = least(g.m, at.row + rows_per_block);
    at.from = number / row_blocks % strips * strip;
    at.count = least(strip, tiles_down - at.from);
    at.kernels = kernels + at.index % groups * group_size();
    at.sums = scratch;
    at.made = at.sums + kSums * sum_size() + kWidth;
    at.copy = at.made + kSums * made_size() + kWidth;
    at.held = at.copy + copy_size();
    at.again = at.held + held_size();
    sum_image(at);
    for (i64 row = at.row; row < at.end; row += tile_rows) some_rows(at, row, least(tile_rows, at.end - row));
  }

  void sum_image(const Strip& at) const {
    const T* const image = product.b_of(at.index);
    const T* const end = image_end(w, image, channels);
    for (i64 channel = 0; channel < channels; ++channel) {
      copy_plane(at, image + channel * w.channel, end);
      for (i64 y = 0; y < at.count; ++y)
        for (i64 x = 0; x < tiles_across; x += kWidth)
          sum_tiles(at.copy + 2 * y * line + x, at.sums + channel * tiles + y * tiles_across + x);
      /* what is left of the last vector is computed with, too */
      for (i64 t = at.count * tiles_across; t < tiles; ++t)
        for (i64 sum = 0; sum < kSums; ++sum) at.sums[sum * sum_size() + channel * tiles + t] = 0;
    }
  }

  /* The rows that a strip sees, even columns first, with zeros around. */
  void copy_plane(const Strip& at, const T* image, const T* end) const {
    T* to = at.copy;
    for (i64 r = 0; r < 2 * at.count + 2; ++r, to += line) {
      const i64 y = 2 * at.from + r - w.padding[0];
      if (y < 0 || y >= w.sizes[0]) {
        fill_zeros(to, line);
        continue;
      }
      for (i64 phase = 0; phase < 2; ++phase) {
        T* const part = to + phase * half;
        const i64 x = phase - w.padding[1], count = tiles_across + 1;
        const Inside inside(apart, x, count);
        if (inside.from > 0) fill_zeros(part, inside.from);
        copy_steps(image + y * w.step[0] + (x + 2 * inside.from) * w.step[1], 2 * w.step[1], inside.to - inside.from,
                   end, part + inside.from);
        if (inside.to < count) fill_zeros(part + inside.to, count - inside.to);
      }
    }
  }

  /* B^T d B with B^T = (1 0 -1 0, 0 1 1 0, 0 -1 1 0, 0 1 0 -1), of a vector of tiles. */
  void sum_tiles(const T* from, T* to) const {
    const i64 apart_by = sum_size();
    Vector down[4][4];
#pragma GCC unroll 4
    for (int x = 0; x < 4; ++x) {
      const T* const column = from + x % 2 * half + x / 2;
      Vector seen[4];
#pragma GCC unroll 4
      for (int y = 0; y < 4; ++y) seen[y] = *reinterpret_cast<const Unaligned*>(column + y * line);
      down[0][x] = seen[0] - seen[2];
      down[1][x] = seen[1] + seen[2];
      down[2][x] = seen[2] - seen[1];
      down[3][x] = seen[1] - seen[3];
    }
#pragma GCC unroll 4
    for (int y = 0; y < 4; ++y, to += 4 * apart_by) {
      *reinterpret_cast<Unaligned*>(to) = down[y][0] - down[y][2];
      *reinterpret_cast<Unaligned*>(to + apart_by) = down[y][1] + down[y][2];
      *reinterpret_cast<Unaligned*>(to + 2 * apart_by) = down[y][2] - down[y][1];
      *reinterpret_cast<Unaligned*>(to + 3 * apart_by) = down[y][1] - down[y][3];
    }
  }

  void some_rows(const Strip& at, i64 row, i64 high) const {
    const T* left = at.kernels + row * channels * kSums;
    for (i64 sum = 0; sum < kSums; ++sum, left += channels * high)
      for (i64 t = 0; t < tiles; t += panel) {
        const i64 vectors = least(tile_vectors, (tiles - t) / kWidth);
        find_tile<T>(high, vectors)(channels, left, 1, high, at.sums + sum * sum_size() + t, tiles, nullptr,
                                    at.made + sum * made_size() + t, tiles, Into::kNothing,
                                    t ? Ahead<T>{left, 0} : Ahead<T>{left + channels * high, high});
      }
    const i64 from = 2 * at.from * w.columns, end = least(g.n, from + 2 * at.count * w.columns);
    T* const to = g.c ? product.c_of(at.index) + row * g.c_row + from : at.held;
    const i64 to_row = g.c ? g.c_row : end - from;
    Vector odd = Vector{}; /* NaN in some lane once a place is not finite */
    for (i64 r = 0; r < high; ++r)
      for (i64 y = 0; y < at.count; ++y)
        for (i64 x = 0; x < tiles_across; x += kWidth)
          sum_made(at.made + r * tiles + y * tiles_across + x, 2 * (at.from + y) + 1 < rows,
                   least(2 * kWidth, w.columns - 2 * x), to + r * to_row + 2 * y * w.columns + 2 * x, odd);
    if (lane_sum<T>(odd) != 0) compute_again(at, row, high, from, end, to, to_row);
    if (g.done) g.done(g.context, to, to_row, at.index, row, high, from, end - from);
  }

  /* A^T m A with A^T = (1 1 1 0, 0 1 -1 -1), of a vector of tiles; `count` columns of one row of places, or two. */
  void sum_made(const T* from, bool both, i64 count, T* to, Vector& odd) const {
    const i64 apart_by = made_size();
    Vector down[2][4];
#pragma GCC unroll 4
    for (int x = 0; x < 4; ++x) {
      Vector made[4];
#pragma GCC unroll 4
      for (int y = 0; y < 4; ++y) made[y] = *reinterpret_cast<const Unaligned*>(from + (4 * y + x) * apart_by);
      down[0][x] = made[0] + made[1] + made[2];
      down[1][x] = made[1] - made[2] - made[3];
    }
#pragma GCC unroll 2
    for (int y = 0; y < 2; ++y) {
      if (y && !both) break;
      const Vector left = down[y][0] + down[y][1] + down[y][2], right = down[y][1] - down[y][2] - down[y][3];
      const Vector first = in_turn<T, 0>(left, right), second = in_turn<T, 1>(left, right);
      T* const row = to + y * w.columns;
      if (count == 2 * kWidth) {
        *reinterpret_cast<Unaligned*>(row) = first;
        *reinterpret_cast<Unaligned*>(row + kWidth) = second;
        odd += left * 0 + right * 0;
        continue;
      }
      T places[2 * kWidth];
      *reinterpret_cast<Unaligned*>(places) = first;
      *reinterpret_cast<Unaligned*>(places + kWidth) = second;
      copy_run(places, count, row);
      for (i64 x = 0; x < count; ++x) odd[0] += places[x] * 0;
    }
  }

  /* -- places that are not finite -------------------------------------------------------------- */
  static bool is_finite(T x) { return x - x == 0; }

  __attribute__((noinline)) void compute_again(const Strip& at, i64 row, i64 high, i64 from, i64 end, T* to,
                                               i64 to_row) const {
    const T* left = product.a_of(at.index) + row * g.a_row;
    T* const edge = at.again + kAgainTerms * panel + kSlack<T>;
    for (i64 col = from; col < end; col += panel) {
      const i64 cols = least(panel, end - col), vectors = ceil_div(cols, kWidth);
      if (all_finite(to + col - from, to_row, high, cols)) continue;
      for (i64 p = 0; p < g.k; p += kAgainTerms) {
        const i64 terms = least(kAgainTerms, g.k - p);
        pack_windows(w, product.b_of(at.index), channels, p, terms, col, cols, vectors * kWidth, at.again);
        find_tile<T>(high, vectors)(terms, left + p * g.a_col, g.a_row, g.a_col, at.again, vectors * kWidth, nullptr, edge,
                                    panel, p ? Into::kGoOn : Into::kNothing, Ahead<T>{left, 0});
      }
      for (i64 r = 0; r < high; ++r)
        for (i64 x = 0; x < cols; ++x) {
          T& place = to[r * to_row + col - from + x];
          if (!is_finite(place)) place = edge[r * panel + x];
        }
    }
  }

  static bool all_finite(const T* from, i64 row_step, i64 high, i64 cols) {
    for (i64 r = 0; r < high; ++r)
      for (i64 x = 0; x < cols; ++x)
        if (!is_finite(from[r * row_step + x])) return false;
    return true;
  }
};

template <class T>
struct SummingKernels {
  const Winograd<T>* winograd;
  T* to;
};

template <class T>
void summing_kernels(void* raw, i64 lo, i64 hi, int) {
  const SummingKernels<T>& summing = *static_cast<const SummingKernels<T>*>(raw);
  summing.winograd->sum_kernels(summing.to, lo, hi);
}

template <class T>
void sum_all_kernels(const void* raw, void* to) {
  const Winograd<T>& winograd = *static_cast<const Winograd<T>*>(raw);
  SummingKernels<T> summing = {&winograd, static_cast<T*>(to)};
  const i64 work = winograd.tile_rows * winograd.channels * 4 * kSums;
  parallel_for(summing_kernels<T>, &summing, winograd.groups * ceil_div(winograd.g.m, winograd.tile_rows),
               ceil_div(kPiece, work));
}

template <class T>
int convolve_winograd(Winograd<T>& winograd, i64 products) {
  const Gemm& g = winograd.g;
  KeptUse kept = {nullptr, nullptr};
  if (winograd.keeps()) {
    const KeptKey key = {g.a, g.m, g.k, g.a_row, g.a_col, sizeof(T), winograd.tile_rows, kWinogradTag};
    const size_t bytes = static_cast<size_t>(winograd.packed_size()) * sizeof(T);
    kept = kept_take(key, {0, nullptr, nullptr}, bytes, sum_all_kernels<T>, &winograd);
  }
  Scratch<T> summed;
  winograd.kernels = static_cast<const T*>(kept.data);
  if (!winograd.kernels) {
    if (!summed.reserve(winograd.packed_size())) return 1;
    sum_all_kernels<T>(&winograd, summed.data);
    winograd.kernels = summed.data;
  }
  const i64 work = winograd.rows_per_block * winograd.tiles * kSums * winograd.channels;
  const int failed =
      run_blocks<T>(winograd, products * winograd.row_blocks * winograd.strips, ceil_div(kPiece, work));
  kept_give_back(kept);
  return failed;
}
