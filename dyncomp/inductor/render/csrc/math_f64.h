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
  POLY(p, r, 0.5, 0.1666666666666667103, 0.04166666666666664209, 0.00833333333332608312, 0.001388888888889659807, 0.0001984126987500227879, 0.00002480158730120309548, 2.755725517000088744e-6, 2.755729381410231336e-7, 2.510531272962210179e-8, 2.090861119311474999e-9);
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
DC_INLINE double dc_exp_f64(double x) { return dc_exp_sum_f64(x, 0.0); }
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
  POLY(p, z, 0.6666666666666666645, 0.4000000000000094127, 0.2857142857076445012, 0.222222224005477573, 0.1818179470089779959, 0.1538629053465899199, 0.132674185964748834, 0.1310072138350349139);
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
  POLY(p, z, -0.1666666666666666667, 0.008333333333333331259, -0.0001984126984126456589, 2.755731921895476226e-6, -2.505210610025598923e-8, 1.605851087531919491e-10, -7.58548648523593814e-13);
  return r + __builtin_fma(r * z, p, low * __builtin_fma(-0.5, z, 1.0));
}
// @ dc_cos_kernel_f64
DC_INLINE double dc_cos_kernel_f64(double r, double low) {
  const double z = r * r;
  POLY(p, z, 0.04166666666666666667, -0.001388888888888888774, 0.00002480158730158436897, -2.75573192211891042e-7, 2.087675571758440374e-9, -1.147044935446677262e-11, 4.745198807202875811e-14);
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
  POLY(p, z, -0.3333333333333333009, 0.1999999999999543734, -0.1428571428464917351, 0.111111110138606878, -0.09090904521471690746, 0.07692181876036845531, -0.06664492945806264124, 0.05857988350245762191, -0.05084610357631765136, 0.03920743321261196149, -0.01914724896461176532);
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
  POLY(p, z, 0.1666666666666666786, 0.07499999999998389113, 0.0446428571464460505, 0.0303819441312371987, 0.02237217324383220559, 0.01735238539348094627, 0.01397132532872877167, 0.01147804747251014485, 0.01033037029540440644, 0.005424230839804000901, 0.01749356947624820412, -0.01499985578381134799, 0.02886097438799853135);
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
  POLY(p, z, -0.3333333333333333331, 0.1333333333333328947, -0.05396825396812385295, 0.02186948852127996519, -0.008863234676873267864, 0.003592100503191432145, -0.001455310598885563771, 0.0005841818685729779409, -0.0002033775391355077066);
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
  const double y = a < 709.0 ? 0.5 * (t + t / (t + 1.0)) : (0.5 * e) * e;
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
  const double y = dc_log1p_f64(huge ? a : b + square / (1.0 + __builtin_sqrt(1.0 + square)));
  return __builtin_copysign(huge ? y + 0x1.62e42fefa39efp-1 : y, x);
}
// @ dc_arccosh_f64
DC_INLINE double dc_arccosh_f64(double x) {
  const bool huge = x > 0x1p28;
  const double t = huge ? 1.0 : x - 1.0;
  const double y = dc_log1p_f64(huge ? x : t + __builtin_sqrt(2.0 * t + t * t));
  return huge ? y + 0x1.62e42fefa39efp-1 : y;
}
// @ dc_arctanh_f64
DC_INLINE double dc_arctanh_f64(double x) {
  const double a = __builtin_fabs(x);
  const double y = 0.5 * dc_log1p_f64(2.0 * a / (1.0 - a));
  return __builtin_copysign(a == 1.0 ? __builtin_inf() : y, x);
}
// @ dc_sigmoid_f64
DC_INLINE double dc_sigmoid_f64(double x) {
  const double z = dc_exp_f64(-__builtin_fabs(x));
  return (x < 0 ? z : 1.0) / (1.0 + z);
}
// @ dc_erf_f64
DC_INLINE double dc_erf_f64(double x) {
  const double a = __builtin_fabs(x) > 6.0 ? 6.0 : __builtin_fabs(x);
  const double z = a * a;
  POLY(p, z, 1.128379167095512574, -0.3761263890318375238, 0.1128379167095512024, -0.02686617064512984081, 0.005223977625423298309, -0.0008548327021934829596, 0.0001205533290288873541, -0.00001492564756751933213, 1.646204544146841894e-6, -1.63646421581676153e-7, 1.4792401209404813e-8, -1.216456005728345008e-9, 8.70904512905310669e-11, -4.230945824295337817e-12);
  const double u = (a - 2.5) / (a + 2.5);
  POLY(q, u, 0.2108063640611435696, -0.3717367339489732761, 0.2517131932174571365, -0.1250330523788460744, 0.0399225390746665919, -0.003993701164817427396, -0.002642365923254886478, 0.0008759154226210550929, 0.0002283794773036068103, -0.0001288768211090127361, -0.00003417147530809871847, 0.00001862442115870252143, 7.481372041450920041e-6, -2.295636785005964235e-6, -1.556432922862438583e-6, 1.004850192926196714e-7);
  const double y = a < 1.0 ? a * p : 1.0 - dc_exp_f64(-z) * q;
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
  POLY(tail, z, 0.4000000000000094127, 0.2857142857076445012, 0.222222224005477573, 0.1818179470089779959, 0.1538629053465899199, 0.132674185964748834, 0.1310072138350349139);
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
