/* Arrays of other libraries: through DLPack's C exchange table where their type has one, else through
 * callbacks given in the plan. The structs below are DLPack 1.x's C ABI (github.com/dmlc/dlpack,
 * include/dlpack/dlpack.h); CPU memory only. */
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#define NO_IMPORT_ARRAY
#include "graph.h"

namespace dyncomp {
namespace {

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};
struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  DLPackExchangeAPIHeader* prev_api;
};
struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  int (*managed_tensor_allocator)(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                                  void (*set_error)(void* error_ctx, const char* kind, const char* message));
  int (*managed_tensor_from_py_object_no_sync)(void* object, DLManagedTensorVersioned** out);
  int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* tensor, void** out);
  int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* out);
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void** stream);
};

using View = int (*)(void* object, DLTensor* out);

/* at::toDLPackNonOwning, which the table's function calls behind conversions that look the object's type up; and
 * where a Python tensor has its at::Tensor. */
using LibraryView = void (*)(const void* tensor, DLTensor* out, bool more);
LibraryView library_view = nullptr;
PyTypeObject* library_type = nullptr; /* strong: of such tensors */
size_t tensor_offset = 0;

int direct_view(void* object, DLTensor* out) {
  try {
    library_view(static_cast<const char*>(object) + tensor_offset, out, false);
    return 0;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "a tensor cannot be read");
  }
  return -1;
}

/* Whether two views are of the same memory. */
bool same_view(const DLTensor& a, const DLTensor& b) {
  if (a.data != b.data || a.byte_offset != b.byte_offset || a.ndim != b.ndim || a.dtype.code != b.dtype.code ||
      a.dtype.bits != b.dtype.bits || a.dtype.lanes != b.dtype.lanes || a.device.device_type != b.device.device_type)
    return false;
  const auto same = [&](const int64_t* x, const int64_t* y) { return x && y && std::equal(x, x + a.ndim, y); };
  return same(a.shape, b.shape) && same(a.strides, b.strides);
}

constexpr int32_t kCpu = 1;
enum DTypeCode { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

DLDataType dlpack_dtype(const PyArray_Descr* descr) {
  const uint8_t bits = static_cast<uint8_t>(8 * PyDataType_ELSIZE(descr));
  switch (descr->kind) {
    case 'b': return {kBool, bits, 1};
    case 'i': return {kInt, bits, 1};
    case 'u': return {kUInt, bits, 1};
    case 'f': return {kFloat, bits, 1};
    case 'c': return {kComplex, bits, 1};
    default: return {kBfloat, bits, 1}; /* ml_dtypes' bfloat16, the only custom dtype in plans */
  }
}

/* dyncomp's dtype name. */
PyObject* dtype_name(const PyArray_Descr* descr) {
  const int bits = static_cast<int>(8 * PyDataType_ELSIZE(descr));
  switch (descr->kind) {
    case 'b': return PyUnicode_FromString("bool");
    case 'i': return PyUnicode_FromFormat("int%d", bits);
    case 'u': return PyUnicode_FromFormat("uint%d", bits);
    case 'f': return PyUnicode_FromFormat("float%d", bits);
    case 'c': return PyUnicode_FromFormat("complex%d", bits);
    default: return PyUnicode_FromString("bfloat16");
  }
}

void set_python_error(void*, const char* kind, const char* message) {
  PyErr_Format(PyExc_RuntimeError, "tensor allocation failed (%s): %s", kind ? kind : "?", message ? message : "?");
}

PyObject* tuple_of(const npy_intp* values, int count, npy_intp divisor) {
  PyObject* tuple = PyTuple_New(count);
  if (!tuple) return nullptr;
  for (int i = 0; i < count; ++i) {
    PyObject* number = PyLong_FromSsize_t(values[i] / divisor);
    if (!number) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, i, number);
  }
  return tuple;
}

bool c_order(const Layout& layout, const Extents& extents) {
  if (!layout.has_strides || extents.bytes == 0) return !layout.has_strides;
  npy_intp expected = layout.item;
  for (int d = layout.ndim - 1; d >= 0; --d) {
    if (extents.strides[d] != expected) return false;
    expected *= extents.shape[d];
  }
  return true;
}

}  // namespace

struct TensorApi {
  PyObject* type = nullptr;
  PyObject* describe = nullptr;
  PyObject* empty = nullptr;
  PyObject* as_strided = nullptr;
  PyObject* to_numpy = nullptr; /* None: no step returns arrays of the type */
  PyObject* taken = nullptr;
  const DLPackExchangeAPI* table = nullptr;
  View view = nullptr; /* the table's, or a quicker one */
};

namespace {

/* NULL, without an exception, if the type has no usable table. */
const DLPackExchangeAPI* exchange_table(PyObject* type) {
  PyObject* capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
  if (!capsule) {
    PyErr_Clear();
    return nullptr;
  }
  void* pointer = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule); /* the table itself lives as long as the process */
  if (!pointer) {
    PyErr_Clear();
    return nullptr;
  }
  const DLPackExchangeAPIHeader* header = static_cast<DLPackExchangeAPIHeader*>(pointer);
  while (header && header->version.major != 1) header = header->prev_api;
  const DLPackExchangeAPI* table = reinterpret_cast<const DLPackExchangeAPI*>(header);
  if (!table || !table->dltensor_from_py_object_no_sync || !table->managed_tensor_allocator) return nullptr;
  return table;
}

View view_of(PyObject* type, const DLPackExchangeAPI* table) {
  const bool is_direct = library_view && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), library_type);
  return is_direct ? direct_view : table->dltensor_from_py_object_no_sync;
}

bool read_by_table(Frame& frame, int index, const Input& input, View view) {
  DLTensor tensor;
  if (view(frame.args[index], &tensor) != 0) {
    if (!PyErr_Occurred()) mismatch(frame, index, "cannot be read through DLPack");
    return false;
  }
  if (tensor.device.device_type != kCpu) return mismatch(frame, index, "is not in CPU memory");
  const DLDataType want = dlpack_dtype(input.descr);
  if (tensor.dtype.code != want.code || tensor.dtype.bits != want.bits || tensor.dtype.lanes != 1)
    return mismatch(frame, index, "has another dtype");
  TensorFacts& facts = frame.facts[index];
  facts.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  facts.ndim = tensor.ndim;
  facts.shape = tensor.shape;
  facts.strides = tensor.strides;
  return true;
}

bool append_integers(PyObject* tuple, std::vector<int64_t>* out) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    const long long value = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    if (value == -1 && PyErr_Occurred()) return false;
    out->push_back(value);
  }
  return true;
}

/* `described` is (pointer, shape, strides, dtype name). */
bool take_description(Frame& frame, int index, const Input& input, PyObject* described) {
  PyObject* pointer;
  PyObject* shape;
  PyObject* strides;
  PyObject* name;
  if (!PyArg_ParseTuple(described, "O!O!O!U", &PyLong_Type, &pointer, &PyTuple_Type, &shape, &PyTuple_Type, &strides,
                        &name))
    return false;
  PyObject* expected = dtype_name(input.descr);
  if (!expected) return false;
  const bool same = PyUnicode_Compare(expected, name) == 0;
  Py_DECREF(expected);
  if (!same) return mismatch(frame, index, "has another dtype");
  if (PyTuple_GET_SIZE(shape) != PyTuple_GET_SIZE(strides)) return mismatch(frame, index, "is described wrongly");
  TensorFacts& facts = frame.facts[index];
  facts.data = PyLong_AsVoidPtr(pointer);
  if (!facts.data && PyErr_Occurred()) return false;
  facts.ndim = static_cast<int>(PyTuple_GET_SIZE(shape));
  if (!append_integers(shape, &facts.storage) || !append_integers(strides, &facts.storage)) return false;
  facts.shape = facts.storage.data();
  facts.strides = facts.shape + facts.ndim;
  return true;
}

bool read_by_callback(Frame& frame, int index, const Input& input, PyObject* describe) {
  PyObject* described = PyObject_CallOneArg(describe, frame.args[index]);
  if (!described) return false;
  if (!PyTuple_Check(described)) {
    Py_DECREF(described);
    return mismatch(frame, index, "is described wrongly");
  }
  const bool taken = take_description(frame, index, input, described);
  Py_DECREF(described);
  return taken;
}

i64 stride_of(const TensorFacts& facts, int dim) {
  if (facts.strides) return facts.strides[dim];
  i64 stride = 1;
  for (int d = facts.ndim - 1; d > dim; --d) stride *= facts.shape[d];
  return stride;
}

/* Whether an element is ever found by the stride of this dimension. */
bool steps_along(const TensorFacts& facts, size_t dim) {
  const int64_t* end = facts.shape + facts.ndim;
  return facts.shape[dim] != 1 && std::find(facts.shape, end, 0) == end;
}

bool check_facts(const Frame& frame, int index, const Input& input) {
  const TensorFacts& facts = frame.facts[index];
  if (facts.ndim != input.ndim) return mismatch(frame, index, "has another number of dimensions");
  const uintptr_t alignment = static_cast<uintptr_t>(PyDataType_ALIGNMENT(input.descr));
  if (reinterpret_cast<uintptr_t>(facts.data) % alignment) return mismatch(frame, index, "is not aligned");
  for (size_t d = 0; d < input.shape.size(); ++d)
    if (input.shape[d] != kUnchecked && input.shape[d] != facts.shape[d])
      return mismatch(frame, index, "has another shape");
  for (size_t d = 0; d < input.strides.size(); ++d)
    if (input.strides[d] != kUnchecked && input.strides[d] != stride_of(facts, static_cast<int>(d)) * input.item &&
        steps_along(facts, d))
      return mismatch(frame, index, "has other strides");
  return true;
}

PyObject* allocate_by_table(const DLPackExchangeAPI* table, const Layout& layout, const Extents& extents, void** data) {
  int64_t shape[NPY_MAXDIMS];
  for (int d = 0; d < layout.ndim; ++d) shape[d] = extents.shape[d];
  DLTensor prototype;
  memset(&prototype, 0, sizeof prototype);
  prototype.device = {kCpu, 0};
  prototype.ndim = layout.ndim;
  prototype.dtype = dlpack_dtype(layout.descr);
  prototype.shape = shape;
  DLManagedTensorVersioned* managed = nullptr;
  if (table->managed_tensor_allocator(&prototype, &managed, nullptr, set_python_error) != 0 || !managed) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return nullptr;
  }
  *data = static_cast<char*>(managed->dl_tensor.data) + managed->dl_tensor.byte_offset;
  void* object = nullptr;
  if (table->managed_tensor_to_py_object_no_sync(managed, &object) != 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "DLPack import of a fresh tensor failed");
    return nullptr;
  }
  return static_cast<PyObject*>(object);
}

PyObject* call_with_layout(PyObject* function, PyObject* base, const Layout& layout, const Extents& extents,
                           i64 offset) {
  PyObject* shape = tuple_of(extents.shape, layout.ndim, 1);
  PyObject* strides = tuple_of(extents.strides, layout.ndim, layout.item);
  PyObject* name = dtype_name(layout.descr);
  PyObject* made = nullptr;
  if (shape && strides && name) {
    made = base ? PyObject_CallFunction(function, "OOOLO", base, shape, strides, offset, name)
                : PyObject_CallFunctionObjArgs(function, shape, strides, name, nullptr);
  }
  Py_XDECREF(shape);
  Py_XDECREF(strides);
  Py_XDECREF(name);
  return made;
}

/* The data pointer of a tensor that a callback made. */
bool pointer_of(const TensorApi& api, PyObject* tensor, void** data) {
  if (api.table) {
    DLTensor facts;
    if (api.view(tensor, &facts) != 0) return false;
    *data = static_cast<char*>(facts.data) + facts.byte_offset;
    return true;
  }
  PyObject* described = PyObject_CallOneArg(api.describe, tensor);
  if (!described) return false;
  PyObject* pointer = PyTuple_Check(described) && PyTuple_GET_SIZE(described) ? PyTuple_GET_ITEM(described, 0) : nullptr;
  const bool valid = pointer && PyLong_Check(pointer);
  if (valid)
    *data = PyLong_AsVoidPtr(pointer);
  else
    PyErr_SetString(PyExc_TypeError, "describe() did not return a tuple that begins with a pointer");
  Py_DECREF(described);
  return valid && !PyErr_Occurred();
}

}  // namespace

/* (type, describe, empty, as_strided, use table, to numpy, taken) */
TensorApi* make_tensor_api(PyObject* spec) {
  PyObject* type;
  PyObject* describe;
  PyObject* empty;
  PyObject* as_strided;
  PyObject* to_numpy;
  PyObject* taken;
  int use_table;
  if (!PyTuple_Check(spec) ||
      !PyArg_ParseTuple(spec, "O!OOOpOO", &PyType_Type, &type, &describe, &empty, &as_strided, &use_table, &to_numpy,
                        &taken)) {
    PyErr_SetString(PyExc_ValueError, "launch plan: owner is not (type, describe, empty, as_strided, use_table, to_numpy, taken)");
    return nullptr;
  }
  TensorApi* api = new (std::nothrow) TensorApi();
  if (!api) {
    PyErr_NoMemory();
    return nullptr;
  }
  api->type = Py_NewRef(type);
  api->describe = Py_NewRef(describe);
  api->empty = Py_NewRef(empty);
  api->as_strided = Py_NewRef(as_strided);
  api->to_numpy = Py_NewRef(to_numpy);
  api->taken = Py_NewRef(taken);
  if (use_table) api->table = exchange_table(type);
  if (api->table) api->view = view_of(type, api->table);
  return api;
}

/* (type, address of at::toDLPackNonOwning, offset, tensors) */
PyObject* use_direct_view(PyObject*, PyObject* args) {
  PyObject* type;
  PyObject* samples;
  unsigned long long function;
  Py_ssize_t offset;
  if (!PyArg_ParseTuple(args, "O!KnO!", &PyType_Type, &type, &function, &offset, &PyTuple_Type, &samples))
    return nullptr;
  const DLPackExchangeAPI* table = exchange_table(type);
  if (!table || !function) return PyLong_FromLong(0);
  Py_XSETREF(library_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(type)));
  library_view = reinterpret_cast<LibraryView>(static_cast<uintptr_t>(function));
  tensor_offset = static_cast<size_t>(offset);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(samples); ++i) {
    DLTensor ours;
    DLTensor theirs;
    PyObject* tensor = PyTuple_GET_ITEM(samples, i);
    if (direct_view(tensor, &ours) != 0 || table->dltensor_from_py_object_no_sync(tensor, &theirs) != 0 ||
        !same_view(ours, theirs)) {
      PyErr_Clear();
      library_view = nullptr;
      return PyLong_FromLong(0);
    }
  }
  return PyLong_FromVoidPtr(reinterpret_cast<void*>(direct_view));
}

void free_tensor_api(TensorApi* api) {
  if (!api) return;
  Py_CLEAR(api->type);
  Py_CLEAR(api->describe);
  Py_CLEAR(api->empty);
  Py_CLEAR(api->as_strided);
  Py_CLEAR(api->to_numpy);
  Py_CLEAR(api->taken);
  delete api;
}

int traverse_tensor_api(TensorApi* api, visitproc visit, void* arg) {
  if (!api) return 0;
  Py_VISIT(api->type);
  Py_VISIT(api->describe);
  Py_VISIT(api->empty);
  Py_VISIT(api->as_strided);
  Py_VISIT(api->to_numpy);
  Py_VISIT(api->taken);
  return 0;
}

bool read_tensor(Frame& frame, int index) {
  const TensorApi& api = *frame.plan->tensors;
  const Input& input = frame.plan->inputs[static_cast<size_t>(index)];
  PyTypeObject* type = reinterpret_cast<PyTypeObject*>(api.type);
  /* Subclasses that only carry a name (torch.nn.Parameter) share the memory layout. */
  if (!PyObject_TypeCheck(frame.args[index], type)) return mismatch(frame, index, "is not a tensor");
  const bool read = api.table ? read_by_table(frame, index, input, api.view)
                              : read_by_callback(frame, index, input, api.describe);
  if (!read || !check_facts(frame, index, input)) return false;
  frame.buffers[index] = frame.facts[index].data;
  return true;
}

bool tensor_symbol(const Frame& frame, const Symbol& symbol, i64* out) {
  const TensorFacts& facts = frame.facts[symbol.input];
  *out = symbol.kind == SymbolKind::Shape ? facts.shape[symbol.dim] : stride_of(facts, symbol.dim);
  return true;
}

PyObject* make_fresh_tensor(const Plan& plan, const Layout& layout, const i64* sizes, void** data) {
  Extents extents;
  if (!resolve(layout, sizes, &extents)) return nullptr;
  const TensorApi& api = *plan.tensors;
  /* One without elements is often made to be resized, which a tensor from DLPack cannot be. */
  bool is_empty = false;
  for (int d = 0; d < layout.ndim; ++d) is_empty = is_empty || extents.shape[d] == 0;
  if (api.table && !is_empty && c_order(layout, extents)) return allocate_by_table(api.table, layout, extents, data);
  PyObject* tensor = call_with_layout(api.empty, nullptr, layout, extents, 0);
  if (tensor && !pointer_of(api, tensor, data)) Py_CLEAR(tensor);
  return tensor;
}

PyObject* make_tensor_view(const Plan& plan, PyObject* base, const Layout& layout, const i64* sizes, i64 offset) {
  Extents extents;
  if (!resolve(layout, sizes, &extents)) return nullptr;
  return call_with_layout(plan.tensors->as_strided, base, layout, extents, offset);
}

bool is_tensor(const Plan& plan, PyObject* value) {
  return plan.tensors && PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(plan.tensors->type));
}

PyObject* tensor_to_numpy(const Plan& plan, PyObject* tensor) {
  if (plan.tensors->to_numpy != Py_None) return PyObject_CallOneArg(plan.tensors->to_numpy, tensor);
  PyErr_SetString(PyExc_TypeError, "compiled graph: a library call returned a tensor");
  return nullptr;
}

PyObject* take_tensor(const Plan& plan, PyObject* tensor, const Layout& layout, const Extents& extents,
                      const Layout& wanted, const Extents& wanted_extents, void** data) {
  const TensorApi& api = *plan.tensors;
  DLTensor facts;
  if (!api.table || api.taken == Py_None || Py_TYPE(tensor) != reinterpret_cast<PyTypeObject*>(api.type)) return nullptr;
  if (api.table->dltensor_from_py_object_no_sync(tensor, &facts) != 0) {
    PyErr_Clear();
    return nullptr;
  }
  const DLDataType want = dlpack_dtype(layout.descr);
  if (facts.device.device_type != kCpu || facts.ndim != layout.ndim || facts.dtype.code != want.code ||
      facts.dtype.bits != want.bits || facts.dtype.lanes != 1)
    return nullptr;
  npy_intp step = layout.item;
  for (int d = layout.ndim - 1; d >= 0; --d) {
    if (facts.shape[d] != extents.shape[d]) return nullptr;
    const npy_intp stride = facts.strides ? facts.strides[d] * layout.item : step;
    if (extents.shape[d] > 1 && stride != extents.strides[d]) return nullptr;
    step *= extents.shape[d];
  }
  *data = static_cast<char*>(facts.data) + facts.byte_offset;
  PyObject* taken = call_with_layout(api.taken, tensor, wanted, wanted_extents, 0);
  if (taken && taken != Py_None) return taken;
  Py_XDECREF(taken);
  PyErr_Clear();
  return nullptr;
}

}  // namespace dyncomp
