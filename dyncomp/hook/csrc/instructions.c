/* Canonical instructions of replacement code, which is made of thousands of them: the two loops over them
   that are worth it, said in C. The modules that call them say what they do (templates.py, edit.py). */
#include "hook.h"

/* what to do with the argument of a template's instruction, in the order of templates.py */
enum { AS_IT_IS, LOAD, WRITE, NAME_ITSELF, KEYWORDS_OF_CALL, KEYS, JUMP };

/* A new Instr(op, arg, loc, index), which takes over the reference to `arg`; NULL with an exception. */
static PyObject *
new_instr(PyTypeObject *type, PyObject *op, PyObject *arg, PyObject *loc, Py_ssize_t index)
{
    PyObject *number = PyLong_FromSsize_t(index);
    PyObject *made = arg == NULL || number == NULL ? NULL : type->tp_alloc(type, 4);
    if (made == NULL) {
        Py_XDECREF(arg);
        Py_XDECREF(number);
        return NULL;
    }
    PyTuple_SET_ITEM(made, 0, Py_NewRef(op));
    PyTuple_SET_ITEM(made, 1, arg);
    PyTuple_SET_ITEM(made, 2, Py_NewRef(loc));
    PyTuple_SET_ITEM(made, 3, number);
    return made;
}

static bool
is_instr_type(PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type)) {
        return true;
    }
    PyErr_SetString(PyExc_TypeError, "the class of instructions is a tuple");
    return false;
}

/* Item `number` (an int) of a list; borrowed, NULL with an exception. */
static PyObject *
item_of(PyObject *list, PyObject *number)
{
    Py_ssize_t index = PyLong_AsSsize_t(number);
    if (index < 0 || index >= PyList_GET_SIZE(list)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_IndexError, "no such token");
        }
        return NULL;
    }
    return PyList_GET_ITEM(list, index);
}

/* The tokens of these numbers; new reference. */
static PyObject *
tokens_of(PyObject *numbers, PyObject *tokens)
{
    if (!PyTuple_Check(numbers)) {
        PyErr_SetString(PyExc_TypeError, "numbers of tokens are a tuple");
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(numbers);
    PyObject *names = PyTuple_New(count);
    for (Py_ssize_t i = 0; names != NULL && i < count; i++) {
        PyObject *name = item_of(tokens, PyTuple_GET_ITEM(numbers, i));
        if (name == NULL) {
            Py_CLEAR(names);
            break;
        }
        PyTuple_SET_ITEM(names, i, Py_NewRef(name));
    }
    return names;
}

/* (count, (token number, …)) with the tokens in place of their numbers; new reference. */
static PyObject *
with_keywords(PyObject *arg, PyObject *tokens)
{
    if (!PyTuple_Check(arg) || PyTuple_GET_SIZE(arg) != 2) {
        PyErr_SetString(PyExc_TypeError, "a call with keywords has a count and their names");
        return NULL;
    }
    PyObject *names = tokens_of(PyTuple_GET_ITEM(arg, 1), tokens);
    PyObject *made = names == NULL ? NULL : PyTuple_Pack(2, PyTuple_GET_ITEM(arg, 0), names);
    Py_XDECREF(names);
    return made;
}

/* The operation and argument for a template's instruction (op, kind, arg, line); new references. */
static bool
fill_in(PyObject *item, PyObject *tokens, PyObject *variables, PyObject *local, Py_ssize_t start,
        PyObject **op, PyObject **arg)
{
    PyObject *given = PyTuple_GET_ITEM(item, 2), *token = NULL;
    long kind = PyLong_AsLong(PyTuple_GET_ITEM(item, 1));
    *op = Py_NewRef(PyTuple_GET_ITEM(item, 0));
    *arg = NULL;
    if (kind == LOAD || kind == WRITE || kind == NAME_ITSELF) {
        token = item_of(tokens, given);
        if (token == NULL) {
            return false;
        }
    }
    if (kind == LOAD) {
        PyObject *pair = PyObject_GetItem(variables, token);
        if (pair != NULL && PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2) {
            Py_SETREF(*op, Py_NewRef(PyTuple_GET_ITEM(pair, 0)));
            *arg = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
        }
        Py_XDECREF(pair);
    }
    else if (kind == WRITE) {
        *arg = PyObject_GetItem(local, token);
    }
    else if (kind == NAME_ITSELF) {
        *arg = Py_NewRef(token);
    }
    else if (kind == KEYS) {
        *arg = tokens_of(given, tokens);
    }
    else if (kind == JUMP) {
        Py_ssize_t target = PyLong_AsSsize_t(given);
        *arg = target == -1 && PyErr_Occurred() ? NULL : PyLong_FromSsize_t(start + target);
    }
    else {
        *arg = kind == KEYWORDS_OF_CALL ? with_keywords(given, tokens) : Py_NewRef(given);
    }
    return *arg != NULL;
}

/* instantiate(made, instructions, tokens, places, variables, local, Instr, no place) */
PyObject *
instructions_instantiate(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 8 || !PyList_Check(args[0]) || !PyTuple_Check(args[1]) || !PyList_Check(args[2])
        || !PyList_Check(args[3]) || !is_instr_type(args[6])) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "instantiate takes lists and a tuple");
        }
        return NULL;
    }
    PyObject *made = args[0], *instructions = args[1], *places = args[3];
    Py_ssize_t start = PyList_GET_SIZE(made);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(instructions); i++) {
        PyObject *item = PyTuple_GET_ITEM(instructions, i), *op, *arg;
        if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 4) {
            PyErr_SetString(PyExc_TypeError, "a template's instruction is a tuple of four");
            return NULL;
        }
        Py_ssize_t line = PyLong_AsSsize_t(PyTuple_GET_ITEM(item, 3));
        PyObject *place = line >= 0 && line < PyList_GET_SIZE(places) ? PyList_GET_ITEM(places, line) : args[7];
        Py_INCREF(place);
        bool done = fill_in(item, args[2], args[4], args[5], start, &op, &arg);
        PyObject *instr = done ? new_instr((PyTypeObject *)args[6], op, arg, place, start + i) : NULL;
        Py_DECREF(op);
        Py_DECREF(place);
        if (instr == NULL) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_TypeError, "a variable is loaded by an operation and its argument");
            }
            return NULL;
        }
        int failed = PyList_Append(made, instr);
        Py_DECREF(instr);
        if (failed) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

/* Append Instr(op, arg, loc, its place) for each (op, arg) of a list. */
static bool
append_operations(PyObject *made, PyObject *operations, PyObject *loc, PyTypeObject *type)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(operations); i++) {
        PyObject *pair = PyList_GET_ITEM(operations, i);
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
            PyErr_SetString(PyExc_TypeError, "what is inserted are pairs");
            return false;
        }
        PyObject *instr = new_instr(type, PyTuple_GET_ITEM(pair, 0), Py_NewRef(PyTuple_GET_ITEM(pair, 1)), loc,
                                    PyList_GET_SIZE(made));
        if (instr == NULL || PyList_Append(made, instr)) {
            Py_XDECREF(instr);
            return false;
        }
        Py_DECREF(instr);
    }
    return true;
}

/* Where every instruction comes to be, and the end; an array to be freed. */
static Py_ssize_t *
new_places(PyObject *instructions, PyObject *after, PyObject *without)
{
    Py_ssize_t count = PyTuple_GET_SIZE(instructions), total = 0;
    Py_ssize_t *begins = PyMem_New(Py_ssize_t, count + 1);
    if (begins == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *index = PyTuple_GET_ITEM(PyTuple_GET_ITEM(instructions, i), 3);
        begins[i] = total;
        int left_out = PySequence_Contains(without, index);
        PyObject *more = left_out < 0 ? NULL : PyDict_GetItemWithError(after, index);
        if (more != NULL && !PyList_Check(more)) {
            PyErr_SetString(PyExc_TypeError, "what is inserted are lists");
        }
        if (PyErr_Occurred()) {
            PyMem_Free(begins);
            return NULL;
        }
        total += !left_out + (more == NULL ? 0 : PyList_GET_SIZE(more));
    }
    begins[count] = total;
    return begins;
}

/* The instructions, moved; NULL with an exception. */
static PyObject *
moved(PyObject *instructions, PyObject *after, PyObject *without, PyObject *jumps, PyTypeObject *type,
      const Py_ssize_t *begins)
{
    Py_ssize_t count = PyTuple_GET_SIZE(instructions);
    PyObject *made = PyList_New(0);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyObject *old = PyTuple_GET_ITEM(instructions, i);
        PyObject *op = PyTuple_GET_ITEM(old, 0), *arg = PyTuple_GET_ITEM(old, 1);
        int left_out = PySequence_Contains(without, PyTuple_GET_ITEM(old, 3));
        int jumping = left_out ? 0 : PySet_Contains(jumps, op);
        bool done = left_out >= 0 && jumping >= 0;
        if (done && !left_out) {
            Py_ssize_t target = jumping ? PyLong_AsSsize_t(arg) : 0;
            if (target < 0 || target > count) {
                PyErr_SetString(PyExc_ValueError, "a jump to nowhere");
                done = false;
            }
            else {
                PyObject *operand = jumping ? PyLong_FromSsize_t(begins[target]) : Py_NewRef(arg);
                PyObject *instr = new_instr(type, op, operand, PyTuple_GET_ITEM(old, 2), PyList_GET_SIZE(made));
                done = instr != NULL && PyList_Append(made, instr) == 0;
                Py_XDECREF(instr);
            }
        }
        PyObject *more = done ? PyDict_GetItemWithError(after, PyTuple_GET_ITEM(old, 3)) : NULL;
        if (more != NULL) {
            done = append_operations(made, more, PyTuple_GET_ITEM(old, 2), type);
        }
        if (!done || PyErr_Occurred()) {
            Py_CLEAR(made);
        }
    }
    PyObject *result = made == NULL ? NULL : PyList_AsTuple(made);
    Py_XDECREF(made);
    return result;
}

static PyObject *
list_of(const Py_ssize_t *numbers, Py_ssize_t count)
{
    PyObject *made = PyList_New(count);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyObject *number = PyLong_FromSsize_t(numbers[i]);
        if (number == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyList_SET_ITEM(made, i, number);
    }
    return made;
}

/* insert(instructions, after, without, jumps, Instr) -> the instructions, where the old ones begin */
PyObject *
instructions_insert(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 5 || !PyTuple_Check(args[0]) || !PyDict_Check(args[1]) || !PyAnySet_Check(args[3])
        || !is_instr_type(args[4])) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "insert takes a tuple, a dict and a set");
        }
        return NULL;
    }
    Py_ssize_t *begins = new_places(args[0], args[1], args[2]);
    if (begins == NULL) {
        return NULL;
    }
    PyObject *made = moved(args[0], args[1], args[2], args[3], (PyTypeObject *)args[4], begins);
    PyObject *places = made == NULL ? NULL : list_of(begins, PyTuple_GET_SIZE(args[0]) + 1);
    PyMem_Free(begins);
    PyObject *result = places == NULL ? NULL : PyTuple_Pack(2, made, places);
    Py_XDECREF(made);
    Py_XDECREF(places);
    return result;
}
