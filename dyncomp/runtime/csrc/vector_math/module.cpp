/* Elementary functions on whole vectors, for generated code to call.
 *
 * dcv_NAME_f32 and dcv_NAME_f64 with their vector forms under the names of the x86-64 vector function ABI, which
 * gcc calls from loops over functions declared __attribute__((simd)): _ZGVe… 512 bits, _ZGVd… 256, _ZGVb… 128.
 * They are the helpers of inductor/render/csrc, which setup.py writes into vector_math.inc; every form makes the
 * same operations on each element, so that the position of an element in a loop does not change its result.
 *
 * This is a Python module only so that it is built and found like one; importing it makes its symbols visible to
 * libraries that are loaded later. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define DC_HAS_VECTOR_MATH 1

typedef long long i64;
typedef unsigned long long u64;

#define DC_INLINE static inline __attribute__((always_inline))
#define DC_HELPERS
#include "vector_math.inc"
#undef DC_HELPERS

#define DC_EXPORT(TARGET) extern "C" __attribute__((visibility("default"), target(TARGET)))
#define DC_AVX2 "avx2,fma"
#define DC_AVX512 "avx512f,avx2,fma,prefer-vector-width=512"

#define DC_VECTOR(T, LANES) typedef T T##LANES __attribute__((vector_size(sizeof(T) * LANES)));
DC_VECTOR(float, 4)
DC_VECTOR(float, 8)
DC_VECTOR(float, 16)
DC_VECTOR(double, 2)
DC_VECTOR(double, 4)
DC_VECTOR(double, 8)

#define DC_LANES(LANES) _Pragma("omp simd") for (int l = 0; l < LANES; ++l)

// the vector form of one width
#define DC_UNARY_FORM(TARGET, ABI, LANES, NAME, T)                        \
  DC_EXPORT(TARGET) T##LANES _ZGV##ABI##N##LANES##v_dcv_##NAME(T##LANES v) { \
    T x[LANES], y[LANES];                                                 \
    memcpy(x, &v, sizeof v);                                              \
    DC_LANES(LANES) y[l] = dc_##NAME(x[l]);                               \
    memcpy(&v, y, sizeof v);                                              \
    return v;                                                             \
  }
#define DC_BINARY_FORM(TARGET, ABI, LANES, NAME, T)                                        \
  DC_EXPORT(TARGET) T##LANES _ZGV##ABI##N##LANES##vv_dcv_##NAME(T##LANES v, T##LANES w) {  \
    T x[LANES], y[LANES], z[LANES];                                                        \
    memcpy(x, &v, sizeof v);                                                               \
    memcpy(y, &w, sizeof w);                                                               \
    DC_LANES(LANES) z[l] = dc_##NAME(x[l], y[l]);                                          \
    memcpy(&v, z, sizeof v);                                                               \
    return v;                                                                              \
  }
#define DC_GUARDED_UNARY_FORM(TARGET, ABI, LANES, NAME, T)                   \
  DC_EXPORT(TARGET) T##LANES _ZGV##ABI##N##LANES##v_dcv_##NAME(T##LANES v) { \
    T x[LANES], y[LANES];                                                    \
    memcpy(x, &v, sizeof v);                                                 \
    int far = 0;                                                             \
    DC_LANES(LANES) far |= dc_far_##NAME(x[l]);                              \
    if (__builtin_expect(far, 0)) {                                          \
      for (int l = 0; l < LANES; ++l) y[l] = dcv_##NAME(x[l]);               \
    } else {                                                                 \
      DC_LANES(LANES) y[l] = dc_##NAME(x[l]);                                \
    }                                                                        \
    memcpy(&v, y, sizeof v);                                                 \
    return v;                                                                \
  }
#define DC_GUARDED_BINARY_FORM(TARGET, ABI, LANES, NAME, T)                               \
  DC_EXPORT(TARGET) T##LANES _ZGV##ABI##N##LANES##vv_dcv_##NAME(T##LANES v, T##LANES w) { \
    T x[LANES], y[LANES], z[LANES];                                                       \
    memcpy(x, &v, sizeof v);                                                              \
    memcpy(y, &w, sizeof w);                                                              \
    int far = 0;                                                                          \
    DC_LANES(LANES) far |= dc_far_##NAME(x[l], y[l]);                                     \
    if (__builtin_expect(far, 0)) {                                                       \
      for (int l = 0; l < LANES; ++l) z[l] = dcv_##NAME(x[l], y[l]);                      \
    } else {                                                                              \
      DC_LANES(LANES) z[l] = dc_##NAME(x[l], y[l]);                                       \
    }                                                                                     \
    memcpy(&v, z, sizeof v);                                                              \
    return v;                                                                             \
  }

// lanes of 128, 256 and 512 bits
#define DC_LANES_128_float 4
#define DC_LANES_256_float 8
#define DC_LANES_512_float 16
#define DC_LANES_128_double 2
#define DC_LANES_256_double 4
#define DC_LANES_512_double 8
#define DC_FORM(FORM, TARGET, ABI, LANES, NAME, T) FORM(TARGET, ABI, LANES, NAME, T)
#define DC_FORMS(FORM, NAME, T)                               \
  DC_FORM(FORM, DC_AVX2, b, DC_LANES_128_##T, NAME, T)        \
  DC_FORM(FORM, DC_AVX2, c, DC_LANES_256_##T, NAME, T)        \
  DC_FORM(FORM, DC_AVX2, d, DC_LANES_256_##T, NAME, T)        \
  DC_FORM(FORM, DC_AVX512, e, DC_LANES_512_##T, NAME, T)

#define DC_UNARY(NAME, SHORT, T)                                                          \
  DC_EXPORT(DC_AVX2) T dcv_##NAME##_##SHORT(T x) { return dc_##NAME##_##SHORT(x); }       \
  DC_FORMS(DC_UNARY_FORM, NAME##_##SHORT, T)
#define DC_BINARY(NAME, SHORT, T)                                                              \
  DC_EXPORT(DC_AVX2) T dcv_##NAME##_##SHORT(T x, T y) { return dc_##NAME##_##SHORT(x, y); }    \
  DC_FORMS(DC_BINARY_FORM, NAME##_##SHORT, T)
#define DC_GUARDED_UNARY(NAME, SHORT, T)                                                       \
  DC_EXPORT(DC_AVX2) T dcv_##NAME##_##SHORT(T x) { return dc_full_##NAME##_##SHORT(x); }       \
  DC_FORMS(DC_GUARDED_UNARY_FORM, NAME##_##SHORT, T)
#define DC_GUARDED_BINARY(NAME, SHORT, T)                                                           \
  DC_EXPORT(DC_AVX2) T dcv_##NAME##_##SHORT(T x, T y) { return dc_full_##NAME##_##SHORT(x, y); }    \
  DC_FORMS(DC_GUARDED_BINARY_FORM, NAME##_##SHORT, T)
#include "vector_math.inc"

#endif

namespace {

/* Whether this build and this processor have the functions. */
bool has_vector_math() {
#ifdef DC_HAS_VECTOR_MATH
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
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

PyModuleDef module = {PyModuleDef_HEAD_INIT, "dyncomp.runtime._vector_math", "Elementary functions on vectors.", -1,
                      nullptr, nullptr, nullptr, nullptr, nullptr};

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
