/* dyncomp.runtime._launch */
#include "numpy_api.h"

#include <dlfcn.h>

#include "blas.h"
#include "gemm/gemm.h"
#include "fourier.h"
#include "graph.h"
#include "kept.h"
#include "library.h"
#include "limits.h"
#include "linalg.h"
#include "mappings.h"
#include "memory.h"
#include "pool.h"
#include "spans.h"
#include "select.h"

namespace {

using namespace dyncomp;

PyObject* symbol(PyObject*, PyObject* args) {
  PyObject* library;
  const char* name;
  if (!PyArg_ParseTuple(args, "Os:symbol", &library, &name)) return nullptr;
  void* handle = library_handle(library);
  if (!handle) return nullptr;
  void* address = dlsym(handle, name);
  if (address) return PyLong_FromVoidPtr(address);
  PyErr_Format(PyExc_LookupError, "the library has no symbol %s", name);
  return nullptr;
}

PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }

PyObject* set_threads(PyObject*, PyObject* argument) {
  const long count = PyLong_AsLong(argument);
  if (count == -1 && PyErr_Occurred()) return nullptr;
  if (count < 1 || count > kMaxThreads)
    return PyErr_Format(PyExc_ValueError, "the number of threads must be in [1, %d], not %ld", kMaxThreads, count);
  set_num_threads(static_cast<int>(count));
  Py_RETURN_NONE;
}

PyObject* set_team(PyObject*, PyObject* args) {
  unsigned long long parallel, number, most;
  if (!PyArg_ParseTuple(args, "KKK", &parallel, &number, &most)) return nullptr;
  Team with;
  with.parallel = reinterpret_cast<decltype(with.parallel)>(parallel);
  with.thread_number = reinterpret_cast<decltype(with.thread_number)>(number);
  with.most_threads = reinterpret_cast<decltype(with.most_threads)>(most);
  return PyBool_FromLong(share_threads(with));
}

PyObject* get_default_threads(PyObject*, PyObject*) { return PyLong_FromLong(default_num_threads()); }

PyObject* get_group_limits(PyObject*, PyObject* argument) {
  const char* const root = PyUnicode_AsUTF8(argument);
  if (!root) return nullptr;
  const GroupLimits limits = group_limits(root);
  return Py_BuildValue("(dd)", limits.cpus, limits.bytes);
}

PyObject* runtime_address(PyObject*, PyObject*) { return PyLong_FromVoidPtr(&runtime_table); }

PyObject* blas_available(PyObject*, PyObject*) {
  return PyBool_FromLong(runtime_table.blas[DYNCOMP_BLAS_SGEMM] != nullptr);
}

PyObject* lapack_available(PyObject*, PyObject*) { return PyBool_FromLong(has_lapack()); }

PyObject* release_memory(PyObject*, PyObject*) {
  const size_t arenas = release_idle_arenas();
  kept_release(); /* its blocks are among those given back */
  return PyLong_FromSize_t(arenas + release_cached_blocks());
}

PyObject* kept_copies(PyObject*, PyObject*) {
  const KeptCounts counts = kept_counts();
  return Py_BuildValue("{s:N,s:n,s:n,s:n,s:n}", "can_watch", PyBool_FromLong(counts.can_watch), "copies",
                       static_cast<Py_ssize_t>(counts.copies), "bytes", static_cast<Py_ssize_t>(counts.bytes),
                       "hits", static_cast<Py_ssize_t>(counts.hits), "changed",
                       static_cast<Py_ssize_t>(counts.changed));
}

PyObject* private_memory(PyObject*, PyObject* args) {
  unsigned long long from, bytes;
  int by_text;
  if (!PyArg_ParseTuple(args, "KKp:private_memory", &from, &bytes, &by_text)) return nullptr;
  return PyBool_FromLong(is_private_memory({static_cast<uintptr_t>(from), static_cast<uintptr_t>(from + bytes)}, by_text));
}

PyObject* get_cached_bytes(PyObject*, PyObject*) { return PyLong_FromSize_t(cached_bytes()); }

PyObject* set_limit(PyObject*, PyObject* argument) {
  const size_t limit = PyLong_AsSize_t(argument);
  if (limit == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
  set_cache_limit(limit);
  Py_RETURN_NONE;
}

/* A Python body, for tests of the pool. The first exception is raised after all ranges ran. */
struct PythonBody {
  PyObject* function;
  PyObject* error;
};

void call_python_body(void* raw, i64 lo, i64 hi, int tid) {
  PythonBody* body = static_cast<PythonBody*>(raw);
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject* result = PyObject_CallFunction(body->function, "LLi", lo, hi, tid);
  Py_XDECREF(result);
  if (!result) {
    PyObject* type;
    PyObject* value;
    PyObject* traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    if (!body->error)
      body->error = value;
    else
      Py_XDECREF(value);
  }
  PyGILState_Release(state);
}

PyObject* python_parallel_for(PyObject*, PyObject* args) {
  PythonBody body = {nullptr, nullptr};
  long long n;
  long long grain;
  if (!PyArg_ParseTuple(args, "OLL:parallel_for", &body.function, &n, &grain)) return nullptr;
  Py_BEGIN_ALLOW_THREADS;
  parallel_for(call_python_body, &body, n, grain);
  Py_END_ALLOW_THREADS;
  if (!body.error) Py_RETURN_NONE;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(body.error)), body.error);
  Py_DECREF(body.error);
  return nullptr;
}

/* The axes of a batch; false with an exception. */
bool take_batch(PyObject* batch, Gemm& gemm) {
  constexpr Py_ssize_t kMostAxes = sizeof(gemm.batch) / sizeof(gemm.batch[0]);
  const Py_ssize_t axes = PyTuple_GET_SIZE(batch);
  if (axes > kMostAxes) {
    PyErr_Format(PyExc_ValueError, "a product has at most %zd batch axes, not %zd", kMostAxes, axes);
    return false;
  }
  for (Py_ssize_t axis = 0; axis < axes; ++axis) {
    PyObject* const one = PyTuple_GET_ITEM(batch, axis);
    if (!PyTuple_Check(one)) {
      PyErr_SetString(PyExc_TypeError, "an axis of a batch is a tuple");
      return false;
    }
    if (!PyArg_ParseTuple(one, "LLLL", &gemm.batch[axis], &gemm.a_batch[axis], &gemm.b_batch[axis], &gemm.c_batch[axis]))
      return false;
  }
  gemm.axes = static_cast<int>(axes);
  return true;
}

/* matrix_product(set, letter, m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, windows=zeros, kept=0,
 * tiling=zeros, batch=(), a_bytes=0, b_bytes=0): on addresses, for tests and measurements. `windows`: the numbers of a Windows, in order; an
 * operand is an image then. `tiling`: tile_vectors, block_panels, block_rows, block_terms, way. `batch`: for each axis its
 * size and the steps of a, b and c. */
PyObject* matrix_product(PyObject*, PyObject* args) {
  const char* name;
  const char* letter;
  Gemm gemm = {};
  long long a, b, c;
  Windows w = {};
  PyObject* batch = nullptr;
  if (!PyArg_ParseTuple(args, "zsLLLLLLLLLLL|(LLLLLLLLLLLLLLLL)L(LLLLL)O!LL:matrix_product", &name, &letter, &gemm.m, &gemm.n,
                        &gemm.k, &a, &gemm.a_row, &gemm.a_col, &b, &gemm.b_row, &gemm.b_col, &c, &gemm.c_row,
                        &w.columns, &w.sizes[0], &w.sizes[1], &w.kernel[0], &w.kernel[1], &w.stride[0], &w.stride[1],
                        &w.dilation[0], &w.dilation[1], &w.padding[0], &w.padding[1], &w.channel, &w.step[0],
                        &w.step[1], &w.channels_last, &w.depthwise, &gemm.kept, &gemm.tile_vectors, &gemm.block_panels,
                        &gemm.block_rows, &gemm.block_terms, &gemm.way, &PyTuple_Type, &batch,
                        &gemm.a_bytes, &gemm.b_bytes))
    return nullptr;
  if (batch && !take_batch(batch, gemm)) return nullptr;
  if (w.columns > 0) gemm.windows = &w;
  const GemmSet* const set = gemm_set(name);
  if (!set) return PyErr_Format(PyExc_LookupError, "this processor has no instruction set %s", name);
  gemm.a = reinterpret_cast<const void*>(a);
  gemm.b = reinterpret_cast<const void*>(b);
  gemm.c = reinterpret_cast<void*>(c);
  int failed;
  Py_BEGIN_ALLOW_THREADS;
  failed = (*letter == 's' ? set->f32 : *letter == 'b' ? set->bf16 : *letter == 'i' ? set->i8 : set->f64)(&gemm);
  Py_END_ALLOW_THREADS;
  if (failed) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

/* use_products(set): what generated code multiplies by from now on; None: the best set (tests). */
PyObject* use_set(PyObject*, PyObject* given) {
  const char* const name = given == Py_None ? nullptr : PyUnicode_AsUTF8(given);
  if (!name && given != Py_None) return nullptr;
  const GemmSet* const set = gemm_set(name);
  if (!set) return PyErr_Format(PyExc_LookupError, "this processor has no instruction set %s", name);
  use_products(set);
  Py_RETURN_NONE;
}

PyObject* task_begins(PyObject*, PyObject*) {
  enter_task();
  Py_RETURN_NONE;
}

PyObject* task_ends(PyObject*, PyObject*) {
  leave_task();
  Py_RETURN_NONE;
}

PyObject* get_running_tasks(PyObject*, PyObject*) { return PyLong_FromLong(running_tasks()); }

PyObject* get_threads_here(PyObject*, PyObject*) { return PyLong_FromLong(threads_here()); }

PyMethodDef methods[] = {
    {"load_library", load_library, METH_O, "dlopen a kernel library, until nothing holds what is returned."},
    {"loaded_libraries", loaded_libraries, METH_NOARGS, "How many libraries of kernels are loaded."},
    {"load_global", load_global, METH_O, "dlopen with RTLD_GLOBAL, for good."},
    {"symbol", symbol, METH_VARARGS, "symbol(handle, name): address of an exported symbol."},
    {"num_threads", get_num_threads, METH_NOARGS, "Threads that parallel_for uses, the caller included."},
    {"set_num_threads", set_threads, METH_O, "Set the number of threads, 1 to 256."},
    {"enter_task", task_begins, METH_NOARGS, "This thread works on a task: while tasks run, each has its part of the threads."},
    {"leave_task", task_ends, METH_NOARGS, "This thread works on no task any more, or its task waits."},
    {"set_task_runner", set_task_runner, METH_O,
     "set_task_runner(runner): runner(functions) calls them in several threads and returns when all have ended."},
    {"running_tasks", get_running_tasks, METH_NOARGS, "How many tasks run."},
    {"threads_here", get_threads_here, METH_NOARGS, "About as many threads as a job of this thread has now."},
    {"share_threads", set_team, METH_VARARGS,
     "Run work on an OpenMP runtime's threads: addresses of GOMP_parallel, omp_get_thread_num, omp_get_max_threads."},
    {"default_num_threads", get_default_threads, METH_NOARGS, "What environment, affinity and cgroup allow."},
    {"group_limits", get_group_limits, METH_O,
     "group_limits(root): processors and bytes that control groups allow, 0 for no limit (tests)."},
    {"runtime_address", runtime_address, METH_NOARGS, "Address of the process's Runtime struct."},
    {"blas_available", blas_available, METH_NOARGS, "Whether Runtime.blas is filled."},
    {"release_memory", release_memory, METH_NOARGS, "Free cached blocks and idle arenas; bytes given back."},
    {"private_memory", private_memory, METH_VARARGS, "Whether pages are private and anonymous, for tests."},
    {"kept_copies", kept_copies, METH_NOARGS, "Counts of packed operands that are kept from call to call."},
    {"cached_bytes", get_cached_bytes, METH_NOARGS, "Bytes in the caching allocator's free lists."},
    {"set_cache_limit", set_limit, METH_O, "Most bytes the free lists may hold."},
    {"matrix_product", matrix_product, METH_VARARGS, "A matrix product of ours on addresses (tests, measurements)."},
    {"use_products", use_set, METH_O, "use_products(set): the products that generated code calls (tests)."},
    {"parallel_for", python_parallel_for, METH_VARARGS, "parallel_for(body, n, grain) with a Python body (tests)."},
    {"select", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(select_elements)), METH_FASTCALL,
     "select(x, mask): x[mask]."},
    {"lapack_available", lapack_available, METH_NOARGS, "Whether the functions of matrices below can be called."},
    {"solve", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(solve)), METH_FASTCALL,
     "solve(a, b): np.linalg.solve of a matrix of float64."},
    {"factored", factored, METH_O, "factored(a): the factors of a matrix of float64 and LAPACK's pivots."},
    {"solve_factored", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(solve_factored)), METH_FASTCALL,
     "solve_factored(transposed, a, factors, pivots, b): the solution for b of a matrix with its factors."},
    {"triangular", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(triangular)), METH_FASTCALL,
     "triangular(lower, left, a, b): x of a @ x = b or x @ a = b for a triangle of a."},
    {"inverse", inverse, METH_O, "np.linalg.inv of a matrix of float64."},
    {"determinant", determinant, METH_O, "np.linalg.det of a matrix of float64."},
    {"cholesky", cholesky, METH_O, "np.linalg.cholesky of a matrix of float64."},
    {"reduced_qr", reduced_qr, METH_O, "np.linalg.qr of a matrix of float64."},
    {"eigh", eigh, METH_O, "np.linalg.eigh of a matrix of float64, as a tuple."},
    {"eigvalsh", eigvalsh, METH_O, "np.linalg.eigvalsh of a matrix of float64."},
    {"use_direct_view", use_direct_view, METH_VARARGS,
     "use_direct_view(type, address, offset, tensors): read tensors by at::toDLPackNonOwning at this address, which is\n"
     "given what is at an offset of the object; the address of a function for `_hook.set_tensor_view`, or 0 where it\n"
     "does not give what DLPack's table does of these tensors."},
    {"spans_begin", spans_begin, METH_O, "spans_begin(limit): record calls of graphs from now on, at most so many."},
    {"spans_end", spans_end, METH_NOARGS, "Record no more."},
    {"spans_take", spans_take, METH_NOARGS, "What was recorded since it was last taken, and how many there was no room for."},
    {"use_ranges", use_ranges, METH_VARARGS,
     "use_ranges(type, address): each graph and step within a `with type(name)` while the function there says so."},
    {"transform_rows", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(transform_rows)), METH_FASTCALL,
     "transform_rows(ufunc, x, factor, out, axis): one of NumPy's Fourier transforms along an axis, into out."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "dyncomp.runtime._launch", "The launcher of compiled graphs.", -1,
                      methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__launch() {
  import_array();
  if (PyType_Ready(&ArenaBlockType) < 0 || PyType_Ready(&CompiledGraphType) < 0) return nullptr;
  initialize_memory();
  initialize_pool();
  if (!runtime_table.gemm_f32) {
    set_num_threads(default_num_threads());
    use_products(gemm_set(nullptr));
  }
  initialize_kept();
  find_blas();
  PyObject* made = PyModule_Create(&module);
  if (!made) return nullptr;
  if (PyModule_AddIntConstant(made, "ABI_VERSION", DYNCOMP_ABI_VERSION) < 0 ||
      PyModule_AddObjectRef(made, "CompiledGraph", reinterpret_cast<PyObject*>(&CompiledGraphType)) < 0) {
    Py_DECREF(made);
    return nullptr;
  }
  return made;
}
