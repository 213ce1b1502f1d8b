/* Per-thread state, counters, C stack limits, and when the frame hook is installed. */
#define _GNU_SOURCE
#include "hook.h"
#include <pthread.h>

__thread ThreadState thread_state;
Counters counters;
int process_stance = STANCE_DEFAULT;

static int active_threads = 0; /* threads with an active config */
static int suspensions = 0;    /* frames that run deep in the C stack without the hook */

/* -- C stack --------------------------------------------------------------------------------- */
void
stack_limits(ThreadState *ts)
{
    char here;
    char *low = &here - (1 << 19);
    size_t size = 1 << 20; /* if the system does not tell: assume half a megabyte left */
#ifdef __APPLE__
    size = pthread_get_stacksize_np(pthread_self());
    low = (char *)pthread_get_stackaddr_np(pthread_self()) - size;
#else
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        void *address;
        size_t found;
        if (pthread_attr_getstack(&attributes, &address, &found) == 0 && found > 0) {
            low = address;
            size = found;
        }
        pthread_attr_destroy(&attributes);
    }
#endif
    if (size > (size_t)1 << 30) { /* "unlimited": use at most a gigabyte */
        low += size - ((size_t)1 << 30);
        size = (size_t)1 << 30;
    }
    size_t reserve = size >= (size_t)2 << 20 ? (size_t)256 << 10 : size / 8;
    ts->stack_hard = low + reserve;
    ts->stack_soft = low + size / 2;
}

/* -- installing ------------------------------------------------------------------------------ */
static void
hook_update(void)
{
    if (active_threads > 0 && suspensions == 0) {
        hook_install();
    }
    else {
        hook_uninstall();
    }
}

HookConfig *
activate(ThreadState *ts, HookConfig *config)
{
    HookConfig *previous = ts->active;
    ts->active = (HookConfig *)Py_XNewRef((PyObject *)config);
    if ((config != NULL) != (previous != NULL)) {
        active_threads += config != NULL ? 1 : -1;
        hook_update();
    }
    else if (config != NULL && suspensions == 0) {
        hook_install(); /* another evaluator may have taken its place and left */
    }
    return previous;
}

HookConfig *
push_active(ThreadState *ts, HookConfig *config)
{
    if (ts->pushed++ == 0) {
        ts->base = (HookConfig *)Py_XNewRef((PyObject *)ts->active);
    }
    return activate(ts, config);
}

void
pop_active(ThreadState *ts, HookConfig *previous)
{
    HookConfig *wanted = previous;
    if (--ts->pushed == 0) {
        wanted = ts->base;
        ts->base = NULL;
        Py_XDECREF(previous);
    }
    HookConfig *current = activate(ts, wanted);
    Py_XDECREF(wanted);
    Py_XDECREF(current);
}

void
hook_suspend(ThreadState *ts)
{
    ts->suspended++;
    suspensions++;
    hook_update();
}

void
hook_resume(ThreadState *ts)
{
    ts->suspended--;
    suspensions--;
    hook_update();
}

/* In a forked child only this thread is left. */
static void
after_fork(void)
{
    active_threads = thread_state.active != NULL;
    suspensions = thread_state.suspended;
    thread_state.stack_hard = thread_state.stack_soft = NULL;
    hook_update();
}

int
state_setup(void)
{
    return pthread_atfork(NULL, NULL, after_fork);
}
