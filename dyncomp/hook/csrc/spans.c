/* When compiled functions, their guards and loops compiled whole began and ended, for profiles (dyncomp/profiling).
 *
 * Calls read one flag. A record holds a code object, or the gate of a loop; making one runs no Python. */
#include "hook.h"

int spans_on = 0;

typedef struct {
    int kind, detail;
    PyObject *subject; /* strong */
    unsigned long thread;
    int64_t start, end;
} Span;

static Span *spans = NULL;
static size_t num_spans = 0, capacity = 0, most = 0, dropped = 0;

void
span_record(int kind, PyObject *subject, int64_t start, int detail)
{
    int64_t end = clock_ns(CLOCK_MONOTONIC);
    if (!spans_on) {
        return;
    }
    if (num_spans >= most) {
        dropped++;
        return;
    }
    if (num_spans == capacity) {
        size_t wanted = capacity * 2 + 1024;
        Span *grown = PyMem_RawRealloc(spans, wanted * sizeof(Span));
        if (grown == NULL) {
            dropped++;
            return;
        }
        spans = grown;
        capacity = wanted;
    }
    spans[num_spans++] = (Span){.kind = kind, .detail = detail, .subject = Py_NewRef(subject),
                                .thread = PyThread_get_thread_native_id(), .start = start, .end = end};
}

int
span_lookup(CodeCache *cache, const GuardEnv *env, Hit *hit)
{
    PyObject *code = Py_NewRef((PyObject *)cache->code);
    int64_t start = clock_ns(CLOCK_MONOTONIC);
    int found = cache_lookup(cache, env, hit);
    span_record(SPAN_GUARDS, code, start, found > 0);
    Py_DECREF(code);
    return found;
}

/* The code object of the program that a piece carries on, and whether it is one. Borrowed. */
static PyObject *
origin_of(PyObject *subject, bool *piece)
{
    CodeExtra *extra = PyCode_Check(subject) ? code_extra(subject) : NULL;
    *piece = extra != NULL && extra->origin != NULL;
    return *piece ? (PyObject *)extra->origin : subject;
}

PyObject *
spans_take(PyObject *module, PyObject *unused)
{
    Span *taken = spans;
    size_t count = num_spans, lost = dropped;
    spans = NULL;
    num_spans = capacity = dropped = 0;
    PyObject *list = PyList_New(0);
    for (size_t k = 0; k < count; k++) {
        Span *span = &taken[k];
        bool piece;
        PyObject *origin = origin_of(span->subject, &piece);
        PyObject *item = list == NULL ? NULL
                                      : Py_BuildValue("(iOOOkLLi)", span->kind, span->subject, origin,
                                                      piece ? Py_True : Py_False, span->thread,
                                                      (long long)span->start, (long long)span->end, span->detail);
        if (list != NULL && (item == NULL || PyList_Append(list, item) < 0)) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
    }
    for (size_t k = 0; k < count; k++) {
        PyObject *type, *value, *traceback; /* gates may die of this */
        PyErr_Fetch(&type, &value, &traceback);
        Py_DECREF(taken[k].subject);
        PyErr_Restore(type, value, traceback);
    }
    PyMem_RawFree(taken);
    return list == NULL ? NULL : Py_BuildValue("(Nn)", list, (Py_ssize_t)lost);
}

PyObject *
spans_begin(PyObject *module, PyObject *limit)
{
    size_t count = PyLong_AsSize_t(limit);
    if (count == (size_t)-1 && PyErr_Occurred()) {
        return NULL;
    }
    most = count;
    spans_on = 1;
    Py_RETURN_NONE;
}

PyObject *
spans_end(PyObject *module, PyObject *unused)
{
    spans_on = 0;
    Py_RETURN_NONE;
}
