/* Depthwise convolutions with channels in the lanes of vectors. Included once per instruction set.
 *
 * Some rows of a vector's channels are copied with their border of zeros, a vector for each place; then some places of
 * the result are held in registers while the kernel's elements go over them. Where channels do not lie innermost
 * planes are turned on the way, which pays where their rows are short (else see planes.h). */

/* Elements of the copy, and places that are held in registers. */
constexpr i64 kDepthElements = 32 << 10;
constexpr int kDepthPlaces = kRegisters / 2 - 2;
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

  explicit Depth(const Product<T>& of) : product(of), g(of.g), w(*of.g.windows) {
    channels = w.channels_last ? g.n : g.m;
    places = w.channels_last ? g.m : g.n;
    rows = places / w.columns;
    taps = w.kernel[0] * w.kernel[1];
    wide = (w.columns - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
    groups = ceil_div(channels, kWidth);
    strip = most(1, least(rows, fitting_rows()));
    strips = ceil_div(rows, strip);
    groups_per_block = w.channels_last ? groups : 1;
    parts = ceil_div(groups, groups_per_block);
  }

  i64 reach() const { return (w.kernel[0] - 1) * w.dilation[0]; }
  i64 fitting_rows() const { return (kDepthElements / (wide * kWidth) - reach() - 1) / w.stride[0] + 1; }
  i64 rows_seen(i64 count) const { return (count - 1) * w.stride[0] + reach() + 1; }
  i64 copy_size() const { return rows_seen(strip) * wide * kWidth; }
  i64 result_size() const { return strip * w.columns * kWidth; }
  i64 held_size() const { return g.c ? 0 : strip * w.columns * (w.channels_last ? channels : kWidth); }
  i64 image_size() const { return w.channels_last ? 0 : least(rows_seen(strip), w.sizes[0]) * w.sizes[1] * kWidth; }
  i64 scratch_size() const {
    return copy_size() + result_size() + held_size() + image_size() + taps * kWidth + 4 * kSlack<T>;
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
    work.turned = work.kernel + taps * kWidth;
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
    if (g.done) g.done(g.context, to, to_row, index, from, count, 0, channels);
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
