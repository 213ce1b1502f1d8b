/* Profilers see what runs: every call of a compiled function as one frame of the function as it was written.
 *
 * A function captured in pieces runs as several frames, of code that the program has not. A relay stands between
 * CPython and the profiler's own function (or its callbacks of sys.monitoring): events of the first piece's
 * beginning and of the last one's end are passed on, in the name of the original code object, those between are
 * not. Functions given to sys.setprofile() look at frames: they get the first piece's frame for all of them. */
#include "hook.h"
#include <frameobject.h>

typedef struct {
    Frame *frame;       /* of the piece that runs; NULL: the next one has not begun */
    PyCodeObject *code; /* the original; strong */
    PyObject *shown;    /* the frame object that the profiler knows, or NULL */
    bool inner;         /* a piece that another one of the same call runs */
    bool begun_before;  /* the profiler has not seen it begin */
} Call;

typedef struct CallStack {
    int size, capacity;
    Call calls[];
} CallStack;

bool profiled_as_written = false;
static PyObject *own_module = NULL; /* borrowed */

void
profile_setup(PyObject *module)
{
    own_module = module;
}

/* -- the calls of this thread that a profiler knows -------------------------------------------- */
static Call *
top_call(CallStack *calls)
{
    return calls == NULL || calls->size == 0 ? NULL : &calls->calls[calls->size - 1];
}

static void
pop_call(CallStack *calls)
{
    Call *call = &calls->calls[--calls->size];
    PyCodeObject *code = call->code;
    PyObject *shown = call->shown;
    Py_DECREF(code);
    Py_XDECREF(shown);
}

static Call *
push_call(CallStack **place, Call call)
{
    CallStack *calls = *place;
    if (calls == NULL || calls->size == calls->capacity) {
        int capacity = calls == NULL ? 16 : calls->capacity * 2;
        CallStack *grown = PyMem_RawRealloc(calls, sizeof(CallStack) + (size_t)capacity * sizeof(Call));
        if (grown == NULL) {
            return NULL;
        }
        grown->size = calls == NULL ? 0 : grown->size;
        grown->capacity = capacity;
        *place = calls = grown;
    }
    Py_INCREF(call.code);
    Py_XINCREF(call.shown);
    calls->calls[calls->size] = call;
    return &calls->calls[calls->size++];
}

static void
forget_calls(CallStack **place)
{
    while (top_call(*place) != NULL) {
        pop_call(*place);
    }
    PyMem_RawFree(*place);
    *place = NULL;
}

/* The call that a frame is a piece of, if known; those above it have ended unseen. */
static Call *
call_of(CallStack *calls, Frame *frame, bool anywhere)
{
    int i = calls == NULL ? 0 : calls->size;
    if (i == 0 || (!anywhere && calls->calls[i - 1].frame != frame)) {
        return NULL;
    }
    while (i > 0 && calls->calls[i - 1].frame != frame) {
        i--;
    }
    while (i > 0 && calls->size > i) { /* greenlets end calls in any order; these show too much */
        pop_call(calls);
    }
    return i == 0 ? NULL : &calls->calls[i - 1];
}

static PyCodeObject *
original_of(Frame *frame, bool *piece)
{
    CodeExtra *extra = code_extra((PyObject *)frame_code(frame));
    *piece = extra != NULL && extra->piece;
    return extra != NULL && extra->origin != NULL ? extra->origin : NULL;
}

static Frame *
frame_before(Frame *frame)
{
    Frame *f = frame->previous;
    while (f != NULL && !frame_is_of_python(f)) {
        f = f->previous;
    }
    return f;
}

typedef enum { AS_IT_IS, IN_NAME, HIDDEN } Report;

/* A frame begins. IN_NAME: *call is new, and the original's code stands for the frame's. */
static Report
note_begin(CallStack **place, Frame *frame, Call **call)
{
    bool piece;
    PyCodeObject *origin = original_of(frame, &piece);
    Call *top = top_call(*place);
    if (top != NULL && top->frame == NULL && (origin != NULL ? piece : frame_code(frame) == top->code)) {
        top->frame = frame;
        return HIDDEN;
    }
    if (origin == NULL) {
        return AS_IT_IS;
    }
    bool inner = piece && top != NULL && top->frame == frame_before(frame);
    *call = push_call(place, (Call){.frame = frame, .code = inner ? top->code : origin, .inner = inner,
                                    .shown = inner ? top->shown : NULL, .begun_before = piece && !inner});
    return *call == NULL || piece ? HIDDEN : IN_NAME;
}

/* A frame ends, with a result or (NULL) by an exception. IN_NAME: *call is to be taken away afterwards. */
static Report
note_end(CallStack **place, Frame *frame, PyObject *result, Call **call)
{
    bool piece;
    PyCodeObject *origin = original_of(frame, &piece);
    bool goes_on = is_tail_call(result);
    Call *found = call_of(*place, frame, origin != NULL);
    if (found == NULL && (origin != NULL || goes_on)) { /* the profiler was started within it */
        found = push_call(place, (Call){.frame = frame, .code = origin != NULL ? origin : frame_code(frame),
                                        .begun_before = true});
        if (found == NULL) {
            return HIDDEN;
        }
    }
    if (found == NULL) {
        return AS_IT_IS;
    }
    if (goes_on) {
        found->frame = NULL;
        return HIDDEN;
    }
    if (found->inner) {
        pop_call(*place);
        return HIDDEN;
    }
    *call = found;
    return IN_NAME;
}

/* Whether a function is one that replacement code calls for its own purposes. */
static bool
is_own(PyObject *callable)
{
    if (callable == NULL) {
        return false;
    }
    if (PyCFunction_Check(callable)) {
        return PyCFunction_GET_SELF(callable) == own_module;
    }
    PyTypeObject *cls = Py_TYPE(callable);
    return !Py_IS_TYPE(callable, &Dispatcher_Type) && strncmp(cls->tp_name, "dyncomp.", 8) == 0;
}

/* -- sys.setprofile(), and profilers in C ------------------------------------------------------ */
/* A frame object of the original, for profilers in C, which tell functions by their code objects. */
static PyObject *
stand_in(PyFrameObject *like, PyCodeObject *code)
{
    PyFrameObject *made = PyFrame_New(PyThreadState_GET(), code, like->f_frame->f_globals, NULL);
    if (made != NULL && made->f_back == NULL) {
        made->f_back = PyFrame_GetBack(like);
    }
    return (PyObject *)made;
}

static int
report(ThreadState *ts, PyObject *obj, PyFrameObject *object, int what, PyObject *arg)
{
    /* what follows the first piece is known by that one's frame: it is what later frames have before them */
    Call *top = top_call(ts->calls[LEGACY]);
    if (top != NULL && top->frame == object->f_frame) {
        top = ts->calls[LEGACY]->size > 1 ? top - 1 : NULL;
    }
    Frame *before = top == NULL || top->shown == NULL ? NULL : frame_before(object->f_frame);
    bool linked = before != NULL && object->f_back == NULL && (PyObject *)before->frame_obj != top->shown
        && PyCallable_Check(obj);
    if (linked && before != top->frame) { /* between two pieces something else may be called */
        linked = top->frame == NULL && before->frame_obj != NULL
            && ((PyFrameObject *)top->shown)->f_back == before->frame_obj;
    }
    if (linked) {
        object->f_back = (PyFrameObject *)Py_NewRef(top->shown);
    }
    int result = ts->profiler(obj, object, what, arg);
    if (linked) {
        Py_CLEAR(object->f_back);
    }
    return result;
}

static int
relay(PyObject *obj, PyFrameObject *object, int what, PyObject *arg)
{
    ThreadState *ts = &thread_state;
    CallStack **place = &ts->calls[LEGACY];
    Frame *frame = object->f_frame;
    Call *call = NULL;
    bool on_frames = PyCallable_Check(obj);
    if (what == PyTrace_CALL) {
        Report how = note_begin(place, frame, &call);
        if (how == HIDDEN) {
            return 0;
        }
        if (how == IN_NAME) {
            call->shown = on_frames ? Py_NewRef((PyObject *)object) : stand_in(object, call->code);
            if (call->shown == NULL) {
                pop_call(*place);
                return -1;
            }
            PyObject *shown = Py_NewRef(call->shown);
            int result = on_frames ? report(ts, obj, object, what, arg)
                                   : ts->profiler(obj, (PyFrameObject *)shown, what, arg);
            Py_DECREF(shown);
            return result;
        }
        return report(ts, obj, object, what, arg);
    }
    if (what == PyTrace_RETURN) {
        Report how = note_end(place, frame, arg, &call);
        if (how == HIDDEN) {
            return 0;
        }
        if (how == IN_NAME) {
            PyObject *shown = Py_XNewRef(call->shown);
            if (shown == NULL) {
                shown = on_frames ? Py_NewRef((PyObject *)object) : stand_in(object, call->code);
            }
            pop_call(*place);
            int result = shown == NULL ? -1 : report(ts, obj, (PyFrameObject *)shown, what, arg);
            Py_XDECREF(shown);
            return result;
        }
        return report(ts, obj, object, what, arg);
    }
    bool of_c = what == PyTrace_C_CALL || what == PyTrace_C_RETURN || what == PyTrace_C_EXCEPTION;
    if (of_c && is_own(arg)) {
        return 0;
    }
    Call *top = top_call(*place);
    if (on_frames && top != NULL && top->frame == frame && top->shown != NULL) {
        object = (PyFrameObject *)top->shown;
    }
    Py_INCREF(object);
    int result = report(ts, obj, object, what, arg);
    Py_DECREF(object);
    return result;
}

/* -- sys.monitoring ---------------------------------------------------------------------------- */
#if PY_VERSION_HEX >= 0x030C0000
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *callback;
    int tool, event;
} Relay;

static void
relay_dealloc(Relay *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->callback);
    PyObject_GC_Del(self);
}

static int
relay_traverse(Relay *self, visitproc visit, void *arg)
{
    Py_VISIT(self->callback);
    return 0;
}

static int
relay_clear(Relay *self)
{
    Py_CLEAR(self->callback);
    return 0;
}

PyTypeObject Relay_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.Relay",
    .tp_doc = "A callback of sys.monitoring that is given the events of compiled functions as of their originals.",
    .tp_basicsize = sizeof(Relay),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
        | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)relay_dealloc,
    .tp_traverse = (traverseproc)relay_traverse,
    .tp_clear = (inquiry)relay_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Relay, vectorcall),
};

/* Call the callback in the name of another code object. */
static PyObject *
call_in_name(PyObject *callback, PyCodeObject *code, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *given[6] = {NULL};
    if (nargs > 5) {
        return PyObject_Vectorcall(callback, args, (size_t)nargs, NULL);
    }
    memcpy(given + 1, args, (size_t)nargs * sizeof(PyObject *));
    given[1] = (PyObject *)code;
    return PyObject_Vectorcall(callback, given + 1, (size_t)nargs | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

static PyObject *
relay_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Relay *self = (Relay *)callable;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    CallStack **place = &thread_state.calls[self->tool];
    Frame *frame = current_frame(PyThreadState_GET());
    if (self->callback == NULL || kwnames != NULL || nargs < 2 || frame == NULL || !frame_is_of_python(frame)
        || args[0] != (PyObject *)frame_code(frame)) {
        return self->callback == NULL ? Py_NewRef(Py_None)
                                      : PyObject_Vectorcall(self->callback, args, nargsf, kwnames);
    }
    Report how = AS_IT_IS;
    Call *call = NULL;
    PyCodeObject *code = NULL;
    bool piece;
    switch (self->event) {
        case PY_MONITORING_EVENT_PY_START:
            how = note_begin(place, frame, &call);
            code = call == NULL ? NULL : call->code;
            break;
        case PY_MONITORING_EVENT_PY_RETURN:
        case PY_MONITORING_EVENT_PY_UNWIND: {
            bool unwinds = self->event == PY_MONITORING_EVENT_PY_UNWIND;
            how = note_end(place, frame, unwinds || nargs < 3 ? NULL : args[2], &call);
            code = call == NULL ? NULL : call->code;
            break;
        }
        case PY_MONITORING_EVENT_C_RETURN:
        case PY_MONITORING_EVENT_C_RAISE:
            /* below a hook CPython calls Python functions as if they were of C */
            how = nargs > 2 && PyFunction_Check(args[2]) ? HIDDEN : how;
            /* fallthrough */
        case PY_MONITORING_EVENT_CALL:
            how = nargs > 2 && is_own(args[2]) ? HIDDEN : how;
            /* fallthrough */
        default:
            code = original_of(frame, &piece);
            how = how == AS_IT_IS && code != NULL ? IN_NAME : how;
    }
    if (how == HIDDEN) {
        Py_RETURN_NONE;
    }
    if (how == AS_IT_IS) {
        return PyObject_Vectorcall(self->callback, args, nargsf, kwnames);
    }
    Py_INCREF(code);
    if (call != NULL && self->event != PY_MONITORING_EVENT_PY_START) {
        pop_call(*place);
    }
    PyObject *callback = Py_NewRef(self->callback);
    PyObject *result = call_in_name(callback, code, args, nargs);
    Py_DECREF(callback);
    Py_DECREF(code);
    return result;
}

static void
watch_callbacks(PyInterpreterState *interp)
{
    for (int tool = 0; tool < LEGACY; tool++) {
        for (int event = 0; event < _PY_MONITORING_EVENTS; event++) {
            PyObject **slot = &interp->monitoring_callables[tool][event];
            if (*slot == NULL || Py_IS_TYPE(*slot, &Relay_Type)) {
                continue;
            }
            Relay *made = PyObject_GC_New(Relay, &Relay_Type);
            if (made == NULL) {
                PyErr_Clear();
                return;
            }
            forget_calls(&thread_state.calls[tool]);
            made->vectorcall = relay_call;
            made->callback = *slot; /* the reference moves */
            made->tool = tool;
            made->event = event;
            PyObject_GC_Track(made);
            *slot = (PyObject *)made;
        }
    }
}

/* The end of a call whose next piece was never begun. */
static void
end_for_callback(int tool, PyCodeObject *code, PyObject *result, PyObject *error)
{
    int event = error == NULL ? PY_MONITORING_EVENT_PY_RETURN : PY_MONITORING_EVENT_PY_UNWIND;
    PyObject *slot = PyInterpreterState_Get()->monitoring_callables[tool][event];
    if (slot == NULL || !Py_IS_TYPE(slot, &Relay_Type) || ((Relay *)slot)->callback == NULL) {
        return;
    }
    PyObject *callback = Py_NewRef(((Relay *)slot)->callback);
    PyObject *done = PyObject_CallFunction(callback, "OiO", code, 0, error == NULL ? result : error);
    Py_XDECREF(done);
    Py_DECREF(callback);
}
#endif

/* -- both -------------------------------------------------------------------------------------- */
void
profile_watch(PyThreadState *tstate)
{
    ThreadState *ts = &thread_state;
    if (tstate->c_profilefunc != NULL && tstate->c_profilefunc != relay) {
        forget_calls(&ts->calls[LEGACY]);
        ts->profiler = tstate->c_profilefunc;
        tstate->c_profilefunc = relay;
    }
#if PY_VERSION_HEX >= 0x030C0000
    if (has_profiling_tool(tstate)) {
        watch_callbacks(tstate->interp);
    }
#endif
}

static void
end_call(PyThreadState *tstate, int kind, PyObject *result, PyObject *error)
{
    ThreadState *ts = &thread_state;
    CallStack *calls = ts->calls[kind];
    Call call = calls->calls[--calls->size];
    PyThreadState_EnterTracing(tstate);
    if (call.inner) {
        /* nothing was reported of it */
    }
    else if (kind == LEGACY) {
        if (tstate->c_profilefunc == relay && call.shown != NULL) {
            ts->profiler(tstate->c_profileobj, (PyFrameObject *)call.shown, PyTrace_RETURN, result);
        }
    }
#if PY_VERSION_HEX >= 0x030C0000
    else {
        end_for_callback(kind, call.code, result, error);
    }
#endif
    PyThreadState_LeaveTracing(tstate);
    Py_DECREF(call.code);
    Py_XDECREF(call.shown);
}

/* Calls that ended without the frame that they were to go on in. The result may be replaced by an exception. */
PyObject *
profile_settle(PyObject *result)
{
    PyThreadState *tstate = PyThreadState_GET();
    for (int kind = 0; kind <= LEGACY; kind++) {
        Call *top = top_call(thread_state.calls[kind]);
        if (top == NULL || top->frame != NULL) {
            continue;
        }
        PyObject *error = take_error();
        end_call(tstate, kind, result, error);
        if (error != NULL) {
            PyErr_Clear();
            put_error(error);
        }
        else if (PyErr_Occurred()) {
            Py_CLEAR(result);
        }
    }
    return result;
}
