// Single-precision functions. The most used are computed in single precision; the others in double.

// @ dc_pow2_f32
DC_INLINE float dc_pow2_f32(int n) { return dc_from_bits_f32((unsigned int)(n + 127) << 23); }
// What is below all denormals (masked scores are -inf) must not be computed as one: processors take long.
// @ dc_exp_f32
DC_INLINE float dc_exp_f32(float x0) {
  const bool zero = x0 < -104.0f;
  float x = x0 > 89.0f ? 89.0f : x0;
  x = zero ? 0.0f : x;
  const float n = __builtin_rintf(x * 0x1.715476p+0f);
  float r = __builtin_fmaf(-n, 0x1.62e43p-1f, x);
  r = __builtin_fmaf(-n, -0x1.05c61p-29f, r);
  POLY(p, r, 0.5f, 0.1666657667f, 0.04166655421f, 0.008363232884f, 0.001392625083f);
  const float y = 1.0f + __builtin_fmaf(r * r, p, r);
  const int k = (int)n;
  const int half = k >> 1;
  const float scaled = y * dc_pow2_f32(half) * dc_pow2_f32(k - half);
  return zero ? 0.0f : scaled;
}
// @ dc_log_f32
DC_INLINE float dc_log_f32(float x) {
  const bool tiny = x < 0x1p-126f;
  const unsigned int u = dc_bits_f32(tiny ? x * 0x1p25f : x);
  const int k = (int)(u - 0x3f3504f3u) >> 23;
  const float f = dc_from_bits_f32(u - ((unsigned int)k << 23)) - 1.0f;
  const float e = (float)(tiny ? k - 25 : k);
  POLY(p, f, 0.3333333118f, -0.2499999696f, 0.2000071575f, -0.1666780232f, 0.1424905765f, -0.1242568733f, 0.1168541992f, -0.1147973385f, 0.06971611471f);
  const float z = f * f;
  const float low = __builtin_fmaf(e, -0x1.05c61p-29f, __builtin_fmaf(z * f, p, -0.5f * z));
  const float y = __builtin_fmaf(e, 0x1.62e43p-1f, low + f);
  const float end = x == 0 ? -__builtin_inff() : __builtin_nanf("");
  const float top = x < __builtin_inff() ? y : x;
  return x > 0 ? top : end;
}
// The remainder of x by pi/2 and the quadrant, for |x| <= 2^16.
// @ dc_turn_f32
struct dc_turn_f32 { float r; int quadrant; };
DC_INLINE dc_turn_f32 dc_local_turn_f32(float x) {
  const float n = __builtin_rintf(x * 0x1.45f306p-1f);
  float r = __builtin_fmaf(-n, 0x1.921fb6p+0f, x);
  r = __builtin_fmaf(-n, -0x1.777a5cp-25f, r);
  r = __builtin_fmaf(-n, -0x1.ee59dap-50f, r);
  return {r, (int)n};
}
// @ dc_sin_kernel_f32
DC_INLINE float dc_sin_kernel_f32(float r) {
  const float z = r * r;
  POLY(p, z, -0.1666666666f, 0.008333331785f, -0.0001984003887f, 2.724378141e-6f);
  return __builtin_fmaf(r * z, p, r);
}
// @ dc_cos_kernel_f32
DC_INLINE float dc_cos_kernel_f32(float r) {
  const float z = r * r;
  POLY(p, z, 0.04166666666f, -0.00138888876f, 2.480056043e-5f, -2.729583083e-7f);
  return __builtin_fmaf(z * z, p, __builtin_fmaf(-0.5f, z, 1.0f));
}
// @ dc_sin_f32
DC_INLINE float dc_sin_f32(float x) {
  const dc_turn_f32 t = dc_local_turn_f32(x);
  const float y = (t.quadrant & 1) ? dc_cos_kernel_f32(t.r) : dc_sin_kernel_f32(t.r);
  const float signed_y = (t.quadrant & 2) ? -y : y;
  return x == 0 ? x : signed_y;
}
// @ dc_cos_f32
DC_INLINE float dc_cos_f32(float x) {
  const dc_turn_f32 t = dc_local_turn_f32(x);
  const float y = (t.quadrant & 1) ? dc_sin_kernel_f32(t.r) : dc_cos_kernel_f32(t.r);
  return ((t.quadrant + 1) & 2) ? -y : y;
}
// @ dc_tan_f32
DC_INLINE float dc_tan_f32(float x) { return (float)dc_tan_f64((double)x); }
// @ dc_far_sin_f32
DC_INLINE int dc_far_sin_f32(float x) { return (__builtin_fabsf(x) > 0x1p16f) & (__builtin_fabsf(x) < __builtin_inff()); }
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
// @ dc_tanh_f32
DC_INLINE float dc_tanh_f32(float x) {
  const float a = __builtin_fabsf(x);
  const float z = a * a;
  POLY(p, z, -0.3333333316f, 0.1333330131f, -0.05395873069f, 0.02176464921f, -0.008330076704f, 0.002277154837f);
  const float small = __builtin_fmaf(a * z, p, a);
  const float e = dc_exp_f32(2.0f * (a > 20.0f ? 20.0f : a));
  const float large = 1.0f - 2.0f / (e + 1.0f);
  return __builtin_copysignf(a < 0.625f ? small : large, x);
}
// 1/(1+z) with the rounding errors of sum and quotient put back
// @ dc_sigmoid_f32
DC_INLINE float dc_sigmoid_f32(float x) {
  const float z = dc_exp_f32(-__builtin_fabsf(x));
  const float sum = 1.0f + z;
  const float lost = z - (sum - 1.0f);
  const float near = 1.0f / sum;
  const float error = __builtin_fmaf(-near, sum, 1.0f) - near * lost;
  const float quotient = __builtin_fmaf(near, error, near);
  return x < 0 ? z * quotient : quotient;
}
// @ dc_erf_f32
DC_INLINE float dc_erf_f32(float x) {
  const float a = __builtin_fabsf(x) > 4.0f ? 4.0f : __builtin_fabsf(x);
  const float z = a * a;
  POLY(p, z, 0.1283791658f, -0.3761262596f, 0.1128358542f, -0.02685377022f, 0.005188148924f, -0.0008007761015f, 7.84301924e-5f);
  const float u = (a - 2.0f) / (a + 2.0f);
  POLY(q, u, 0.2553956763f, -0.4271859902f, 0.2416581964f, -0.0789682863f, 0.00373252335f, 0.006810962131f, -0.0008390616633f);
  const float y = a < 1.0f ? __builtin_fmaf(a, p, a) : 1.0f - dc_exp_f32(-z) * q;
  return x != x ? x : __builtin_copysignf(y, x);
}

// Through double precision: the error is that of the final rounding.
// @ dc_exp2_f32
DC_INLINE float dc_exp2_f32(float x) { return (float)dc_exp2_f64((double)x); }
// @ dc_expm1_f32
DC_INLINE float dc_expm1_f32(float x) { return (float)dc_expm1_f64((double)x); }
// @ dc_log2_f32
DC_INLINE float dc_log2_f32(float x) { return (float)dc_log2_f64((double)x); }
// @ dc_log10_f32
DC_INLINE float dc_log10_f32(float x) { return (float)dc_log10_f64((double)x); }
// @ dc_log1p_f32
DC_INLINE float dc_log1p_f32(float x) { return (float)dc_log1p_f64((double)x); }
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
  double q = a == 0 ? -by.at_infinity : y * log_x;
  q = a == __builtin_inf() ? by.at_infinity : q;
  q = q > 700.0 ? 700.0 : q;
  q = q < -700.0 ? -700.0 : q;
  const double shifted = __builtin_fma(q, 0x1.71547652b82fep+0, 0x1.80000000003ffp52);
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
  const unsigned int u = dc_bits_f32(tiny ? a * 0x1p24f : a);
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
  return finite ? __builtin_copysignf(scaled, x) : x + x;
}
