/* Calls in tail position: what goes on after a graph break runs when the frame before it is gone.
 *
 * ``return later(function, a, b)`` hands a TailCall to the C code that ran the frame, which lets go of the frame
 * and makes the call. The arguments move into the frame that is called: nothing else holds them meanwhile. */
#include "dispatcher.h"

#define SMALL_TAIL 12
#define MAX_FREE 32

typedef struct {
    PyObject_HEAD
    PyObject *callable;
    bool made;
    Py_ssize_t nargs;
    PyObject **args; /* strong, NULL where taken: `small`, or on the heap */
    PyObject *small[SMALL_TAIL];
} TailCall;

static TailCall *free_calls[MAX_FREE];
static int num_free = 0;

static TailCall *
tail_new(Py_ssize_t nargs)
{
    TailCall *call;
    if (num_free > 0) {
        call = free_calls[--num_free];
        _Py_NewReference((PyObject *)call);
    }
    else {
        call = PyObject_New(TailCall, &TailCall_Type);
        if (call == NULL) {
            return NULL;
        }
    }
    call->callable = NULL;
    call->made = false;
    call->nargs = 0;
    call->args = call->small;
    if (nargs > SMALL_TAIL) {
        call->args = PyMem_Malloc((size_t)nargs * sizeof(PyObject *));
        if (call->args == NULL) {
            call->args = call->small;
            Py_DECREF(call);
            PyErr_NoMemory();
            return NULL;
        }
    }
    return call;
}

static void
tail_dealloc(TailCall *self)
{
    PyObject *callable = self->callable;
    PyObject **args = self->args;
    self->callable = NULL;
    for (Py_ssize_t i = 0; i < self->nargs; i++) {
        Py_XDECREF(args[i]);
    }
    Py_XDECREF(callable);
    if (args != self->small) {
        PyMem_Free(args);
    }
    if (num_free < MAX_FREE) {
        free_calls[num_free++] = self;
    }
    else {
        PyObject_Free(self);
    }
}

PyTypeObject TailCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.TailCall",
    .tp_doc = "A call that is made when the frame that returns it is gone.",
    .tp_basicsize = sizeof(TailCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)tail_dealloc,
};

/* later(function, *args): the call as an object. */
PyObject *
tail_later(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 1) {
        PyErr_SetString(PyExc_TypeError, "later takes a callable and its arguments");
        return NULL;
    }
    PyThreadState *tstate = PyThreadState_GET();
    if (is_profiled(tstate)) { /* it may have been started just now, and is not to see the call as a result */
        profile_watch(tstate);
    }
    TailCall *call = tail_new(nargs - 1);
    if (call == NULL) {
        return NULL;
    }
    call->callable = Py_NewRef(args[0]);
    call->nargs = nargs - 1;
    for (Py_ssize_t i = 1; i < nargs; i++) {
        call->args[i - 1] = Py_NewRef(args[i]);
    }
    return (PyObject *)call;
}

/* -- arguments that move into the frame ---------------------------------------------------------- */
/* CPython gives a frame references of its own to the arguments. An evaluation function that sees this one frame
   before it begins drops those of the caller; no Python code runs between its being set and then. */
typedef struct {
    PyFunctionObject *function;
    PyObject **args;
    Py_ssize_t nargs;
    PyObject *filler;
    _PyFrameEvalFunction evaluate; /* what was set before */
} Move;

static Move *moving = NULL; /* under the GIL, which nothing gives up meanwhile */

static inline void
set_evaluation(PyInterpreterState *interp, _PyFrameEvalFunction evaluate)
{
    _PyInterpreterState_SetEvalFrameFunc(interp, evaluate == NULL ? _PyEval_EvalFrameDefault : evaluate);
}

static PyObject *
evaluate_moved(PyThreadState *tstate, Frame *frame, int throwflag)
{
    Move *move = moving;
    _PyFrameEvalFunction evaluate = move->evaluate;
    moving = NULL;
    set_evaluation(tstate->interp, evaluate);
    if (frame_function(frame) == move->function) {
        for (Py_ssize_t i = 0; i < move->nargs; i++) {
            PyObject *arg = move->args[i]; /* the frame has it, too */
            move->args[i] = Py_XNewRef(move->filler);
            Py_DECREF(arg);
        }
    }
    return (evaluate == NULL ? _PyEval_EvalFrameDefault : evaluate)(tstate, frame, throwflag);
}

/* Whether a call of `function` with so many arguments only copies them into the frame. */
static inline bool
takes_exactly(PyFunctionObject *function, Py_ssize_t nargs)
{
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    return code->co_argcount == nargs && code->co_kwonlyargcount == 0
        && !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS));
}

PyObject *
call_moving(PyFunctionObject *function, PyObject **args, Py_ssize_t nargs, PyObject *filler)
{
    if (!takes_exactly(function, nargs) || moving != NULL) {
        return function->vectorcall((PyObject *)function, args, (size_t)nargs, NULL);
    }
    PyInterpreterState *interp = PyThreadState_GET()->interp;
    Move move = {function, args, nargs, filler, interp->eval_frame};
    moving = &move;
    set_evaluation(interp, evaluate_moved);
    PyObject *result = function->vectorcall((PyObject *)function, args, (size_t)nargs, NULL);
    if (moving == &move) { /* there was no frame: an error */
        moving = NULL;
        set_evaluation(interp, move.evaluate);
    }
    return result;
}

/* -- making the calls ------------------------------------------------------------------------------ */
static PyObject *
make_call(TailCall *call)
{
    PyObject *callable = call->callable;
    if (call->made) {
        PyErr_SetString(PyExc_RuntimeError, "the call was made before");
        return NULL;
    }
    call->made = true; /* its arguments may be gone */
    if (Py_IS_TYPE(callable, &PyFunction_Type)) {
        PyThreadState *tstate = PyThreadState_GET();
        if (!stack_ok(&thread_state)) {
            return NULL;
        }
        c_recursion_refund(tstate, C_RECURSION_PER_CALL);
        PyObject *result = call_moving((PyFunctionObject *)callable, call->args, call->nargs, NULL);
        c_recursion_refund(tstate, -C_RECURSION_PER_CALL);
        return result;
    }
    bool continues = Py_IS_TYPE(callable, &ResumeFunction_Type) || Py_IS_TYPE(callable, &Dispatcher_Type);
    if (continues && ((Dispatcher *)callable)->vectorcall == dispatch) {
        return dispatch(callable, call->args, (size_t)call->nargs | ARGUMENTS_MOVE, NULL);
    }
    return PyObject_Vectorcall(callable, call->args, (size_t)call->nargs, NULL);
}

PyObject *
tail_calls(PyObject *result)
{
    while (is_tail_call(result)) {
        PyObject *call = result;
        result = make_call((TailCall *)call);
        if (result == NULL) {
            strip_transfers();
        }
        Py_DECREF(call);
    }
    return is_profiled(PyThreadState_GET()) ? profile_settle(result) : result;
}

/* run(call): make a call, and those that it ends in. */
PyObject *
tail_run(PyObject *module, PyObject *call)
{
    if (!is_tail_call(call)) {
        PyErr_Format(PyExc_TypeError, "run takes what later() gives, not %s", Py_TYPE(call)->tp_name);
        return NULL;
    }
    PyThreadState *tstate = PyThreadState_GET();
    builtin_recursion_refund(tstate, 1);
    PyObject *result = make_call((TailCall *)call);
    if (result == NULL) {
        strip_transfers();
    }
    result = tail_calls(result);
    builtin_recursion_refund(tstate, -1);
    return result;
}
