// Complex numbers as pairs. Transcendental functions of complex64 go through complex128.

// @ dc_add_[c64 c128]
DC_INLINE TYPE dc_add_SUFFIX(TYPE a, TYPE b) { return {a.re + b.re, a.im + b.im}; }
// @ dc_sub_[c64 c128]
DC_INLINE TYPE dc_sub_SUFFIX(TYPE a, TYPE b) { return {a.re - b.re, a.im - b.im}; }
// One rounding less in each part, as in NumPy's vector code (and gcc 12 would contract part of a plain form).
// @ dc_mul_c64
DC_INLINE c64 dc_mul_c64(c64 a, c64 b) {
  return {__builtin_fmaf(a.re, b.re, -(a.im * b.im)), __builtin_fmaf(a.re, b.im, a.im * b.re)};
}
// @ dc_mul_c128
DC_INLINE c128 dc_mul_c128(c128 a, c128 b) {
  return {__builtin_fma(a.re, b.re, -(a.im * b.im)), __builtin_fma(a.re, b.im, a.im * b.re)};
}
// @ dc_neg_[c64 c128]
DC_INLINE TYPE dc_neg_SUFFIX(TYPE a) { return {-a.re, -a.im}; }
// @ dc_conj_[c64 c128]
DC_INLINE TYPE dc_conj_SUFFIX(TYPE a) { return {a.re, -a.im}; }
// R. L. Smith's division, as NumPy's, without branches: what is selected are operands, so that nothing raises status flags
// that NumPy's does not. A divisor with NaN is an invalid operation, as the comparison that NumPy begins with.
// @ dc_div_[c64 c128]
DC_INLINE TYPE dc_div_SUFFIX(TYPE a, TYPE b) {
  const UNSIGNED re = b.re < 0 ? -b.re : b.re;
  const UNSIGNED im = b.im < 0 ? -b.im : b.im;
  const bool turned = !(re >= im);
  const bool nan = __builtin_isunordered(b.re, b.im);
  const UNSIGNED infinity = (UNSIGNED)__builtin_inf();
  const UNSIGNED big = turned ? b.im : b.re;
  const UNSIGNED small = turned ? b.re : b.im;
  const bool zero = (big == 0) & !nan;
  const UNSIGNED divisor = zero ? (UNSIGNED)1 : big;
  const UNSIGNED ratio = (nan ? infinity : small) / (nan ? infinity : divisor);
  // the product is 0 there, which the compiler does not know: it would drop the division, and its status flag
  const UNSIGNED scale = (UNSIGNED)1 / (zero ? big * big : big + small * ratio);
  const UNSIGNED first = turned ? a.im : a.re;
  const UNSIGNED second = turned ? a.re : a.im;
  const UNSIGNED moved = first * ratio;
  const UNSIGNED x = first + second * ratio;
  const UNSIGNED y = (turned ? moved : second) - (turned ? second : moved);
  return {(zero ? a.re : x) * scale, (zero ? a.im : y) * scale};
}
// @ dc_equal_[c64 c128]
DC_INLINE bool dc_equal_SUFFIX(TYPE a, TYPE b) { return (a.re == b.re) & (a.im == b.im); }
// @ dc_not_equal_[c64 c128]
DC_INLINE bool dc_not_equal_SUFFIX(TYPE a, TYPE b) { return (a.re != b.re) | (a.im != b.im); }
// @ dc_less_[c64 c128]
DC_INLINE bool dc_less_SUFFIX(TYPE a, TYPE b) {
  return ((a.re < b.re) & (a.im == a.im) & (b.im == b.im)) | ((a.re == b.re) & (a.im < b.im));
}
// @ dc_less_equal_[c64 c128]
DC_INLINE bool dc_less_equal_SUFFIX(TYPE a, TYPE b) {
  return ((a.re < b.re) & (a.im == a.im) & (b.im == b.im)) | ((a.re == b.re) & (a.im <= b.im));
}
// @ dc_greater_[c64 c128]
DC_INLINE bool dc_greater_SUFFIX(TYPE a, TYPE b) { return dc_less_SUFFIX(b, a); }
// @ dc_greater_equal_[c64 c128]
DC_INLINE bool dc_greater_equal_SUFFIX(TYPE a, TYPE b) { return dc_less_equal_SUFFIX(b, a); }
// @ dc_max_[c64 c128]
DC_INLINE TYPE dc_max_SUFFIX(TYPE a, TYPE b) {
  const bool nan = (a.re != a.re) | (a.im != a.im);
  const bool first = nan | dc_greater_equal_SUFFIX(a, b);
  return {first ? a.re : b.re, first ? a.im : b.im};
}
// @ dc_min_[c64 c128]
DC_INLINE TYPE dc_min_SUFFIX(TYPE a, TYPE b) {
  const bool nan = (a.re != a.re) | (a.im != a.im);
  const bool first = nan | dc_less_equal_SUFFIX(a, b);
  return {first ? a.re : b.re, first ? a.im : b.im};
}
// @ dc_isinf_[c64 c128]
DC_INLINE bool dc_isinf_SUFFIX(TYPE a) {
  return (__builtin_fabs(a.re) == __builtin_inf()) | (__builtin_fabs(a.im) == __builtin_inf());
}
// @ dc_isfinite_[c64 c128]
DC_INLINE bool dc_isfinite_SUFFIX(TYPE a) {
  return (__builtin_fabs(a.re) < __builtin_inf()) & (__builtin_fabs(a.im) < __builtin_inf());
}
// @ dc_rint_[c64 c128]
DC_INLINE TYPE dc_rint_SUFFIX(TYPE a) { return {(UNSIGNED)__builtin_rint(a.re), (UNSIGNED)__builtin_rint(a.im)}; }
// @ dc_abs_c64
DC_INLINE float dc_abs_c64(c64 a) { return dc_hypot_f32(a.re, a.im); }
// @ dc_abs_c128
DC_INLINE double dc_abs_c128(c128 a) { return dc_hypot_f64(a.re, a.im); }
// @ dc_sign_c128
DC_INLINE c128 dc_sign_c128(c128 a) {
  const double r = dc_abs_c128(a);
  if (r == 0) return {0.0, 0.0};
  if (r != r) return {r, r};
  if (r == __builtin_inf()) {
    const bool re = __builtin_fabs(a.re) == r, im = __builtin_fabs(a.im) == r;
    if (re && im) return {__builtin_nan(""), __builtin_nan("")};
    return {re ? __builtin_copysign(1.0, a.re) : 0.0, im ? __builtin_copysign(1.0, a.im) : 0.0};
  }
  return {a.re / r, a.im / r};
}
// @ dc_exp_c128
DC_INLINE c128 dc_exp_c128(c128 a) {
  if (a.im == 0) return {dc_exp_f64(a.re), a.im};
  const bool finite = __builtin_fabs(a.im) < __builtin_inf();
  if (!finite && a.re == -__builtin_inf()) return {0.0, __builtin_copysign(0.0, a.im)};
  if (!finite && a.re == __builtin_inf()) return {a.re, __builtin_nan("")};
  const double c = dc_full_cos_f64(a.im), s = dc_full_sin_f64(a.im);
  if (a.re > 709.0) {
    const double e = dc_exp_f64(a.re - 709.0), big = dc_exp_f64(709.0);
    return {e * c * big, e * s * big};
  }
  const double e = dc_exp_f64(a.re);
  return {e * c, e * s};
}
// @ dc_log_c128
DC_INLINE c128 dc_log_c128(c128 a) {
  const double x = __builtin_fabs(a.re), y = __builtin_fabs(a.im);
  const double big = x > y ? x : y, small = x > y ? y : x;
  double re = dc_log_f64(dc_abs_c128(a));
  // near the unit circle: log1p of the squared modulus minus one
  if (big > 0.5 && big < 2.0) re = 0.5 * dc_log1p_f64(__builtin_fma(small, small, (big - 1.0) * (big + 1.0)));
  if (big < 0x1p-1000 && big > 0) re = dc_log_f64(dc_abs_c128({a.re * 0x1p200, a.im * 0x1p200})) - 200 * 0x1.62e42fefa39efp-1;
  if (big > 0x1p1000 && big < __builtin_inf()) re = dc_log_f64(dc_abs_c128({a.re * 0x1p-200, a.im * 0x1p-200})) + 200 * 0x1.62e42fefa39efp-1;
  if (a.re == 0 && a.im == 0) re = -1.0 / big;  // raises the flag
  return {re, dc_arctan2_f64(a.im, a.re)};
}
// @ dc_sqrt_c128
DC_INLINE c128 dc_sqrt_c128(c128 a) {
  if (a.re == 0 && a.im == 0) return {0.0, a.im};
  if (__builtin_fabs(a.im) == __builtin_inf()) return {__builtin_inf(), a.im};
  if (a.re != a.re) return {a.re, a.re};
  if (__builtin_fabs(a.re) == __builtin_inf()) {
    const double rest = a.im != a.im ? a.im : 0.0;
    if (a.re < 0) return {rest, __builtin_copysign(__builtin_inf(), a.im)};
    return {a.re, a.im != a.im ? a.im : __builtin_copysign(0.0, a.im)};
  }
  double re = a.re, im = a.im, back = 1.0;
  const double big = __builtin_fabs(re) > __builtin_fabs(im) ? __builtin_fabs(re) : __builtin_fabs(im);
  if (big > 0x1p1000) { re *= 0.0625; im *= 0.0625; back = 4.0; }
  if (big < 0x1p-900) { re *= 0x1p100; im *= 0x1p100; back = 0x1p-50; }
  const double t = __builtin_sqrt((__builtin_fabs(re) + dc_hypot_f64(re, im)) * 0.5);
  if (re >= 0) return {t * back, im / (2.0 * t) * back};
  return {__builtin_fabs(im) / (2.0 * t) * back, __builtin_copysign(t, im) * back};
}
// @ dc_sinh_c128
DC_INLINE c128 dc_sinh_c128(c128 a) {
  if (a.im == 0) return {dc_sinh_f64(a.re), a.im};
  if (!(__builtin_fabs(a.im) < __builtin_inf())) {  // C, annex G.6.2.5
    if (a.re == 0) return {a.re, __builtin_nan("")};
    return {__builtin_fabs(a.re) == __builtin_inf() ? __builtin_inf() : __builtin_nan(""), __builtin_nan("")};
  }
  return {dc_sinh_f64(a.re) * dc_full_cos_f64(a.im), dc_cosh_f64(a.re) * dc_full_sin_f64(a.im)};
}
// @ dc_cosh_c128
DC_INLINE c128 dc_cosh_c128(c128 a) {
  if (a.im == 0) return {dc_cosh_f64(a.re), a.re != a.re ? a.im : __builtin_copysign(1.0, a.re) * a.im};
  if (!(__builtin_fabs(a.im) < __builtin_inf())) {  // C, annex G.6.2.4
    if (a.re == 0) return {__builtin_nan(""), 0.0};
    return {__builtin_fabs(a.re) == __builtin_inf() ? __builtin_inf() : __builtin_nan(""), __builtin_nan("")};
  }
  return {dc_cosh_f64(a.re) * dc_full_cos_f64(a.im), dc_sinh_f64(a.re) * dc_full_sin_f64(a.im)};
}
// @ dc_tanh_c128
DC_INLINE c128 dc_tanh_c128(c128 a) {
  if (__builtin_fabs(a.re) == __builtin_inf()) {  // C, annex G.6.2.6
    const double y = __builtin_fabs(a.im);
    const bool turns = y > 1.0 && y < __builtin_inf();
    const double sign = turns ? dc_full_sin_f64(a.im) * dc_full_cos_f64(a.im) : a.im;
    return {__builtin_copysign(1.0, a.re), __builtin_copysign(0.0, sign)};
  }
  if (a.re != a.re && a.im == 0) return a;
  if (!(__builtin_fabs(a.im) < __builtin_inf())) return {a.re == 0 ? a.re : __builtin_nan(""), __builtin_nan("")};
  if (__builtin_fabs(a.re) > 22.0) {
    const double turn = dc_full_sin_f64(a.im) * dc_full_cos_f64(a.im);
    const double e = dc_exp_f64(-__builtin_fabs(a.re));
    return {__builtin_copysign(1.0, a.re), 4.0 * turn * e * e};
  }
  // W. Kahan's form, which does not cancel near the poles
  const double t = dc_full_tan_f64(a.im);
  const double beta = 1.0 + t * t;
  const double s = dc_sinh_f64(a.re);
  const double rho = __builtin_sqrt(1.0 + s * s);
  const double denominator = 1.0 + beta * s * s;
  return {beta * rho * s / denominator, t / denominator};
}
// @ dc_sin_c128
DC_INLINE c128 dc_sin_c128(c128 a) {
  const c128 r = dc_sinh_c128({-a.im, a.re});
  const bool unknown = __builtin_fabs(a.im) == __builtin_inf() && !(__builtin_fabs(a.re) < __builtin_inf());
  return {r.im, unknown ? __builtin_inf() : -r.re};
}
// @ dc_cos_c128
DC_INLINE c128 dc_cos_c128(c128 a) { return dc_cosh_c128({-a.im, a.re}); }
// @ dc_tan_c128
DC_INLINE c128 dc_tan_c128(c128 a) {
  const c128 r = dc_tanh_c128({-a.im, a.re});
  return {r.im, -r.re};
}
// @ dc_exp2_c128
DC_INLINE c128 dc_exp2_c128(c128 a) {
  return dc_exp_c128({a.re * 0x1.62e42fefa39efp-1, a.im * 0x1.62e42fefa39efp-1});
}
// @ dc_log2_c128
DC_INLINE c128 dc_log2_c128(c128 a) {
  const c128 r = dc_log_c128(a);
  return {r.re * 0x1.71547652b82fep+0, r.im * 0x1.71547652b82fep+0};
}
// @ dc_log10_c128
DC_INLINE c128 dc_log10_c128(c128 a) {
  const c128 r = dc_log_c128(a);
  return {r.re * 0x1.bcb7b1526e50ep-2, r.im * 0x1.bcb7b1526e50ep-2};
}
// R. L. Smith's reciprocal, as NumPy's: not a number at zero
// @ dc_reciprocal_[c64 c128]
DC_INLINE TYPE dc_reciprocal_SUFFIX(TYPE a) {
  const bool turned = !((a.im < 0 ? -a.im : a.im) <= (a.re < 0 ? -a.re : a.re));
  const bool nan = __builtin_isunordered(a.re, a.im);  // NumPy's comparison of them is invalid
  const UNSIGNED infinity = (UNSIGNED)__builtin_inf();
  const UNSIGNED big = turned ? a.im : a.re;
  const UNSIGNED small = turned ? a.re : a.im;
  const UNSIGNED ratio = (nan ? infinity : small) / (nan ? infinity : big);
  const UNSIGNED d = big + small * ratio;
  return {(turned ? ratio : (UNSIGNED)1) / d, (turned ? (UNSIGNED)-1 : -ratio) / d};
}
// @ dc_kept_part_[c64 c128]
DC_INLINE UNSIGNED dc_kept_part_SUFFIX(UNSIGNED x, bool boxed) {
  if (x != x) return (UNSIGNED)__builtin_copysign(0.0, x);
  return boxed ? (UNSIGNED)__builtin_copysign(__builtin_fabs(x) == __builtin_inf() ? 1.0 : 0.0, x) : x;
}
// Multiplication that keeps infinities beside NaN: C, annex G.5.1. Every product is rounded.
// @ dc_kept_mul_[c64 c128]
DC_INLINE TYPE dc_kept_mul_SUFFIX(TYPE x, TYPE y) {
  const UNSIGNED rr = (UNSIGNED)__builtin_fma(x.re, y.re, -0.0), ii = (UNSIGNED)__builtin_fma(x.im, y.im, -0.0);
  const UNSIGNED ri = (UNSIGNED)__builtin_fma(x.re, y.im, -0.0), ir = (UNSIGNED)__builtin_fma(x.im, y.re, -0.0);
  const TYPE r = {rr - ii, ri + ir};
  if (r.re == r.re || r.im == r.im) return r;
  const UNSIGNED inf = (UNSIGNED)__builtin_inf();
  const bool first = dc_isinf_SUFFIX(x), second = dc_isinf_SUFFIX(y);
  const bool large = __builtin_fabs(rr) == inf || __builtin_fabs(ii) == inf || __builtin_fabs(ri) == inf ||
                     __builtin_fabs(ir) == inf;
  if (!(first || second || large)) return r;
  const UNSIGNED a = dc_kept_part_SUFFIX(x.re, first), b = dc_kept_part_SUFFIX(x.im, first);
  const UNSIGNED c = dc_kept_part_SUFFIX(y.re, second), d = dc_kept_part_SUFFIX(y.im, second);
  return {inf * (a * c - b * d), inf * (a * d + b * c)};
}
// Exponents that are small whole numbers by multiplication, in the numbers' own precision, as NumPy's
// @ dc_pow_[c64 c128]
DC_INLINE TYPE dc_pow_SUFFIX(TYPE x, TYPE y) {
  const UNSIGNED zero = 0, one = 1, nan = (UNSIGNED)__builtin_nan("");
  if (y.re == 0 && y.im == 0) return {one, zero};
  if (x.re == 0 && x.im == 0) {
    if (y.re > 0) return {zero, zero};
    return {nan, nan};
  }
  if (y.im == 0 && y.re == __builtin_floor(y.re) && __builtin_fabs(y.re) < 100.0) {
    if (y.re == 1) return x;
    if (y.re == 2) return dc_mul_SUFFIX(x, x);
    if (y.re == 3) return dc_mul_SUFFIX(x, dc_mul_SUFFIX(x, x));
    TYPE result = {one, zero};
    TYPE base = x;
    for (int n = (int)__builtin_fabs(y.re); n; n >>= 1) {
      if (n & 1) result = dc_mul_SUFFIX(result, base);
      base = dc_mul_SUFFIX(base, base);
    }
    return y.re < 0 ? dc_div_SUFFIX({one, zero}, result) : result;
  }
  return dc_exp_SUFFIX(dc_kept_mul_SUFFIX(y, dc_log_SUFFIX(x)));
}
// @ dc_sign_c64
DC_INLINE c64 dc_sign_c64(c64 a) {
  const float r = dc_abs_c64(a);
  if (r > 0 && r < (float)__builtin_inf()) return {a.re / r, a.im / r};
  const c128 special = dc_sign_c128({a.re, a.im});
  return {(float)special.re, (float)special.im};
}
// @ dc_exp_c64
DC_INLINE c64 dc_exp_c64(c64 a) {
  const c128 r = dc_exp_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_log_c64
DC_INLINE c64 dc_log_c64(c64 a) {
  const c128 r = dc_log_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_sqrt_c64
DC_INLINE c64 dc_sqrt_c64(c64 a) {
  const c128 r = dc_sqrt_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_sinh_c64
DC_INLINE c64 dc_sinh_c64(c64 a) {
  const c128 r = dc_sinh_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_cosh_c64
DC_INLINE c64 dc_cosh_c64(c64 a) {
  const c128 r = dc_cosh_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_tanh_c64
DC_INLINE c64 dc_tanh_c64(c64 a) {
  const c128 r = dc_tanh_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_sin_c64
DC_INLINE c64 dc_sin_c64(c64 a) {
  const c128 r = dc_sin_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_cos_c64
DC_INLINE c64 dc_cos_c64(c64 a) {
  const c128 r = dc_cos_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_tan_c64
DC_INLINE c64 dc_tan_c64(c64 a) {
  const c128 r = dc_tan_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_exp2_c64
DC_INLINE c64 dc_exp2_c64(c64 a) {  // the product is rounded, as NumPy's
  const float re = a.re * 0x1.62e43p-1f, im = a.im * 0x1.62e43p-1f;
  const c128 r = dc_exp_c128({re, im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_log2_c64
DC_INLINE c64 dc_log2_c64(c64 a) {
  const c128 r = dc_log2_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
// @ dc_log10_c64
DC_INLINE c64 dc_log10_c64(c64 a) {
  const c128 r = dc_log10_c128({a.re, a.im});
  return {dc_rounded_f32(r.re), dc_rounded_f32(r.im)};
}
