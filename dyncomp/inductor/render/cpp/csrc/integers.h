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
// Philox4x32-10 (prims/pointwise/random_bits.py): words are halves of 64-bit numbers, whose products vectorise.
// @ dc_philox
DC_INLINE u64 dc_philox(u64 key, u64 counter) {
  const u64 mask = 0xffffffffULL;
  u64 a = counter & mask, b = counter >> 32, c = 0, d = 0, first = key & mask, second = key >> 32;
  for (int round = 0; round < 10; round++) {
    const u64 p = a * 0xd2511f53ULL, q = c * 0xcd9e8d57ULL;
    a = (q >> 32) ^ b ^ first;
    c = (p >> 32) ^ d ^ second;
    b = q & mask;
    d = p & mask;
    first = (first + 0x9e3779b9ULL) & mask;
    second = (second + 0xbb67ae85ULL) & mask;
  }
  return a | b << 32;
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
// NumPy reports integers divided by zero, and the least by -1, as floating-point errors: status flags, which divisions of
// integers do not raise.
// @ dc_raise_divide
DC_INLINE void dc_raise_divide() {
  volatile double zero = 0.0;
  zero = 1.0 / zero;
}
// @ dc_raise_overflow
DC_INLINE void dc_raise_overflow() {
  volatile double most = 0x1p1023;
  most = most * most;
}
// Division of narrow integers is exact in floating point of twice their width, and vectorises. Of zero divisors one is
// divided, which raises the flag; a quotient of one more than the largest number overflows when it is scaled.
// @ dc_floordiv_[i8 i16]
DC_INLINE TYPE dc_floordiv_SUFFIX(TYPE a, TYPE b) {
  const float scale = BITS == 8 ? 0x1p121f : 0x1p113f;
  if (__builtin_constant_p(b) && b == 0) dc_raise_divide();  // gcc computes it itself
  const float q = __builtin_floorf((float)(b == 0 ? 1 : a) / (float)b);
  const float least = q > -q ? q + 0.5f : 0.5f;
  const float scaled = least * scale;
  const int whole = (int)(scaled < __builtin_inff() ? q : (float)(-(1 << (BITS - 1))));
  return b == 0 ? (TYPE)0 : (TYPE)whole;
}
// @ dc_floordiv_[u8 u16]
DC_INLINE TYPE dc_floordiv_SUFFIX(TYPE a, TYPE b) {
  if (__builtin_constant_p(b) && b == 0) dc_raise_divide();
  const float q = __builtin_truncf((float)(b == 0 ? 1 : a) / (float)b);
  return b == 0 ? (TYPE)0 : (TYPE)(int)q;
}
// @ dc_floordiv_i32
DC_INLINE int dc_floordiv_i32(int a, int b) {
  if (__builtin_constant_p(b) && b > 0) {
    const unsigned int sign = (unsigned int)(a >> 31);
    return (int)((((unsigned int)a ^ sign) / (unsigned int)b) ^ sign);
  }
  if (__builtin_constant_p(b) && b == 0) dc_raise_divide();
  const double q = __builtin_floor((double)(b == 0 ? 1 : a) / (double)b);
  const double least = q > -q ? q + 0.5 : 0.5;
  const double scaled = least * 0x1p993;
  const int whole = (int)(i64)(scaled < __builtin_inf() ? q : -0x1p31);
  return b == 0 ? 0 : whole;
}
// @ dc_floordiv_u32
DC_INLINE unsigned int dc_floordiv_u32(unsigned int a, unsigned int b) {
  if (__builtin_constant_p(b) && b > 0) return a / b;
  if (__builtin_constant_p(b) && b == 0) dc_raise_divide();
  const double q = __builtin_trunc((double)(b == 0 ? 1 : a) / (double)b);
  return b == 0 ? 0 : (unsigned int)(i64)q;
}
// @ dc_floordiv_i64
DC_INLINE i64 dc_floordiv_i64(i64 a, i64 b) {
  if (__builtin_constant_p(b) && b > 0 && (b & (b - 1)) == 0) return a >> __builtin_ctzll((u64)b);
  const u64 size = b < 0 ? 0 - (u64)b : (u64)b;
  if (__builtin_constant_p(b) && (size & (size - 1)) != 0) return dc_floordiv_by_constant(a, b);
  if (b == 0) {
    dc_raise_divide();
    return 0;
  }
  if (b == -1) {
    if (a == (i64)0x8000000000000000ULL) dc_raise_overflow();
    return (i64)(0 - (u64)a);
  }
  const i64 q = a / b;
  return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}
// @ dc_floordiv_u64
DC_INLINE u64 dc_floordiv_u64(u64 a, u64 b) {
  if (__builtin_constant_p(b) && (b & (b - 1)) != 0) return dc_divide_any_by_constant(a, b);
  if (b == 0) {
    dc_raise_divide();
    return 0;
  }
  return a / b;
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
  if (b == 0) dc_raise_divide();
  if (b == 0 || b == -1) return 0;
  if (__builtin_constant_p(b)) return (i64)((u64)a - (u64)dc_floordiv_i64(a, b) * (u64)b);
  const i64 r = a % b;
  return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0);
}
// @ dc_remainder_b8
DC_INLINE signed char dc_remainder_b8(bool, bool) { return 0; }
// @ dc_fmod_[i8 i16]
DC_INLINE TYPE dc_fmod_SUFFIX(TYPE a, TYPE b) {
  if (__builtin_constant_p(b) && b == 0) dc_raise_divide();
  const float q = __builtin_truncf((float)(b == 0 ? 1 : a) / (float)b);
  return b == 0 ? (TYPE)0 : (TYPE)((UNSIGNED)a - (UNSIGNED)(int)q * (UNSIGNED)b);
}
// @ dc_fmod_i32
DC_INLINE int dc_fmod_i32(int a, int b) {
  if (__builtin_constant_p(b) && b == 0) dc_raise_divide();
  const double q = __builtin_trunc((double)(b == 0 ? 1 : a) / (double)b);
  return b == 0 ? 0 : (int)((unsigned int)a - (unsigned int)(i64)q * (unsigned int)b);
}
// @ dc_fmod_[u8 u16 u32 u64]
DC_INLINE TYPE dc_fmod_SUFFIX(TYPE a, TYPE b) { return dc_remainder_SUFFIX(a, b); }
// @ dc_fmod_i64
DC_INLINE i64 dc_fmod_i64(i64 a, i64 b) {
  if (b == 0) dc_raise_divide();
  return b == 0 || b == -1 ? 0 : a % b;
}
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
