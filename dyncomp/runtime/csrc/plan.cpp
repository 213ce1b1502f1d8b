/* Parsing the plan: every index and size is checked here, once, so that calls need not. */
#include <climits>
#include <cstring>
#include <new>

#define NO_IMPORT_ARRAY
#include "graph.h"

namespace dyncomp {
namespace {

/* Thrown after a Python exception has been set. */
struct Invalid {};

[[noreturn]] void fail(const char* what) {
  PyErr_Format(PyExc_ValueError, "launch plan: %s", what);
  throw Invalid();
}

void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

PyObject* item(PyObject* tuple, Py_ssize_t index, const char* what) {
  require(PyTuple_Check(tuple) && index < PyTuple_GET_SIZE(tuple), what);
  return PyTuple_GET_ITEM(tuple, index);
}

Py_ssize_t length(PyObject* tuple, const char* what) {
  require(PyTuple_Check(tuple), what);
  return PyTuple_GET_SIZE(tuple);
}

i64 integer(PyObject* object, const char* what) {
  require(PyLong_Check(object), what);
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    fail(what);
  }
  return value;
}

int index_below(PyObject* object, i64 bound, const char* what) {
  const i64 value = integer(object, what);
  require(value >= 0 && value < bound, what);
  return static_cast<int>(value);
}

bool truth(PyObject* object, const char* what) {
  require(PyBool_Check(object), what);
  return object == Py_True;
}

/* An int, or (index,) for a size known at the call. */
Size parse_size(PyObject* object, const Plan& plan, const char* what) {
  Size size;
  if (PyTuple_Check(object)) {
    require(PyTuple_GET_SIZE(object) == 1, what);
    size.value = index_below(PyTuple_GET_ITEM(object, 0), plan.size_count, what);
    size.dynamic = true;
    return size;
  }
  size.value = integer(object, what);
  return size;
}

std::vector<Size> parse_sizes(PyObject* tuple, const Plan& plan, const char* what) {
  std::vector<Size> sizes;
  const Py_ssize_t count = length(tuple, what);
  for (Py_ssize_t i = 0; i < count; ++i) sizes.push_back(parse_size(PyTuple_GET_ITEM(tuple, i), plan, what));
  return sizes;
}

PyArray_Descr* parse_descr(PyObject* object, const char* what) {
  require(PyArray_DescrCheck(object), what);
  PyArray_Descr* descr = reinterpret_cast<PyArray_Descr*>(object);
  require(PyArray_ISNBO(descr->byteorder), "a dtype is not in native byte order");
  require(!PyDataType_REFCHK(descr) && PyDataType_ELSIZE(descr) > 0, "a dtype holds references or is empty");
  Py_INCREF(descr);
  return descr;
}

void fix_extents(Layout& layout) {
  Extents extents;
  if (!resolve(layout, nullptr, &extents)) throw Invalid();
  layout.fixed_shape.assign(extents.shape, extents.shape + layout.ndim);
  layout.fixed_strides.assign(extents.strides, extents.strides + layout.ndim);
  layout.fixed_bytes = extents.bytes;
}

void parse_layout(PyObject* descr, PyObject* shape, PyObject* strides, const Plan& plan, Layout* layout) {
  layout->descr = parse_descr(descr, "a layout's dtype");
  layout->item = PyDataType_ELSIZE(layout->descr);
  layout->shape = parse_sizes(shape, plan, "a layout's shape");
  require(layout->shape.size() <= NPY_MAXDIMS, "too many dimensions");
  layout->ndim = static_cast<int>(layout->shape.size());
  layout->has_strides = strides != Py_None;
  if (layout->has_strides) {
    layout->strides = parse_sizes(strides, plan, "a layout's strides");
    require(layout->strides.size() == layout->shape.size(), "shape and strides differ in length");
  }
  for (const Size& size : layout->shape) {
    require(size.dynamic || size.value >= 0, "a negative dimension");
    layout->dynamic |= size.dynamic;
  }
  for (const Size& size : layout->strides) layout->dynamic |= size.dynamic;
  if (!layout->dynamic) fix_extents(*layout);
}

void parse_checks(PyObject* tuple, int ndim, npy_intp scale, std::vector<i64>* out) {
  if (tuple == Py_None) return;
  require(length(tuple, "an input's checks") == ndim, "an input's shape or strides have another length than ndim");
  for (int d = 0; d < ndim; ++d) {
    PyObject* entry = PyTuple_GET_ITEM(tuple, d);
    if (entry == Py_None) {
      out->push_back(kUnchecked);
      continue;
    }
    i64 value = integer(entry, "an input's shape or strides");
    require(!__builtin_mul_overflow(value, static_cast<i64>(scale), &value), "an input's stride is too large");
    out->push_back(value);
  }
}

/* (kind, descr or None, ndim, writable, shape or None, strides or None) */
void parse_input(PyObject* spec, Plan& plan) {
  plan.inputs.emplace_back();
  Input& input = plan.inputs.back();
  input.kind = static_cast<InputKind>(index_below(item(spec, 0, "an input"), 7, "an input's kind"));
  if (input.kind == InputKind::Object) return;
  input.descr = parse_descr(item(spec, 1, "an input"), "an input's dtype");
  input.item = PyDataType_ELSIZE(input.descr);
  input.writable = truth(item(spec, 3, "an input"), "an input's writable flag");
  if (input.kind != InputKind::Array) {
    require(PyTypeNum_ISNUMBER(input.descr->type_num) || PyTypeNum_ISBOOL(input.descr->type_num) ||
                PyTypeNum_ISUSERDEF(input.descr->type_num),
            "a scalar input's dtype is not numeric");
    require(input.item <= 16, "a scalar input's dtype is too wide");
    return;
  }
  input.ndim = index_below(item(spec, 2, "an input"), NPY_MAXDIMS + 1, "an input's ndim");
  parse_checks(item(spec, 4, "an input"), input.ndim, 1, &input.shape);
  parse_checks(item(spec, 5, "an input"), input.ndim, input.item, &input.strides);
}

/* (kind, input, dim) */
void parse_symbol(PyObject* spec, Plan& plan) {
  Symbol symbol;
  symbol.kind = static_cast<SymbolKind>(index_below(item(spec, 0, "a symbol"), 3, "a symbol's kind"));
  symbol.input = index_below(item(spec, 1, "a symbol"), static_cast<i64>(plan.inputs.size()), "a symbol's input");
  symbol.dim = 0;
  const Input& input = plan.inputs[symbol.input];
  if (symbol.kind == SymbolKind::Value) {
    require(input.kind == InputKind::SymInt, "a symbol is the value of an input that is no symint");
  } else {
    require(input.kind == InputKind::Array, "a symbol is a size of an input that is no array");
    symbol.dim = index_below(item(spec, 2, "a symbol"), input.ndim, "a symbol's dim");
  }
  plan.symbols.push_back(symbol);
}

/* (descr, shape, strides or None, kind) */
void parse_output(PyObject* spec, Plan& plan) {
  plan.outputs.emplace_back();
  Output& output = plan.outputs.back();
  parse_layout(item(spec, 0, "an output"), item(spec, 1, "an output"), item(spec, 2, "an output"), plan,
               &output.layout);
  output.kind = static_cast<OutputKind>(index_below(item(spec, 3, "an output"), 3, "an output's kind"));
  if (output.kind != OutputKind::Array) {
    require(output.layout.ndim == 0, "a scalar output has dimensions");
    require(output.layout.item <= 16, "a scalar output's dtype is too wide");
  }
}

void parse_arena(PyObject* offsets, PyObject* bytes, Plan& plan) {
  plan.arena = parse_sizes(offsets, plan, "the arena's offsets");
  plan.arena_bytes = parse_size(bytes, plan, "the arena's size");
  require(plan.arena_bytes.dynamic || plan.arena_bytes.value >= 0, "the arena's size is negative");
  for (const Size& offset : plan.arena) {
    if (offset.dynamic) continue;
    require(offset.value >= 0 && offset.value % 64 == 0, "an arena offset is negative or not a multiple of 64");
    require(plan.arena_bytes.dynamic || offset.value <= plan.arena_bytes.value, "an arena offset is past the end");
  }
}

void* parse_address(PyObject* object, const char* what) {
  require(PyLong_Check(object), what);
  void* address = PyLong_AsVoidPtr(object);
  if (!address && PyErr_Occurred()) throw Invalid();
  return address;
}

/* (owner, pointer) */
void parse_constant(PyObject* spec, Plan& plan) {
  Constant constant;
  constant.owner = item(spec, 0, "a constant");
  constant.data = parse_address(item(spec, 1, "a constant"), "a constant's pointer");
  Py_INCREF(constant.owner);
  plan.constants.push_back(constant);
}

i64 highest_offset(const Layout& layout) {
  i64 high = 0;
  for (int d = 0; d < layout.ndim; ++d) {
    if (layout.fixed_shape[d] == 0) return 0;
    if (layout.fixed_strides[d] > 0) high += (layout.fixed_shape[d] - 1) * layout.fixed_strides[d];
  }
  return high + layout.item;
}

/* (buffer, descr, shape, strides or None, offset) */
BufferView parse_buffer_view(PyObject* spec, const Plan& plan) {
  BufferView view;
  view.buffer = index_below(item(spec, 0, "a buffer view"), plan.buffer_count(), "a buffer view's buffer");
  parse_layout(item(spec, 1, "a buffer view"), item(spec, 2, "a buffer view"), item(spec, 3, "a buffer view"), plan,
               &view.layout);
  try {
    view.offset = parse_size(item(spec, 4, "a buffer view"), plan, "a buffer view's offset");
    if (view.buffer < plan.first_output())
      require(plan.inputs[view.buffer].kind != InputKind::Object, "a buffer view of an input that has no buffer");
    const int slot = view.buffer - plan.first_arena();
    const bool in_arena = slot >= 0 && view.buffer < plan.first_constant();
    if (in_arena && !view.layout.dynamic && !view.offset.dynamic && !plan.arena[slot].dynamic &&
        !plan.arena_bytes.dynamic) {
      const i64 end = plan.arena[slot].value + view.offset.value * view.layout.item + highest_offset(view.layout);
      require(end <= plan.arena_bytes.value, "a buffer view runs past the arena's end");
    }
  } catch (const Invalid&) {
    Py_XDECREF(view.layout.descr);
    throw;
  }
  return view;
}

void parse_buffer_views(PyObject* tuple, const Plan& plan, std::vector<BufferView>* out) {
  const Py_ssize_t count = length(tuple, "a step's buffers");
  for (Py_ssize_t i = 0; i < count; ++i) out->push_back(parse_buffer_view(PyTuple_GET_ITEM(tuple, i), plan));
}

/* (address, inputs that nothing reads later) or (callable, inputs, outputs, how many together) */
void parse_step(PyObject* spec, Plan& plan) {
  plan.steps.emplace_back();
  Step& step = plan.steps.back();
  if (length(spec, "a step") == 2) {
    PyObject* last = PyTuple_GET_ITEM(spec, 1);
    for (Py_ssize_t i = 0; i < length(last, "a step's inputs"); ++i)
      step.last_read.push_back(
          index_below(PyTuple_GET_ITEM(last, i), static_cast<i64>(plan.inputs.size()), "a step's input"));
    step.run = reinterpret_cast<RunFunction>(parse_address(PyTuple_GET_ITEM(spec, 0), "a kernel's address"));
    require(step.run != nullptr, "a kernel's address is NULL");
    return;
  }
  PyObject* callable = item(spec, 0, "a step");
  require(PyCallable_Check(callable), "a step is not callable");
  step.callable = Py_NewRef(callable);
  parse_buffer_views(item(spec, 1, "a step"), plan, &step.inputs);
  parse_buffer_views(item(spec, 2, "a step"), plan, &step.outputs);
  step.together = static_cast<int>(integer(item(spec, 3, "a step"), "how many calls run together"));
}

/* Calls that run together are calls, and in one group only. */
void check_groups(const Plan& plan) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const int together = plan.steps[i].together;
    require(together >= 1 && static_cast<size_t>(together) <= plan.steps.size() - i, "too many calls run together");
    for (int k = 0; k < together && together > 1; ++k) {
      const Step& step = plan.steps[i + static_cast<size_t>(k)];
      require(step.callable && (k == 0 || step.together == 1), "a step that is no call, or of another group, runs together");
    }
  }
}

/* (0, output) (1, input) (2, of_input, index, descr, shape, strides, offset, writeable) (3, object) */
void parse_result(PyObject* spec, Plan& plan) {
  plan.results.emplace_back();
  Result& result = plan.results.back();
  result.kind = static_cast<ResultKind>(index_below(item(spec, 0, "a result"), 4, "a result's kind"));
  const i64 inputs = static_cast<i64>(plan.inputs.size());
  const i64 outputs = static_cast<i64>(plan.outputs.size());
  switch (result.kind) {
    case ResultKind::Output:
      result.index = index_below(item(spec, 1, "a result"), outputs, "a result's output");
      return;
    case ResultKind::Input:
      result.index = index_below(item(spec, 1, "a result"), inputs, "a result's input");
      return;
    case ResultKind::Constant:
      result.constant = Py_NewRef(item(spec, 1, "a result"));
      return;
    case ResultKind::View:
      break;
  }
  result.of_input = truth(item(spec, 1, "a view"), "a view's base");
  result.index = index_below(item(spec, 2, "a view"), result.of_input ? inputs : outputs, "a view's base");
  if (result.of_input)
    require(plan.inputs[result.index].kind == InputKind::Array, "a view of an input that is no array");
  else
    require(plan.outputs[result.index].kind == OutputKind::Array, "a view of a scalar output");
  require(item(spec, 5, "a view") != Py_None, "a view has no strides");
  parse_layout(item(spec, 3, "a view"), item(spec, 4, "a view"), item(spec, 5, "a view"), plan, &result.layout);
  result.offset = parse_size(item(spec, 6, "a view"), plan, "a view's offset");
  result.writeable = truth(item(spec, 7, "a view"), "a view's writeable flag");
}

bool is_result(const Plan& plan, int input) {
  for (const Result& result : plan.results) {
    const bool of_input = result.kind == ResultKind::Input || (result.kind == ResultKind::View && result.of_input);
    if (of_input && result.index == input) return true;
  }
  return false;
}

void parse_error(PyObject* spec, Plan& plan) {
  PyObject* type = item(spec, 0, "an error");
  PyObject* message = item(spec, 1, "an error");
  require(PyExceptionClass_Check(type) && PyUnicode_Check(message), "an error is not (exception type, message)");
  plan.errors.push_back({Py_NewRef(type), Py_NewRef(message)});
}

/* (labels, number of parts of each step) */
void parse_labels(PyObject* spec, Plan& plan) {
  PyObject* labels = item(spec, 0, "the labels");
  PyObject* names = item(labels, 0, "the labels");
  PyObject* counts = item(spec, 1, "the labels");
  require(length(counts, "the labels") == static_cast<Py_ssize_t>(plan.steps.size()), "labels of other steps");
  i64 first = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    plan.steps[i].first_label = first;
    first += index_below(PyTuple_GET_ITEM(counts, static_cast<Py_ssize_t>(i)), 1 << 20, "a step's labels");
  }
  require(length(names, "the labels") == first + 1, "the labels do not fit the steps");
  plan.labels = Py_NewRef(labels);
}

template <class Parse>
void each(PyObject* tuple, Plan& plan, const char* what, Parse parse) {
  const Py_ssize_t count = length(tuple, what);
  require(count < 1 << 20, what);
  for (Py_ssize_t i = 0; i < count; ++i) parse(PyTuple_GET_ITEM(tuple, i), plan);
}

/* (name, inputs, symbols, size_count, sizes address, outputs, arena, arena_bytes, constants, steps, results,
 *  errors, single, release_gil, owner, library or None, on_status or None, first_write, saves, always,
 *  (labels, parts of each step)) */
void parse_all(PyObject* spec, Plan& plan) {
  require(length(spec, "not a tuple") == 21, "not a tuple of 21");
  PyObject* name = PyTuple_GET_ITEM(spec, 0);
  require(PyUnicode_Check(name), "the name is not a string");
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) throw Invalid();
  plan.name = text;
  each(PyTuple_GET_ITEM(spec, 1), plan, "inputs", parse_input);
  each(PyTuple_GET_ITEM(spec, 2), plan, "symbols", parse_symbol);
  plan.size_count = index_below(PyTuple_GET_ITEM(spec, 3), 1 << 20, "size_count");
  plan.sizes = reinterpret_cast<SizesFunction>(parse_address(PyTuple_GET_ITEM(spec, 4), "the sizes function"));
  require((plan.size_count > 0) == (plan.sizes != nullptr), "size_count without a sizes function, or the reverse");
  each(PyTuple_GET_ITEM(spec, 5), plan, "outputs", parse_output);
  parse_arena(PyTuple_GET_ITEM(spec, 6), PyTuple_GET_ITEM(spec, 7), plan);
  each(PyTuple_GET_ITEM(spec, 8), plan, "constants", parse_constant);
  each(PyTuple_GET_ITEM(spec, 9), plan, "steps", parse_step);
  check_groups(plan);
  each(PyTuple_GET_ITEM(spec, 10), plan, "results", parse_result);
  for (const Step& step : plan.steps)
    for (const int index : step.last_read) require(!is_result(plan, index), "a result is made of an input that was released");
  each(PyTuple_GET_ITEM(spec, 11), plan, "errors", parse_error);
  plan.single = truth(PyTuple_GET_ITEM(spec, 12), "single");
  require(!plan.single || plan.results.size() == 1, "single, but not exactly one result");
  plan.release_gil = truth(PyTuple_GET_ITEM(spec, 13), "release_gil");
  if (PyTuple_GET_ITEM(spec, 14) != Py_None) {
    plan.tensors = make_tensor_api(PyTuple_GET_ITEM(spec, 14));
    if (!plan.tensors) throw Invalid();
  }
  plan.library = Py_NewRef(PyTuple_GET_ITEM(spec, 15));
  PyObject* on_status = PyTuple_GET_ITEM(spec, 16);
  plan.first_write = static_cast<size_t>(
      index_below(PyTuple_GET_ITEM(spec, 17), static_cast<i64>(plan.steps.size()) + 1, "first_write"));
  plan.saves = truth(PyTuple_GET_ITEM(spec, 18), "saves");
  plan.always = static_cast<unsigned>(index_below(PyTuple_GET_ITEM(spec, 19), 16, "always"));
  parse_labels(PyTuple_GET_ITEM(spec, 20), plan);
  if (on_status != Py_None) {
    require(!plan.tensors && PyCallable_Check(on_status), "on_status is not callable, or for tensors");
    plan.on_status = Py_NewRef(on_status);
  }
}

void drop_layout(Layout& layout) { Py_CLEAR(layout.descr); }

}  // namespace

Plan* parse_plan(PyObject* spec) {
  Plan* plan = nullptr;
  try {
    plan = new Plan();
    parse_all(spec, *plan);
    return plan;
  } catch (const Invalid&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  free_plan(plan);
  return nullptr;
}

void free_plan(Plan* plan) {
  if (!plan) return;
  for (Input& input : plan->inputs) Py_CLEAR(input.descr);
  for (Output& output : plan->outputs) drop_layout(output.layout);
  for (Constant& constant : plan->constants) Py_CLEAR(constant.owner);
  for (Step& step : plan->steps) {
    Py_CLEAR(step.callable);
    for (BufferView& view : step.inputs) drop_layout(view.layout);
    for (BufferView& view : step.outputs) drop_layout(view.layout);
  }
  for (Result& result : plan->results) {
    drop_layout(result.layout);
    Py_CLEAR(result.constant);
  }
  for (Error& error : plan->errors) {
    Py_CLEAR(error.type);
    Py_CLEAR(error.message);
  }
  Py_CLEAR(plan->library);
  Py_CLEAR(plan->on_status);
  Py_CLEAR(plan->labels);
  free_tensor_api(plan->tensors);
  delete plan;
}

int traverse_plan(Plan* plan, visitproc visit, void* arg) {
  for (Constant& constant : plan->constants) Py_VISIT(constant.owner);
  for (Step& step : plan->steps) Py_VISIT(step.callable);
  for (Result& result : plan->results) Py_VISIT(result.constant);
  for (Error& error : plan->errors) Py_VISIT(error.type);
  Py_VISIT(plan->library);
  Py_VISIT(plan->on_status);
  Py_VISIT(plan->labels);
  return traverse_tensor_api(plan->tensors, visit, arg);
}

}  // namespace dyncomp
