#ifndef DYNCOMP_FOURIER_H
#define DYNCOMP_FOURIER_H
#include "numpy_api.h"

namespace dyncomp {

/* transform_rows(ufunc, x, factor, out, axis): ufunc(x, factor, axes=[axis, (), axis], out=out) of one of NumPy's
 * Fourier transforms, the rows on the thread pool. */
PyObject* transform_rows(PyObject* module, PyObject* const* args, Py_ssize_t count);

}  // namespace dyncomp
#endif
