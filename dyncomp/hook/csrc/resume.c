/* Continuations: dispatchers of code that goes on after a graph break.
 *
 * They are constants of replacement code, which the garbage collector does not look into. They do not own their
 * config, and run as plain Python once it is gone. */
#include "dispatcher.h"

static PyObject *
needs_cells(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyErr_Format(PyExc_TypeError, "%R has free variables: call bind(cells)(...)", self);
    return NULL;
}

static PyObject *
empty_cells(Py_ssize_t n)
{
    PyObject *cells = PyTuple_New(n);
    for (Py_ssize_t i = 0; cells != NULL && i < n; i++) {
        PyObject *cell = PyCell_New(NULL);
        if (cell == NULL) {
            Py_CLEAR(cells);
            break;
        }
        PyTuple_SET_ITEM(cells, i, cell);
    }
    return cells;
}

static PyObject *
function_with_cells(PyObject *code, PyObject *globals, PyObject *name, PyObject *qualname, PyObject *cells)
{
    PyObject *function = PyFunction_NewWithQualName(code, globals, qualname);
    if (function == NULL) {
        return NULL;
    }
    Py_XSETREF(((PyFunctionObject *)function)->func_name, Py_NewRef(name));
    if (PyTuple_GET_SIZE(cells) > 0 && PyFunction_SetClosure(function, cells) < 0) {
        Py_CLEAR(function);
    }
    return function;
}

static int
resume_init(Dispatcher *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "globals", "name", "qualname", "config", "on_miss", "make_code", NULL};
    PyObject *code, *globals, *name, *qualname, *config, *on_miss = NULL, *make_code = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!UUO|OO", names, &PyCode_Type, &code, &PyDict_Type, &globals,
                                     &name, &qualname, &config, &on_miss, &make_code)) {
        return -1;
    }
    int num_free = ((PyCodeObject *)code)->co_nfreevars;
    CodeExtra *extra = code_extra_make(code);
    PyObject *cells = empty_cells(num_free);
    PyObject *func = cells == NULL ? NULL : function_with_cells(code, globals, name, qualname, cells);
    Py_XDECREF(cells);
    if (func == NULL || extra == NULL) {
        Py_XDECREF(func);
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        return -1;
    }
    extra->skip = true; /* its own dispatcher looks after it */
    self->extra_frames = 1;
    dispatcher_leave(self);
    self->borrows_config = true;
    int result = dispatcher_setup(self, func, config, on_miss);
    Py_XSETREF(self->make_code, make_code == NULL || make_code == Py_None ? NULL : Py_NewRef(make_code));
    Py_CLEAR(self->original);
    Py_DECREF(func);
    self->vectorcall = num_free > 0 ? needs_cells : dispatch;
    return result;
}

static PyObject *
resume_bind(Dispatcher *self, PyObject *cells)
{
    if (self->func == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the continuation is not initialised");
        return NULL;
    }
    /* without a config nothing is compiled any more */
    PyFunctionObject *template
        = self->config == NULL ? original_function(self) : (PyFunctionObject *)Py_NewRef((PyObject *)self->func);
    if (template == NULL) {
        return NULL;
    }
    PyCodeObject *code = (PyCodeObject *)template->func_code;
    bool good = PyTuple_Check(cells) && PyTuple_GET_SIZE(cells) == code->co_nfreevars;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(cells); i++) {
        good = PyCell_Check(PyTuple_GET_ITEM(cells, i));
    }
    PyObject *func = NULL;
    if (good) {
        func = function_with_cells((PyObject *)code, template->func_globals, template->func_name,
                                   template->func_qualname, cells);
    }
    else {
        PyErr_Format(PyExc_TypeError, "%R takes a tuple of %d cells", self, code->co_nfreevars);
    }
    Py_DECREF(template);
    if (func == NULL || self->config == NULL) {
        return func;
    }
    Dispatcher *made = (Dispatcher *)dispatcher_new(&Dispatcher_Type, NULL, NULL);
    if (made != NULL && dispatcher_setup(made, func, (PyObject *)self->config, self->on_miss) < 0) {
        Py_CLEAR(made);
    }
    if (made != NULL) {
        made->extra_frames = 1;
        made->make_code = Py_XNewRef(self->make_code);
    }
    Py_DECREF(func);
    return (PyObject *)made;
}

static PyMethodDef resume_methods[] = {
    {"bind", (PyCFunction)resume_bind, METH_O, "bind(cells) -> callable"},
    {NULL},
};

PyTypeObject ResumeFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.ResumeFunction",
    .tp_doc = "The continuation after a graph break.",
    .tp_basicsize = sizeof(Dispatcher),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_base = &Dispatcher_Type,
    .tp_new = dispatcher_new,
    .tp_init = (initproc)resume_init,
    .tp_traverse = (traverseproc)dispatcher_traverse,
    .tp_clear = (inquiry)dispatcher_clear,
    .tp_dealloc = (destructor)dispatcher_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Dispatcher, vectorcall),
    .tp_methods = resume_methods,
};
