/* Binding call arguments into the flat array that guards and targets see. */
#ifndef DYNCOMP_BIND_H
#define DYNCOMP_BIND_H

#include "hook.h"

#define SMALL_BIND 16

typedef struct {
    PyObject *const *args;
    Py_ssize_t n;
    PyObject **owned; /* NULL on the fast path: the caller's own array */
    PyObject *small[SMALL_BIND];
} Bound;

/* Order of co_varnames: positional, keyword-only, *args tuple, **kwargs dict. False when the call is
   wrong (or odd): the function itself then says what is wrong. No exception is left. */
bool bind_slow(PyFunctionObject *func, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, Bound *bound);
void bound_release_slow(Bound *bound);

static inline bool
bind(PyFunctionObject *func, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, Bound *bound)
{
    PyCodeObject *code = (PyCodeObject *)func->func_code;
    if (kwnames == NULL && nargs == code->co_argcount && code->co_kwonlyargcount == 0
        && !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS))) {
        bound->args = args;
        bound->n = nargs;
        bound->owned = NULL;
        return true;
    }
    return bind_slow(func, args, nargs, kwnames, bound);
}

static inline void
bound_release(Bound *bound)
{
    if (bound->owned != NULL) {
        bound_release_slow(bound);
    }
}

#endif
