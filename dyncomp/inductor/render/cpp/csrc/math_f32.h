// Single-precision functions. The most used are computed in single precision; the others in double.

// p * 2^n in two steps, the first of which is exact: as dc_scale_f64. n is given as the rounded sum
// n + 0x1.8001fcp23, whose low bits are n + 2 * 127. A processor that adds in units of their own has the shifts for
// nothing beside the multiplications.
// @ dc_scale_f32
DC_INLINE float dc_scale_f32(float p, float shifted) {
  const unsigned int u = dc_bits_f32(shifted);
  const unsigned int half = u >> 1;
  return p * dc_from_bits_f32(half << 23) * dc_from_bits_f32((u - half) << 23);
}
// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2
// @ dc_exp_tail_f32
DC_INLINE float dc_exp_tail_f32(float r) {
  POLY(p, r, 0.5f, 0.1666657667f, 0.04166655421f, 0.008363232884f, 0.001392625083f);
  return p;
}
// What is below all denormals (masked scores are -inf) is taken for 2^-254, for which both of dc_scale_f32's factors
// are 0: it must not be computed as a denormal, processors take long.
// @ dc_exp_f32
DC_INLINE float dc_exp_f32(float x0) {
  const float x = x0 < -104.0f ? -176.0f : x0;
  const float most = x > 89.0f ? 89.0f : x;  // r is not bounded: an infinite argument is no overflow
  const float shifted = __builtin_fmaf(most, 0x1.715476p+0f, 0x1.8001fcp23f);
  const float n = shifted - 0x1.8001fcp23f;
  float r = __builtin_fmaf(-n, 0x1.62e43p-1f, x);
  r = __builtin_fmaf(-n, -0x1.05c61p-29f, r);
  const float y = __builtin_fmaf(__builtin_fmaf(dc_exp_tail_f32(r), r, 1.0f), r, 1.0f);
  return dc_scale_f32(y, shifted);
}
// @ dc_exp2_f32
DC_INLINE float dc_exp2_f32(float x0) {
  const float x = x0 < -150.0f ? -254.0f : x0;
  const float most = x > 129.0f ? 129.0f : x;
  const float shifted = most + 0x1.8001fcp23f;
  const float f = x - (shifted - 0x1.8001fcp23f);
  POLY(p, f, 1.0f, 0.6931472067f, 0.2402265092f, 0.05550327227f, 0.009618056679f, 0.001340042818f, 0.000154614447f);
  return dc_scale_f32(p, shifted);
}
// exp(x) - 1 = (2^n * p) + (2^n - 1), halved as 2^128 is none. Arguments are their own results below 2^-25.
// @ dc_expm1_f32
DC_INLINE float dc_expm1_f32(float x0) {
  const float x = x0 < -18.0f ? -18.0f : x0;
  const float most = x > 89.0f ? 89.0f : x;
  const float shifted = __builtin_fmaf(most, 0x1.715476p+0f, 0x1.8000fcp23f);
  const float n = shifted - 0x1.8000fcp23f;
  float r = __builtin_fmaf(-n, 0x1.62e43p-1f, x);
  r = __builtin_fmaf(-n, -0x1.05c61p-29f, r);
  const float p = __builtin_fmaf(r * r, dc_exp_tail_f32(r), r);
  const float half = dc_from_bits_f32(dc_bits_f32(shifted) << 23);  // 2^(n-1)
  const float y = __builtin_fmaf(p, half, half - 0.5f);
  return __builtin_fabsf(x0) < 0x1p-25f ? x0 : y + y;
}
// x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); x positive and finite
// @ dc_split_f32
struct dc_split_f32 { float e, f; };
DC_INLINE dc_split_f32 dc_local_split_f32(float x) {
  const bool tiny = x < 0x1p-126f;
  const unsigned int u = dc_bits_f32(x * (tiny ? 0x1p25f : 1.0f)) - (tiny ? 25u << 23 : 0u);
  const int k = (int)(u - 0x3f3504f3u) >> 23;
  return {(float)k, dc_from_bits_f32(u - ((unsigned int)k << 23)) - 1.0f};
}
// (log(1+f) - f) / f^2
// @ dc_log_tail_f32
DC_INLINE float dc_log_tail_f32(float f) {
  POLY(p, f, 0.3333333118f, -0.2499999696f, 0.2000071575f, -0.1666780232f, 0.1424905765f, -0.1242568733f, 0.1168541992f, -0.1147973385f, 0.06971611471f);
  return __builtin_fmaf(f, p, -0.5f);
}
// what logarithms give at and beyond the ends of their domain
// @ dc_log_ends_f32
DC_INLINE float dc_log_ends_f32(float x, float y) {
  const float end = x == 0 ? -__builtin_inff() : __builtin_nanf("");
  const float top = x < __builtin_inff() ? y : x;
  return x > 0 ? top : end;
}
// @ dc_log_f32
DC_INLINE float dc_log_f32(float x) {
  const dc_split_f32 a = dc_local_split_f32(x);
  const float low = __builtin_fmaf(a.f * a.f, dc_log_tail_f32(a.f), a.e * -0x1.05c61p-29f);
  return dc_log_ends_f32(x, __builtin_fmaf(a.e, 0x1.62e43p-1f, low + a.f));
}
// @ dc_log2_f32
DC_INLINE float dc_log2_f32(float x) {
  const dc_split_f32 a = dc_local_split_f32(x);
  const float rest = a.f * a.f * dc_log_tail_f32(a.f);
  const float low = __builtin_fmaf(rest, 0x1.715476p+0f, a.f * 0x1.4ae0cp-26f);
  return dc_log_ends_f32(x, a.e + __builtin_fmaf(a.f, 0x1.715476p+0f, low));
}
// 1 + x = 2^k * (1 + f): f = 2^-k * x + (2^-k - 1) is rounded once, whatever 1 + x lost (times 4: 2^-128 is denormal)
// @ dc_log1p_f32
DC_INLINE float dc_log1p_f32(float x) {
  const float sum = 1.0f + x;
  const int k = (int)(dc_bits_f32(sum) - 0x3f3504f3u) >> 23;
  const float scale = dc_from_bits_f32(0x40800000u - ((unsigned int)k << 23));
  const float f = 0.25f * __builtin_fmaf(x, scale, scale - 4.0f);
  const float e = (float)k;
  const float low = __builtin_fmaf(f * f, dc_log_tail_f32(f), e * -0x1.05c61p-29f);
  const float y = __builtin_fmaf(e, 0x1.62e43p-1f, low + f);
  return __builtin_copysignf(dc_log_ends_f32(sum, y), x);
}
// The remainder of x by pi/2, for |x| <= 2^16; the low bits of `shifted` are the quadrant, counted from `first`.
// @ dc_turn_f32
struct dc_turn_f32 { float r; unsigned int quadrant; };
DC_INLINE dc_turn_f32 dc_local_turn_f32(float x, float first) {
  const float shifted = __builtin_fmaf(x, 0x1.45f306p-1f, first + 0x1.8p23f);
  const float n = shifted - (first + 0x1.8p23f);
  float r = __builtin_fmaf(-n, 0x1.921fb6p+0f, x);
  r = __builtin_fmaf(-n, -0x1.777a5cp-25f, r);
  r = __builtin_fmaf(-n, -0x1.ee59dap-50f, r);
  return {r, dc_bits_f32(shifted)};
}
// sin(r), or in odd quadrants cos(r) = 1 + r^2 * (...), with the sign of the quadrant
// @ dc_wave_f32
DC_INLINE float dc_wave_f32(dc_turn_f32 t) {
  const bool odd = t.quadrant & 1;
  const float z = t.r * t.r;
  POLY_IF(p, z, odd, -0.4999999997f | -0.1666666666f, 0.04166664966f | 0.008333331785f, -0.001388753661f | -0.0001984003887f, 2.445704296e-5f | 2.724378141e-6f);
  const float base = odd ? 1.0f : t.r;
  const float y = __builtin_fmaf(base * z, p, base);
  return dc_from_bits_f32(dc_bits_f32(y) ^ (t.quadrant << 30 & 0x80000000u));
}
// @ dc_sin_f32
DC_INLINE float dc_sin_f32(float x) {
  const float y = dc_wave_f32(dc_local_turn_f32(x, 0.0f));
  return x == 0 ? x : y;
}
// @ dc_cos_f32
DC_INLINE float dc_cos_f32(float x) { return dc_wave_f32(dc_local_turn_f32(x, 1.0f)); }
// @ dc_tan_f32
DC_INLINE float dc_tan_f32(float x) { return (float)dc_tan_f64((double)x); }
// @ dc_far_sin_f32
DC_INLINE int dc_far_sin_f32(float x) { return __builtin_fabsf(x) > 0x1p16f; }
// @ dc_far_cos_f32
DC_INLINE int dc_far_cos_f32(float x) { return dc_far_sin_f32(x); }
// @ dc_far_tan_f32
DC_INLINE int dc_far_tan_f32(float x) { return dc_far_sin_f64((double)x); }
// @ dc_full_sin_f32
DC_INLINE float dc_full_sin_f32(float x) { return dc_far_sin_f32(x) ? (float)dc_full_sin_f64((double)x) : dc_sin_f32(x); }
// @ dc_full_cos_f32
DC_INLINE float dc_full_cos_f32(float x) { return dc_far_sin_f32(x) ? (float)dc_full_cos_f64((double)x) : dc_cos_f32(x); }
// @ dc_full_tan_f32
DC_INLINE float dc_full_tan_f32(float x) { return (float)dc_full_tan_f64((double)x); }
// a + a^3 * P(a^2), or beyond 0.55 1 - 2 / (exp(2a) + 1), one polynomial with chosen coefficients
// @ dc_tanh_f32
DC_INLINE float dc_tanh_f32(float x) {
  const float size = __builtin_fabsf(x);
  const float a = size > 10.0f ? 10.0f : size;
  const float z = a * a;
  const float shifted = __builtin_fmaf(a, 0x1.715476p+1f, 0x1.8000fep23f);
  const float n = shifted - 0x1.8000fep23f;
  const float r = __builtin_fmaf(-n, 0x1.62e43p-1f, a + a);
  const bool near = a < 0.55f;
  const float w = near ? z : r;
  POLY_IF(p, w, near, -0.3333333201f | 0.5f, 0.1333311373f | 0.1666657667f, -0.05390942883f | 0.04166655421f, 0.02130938866f | 0.008363232884f, -0.006610227831f | 0.001392625083f);
  const float y = __builtin_fmaf(__builtin_fmaf(p, r, 1.0f), r, 1.0f);
  const float power = dc_from_bits_f32(dc_bits_f32(shifted) << 23);  // 2^n
  const float far = 1.0f - 2.0f / __builtin_fmaf(y, power, 1.0f);
  return __builtin_copysignf(near ? __builtin_fmaf(a * z, p, a) : far, x);
}
// For sums with a one: the form above of large arguments for all, wrong by less than an ulp of one.
// @ dc_tanh_beside_one_f32
DC_INLINE float dc_tanh_beside_one_f32(float x) {
  const float size = __builtin_fabsf(x);
  const float a = size > 10.0f ? 10.0f : size;
  const float shifted = __builtin_fmaf(a, 0x1.715476p+1f, 0x1.8000fep23f);
  const float n = shifted - 0x1.8000fep23f;
  const float r = __builtin_fmaf(-n, 0x1.62e43p-1f, a + a);
  POLY(p, r, 0.5f, 0.1666657667f, 0.04166655421f, 0.008363232884f, 0.001392625083f);
  const float y = __builtin_fmaf(__builtin_fmaf(p, r, 1.0f), r, 1.0f);
  const float power = dc_from_bits_f32(dc_bits_f32(shifted) << 23);  // 2^n
  return __builtin_copysignf(1.0f - 2.0f / __builtin_fmaf(y, power, 1.0f), x);
}
// 1 / (1 + exp(-x)) with exp(-x) = 2^n * (1 + rest), numerator and denominator times 2^(-n/2): no sum is infinite,
// and what is denormal is a quotient's rounding. The denominator's small terms are added first.
// @ dc_sigmoid_f32
DC_INLINE float dc_sigmoid_f32(float x0) {
  const float most = x0 > 104.0f ? 104.0f : x0;
  const float x = x0 < -104.0f ? -104.0f : most;
  const float shifted = __builtin_fmaf(x, -0x1.715476p+0f, 0x1.8001fcp23f);
  const float n = shifted - 0x1.8001fcp23f;
  float r = __builtin_fmaf(-n, 0x1.62e43p-1f, -x);
  r = __builtin_fmaf(-n, -0x1.05c61p-29f, r);
  const float rest = __builtin_fmaf(r * r, dc_exp_tail_f32(r), r);
  const unsigned int u = dc_bits_f32(shifted);
  const unsigned int half = u << 22 & 0x7f800000u;
  const unsigned int up = (u << 23) - half;
  const unsigned int down = 0x7f000000u - half;
  const float less = dc_from_bits_f32(up < down ? up : down);
  const float more = dc_from_bits_f32(up < down ? down : up);
  const float sum = more + less;
  const float lost = less - (sum - more);
  return dc_from_bits_f32(down) / (sum + __builtin_fmaf(rest, dc_from_bits_f32(up), lost));
}
// a + a * P(a^2), or beyond 0.9 1 - exp(-v) with v = a + a * Q(a): both are one polynomial with chosen coefficients
// @ dc_erf_f32
DC_INLINE float dc_erf_f32(float x) {
  const float size = __builtin_fabsf(x);
  const float a = size > 4.0f ? 4.0f : size;
  const bool near = a < 0.9f;
  const float w = near ? a * a : a;
  POLY_IF(p, w, near, 0.1283791547f | 0.128529795f, -0.376125288f | 0.6356629366f, 0.1128219409f | 0.1053394074f, -0.02678071913f | -0.02294290924f, 0.005014484151f | 0.003232551159f, -0.0006102687037f | -0.0002162609108f);
  const float v = __builtin_fmaf(a, p, a);
  const float shifted = __builtin_fmaf(v, -0x1.715476p+0f, 0x1.8000fep23f);
  const float n = shifted - 0x1.8000fep23f;
  const float r = __builtin_fmaf(-n, 0x1.62e43p-1f, -v);
  const float y = __builtin_fmaf(__builtin_fmaf(dc_exp_tail_f32(r), r, 1.0f), r, 1.0f);
  const float power = dc_from_bits_f32(dc_bits_f32(shifted) << 23);  // 2^n
  return __builtin_copysignf(near ? v : __builtin_fmaf(-y, power, 1.0f), x);
}

// Through double precision: the error is that of the final rounding.
// @ dc_log10_f32
DC_INLINE float dc_log10_f32(float x) { return (float)dc_log10_f64((double)x); }
// @ dc_arcsin_f32
DC_INLINE float dc_arcsin_f32(float x) { return (float)dc_arcsin_f64((double)x); }
// @ dc_arccos_f32
DC_INLINE float dc_arccos_f32(float x) { return (float)dc_arccos_f64((double)x); }
// @ dc_arctan_f32
DC_INLINE float dc_arctan_f32(float x) { return (float)dc_arctan_f64((double)x); }
// @ dc_sinh_f32
DC_INLINE float dc_sinh_f32(float x) { return (float)dc_sinh_f64((double)x); }
// @ dc_cosh_f32
DC_INLINE float dc_cosh_f32(float x) { return (float)dc_cosh_f64((double)x); }
// @ dc_arcsinh_f32
DC_INLINE float dc_arcsinh_f32(float x) { return (float)dc_arcsinh_f64((double)x); }
// @ dc_arccosh_f32
DC_INLINE float dc_arccosh_f32(float x) { return (float)dc_arccosh_f64((double)x); }
// @ dc_arctanh_f32
DC_INLINE float dc_arctanh_f32(float x) { return (float)dc_arctanh_f64((double)x); }
// @ dc_arctan2_f32
DC_INLINE float dc_arctan2_f32(float y, float x) { return (float)dc_arctan2_f64((double)y, (double)x); }
// @ dc_erfc_f32
DC_INLINE float dc_erfc_f32(float x) { return (float)dc_erfc_f64((double)x); }
// A double's range holds |x|^y wherever a float's does, and its precision needs no correction terms.
// @ dc_pow_f32
DC_INLINE float dc_pow_f32(float x, float y0) {
  const double y = y0;
  const dc_exponent_f64 by = dc_local_exponent_f64(y);
  const double a = __builtin_fabs((double)x);
  const dc_split_f64 w = dc_local_normal_split_f64(a);
  const double s = w.f / (2.0 + w.f);
  const double z = s * s;
  POLY(tail, z, 0x1.5555554b4d3ccp-1, 0x1.9999ede294843p-2, 0x1.245b27112cd29p-2, 0x1.de0b02165e769p-3);
  const double log_x = __builtin_fma(w.k, 0x1.62e42fefa39efp-1, __builtin_fma(s * z, tail, s + s));
  double q = dc_bounded_f64(y) * log_x;
  q = __builtin_fabs(y) == __builtin_inf() ? __builtin_copysign(__builtin_inf(), q) : q;
  q = a == 0 ? -by.at_infinity : q;
  q = a < __builtin_inf() ? q : by.at_infinity;  // NaN must not overflow
  q = q < -700.0 ? -700.0 : q;
  const double most = q > 700.0 ? 700.0 : q;
  const double shifted = __builtin_fma(most, 0x1.71547652b82fep+0, 0x1.80000000003ffp52);
  const double r = __builtin_fma(-(shifted - 0x1.80000000003ffp52), 0x1.62e42fefa39efp-1, q);
  POLY(rest, r, 0x1.0000000000000p-1, 0x1.5554dc8961859p-3, 0x1.555518f5d1200p-5, 0x1.120be1dcb42dcp-7, 0x1.6d117cc039048p-10);
  const double p = __builtin_fma(r * r, rest, r) + 1.0;
  const double power = p * dc_from_bits_f64(dc_bits_f64(shifted) << 52);
  return (float)dc_pow_ends((double)x, a, power, by.odd_sign, by.negative_limit, by.at_nan);
}
// As the double-precision one; the last correction makes up for the rounding errors before it.
// @ dc_cbrt_f32
DC_INLINE float dc_cbrt_f32(float x) {
  const float a = __builtin_fabsf(x);
  const bool tiny = a < 0x1p-126f;
  const unsigned int u = dc_bits_f32(a * (tiny ? 0x1p24f : 1.0f));
  const float k = (float)((int)(u >> 23) - (tiny ? 151 : 127));
  const float m = dc_from_bits_f32((u & 0x7fffffu) | 0x3f800000u);
  const float shifted = __builtin_fmaf(k, 0x1.555556p-2f, 0x1.8000fep23f);
  const float left = __builtin_fmaf(-3.0f, shifted - 0x1.8000fep23f, k);
  const float w = m * __builtin_fmaf(left, __builtin_fmaf(left, 0.25f, 0.75f), 1.0f);
  const float turn = __builtin_fmaf(left, __builtin_fmaf(left, 0.0268107879f, -0.233110262f), 1.0f);
  POLY(guess, m, 1.383505919f, -0.4768420562f, 0.09126116885f);
  float r = guess * turn;
  float square = r * r;
  const float off = __builtin_fmaf(-w * r, square, 1.0f);
  r = __builtin_fmaf(r * off, __builtin_fmaf(off, 0x1.c71c72p-3f, 0x1.555556p-2f), r);
  square = r * r;
  const float y = w * square;
  const float y_square = y * y;
  const float y_square_low = __builtin_fmaf(y, y, -y_square);
  const float residual = __builtin_fmaf(-y_square_low, y, __builtin_fmaf(-y_square, y, w));
  const float root = __builtin_fmaf(residual * square, 0x1.555556p-2f, y);
  const float scaled = root * dc_from_bits_f32(dc_bits_f32(shifted) << 23);
  const bool finite = (a > 0) & (a < __builtin_inff());
  return finite ? __builtin_copysignf(scaled, x) : x;
}
