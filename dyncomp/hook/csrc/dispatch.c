/* The compiled function as users hold it: a C callable that checks guards and runs an entry.
 *
 * On a hit no Python code runs in between, and the frame hook is installed only for entries that ask. */
#include "bind.h"
#include "dispatcher.h"

/* -- running --------------------------------------------------------------------------------- */
/* A Python function called from C; see c_recursion_refund. The stack was checked by the caller. */
static inline PyObject *
call_function(Dispatcher *self, PyFunctionObject *function, bool moves, PyObject *const *args, size_t nargsf,
              PyObject *kwnames)
{
    PyThreadState *tstate = PyThreadState_GET();
    PyObject *result;
    c_recursion_refund(tstate, C_RECURSION_PER_CALL);
    if (nargsf & ARGUMENTS_MOVE) {
        result = call_moving(function, (PyObject **)args, (Py_ssize_t)(nargsf & ~ARGUMENTS_MOVE), NULL);
    }
    else {
        int extra_frames = self->extra_frames;
        recursion_refund(tstate, extra_frames);
        if (moves && kwnames == NULL && args_are_on_stack(tstate, (PyObject *)self, args, nargsf)) {
            Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
            result = call_moving(function, (PyObject **)args, nargs, Py_None);
        }
        else {
            result = function->vectorcall((PyObject *)function, args, nargsf, kwnames);
        }
        recursion_refund(tstate, -extra_frames);
    }
    c_recursion_refund(tstate, -C_RECURSION_PER_CALL);
    return result;
}

static bool
replacement_is_current(const PyFunctionObject *function, const PyFunctionObject *func)
{
    return function->func_defaults == func->func_defaults && function->func_kwdefaults == func->func_kwdefaults
        && function->func_closure == func->func_closure && function->func_globals == func->func_globals;
}

static PyFunctionObject *
make_replacement(PyFunctionObject *func, PyObject *code)
{
    PyObject *made = PyFunction_NewWithQualName(code, func->func_globals, func->func_qualname);
    if (made == NULL) {
        return NULL;
    }
    PyFunctionObject *function = (PyFunctionObject *)made;
    Py_XSETREF(function->func_name, Py_NewRef(func->func_name));
    bool bad = (func->func_closure != NULL && PyFunction_SetClosure(made, func->func_closure) < 0)
        || (func->func_defaults != NULL && PyFunction_SetDefaults(made, func->func_defaults) < 0)
        || (func->func_kwdefaults != NULL && PyFunction_SetKwDefaults(made, func->func_kwdefaults) < 0);
    if (bad) {
        Py_CLEAR(made);
    }
    return (PyFunctionObject *)made;
}

/* Code that is made when it is first to run: dyncomp's own work, which tools of the program do not see. */
static PyObject *
make_original_code(PyObject *make_code)
{
    PyThreadState *tstate = PyThreadState_GET();
    thread_state.compiling++;
    recursion_refund(tstate, CAPTURE_RECURSION);
    PyThreadState_EnterTracing(tstate); /* from debuggers, too */
    PyObject *code = PyObject_CallNoArgs(make_code);
    PyThreadState_LeaveTracing(tstate);
    recursion_refund(tstate, -CAPTURE_RECURSION);
    thread_state.compiling--;
    if (code != NULL && !PyCode_Check(code)) {
        PyErr_Format(PyExc_TypeError, "make_code returned %s, not code", Py_TYPE(code)->tp_name);
        Py_CLEAR(code);
    }
    return code;
}

PyFunctionObject *
original_function(Dispatcher *self)
{
    if (self->make_code == NULL) {
        return (PyFunctionObject *)Py_NewRef((PyObject *)self->func);
    }
    if (self->original == NULL) {
        PyObject *make_code = Py_NewRef(self->make_code);
        PyObject *code = make_original_code(make_code);
        Py_DECREF(make_code);
        PyFunctionObject *made = code == NULL || self->func == NULL ? NULL : make_replacement(self->func, code);
        CodeExtra *extra = made == NULL ? NULL : code_extra_make(code);
        Py_XDECREF(code);
        if (extra == NULL) {
            Py_XDECREF(made);
            if (!PyErr_Occurred()) {
                PyErr_NoMemory();
            }
            return NULL;
        }
        extra->skip = true; /* the dispatcher looks after it */
        if (code_set_origin(made->func_code, self->func->func_code, true) < 0) {
            Py_DECREF(made);
            return NULL;
        }
        Py_XSETREF(self->original, made);
    }
    return (PyFunctionObject *)Py_NewRef((PyObject *)self->original);
}

/* The original; if the frame hook is on, it leaves this frame alone. */
static PyObject *
call_original(Dispatcher *self, ThreadState *ts, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyFunctionObject *func = original_function(self);
    if (func == NULL) {
        return NULL;
    }
    if (ts->active != NULL) {
        ts->bypass = (PyCodeObject *)func->func_code;
    }
    PyObject *result = call_function(self, func, true, args, nargsf, kwnames);
    ts->bypass = NULL;
    Py_DECREF(func);
    return result;
}

/* Debuggers, profilers and monitoring tools see the original. */
static inline bool
is_watched(const Dispatcher *self)
{
    const PyFunctionObject *func = self->original != NULL ? self->original : self->func;
    return is_traced(PyThreadState_GET()) || is_monitored((PyCodeObject *)func->func_code);
}

/* New reference. */
static PyFunctionObject *
replacement_function(Dispatcher *self, Entry *entry)
{
    for (int i = 0; i < NUM_REPLACEMENTS; i++) {
        Replacement *r = &self->replacements[i];
        if (r->entry == entry && replacement_is_current(r->function, self->func)) {
            return (PyFunctionObject *)Py_NewRef((PyObject *)r->function);
        }
    }
    PyFunctionObject *function = make_replacement(self->func, entry->code);
    if (function == NULL) {
        return NULL;
    }
    if (entry->rank < 0) {
        return function; /* runs this once */
    }
    Replacement *slot = &self->replacements[self->next_replacement];
    self->next_replacement = (self->next_replacement + 1) % NUM_REPLACEMENTS;
    Replacement old = *slot;
    slot->entry = (Entry *)Py_NewRef((PyObject *)entry);
    slot->function = (PyFunctionObject *)Py_NewRef((PyObject *)function);
    Py_XDECREF(old.entry);
    Py_XDECREF(old.function);
    return function;
}

static PyObject *
run_python(Dispatcher *self, ThreadState *ts, Hit *hit, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (entry_is_plain(hit->entry)) {
        hit_release(hit);
        return call_original(self, ts, args, nargsf, kwnames);
    }
    PyFunctionObject *function = replacement_function(self, hit->entry);
    bool moves = hit->entry->moves;
    hit_release(hit);
    if (function == NULL) {
        return NULL;
    }
    PyObject *result = call_function(self, function, moves, args, nargsf, kwnames);
    Py_DECREF(function);
    if (result == NULL) {
        strip_transfers();
    }
    return result;
}

PyObject *
run_entry(Dispatcher *self, ThreadState *ts, Hit *hit, const GuardEnv *env, PyObject *const *args, size_t nargsf,
          PyObject *kwnames)
{
    Entry *entry = hit->entry;
    bool in_tail = (nargsf & ARGUMENTS_MOVE) != 0;
    bool needs_hook = entry->needs_hook && !(in_tail && ts->active == self->config);
    HookConfig *previous = needs_hook ? push_active(ts, self->config) : NULL;
    PyObject *result;
    if (entry->target != NULL) {
        result = entry_call_target(hit, env);
        hit_release(hit);
    }
    else {
        result = run_python(self, ts, hit, args, nargsf, kwnames);
    }
    if (is_tail_call(result) && (needs_hook || !in_tail)) {
        result = tail_calls(result); /* else whoever made this tail call makes the next, too */
    }
    if (needs_hook) {
        pop_active(ts, previous);
    }
    return result;
}

static PyObject *
on_miss_of(Dispatcher *self)
{
    if (self->on_miss != NULL || self->config == NULL) {
        return self->on_miss;
    }
    return self->config->on_miss;
}

/* The cache of the function's present code. New reference. */
static CodeCache *
current_cache(Dispatcher *self)
{
    CodeCache *cache = self->cache;
    if (cache != NULL && (PyObject *)cache->code == self->func->func_code && cache->config != NULL) {
        return (CodeCache *)Py_NewRef((PyObject *)cache);
    }
    cache = cache_obtain(self->func->func_code, self->config);
    if (cache != NULL) {
        Py_XSETREF(self->cache, (CodeCache *)Py_NewRef((PyObject *)cache));
    }
    return cache;
}

static PyObject *
dispatch_bound(Dispatcher *self, ThreadState *ts, PyFunctionObject *func, CodeCache *cache, const GuardEnv *env,
               PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hit hit;
    int found = __builtin_expect(spans_on, 0) ? span_lookup(cache, env, &hit) : cache_lookup(cache, env, &hit);
    if (found == 0) {
        found = cache_miss(cache, on_miss_of(self), func, env, &hit);
    }
    if (found < 0) {
        return NULL;
    }
    if (found == 0) {
        counters.fallbacks++;
        return call_original(self, ts, args, nargsf, kwnames);
    }
    if (entry_is_on_trial(hit.entry, ts)) {
        return run_on_trial(self, ts, func, &hit, env, args, nargsf, kwnames);
    }
    bool waits = entry_waits(hit.entry);
    PyObject *result = run_entry(self, ts, &hit, env, args, nargsf, kwnames);
    cache_count_wait(cache, &hit, waits);
    return result;
}

PyObject *
dispatch(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Dispatcher *self = (Dispatcher *)callable;
    ThreadState *ts = &thread_state;
    if (self->func != NULL && self->config == NULL && self->borrows_config) {
        return call_original(self, ts, args, nargsf, kwnames);
    }
    if (self->func == NULL || self->config == NULL) { /* also after a collection */
        PyErr_SetString(PyExc_RuntimeError, "the compiled function is not initialised");
        return NULL;
    }
    if (!stack_ok(ts)) {
        return NULL;
    }
    PyThreadState *tstate = PyThreadState_GET();
    if (ts->compiling || current_stance(ts) == STANCE_FORCE_EAGER || is_watched(self)
        || (tstate->interp->eval_frame != NULL && is_inside_foreign(tstate))) {
        return call_original(self, ts, args, nargsf, kwnames);
    }
    if (is_profiled(tstate)) {
        profile_watch(tstate);
    }
    int64_t start = span_start();
    /* what runs may drop the last reference to us, or give us another function */
    Py_INCREF(self);
    PyFunctionObject *func = (PyFunctionObject *)Py_NewRef((PyObject *)self->func);
    CodeCache *cache = current_cache(self);
    PyObject *result = NULL;
    Bound bound;
    if (cache == NULL) {
        /* out of memory */
    }
    else if (cache->skip || !bind(func, args, PyVectorcall_NARGS(nargsf & ~ARGUMENTS_MOVE), kwnames, &bound)) {
        counters.fallbacks++;
        result = call_original(self, ts, args, nargsf, kwnames);
    }
    else {
        GuardEnv env = {.args = bound.args, .nargs = bound.n, .globals = func->func_globals,
                        .builtins = func->func_builtins, .closure = func->func_closure};
        result = dispatch_bound(self, ts, func, cache, &env, args, nargsf, kwnames);
        bound_release(&bound);
    }
    if (start != 0) {
        span_record(SPAN_CALL, cache == NULL ? func->func_code : (PyObject *)cache->code, start, result != NULL);
    }
    Py_XDECREF(cache);
    Py_DECREF(func);
    Py_DECREF(self);
    return result;
}

/* -- the config's list of dispatchers --------------------------------------------------------- */
static void
dispatcher_join(Dispatcher *self)
{
    self->after = self->config->dispatchers;
    if (self->after != NULL) {
        self->after->before = self;
    }
    self->config->dispatchers = self;
}

/* Let go of the config. */
void
dispatcher_leave(Dispatcher *self)
{
    HookConfig *config = self->config;
    if (config == NULL) {
        return;
    }
    if (self->before != NULL) {
        self->before->after = self->after;
    }
    else {
        config->dispatchers = self->after;
    }
    if (self->after != NULL) {
        self->after->before = self->before;
    }
    self->before = self->after = NULL;
    self->config = NULL;
    if (!self->borrows_config) {
        Py_DECREF(config);
    }
}

static void
dispatcher_forget(Dispatcher *self)
{
    Py_CLEAR(self->cache);
    for (int i = 0; i < NUM_REPLACEMENTS; i++) {
        Py_CLEAR(self->replacements[i].entry);
        Py_CLEAR(self->replacements[i].function);
    }
}

void
dispatchers_forget(HookConfig *config, bool dying)
{
    if (!dying) { /* what goes may take other dispatchers with it: collect them first */
        Py_ssize_t n = 0, filled = 0;
        for (Dispatcher *d = config->dispatchers; d != NULL; d = d->after) {
            n++;
        }
        Dispatcher **all = PyMem_Calloc((size_t)n + 1, sizeof(Dispatcher *));
        for (Dispatcher *d = config->dispatchers; all != NULL && d != NULL; d = d->after) {
            if (Py_REFCNT(d) > 0) {
                all[filled++] = (Dispatcher *)Py_NewRef((PyObject *)d);
            }
        }
        for (Py_ssize_t i = 0; i < filled; i++) {
            dispatcher_forget(all[i]);
            Py_DECREF(all[i]);
        }
        PyMem_Free(all);
        return;
    }
    while (config->dispatchers != NULL) {
        Dispatcher *d = config->dispatchers;
        if (Py_REFCNT(d) == 0) { /* being destroyed */
            dispatcher_leave(d);
            continue;
        }
        Py_INCREF(d);
        if (d->borrows_config) {
            dispatcher_leave(d);
        }
        else { /* only while the garbage collector clears both */
            d->borrows_config = true;
            dispatcher_leave(d);
            d->borrows_config = false;
            Py_DECREF(config);
        }
        dispatcher_forget(d);
        Py_DECREF(d);
    }
}

/* -- the object ------------------------------------------------------------------------------ */
int
dispatcher_setup(Dispatcher *self, PyObject *func, PyObject *config, PyObject *on_miss)
{
    if (self->func != NULL) { /* it may be running */
        PyErr_SetString(PyExc_TypeError, "the compiled function is initialised already");
        return -1;
    }
    if (!PyFunction_Check(func)) {
        PyErr_Format(PyExc_TypeError, "func must be a Python function, not %s", Py_TYPE(func)->tp_name);
        return -1;
    }
    if (!PyObject_TypeCheck(config, &HookConfig_Type)) {
        PyErr_Format(PyExc_TypeError, "config must be a HookConfig, not %s", Py_TYPE(config)->tp_name);
        return -1;
    }
    Py_XSETREF(self->func, (PyFunctionObject *)Py_NewRef(func));
    dispatcher_leave(self);
    self->config = (HookConfig *)(self->borrows_config ? config : Py_NewRef(config));
    dispatcher_join(self);
    Py_XSETREF(self->on_miss, on_miss == NULL || on_miss == Py_None ? NULL : Py_NewRef(on_miss));
    Py_CLEAR(self->cache);
    return 0;
}

PyObject *
dispatcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Dispatcher *self = (Dispatcher *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = dispatch;
    }
    return (PyObject *)self;
}

static int
dispatcher_init(Dispatcher *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"func", "config", "on_miss", NULL};
    PyObject *func, *config, *on_miss = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O", names, &func, &config, &on_miss)) {
        return -1;
    }
    return dispatcher_setup(self, func, config, on_miss);
}

int
dispatcher_traverse(Dispatcher *self, visitproc visit, void *arg)
{
    Py_VISIT(self->func);
    Py_VISIT(self->make_code);
    Py_VISIT(self->original);
    if (!self->borrows_config) {
        Py_VISIT(self->config);
    }
    Py_VISIT(self->on_miss);
    Py_VISIT(self->dict);
    Py_VISIT(self->cache);
    for (int i = 0; i < NUM_REPLACEMENTS; i++) {
        Py_VISIT(self->replacements[i].entry);
        Py_VISIT(self->replacements[i].function);
    }
    return 0;
}

int
dispatcher_clear(Dispatcher *self)
{
    Py_CLEAR(self->func);
    Py_CLEAR(self->make_code);
    Py_CLEAR(self->original);
    dispatcher_leave(self);
    Py_CLEAR(self->on_miss);
    Py_CLEAR(self->dict);
    dispatcher_forget(self);
    return 0;
}

void
dispatcher_dealloc(Dispatcher *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    dispatcher_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
dispatcher_get(PyObject *self, PyObject *obj, PyObject *type)
{
    if (obj == NULL || obj == Py_None) {
        return Py_NewRef(self);
    }
    return PyMethod_New(self, obj);
}

/* Anything that the dispatcher has not is looked up on the function. */
static PyObject *
dispatcher_getattro(Dispatcher *self, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr((PyObject *)self, name);
    if (value == NULL && self->func != NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        value = PyObject_GetAttr((PyObject *)self->func, name);
    }
    return value;
}

/* What makes the function what it is, is the function's own; all else is set on the dispatcher. */
static int
dispatcher_setattro(Dispatcher *self, PyObject *name, PyObject *value)
{
    static const char *const own[] = {"__code__", "__defaults__", "__kwdefaults__"};
    for (size_t i = 0; self->func != NULL && PyUnicode_Check(name) && i < sizeof(own) / sizeof(own[0]); i++) {
        if (PyUnicode_CompareWithASCIIString(name, own[i]) == 0) {
            return PyObject_SetAttr((PyObject *)self->func, name, value);
        }
    }
    return PyObject_GenericSetAttr((PyObject *)self, name, value);
}

static PyObject *
dispatcher_repr(Dispatcher *self)
{
    if (self->func == NULL) {
        return PyUnicode_FromString("<compiled function>");
    }
    return PyUnicode_FromFormat("<compiled %S at %p>", self->func->func_qualname, self);
}

static PyObject *
dispatcher_reduce(PyObject *self, PyObject *unused)
{
    PyObject *config = (PyObject *)((Dispatcher *)self)->config;
    if (config != NULL && PyObject_HasAttrString(config, "reduce")) {
        return PyObject_CallMethod(config, "reduce", "O", self);
    }
    return PyObject_GetAttrString(self, "__qualname__"); /* pickled by reference */
}

/* Copied as functions are. */
static PyObject *
dispatcher_copy(PyObject *self, PyObject *unused)
{
    return Py_NewRef(self);
}

/* __name__ and friends: the dispatcher's own if set, else the function's. */
static PyObject *
get_special(Dispatcher *self, void *name)
{
    if (self->dict != NULL) {
        PyObject *value = PyDict_GetItemString(self->dict, name);
        if (value != NULL) {
            return Py_NewRef(value);
        }
    }
    if (self->func == NULL) {
        Py_RETURN_NONE;
    }
    if (strcmp(name, "__wrapped__") == 0) {
        return Py_NewRef((PyObject *)self->func);
    }
    return PyObject_GetAttrString((PyObject *)self->func, name);
}

static int
set_special(Dispatcher *self, PyObject *value, void *name)
{
    if (self->dict == NULL && (self->dict = PyDict_New()) == NULL) {
        return -1;
    }
    return value == NULL ? PyDict_DelItemString(self->dict, name) : PyDict_SetItemString(self->dict, name, value);
}

#define SPECIAL(name) {name, (getter)get_special, (setter)set_special, NULL, name}
static PyGetSetDef getset[] = {
    SPECIAL("__name__"), SPECIAL("__qualname__"), SPECIAL("__doc__"), SPECIAL("__module__"), SPECIAL("__wrapped__"),
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

static PyMemberDef members[] = {
    {"config", T_OBJECT, offsetof(Dispatcher, config), READONLY, NULL},
    {"_function", T_OBJECT, offsetof(Dispatcher, func), READONLY, NULL}, /* functools.wraps sets __wrapped__ */
    {NULL},
};

static PyMethodDef methods[] = {
    {"__reduce__", dispatcher_reduce, METH_NOARGS, NULL},
    {"__copy__", dispatcher_copy, METH_NOARGS, NULL},
    {"__deepcopy__", dispatcher_copy, METH_O, NULL},
    {NULL},
};

PyTypeObject Dispatcher_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.Dispatcher",
    .tp_basicsize = sizeof(Dispatcher),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR
        | Py_TPFLAGS_BASETYPE,
    .tp_new = dispatcher_new,
    .tp_init = (initproc)dispatcher_init,
    .tp_dealloc = (destructor)dispatcher_dealloc,
    .tp_traverse = (traverseproc)dispatcher_traverse,
    .tp_clear = (inquiry)dispatcher_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Dispatcher, vectorcall),
    .tp_descr_get = dispatcher_get,
    .tp_getattro = (getattrofunc)dispatcher_getattro,
    .tp_setattro = (setattrofunc)dispatcher_setattro,
    .tp_repr = (reprfunc)dispatcher_repr,
    .tp_dictoffset = offsetof(Dispatcher, dict),
    .tp_weaklistoffset = offsetof(Dispatcher, weakrefs),
    .tp_getset = getset,
    .tp_members = members,
    .tp_methods = methods,
};
