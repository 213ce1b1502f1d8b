/* A parsed launch plan and the callable over it. */
#ifndef DYNCOMP_GRAPH_H
#define DYNCOMP_GRAPH_H
#include <Python.h>

#include <string>
#include <vector>

#include "abi.h"
#include "numpy_api.h"

namespace dyncomp {

class CallSpan;
class Watched;

/* A size fixed in the plan, or entry `value` of what the sizes function wrote. */
struct Size {
  i64 value = 0;
  bool dynamic = false;
  i64 get(const i64* sizes) const { return dynamic ? sizes[value] : value; }
};

/* dtype, shape and strides of an array to be made. Strides are in elements until scaled by `item`. */
struct Layout {
  PyArray_Descr* descr = nullptr; /* owned by the plan */
  npy_intp item = 0;
  int ndim = 0;
  bool has_strides = false;
  bool dynamic = false;
  std::vector<Size> shape;
  std::vector<Size> strides;
  /* Filled in at construction if nothing is dynamic. Strides in bytes. */
  std::vector<npy_intp> fixed_shape;
  std::vector<npy_intp> fixed_strides;
  npy_intp fixed_bytes = 0;
};

/* A layout with its sizes worked out for one call. */
struct Extents {
  npy_intp shape[NPY_MAXDIMS];
  npy_intp strides[NPY_MAXDIMS];
  npy_intp bytes; /* product of shape times item */
};

enum class InputKind { Array, Float, Complex, Bool, Int, SymInt, Object };
enum class OutputKind { Array, NumPyScalar, PythonScalar };
enum class SymbolKind { Value, Shape, Stride };
enum class ResultKind { Output, Input, View, Constant };

constexpr i64 kUnchecked = INT64_MIN;

struct Input {
  InputKind kind = InputKind::Array;
  PyArray_Descr* descr = nullptr;
  npy_intp item = 0;
  int ndim = 0;
  bool writable = false;
  std::vector<i64> shape;   /* kUnchecked where any; empty if nothing is checked */
  std::vector<i64> strides; /* bytes */
};

struct Symbol {
  SymbolKind kind;
  int input;
  int dim;
};

struct Output {
  Layout layout;
  OutputKind kind;
};

struct BufferView {
  int buffer;
  Layout layout;
  Size offset;
};

struct Step {
  RunFunction run = nullptr; /* a kernel, or */
  PyObject* callable = nullptr;
  std::vector<BufferView> inputs;
  std::vector<BufferView> outputs;
  i64 first_label = 0;        /* of its parts, in Plan.labels */
  int together = 1; /* this call and those after it, so many, may run at the same time */
  std::vector<int> last_read; /* inputs that were handed over and are read by no later step */
};

struct Result {
  ResultKind kind;
  int index = 0;
  bool of_input = false; /* a view's base */
  bool writeable = true;
  Layout layout;
  Size offset;
  PyObject* constant = nullptr;
};

struct Constant {
  PyObject* owner;
  void* data;
};

struct Error {
  PyObject* type;
  PyObject* message;
};

struct TensorApi;

struct Plan {
  std::string name;
  std::vector<Input> inputs;
  std::vector<Symbol> symbols;
  int size_count = 0;
  SizesFunction sizes = nullptr;
  std::vector<Output> outputs;
  std::vector<Size> arena;
  Size arena_bytes;
  std::vector<Constant> constants;
  std::vector<Step> steps;
  std::vector<Result> results;
  std::vector<Error> errors;
  bool single = true;
  bool release_gil = false;
  PyObject* library = nullptr; /* keeps the functions of steps, and the sizes function, loaded */
  PyObject* on_status = nullptr; /* told of floating-point errors (watched.h), or NULL */
  size_t first_write = 0;        /* the first step that writes to inputs; steps.size() if none does */
  bool saves = false;            /* from the first call on */
  unsigned always = 0;           /* NumPy's flags of what was computed when the graph was compiled */
  TensorApi* tensors = nullptr; /* NULL: NumPy */
  PyObject* labels = nullptr;   /* ((name of the graph, a name for each part of each step), more): spans.h */

  int buffer_count() const {
    return static_cast<int>(inputs.size() + outputs.size() + arena.size() + constants.size());
  }
  int first_output() const { return static_cast<int>(inputs.size()); }
  int first_arena() const { return first_output() + static_cast<int>(outputs.size()); }
  int first_constant() const { return first_arena() + static_cast<int>(arena.size()); }
};

/* Reads the tuple that launch.build makes. NULL with ValueError or TypeError set. */
Plan* parse_plan(PyObject* spec);
void free_plan(Plan* plan);
int traverse_plan(Plan* plan, visitproc visit, void* arg);

/* Scratch memory of one call; arrays over it hold a reference. Large ones are lent to one call of any graph after
 * another: a backward graph takes that of its forward graph. */
struct ArenaBlock {
  PyObject_HEAD
  void* data;
  size_t size;
};
extern PyTypeObject ArenaBlockType;
ArenaBlock* make_arena(size_t bytes);

/* What a call learnt of one tensor. Strides in elements. */
struct TensorFacts {
  void* data = nullptr;
  int ndim = 0;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr; /* NULL: C order */
  std::vector<int64_t> storage;     /* where no exchange table lends them */
};

/* Everything of one call. Pointers are borrowed unless said. */
struct Frame {
  const Plan* plan;
  PyObject* const* args;
  PyObject** owned; /* the same, if the caller handed them over: NULL once nothing reads them */
  void** buffers;
  i64* syms;
  i64* sizes;
  PyObject** outputs; /* owned; NULL for a scalar not made yet */
  char* scalars;      /* 16 bytes per input, then per output */
  ArenaBlock* arena;  /* owned */
  PyObject** lent;    /* per arena slot: the library's array whose memory stands in for it (owned) or NULL */
  TensorFacts* facts; /* per input, if the plan's arrays are tensors */
  Watched* watched; /* or NULL */
  CallSpan* span;   /* where somebody profiles, or NULL */
};

/* False with ValueError set if a size from the sizes function is negative or overflows. */
bool resolve(const Layout& layout, const i64* sizes, Extents* out);

/* results.cpp: NumPy arrays and scalars. All return new references, NULL with an exception set. */
PyObject* make_fresh_array(const Layout& layout, const i64* sizes, void** data);
PyObject* make_view(PyObject* base, const Layout& layout, const i64* sizes, i64 offset, bool writeable);
PyObject* make_scalar(const Output& output, void* data);
PyObject* make_result(Frame& frame, const Result& result);

/* Raises TypeError about argument `index`; false. (inputs.cpp) */
bool mismatch(const Frame& frame, int index, const char* what);

/* inputs.cpp: false with an exception set. */
bool read_inputs(Frame& frame);

/* pycall.cpp */
bool run_pycall(Frame& frame, const Step& step);

/* together.cpp: calls that may run at the same time. Without a runner one after the other. */
bool run_together(Frame& frame, const Step* steps, int count);
PyObject* set_task_runner(PyObject* module, PyObject* runner);

/* tensors.cpp: arrays of another library. */
PyObject* use_direct_view(PyObject* module, PyObject* args);
TensorApi* make_tensor_api(PyObject* spec);
void free_tensor_api(TensorApi* api);
int traverse_tensor_api(TensorApi* api, visitproc visit, void* arg);
bool read_tensor(Frame& frame, int index);
bool tensor_symbol(const Frame& frame, const Symbol& symbol, i64* out);
PyObject* make_fresh_tensor(const Plan& plan, const Layout& layout, const i64* sizes, void** data);
bool is_tensor(const Plan& plan, PyObject* value);
PyObject* tensor_to_numpy(const Plan& plan, PyObject* tensor);
/* A tensor of a layout whose memory nothing else sees, laid out as wanted; NULL, without an exception, if it is none. */
PyObject* take_tensor(const Plan& plan, PyObject* tensor, const Layout& layout, const Extents& extents,
                      const Layout& wanted, const Extents& wanted_extents, void** data);
PyObject* make_tensor_view(const Plan& plan, PyObject* base, const Layout& layout, const i64* sizes, i64 offset);

extern PyTypeObject CompiledGraphType;
size_t release_idle_arenas();

}  // namespace dyncomp
#endif
