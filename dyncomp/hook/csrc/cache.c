/* The entries of one code object under one config; config.c has the config that owns them.
 *
 * Ownership: HookConfig -> CodeCache -> (code, entries). A code object's co_extra only points back to its
 * caches, so that everything is visible to the garbage collector and goes when its config goes. */
#include "hook.h"

Py_ssize_t extra_index = -1;
static uint64_t hit_clock = 0;

/* -- code extras ----------------------------------------------------------------------------- */
CodeExtra *
code_extra_make(PyObject *code)
{
    CodeExtra *extra = code_extra(code);
    if (extra != NULL) {
        return extra;
    }
    extra = PyMem_RawCalloc(1, sizeof(CodeExtra));
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

int
code_set_origin(PyObject *code, PyObject *origin, bool piece)
{
    CodeExtra *extra = code == origin ? NULL : code_extra_make(code);
    if (extra == NULL) {
        return code == origin ? 0 : (PyErr_NoMemory(), -1);
    }
    CodeExtra *further = code_extra(origin);
    if (further != NULL && further->origin != NULL) {
        origin = (PyObject *)further->origin;
    }
    if (code != origin) {
        Py_XSETREF(extra->origin, (PyCodeObject *)Py_NewRef(origin));
    }
    extra->piece = piece;
    return 0;
}

static void
extra_remove(PyObject *code, CodeCache *cache)
{
    CodeExtra *extra = code_extra(code);
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
    CodeExtra *extra = code_extra_make(code);
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
void
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

void
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
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.CodeCache",
    .tp_basicsize = sizeof(CodeCache),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)cache_dealloc,
    .tp_traverse = (traverseproc)cache_traverse,
    .tp_clear = (inquiry)cache_clear,
};

CodeCache *
cache_find(PyObject *code, HookConfig *config)
{
    CodeExtra *extra = code_extra(code);
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

/* For profilers: entries of a continuation are pieces of the call that goes on in it. */
void
entry_set_origin(Entry *entry, PyCodeObject *code)
{
    CodeExtra *extra = code_extra((PyObject *)code);
    bool piece = extra != NULL && extra->origin != NULL;
    if (entry->code != NULL && code_set_origin(entry->code, (PyObject *)code, piece) < 0) {
        PyErr_Clear();
    }
}

int
cache_append(CodeCache *cache, Entry *entry)
{
    entry_set_origin(entry, cache->code);
    for (Py_ssize_t i = 0; i < cache->size; i++) {
        if (cache->entries[i] == entry) {
            return 0;
        }
    }
    if (entry->code != NULL) {
        if (!code_compatible(cache->code, (PyCodeObject *)entry->code, true)) {
            return -1;
        }
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
    CodeExtra *extra = code_extra(code);
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
    hit->outputs = NULL;
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
    if (guard_run(guards, env, hit->registers, &hit->filled, &hit->outputs) < 0) {
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

int64_t
clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
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
    PyThreadState *tstate = PyThreadState_GET();
    bool hidden = own_work_begin(ts, tstate);
    PyObject *answer = PyObject_CallFunctionObjArgs(on_miss, (PyObject *)func, bound, (PyObject *)config, NULL);
    own_work_end(ts, tstate, hidden);
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
    if (is_finalizing() || stack_is_deep(&thread_state)) {
        return 0; /* no more room, or no more interpreter, for a capture */
    }
    if (current_stance(&thread_state) == STANCE_EAGER_ON_RECOMPILE && cache->size > 0) {
        return 0;
    }
    Py_INCREF(config);
    Py_INCREF(on_miss);
    hit->missed_at = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    PyObject *answer = call_on_miss(on_miss, func, env, config);
    Py_DECREF(on_miss);
    Py_DECREF(config);
    if (answer == NULL) {
        return -1;
    }
    int result = 0;
    if (Py_IS_TYPE(answer, &Entry_Type)) {
        Entry *entry = (Entry *)answer;
        counters.captures += !entry_waits(entry);
        entry_set_origin(entry, cache->code);
        hit->captures = counters.captures;
        if (entry->rank >= 0) {
            result = cache_append(cache, entry);
        }
        else if (entry->code != NULL && !code_compatible(cache->code, (PyCodeObject *)entry->code, true)) {
            result = -1;
        }
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
        values[k + 1] = from >= 0 ? env->args[from] : hit->registers[output_register(hit->outputs, -1 - from)];
    }
    PyObject *result
        = PyObject_Vectorcall(entry->target, values + 1, (size_t)n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (values != small) {
        PyMem_Free(values);
    }
    return result;
}

/* Making an object may start a collection, which may change any cache: the list is there first. */
int
cache_list(CodeCache *cache, PyObject *entries)
{
    for (Py_ssize_t i = 0; cache != NULL && i < cache->size; i++) {
        if (PyList_Append(entries, (PyObject *)cache->entries[i]) < 0) {
            return -1;
        }
    }
    return 0;
}
