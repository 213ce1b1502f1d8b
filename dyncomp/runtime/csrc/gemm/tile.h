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
};

/* The sum of a vector's lanes, halves added to halves. */
template <class T>
__attribute__((always_inline)) inline T lane_sum(typename Lanes<T>::Vector lanes) {
  typedef typename Lanes<T>::Lane Mask __attribute__((vector_size(kVectorBytes)));
#pragma GCC unroll 4
  for (int half = Lanes<T>::kWidth / 2; half > 0; half /= 2) {
    Mask other;
#pragma GCC unroll 16
    for (int lane = 0; lane < Lanes<T>::kWidth; ++lane) other[lane] = lane ^ half;
    lanes += __builtin_shuffle(lanes, other);
  }
  return lanes[0];
}

/* Rows of B that are asked for ahead of their use. */
constexpr i64 kAhead = 12;

/* Terms from which on the tile's place in C is asked for before they are summed. */
constexpr i64 kAskFrom = 96;

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

/* c[kRows][kVectors * width] = (or +=) sum over p of a[., p] * b[p, .]; rows of b are contiguous. */
template <class T, int kRows, int kVectors, class Right>
__attribute__((noinline)) void tile(i64 k, const T* a, i64 a_row, i64 a_col, const T* from, i64 b_row,
                                    const i64* places, T* c, i64 c_row, Into into, Ahead<T> next) {
  using Vector = typename Lanes<T>::Vector;
  using Unaligned = typename Lanes<T>::Unaligned;
  constexpr int kWidth = Lanes<T>::kWidth;
  Right b(from, b_row, places);
  Vector sums[kRows][kVectors];
  if (into == Into::kGoOn) {
    T* row = c;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) sums[i][j] = *reinterpret_cast<Unaligned*>(row + j * kWidth);
      step(row, c_row);
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) sums[i][j] = Vector{};
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
      Vector right[kVectors];
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) {
        right[j] = *reinterpret_cast<const Unaligned*>(now + j * kWidth);
        __builtin_prefetch(ahead + j * kWidth);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const Vector left = rows[i / 3][i % 3 * a_row] - Vector{}; /* a broadcast: x - 0 is x, whatever x */
#pragma GCC unroll 16
        for (int j = 0; j < kVectors; ++j) sums[i][j] += left * right[j];
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
    for (int j = 0; j < kVectors; ++j) {
      Unaligned* const to = reinterpret_cast<Unaligned*>(c + j * kWidth);
      *to = into == Into::kAdd ? sums[i][j] + *to : sums[i][j];
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

template <class T, class Right, int kVectors, int kRows>
Tile<T> tile_of_rows(i64 rows) {
  if constexpr (kRows == 1)
    return tile<T, 1, kVectors, Right>;
  else
    return rows == kRows ? tile<T, kRows, kVectors, Right> : tile_of_rows<T, Right, kVectors, kRows - 1>(rows);
}

/* The kernel for a tile of `rows` rows, at most most_rows(vectors), and `vectors` vectors. */
template <class T, class Right = Even<T>, int kVectors = kTileVectors>
Tile<T> find_tile(i64 rows, i64 vectors) {
  if constexpr (kVectors > 1)
    if (vectors < kVectors) return find_tile<T, Right, kVectors - 1>(rows, vectors);
  return tile_of_rows<T, Right, kVectors, most_rows(kVectors)>(rows);
}

/* c[kRows][kCols] = sum over p of a[., p] * b[p, .], where both are contiguous along p: no packing at all. */
template <class T, int kRows, int kCols>
__attribute__((noinline)) void dots(i64 k, const T* a, i64 a_row, const T* b, i64 b_col, T* c, i64 c_row) {
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
    for (int j = 0; j < kCols; ++j) right[j] = *reinterpret_cast<const Unaligned*>(b + j * b_col + p);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vector left = *reinterpret_cast<const Unaligned*>(a + i * a_row + p);
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) sums[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) {
      T total = lane_sum<T>(sums[i][j]);
      for (i64 q = p; q < k; ++q) total += a[i * a_row + q] * b[j * b_col + q];
      c[i * c_row + j] = total;
    }
  }
}

template <class T>
using Dots = void (*)(i64, const T*, i64, const T*, i64, T*, i64);

constexpr int kDotRows = kVectorBytes == 16 ? 2 : 4, kDotCols = kVectorBytes == 64 ? 4 : 2;

/* The kernel for `rows` rows, and kDotCols columns or one. */
template <class T>
Dots<T> find_dots(i64 rows, bool single) {
  if constexpr (kDotRows == 4) {
    if (rows == 4) return single ? dots<T, 4, 1> : dots<T, 4, kDotCols>;
    if (rows == 3) return single ? dots<T, 3, 1> : dots<T, 3, kDotCols>;
  }
  if (rows == 2) return single ? dots<T, 2, 1> : dots<T, 2, kDotCols>;
  return single ? dots<T, 1, 1> : dots<T, 1, kDotCols>;
}
