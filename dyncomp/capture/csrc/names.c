/* Dictionaries of names: a key that the program made may run code of its own where a name is looked up. */
#include "hook.h"

/* Comparing with a key of a class written in Python, or with what may hold one. */
static bool
compares_in_c(PyObject *key)
{
    PyTypeObject *type = Py_TYPE(key);
    bool may_hold = PyTuple_Check(key) || PyAnySet_Check(key);
    return type == &PyUnicode_Type || !(may_hold || (type->tp_flags & Py_TPFLAGS_HEAPTYPE));
}

bool
names_are_plain(PyObject *dict)
{
    if (dict == NULL || !PyDict_Check(dict) || holds_strings_only(dict)) {
        return true;
    }
    Py_ssize_t position = 0;
    PyObject *key;
    while (PyDict_Next(dict, &position, &key, NULL)) {
        if (!compares_in_c(key)) {
            return false;
        }
    }
    return true;
}

bool
class_names_are_plain(PyTypeObject *cls)
{
    PyObject *order = cls->tp_mro;
    Py_ssize_t length = order == NULL ? 0 : PyTuple_GET_SIZE(order);
    for (Py_ssize_t i = 0; i < length; i++) {
        if (!names_are_plain(class_dict((PyTypeObject *)PyTuple_GET_ITEM(order, i)))) {
            return false;
        }
    }
    return true;
}
