/* Libraries of kernels in this process: see library.cpp. */
#ifndef DYNCOMP_LIBRARY_H
#define DYNCOMP_LIBRARY_H
#include <Python.h>

namespace dyncomp {

/* Objects that unload what they loaded when the last reference to them goes. */
PyObject* load_library(PyObject*, PyObject* path);

/* Loaded for good; None. */
PyObject* load_global(PyObject*, PyObject* path);

/* NULL with an exception set. */
void* library_handle(PyObject* library);

}  // namespace dyncomp
#endif
