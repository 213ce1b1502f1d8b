/* Whether a function that is captured in pieces is quicker as it is: its first calls are made both ways, in turn.
 *
 * Between the pieces is plain Python, and each piece costs guards and a call. Where the program's own steps are
 * small that may take longer than they do. What wins is settled by the best times of a few calls each; where plain
 * Python won and a call then takes much longer than those did, both are tried again. */
#include "dispatcher.h"

#define WARM_UP 4               /* hits before the first call that is timed */
#define CLEAR_SAMPLES 6         /* calls in all after which a difference of half is believed, */
#define FEW_SAMPLES 10          /* after which one of a fifth is, */
#define MANY_SAMPLES 40         /* and after which the quicker way is taken */
#define LONGEST_NS 100000000    /* what takes longer compiled is not tried */
#define CHANCES 2               /* comparisons that compiled code wins closely before it stays */
#define REST 50                 /* hits between these */
#define MUCH_LONGER 4           /* times what a call took on trial */
#define MANY_LATE 8             /* such calls in a row: a busy machine delays some */
#define SLACK_NS 100000
#define HOPELESS_NS 50000000    /* by so much more a plain call need not be repeated */
#define MOST_TRIALS 16

bool
entry_is_on_trial(const Entry *entry, const ThreadState *ts)
{
    if (entry->trial == NULL || ts->active != NULL) {
        return false;
    }
    return entry->plain_won || (entry->hits >= WARM_UP + entry->rest && !ts->on_trial);
}

static void
end_trial(Entry *entry)
{
    Py_CLEAR(entry->trial);
    Py_CLEAR(entry->plain);
    entry->plain_won = false;
}

static PyObject *
ask(Entry *entry, const char *name, const char *format, ...)
{
    PyThreadState *tstate = PyThreadState_GET();
    PyObject *trial = Py_NewRef(entry->trial);
    PyObject *method = PyObject_GetAttrString(trial, name);
    va_list values;
    va_start(values, format);
    PyObject *arguments = method == NULL ? NULL : Py_VaBuildValue(format, values);
    va_end(values);
    PyObject *answer = NULL;
    if (arguments != NULL) {
        bool hidden = own_work_begin(&thread_state, tstate);
        answer = PyObject_CallObject(method, arguments);
        own_work_end(&thread_state, tstate, hidden);
    }
    Py_XDECREF(arguments);
    Py_XDECREF(method);
    Py_DECREF(trial);
    return answer;
}

/* Have the entry that runs the original. False where there is to be no trial, or with an exception set. */
static bool
start_trial(Entry *entry, PyFunctionObject *func)
{
    if (entry->plain != NULL) {
        return true;
    }
    PyObject *plain = ask(entry, "plain_entry", "(O)", (PyObject *)func);
    if (plain == NULL || !Py_IS_TYPE(plain, &Entry_Type)) {
        Py_XDECREF(plain);
        end_trial(entry);
        return false;
    }
    entry_set_origin((Entry *)plain, (PyCodeObject *)func->func_code);
    Py_XSETREF(entry->plain, (Entry *)plain); /* another thread may have asked meanwhile */
    entry->samples = 0;
    entry->best[0] = entry->best[1] = INT64_MAX;
    return true;
}

static void
begin_anew(Entry *entry, int most)
{
    entry->late = 0;
    entry->samples = 0;
    entry->best[0] = entry->best[1] = INT64_MAX;
    if (++entry->trials >= most) {
        end_trial(entry);
    }
}

/* Compiled code won. Where it was not by far, and plain code has not had its second chance, it gets one later. */
static void
keep_compiled(Entry *entry)
{
    bool is_close = entry->best[0] <= LONGEST_NS && entry->best[1] / 2 <= entry->best[0];
    entry->rest = entry->hits + REST;
    begin_anew(entry, is_close ? CHANCES : 0);
}

static void
watch_winner(Entry *entry, int64_t took)
{
    if (took / MUCH_LONGER <= entry->best[1] + SLACK_NS / MUCH_LONGER) {
        entry->late = 0;
    }
    else if (++entry->late >= MANY_LATE) {
        entry->plain_won = false;
        begin_anew(entry, MOST_TRIALS);
    }
}

enum verdict { OPEN, PLAIN_WINS, COMPILED_WINS };

/* What the best times so far say. A machine that does other work, too, makes few of them unsure: the closer they
 * are, the more calls are made. What is equal stays compiled. */
static enum verdict
judge(const Entry *entry, bool plain, int64_t took)
{
    double compiled = (double)entry->best[0];
    double original = (double)entry->best[1];
    if (entry->best[0] > LONGEST_NS || (plain && original > compiled && took - entry->best[0] > HOPELESS_NS)) {
        return COMPILED_WINS;
    }
    if (!plain || entry->samples < CLEAR_SAMPLES) {
        return OPEN;
    }
    bool few = entry->samples < FEW_SAMPLES;
    bool many = entry->samples >= MANY_SAMPLES;
    if (original < compiled * (few ? 0.5 : many ? 0.95 : 0.8)) {
        return PLAIN_WINS;
    }
    return many || original > compiled * (few ? 2 : 1.1) ? COMPILED_WINS : OPEN;
}

/* -1 with an exception set */
static int
count_sample(Entry *entry, bool plain, int64_t took)
{
    if (entry->trial == NULL) { /* another thread settled it */
        return 0;
    }
    if (entry->plain_won) {
        watch_winner(entry, took);
        return 0;
    }
    entry->samples++;
    if (took < entry->best[plain]) {
        entry->best[plain] = took;
    }
    enum verdict verdict = judge(entry, plain, took);
    if (verdict == COMPILED_WINS) {
        keep_compiled(entry);
    }
    if (verdict != PLAIN_WINS) {
        return 0;
    }
    entry->plain_won = true;
    PyObject *done = ask(entry, "decided", "(LL)", (long long)entry->best[0], (long long)entry->best[1]);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

PyObject *
run_on_trial(Dispatcher *self, ThreadState *ts, PyFunctionObject *func, Hit *hit, const GuardEnv *env,
             PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Entry *entry = (Entry *)Py_NewRef((PyObject *)hit->entry);
    bool plain = false;
    if (start_trial(entry, func)) {
        plain = entry->plain_won || entry->samples % 2 == 1;
        if (plain) {
            Py_SETREF(hit->entry, (Entry *)Py_NewRef((PyObject *)entry->plain));
        }
    }
    else if (PyErr_Occurred()) {
        hit_release(hit);
        Py_DECREF(entry);
        return NULL;
    }
    bool inner = ts->on_trial;
    uint64_t captures = counters.captures;
    ts->on_trial = true;
    int64_t start = clock_ns(CLOCK_MONOTONIC);
    PyObject *result = run_entry(self, ts, hit, env, args, nargsf, kwnames);
    int64_t took = clock_ns(CLOCK_MONOTONIC) - start;
    ts->on_trial = inner;
    if (result != NULL && !inner && counters.captures == captures && count_sample(entry, plain, took) < 0) {
        Py_CLEAR(result);
    }
    Py_DECREF(entry);
    return result;
}
