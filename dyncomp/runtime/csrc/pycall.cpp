/* Steps that call a Python function (library routines: FFT, solve, sort) between kernels. */
#include <cstring>

#define NO_IMPORT_ARRAY
#include "graph.h"
#include "memory.h"

namespace dyncomp {
namespace {

/* Bytes from which it pays to take a library's array over. */
constexpr npy_intp kAdoptFrom = 4096;

enum class Region { Input, Output, Arena, Constant };

Region region_of(const Plan& plan, int buffer) {
  if (buffer < plan.first_output()) return Region::Input;
  if (buffer < plan.first_arena()) return Region::Output;
  return buffer < plan.first_constant() ? Region::Arena : Region::Constant;
}

/* Who keeps the buffer's memory alive; NULL for values that live in the call's own frame. */
PyObject* keeper_of(const Frame& frame, int buffer) {
  const Plan& plan = *frame.plan;
  switch (region_of(plan, buffer)) {
    case Region::Input:
      return plan.inputs[buffer].kind == InputKind::Array ? frame.args[buffer] : nullptr;
    case Region::Output:
      return frame.outputs[buffer - plan.first_output()];
    case Region::Arena:
      if (PyObject* lent = frame.lent[buffer - plan.first_arena()]) return lent;
      return reinterpret_cast<PyObject*>(frame.arena);
    case Region::Constant:
      return plan.constants[buffer - plan.first_constant()].owner;
  }
  return nullptr;
}

bool inside_arena(const Frame& frame, int buffer, const char* data, const Layout& layout, const Extents& extents) {
  i64 low = 0;
  i64 high = extents.bytes ? layout.item : 0;
  for (int d = 0; d < layout.ndim && extents.bytes; ++d) {
    const i64 reach = (static_cast<i64>(extents.shape[d]) - 1) * extents.strides[d];
    (reach < 0 ? low : high) += reach;
  }
  const char* begin = static_cast<char*>(frame.arena->data);
  i64 size = static_cast<i64>(frame.arena->size);
  if (PyObject* lent = frame.lent[buffer - frame.plan->first_arena()]) {
    begin = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(lent));
    size = PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(lent));
  }
  return data + low >= begin && data + high <= begin + size;
}

bool read_only(const Frame& frame, int buffer) {
  const Plan& plan = *frame.plan;
  const Region region = region_of(plan, buffer);
  if (region == Region::Constant) return true;
  if (region != Region::Input || plan.tensors || plan.inputs[buffer].kind != InputKind::Array) return false;
  return !PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(frame.args[buffer]));
}

/* Where a view begins, and its sizes; false with an exception where it would leave the arena. */
bool find_place(const Frame& frame, const BufferView& view, Extents* extents, char** place) {
  if (!resolve(view.layout, frame.sizes, extents)) return false;
  char* const data = static_cast<char*>(frame.buffers[view.buffer]) + view.offset.get(frame.sizes) * view.layout.item;
  if (region_of(*frame.plan, view.buffer) == Region::Arena && !inside_arena(frame, view.buffer, data, view.layout, *extents)) {
    PyErr_SetString(PyExc_ValueError, "compiled graph: a step's array runs outside the arena");
    return false;
  }
  *place = data;
  return true;
}

PyObject* array_over(const Frame& frame, const BufferView& view) {
  Extents extents;
  char* data;
  if (!find_place(frame, view, &extents, &data)) return nullptr;
  const int flags = read_only(frame, view.buffer) ? 0 : NPY_ARRAY_WRITEABLE;
  Py_INCREF(view.layout.descr);
  return PyArray_NewFromDescr(&PyArray_Type, view.layout.descr, view.layout.ndim, extents.shape, extents.strides, data,
                              flags, nullptr);
}

/* An argument may outlive the call (the function may keep it), so it holds its memory's keeper; values in the
 * frame are copied. */
PyObject* make_argument(const Frame& frame, const BufferView& view) {
  PyObject* array = array_over(frame, view);
  if (!array) return nullptr;
  PyObject* keeper = keeper_of(frame, view.buffer);
  if (!keeper) {
    PyObject* copy = PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(array), NPY_CORDER);
    Py_DECREF(array);
    return copy;
  }
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), Py_NewRef(keeper)) < 0) {
    Py_DECREF(array);
    return nullptr;
  }
  return array;
}

bool check_result(PyArrayObject* result, PyArrayObject* target) {
  const int ndim = PyArray_NDIM(target);
  if (PyArray_NDIM(result) != ndim || !PyArray_CompareLists(PyArray_DIMS(result), PyArray_DIMS(target), ndim)) {
    PyErr_SetString(PyExc_ValueError, "compiled graph: a library call returned another shape than planned");
    return false;
  }
  if (PyArray_CanCastArrayTo(result, PyArray_DESCR(target), NPY_SAME_KIND_CASTING)) return true;
  PyErr_SetString(PyExc_TypeError, "compiled graph: a library call returned another dtype than planned");
  return false;
}

bool same_layout(PyArrayObject* array, const Layout& layout, const Extents& extents) {
  if (PyArray_NDIM(array) != layout.ndim || !PyArray_EquivTypes(PyArray_DESCR(array), layout.descr)) return false;
  for (int d = 0; d < layout.ndim; ++d) {
    if (PyArray_DIM(array, d) != extents.shape[d]) return false;
    if (extents.shape[d] > 1 && PyArray_STRIDE(array, d) != extents.strides[d]) return false;
  }
  return true;
}

/* Whether nobody else can see the array or its memory. */
bool is_fresh(PyObject* value) {
  if (Py_REFCNT(value) != 1 || !PyArray_CheckExact(value)) return false;
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(value);
  return PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA | NPY_ARRAY_BEHAVED) && !PyArray_BASE(array) &&
         !reinterpret_cast<PyArrayObject_fields*>(array)->weakreflist;
}

/* Take a library's own large result as an output or in place of an arena slot instead of copying it; false if
 * that is not possible. Planned memory of a library's result is its own: no other value shares its slot. */
bool adopt_result(Frame& frame, const BufferView& view, PyObject* value) {
  const Plan& plan = *frame.plan;
  const Region region = region_of(plan, view.buffer);
  const bool output = region == Region::Output;
  if (plan.tensors || (!output && region != Region::Arena) || !is_fresh(value)) return false;
  if (output && plan.outputs[view.buffer - plan.first_output()].kind != OutputKind::Array) return false;
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(value);
  Extents extents;
  if (PyArray_NBYTES(array) < kAdoptFrom || view.offset.get(frame.sizes) != 0) return false;
  if (!resolve(view.layout, frame.sizes, &extents)) {
    PyErr_Clear();
    return false;
  }
  if (!same_layout(array, view.layout, extents)) return false;
  PyObject** place =
      output ? &frame.outputs[view.buffer - plan.first_output()] : &frame.lent[view.buffer - plan.first_arena()];
  if (output) { /* the result may be written through a view of the output of another shape */
    Extents whole;
    const Layout& planned = plan.outputs[view.buffer - plan.first_output()].layout;
    if (!resolve(planned, frame.sizes, &whole)) {
      PyErr_Clear();
      return false;
    }
    if (!same_layout(array, planned, whole)) return false;
  }
  PyObject* before = *place;
  *place = Py_NewRef(value);
  Py_XDECREF(before);
  frame.buffers[view.buffer] = PyArray_DATA(array);
  return true;
}

/* The same with a tensor: in place of an arena slot an array over its memory. */
bool adopt_tensor(Frame& frame, const BufferView& view, PyObject* tensor) {
  const Plan& plan = *frame.plan;
  const Region region = region_of(plan, view.buffer);
  const bool output = region == Region::Output;
  if ((!output && region != Region::Arena) || Py_REFCNT(tensor) != 1 || view.offset.get(frame.sizes) != 0) return false;
  const Output* const planned = output ? &plan.outputs[view.buffer - plan.first_output()] : nullptr;
  if (output && planned->kind != OutputKind::Array) return false;
  const Layout& wanted = output ? planned->layout : view.layout;
  Extents extents, whole;
  if (!resolve(view.layout, frame.sizes, &extents) || !resolve(wanted, frame.sizes, &whole)) return false;
  if (extents.bytes < kAdoptFrom || extents.bytes != whole.bytes) return false;
  if (!PyArray_EquivTypes(wanted.descr, view.layout.descr)) return false;
  void* data;
  PyObject* taken = take_tensor(plan, tensor, view.layout, extents, wanted, whole, &data);
  if (!taken) return false;
  if (!output) {
    Py_INCREF(view.layout.descr);
    PyObject* array = PyArray_NewFromDescr(&PyArray_Type, view.layout.descr, view.layout.ndim, extents.shape,
                                           extents.strides, data, NPY_ARRAY_WRITEABLE, nullptr);
    if (!array || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), taken) < 0) {
      if (!array) Py_DECREF(taken);
      Py_XDECREF(array);
      return false;
    }
    taken = array;
  }
  PyObject** place =
      output ? &frame.outputs[view.buffer - plan.first_output()] : &frame.lent[view.buffer - plan.first_arena()];
  PyObject* before = *place;
  *place = taken;
  Py_XDECREF(before);
  frame.buffers[view.buffer] = data;
  return true;
}

/* Whether the result is an array in C order of just the layout planned: its bytes are those of the target. */
bool is_as_planned(PyObject* value, const Layout& layout, const Extents& extents) {
  if (!PyArray_CheckExact(value)) return false;
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(value);
  return PyArray_ISCARRAY_RO(array) && same_layout(array, layout, extents);
}

bool copy_result(Frame& frame, const BufferView& view, PyObject* value);

/* A tensor is taken over, else copied as an array of NumPy's. */
bool copy_tensor(Frame& frame, const BufferView& view, PyObject* tensor) {
  if (adopt_tensor(frame, view, tensor)) return true;
  if (PyErr_Occurred()) return false;
  PyObject* array = tensor_to_numpy(*frame.plan, tensor);
  const bool copied = array && copy_result(frame, view, array);
  Py_XDECREF(array);
  return copied;
}

/* The target is never seen by Python code, so it needs no keeper. */
bool copy_result(Frame& frame, const BufferView& view, PyObject* value) {
  if (is_tensor(*frame.plan, value)) return copy_tensor(frame, view, value);
  if (adopt_result(frame, view, value)) return true;
  Extents extents;
  char* place;
  if (!find_place(frame, view, &extents, &place)) return false;
  if (is_as_planned(value, view.layout, extents)) {
    if (extents.bytes) memmove(place, PyArray_DATA(reinterpret_cast<PyArrayObject*>(value)), static_cast<size_t>(extents.bytes));
    return true;
  }
  PyObject* result = PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr);
  if (!result) return false;
  PyObject* target = array_over(frame, view);
  bool copied = false;
  if (target) {
    PyArrayObject* from = reinterpret_cast<PyArrayObject*>(result);
    PyArrayObject* to = reinterpret_cast<PyArrayObject*>(target);
    copied = check_result(from, to) && PyArray_CopyInto(to, from) == 0;
  }
  Py_XDECREF(target);
  Py_DECREF(result);
  return copied;
}

/* An array or scalar for one output; a tuple or list of them for another number. */
bool copy_results(Frame& frame, const Step& step, PyObject* returned) {
  const size_t count = step.outputs.size();
  const bool several = PyTuple_Check(returned) || PyList_Check(returned);
  if (count == 1 && !several) return copy_result(frame, step.outputs[0], returned);
  if (count == 0) return true;
  PyObject* items = several ? PySequence_Tuple(returned) : nullptr;
  if (!items || static_cast<size_t>(PyTuple_GET_SIZE(items)) != count) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "compiled graph: a library call returned another number of arrays");
    Py_XDECREF(items);
    return false;
  }
  bool copied = true;
  for (size_t i = 0; i < count && copied; ++i)
    copied = copy_result(frame, step.outputs[i], PyTuple_GET_ITEM(items, static_cast<Py_ssize_t>(i)));
  Py_DECREF(items);
  return copied;
}

bool is_large(const std::vector<BufferView>& views, const Frame& frame) {
  Extents extents;
  for (const BufferView& view : views) {
    if (!resolve(view.layout, frame.sizes, &extents)) {
      PyErr_Clear();
      continue;
    }
    if (extents.bytes >= static_cast<npy_intp>(kLargeBlock)) return true;
  }
  return false;
}

/* The call itself; what it allocates for large arrays comes from the caching allocator. */
PyObject* call_library(const Frame& frame, const Step& step, PyObject* arguments) {
  if (!is_large(step.inputs, frame) && !is_large(step.outputs, frame))
    return PyObject_Call(step.callable, arguments, nullptr);
  PyObject* handler = library_memory_handler();
  PyObject* before = handler ? PyDataMem_SetHandler(handler) : nullptr;
  if (!before) return nullptr;
  PyObject* returned = PyObject_Call(step.callable, arguments, nullptr);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* ours = PyDataMem_SetHandler(before);
  Py_DECREF(before);
  if (!ours) {
    Py_CLEAR(returned);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return nullptr;
  }
  Py_DECREF(ours);
  PyErr_Restore(type, value, traceback);
  return returned;
}

}  // namespace

bool run_pycall(Frame& frame, const Step& step) {
  const Py_ssize_t count = static_cast<Py_ssize_t>(step.inputs.size());
  PyObject* arguments = PyTuple_New(count);
  if (!arguments) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* argument = make_argument(frame, step.inputs[static_cast<size_t>(i)]);
    if (!argument) {
      Py_DECREF(arguments);
      return false;
    }
    PyTuple_SET_ITEM(arguments, i, argument);
  }
  PyObject* returned = call_library(frame, step, arguments);
  bool copied = returned && copy_results(frame, step, returned);
  Py_XDECREF(returned);
  Py_DECREF(arguments);
  return copied;
}

}  // namespace dyncomp
