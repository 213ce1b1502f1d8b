/* Countdowns: iterators that give None as often as they were told to. Code that counts its own steps goes
 * through one by FOR_ITER, which costs it a few nanoseconds a step. */
#include "hook.h"
#include <structmember.h>

static PyObject *
ticks_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"left", NULL};
    long long left = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|L", names, &left)) {
        return NULL;
    }
    Ticks *self = (Ticks *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->left = left;
    }
    return (PyObject *)self;
}

static PyObject *
ticks_next(Ticks *self)
{
    if (self->left <= 0) {
        return NULL;
    }
    self->left--;
    return Py_NewRef(Py_None);
}

static PyMemberDef ticks_members[] = {
    {"left", T_LONGLONG, offsetof(Ticks, left), 0, "how many steps are left"},
    {NULL},
};

PyTypeObject Ticks_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.Ticks",
    .tp_basicsize = sizeof(Ticks),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Ticks(left): an iterator that gives None while any are left.",
    .tp_new = ticks_new,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)ticks_next,
    .tp_members = ticks_members,
};
