// Double-precision functions, branch-free so that they vectorise, at most 2 ulp from the true value.
// Argument reductions are the classical ones (Cody & Waite; W. J. Cody, W. Waite, "Software Manual for the
// Elementary Functions", 1980; log1p's correction after W. Kahan); tools/fit_math.py makes the polynomials and
// tests/inductor/test_render_vecmath.py measures the results. Selections take values, never conditions: gcc 12 does
// not vectorise a choice between conditions, nor one by a condition that does not vary.

// p * 2^n in two exact steps, so that overflow and denormals come out right. n is given as the rounded sum
// n + 0x1.80000000007fep52, whose low bits are n + 2 * 1023.
// @ dc_scale_f64
DC_INLINE double dc_scale_f64(double p, double shifted) {
  const u64 u = dc_bits_f64(shifted);
  const u64 half = u >> 1;
  return p * dc_from_bits_f64(half << 52) * dc_from_bits_f64((u - half) << 52);
}
// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2
// @ dc_exp_tail_f64
DC_INLINE double dc_exp_tail_f64(double r) {
  POLY(p, r, 0x1.0000000000001p-1, 0x1.5555555555556p-3, 0x1.5555555553d37p-5, 0x1.11111111109a6p-7, 0x1.6c16c1789d1d7p-10, 0x1.a01a01a7cebcdp-13, 0x1.a019b8ca26fcfp-16, 0x1.71de0d85293b8p-19, 0x1.2891d4ffbb0f9p-22, 0x1.af390ba7e6f47p-26);
  return p;
}
// exp(x + low) = (1 + rest) * 2^n, |low| far below |x|; shifted as dc_scale_f64 takes it
// @ dc_exp_parts_f64
struct dc_exp_parts_f64 { double rest, shifted; };
DC_INLINE dc_exp_parts_f64 dc_local_exp_parts_f64(double x0, double low) {
  const double x = x0 < -746.0 ? -746.0 : x0;
  const double most = x > 711.0 ? 711.0 : x;  // r is not bounded: an infinite argument is no overflow
  const double shifted = __builtin_fma(most, 0x1.71547652b82fep+0, 0x1.80000000007fep52);
  const double n = shifted - 0x1.80000000007fep52;
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, x);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r) + low;
  return {__builtin_fma(r * r, dc_exp_tail_f64(r), r), shifted};
}
// @ dc_exp_f64
DC_INLINE double dc_exp_f64(double x0) {
  const double x = x0 < -746.0 ? -1418.0 : x0;  // 2^-2046, for which both of dc_scale_f64's factors are 0
  const double most = x > 711.0 ? 711.0 : x;  // r is not bounded: an infinite argument is no overflow
  const double shifted = __builtin_fma(most, 0x1.71547652b82fep+0, 0x1.80000000007fep52);
  const double n = shifted - 0x1.80000000007fep52;
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, x);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r);
  return dc_scale_f64(__builtin_fma(__builtin_fma(dc_exp_tail_f64(r), r, 1.0), r, 1.0), shifted);
}
// @ dc_exp2_f64
DC_INLINE double dc_exp2_f64(double x0) {
  double x = x0 > 1025.0 ? 1025.0 : x0;
  x = x0 == __builtin_inf() ? 2048.0 : x;  // dc_scale_f64's factors are infinite
  x = x < -1080.0 ? -1080.0 : x;
  const double shifted = x + 0x1.80000000007fep52;
  const double f = x - (shifted - 0x1.80000000007fep52);
  const double high = f * 0x1.62e42fefa39efp-1;
  const double low = __builtin_fma(f, 0x1.62e42fefa39efp-1, -high) + f * 0x1.abc9e3b39803fp-56;
  const double p = 1.0 + (high + __builtin_fma(high * high, dc_exp_tail_f64(high), low));
  return dc_scale_f64(p, shifted);
}
// (exp(x) - 1) / 4, which overflows neither on the way nor where hyperbolic functions do not
// @ dc_quarter_expm1_f64
DC_INLINE double dc_quarter_expm1_f64(double x0) {
  const double x = x0 < -60.0 ? -60.0 : x0;
  const double most = x > 710.6 ? 710.6 : x;
  const double shifted = __builtin_fma(most, 0x1.71547652b82fep+0, 0x1.80000000003fdp52);
  const double n = shifted - 0x1.80000000003fdp52;
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, x);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r);
  const double p = __builtin_fma(r * r, dc_exp_tail_f64(r), r);
  const double quarter = dc_from_bits_f64(dc_bits_f64(shifted) << 52);  // 2^(n-2)
  return __builtin_fma(p, quarter, quarter - 0.25);
}
// @ dc_expm1_f64
DC_INLINE double dc_expm1_f64(double x) {
  const double y = 4.0 * dc_quarter_expm1_f64(x);
  return __builtin_fabs(x) < 0x1p-54 ? x : y;
}
// x = 2^k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); x positive, finite and (normal_split) not denormal
// @ dc_split_f64
struct dc_split_f64 { double k, f; };
DC_INLINE dc_split_f64 dc_local_normal_split_f64(double x) {
  const u64 u = dc_bits_f64(x);
  const u64 t = u + 0x95f619980c433ULL;
  const double m = dc_from_bits_f64(u - (t & 0xfff0000000000000ULL) + 0x3ff0000000000000ULL);
  // the biased exponent, below 2^11, as a double: it becomes the low bits of 2^52
  const double k = dc_from_bits_f64(0x4330000000000000ULL | (t >> 52)) - (0x1p52 + 1023.0);
  return {k, m - 1.0};
}
DC_INLINE dc_split_f64 dc_local_split_f64(double x) {
  const bool tiny = x < 0x1p-1022;
  const dc_split_f64 a = dc_local_normal_split_f64(x * (tiny ? 0x1p54 : 1.0));
  return {tiny ? a.k - 54.0 : a.k, a.f};
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
  return __builtin_fma(s, __builtin_fma(z, dc_log_tail_f64(z), half), -half);
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
  const double more = x < 1.0 ? 1.0 : x;
  const double less = x > 1.0 ? 1.0 : x;
  // nothing is lost at the ends: neither 0 / 0 nor infinity - infinity
  const double low_end = u > 0 ? u : 1.0;
  const double inner = low_end < __builtin_inf() ? low_end : 1.0;
  const double lost = less - (inner - more);
  const dc_split_f64 a = dc_local_split_f64(u);
  const double low = __builtin_fma(a.k, 0x1.a39ef35793c76p-33, dc_log_rest_f64(a.f) + lost / inner);
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
// sin(r + low), or in odd quadrants cos(r + low), with the sign of the quadrant: as the kernels above, with one polynomial
// @ dc_wave_f64
DC_INLINE double dc_wave_f64(dc_turn_f64 t, u64 quadrant) {
  const bool odd = quadrant & 1;
  const double r = t.high;
  const double z = r * r;
  POLY_IF(p, z, odd, 0x1.5555555555555p-5 | -0x1.5555555555555p-3, -0x1.6c16c16c16c16p-10 | 0x1.1111111111110p-7, 0x1.a01a01a019cb8p-16 | -0x1.a01a01a019880p-13, -0x1.27e4fb7708fb2p-22 | 0x1.71de3a544a6cep-19, 0x1.1eed8ddaa5390p-29 | -0x1.ae6453ecab5c4p-26, -0x1.93949f74df9adp-37 | 0x1.612161267019ep-33, 0x1.ab68d5c08a457p-45 | -0x1.ab066192d3e8fp-41);
  const double half = 0.5 * z;
  const double w = 1.0 - half;
  const double low = odd ? __builtin_fma(-r, t.low, (1.0 - w) - half) : t.low * w;
  const double y = (odd ? w : r) + __builtin_fma((odd ? z : r) * z, p, low);
  return dc_from_bits_f64(dc_bits_f64(y) ^ (quadrant << 62 & 0x8000000000000000ULL));
}
// @ dc_sin_f64
DC_INLINE double dc_sin_f64(double x) {
  const dc_turn_f64 t = dc_local_turn_f64(x);
  const double y = dc_wave_f64(t, t.quadrant);
  return x == 0 ? x : y;
}
// @ dc_cos_f64
DC_INLINE double dc_cos_f64(double x) {
  const dc_turn_f64 t = dc_local_turn_f64(x);
  return dc_wave_f64(t, t.quadrant + 1);
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
  // by their bits: the processor's maximum and minimum take NaN for an error
  const i64 ux = (i64)dc_bits_f64(ax);
  const i64 uy = (i64)dc_bits_f64(ay);
  const bool swap = uy > ux;
  const double big0 = dc_from_bits_f64((u64)(swap ? uy : ux));
  const double small0 = dc_from_bits_f64((u64)(swap ? ux : uy));
  // keep sums from overflowing and quotients from denormal losses
  const double scale = big0 > 0x1p1000 ? 0x1p-10 : big0 < 0x1p-900 ? 0x1p100 : 1.0;
  const bool both_infinite = small0 == __builtin_inf();
  const double divisor = big0 == 0 ? 1.0 : big0 * scale;
  const double big = both_infinite ? 1.0 : divisor;
  const double small = both_infinite ? 1.0 : small0 * scale;
  const bool mid = small > 0x1.a827999fcef32p-2 * big;
  const double t = (mid ? small - big : small) / (mid ? small + big : big);
  const bool left = (dc_bits_f64(x) >> 63) != 0;
  double count = mid ? 1.0 : 0.0;
  count = swap ? 2.0 - count : count;
  count = left ? 4.0 - count : count;
  const double turned = (swap != left) ? -t : t;
  // count * pi/4 is exact for 0, 1, 2 and 4 and nearly so for 3
  const double base = count * 0x1.921fb54442d18p-1;
  const double base_low = __builtin_fma(count, 0x1.921fb54442d18p-1, -base) + count * 0x1.1a62633145c07p-55;
  const double r = base + (turned + (dc_atan_rest_f64(turned) + base_low));
  const double any = big0 == big0 ? r : big0;  // NaN is the larger
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
  const double s_low = __builtin_fma(-s, s, z) / (s > 0 ? s + s : 1.0);
  const double rest = s * z * dc_asin_tail_f64(z);
  const double bent = (0x1.921fb54442d18p+0 - 2.0 * s) - (2.0 * (rest + s_low) - 0x1.1a62633145c07p-54);
  return __builtin_copysign(big ? bent : s + rest, x);
}
// @ dc_arccos_f64
DC_INLINE double dc_arccos_f64(double x) {
  const double a = __builtin_fabs(x);
  const bool big = a > 0.5;
  const double z = big ? (1.0 - a) * 0.5 : a * a;
  const double s = big ? __builtin_sqrt(z) : a;
  const double s_low = __builtin_fma(-s, s, z) / (s > 0 ? s + s : 1.0);
  const double rest = s * z * dc_asin_tail_f64(z);
  const double near = 2.0 * (s + (rest + s_low));
  const double far = 0x1.921fb54442d18p+1 - (2.0 * (s + (rest + s_low)) - 0x1.1a62633145c07p-53);
  const double signed_rest = __builtin_copysign(rest, x);
  const double middle = 0x1.921fb54442d18p+0 - (x - (0x1.1a62633145c07p-54 - signed_rest));
  return big ? (x > 0 ? near : far) : middle;
}
// As the single-precision one, but beyond 0.3 by exp(2a) - 1.
// @ dc_tanh_f64
DC_INLINE double dc_tanh_f64(double x) {
  const double size = __builtin_fabs(x);
  const double a = size > 20.0 ? 20.0 : size;
  const double z = a * a;
  const double shifted = __builtin_fma(a, 0x1.71547652b82fep+1, 0x1.80000000003ffp52);
  const double n = shifted - 0x1.80000000003ffp52;
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, a + a);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r);
  const bool near = a < 0.3;
  const double w = near ? z : r;
  POLY_IF(p, w, near, -0x1.5555555555555p-2 | 0x1.0000000000001p-1, 0x1.11111111110f7p-3 | 0x1.5555555555556p-3, -0x1.ba1ba1ba1476cp-5 | 0x1.5555555553d37p-5, 0x1.664f487cc1f81p-6 | 0x1.11111111109a6p-7, -0x1.226e32da2eb26p-7 | 0x1.6c16c1789d1d7p-10, 0x1.d6d2a07aaec7dp-9 | 0x1.a01a01a7cebcdp-13, -0x1.7d78ff367c984p-10 | 0x1.a019b8ca26fcfp-16, 0x1.31e100d23111cp-11 | 0x1.71de0d85293b8p-19, -0x1.a5ec725461335p-13 | 0x1.2891d4ffbb0f9p-22, 0.0 | 0x1.af390ba7e6f47p-26);
  const double power = dc_from_bits_f64(dc_bits_f64(shifted) << 52);  // 2^n
  const double t = __builtin_fma(__builtin_fma(r * r, p, r), power, power - 1.0);
  return __builtin_copysign(near ? __builtin_fma(a * z, p, a) : t / (t + 2.0), x);
}
// @ dc_tanh_beside_one_f64
DC_INLINE double dc_tanh_beside_one_f64(double x) { return dc_tanh_f64(x); }
// @ dc_sinh_f64
DC_INLINE double dc_sinh_f64(double x) {
  const double a = __builtin_fabs(x);
  const double z = a * a;
  POLY(p, z, 0x1.5555555555555p-3, 0x1.11111111110fdp-7, 0x1.a01a01a01ee70p-13, 0x1.71de3a4e14f40p-19, 0x1.ae6460fae3728p-26, 0x1.611cb330c1fe8p-33, 0x1.b41232cf9950fp-41);
  const double half = 2.0 * dc_quarter_expm1_f64(a);
  const double y = a < 1.0 ? __builtin_fma(a * z, p, a) : half + (0.5 - 0.25 / (half + 0.5));
  return __builtin_copysign(y, x);
}
// @ dc_cosh_f64
DC_INLINE double dc_cosh_f64(double x) {
  const dc_exp_parts_f64 e = dc_local_exp_parts_f64(__builtin_fabs(x), -0.0);
  const double half = dc_scale_f64(__builtin_fma(0.5, e.rest, 0.5), e.shifted);
  return half + 0.25 / half;
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
  const double below = x < 1.0 ? -1.0 : x - 1.0;  // the root of a negative number
  const double t = huge ? 1.0 : below;
  const double y = dc_log1p_f64(huge ? x - 1.0 : t + __builtin_sqrt(2.0 * t + t * t));
  return huge ? y + 0x1.62e42fefa39efp-1 : y;
}
// @ dc_arctanh_f64
DC_INLINE double dc_arctanh_f64(double x) {
  const double a = __builtin_fabs(x);
  const double y = 0.5 * dc_log1p_f64(2.0 * a / (1.0 - a));
  return __builtin_copysign(y, x);
}
// As the single-precision one.
// @ dc_sigmoid_f64
DC_INLINE double dc_sigmoid_f64(double x0) {
  const double most = x0 > 746.0 ? 746.0 : x0;
  const double x = x0 < -746.0 ? -746.0 : most;
  const double shifted = __builtin_fma(x, -0x1.71547652b82fep+0, 0x1.80000000007fep52);
  const double n = shifted - 0x1.80000000007fep52;
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, -x);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r);
  const double rest = __builtin_fma(r * r, dc_exp_tail_f64(r), r);
  const u64 u = dc_bits_f64(shifted);
  const u64 half = u << 51 & 0x7ff0000000000000ULL;
  const double up = dc_from_bits_f64((u << 52) - half);
  const double down = dc_from_bits_f64(0x7fe0000000000000ULL - half);
  const double less = up < down ? up : down;
  const double more = up < down ? down : up;
  const double sum = more + less;
  const double lost = less - (sum - more);
  return down / (sum + __builtin_fma(rest, up, lost));
}
// erf(a)/a - 1 for a = sqrt(z) <= 1
// @ dc_erf_small_f64
DC_INLINE double dc_erf_small_f64(double z) {
  POLY(p, z, 0x1.06eba8214db69p-3, -0x1.812746b0379e7p-2, 0x1.ce2f21a042bddp-4, -0x1.b82ce3128898dp-6, 0x1.565bcd0e647acp-8, -0x1.c02db3fecced0p-11, 0x1.f9a326bdd9420p-14, -0x1.f4d255b078cd5p-17, 0x1.b9e649a9fe69bp-20, -0x1.5f6d42f218e51p-23, 0x1.fc3e8f0b390c0p-27, -0x1.4e48c9d4074f1p-30, 0x1.7e7e8e7125a0cp-34, -0x1.285e44d97b878p-38);
  return p;
}
// a + a * P(a^2), or beyond 1 1 - exp(-a^2) * Q(u), one polynomial with chosen coefficients
// @ dc_erf_f64
DC_INLINE double dc_erf_f64(double x) {
  const double size = __builtin_fabs(x);
  const double a = size > 6.0 ? 6.0 : size;
  const bool near = a < 1.0;
  const double z = a * a;
  const double u = (a - 2.5) / (a + 2.5);
  const double w = near ? z : u;
  POLY_IF(p, w, near, 0x1.06eba8214db69p-3 | 0x1.afbb3f3b7343ap-3, -0x1.812746b0379e7p-2 | -0x1.7ca88dec217a5p-2, 0x1.ce2f21a042bddp-4 | 0x1.01c11a735ce1cp-2, -0x1.b82ce3128898dp-6 | -0x1.0011543716facp-3, 0x1.565bcd0e647acp-8 | 0x1.470ba1f6600d3p-5, -0x1.c02db3fecced0p-11 | -0x1.05bb2fe43111cp-8, 0x1.f9a326bdd9420p-14 | -0x1.5a571677cc641p-9, -0x1.f4d255b078cd5p-17 | 0x1.cb3b606245652p-11, 0x1.b9e649a9fe69bp-20 | 0x1.def251d8beb83p-13, -0x1.5f6d42f218e51p-23 | -0x1.0e4620742f1f4p-13, 0x1.fc3e8f0b390c0p-27 | -0x1.1ea77884579a3p-15, -0x1.4e48c9d4074f1p-30 | 0x1.383dd2783dbb9p-16, 0x1.7e7e8e7125a0cp-34 | 0x1.f62d630ec8a38p-18, -0x1.285e44d97b878p-38 | -0x1.335805abf46a8p-19, 0.0 | -0x1.a29583037b514p-20, 0.0 | 0x1.86a4eb34711a4p-24);
  const double shifted = __builtin_fma(z, -0x1.71547652b82fep+0, 0x1.80000000003ffp52);
  const double n = shifted - 0x1.80000000003ffp52;
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, -z);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r);
  const double e = __builtin_fma(__builtin_fma(dc_exp_tail_f64(r), r, 1.0), r, 1.0);
  const double power = dc_from_bits_f64(dc_bits_f64(shifted) << 52);  // 2^n
  const double far = __builtin_fma(-(e * power), p, 1.0);
  return __builtin_copysign(near ? __builtin_fma(a, p, a) : far, x);
}
// exp(-a^2) with the rounding error of the square, times (1 + 2a) exp(a^2) erfc(a), a polynomial, over 1 + 2a
// @ dc_erfc_f64
DC_INLINE double dc_erfc_f64(double x) {
  const double a = __builtin_fabs(x) > 28.0 ? 28.0 : __builtin_fabs(x);
  const double z = a * a;
  const double u = (a - 3.75) / (a + 3.75);
  POLY(rest, u, -0x1.992fa51511ec6p-7, -0x1.1f367683f89a6p-3, 0x1.d5f294815b07bp-9, 0x1.510169d096716p-4, -0x1.bda9309a2b208p-4, 0x1.7a14188a9c1dbp-4, -0x1.e0d0fa6d75f92p-5, 0x1.d0b0037d138b4p-6, -0x1.3f603c5198dd1p-7, 0x1.cc3a0e9c0a2afp-10, 0x1.33fb429b12f3dp-12, -0x1.303fa9b7f3235p-12, 0x1.b13f828b43ab2p-15, 0x1.778d3d6eb7ed5p-16, -0x1.7fca31e6d3b94p-17, -0x1.05a6e97ac4536p-20, 0x1.d2944e5699885p-20, -0x1.d9281bed770f7p-25, -0x1.025e38bdb82acp-22, 0x1.680e866773f37p-26, 0x1.a80cc61aa9ecap-26, -0x1.4b1c8a3739cbep-29);
  const double q = 1.25 + rest;
  const double q_low = (1.25 - q) + rest;
  const double b = __builtin_fma(2.0, a, 1.0);
  const double b_low = __builtin_fma(2.0, a, 1.0 - b);
  const double inverse = 1.0 / b;
  const double factor = q * inverse;
  const double factor_low = __builtin_fma(-factor, b_low, __builtin_fma(-factor, b, q) + q_low) * inverse;
  const dc_exp_parts_f64 e = dc_local_exp_parts_f64(-z, __builtin_fma(-a, a, z));
  const double far = dc_scale_f64(factor + __builtin_fma(e.rest, factor, factor_low), e.shifted);
  const double b0 = __builtin_copysign(a, x);
  const double near = 1.0 - __builtin_fma(b0, dc_erf_small_f64(z), b0);
  const double y = a < 0.5 ? near : x < 0 ? 2.0 - far : far;
  return x != x ? x : y;
}
// Cube root: x = w * 8^q with w in [1/2, 4); a polynomial for w^(-1/3), one step of third order, and a last
// correction by the residual w - y^3.
// @ dc_cbrt_f64
DC_INLINE double dc_cbrt_f64(double x) {
  const double a = __builtin_fabs(x);
  const bool tiny = a < 0x1p-1022;
  const u64 u = dc_bits_f64(a * (tiny ? 0x1p54 : 1.0));
  const double e = dc_from_bits_f64(0x4330000000000000ULL | (u >> 52)) - (0x1p52 + 1023.0);
  const double k = tiny ? e - 54.0 : e;
  const double m = dc_from_bits_f64((u & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  const double shifted = __builtin_fma(k, 0x1.5555555555555p-2, 0x1.80000000003ffp52);
  const double left = __builtin_fma(-3.0, shifted - 0x1.80000000003ffp52, k);
  // left is -1, 0 or 1: parabolas through 2^left and 2^(-left/3)
  const double w = m * __builtin_fma(left, __builtin_fma(left, 0.25, 0.75), 1.0);
  const double turn = __builtin_fma(left, __builtin_fma(left, 0x1.b744985853540p-6, -0x1.dd68e9bbaedb2p-3), 1.0);
  POLY(guess, m, 0x1.89aaa824baf04p+0, -0x1.9a40a90fa4facp-1, 0x1.3f54e3e89a473p-2, -0x1.8e66e7b396750p-5);
  double r = guess * turn;
  double square = r * r;
  const double off = __builtin_fma(-w * r, square, 1.0);
  r = __builtin_fma(r * off, __builtin_fma(off, 0x1.c71c71c71c71cp-3, 0x1.5555555555555p-2), r);
  square = r * r;
  const double y = w * square;
  const double y_square = y * y;
  const double y_square_low = __builtin_fma(y, y, -y_square);
  const double residual = __builtin_fma(-y_square_low, y, __builtin_fma(-y_square, y, w));
  const double root = __builtin_fma(residual * square, 0x1.5555555555555p-2, y);
  const double scaled = root * dc_from_bits_f64(dc_bits_f64(shifted) << 52);
  const bool finite = (a > 0) & (a < __builtin_inf());
  return finite ? __builtin_copysign(scaled, x) : x;
}
// What y alone says about pow(x, y), by integer arithmetic on truth values: gcc 12 does not vectorise loops
// with conditions that do not vary.
// @ dc_exponent_f64
struct dc_exponent_f64 { double at_infinity, at_nan, negative_limit; u64 odd_sign; };
DC_INLINE dc_exponent_f64 dc_local_exponent_f64(double y) {
  const double half = y * 0.5;
  const u64 fraction = (u64)(__builtin_floor(y) != y);  // or NaN
  const u64 odd = (u64)(__builtin_floor(half) != half) & (fraction - 1u);
  const u64 zero = (u64)(y == 0);
  const double at_infinity = dc_from_bits_f64(dc_bits_f64(y + __builtin_copysign(__builtin_inf(), y)) & (zero - 1u));
  const double at_nan = dc_from_bits_f64(0x7ff8000000000000ULL - zero * 0x4008000000000000ULL);
  const double negative_limit = dc_from_bits_f64((fraction - 1u) & 0xfff0000000000000ULL);
  return {at_infinity, at_nan, negative_limit, odd << 63};
}
// x^y given |x|^y (anything for |x| = 1 and NaN)
// @ dc_pow_ends
DC_INLINE double dc_pow_ends(double x, double a, double p, u64 odd_sign, double negative_limit, double at_nan) {
  const double one = a == 1.0 ? a : p;
  const double v = dc_from_bits_f64(dc_bits_f64(one) ^ (dc_bits_f64(x) & odd_sign));
  const double real = (x < negative_limit) & (a < __builtin_inf()) ? __builtin_nan("") : v;
  return x != x ? at_nan : real;
}
// An exponent whose products with logarithms other than 0 are beyond those of all numbers, but finite.
// @ dc_bounded_f64
DC_INLINE double dc_bounded_f64(double y) {
  const double most = y > 0x1p70 ? 0x1p70 : y;
  return most < -0x1p70 ? -0x1p70 : most;
}
// exp(y * log|x|), the logarithm and the product to about twelve bits more than double precision.
// log(1+f) = t + t^3 / 12 + t^5 (...) with t = 2f / (2+f), the first two terms as sums of two numbers.
// @ dc_pow_f64
DC_INLINE double dc_pow_f64(double x, double y) {
  const dc_exponent_f64 by = dc_local_exponent_f64(y);
  const double a = __builtin_fabs(x);
  const dc_split_f64 w = dc_local_split_f64(a);
  const double d = __builtin_fma(0.5, w.f, 1.0);
  const double d_low = __builtin_fma(0.5, w.f, 1.0 - d);
  const double inverse = 1.0 / d;
  const double t = w.f * inverse;
  const double t_low = __builtin_fma(-t, d_low, __builtin_fma(-t, d, w.f)) * inverse;
  const double z = t * t;
  const double z_low = __builtin_fma(t, t, -z);
  const double share = z * 0x1.5555555555555p-4;
  const double share_low = __builtin_fma(z_low, 0x1.5555555555555p-4, __builtin_fma(z, 0x1.5555555555555p-58, __builtin_fma(z, 0x1.5555555555555p-4, -share)));
  const double cubic = t * share;
  const double cubic_low = __builtin_fma(t, share_low, __builtin_fma(t, share, -cubic));
  // the derivative of both terms times the error of t
  const double error = __builtin_fma(t_low, __builtin_fma(z, 0.25, 1.0), cubic_low);
  POLY(tail, z, 0x1.9999999999a43p-7, 0x1.249249247513dp-9, 0x1.c71c7204621fep-12, 0x1.745cf7c1d5dafp-14, 0x1.3b1c79943fca2p-16, 0x1.0fb77bcdefa76p-18, 0x1.0c4d8297b1431p-20);
  const double k = w.k * 0x1.62e42feep-1;
  const double sum = k + t;
  const double sum_low = (k - sum) + t;
  const double log_x = sum + cubic;
  const double carry = (sum - log_x) + cubic;
  const double small = __builtin_fma(t * (z * z), tail, __builtin_fma(w.k, 0x1.a39ef35793c76p-33, error));
  const double rest = (sum_low + carry) + small;
  const double log_high = log_x + rest;
  const double log_low = (log_x - log_high) + rest;
  const double to = dc_bounded_f64(y);
  const double q = to * log_high;
  const double q_low = __builtin_fma(to, log_low, __builtin_fma(to, log_high, -q));
  const double low = __builtin_fabs(q) < 800.0 ? q_low : 0.0;
  double p = __builtin_fabs(y) == __builtin_inf() ? __builtin_copysign(__builtin_inf(), q) : q;
  p = a == 0 ? -by.at_infinity : p;
  p = a < __builtin_inf() ? p : by.at_infinity;  // NaN must not overflow
  const dc_exp_parts_f64 e = dc_local_exp_parts_f64(p, low);
  const double power = dc_scale_f64(1.0 + e.rest, e.shifted);
  return dc_pow_ends(x, a, power, by.odd_sign, by.negative_limit, by.at_nan);
}
