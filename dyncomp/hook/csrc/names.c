/* Dictionaries of names: a key that the program made may run code of its own where a name is looked up. */
#include "hook.h"

/* Keys whose comparison with a string runs no code of the program; other types may compare what they hold. */
static bool
compares_in_c(PyObject *key)
{
    return PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyBool_Check(key) || PyFloat_CheckExact(key)
        || PyComplex_CheckExact(key) || PyBytes_CheckExact(key) || key == Py_None || PyType_CheckExact(key)
        || PyFunction_Check(key) || PyCFunction_CheckExact(key);
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
