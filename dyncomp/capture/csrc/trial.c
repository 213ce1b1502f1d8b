/* Whether a function that is captured in pieces is quicker as it is: its first calls are made both ways, in turn.
 *
 * Between the pieces is plain Python, and each piece costs guards and a call. Where the program's own steps are
 * small that may take longer than they do. What wins is settled by the best times of a few calls each; where plain
 * Python won and a call then takes much longer than those did, both are tried again. */
#include "dispatcher.h"

#include <time.h>

#define WARM_UP 16              /* hits before the first call that is timed */
#define SAMPLES 5               /* calls each way */
#define LONGEST_NS 20000000     /* what takes longer compiled is not tried */
#define MUCH_LONGER 4           /* times what a call took on trial */
#define MANY_LATE 8             /* such calls in a row: a busy machine delays some */
#define SLACK_NS 100000
#define HOPELESS_NS 50000000    /* by so much more a plain call need not be repeated */
#define MOST_TRIALS 16

static int64_t
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool
entry_is_on_trial(const Entry *entry, const ThreadState *ts)
{
    if (entry->trial == NULL || ts->active != NULL) {
        return false;
    }
    return entry->plain_won || (entry->hits >= WARM_UP && !ts->on_trial);
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
        thread_state.compiling++;
        recursion_refund(tstate, CAPTURE_RECURSION);
        answer = PyObject_CallObject(method, arguments);
        recursion_refund(tstate, -CAPTURE_RECURSION);
        thread_state.compiling--;
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
    Py_XSETREF(entry->plain, (Entry *)plain); /* another thread may have asked meanwhile */
    entry->samples = 0;
    entry->best[0] = entry->best[1] = INT64_MAX;
    return true;
}

static void
watch_winner(Entry *entry, int64_t took)
{
    if (took / MUCH_LONGER <= entry->best[1] + SLACK_NS / MUCH_LONGER) {
        entry->late = 0;
    }
    else if (++entry->late >= MANY_LATE) {
        entry->plain_won = false;
        entry->late = 0;
        entry->samples = 0;
        entry->best[0] = entry->best[1] = INT64_MAX;
        if (++entry->trials >= MOST_TRIALS) {
            end_trial(entry);
        }
    }
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
    bool slower = plain && entry->best[1] > entry->best[0];
    bool lost = (slower && (entry->samples >= 6 || took - entry->best[0] > HOPELESS_NS))
        || entry->best[0] > LONGEST_NS;
    bool over = entry->samples >= 2 * SAMPLES;
    if (lost || (over && entry->best[1] > entry->best[0] / 5 * 4)) {
        end_trial(entry);
        return 0;
    }
    if (!over) {
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
    int64_t start = now();
    PyObject *result = run_entry(self, ts, hit, env, args, nargsf, kwnames);
    int64_t took = now() - start;
    ts->on_trial = inner;
    if (result != NULL && !inner && counters.captures == captures && count_sample(entry, plain, took) < 0) {
        Py_CLEAR(result);
    }
    Py_DECREF(entry);
    return result;
}
