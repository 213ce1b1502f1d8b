/* Other users of CPython's frame evaluation function (PEP 523): there is one slot for all of them.
 *
 * Ours passes on to the one that it found there, and theirs pass on to ours. Out of order, each may have found the
 * other: what comes back for the same frame is run by CPython's own. A compiler other than this one owns what it
 * compiles: nothing is captured below its frames, which are known by the module that they belong to. */
#include "hook.h"

static PyObject *foreign_modules = NULL; /* tuple of str */
_PyFrameEvalFunction hook_below = NULL, hook_above = NULL;

static inline _PyFrameEvalFunction
current_evaluator(PyInterpreterState *interp)
{
    _PyFrameEvalFunction found = interp->eval_frame;
    return found == NULL ? _PyEval_EvalFrameDefault : found;
}

/* -- installing ------------------------------------------------------------------------------ */
void
hook_install(void)
{
    PyInterpreterState *interp = PyInterpreterState_Main();
    _PyFrameEvalFunction current = current_evaluator(interp);
    if (current != hook_frame) {
        hook_below = current == _PyEval_EvalFrameDefault ? NULL : current;
        hook_above = NULL;
        _PyInterpreterState_SetEvalFrameFunc(interp, hook_frame);
    }
}

void
hook_uninstall(void)
{
    PyInterpreterState *interp = PyInterpreterState_Main();
    if (current_evaluator(interp) == hook_frame) {
        _PyInterpreterState_SetEvalFrameFunc(interp, hook_below != NULL ? hook_below : _PyEval_EvalFrameDefault);
        hook_below = NULL;
    }
}

bool
hook_is_installed(void)
{
    return current_evaluator(PyInterpreterState_Main()) == hook_frame;
}

/* -- passing on -------------------------------------------------------------------------------- */
/* Whose turn it is where ours has a frame, as far as is known: one that is above ours had its own. */
void
hook_note_above(PyThreadState *tstate)
{
    _PyFrameEvalFunction current = current_evaluator(tstate->interp);
    if (current != hook_frame) {
        hook_above = current;
    }
    else if (hook_above != NULL) {
        /* it put ours back, so it is not below ours any more */
        hook_below = hook_above == hook_below ? NULL : hook_below;
        hook_above = NULL;
    }
}

_PyFrameEvalFunction
hook_passes_on(PyThreadState *tstate)
{
    return hook_below == NULL || tstate->interp->eval_frame != hook_frame ? _PyEval_EvalFrameDefault : hook_below;
}

PyObject *
evaluate_by(_PyFrameEvalFunction run, PyThreadState *tstate, ThreadState *ts, Frame *frame, int throwflag)
{
    if (run == _PyEval_EvalFrameDefault) {
        return run(tstate, frame, throwflag);
    }
    Frame *outer = ts->passed_on;
    ts->passed_on = frame;
    PyObject *result = run(tstate, frame, throwflag);
    ts->passed_on = outer;
    return result;
}

/* -- what other compilers made ----------------------------------------------------------------- */
PyObject *
foreign_set(PyObject *module, PyObject *names)
{
    if (!PyTuple_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "set_foreign_modules takes a tuple of names");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        if (!PyUnicode_Check(PyTuple_GET_ITEM(names, i))) {
            PyErr_SetString(PyExc_TypeError, "the name of a module is a str");
            return NULL;
        }
    }
    Py_XSETREF(foreign_modules, Py_NewRef(names));
    Py_RETURN_NONE;
}

/* Other compilers look `__get__` up on the type and follow it if it is a function of Python; one of C they take for
   none, and call what a class holds without its object. The slot stays C's, which does the same: it is what Python
   itself calls. */
PyObject *
foreign_show_get(PyObject *module, PyObject *function)
{
    if (!PyFunction_Check(function)) {
        PyErr_SetString(PyExc_TypeError, "show_get takes a function");
        return NULL;
    }
    if (PyDict_SetItemString(Dispatcher_Type.tp_dict, "__get__", function) < 0) {
        return NULL;
    }
    PyType_Modified(&Dispatcher_Type);
    Py_RETURN_NONE;
}

static bool
name_is_foreign(PyObject *name)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    for (Py_ssize_t i = 0; foreign_modules != NULL && i < PyTuple_GET_SIZE(foreign_modules); i++) {
        PyObject *module = PyTuple_GET_ITEM(foreign_modules, i);
        Py_ssize_t n = PyUnicode_GET_LENGTH(module);
        if (length >= n && PyUnicode_Tailmatch(name, module, 0, n, -1) > 0
            && (length == n || PyUnicode_READ_CHAR(name, n) == '.')) {
            return true;
        }
    }
    return false;
}

bool
frame_is_foreign(Frame *frame)
{
    static PyObject *key = NULL;
    if (key == NULL && (key = PyUnicode_InternFromString("__name__")) == NULL) {
        PyErr_Clear();
        return false;
    }
    PyObject *globals = frame->f_globals;
    if (globals == NULL || !PyDict_CheckExact(globals) || !names_are_plain(globals)) {
        return false;
    }
    PyObject *name = PyDict_GetItemWithError(globals, key);
    return name != NULL && PyUnicode_Check(name) && name_is_foreign(name);
}

/* Whether another evaluator is in place and this thread is below a frame of another compiler: the functions that
   it calls are its own. */
bool
is_inside_foreign(PyThreadState *tstate)
{
    _PyFrameEvalFunction current = current_evaluator(tstate->interp);
    if (current == hook_frame || current == _PyEval_EvalFrameDefault) {
        return false;
    }
    for (Frame *f = current_frame(tstate); f != NULL; f = f->previous) {
        if (frame_is_of_python(f) && frame_is_foreign(f)) {
            return true;
        }
    }
    return false;
}
