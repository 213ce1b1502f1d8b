/* What a gate before a loop asks: enters compiled code where a plan takes the values, and asks Python otherwise.
 *
 * gate[values] is (way, exception to raise there or None, payload): see python_code/gates.py. A subclass in Python
 * has ask(values), which answers where no plan does, and finish(plan, words, values, raised), which makes the
 * answer of what a plan's function wrote; raised: what it raised the last time, or None. */
#include "loop_plan.h"

#define FEW_WORDS 128
#define MOST_ATTEMPTS 8

typedef struct {
    PyObject_HEAD
    PyObject *plans; /* a tuple */
    Ticks *ticks;
    long long fewest, lead, runs, setbacks;
} LoopGate;

static PyObject *ask_name, *finish_name;

static PyObject *
gate_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (ask_name == NULL) {
        ask_name = PyUnicode_InternFromString("ask");
        finish_name = PyUnicode_InternFromString("finish");
    }
    LoopGate *self = ask_name == NULL || finish_name == NULL ? NULL : (LoopGate *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->plans = PyTuple_New(0);
    self->ticks = (Ticks *)PyObject_CallNoArgs((PyObject *)&Ticks_Type);
    if (self->plans == NULL || self->ticks == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int
gate_traverse(LoopGate *self, visitproc visit, void *arg)
{
    Py_VISIT(self->plans);
    return 0;
}

static int
gate_clear(LoopGate *self)
{
    Py_CLEAR(self->plans);
    return 0;
}

static void
gate_dealloc(LoopGate *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->plans);
    Py_CLEAR(self->ticks);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static bool
errors_may_be_raised(void)
{
    long mask = errstate_read();
    if (mask < 0) {
        return true;
    }
    for (int k = 0; k < 4; k++) {
        if (((mask >> 3 * k) & 7) > 1) { /* more than warnings */
            return true;
        }
    }
    return false;
}

/* The iterator of the loop itself, which the program may hold, is left where the loop left it. */
static void
advance(const LoopPlan *plan, PyObject *values, const Word *in, const Word *out, int form)
{
    if (plan->num_inputs > 0 && plan->inputs[0].code == 'r') {
        int64_t end = form == LEFT_AT_END ? in[1].i : out[1].i;
        range_advance((RangeIterator *)PyTuple_GET_ITEM(values, 0), (long)((end - in[0].i) / in[2].i));
    }
}

static PyObject *
answer(int way, PyObject *payload)
{
    PyObject *number = PyLong_FromLong(way);
    PyObject *found = number == NULL ? NULL : PyTuple_Pack(3, number, Py_None, payload);
    Py_XDECREF(number);
    Py_DECREF(payload);
    return found;
}

static PyObject *
finish(LoopGate *self, LoopPlan *plan, PyObject *values, const Word *in)
{
    PyObject *words = PyBytes_FromStringAndSize((const char *)in, 2 * plan->words * (Py_ssize_t)sizeof(Word));
    if (words == NULL) {
        return NULL;
    }
    PyObject *raised = Py_NewRef(Py_None), *found = NULL;
    for (int k = 0; found == NULL && k < MOST_ATTEMPTS; k++) {
        PyErr_Clear();
        found = PyObject_CallMethodObjArgs((PyObject *)self, finish_name, plan, words, values, raised, NULL);
        if (found == NULL) {
            /* a signal handler's: what the loop has done must come back all the same */
            PyObject *type, *value, *traceback;
            PyErr_Fetch(&type, &value, &traceback);
            PyErr_NormalizeException(&type, &value, &traceback);
            if (traceback != NULL) {
                PyException_SetTraceback(value, traceback);
            }
            Py_SETREF(raised, Py_NewRef(value));
            PyErr_Restore(type, value, traceback);
        }
    }
    Py_DECREF(raised);
    Py_DECREF(words);
    return found;
}

static PyObject *
leave(LoopGate *self, LoopPlan *plan, PyObject *values, const Word *in, const Word *out)
{
    int64_t number = out[0].i - 1;
    if (number < 0 || number >= plan->num_leaves || plan->leaves[number].form == LEFT_OTHERWISE) {
        return finish(self, plan, values, in);
    }
    Leave left = plan->leaves[number];
    bool with_iterator = left.form == LEFT_WITH_ITERATOR;
    PyObject *payload = PyTuple_New(plan->num_outputs + with_iterator);
    for (Py_ssize_t k = 0; payload != NULL && k < plan->num_outputs; k++) {
        PyObject *value = plan_output(plan, k, values, out);
        if (value == NULL) {
            Py_DECREF(payload);
            return PyErr_Occurred() ? NULL : finish(self, plan, values, in);
        }
        PyTuple_SET_ITEM(payload, k, value);
    }
    if (payload == NULL) {
        return NULL;
    }
    if (with_iterator) {
        PyTuple_SET_ITEM(payload, plan->num_outputs, Py_NewRef(PyTuple_GET_ITEM(values, 0)));
    }
    advance(plan, values, in, out, left.form);
    self->setbacks = 0;
    self->ticks->left = self->lead;
    return answer(left.way, payload);
}

/* Steps of a loop over a range that it is too short to be entered for; 0 where it is not. */
static long
few_steps(const LoopGate *self, const LoopPlan *plan, PyObject *values)
{
    if (plan->num_inputs == 0 || plan->inputs[0].code != 'r') {
        return 0;
    }
    long start, left;
    range_rest((RangeIterator *)PyTuple_GET_ITEM(values, 0), &start, &left);
    return left < self->fewest ? left + 1 : 0;
}

/* What the plan gives; NULL without an exception where it does not take the values. */
static PyObject *
follow(LoopGate *self, LoopPlan *plan, PyObject *values)
{
    Word few[FEW_WORDS], *words = few;
    if (2 * plan->words > FEW_WORDS) {
        words = PyMem_Malloc(2 * (size_t)plan->words * sizeof(Word));
        if (words == NULL) {
            return NULL;
        }
    }
    PyObject *found = NULL;
    if (plan_takes(plan, values, words)) {
        long steps = few_steps(self, plan, values);
        if (steps > 0) {
            self->ticks->left = steps;
            PyObject *nothing = PyTuple_New(0);
            found = nothing == NULL ? NULL : PyTuple_Pack(3, Py_None, Py_None, nothing);
            Py_XDECREF(nothing);
        }
        else {
            memset(words + plan->words, 0, (size_t)plan->words * sizeof(Word));
            int64_t start = span_start();
            plan->function(words, words + plan->words);
            if (start != 0) {
                span_record(SPAN_LOOP, (PyObject *)self, start, 1);
            }
            self->runs++;
            found = leave(self, plan, values, words, words + plan->words);
            PyObject *type, *value, *traceback; /* arrays may die of this */
            PyErr_Fetch(&type, &value, &traceback);
            plan_release(plan, words + plan->words);
            PyErr_Restore(type, value, traceback);
        }
    }
    if (words != few) {
        PyMem_Free(words);
    }
    return found;
}

static PyObject *
gate_ask(LoopGate *self, PyObject *values)
{
    PyObject *plans = self->plans;
    bool may = plans != NULL && PyTuple_CheckExact(plans) && PyTuple_GET_SIZE(plans) > 0
        && PyTuple_CheckExact(values) && !is_traced(PyThreadState_Get()) && !errors_may_be_raised();
    if (may) {
        Py_INCREF(plans);
        PyObject *found = NULL;
        for (Py_ssize_t k = 0; found == NULL && !PyErr_Occurred() && k < PyTuple_GET_SIZE(plans); k++) {
            PyObject *plan = PyTuple_GET_ITEM(plans, k);
            found = Py_IS_TYPE(plan, &LoopPlan_Type) ? follow(self, (LoopPlan *)plan, values) : NULL;
        }
        Py_DECREF(plans);
        if (found != NULL || PyErr_Occurred()) {
            return found;
        }
    }
    return PyObject_CallMethodOneArg((PyObject *)self, ask_name, values);
}

static PyMemberDef gate_members[] = {
    {"plans", T_OBJECT, offsetof(LoopGate, plans), 0, "a tuple of plans, asked one after the other"},
    {"ticks", T_OBJECT, offsetof(LoopGate, ticks), READONLY, "the countdown of steps in plain Python"},
    {"fewest", T_LONGLONG, offsetof(LoopGate, fewest), 0, "ranges with fewer steps left run as plain Python"},
    {"lead", T_LONGLONG, offsetof(LoopGate, lead), 0, "steps in plain Python after each run, should the next be short"},
    {"runs", T_LONGLONG, offsetof(LoopGate, runs), 0, "how often compiled code was entered"},
    {"setbacks", T_LONGLONG, offsetof(LoopGate, setbacks), 0, "how often it was left early, one after the other"},
    {NULL},
};

static PyMappingMethods gate_mapping = {.mp_subscript = (binaryfunc)gate_ask};

PyTypeObject LoopGate_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.LoopGate",
    .tp_basicsize = sizeof(LoopGate),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What a gate before a loop asks: gate[values]; see bytecode.gates.",
    .tp_new = gate_new,
    .tp_dealloc = (destructor)gate_dealloc,
    .tp_traverse = (traverseproc)gate_traverse,
    .tp_clear = (inquiry)gate_clear,
    .tp_as_mapping = &gate_mapping,
    .tp_members = gate_members,
};
