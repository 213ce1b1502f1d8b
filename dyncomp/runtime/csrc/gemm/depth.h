/* Depthwise convolutions with channels in the lanes of vectors. Included once per instruction set.
 *
 * Some places of the result are held in registers while the kernel's elements go over them. Where channels lie
 * innermost the image is read where it lies, all channels of some places in turn. Where they do not, or are fewer than
 * a vector's, some rows of a vector's channels are copied first with their border of zeros, a vector for each place;
 * planes are turned on the way, which pays where their rows are short (else see planes.h). */

/* Elements of the copy, and places that are held in registers. */
constexpr i64 kDepthElements = 32 << 10;
constexpr int kDepthPlaces = kRegisters / 2 - 2;
/* Where the image is read where it lies: bytes of it that are read for the rows of a block, elements of a kernel at
 * most, places that are finished together at the edges, and those that are held. */
constexpr i64 kInPlaceBytes = 384 << 10, kInPlaceTaps = 16;
constexpr i64 kEdgePlaces = 4;
constexpr int kInPlace = kRegisters == 32 ? 9 : 6;
/* Rows and places of a row that are held while kernels of three by three elements go over them. */
constexpr int kInPlaceRows = kRegisters == 32 ? 3 : 2, kInPlaceColumns = kRegisters == 32 ? 4 : 2;
/* Columns up to which planes are turned, and elements of a kernel from which on others are, too. */
constexpr i64 kTurnedColumns = 16;
constexpr i64 kTurnedTaps = 25;

template <class T>
struct Depth {
  static constexpr i64 kWidth = Lanes<T>::kWidth;
  using Vector = typename Lanes<T>::Vector;
  using Unaligned = typename Lanes<T>::Unaligned;

  const Product<T>& product;
  const Gemm& g;
  const Windows& w;
  i64 channels, places, rows, taps, wide; /* `wide`: places of a row of the copy */
  i64 strip, strips;                      /* rows of the result that are finished together */
  i64 groups, groups_per_block, parts;    /* of a vector's channels */
  i64 edge_begin, edge_end;

  explicit Depth(const Product<T>& of) : product(of), g(of.g), w(*of.g.windows) {
    channels = w.channels_last ? g.n : g.m;
    places = w.channels_last ? g.m : g.n;
    rows = places / w.columns;
    taps = w.kernel[0] * w.kernel[1];
    wide = (w.columns - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
    groups = ceil_div(channels, kWidth);
    find_edges();
    strip = most(1, least(rows, in_place() ? rows_in_place() : fitting_rows()));
    strips = ceil_div(rows, strip);
    groups_per_block = w.channels_last ? groups : 1;
    parts = ceil_div(groups, groups_per_block);
  }

  i64 reach() const { return (w.kernel[0] - 1) * w.dilation[0]; }
  i64 fitting_rows() const { return (kDepthElements / (wide * kWidth) - reach() - 1) / w.stride[0] + 1; }
  i64 rows_seen(i64 count) const { return (count - 1) * w.stride[0] + reach() + 1; }
  /* Rows of larger kernels, of all channels, would crowd each other out of the first-level cache. */
  bool in_place() const {
    return w.channels_last && channels >= kWidth && taps <= kInPlaceTaps && w.dilation[0] == 1 && w.dilation[1] == 1;
  }
  i64 rows_in_place() const {
    const i64 row = w.sizes[1] * channels * static_cast<i64>(sizeof(T)) + 1;
    return (kInPlaceBytes / row - reach() - 1) / w.stride[0] + 1;
  }
  i64 copy_size() const { return in_place() ? kWidth + edge_size() : rows_seen(strip) * wide * kWidth; }
  i64 result_size() const { return in_place() ? 0 : strip * w.columns * kWidth; }
  i64 kernel_size() const { return taps * kWidth * (in_place() ? groups : 1); }
  i64 held_size() const { return g.c ? 0 : strip * w.columns * (w.channels_last ? channels : kWidth); }
  i64 image_size() const { return w.channels_last ? 0 : least(rows_seen(strip), w.sizes[0]) * w.sizes[1] * kWidth; }
  i64 scratch_size() const {
    return copy_size() + result_size() + held_size() + image_size() + kernel_size() + 4 * kSlack<T>;
  }

  struct Work {
    const T* image;
    const T* kernels;
    T *copy, *kernel, *result, *turned;
    i64 y, count; /* rows of the result */
  };

  void block(i64 number, T* scratch) const {
    const i64 index = number / (strips * parts), part = number / strips % parts;
    Work work;
    work.image = w.channels_last ? product.a_of(index) : product.b_of(index);
    work.kernels = w.channels_last ? product.b_of(index) : product.a_of(index);
    work.copy = scratch;
    work.result = work.copy + copy_size();
    work.kernel = work.result + result_size();
    work.turned = work.kernel + kernel_size();
    T* const held = work.turned + image_size();
    work.y = number % strips * strip;
    work.count = least(strip, rows - work.y);
    if (w.channels_last)
      all_channels(work, index, held);
    else
      turned_planes(work, index, part * kWidth, held);
  }

  /* Some rows of the result, all channels of them. */
  void all_channels(const Work& work, i64 index, T* held) const {
    const i64 from = work.y * w.columns, count = work.count * w.columns;
    T* const to = g.c ? product.c_of(index) + from * g.c_row : held;
    const i64 to_row = g.c ? g.c_row : channels;
    if (in_place())
      read_in_place(work, to, to_row);
    else
      few_channels(work, to, to_row);
    if (g.done) g.done(g.context, to, to_row, index, from, count, 0, channels);
  }

  /* -- an image that is read where it lies ---------------------------------------------------- */
  /* The first channel of a vector: the last one ends where the channels do. */
  i64 channel_of(i64 group) const { return least(group * kWidth, channels - kWidth); }

  /* What places see: column x of row y, columns counted from the border on, lies at `from` + y * row + x * column. */
  struct Seen {
    const T* from;
    i64 row, column;
  };

  void read_in_place(const Work& work, T* to, i64 to_row) const {
    fill_zeros(work.copy, kWidth);
    for (i64 group = 0; group < groups; ++group)
      pack_panel(work.kernels + channel_of(group) * g.b_col, g.b_row, g.b_col, taps, kWidth, kWidth,
                 work.kernel + group * taps * kWidth);
    T* const edge = work.copy + kWidth;
    const Seen inside = {work.image - w.padding[1] * w.step[1], w.step[0], w.step[1]};
    if (edge_begin > 0) some_columns(work, 0, edge_begin, copy_edge(work, 0, edge_begin, edge), to, to_row);
    some_columns(work, edge_begin, edge_end, inside, to, to_row);
    if (edge_end < w.columns)
      some_columns(work, edge_end, w.columns, copy_edge(work, edge_end, w.columns, edge), to, to_row);
  }

  /* The places [edge_begin, edge_end) of a row see only columns of the image; beside it are some more than need be. */
  void find_edges() {
    const i64 room = w.sizes[1] + w.padding[1] - (w.kernel[1] - 1) * w.dilation[1];
    edge_begin = least(w.columns, steps_over(w.padding[1], w.stride[1]));
    edge_end = most(edge_begin, least(w.columns, room > 0 ? steps_over(room, w.stride[1]) : 0));
    if (edge_begin > 0) edge_begin = least(edge_end, most(edge_begin, kEdgePlaces));
    if (edge_end < w.columns) edge_end = most(edge_begin, least(edge_end, w.columns - kEdgePlaces));
  }

  i64 edge_columns(i64 count) const { return (count - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1; }
  i64 edge_size() const {
    return rows_seen(strip) * edge_columns(most(1, most(edge_begin, w.columns - edge_end))) * channels + kSlack<T>;
  }

  /* A copy of what the places [begin, end) of the rows see, with zeros around. */
  Seen copy_edge(const Work& work, i64 begin, i64 end, T* to) const {
    const i64 left = begin * w.stride[1] - w.padding[1], count = edge_columns(end - begin);
    const i64 top = work.y * w.stride[0] - w.padding[0], first = most(0, top);
    const i64 last = least(w.sizes[0], top + rows_seen(work.count));
    const Seen seen = {to - first * count * channels - begin * w.stride[1] * channels, count * channels, channels};
    for (i64 y = first; y < last; ++y)
      for (i64 x = left; x < left + count; ++x, to += channels)
        if (x < 0 || x >= w.sizes[1])
          fill_zeros(to, channels);
        else
          copy_run(work.image + y * w.step[0] + x * w.step[1], channels, to);
    return seen;
  }

  bool is_three_by_three() const {
    const i64 along = w.stride[0];
    return w.kernel[0] == 3 && w.kernel[1] == 3 && w.stride[1] == along && (along == 1 || along == 2);
  }

  /* Some places of each row, all channels of them. */
  void some_columns(const Work& work, i64 begin, i64 end, const Seen& seen, T* to, i64 to_row) const {
    if (is_three_by_three()) return some_blocks(work, begin, end, seen, to, to_row);
    const i64 pieces = ceil_div(end - begin, kInPlace);
    for (i64 y = work.y; y < work.y + work.count; ++y, to += w.columns * to_row)
      for (i64 piece = 0; piece < pieces; ++piece) {
        const i64 x = begin + (end - begin) * piece / pieces, next = begin + (end - begin) * (piece + 1) / pieces;
        for (i64 group = 0; group < groups; ++group)
          places_within(next - x, work, seen, y, x, group, to + x * to_row, to_row);
      }
  }

  /* The same in blocks of some rows, each of whose elements of the image is read once. */
  void some_blocks(const Work& work, i64 begin, i64 end, const Seen& seen, T* to, i64 to_row) const {
    for (i64 y = 0; y < work.count; y += kInPlaceRows)
      for (i64 x = begin; x < end; x += kInPlaceColumns) {
        const i64 high = least(kInPlaceRows, work.count - y), wide = least(kInPlaceColumns, end - x);
        const auto run = w.stride[1] == 1 ? block_of<1>(high, wide) : block_of<2>(high, wide);
        (this->*run)(work, seen, work.y + y, x, to + (y * w.columns + x) * to_row, to_row);
      }
  }

  using BlockFunction = void (Depth::*)(const Work&, const Seen&, i64, i64, T*, i64) const;

  template <int kStride, int kHigh = kInPlaceRows, int kWide = kInPlaceColumns>
  static BlockFunction block_of(i64 high, i64 wide) {
    if constexpr (kHigh > 1)
      if (high < kHigh) return block_of<kStride, kHigh - 1, kWide>(high, wide);
    if constexpr (kWide > 1)
      if (wide < kWide) return block_of<kStride, kHigh, kWide - 1>(high, wide);
    return &Depth::this_block<kStride, kHigh, kWide>;
  }

  /* Places from row y and column x on. */
  template <int kStride, int kHigh, int kWide>
  __attribute__((noinline)) void this_block(const Work& work, const Seen& seen, i64 y, i64 x, T* to, i64 to_row) const {
    constexpr int kRows = (kHigh - 1) * kStride + 3, kColumns = (kWide - 1) * kStride + 3;
    const T* rows[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const i64 sees = y * kStride + i - w.padding[0];
      rows[i] = sees >= 0 && sees < w.sizes[0] ? seen.from + sees * seen.row + x * kStride * seen.column : nullptr;
    }
    for (i64 group = 0; group < groups; ++group) {
      const i64 channel = channel_of(group);
      const T* const kernel = work.kernel + group * 9 * kWidth;
      Vector factors[9], sums[kHigh][kWide];
#pragma GCC unroll 16
      for (int tap = 0; tap < 9; ++tap) factors[tap] = *reinterpret_cast<const Unaligned*>(kernel + tap * kWidth);
#pragma GCC unroll 16
      for (int r = 0; r < kHigh; ++r) {
#pragma GCC unroll 16
        for (int p = 0; p < kWide; ++p) sums[r][p] = Vector{};
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const T* at = rows[i] ? rows[i] + channel : work.copy;
        const i64 across = rows[i] ? seen.column : 0;
#pragma GCC unroll 16
        for (int c = 0; c < kColumns; ++c) {
          const Vector image = *reinterpret_cast<const Unaligned*>(at);
          step(at, across);
#pragma GCC unroll 16
          for (int r = 0; r < kHigh; ++r) {
#pragma GCC unroll 16
            for (int p = 0; p < kWide; ++p) {
              const int ky = i - r * kStride, kx = c - p * kStride;
              if (ky >= 0 && ky < 3 && kx >= 0 && kx < 3) sums[r][p] += factors[ky * 3 + kx] * image;
            }
          }
        }
      }
      T* row = to + channel;
#pragma GCC unroll 16
      for (int r = 0; r < kHigh; ++r) {
        T* place = row;
#pragma GCC unroll 16
        for (int p = 0; p < kWide; ++p) {
          *reinterpret_cast<Unaligned*>(place) = sums[r][p];
          step(place, to_row);
        }
        step(row, w.columns * to_row);
      }
    }
  }

  template <int kPlaces = kInPlace>
  void places_within(i64 count, const Work& work, const Seen& seen, i64 y, i64 x, i64 group, T* to, i64 to_row) const {
    if constexpr (kPlaces > 1)
      if (count < kPlaces) return places_within<kPlaces - 1>(count, work, seen, y, x, group, to, to_row);
    these_within<kPlaces>(work, seen, y, x, group, to + channel_of(group), to_row);
  }

  /* Places of one row from x on. */
  template <int kPlaces>
  __attribute__((noinline)) void these_within(const Work& work, const Seen& seen, i64 y, i64 x, i64 group, T* to,
                                              i64 to_row) const {
    const T* kernel = work.kernel + group * taps * kWidth;
    const T* const image = seen.from + x * w.stride[1] * seen.column + channel_of(group);
    Vector sums[kPlaces];
#pragma GCC unroll 16
    for (int i = 0; i < kPlaces; ++i) sums[i] = Vector{};
    for (i64 ky = 0; ky < w.kernel[0]; ++ky) {
      const i64 sees = y * w.stride[0] + ky * w.dilation[0] - w.padding[0];
      const bool inside = sees >= 0 && sees < w.sizes[0];
      const i64 across = inside ? w.stride[1] * seen.column : 0, right = inside ? w.dilation[1] * seen.column : 0;
      const T* at[(kPlaces + 2) / 3]; /* every third place: with one stride that is all that addresses need */
#pragma GCC unroll 16
      for (int i = 0; i < kPlaces; i += 3) at[i / 3] = (inside ? image + sees * seen.row : work.copy) + i * across;
      for (i64 kx = 0; kx < w.kernel[1]; ++kx, kernel += kWidth) {
        const Vector factor = *reinterpret_cast<const Unaligned*>(kernel);
#pragma GCC unroll 16
        for (int i = 0; i < kPlaces; ++i)
          sums[i] += factor * *reinterpret_cast<const Unaligned*>(at[i / 3] + i % 3 * across);
#pragma GCC unroll 16
        for (int i = 0; i < kPlaces; i += 3) step(at[i / 3], right);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kPlaces; ++i) *reinterpret_cast<Unaligned*>(to + i * to_row) = sums[i];
  }

  /* -- copies ----------------------------------------------------------------------------------- */
  void few_channels(const Work& work, T* to, i64 to_row) const {
    const i64 count = work.count * w.columns;
    for (i64 channel = 0; channel < channels; channel += kWidth) {
      const i64 lanes = least(kWidth, channels - channel);
      pack_panel(work.kernels + channel * g.b_col, g.b_row, g.b_col, taps, lanes, kWidth, work.kernel);
      copy_image(work, work.image + channel, 0, w.step[0], w.step[1], lanes);
      if (lanes == kWidth) {
        convolve(work, to + channel, to_row);
        continue;
      }
      convolve(work, work.result, kWidth);
      for (i64 t = 0; t < count; ++t)
        for (i64 lane = 0; lane < lanes; ++lane) to[t * to_row + channel + lane] = work.result[t * kWidth + lane];
    }
  }

  /* A vector's channels, each a plane. */
  void turned_planes(const Work& work, i64 index, i64 channel, T* held) const {
    const i64 lanes = least(kWidth, channels - channel);
    pack_panel(work.kernels + channel * g.a_row, g.a_col, g.a_row, taps, lanes, kWidth, work.kernel);
    const i64 wide_row = w.sizes[1] * kWidth, first = turn_planes(work, work.image + channel * w.channel, lanes);
    copy_image(work, work.turned, first, wide_row, kWidth, kWidth);
    convolve(work, work.result, kWidth);
    const i64 from = work.y * w.columns, count = work.count * w.columns;
    T* const to = g.c ? product.c_of(index) + channel * g.c_row + from : held;
    const i64 to_row = g.c ? g.c_row : count;
    turn_result(work.result, count, lanes, to, to_row);
    if (g.done) g.done(g.context, to, to_row, index, channel, lanes, from, count);
  }

  /* Of the planes, the rows that are seen; the first of these. */
  i64 turn_planes(const Work& work, const T* planes, i64 lanes) const {
    const i64 top = work.y * w.stride[0] - w.padding[0], wide_row = w.sizes[1];
    const i64 first = least(most(0, top), w.sizes[0]);
    const i64 end = most(first, least(w.sizes[0], top + rows_seen(work.count)));
    if (w.step[1] == 1 && w.step[0] == wide_row) {
      pack_turned(planes + first * wide_row, w.channel, (end - first) * wide_row, lanes, kWidth, work.turned);
      return first;
    }
    for (i64 y = first; y < end; ++y)
      pack_panel(planes + y * w.step[0], w.step[1], w.channel, wide_row, lanes, kWidth,
                 work.turned + (y - first) * wide_row * kWidth);
    return first;
  }

  void turn_result(const T* result, i64 count, i64 lanes, T* to, i64 to_row) const {
    i64 t = 0;
    for (; lanes == kWidth && t + kWidth <= count; t += kWidth) turn_block(result + t * kWidth, kWidth, to + t, to_row);
    for (; t < count; ++t)
      for (i64 lane = 0; lane < lanes; ++lane) to[lane * to_row + t] = result[t * kWidth + lane];
  }

  /* What the rows of the result see, a vector for each place; row `first` of the image is at `from`. */
  void copy_image(const Work& work, const T* from, i64 first, i64 row_step, i64 step, i64 lanes) const {
    T* to = work.copy;
    const i64 seen = rows_seen(work.count);
    const i64 left = least(wide, w.padding[1]), inside = least(wide, w.padding[1] + w.sizes[1]);
    for (i64 r = 0; r < seen; ++r, to += wide * kWidth) {
      const i64 y = work.y * w.stride[0] + r - w.padding[0];
      if (y < 0 || y >= w.sizes[0]) {
        for (i64 x = 0; x < wide; ++x) *reinterpret_cast<Unaligned*>(to + x * kWidth) = Unaligned{};
        continue;
      }
      const T* const line = from + (y - first) * row_step;
      for (i64 x = 0; x < left; ++x) *reinterpret_cast<Unaligned*>(to + x * kWidth) = Unaligned{};
      for (i64 x = inside; x < wide; ++x) *reinterpret_cast<Unaligned*>(to + x * kWidth) = Unaligned{};
      copy_vectors(line, step, inside - left, lanes, to + left * kWidth);
    }
  }

  void copy_vectors(const T* from, i64 step, i64 count, i64 lanes, T* to) const {
    for (i64 x = 0; x < count; ++x, from += step, to += kWidth) {
      if (lanes == kWidth) {
        *reinterpret_cast<Unaligned*>(to) = *reinterpret_cast<const Unaligned*>(from);
        continue;
      }
      for (i64 lane = 0; lane < kWidth; ++lane) to[lane] = lane < lanes ? from[lane] : 0;
    }
  }

  void convolve(const Work& work, T* to, i64 to_row) const {
    if (w.stride[1] == 1)
      rows_of_result<1>(work, to, to_row);
    else if (w.stride[1] == 2)
      rows_of_result<2>(work, to, to_row);
    else
      rows_of_result<0>(work, to, to_row);
  }

  /* As few pieces of a row as registers allow, of about one length. */
  template <int kStride>
  void rows_of_result(const Work& work, T* to, i64 to_row) const {
    const i64 pieces = ceil_div(w.columns, kDepthPlaces), step = kStride ? kStride : w.stride[1];
    for (i64 y = 0; y < work.count; ++y)
      for (i64 piece = 0; piece < pieces; ++piece) {
        const i64 x = w.columns * piece / pieces, end = w.columns * (piece + 1) / pieces;
        const T* const from = work.copy + (y * w.stride[0] * wide + x * step) * kWidth;
        some_places<kStride>(end - x, from, work.kernel, to + (y * w.columns + x) * to_row, to_row);
      }
  }

  template <int kStride, int kPlaces = kDepthPlaces>
  void some_places(i64 count, const T* from, const T* kernel, T* to, i64 to_row) const {
    if constexpr (kPlaces > 1)
      if (count < kPlaces) return some_places<kStride, kPlaces - 1>(count, from, kernel, to, to_row);
    these_places<kStride, kPlaces>(from, kernel, to, to_row);
  }

  template <int kStride, int kPlaces>
  __attribute__((noinline)) void these_places(const T* from, const T* kernel, T* to, i64 to_row) const {
    const i64 step = (kStride ? kStride : w.stride[1]) * kWidth;
    Vector sums[kPlaces];
#pragma GCC unroll 16
    for (int i = 0; i < kPlaces; ++i) sums[i] = Vector{};
    for (i64 ky = 0; ky < w.kernel[0]; ++ky) {
      const T* at = from + ky * w.dilation[0] * wide * kWidth;
      for (i64 kx = 0; kx < w.kernel[1]; ++kx, at += w.dilation[1] * kWidth, kernel += kWidth) {
        const Vector factor = *reinterpret_cast<const Unaligned*>(kernel);
#pragma GCC unroll 16
        for (int i = 0; i < kPlaces; ++i) sums[i] += factor * *reinterpret_cast<const Unaligned*>(at + i * step);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kPlaces; ++i) *reinterpret_cast<Unaligned*>(to + i * to_row) = sums[i];
  }
};

/* Whether the channels of a depthwise convolution are better the lanes of vectors. */
template <class T>
bool pays_in_depth(const Gemm& g) {
  const Windows& w = *g.windows;
  if (w.channels_last) return true;
  return 2 * g.m >= Lanes<T>::kWidth && (w.columns <= kTurnedColumns || g.k >= kTurnedTaps) &&
         w.columns * w.stride[1] * Lanes<T>::kWidth <= kDepthElements / (w.kernel[0] * w.dilation[0]);
}

template <class T>
int convolve_depth(const Product<T>& product, i64 count) {
  const Depth<T> depth(product);
  const i64 work = depth.strip * depth.w.columns * depth.groups_per_block * depth.kWidth * (depth.taps + 8);
  return run_blocks<T>(depth, count * depth.strips * depth.parts, ceil_div(kPiece, work));
}
