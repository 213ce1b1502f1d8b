/* The config of one compile(): it owns the caches made under it. */
#include "hook.h"

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

/* Code objects are unknown to the garbage collector, and those of entries have continuations as constants,
   which have entries in turn: such cycles end here. */
static void
config_drop_entries(HookConfig *self)
{
    PyObject *key, *cache;
    Py_ssize_t position = 0;
    dispatchers_forget(self, true);
    PyObject *caches = self->caches;
    self->caches = NULL;
    while (caches != NULL && PyDict_Next(caches, &position, &key, &cache)) {
        cache_drop_entries((CodeCache *)cache);
    }
    Py_XDECREF(caches);
}

static int
config_clear(HookConfig *self)
{
    config_detach(self);
    config_drop_entries(self);
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
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.HookConfig",
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
    dispatchers_forget(config, false);
    return 0;
}

static void
config_reset(HookConfig *config)
{
    PyObject *caches = config->caches == NULL ? NULL : PyDict_Values(config->caches);
    dispatchers_forget(config, false);
    for (Py_ssize_t i = 0; caches != NULL && i < PyList_GET_SIZE(caches); i++) {
        cache_reset((CodeCache *)PyList_GET_ITEM(caches, i));
    }
    Py_XDECREF(caches);
}

PyObject *
config_entries(HookConfig *config)
{
    PyObject *found = PyList_New(0);
    PyObject *caches = config->caches == NULL ? PyList_New(0) : PyDict_Values(config->caches);
    if (caches == NULL) {
        Py_CLEAR(found);
    }
    for (Py_ssize_t k = 0; found != NULL && k < PyList_GET_SIZE(caches); k++) {
        CodeCache *cache = (CodeCache *)PyList_GET_ITEM(caches, k);
        PyObject *entries = PyList_New(0);
        PyObject *pair = entries == NULL ? NULL : PyTuple_Pack(2, (PyObject *)cache->code, entries);
        if (pair == NULL || cache_list(cache, entries) < 0 || PyList_Append(found, pair) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(entries);
        Py_XDECREF(pair);
    }
    Py_XDECREF(caches);
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
