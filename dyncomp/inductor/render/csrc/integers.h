// Integer helpers: NumPy's conventions for zero divisors, signs and shifts.

// Division of narrow integers goes through double, which is exact and vectorises.
// @ dc_floordiv_[i8 i16 i32]
DC_INLINE TYPE dc_floordiv_SUFFIX(TYPE a, TYPE b) {
  const double q = __builtin_floor((double)a / (double)(b == 0 ? 1 : b));
  return b == 0 ? (TYPE)0 : (TYPE)(i64)q;
}
// @ dc_floordiv_[u8 u16 u32]
DC_INLINE TYPE dc_floordiv_SUFFIX(TYPE a, TYPE b) {
  const double q = __builtin_trunc((double)a / (double)(b == 0 ? 1 : b));
  return b == 0 ? (TYPE)0 : (TYPE)(i64)q;
}
// @ dc_floordiv_i64
DC_INLINE i64 dc_floordiv_i64(i64 a, i64 b) {
  if (b == 0) return 0;
  if (b == -1) return (i64)(0 - (u64)a);
  const i64 q = a / b;
  return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}
// @ dc_floordiv_u64
DC_INLINE u64 dc_floordiv_u64(u64 a, u64 b) { return b == 0 ? 0 : a / b; }
// @ dc_floordiv_b8
DC_INLINE signed char dc_floordiv_b8(bool a, bool b) { return a & b; }
// @ dc_remainder_[i8 i16 i32]
DC_INLINE TYPE dc_remainder_SUFFIX(TYPE a, TYPE b) {
  const TYPE r = (TYPE)((UNSIGNED)a - (UNSIGNED)dc_floordiv_SUFFIX(a, b) * (UNSIGNED)b);
  return b == 0 ? (TYPE)0 : r;
}
// @ dc_remainder_[u8 u16 u32 u64]
DC_INLINE TYPE dc_remainder_SUFFIX(TYPE a, TYPE b) {
  const TYPE r = (TYPE)(a - dc_floordiv_SUFFIX(a, b) * b);
  return b == 0 ? (TYPE)0 : r;
}
// @ dc_remainder_i64
DC_INLINE i64 dc_remainder_i64(i64 a, i64 b) {
  if (b == 0 || b == -1) return 0;
  const i64 r = a % b;
  return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0);
}
// @ dc_remainder_b8
DC_INLINE signed char dc_remainder_b8(bool, bool) { return 0; }
// @ dc_fmod_[i8 i16 i32]
DC_INLINE TYPE dc_fmod_SUFFIX(TYPE a, TYPE b) {
  const double q = __builtin_trunc((double)a / (double)(b == 0 ? 1 : b));
  return b == 0 ? (TYPE)0 : (TYPE)((UNSIGNED)a - (UNSIGNED)(i64)q * (UNSIGNED)b);
}
// @ dc_fmod_[u8 u16 u32 u64]
DC_INLINE TYPE dc_fmod_SUFFIX(TYPE a, TYPE b) { return dc_remainder_SUFFIX(a, b); }
// @ dc_fmod_i64
DC_INLINE i64 dc_fmod_i64(i64 a, i64 b) { return b == 0 || b == -1 ? 0 : a % b; }
// @ dc_fmod_b8
DC_INLINE signed char dc_fmod_b8(bool, bool) { return 0; }
// @ dc_pow_[u8 u16 u32 u64]
DC_INLINE TYPE dc_pow_SUFFIX(TYPE x, TYPE n) {
  TYPE result = 1;
  for (TYPE e = n, base = x; e; e >>= 1, base = (TYPE)(base * base))
    if (e & 1) result = (TYPE)(result * base);
  return result;
}
// @ dc_pow_[i8 i16 i32 i64]
DC_INLINE TYPE dc_pow_SUFFIX(TYPE x, TYPE n) {
  if (n < 0) return x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0;
  UNSIGNED result = 1;
  UNSIGNED base = (UNSIGNED)x;
  for (TYPE e = n; e; e >>= 1, base = (UNSIGNED)(base * base))
    if (e & 1) result = (UNSIGNED)(result * base);
  return (TYPE)result;
}
// @ dc_shl_[i8 i16 i32 i64 u8 u16 u32 u64]
DC_INLINE TYPE dc_shl_SUFFIX(TYPE x, TYPE n) {
  const bool in = (UNSIGNED)n < BITS;
  const TYPE shifted = (TYPE)((UNSIGNED)x << (in ? (UNSIGNED)n : 0));
  return in ? shifted : (TYPE)0;
}
// @ dc_shr_[i8 i16 i32 i64]
DC_INLINE TYPE dc_shr_SUFFIX(TYPE x, TYPE n) {
  const bool in = (UNSIGNED)n < BITS;
  return (TYPE)(x >> (in ? (UNSIGNED)n : BITS - 1));
}
// @ dc_shr_[u8 u16 u32 u64]
DC_INLINE TYPE dc_shr_SUFFIX(TYPE x, TYPE n) {
  const bool in = n < BITS;
  const TYPE shifted = (TYPE)(x >> (in ? n : 0));
  return in ? shifted : (TYPE)0;
}
// @ dc_gcd_[i8 i16 i32 i64 u8 u16 u32 u64]
DC_INLINE TYPE dc_gcd_SUFFIX(TYPE x, TYPE y) {
  UNSIGNED a = (UNSIGNED)(x < 0 ? 0 - (UNSIGNED)x : (UNSIGNED)x);
  UNSIGNED b = (UNSIGNED)(y < 0 ? 0 - (UNSIGNED)y : (UNSIGNED)y);
  while (a) {
    const UNSIGNED c = a;
    a = (UNSIGNED)(b % a);
    b = c;
  }
  return (TYPE)b;
}
// @ dc_lcm_[i8 i16 i32 i64 u8 u16 u32 u64]
DC_INLINE TYPE dc_lcm_SUFFIX(TYPE x, TYPE y) {
  const UNSIGNED a = (UNSIGNED)(x < 0 ? 0 - (UNSIGNED)x : (UNSIGNED)x);
  const UNSIGNED b = (UNSIGNED)(y < 0 ? 0 - (UNSIGNED)y : (UNSIGNED)y);
  const UNSIGNED g = (UNSIGNED)dc_gcd_SUFFIX(x, y);
  return g == 0 ? (TYPE)0 : (TYPE)(a / g * b);
}
