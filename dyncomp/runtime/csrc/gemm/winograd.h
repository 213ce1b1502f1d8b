/* Convolutions with kernels of three by three elements that move by one or by two, with fewer multiplications. Included
 * once per instruction set.
 *
 * A tile of two by two places of the result sees four by four elements of the image, or five by five. Sums of these
 * and of the kernels' elements are made first, along both axes as winograd_sums.h says; then products of matrices over
 * the channels, one for each of the 16 or 25 sums, take 4 multiplications for a place, or 6.25, in place of 9, and each
 * place of the result is a sum of some of what they give.
 * Where that is not finite, however, it may be so by the method alone (a difference of infinite terms, a sum that is
 * too large): such places are computed again as products.
 *
 * Tiles are the rows of the products and kernels, packed into panels, their columns. Some rows of tiles are a strip;
 * the sums over the image for it stay in the cache while panels of kernels go over them. Each place is the same sum
 * for any strips and any number of threads. */

/* Bytes of the sums of a strip, and of what a panel of kernels makes of them. */
constexpr i64 kSumsBytes = 896 << 10;
/* Channels, kernels (by one and by two) and places from which on the method pays (fewer where sums of the kernels are
 * kept), and tiles of a strip where there are more. */
constexpr i64 kWinogradChannels = 16, kWinogradKernels[] = {16, 64}, kWinogradPlaces = 144, kWinogradPlacesKept = 36;
constexpr i64 kTilesOfStrip = 48;
/* Vectors of a panel: tall tiles read less of the kernels. */
constexpr i64 kWinogradVectors = kTallVectors;
/* Places of the result that are turned at once, about. */
constexpr i64 kTurnedPlaces = 112;
/* Terms that are made at once where places are computed again. */
constexpr i64 kAgainTerms = 128;
/* What says that a kept copy holds such sums. */
constexpr i64 kWinogradTag = 0x46323230;

template <class T, int kStride>
struct Winograd {
  static constexpr i64 kWidth = Lanes<T>::kWidth;
  static constexpr int kAlong = sums_along(kStride), kSums = kAlong * kAlong;
  static constexpr i64 kStep = 2 * kStride; /* from tile to tile in the image */
  using Vector = typename Lanes<T>::Vector;
  using Unaligned = typename Lanes<T>::Unaligned;

  const Product<T>& product;
  const Gemm& g;
  const Windows& w;
  Windows apart; /* the same with steps from tile to tile */
  i64 channels, count, places, rows, tiles_down, tiles_across; /* `count` of kernels */
  i64 kernel_step, channel_step, element_step;                 /* of the kernels' elements */
  i64 strip, strips, tiles; /* rows of tiles, strips, and tiles of a strip */
  i64 part, line;           /* elements of the columns of a copied row that are a step apart, and of the row */
  i64 held_at_once;         /* rows of tiles whose places are turned at once */
  i64 panel, panels, panels_per_block, panel_blocks;
  i64 row_step, term_step;  /* of the sums over the image, as rows of products */
  i64 groups;
  const T* kernels = nullptr; /* for each panel and each sum a matrix, a row for each channel */

  explicit Winograd(const Product<T>& of) : product(of), g(of.g), w(*of.g.windows), apart(w) {
    apart.stride[1] = kStep;
    channels = g.k / 9;
    count = w.channels_last ? g.n : g.m;
    places = w.channels_last ? g.m : g.n;
    kernel_step = w.channels_last ? g.b_col : g.a_row;
    channel_step = w.channels_last ? g.b_row : 9 * g.a_col;
    element_step = w.channels_last ? channels * g.b_row : g.a_col;
    rows = places / w.columns;
    tiles_down = ceil_div(rows, 2);
    tiles_across = ceil_div(w.columns, 2);
    part = tiles_across + 1 + kWidth;
    line = kStep * part;
    held_at_once = most(1, kTurnedPlaces / (2 * w.columns));
    const i64 vectors = ceil_div(count, kWidth);
    panel = ceil_div(vectors, ceil_div(vectors, kWinogradVectors)) * kWidth;
    panels = ceil_div(count, panel);
    groups = 1;
    for (int axis = 0; axis < g.axes; ++axis)
      if ((w.channels_last ? g.b_batch : g.a_batch)[axis] != 0) groups *= g.batch[axis];
  }

  bool pays() const {
    for (int axis = 0; axis < 2; ++axis)
      if (w.kernel[axis] != 3 || w.stride[axis] != kStride || w.dilation[axis] != 1) return false;
    if (w.channels_last && channels % kWidth != 0) return false;
    const bool few = places < kWinogradPlaces;
    if (few && (places < kWinogradPlacesKept || !keeps() || !kept_counts().can_watch)) return false;
    return channels >= kWinogradChannels && count >= kWinogradKernels[kStride - 1] && tiles_across <= fitting();
  }

  /* Whether some kernel has elements that are zero in all channels beside others: it sees nothing of what lies there,
   * but sums with large elements of that would lose digits of the rest. Mostly one channel tells. */
  bool has_holes() const {
    for (i64 number = 0; number < groups * count; ++number) {
      const T* const kernel = kernels_of(number / count) + number % count * kernel_step;
      int holes = 0;
      for (i64 p = 0; p < 9; ++p) {
        i64 channel = 0;
        while (channel < channels && kernel[channel * channel_step + p * element_step] == 0) ++channel;
        holes += channel == channels;
      }
      if (holes > 0 && holes < 9) return true;
    }
    return false;
  }

  /* Tiles of a strip that the cache has room for. */
  i64 fitting() const { return kSumsBytes / static_cast<i64>(sizeof(T)) / (kSums * (channels + panel)); }

  /* As few strips as fit, of about one size; more for threads, and fewer kernels for each where that is not enough. */
  void choose(i64 products) {
    const i64 wanted = threads_here() > 1 ? ceil_div(2 * threads_here(), products) : 1;
    const i64 smallest = ceil_div(kTilesOfStrip, tiles_across);
    strip = least(tiles_down, fitting() / tiles_across);
    if (ceil_div(tiles_down, strip) < wanted)
      strip = least(strip, most(smallest, ceil_div(tiles_down, wanted)));
    strip = ceil_div(tiles_down, ceil_div(tiles_down, strip));
    strips = ceil_div(tiles_down, strip);
    tiles = strip * tiles_across;
    panel_blocks = 1;
    if (strips * products < threads_here())
      panel_blocks = most(1, least(ceil_div(threads_here(), strips * products), count / kRowsPerPiece));
    panels_per_block = ceil_div(panels, panel_blocks);
    panel_blocks = ceil_div(panels, panels_per_block);
    row_step = w.channels_last ? channels + kWidth : 1;
    term_step = w.channels_last ? 1 : tiles % 128 ? tiles : tiles + kWidth;
  }

  /* -- the kernels -------------------------------------------------------------------------- */
  static constexpr i64 kMatrices = kKernelSums * kKernelSums;

  i64 width(i64 number) const { return ceil_div(least(panel, count - number * panel), kWidth) * kWidth; }
  i64 group_size() const { return channels * kMatrices * ((panels - 1) * panel + width(panels - 1)); }
  /* The first vector says whether there are holes. */
  i64 packed_size() const { return kWidth + groups * group_size() + kAhead * panel; }

  const T* kernels_of(i64 index) const { return w.channels_last ? product.b_of(index) : product.a_of(index); }

  bool keeps() const {
    const i64 outer = w.channels_last ? g.b_row : g.a_row, inner = w.channels_last ? g.b_col : g.a_col;
    const i64 extent = (count - 1) * kernel_step + (channels - 1) * channel_step + 8 * element_step + 1;
    return g.kept && groups == 1 && outer >= 1 && inner >= 1 && extent <= 2 * count * g.k &&
           count * g.k * static_cast<i64>(sizeof(T)) >= kKeptBytes;
  }

  /* Sums of the elements of kernels: panels [from, end) of those of all groups. */
  void sum_kernels(T* to, i64 from, i64 end) const {
    for (i64 number = from; number < end; ++number) {
      const i64 group = number / panels, j = number % panels, wide = width(j);
      T* const start = to + kWidth + group * group_size() + j * channels * kMatrices * panel;
      for (i64 column = 0; column < wide; column += kWidth) {
        const i64 first = j * panel + column;
        const T* const kernel = kernels_of(group) + first * kernel_step;
        for (i64 channel = 0; channel < channels; ++channel)
          sum_kernel(kernel + channel * channel_step, least(kWidth, count - first), start + channel * wide + column,
                     channels * wide);
      }
    }
  }

  /* Those of one channel of a vector of kernels. */
  void sum_kernel(const T* from, i64 lanes, T* to, i64 apart_by) const {
    T seen[9][kWidth] __attribute__((aligned(64))) = {};
    for (i64 lane = 0; lane < lanes; ++lane)
      for (i64 p = 0; p < 9; ++p) seen[p][lane] = from[lane * kernel_step + p * element_step];
    Vector down[3][kKernelSums];
#pragma GCC unroll 4
    for (int x = 0; x < 3; ++x)
      sums_of_kernel<kStride, T, Vector>(*reinterpret_cast<const Unaligned*>(seen[x]),
                                         *reinterpret_cast<const Unaligned*>(seen[3 + x]),
                                         *reinterpret_cast<const Unaligned*>(seen[6 + x]), down[x]);
#pragma GCC unroll 4
    for (int y = 0; y < kKernelSums; ++y) {
      Vector sums[kKernelSums];
      sums_of_kernel<kStride, T>(down[0][y], down[1][y], down[2][y], sums);
#pragma GCC unroll 4
      for (int x = 0; x < kKernelSums; ++x, to += apart_by) *reinterpret_cast<Unaligned*>(to) = sums[x];
    }
  }

  /* -- a strip -------------------------------------------------------------------------------- */
  /* The sums lie a cache line more apart than they are long, lest they fall on each other in the cache. */
  i64 sum_size() const { return (w.channels_last ? tiles * row_step : channels * term_step) + kWidth; }
  i64 made_size() const { return (tiles + 1) * panel + kWidth; }
  i64 copy_size() const { return (w.channels_last ? channels : (kStep * (strip - 1) + kAlong) * line) + kWidth; }
  i64 turned_size() const { return held_at_once * 2 * w.columns * kWidth + kWidth * kWidth; }
  i64 held_size() const { return g.c ? 0 : panel * 2 * strip * w.columns; }
  i64 again_size() const {
    return kAgainTerms * (kAgainColumns + kAgainRows) + kAgainRows * kAgainColumns + 2 * kSlack<T>;
  }
  i64 scratch_size() const {
    return kSums * (sum_size() + made_size()) + copy_size() + turned_size() + held_size() + again_size() + kWidth;
  }

  struct Strip {
    i64 index, first, last;   /* product, and panels of kernels */
    i64 from, count, whole;   /* rows of tiles, and those of them that have two rows of places */
    i64 place, end;           /* places */
    T *sums, *made, *copy, *turned, *held, *again;
  };

  void block(i64 number, T* scratch) const {
    Strip at;
    at.index = number / (panel_blocks * strips);
    at.first = number % panel_blocks * panels_per_block;
    at.last = least(panels, at.first + panels_per_block);
    at.from = number / panel_blocks % strips * strip;
    at.count = least(strip, tiles_down - at.from);
    at.whole = least(at.count, rows / 2 - at.from);
    at.place = 2 * at.from * w.columns;
    at.end = least(places, at.place + 2 * at.count * w.columns);
    at.sums = scratch;
    at.made = at.sums + kSums * sum_size();
    at.copy = at.made + kSums * made_size();
    at.turned = at.copy + copy_size();
    at.held = at.turned + turned_size();
    at.again = at.held + held_size();
    if (w.channels_last)
      sum_pixels(at);
    else
      sum_planes(at);
    for (i64 j = at.first; j < at.last; ++j) one_panel(at, j);
  }

  /* Tiles that a sum is needed for: rows of them, and those of a row. */
  static i64 down_of(const Strip& at, int sum) { return is_of_second(kStride, sum / kAlong) ? at.whole : at.count; }
  i64 across_of(int sum) const { return is_of_second(kStride, sum % kAlong) ? w.columns / 2 : tiles_across; }

  /* The sums of a vector of what tiles see, from `seen` by columns. */
  static void sum_seen(const Vector (*seen)[kAlong], Vector (*sums)[kAlong]) {
    Vector down[kAlong][kAlong];
#pragma GCC unroll 5
    for (int x = 0; x < kAlong; ++x) {
      Vector column[kAlong];
      sums_of_seen<kStride>(seen[x], column);
#pragma GCC unroll 5
      for (int y = 0; y < kAlong; ++y) down[y][x] = column[y];
    }
#pragma GCC unroll 5
    for (int y = 0; y < kAlong; ++y) sums_of_seen<kStride>(down[y], sums[y]);
  }

  /* Plane by plane, some tiles of a row at once. What is written beyond the end of a row of tiles the next row
   * overwrites, or the next channel. */
  void sum_planes(const Strip& at) const {
    const T* const image = product.b_of(at.index);
    const T* const end = image_end(w, image, channels);
    for (i64 channel = 0; channel < channels; ++channel) {
      copy_plane(at, image + channel * w.channel, end);
      for (i64 y = 0; y < at.count; ++y)
        for (i64 x = 0; x < tiles_across; x += kWidth)
          sum_tiles(at.copy + kStep * y * line + x, y, x, at.sums + channel * term_step);
    }
  }

  /* The rows that a strip sees, columns a step apart beside each other, with zeros around. */
  void copy_plane(const Strip& at, const T* image, const T* end) const {
    const i64 seen = kStep * (at.count - 1) + kAlong, top = kStep * at.from - w.padding[0], all = tiles_across + 1;
    const i64 above = least(seen, most(0, -top)), below = most(above, least(seen, w.sizes[0] - top));
    for (i64 r = 0; r < above; ++r) fill_zeros(at.copy + r * line, line);
    for (i64 phase = 0; phase < kStep; ++phase) {
      const i64 x = phase - w.padding[1];
      const Inside inside(apart, x, all);
      T* to = at.copy + phase * part + above * line;
      const T* from = image + (top + above) * w.step[0] + (x + kStep * inside.from) * w.step[1];
      for (i64 r = above; r < below; ++r, to += line, from += w.step[0]) {
        if (inside.from > 0) fill_zeros(to, inside.from);
        copy_steps(from, kStep * w.step[1], inside.to - inside.from, end, to + inside.from);
        if (inside.to < all) fill_zeros(to + inside.to, all - inside.to);
      }
    }
    for (i64 r = below; r < seen; ++r) fill_zeros(at.copy + r * line, line);
  }

  void sum_tiles(const T* from, i64 y, i64 x, T* to) const {
    Vector seen[kAlong][kAlong], sums[kAlong][kAlong];
#pragma GCC unroll 5
    for (int column = 0; column < kAlong; ++column) {
      const T* const top = from + column % kStep * part + column / kStep;
#pragma GCC unroll 5
      for (int row = 0; row < kAlong; ++row) seen[column][row] = *reinterpret_cast<const Unaligned*>(top + row * line);
    }
    sum_seen(seen, sums);
#pragma GCC unroll 25
    for (int sum = 0; sum < kSums; ++sum)
      *reinterpret_cast<Unaligned*>(to + sum * sum_size() + y * across_of(sum) + x) = sums[sum / kAlong][sum % kAlong];
  }

  /* Tile by tile, some channels at once. */
  void sum_pixels(const Strip& at) const {
    fill_zeros(at.copy, channels);
    for (i64 y = 0; y < at.count; ++y)
      for (i64 x = 0; x < tiles_across; ++x) {
        const T* seen[kSums];
        find_pixels(at, y, x, seen);
        for (i64 channel = 0; channel < channels; channel += kWidth) sum_pixel(at, y, x, channel, seen);
      }
  }

  /* Where what a tile sees lies; zeros outside of the image. */
  void find_pixels(const Strip& at, i64 y, i64 x, const T** seen) const {
    const T* const image = product.a_of(at.index);
    for (i64 row = 0; row < kAlong; ++row) {
      const i64 sees_y = kStep * (at.from + y) + row - w.padding[0];
      for (i64 column = 0; column < kAlong; ++column) {
        const i64 sees_x = kStep * x + column - w.padding[1];
        const bool inside = sees_y >= 0 && sees_y < w.sizes[0] && sees_x >= 0 && sees_x < w.sizes[1];
        *seen++ = inside ? image + sees_y * w.step[0] + sees_x * w.step[1] : at.copy;
      }
    }
  }

  void sum_pixel(const Strip& at, i64 y, i64 x, i64 channel, const T* const* from) const {
    Vector seen[kAlong][kAlong], sums[kAlong][kAlong];
#pragma GCC unroll 5
    for (int column = 0; column < kAlong; ++column)
#pragma GCC unroll 5
      for (int row = 0; row < kAlong; ++row)
        seen[column][row] = *reinterpret_cast<const Unaligned*>(from[row * kAlong + column] + channel);
    sum_seen(seen, sums);
#pragma GCC unroll 25
    for (int sum = 0; sum < kSums; ++sum) {
      if (y >= down_of(at, sum) || x >= across_of(sum)) continue;
      T* const to = at.sums + sum * sum_size() + (y * across_of(sum) + x) * row_step + channel;
      *reinterpret_cast<Unaligned*>(to) = sums[sum / kAlong][sum % kAlong];
    }
  }

  /* -- a panel of kernels ---------------------------------------------------------------------- */
  void one_panel(const Strip& at, i64 j) const {
    const i64 wide = width(j), first = j * panel, cols = least(panel, count - first);
    multiply_panel(at, j, wide);
    T* to = at.held;
    i64 to_row = w.channels_last ? panel : at.end - at.place;
    if (g.c && w.channels_last)
      to = product.c_of(at.index) + at.place * g.c_row + first, to_row = g.c_row;
    else if (g.c)
      to = product.c_of(at.index) + first * g.c_row + at.place, to_row = g.c_row;
    Vector odd = Vector{}; /* NaN in some lane once a place is not finite */
    for (i64 column = 0; column < wide; column += kWidth) {
      const i64 lanes = least(kWidth, cols - column);
      for (i64 y = 0; y < at.count; y += held_at_once)
        some_places(at, y, least(at.count, y + held_at_once), column, lanes, to, to_row, odd);
    }
    if (lane_sum<T>(odd) != 0) compute_again(at, first, cols, to, to_row);
    if (!g.done) return;
    if (w.channels_last)
      g.done(g.context, to, to_row, at.index, at.place, at.end - at.place, first, cols);
    else
      g.done(g.context, to, to_row, at.index, first, cols, at.place, at.end - at.place);
  }

  void multiply_panel(const Strip& at, i64 j, i64 wide) const {
    const T* const right = kernels + kWidth + at.index % groups * group_size() + j * channels * kMatrices * panel;
    const i64 vectors = wide / kWidth;
    for (int sum = 0; sum < kSums; ++sum) {
      const int matrix = kernel_sum_of(sum / kAlong) * kKernelSums + kernel_sum_of(sum % kAlong);
      const i64 all = down_of(at, sum) * across_of(sum);
      const i64 high = all ? ceil_div(all, ceil_div(all, most_rows(vectors))) : 1;
      for (i64 t = 0; t < all; t += high) {
        const T* const left = at.sums + sum * sum_size() + t * row_step;
        const Tile<T> run = find_tile<T>(least(high, all - t), vectors);
        run(channels, left, row_step, term_step, right + matrix * channels * wide, wide, nullptr,
            at.made + sum * made_size() + t * panel, panel, Into::kNothing, {left + high * row_step, term_step});
      }
    }
  }

  /* Rows [y, end) of tiles, of a vector of kernels. */
  void some_places(const Strip& at, i64 y, i64 end, i64 column, i64 lanes, T* to, i64 to_row, Vector& odd) const {
    const i64 from = 2 * y * w.columns, all = least(at.end - at.place, 2 * end * w.columns) - from;
    const bool straight = w.channels_last && lanes == kWidth;
    T* const target = straight ? to + from * to_row + column : at.turned;
    const i64 target_row = straight ? to_row : kWidth;
    for (i64 row = y; row < end; ++row)
      join_row(at, row, column, target + 2 * (row - y) * w.columns * target_row, target_row, odd);
    if (straight) return;
    if (w.channels_last)
      for (i64 t = 0; t < all; ++t)
        for (i64 lane = 0; lane < lanes; ++lane) to[(from + t) * to_row + column + lane] = at.turned[t * kWidth + lane];
    else
      turn_places(at, all, lanes, to + column * to_row + from, to_row);
  }

  /* The places of a row of tiles. */
  void join_row(const Strip& at, i64 y, i64 column, T* to, i64 to_row, Vector& odd) const {
    const bool low = y < at.whole;
    const i64 beside = w.columns / 2;
    for (i64 x = 0; x < tiles_across; ++x, to += 2 * to_row) {
      Vector joined[2][2];
      join_tile(at.made + column, (y * tiles_across + x) * panel, (y * beside + x) * panel, joined);
      keep_place(joined[0][0], to, odd);
      if (x < beside) keep_place(joined[0][1], to + to_row, odd);
      if (low) keep_place(joined[1][0], to + w.columns * to_row, odd);
      if (low && x < beside) keep_place(joined[1][1], to + (w.columns + 1) * to_row, odd);
    }
  }

  static void keep_place(Vector place, T* to, Vector& odd) {
    *reinterpret_cast<Unaligned*>(to) = place;
    odd += place * 0;
  }

  /* Two by two places of the sums at `first`, or `second` where columns of the second place alone need them. */
  void join_tile(const T* from, i64 first, i64 second, Vector (*joined)[2]) const {
    const i64 apart_by = made_size();
    Vector down[2][kAlong];
#pragma GCC unroll 5
    for (int x = 0; x < kAlong; ++x) {
      const T* const column = from + x * apart_by + (is_of_second(kStride, x) ? second : first);
      Vector made[kAlong];
#pragma GCC unroll 5
      for (int y = 0; y < kAlong; ++y) made[y] = *reinterpret_cast<const Unaligned*>(column + y * kAlong * apart_by);
      places_of_sums<kStride>(made, down[0][x], down[1][x]);
    }
    places_of_sums<kStride>(down[0], joined[0][0], joined[0][1]);
    places_of_sums<kStride>(down[1], joined[1][0], joined[1][1]);
  }

  /* A vector of kernels becomes rows of places. */
  void turn_places(const Strip& at, i64 all, i64 lanes, T* to, i64 to_row) const {
    T* const edge = at.turned + held_at_once * 2 * w.columns * kWidth;
    for (i64 t = 0; t < all; t += kWidth) {
      const i64 start = all < kWidth ? 0 : least(t, all - kWidth), cols = least(kWidth, all);
      if (lanes == kWidth && cols == kWidth) {
        turn_block(at.turned + start * kWidth, kWidth, to + start, to_row);
        continue;
      }
      turn_block(at.turned + start * kWidth, kWidth, edge, kWidth);
      for (i64 lane = 0; lane < lanes; ++lane)
        for (i64 x = 0; x < cols; ++x) to[lane * to_row + start + x] = edge[lane * kWidth + x];
    }
  }

  /* -- places that are not finite -------------------------------------------------------------- */
  static constexpr i64 kAgainRows = most_rows(kTileVectors), kAgainColumns = kTileVectors * kWidth;

  static bool is_finite(T x) { return x - x == 0; }

  __attribute__((noinline)) void compute_again(const Strip& at, i64 first, i64 cols, T* to, i64 to_row) const {
    const i64 place_step = w.channels_last ? to_row : 1, kernel_gap = w.channels_last ? 1 : to_row;
    for (i64 place = at.place; place < at.end; place += kAgainColumns) {
      const i64 wide = least(kAgainColumns, at.end - place);
      for (i64 r = 0; r < cols; r += kAgainRows)
        some_again(at, first + r, least(kAgainRows, cols - r), place, wide,
                   to + (place - at.place) * place_step + r * kernel_gap, place_step, kernel_gap);
    }
  }

  /* Those of `high` kernels and `wide` places, if there are such. */
  void some_again(const Strip& at, i64 kernel, i64 high, i64 place, i64 wide, T* to, i64 place_step,
                  i64 kernel_gap) const {
    bool finite = true;
    for (i64 r = 0; r < high; ++r)
      for (i64 x = 0; x < wide; ++x) finite = finite && is_finite(to[r * kernel_gap + x * place_step]);
    if (finite) return;
    const i64 vectors = ceil_div(wide, kWidth);
    const T* const image = w.channels_last ? product.a_of(at.index) : product.b_of(at.index);
    T* const left = at.again + kAgainTerms * kAgainColumns + kSlack<T>;
    T* const edge = left + kAgainTerms * kAgainRows;
    for (i64 p = 0; p < g.k; p += kAgainTerms) {
      const i64 terms = least(kAgainTerms, g.k - p);
      for (i64 q = 0; q < terms; ++q)
        for (i64 r = 0; r < high; ++r)
          left[q * high + r] = kernels_of(at.index)[(kernel + r) * kernel_step + (p + q) / 9 * channel_step +
                                                    (p + q) % 9 * element_step];
      pack_windows(w, image, channels, p, terms, place, wide, vectors * kWidth, at.again);
      find_tile<T>(high, vectors)(terms, left, 1, high, at.again, vectors * kWidth, nullptr, edge, kAgainColumns,
                                  p ? Into::kGoOn : Into::kNothing, Ahead<T>{left, 0});
    }
    for (i64 r = 0; r < high; ++r)
      for (i64 x = 0; x < wide; ++x) {
        T& result = to[r * kernel_gap + x * place_step];
        if (!is_finite(result)) result = edge[r * kAgainColumns + x];
      }
  }
};

template <class T, int kStride>
struct SummingKernels {
  const Winograd<T, kStride>* winograd;
  T* to;
};

template <class T, int kStride>
void summing_kernels(void* raw, i64 lo, i64 hi, int) {
  const SummingKernels<T, kStride>& summing = *static_cast<const SummingKernels<T, kStride>*>(raw);
  summing.winograd->sum_kernels(summing.to, lo, hi);
}

/* The packed sums, or a word that there are holes. */
template <class T, int kStride>
void sum_all_kernels(const void* raw, void* to) {
  const Winograd<T, kStride>& winograd = *static_cast<const Winograd<T, kStride>*>(raw);
  SummingKernels<T, kStride> summing = {&winograd, static_cast<T*>(to)};
  *summing.to = winograd.has_holes();
  if (*summing.to) return;
  const i64 work = winograd.panel * winograd.channels * 4 * winograd.kMatrices;
  parallel_for(summing_kernels<T, kStride>, &summing, winograd.groups * winograd.panels, ceil_div(kPiece, work));
}

template <class T, int kStride>
KeptUse take_sums(const Winograd<T, kStride>& winograd) {
  if (!winograd.keeps()) return {nullptr, nullptr};
  const Gemm& g = winograd.g;
  const bool last = winograd.w.channels_last;
  const KeptKey key = {last ? g.b : g.a,          winograd.count, g.k,
                       winograd.kernel_step,      last ? g.b_row : g.a_col,
                       sizeof(T), winograd.panel, kWinogradTag + 2 * last + kStride};
  const size_t bytes = static_cast<size_t>(winograd.packed_size()) * sizeof(T);
  return kept_take(key, {0, nullptr, nullptr}, bytes, sum_all_kernels<T, kStride>, &winograd);
}

/* Whether the convolution was made in this way; `failed` if there was no memory. */
template <class T, int kStride>
bool convolve_winograd(const Product<T>& product, i64 products, int& failed) {
  Winograd<T, kStride> winograd(product);
  if (!winograd.pays()) return false;
  const KeptUse kept = take_sums(winograd);
  Scratch<T> summed;
  winograd.kernels = static_cast<const T*>(kept.data);
  if (!winograd.kernels) {
    if (!summed.reserve(winograd.packed_size())) {
      failed = 1;
      return true;
    }
    sum_all_kernels<T, kStride>(&winograd, summed.data);
    winograd.kernels = summed.data;
  }
  const bool has_holes = *winograd.kernels != 0;
  if (!has_holes) {
    winograd.choose(products);
    const i64 work = winograd.panels_per_block * winograd.panel * winograd.tiles * winograd.kSums * winograd.channels;
    failed = run_blocks<T>(winograd, products * winograd.panel_blocks * winograd.strips, ceil_div(kPiece, work));
  }
  kept_give_back(kept);
  return !has_holes;
}
