/* Making a call's results as NumPy would make them. */
#include <algorithm>
#include <cstring>

#define NO_IMPORT_ARRAY
#include "graph.h"
#include "memory.h"

namespace dyncomp {
namespace {

bool bad_size(const char* what) {
  PyErr_Format(PyExc_ValueError, "compiled graph: %s", what);
  return false;
}

/* Least and one past the greatest byte offset of the elements; both 0 if there are none. */
void extent_of(int ndim, npy_intp item, const npy_intp* shape, const npy_intp* strides, i64* low, i64* high) {
  *low = 0;
  *high = 0;
  for (int d = 0; d < ndim; ++d)
    if (shape[d] == 0) return;
  for (int d = 0; d < ndim; ++d) {
    const i64 reach = (static_cast<i64>(shape[d]) - 1) * strides[d];
    (reach < 0 ? *low : *high) += reach;
  }
  *high += item;
}

bool dense(const Layout& layout, const npy_intp* shape, const npy_intp* strides, npy_intp bytes) {
  i64 low = 0;
  i64 high = 0;
  extent_of(layout.ndim, layout.item, shape, strides, &low, &high);
  if (low < 0 || high > bytes) return bad_size("a fresh output's strides reach outside its memory");
  return true;
}

/* A large block from the caching allocator, owned by the array as if NumPy had allocated it. */
PyObject* make_large_array(const Layout& layout, const npy_intp* shape, const npy_intp* strides, npy_intp bytes) {
  PyObject* handler = numpy_memory_handler();
  if (!handler) return nullptr;
  void* data = block_allocate(static_cast<size_t>(bytes));
  if (!data) return PyErr_NoMemory();
  Py_INCREF(layout.descr);
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, layout.descr, layout.ndim, shape,
                                         layout.has_strides ? strides : nullptr, data, NPY_ARRAY_CARRAY, nullptr);
  if (!array) {
    block_free(data);
    return nullptr;
  }
  PyArrayObject_fields* fields = reinterpret_cast<PyArrayObject_fields*>(array);
  fields->mem_handler = Py_NewRef(handler);
  fields->flags |= NPY_ARRAY_OWNDATA;
  return array;
}

}  // namespace

bool resolve(const Layout& layout, const i64* sizes, Extents* out) {
  if (!layout.dynamic && !layout.fixed_shape.empty()) {
    std::copy(layout.fixed_shape.begin(), layout.fixed_shape.end(), out->shape);
    std::copy(layout.fixed_strides.begin(), layout.fixed_strides.end(), out->strides);
    out->bytes = layout.fixed_bytes;
    return true;
  }
  i64 bytes = layout.item;
  bool empty = false;
  for (int d = 0; d < layout.ndim; ++d) {
    const i64 dim = layout.shape[d].get(sizes);
    if (dim < 0) return bad_size("a negative dimension");
    out->shape[d] = static_cast<npy_intp>(dim);
    empty |= dim == 0;
    if (dim != 0 && __builtin_mul_overflow(bytes, dim, &bytes)) return bad_size("an array is too large");
  }
  out->bytes = empty ? 0 : static_cast<npy_intp>(bytes);
  i64 step = layout.item;
  for (int d = layout.ndim - 1; d >= 0; --d) {
    if (!layout.has_strides) {
      out->strides[d] = static_cast<npy_intp>(step);
      if (out->shape[d] > 0) step *= out->shape[d];
      continue;
    }
    i64 stride = layout.strides[d].get(sizes);
    i64 reach = 0;
    if (__builtin_mul_overflow(stride, static_cast<i64>(layout.item), &stride) ||
        __builtin_mul_overflow(stride, static_cast<i64>(out->shape[d]), &reach))
      return bad_size("a stride is too large");
    out->strides[d] = static_cast<npy_intp>(stride);
  }
  return true;
}

PyObject* make_fresh_array(const Layout& layout, const i64* sizes, void** data) {
  Extents extents;
  const npy_intp* shape = layout.fixed_shape.data();
  const npy_intp* strides = layout.fixed_strides.data();
  npy_intp bytes = layout.fixed_bytes;
  if (layout.dynamic) {
    if (!resolve(layout, sizes, &extents)) return nullptr;
    shape = extents.shape;
    strides = extents.strides;
    bytes = extents.bytes;
  }
  if (layout.has_strides && !dense(layout, shape, strides, bytes)) return nullptr;
  PyObject* array;
  if (static_cast<size_t>(bytes) >= kLargeBlock) {
    array = make_large_array(layout, shape, strides, bytes);
  } else {
    Py_INCREF(layout.descr);
    array = PyArray_NewFromDescr(&PyArray_Type, layout.descr, layout.ndim, shape,
                                 layout.has_strides ? strides : nullptr, nullptr, 0, nullptr);
  }
  if (!array) return nullptr;
  *data = PyArray_DATA(reinterpret_cast<PyArrayObject*>(array));
  return array;
}

PyObject* make_view(PyObject* base, const Layout& layout, const i64* sizes, i64 offset, bool writeable) {
  Extents extents;
  if (!resolve(layout, sizes, &extents)) return nullptr;
  PyArrayObject* source = reinterpret_cast<PyArrayObject*>(base);
  i64 low = 0;
  i64 high = 0;
  i64 base_low = 0;
  i64 base_high = 0;
  extent_of(layout.ndim, layout.item, extents.shape, extents.strides, &low, &high);
  extent_of(PyArray_NDIM(source), PyArray_ITEMSIZE(source), PyArray_DIMS(source), PyArray_STRIDES(source), &base_low,
            &base_high);
  i64 start = 0;
  if (__builtin_mul_overflow(offset, static_cast<i64>(layout.item), &start)) {
    bad_size("a view's offset is too large");
    return nullptr;
  }
  const bool empty = low == high;
  if (!empty && (start + low < base_low || start + high > base_high)) {
    bad_size("a view reaches outside its base");
    return nullptr;
  }
  if (empty) start = 0;
  const int flags = writeable && PyArray_ISWRITEABLE(source) ? NPY_ARRAY_WRITEABLE : 0;
  Py_INCREF(layout.descr);
  PyObject* view = PyArray_NewFromDescr(&PyArray_Type, layout.descr, layout.ndim, extents.shape, extents.strides,
                                        PyArray_BYTES(source) + start, flags, nullptr);
  if (!view) return nullptr;
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(view), Py_NewRef(base)) < 0) {
    Py_DECREF(view);
    return nullptr;
  }
  return view;
}

PyObject* make_scalar(const Output& output, void* data) {
  PyArray_Descr* descr = output.layout.descr;
  if (output.kind == OutputKind::NumPyScalar) return PyArray_Scalar(data, descr, nullptr);
  if (descr->type_num == NPY_DOUBLE) return PyFloat_FromDouble(*static_cast<double*>(data));
  if (descr->type_num == NPY_LONG) return PyLong_FromLong(*static_cast<long*>(data));
  if (descr->type_num == NPY_BOOL) return PyBool_FromLong(*static_cast<char*>(data));
  PyObject* scalar = PyArray_Scalar(data, descr, nullptr);
  if (!scalar) return nullptr;
  PyObject* plain = PyObject_CallMethod(scalar, "item", nullptr);
  Py_DECREF(scalar);
  return plain;
}

static PyObject* make_output_result(Frame& frame, int index) {
  PyObject*& made = frame.outputs[index];
  if (!made) {
    const Output& output = frame.plan->outputs[index];
    made = make_scalar(output, frame.buffers[frame.plan->first_output() + index]);
    if (!made) return nullptr;
  }
  return Py_NewRef(made);
}

PyObject* make_result(Frame& frame, const Result& result) {
  switch (result.kind) {
    case ResultKind::Output:
      return make_output_result(frame, result.index);
    case ResultKind::Input:
      return Py_NewRef(frame.args[result.index]);
    case ResultKind::Constant:
      return Py_NewRef(result.constant);
    case ResultKind::View:
      break;
  }
  PyObject* base = result.of_input ? frame.args[result.index] : frame.outputs[result.index];
  const i64 offset = result.offset.get(frame.sizes);
  if (frame.plan->tensors) return make_tensor_view(*frame.plan, base, result.layout, frame.sizes, offset);
  return make_view(base, result.layout, frame.sizes, offset, result.writeable);
}

}  // namespace dyncomp
