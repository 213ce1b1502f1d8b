/* NumPy's Fourier transforms (pocketfft) of many rows on the thread pool. The loop that NumPy's ufunc would call is called
 * for some rows at a time: each row's bits are NumPy's. */
#define NO_IMPORT_ARRAY
#include "fourier.h"

#include <numpy/ufuncobject.h>

#include <algorithm>
#include <cstring>

#include "pool.h"

namespace dyncomp {
namespace {

/* A multiple of the rows that pocketfft takes at once. */
constexpr npy_intp kRowsAtOnce = 8;
/* About the work of a chunk, in elements. */
constexpr npy_intp kChunk = 8192;

struct Rows {
  PyUFuncGenericFunction loop;
  void* data;
  char* factor;
  char* in;
  char* out;
  int outer;                   // dimensions besides that of the transform, the last the one that chunks are cut from
  npy_intp shape[NPY_MAXDIMS];
  npy_intp in_steps[NPY_MAXDIMS], out_steps[NPY_MAXDIMS];
  npy_intp points[2], in_step, out_step;
  npy_intp pieces, rows;       // chunks of the last dimension, and the rows of one
};

void run_piece(const Rows& rows, npy_intp number) {
  const int last = rows.outer - 1;
  npy_intp left = number / rows.pieces;
  const npy_intp first = number % rows.pieces * rows.rows;
  char* in = rows.in + first * rows.in_steps[last];
  char* out = rows.out + first * rows.out_steps[last];
  for (int d = last - 1; d >= 0; --d) {
    in += left % rows.shape[d] * rows.in_steps[d];
    out += left % rows.shape[d] * rows.out_steps[d];
    left /= rows.shape[d];
  }
  char* arguments[] = {in, rows.factor, out};
  const npy_intp sizes[] = {std::min(rows.rows, rows.shape[last] - first), rows.points[0], rows.points[1]};
  const npy_intp steps[] = {rows.in_steps[last], 0, rows.out_steps[last], rows.in_step, rows.out_step};
  rows.loop(arguments, sizes, steps, rows.data);
}

void run_pieces(void* context, i64 low, i64 high, int) {
  for (i64 number = low; number < high; ++number) run_piece(*static_cast<Rows*>(context), number);
}

bool import_ufuncs() {
  static bool found = PyUFunc_API || _import_umath() == 0;
  return found;
}

/* The loop of a ufunc for these types; false if it has none. */
bool find_loop(PyUFuncObject* ufunc, int in, int real, int out, Rows* rows) {
  for (int k = 0; ufunc->functions && k < ufunc->ntypes; ++k) {
    const char* types = ufunc->types + 3 * k;
    if (types[0] != in || types[1] != real || types[2] != out) continue;
    rows->loop = ufunc->functions[k];
    rows->data = ufunc->data ? const_cast<void*>(static_cast<const void*>(ufunc->data[k])) : nullptr;
    return rows->loop != nullptr;
  }
  return false;
}

PyArrayObject* plain_array(PyObject* object, bool written) {
  if (!PyArray_CheckExact(object)) return nullptr;
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(object);
  return (written ? PyArray_ISBEHAVED(array) : PyArray_ISBEHAVED_RO(array)) ? array : nullptr;
}

/* Fills `rows`; false where the arguments are not what `transform_rows` is for. */
bool describe(PyArrayObject* x, PyArrayObject* out, long axis, Rows* rows) {
  const int ndim = PyArray_NDIM(x);
  if (ndim < 2 || PyArray_NDIM(out) != ndim || axis < 0 || axis >= ndim) return false;
  for (int d = 0; d < ndim; ++d) {
    if (d == axis) continue;
    if (PyArray_DIM(x, d) != PyArray_DIM(out, d)) return false;
    rows->shape[rows->outer] = PyArray_DIM(x, d);
    rows->in_steps[rows->outer] = PyArray_STRIDE(x, d);
    rows->out_steps[rows->outer++] = PyArray_STRIDE(out, d);
  }
  const int axis_number = static_cast<int>(axis);
  rows->in = PyArray_BYTES(x);
  rows->out = PyArray_BYTES(out);
  rows->points[0] = PyArray_DIM(x, axis_number);
  rows->points[1] = PyArray_DIM(out, axis_number);
  rows->in_step = PyArray_STRIDE(x, axis_number);
  rows->out_step = PyArray_STRIDE(out, axis_number);
  return true;
}

PyObject* refuse() {
  PyErr_SetString(PyExc_TypeError, "not a Fourier transform of rows as is wanted");
  return nullptr;
}

}  // namespace

PyObject* transform_rows(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!import_ufuncs()) return nullptr;
  if (count != 5 || !PyObject_TypeCheck(args[0], &PyUFunc_Type)) return refuse();
  PyUFuncObject* ufunc = reinterpret_cast<PyUFuncObject*>(args[0]);
  PyArrayObject* x = plain_array(args[1], false);
  PyArrayObject* out = plain_array(args[3], true);
  const double factor = PyFloat_AsDouble(args[2]);
  const long axis = PyLong_AsLong(args[4]);
  if (PyErr_Occurred()) return nullptr;
  Rows rows = {};
  const bool one_core_dim = ufunc->core_enabled && ufunc->nin == 2 && ufunc->nout == 1;
  if (!x || !out || !one_core_dim || !describe(x, out, axis, &rows)) return refuse();
  float narrow = static_cast<float>(factor);
  double wide = factor;
  const char in = PyArray_DESCR(x)->type;
  const bool is_float = in == 'f' || in == 'F';
  rows.factor = is_float ? reinterpret_cast<char*>(&narrow) : reinterpret_cast<char*>(&wide);
  const int of_types[] = {PyArray_TYPE(x), is_float ? NPY_FLOAT : NPY_DOUBLE, PyArray_TYPE(out)};
  if (!find_loop(ufunc, of_types[0], of_types[1], of_types[2], &rows)) return refuse();
  // the longest dimension is cut
  const int last = rows.outer - 1;
  const int longest = static_cast<int>(std::max_element(rows.shape, rows.shape + rows.outer) - rows.shape);
  std::swap(rows.shape[longest], rows.shape[last]);
  std::swap(rows.in_steps[longest], rows.in_steps[last]);
  std::swap(rows.out_steps[longest], rows.out_steps[last]);
  const npy_intp each = std::max<npy_intp>(std::max(rows.points[0], rows.points[1]), 1);
  rows.rows = std::max<npy_intp>(kChunk / each / kRowsAtOnce, 1) * kRowsAtOnce;
  rows.pieces = (rows.shape[last] + rows.rows - 1) / rows.rows;
  npy_intp total = rows.pieces;
  for (int d = 0; d < last; ++d) total *= rows.shape[d];
  if (total > 0) {
    PyThreadState* state = PyEval_SaveThread();
    parallel_for(&run_pieces, &rows, total, 1);
    PyEval_RestoreThread(state);
  }
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NONE;
}

}  // namespace dyncomp
