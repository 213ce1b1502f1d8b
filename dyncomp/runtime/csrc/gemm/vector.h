/* A row vector, or a few where B is of bytes, times a matrix whose rows are contiguous: its rows are read as they lie, a
 * few at once, and the sums are in the first-level cache. Included once per instruction set.
 *
 * The register tiles go down a few columns, so that memory is read in short pieces; where each element of the matrix
 * is used once nothing but the reading counts. Every sum is over the terms in order, in blocks as in product.h. */

/* Bytes of sums that a block goes over, and of a row of them from which on this pays. */
constexpr i64 kVectorRowBytes = 16 << 10, kVectorRowLeast = 1 << 10;
/* Rows that are read at once: few out of the caches, which hand them on at once, more out of memory, where those that
 * come next are asked for (measured: 1.1x to 1.3x either way). Bytes of a matrix that is taken to lie in memory. */
constexpr int kRowsAtOnce = 4, kRowsFromMemory = 8;
constexpr i64 kInMemoryBytes = 16 << 20;

/* Elements of a row times elements of B that are widened to theirs if they are bytes. */
template <class T, class Byte = T>
struct Singles {
  using Left = T;
  using Right = Byte;
  using Sum = T;
  using Vector = typename Lanes<T>::Vector;
  using Factor = Vector;
  static constexpr int kTermsOf = 1, kVectors = 1; /* terms of a factor, and vectors of sums that are made at once */
  static constexpr int kUnit = Lanes<T>::kWidth;   /* columns of these */
  static constexpr i64 kRowsMost = sizeof(T) == sizeof(Byte) ? 1 : 4;

  __attribute__((always_inline)) static Factor factor(const T* from) {
    return *from - Vector{}; /* a broadcast, as in tile.h */
  }
  __attribute__((always_inline)) static void add(Vector* sums, Factor left, const Right* row, const Right*) {
    *sums += left * widened<T>(row);
  }
};

/* Pairs of terms, which lie beside each other in a row, times bytes of two rows of B. */
template <class Byte>
struct Twos {
  using Left = short;
  using Right = Byte;
  using Sum = Total;
  using Vector = Totals;
  using Factor = Shorts;
  static constexpr int kTermsOf = 2, kVectors = 2, kUnit = kTermLanes;
  static constexpr i64 kRowsMost = 4;

  __attribute__((always_inline)) static Factor factor(const short* from) { return everywhere(from); }
  __attribute__((always_inline)) static void add(Vector* sums, Factor left, const Right* row, const Right* below) {
    const Woven right = woven(row, below);
    sums[0] = add_pairs(sums[0], left, right.first);
    sums[1] = add_pairs(sums[1], left, right.second);
  }
};

/* sums += a[r] rows[r] for some units of columns beside each other; of the rows as many are asked for below. */
template <class Kind, int kRows, int kUnits>
__attribute__((always_inline)) inline void add_units(const typename Kind::Factor* left,
                                                     const typename Kind::Right* const* rows, i64 from,
                                                     typename Kind::Sum* sums, bool from_zero, i64 below) {
  using Vector = typename Kind::Vector;
  constexpr int kVectors = kUnits * Kind::kVectors;
  Vector* const to = reinterpret_cast<Vector*>(sums);
  Vector sum[kVectors];
#pragma GCC unroll 8
  for (int u = 0; u < kVectors; ++u) sum[u] = from_zero ? Vector{} : to[u];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; r += Kind::kTermsOf) {
#pragma GCC unroll 8
    for (int u = 0; u < kUnits; ++u) {
      const i64 at = from + u * Kind::kUnit;
      if constexpr (kRows == kRowsFromMemory) {
        for (int t = 0; t < Kind::kTermsOf; ++t) __builtin_prefetch(rows[r + t] + at + below, 0, 2);
      }
      Kind::add(sum + u * Kind::kVectors, left[r / Kind::kTermsOf], rows[r] + at, rows[r + Kind::kTermsOf - 1] + at);
    }
  }
#pragma GCC unroll 8
  for (int u = 0; u < kVectors; ++u) to[u] = sum[u];
}

/* sums[j] = (from zero, or what they are) + a[0] b[0][j] + ...; `wide` whole units and one at `last`. */
template <class Kind, int kRows>
__attribute__((noinline)) void add_rows(const typename Kind::Left* a, i64 a_col, const typename Kind::Right* b,
                                        i64 b_row, i64 wide, i64 last, typename Kind::Sum* sums, bool from_zero) {
  constexpr i64 kUnit = Kind::kUnit;
  typename Kind::Factor left[kRows / Kind::kTermsOf];
  const typename Kind::Right* rows[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    if (r % Kind::kTermsOf == 0) left[r / Kind::kTermsOf] = Kind::factor(a + r * a_col);
    rows[r] = b + r * b_row;
  }
  const i64 below = kRows * b_row;
  i64 number = 0;
  for (; number + 2 <= wide; number += 2)
    add_units<Kind, kRows, 2>(left, rows, number * kUnit, sums + number * kUnit, from_zero, below);
  for (; number < wide; ++number)
    add_units<Kind, kRows, 1>(left, rows, number * kUnit, sums + number * kUnit, from_zero, below);
  add_units<Kind, kRows, 1>(left, rows, last, sums + wide * kUnit, from_zero, below);
}

template <class Kind>
struct ByRows {
  using Left = typename Kind::Left;
  using Right = typename Kind::Right;
  using Sum = typename Kind::Sum;
  static constexpr i64 kUnit = Kind::kUnit, kWidth = Lanes<Sum>::kWidth;

  const Gemm& g;
  i64 groups; /* of rows of a product, which go over B together */
  i64 cols, blocks; /* columns of a block, and blocks of a group */
  bool in_memory;

  ByRows(const Gemm& gemm, i64 products) : g(gemm) {
    const bool widens = sizeof(Right) < sizeof(Sum); /* more slowly than memory hands on four rows */
    in_memory = !widens && products * g.k * g.n * static_cast<i64>(sizeof(Right)) >= kInMemoryBytes;
    groups = ceil_div(g.m, Kind::kRowsMost);
    products *= groups;
    const i64 wanted = threads_here() > 1 ? least(threads_here() * 2, products * g.n * g.k / kPiece) : 1;
    const i64 most_cols = kVectorRowBytes / static_cast<i64>(sizeof(Sum)) / least(g.m, Kind::kRowsMost);
    const i64 pieces = most(ceil_div(g.n, most_cols), ceil_div(wanted, products));
    cols = ceil_div(ceil_div(g.n, pieces), kUnit) * kUnit;
    blocks = ceil_div(g.n, cols);
  }

  /* Elements of the sums of some terms for a row, the last unit's being apart, and of a block of C. */
  i64 sums_size() const { return cols + kUnit; }
  i64 scratch_size() const { return least(g.m, Kind::kRowsMost) * (sums_size() + (g.c ? 0 : cols)); }

  void block(i64 number, Sum* scratch) const {
    const i64 from = number % blocks * cols, count = least(cols, g.n - from);
    number /= blocks;
    const i64 index = number / groups, row = number % groups * Kind::kRowsMost;
    const i64 rows = least(Kind::kRowsMost, g.m - row), c_row = g.c ? g.c_row : cols;
    Sum* const sums = scratch;
    Sum* const c = g.c ? static_cast<Sum*>(g.c) + batch_offset(g, index, g.c_batch) + row * c_row + from
                       : sums + rows * sums_size();
    const Left* const a = static_cast<const Left*>(g.a) + batch_offset(g, index, g.a_batch) + row * g.a_row;
    const Right* const b = static_cast<const Right*>(g.b) + batch_offset(g, index, g.b_batch) + from;
    const i64 terms = ceil_div(ceil_div(g.k, ceil_div(g.k, kTerms)), Kind::kTermsOf) * Kind::kTermsOf;
    for (i64 p = 0; p < g.k; p += terms) {
      some_terms(a + p * g.a_col, b + p * g.b_row, least(terms, g.k - p), rows, count, sums);
      for (i64 i = 0; i < rows; ++i) keep(sums + i * sums_size(), count, c + i * c_row, p > 0);
    }
    if (g.done) g.done(g.context, c, c_row, index, row, rows, from, count);
  }

  void some_terms(const Left* a, const Right* b, i64 terms, i64 high, i64 count, Sum* sums) const {
    const i64 wide = (count - 1) / kUnit, last = count - kUnit; /* may lie before the block, but in the row */
    i64 p = 0;
    const auto add = [&](auto rows, i64 step, i64 b_row) {
      for (; p + step <= terms; p += step)
        for (i64 i = 0; i < high; ++i)
          rows(a + i * g.a_row + p * g.a_col, g.a_col, b + p * g.b_row, b_row, wide, last, sums + i * sums_size(), p == 0);
    };
    if (in_memory) add(add_rows<Kind, kRowsFromMemory>, kRowsFromMemory, g.b_row);
    add(add_rows<Kind, kRowsAtOnce>, kRowsAtOnce, g.b_row);
    add(add_rows<Kind, Kind::kTermsOf>, Kind::kTermsOf, g.b_row);
    if (Kind::kTermsOf > 1) add(add_rows<Kind, Kind::kTermsOf>, 1, 0); /* beside a term that A has as a zero */
  }

  /* The sums of a block, the last of them where its unit ends. */
  void keep(const Sum* sums, i64 count, Sum* c, bool add) const {
    using Vector = typename Lanes<Sum>::Vector;
    using Unaligned = typename Lanes<Sum>::Unaligned;
    const i64 wide = (count - 1) / kUnit * kUnit, shift = wide + kUnit - count;
    for (i64 j = 0; j < wide; j += kWidth) {
      Unaligned* const to = reinterpret_cast<Unaligned*>(c + j);
      const Vector now = *reinterpret_cast<const Vector*>(sums + j);
      *to = add ? now + *to : now;
    }
    for (i64 j = wide; j < count; ++j) c[j] = add ? c[j] + sums[j + shift] : sums[j + shift];
  }
};

/* Whether a few rows are multiplied with a matrix that is read along its rows. */
template <class Kind>
bool goes_by_rows(const Gemm& g) {
  const i64 size = sizeof(typename Kind::Sum);
  return g.m <= Kind::kRowsMost && g.b_col == 1 && g.k > 0 && !g.windows && !g.fill_a && !g.fill_b &&
         g.n * size >= kVectorRowLeast;
}

template <class T>
bool goes_by_vector(const Gemm& g) {
  return goes_by_rows<Singles<T>>(g);
}

template <class Kind>
int multiply_rows(const Gemm& g, i64 products) {
  const ByRows<Kind> work(g, products);
  const i64 count = products * work.groups * work.blocks;
  return run_blocks<typename Kind::Sum>(work, count, ceil_div(kPiece, work.cols * (g.k + 1)));
}
