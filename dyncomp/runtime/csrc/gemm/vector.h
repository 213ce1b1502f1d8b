/* A row vector times a matrix whose rows are contiguous: its rows are read as they lie, a few at once, and the sums are
 * in the first-level cache. Included once per instruction set.
 *
 * The register tiles go down a few columns, so that memory is read in short pieces; where each element of the matrix
 * is used once nothing but the reading counts. Every sum is over the terms in order, in blocks as in product.h. */

/* Bytes of a row that a block goes over, and from which on this pays. */
constexpr i64 kVectorRowBytes = 16 << 10, kVectorRowLeast = 1 << 10;
/* Rows that are read at once: few out of the caches, which hand them on at once, more out of memory, where those that
 * come next are asked for (measured: 1.1x to 1.3x either way). Bytes of a matrix that is taken to lie in memory. */
constexpr int kRowsAtOnce = 4, kRowsFromMemory = 8;
constexpr i64 kInMemoryBytes = 16 << 20;

/* sums += a[r] rows[r] for some vectors beside each other; of the rows as many are asked for below. */
template <class T, int kRows, int kVectors>
__attribute__((always_inline)) inline void add_vectors(const typename Lanes<T>::Vector* left, const T* const* rows,
                                                       i64 from, T* sums, bool from_zero, i64 below) {
  using Vector = typename Lanes<T>::Vector;
  using Unaligned = typename Lanes<T>::Unaligned;
  Vector* const to = reinterpret_cast<Vector*>(sums);
  Vector sum[kVectors];
#pragma GCC unroll 8
  for (int u = 0; u < kVectors; ++u) sum[u] = from_zero ? Vector{} : to[u];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int u = 0; u < kVectors; ++u) {
      const T* const now = rows[r] + from + u * Lanes<T>::kWidth;
      if constexpr (kRows == kRowsFromMemory) __builtin_prefetch(now + below, 0, 2);
      sum[u] += left[r] * *reinterpret_cast<const Unaligned*>(now);
    }
  }
#pragma GCC unroll 8
  for (int u = 0; u < kVectors; ++u) to[u] = sum[u];
}

/* sums[j] = (from zero, or what they are) + a[0] b[0][j] + ...; `wide` whole vectors and one at `last`. */
template <class T, int kRows>
__attribute__((noinline)) void add_rows(const T* a, i64 a_col, const T* b, i64 b_row, i64 wide, i64 last, T* sums,
                                        bool from_zero) {
  constexpr i64 kWidth = Lanes<T>::kWidth;
  typename Lanes<T>::Vector left[kRows];
  const T* rows[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    left[r] = a[r * a_col] - typename Lanes<T>::Vector{}; /* a broadcast, as in tile.h */
    rows[r] = b + r * b_row;
  }
  const i64 below = kRows * b_row;
  i64 number = 0;
  for (; number + 2 <= wide; number += 2)
    add_vectors<T, kRows, 2>(left, rows, number * kWidth, sums + number * kWidth, from_zero, below);
  for (; number < wide; ++number)
    add_vectors<T, kRows, 1>(left, rows, number * kWidth, sums + number * kWidth, from_zero, below);
  add_vectors<T, kRows, 1>(left, rows, last, sums + wide * kWidth, from_zero, below);
}

template <class T>
struct ByVector {
  static constexpr i64 kWidth = Lanes<T>::kWidth;

  const Product<T>& product;
  const Gemm& g;
  i64 cols, blocks; /* columns of a block, and blocks of a product */
  bool in_memory;

  explicit ByVector(const Product<T>& of, i64 products) : product(of), g(of.g) {
    const i64 wanted = threads_here() > 1 ? least(threads_here() * 2, products * g.n * g.k / kPiece) : 1;
    const i64 most_cols = kVectorRowBytes / static_cast<i64>(sizeof(T));
    const i64 pieces = most(ceil_div(g.n, most_cols), ceil_div(wanted, products));
    cols = ceil_div(ceil_div(g.n, pieces), kWidth) * kWidth;
    blocks = ceil_div(g.n, cols);
    in_memory = products * g.k * g.n * static_cast<i64>(sizeof(T)) >= kInMemoryBytes;
  }

  /* Elements of the sums of some terms, the last vector's being apart, and of a block of C. */
  i64 sums_size() const { return cols + kWidth; }
  i64 scratch_size() const { return sums_size() + (g.c ? 0 : cols); }

  void block(i64 number, T* scratch) const {
    const i64 index = number / blocks, from = number % blocks * cols, count = least(cols, g.n - from);
    T *const sums = scratch, *const c = g.c ? product.c_of(index) + from : sums + sums_size();
    const T* const a = product.a_of(index);
    const T* const b = product.b_of(index) + from;
    const i64 terms = ceil_div(g.k, ceil_div(g.k, kTerms));
    for (i64 p = 0; p < g.k; p += terms) {
      some_terms(a + p * g.a_col, b + p * g.b_row, least(terms, g.k - p), count, sums);
      keep(sums, count, c, p > 0);
    }
    if (g.done) g.done(g.context, c, g.c ? g.c_row : cols, index, 0, 1, from, count);
  }

  void some_terms(const T* a, const T* b, i64 terms, i64 count, T* sums) const {
    const i64 wide = (count - 1) / kWidth, last = count - kWidth; /* may lie before the block, but in the row */
    i64 p = 0;
    const auto add = [&](auto rows, i64 step) {
      for (; p + step <= terms; p += step)
        rows(a + p * g.a_col, g.a_col, b + p * g.b_row, g.b_row, wide, last, sums, p == 0);
    };
    if (in_memory) add(add_rows<T, kRowsFromMemory>, kRowsFromMemory);
    add(add_rows<T, kRowsAtOnce>, kRowsAtOnce);
    add(add_rows<T, 1>, 1);
  }

  /* The sums of a block, the last of them where its vector ends. */
  void keep(const T* sums, i64 count, T* c, bool add) const {
    using Vector = typename Lanes<T>::Vector;
    using Unaligned = typename Lanes<T>::Unaligned;
    const i64 wide = (count - 1) / kWidth * kWidth, shift = wide + kWidth - count;
    const Vector end = *reinterpret_cast<const Vector*>(sums + wide);
    for (i64 j = 0; j < wide; j += kWidth) {
      Unaligned* const to = reinterpret_cast<Unaligned*>(c + j);
      const Vector now = *reinterpret_cast<const Vector*>(sums + j);
      *to = add ? now + *to : now;
    }
    for (i64 j = wide; j < count; ++j) c[j] = add ? c[j] + end[j - wide + shift] : end[j - wide + shift];
  }
};

/* Whether a product is one of a vector with a matrix that is read along its rows. */
template <class T>
bool goes_by_vector(const Gemm& g) {
  const i64 size = sizeof(T);
  return g.m == 1 && g.b_col == 1 && g.k > 0 && !g.windows && !g.fill_a && !g.fill_b && g.n * size >= kVectorRowLeast;
}

template <class T>
int multiply_vector(const Product<T>& product, i64 products) {
  const ByVector<T> work(product, products);
  return run_blocks<T>(work, products * work.blocks, ceil_div(kPiece, work.cols * (product.g.k + 1)));
}
