/* Tiles of transposed arrays, for generated code that reads an array across its rows.
 *
 * dcv_transpose_32 and dcv_transpose_64 (bits of an element) copy from[r * step + c] to to[c * tile + r] for r < rows
 * and c < columns. Blocks of a vector's length are turned in registers; a whole cache line is read at once, once.
 * The rows below are asked for ahead, those of the next tile too. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;

namespace {

template <class T>
void turn_edge(T* to, const T* from, i64 step, i64 first_row, i64 rows, i64 first_column, i64 columns, i64 tile) {
  for (i64 c = first_column; c < columns; ++c)
    for (i64 r = first_row; r < rows; ++r) to[c * tile + r] = from[r * step + c];
}

/* Whole blocks of SIDE by SIDE elements by BLOCK, the rest one by one. */
#define TURN(NAME, TARGET, T, SIDE, BLOCK)                                                     \
  __attribute__((target(TARGET))) void NAME(T* to, const T* from, i64 step, i64 rows, i64 columns, i64 tile) { \
    const i64 whole_rows = rows / SIDE * SIDE;                                                 \
    const i64 whole_columns = columns / SIDE * SIDE;                                           \
    for (i64 r = 0; r < whole_rows; r += SIDE)                                                 \
      for (i64 c = 0; c < whole_columns; c += SIDE) {                                          \
        const T* const here = from + r * step + c;                                             \
        for (i64 k = SIDE; k < 2 * SIDE; ++k) __builtin_prefetch(here + k * step, 0, 2);       \
        BLOCK(to + c * tile + r, tile, here, step);                                            \
      }                                                                                        \
    turn_edge(to, from, step, 0, rows, whole_columns, columns, tile);                          \
    turn_edge(to, from, step, whole_rows, rows, 0, whole_columns, tile);                       \
  }

#define INLINE inline __attribute__((always_inline))

__attribute__((target("avx512f"))) INLINE void block_512(u32* to, i64 to_step, const u32* from, i64 step) {
  __m512i a[16], b[16];
  for (int k = 0; k < 16; ++k) a[k] = _mm512_loadu_si512(from + k * step);
  for (int k = 0; k < 16; k += 2) {
    b[k] = _mm512_unpacklo_epi32(a[k], a[k + 1]);
    b[k + 1] = _mm512_unpackhi_epi32(a[k], a[k + 1]);
  }
  // a[4g + j]: column 4q + j of the four rows of group g, in the quarters q
  for (int g = 0; g < 16; g += 4) {
    a[g] = _mm512_unpacklo_epi64(b[g], b[g + 2]);
    a[g + 1] = _mm512_unpackhi_epi64(b[g], b[g + 2]);
    a[g + 2] = _mm512_unpacklo_epi64(b[g + 1], b[g + 3]);
    a[g + 3] = _mm512_unpackhi_epi64(b[g + 1], b[g + 3]);
  }
  for (int j = 0; j < 4; ++j) {
    const __m512i low_even = _mm512_shuffle_i32x4(a[j], a[4 + j], 0x88);
    const __m512i low_odd = _mm512_shuffle_i32x4(a[j], a[4 + j], 0xdd);
    const __m512i high_even = _mm512_shuffle_i32x4(a[8 + j], a[12 + j], 0x88);
    const __m512i high_odd = _mm512_shuffle_i32x4(a[8 + j], a[12 + j], 0xdd);
    _mm512_storeu_si512(to + j * to_step, _mm512_shuffle_i32x4(low_even, high_even, 0x88));
    _mm512_storeu_si512(to + (4 + j) * to_step, _mm512_shuffle_i32x4(low_odd, high_odd, 0x88));
    _mm512_storeu_si512(to + (8 + j) * to_step, _mm512_shuffle_i32x4(low_even, high_even, 0xdd));
    _mm512_storeu_si512(to + (12 + j) * to_step, _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd));
  }
}

__attribute__((target("avx512f"))) INLINE void block_512(u64* to, i64 to_step, const u64* from, i64 step) {
  __m512i a[8], b[8];
  for (int k = 0; k < 8; ++k) a[k] = _mm512_loadu_si512(from + k * step);
  // b[2g + j]: column 2q + j of the two rows of group g, in the quarters q
  for (int k = 0; k < 8; k += 2) {
    b[k] = _mm512_unpacklo_epi64(a[k], a[k + 1]);
    b[k + 1] = _mm512_unpackhi_epi64(a[k], a[k + 1]);
  }
  for (int j = 0; j < 2; ++j) {
    const __m512i low_even = _mm512_shuffle_i64x2(b[j], b[2 + j], 0x88);
    const __m512i low_odd = _mm512_shuffle_i64x2(b[j], b[2 + j], 0xdd);
    const __m512i high_even = _mm512_shuffle_i64x2(b[4 + j], b[6 + j], 0x88);
    const __m512i high_odd = _mm512_shuffle_i64x2(b[4 + j], b[6 + j], 0xdd);
    _mm512_storeu_si512(to + j * to_step, _mm512_shuffle_i64x2(low_even, high_even, 0x88));
    _mm512_storeu_si512(to + (2 + j) * to_step, _mm512_shuffle_i64x2(low_odd, high_odd, 0x88));
    _mm512_storeu_si512(to + (4 + j) * to_step, _mm512_shuffle_i64x2(low_even, high_even, 0xdd));
    _mm512_storeu_si512(to + (6 + j) * to_step, _mm512_shuffle_i64x2(low_odd, high_odd, 0xdd));
  }
}

__attribute__((target("avx2"))) INLINE __m256i load_256(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
__attribute__((target("avx2"))) INLINE void store_256(void* to, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), value);
}

__attribute__((target("avx2"))) INLINE void block_256(u32* to, i64 to_step, const u32* from, i64 step) {
  __m256i a[8], b[8];
  for (int k = 0; k < 8; ++k) a[k] = load_256(from + k * step);
  for (int k = 0; k < 8; k += 2) {
    b[k] = _mm256_unpacklo_epi32(a[k], a[k + 1]);
    b[k + 1] = _mm256_unpackhi_epi32(a[k], a[k + 1]);
  }
  for (int g = 0; g < 8; g += 4) {
    a[g] = _mm256_unpacklo_epi64(b[g], b[g + 2]);
    a[g + 1] = _mm256_unpackhi_epi64(b[g], b[g + 2]);
    a[g + 2] = _mm256_unpacklo_epi64(b[g + 1], b[g + 3]);
    a[g + 3] = _mm256_unpackhi_epi64(b[g + 1], b[g + 3]);
  }
  for (int j = 0; j < 4; ++j) {
    store_256(to + j * to_step, _mm256_permute2x128_si256(a[j], a[4 + j], 0x20));
    store_256(to + (4 + j) * to_step, _mm256_permute2x128_si256(a[j], a[4 + j], 0x31));
  }
}

__attribute__((target("avx2"))) INLINE void block_256(u64* to, i64 to_step, const u64* from, i64 step) {
  __m256i a[4], b[4];
  for (int k = 0; k < 4; ++k) a[k] = load_256(from + k * step);
  for (int k = 0; k < 4; k += 2) {
    b[k] = _mm256_unpacklo_epi64(a[k], a[k + 1]);
    b[k + 1] = _mm256_unpackhi_epi64(a[k], a[k + 1]);
  }
  for (int j = 0; j < 2; ++j) {
    store_256(to + j * to_step, _mm256_permute2x128_si256(b[j], b[2 + j], 0x20));
    store_256(to + (2 + j) * to_step, _mm256_permute2x128_si256(b[j], b[2 + j], 0x31));
  }
}

TURN(turn_512, "avx512f", u32, 16, block_512)
TURN(turn_512, "avx512f", u64, 8, block_512)
TURN(turn_256, "avx2", u32, 8, block_256)
TURN(turn_256, "avx2", u64, 4, block_256)

bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f");
}

const bool kAvx512 = has_avx512();

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void dcv_transpose_32(void* to, const void* from, i64 step, i64 rows, i64 columns, i64 tile) {
  u32* const target = static_cast<u32*>(to);
  const u32* const source = static_cast<const u32*>(from);
  if (kAvx512) return turn_512(target, source, step, rows, columns, tile);
  turn_256(target, source, step, rows, columns, tile);
}

EXPORT void dcv_transpose_64(void* to, const void* from, i64 step, i64 rows, i64 columns, i64 tile) {
  u64* const target = static_cast<u64*>(to);
  const u64* const source = static_cast<const u64*>(from);
  if (kAvx512) return turn_512(target, source, step, rows, columns, tile);
  turn_256(target, source, step, rows, columns, tile);
}
#endif
