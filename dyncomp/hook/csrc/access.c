/* Reading attributes and items without running user code.
 *
 * "Not found" and "only reachable through user code" are the same answer here: a guard misses either way.
 * No function of this file leaves an exception set.
 */
#include "hook.h"

static bool
same_name(PyObject *a, PyObject *b)
{
    if (a == b) {
        return true;
    }
    if (!PyUnicode_CheckExact(a) || !PyUnicode_CheckExact(b)) {
        return false;
    }
    if (PyUnicode_CHECK_INTERNED(a) && PyUnicode_CHECK_INTERNED(b)) {
        return false;
    }
    return PyUnicode_Compare(a, b) == 0;
}

static bool
name_is(PyObject *name, const char *text)
{
    return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

int
place_of_inline_value(PyObject *obj, PyObject *name)
{
    PyDictKeysObject *keys = ((PyHeapTypeObject *)Py_TYPE(obj))->ht_cached_keys;
    if (keys == NULL || !DK_IS_UNICODE(keys)) {
        return -1;
    }
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
    int n = (int)keys->dk_nentries;
    for (int i = 0; i < n; i++) {
        if (entries[i].me_key == name) {
            return i;
        }
    }
    if (PyUnicode_CHECK_INTERNED(name)) {
        /* a key that is not interned gets into shared keys only by unusual ways: still, compare */
        for (int i = 0; i < n; i++) {
            PyObject *key = entries[i].me_key;
            if (key != NULL && !PyUnicode_CHECK_INTERNED(key) && same_name(key, name)) {
                return i;
            }
        }
    }
    return -1;
}

static PyObject *
inline_value(PyObject *obj, PyDictValues *values, PyObject *name)
{
    int place = place_of_inline_value(obj, name);
    return place < 0 ? NULL : Py_XNewRef(values->values[place]);
}

static PyObject *
dict_get(PyObject *dict, PyObject *key)
{
    PyObject *value = PyDict_GetItemWithError(dict, key);
    if (value == NULL) {
        PyErr_Clear();
    }
    return Py_XNewRef(value);
}

PyObject *
plain_dict(PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    if (has_managed_dict(type)) {
        return instance_managed_dict(obj);
    }
    if (type->tp_dictoffset == 0) {
        return NULL;
    }
    PyObject **slot = _PyObject_GetDictPtr(obj); /* makes nothing for types without managed dictionaries */
    return slot == NULL ? NULL : *slot;
}

/* Attributes that are stored without a dictionary. */
static PyDictValues *
inline_values(PyObject *obj)
{
    return has_managed_dict(Py_TYPE(obj)) ? instance_inline_values(obj) : NULL;
}

/* Whether looking up an instance's own attributes runs no code of the program. */
static bool
own_names_are_plain(PyObject *obj)
{
    return PyType_Check(obj) || inline_values(obj) != NULL || names_are_plain(plain_dict(obj));
}

PyObject *
access_instance(PyObject *obj, PyObject *name)
{
    if (PyType_Check(obj)) {
        return NULL;
    }
    PyDictValues *values = inline_values(obj);
    if (values != NULL) {
        return inline_value(obj, values, name);
    }
    PyObject *dict = plain_dict(obj);
    if (dict == NULL || !PyDict_Check(dict) || !names_are_plain(dict)) {
        return NULL;
    }
    return dict_get(dict, name);
}

bool
access_lacks_in_instance(PyObject *obj, PyObject *name)
{
    PyObject *found = access_instance(obj, name);
    Py_XDECREF(found);
    return found == NULL && own_names_are_plain(obj);
}

static bool
is_c_descriptor(PyObject *descr)
{
    PyTypeObject *type = Py_TYPE(descr);
    return type == &PyMemberDescr_Type || type == &PyGetSetDescr_Type;
}

/* Fields of functions and methods, read directly: their getters raise audit events. */
static PyObject *
function_field(PyObject *obj, PyObject *name, bool *known)
{
    *known = true;
    if (PyFunction_Check(obj)) {
        PyFunctionObject *f = (PyFunctionObject *)obj;
        PyObject *value = NULL;
        if (name_is(name, "__code__")) {
            value = f->func_code;
        }
        else if (name_is(name, "__defaults__")) {
            value = f->func_defaults ? f->func_defaults : Py_None;
        }
        else if (name_is(name, "__kwdefaults__")) {
            value = f->func_kwdefaults ? f->func_kwdefaults : Py_None;
        }
        else if (name_is(name, "__closure__")) {
            value = f->func_closure ? f->func_closure : Py_None;
        }
        else if (name_is(name, "__globals__")) {
            value = f->func_globals;
        }
        if (value != NULL) {
            return Py_NewRef(value);
        }
    }
    if (PyMethod_Check(obj)) {
        if (name_is(name, "__self__")) {
            return Py_NewRef(PyMethod_GET_SELF(obj));
        }
        if (name_is(name, "__func__")) {
            return Py_NewRef(PyMethod_GET_FUNCTION(obj));
        }
    }
    *known = false;
    return NULL;
}

/* Whether plain attribute lookup on instances of `type` starts with CPython's own algorithm. */
static bool
has_generic_getattr(PyTypeObject *type)
{
    getattrofunc get = type->tp_getattro;
    if (get == PyObject_GenericGetAttr || get == PyModule_Type.tp_getattro) {
        return true;
    }
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || type->tp_getattr != NULL) {
        return false;
    }
    /* a Python class with __getattr__ only: generic lookup comes first */
    static PyObject *getattribute = NULL;
    if (getattribute == NULL) {
        getattribute = PyUnicode_InternFromString("__getattribute__");
        if (getattribute == NULL) {
            PyErr_Clear();
            return false;
        }
    }
    static PyObject *generic = NULL;
    if (generic == NULL) {
        generic = _PyType_Lookup(&PyBaseObject_Type, getattribute);
    }
    PyObject *found = _PyType_Lookup(type, getattribute);
    if (found != generic) {
        return false;
    }
    /* the slot itself must be the interpreter's wrapper for __getattr__, not a C function of its own */
    static PyObject *getattr_name = NULL;
    if (getattr_name == NULL) {
        getattr_name = PyUnicode_InternFromString("__getattr__");
        if (getattr_name == NULL) {
            PyErr_Clear();
            return false;
        }
    }
    return _PyType_Lookup(type, getattr_name) != NULL;
}

static PyObject *
call_getter(PyObject *descr, PyObject *obj, PyTypeObject *type)
{
    PyObject *value = Py_TYPE(descr)->tp_descr_get(descr, obj, (PyObject *)type);
    if (value == NULL) {
        PyErr_Clear();
    }
    return value;
}

/* A class attribute as `cls.name` gives it, for entries whose binding runs no user code. */
static PyObject *
unbound_value(PyObject *found, PyObject *cls)
{
    PyTypeObject *type = Py_TYPE(found);
    if (type->tp_descr_get == NULL) {
        return Py_NewRef(found);
    }
    if (type == &PyStaticMethod_Type) {
        return call_getter(found, NULL, (PyTypeObject *)cls);
    }
    if (type == &PyFunction_Type || type == &PyProperty_Type || type == &PyMemberDescr_Type
        || type == &PyGetSetDescr_Type || type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type) {
        return Py_NewRef(found); /* they return themselves when read on the class */
    }
    return NULL;
}

static PyObject *
class_attr(PyObject *cls, PyObject *name)
{
    PyTypeObject *meta = Py_TYPE(cls);
    if (meta->tp_getattro != PyType_Type.tp_getattro) {
        return NULL;
    }
    PyObject *descr = _PyType_Lookup(meta, name);
    if (descr != NULL && Py_TYPE(descr)->tp_descr_set != NULL) {
        return is_c_descriptor(descr) ? call_getter(descr, cls, meta) : NULL;
    }
    PyObject *found = _PyType_Lookup((PyTypeObject *)cls, name);
    return found == NULL ? NULL : unbound_value(found, cls);
}

/* Whether objects of `type` are exactly `threading.local`: their attributes are in a dict of the calling thread. */
static bool
is_thread_local(PyTypeObject *type)
{
    static PyObject *local = NULL;
    if (local == NULL) {
        PyObject *module = PyImport_ImportModule("_thread");
        if (module != NULL) {
            local = PyObject_GetAttrString(module, "_local");
            Py_DECREF(module);
        }
        if (local == NULL) {
            PyErr_Clear();
            return false;
        }
    }
    return (PyObject *)type == local;
}


PyObject *
access_attr(PyObject *obj, PyObject *name)
{
    PyTypeObject *type = Py_TYPE(obj);
    if (PyFunction_Check(obj) || PyMethod_Check(obj)) {
        bool known;
        PyObject *value = function_field(obj, name, &known);
        if (known) {
            return value;
        }
    }
    if (PyType_Check(obj)) {
        return class_attr(obj, name);
    }
    if (!has_generic_getattr(type)) {
        if (PyUnicode_CompareWithASCIIString(name, "__dict__") == 0) { /* as object.__getattribute__ */
            PyObject *field = _PyType_Lookup(type, name);
            return field != NULL && is_c_descriptor(field) ? call_getter(field, obj, type) : NULL;
        }
        PyObject *value = is_thread_local(type) ? PyObject_GetAttr(obj, name) : NULL;
        if (value == NULL) {
            PyErr_Clear();
        }
        return value;
    }
    PyObject *descr = _PyType_Lookup(type, name);
    if (descr != NULL && Py_TYPE(descr)->tp_descr_set != NULL) {
        return is_c_descriptor(descr) ? call_getter(descr, obj, type) : NULL;
    }
    PyObject *value = access_instance(obj, name);
    if (value != NULL || descr == NULL) {
        return value;
    }
    if (Py_TYPE(descr)->tp_descr_get == NULL) {
        return Py_NewRef(descr);
    }
    if (is_c_descriptor(descr) || Py_IS_TYPE(descr, &PyStaticMethod_Type)) {
        return call_getter(descr, obj, type);
    }
    return NULL;
}

PyObject *
access_type_attr(PyObject *type, PyObject *name)
{
    if (!PyType_Check(type)) {
        return NULL;
    }
    return Py_XNewRef(_PyType_Lookup((PyTypeObject *)type, name));
}

/* -- items -------------------------------------------------------------------------------- */
/* C types alone have dotted names: no class statement makes one of this name. */
static bool
is_deque(PyObject *obj)
{
    return strcmp(Py_TYPE(obj)->tp_name, "collections.deque") == 0;
}

PyObject *
access_item(PyObject *obj, PyObject *key, Py_ssize_t index)
{
    if (PyTuple_Check(obj)) {
        return index >= 0 && index < PyTuple_GET_SIZE(obj) ? Py_NewRef(PyTuple_GET_ITEM(obj, index)) : NULL;
    }
    if (PyList_Check(obj)) {
        return index >= 0 && index < PyList_GET_SIZE(obj) ? Py_NewRef(PyList_GET_ITEM(obj, index)) : NULL;
    }
    if (is_deque(obj)) {
        PyObject *item = index >= 0 ? PySequence_GetItem(obj, index) : NULL;
        if (item == NULL) {
            PyErr_Clear();
        }
        return item;
    }
    return PyDict_Check(obj) ? dict_get(obj, key) : NULL;
}

PyObject *
access_dict_nth(PyObject *dict, Py_ssize_t index, bool want_value)
{
    if (!PyDict_Check(dict) || Py_IS_TYPE(dict, &PyODict_Type)) {
        return NULL;
    }
    Py_ssize_t position = PyDict_GET_SIZE(dict);
    PyObject *key = NULL, *value = NULL;
    /* nothing lies behind as many places as there are entries: no place before is empty */
    Py_ssize_t first = PyDict_Next(dict, &position, &key, &value) ? 0 : index;
    position = first;
    for (Py_ssize_t i = first; PyDict_Next(dict, &position, &key, &value); i++) {
        if (i == index) {
            return Py_NewRef(want_value ? value : key);
        }
    }
    return NULL;
}

int
access_in_dict(PyObject *dict, PyObject *key)
{
    if (!PyDict_Check(dict)) {
        return -1;
    }
    int found = PyDict_Contains(dict, key);
    if (found < 0) {
        PyErr_Clear();
    }
    return found;
}

/* -- classification ----------------------------------------------------------------------- */
static const char *
descriptor_kind(PyObject *descr)
{
    PyTypeObject *type = Py_TYPE(descr);
    if (type == &PyMemberDescr_Type) {
        return "slot";
    }
    if (type == &PyGetSetDescr_Type) {
        return "getset";
    }
    if (PyType_IsSubtype(type, &PyProperty_Type)) {
        return "property";
    }
    if (type == &PyStaticMethod_Type) {
        return "static";
    }
    if (type == &PyClassMethod_Type || type == &PyClassMethodDescr_Type) {
        return "classmethod";
    }
    if (type == &PyFunction_Type || type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type) {
        return "method";
    }
    return type->tp_descr_get == NULL ? "class" : "descriptor";
}

static const char *
class_kind(PyObject *cls, PyObject *name)
{
    PyTypeObject *meta = Py_TYPE(cls);
    if (meta->tp_getattro != PyType_Type.tp_getattro) {
        return "custom";
    }
    PyObject *descr = _PyType_Lookup(meta, name);
    if (descr != NULL && Py_TYPE(descr)->tp_descr_set != NULL) {
        return descriptor_kind(descr);
    }
    PyObject *found = _PyType_Lookup((PyTypeObject *)cls, name);
    if (found != NULL) {
        return descriptor_kind(found);
    }
    return descr != NULL ? descriptor_kind(descr) : "missing";
}

static bool
type_defines(PyTypeObject *type, const char *name)
{
    PyObject *text = PyUnicode_InternFromString(name);
    if (text == NULL) {
        PyErr_Clear();
        return false;
    }
    bool found = _PyType_Lookup(type, text) != NULL;
    Py_DECREF(text);
    return found;
}

static const char *
missing_kind(PyObject *obj)
{
    if (PyModule_Check(obj)) {
        PyObject *dict = PyModule_GetDict(obj);
        PyObject *hook = dict == NULL ? NULL : PyDict_GetItemString(dict, "__getattr__");
        if (hook != NULL) {
            return "getattr";
        }
    }
    return type_defines(Py_TYPE(obj), "__getattr__") ? "getattr" : "missing";
}

const char *
access_kind(PyObject *obj, PyObject *name)
{
    PyTypeObject *type = Py_TYPE(obj);
    if (PyFunction_Check(obj) || PyMethod_Check(obj)) {
        bool known;
        PyObject *value = function_field(obj, name, &known);
        Py_XDECREF(value);
        if (known) {
            return "getset";
        }
    }
    if (PyType_Check(obj)) {
        return class_kind(obj, name);
    }
    if (!has_generic_getattr(type)) {
        return "custom";
    }
    PyObject *descr = _PyType_Lookup(type, name);
    if (descr != NULL && Py_TYPE(descr)->tp_descr_set != NULL) {
        return descriptor_kind(descr);
    }
    PyObject *value = access_instance(obj, name);
    if (value != NULL) {
        Py_DECREF(value);
        return "instance";
    }
    return descr != NULL ? descriptor_kind(descr) : missing_kind(obj);
}

int
access_has_attr(PyObject *obj, PyObject *name)
{
    PyObject *value = access_attr(obj, name);
    if (value != NULL) {
        Py_DECREF(value);
        return 1;
    }
    if (!own_names_are_plain(obj)) {
        return -1;
    }
    const char *kind = access_kind(obj, name);
    if (strcmp(kind, "slot") == 0 && !type_defines(Py_TYPE(obj), "__getattr__")) {
        return 0; /* reading an empty slot */
    }
    return strcmp(kind, "missing") == 0 ? 0 : -1;
}

/* -- checks written in Python ----------------------------------------------------------------- */
static int
raise_again(void *error)
{
    PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)error), (PyObject *)error);
    Py_DECREF((PyObject *)error);
    return -1;
}

/* Whether a signal handler raised an error: one that ends things, or one of a time limit. */
static bool
is_from_handler(PyObject *error)
{
    if (!PyErr_GivenExceptionMatches(error, PyExc_Exception)) {
        return true;
    }
    thread_state.compiling++; /* our own Python code is not captured */
    PyObject *module = PyImport_ImportModule("dyncomp.signals");
    PyObject *answer = module == NULL ? NULL : PyObject_CallMethod(module, "is_from_handler", "O", error);
    thread_state.compiling--;
    bool from_handler = answer == Py_True;
    Py_XDECREF(module);
    Py_XDECREF(answer);
    PyErr_Clear();
    return from_handler;
}

/* Drop what a check raised: it does not hold. But what a signal handler raised in it (KeyboardInterrupt) is the
   program's, and is raised again as soon as Python code runs. Handlers run in the main thread, as pending calls do. */
void
drop_error(void)
{
    if (!PyErr_Occurred()) {
        return;
    }
    PyObject *error = take_error();
    if (error != NULL && (!is_from_handler(error) || Py_AddPendingCall(raise_again, error) < 0)) {
        Py_DECREF(error);
    }
}

bool
python_check(PyObject *pair, PyObject *value)
{
    thread_state.compiling++; /* nor is a frontend's check */
    PyObject *answer = PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(pair, 0), value, PyTuple_GET_ITEM(pair, 1), NULL);
    thread_state.compiling--;
    int truth = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    drop_error();
    return truth == 1;
}

/* A number that changes with every change of the class or a base; 0 where CPython gives none. */
static inline uint64_t
class_version(PyTypeObject *cls)
{
    if (type_version(cls) == 0) {
        type_defines(cls, "__class__"); /* a look-up gives the class a new version */
    }
    return type_version(cls);
}

static bool
unchanged(PyObject *spec, uint64_t version, uint64_t *known)
{
    if (version != 0 && version == *known) {
        return true;
    }
    bool same = python_check(spec, Py_None);
    *known = same ? version : 0;
    return same;
}

/* The class of spec = (check, expected, class) is as it was: by its version, or, where something was set on it or
   a base since, by the Python check. */
bool
class_is(PyObject *spec, uint64_t *known)
{
    return unchanged(spec, class_version((PyTypeObject *)PyTuple_GET_ITEM(spec, 2)), known);
}

/* Likewise a dict. */
bool
dict_is(PyObject *spec, uint64_t *known)
{
    return unchanged(spec, dict_version(PyTuple_GET_ITEM(spec, 2)), known);
}

/* What a weak reference refers to, None where that is gone. */
PyObject *
access_referent(PyObject *reference)
{
    if (reference == NULL || !PyWeakref_CheckRefExact(reference)) {
        return NULL;
    }
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *found = NULL;
    return PyWeakref_GetRef(reference, &found) > 0 ? found : Py_NewRef(Py_None);
#else
    return Py_NewRef(PyWeakref_GET_OBJECT(reference));
#endif
}

static int
note_mapping(PyObject *mapping, void *found)
{
    *(PyObject **)found = mapping;
    return 0;
}

/* The mapping behind a mapping proxy, all that one holds: CPython has no other way to ask. */
PyObject *
access_mapping(PyObject *proxy)
{
    PyObject *found = NULL;
    if (proxy != NULL && Py_IS_TYPE(proxy, &PyDictProxy_Type)) {
        PyDictProxy_Type.tp_traverse(proxy, note_mapping, &found);
    }
    return Py_XNewRef(found);
}
