/* CompiledGraph: the vectorcall object that runs one launch plan. */
#include <cstddef>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#define NO_IMPORT_ARRAY
#include "graph.h"
#include "memory.h"
#include "pool.h"
#include "spans.h"
#include "watched.h"

namespace dyncomp {
namespace {

struct CompiledGraph {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  Plan* plan;
  ArenaBlock* idle; /* a small arena waiting for the next call; taken and returned under the GIL */
  CompiledGraph* previous;
  CompiledGraph* next;
  PyObject* weak_references;
  size_t frame_bytes;
  bool saves; /* what is written is kept during a call, as it may have to be taken back */
};

CompiledGraph* all_graphs = nullptr;

constexpr size_t kStackFrame = 4096;

size_t frame_bytes(const Plan& plan) {
  const size_t values = plan.inputs.size() + plan.outputs.size();
  return 16 * values + sizeof(void*) * static_cast<size_t>(plan.buffer_count()) +
         sizeof(i64) * (plan.symbols.size() + static_cast<size_t>(plan.size_count)) +
         sizeof(PyObject*) * (plan.outputs.size() + plan.arena.size());
}

/* Cuts the frame's arrays out of one piece of memory (16-byte aligned). */
void lay_out_frame(const Plan& plan, char* memory, Frame* frame) {
  frame->scalars = memory;
  memory += 16 * (plan.inputs.size() + plan.outputs.size());
  frame->buffers = reinterpret_cast<void**>(memory);
  memory += sizeof(void*) * static_cast<size_t>(plan.buffer_count());
  frame->syms = reinterpret_cast<i64*>(memory);
  memory += sizeof(i64) * plan.symbols.size();
  frame->sizes = reinterpret_cast<i64*>(memory);
  memory += sizeof(i64) * static_cast<size_t>(plan.size_count);
  frame->outputs = reinterpret_cast<PyObject**>(memory);
  for (size_t i = 0; i < plan.outputs.size(); ++i) frame->outputs[i] = nullptr;
  frame->lent = frame->outputs + plan.outputs.size();
  for (size_t i = 0; i < plan.arena.size(); ++i) frame->lent[i] = nullptr;
}

bool make_outputs(Frame& frame) {
  const Plan& plan = *frame.plan;
  void** data = frame.buffers + plan.first_output();
  const size_t count = plan.outputs.size();
  for (size_t i = 0; i < count; ++i) {
    const Output& output = plan.outputs[i];
    if (output.kind != OutputKind::Array) {
      data[i] = frame.scalars + 16 * (plan.inputs.size() + i);
      continue;
    }
    frame.outputs[i] = plan.tensors ? make_fresh_tensor(plan, output.layout, frame.sizes, &data[i])
                                    : make_fresh_array(output.layout, frame.sizes, &data[i]);
    if (!frame.outputs[i]) return false;
  }
  return true;
}

/* Large arenas that no call uses, the smallest first; under the GIL. */
std::vector<ArenaBlock*>& idle_arenas() {
  static std::vector<ArenaBlock*>* const arenas = new std::vector<ArenaBlock*>();
  return *arenas;
}

/* The smallest large enough. If there is none the largest goes: what is made in its place serves for it, too, so that
 * there are as many as calls that run at the same time. */
ArenaBlock* take_shared_arena(size_t bytes) {
  std::vector<ArenaBlock*>& idle = idle_arenas();
  for (auto arena = idle.begin(); arena != idle.end(); ++arena) {
    if ((*arena)->size < bytes) continue;
    ArenaBlock* const found = *arena;
    idle.erase(arena);
    return found;
  }
  if (!idle.empty()) {
    Py_DECREF(idle.back());
    idle.pop_back();
  }
  return make_arena(bytes);
}

void return_shared_arena(ArenaBlock* arena) {
  std::vector<ArenaBlock*>& idle = idle_arenas();
  auto place = idle.begin();
  while (place != idle.end() && (*place)->size < arena->size) ++place;
  try {
    idle.insert(place, arena);
  } catch (const std::bad_alloc&) {
    Py_DECREF(arena);
  }
}

bool take_arena(CompiledGraph* self, Frame& frame) {
  const Plan& plan = *frame.plan;
  const i64 bytes = plan.arena_bytes.get(frame.sizes);
  if (bytes < 0) {
    PyErr_SetString(PyExc_ValueError, "compiled graph: the arena's size is negative");
    return false;
  }
  const size_t wanted = static_cast<size_t>(bytes);
  ArenaBlock* arena = nullptr;
  if (wanted >= kSharedArena) {
    arena = take_shared_arena(wanted);
  } else {
    std::swap(arena, self->idle);
    if (arena && arena->size < wanted) Py_CLEAR(arena);
    if (!arena) arena = make_arena(wanted);
  }
  if (!arena) return false;
  frame.arena = arena;
  void** data = frame.buffers + plan.first_arena();
  for (size_t i = 0; i < plan.arena.size(); ++i) {
    const i64 offset = plan.arena[i].get(frame.sizes);
    if (offset < 0 || offset > bytes) {
      PyErr_SetString(PyExc_ValueError, "compiled graph: an arena slot lies outside the arena");
      return false;
    }
    data[i] = static_cast<char*>(arena->data) + offset;
  }
  return true;
}

void return_arena(CompiledGraph* self, ArenaBlock* arena) {
  /* Another reference: a library function kept an array over it. */
  const bool ours = Py_REFCNT(arena) == 1;
  if (ours && arena->size >= kSharedArena) {
    return_shared_arena(arena);
  } else if (ours && !self->idle) {
    self->idle = arena;
  } else {
    Py_DECREF(arena);
  }
}

bool raise_kernel_error(const Plan& plan, i64 code, const i64* details) {
  if (code < 1 || code > static_cast<i64>(plan.errors.size())) {
    PyErr_Format(PyExc_RuntimeError, "%s: a kernel failed with unknown code %lld", plan.name.c_str(), code);
    return false;
  }
  const Error& error = plan.errors[static_cast<size_t>(code - 1)];
  PyObject* message = PyObject_CallMethod(error.message, "format", "LLLL", details[0], details[1], details[2], details[3]);
  if (!message) return false;
  PyErr_SetObject(error.type, message);
  Py_DECREF(message);
  return false;
}

bool run_kernel(Frame& frame, RunFunction run) {
  i64 details[4] = {0, 0, 0, 0};
  i64 code;
  if (frame.plan->release_gil) {
    PyObject* const library = Py_XNewRef(frame.plan->library); /* another may take its place meanwhile */
    PyThreadState* state = PyEval_SaveThread();
    code = run(frame.buffers, frame.syms, &runtime_table, details);
    PyEval_RestoreThread(state);
    Py_XDECREF(library);
  } else {
    code = run(frame.buffers, frame.syms, &runtime_table, details);
  }
  return code == 0 || raise_kernel_error(*frame.plan, code, details);
}

/* A Python call whose own reports of floating-point errors are noted and not made: the original makes them. */
bool run_watched_pycall(Frame& frame, const Step& step) {
  frame.watched->before_call();
  PyObject* token = begin_reports();
  if (!token) return false;
  const bool ran = run_pycall(frame, step);
  unsigned flags = 0;
  const bool ended = end_reports(token, &flags);
  frame.watched->after_call(flags);
  return ran && ended;
}

bool run_step(Frame& frame, const Step& step) {
  if (step.run) return run_kernel(frame, step.run);
  return frame.watched ? run_watched_pycall(frame, step) : run_pycall(frame, step);
}

bool run_steps(CompiledGraph* self, Frame& frame) {
  const Plan& plan = *frame.plan;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (frame.watched && i == plan.first_write && !frame.watched->before_writes(frame, self->saves)) return false;
    const int together = frame.watched || frame.span ? 1 : plan.steps[i].together;
    if (together > 1) {
      if (!run_together(frame, &plan.steps[i], together)) return false;
      i += static_cast<size_t>(together) - 1;
      continue;
    }
    if (frame.span) frame.span->begin(plan.steps[i].first_label);
    const bool ran = run_step(frame, plan.steps[i]);
    if (frame.span) frame.span->end();
    if (!ran) return false;
    if (!frame.owned) continue;
    for (const int index : plan.steps[i].last_read) Py_CLEAR(frame.owned[index]);
  }
  return !frame.watched || frame.watched->at_end(frame, &self->saves);
}

PyObject* collect_results(Frame& frame) {
  const Plan& plan = *frame.plan;
  if (plan.single) return make_result(frame, plan.results[0]);
  const Py_ssize_t count = static_cast<Py_ssize_t>(plan.results.size());
  PyObject* tuple = PyTuple_New(count);
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* result = make_result(frame, plan.results[static_cast<size_t>(i)]);
    if (!result) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, i, result);
  }
  return tuple;
}

PyObject* run_frame(CompiledGraph* self, Frame& frame) {
  const Plan& plan = *frame.plan;
  if (!read_inputs(frame)) return nullptr;
  if (plan.sizes) plan.sizes(frame.syms, frame.sizes);
  if (!make_outputs(frame)) return nullptr;
  if (!plan.arena.empty() && !take_arena(self, frame)) return nullptr;
  void** constants = frame.buffers + plan.first_constant();
  for (size_t i = 0; i < plan.constants.size(); ++i) constants[i] = plan.constants[i].data;
  if (!run_steps(self, frame)) return nullptr;
  return collect_results(frame);
}

/* The arguments, whether the call may give them up, and what records it, or NULL. */
struct Arguments {
  PyObject** values;
  bool owned;
  CallSpan* span;
};

PyObject* run_in(CompiledGraph* self, Arguments args, char* memory, TensorFacts* facts) {
  Frame frame;
  frame.plan = self->plan;
  frame.args = args.values;
  frame.owned = args.owned ? args.values : nullptr;
  frame.arena = nullptr;
  frame.facts = facts;
  frame.watched = nullptr;
  frame.span = args.span;
  lay_out_frame(*self->plan, memory, &frame);
  PyObject* result;
  if (self->plan->on_status) {
    Watched watched(*self->plan);
    frame.watched = &watched;
    result = run_frame(self, frame);
  } else {
    result = run_frame(self, frame);
  }
  for (size_t i = 0; i < self->plan->outputs.size(); ++i) Py_XDECREF(frame.outputs[i]);
  for (size_t i = 0; i < self->plan->arena.size(); ++i) Py_XDECREF(frame.lent[i]);
  if (frame.arena) return_arena(self, frame.arena);
  return result;
}

PyObject* run_with_memory(CompiledGraph* self, Arguments args, char* memory) {
  if (!self->plan->tensors) return run_in(self, args, memory, nullptr);
  try {
    std::vector<TensorFacts> facts(self->plan->inputs.size());
    return run_in(self, args, memory, facts.data());
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

PyObject* run_on_heap(CompiledGraph* self, Arguments args) {
  char* memory = static_cast<char*>(malloc(self->frame_bytes));
  if (!memory) return PyErr_NoMemory();
  PyObject* result = run_with_memory(self, args, memory);
  free(memory);
  return result;
}

bool check_count(CompiledGraph* self, size_t count) {
  if (count == self->plan->inputs.size()) return true;
  PyErr_Format(PyExc_TypeError, "%s takes %zu positional arguments", self->plan->name.c_str(),
               self->plan->inputs.size());
  return false;
}

__attribute__((noinline)) PyObject* run_recorded(CompiledGraph* self, Arguments args, int wanted) {
  CallSpan span(self->plan->labels, wanted);
  args.span = &span;
  return run_on_heap(self, args);
}

PyObject* run_graph(CompiledGraph* self, Arguments args) {
  PyObject* const object = reinterpret_cast<PyObject*>(self);
  /* The plan, and with it everything the call uses, stays even if the call drops the last reference. */
  Py_INCREF(object);
  const int wanted = spans_wanted();
  PyObject* result;
  if (__builtin_expect(wanted, 0)) {
    result = run_recorded(self, args, wanted);
  } else if (self->frame_bytes <= kStackFrame) {
    alignas(16) char memory[kStackFrame];
    result = run_with_memory(self, args, memory);
  } else {
    result = run_on_heap(self, args);
  }
  Py_DECREF(object);
  return result;
}

PyObject* graph_vectorcall(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  CompiledGraph* self = reinterpret_cast<CompiledGraph*>(object);
  const bool named = kwnames && PyTuple_GET_SIZE(kwnames);
  if (!check_count(self, named ? SIZE_MAX : static_cast<size_t>(PyVectorcall_NARGS(nargsf)))) return nullptr;
  return run_graph(self, {const_cast<PyObject**>(args), false, nullptr});
}

/* A call with the arguments of a list, which is emptied: what nothing else holds goes after the last step that reads
 * it, and not at the end. */
PyObject* graph_consume(PyObject* object, PyObject* list) {
  CompiledGraph* self = reinterpret_cast<CompiledGraph*>(object);
  if (!PyList_Check(list)) {
    PyErr_SetString(PyExc_TypeError, "consume takes a list");
    return nullptr;
  }
  const size_t count = static_cast<size_t>(PyList_GET_SIZE(list));
  if (!check_count(self, count)) return nullptr;
  try {
    std::vector<PyObject*> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = Py_NewRef(PyList_GET_ITEM(list, static_cast<Py_ssize_t>(i)));
    PyObject* result = nullptr;
    if (PyList_SetSlice(list, 0, PyList_GET_SIZE(list), nullptr) == 0) result = run_graph(self, {values.data(), true, nullptr});
    for (PyObject* value : values) Py_XDECREF(value);
    return result;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

PyObject* graph_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* spec;
  static const char* names[] = {"spec", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:CompiledGraph", const_cast<char**>(names), &PyTuple_Type, &spec))
    return nullptr;
  Plan* plan = parse_plan(spec);
  if (!plan) return nullptr;
  CompiledGraph* self = reinterpret_cast<CompiledGraph*>(type->tp_alloc(type, 0));
  if (!self) {
    free_plan(plan);
    return nullptr;
  }
  self->vectorcall = graph_vectorcall;
  self->plan = plan;
  self->frame_bytes = frame_bytes(*plan);
  self->saves = plan->saves;
  self->idle = nullptr;
  self->weak_references = nullptr;
  self->previous = nullptr;
  self->next = all_graphs;
  if (all_graphs) all_graphs->previous = self;
  all_graphs = self;
  return reinterpret_cast<PyObject*>(self);
}

int graph_traverse(PyObject* object, visitproc visit, void* arg) {
  return traverse_plan(reinterpret_cast<CompiledGraph*>(object)->plan, visit, arg);
}

void graph_dealloc(PyObject* object) {
  CompiledGraph* self = reinterpret_cast<CompiledGraph*>(object);
  PyObject_GC_UnTrack(object);
  if (self->weak_references) PyObject_ClearWeakRefs(object);
  if (self->previous)
    self->previous->next = self->next;
  else
    all_graphs = self->next;
  if (self->next) self->next->previous = self->previous;
  Py_CLEAR(self->idle);
  free_plan(self->plan);
  Py_TYPE(object)->tp_free(object);
}

PyObject* graph_repr(PyObject* object) {
  return PyUnicode_FromFormat("<CompiledGraph %s>", reinterpret_cast<CompiledGraph*>(object)->plan->name.c_str());
}

PyObject* graph_name(PyObject* object, void*) {
  return PyUnicode_FromString(reinterpret_cast<CompiledGraph*>(object)->plan->name.c_str());
}

PyObject* graph_num_inputs(PyObject* object, void*) {
  return PyLong_FromSize_t(reinterpret_cast<CompiledGraph*>(object)->plan->inputs.size());
}

/* Other builds of the same functions. A call in progress goes on with the new ones at its next step: both compute
 * the same, and it holds the library of the function that it runs. Under the GIL, as is every read of these addresses. */
PyObject* graph_retarget(PyObject* object, PyObject* args) {
  Plan& plan = *reinterpret_cast<CompiledGraph*>(object)->plan;
  PyObject* sizes;
  PyObject* steps;
  PyObject* library;
  if (!PyArg_ParseTuple(args, "O!O!O:retarget", &PyLong_Type, &sizes, &PyTuple_Type, &steps, &library)) return nullptr;
  void* const sizes_address = PyLong_AsVoidPtr(sizes);
  if (PyErr_Occurred()) return nullptr;
  bool fits = PyTuple_GET_SIZE(steps) == static_cast<Py_ssize_t>(plan.steps.size()) &&
              (sizes_address != nullptr) == (plan.sizes != nullptr);
  for (size_t i = 0; fits && i < plan.steps.size(); ++i) {
    PyObject* const item = PyTuple_GET_ITEM(steps, static_cast<Py_ssize_t>(i));
    if (!PyLong_Check(item)) {
      fits = false;
      break;
    }
    const void* const address = PyLong_AsVoidPtr(item);
    if (PyErr_Occurred()) return nullptr;
    fits = (address != nullptr) == (plan.steps[i].run != nullptr);
  }
  if (!fits) {
    PyErr_SetString(PyExc_ValueError, "retarget: other functions than the launch plan has");
    return nullptr;
  }
  plan.sizes = reinterpret_cast<SizesFunction>(sizes_address);
  for (size_t i = 0; i < plan.steps.size(); ++i)
    plan.steps[i].run =
        reinterpret_cast<RunFunction>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(steps, static_cast<Py_ssize_t>(i))));
  Py_XSETREF(plan.library, Py_NewRef(library));
  Py_RETURN_NONE;
}

PyMethodDef graph_methods[] = {
    {"consume", graph_consume, METH_O,
     "consume(list): call with the list's items and empty it; they are released after their last use."},
    {"retarget", graph_retarget, METH_VARARGS,
     "retarget(sizes, steps, library): run other builds of the same functions, given by their addresses (0: none)."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef graph_getset[] = {
    {"name", graph_name, nullptr, "The plan's name.", nullptr},
    {"num_inputs", graph_num_inputs, nullptr, "Number of positional arguments.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

void arena_dealloc(PyObject* object) {
  ArenaBlock* self = reinterpret_cast<ArenaBlock*>(object);
  if (self->size >= kSharedArena)
    block_drop(self->data);
  else if (self->size >= kLargeBlock)
    block_free(self->data);
  else
    free(self->data);
  Py_TYPE(object)->tp_free(object);
}

PyTypeObject make_arena_type() {
  PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  type.tp_name = "dyncomp.runtime._launch.ArenaBlock";
  type.tp_basicsize = sizeof(ArenaBlock);
  type.tp_dealloc = arena_dealloc;
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  type.tp_doc = "Scratch memory of a compiled graph.";
  return type;
}

PyTypeObject make_graph_type() {
  PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  type.tp_name = "dyncomp.runtime._launch.CompiledGraph";
  type.tp_basicsize = sizeof(CompiledGraph);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE;
  type.tp_doc = "A compiled graph, called with its inputs positionally.";
  type.tp_new = graph_new;
  type.tp_dealloc = graph_dealloc;
  type.tp_traverse = graph_traverse;
  type.tp_repr = graph_repr;
  type.tp_call = PyVectorcall_Call;
  type.tp_vectorcall_offset = offsetof(CompiledGraph, vectorcall);
  type.tp_getset = graph_getset;
  type.tp_methods = graph_methods;
  type.tp_weaklistoffset = offsetof(CompiledGraph, weak_references);
  return type;
}

}  // namespace

PyTypeObject ArenaBlockType = make_arena_type();
PyTypeObject CompiledGraphType = make_graph_type();

ArenaBlock* make_arena(size_t bytes) {
  const size_t size = (bytes + kAlignment) / kAlignment * kAlignment;
  void* data = size >= kLargeBlock ? block_allocate(size) : aligned_alloc(kAlignment, size);
  if (!data) {
    PyErr_NoMemory();
    return nullptr;
  }
  ArenaBlock* arena = PyObject_New(ArenaBlock, &ArenaBlockType);
  if (!arena) {
    size >= kLargeBlock ? block_free(data) : free(data);
    return nullptr;
  }
  arena->data = data;
  arena->size = size;
  return arena;
}

size_t release_idle_arenas() {
  size_t released = 0;
  for (ArenaBlock* arena : idle_arenas()) {
    released += arena->size;
    Py_DECREF(arena);
  }
  idle_arenas().clear();
  for (CompiledGraph* graph = all_graphs; graph; graph = graph->next) {
    if (!graph->idle) continue;
    released += graph->idle->size;
    Py_CLEAR(graph->idle);
  }
  return released;
}

}  // namespace dyncomp
