/* Plans of compiled loops, for loop_plan.c and loop_gate.c. */
#ifndef DYNCOMP_LOOP_PLAN_H
#define DYNCOMP_LOOP_PLAN_H

#include "hook.h"

typedef union {
    int64_t i;
    double d;
} Word;
typedef int64_t (*LoopFunction)(const Word *in, Word *out);

/* As in scalar_loops/code/walk.py. */
enum { TAG_GIVEN = 0, TAG_UNBOUND = 1, FIRST_TAG = 2 };
/* How a loop is left: at its end, by way of an instruction with its own iterator on the stack, otherwise. */
enum { LEFT_AT_END = 0, LEFT_WITH_ITERATOR = 1, LEFT_OTHERWISE = 2 };

/* The value number `index` of those given, and of which kind it must be. */
typedef struct {
    Py_ssize_t index;
    char code;
    PyObject *object;
    int a, b, c, d;
} Input;

/* How to make an object of the word number `at`. */
typedef struct {
    char code;
    Py_ssize_t at;
    int num;
} Box;

/* A local that comes back: its tag is the word number `at` (-1: it is as it was given), its kinds by tag. */
typedef struct {
    Py_ssize_t index, at, count;
    Box *boxes;
} Output;

typedef struct {
    int way, form;
} Leave;

typedef struct {
    PyObject_HEAD
    LoopFunction function;
    Py_ssize_t words, num_inputs, num_outputs, num_leaves, owned_at, num_owned;
    Input *inputs;
    Output *outputs;
    Leave *leaves;
    PyObject *program, *unbound, *given_inputs, *assumptions, *given_outputs, *given_leaves;
} LoopPlan;

/* Whether the loop's function takes these values now; their words are written. No user code runs. */
bool plan_takes(const LoopPlan *plan, PyObject *values, Word *in);
/* The output number `k`. New reference, or NULL: without an exception where it takes Python to make it. */
PyObject *plan_output(const LoopPlan *plan, Py_ssize_t k, PyObject *values, const Word *out);
/* Let go of the arrays that the loop's function made: what comes back has been made into objects. */
void plan_release(const LoopPlan *plan, Word *out);

#endif
