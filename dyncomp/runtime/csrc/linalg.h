#ifndef DYNCOMP_LINALG_H
#define DYNCOMP_LINALG_H
#include "numpy_api.h"

namespace dyncomp {

/* Finds LAPACK's routines in the library that NumPy has loaded; false if one is missing. */
bool find_lapack(void* library);

/* np.linalg's functions of one matrix of float64: the same routines, called without Python in between. */
PyObject* solve(PyObject* module, PyObject* const* args, Py_ssize_t count);
/* factored(a), solve_factored(transposed, a, factors, pivots, b), triangular(lower, left, a, b). */
PyObject* factored(PyObject* module, PyObject* matrix);
PyObject* solve_factored(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* triangular(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* inverse(PyObject* module, PyObject* matrix);
PyObject* determinant(PyObject* module, PyObject* matrix);
PyObject* cholesky(PyObject* module, PyObject* matrix);
PyObject* reduced_qr(PyObject* module, PyObject* matrix);
PyObject* eigh(PyObject* module, PyObject* matrix);
PyObject* eigvalsh(PyObject* module, PyObject* matrix);

}  // namespace dyncomp
#endif
