/* dyncomp.hook._hook: the module. The parts are in csrc/. */
#define DYNCOMP_IMPORT_ARRAY
#include "csrc/hook.h"

/* -- functions ------------------------------------------------------------------------------- */
static int
parse_code_config(PyObject *args, const char *format, PyObject **code, PyObject **config)
{
    *config = Py_None;
    if (!PyArg_ParseTuple(args, format, &PyCode_Type, code, config)) {
        return -1;
    }
    if (*config != Py_None && !PyObject_TypeCheck(*config, &HookConfig_Type)) {
        PyErr_SetString(PyExc_TypeError, "config must be a HookConfig or None");
        return -1;
    }
    return 0;
}

static PyObject *
set_active(PyObject *module, PyObject *config)
{
    if (config != Py_None && !PyObject_TypeCheck(config, &HookConfig_Type)) {
        PyErr_SetString(PyExc_TypeError, "config must be a HookConfig or None");
        return NULL;
    }
    HookConfig *previous = activate(&thread_state, config == Py_None ? NULL : (HookConfig *)config);
    return previous == NULL ? Py_NewRef(Py_None) : (PyObject *)previous;
}

static PyObject *
get_active(PyObject *module, PyObject *unused)
{
    HookConfig *active = thread_state.active;
    return Py_NewRef(active == NULL ? Py_None : (PyObject *)active);
}

static PyObject *
cache_entries(PyObject *module, PyObject *args)
{
    PyObject *code, *config;
    if (parse_code_config(args, "O!O", &code, &config) < 0) {
        return NULL;
    }
    PyObject *entries = PyList_New(0);
    CodeCache *cache = config == Py_None ? NULL : cache_find(code, (HookConfig *)config);
    if (entries != NULL && cache_list(cache, entries) < 0) {
        Py_CLEAR(entries);
    }
    return entries;
}

static PyObject *
add_entry(PyObject *module, PyObject *args)
{
    PyObject *code, *config, *entry;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyCode_Type, &code, &HookConfig_Type, &config, &Entry_Type, &entry)) {
        return NULL;
    }
    CodeCache *cache = cache_obtain(code, (HookConfig *)config);
    if (cache == NULL) {
        return NULL;
    }
    int result = cache_append(cache, (Entry *)entry);
    Py_DECREF(cache);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
drop_entry(PyObject *module, PyObject *args)
{
    PyObject *code, *config, *entry;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyCode_Type, &code, &HookConfig_Type, &config, &Entry_Type, &entry)) {
        return NULL;
    }
    CodeCache *cache = cache_find(code, (HookConfig *)config);
    return PyBool_FromLong(cache != NULL && cache_drop(cache, (Entry *)entry));
}

static PyObject *
all_entries(PyObject *module, PyObject *config)
{
    if (!PyObject_TypeCheck(config, &HookConfig_Type)) {
        PyErr_SetString(PyExc_TypeError, "config must be a HookConfig");
        return NULL;
    }
    return config_entries((HookConfig *)config);
}

static PyObject *
num_entries(PyObject *module, PyObject *code)
{
    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "num_entries takes a code object");
        return NULL;
    }
    return PyLong_FromSsize_t(code_num_entries(code));
}

static PyObject *
waited(PyObject *module, PyObject *args)
{
    PyObject *code, *config;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &HookConfig_Type, &config)) {
        return NULL;
    }
    CodeCache *cache = cache_find(code, (HookConfig *)config);
    return PyLong_FromLongLong(cache == NULL ? 0 : cache->waited);
}

static PyObject *
set_stance(PyObject *module, PyObject *args)
{
    int number, for_thread;
    if (!PyArg_ParseTuple(args, "ip", &number, &for_thread)) {
        return NULL;
    }
    if (number < (for_thread ? -1 : 0) || number >= NUM_STANCES) {
        PyErr_SetString(PyExc_ValueError, "no such stance");
        return NULL;
    }
    ThreadState *ts = &thread_state;
    int previous = for_thread ? ts->stance - 1 : process_stance;
    if (for_thread) {
        ts->stance = number + 1;
    }
    else {
        process_stance = number;
    }
    return PyLong_FromLong(previous);
}

static PyObject *
get_stance(PyObject *module, PyObject *unused)
{
    return PyLong_FromLong(current_stance(&thread_state));
}

static int
mark_hook(PyObject *code, const char *what)
{
    CodeExtra *extra = code_extra_make(code);
    if (extra == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    bool disabled = what != NULL && strcmp(what, "disable") == 0;
    bool alone = what != NULL && strcmp(what, "alone") == 0;
    if (what != NULL && !disabled && !alone && strcmp(what, "skip") != 0) {
        PyErr_SetString(PyExc_ValueError, "without a config a mark is \"skip\", \"disable\", \"alone\" or None");
        return -1;
    }
    extra->skip = what != NULL;
    extra->disabled = disabled;
    extra->alone = alone;
    if (what == NULL) {
        extra->asked = false;
    }
    return 0;
}

static int
mark_cache(PyObject *code, HookConfig *config, const char *what)
{
    if (what != NULL && strcmp(what, "skip") != 0 && strcmp(what, "frozen") != 0) {
        PyErr_SetString(PyExc_ValueError, "a mark is \"skip\", \"frozen\" or None");
        return -1;
    }
    CodeCache *cache = cache_obtain(code, config);
    if (cache == NULL) {
        return -1;
    }
    cache->skip = what != NULL && strcmp(what, "skip") == 0;
    cache->frozen = what != NULL && strcmp(what, "frozen") == 0;
    Py_DECREF(cache);
    return 0;
}

static PyObject *
mark(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "what", "config", NULL};
    PyObject *code, *config = Py_None;
    const char *what;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!z|O", names, &PyCode_Type, &code, &what, &config)) {
        return NULL;
    }
    if (config != Py_None && !PyObject_TypeCheck(config, &HookConfig_Type)) {
        PyErr_SetString(PyExc_TypeError, "config must be a HookConfig or None");
        return NULL;
    }
    int result = config == Py_None ? mark_hook(code, what) : mark_cache(code, (HookConfig *)config, what);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
get_mark(PyObject *module, PyObject *args)
{
    PyObject *code, *config;
    if (parse_code_config(args, "O!|O", &code, &config) < 0) {
        return NULL;
    }
    const char *what = NULL;
    if (config == Py_None) {
        CodeExtra *extra = code_extra(code);
        if (extra != NULL && extra->skip) {
            what = extra->alone ? "alone" : extra->disabled ? "disable" : "skip";
        }
    }
    else {
        CodeCache *cache = cache_find(code, (HookConfig *)config);
        what = cache == NULL ? NULL : cache->skip ? "skip" : cache->frozen ? "frozen" : NULL;
    }
    return what == NULL ? Py_NewRef(Py_None) : PyUnicode_FromString(what);
}

static PyObject *
clear(PyObject *module, PyObject *args)
{
    PyObject *code, *config;
    if (parse_code_config(args, "O!|O", &code, &config) < 0) {
        return NULL;
    }
    if (config != Py_None) {
        config_clear_code((HookConfig *)config, code);
        Py_RETURN_NONE;
    }
    CodeExtra *extra = code_extra(code);
    for (int i = 0; extra != NULL && i < extra->size; i++) {
        HookConfig *owner = extra->caches[i]->config;
        if (Py_REFCNT(owner) == 0) {
            continue; /* being destroyed: a destructor brought us here */
        }
        Py_INCREF(owner);
        config_clear_code(owner, code);
        Py_DECREF(owner);
        extra = code_extra(code);
    }
    Py_RETURN_NONE;
}

static PyObject *
clear_all(PyObject *module, PyObject *unused)
{
    return clear_all_configs() < 0 ? NULL : Py_NewRef(Py_None);
}

#define COUNTER(name) #name, (unsigned long long)counters.name
static PyObject *
stats(PyObject *module, PyObject *unused)
{
    return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsK}", COUNTER(hits), COUNTER(misses), COUNTER(frames_seen),
                         COUNTER(skipped), COUNTER(captures), COUNTER(fresh_misses), COUNTER(fallbacks),
                         COUNTER(patched), COUNTER(vectorcalled), COUNTER(deep));
}

static PyObject *
reset_stats(PyObject *module, PyObject *unused)
{
    counters = (Counters){0};
    Py_RETURN_NONE;
}

static PyObject *
attr_kind(PyObject *module, PyObject *args)
{
    PyObject *obj, *name;
    if (!PyArg_ParseTuple(args, "OU", &obj, &name)) {
        return NULL;
    }
    if (!PyUnicode_CheckExact(name)) {
        PyErr_SetString(PyExc_TypeError, "name must be a str");
        return NULL;
    }
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    const char *kind = access_kind(obj, name);
    Py_DECREF(name);
    return PyUnicode_FromString(kind);
}

static PyObject *
hook_installed(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(hook_is_installed());
}

static PyObject *
errstate(PyObject *module, PyObject *unused)
{
    long mask = errstate_read();
    return mask < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(mask);
}

/* What reading a variable of one's own that is shared with inner functions does where it has no value. */
static PyObject *
check_cell(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyCell_Check(args[0]) || !PyUnicode_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "check_cell takes a cell and a name");
        return NULL;
    }
    if (PyCell_GET(args[0]) == NULL) {
        PyErr_Format(PyExc_UnboundLocalError,
                     "cannot access local variable '%U' where it is not associated with a value", args[1]);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Whether something runs when an object goes: a finalizer, or the callback of a weak reference to it. */
static PyObject *
notices_end(PyObject *module, PyObject *obj)
{
    PyTypeObject *cls = Py_TYPE(obj);
    if (cls->tp_finalize != NULL || cls->tp_del != NULL) {
        Py_RETURN_TRUE;
    }
    if (PyType_Check(obj) || !PyType_SUPPORTS_WEAKREFS(cls)) {
        Py_RETURN_FALSE;
    }
    PyWeakReference *reference = *(PyWeakReference **)PyObject_GET_WEAKREFS_LISTPTR(obj);
    while (reference != NULL && reference->wr_callback == NULL) {
        reference = reference->wr_next;
    }
    return PyBool_FromLong(reference != NULL);
}

/* Whether looking up names runs no code of the program: in a dict, or in a class and its bases. */
static PyObject *
has_plain_names(PyObject *module, PyObject *obj)
{
    bool plain = PyType_Check(obj) ? class_names_are_plain((PyTypeObject *)obj) : names_are_plain(obj);
    return PyBool_FromLong(plain);
}

static PyObject *
set_origin(PyObject *module, PyObject *args)
{
    PyObject *code, *origin;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &PyCode_Type, &origin)
        || code_set_origin(code, origin, true) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
set_profiled_as_written(PyObject *module, PyObject *value)
{
    int truth = PyObject_IsTrue(value);
    if (truth < 0) {
        return NULL;
    }
    bool previous = profiled_as_written;
    profiled_as_written = truth != 0;
    return PyBool_FromLong(previous);
}

static PyMethodDef functions[] = {
    {"set_active", set_active, METH_O, "set_active(config or None) -> what was active in this thread"},
    {"get_active", get_active, METH_NOARGS, "get_active() -> config or None"},
    {"cache_entries", cache_entries, METH_VARARGS, "cache_entries(code, config) -> list of entries"},
    {"add_entry", add_entry, METH_VARARGS, "add_entry(code, config, entry)"},
    {"drop_entry", drop_entry, METH_VARARGS, "drop_entry(code, config, entry) -> whether it was there"},
    {"all_entries", all_entries, METH_O, "all_entries(config) -> list of (code, entries)"},
    {"num_entries", num_entries, METH_O, "num_entries(code) -> entries of all configs"},
    {"waited", waited, METH_VARARGS, "waited(code, config) -> nanoseconds of calls that waited with their capture"},
    {"set_stance", set_stance, METH_VARARGS,
     "set_stance(number, for_thread) -> previous; -1: this thread is as the process"},
    {"get_stance", get_stance, METH_NOARGS, "get_stance() -> number"},
    {"mark", (PyCFunction)(void (*)(void))mark, METH_VARARGS | METH_KEYWORDS, "mark(code, what, config=None)"},
    {"get_mark", get_mark, METH_VARARGS, "get_mark(code, config=None) -> str or None"},
    {"clear", clear, METH_VARARGS, "clear(code, config=None)"},
    {"clear_all", clear_all, METH_NOARGS, "clear_all()"},
    {"stats", stats, METH_NOARGS, "stats() -> dict of counters"},
    {"spans_begin", spans_begin, METH_O, "spans_begin(limit): record calls from now on, at most so many"},
    {"spans_end", spans_end, METH_NOARGS, "record no more"},
    {"spans_take", spans_take, METH_NOARGS, "what was recorded, and how many there was no room for"},
    {"reset_stats", reset_stats, METH_NOARGS, "reset_stats()"},
    {"attr_kind", attr_kind, METH_VARARGS, "attr_kind(obj, name) -> str"},
    {"hook_installed", hook_installed, METH_NOARGS, "hook_installed() -> bool"},
    {"later", (PyCFunction)(void (*)(void))tail_later, METH_FASTCALL, "later(function, *args) -> a call to return"},
    {"run", tail_run, METH_O, "run(what later gave) -> its result"},
    {"check_cell", (PyCFunction)(void (*)(void))check_cell, METH_FASTCALL, "check_cell(cell, name)"},
    {"instantiate", (PyCFunction)(void (*)(void))instructions_instantiate, METH_FASTCALL,
     "instantiate(made, instructions, tokens, places, variables, local, Instr, no place)"},
    {"insert", (PyCFunction)(void (*)(void))instructions_insert, METH_FASTCALL,
     "insert(instructions, after, without, jumps, Instr) -> instructions, where the old ones begin"},
    {"assemble", instructions_assemble, METH_VARARGS,
     "assemble(instructions, places, first line, merge, tables) -> code, location table, places in code units"},
    {"notices_end", notices_end, METH_O, "notices_end(obj) -> bool"},
    {"has_plain_names", has_plain_names, METH_O, "has_plain_names(dict or class) -> bool"},
    {"text_of", loop_text_of, METH_O, "text_of(str or bytes) -> size of a character, address, length"},
    {"set_origin", set_origin, METH_VARARGS, "set_origin(code, original): the code carries on calls of the original"},
    {"set_profiled_as_written", set_profiled_as_written, METH_O, "set_profiled_as_written(bool) -> previous"},
    {"set_tensor_view", tensor_view_set, METH_VARARGS,
     "set_tensor_view(type, address): the function that reads tensors of a type, as one of DLPack's exchange table"},
    {"set_foreign_modules", foreign_set, METH_O, "set_foreign_modules(names): modules of other compilers"},
    {"show_get", foreign_show_get, METH_O, "show_get(function): what is seen as __get__ of compiled functions"},
    {"errstate", errstate, METH_NOARGS, "errstate() -> int or None"},
    {"reported", (PyCFunction)(void (*)(void))reports_of, METH_FASTCALL, "reported(function, note) -> callable"},
    {NULL},
};

/* -- module ---------------------------------------------------------------------------------- */
static void
release_extra(void *value)
{
    CodeExtra *extra = value;
    if (extra != NULL) {
        PyMem_RawFree(extra->caches);
        Py_XDECREF(extra->origin);
        PyMem_RawFree(extra);
    }
}

static int
add_types(PyObject *module)
{
    static PyTypeObject *const types[] = {&GuardProgram_Type, &Entry_Type,         &CodeCache_Type,
                                          &HookConfig_Type,   &Dispatcher_Type, &ResumeFunction_Type,
                                          &TailCall_Type,      &Ticks_Type,         &LoopPlan_Type,
                                          &LoopGate_Type,      &Reporter_Type,     &ReportedCall_Type};
#if PY_VERSION_HEX >= 0x030C0000
    if (PyType_Ready(&Relay_Type) < 0) {
        return -1;
    }
#endif
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (PyModule_AddType(module, types[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Of what Python sees of this module. Any change raises it, in hook/__init__.py too. */
#define INTERFACE_VERSION 12

static int
module_exec(PyObject *module)
{
    if (hook_setup() < 0) {
        return -1;
    }
    if (extra_index < 0) {
        import_array1(-1);
        extra_index = code_extra_request(release_extra);
        if (extra_index < 0 || state_setup() != 0) {
            PyErr_SetString(PyExc_ImportError, "no code extra index left");
            return -1;
        }
        errstate_setup();
        profile_setup(module);
    }
    PyObject *ops = guard_opcodes();
    PyObject *regions = regions_setup();
    PyObject *layout = object_layout();
    if (ops == NULL || regions == NULL || PyModule_AddObjectRef(module, "REGIONS", regions) < 0
        || PyModule_AddObjectRef(module, "OPS", ops) < 0 || layout == NULL
        || PyModule_AddObjectRef(module, "OBJECT_LAYOUT", layout) < 0
        || PyModule_AddIntConstant(module, "INTERFACE_VERSION", INTERFACE_VERSION) < 0
        || PyModule_AddIntConstant(module, "TRANSFER_COLUMN", TRANSFER_COLUMN) < 0) {
        Py_XDECREF(ops);
        Py_XDECREF(layout);
        return -1;
    }
    Py_DECREF(ops);
    Py_DECREF(layout);
    return add_types(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dyncomp.hook._hook",
    .m_doc = "CPython frame hook, C dispatcher and guard programs.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__hook(void)
{
    return PyModuleDef_Init(&definition);
}
