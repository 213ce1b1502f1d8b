// float16 and bfloat16 by integer operations on float32, which vectorise where conversions do not.

// @ dc_bits_f32
DC_INLINE unsigned int dc_bits_f32(float x) {
  unsigned int u;
  __builtin_memcpy(&u, &x, 4);
  return u;
}
// @ dc_from_bits_f32
DC_INLINE float dc_from_bits_f32(unsigned int u) {
  float x;
  __builtin_memcpy(&x, &u, 4);
  return x;
}
// @ dc_bits_f64
DC_INLINE u64 dc_bits_f64(double x) {
  u64 u;
  __builtin_memcpy(&u, &x, 8);
  return u;
}
// @ dc_from_bits_f64
DC_INLINE double dc_from_bits_f64(u64 u) {
  double x;
  __builtin_memcpy(&x, &u, 8);
  return x;
}
// Scaling by 2^112 turns the half exponent into a float one, denormals included.
// @ dc_load_f16
DC_INLINE float dc_load_f16(unsigned short h) {
  const unsigned int magnitude = (h & 0x7fffu) << 13;
  const float scaled = dc_from_bits_f32(magnitude) * 0x1p112f;
  const unsigned int special = magnitude | 0x7f800000u;
  const unsigned int bits = magnitude >= 0x0f800000u ? special : dc_bits_f32(scaled);
  return dc_from_bits_f32(bits | ((h & 0x8000u) << 16));
}
// Rounds to nearest even; overflow gives infinity, NaN a quiet NaN with its first bits, as vcvtps2ph does.
// @ dc_store_f16
DC_INLINE unsigned short dc_store_f16(float x) {
  const unsigned int u = dc_bits_f32(x);
  const unsigned int sign = (u >> 16) & 0x8000u;
  const unsigned int magnitude = u & 0x7fffffffu;
  // below the smallest normal half: adding 0.5 aligns the last bit with float32's rounding position
  const unsigned int denormal = dc_bits_f32(dc_from_bits_f32(magnitude) + 0.5f) - 0x3f000000u;
  const unsigned int normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  const unsigned int nan = ((magnitude >> 13) & 0x3ffu) | 0x7e00u;
  // 2^112 times what becomes an infinity is one, and raises the flag
  const unsigned int infinity = (dc_bits_f32(dc_from_bits_f32(magnitude) * 0x1.001002p112f) >> 13) - 0x38000u;
  const unsigned int special = magnitude > 0x7f800000u ? nan : infinity;
  const unsigned int finite = magnitude < 0x38800000u ? denormal : normal;
  return (unsigned short)(sign | (magnitude >= 0x47800000u ? special : finite));
}
// @ dc_round_f16
DC_INLINE float dc_round_f16(float x) {
  const unsigned int u = dc_bits_f32(x);
  const unsigned int magnitude = u & 0x7fffffffu;
  const unsigned int denormal = dc_bits_f32((dc_from_bits_f32(magnitude) + 0.5f) - 0.5f);
  const unsigned int normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u)) & 0xffffe000u;
  const unsigned int nan = (magnitude & 0xffffe000u) | 0x400000u;
  const unsigned int infinity = dc_bits_f32(dc_from_bits_f32(magnitude) * 0x1.001002p112f);  // raises the flag
  const unsigned int special = magnitude > 0x7f800000u ? nan : infinity;
  const unsigned int finite = magnitude < 0x38800000u ? denormal : normal;
  return dc_from_bits_f32((finite >= 0x47800000u ? special : finite) | (u ^ magnitude));
}
// The processor's conversions of 8 or 16 halves, and arrays of whole strips of as many.
// @ dc_floats
#if defined(__GNUC__) && defined(__AVX512F__)
#define DC_STRIP 16
typedef short dc_local_shorts __attribute__((vector_size(32)));
#elif defined(__GNUC__) && !defined(__clang__) && defined(__F16C__)
#define DC_STRIP 8
typedef short dc_local_shorts __attribute__((vector_size(16)));
#endif
#ifdef DC_STRIP
typedef float dc_local_strip __attribute__((vector_size(4 * DC_STRIP)));
typedef float dc_floats __attribute__((vector_size(4 * DC_STRIP), aligned(4), may_alias));
typedef short dc_local_halves __attribute__((vector_size(2 * DC_STRIP), aligned(2), may_alias));
#if DC_STRIP == 16
#define DC_WIDEN(halves) __builtin_ia32_vcvtph2ps512_mask(halves, (dc_local_strip){}, -1, 4)
#define DC_NARROW(floats) __builtin_ia32_vcvtps2ph512_mask(floats, 0, (dc_local_shorts){}, -1)
#else
#define DC_WIDEN(halves) __builtin_ia32_vcvtph2ps256(halves)
#define DC_NARROW(floats) __builtin_ia32_vcvtps2ph256(floats, 0)
#endif
#endif
// @ dc_widen_f16
#ifdef DC_STRIP
template <int count> DC_INLINE void dc_widen_f16(float (&to)[count], const unsigned short* from) {
#pragma GCC unroll 8
  for (int k = 0; k < count; k += DC_STRIP) *(dc_floats*)(to + k) = DC_WIDEN(*(const dc_local_halves*)(from + k));
}
#endif
// Halves that lie ``step`` apart, picked from vectors: nothing before the lowest or behind the highest is read.
// @ dc_halves_apart
#ifdef DC_STRIP
template <i64 step> DC_INLINE dc_local_shorts dc_halves_apart(const unsigned short* from) {
  dc_local_shorts found;
#ifndef __clang__
  const i64 apart = step < 0 ? -step : step;
  if (apart <= 4) {
    const unsigned short* const lowest = step < 0 ? from + step * (DC_STRIP - 1) : from;
    found = *(const dc_local_halves*)lowest;
#pragma GCC unroll 4
    for (int part = 1; part < (apart == 1 ? 2 : apart); ++part) {
      const i64 begin = part < apart - 1 ? DC_STRIP * part : (DC_STRIP - 1) * (apart - 1);
      dc_local_shorts places;
      for (int k = 0; k < DC_STRIP; ++k) {
        const i64 place = apart * (step < 0 ? DC_STRIP - 1 - k : k);
        const i64 before = part == 1 ? place % DC_STRIP : k;
        places[k] = (short)(apart > 1 && place >= DC_STRIP * part ? (DC_STRIP + place - begin) % (2 * DC_STRIP) : before);
      }
      const dc_local_shorts next = *(const dc_local_halves*)(lowest + begin);
      found = __builtin_shuffle(found, next, places);
    }
    return found;
  }
#endif
  for (int k = 0; k < DC_STRIP; ++k) found[k] = (short)from[step * k];
  return found;
}
#endif
// @ dc_widen_step_f16
#ifdef DC_STRIP
template <i64 step, int count> DC_INLINE void dc_widen_step_f16(float (&to)[count], const unsigned short* from) {
#pragma GCC unroll 8
  for (int k = 0; k < count; k += DC_STRIP) *(dc_floats*)(to + k) = DC_WIDEN(dc_halves_apart<step>(from + step * k));
}
#endif
// @ dc_narrow_f16
#ifdef DC_STRIP
template <int count> DC_INLINE void dc_narrow_f16(unsigned short* to, const float (&from)[count]) {
#pragma GCC unroll 8
  for (int k = 0; k < count; k += DC_STRIP) *(dc_local_halves*)(to + k) = DC_NARROW(*(const dc_floats*)(from + k));
}
#endif
// @ dc_reround_f16
#ifdef DC_STRIP
template <int count> DC_INLINE void dc_reround_f16(float (&x)[count]) {
#pragma GCC unroll 8
  for (int k = 0; k < count; k += DC_STRIP) *(dc_floats*)(x + k) = DC_WIDEN(DC_NARROW(*(const dc_floats*)(x + k)));
}
#endif
// A sum and a product that is exact: fused or not it is rounded once.
// @ dc_add_product_f32
DC_INLINE float dc_add_product_f32(float sum, float x, float y) {
#ifdef __FMA__
  return __builtin_fmaf(x, y, sum);
#else
  return sum + x * y;
#endif
}
// @ dc_load_bf16
DC_INLINE float dc_load_bf16(unsigned short h) { return dc_from_bits_f32((unsigned int)h << 16); }
// @ dc_store_bf16
DC_INLINE unsigned short dc_store_bf16(float x) {
  const unsigned int u = dc_bits_f32(x);
  const unsigned int rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const unsigned int nan = (u >> 16) | 0x40u;
  return (unsigned short)(x != x ? nan : rounded);
}
// @ dc_round_bf16
DC_INLINE float dc_round_bf16(float x) {
  const unsigned int u = dc_bits_f32(x);
  const unsigned int rounded = u + 0x7fffu + ((u >> 16) & 1u);
  const unsigned int nan = u | 0x400000u;
  return dc_from_bits_f32((x != x ? nan : rounded) & 0xffff0000u);
}
// The same for results of arithmetic on bfloat16: their NaNs are quiet and end in zeros, and rounding keeps them.
// @ dc_round_result_bf16
DC_INLINE float dc_round_result_bf16(float x) {
  const unsigned int u = dc_bits_f32(x);
  return dc_from_bits_f32((u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u);
}
// @ dc_store_result_bf16
DC_INLINE unsigned short dc_store_result_bf16(float x) {
  const unsigned int u = dc_bits_f32(x);
  return (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
// A double as a float rounded to odd: rounding that once more to a half type rounds only once.
// @ dc_round_to_odd
DC_INLINE float dc_round_to_odd(double x) {
  const float nearest = dc_rounded_f32(x);
  const unsigned int u = dc_bits_f32(nearest);
  const bool away = __builtin_fabs((double)nearest) > __builtin_fabs(x);
  const unsigned int odd = (away ? u - 1u : u) | 1u;
  const bool inexact = ((double)nearest != x) & (x == x);
  return dc_from_bits_f32(inexact ? odd : u);
}
// Equal arguments: NumPy gives the first, C (and so the other types) the second.
// @ dc_nextafter_f16
DC_INLINE float dc_nextafter_f16(float x, float y) {
  const unsigned short u = dc_store_f16(x);
  const bool away = (x < y) == ((u >> 15) == 0);
  const unsigned short step = (unsigned short)(away ? u + 1 : u - 1);
  const unsigned short from_zero = (unsigned short)((dc_store_f16(y) & 0x8000) | 1);
  const float moved = dc_load_f16(x == 0 ? from_zero : step);
  const float result = x == y ? x : moved;
  return (x != x) | (y != y) ? x + y : result;
}
// @ dc_nextafter_bf16
DC_INLINE float dc_nextafter_bf16(float x, float y) {
  const unsigned short u = dc_store_bf16(x);
  const bool away = (x < y) == ((u >> 15) == 0);
  const unsigned short step = (unsigned short)(away ? u + 1 : u - 1);
  const unsigned short from_zero = (unsigned short)((dc_store_bf16(y) & 0x8000) | 1);
  const float moved = dc_load_bf16(x == 0 ? from_zero : step);
  const float result = x == y ? y : moved;
  return (x != x) | (y != y) ? x + y : result;
}
