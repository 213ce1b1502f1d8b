/* Register tiles. Included once per instruction set, with kVectorBytes, kTileRows and kTileVectors set. */

constexpr i64 least(i64 a, i64 b) { return a < b ? a : b; }
constexpr i64 most(i64 a, i64 b) { return a > b ? a : b; }
i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

template <int kBytes>
struct Integer {
  typedef long long Type;
};
template <>
struct Integer<4> {
  typedef int Type;
};
template <>
struct Integer<2> {
  typedef short Type;
};

template <class T>
struct Lanes {
  typedef typename Integer<sizeof(T)>::Type Lane;
  static constexpr int kWidth = kVectorBytes / sizeof(T);
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  /* Half of a vector. */
  typedef T Half __attribute__((vector_size(kVectorBytes / 2)));
  typedef T UnalignedHalf __attribute__((vector_size(kVectorBytes / 2), aligned(sizeof(T)), may_alias));
};

/* Adds the halves of each group of 2 * kHalf lanes, of pairs of vectors into one: of the first vector where
 * `lane & kHalf` is 0, of the second elsewhere; then goes on with half of that. */
template <class T, int kCount, int kHalf>
__attribute__((always_inline)) inline void fold_halves(typename Lanes<T>::Vector* lanes) {
  constexpr int kWidth = Lanes<T>::kWidth, kStep = kCount > 1 ? 2 : 1;
  typedef typename Lanes<T>::Lane Mask __attribute__((vector_size(kVectorBytes)));
  Mask same, other;
#pragma GCC unroll 16
  for (int lane = 0; lane < kWidth; ++lane) {
    const int from = kCount > 1 && (lane & kHalf) ? kWidth : 0;
    same[lane] = from + lane;
    other[lane] = from + (lane ^ kHalf);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kCount / kStep; ++i) {
    const auto first = lanes[i * kStep], second = lanes[i * kStep + kStep - 1];
    lanes[i] = __builtin_shuffle(first, second, same) + __builtin_shuffle(first, second, other);
  }
  if constexpr (kHalf > 1) fold_halves<T, kCount / kStep, kHalf / 2>(lanes);
}

/* The sums of vectors' lanes, halves added to halves; kCount is a power of two, at most the lanes. */
template <class T, int kCount>
__attribute__((always_inline)) inline void lane_sums(const typename Lanes<T>::Vector* vectors, T* sums) {
  constexpr int kWidth = Lanes<T>::kWidth;
  typedef typename Lanes<T>::Lane Mask __attribute__((vector_size(kVectorBytes)));
  typename Lanes<T>::Vector lanes[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) lanes[i] = vectors[i];
  fold_halves<T, kCount, kWidth / 2>(lanes);
  Mask order = {};
#pragma GCC unroll 16
  for (int i = 1; i < kCount; ++i)
    order[i] = i % 2 * (kWidth / 2) + i / 2 % 2 * (kWidth / 4) + i / 4 % 2 * (kWidth / 8) + i / 8 * (kWidth / 16);
  const auto ordered = __builtin_shuffle(lanes[0], order);
  __builtin_memcpy(sums, &ordered, kCount * sizeof(T));
}

template <class T>
__attribute__((always_inline)) inline T lane_sum(typename Lanes<T>::Vector lanes) {
  T sum;
  lane_sums<T, 1>(&lanes, &sum);
  return sum;
}

/* Rows of B that are asked for ahead of their use. */
constexpr i64 kAhead = 12;

/* Terms from which on the tile's place in C is asked for before they are summed. */
constexpr i64 kAskFrom = 48;

/* A pointer that the compiler keeps in a register of its own: it would make one for each of a tile's addresses, and
 * hold some of these in vector registers. */
template <class T>
__attribute__((always_inline)) inline void step(T*& at, i64 count) {
  at += count;
  asm("" : "+r"(at));
}

/* What will be needed after a tile: an element for each term, asked for while the sums are made; after `run` terms
 * (0: never) the place moves on by `jump` elements more. */
template <class T>
struct Ahead {
  const T* from;
  i64 step, run = 0, jump = 0;
};

/* The rows of B in turn, where they lie evenly. */
template <class T>
struct Even {
  const T* row;
  i64 gap;
  const T* asked;

  Even(const T* from, i64 row_gap, const i64*) : row(from), gap(row_gap), asked(from + kAhead * row_gap) {}
  const T* now() const { return row; }
  const T* ahead() const { return asked; }
  void next() {
    step(row, gap);
    step(asked, gap);
  }
};

/* The rows of B in turn, where each lies at a place of its own; there are kAhead more places than rows. */
template <class T>
struct Placed {
  const T* from;
  const i64* place;

  Placed(const T* base, i64, const i64* places) : from(base), place(places) {}
  const T* now() const { return from + place[0]; }
  const T* ahead() const { return from + place[kAhead]; }
  void next() { ++place; }
};

/* What a tile does with what is in C: its sums replace it, are added to it, or go on from it as if it were the sum
 * of the terms before. */
enum class Into { kNothing, kAdd, kGoOn };

/* c[kRows][kVectors * width] = (or +=) sum over p of a[., p] * b[p, .]; rows of b are contiguous. With kHalf the last
 * vector is half of one: on processors that run vectors in halves that takes half of the time. */
template <class T, int kRows, int kVectors, class Right, bool kHalf = false>
__attribute__((noinline)) void tile(i64 k, const T* a, i64 a_row, i64 a_col, const T* from, i64 b_row,
                                    const i64* places, T* c, i64 c_row, Into into, Ahead<T> next) {
  using Vector = typename Lanes<T>::Vector;
  using Unaligned = typename Lanes<T>::Unaligned;
  constexpr int kWidth = Lanes<T>::kWidth;
  using Half = typename Lanes<T>::Half;
  using UnalignedHalf = typename Lanes<T>::UnalignedHalf;
  constexpr int kWhole = kVectors - kHalf;
  Right b(from, b_row, places);
  Vector sums[kRows][kWhole];
  Half ends[kRows];
  if (into == Into::kGoOn) {
    T* row = c;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kWhole; ++j) sums[i][j] = *reinterpret_cast<Unaligned*>(row + j * kWidth);
      if constexpr (kHalf) ends[i] = *reinterpret_cast<UnalignedHalf*>(row + kWhole * kWidth);
      step(row, c_row);
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kWhole; ++j) sums[i][j] = Vector{};
      if constexpr (kHalf) ends[i] = Half{};
    }
  }
  if (k >= kAskFrom) {
    T* row = c;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) __builtin_prefetch(row + j * kWidth, 1);
      step(row, c_row);
    }
  }
  const T* rows[(kRows + 2) / 3]; /* every third: with one stride that is all that addresses need */
#pragma GCC unroll 16
  for (int i = 0; i < kRows; i += 3) rows[i / 3] = a + i * a_row;
  const i64 run = next.run > 0 ? next.run : k;
  for (i64 p = 0; p < k;) {
    const i64 end = least(k, p + run);
    for (; p < end; ++p) {
      const T *const now = b.now(), *const ahead = b.ahead();
      Vector right[kWhole];
      Half end_of_right;
#pragma GCC unroll 16
      for (int j = 0; j < kWhole; ++j) right[j] = *reinterpret_cast<const Unaligned*>(now + j * kWidth);
      if constexpr (kHalf) end_of_right = *reinterpret_cast<const UnalignedHalf*>(now + kWhole * kWidth);
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) __builtin_prefetch(ahead + j * kWidth);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const T element = rows[i / 3][i % 3 * a_row];
        const Vector left = element - Vector{}; /* a broadcast: x - 0 is x, whatever x */
#pragma GCC unroll 16
        for (int j = 0; j < kWhole; ++j) sums[i][j] += left * right[j];
        if constexpr (kHalf) ends[i] += (element - Half{}) * end_of_right;
      }
      __builtin_prefetch(next.from, 0, 2);
      step(next.from, next.step);
      b.next();
#pragma GCC unroll 16
      for (int i = 0; i < kRows; i += 3) step(rows[i / 3], a_col);
    }
    next.from += next.jump;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kWhole; ++j) {
      Unaligned* const to = reinterpret_cast<Unaligned*>(c + j * kWidth);
      *to = into == Into::kAdd ? sums[i][j] + *to : sums[i][j];
    }
    if constexpr (kHalf) {
      UnalignedHalf* const to = reinterpret_cast<UnalignedHalf*>(c + kWhole * kWidth);
      *to = into == Into::kAdd ? ends[i] + *to : ends[i];
    }
    step(c, c_row);
  }
}

template <class T>
using Tile = void (*)(i64, const T*, i64, i64, const T*, i64, const i64*, T*, i64, Into, Ahead<T>);

/* The most rows of a tile of so many vectors whose sums fit the registers, beside a row of B and an element of A. */
constexpr int most_rows(i64 vectors) {
  const int fitting = static_cast<int>((kRegisters - 1 - vectors) / vectors);
  return fitting < kTileRowsMost ? fitting : kTileRowsMost;
}

template <class T, class Right, bool kHalf, int kVectors, int kRows>
Tile<T> tile_of_rows(i64 rows) {
  if constexpr (kRows > 1)
    if (rows < kRows) return tile_of_rows<T, Right, kHalf, kVectors, kRows - 1>(rows);
  return tile<T, kRows, kVectors, Right, kHalf>;
}

/* The kernel for a tile of `rows` rows, at most most_rows(vectors), and `vectors` vectors (with kHalf two or more, the
 * last of them half of one). */
template <class T, class Right = Even<T>, bool kHalf = false, int kVectors = kTileVectors>
Tile<T> find_tile(i64 rows, i64 vectors) {
  if constexpr (kVectors > 1 + kHalf)
    if (vectors < kVectors) return find_tile<T, Right, kHalf, kVectors - 1>(rows, vectors);
  return tile_of_rows<T, Right, kHalf, kVectors, most_rows(kVectors)>(rows);
}

/* A vector of elements, widened where they are bytes. */
template <class T, class From>
__attribute__((always_inline)) inline typename Lanes<T>::Vector widened(const From* from) {
  using Vector = typename Lanes<T>::Vector;
  if constexpr (sizeof(T) == sizeof(From)) {
    return *reinterpret_cast<const typename Lanes<T>::Unaligned*>(from);
  } else {
    return __builtin_convertvector(as_integers<From>(bytes_at<From, Lanes<T>::kWidth>(from)), Vector);
  }
}

/* c[kRows][kCols] = sum over p of a[., p] * b[p, .], where both are contiguous along p: no packing at all. */
template <class T, int kRows, int kCols, class Right>
__attribute__((noinline)) void dots(i64 k, const T* a, i64 a_row, const Right* b, i64 b_col, T* c, i64 c_row) {
  using Vector = typename Lanes<T>::Vector;
  using Unaligned = typename Lanes<T>::Unaligned;
  constexpr int kWidth = Lanes<T>::kWidth;
  Vector sums[kRows][kCols];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) sums[i][j] = Vector{};
  }
  i64 p = 0;
  for (; p + kWidth <= k; p += kWidth) {
    Vector right[kCols];
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) right[j] = widened<T>(b + j * b_col + p);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vector left = *reinterpret_cast<const Unaligned*>(a + i * a_row + p);
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) sums[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    T* const to = c + i * c_row;
    lane_sums<T, kCols>(sums[i], to);
    for (i64 q = p; q < k; ++q)
      for (int j = 0; j < kCols; ++j) to[j] += a[i * a_row + q] * b[j * b_col + q];
  }
}

template <class T, class Right = T>
using Dots = void (*)(i64, const T*, i64, const Right*, i64, T*, i64);

/* Rows of dot products that are made at once, and columns; columns of a single row, which waits for memory. */
constexpr int kDotRows = kVectorBytes == 16 ? 2 : 4, kDotCols = kVectorBytes == 64 ? 4 : 2;
constexpr int kSingleDotCols = kVectorBytes == 64 ? 8 : kDotCols;

/* Columns of `left` that are made at once. */
inline i64 dot_columns(i64 rows, i64 left) {
  if (rows == 1 && left >= kSingleDotCols) return kSingleDotCols;
  return left >= kDotCols ? kDotCols : 1;
}

/* The kernel for `rows` rows and as many columns as dot_columns says. */
template <class T, class Right = T, int kRows = kDotRows>
Dots<T, Right> find_dots(i64 rows, i64 cols) {
  if constexpr (kRows > 1)
    if (rows < kRows) return find_dots<T, Right, kRows - 1>(rows, cols);
  if (kRows == 1 && cols == kSingleDotCols) return dots<T, 1, kSingleDotCols, Right>;
  return cols == 1 ? dots<T, kRows, 1, Right> : dots<T, kRows, kDotCols, Right>;
}
