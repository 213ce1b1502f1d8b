/* Transposed arrays and tiles of them, for generated code that reads an array across its rows.
 *
 * dcv_transpose_32 and dcv_transpose_64 (bits of an element) copy from[r * step + c] to to[c * tile + r] for r < rows
 * and c < columns. Blocks of a vector's length are turned in registers; a whole cache line is read at once, once.
 * The rows below are asked for ahead, those of the next tile too.
 *
 * dcv_turn_32 and dcv_turn_64 transpose a part of an array with `rows` and `columns` into another one: those from
 * `row` to `row_end` and from `column` to `column_end`, both moved on to where cache lines begin, so that parts next
 * to each other together are the whole. Stores go past the caches; dcv_stream_end must follow. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;

namespace {

template <class T>
void turn_edge(T* to, const T* from, i64 step, i64 first_row, i64 rows, i64 first_column, i64 columns, i64 to_step) {
  for (i64 c = first_column; c < columns; ++c)
    for (i64 r = first_row; r < rows; ++r) to[c * to_step + r] = from[r * step + c];
}

/* Whole blocks of SIDE by SIDE elements by BLOCK, the rest one by one; the blocks that fill a cache line of `to`
 * follow one another. */
#define TURN(NAME, TARGET, T, SIDE, BLOCK)                                                              \
  __attribute__((target(TARGET))) void NAME(T* to, const T* from, i64 step, i64 rows, i64 columns, i64 to_step) { \
    const i64 line = 64 / sizeof(T);                                                                    \
    const i64 whole_rows = rows / SIDE * SIDE;                                                          \
    const i64 whole_columns = columns / SIDE * SIDE;                                                    \
    for (i64 first = 0; first < whole_rows; first += line)                                              \
      for (i64 c = 0; c < whole_columns; c += SIDE)                                                     \
        for (i64 r = first; r < first + line && r < whole_rows; r += SIDE) {                            \
          const T* const here = from + r * step + c;                                                    \
          for (i64 k = line; k < line + SIDE; ++k) __builtin_prefetch(here + k * step, 0, 2);           \
          BLOCK(to + c * to_step + r, to_step, here, step);                                             \
        }                                                                                               \
    turn_edge(to, from, step, 0, rows, whole_columns, columns, to_step);                                \
    turn_edge(to, from, step, whole_rows, rows, 0, whole_columns, to_step);                             \
  }

#define INLINE inline __attribute__((always_inline))

template <bool PAST>
__attribute__((target("avx512f"))) INLINE void store_512(void* to, __m512i value) {
  if (PAST)
    _mm512_stream_si512(static_cast<__m512i*>(to), value);
  else
    _mm512_storeu_si512(to, value);
}

template <bool PAST>
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
    store_512<PAST>(to + j * to_step, _mm512_shuffle_i32x4(low_even, high_even, 0x88));
    store_512<PAST>(to + (4 + j) * to_step, _mm512_shuffle_i32x4(low_odd, high_odd, 0x88));
    store_512<PAST>(to + (8 + j) * to_step, _mm512_shuffle_i32x4(low_even, high_even, 0xdd));
    store_512<PAST>(to + (12 + j) * to_step, _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd));
  }
}

template <bool PAST>
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
    store_512<PAST>(to + j * to_step, _mm512_shuffle_i64x2(low_even, high_even, 0x88));
    store_512<PAST>(to + (2 + j) * to_step, _mm512_shuffle_i64x2(low_odd, high_odd, 0x88));
    store_512<PAST>(to + (4 + j) * to_step, _mm512_shuffle_i64x2(low_even, high_even, 0xdd));
    store_512<PAST>(to + (6 + j) * to_step, _mm512_shuffle_i64x2(low_odd, high_odd, 0xdd));
  }
}

__attribute__((target("avx2"))) INLINE __m256i load_256(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
template <bool PAST>
__attribute__((target("avx2"))) INLINE void store_256(void* to, __m256i value) {
  if (PAST)
    _mm256_stream_si256(static_cast<__m256i*>(to), value);
  else
    _mm256_storeu_si256(static_cast<__m256i*>(to), value);
}

template <bool PAST>
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
    store_256<PAST>(to + j * to_step, _mm256_permute2x128_si256(a[j], a[4 + j], 0x20));
    store_256<PAST>(to + (4 + j) * to_step, _mm256_permute2x128_si256(a[j], a[4 + j], 0x31));
  }
}

template <bool PAST>
__attribute__((target("avx2"))) INLINE void block_256(u64* to, i64 to_step, const u64* from, i64 step) {
  __m256i a[4], b[4];
  for (int k = 0; k < 4; ++k) a[k] = load_256(from + k * step);
  for (int k = 0; k < 4; k += 2) {
    b[k] = _mm256_unpacklo_epi64(a[k], a[k + 1]);
    b[k + 1] = _mm256_unpackhi_epi64(a[k], a[k + 1]);
  }
  for (int j = 0; j < 2; ++j) {
    store_256<PAST>(to + j * to_step, _mm256_permute2x128_si256(b[j], b[2 + j], 0x20));
    store_256<PAST>(to + (2 + j) * to_step, _mm256_permute2x128_si256(b[j], b[2 + j], 0x31));
  }
}

TURN(turn_512, "avx512f", u32, 16, block_512<false>)
TURN(turn_512, "avx512f", u64, 8, block_512<false>)
TURN(turn_256, "avx2", u32, 8, block_256<false>)
TURN(turn_256, "avx2", u64, 4, block_256<false>)
TURN(turn_past_512, "avx512f", u32, 16, block_512<true>)
TURN(turn_past_512, "avx512f", u64, 8, block_512<true>)
TURN(turn_past_256, "avx2", u32, 8, block_256<true>)
TURN(turn_past_256, "avx2", u64, 4, block_256<true>)

bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f");
}

const bool kAvx512 = has_avx512();

template <class T>
void turn(T* to, const T* from, i64 step, i64 rows, i64 columns, i64 to_step) {
  if (kAvx512) return turn_512(to, from, step, rows, columns, to_step);
  turn_256(to, from, step, rows, columns, to_step);
}

template <class T>
void turn_past(T* to, const T* from, i64 step, i64 rows, i64 columns, i64 to_step) {
  if (kAvx512) return turn_past_512(to, from, step, rows, columns, to_step);
  turn_past_256(to, from, step, rows, columns, to_step);
}

/* Elements from `place` to the next cache line, if the rows, `step` apart, all lie alike; else 0. */
template <class T>
i64 to_line(const T* place, i64 step) {
  const i64 line = 64 / sizeof(T);
  const i64 past = reinterpret_cast<u64>(place) / sizeof(T) % line;
  return step % line == 0 && past ? line - past : 0;
}

/* Move what begins at `low` and ends at `high` on by `shift`, but for the ends of the whole. */
void move_on(i64& low, i64& high, i64 shift, i64 whole) {
  low = low == 0 ? 0 : low + shift < whole ? low + shift : whole;
  high = high + shift < whole ? high + shift : whole;
}

struct Part {
  i64 row, row_end, column, column_end;
};

template <class T>
void turn_part(T* to, const T* from, i64 to_step, i64 step, i64 rows, i64 columns, Part part) {
  const i64 row_shift = to_line(to, to_step);
  const i64 column_shift = to_line(from, step);
  move_on(part.row, part.row_end, row_shift, rows);
  move_on(part.column, part.column_end, column_shift, columns);
  i64 row = part.row, column = part.column;
  // to the first whole line, in the first parts only
  if (part.row == 0 && row_shift) {
    row = row_shift < part.row_end ? row_shift : part.row_end;
    turn_edge(to, from, step, 0, row, column, part.column_end, to_step);
  }
  if (part.column == 0 && column_shift) {
    column = column_shift < part.column_end ? column_shift : part.column_end;
    turn_edge(to, from, step, row, part.row_end, 0, column, to_step);
  }
  const bool past = (reinterpret_cast<u64>(to + row) | to_step * sizeof(T)) % 64 == 0;
  (past ? turn_past<T> : turn<T>)(to + column * to_step + row, from + row * step + column, step, part.row_end - row,
                                  part.column_end - column, to_step);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

#define FUNCTIONS(BITS, T)                                                                                       \
  EXPORT void dcv_transpose_##BITS(void* to, const void* from, i64 step, i64 rows, i64 columns, i64 tile) {      \
    turn(static_cast<T*>(to), static_cast<const T*>(from), step, rows, columns, tile);                           \
  }                                                                                                              \
  EXPORT void dcv_turn_##BITS(void* to, const void* from, i64 to_step, i64 step, i64 rows, i64 columns, i64 row, \
                              i64 row_end, i64 column, i64 column_end) {                                         \
    turn_part(static_cast<T*>(to), static_cast<const T*>(from), to_step, step, rows, columns,                    \
              Part{row, row_end, column, column_end});                                                           \
  }

FUNCTIONS(32, u32)
FUNCTIONS(64, u64)
#endif
