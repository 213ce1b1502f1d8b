/* The only place in C that knows CPython versions: frames, instance dictionaries, code extras.
 *
 * Fields and rules: FACTS §3. 3.11, 3.12 and 3.13, with the GIL.
 */
#ifndef DYNCOMP_PYCOMPAT_H
#define DYNCOMP_PYCOMPAT_H

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE
#endif
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#undef _PyGC_FINALIZED
#include <internal/pycore_pystate.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_object.h>
#if PY_VERSION_HEX >= 0x030D0000
#include <internal/pycore_ceval.h>
#include <internal/pycore_setobject.h>
#endif
#if PY_VERSION_HEX >= 0x030C0000
#include <internal/pycore_interp.h>
#endif
#include <structmember.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000
#error "dyncomp.hook._hook supports CPython 3.11, 3.12 and 3.13"
#endif
#ifdef Py_GIL_DISABLED
#error "dyncomp.hook._hook needs the GIL"
#endif

typedef _PyInterpreterFrame Frame;

/* -- types -------------------------------------------------------------------------------- */
/* A number that no other state of any class has; 0: CPython has not given the class one since it changed. */
static inline unsigned int
type_version(PyTypeObject *cls)
{
#if PY_VERSION_HEX >= 0x030D0000
    return cls->tp_version_tag; /* the flag is not set any more */
#else
    return PyType_HasFeature(cls, Py_TPFLAGS_VALID_VERSION_TAG) ? cls->tp_version_tag : 0;
#endif
}

/* The class's own attributes. Borrowed. */
static inline PyObject *
class_dict(PyTypeObject *cls)
{
#if PY_VERSION_HEX >= 0x030C0000
    return _PyType_GetDict(cls); /* those of builtin classes are the interpreter's */
#else
    return cls->tp_dict;
#endif
}

/* Whether CPython has noted of a dictionary that all keys are exact strings. */
static inline bool
holds_strings_only(PyObject *dict)
{
    return ((PyDictObject *)dict)->ma_keys->dk_kind != DICT_KEYS_GENERAL;
}

/* -- frames ------------------------------------------------------------------------------- */
static inline PyCodeObject *
frame_code(Frame *f)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (PyCodeObject *)f->f_executable;
#else
    return f->f_code;
#endif
}

static inline bool
frame_has_code(Frame *f)
{
#if PY_VERSION_HEX >= 0x030D0000
    return f->f_executable != NULL && PyCode_Check(f->f_executable);
#else
    return f->f_code != NULL;
#endif
}

/* Whether the frame is one of Python code, and not the interpreter's own between two of them. */
static inline bool
frame_is_of_python(Frame *f)
{
#if PY_VERSION_HEX >= 0x030C0000
    return f->owner != FRAME_OWNED_BY_CSTACK && frame_has_code(f);
#else
    return frame_has_code(f);
#endif
}

static inline PyFunctionObject *
frame_function(Frame *f)
{
#if PY_VERSION_HEX >= 0x030C0000
    return (PyFunctionObject *)f->f_funcobj;
#else
    return f->f_func;
#endif
}

/* Whether the frame was just pushed and nothing of it has run. */
static inline bool
frame_is_fresh(Frame *f)
{
    if (f->owner != FRAME_OWNED_BY_THREAD || f->frame_obj != NULL) {
        return false;
    }
    PyCodeObject *code = frame_code(f);
#if PY_VERSION_HEX >= 0x030D0000
    return f->instr_ptr == _PyCode_CODE(code) && f->stacktop == code->co_nlocalsplus;
#else
    return f->prev_instr == _PyCode_CODE(code) - 1 && f->stacktop == code->co_nlocalsplus;
#endif
}

static inline Py_ssize_t
code_frame_slots(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030C0000
    return code->co_framesize;
#else
    return code->co_nlocalsplus + code->co_stacksize + (Py_ssize_t)FRAME_SPECIALS_SIZE;
#endif
}

/* Make sure that the frame on top of the data stack has `slots` slots, the pushed ones being `have`. */
static inline bool
frame_grow(PyThreadState *tstate, Frame *f, Py_ssize_t have, Py_ssize_t slots)
{
    if (slots <= have) {
        return true;
    }
    PyObject **base = (PyObject **)f;
    if (tstate->datastack_top != base + have || tstate->datastack_limit - base < slots) {
        return false;
    }
    tstate->datastack_top = base + slots;
    return true;
}

static inline void
frame_set_code(Frame *f, PyCodeObject *code)
{
    PyCodeObject *old = frame_code(f);
    Py_INCREF(code);
#if PY_VERSION_HEX >= 0x030D0000
    f->f_executable = (PyObject *)code;
    f->instr_ptr = _PyCode_CODE(code);
#else
    f->f_code = code;
    f->prev_instr = _PyCode_CODE(code) - 1;
#endif
    f->stacktop = code->co_nlocalsplus;
    Py_DECREF(old);
}

static inline Frame *
current_frame(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030D0000
    return tstate->current_frame;
#else
    return tstate->cframe->current_frame;
#endif
}

/* Whether `callable` is being called by a CALL instruction right now, so that the argument array is on the stack of
   the calling frame, which owns the references and only drops them after the call: where a Python function was
   called, the interpreter would have moved them into its frame. Others who pass on arguments (bound methods) may
   have put a borrowed reference before them: the callable itself must be in front, as CALL finds it. */
static inline bool
args_are_on_stack(PyThreadState *tstate, PyObject *callable, PyObject *const *args, size_t nargsf)
{
    Frame *f = current_frame(tstate);
    if (!(nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) || f == NULL || !frame_has_code(f)) {
        return false;
    }
    PyCodeObject *code = frame_code(f);
    PyObject *const *stack = f->localsplus + code->co_nlocalsplus;
    if (args < stack + 2 || args + PyVectorcall_NARGS(nargsf) > stack + code->co_stacksize) {
        return false;
    }
#if PY_VERSION_HEX >= 0x030D0000
    return args[-1] == callable || (args[-1] == NULL && args[-2] == callable);
#else
    return args[-1] == callable;
#endif
}

/* Let go of the variables of a frame that has returned and will not be looked at. 3.12 and later have cleared the
   frame when it returned; it must not be touched any more. */
static inline void
frame_let_go(Frame *f)
{
#if PY_VERSION_HEX < 0x030C0000
    if (f->frame_obj != NULL && Py_REFCNT(f->frame_obj) > 1) {
        return;
    }
    for (int i = 0; i < f->stacktop; i++) {
        Py_CLEAR(f->localsplus[i]);
    }
#else
    (void)f;
#endif
}

/* -- tracing ------------------------------------------------------------------------------ */
#if PY_VERSION_HEX >= 0x030C0000
#define USER_TOOLS UINT64_C(0x3f) /* sys.settrace and sys.setprofile have the tools 6 and 7 */
#define EACH UINT64_C(0x0101010101010101)
/* Tools that look at more than calls, by event: all of a debugger's (0) and of coverage's (1), which may ask for
   lines of one function after another; of others lines, instructions, jumps and branches (5 to 8). */
#define TRACERS_0_TO_7 (UINT64_C(0x03) * EACH | UINT64_C(0x3c3c3c0000000000))
#define TRACERS_7_TO_14 (UINT64_C(0x03) * EACH | UINT64_C(0x3c3c))
#define PROFILERS (UINT64_C(0x3c) * EACH)

static inline bool
has_tool(const _Py_GlobalMonitors *monitors, uint64_t events_0_to_7, uint64_t events_7_to_14)
{
    uint64_t first, last;
    _Static_assert(sizeof(monitors->tools) == 15, "events");
    memcpy(&first, monitors->tools, sizeof(first));
    memcpy(&last, monitors->tools + 7, sizeof(last));
    return ((first & events_0_to_7) | (last & events_7_to_14)) != 0;
}

static inline bool
has_profiling_tool(PyThreadState *tstate)
{
    return has_tool(&tstate->interp->monitors, PROFILERS, PROFILERS);
}

/* Whether a tool that users register has an event on; `tools` holds a set of tools by event. */
static inline bool
any_tool(const uint8_t *tools, size_t n)
{
    uint64_t found = 0, word;
    for (size_t i = 0; i + sizeof(word) <= n; i += sizeof(word)) {
        memcpy(&word, tools + i, sizeof(word));
        found |= word;
    }
    for (size_t i = n - n % sizeof(word); i < n; i++) {
        found |= tools[i];
    }
    return (found & (USER_TOOLS * UINT64_C(0x0101010101010101))) != 0;
}
#endif

extern bool profiled_as_written; /* as options of the process say: profilers see the original, too */

/* Whether a profiler is watching this thread: it wants to know of calls only. */
static inline bool
is_profiled(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030C0000
    return tstate->c_profilefunc != NULL || has_profiling_tool(tstate);
#else
    return tstate->c_profilefunc != NULL;
#endif
}

/* Whether a debugger or another tool that wants to know of lines is watching this thread, or is running in it. */
static inline bool
is_traced(PyThreadState *tstate)
{
    bool found = tstate->c_tracefunc != NULL || tstate->tracing != 0;
#if PY_VERSION_HEX >= 0x030C0000
    found = found || has_tool(&tstate->interp->monitors, TRACERS_0_TO_7, TRACERS_7_TO_14);
#endif
    return found || (profiled_as_written && is_profiled(tstate));
}

/* Whether a monitoring tool is watching this code object in particular. */
static inline bool
is_monitored(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030C0000
    const _PyCoMonitoringData *data = code->_co_monitoring;
    return data != NULL && any_tool(data->local_monitors.tools, sizeof(data->local_monitors.tools));
#else
    (void)code;
    return false;
#endif
}

/* -- C recursion -------------------------------------------------------------------------- */
/* A Python call that goes through C costs two units of the C recursion budget on 3.12 and 3.13 (measured),
   which is far too small for programs that recurse to the Python limit: hand them back, the stack address
   being checked. */
#define C_RECURSION_PER_CALL 2

static inline void
c_recursion_refund(PyThreadState *tstate, int units)
{
#if PY_VERSION_HEX >= 0x030C0000
    tstate->c_recursion_remaining += units;
#else
    (void)tstate;
    (void)units;
#endif
}

/* Python calls that capture may nest beyond what the program has left of its recursion limit: a program that
   recurses nearly to the limit is captured, or left alone, as any other. */
#define CAPTURE_RECURSION 3000

static inline void
recursion_refund(PyThreadState *tstate, int units)
{
#if PY_VERSION_HEX >= 0x030C0000
    tstate->py_recursion_remaining += units;
#else
    tstate->recursion_remaining += units;
#endif
}

/* A call of a builtin function of one argument costs one unit: of the C budget, before 3.12 of the only one. */
static inline void
builtin_recursion_refund(PyThreadState *tstate, int units)
{
#if PY_VERSION_HEX >= 0x030C0000
    c_recursion_refund(tstate, units);
#else
    recursion_refund(tstate, units);
#endif
}

/* -- code extras -------------------------------------------------------------------------- */
static inline Py_ssize_t
code_extra_request(freefunc release)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyUnstable_Eval_RequestCodeExtraIndex(release);
#else
    return _PyEval_RequestCodeExtraIndex(release);
#endif
}

/* codeobject.c keeps this to itself; the layout is that of 3.6 to 3.13. */
typedef struct {
    Py_ssize_t size;
    void *values[];
} CoExtra;

static inline void *
code_extra_get(PyObject *code, Py_ssize_t index)
{
    const CoExtra *extra = ((PyCodeObject *)code)->co_extra;
    return extra == NULL || extra->size <= index ? NULL : extra->values[index];
}

static inline int
code_extra_set(PyObject *code, Py_ssize_t index, void *value)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyUnstable_Code_SetExtra(code, index, value);
#else
    return _PyCode_SetExtra(code, index, value);
#endif
}

static inline bool
is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* -- instance dictionaries ---------------------------------------------------------------- */
/* Values stored inline in the object (NULL if it has a real dictionary), without making a dictionary. */
static inline PyDictValues *
instance_inline_values(PyObject *obj)
{
#if PY_VERSION_HEX >= 0x030D0000
    if (!(Py_TYPE(obj)->tp_flags & Py_TPFLAGS_INLINE_VALUES)) {
        return NULL;
    }
    PyDictValues *values = _PyObject_InlineValues(obj);
    return values->valid ? values : NULL;
#elif PY_VERSION_HEX >= 0x030C0000
    PyDictOrValues dorv = *_PyObject_DictOrValuesPointer(obj);
    return _PyDictOrValues_IsValues(dorv) ? _PyDictOrValues_GetValues(dorv) : NULL;
#else
    return *_PyObject_ValuesPointer(obj);
#endif
}

/* Where an object whose type has a managed dictionary has the address of it, or (3.12) of what stands for it. */
static inline PyObject **
managed_dict_slot(PyObject *obj)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (PyObject **)&_PyObject_ManagedDictPointer(obj)->dict;
#elif PY_VERSION_HEX >= 0x030C0000
    return (PyObject **)_PyObject_DictOrValuesPointer(obj);
#else
    return _PyObject_ManagedDictPointer(obj);
#endif
}

/* The real dictionary of such an object, or NULL. Borrowed. */
static inline PyObject *
instance_managed_dict(PyObject *obj)
{
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
    if (_PyDictOrValues_IsValues(*_PyObject_DictOrValuesPointer(obj))) {
        return NULL;
    }
#endif
    return *managed_dict_slot(obj);
}

static inline bool
has_managed_dict(PyTypeObject *type)
{
    return (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0;
}

/* A number that changes with every change of a dict. */
static inline uint64_t
dict_version(PyObject *dict)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return ((PyDictObject *)dict)->ma_version_tag;
#pragma GCC diagnostic pop
}

/* The exception that is set, or NULL; it is set no more. */
static inline PyObject *
take_error(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL && value != NULL) {
        PyException_SetTraceback(value, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* Set an exception that take_error() gave. Takes the reference. */
static inline void
put_error(PyObject *error)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(error);
#else
    PyErr_Restore(Py_NewRef(Py_TYPE(error)), error, PyException_GetTraceback(error));
#endif
}

/* -- iterators over ranges ------------------------------------------------------------------ */
typedef struct {
    PyObject_HEAD
#if PY_VERSION_HEX < 0x030C0000
    long index;
#endif
    long start, step, len;
} RangeIterator;

/* The next number, and how many are left. */
static inline void
range_rest(const RangeIterator *it, long *start, long *left)
{
#if PY_VERSION_HEX < 0x030C0000
    *start = it->start + it->index * it->step;
    *left = it->len - it->index;
#else
    *start = it->start;
    *left = it->len;
#endif
}

static inline void
range_advance(RangeIterator *it, long steps)
{
#if PY_VERSION_HEX < 0x030C0000
    it->index += steps;
#else
    it->start += steps * it->step;
    it->len -= steps;
#endif
}

#endif
