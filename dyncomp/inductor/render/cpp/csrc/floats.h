// Floating-point helpers that are not transcendental.

// @ dc_abs_f32
DC_INLINE float dc_abs_f32(float x) { return __builtin_fabsf(x); }
// @ dc_abs_f64
DC_INLINE double dc_abs_f64(double x) { return __builtin_fabs(x); }
// @ dc_sign_[f32 f64]
DC_INLINE TYPE dc_sign_SUFFIX(TYPE x) {
  const TYPE step = (TYPE)((x > 0) - (x < 0));
  return x != x ? x : step;
}
// @ dc_signbit_f32
DC_INLINE bool dc_signbit_f32(float x) { return (dc_bits_f32(x) >> 31) != 0; }
// @ dc_signbit_f64
DC_INLINE bool dc_signbit_f64(double x) { return (dc_bits_f64(x) >> 63) != 0; }
// Exact for quotients below 2^53: the remainder of a rounded quotient is exact, then corrected by one.
// @ dc_fmod_fast
DC_INLINE double dc_fmod_fast(double a, double b) {
  const double x = __builtin_fabs(a);
  const double y = __builtin_fabs(b);
  const double q = __builtin_trunc(x / y);
  double r = __builtin_fma(-q, y, x);
  r = r < 0 ? r + y : r;
  r = r >= y ? r - y : r;
  return __builtin_copysign(r, a);
}
// @ dc_fmod_f64
DC_INLINE double dc_fmod_f64(double a, double b) { return dc_fmod_fast(a, b); }
// @ dc_fmod_f32
DC_INLINE float dc_fmod_f32(float a, float b) { return (float)dc_fmod_fast((double)a, (double)b); }
// @ dc_far_fmod_f64
DC_INLINE int dc_far_fmod_f64(double a, double b) {
  return (__builtin_fabs(a) * 0x1p-52 >= __builtin_fabs(b)) | (__builtin_fabs(b) > 0x1p1022);
}
// @ dc_far_fmod_f32
DC_INLINE int dc_far_fmod_f32(float a, float b) { return dc_far_fmod_f64((double)a, (double)b); }
// @ dc_full_fmod_f64
extern "C" double fmod(double, double) noexcept;
DC_INLINE double dc_full_fmod_f64(double a, double b) {
  return dc_far_fmod_f64(a, b) ? fmod(a, b) : dc_fmod_fast(a, b);
}
// @ dc_full_fmod_f32
DC_INLINE float dc_full_fmod_f32(float a, float b) { return (float)dc_full_fmod_f64((double)a, (double)b); }
// NumPy's divmod: the quotient is rounded from (a - mod) / b, and zero results carry the right sign.
// @ dc_remainder_from
DC_INLINE double dc_remainder_from(double mod, double b) {
  const double moved = ((b < 0) != (mod < 0)) ? mod + b : mod;
  return mod != 0 ? moved : __builtin_copysign(0.0, b);
}
// @ dc_floordiv_from
DC_INLINE double dc_floordiv_from(double a, double b, double mod) {
  const double shift = (mod != 0) & ((b < 0) != (mod < 0)) ? 1.0 : 0.0;
  const double div = (a - mod) / b - shift;
  const double down = __builtin_floor(div);
  const double rounded = div - down > 0.5 ? down + 1.0 : down;
  const double result = div != 0 ? rounded : __builtin_copysign(0.0, a / b);
  return b == 0 ? a / b : result;
}
// @ dc_remainder_f64
DC_INLINE double dc_remainder_f64(double a, double b) {
  const double r = dc_remainder_from(dc_fmod_fast(a, b), b);
  return b == 0 ? __builtin_nan("") : r;
}
// @ dc_full_remainder_f64
DC_INLINE double dc_full_remainder_f64(double a, double b) {
  const double r = dc_remainder_from(dc_full_fmod_f64(a, b), b);
  return b == 0 ? __builtin_nan("") : r;
}
// In float, as NumPy: the sum of remainder and divisor is rounded once.
// @ dc_remainder_f32_from
DC_INLINE float dc_remainder_f32_from(float mod, float b) {
  const float moved = ((b < 0) != (mod < 0)) ? mod + b : mod;
  const float r = mod != 0 ? moved : __builtin_copysignf(0.0f, b);
  return b == 0 ? __builtin_nanf("") : r;
}
// @ dc_remainder_f32
DC_INLINE float dc_remainder_f32(float a, float b) { return dc_remainder_f32_from(dc_fmod_f32(a, b), b); }
// @ dc_full_remainder_f32
DC_INLINE float dc_full_remainder_f32(float a, float b) { return dc_remainder_f32_from(dc_full_fmod_f32(a, b), b); }
// @ dc_far_remainder_f64
DC_INLINE int dc_far_remainder_f64(double a, double b) { return dc_far_fmod_f64(a, b); }
// @ dc_far_remainder_f32
DC_INLINE int dc_far_remainder_f32(float a, float b) { return dc_far_fmod_f32(a, b); }
// @ dc_floordiv_f64
DC_INLINE double dc_floordiv_f64(double a, double b) { return dc_floordiv_from(a, b, dc_fmod_fast(a, b)); }
// @ dc_full_floordiv_f64
DC_INLINE double dc_full_floordiv_f64(double a, double b) {
  return b == 0 ? a / b : dc_floordiv_from(a, b, dc_full_fmod_f64(a, b));
}
// Steps in float, each of which rounds as NumPy's does.
// @ dc_floordiv_f32_from
DC_INLINE float dc_floordiv_f32_from(float a, float b, float mod) {
  const float shift = (mod != 0) & ((b < 0) != (mod < 0)) ? 1.0f : 0.0f;
  const float div = (a - mod) / b - shift;
  const float down = __builtin_floorf(div);
  const float rounded = div - down > 0.5f ? down + 1.0f : down;
  const float result = div != 0 ? rounded : __builtin_copysignf(0.0f, a / b);
  return b == 0 ? a / b : result;
}
// @ dc_floordiv_f32
DC_INLINE float dc_floordiv_f32(float a, float b) { return dc_floordiv_f32_from(a, b, dc_fmod_f32(a, b)); }
// @ dc_full_floordiv_f32
DC_INLINE float dc_full_floordiv_f32(float a, float b) {
  return b == 0 ? a / b : dc_floordiv_f32_from(a, b, dc_full_fmod_f32(a, b));
}
// @ dc_far_floordiv_f64
DC_INLINE int dc_far_floordiv_f64(double a, double b) { return dc_far_fmod_f64(a, b); }
// @ dc_far_floordiv_f32
DC_INLINE int dc_far_floordiv_f32(float a, float b) { return dc_far_fmod_f32(a, b); }
// What a float was converted to. Without it gcc takes converting back to be a truncation, which would keep nan,
// infinities and -0.0; the barrier costs nothing and is vectorised
// (before gcc 12 there is none that is). clang keeps both conversions.
// @ dc_whole_[i32 i64]
DC_INLINE TYPE dc_whole_SUFFIX(TYPE x) {
#ifdef __clang__
  return x;
#elif __GNUC__ >= 12
  return __builtin_assoc_barrier(x);
#else
  asm("" : "+r"(x));
  return x;
#endif
}
// A product that no sum is to be joined with. Where sums and differences of products go to memory in turn, gcc 12 makes
// fused operations of them, whatever -ffp-contract says, in vectors alone: the bits would be those of the place.
// @ dc_apart_[f32 f64]
DC_INLINE TYPE dc_apart_SUFFIX(TYPE x) {
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
  return __builtin_assoc_barrier(x);
#else
  return x;
#endif
}
// Where pairs of doubles are rounded and made doubles again, gcc 12 takes that for nothing when it joins them to
// vectors (match.pd takes the logarithms of the numbers of lanes for precisions); the product by one stays between.
// @ dc_rounded_f32
DC_INLINE float dc_rounded_f32(double x) {
#if !defined(__GNUC__) || defined(__clang__)
  return (float)x;
#elif defined(__FP_FAST_FMAF)
  return __builtin_fmaf((float)x, 1.0f, -0.0f);
#else
  float rounded = (float)x;
#ifdef __x86_64__
  asm("" : "+x"(rounded));
#else
  asm("" : "+m"(rounded));
#endif
  return rounded;
#endif
}
// As the processor's conversion to signed integers does it: beyond 2^63 relative to that.
// @ dc_to_u64
DC_INLINE u64 dc_to_u64(double x) {
  const u64 high = (u64)(i64)(x - 0x1p63) ^ 0x8000000000000000ULL;
  return x >= 0x1p63 ? high : (u64)(i64)x;
}
// @ dc_nextafter_f32
DC_INLINE float dc_nextafter_f32(float x, float y) {
  const unsigned int u = dc_bits_f32(x);
  const bool away = (x < y) == ((u >> 31) == 0);
  const unsigned int step = away ? u + 1u : u - 1u;
  const unsigned int from_zero = (dc_bits_f32(y) & 0x80000000u) | 1u;
  const float moved = dc_from_bits_f32(x == 0 ? from_zero : step);
  const float result = x == y ? y : moved;
  return (x != x) | (y != y) ? x + y : result;
}
// @ dc_nextafter_f64
DC_INLINE double dc_nextafter_f64(double x, double y) {
  const u64 u = dc_bits_f64(x);
  const bool away = (x < y) == ((u >> 63) == 0);
  const u64 step = away ? u + 1u : u - 1u;
  const u64 from_zero = (dc_bits_f64(y) & 0x8000000000000000ULL) | 1u;
  const double moved = dc_from_bits_f64(x == 0 ? from_zero : step);
  const double result = x == y ? y : moved;
  return (x != x) | (y != y) ? x + y : result;
}
// Three steps reach every result from every argument; the last one alone may round.
// @ dc_ldexp_f64
DC_INLINE double dc_ldexp_f64(double x, i64 n) {
  i64 k = n > 2200 ? 2200 : n;
  k = k < -2200 ? -2200 : k;
  const i64 first = k > 1000 ? 1000 : k < -960 ? -960 : k;
  const i64 left = k - first;
  const i64 second = left > 1000 ? 1000 : left < -960 ? -960 : left;
  const i64 third = left - second;
  const double a = dc_from_bits_f64((u64)(first + 1023) << 52);
  const double b = dc_from_bits_f64((u64)(second + 1023) << 52);
  const double c = dc_from_bits_f64((u64)(third + 1023) << 52);
  return x * a * b * c;
}
// @ dc_ldexp_f32
DC_INLINE float dc_ldexp_f32(float x, i64 n) {
  i64 k = n > 400 ? 400 : n;
  k = k < -400 ? -400 : k;
  return (float)((double)x * dc_from_bits_f64((u64)(k + 1023) << 52));
}
// The larger argument's exponent is taken out of both, within limits that keep factor and its inverse normal.
// @ dc_hypot_f64
DC_INLINE double dc_hypot_f64(double x, double y) {
  const double a = __builtin_fabs(x);
  const double b = __builtin_fabs(y);
  const u64 exponent = (dc_bits_f64(a) > dc_bits_f64(b) ? dc_bits_f64(a) : dc_bits_f64(b)) & 0x7ff0000000000000ULL;
  const u64 wanted = (0x7ff0000000000000ULL - exponent) | 0x0010000000000000ULL;  // infinity times 0 is an error
  const u64 factor = wanted > 0x7fd0000000000000ULL ? 0x7fd0000000000000ULL : wanted;
  const double u = a * dc_from_bits_f64(factor);
  const double v = b * dc_from_bits_f64(factor);
  const double back = dc_from_bits_f64(0x7fe0000000000000ULL - factor);
  const double r = __builtin_sqrt(__builtin_fma(u, u, v * v)) * back;
  return (a == __builtin_inf()) | (b == __builtin_inf()) ? __builtin_inf() : r;
}
// @ dc_hypot_f32
DC_INLINE float dc_hypot_f32(float x, float y) {
  const float a = __builtin_fabsf(x);
  const float b = __builtin_fabsf(y);
  const unsigned int exponent = (dc_bits_f32(a) > dc_bits_f32(b) ? dc_bits_f32(a) : dc_bits_f32(b)) & 0x7f800000u;
  const unsigned int wanted = (0x7f800000u - exponent) | 0x00800000u;
  const unsigned int factor = wanted > 0x7e800000u ? 0x7e800000u : wanted;
  const float u = a * dc_from_bits_f32(factor);
  const float v = b * dc_from_bits_f32(factor);
  const float r = __builtin_sqrtf(__builtin_fmaf(u, u, v * v)) * dc_from_bits_f32(0x7f000000u - factor);
  return (a == __builtin_inff()) | (b == __builtin_inff()) ? __builtin_inff() : r;
}
