/* CPython's argument binding (initialize_locals in ceval.c), into an array of our own. */
#include "bind.h"

static bool
bind_keyword(PyCodeObject *code, PyObject *name, PyObject *value, PyObject **out, PyObject *extra)
{
    int total = code->co_argcount + code->co_kwonlyargcount;
    PyObject *names = code->co_localsplusnames;
    if (!PyUnicode_CheckExact(name)) {
        return false;
    }
    int found = -1;
    for (int i = code->co_posonlyargcount; i < total && found < 0; i++) {
        if (PyTuple_GET_ITEM(names, i) == name) {
            found = i;
        }
    }
    for (int i = code->co_posonlyargcount; i < total && found < 0; i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) {
            found = i;
        }
    }
    if (found >= 0) {
        if (out[found] != NULL) {
            return false;
        }
        out[found] = Py_NewRef(value);
        return true;
    }
    return extra != NULL && PyDict_SetItem(extra, name, value) == 0;
}

static bool
fill_defaults(PyFunctionObject *func, PyCodeObject *code, PyObject **out)
{
    PyObject *defaults = func->func_defaults, *kwdefaults = func->func_kwdefaults;
    Py_ssize_t given = defaults == NULL ? 0 : PyTuple_GET_SIZE(defaults);
    Py_ssize_t first = code->co_argcount - given;
    for (int i = 0; i < code->co_argcount; i++) {
        if (out[i] == NULL) {
            if (i < first) {
                return false;
            }
            out[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, i - first));
        }
    }
    for (int i = code->co_argcount; i < code->co_argcount + code->co_kwonlyargcount; i++) {
        if (out[i] == NULL) {
            PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
            PyObject *value = kwdefaults == NULL ? NULL : PyDict_GetItemWithError(kwdefaults, name);
            if (value == NULL) {
                return false;
            }
            out[i] = Py_NewRef(value);
        }
    }
    return true;
}

static bool
fill(PyFunctionObject *func, PyCodeObject *code, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
     PyObject **out)
{
    Py_ssize_t argcount = code->co_argcount;
    Py_ssize_t next = argcount + code->co_kwonlyargcount;
    Py_ssize_t direct = nargs < argcount ? nargs : argcount;
    for (Py_ssize_t i = 0; i < direct; i++) {
        out[i] = Py_NewRef(args[i]);
    }
    if (code->co_flags & CO_VARARGS) {
        PyObject *rest = PyTuple_New(nargs - direct);
        if (rest == NULL) {
            return false;
        }
        for (Py_ssize_t i = direct; i < nargs; i++) {
            PyTuple_SET_ITEM(rest, i - direct, Py_NewRef(args[i]));
        }
        out[next++] = rest;
    }
    else if (nargs > argcount) {
        return false;
    }
    PyObject *extra = NULL;
    if (code->co_flags & CO_VARKEYWORDS) {
        extra = out[next] = PyDict_New();
        if (extra == NULL) {
            return false;
        }
    }
    Py_ssize_t nkw = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t i = 0; i < nkw; i++) {
        if (!bind_keyword(code, PyTuple_GET_ITEM(kwnames, i), args[nargs + i], out, extra)) {
            return false;
        }
    }
    return fill_defaults(func, code, out);
}

bool
bind_slow(PyFunctionObject *func, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, Bound *bound)
{
    PyCodeObject *code = (PyCodeObject *)func->func_code;
    Py_ssize_t n = code->co_argcount + code->co_kwonlyargcount;
    n += (code->co_flags & CO_VARARGS) != 0;
    n += (code->co_flags & CO_VARKEYWORDS) != 0;
    PyObject **out = n <= SMALL_BIND ? bound->small : PyMem_Malloc((size_t)n * sizeof(PyObject *));
    if (out == NULL) {
        return false;
    }
    memset(out, 0, (size_t)n * sizeof(PyObject *));
    bound->owned = out;
    bound->args = out;
    bound->n = n;
    if (!fill(func, code, args, nargs, kwnames, out)) {
        PyErr_Clear();
        bound_release_slow(bound);
        return false;
    }
    return true;
}

void
bound_release_slow(Bound *bound)
{
    PyObject **out = bound->owned;
    bound->owned = NULL;
    for (Py_ssize_t i = 0; i < bound->n; i++) {
        Py_XDECREF(out[i]);
    }
    if (out != bound->small) {
        PyMem_Free(out);
    }
}

/* -- calling with bound arguments ------------------------------------------------------------- */
static PyObject *
positional_arguments(PyCodeObject *code, const GuardEnv *env)
{
    int argcount = code->co_argcount;
    PyObject *rest = NULL;
    if (code->co_flags & CO_VARARGS) {
        rest = env->args[argcount + code->co_kwonlyargcount];
    }
    Py_ssize_t more = rest == NULL ? 0 : PyTuple_GET_SIZE(rest);
    PyObject *args = PyTuple_New(argcount + more);
    for (Py_ssize_t i = 0; args != NULL && i < argcount + more; i++) {
        PyObject *value = i < argcount ? env->args[i] : PyTuple_GET_ITEM(rest, i - argcount);
        PyTuple_SET_ITEM(args, i, Py_NewRef(value));
    }
    return args;
}

static PyObject *
keyword_arguments(PyCodeObject *code, const GuardEnv *env)
{
    int argcount = code->co_argcount, kwonly = code->co_kwonlyargcount;
    PyObject *kwargs;
    if (code->co_flags & CO_VARKEYWORDS) {
        kwargs = PyDict_Copy(env->args[argcount + kwonly + ((code->co_flags & CO_VARARGS) != 0)]);
    }
    else {
        kwargs = PyDict_New();
    }
    for (int i = argcount; kwargs != NULL && i < argcount + kwonly; i++) {
        if (PyDict_SetItem(kwargs, PyTuple_GET_ITEM(code->co_localsplusnames, i), env->args[i]) < 0) {
            Py_CLEAR(kwargs);
        }
    }
    return kwargs;
}

PyObject *
call_bound(PyCodeObject *code, PyFunctionObject *func, const GuardEnv *env)
{
    PyObject *args = positional_arguments(code, env);
    PyObject *kwargs = args == NULL ? NULL : keyword_arguments(code, env);
    PyObject *result = NULL;
    if (kwargs != NULL) {
        PyObject *function = PyFunction_NewWithQualName((PyObject *)code, func->func_globals, func->func_qualname);
        if (function != NULL
            && (func->func_closure == NULL || PyFunction_SetClosure(function, func->func_closure) == 0)) {
            result = PyObject_Call(function, args, kwargs);
        }
        Py_XDECREF(function);
    }
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}
