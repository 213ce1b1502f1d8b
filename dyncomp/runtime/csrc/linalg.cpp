/* Solving, inverting and factoring one matrix of float64 by the LAPACK that NumPy has loaded, as np.linalg does it: the same
 * routines on the same copies in Fortran order, so the results are equal to the last bit. */
#define NO_IMPORT_ARRAY
#include "linalg.h"

#include <dlfcn.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <new>
#include <vector>

namespace dyncomp {
namespace {

using Int = std::int64_t;
constexpr Int kLong = 32;  // rows from which other Python threads run meanwhile

struct Lapack {
  void (*gesv)(const Int*, const Int*, double*, const Int*, Int*, double*, const Int*, Int*);
  void (*getrf)(const Int*, const Int*, double*, const Int*, Int*, Int*);
  void (*getrs)(const char*, const Int*, const Int*, const double*, const Int*, const Int*, double*, const Int*, Int*,
                size_t);
  void (*trsm)(const char*, const char*, const char*, const char*, const Int*, const Int*, const double*,
               const double*, const Int*, double*, const Int*, size_t, size_t, size_t, size_t);
  void (*potrf)(const char*, const Int*, double*, const Int*, Int*, size_t);
  void (*geqrf)(const Int*, const Int*, double*, const Int*, double*, double*, const Int*, Int*);
  void (*orgqr)(const Int*, const Int*, const Int*, double*, const Int*, const double*, double*, const Int*, Int*);
  void (*syevd)(const char*, const char*, const Int*, double*, const Int*, double*, double*, const Int*, Int*,
                const Int*, Int*, size_t, size_t);
} lapack;

template <class F>
bool find(void* library, const char* routine, F* function) {
  for (const char* spelling : {"scipy_%s_64_", "%s_64_"}) {
    char name[64];
    std::snprintf(name, sizeof name, spelling, routine);
    *function = reinterpret_cast<F>(dlsym(library, name));
    if (*function) return true;
  }
  return false;
}

/* Memory that small problems have on the stack. */
template <class T>
class Scratch {
 public:
  explicit Scratch(Int size) {
    if (size > kOnStack) more_.resize(static_cast<size_t>(size));
  }
  T* data() { return more_.empty() ? here_ : more_.data(); }

 private:
  static constexpr Int kOnStack = 128;
  T here_[kOnStack];
  std::vector<T> more_;
};

/* Other Python threads run while this lives. (A thread that outlives the interpreter ends by an unwinding here.) */
class Unlocked {
 public:
  explicit Unlocked(bool wanted) : state_(wanted ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() noexcept(false) {
    if (state_) PyEval_RestoreThread(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

PyArrayObject* array_of(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

/* An array's elements in Fortran order; a vector is one column. */
void copy_in(double* out, PyArrayObject* array) {
  const bool vector = PyArray_NDIM(array) == 1;
  const npy_intp rows = PyArray_DIM(array, 0);
  const npy_intp columns = vector ? 1 : PyArray_DIM(array, 1);
  const npy_intp down = PyArray_STRIDE(array, 0);
  const npy_intp across = vector ? 0 : PyArray_STRIDE(array, 1);
  for (npy_intp j = 0; j < columns; ++j) {
    const char* from = PyArray_BYTES(array) + j * across;
    for (npy_intp i = 0; i < rows; ++i, from += down) *out++ = *reinterpret_cast<const double*>(from);
  }
}

/* A new array in C order of a matrix in Fortran order with `step` elements from column to column. */
PyObject* copy_out(const double* from, Int rows, Int columns, Int step, int ndim = 2) {
  npy_intp shape[] = {static_cast<npy_intp>(rows), static_cast<npy_intp>(columns)};
  PyObject* made = PyArray_SimpleNew(ndim, shape, NPY_FLOAT64);
  if (!made) return nullptr;
  double* out = static_cast<double*>(PyArray_DATA(array_of(made)));
  for (Int i = 0; i < rows; ++i)
    for (Int j = 0; j < columns; ++j) *out++ = from[i + j * step];
  return made;
}

PyObject* of_numpy(const char* name) {
  PyObject* module = PyImport_ImportModule("numpy.linalg");
  PyObject* found = module ? PyObject_GetAttrString(module, name) : nullptr;
  Py_XDECREF(module);
  return found;
}

PyObject* fail(const char* message) {
  PyObject* error = of_numpy("LinAlgError");
  if (error) PyErr_SetString(error, message);
  Py_XDECREF(error);
  return nullptr;
}

Int at_least_one(Int n) { return std::max<Int>(n, 1); }

PyObject* pair_of(PyObject* first, PyObject* second) {
  PyObject* made = first && second ? PyTuple_Pack(2, first, second) : nullptr;
  Py_XDECREF(first);
  Py_XDECREF(second);
  return made;
}

/* gesv on copies of `a` and of what `fill` puts into the right-hand side. */
template <class Fill>
PyObject* solve_into(PyArrayObject* a, Int columns, int ndim, Fill fill) {
  const Int n = PyArray_DIM(a, 0);
  const Int lead = at_least_one(n);
  Scratch<double> matrix(n * n), right(n * columns);
  Scratch<Int> pivots(n);
  copy_in(matrix.data(), a);
  fill(right.data(), n);
  Int info = 0;
  {
    Unlocked threads(n > kLong);
    lapack.gesv(&n, &columns, matrix.data(), &lead, pivots.data(), right.data(), &lead, &info);
  }
  if (info) return fail("Singular matrix");
  return copy_out(right.data(), n, columns, n, ndim);
}

PyObject* solve_of(PyArrayObject* a, PyArrayObject* b) {
  const int ndim = PyArray_NDIM(b);
  return solve_into(a, ndim == 1 ? 1 : PyArray_DIM(b, 1), ndim, [b](double* right, Int) { copy_in(right, b); });
}

PyObject* inverse_of(PyArrayObject* a) {
  return solve_into(a, PyArray_DIM(a, 0), 2, [](double* right, Int n) {
    std::fill(right, right + n * n, 0.0);
    for (Int i = 0; i < n; ++i) right[i * (n + 1)] = 1;
  });
}

/* A pair of the factors of `a`, columns one after the other (so the transpose of what LAPACK calls them), and of
 * LAPACK's pivots. */
PyObject* factors_of(PyArrayObject* a) {
  const Int n = PyArray_DIM(a, 0);
  const Int lead = at_least_one(n);
  npy_intp shape[] = {static_cast<npy_intp>(n), static_cast<npy_intp>(n)};
  PyObject* factors = PyArray_SimpleNew(2, shape, NPY_FLOAT64);
  PyObject* pivots = PyArray_SimpleNew(1, shape, NPY_INT64);
  if (!factors || !pivots) return pair_of(factors, pivots);
  double* const matrix = static_cast<double*>(PyArray_DATA(array_of(factors)));
  copy_in(matrix, a);
  Int info = 0;
  {
    Unlocked threads(n > kLong);
    lapack.getrf(&n, &n, matrix, &lead, static_cast<Int*>(PyArray_DATA(array_of(pivots))), &info);
  }
  if (!info) return pair_of(factors, pivots);
  Py_DECREF(factors);
  Py_DECREF(pivots);
  return fail("Singular matrix");
}

/* The solution for `b` of the matrix with these factors (`factors_of`), or of its transpose. */
PyObject* solve_factored_of(bool transposed, PyArrayObject* factors, PyArrayObject* pivots, PyArrayObject* b) {
  const Int n = PyArray_DIM(factors, 0), columns = PyArray_NDIM(b) == 1 ? 1 : PyArray_DIM(b, 1);
  const Int lead = at_least_one(n);
  Scratch<double> right(n * columns);
  copy_in(right.data(), b);
  Int info = 0;
  {
    Unlocked threads(n > kLong);
    lapack.getrs(transposed ? "T" : "N", &n, &columns, static_cast<const double*>(PyArray_DATA(factors)), &lead,
                 static_cast<const Int*>(PyArray_DATA(pivots)), right.data(), &lead, &info, 1);
  }
  return copy_out(right.data(), n, columns, n, PyArray_NDIM(b));
}

/* x of `a @ x = b` (left) or `x @ a = b`, where `a` is a triangle of a matrix, its diagonal included. */
PyObject* triangular_of(bool lower, bool left, PyArrayObject* a, PyArrayObject* b) {
  const Int n = PyArray_DIM(a, 0), item = sizeof(double);
  for (Int i = 0; i < n; ++i)
    if (*static_cast<const double*>(PyArray_GETPTR2(a, i, i)) == 0) return fail("Singular matrix");
  PyObject* made = PyArray_SimpleNew(2, PyArray_DIMS(b), NPY_FLOAT64);
  if (!made || PyArray_CopyInto(array_of(made), b) < 0) {
    Py_XDECREF(made);
    return nullptr;
  }
  // what lies in memory in Fortran order: `a`, its transpose, or a copy of it
  const Int down = PyArray_STRIDE(a, 0), across = PyArray_STRIDE(a, 1);
  const bool as_it_is = down == item && across >= n * item && across % item == 0;
  const bool turned = !as_it_is && across == item && down >= n * item && down % item == 0;
  Scratch<double> copied(as_it_is || turned ? 0 : n * n);
  const double* matrix = static_cast<const double*>(PyArray_DATA(a));
  if (!as_it_is && !turned) {
    copy_in(copied.data(), a);
    matrix = copied.data();
  }
  const Int lead = at_least_one(as_it_is ? across / item : turned ? down / item : n);
  // C order of the result is Fortran order of its transpose, on whose other side the transpose of `a` stands
  const Int rows = PyArray_DIM(b, 1), columns = PyArray_DIM(b, 0), step = at_least_one(rows);
  const double one = 1;
  if (rows && columns) {
    Unlocked threads(n > kLong);
    lapack.trsm(left ? "R" : "L", lower != turned ? "L" : "U", turned ? "N" : "T", "N", &rows, &columns, &one, matrix,
                &lead, static_cast<double*>(PyArray_DATA(array_of(made))), &step, 1, 1, 1, 1);
  }
  return made;
}

/* The same by NumPy, which warns as it should. */
PyObject* determinant_by_numpy(PyArrayObject* a) {
  PyObject* function = of_numpy("det");
  PyObject* found = function ? PyObject_CallOneArg(function, reinterpret_cast<PyObject*>(a)) : nullptr;
  Py_XDECREF(function);
  return found;
}

/* np.linalg.det: by the sum of logarithms. */
PyObject* determinant_of(PyArrayObject* a) {
  const Int n = PyArray_DIM(a, 0);
  const Int lead = at_least_one(n);
  Scratch<double> matrix(n * n);
  Scratch<Int> pivots(n);
  copy_in(matrix.data(), a);
  std::feclearexcept(FE_ALL_EXCEPT);
  Int info = 0;
  {
    Unlocked threads(n > kLong);
    lapack.getrf(&n, &n, matrix.data(), &lead, pivots.data(), &info);
  }
  double sign = info ? 0.0 : 1.0;
  double logarithm = info ? -std::numeric_limits<double>::infinity() : 0.0;
  for (Int i = 0; i < n && !info; ++i) {
    const double element = matrix.data()[i * (n + 1)];
    if ((pivots.data()[i] != i + 1) != (element < 0)) sign = -sign;
    logarithm += std::log(std::fabs(element));
  }
  const double found = sign * std::exp(logarithm);
  if (std::fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID))
    return determinant_by_numpy(a);
  npy_intp shape[1];
  PyObject* made = PyArray_SimpleNew(0, shape, NPY_FLOAT64);
  if (made) *static_cast<double*>(PyArray_DATA(array_of(made))) = found;
  return made;
}

PyObject* cholesky_of(PyArrayObject* a) {
  const Int n = PyArray_DIM(a, 0);
  const Int lead = at_least_one(n);
  Scratch<double> matrix(n * n);
  copy_in(matrix.data(), a);
  Int info = 0;
  {
    Unlocked threads(n > kLong);
    lapack.potrf("L", &n, matrix.data(), &lead, &info, 1);
  }
  if (info) return fail("Matrix is not positive definite");
  for (Int j = 1; j < n; ++j) std::fill(matrix.data() + j * n, matrix.data() + j * n + j, 0.0);
  return copy_out(matrix.data(), n, n, n);
}

/* Room for `asked` elements, or for the fewest that will do. */
Int room(double asked, Int fewest) {
  return std::max(static_cast<Int>(asked), at_least_one(fewest));
}

PyObject* qr_of(PyArrayObject* a) {
  const Int m = PyArray_DIM(a, 0), n = PyArray_DIM(a, 1);
  const Int inner = std::min(m, n), lead = at_least_one(m), all = -1;
  Scratch<double> matrix(m * n), scale(inner), upper(inner * n);
  copy_in(matrix.data(), a);
  Int info = 0;
  double asked = 0;
  lapack.geqrf(&m, &n, matrix.data(), &lead, scale.data(), &asked, &all, &info);
  const Int first = room(asked, n);
  lapack.orgqr(&m, &inner, &inner, matrix.data(), &lead, scale.data(), &asked, &all, &info);
  const Int second = room(asked, inner);
  Scratch<double> work(std::max(first, second));
  {
    Unlocked threads(m > kLong);
    lapack.geqrf(&m, &n, matrix.data(), &lead, scale.data(), work.data(), &first, &info);
    for (Int j = 0; j < n; ++j)
      for (Int i = 0; i < inner; ++i) upper.data()[i + j * inner] = i <= j ? matrix.data()[i + j * m] : 0.0;
    if (!info) lapack.orgqr(&m, &inner, &inner, matrix.data(), &lead, scale.data(), work.data(), &second, &info);
  }
  if (info) return fail("Incorrect argument found while performing QR factorization");
  return pair_of(copy_out(matrix.data(), m, inner, m), copy_out(upper.data(), inner, n, inner));
}

template <bool vectors>
PyObject* eigen_of(PyArrayObject* a) {
  const Int n = PyArray_DIM(a, 0);
  const Int lead = at_least_one(n), all = -1;
  const char* const job = vectors ? "V" : "N";
  Scratch<double> matrix(n * n), values(n);
  copy_in(matrix.data(), a);
  Int info = 0, asked_integers = 0;
  double asked = 0;
  lapack.syevd(job, "L", &n, matrix.data(), &lead, values.data(), &asked, &all, &asked_integers, &all, &info, 1,
                    1);
  const Int size = room(asked, 1), integers = room(asked_integers, 1);
  Scratch<double> work(size);
  Scratch<Int> integer_work(integers);
  {
    Unlocked threads(n > kLong);
    lapack.syevd(job, "L", &n, matrix.data(), &lead, values.data(), work.data(), &size, integer_work.data(),
                      &integers, &info, 1, 1);
  }
  if (info) return fail("Eigenvalues did not converge");
  PyObject* found = copy_out(values.data(), n, 1, n, 1);
  return vectors ? pair_of(found, copy_out(matrix.data(), n, n, n)) : found;
}

bool is_double(PyObject* object, int fewest, int most) {
  if (!PyArray_CheckExact(object)) return false;
  PyArrayObject* array = array_of(object);
  const bool plain = PyArray_ISBEHAVED_RO(array) && PyArray_TYPE(array) == NPY_FLOAT64;
  return plain && PyArray_NDIM(array) >= fewest && PyArray_NDIM(array) <= most;
}

bool is_square(PyObject* object) {
  return is_double(object, 2, 2) && PyArray_DIM(array_of(object), 0) == PyArray_DIM(array_of(object), 1);
}

/* `function(matrix)` where the matrix is of the kind asked for. */
template <class F>
PyObject* of_matrix(PyObject* matrix, bool fits, F function) {
  if (!fits) {
    PyErr_SetString(PyExc_TypeError, "not a matrix of float64 as is wanted");
    return nullptr;
  }
  try {
    return function(array_of(matrix));
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

}  // namespace

bool find_lapack(void* library) {
  return find(library, "dgesv", &lapack.gesv) && find(library, "dgetrf", &lapack.getrf) &&
         find(library, "dgetrs", &lapack.getrs) && find(library, "dtrsm", &lapack.trsm) &&
         find(library, "dpotrf", &lapack.potrf) && find(library, "dgeqrf", &lapack.geqrf) &&
         find(library, "dorgqr", &lapack.orgqr) && find(library, "dsyevd", &lapack.syevd);
}

PyObject* solve(PyObject*, PyObject* const* args, Py_ssize_t count) {
  const bool fits = count == 2 && is_square(args[0]) && is_double(args[1], 1, 2) &&
                    PyArray_DIM(array_of(args[0]), 0) == PyArray_DIM(array_of(args[1]), 0);
  return of_matrix(fits ? args[0] : nullptr, fits, [args](PyArrayObject* a) { return solve_of(a, array_of(args[1])); });
}

PyObject* factored(PyObject*, PyObject* matrix) { return of_matrix(matrix, is_square(matrix), factors_of); }

PyObject* solve_factored(PyObject*, PyObject* const* args, Py_ssize_t count) {
  bool fits = count == 5 && is_square(args[2]) && is_double(args[4], 1, 2) && PyArray_CheckExact(args[3]) &&
              PyArray_IS_C_CONTIGUOUS(array_of(args[2]));
  if (fits) {
    PyArrayObject* const pivots = array_of(args[3]);
    const npy_intp n = PyArray_DIM(array_of(args[2]), 0);
    fits = PyArray_NDIM(pivots) == 1 && PyArray_DIM(pivots, 0) == n && PyArray_TYPE(pivots) == NPY_INT64 &&
           PyArray_IS_C_CONTIGUOUS(pivots) && PyArray_DIM(array_of(args[4]), 0) == n;
    const Int* const row = fits ? static_cast<const Int*>(PyArray_DATA(pivots)) : nullptr;
    for (npy_intp i = 0; fits && i < n; ++i) fits = row[i] >= 1 && row[i] <= n;
  }
  return of_matrix(fits ? args[2] : nullptr, fits, [args](PyArrayObject* factors) {
    return solve_factored_of(args[0] == Py_True, factors, array_of(args[3]), array_of(args[4]));
  });
}

PyObject* triangular(PyObject*, PyObject* const* args, Py_ssize_t count) {
  const bool left = count == 4 && args[1] == Py_True;
  const bool fits = count == 4 && is_square(args[2]) && is_double(args[3], 2, 2) &&
                    PyArray_DIM(array_of(args[2]), 0) == PyArray_DIM(array_of(args[3]), left ? 0 : 1);
  return of_matrix(fits ? args[2] : nullptr, fits, [args, left](PyArrayObject* a) {
    return triangular_of(args[0] == Py_True, left, a, array_of(args[3]));
  });
}

PyObject* inverse(PyObject*, PyObject* matrix) { return of_matrix(matrix, is_square(matrix), inverse_of); }

PyObject* determinant(PyObject*, PyObject* matrix) { return of_matrix(matrix, is_square(matrix), determinant_of); }

PyObject* cholesky(PyObject*, PyObject* matrix) { return of_matrix(matrix, is_square(matrix), cholesky_of); }

PyObject* reduced_qr(PyObject*, PyObject* matrix) { return of_matrix(matrix, is_double(matrix, 2, 2), qr_of); }

PyObject* eigh(PyObject*, PyObject* matrix) { return of_matrix(matrix, is_square(matrix), eigen_of<true>); }

PyObject* eigvalsh(PyObject*, PyObject* matrix) { return of_matrix(matrix, is_square(matrix), eigen_of<false>); }

}  // namespace dyncomp
