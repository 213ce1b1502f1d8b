/* Entries, the entries of one code object under one config, and the config that owns them.
 *
 * Ownership: HookConfig -> CodeCache -> (code, entries). A code object's co_extra only points back to its
 * caches, so that everything is visible to the garbage collector and goes when its config goes. */
#include "hook.h"

Py_ssize_t extra_index = -1;
static uint64_t hit_clock = 0;

/* -- code extras ----------------------------------------------------------------------------- */
CodeExtra *
code_extra(PyObject *code, bool create)
{
    void *value = NULL;
    if (code_extra_get(code, extra_index, &value) < 0) {
        PyErr_Clear();
        return NULL;
    }
    if (value != NULL || !create) {
        return value;
    }
    CodeExtra *extra = PyMem_RawCalloc(1, sizeof(CodeExtra));
    if (extra == NULL) {
        return NULL;
    }
    if (code_extra_set(code, extra_index, extra) < 0) {
        PyErr_Clear();
        PyMem_RawFree(extra);
        return NULL;
    }
    return extra;
}

static void
extra_remove(PyObject *code, CodeCache *cache)
{
    CodeExtra *extra = code_extra(code, false);
    for (int i = 0; extra != NULL && i < extra->size; i++) {
        if (extra->caches[i] == cache) {
            extra->caches[i] = extra->caches[--extra->size];
            return;
        }
    }
}

static int
extra_add(PyObject *code, CodeCache *cache)
{
    CodeExtra *extra = code_extra(code, true);
    if (extra != NULL && extra->size == extra->capacity) {
        int capacity = extra->capacity * 2 + 1;
        CodeCache **grown = PyMem_RawRealloc(extra->caches, (size_t)capacity * sizeof(CodeCache *));
        if (grown == NULL) {
            extra = NULL;
        }
        else {
            extra->caches = grown;
            extra->capacity = capacity;
        }
    }
    if (extra == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    extra->caches[extra->size++] = cache;
    return 0;
}

/* -- CodeCache ------------------------------------------------------------------------------- */
static void
cache_drop_entries(CodeCache *cache)
{
    Entry **entries = cache->entries;
    Py_ssize_t n = cache->size;
    cache->entries = NULL;
    cache->size = cache->capacity = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_DECREF(entries[i]);
    }
    PyMem_Free(entries);
}

static int
cache_traverse(CodeCache *self, visitproc visit, void *arg)
{
    Py_VISIT(self->code);
    for (Py_ssize_t i = 0; i < self->size; i++) {
        Py_VISIT(self->entries[i]);
    }
    return 0;
}

static void
cache_detach(CodeCache *self)
{
    if (self->config != NULL) {
        self->config = NULL;
        extra_remove((PyObject *)self->code, self);
    }
}

static int
cache_clear(CodeCache *self)
{
    cache_detach(self);
    cache_drop_entries(self);
    return 0;
}

static void
cache_dealloc(CodeCache *self)
{
    PyObject_GC_UnTrack(self);
    cache_clear(self);
    Py_XDECREF(self->code);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

PyTypeObject CodeCache_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.capture._hook.CodeCache",
    .tp_basicsize = sizeof(CodeCache),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)cache_dealloc,
    .tp_traverse = (traverseproc)cache_traverse,
    .tp_clear = (inquiry)cache_clear,
};

CodeCache *
cache_find(PyObject *code, HookConfig *config)
{
    CodeExtra *extra = code_extra(code, false);
    for (int i = 0; extra != NULL && i < extra->size; i++) {
        if (extra->caches[i]->config == config) {
            return extra->caches[i];
        }
    }
    return NULL;
}

CodeCache *
cache_obtain(PyObject *code, HookConfig *config)
{
    CodeCache *cache = cache_find(code, config);
    if (cache != NULL) {
        return (CodeCache *)Py_NewRef((PyObject *)cache);
    }
    cache = (CodeCache *)CodeCache_Type.tp_alloc(&CodeCache_Type, 0);
    PyObject *key = PyLong_FromVoidPtr(code);
    if (cache == NULL || key == NULL) {
        Py_XDECREF(cache);
        Py_XDECREF(key);
        return NULL;
    }
    cache->code = (PyCodeObject *)Py_NewRef(code);
    int bad = config->caches == NULL || PyDict_SetItem(config->caches, key, (PyObject *)cache) < 0;
    Py_DECREF(key);
    if (!bad) {
        bad = extra_add(code, cache) < 0;
    }
    if (bad) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_RuntimeError, "the config is being destroyed");
        }
        Py_DECREF(cache);
        return NULL;
    }
    cache->config = config;
    return cache;
}

bool
code_compatible(PyCodeObject *original, PyCodeObject *replacement, bool raise)
{
    const int flags = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
        | CO_OPTIMIZED | CO_NEWLOCALS;
    bool same = original->co_argcount == replacement->co_argcount
        && original->co_posonlyargcount == replacement->co_posonlyargcount
        && original->co_kwonlyargcount == replacement->co_kwonlyargcount
        && (original->co_flags & flags) == (replacement->co_flags & flags)
        && original->co_nfreevars == replacement->co_nfreevars;
    int nfree = original->co_nfreevars;
    for (int i = 1; same && i <= nfree; i++) { /* free variables come last */
        same = PyUnicode_Compare(
                   PyTuple_GET_ITEM(original->co_localsplusnames, original->co_nlocalsplus - i),
                   PyTuple_GET_ITEM(replacement->co_localsplusnames, replacement->co_nlocalsplus - i)) == 0;
    }
    int nargs = original->co_argcount + original->co_kwonlyargcount;
    for (int i = 0; same && i < nargs; i++) {
        same = PyUnicode_Compare(PyTuple_GET_ITEM(original->co_localsplusnames, i),
                                 PyTuple_GET_ITEM(replacement->co_localsplusnames, i)) == 0;
    }
    if (!same && raise) {
        PyErr_Format(PyExc_ValueError,
                     "the replacement of %U must have the same arguments, kind and free variables",
                     original->co_qualname);
    }
    return same;
}

/* Entries are sorted by rank, and among equals by the last hit: one that broke early does not hide one that
   captured everything, whichever was hit last. */
static inline void
move_to_front(CodeCache *cache, Py_ssize_t i, Entry *entry)
{
    if (i > 0 && i < cache->size && cache->entries[i] == entry) {
        while (i > 0 && cache->entries[i - 1]->rank >= entry->rank) {
            cache->entries[i] = cache->entries[i - 1];
            i--;
        }
        cache->entries[i] = entry;
    }
}

int
cache_append(CodeCache *cache, Entry *entry)
{
    for (Py_ssize_t i = 0; i < cache->size; i++) {
        if (cache->entries[i] == entry) {
            return 0;
        }
    }
    if (entry->code != NULL) {
        if (!code_compatible(cache->code, (PyCodeObject *)entry->code, true)) {
            return -1;
        }
        code_reserve_frame(cache->code, (PyCodeObject *)entry->code);
    }
    if (cache->size == cache->capacity) {
        Py_ssize_t capacity = cache->capacity * 2 + 2;
        Entry **grown = PyMem_Realloc(cache->entries, (size_t)capacity * sizeof(Entry *));
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        cache->entries = grown;
        cache->capacity = capacity;
    }
    cache->entries[cache->size++] = (Entry *)Py_NewRef((PyObject *)entry);
    entry->last_hit = ++hit_clock;
    move_to_front(cache, cache->size - 1, entry);
    return 0;
}

bool
cache_drop(CodeCache *cache, Entry *entry)
{
    for (Py_ssize_t i = 0; i < cache->size; i++) {
        if (cache->entries[i] == entry) {
            cache->size--;
            memmove(cache->entries + i, cache->entries + i + 1, (size_t)(cache->size - i) * sizeof(Entry *));
            Py_DECREF(entry);
            return true;
        }
    }
    return false;
}

Py_ssize_t
code_num_entries(PyObject *code)
{
    CodeExtra *extra = code_extra(code, false);
    Py_ssize_t total = 0;
    for (int i = 0; extra != NULL && i < extra->size; i++) {
        total += extra->caches[i]->size;
    }
    return total;
}

void
hit_release(Hit *hit)
{
    release_registers(hit->registers, hit->filled);
    hit->filled = 0;
    PyMem_Free(hit->heap);
    hit->heap = NULL;
    Py_CLEAR(hit->entry);
}

/* Whether the entry's guards hold; fills `hit` (to be released) if so. -1: out of memory. */
static int
try_entry(Entry *entry, const GuardEnv *env, Hit *hit)
{
    GuardProgram *guards = entry->guards;
    hit->entry = (Entry *)Py_NewRef((PyObject *)entry);
    hit->registers = hit->stack;
    hit->heap = NULL;
    hit->filled = 0;
    if (guards == NULL) {
        return 1;
    }
    if (guards->num_registers > STACK_REGISTERS) {
        hit->heap = PyMem_Malloc((size_t)guards->num_registers * sizeof(PyObject *));
        if (hit->heap == NULL) {
            Py_CLEAR(hit->entry);
            PyErr_NoMemory();
            return -1;
        }
        hit->registers = hit->heap;
    }
    if (guard_run(guards, env, hit->registers, &hit->filled) < 0) {
        return 1;
    }
    hit_release(hit);
    return 0;
}

int
cache_lookup(CodeCache *cache, const GuardEnv *env, Hit *hit)
{
    for (Py_ssize_t i = 0; i < cache->size; i++) {
        Entry *entry = cache->entries[i];
        int found = try_entry(entry, env, hit);
        if (found > 0) {
            counters.hits++;
            entry->hits++;
            entry->last_hit = ++hit_clock;
            move_to_front(cache, i, entry);
        }
        if (found != 0) {
            return found;
        }
    }
    return 0;
}

static PyObject *
call_on_miss(PyObject *on_miss, PyFunctionObject *func, const GuardEnv *env, HookConfig *config)
{
    PyObject *bound = PyTuple_New(env->nargs);
    if (bound == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < env->nargs; i++) {
        PyTuple_SET_ITEM(bound, i, Py_NewRef(env->args[i]));
    }
    ThreadState *ts = &thread_state;
    ts->compiling++;
    PyObject *answer = PyObject_CallFunctionObjArgs(on_miss, (PyObject *)func, bound, (PyObject *)config, NULL);
    ts->compiling--;
    Py_DECREF(bound);
    return answer;
}

int
cache_miss(CodeCache *cache, PyObject *on_miss, PyFunctionObject *func, const GuardEnv *env, Hit *hit)
{
    counters.misses++;
    HookConfig *config = cache->config;
    if (on_miss == NULL || on_miss == Py_None || cache->frozen || config == NULL) {
        return 0;
    }
    if (current_stance(&thread_state) == STANCE_EAGER_ON_RECOMPILE && cache->size > 0) {
        return 0;
    }
    Py_INCREF(config);
    Py_INCREF(on_miss);
    PyObject *answer = call_on_miss(on_miss, func, env, config);
    Py_DECREF(on_miss);
    Py_DECREF(config);
    if (answer == NULL) {
        return -1;
    }
    int result = 0;
    if (Py_IS_TYPE(answer, &Entry_Type)) {
        counters.captures++;
        bool kept = ((Entry *)answer)->rank >= 0;
        result = kept ? cache_append(cache, (Entry *)answer) : 0;
        if (result == 0) {
            result = try_entry((Entry *)answer, env, hit);
            counters.fresh_misses += result == 0;
        }
    }
    else if (answer != Py_None) {
        PyErr_Format(PyExc_TypeError, "on_miss returned %s, not an Entry or None", Py_TYPE(answer)->tp_name);
        result = -1;
    }
    Py_DECREF(answer);
    return result;
}

#define SMALL_CALL 24

PyObject *
entry_call_target(Hit *hit, const GuardEnv *env)
{
    Entry *entry = hit->entry;
    int outputs = entry->guards == NULL ? 0 : entry->guards->num_outputs;
    if (entry->num_order < 0 && outputs == 0) {
        return PyObject_Vectorcall(entry->target, env->args, (size_t)env->nargs, NULL);
    }
    int n = entry->num_order < 0 ? outputs : entry->num_order;
    PyObject *small[SMALL_CALL + 1] = {NULL};
    PyObject **values = small;
    if (n > SMALL_CALL) {
        values = PyMem_Malloc(((size_t)n + 1) * sizeof(PyObject *));
        if (values == NULL) {
            return PyErr_NoMemory();
        }
    }
    for (int k = 0; k < n; k++) {
        int from = entry->num_order < 0 ? -1 - k : entry->order[k];
        if (from >= env->nargs || -1 - from >= outputs) {
            PyErr_SetString(PyExc_SystemError, "arg_order names an argument or output that does not exist");
            if (values != small) {
                PyMem_Free(values);
            }
            return NULL;
        }
        values[k + 1] = from >= 0 ? env->args[from] : hit->registers[entry->guards->outputs[-1 - from]];
    }
    PyObject *result
        = PyObject_Vectorcall(entry->target, values + 1, (size_t)n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (values != small) {
        PyMem_Free(values);
    }
    return result;
}

/* -- HookConfig ------------------------------------------------------------------------------ */
static PyObject *all_configs = NULL; /* dict: address -> address, of the configs that are alive */

static int
config_init(HookConfig *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"on_miss", "should_capture", NULL};
    PyObject *on_miss = Py_None, *should_capture = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", names, &on_miss, &should_capture)) {
        return -1;
    }
    Py_XSETREF(self->on_miss, Py_NewRef(on_miss));
    Py_XSETREF(self->should_capture, Py_NewRef(should_capture));
    return 0;
}

static PyObject *
config_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    HookConfig *self = (HookConfig *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->on_miss = Py_NewRef(Py_None);
    self->should_capture = Py_NewRef(Py_None);
    self->caches = PyDict_New();
    PyObject *key = PyLong_FromVoidPtr(self);
    if (all_configs == NULL) {
        all_configs = PyDict_New();
    }
    if (self->caches == NULL || key == NULL || all_configs == NULL || PyDict_SetItem(all_configs, key, key) < 0) {
        Py_CLEAR(self);
    }
    Py_XDECREF(key);
    return (PyObject *)self;
}

static int
config_traverse(HookConfig *self, visitproc visit, void *arg)
{
    Py_VISIT(self->on_miss);
    Py_VISIT(self->should_capture);
    Py_VISIT(self->caches);
    return 0;
}

/* No code object leads here any more. Runs no user code. */
static void
config_detach(HookConfig *self)
{
    PyObject *key, *cache;
    Py_ssize_t position = 0;
    while (self->caches != NULL && PyDict_Next(self->caches, &position, &key, &cache)) {
        cache_detach((CodeCache *)cache);
    }
}

static int
config_clear(HookConfig *self)
{
    config_detach(self);
    Py_CLEAR(self->caches);
    Py_CLEAR(self->on_miss);
    Py_CLEAR(self->should_capture);
    return 0;
}

static void
config_dealloc(HookConfig *self)
{
    PyObject_GC_UnTrack(self);
    config_detach(self);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *key = PyLong_FromVoidPtr(self);
    if (key != NULL && all_configs != NULL) {
        PyDict_DelItem(all_configs, key);
    }
    Py_XDECREF(key);
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    config_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef config_members[] = {
    {"on_miss", T_OBJECT, offsetof(HookConfig, on_miss), 0, "called as on_miss(func, bound_args, config)"},
    {"should_capture", T_OBJECT, offsetof(HookConfig, should_capture), 0, "called as should_capture(code)"},
    {NULL},
};

PyTypeObject HookConfig_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.capture._hook.HookConfig",
    .tp_doc = "Identity of one compile(); owns the entries made under it.",
    .tp_basicsize = sizeof(HookConfig),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_new = config_new,
    .tp_init = (initproc)config_init,
    .tp_dealloc = (destructor)config_dealloc,
    .tp_traverse = (traverseproc)config_traverse,
    .tp_clear = (inquiry)config_clear,
    .tp_members = config_members,
    .tp_weaklistoffset = offsetof(HookConfig, weakrefs),
};

static void
cache_reset(CodeCache *cache)
{
    cache->frozen = cache->skip = false;
    Py_INCREF(cache);
    cache_drop_entries(cache);
    Py_DECREF(cache);
}

int
config_clear_code(HookConfig *config, PyObject *code)
{
    CodeCache *cache = cache_find(code, config);
    if (cache != NULL) {
        cache_reset(cache);
    }
    return 0;
}

static void
config_reset(HookConfig *config)
{
    PyObject *caches = config->caches == NULL ? NULL : PyDict_Values(config->caches);
    for (Py_ssize_t i = 0; caches != NULL && i < PyList_GET_SIZE(caches); i++) {
        cache_reset((CodeCache *)PyList_GET_ITEM(caches, i));
    }
    Py_XDECREF(caches);
}

PyObject *
config_entries(HookConfig *config)
{
    PyObject *found = PyList_New(0), *key, *value;
    Py_ssize_t position = 0;
    while (found != NULL && config->caches != NULL && PyDict_Next(config->caches, &position, &key, &value)) {
        CodeCache *cache = (CodeCache *)value;
        PyObject *entries = PyList_New(cache->size);
        for (Py_ssize_t i = 0; entries != NULL && i < cache->size; i++) {
            PyList_SET_ITEM(entries, i, Py_NewRef((PyObject *)cache->entries[i]));
        }
        PyObject *pair = entries == NULL ? NULL : PyTuple_Pack(2, (PyObject *)cache->code, entries);
        if (pair == NULL || PyList_Append(found, pair) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(entries);
        Py_XDECREF(pair);
    }
    return found;
}

int
clear_all_configs(void)
{
    PyObject *alive = all_configs == NULL ? NULL : PyDict_Keys(all_configs);
    if (alive == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(alive); i++) {
        PyObject *key = PyList_GET_ITEM(alive, i);
        if (PyDict_Contains(all_configs, key) != 1) {
            continue; /* destroyed by a destructor that ran meanwhile */
        }
        HookConfig *config = PyLong_AsVoidPtr(key);
        if (Py_REFCNT(config) == 0) {
            continue; /* being destroyed: a destructor brought us here */
        }
        Py_INCREF(config);
        config_reset(config);
        Py_DECREF(config);
    }
    Py_DECREF(alive);
    return PyErr_Occurred() ? -1 : 0;
}
