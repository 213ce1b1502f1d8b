// Integer helpers: NumPy's conventions for zero divisors, signs and shifts.

// The high half of a product, from products of 32-bit halves, which vectorise.
// @ dc_multiply_high
DC_INLINE u64 dc_multiply_high(u64 a, u64 b) {
  const u64 mask = 0xffffffffULL;
  const u64 low = (a & mask) * (b & mask);
  const u64 left = (a >> 32) * (b & mask) + (low >> 32);
  const u64 right = (a & mask) * (b >> 32) + (left & mask);
  return (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32);
}
// n / d for n <= 2^63 and a constant d that is no power of two: T. Granlund, P. L. Montgomery, "Division by
// Invariant Integers using Multiplication", 1994. With d < 2^bits the factor exceeds 2^(63+bits) / d by less than
// 2^bits / d, so the product's error stays below 1 / d.
// @ dc_divide_by_constant
DC_INLINE u64 dc_divide_by_constant(u64 n, u64 d) {
  const int bits = 64 - __builtin_clzll(d);
  const u64 factor = (u64)(((unsigned __int128)1 << (63 + bits)) / d) + 1;
  return dc_multiply_high(n, factor) >> (bits - 1);
}
// The same for any n: the factor has a 65th bit, whose share is added separately.
// @ dc_divide_any_by_constant
DC_INLINE u64 dc_divide_any_by_constant(u64 n, u64 d) {
  if (d >> 63) return n >= d;
  const int bits = 64 - __builtin_clzll(d);
  const u64 factor = (u64)(((unsigned __int128)1 << (64 + bits)) / d) + 1;
  const u64 high = dc_multiply_high(n, factor);
  return (((n - high) >> 1) + high) >> (bits - 1);
}
// Towards minus infinity. For negative a and positive b the quotient is ~(~a / b).
// @ dc_floordiv_by_constant
DC_INLINE i64 dc_floordiv_by_constant(i64 a, i64 b) {
  if (b > 0) {
    const u64 sign = (u64)(a >> 63);
    return (i64)(dc_divide_by_constant((u64)a ^ sign, (u64)b) ^ sign);
  }
  const u64 n = a < 0 ? 0 - (u64)a : (u64)a;
  const u64 d = 0 - (u64)b;
  const u64 down = dc_divide_by_constant(n, d);
  const u64 up = n - down * d == 0 ? down : down + 1;
  return (i64)(a < 0 ? down : 0 - up);
}
// Division of narrow integers is exact in floating point of twice their width, and vectorises.
// @ dc_floordiv_[i8 i16]
DC_INLINE TYPE dc_floordiv_SUFFIX(TYPE a, TYPE b) {
  const float q = __builtin_floorf((float)a / (float)(b == 0 ? 1 : b));
  return b == 0 ? (TYPE)0 : (TYPE)(int)q;
}
// @ dc_floordiv_[u8 u16]
DC_INLINE TYPE dc_floordiv_SUFFIX(TYPE a, TYPE b) {
  const float q = __builtin_truncf((float)a / (float)(b == 0 ? 1 : b));
  return b == 0 ? (TYPE)0 : (TYPE)(int)q;
}
// @ dc_floordiv_i32
DC_INLINE int dc_floordiv_i32(int a, int b) {
  if (__builtin_constant_p(b) && b > 0) {
    const unsigned int sign = (unsigned int)(a >> 31);
    return (int)((((unsigned int)a ^ sign) / (unsigned int)b) ^ sign);
  }
  const double q = __builtin_floor((double)a / (double)(b == 0 ? 1 : b));
  return b == 0 ? 0 : (int)(i64)q;
}
// @ dc_floordiv_u32
DC_INLINE unsigned int dc_floordiv_u32(unsigned int a, unsigned int b) {
  if (__builtin_constant_p(b) && b > 0) return a / b;
  const double q = __builtin_trunc((double)a / (double)(b == 0 ? 1 : b));
  return b == 0 ? 0 : (unsigned int)(i64)q;
}
// @ dc_floordiv_i64
DC_INLINE i64 dc_floordiv_i64(i64 a, i64 b) {
  if (__builtin_constant_p(b) && b > 0 && (b & (b - 1)) == 0) return a >> __builtin_ctzll((u64)b);
  const u64 size = b < 0 ? 0 - (u64)b : (u64)b;
  if (__builtin_constant_p(b) && (size & (size - 1)) != 0) return dc_floordiv_by_constant(a, b);
  if (b == 0) return 0;
  if (b == -1) return (i64)(0 - (u64)a);
  const i64 q = a / b;
  return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}
// @ dc_floordiv_u64
DC_INLINE u64 dc_floordiv_u64(u64 a, u64 b) {
  if (__builtin_constant_p(b) && (b & (b - 1)) != 0) return dc_divide_any_by_constant(a, b);
  return b == 0 ? 0 : a / b;
}
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
  if (__builtin_constant_p(b)) return (i64)((u64)a - (u64)dc_floordiv_i64(a, b) * (u64)b);
  const i64 r = a % b;
  return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0);
}
// @ dc_remainder_b8
DC_INLINE signed char dc_remainder_b8(bool, bool) { return 0; }
// @ dc_fmod_[i8 i16]
DC_INLINE TYPE dc_fmod_SUFFIX(TYPE a, TYPE b) {
  const float q = __builtin_truncf((float)a / (float)(b == 0 ? 1 : b));
  return b == 0 ? (TYPE)0 : (TYPE)((UNSIGNED)a - (UNSIGNED)(int)q * (UNSIGNED)b);
}
// @ dc_fmod_i32
DC_INLINE int dc_fmod_i32(int a, int b) {
  const double q = __builtin_trunc((double)a / (double)(b == 0 ? 1 : b));
  return b == 0 ? 0 : (int)((unsigned int)a - (unsigned int)(i64)q * (unsigned int)b);
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
