/* The Python face of entries. */
#include "hook.h"

static int
read_order(Entry *self, PyObject *order)
{
    self->num_order = -1;
    if (order == Py_None) {
        return 0;
    }
    PyObject *items = PySequence_Tuple(order);
    if (items == NULL) {
        return -1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    self->order = PyMem_Calloc((size_t)n + 1, sizeof(int));
    int outputs = self->guards == NULL ? 0 : self->guards->num_outputs;
    bool good = self->order != NULL;
    for (Py_ssize_t i = 0; good && i < n; i++) {
        long from = PyLong_AsLong(PyTuple_GET_ITEM(items, i));
        good = !PyErr_Occurred() && from < 1 << 16 && -1 - from < outputs;
        self->order[i] = (int)from;
    }
    Py_DECREF(items);
    if (!good) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "arg_order names an output that the guard program has not");
        }
        return -1;
    }
    self->num_order = (int)n;
    return 0;
}

static int
entry_check(PyObject *guards, PyObject *code, PyObject *target)
{
    if (guards != Py_None && !Py_IS_TYPE(guards, &GuardProgram_Type)) {
        PyErr_SetString(PyExc_TypeError, "guards must be a GuardProgram or None");
        return -1;
    }
    if (code != Py_None && !PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "code must be a code object or None");
        return -1;
    }
    if (target != Py_None && !PyCallable_Check(target)) {
        PyErr_SetString(PyExc_TypeError, "target must be callable or None");
        return -1;
    }
    return 0;
}

static PyObject *
none_to_null(PyObject *value)
{
    return value == Py_None ? NULL : Py_NewRef(value);
}

static PyObject *
entry_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"guards", "code", "target", "needs_hook", "arg_order", "payload", "rank", "moves", "trial",
                            NULL};
    PyObject *guards, *code = Py_None, *target = Py_None, *order = Py_None, *payload = Py_None, *trial = Py_None;
    int needs_hook = 0, rank = 0, moves = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOpOOipO", names, &guards, &code, &target, &needs_hook, &order,
                                     &payload, &rank, &moves, &trial)
        || entry_check(guards, code, target) < 0) {
        return NULL;
    }
    Entry *self = (Entry *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->guards = (GuardProgram *)none_to_null(guards);
    self->code = none_to_null(code);
    self->target = none_to_null(target);
    self->payload = Py_NewRef(payload);
    self->needs_hook = needs_hook != 0;
    self->rank = rank;
    self->moves = moves != 0;
    self->trial = none_to_null(trial);
    if (read_order(self, order) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->code != NULL) {
        /* the frame hook must never try to capture generated code */
        CodeExtra *extra = code_extra_make(self->code);
        if (extra == NULL) {
            Py_DECREF(self);
            return PyErr_NoMemory();
        }
        extra->skip = true;
    }
    return (PyObject *)self;
}

static int
entry_traverse(Entry *self, visitproc visit, void *arg)
{
    Py_VISIT(self->guards);
    Py_VISIT(self->code);
    Py_VISIT(self->target);
    Py_VISIT(self->payload);
    Py_VISIT(self->trial);
    Py_VISIT(self->plain);
    return 0;
}

static int
entry_clear(Entry *self)
{
    Py_CLEAR(self->guards);
    Py_CLEAR(self->code);
    Py_CLEAR(self->target);
    Py_CLEAR(self->payload);
    Py_CLEAR(self->trial);
    Py_CLEAR(self->plain);
    return 0;
}

static void
entry_dealloc(Entry *self)
{
    PyObject_GC_UnTrack(self);
    entry_clear(self);
    PyMem_Free(self->order);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
entry_order(Entry *self, void *unused)
{
    if (self->num_order < 0) {
        Py_RETURN_NONE;
    }
    PyObject *order = PyTuple_New(self->num_order);
    for (int i = 0; order != NULL && i < self->num_order; i++) {
        PyObject *number = PyLong_FromLong(self->order[i]);
        if (number == NULL) {
            Py_CLEAR(order);
            break;
        }
        PyTuple_SET_ITEM(order, i, number);
    }
    return order;
}

static PyObject *
entry_repr(Entry *self)
{
    const char *runs = self->target != NULL ? "target" : self->code != NULL ? "code" : "original";
    Py_ssize_t guards = self->guards == NULL || self->guards->guards == NULL
        ? 0 : PyTuple_GET_SIZE(self->guards->guards);
    return PyUnicode_FromFormat("<Entry: %s, %zd guards, %llu hits%s>", runs, guards,
                                (unsigned long long)self->hits, self->needs_hook ? ", needs hook" : "");
}

static PyMemberDef members[] = {
    {"guards", T_OBJECT, offsetof(Entry, guards), READONLY, "the guard program"},
    {"code", T_OBJECT, offsetof(Entry, code), READONLY, "replacement code"},
    {"target", T_OBJECT, offsetof(Entry, target), READONLY, "callable that runs instead"},
    {"payload", T_OBJECT, offsetof(Entry, payload), 0, "anything"},
    {"needs_hook", T_BOOL, offsetof(Entry, needs_hook), READONLY, "whether the frame hook is on meanwhile"},
    {"hits", T_ULONGLONG, offsetof(Entry, hits), 0, "number of hits"},
    {"plain_won", T_BOOL, offsetof(Entry, plain_won), READONLY, "whether the original is quicker and runs"},
    {"rank", T_INT, offsetof(Entry, rank), READONLY, "entries of lower rank are tried first"},
    {"rests_until", T_ULONGLONG, offsetof(Entry, rests_until), 0, "while there are fewer hits the original runs"},
    {"last_hit", T_ULONGLONG, offsetof(Entry, last_hit), READONLY, "when it was hit last, counted in hits"},
    {NULL},
};

static PyGetSetDef getset[] = {
    {"arg_order", (getter)entry_order, NULL, "which values the target gets", NULL},
    {NULL},
};

PyTypeObject Entry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.Entry",
    .tp_doc = "What runs when guards hold.",
    .tp_basicsize = sizeof(Entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = entry_new,
    .tp_dealloc = (destructor)entry_dealloc,
    .tp_traverse = (traverseproc)entry_traverse,
    .tp_clear = (inquiry)entry_clear,
    .tp_repr = (reprfunc)entry_repr,
    .tp_members = members,
    .tp_getset = getset,
};
