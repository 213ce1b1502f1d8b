/* Comparing values with guarded constants: exact type and value, no user code.
 *
 * 1, 1.0 and True differ; -0.0 and 0.0 differ; any nan equals any nan. */
#include "hook.h"

static bool
double_equal(double a, double b)
{
    if (a != a || b != b) {
        return a != a && b != b;
    }
    return memcmp(&a, &b, sizeof(double)) == 0;
}

static bool
rich_equal(PyObject *a, PyObject *b)
{
    int answer = PyObject_RichCompareBool(a, b, Py_EQ);
    if (answer < 0) {
        PyErr_Clear();
    }
    return answer == 1;
}

static bool
tuple_equal(PyObject *a, PyObject *b)
{
    Py_ssize_t n = PyTuple_GET_SIZE(b);
    if (PyTuple_GET_SIZE(a) != n) {
        return false;
    }
    if (Py_EnterRecursiveCall(" while guards are checked")) {
        PyErr_Clear();
        return false;
    }
    bool same = true;
    for (Py_ssize_t i = 0; same && i < n; i++) {
        same = const_equal(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
    }
    Py_LeaveRecursiveCall();
    return same;
}

static bool
slice_equal(PyObject *a, PyObject *b)
{
    PySliceObject *x = (PySliceObject *)a, *y = (PySliceObject *)b;
    return const_equal(x->start, y->start) && const_equal(x->stop, y->stop) && const_equal(x->step, y->step);
}

static bool
range_equal(PyObject *a, PyObject *b)
{
    static const char *const fields[] = {"start", "stop", "step"};
    for (int i = 0; i < 3; i++) {
        PyObject *x = PyObject_GetAttrString(a, fields[i]);
        PyObject *y = PyObject_GetAttrString(b, fields[i]);
        bool same = x != NULL && y != NULL && const_equal(x, y);
        Py_XDECREF(x);
        Py_XDECREF(y);
        if (!same) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

/* Sets whose items are all of one exact type among int, str, bytes, None (checked when compiled). */
static bool
set_equal(PyObject *a, PyObject *b)
{
    if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) {
        return false;
    }
    Py_ssize_t position = 0;
    PyObject *item;
    Py_hash_t hash;
    if (!_PySet_NextEntry(b, &position, &item, &hash)) {
        return true;
    }
    PyTypeObject *type = Py_TYPE(item);
    position = 0;
    while (_PySet_NextEntry(a, &position, &item, &hash)) {
        Py_INCREF(item); /* a program made by hand may compare objects of other types */
        bool found = Py_TYPE(item) == type && PySet_Contains(b, item) == 1;
        Py_DECREF(item);
        if (!found) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

static bool
dtype_equal(PyObject *a, PyObject *b)
{
    PyArray_Descr *x = (PyArray_Descr *)a, *y = (PyArray_Descr *)b;
    if (x->type_num != y->type_num || x->type_num >= NPY_USERDEF) {
        return false;
    }
    bool same = PyArray_EquivTypes(x, y);
    PyErr_Clear();
    return same;
}

static bool
numpy_scalar_equal(PyObject *a, PyObject *b)
{
    char x[64] = {0}, y[64] = {0};
    PyArray_Descr *descr = PyArray_DescrFromScalar(b);
    if (descr == NULL) {
        PyErr_Clear();
        return false;
    }
    npy_intp size = PyDataType_ELSIZE(descr);
    int kind = descr->kind;
    Py_DECREF(descr);
    if (size > 32) {
        return false;
    }
    PyArray_ScalarAsCtype(a, x);
    PyArray_ScalarAsCtype(b, y);
    if (memcmp(x, y, (size_t)size) == 0) {
        return true;
    }
    if (kind == 'f' || kind == 'c') {
        double values[2][2] = {{0}};
        for (int side = 0; side < 2; side++) {
            Py_complex c = PyComplex_AsCComplex(side ? b : a);
            if (PyErr_Occurred()) {
                PyErr_Clear();
                return false;
            }
            values[side][0] = c.real;
            values[side][1] = c.imag;
        }
        return double_equal(values[0][0], values[1][0]) && double_equal(values[0][1], values[1][1]);
    }
    return false;
}

bool
const_equal(PyObject *value, PyObject *expected)
{
    if (value == expected) {
        return true;
    }
    PyTypeObject *type = Py_TYPE(expected);
    if (Py_TYPE(value) != type) {
        return false;
    }
    if (type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBytes_Type) {
        return rich_equal(value, expected);
    }
    if (type == &PyFloat_Type) {
        return double_equal(PyFloat_AS_DOUBLE(value), PyFloat_AS_DOUBLE(expected));
    }
    if (type == &PyComplex_Type) {
        Py_complex a = ((PyComplexObject *)value)->cval, b = ((PyComplexObject *)expected)->cval;
        return double_equal(a.real, b.real) && double_equal(a.imag, b.imag);
    }
    if (type == &PyTuple_Type) {
        return tuple_equal(value, expected);
    }
    if (type == &PySlice_Type) {
        return slice_equal(value, expected);
    }
    if (type == &PyRange_Type) {
        return range_equal(value, expected);
    }
    if (type == &PyFrozenSet_Type || type == &PySet_Type) {
        return set_equal(value, expected);
    }
    if (PyArray_DescrCheck(expected)) {
        return dtype_equal(value, expected);
    }
    if (PyArray_IsScalar(expected, Number) || PyArray_IsScalar(expected, Bool)) {
        return numpy_scalar_equal(value, expected);
    }
    return false;
}

bool
length_of(PyObject *value, int64_t *length)
{
    Py_ssize_t n;
    if (PyTuple_Check(value)) {
        n = PyTuple_GET_SIZE(value);
    }
    else if (PyList_Check(value)) {
        n = PyList_GET_SIZE(value);
    }
    else if (PyDict_Check(value)) {
        n = PyDict_GET_SIZE(value);
    }
    else if (PyAnySet_Check(value)) {
        n = PySet_GET_SIZE(value);
    }
    else if (PyUnicode_Check(value)) {
        n = PyUnicode_GET_LENGTH(value);
    }
    else if (PyBytes_Check(value)) {
        n = PyBytes_GET_SIZE(value);
    }
    else if (Py_TYPE(value)->tp_as_sequence != NULL && !(Py_TYPE(value)->tp_flags & Py_TPFLAGS_BASETYPE)) {
        n = PySequence_Size(value); /* a final type: deque is not; see length_is */
    }
    else {
        n = -1;
    }
    if (n < 0) {
        PyErr_Clear();
        return false;
    }
    *length = n;
    return true;
}

bool
length_is(PyObject *value, PyObject *type, Py_ssize_t length)
{
    if ((PyObject *)Py_TYPE(value) != type) {
        return false;
    }
    int64_t n;
    if (length_of(value, &n)) {
        return n == length;
    }
    /* other types were admitted when the guard was compiled: their length is computed in C */
    Py_ssize_t size = PyObject_Size(value);
    if (size < 0) {
        PyErr_Clear();
    }
    return size == length;
}

static bool
ordered_dict_keys_are(PyObject *dict, PyObject *keys)
{
    PyObject *iterator = PyObject_GetIter(dict);
    if (iterator == NULL) {
        PyErr_Clear();
        return false;
    }
    bool same = true;
    for (Py_ssize_t i = 0; same && i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *key = PyIter_Next(iterator);
        same = key != NULL && const_equal(key, PyTuple_GET_ITEM(keys, i));
        Py_XDECREF(key);
    }
    Py_DECREF(iterator);
    PyErr_Clear();
    return same;
}

bool
dict_keys_are(PyObject *dict, PyObject *keys)
{
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) {
        return false;
    }
    if (PyODict_Check(dict)) {
        return Py_IS_TYPE(dict, &PyODict_Type) && ordered_dict_keys_are(dict, keys);
    }
    Py_ssize_t position = 0, i = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &position, &key, &value)) {
        if (!const_equal(key, PyTuple_GET_ITEM(keys, i++))) {
            return false;
        }
    }
    return true;
}
