/* Register tiles, packing and dot products of bfloat16, by VDPBF16PS: each 32 bits of its operands are two terms, whose
 * products are added to a float32 sum one after the other, each rounded once. It takes subnormal numbers for zeros and
 * makes none, as the products of oneDNN (and so of torch) do on the processors that have it. Products that are done in
 * loops instead (small ones, and a vector by a matrix whose rows lie contiguously) keep them. Included by
 * avx512_bf16.cpp.
 *
 * Operands are made of pairs of terms beside each other: rows of A as they lie, B packed with rows 2p and 2p + 1 woven
 * together. A term without a partner has a zero beside it in both. */

using Brain = unsigned short;
typedef int Pair __attribute__((aligned(2), may_alias));
typedef float Sum __attribute__((may_alias));

constexpr i64 kPairLanes = 16, kTermLanes = 32;

inline i64 pairs_of(i64 terms) { return (terms + 1) / 2; }
inline __mmask32 first_terms(i64 count) { return static_cast<__mmask32>((1ull << least(count, kTermLanes)) - 1); }
inline __mmask16 first_pairs(i64 count) { return static_cast<__mmask16>((1u << least(count, kPairLanes)) - 1); }
inline __m512bh as_terms(__m512i bits) { return reinterpret_cast<__m512bh>(bits); }

/* c[kRows][kVectors * 16] = (or, to go on, +=) sum over pairs of a[., p] b[p, .]; rows of A `a_row` elements apart, its
 * pairs `a_step`; rows of B as in tile.h. */
template <class Right, int kRows, int kVectors>
__attribute__((noinline)) void brain_tile(i64 pairs, const Brain* a, i64 a_row, i64 a_step, const Pair* from, i64 b_row,
                                          const i64* places, Sum* c, i64 c_row, bool goes_on) {
  Right b(reinterpret_cast<const int*>(from), b_row, places);
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j)
      sums[i][j] = goes_on ? _mm512_loadu_ps(c + i * c_row + j * kPairLanes) : _mm512_setzero_ps();
  }
  const Brain* rows[(kRows + 2) / 3]; /* as in tile.h */
#pragma GCC unroll 16
  for (int i = 0; i < kRows; i += 3) rows[i / 3] = a + i * a_row;
  for (i64 p = 0; p < pairs; ++p) {
    const int *const now = b.now(), *const ahead = b.ahead();
    __m512bh right[kVectors];
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) {
      right[j] = as_terms(_mm512_loadu_si512(now + j * kPairLanes));
      __builtin_prefetch(ahead + j * kPairLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const int pair = *reinterpret_cast<const Pair*>(rows[i / 3] + i % 3 * a_row);
      const __m512bh left = as_terms(_mm512_set1_epi32(pair));
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], left, right[j]);
    }
    b.next();
#pragma GCC unroll 16
    for (int i = 0; i < kRows; i += 3) step(rows[i / 3], a_step);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) _mm512_storeu_ps(c + i * c_row + j * kPairLanes, sums[i][j]);
  }
}

using BrainTile = void (*)(i64, const Brain*, i64, i64, const Pair*, i64, const i64*, Sum*, i64, bool);

template <class Right, int kVectors, int kRows>
BrainTile brain_tile_of_rows(i64 rows) {
  if constexpr (kRows == 1)
    return brain_tile<Right, 1, kVectors>;
  else
    return rows == kRows ? brain_tile<Right, kRows, kVectors> : brain_tile_of_rows<Right, kVectors, kRows - 1>(rows);
}

/* The kernel for a tile of `rows` rows, at most most_rows(vectors), and `vectors` vectors. */
template <class Right = Even<int>, int kVectors = kTileVectors>
BrainTile find_brain_tile(i64 rows, i64 vectors) {
  if constexpr (kVectors > 1)
    if (vectors < kVectors) return find_brain_tile<Right, kVectors - 1>(rows, vectors);
  return brain_tile_of_rows<Right, kVectors, most_rows(kVectors)>(rows);
}

/* c[kRows][kCols] = sum over p of a[., p] b[p, .], where both are contiguous along p. */
template <int kRows, int kCols>
__attribute__((noinline)) void brain_dots(i64 k, const Brain* a, i64 a_row, const Brain* b, i64 b_col, Sum* c,
                                          i64 c_row) {
  __m512 sums[kRows][kCols];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) sums[i][j] = _mm512_setzero_ps();
  }
  for (i64 p = 0; p < k; p += kTermLanes) {
    const __mmask32 terms = first_terms(k - p);
    __m512bh right[kCols];
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) right[j] = as_terms(_mm512_maskz_loadu_epi16(terms, b + j * b_col + p));
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const __m512bh left = as_terms(_mm512_maskz_loadu_epi16(terms, a + i * a_row + p));
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) c[i * c_row + j] = lane_sum<float>(sums[i][j]);
  }
}

using BrainDots = void (*)(i64, const Brain*, i64, const Brain*, i64, Sum*, i64);

template <int kRows = kDotRows>
BrainDots find_brain_dots(i64 rows, bool single) {
  if constexpr (kRows > 1)
    if (rows < kRows) return find_brain_dots<kRows - 1>(rows, single);
  return single ? brain_dots<kRows, 1> : brain_dots<kRows, kDotCols>;
}

/* Two rows of up to 32 elements woven into pairs. */
struct Woven {
  __m512i first, second;
};

inline Woven weave(__m512i low, __m512i high) {
  alignas(64) static const short kFirst[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                               8,  40, 9,  41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i first = _mm512_load_si512(kFirst), second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  return {_mm512_permutex2var_epi16(low, first, high), _mm512_permutex2var_epi16(low, second, high)};
}

/* Rows of `cols` contiguous elements, as rows of `width` pairs, zeros behind them. */
inline void pack_woven(const Brain* from, i64 row, i64 k, i64 cols, i64 width, Pair* to) {
  for (i64 p = 0; p < k; p += 2, from += 2 * row, to += width) {
    for (i64 j = 0; j < width; j += kTermLanes) {
      const __mmask32 mask = first_terms(most(0, cols - j));
      const __m512i low = _mm512_maskz_loadu_epi16(mask, from + j);
      const __m512i high = p + 1 < k ? _mm512_maskz_loadu_epi16(mask, from + row + j) : _mm512_setzero_si512();
      __builtin_prefetch(from + kAhead * row + j);
      __builtin_prefetch(from + (kAhead + 1) * row + j);
      const Woven woven = weave(low, high);
      _mm512_mask_storeu_epi32(to + j, first_pairs(width - j), woven.first);
      if (width - j > kPairLanes)
        _mm512_mask_storeu_epi32(to + j + kPairLanes, first_pairs(width - j - kPairLanes), woven.second);
    }
  }
}

/* The same of columns that are contiguous, turned: 16 of them and 32 terms at a time. */
inline void pack_columns(const Brain* from, i64 col, i64 k, i64 cols, i64 width, Pair* to) {
  for (i64 p = 0; p < k; p += kTermLanes) {
    const __mmask32 terms = first_terms(k - p);
    for (i64 j = 0; j < width; j += kPairLanes) {
      Lanes<int>::Vector rows[kPairLanes];
#pragma GCC unroll 16
      for (i64 r = 0; r < kPairLanes; ++r) {
        const Brain* const at = from + (j + r) * col + p;
        rows[r] = j + r < cols ? reinterpret_cast<Lanes<int>::Vector>(_mm512_maskz_loadu_epi16(terms, at))
                               : Lanes<int>::Vector{};
      }
      swap_halves<int, 8>(rows);
      const i64 pairs = pairs_of(least(kTermLanes, k - p));
      Pair* const block = to + p / 2 * width + j;
      for (i64 q = 0; q < pairs; ++q)
        _mm512_mask_storeu_epi32(block + q * width, first_pairs(width - j), reinterpret_cast<__m512i>(rows[q]));
    }
  }
}

/* k rows of `cols` elements as rows of `width` pairs, padded with zeros. */
inline void pack_pairs(const Brain* from, i64 row, i64 col, i64 k, i64 cols, i64 width, Pair* to) {
  if (col == 1 || cols == 1) return pack_woven(from, row, k, cols, width, to);
  if (row == 1) return pack_columns(from, col, k, cols, width, to);
  for (i64 p = 0; p < k; p += 2)
    for (i64 j = 0; j < width; ++j) {
      const unsigned low = j < cols ? from[p * row + j * col] : 0;
      const unsigned high = j < cols && p + 1 < k ? from[(p + 1) * row + j * col] : 0;
      *to++ = static_cast<int>(high << 16 | low);
    }
}
