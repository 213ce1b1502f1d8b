/* NumPy's floating-point error state; running an original whose floating-point warnings are noted: NumPy's "log" mode with an object of ours, which
 * warns as NumPy would have done. No frame of Python is added. */
#include "hook.h"

#include <stddef.h>

/* -- NumPy's floating-point error state ------------------------------------------------------ */
/* NumPy keeps {int errmask; ...} in a capsule in a context variable; the layout is checked once below
   against a capsule with known modes, and the state counts as unknown where it differs. */
static PyObject *errstate_variable = NULL; /* NULL where NumPy's is not known */
static PyObject *errstate_make = NULL; /* makes such capsules of keywords */

typedef struct {
    int mask;
    Py_ssize_t buffer_size;
    PyObject *handler;
} ErrorModes;

static const ErrorModes *
errstate_modes_of(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "numpy.ufunc.extobj")) {
        return NULL;
    }
    return PyCapsule_GetPointer(capsule, "numpy.ufunc.extobj");
}

int
errstate_setup(void)
{
    PyObject *umath = PyImport_ImportModule("numpy._core.umath");
    PyObject *variable = NULL, *make = NULL, *capsule = NULL, *none = NULL, *words = NULL;
    if (umath == NULL) {
        goto unknown;
    }
    variable = PyObject_GetAttrString(umath, "_extobj_contextvar");
    make = PyObject_GetAttrString(umath, "_make_extobj");
    none = PyTuple_New(0);
    words = Py_BuildValue("{s:s,s:s,s:s,s:s,s:O}", "divide", "raise", "over", "ignore", "under", "warn", "invalid",
                          "print", "call", make == NULL ? Py_None : make);
    if (variable == NULL || make == NULL || none == NULL || words == NULL || !PyContextVar_CheckExact(variable)) {
        goto unknown;
    }
    capsule = PyObject_Call(make, none, words);
    if (capsule != NULL) {
        const ErrorModes *modes = errstate_modes_of(capsule);
        if (modes != NULL && modes->mask == (2 | 0 << 3 | 1 << 6 | 4 << 9) && modes->handler == make) {
            errstate_variable = Py_NewRef(variable);
            errstate_make = Py_NewRef(make);
        }
    }
unknown:
    PyErr_Clear();
    Py_XDECREF(umath);
    Py_XDECREF(variable);
    Py_XDECREF(make);
    Py_XDECREF(none);
    Py_XDECREF(words);
    Py_XDECREF(capsule);
    return 0;
}

/* While an original runs whose warnings are noted the modes are as the program set them: warnings. */
static long
errstate_meant(const ErrorModes *modes)
{
    long mask = modes->mask;
    if (is_reporter(modes->handler)) {
        for (int k = 0; k < 4; k++) {
            if ((mask >> 3 * k & 7) == 5) {
                mask ^= (5 ^ 1) << 3 * k;
            }
        }
    }
    return mask;
}

long
errstate_read(void)
{
    if (errstate_variable == NULL) {
        return -1;
    }
    PyObject *capsule;
    if (PyContextVar_Get(errstate_variable, NULL, &capsule) < 0 || capsule == NULL) {
        PyErr_Clear();
        return -1;
    }
    const ErrorModes *modes = errstate_modes_of(capsule);
    long answer = modes == NULL ? -1 : errstate_meant(modes);
    Py_DECREF(capsule);
    return answer;
}

typedef struct {
    PyObject_HEAD
    PyObject *note; /* note(text) for each warning, before it is made */
} Reporter;

static int
reporter_traverse(Reporter *self, visitproc visit, void *arg)
{
    Py_VISIT(self->note);
    return 0;
}

static int
reporter_clear(Reporter *self)
{
    Py_CLEAR(self->note);
    return 0;
}

static void
reporter_dealloc(Reporter *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->note);
    PyObject_GC_Del(self);
}

/* write("Warning: overflow encountered in exp\n") */
static PyObject *
reporter_write(Reporter *self, PyObject *message)
{
    static const char prefix[] = "Warning: ";
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(message, &length);
    if (text == NULL) {
        return NULL;
    }
    const Py_ssize_t before = sizeof(prefix) - 1;
    if (length > before && strncmp(text, prefix, before) == 0) {
        text += before;
        length -= before;
    }
    if (length > 0 && text[length - 1] == '\n') {
        length--;
    }
    PyObject *said = PyUnicode_FromStringAndSize(text, length);
    if (said == NULL) {
        return NULL;
    }
    PyObject *noted = PyObject_CallOneArg(self->note, said);
    const char *warning = noted == NULL ? NULL : PyUnicode_AsUTF8(said);
    const int failed = warning == NULL || PyErr_WarnEx(PyExc_RuntimeWarning, warning, 1) < 0;
    Py_XDECREF(noted);
    Py_DECREF(said);
    return failed ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef reporter_methods[] = {
    {"write", (PyCFunction)reporter_write, METH_O, "write(message): note it, and warn."},
    {NULL},
};

PyTypeObject Reporter_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.Reporter",
    .tp_doc = "What NumPy's error mode \"log\" writes to while an original runs.",
    .tp_basicsize = sizeof(Reporter),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)reporter_dealloc,
    .tp_traverse = (traverseproc)reporter_traverse,
    .tp_clear = (inquiry)reporter_clear,
    .tp_methods = reporter_methods,
};

bool
is_reporter(PyObject *obj)
{
    return obj != NULL && Py_IS_TYPE(obj, &Reporter_Type);
}

/* -- a call under such modes ---------------------------------------------------------------------- */
typedef struct {
    PyObject_HEAD
    PyObject *function;
    PyObject *modes;
    vectorcallfunc vectorcall;
} ReportedCall;

static PyObject *
reported_vectorcall(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    ReportedCall *self = (ReportedCall *)object;
    PyObject *token = PyContextVar_Set(errstate_variable, self->modes);
    if (token == NULL) {
        return NULL;
    }
    PyObject *function = Py_NewRef(self->function);
    PyObject *result = PyObject_Vectorcall(function, args, nargsf, names);
    Py_DECREF(function);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyContextVar_Reset(errstate_variable, token) < 0) {
        PyErr_Clear();
    }
    Py_DECREF(token);
    PyErr_Restore(type, value, traceback);
    return result;
}

static int
reported_traverse(ReportedCall *self, visitproc visit, void *arg)
{
    Py_VISIT(self->function);
    Py_VISIT(self->modes);
    return 0;
}

static int
reported_clear(ReportedCall *self)
{
    Py_CLEAR(self->function);
    Py_CLEAR(self->modes);
    return 0;
}

static void
reported_dealloc(ReportedCall *self)
{
    PyObject_GC_UnTrack(self);
    reported_clear(self);
    PyObject_GC_Del(self);
}

PyTypeObject ReportedCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.ReportedCall",
    .tp_doc = "A function that is called under other error modes of NumPy.",
    .tp_basicsize = sizeof(ReportedCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)reported_dealloc,
    .tp_traverse = (traverseproc)reported_traverse,
    .tp_clear = (inquiry)reported_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(ReportedCall, vectorcall),
};

/* reported(function, note): what calls `function` with warnings about floating-point errors noted; `function` itself
 * where NumPy's modes ask for anything but warnings. */
PyObject *
reports_of(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "reported takes a function and what is told of warnings");
        return NULL;
    }
    static const char *const names[] = {"divide", "over", "under", "invalid"};
    long mask = errstate_read();
    bool warns = false;
    for (int k = 0; mask >= 0 && k < 4; k++) {
        const long mode = mask >> 3 * k & 7;
        if (mode > 1) {
            mask = -1;
        }
        warns |= mode == 1;
    }
    if (mask < 0 || !warns) {
        return Py_NewRef(args[0]);
    }
    Reporter *reporter = PyObject_GC_New(Reporter, &Reporter_Type);
    if (reporter == NULL) {
        return NULL;
    }
    reporter->note = Py_NewRef(args[1]);
    PyObject_GC_Track(reporter);
    PyObject *words = PyDict_New();
    PyObject *none = PyTuple_New(0);
    PyObject *modes = NULL;
    bool made = words != NULL && none != NULL && PyDict_SetItemString(words, "call", (PyObject *)reporter) == 0;
    for (int k = 0; made && k < 4; k++) {
        PyObject *word = PyUnicode_FromString((mask >> 3 * k & 7) == 1 ? "log" : "ignore");
        made = word != NULL && PyDict_SetItemString(words, names[k], word) == 0;
        Py_XDECREF(word);
    }
    if (made) {
        modes = PyObject_Call(errstate_make, none, words);
    }
    Py_XDECREF(none);
    Py_XDECREF(words);
    Py_DECREF(reporter);
    if (modes == NULL) {
        return NULL;
    }
    ReportedCall *call = PyObject_GC_New(ReportedCall, &ReportedCall_Type);
    if (call == NULL) {
        Py_DECREF(modes);
        return NULL;
    }
    call->function = Py_NewRef(args[0]);
    call->modes = modes;
    call->vectorcall = reported_vectorcall;
    PyObject_GC_Track(call);
    return (PyObject *)call;
}
