// Double-precision functions, branch-free so that they vectorise, at most 2 ulp from the true value.
// Argument reductions are the classical ones (Cody & Waite; W. J. Cody, W. Waite, "Software Manual for the
// Elementary Functions", 1980; log1p's correction after W. Kahan); polynomials were made by Chebyshev
// interpolation in 60-digit arithmetic (tests/inductor/test_render_vecmath.py measures the result).

// 2^n for integral -1022 <= n <= 1023: the sum's low bits are n in two's complement.
// @ dc_pow2_f64
DC_INLINE double dc_pow2_f64(double n) { return dc_from_bits_f64((dc_bits_f64(n + 0x1.8p52) + 1023) << 52); }
// p * 2^n in two exact steps, so that overflow and denormals come out right
// @ dc_scale_f64
DC_INLINE double dc_scale_f64(double p, double n) {
  const double half = (n * 0.5 + 0x1.8p52) - 0x1.8p52;
  return p * dc_pow2_f64(half) * dc_pow2_f64(n - half);
}
// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2
// @ dc_exp_tail_f64
DC_INLINE double dc_exp_tail_f64(double r) {
  POLY(p, r, 0x1.0000000000000p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100bep-7, 0x1.6c16c16c162c3p-10, 0x1.a01a01abf85abp-13, 0x1.a01a01a6e1e2ap-16, 0x1.71de01fdbf9cap-19, 0x1.27e4db46cddd1p-22, 0x1.af4e554377204p-26, 0x1.1f7340dbc337ep-29);
  return p;
}
// exp(x + low), |low| far below |x|
// @ dc_exp_sum_f64
DC_INLINE double dc_exp_sum_f64(double x0, double low) {
  double x = x0 > 711.0 ? 711.0 : x0;
  x = x < -746.0 ? -746.0 : x;
  const double n = (x * 0x1.71547652b82fep+0 + 0x1.8p52) - 0x1.8p52;
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, x);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r) + low;
  const double p = 1.0 + __builtin_fma(r * r, dc_exp_tail_f64(r), r);
  return dc_scale_f64(p, n);
}
// @ dc_exp_f64
DC_INLINE double dc_exp_f64(double x0) {
  double x = x0 > 711.0 ? 711.0 : x0;
  x = x < -746.0 ? -746.0 : x;
  const double n = (x * 0x1.71547652b82fep+0 + 0x1.8p52) - 0x1.8p52;
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, x);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r);
  return dc_scale_f64(1.0 + __builtin_fma(r * r, dc_exp_tail_f64(r), r), n);
}
// @ dc_exp2_f64
DC_INLINE double dc_exp2_f64(double x0) {
  double x = x0 > 1025.0 ? 1025.0 : x0;
  x = x < -1080.0 ? -1080.0 : x;
  const double n = (x + 0x1.8p52) - 0x1.8p52;
  const double f = x - n;
  const double high = f * 0x1.62e42fefa39efp-1;
  const double low = __builtin_fma(f, 0x1.62e42fefa39efp-1, -high) + f * 0x1.abc9e3b39803fp-56;
  const double p = 1.0 + (high + __builtin_fma(high * high, dc_exp_tail_f64(high), low));
  return dc_scale_f64(p, n);
}
// @ dc_expm1_f64
DC_INLINE double dc_expm1_f64(double x0) {
  double x = x0 > 711.0 ? 711.0 : x0;
  x = x < -60.0 ? -60.0 : x;
  const double n = (x * 0x1.71547652b82fep+0 + 0x1.8p52) - 0x1.8p52;
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, x);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r);
  const double p = __builtin_fma(r * r, dc_exp_tail_f64(r), r);
  // one power of two less: 2^1024 is no double
  const double half = dc_pow2_f64(n - 1.0);
  const double y = 2.0 * __builtin_fma(p, half, half - 0.5);
  return x0 == 0 ? x0 : y;
}
// x = 2^k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); x positive and finite
// @ dc_split_f64
struct dc_split_f64 { double k, f; };
DC_INLINE dc_split_f64 dc_local_split_f64(double x) {
  const bool tiny = x < 0x1p-1022;
  const u64 u = dc_bits_f64(tiny ? x * 0x1p54 : x);
  const u64 e = (u - 0x3fe6a09e667f3bcdULL + 0x3ff0000000000000ULL) >> 52;
  const double m = dc_from_bits_f64(u - (e << 52) + 0x3ff0000000000000ULL);
  // e < 2^11 as a double: it becomes the low bits of 2^52
  const double k = dc_from_bits_f64(0x4330000000000000ULL | e) - (0x1p52 + 1023.0);
  return {tiny ? k - 54.0 : k, m - 1.0};
}
// (log((1+s)/(1-s)) - 2s) / s^3 as a polynomial in z = s^2
// @ dc_log_tail_f64
DC_INLINE double dc_log_tail_f64(double z) {
  POLY(p, z, 0x1.5555555555555p-1, 0x1.9999999999a43p-2, 0x1.249249247513dp-2, 0x1.c71c7204621fep-3, 0x1.745cf7c1d5dafp-3, 0x1.3b1c79943fca2p-3, 0x1.0fb77bcdefa76p-3, 0x1.0c4d8297b1431p-3);
  return p;
}
// log(1+f) - f
// @ dc_log_rest_f64
DC_INLINE double dc_log_rest_f64(double f) {
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double half = 0.5 * f * f;
  return s * (half + z * dc_log_tail_f64(z)) - half;
}
// what all logarithms give at and beyond the ends of their domain
// @ dc_log_ends_f64
DC_INLINE double dc_log_ends_f64(double x, double y) {
  const double end = x == 0 ? -__builtin_inf() : __builtin_nan("");
  const double top = x < __builtin_inf() ? y : x;
  return x > 0 ? top : end;
}
// @ dc_log_f64
DC_INLINE double dc_log_f64(double x) {
  const dc_split_f64 a = dc_local_split_f64(x);
  const double low = __builtin_fma(a.k, 0x1.a39ef35793c76p-33, dc_log_rest_f64(a.f));
  return dc_log_ends_f64(x, __builtin_fma(a.k, 0x1.62e42feep-1, low + a.f));
}
// @ dc_log1p_f64
DC_INLINE double dc_log1p_f64(double x) {
  const double u = 1.0 + x;
  const double lost = x < 1.0 ? x - (u - 1.0) : 1.0 - (u - x);
  const dc_split_f64 a = dc_local_split_f64(u);
  const double low = __builtin_fma(a.k, 0x1.a39ef35793c76p-33, dc_log_rest_f64(a.f) + lost / u);
  const double y = __builtin_fma(a.k, 0x1.62e42feep-1, low + a.f);
  return x == 0 ? x : dc_log_ends_f64(u, y);
}
// k * ck + log(1+f) * (high + low), the leading product without rounding error
// @ dc_log_scaled_f64
DC_INLINE double dc_log_scaled_f64(double k, double k_low, double f, double high, double low) {
  const double p = f * high;
  const double q = __builtin_fma(f, high, -p) + __builtin_fma(f, low, dc_log_rest_f64(f) * high);
  const double t = k + p;
  return t + (((k - t) + p) + (q + k_low));
}
// @ dc_log2_f64
DC_INLINE double dc_log2_f64(double x) {
  const dc_split_f64 a = dc_local_split_f64(x);
  return dc_log_ends_f64(x, dc_log_scaled_f64(a.k, 0.0, a.f, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56));
}
// @ dc_log10_f64
DC_INLINE double dc_log10_f64(double x) {
  const dc_split_f64 a = dc_local_split_f64(x);
  const double k = a.k * 0x1.34413508p-2;
  const double k_low = a.k * 0x1.f79fef311f12bp-34;
  return dc_log_ends_f64(x, dc_log_scaled_f64(k, k_low, a.f, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57));
}
// The remainder high + low of x by pi/2 and the quadrant, for |x| <= 2^40.
// @ dc_turn_f64
struct dc_turn_f64 { double high, low; u64 quadrant; };
DC_INLINE dc_turn_f64 dc_local_turn_f64(double x) {
  const double shifted = x * 0x1.45f306dc9c883p-1 + 0x1.8p52;
  const double n = shifted - 0x1.8p52;
  // exact: both terms are multiples of 2^-52 and their difference is below 1
  const double r = __builtin_fma(-n, 0x1.921fb54442d18p+0, x);
  const double p = n * 0x1.1a62633145c07p-54;
  const double p_low = __builtin_fma(n, 0x1.1a62633145c07p-54, -p);
  const double a = r - p;
  const double rest = __builtin_fma(n, 0x1.f1976b7ed8fbcp-110, ((r - a) - p) - p_low);
  const double high = a + rest;
  return {high, (a - high) + rest, dc_bits_f64(shifted)};
}
// @ dc_sin_kernel_f64
DC_INLINE double dc_sin_kernel_f64(double r, double low) {
  const double z = r * r;
  POLY(p, z, -0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a019880p-13, 0x1.71de3a544a6cep-19, -0x1.ae6453ecab5c4p-26, 0x1.612161267019ep-33, -0x1.ab066192d3e8fp-41);
  return r + __builtin_fma(r * z, p, low * __builtin_fma(-0.5, z, 1.0));
}
// @ dc_cos_kernel_f64
DC_INLINE double dc_cos_kernel_f64(double r, double low) {
  const double z = r * r;
  POLY(p, z, 0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019cb8p-16, -0x1.27e4fb7708fb2p-22, 0x1.1eed8ddaa5390p-29, -0x1.93949f74df9adp-37, 0x1.ab68d5c08a457p-45);
  const double half = 0.5 * z;
  const double w = 1.0 - half;
  return w + (((1.0 - w) - half) + __builtin_fma(z * z, p, -r * low));
}
// @ dc_sin_f64
DC_INLINE double dc_sin_f64(double x) {
  const dc_turn_f64 t = dc_local_turn_f64(x);
  const double s = dc_sin_kernel_f64(t.high, t.low);
  const double c = dc_cos_kernel_f64(t.high, t.low);
  const double y = (t.quadrant & 1) ? c : s;
  const double signed_y = (t.quadrant & 2) ? -y : y;
  return x == 0 ? x : signed_y;
}
// @ dc_cos_f64
DC_INLINE double dc_cos_f64(double x) {
  const dc_turn_f64 t = dc_local_turn_f64(x);
  const double s = dc_sin_kernel_f64(t.high, t.low);
  const double c = dc_cos_kernel_f64(t.high, t.low);
  const double y = (t.quadrant & 1) ? s : c;
  return ((t.quadrant + 1) & 2) ? -y : y;
}
// @ dc_tan_f64
DC_INLINE double dc_tan_f64(double x) {
  const dc_turn_f64 t = dc_local_turn_f64(x);
  const double s = dc_sin_kernel_f64(t.high, t.low);
  const double c = dc_cos_kernel_f64(t.high, t.low);
  const double y = ((t.quadrant & 1) ? -c : s) / ((t.quadrant & 1) ? s : c);
  return x == 0 ? x : y;
}
// Arguments that the reduction above does not reach; `full` versions give these to the C library.
// @ dc_far_sin_f64
DC_INLINE int dc_far_sin_f64(double x) { return (__builtin_fabs(x) > 0x1p40) & (__builtin_fabs(x) < __builtin_inf()); }
// @ dc_far_cos_f64
DC_INLINE int dc_far_cos_f64(double x) { return dc_far_sin_f64(x); }
// @ dc_far_tan_f64
DC_INLINE int dc_far_tan_f64(double x) { return dc_far_sin_f64(x); }
// @ dc_full_sin_f64
extern "C" double sin(double) noexcept;
DC_INLINE double dc_full_sin_f64(double x) { return dc_far_sin_f64(x) ? sin(x) : dc_sin_f64(x); }
// @ dc_full_cos_f64
extern "C" double cos(double) noexcept;
DC_INLINE double dc_full_cos_f64(double x) { return dc_far_sin_f64(x) ? cos(x) : dc_cos_f64(x); }
// @ dc_full_tan_f64
extern "C" double tan(double) noexcept;
DC_INLINE double dc_full_tan_f64(double x) { return dc_far_sin_f64(x) ? tan(x) : dc_tan_f64(x); }
// atan(t) - t for |t| <= tan(pi/8)
// @ dc_atan_rest_f64
DC_INLINE double dc_atan_rest_f64(double t) {
  const double z = t * t;
  POLY(p, z, -0x1.5555555555555p-2, 0x1.9999999999952p-3, -0x1.249249248d684p-3, 0x1.c71c71c2f37e8p-4, -0x1.745d165a9c002p-4, 0x1.3b139279535a8p-4, -0x1.110e81459346ep-4, 0x1.e19978381e052p-5, -0x1.ac761b5db4f38p-5, 0x1.74c9760b1bea4p-5, -0x1.1aff6533dd0e5p-5, 0x1.0a5f8c60d732bp-6);
  return t * z * p;
}
// @ dc_arctan2_f64
DC_INLINE double dc_arctan2_f64(double y, double x) {
  const double ax = __builtin_fabs(x);
  const double ay = __builtin_fabs(y);
  const bool swap = ay > ax;
  const double big0 = swap ? ay : ax;
  const double small0 = swap ? ax : ay;
  // keep sums from overflowing and quotients from denormal losses
  const double scale = big0 > 0x1p1000 ? 0x1p-10 : big0 < 0x1p-900 ? 0x1p100 : 1.0;
  const bool both_infinite = small0 == __builtin_inf();
  const double big = both_infinite ? 1.0 : big0 * scale;
  const double small = both_infinite ? 1.0 : small0 * scale;
  const bool mid = small > 0x1.a827999fcef32p-2 * big;
  const double quotient = (mid ? small - big : small) / (mid ? small + big : big);
  const double t = big0 == 0 ? 0.0 : quotient;
  const bool left = (dc_bits_f64(x) >> 63) != 0;
  double count = mid ? 1.0 : 0.0;
  count = swap ? 2.0 - count : count;
  count = left ? 4.0 - count : count;
  const double turned = (swap != left) ? -t : t;
  // count * pi/4 is exact for 0, 1, 2 and 4 and nearly so for 3
  const double base = count * 0x1.921fb54442d18p-1;
  const double base_low = __builtin_fma(count, 0x1.921fb54442d18p-1, -base) + count * 0x1.1a62633145c07p-55;
  const double r = base + (turned + (dc_atan_rest_f64(turned) + base_low));
  const double any = (x != x) | (y != y) ? x + y : r;
  return __builtin_copysign(any, y);
}
// @ dc_arctan_f64
DC_INLINE double dc_arctan_f64(double x) {
  const double a = __builtin_fabs(x);
  const bool big = a > 0x1.3504f333f9de6p+1;
  const bool mid = a > 0x1.a827999fcef32p-2;
  const double up = big ? -1.0 : mid ? a - 1.0 : a;
  const double down = big ? a : mid ? a + 1.0 : 1.0;
  const double t = up / down;
  const double base = big ? 0x1.921fb54442d18p+0 : mid ? 0x1.921fb54442d18p-1 : 0.0;
  const double base_low = big ? 0x1.1a62633145c07p-54 : mid ? 0x1.1a62633145c07p-55 : 0.0;
  return __builtin_copysign(base + (t + (dc_atan_rest_f64(t) + base_low)), x);
}
// (asin(sqrt(z))/sqrt(z) - 1) / z for z <= 1/4
// @ dc_asin_tail_f64
DC_INLINE double dc_asin_tail_f64(double z) {
  POLY(p, z, 0x1.5555555555555p-3, 0x1.333333333338bp-4, 0x1.6db6db6dabd04p-5, 0x1.f1c71c7a8c0eap-6, 0x1.6e8ba118f5fd7p-6, 0x1.1c4efe1e69660p-6, 0x1.c9907f8c561b2p-7, 0x1.7b04b32731ab0p-7, 0x1.3b374c6a2c89fp-7, 0x1.31cd3bf734fa0p-7, 0x1.8899fb37b6777p-9, 0x1.42690e2347252p-6, -0x1.3e33ab81c9ef2p-6, 0x1.e70d4739cfcdbp-6);
  return p;
}
// @ dc_arcsin_f64
DC_INLINE double dc_arcsin_f64(double x) {
  const double a = __builtin_fabs(x);
  const bool big = a > 0.5;
  const double z = big ? (1.0 - a) * 0.5 : a * a;
  const double s = big ? __builtin_sqrt(z) : a;
  const double s_low = __builtin_fma(-s, s, z) / (s + s);
  const double rest = s * z * dc_asin_tail_f64(z);
  const double bent = (0x1.921fb54442d18p+0 - 2.0 * s) - (2.0 * (rest + (s > 0 ? s_low : 0.0)) - 0x1.1a62633145c07p-54);
  return __builtin_copysign(big ? bent : s + rest, x);
}
// @ dc_arccos_f64
DC_INLINE double dc_arccos_f64(double x) {
  const double a = __builtin_fabs(x);
  const bool big = a > 0.5;
  const double z = big ? (1.0 - a) * 0.5 : a * a;
  const double s = big ? __builtin_sqrt(z) : a;
  const double s_low = s > 0 ? __builtin_fma(-s, s, z) / (s + s) : 0.0;
  const double rest = s * z * dc_asin_tail_f64(z);
  const double near = 2.0 * (s + (rest + s_low));
  const double far = 0x1.921fb54442d18p+1 - (2.0 * (s + (rest + s_low)) - 0x1.1a62633145c07p-53);
  const double signed_rest = __builtin_copysign(rest, x);
  const double middle = 0x1.921fb54442d18p+0 - (x - (0x1.1a62633145c07p-54 - signed_rest));
  return big ? (x > 0 ? near : far) : middle;
}
// @ dc_tanh_f64
DC_INLINE double dc_tanh_f64(double x) {
  const double a = __builtin_fabs(x);
  const double t = dc_expm1_f64(2.0 * (a > 20.0 ? 20.0 : a));
  const double z = a * a;
  POLY(p, z, -0x1.5555555555555p-2, 0x1.11111111110f7p-3, -0x1.ba1ba1ba1476cp-5, 0x1.664f487cc1f81p-6, -0x1.226e32da2eb26p-7, 0x1.d6d2a07aaec7dp-9, -0x1.7d78ff367c984p-10, 0x1.31e100d23111cp-11, -0x1.a5ec725461335p-13);
  const double small = __builtin_fma(a * z, p, a);
  const double middle = t / (t + 2.0);
  const double large = 1.0 - 2.0 / (t + 2.0);
  const double y = a < 0.3 ? small : a < 0.8 ? middle : large;
  return __builtin_copysign(a != a ? a : y, x);
}
// @ dc_sinh_f64
DC_INLINE double dc_sinh_f64(double x) {
  const double a = __builtin_fabs(x);
  const double t = dc_expm1_f64(a > 709.0 ? 709.0 : a);
  const double e = dc_exp_f64(a * 0.5);
  const double near = t - 0.5 * (t * t) / (t + 1.0);
  const double middle = 0.5 * (t + t / (t + 1.0));
  const double y = a < 1.0 ? near : a < 709.0 ? middle : (0.5 * e) * e;
  return __builtin_copysign(a != a ? a : y, x);
}
// @ dc_cosh_f64
DC_INLINE double dc_cosh_f64(double x) {
  const double a = __builtin_fabs(x);
  const double t = dc_exp_f64(a > 709.0 ? 709.0 : a);
  const double e = dc_exp_f64(a * 0.5);
  return a > 709.0 ? (0.5 * e) * e : a != a ? a : 0.5 * t + 0.5 / t;
}
// @ dc_arcsinh_f64
DC_INLINE double dc_arcsinh_f64(double x) {
  const double a = __builtin_fabs(x);
  const bool huge = a > 0x1p28;
  const double b = huge ? 1.0 : a;
  const double square = b * b;
  const double y = dc_log1p_f64(huge ? a - 1.0 : b + square / (1.0 + __builtin_sqrt(1.0 + square)));
  return __builtin_copysign(huge ? y + 0x1.62e42fefa39efp-1 : y, x);
}
// @ dc_arccosh_f64
DC_INLINE double dc_arccosh_f64(double x) {
  const bool huge = x > 0x1p28;
  const double t = huge ? 1.0 : x - 1.0;
  const double y = dc_log1p_f64(huge ? x - 1.0 : t + __builtin_sqrt(2.0 * t + t * t));
  return huge ? y + 0x1.62e42fefa39efp-1 : y;
}
// @ dc_arctanh_f64
DC_INLINE double dc_arctanh_f64(double x) {
  const double a = __builtin_fabs(x);
  const double y = 0.5 * dc_log1p_f64(2.0 * a / (1.0 - a));
  return __builtin_copysign(a == 1.0 ? __builtin_inf() : y, x);
}
// 1/(1+z) with the rounding errors of sum and quotient put back
// @ dc_sigmoid_f64
DC_INLINE double dc_sigmoid_f64(double x) {
  const double z = dc_exp_f64(-__builtin_fabs(x));
  const double sum = 1.0 + z;
  const double lost = z - (sum - 1.0);
  const double near = 1.0 / sum;
  const double error = __builtin_fma(-near, sum, 1.0) - near * lost;
  const double quotient = __builtin_fma(near, error, near);
  return x < 0 ? z * quotient : quotient;
}
// @ dc_erf_f64
DC_INLINE double dc_erf_f64(double x) {
  const double a = __builtin_fabs(x) > 6.0 ? 6.0 : __builtin_fabs(x);
  const double z = a * a;
  POLY(p, z, 0.1283791670955125739, -0x1.812746b0379e7p-2, 0x1.ce2f21a042bddp-4, -0x1.b82ce3128898dp-6, 0x1.565bcd0e647acp-8, -0x1.c02db3fecced0p-11, 0x1.f9a326bdd9420p-14, -0x1.f4d255b078cd5p-17, 0x1.b9e649a9fe69bp-20, -0x1.5f6d42f218e51p-23, 0x1.fc3e8f0b390c0p-27, -0x1.4e48c9d4074f1p-30, 0x1.7e7e8e7125a0cp-34, -0x1.285e44d97b878p-38);
  const double u = (a - 2.5) / (a + 2.5);
  POLY(q, u, 0x1.afbb3f3b7343ap-3, -0x1.7ca88dec217a5p-2, 0x1.01c11a735ce1cp-2, -0x1.0011543716facp-3, 0x1.470ba1f6600d3p-5, -0x1.05bb2fe43111cp-8, -0x1.5a571677cc641p-9, 0x1.cb3b606245652p-11, 0x1.def251d8beb83p-13, -0x1.0e4620742f1f4p-13, -0x1.1ea77884579a3p-15, 0x1.383dd2783dbb9p-16, 0x1.f62d630ec8a38p-18, -0x1.335805abf46a8p-19, -0x1.a29583037b514p-20, 0x1.86a4eb34711a4p-24);
  const double y = a < 1.0 ? __builtin_fma(a, p, a) : 1.0 - dc_exp_f64(-z) * q;
  return x != x ? x : __builtin_copysign(y, x);
}
// exp(log|x| / 3), then one step of Newton's method in a form whose correction is small
// @ dc_cbrt_f64
DC_INLINE double dc_cbrt_f64(double x) {
  const double a = __builtin_fabs(x);
  const bool tiny = a < 0x1p-1000;
  const bool huge = a > 0x1p1000;
  const double b = tiny ? a * 0x1p90 : huge ? a * 0x1p-90 : a;
  double y = dc_exp_f64(dc_log_f64(b) * 0x1.5555555555555p-2);
  const double square = y * y;
  const double square_low = __builtin_fma(y, y, -square);
  const double error = __builtin_fma(-square, y, b) - square_low * y;
  y = y + error / (3.0 * square);
  y = tiny ? y * 0x1p-30 : huge ? y * 0x1p30 : y;
  const bool finite = (a > 0) & (a < __builtin_inf());
  return finite ? __builtin_copysign(y, x) : x + x;
}
// Signs, zeros, infinities and NaN of pow, given |x|^y for finite x and y
// @ dc_pow_ends
DC_INLINE double dc_pow_ends(double x, double y, double r) {
  const double a = __builtin_fabs(x);
  const double inf = __builtin_inf();
  const bool whole = __builtin_floor(y) == y;
  const double half = y * 0.5;
  const bool odd = whole & (__builtin_floor(half) != half) & (__builtin_fabs(y) < inf);
  const bool negative = (dc_bits_f64(x) >> 63) != 0;
  double v = r;
  v = a == 0 ? (y > 0 ? 0.0 : inf) : v;
  v = a == inf ? (y > 0 ? inf : 0.0) : v;
  v = __builtin_fabs(y) == inf ? ((a > 1) == (y > 0) ? inf : 0.0) : v;
  v = (__builtin_fabs(y) == inf) & (a == 1) ? 1.0 : v;
  v = negative & odd ? -v : v;
  v = (x < 0) & (a < inf) & !whole ? __builtin_nan("") : v;
  v = (x != x) | (y != y) ? x + y : v;
  return (y == 0) | (x == 1) ? 1.0 : v;
}
// @ dc_pow_f64
DC_INLINE double dc_pow_f64(double x, double y) {
  const double a = __builtin_fabs(x);
  const bool usable = (a > 0) & (a < __builtin_inf());
  const dc_split_f64 w = dc_local_split_f64(usable ? a : 1.0);
  // log(1+f) = 2s + s^3 (2/3) + s^5 (...) with s = f / (2+f), the first two terms to twice the precision
  const double d = 2.0 + w.f;
  const double d_low = w.f - (d - 2.0);
  const double s = w.f / d;
  const double s_low = (__builtin_fma(-s, d, w.f) - s * d_low) / d;
  const double z = s * s;
  const double z_low = __builtin_fma(s, s, -z) + 2.0 * s * s_low;
  const double cube = s * z;
  const double cube_low = __builtin_fma(s, z, -cube) + (s * z_low + s_low * z);
  const double third = cube * 0x1.5555555555555p-1;
  const double third_low = __builtin_fma(cube, 0x1.5555555555555p-1, -third) + (cube_low * 0x1.5555555555555p-1 + cube * 0x1.5555555555555p-55);
  POLY(tail, z, 0x1.9999999999a43p-2, 0x1.249249247513dp-2, 0x1.c71c7204621fep-3, 0x1.745cf7c1d5dafp-3, 0x1.3b1c79943fca2p-3, 0x1.0fb77bcdefa76p-3, 0x1.0c4d8297b1431p-3);
  const double k = w.k * 0x1.62e42feep-1;
  const double sum = k + 2.0 * s;
  const double sum_low = (k - sum) + 2.0 * s;
  const double log_x = sum + third;
  const double carry = (sum - log_x) + third;
  const double small = cube * z * tail + (third_low + (2.0 * s_low + w.k * 0x1.a39ef35793c76p-33));
  const double rest = (sum_low + carry) + small;
  const double log_high = log_x + rest;
  const double log_low = (log_x - log_high) + rest;
  const double p = y * log_high;
  const bool moderate = __builtin_fabs(p) < 800.0;
  const double p_low = moderate ? __builtin_fma(y, log_high, -p) + y * log_low : 0.0;
  return dc_pow_ends(x, y, dc_exp_sum_f64(p, p_low));
}
