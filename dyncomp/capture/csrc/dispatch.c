/* The compiled function as users hold it: a C callable that checks guards and runs an entry.
 *
 * On a hit no Python code runs in between, and the frame hook is installed only for entries that ask. */
#include "bind.h"

#define NUM_REPLACEMENTS 4

typedef struct {
    Entry *entry;               /* strong, compared by identity */
    PyFunctionObject *function; /* the entry's code with the dispatcher's globals and closure */
} Replacement;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyFunctionObject *func;
    HookConfig *config;
    PyObject *on_miss; /* or NULL: the config's */
    PyObject *dict;
    PyObject *weakrefs;
    CodeCache *cache; /* of func's code, or NULL */
    Replacement replacements[NUM_REPLACEMENTS];
    int next_replacement;
} Dispatcher;

/* -- running --------------------------------------------------------------------------------- */
/* A Python function called from C; see c_recursion_refund. The stack was checked by the caller. */
static inline PyObject *
call_function(PyFunctionObject *function, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyThreadState *tstate = PyThreadState_GET();
    c_recursion_refund(tstate, C_RECURSION_PER_CALL);
    PyObject *result = function->vectorcall((PyObject *)function, args, nargsf, kwnames);
    c_recursion_refund(tstate, -C_RECURSION_PER_CALL);
    return result;
}

/* The original; if the frame hook is on, it leaves this frame alone. */
static PyObject *
call_original(Dispatcher *self, ThreadState *ts, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyFunctionObject *func = self->func;
    Py_INCREF(func);
    if (ts->active != NULL) {
        ts->bypass = (PyCodeObject *)func->func_code;
    }
    PyObject *result = call_function(func, args, nargsf, kwnames);
    ts->bypass = NULL;
    Py_DECREF(func);
    return result;
}

/* Debuggers, profilers and monitoring tools see the original. */
static inline bool
is_watched(PyFunctionObject *func)
{
    return is_traced(PyThreadState_GET()) || is_monitored((PyCodeObject *)func->func_code);
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
    if (hit->entry->code == NULL) {
        hit_release(hit);
        return call_original(self, ts, args, nargsf, kwnames);
    }
    PyFunctionObject *function = replacement_function(self, hit->entry);
    hit_release(hit);
    if (function == NULL) {
        return NULL;
    }
    PyObject *result = call_function(function, args, nargsf, kwnames);
    Py_DECREF(function);
    if (result == NULL) {
        strip_transfers();
    }
    return result;
}

static PyObject *
run_entry(Dispatcher *self, ThreadState *ts, Hit *hit, const GuardEnv *env, PyObject *const *args, size_t nargsf,
          PyObject *kwnames)
{
    Entry *entry = hit->entry;
    bool needs_hook = entry->needs_hook;
    HookConfig *previous = needs_hook ? activate(ts, self->config) : NULL;
    PyObject *result;
    if (entry->target != NULL) {
        result = entry_call_target(hit, env);
        hit_release(hit);
    }
    else {
        result = run_python(self, ts, hit, args, nargsf, kwnames);
    }
    if (needs_hook) {
        reactivate(ts, previous);
    }
    return result;
}

static PyObject *
on_miss_of(Dispatcher *self)
{
    return self->on_miss != NULL ? self->on_miss : self->config->on_miss;
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
    int found = cache_lookup(cache, env, &hit);
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
    return run_entry(self, ts, &hit, env, args, nargsf, kwnames);
}

static PyObject *
dispatch(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Dispatcher *self = (Dispatcher *)callable;
    ThreadState *ts = &thread_state;
    if (self->func == NULL || self->config == NULL) { /* also after a collection */
        PyErr_SetString(PyExc_RuntimeError, "the compiled function is not initialised");
        return NULL;
    }
    if (!stack_ok(ts)) {
        return NULL;
    }
    if (ts->compiling || current_stance(ts) == STANCE_FORCE_EAGER || is_watched(self->func)) {
        return call_original(self, ts, args, nargsf, kwnames);
    }
    /* what runs may drop the last reference to us, or give us another function */
    Py_INCREF(self);
    PyFunctionObject *func = (PyFunctionObject *)Py_NewRef((PyObject *)self->func);
    CodeCache *cache = current_cache(self);
    PyObject *result = NULL;
    Bound bound;
    if (cache == NULL) {
        /* out of memory */
    }
    else if (cache->skip || !bind(func, args, PyVectorcall_NARGS(nargsf), kwnames, &bound)) {
        counters.fallbacks++;
        result = call_original(self, ts, args, nargsf, kwnames);
    }
    else {
        GuardEnv env = {.args = bound.args, .nargs = bound.n, .globals = func->func_globals,
                        .builtins = func->func_builtins, .closure = func->func_closure};
        result = dispatch_bound(self, ts, func, cache, &env, args, nargsf, kwnames);
        bound_release(&bound);
    }
    Py_XDECREF(cache);
    Py_DECREF(func);
    Py_DECREF(self);
    return result;
}

/* -- the object ------------------------------------------------------------------------------ */
static int
dispatcher_setup(Dispatcher *self, PyObject *func, PyObject *config, PyObject *on_miss)
{
    if (!PyFunction_Check(func)) {
        PyErr_Format(PyExc_TypeError, "func must be a Python function, not %s", Py_TYPE(func)->tp_name);
        return -1;
    }
    if (!PyObject_TypeCheck(config, &HookConfig_Type)) {
        PyErr_Format(PyExc_TypeError, "config must be a HookConfig, not %s", Py_TYPE(config)->tp_name);
        return -1;
    }
    Py_XSETREF(self->func, (PyFunctionObject *)Py_NewRef(func));
    Py_XSETREF(self->config, (HookConfig *)Py_NewRef(config));
    Py_XSETREF(self->on_miss, on_miss == NULL || on_miss == Py_None ? NULL : Py_NewRef(on_miss));
    Py_CLEAR(self->cache);
    return 0;
}

static PyObject *
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

static int
dispatcher_traverse(Dispatcher *self, visitproc visit, void *arg)
{
    Py_VISIT(self->func);
    Py_VISIT(self->config);
    Py_VISIT(self->on_miss);
    Py_VISIT(self->dict);
    Py_VISIT(self->cache);
    for (int i = 0; i < NUM_REPLACEMENTS; i++) {
        Py_VISIT(self->replacements[i].entry);
        Py_VISIT(self->replacements[i].function);
    }
    return 0;
}

static int
dispatcher_clear(Dispatcher *self)
{
    Py_CLEAR(self->func);
    Py_CLEAR(self->config);
    Py_CLEAR(self->on_miss);
    Py_CLEAR(self->dict);
    Py_CLEAR(self->cache);
    for (int i = 0; i < NUM_REPLACEMENTS; i++) {
        Py_CLEAR(self->replacements[i].entry);
        Py_CLEAR(self->replacements[i].function);
    }
    return 0;
}

static void
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
    return PyObject_GetAttrString(self, "__qualname__"); /* pickled by reference */
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
    SPECIAL("__name__"), SPECIAL("__qualname__"), SPECIAL("__doc__"), SPECIAL("__module__"),
    SPECIAL("__wrapped__"),
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

static PyMemberDef members[] = {
    {"config", T_OBJECT, offsetof(Dispatcher, config), READONLY, NULL},
    {NULL},
};

static PyMethodDef methods[] = {
    {"__reduce__", dispatcher_reduce, METH_NOARGS, NULL},
    {NULL},
};

PyTypeObject Dispatcher_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.capture._hook.Dispatcher",
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
    .tp_setattro = PyObject_GenericSetAttr,
    .tp_repr = (reprfunc)dispatcher_repr,
    .tp_dictoffset = offsetof(Dispatcher, dict),
    .tp_weaklistoffset = offsetof(Dispatcher, weakrefs),
    .tp_getset = getset,
    .tp_members = members,
    .tp_methods = methods,
};

/* -- continuations --------------------------------------------------------------------------- */
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
    static char *names[] = {"code", "globals", "name", "qualname", "config", "on_miss", NULL};
    PyObject *code, *globals, *name, *qualname, *config, *on_miss = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!UUO|O", names, &PyCode_Type, &code, &PyDict_Type, &globals,
                                     &name, &qualname, &config, &on_miss)) {
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
    int result = dispatcher_setup(self, func, config, on_miss);
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
    PyFunctionObject *template = self->func;
    PyCodeObject *code = (PyCodeObject *)template->func_code;
    bool good = PyTuple_Check(cells) && PyTuple_GET_SIZE(cells) == code->co_nfreevars;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(cells); i++) {
        good = PyCell_Check(PyTuple_GET_ITEM(cells, i));
    }
    if (!good) {
        PyErr_Format(PyExc_TypeError, "%R takes a tuple of %d cells", self, code->co_nfreevars);
        return NULL;
    }
    PyObject *func = function_with_cells((PyObject *)code, template->func_globals, template->func_name,
                                         template->func_qualname, cells);
    PyObject *made = func == NULL ? NULL : dispatcher_new(&Dispatcher_Type, NULL, NULL);
    if (made != NULL && dispatcher_setup((Dispatcher *)made, func, (PyObject *)self->config, self->on_miss) < 0) {
        Py_CLEAR(made);
    }
    Py_XDECREF(func);
    return made;
}

static PyMethodDef resume_methods[] = {
    {"bind", (PyCFunction)resume_bind, METH_O, "bind(cells) -> callable"},
    {NULL},
};

PyTypeObject ResumeFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.capture._hook.ResumeFunction",
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
