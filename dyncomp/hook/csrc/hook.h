/* Declarations shared by the C files of dyncomp.hook._hook. */
#ifndef DYNCOMP_HOOK_H
#define DYNCOMP_HOOK_H

#include "pycompat.h"

#include <time.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL dyncomp_hook_array_api
#ifndef DYNCOMP_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

/* -- access.c: reading values without running user code ------------------------------------- */
/* New reference, or NULL for "not found / not readable without user code"; no exception is set. */
PyObject *access_attr(PyObject *obj, PyObject *name);
PyObject *access_instance(PyObject *obj, PyObject *name);
/* The instance's dictionary if it has a real one. Borrowed. */
PyObject *plain_dict(PyObject *obj);
/* Where an object that keeps attributes without a dictionary has one of this name, or -1. */
int place_of_inline_value(PyObject *obj, PyObject *name);
bool access_lacks_in_instance(PyObject *obj, PyObject *name);
PyObject *access_type_attr(PyObject *type, PyObject *name);
PyObject *access_item(PyObject *obj, PyObject *key, Py_ssize_t index);
PyObject *access_dict_nth(PyObject *dict, Py_ssize_t index, bool want_value);
PyObject *access_referent(PyObject *reference);
PyObject *access_mapping(PyObject *proxy);
/* 1 present, 0 absent, -1 cannot tell. */
int access_has_attr(PyObject *obj, PyObject *name);
bool python_check(PyObject *pair, PyObject *value);
void drop_error(void);
bool class_is(PyObject *spec, uint64_t *known);
bool dict_is(PyObject *spec, uint64_t *known);
int access_in_dict(PyObject *dict, PyObject *key);
const char *access_kind(PyObject *obj, PyObject *name);

/* -- names.c: dictionaries of names --------------------------------------------------------- */
bool names_are_plain(PyObject *dict);
bool class_names_are_plain(PyTypeObject *cls);

/* -- constants.c ---------------------------------------------------------------------------- */
bool const_equal(PyObject *value, PyObject *expected);
bool length_is(PyObject *value, PyObject *type, Py_ssize_t length);
bool length_of(PyObject *value, int64_t *length);
bool dict_keys_are(PyObject *dict, PyObject *keys);

/* -- arrays.c ------------------------------------------------------------------------------- */
void *array_facts_new(PyObject *spec);
bool array_matches(const void *facts, PyObject *value);
void *tensor_facts_new(PyObject *spec);
bool tensor_matches(const void *facts, PyObject *value);
bool elements_are(PyObject *value, PyObject *bytes);
PyObject *tensor_view_set(PyObject *module, PyObject *args);
bool arrays_disjoint(PyObject *spec, PyObject **regs);
bool objects_distinct(PyObject *spec, PyObject **regs);
bool symbol_value(PyObject *obj, int what, int axis, int64_t *value);
PyObject *regions_setup(void);
bool breaks_are_errors(bool outside);

/* -- reports.c ------------------------------------------------------------------------------ */
int errstate_setup(void);
long errstate_read(void);
bool is_reporter(PyObject *obj);
PyObject *reports_of(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
extern PyTypeObject Reporter_Type, ReportedCall_Type;

/* -- instructions.c ------------------------------------------------------------------------- */
PyObject *instructions_instantiate(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *instructions_insert(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

/* -- assemble.c ----------------------------------------------------------------------------- */
PyObject *instructions_assemble(PyObject *module, PyObject *args);

/* -- program.c ------------------------------------------------------------------------------ */
typedef struct {
    PyObject *const *args;
    Py_ssize_t nargs;
    PyObject *globals;
    PyObject *builtins;
    PyObject *closure; /* tuple or NULL */
} GuardEnv;

typedef struct Instr Instr;
typedef struct Shortcut Shortcut;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Py_ssize_t num_instrs;
    Instr *instrs;
    int num_registers;
    int num_symbols;
    PyObject *guards; /* tuple, for people */
    int num_outputs;
    int *outputs; /* register numbers */
    Shortcut *shortcut; /* or NULL, see shortcut.c */
    uint32_t wait, patience; /* runs before the next is made */
} GuardProgram;

extern PyTypeObject GuardProgram_Type;
/* Run the program. Returns -1 if all guards hold, else the number of the failing instruction.
   registers[0 .. *filled) hold strong references that the caller releases, whatever the answer; output k is in
   register outputs[k], or k where that is NULL. */
Py_ssize_t guard_run(GuardProgram *program, const GuardEnv *env, PyObject **registers, int *filled,
                     const int **outputs);
static inline int
output_register(const int *outputs, int k)
{
    return outputs == NULL ? k : outputs[k];
}
PyObject *guard_opcodes(void);
PyObject *object_layout(void);
/* Index of the guard that an instruction belongs to (-1: an output). */
int guard_of_instr(GuardProgram *program, Py_ssize_t number);
PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
int program_traverse(GuardProgram *self, visitproc visit, void *arg);
int program_clear(GuardProgram *self);
void program_dealloc(GuardProgram *self);
/* program(*args): a tuple of the outputs, of a program that reads nothing but arguments. */
PyObject *program_call(GuardProgram *self, PyObject *const *args, size_t nargsf, PyObject *names);

/* -- shortcut.c ------------------------------------------------------------------------------ */
#define SHORTCUT_LEAST 48 /* instructions of a program that has one */
/* By the program's shortcut all guards hold, with output k in registers[k], a strong reference; or instruction
   `failed` does not; or it cannot tell. */
enum { SHORTCUT_HOLDS, SHORTCUT_FAILS, SHORTCUT_UNSURE };
int shortcut_run(GuardProgram *program, const GuardEnv *env, PyObject **registers, Py_ssize_t *failed);
/* All guards held, with these registers: perhaps make a shortcut. */
void shortcut_learn(GuardProgram *program, PyObject **registers);
void shortcut_drop(GuardProgram *program);
int shortcut_steps(const Shortcut *shortcut);
int shortcut_traverse(Shortcut *shortcut, visitproc visit, void *arg);

#define STACK_REGISTERS 64

static inline void
release_registers(PyObject **registers, int filled)
{
    for (int i = 0; i < filled; i++) {
        Py_DECREF(registers[i]);
    }
}

/* -- cache.c -------------------------------------------------------------------------------- */
typedef struct Entry {
    PyObject_HEAD
    GuardProgram *guards; /* or NULL: always */
    PyObject *code;       /* code object or NULL */
    PyObject *target;     /* callable or NULL */
    PyObject *payload;
    int num_order; /* -1: the outputs if any, else all bound arguments */
    int *order;
    bool needs_hook;
    bool moves; /* the code may let go of its arguments before it returns */
    int rank; /* lower ranks are tried first; negative: run once and not kept */
    uint64_t hits;
    uint64_t last_hit; /* by counting all hits of the process */
    uint64_t rests_until; /* while there are fewer hits the original runs, see policy/fallback.py */
    /* see trial.c */
    PyObject *trial;     /* or NULL: it is not compared with the original */
    struct Entry *plain; /* runs that; NULL before the first comparison */
    bool plain_won;
    uint8_t samples, late, trials;
    uint64_t rest; /* hits before the next comparison, from the first hit on */
    int64_t best[2]; /* nanoseconds: compiled, plain */
} Entry;

/* Whether the original runs in place of the entry's code. */
static inline bool
entry_is_plain(const Entry *entry)
{
    return entry->code == NULL || entry->hits < entry->rests_until;
}

typedef struct HookConfig HookConfig;

/* Entries of one (code, config). Owned by the config; code extras point here without a reference. */
typedef struct {
    PyObject_HEAD
    PyCodeObject *code;
    HookConfig *config; /* borrowed; NULL once the config is gone */
    Py_ssize_t size;
    Py_ssize_t capacity;
    Entry **entries;
    bool frozen;
    bool skip;
    int64_t waited; /* processor time of calls that waited with their capture */
} CodeCache;

struct HookConfig {
    PyObject_HEAD
    PyObject *on_miss;
    PyObject *should_capture;
    PyObject *caches; /* dict: code by identity -> CodeCache */
    PyObject *weakrefs;
    struct Dispatcher *dispatchers; /* borrowed: a list of all that run under this config */
};

/* What a code object carries in co_extra. */
typedef struct {
    bool skip;    /* for the frame hook */
    bool disabled; /* what it calls is left alone too */
    bool alone;    /* and no hook is to be there while it runs */
    bool asked;   /* should_capture said yes */
    bool piece;   /* of a call that goes on: no call of its own */
    PyCodeObject *origin; /* strong: what this code is made of; NULL: it is the program's own */
    int size;
    int capacity;
    CodeCache **caches; /* borrowed */
} CodeExtra;

extern PyTypeObject Entry_Type, CodeCache_Type, HookConfig_Type;
extern Py_ssize_t extra_index;
/* Borrowed, or NULL; code_extra_make makes it (NULL: out of memory, no exception set). */
static inline CodeExtra *
code_extra(PyObject *code)
{
    return code_extra_get(code, extra_index);
}
CodeExtra *code_extra_make(PyObject *code);
CodeCache *cache_find(PyObject *code, HookConfig *config);   /* borrowed or NULL */
CodeCache *cache_obtain(PyObject *code, HookConfig *config); /* new reference or NULL with exception */
int cache_append(CodeCache *cache, Entry *entry);
/* No code object leads to the cache any more (runs no user code); forget its entries. */
void cache_detach(CodeCache *cache);
void cache_drop_entries(CodeCache *cache);
int config_clear_code(HookConfig *config, PyObject *code);
/* New list of (code, entries) of all code objects that have entries. */
/* Append the entries of a cache (or of none) to a list. */
int cache_list(CodeCache *cache, PyObject *entries);
PyObject *config_entries(HookConfig *config);
bool cache_drop(CodeCache *cache, Entry *entry);
Py_ssize_t code_num_entries(PyObject *code);
int64_t clock_ns(clockid_t clock);
/* Whether an entry stands for "not yet": the original runs this once. */
static inline bool
entry_waits(const Entry *entry)
{
    return entry->rank < 0 && entry->code == NULL && entry->target == NULL;
}
int clear_all_configs(void);
bool code_compatible(PyCodeObject *original, PyCodeObject *replacement, bool raise);

/* A hit, with the registers that its guards filled. */
typedef struct {
    Entry *entry; /* strong */
    int filled;
    const int *outputs; /* see guard_run */
    PyObject **registers;
    PyObject **heap; /* to free, or NULL */
    PyObject *stack[STACK_REGISTERS];
    /* after a miss: when it was, by the thread's clock, and the number of captures before the call */
    int64_t missed_at;
    uint64_t captures;
} Hit;

/* Looks through the cache. 1 hit, 0 miss, -1 out of memory. */
int cache_lookup(CodeCache *cache, const GuardEnv *env, Hit *hit);
void hit_release(Hit *hit);
PyObject *entry_call_target(Hit *hit, const GuardEnv *env);
/* Ask on_miss for an entry and test it: 1 hit, 0 run the original, -1 exception. */
int cache_miss(CodeCache *cache, PyObject *on_miss, PyFunctionObject *func, const GuardEnv *env, Hit *hit);

/* -- spans.c: when calls, guards and loops began and ended --------------------------------------- */
enum { SPAN_CALL, SPAN_GUARDS, SPAN_LOOP };
extern int spans_on; /* somebody profiles; read and written under the GIL */
/* What began at `start` ends now. Runs no Python, and leaves an exception that is set as it is. */
void span_record(int kind, PyObject *subject, int64_t start, int detail);
/* cache_lookup, recorded. */
int span_lookup(CodeCache *cache, const GuardEnv *env, Hit *hit);
PyObject *spans_begin(PyObject *module, PyObject *limit);
PyObject *spans_end(PyObject *module, PyObject *unused);
PyObject *spans_take(PyObject *module, PyObject *unused);
static inline int64_t
span_start(void)
{
    return __builtin_expect(spans_on, 0) ? clock_ns(CLOCK_MONOTONIC) : 0;
}

/* -- profile.c: what profilers see ------------------------------------------------------------- */
enum { LEGACY = 6, NUM_PROFILERS = 7 }; /* sys.setprofile(); before it the tools of sys.monitoring */
extern PyTypeObject Relay_Type;
void profile_setup(PyObject *module);
/* Have the profilers that are on get the events of compiled functions as of their originals. */
void profile_watch(PyThreadState *tstate);
PyObject *profile_settle(PyObject *result);
/* Say what a code object is made of. */
int code_set_origin(PyObject *code, PyObject *origin, bool piece);
void entry_set_origin(Entry *entry, PyCodeObject *code);

/* -- state.c: per-thread state, counters, recursion ------------------------------------------ */
typedef struct {
    HookConfig *active;    /* strong */
    HookConfig *base;      /* strong: what was active before the outermost push_active */
    int pushed;            /* calls of push_active without their pop_active */
    PyCodeObject *bypass;  /* next frame with this code is left alone */
    int compiling;         /* on_miss depth */
    bool on_trial;         /* a call is being timed */
    int suspended;         /* frames of this thread that run without the hook */
    Py_tracefunc profiler; /* of this thread, behind ours */
    struct CallStack *calls[NUM_PROFILERS]; /* that profilers know */
    Frame *passed_on;      /* the frame that another evaluator got from ours */
    int stance;            /* 1 + what `with set_stance(...)` says in this thread; 0: as the process */
    char *stack_soft;      /* below: run without the hook */
    char *stack_hard;      /* below: RecursionError */
} ThreadState;

/* Read at every Python call while the hook is on: no function call to find it. */
extern __thread ThreadState thread_state __attribute__((tls_model("initial-exec"), visibility("hidden")));

typedef struct {
    uint64_t hits, misses, frames_seen, skipped, captures, fresh_misses, fallbacks, patched, vectorcalled, deep;
} Counters;

extern Counters counters;

/* A call is over; if it waited its time is counted, but not where something was captured within it. */
static inline void
cache_count_wait(CodeCache *cache, const Hit *hit, bool waited)
{
    if (waited && counters.captures == hit->captures) {
        cache->waited += clock_ns(CLOCK_THREAD_CPUTIME_ID) - hit->missed_at;
    }
}

/* What compiled functions do on calls; see capture/policy/stance.py. */
enum { STANCE_DEFAULT, STANCE_FORCE_EAGER, STANCE_EAGER_ON_RECOMPILE, STANCE_FAIL_ON_RECOMPILE,
       STANCE_EAGER_THEN_COMPILE, NUM_STANCES };
extern int process_stance;
static inline int
current_stance(const ThreadState *ts)
{
    return ts->stance != 0 ? ts->stance - 1 : process_stance;
}

/* dyncomp's own work in Python, which nothing captures and profilers do not see; it has stack of its own. */
static inline bool
own_work_begin(ThreadState *ts, PyThreadState *tstate)
{
    ts->compiling++;
    recursion_refund(tstate, CAPTURE_RECURSION);
    bool hidden = is_profiled(tstate);
    if (hidden) {
        PyThreadState_EnterTracing(tstate);
    }
    return hidden;
}

static inline void
own_work_end(ThreadState *ts, PyThreadState *tstate, bool hidden)
{
    if (hidden) {
        PyThreadState_LeaveTracing(tstate);
    }
    recursion_refund(tstate, -CAPTURE_RECURSION);
    ts->compiling--;
}

int state_setup(void);
void stack_limits(ThreadState *ts);
/* Whether the C stack has room for one more Python call; sets RecursionError if not. */
static inline bool
stack_ok(ThreadState *ts)
{
    char here;
    if (ts->stack_hard == NULL) {
        stack_limits(ts);
    }
    if (&here > ts->stack_hard) {
        return true;
    }
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded (C stack)");
    return false;
}

/* Whether half of the C stack is used. */
static inline bool
stack_is_deep(ThreadState *ts)
{
    char here;
    if (ts->stack_soft == NULL) {
        stack_limits(ts);
    }
    return &here <= ts->stack_soft;
}

/* Activate `config` (may be NULL) in this thread; returns what was active (the reference moves). */
HookConfig *activate(ThreadState *ts, HookConfig *config);
/* The same around a call. Greenlets may end such calls in any order: the last one restores what was there
   before all of them. */
HookConfig *push_active(ThreadState *ts, HookConfig *config);
void pop_active(ThreadState *ts, HookConfig *previous);

/* Take the hook off (for all threads) while a frame deep in the C stack runs. */
void hook_suspend(ThreadState *ts);
void hook_resume(ThreadState *ts);

/* -- frame.c -------------------------------------------------------------------------------- */
PyObject *hook_frame(PyThreadState *tstate, Frame *frame, int throwflag);
int hook_setup(void);

/* -- foreign.c ------------------------------------------------------------------------------ */
void hook_install(void);
void hook_uninstall(void);
bool hook_is_installed(void);
/* The evaluator that ours took the place of, and the one that was seen in the place of ours; or NULL. */
extern _PyFrameEvalFunction hook_below, hook_above;
void hook_note_above(PyThreadState *tstate);
/* The evaluator of a frame that ours leaves alone. */
_PyFrameEvalFunction hook_passes_on(PyThreadState *tstate);
PyObject *evaluate_by(_PyFrameEvalFunction run, PyThreadState *tstate, ThreadState *ts, Frame *frame, int throwflag);
PyObject *foreign_set(PyObject *module, PyObject *names);
PyObject *foreign_show_get(PyObject *module, PyObject *function);
bool frame_is_foreign(Frame *frame);
bool is_inside_foreign(PyThreadState *tstate);

/* Have the dispatchers of a config let go of its entries; `dying`: and of the config. */
void dispatchers_forget(HookConfig *config, bool dying);

/* -- dispatch.c ----------------------------------------------------------------------------- */
extern PyTypeObject Dispatcher_Type, ResumeFunction_Type;
/* Call `code` with the globals, defaults and closure of `func` on bound arguments. */
PyObject *call_bound(PyCodeObject *code, PyFunctionObject *func, const GuardEnv *env);

/* -- calls in tail position (tail.c) -- */
extern PyTypeObject TailCall_Type;
extern PyTypeObject Ticks_Type;
typedef struct {
    PyObject_HEAD
    long long left;
} Ticks;
extern PyTypeObject LoopPlan_Type, LoopGate_Type;
PyObject *loop_text_of(PyObject *module, PyObject *value);
/* What replacement code returns may be a call that is still to be made; nobody else ever sees it. */
static inline bool
is_tail_call(PyObject *result)
{
    return result != NULL && Py_IS_TYPE(result, &TailCall_Type);
}
/* Make the calls until there is a result. Takes and gives a reference. */
PyObject *tail_calls(PyObject *result);
PyObject *tail_later(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *tail_run(PyObject *module, PyObject *call);
/* Among the flags of a call's nargsf: the callee may take the references out of the argument array, leaving NULL. */
#define ARGUMENTS_MOVE ((size_t)1 << (8 * sizeof(size_t) - 2))
/* Call a Python function; when its frame has the arguments, references to `filler` (or NULL) take their places in
   the array. Where there is no frame, or it takes them otherwise, the array stays as it is. */
PyObject *call_moving(PyFunctionObject *function, PyObject **args, Py_ssize_t nargs, PyObject *filler);

/* -- tracebacks (traceback.c) -- */
/* The column that marks calls which carry on the frame of their caller (see transfers.py). */
#define TRANSFER_COLUMN 9999
/* Take such calls out of the traceback of the exception being raised. */
void strip_transfers(void);

#endif
