/* Elementary functions on whole vectors, for generated code to call.
 *
 * dcv_NAME_f32 and dcv_NAME_f64 with their vector forms under the names of the x86-64 vector function ABI,
 * which gcc calls from loops over functions declared __attribute__((simd)): _ZGVe… 512 bits, _ZGVd… 256,
 * _ZGVb… 128. They are the helpers of inductor/render/cpp/csrc, which setup.py writes into vector_math.inc;
 * every form makes the same operations on each element, so that the position of an element in a loop does not
 * change its result.
 *
 * This is a Python module only so that it is built and found like one; importing it makes its symbols visible
 * to libraries that are loaded later.
 *
 * Status flags are raised as NumPy's functions raise them, by the arithmetic itself or, where results are
 * selected (the ends of logarithms), after a look at those that are not finite. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#include "../../../inductor/render/cpp/csrc/quiet.h"
#define DC_HAS_VECTOR_MATH 1

typedef long long i64;
typedef unsigned long long u64;

#define DC_INLINE static inline __attribute__((always_inline))
#define DC_HELPERS
#include "vector_math.inc"
#undef DC_HELPERS

#define DC_EXPORT(TARGET) extern "C" __attribute__((visibility("default"), target(TARGET)))
#define DC_AVX2 "avx2,fma"
#define DC_AVX512 "avx512f,avx512dq,avx2,fma,prefer-vector-width=512"

// Vectors go to arrays and back as wholes: gcc splits a memcpy of 32 bytes in two, and loads of both stores at
// once wait for them (three times as long).
#define DC_VECTOR(T, LANES) typedef T T##LANES __attribute__((vector_size(sizeof(T) * LANES), may_alias));
#define DC_PUT(V, x, v) (*(V*)(x) = (v))
#define DC_GET(V, x) (*(const V*)(x))
DC_VECTOR(float, 4)
DC_VECTOR(float, 8)
DC_VECTOR(float, 16)
DC_VECTOR(double, 2)
DC_VECTOR(double, 4)
DC_VECTOR(double, 8)

#define DC_LANES(LANES) _Pragma("omp simd") for (int l = 0; l < LANES; ++l)

// whether some lane is infinite or NaN: adding one to an exponent of ones only makes a sign
#define DC_ODD(T, LANES, U, EXPONENT, ONE, TEST)                            \
  typedef U odd_##T##LANES __attribute__((vector_size(sizeof(U) * LANES))); \
  __attribute__((target(DC_AVX2))) static inline int dc_odd(T##LANES v) {   \
    const odd_##T##LANES u = ((odd_##T##LANES)v & EXPONENT) + ONE;          \
    return TEST;                                                            \
  }
#define DC_SINGLE 0x7f800000u, 0x00800000u
#define DC_DOUBLE 0x7ff0000000000000ULL, 0x0010000000000000ULL
#define DC_ODD_OF(...) DC_ODD(__VA_ARGS__)
DC_ODD_OF(float, 4, unsigned, DC_SINGLE, _mm_movemask_ps((__m128)u))
DC_ODD_OF(float, 8, unsigned, DC_SINGLE, _mm256_movemask_ps((__m256)u))
DC_ODD_OF(double, 2, u64, DC_DOUBLE, _mm_movemask_pd((__m128d)u))
DC_ODD_OF(double, 4, u64, DC_DOUBLE, _mm256_movemask_pd((__m256d)u))
enum { kOdd = 0x99 };  // quiet and signalling NaN, plus and minus infinity
__attribute__((target(DC_AVX512))) static inline int dc_odd(float16 v) {
  return _mm512_fpclass_ps_mask((__m512)v, kOdd);
}
__attribute__((target(DC_AVX512))) static inline int dc_odd(double8 v) {
  return _mm512_fpclass_pd_mask((__m512d)v, kOdd);
}

// The rows say for which flags results are looked at (LOOKED_AT in prims/scalar_types.py): NAME_poles comes
// with the helpers.
enum { kRaised = -1, kPole = 1, kZeroToAPower = 2, kLogarithm = 3 };

// no floating-point operation: those with infinities raise flags
static inline bool dc_is_finite(float x) {
  unsigned u;
  memcpy(&u, &x, sizeof u);
  return (u & 0x7f800000u) != 0x7f800000u;
}
static inline bool dc_is_finite(double x) {
  u64 u;
  memcpy(&u, &x, sizeof u);
  return (u & 0x7ff0000000000000ULL) != 0x7ff0000000000000ULL;
}

// y = f(x, w) has a lane that is not finite; w may be x
template <int LANES, class T>
__attribute__((always_inline)) static inline void dc_flags(const T* x, const T* w, const T* y, int poles) {
  int invalid = 0, divide = 0, overflow = 0;
  for (int l = 0; l < LANES; ++l) {
    const bool finite = dc_is_finite(x[l]) && dc_is_finite(w[l]);
    const bool number = x[l] == x[l] && w[l] == w[l];
    const bool at_zero = poles == kZeroToAPower && x[l] == 0; /* to the power of minus infinity, too */
    const bool infinite = y[l] == y[l] && !dc_is_finite(y[l]) && (finite || at_zero);
    const bool pole = poles == kPole || poles == kLogarithm || at_zero;
    invalid |= y[l] != y[l] && number;
    divide |= infinite && pole;
    overflow |= infinite && !pole;
  }
  if (invalid | divide | overflow)
    _mm_setcsr(_mm_getcsr() | (invalid ? 1 : 0) | (divide ? 4 : 0) | (overflow ? 8 : 0));
}
// Whole vectors, and their results again: a last call, for which nothing needs a place on the stack before.
template <class V, int LANES, class T, int POLES>
__attribute__((noinline, cold, target(DC_AVX2))) static V dc_report_two(V v, V w, V r) {
  T x[LANES], y[LANES], z[LANES];
  memcpy(x, &v, sizeof v);
  memcpy(y, &w, sizeof v);
  memcpy(z, &r, sizeof v);
  dc_flags<LANES>(x, y, z, POLES);
  return r;
}
template <class V, int LANES, class T, int POLES>
__attribute__((noinline, cold, target(DC_AVX512))) static V dc_report_wide(V v, V w, V r) {
  T x[LANES], y[LANES], z[LANES];
  memcpy(x, &v, sizeof v);
  memcpy(y, &w, sizeof v);
  memcpy(z, &r, sizeof v);
  dc_flags<LANES>(x, y, z, POLES);
  return r;
}
#define DC_REPORT_b dc_report_two
#define DC_REPORT_c dc_report_two
#define DC_REPORT_d dc_report_two
#define DC_REPORT_e dc_report_wide
// Whether some lane of the argument of a logarithm is not above zero: the function's own comparison, which
// costs less than a look at the result (4% in place of 14%).
#define DC_BELOW(TARGET, V, TEST) \
  __attribute__((target(TARGET))) static inline int dc_below(V v) { return TEST; }
DC_BELOW(DC_AVX2, float4, _mm_movemask_ps((__m128)(v > 0)) != 15)
DC_BELOW(DC_AVX2, float8, _mm256_movemask_ps((__m256)(v > 0)) != 255)
DC_BELOW(DC_AVX2, double2, _mm_movemask_pd((__m128d)(v > 0)) != 3)
DC_BELOW(DC_AVX2, double4, _mm256_movemask_pd((__m256d)(v > 0)) != 15)
DC_BELOW(DC_AVX512, float16, _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NGT_UQ) != 0)
DC_BELOW(DC_AVX512, double8, _mm512_cmp_pd_mask((__m512d)v, _mm512_setzero_pd(), _CMP_NGT_UQ) != 0)
// the end of a vector form: r = f(v, w)
#define DC_FINISH(NAME, ABI, LANES, T, V, W, R)                                                          \
  if (NAME##_kind >= 0 && __builtin_expect((int)NAME##_kind == kLogarithm ? dc_below(V) : dc_odd(R), 0)) \
    return DC_REPORT_##ABI<T##LANES, LANES, T, NAME##_kind>(V, W, R);                                    \
  return R;

// the vector form of one width
#define DC_UNARY_FORM(TARGET, ABI, LANES, NAME, T)                           \
  DC_EXPORT(TARGET) T##LANES _ZGV##ABI##N##LANES##v_dcv_##NAME(T##LANES v) { \
    alignas(T##LANES) T x[LANES], y[LANES];                                  \
    DC_PUT(T##LANES, x, v);                                                  \
    DC_LANES(LANES) y[l] = dc_##NAME(x[l]);                                  \
    const T##LANES r = DC_GET(T##LANES, y);                                  \
    DC_FINISH(NAME, ABI, LANES, T, v, v, r)                                  \
  }
#define DC_BINARY_FORM(TARGET, ABI, LANES, NAME, T)                                       \
  DC_EXPORT(TARGET) T##LANES _ZGV##ABI##N##LANES##vv_dcv_##NAME(T##LANES v, T##LANES w) { \
    alignas(T##LANES) T x[LANES], y[LANES], z[LANES];                                     \
    DC_PUT(T##LANES, x, v);                                                               \
    DC_PUT(T##LANES, y, w);                                                               \
    DC_LANES(LANES) z[l] = dc_##NAME(x[l], y[l]);                                         \
    const T##LANES r = DC_GET(T##LANES, z);                                               \
    DC_FINISH(NAME, ABI, LANES, T, v, w, r)                                               \
  }
#define DC_GUARDED_UNARY_FORM(TARGET, ABI, LANES, NAME, T)                   \
  DC_EXPORT(TARGET) T##LANES _ZGV##ABI##N##LANES##v_dcv_##NAME(T##LANES v) { \
    alignas(T##LANES) T x[LANES], y[LANES];                                  \
    DC_PUT(T##LANES, x, v);                                                  \
    int far = 0;                                                             \
    DC_LANES(LANES) far |= dc_far_##NAME(x[l]);                              \
    if (__builtin_expect(far, 0)) {                                          \
      for (int l = 0; l < LANES; ++l) y[l] = dcv_##NAME(x[l]);               \
    } else {                                                                 \
      DC_LANES(LANES) y[l] = dc_##NAME(x[l]);                                \
    }                                                                        \
    const T##LANES r = DC_GET(T##LANES, y);                                  \
    DC_FINISH(NAME, ABI, LANES, T, v, v, r)                                  \
  }
#define DC_GUARDED_BINARY_FORM(TARGET, ABI, LANES, NAME, T)                               \
  DC_EXPORT(TARGET) T##LANES _ZGV##ABI##N##LANES##vv_dcv_##NAME(T##LANES v, T##LANES w) { \
    alignas(T##LANES) T x[LANES], y[LANES], z[LANES];                                     \
    DC_PUT(T##LANES, x, v);                                                               \
    DC_PUT(T##LANES, y, w);                                                               \
    int far = 0;                                                                          \
    DC_LANES(LANES) far |= dc_far_##NAME(x[l], y[l]);                                     \
    if (__builtin_expect(far, 0)) {                                                       \
      for (int l = 0; l < LANES; ++l) z[l] = dcv_##NAME(x[l], y[l]);                      \
    } else {                                                                              \
      DC_LANES(LANES) z[l] = dc_##NAME(x[l], y[l]);                                       \
    }                                                                                     \
    const T##LANES r = DC_GET(T##LANES, z);                                               \
    DC_FINISH(NAME, ABI, LANES, T, v, w, r)                                               \
  }

// lanes of 128, 256 and 512 bits
#define DC_LANES_128_float 4
#define DC_LANES_256_float 8
#define DC_LANES_512_float 16
#define DC_LANES_128_double 2
#define DC_LANES_256_double 4
#define DC_LANES_512_double 8
#define DC_FORM(FORM, TARGET, ABI, LANES, NAME, T) FORM(TARGET, ABI, LANES, NAME, T)
#define DC_FORMS(FORM, NAME, T)                        \
  DC_FORM(FORM, DC_AVX2, b, DC_LANES_128_##T, NAME, T) \
  DC_FORM(FORM, DC_AVX2, c, DC_LANES_256_##T, NAME, T) \
  DC_FORM(FORM, DC_AVX2, d, DC_LANES_256_##T, NAME, T) \
  DC_FORM(FORM, DC_AVX512, e, DC_LANES_512_##T, NAME, T)

// of one element
#define DC_SCALAR(NAME, SHORT, T, FUNCTION)                         \
  enum { NAME##_##SHORT##_kind = NAME##_poles };                    \
  DC_EXPORT(DC_AVX2) T dcv_##NAME##_##SHORT(T x) {                  \
    const T y = FUNCTION(x);                                        \
    if (NAME##_poles >= 0 && __builtin_expect(!dc_is_finite(y), 0)) \
      dc_flags<1>(&x, &x, &y, NAME##_poles);                        \
    return y;                                                       \
  }
#define DC_SCALAR_OF_TWO(NAME, SHORT, T, FUNCTION)                  \
  enum { NAME##_##SHORT##_kind = NAME##_poles };                    \
  DC_EXPORT(DC_AVX2) T dcv_##NAME##_##SHORT(T x, T y) {             \
    const T z = FUNCTION(x, y);                                     \
    if (NAME##_poles >= 0 && __builtin_expect(!dc_is_finite(z), 0)) \
      dc_flags<1>(&x, &y, &z, NAME##_poles);                        \
    return z;                                                       \
  }
#define DC_UNARY(NAME, SHORT, T)                 \
  DC_SCALAR(NAME, SHORT, T, dc_##NAME##_##SHORT) \
  DC_FORMS(DC_UNARY_FORM, NAME##_##SHORT, T)
#define DC_BINARY(NAME, SHORT, T)                       \
  DC_SCALAR_OF_TWO(NAME, SHORT, T, dc_##NAME##_##SHORT) \
  DC_FORMS(DC_BINARY_FORM, NAME##_##SHORT, T)
#define DC_GUARDED_UNARY(NAME, SHORT, T)              \
  DC_SCALAR(NAME, SHORT, T, dc_full_##NAME##_##SHORT) \
  DC_FORMS(DC_GUARDED_UNARY_FORM, NAME##_##SHORT, T)
#define DC_GUARDED_BINARY(NAME, SHORT, T)                    \
  DC_SCALAR_OF_TWO(NAME, SHORT, T, dc_full_##NAME##_##SHORT) \
  DC_FORMS(DC_GUARDED_BINARY_FORM, NAME##_##SHORT, T)
#include "vector_math.inc"

#endif

namespace {

/* Whether this build and this processor have the functions. */
bool has_vector_math() {
#ifdef DC_HAS_VECTOR_MATH
  __builtin_cpu_init();
  const bool wide = !__builtin_cpu_supports("avx512f") || __builtin_cpu_supports("avx512dq");
  return wide && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

/* Make the symbols of this library visible to those loaded later; it is loaded already. */
bool publish() {
  Dl_info place;
  if (!dladdr(reinterpret_cast<void*>(&has_vector_math), &place)) return false;
  return dlopen(place.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) != nullptr;
}

PyModuleDef module = {PyModuleDef_HEAD_INIT,
                      "dyncomp.runtime._vector_math",
                      "Elementary functions on vectors.",
                      -1,
                      nullptr,
                      nullptr,
                      nullptr,
                      nullptr,
                      nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__vector_math() {
  PyObject* made = PyModule_Create(&module);
  if (!made) return nullptr;
  const bool available = has_vector_math() && publish();
  if (PyModule_AddObjectRef(made, "available", available ? Py_True : Py_False) < 0) {
    Py_DECREF(made);
    return nullptr;
  }
  return made;
}
