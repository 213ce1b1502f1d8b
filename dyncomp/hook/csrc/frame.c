/* The frame hook (PEP 523): look a fresh frame up and run its replacement by patching the frame in place.
 *
 * Rules (FACTS §3): only fresh frames of plain functions; the replacement has the same arguments and free
 * variables; a larger replacement needs a larger frame. Tools that watch the program see the original. */
#include "hook.h"

/* -- running a frame --------------------------------------------------------------------------- */
/* Run a frame and all that it calls as if there were no hook. */
static PyObject *
evaluate_unhooked(PyThreadState *tstate, ThreadState *ts, Frame *frame, int throwflag)
{
    _PyFrameEvalFunction run = hook_passes_on(tstate);
    hook_suspend(ts);
    PyObject *result = evaluate_by(run, tstate, ts, frame, throwflag);
    hook_resume(ts);
    return result;
}

/* Every Python call goes through C while a hook is installed. Far down the stack the hook is taken off, so
   that the interpreter calls Python functions without C recursion again, as it would on its own. */
static PyObject *
evaluate_deep(PyThreadState *tstate, ThreadState *ts, Frame *frame, int throwflag)
{
    if (hook_below != NULL) {
        return evaluate_by(hook_passes_on(tstate), tstate, ts, frame, throwflag);
    }
    counters.deep++;
    return evaluate_unhooked(tstate, ts, frame, throwflag);
}

static inline PyObject *
evaluate(PyThreadState *tstate, ThreadState *ts, Frame *frame, int throwflag, bool patched)
{
    if (stack_is_deep(ts)) {
        return evaluate_deep(tstate, ts, frame, throwflag);
    }
    c_recursion_refund(tstate, C_RECURSION_PER_CALL);
    PyObject *result = hook_below == NULL || patched
        ? _PyEval_EvalFrameDefault(tstate, frame, throwflag)
        : evaluate_by(hook_passes_on(tstate), tstate, ts, frame, throwflag);
    c_recursion_refund(tstate, -C_RECURSION_PER_CALL);
    return result;
}

/* Neither the frame nor what it calls is captured. */
static PyObject *
evaluate_disabled(PyThreadState *tstate, ThreadState *ts, Frame *frame)
{
    HookConfig *previous = push_active(ts, NULL);
    PyObject *result = evaluate(tstate, ts, frame, 0, false);
    pop_active(ts, previous);
    return result;
}

/* The original, as its mark wants it. */
static PyObject *
evaluate_marked(PyThreadState *tstate, ThreadState *ts, Frame *frame, const CodeExtra *extra)
{
    if (extra != NULL && extra->alone) {
        return evaluate_unhooked(tstate, ts, frame, 0);
    }
    if (extra != NULL && extra->disabled) {
        return evaluate_disabled(tstate, ts, frame);
    }
    return evaluate(tstate, ts, frame, 0, false);
}

#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
/* 3.12 leaves clearing a frame to the evaluator and exports nothing that does it: let the evaluator run a
   code object that returns at once. */
#define MAX_EMPTY 256

static PyCodeObject *empty_codes[MAX_EMPTY]; /* by number of arguments */

static PyCodeObject *
empty_code(int nargs)
{
    if (nargs < MAX_EMPTY && empty_codes[nargs] != NULL) {
        return (PyCodeObject *)Py_NewRef((PyObject *)empty_codes[nargs]);
    }
    PyObject *names = PyTuple_New(nargs), *globals = PyDict_New(), *code = NULL;
    for (int i = 0; names != NULL && i < nargs; i++) {
        PyTuple_SET_ITEM(names, i, PyUnicode_FromFormat("a%d", i));
    }
    if (names != NULL && globals != NULL) {
        PyObject *joined = PyUnicode_FromString(", ");
        PyObject *list = joined == NULL ? NULL : PyUnicode_Join(joined, names);
        PyObject *source = list == NULL ? NULL : PyUnicode_FromFormat("lambda %U: None", list);
        PyObject *function = NULL;
        if (source != NULL) {
            function = PyRun_String(PyUnicode_AsUTF8(source), Py_eval_input, globals, globals);
        }
        if (function != NULL) {
            code = Py_NewRef(PyFunction_GET_CODE(function));
        }
        Py_XDECREF(function);
        Py_XDECREF(source);
        Py_XDECREF(list);
        Py_XDECREF(joined);
    }
    Py_XDECREF(names);
    Py_XDECREF(globals);
    if (code != NULL && nargs < MAX_EMPTY) {
        empty_codes[nargs] = (PyCodeObject *)Py_NewRef(code);
    }
    return (PyCodeObject *)code;
}
#endif

/* Whether finish() will work for a frame with so many arguments. */
static bool
can_finish(int nargs)
{
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
    if (nargs < MAX_EMPTY && empty_codes[nargs] != NULL) {
        return true;
    }
    ThreadState *ts = &thread_state;
    PyThreadState *tstate = PyThreadState_GET();
    bool hidden = own_work_begin(ts, tstate); /* making the code object runs Python */
    PyCodeObject *code = empty_code(nargs);
    own_work_end(ts, tstate, hidden);
    if (code == NULL) {
        PyErr_Clear();
        return false;
    }
    Py_DECREF(code);
    return nargs < MAX_EMPTY;
#else
    (void)nargs;
    return true;
#endif
}

/* Get rid of a fresh frame whose result (or exception, if NULL) is already there. */
static PyObject *
finish(PyThreadState *tstate, Frame *frame, int nargs, PyObject *result)
{
#if PY_VERSION_HEX >= 0x030D0000
    (void)nargs;
    _PyEval_FrameClearAndPop(tstate, frame);
    return result;
#elif PY_VERSION_HEX >= 0x030C0000
    PyObject *error = PyErr_GetRaisedException();
    PyCodeObject *code = empty_code(nargs);
    frame_set_code(frame, code); /* made by can_finish before anything else was tried */
    Py_DECREF(code);
    c_recursion_refund(tstate, 2);
    PyThreadState_EnterTracing(tstate);
    PyObject *none = _PyEval_EvalFrameDefault(tstate, frame, 0);
    PyThreadState_LeaveTracing(tstate);
    c_recursion_refund(tstate, -2);
    Py_XDECREF(none);
    if (error != NULL) {
        PyErr_Clear();
        PyErr_SetRaisedException(error);
    }
    else if (none == NULL) { /* a signal handler raised */
        Py_CLEAR(result);
    }
    return result;
#else
    (void)tstate; /* the caller clears the frame */
    (void)frame;
    (void)nargs;
    return result;
#endif
}

static bool
patch(PyThreadState *tstate, Frame *frame, PyCodeObject *replacement, int nargs)
{
    PyCodeObject *code = frame_code(frame);
    /* a larger replacement takes its room from the data stack, on top of which the frame is: code objects stay
       as they are, co_stacksize included */
    Py_ssize_t have = tstate->datastack_top - (PyObject **)frame;
    Py_ssize_t wanted = code_frame_slots(replacement);
    bool on_top = (PyObject **)frame >= &tstate->datastack_chunk->data[0]
        && have >= (Py_ssize_t)FRAME_SPECIALS_SIZE + code->co_nlocalsplus;
    if (!on_top || !frame_grow(tstate, frame, have, wanted)) {
        return false;
    }
    for (int i = nargs; i < replacement->co_nlocalsplus; i++) {
        frame->localsplus[i] = NULL;
    }
    frame_set_code(frame, replacement);
    return true;
}

static PyObject *
run_hit(PyThreadState *tstate, ThreadState *ts, Frame *frame, Hit *hit, const GuardEnv *env)
{
    int nargs = (int)env->nargs;
    Entry *entry = hit->entry;
    if (entry->target != NULL) {
        PyObject *result = entry_call_target(hit, env);
        hit_release(hit);
        return finish(tstate, frame, nargs, result);
    }
    if (entry_is_plain(entry)) {
        hit_release(hit);
        return evaluate_marked(tstate, ts, frame, code_extra((PyObject *)frame_code(frame)));
    }
    PyCodeObject *replacement = (PyCodeObject *)Py_NewRef(entry->code);
    hit_release(hit);
    PyObject *result;
    if (patch(tstate, frame, replacement, nargs)) {
        counters.patched++;
        result = evaluate(tstate, ts, frame, 0, true);
        if (result == NULL) {
            strip_transfers();
        }
        else if (is_tail_call(result)) {
            frame_let_go(frame);
            result = tail_calls(result);
        }
    }
    else {
        counters.vectorcalled++;
        result = call_bound(replacement, frame_function(frame), env);
        if (result == NULL) {
            strip_transfers();
        }
        result = finish(tstate, frame, nargs, result);
        if (is_tail_call(result)) {
            frame_let_go(frame);
            result = tail_calls(result);
        }
    }
    Py_DECREF(replacement);
    return result;
}

/* -- deciding ---------------------------------------------------------------------------------- */
static bool
is_plain_function(PyCodeObject *code)
{
    const int wanted = CO_OPTIMIZED | CO_NEWLOCALS;
    const int refused = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
    return (code->co_flags & wanted) == wanted && !(code->co_flags & refused);
}

/* 1 yes, 0 no, -1 exception. Asked once per code object. */
static int
should_capture(Frame *frame, PyObject *code, HookConfig *config, CodeExtra *extra)
{
    if (extra != NULL && extra->asked) {
        return 1;
    }
    PyObject *ask = config->should_capture;
    int answer = 1;
    if (ask != NULL && ask != Py_None) {
        ThreadState *ts = &thread_state;
        PyThreadState *tstate = PyThreadState_GET();
        Py_INCREF(ask);
        bool hidden = own_work_begin(ts, tstate);
        PyObject *result = PyObject_CallOneArg(ask, code);
        own_work_end(ts, tstate, hidden);
        Py_DECREF(ask);
        answer = result == NULL ? -1 : PyObject_IsTrue(result);
        Py_XDECREF(result);
    }
    if (answer >= 0) {
        extra = code_extra_make(code);
        if (extra != NULL) {
            extra->asked = answer == 1;
            extra->skip = extra->skip || answer == 0;
            extra->disabled = extra->disabled || (answer == 0 && frame_is_foreign(frame));
        }
    }
    return answer;
}

static GuardEnv
frame_env(Frame *frame)
{
    PyCodeObject *code = frame_code(frame);
    int n = code->co_argcount + code->co_kwonlyargcount;
    n += (code->co_flags & CO_VARARGS) != 0;
    n += (code->co_flags & CO_VARKEYWORDS) != 0;
    return (GuardEnv){.args = frame->localsplus, .nargs = n, .globals = frame->f_globals,
                      .builtins = frame->f_builtins, .closure = frame_function(frame)->func_closure};
}

/* The cache of (code, config). New reference, or NULL with an exception. */
static inline CodeCache *
find_cache(PyObject *code, HookConfig *config, CodeExtra *extra)
{
    for (int i = 0; extra != NULL && i < extra->size; i++) {
        if (extra->caches[i]->config == config) {
            return (CodeCache *)Py_NewRef((PyObject *)extra->caches[i]);
        }
    }
    return cache_obtain(code, config);
}

static int
miss(Frame *frame, CodeCache *cache, HookConfig *config, const GuardEnv *env, Hit *hit)
{
    PyObject *on_miss = Py_XNewRef(config->on_miss);
    int found = cache_miss(cache, on_miss, frame_function(frame), env, hit);
    Py_XDECREF(on_miss);
    return found;
}

static PyObject *
look_up(PyThreadState *tstate, ThreadState *ts, Frame *frame, CodeExtra *extra)
{
    PyObject *code = (PyObject *)frame_code(frame);
    HookConfig *config = (HookConfig *)Py_NewRef((PyObject *)ts->active);
    GuardEnv env = frame_env(frame);
    Hit hit;
    CodeCache *cache = NULL;
    int found = can_finish((int)env.nargs) ? should_capture(frame, code, config, extra) : 0;
    if (found > 0) {
        cache = find_cache(code, config, extra);
        found = cache == NULL ? -1 : cache->skip ? 0
            : __builtin_expect(spans_on, 0)              ? span_lookup(cache, &env, &hit)
                                                         : cache_lookup(cache, &env, &hit);
        if (found == 0 && !cache->skip) {
            found = miss(frame, cache, config, &env, &hit);
        }
    }
    Py_DECREF(config);
    if (found > 0 && entry_waits(hit.entry)) {
        PyObject *result = run_hit(tstate, ts, frame, &hit, &env);
        cache_count_wait(cache, &hit, true);
        Py_DECREF(cache);
        return result;
    }
    Py_XDECREF(cache);
    if (found > 0) {
        return run_hit(tstate, ts, frame, &hit, &env);
    }
    if (found < 0) {
        return finish(tstate, frame, (int)env.nargs, NULL);
    }
    counters.fallbacks++;
    return evaluate_marked(tstate, ts, frame, code_extra(code));
}

static PyObject *
look_up_recorded(PyThreadState *tstate, ThreadState *ts, Frame *frame, CodeExtra *extra)
{
    int64_t start = span_start();
    PyObject *code = Py_NewRef((PyObject *)frame_code(frame));
    PyObject *result = look_up(tstate, ts, frame, extra);
    span_record(SPAN_CALL, code, start, result != NULL);
    Py_DECREF(code);
    return result;
}

PyObject *
hook_frame(PyThreadState *tstate, Frame *frame, int throwflag)
{
    ThreadState *ts = &thread_state;
    bool covered = tstate->interp->eval_frame != hook_frame;
    if (covered || hook_below != NULL) {
        hook_note_above(tstate);
        if (ts->passed_on == frame) {
            ts->passed_on = NULL;
            return _PyEval_EvalFrameDefault(tstate, frame, throwflag);
        }
    }
    if (!ts->compiling && is_traced(tstate)) {
        /* a hook changes which events CPython reports for coroutines; tools shall see what they always see */
        return evaluate_unhooked(tstate, ts, frame, throwflag);
    }
    if (is_profiled(tstate)) {
        profile_watch(tstate);
    }
    bool idle = ts->active == NULL || ts->compiling || current_stance(ts) == STANCE_FORCE_EAGER;
    if (idle || throwflag || !frame_has_code(frame)) {
        return evaluate(tstate, ts, frame, throwflag, false);
    }
    PyCodeObject *code = frame_code(frame);
    counters.frames_seen++;
    CodeExtra *extra = code_extra((PyObject *)code);
    if (extra != NULL && extra->skip && ts->bypass != code) {
        counters.skipped++;
        return evaluate_marked(tstate, ts, frame, extra);
    }
    if (ts->bypass == code) {
        ts->bypass = NULL;
        return evaluate_marked(tstate, ts, frame, extra);
    }
    if (stack_is_deep(ts) || !is_plain_function(code) || is_monitored(code) || !frame_is_fresh(frame)
        || (covered && is_inside_foreign(tstate))) {
        return evaluate(tstate, ts, frame, 0, false);
    }
    return __builtin_expect(spans_on, 0) ? look_up_recorded(tstate, ts, frame, extra) : look_up(tstate, ts, frame, extra);
}

int
hook_setup(void)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "dyncomp.hook._hook does not support subinterpreters");
        return -1;
    }
    return 0;
}
