#ifndef DYNCOMP_SELECT_H
#define DYNCOMP_SELECT_H
#include "numpy_api.h"

namespace dyncomp {

/* select(x, mask): `x[mask]`, quickly where both are plain arrays of one shape. */
PyObject* select_elements(PyObject* module, PyObject* const* args, Py_ssize_t count);

}  // namespace dyncomp
#endif
