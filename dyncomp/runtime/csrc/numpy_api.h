/* One NumPy C API table for all files of the extension: module.cpp imports it, the others define
 * NO_IMPORT_ARRAY first. */
#ifndef DYNCOMP_NUMPY_API_H
#define DYNCOMP_NUMPY_API_H
#include <Python.h>
#define PY_ARRAY_UNIQUE_SYMBOL dyncomp_launch_array_api
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#endif
