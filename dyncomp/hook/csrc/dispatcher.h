/* The compiled function's object, for dispatch.c and resume.c. */
#ifndef DYNCOMP_DISPATCHER_H
#define DYNCOMP_DISPATCHER_H

#include "hook.h"

#define NUM_REPLACEMENTS 4

typedef struct {
    Entry *entry;               /* strong, compared by identity */
    PyFunctionObject *function; /* the entry's code with the dispatcher's globals and closure */
} Replacement;

typedef struct Dispatcher {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyFunctionObject *func;
    PyObject *make_code;        /* or NULL: gives the original's code, which func's only stands in for */
    PyFunctionObject *original; /* made from that when it is first to run */
    HookConfig *config; /* a continuation's is borrowed, NULL once it is gone */
    bool borrows_config;
    struct Dispatcher *before, *after; /* in the config's list */
    PyObject *on_miss; /* or NULL: the config's */
    PyObject *dict;
    PyObject *weakrefs;
    CodeCache *cache; /* of func's code, or NULL */
    Replacement replacements[NUM_REPLACEMENTS];
    int next_replacement;
    int extra_frames; /* Python frames that the program itself would not have: 1 for a continuation */
} Dispatcher;

PyObject *dispatch(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *run_entry(Dispatcher *self, ThreadState *ts, Hit *hit, const GuardEnv *env, PyObject *const *args,
                    size_t nargsf, PyObject *kwnames);
/* trial.c: whether a hit is to be timed, or known to be quicker as plain Python; and that. */
bool entry_is_on_trial(const Entry *entry, const ThreadState *ts);
PyObject *run_on_trial(Dispatcher *self, ThreadState *ts, PyFunctionObject *func, Hit *hit, const GuardEnv *env,
                       PyObject *const *args, size_t nargsf, PyObject *kwnames);
/* The function as plain Python. New reference. */
PyFunctionObject *original_function(Dispatcher *self);
void dispatcher_leave(Dispatcher *self);
int dispatcher_setup(Dispatcher *self, PyObject *func, PyObject *config, PyObject *on_miss);
PyObject *dispatcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
int dispatcher_traverse(Dispatcher *self, visitproc visit, void *arg);
int dispatcher_clear(Dispatcher *self);
void dispatcher_dealloc(Dispatcher *self);

#endif
