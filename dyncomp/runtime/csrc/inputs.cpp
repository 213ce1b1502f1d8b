/* Reading a call's arguments: data pointers, scalars by value, symbolic sizes. */
#include <cstring>

#define NO_IMPORT_ARRAY
#include "graph.h"

namespace dyncomp {

bool mismatch(const Frame& frame, int index, const char* what) {
  PyErr_Format(PyExc_TypeError, "%s: argument %d %s (got %s)", frame.plan->name.c_str(), index, what,
               Py_TYPE(frame.args[index])->tp_name);
  return false;
}

namespace {

/* long and long long are two NumPy types of one width. */
bool same_dtype(PyArray_Descr* have, PyArray_Descr* want) {
  if (have == want) return true;
  return PyArray_ISNBO(have->byteorder) && PyArray_EquivTypes(have, want);
}

/* Whether an element is ever found by the stride of this dimension. */
bool steps_along(PyArrayObject* array, int dim) { return PyArray_DIM(array, dim) != 1 && PyArray_SIZE(array) != 0; }

bool read_array(Frame& frame, int index, const Input& input) {
  PyObject* object = frame.args[index];
  if (!PyArray_CheckExact(object)) return mismatch(frame, index, "is not an ndarray");
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(object);
  if (!same_dtype(PyArray_DESCR(array), input.descr)) return mismatch(frame, index, "has another dtype");
  if (PyArray_NDIM(array) != input.ndim) return mismatch(frame, index, "has another number of dimensions");
  const int flags = PyArray_FLAGS(array);
  if (!(flags & NPY_ARRAY_ALIGNED)) return mismatch(frame, index, "is not aligned");
  if (input.writable && !(flags & NPY_ARRAY_WRITEABLE)) {
    /* Not ENABLEFLAGS's business: this is what an assignment to it raises. */
    return PyArray_FailUnlessWriteable(array, "assignment destination") == 0;
  }
  if (!input.shape.empty()) {
    for (int d = 0; d < input.ndim; ++d)
      if (input.shape[d] != PyArray_DIM(array, d) && input.shape[d] != kUnchecked)
        return mismatch(frame, index, "has another shape");
  }
  if (!input.strides.empty()) {
    for (int d = 0; d < input.ndim; ++d)
      if (input.strides[d] != PyArray_STRIDE(array, d) && input.strides[d] != kUnchecked && steps_along(array, d))
        return mismatch(frame, index, "has other strides");
  }
  frame.buffers[index] = PyArray_DATA(array);
  return true;
}

template <class T>
bool store(char* slot, T value) {
  memcpy(slot, &value, sizeof value);
  return true;
}

bool is_complex(int type) { return type == NPY_CFLOAT || type == NPY_CDOUBLE; }

/* Of another dtype (float16, bfloat16): NumPy converts. */
bool store_by_dtype(const Input& input, PyObject* value, char* slot) {
  PyObject* array = PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr);
  if (!array) return false;
  PyObject* cast = PyArray_CastToType(reinterpret_cast<PyArrayObject*>(array), reinterpret_cast<PyArray_Descr*>(
                                          Py_NewRef(reinterpret_cast<PyObject*>(input.descr))), 0);
  Py_DECREF(array);
  if (!cast) return false;
  memcpy(slot, PyArray_DATA(reinterpret_cast<PyArrayObject*>(cast)), static_cast<size_t>(input.item));
  Py_DECREF(cast);
  return true;
}

bool store_real(const Input& input, PyObject* object, double value, char* slot) {
  switch (input.descr->type_num) {
    case NPY_DOUBLE: return store(slot, value);
    case NPY_FLOAT: return store(slot, static_cast<float>(value));
    case NPY_CDOUBLE: return store(slot, value) && store(slot + 8, 0.0);
    case NPY_CFLOAT: return store(slot, static_cast<float>(value)) && store(slot + 4, 0.0f);
    default: return store_by_dtype(input, object, slot);
  }
}

bool store_complex(const Input& input, PyObject* object, Py_complex value, char* slot) {
  switch (input.descr->type_num) {
    case NPY_CDOUBLE: return store(slot, value.real) && store(slot + 8, value.imag);
    case NPY_CFLOAT:
      return store(slot, static_cast<float>(value.real)) && store(slot + 4, static_cast<float>(value.imag));
    default: return store_by_dtype(input, object, slot);
  }
}

bool out_of_range(const Frame& frame, int index) {
  PyErr_Format(PyExc_OverflowError, "%s: argument %d does not fit its integer type", frame.plan->name.c_str(), index);
  return false;
}

template <class T>
bool store_integer(Frame& frame, int index, long long value, char* slot) {
  if (static_cast<long long>(static_cast<T>(value)) != value) return out_of_range(frame, index);
  return store(slot, static_cast<T>(value));
}

bool store_unsigned64(PyObject* number, char* slot) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(number);
  if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return false;
  return store(slot, value);
}

/* `number` is a Python int. */
bool store_int(Frame& frame, int index, const Input& input, PyObject* number, char* slot) {
  const int type = input.descr->type_num;
  if (PyTypeNum_ISUNSIGNED(type) && input.item == 8) return store_unsigned64(number, slot);
  if (PyTypeNum_ISFLOAT(type) || is_complex(type) || PyTypeNum_ISUSERDEF(type)) {
    const double value = PyLong_AsDouble(number);
    if (value == -1.0 && PyErr_Occurred()) return false;
    return store_real(input, number, value, slot);
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (value == -1 && PyErr_Occurred()) return false;
  if (overflow) return out_of_range(frame, index);
  if (type == NPY_BOOL) return store(slot, static_cast<char>(value != 0));
  const bool is_signed = PyTypeNum_ISSIGNED(type);
  switch (input.item) {
    case 1: return is_signed ? store_integer<int8_t>(frame, index, value, slot)
                             : store_integer<uint8_t>(frame, index, value, slot);
    case 2: return is_signed ? store_integer<int16_t>(frame, index, value, slot)
                             : store_integer<uint16_t>(frame, index, value, slot);
    case 4: return is_signed ? store_integer<int32_t>(frame, index, value, slot)
                             : store_integer<uint32_t>(frame, index, value, slot);
    default: return store(slot, value);
  }
}

bool read_float(Frame& frame, int index, const Input& input, char* slot) {
  PyObject* object = frame.args[index];
  double value;
  if (PyFloat_CheckExact(object)) {
    value = PyFloat_AS_DOUBLE(object);
  } else {
    if (!PyFloat_Check(object) && !PyArray_IsScalar(object, Floating) && !PyLong_Check(object))
      return mismatch(frame, index, "is not a float");
    value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred()) return false;
  }
  return store_real(input, object, value, slot);
}

bool read_complex(Frame& frame, int index, const Input& input, char* slot) {
  PyObject* object = frame.args[index];
  if (!PyComplex_Check(object) && !PyFloat_Check(object) && !PyLong_Check(object) &&
      !PyArray_IsScalar(object, Inexact))
    return mismatch(frame, index, "is not a complex number");
  const Py_complex value = PyComplex_AsCComplex(object);
  if (value.real == -1.0 && PyErr_Occurred()) return false;
  return store_complex(input, object, value, slot);
}

bool read_bool(Frame& frame, int index, const Input& input, char* slot) {
  PyObject* object = frame.args[index];
  if (!PyBool_Check(object) && !PyArray_IsScalar(object, Bool)) return mismatch(frame, index, "is not a bool");
  const int value = PyObject_IsTrue(object);
  if (value < 0) return false;
  if (input.descr->type_num == NPY_BOOL) return store(slot, static_cast<char>(value));
  return store_int(frame, index, input, value ? Py_True : Py_False, slot);
}

bool read_int(Frame& frame, int index, const Input& input, char* slot) {
  PyObject* object = frame.args[index];
  if (PyLong_Check(object)) return store_int(frame, index, input, object, slot);
  if (!PyArray_IsScalar(object, Integer)) return mismatch(frame, index, "is not an int");
  PyObject* number = PyNumber_Index(object);
  if (!number) return false;
  const bool stored = store_int(frame, index, input, number, slot);
  Py_DECREF(number);
  return stored;
}

bool read_scalar(Frame& frame, int index, const Input& input) {
  char* const slot = frame.scalars + 16 * index;
  frame.buffers[index] = slot;
  switch (input.kind) {
    case InputKind::Float: return read_float(frame, index, input, slot);
    case InputKind::Complex: return read_complex(frame, index, input, slot);
    case InputKind::Bool: return read_bool(frame, index, input, slot);
    default: return read_int(frame, index, input, slot);
  }
}

bool read_symbol(Frame& frame, const Symbol& symbol, i64* out) {
  if (symbol.kind == SymbolKind::Value) {
    memcpy(out, frame.buffers[symbol.input], sizeof *out);
    return true;
  }
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(frame.args[symbol.input]);
  if (symbol.kind == SymbolKind::Shape) {
    *out = PyArray_DIM(array, symbol.dim);
    return true;
  }
  const npy_intp stride = PyArray_STRIDE(array, symbol.dim);
  const npy_intp item = frame.plan->inputs[symbol.input].item;
  if (stride % item != 0) return mismatch(frame, symbol.input, "has strides between its elements");
  *out = stride / item;
  return true;
}

}  // namespace

bool read_inputs(Frame& frame) {
  const Plan& plan = *frame.plan;
  const int count = static_cast<int>(plan.inputs.size());
  for (int i = 0; i < count; ++i) {
    const Input& input = plan.inputs[i];
    if (input.kind == InputKind::Array) {
      if (!(plan.tensors ? read_tensor(frame, i) : read_array(frame, i, input))) return false;
    } else if (input.kind == InputKind::Object) {
      frame.buffers[i] = nullptr;
    } else if (!read_scalar(frame, i, input)) {
      return false;
    }
  }
  if (plan.symbols.empty()) return true;
  i64* out = frame.syms;
  for (const Symbol& symbol : plan.symbols) {
    if (plan.tensors && symbol.kind != SymbolKind::Value) {
      if (!tensor_symbol(frame, symbol, out++)) return false;
    } else if (!read_symbol(frame, symbol, out++)) {
      return false;
    }
  }
  return true;
}

}  // namespace dyncomp
