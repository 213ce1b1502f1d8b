/* Depthwise convolutions: each plane of the result is made of one plane of the image. Included once per
 * instruction set.
 *
 * The plane is copied with its border of zeros, columns that a step apart sees beside each other; then rows and
 * vectors of the result are held in registers while the kernel's elements go over them. */

/* Elements of the result that are finished together. */
constexpr i64 kStrip = 4096;

template <class T>
struct Planes {
  const Product<T>& product;
  const Gemm& g;
  const Windows& w;
  i64 rows, row_size, phase_size; /* of the copy: rows, elements of a row, and of a row's columns of one phase */
  i64 strip;                      /* rows of the result that are finished together */

  explicit Planes(const Product<T>& of) : product(of), g(of.g), w(*of.g.windows) {
    constexpr i64 kWidth = Lanes<T>::kWidth;
    rows = (result_rows() - 1) * w.stride[0] + w.dilation[0] * (w.kernel[0] - 1) + 1;
    phase_size = ceil_div(w.columns, kWidth) * kWidth + w.dilation[1] * (w.kernel[1] - 1) / w.stride[1] + kWidth;
    row_size = phase_size * w.stride[1];
    strip = least(result_rows(), w.columns < kStrip ? kStrip / w.columns : 1);
  }

  i64 result_rows() const { return g.n / w.columns; }
  i64 copy_size() const { return rows * row_size + kSlack<T>; }
  i64 strip_size() const { return g.c ? 0 : strip * w.columns; }
  i64 scratch_size() const { return copy_size() + strip_size() + w.kernel[0] * w.kernel[1]; }

  void copy_plane(const T* image, T* to) const {
    const T* const end = image_end(w, image, 1);
    const i64 filled = phase_size - kSlack<T>; /* what is written beyond is read by nobody */
    const i64 above = least(rows, w.padding[0]), below = most(above, least(rows, w.padding[0] + w.sizes[0]));
    fill_zeros(to, above * row_size);
    for (i64 phase = 0; phase < w.stride[1]; ++phase) {
      const i64 x = phase - w.padding[1], step = w.stride[1] * w.step[1];
      const Inside inside(w, x, filled);
      T* at = to + phase * phase_size + above * row_size;
      const T* from = image + (above - w.padding[0]) * w.step[0] + (x + inside.from * w.stride[1]) * w.step[1];
      for (i64 r = above; r < below; ++r, at += row_size, from += w.step[0]) {
        if (inside.from > 0) fill_zeros(at, inside.from);
        copy_steps(from, step, inside.to - inside.from, end, at + inside.from);
        if (inside.to < filled) fill_zeros(at + inside.to, filled - inside.to);
      }
    }
    fill_zeros(to + below * row_size, (rows - below) * row_size);
  }

  /* kRows rows of the result by kVectors vectors, whole ones where there is room for them before `end`. */
  template <int kRows, int kVectors>
  __attribute__((noinline)) void piece(const T* copy, const T* kernel, T* to, const T* end) const {
    using Vector = typename Lanes<T>::Vector;
    using Unaligned = typename Lanes<T>::Unaligned;
    constexpr i64 kWidth = Lanes<T>::kWidth;
    Vector sums[kRows][kVectors];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) sums[i][j] = Vector{};
    }
    const i64 next = row_size * w.stride[0];
    for (i64 ky = 0; ky < w.kernel[0]; ++ky) {
      const T* const row = copy + ky * w.dilation[0] * row_size;
      i64 phase = 0, column = 0;
      for (i64 kx = 0; kx < w.kernel[1]; ++kx) {
        const Vector factor = *kernel++ - Vector{};
        const T* const from = row + phase * phase_size + column;
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
          for (int j = 0; j < kVectors; ++j)
            sums[i][j] += factor * *reinterpret_cast<const Unaligned*>(from + i * next + j * kWidth);
        }
        for (phase += w.dilation[1]; phase >= w.stride[1]; phase -= w.stride[1]) ++column;
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      if (to + i * w.columns + kVectors * kWidth > end) {
        T held[kVectors * kWidth];
        __builtin_memcpy(held, sums[i], sizeof held);
        for (i64 j = 0; j < w.columns; ++j) to[i * w.columns + j] = held[j];
        continue;
      }
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) *reinterpret_cast<Unaligned*>(to + i * w.columns + j * kWidth) = sums[i][j];
    }
  }

  /* `count` rows by kVectors vectors. Where a row is shorter than a vector, what is written beyond its end is
   * overwritten by the rows that follow. */
  template <int kRows, int kVectors>
  void column(const T* copy, const T* kernel, T* to, i64 count, const T* end) const {
    const i64 next = w.stride[0] * row_size;
    i64 y = 0;
    for (; y + kRows <= count; y += kRows) piece<kRows, kVectors>(copy + y * next, kernel, to + y * w.columns, end);
    for (; y < count; ++y) piece<1, kVectors>(copy + y * next, kernel, to + y * w.columns, end);
  }

  template <int kVectors = kTileVectors>
  void columns_of(i64 vectors, const T* copy, const T* kernel, T* to, i64 count, const T* end) const {
    if constexpr (kVectors > 1)
      if (vectors < kVectors) return columns_of<kVectors - 1>(vectors, copy, kernel, to, count, end);
    column<least(6, kRegisters / 4 / kVectors), kVectors>(copy, kernel, to, count, end);
  }

  /* Rows of three elements of the kernel for kRows rows of the result: each vector of the image is read once for all of
   * them. The sums are those of `piece`. */
  template <int kStride, int kRows>
  __attribute__((noinline)) void piece_of_three(const T* copy, const T* kernel, T* to) const {
    using Vector = typename Lanes<T>::Vector;
    using Unaligned = typename Lanes<T>::Unaligned;
    constexpr i64 kWidth = Lanes<T>::kWidth;
    Vector factors[9];
#pragma GCC unroll 9
    for (int p = 0; p < 9; ++p) factors[p] = kernel[p] - Vector{};
    const i64 beside = kStride == 1 ? 1 : phase_size, last = kStride == 1 ? 2 : 1;
    for (i64 x = 0;; x += kWidth) {
      x = least(x, w.columns - kWidth);
      Vector sums[kRows];
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) sums[i] = Vector{};
      const T* row = copy + x;
#pragma GCC unroll 32
      for (int r = 0; r < (kRows - 1) * kStride + 3; ++r, row += row_size) {
        const Vector seen[3] = {*reinterpret_cast<const Unaligned*>(row),
                                *reinterpret_cast<const Unaligned*>(row + beside),
                                *reinterpret_cast<const Unaligned*>(row + last)};
#pragma GCC unroll 3
        for (int ky = 0; ky < 3; ++ky) {
          if (r < ky || (r - ky) % kStride || (r - ky) / kStride >= kRows) continue;
#pragma GCC unroll 3
          for (int kx = 0; kx < 3; ++kx) sums[(r - ky) / kStride] += factors[ky * 3 + kx] * seen[kx];
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) *reinterpret_cast<Unaligned*>(to + i * w.columns + x) = sums[i];
      if (x + kWidth >= w.columns) return;
    }
  }

  bool is_of_three() const {
    return w.kernel[0] == 3 && w.kernel[1] == 3 && w.dilation[0] == 1 && w.dilation[1] == 1 &&
           w.stride[0] == w.stride[1] && w.stride[0] <= 2 && w.columns >= Lanes<T>::kWidth;
  }

  template <int kStride>
  void rows_of_three(const T* copy, const T* kernel, T* to, i64 count) const {
    constexpr int kRows = kRegisters == 32 ? 6 : 3;
    const i64 next = kStride * row_size;
    i64 y = 0;
    for (; y + kRows <= count; y += kRows) piece_of_three<kStride, kRows>(copy + y * next, kernel, to + y * w.columns);
    for (; y + 2 <= count; y += 2) piece_of_three<kStride, 2>(copy + y * next, kernel, to + y * w.columns);
    if (y < count) piece_of_three<kStride, 1>(copy + y * next, kernel, to + y * w.columns);
  }

  /* Whole vectors of columns, then one more that ends where the rows do. */
  void some_rows(const T* copy, const T* kernel, T* to, i64 count) const {
    constexpr i64 kWidth = Lanes<T>::kWidth;
    if (is_of_three())
      return w.stride[0] == 1 ? rows_of_three<1>(copy, kernel, to, count) : rows_of_three<2>(copy, kernel, to, count);
    const T* const end = to + count * w.columns;
    i64 x = 0;
    while (x + kWidth <= w.columns) {
      const i64 vectors = least((w.columns - x) / kWidth, kTileVectors);
      columns_of(vectors, copy + x, kernel, to + x, count, end);
      x += vectors * kWidth;
    }
    if (x == w.columns) return;
    x = w.columns < kWidth ? 0 : w.columns - kWidth;
    columns_of(1, copy + x, kernel, to + x, count, end);
  }

  void block(i64 index, T* scratch) const {
    T* const copy = scratch;
    T* const held = copy + copy_size();
    T* const kernel = held + strip_size();
    const i64 image = index / g.m, channel = index % g.m;
    const T* const a = product.a_of(image) + channel * g.a_row;
    for (i64 p = 0; p < g.k; ++p) kernel[p] = a[p * g.a_col];
    copy_plane(product.b_of(image) + channel * w.channel, copy);
    for (i64 y = 0; y < result_rows(); y += strip) {
      const i64 count = least(strip, result_rows() - y), from = y * w.columns;
      T* const to = g.c ? product.c_of(image) + channel * g.c_row + from : held;
      some_rows(copy + y * w.stride[0] * row_size, kernel, to, count);
      if (g.done) g.done(g.context, to, g.n, image, channel, 1, from, count * w.columns);
    }
  }
};

template <class T>
int convolve_planes(const Product<T>& product, i64 count) {
  const Planes<T> planes(product);
  const i64 work = product.g.n * (product.g.k + 8);
  return run_blocks<T>(planes, count * product.g.m, ceil_div(kPiece, work));
}
