/* x[mask]: the elements of an array where a mask of its shape holds. NumPy asks for each element whether to go on;
 * here whole vectors are pressed together, which takes as long for any mask. */
#define NO_IMPORT_ARRAY
#include "select.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define DYNCOMP_HAS_COMPRESS 1
#endif

namespace dyncomp {
namespace {

constexpr npy_intp kBlock = 64;
constexpr npy_intp kLong = 100000;  // elements beyond which other Python threads run meanwhile

npy_intp count_true(const std::uint8_t* mask, npy_intp n) {
  npy_intp found = 0;
  for (npy_intp k = 0; k < n; ++k) found += mask[k] != 0;
  return found;
}

/* One by one, without a branch on the mask; never more than `count`, should the mask change meanwhile. */
template <class T>
npy_intp press_tail(T* out, npy_intp done, npy_intp count, const T* x, const std::uint8_t* mask, npy_intp n) {
  for (npy_intp k = 0; k < n && done < count; ++k) {
    out[done] = x[k];
    done += mask[k] != 0;
  }
  return done;
}

template <class T>
void press_plain(void* out, npy_intp count, const void* x, const std::uint8_t* mask, npy_intp n) {
  const T* const from = static_cast<const T*>(x);
  npy_intp done = 0;
  npy_intp k = 0;
  for (; k + 8 <= n && done < count; k += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, mask + k, 8);
    if (eight != 0) done = press_tail(static_cast<T*>(out), done, count, from + k, mask + k, 8);
  }
  press_tail(static_cast<T*>(out), done, count, from + k, mask + k, n - k);
}

struct Pair {
  std::uint64_t parts[2];
};

#ifdef DYNCOMP_HAS_COMPRESS
#define TARGET __attribute__((target("avx512f,avx512bw,popcnt,bmi2")))

/* The bits of 8 lanes of 8 bytes: of as many elements, or of 4 pairs. */
template <class T>
TARGET inline __mmask8 lanes_of(std::uint64_t bits) {
  if (sizeof(T) == 8) return static_cast<__mmask8>(bits);
  const std::uint64_t spread = _pdep_u64(bits & 15, 0x55);
  return static_cast<__mmask8>(spread | spread << 1);
}

/* A block of 64 elements of which `found` are wanted, with room for them. */
template <class T>
TARGET inline void press_block(T* out, const T* x, std::uint64_t bits) {
  constexpr int kLanes = 64 / sizeof(T);
  for (int k = 0; k < kBlock; k += kLanes) {
    const std::uint64_t here = bits >> k & ((1ull << kLanes) - 1);
    if (sizeof(T) == 4) {
      const __m512i row = _mm512_loadu_si512(x + k);
      _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(here), row));
    } else {
      const __m512i row = _mm512_loadu_si512(x + k);
      _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(lanes_of<T>(here), row));
    }
    out += _mm_popcnt_u64(here);
  }
}

template <class T>
TARGET void press_vectors(void* target, npy_intp count, const void* source, const std::uint8_t* mask, npy_intp n) {
  T* const out = static_cast<T*>(target);
  const T* const x = static_cast<const T*>(source);
  npy_intp done = 0;
  npy_intp k = 0;
  // whole vectors are stored: those behind the last element that is wanted have to lie in the result
  for (; k + kBlock <= n && done + kBlock <= count; k += kBlock) {
    const __m512i row = _mm512_loadu_si512(mask + k);
    const std::uint64_t bits = _mm512_test_epi8_mask(row, row);
    if (bits == 0) continue;
    press_block(out + done, x + k, bits);
    done += _mm_popcnt_u64(bits);
  }
  for (; k + kBlock <= n && done < count; k += kBlock) {
    const __m512i row = _mm512_loadu_si512(mask + k);
    if (_mm512_test_epi8_mask(row, row) == 0) continue;
    done = press_tail(out, done, count, x + k, mask + k, kBlock);
  }
  press_tail(out, done, count, x + k, mask + k, n - k);
}

TARGET npy_intp count_vectors(const std::uint8_t* mask, npy_intp n) {
  npy_intp found = 0;
  npy_intp k = 0;
  for (; k + kBlock <= n; k += kBlock) {
    const __m512i row = _mm512_loadu_si512(mask + k);
    found += _mm_popcnt_u64(_mm512_test_epi8_mask(row, row));
  }
  return found + count_true(mask + k, n - k);
}

bool has_compress() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("bmi2");
}
#else
template <class T>
void press_vectors(void* target, npy_intp count, const void* source, const std::uint8_t* mask, npy_intp n) {
  press_plain<T>(target, count, source, mask, n);
}
npy_intp count_vectors(const std::uint8_t* mask, npy_intp n) { return count_true(mask, n); }
bool has_compress() { return false; }
#endif

const bool kCompress = has_compress();

using Press = void (*)(void*, npy_intp, const void*, const std::uint8_t*, npy_intp);

Press press_of(npy_intp itemsize) {
  switch (itemsize) {
    case 1: return press_plain<std::uint8_t>;
    case 2: return press_plain<std::uint16_t>;
    case 4: return kCompress ? press_vectors<std::uint32_t> : press_plain<std::uint32_t>;
    case 8: return kCompress ? press_vectors<std::uint64_t> : press_plain<std::uint64_t>;
    case 16: return kCompress ? press_vectors<Pair> : press_plain<Pair>;
    default: return nullptr;
  }
}

bool is_simple(PyObject* object) {
  if (!PyArray_CheckExact(object)) return false;
  PyArrayObject* const array = reinterpret_cast<PyArrayObject*>(object);
  const int type = PyArray_TYPE(array);
  const bool number = PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type);
  return number && PyArray_IS_C_CONTIGUOUS(array) && PyArray_ISALIGNED(array) && PyArray_NDIM(array) > 0;
}

}  // namespace

PyObject* select_elements(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "select takes 2 arguments, not %zd", count);
  if (!is_simple(args[0]) || !is_simple(args[1])) return PyObject_GetItem(args[0], args[1]);
  PyArrayObject* const array = reinterpret_cast<PyArrayObject*>(args[0]);
  PyArrayObject* const mask = reinterpret_cast<PyArrayObject*>(args[1]);
  const Press press = press_of(PyArray_ITEMSIZE(array));
  if (!press || PyArray_TYPE(mask) != NPY_BOOL || !PyArray_SAMESHAPE(array, mask))
    return PyObject_GetItem(args[0], args[1]);
  const npy_intp n = PyArray_SIZE(array);
  const std::uint8_t* const bits = static_cast<const std::uint8_t*>(PyArray_DATA(mask));
  npy_intp wanted = kCompress ? count_vectors(bits, n) : count_true(bits, n);
  PyArray_Descr* const type = PyArray_DESCR(array);
  Py_INCREF(type);
  PyObject* const made = PyArray_NewFromDescr(&PyArray_Type, type, 1, &wanted, nullptr, nullptr, 0, nullptr);
  if (!made) return nullptr;
  void* const out = PyArray_DATA(reinterpret_cast<PyArrayObject*>(made));
  PyThreadState* const state = n > kLong ? PyEval_SaveThread() : nullptr;
  press(out, wanted, PyArray_DATA(array), bits, n);
  if (state) PyEval_RestoreThread(state);
  return made;
}

}  // namespace dyncomp
