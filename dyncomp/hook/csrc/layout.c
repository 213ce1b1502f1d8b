/* Where CPython's and NumPy's objects keep what compiled loops read and write in place (`scalar_loops`).
 *
 * The offsets are the compiler's, from the headers of the version that this is built for. What no header
 * declares is declared here and stands under the versions for which it was read. */
#include "hook.h"

#include <stddef.h>

#include <numpy/arrayscalars.h>

/* Modules/_randommodule.c of 3.11 to 3.13 */
typedef struct {
    PyObject_HEAD
    int index;
    uint32_t words[624];
} RandomState;

#if PY_VERSION_HEX >= 0x030C0000
#define INT_HEAD offsetof(PyLongObject, long_value.lv_tag)
#define INT_DIGITS offsetof(PyLongObject, long_value.ob_digit)
#else
#define INT_HEAD offsetof(PyLongObject, ob_base.ob_size)
#define INT_DIGITS offsetof(PyLongObject, ob_digit)
#endif

/* `struct List` of the generated code */
static_assert(offsetof(PyListObject, ob_base.ob_size) == 16, "lists");
static_assert(offsetof(PyListObject, ob_item) == 24, "lists");
static_assert(offsetof(PyListObject, allocated) == 32, "lists");
static_assert(offsetof(PyTupleObject, ob_base.ob_size) == 16, "tuples");
/* types and reference counts are read without a name */
static_assert(offsetof(PyObject, ob_refcnt) == 0 && offsetof(PyObject, ob_type) == 8, "objects");
/* np.float64 is a float */
static_assert(offsetof(PyFloatObject, ob_fval) == offsetof(PyDoubleScalarObject, obval), "floats");
/* one name for the value of all of NumPy's integers and floats */
static_assert(offsetof(PyLongScalarObject, obval) == offsetof(PyDoubleScalarObject, obval), "scalars");
static_assert(offsetof(PyIntScalarObject, obval) == offsetof(PyDoubleScalarObject, obval), "scalars");
static_assert(offsetof(PyFloatScalarObject, obval) == offsetof(PyDoubleScalarObject, obval), "scalars");
static_assert(PyLong_SHIFT == 30 && sizeof(digit) == 4, "digits");

static const struct {
    const char *name;
    size_t value;
} LAYOUT[] = {
    {"FLOAT_VALUE", offsetof(PyFloatObject, ob_fval)},
    {"COMPLEX_REAL", offsetof(PyComplexObject, cval.real)},
    {"COMPLEX_IMAG", offsetof(PyComplexObject, cval.imag)},
    {"SCALAR_VALUE", offsetof(PyDoubleScalarObject, obval)},
    {"INT_HEAD", INT_HEAD},
    {"INT_DIGITS", INT_DIGITS},
    {"TUPLE_ITEMS", offsetof(PyTupleObject, ob_item)},
    {"RANDOM_STATE", offsetof(RandomState, index)},
};

/* A new dict of these names and numbers. */
PyObject *
object_layout(void)
{
    PyObject *found = PyDict_New();
    for (size_t i = 0; found != NULL && i < sizeof LAYOUT / sizeof *LAYOUT; i++) {
        PyObject *value = PyLong_FromSize_t(LAYOUT[i].value);
        if (value == NULL || PyDict_SetItemString(found, LAYOUT[i].name, value) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(value);
    }
    return found;
}
