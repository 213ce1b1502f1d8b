/* Packing: panels of B and rows of A as the register tiles read them. Included once per instruction set. */

/* Turns a width x width block held in registers on its diagonal, swapping ever smaller halves. */
template <class T, int kStep>
__attribute__((always_inline)) inline void swap_halves(typename Lanes<T>::Vector* rows) {
  constexpr int kWidth = Lanes<T>::kWidth;
  typedef typename Lanes<T>::Lane Mask __attribute__((vector_size(kVectorBytes)));
  Mask low, high;
#pragma GCC unroll 16
  for (int lane = 0; lane < kWidth; ++lane) {
    low[lane] = (lane & kStep) ? kWidth + lane - kStep : lane;
    high[lane] = (lane & kStep) ? kWidth + lane : lane + kStep;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) {
    if (i & kStep) continue;
    const auto first = rows[i], second = rows[i + kStep];
    rows[i] = __builtin_shuffle(first, second, low);
    rows[i + kStep] = __builtin_shuffle(first, second, high);
  }
  if constexpr (kStep > 1) swap_halves<T, kStep / 2>(rows);
}

/* to[p * to_row + j] = from[j * from_col + p] for a width x width block. */
template <class T>
void turn_block(const T* from, i64 from_col, T* to, i64 to_row) {
  using Unaligned = typename Lanes<T>::Unaligned;
  constexpr int kWidth = Lanes<T>::kWidth;
  typename Lanes<T>::Vector rows[kWidth];
#pragma GCC unroll 16
  for (int j = 0; j < kWidth; ++j) rows[j] = *reinterpret_cast<const Unaligned*>(from + j * from_col);
  swap_halves<T, kWidth / 2>(rows);
#pragma GCC unroll 16
  for (int p = 0; p < kWidth; ++p) *reinterpret_cast<Unaligned*>(to + p * to_row) = rows[p];
}

/* `cols` columns of B with contiguous columns, as rows of `width` elements padded with zeros. */
template <class T>
void pack_turned(const T* b, i64 b_col, i64 k, i64 cols, i64 width, T* to) {
  constexpr i64 kWidth = Lanes<T>::kWidth;
  const i64 whole_cols = cols / kWidth * kWidth, whole_k = k / kWidth * kWidth;
  for (i64 p = 0; p < whole_k; p += kWidth)
    for (i64 j = 0; j < whole_cols; j += kWidth) turn_block(b + j * b_col + p, b_col, to + p * width + j, width);
  for (i64 p = 0; p < k; ++p) {
    T* const row = to + p * width;
    for (i64 j = p < whole_k ? whole_cols : 0; j < cols; ++j) row[j] = b[j * b_col + p];
    for (i64 j = cols; j < width; ++j) row[j] = 0;
  }
}

/* `count` contiguous elements; whole vectors first. */
template <class T>
__attribute__((always_inline)) inline void copy_row(const T* from, i64 count, T* to) {
  using Unaligned = typename Lanes<T>::Unaligned;
  constexpr i64 kWidth = Lanes<T>::kWidth;
  i64 j = 0;
  for (; j + kWidth <= count; j += kWidth)
    *reinterpret_cast<Unaligned*>(to + j) = *reinterpret_cast<const Unaligned*>(from + j);
  for (; j < count; ++j) to[j] = from[j];
}

/* The same, the last vector ending where the elements do. */
template <class T>
__attribute__((always_inline)) inline void copy_run(const T* from, i64 count, T* to) {
  using Unaligned = typename Lanes<T>::Unaligned;
  constexpr i64 kWidth = Lanes<T>::kWidth;
  if (count < kWidth) {
    for (i64 j = 0; j < count; ++j) to[j] = from[j];
    return;
  }
  for (i64 j = 0; j + kWidth < count; j += kWidth)
    *reinterpret_cast<Unaligned*>(to + j) = *reinterpret_cast<const Unaligned*>(from + j);
  *reinterpret_cast<Unaligned*>(to + count - kWidth) = *reinterpret_cast<const Unaligned*>(from + count - kWidth);
}

/* Columns of B with any strides. */
template <class T>
void pack_panel(const T* b, i64 b_row, i64 b_col, i64 k, i64 cols, i64 width, T* to) {
  if (b_row == 1 && b_col != 1) {
    pack_turned(b, b_col, k, cols, width, to);
    return;
  }
  for (i64 p = 0; p < k; ++p) {
    const T* const from = b + p * b_row;
    T* const row = to + p * width;
    if (b_col == 1)
      copy_row(from, cols, row);
    else
      for (i64 j = 0; j < cols; ++j) row[j] = from[j * b_col];
    for (i64 j = cols; j < width; ++j) row[j] = 0;
  }
}

/* Whole panels of B, `gap` elements apart, whose columns lie side by side. */
template <class T>
void pack_beside(const T* b, i64 b_row, i64 k, i64 panels, i64 width, i64 gap, T* to) {
  using Unaligned = typename Lanes<T>::Unaligned;
  constexpr i64 kWidth = Lanes<T>::kWidth;
  for (i64 p = 0; p < k; ++p) {
    const T* const from = b + p * b_row;
    for (i64 j = 0; j < panels; ++j)
      for (i64 x = 0; x < width; x += kWidth) {
        const T* const now = from + j * width + x;
        __builtin_prefetch(now + kAhead * b_row);
        *reinterpret_cast<Unaligned*>(to + j * gap + p * width + x) = *reinterpret_cast<const Unaligned*>(now);
      }
  }
}

/* Rows of the tallest tile of whole width. */
constexpr i64 kFullRows = most_rows(kTileVectors);

/* `rows` rows of A, whose columns are contiguous, as groups of kFullRows rows, each k columns of them: the columns are
 * read along what lies together. `rows` is a multiple of kFullRows. */
template <class T>
void pack_groups(const T* a, i64 a_col, i64 rows, i64 k, T* to) {
  for (i64 p = 0; p < k; ++p) {
    __builtin_prefetch(a + kAhead * a_col);
    __builtin_prefetch(a + kAhead * a_col + rows - 1);
    for (i64 r = 0; r < rows; r += kFullRows) __builtin_memcpy(to + r * k, a + r, kFullRows * sizeof(T));
    a += a_col;
    to += kFullRows;
  }
}

/* `rows` rows of A as k columns of them. */
template <class T>
void pack_rows(const T* a, i64 a_row, i64 a_col, i64 rows, i64 k, T* to) {
  for (i64 p = 0; p < k; ++p)
    for (i64 r = 0; r < rows; ++r) *to++ = a[r * a_row + p * a_col];
}
