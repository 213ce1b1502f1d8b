/* The Python face of guard programs: check, first_failure, read. */
#include "hook.h"

typedef struct {
    GuardEnv env;
    PyObject **registers;
    int filled;
    const int *outputs;
    Py_ssize_t failed;
} Run;

/* Arguments (args, globals, builtins, closure=None), then one run of the program. */
static int
run_from_python(GuardProgram *self, PyObject *args, PyObject *kwargs, Run *run)
{
    static char *names[] = {"args", "globals", "builtins", "closure", NULL};
    PyObject *bound, *globals, *builtins, *closure = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!|O", names, &PyTuple_Type, &bound, &PyDict_Type,
                                     &globals, &PyDict_Type, &builtins, &closure)) {
        return -1;
    }
    if (closure != Py_None && !PyTuple_Check(closure)) {
        PyErr_SetString(PyExc_TypeError, "closure must be a tuple of cells or None");
        return -1;
    }
    run->env = (GuardEnv){.args = &PyTuple_GET_ITEM(bound, 0), .nargs = PyTuple_GET_SIZE(bound),
                          .globals = globals, .builtins = builtins,
                          .closure = closure == Py_None ? NULL : closure};
    run->registers = PyMem_Calloc((size_t)self->num_registers + 1, sizeof(PyObject *));
    if (run->registers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    run->failed = guard_run(self, &run->env, run->registers, &run->filled, &run->outputs);
    return 0;
}

static void
run_done(Run *run)
{
    release_registers(run->registers, run->filled);
    PyMem_Free(run->registers);
}

static PyObject *
program_check(GuardProgram *self, PyObject *args, PyObject *kwargs)
{
    Run run;
    if (run_from_python(self, args, kwargs, &run) < 0) {
        return NULL;
    }
    run_done(&run);
    return PyBool_FromLong(run.failed < 0);
}

static PyObject *
program_first_failure(GuardProgram *self, PyObject *args, PyObject *kwargs)
{
    Run run;
    if (run_from_python(self, args, kwargs, &run) < 0) {
        return NULL;
    }
    run_done(&run);
    if (run.failed < 0) {
        Py_RETURN_NONE;
    }
    return PyLong_FromLong(guard_of_instr(self, run.failed));
}

/* A tuple of the outputs, after a run in which all guards held. */
static PyObject *
outputs_of(const GuardProgram *self, PyObject **registers, const int *outputs)
{
    PyObject *values = PyTuple_New(self->num_outputs);
    for (int k = 0; values != NULL && k < self->num_outputs; k++) {
        PyTuple_SET_ITEM(values, k, Py_NewRef(registers[output_register(outputs, k)]));
    }
    return values;
}

static PyObject *
program_read(GuardProgram *self, PyObject *args, PyObject *kwargs)
{
    Run run;
    if (run_from_python(self, args, kwargs, &run) < 0) {
        return NULL;
    }
    PyObject *values
        = run.failed < 0 ? outputs_of(self, run.registers, run.outputs) : Py_NewRef(Py_None);
    run_done(&run);
    return values;
}

PyObject *
program_call(GuardProgram *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    PyObject *few[STACK_REGISTERS];
    PyObject **registers = few;
    GuardEnv env = {.args = args, .nargs = PyVectorcall_NARGS(nargsf)};
    if (self->num_registers > STACK_REGISTERS) {
        registers = PyMem_Malloc((size_t)self->num_registers * sizeof(PyObject *));
        if (registers == NULL) {
            return PyErr_NoMemory();
        }
    }
    const int *outputs;
    int filled;
    Py_ssize_t failed = guard_run(self, &env, registers, &filled, &outputs);
    PyObject *values = NULL;
    if (failed >= 0) {
        PyErr_Format(PyExc_LookupError, "what instruction %zd reads has gone", failed);
    }
    else {
        values = outputs_of(self, registers, outputs);
    }
    release_registers(registers, filled);
    if (registers != few) {
        PyMem_Free(registers);
    }
    return values;
}

static PyObject *
program_repr(GuardProgram *self)
{
    return PyUnicode_FromFormat("<GuardProgram: %zd guards, %zd instructions, %d registers>",
                                self->guards == NULL ? 0 : PyTuple_GET_SIZE(self->guards), self->num_instrs,
                                self->num_registers);
}

static PyObject *
program_get_guards(GuardProgram *self, void *unused)
{
    return self->guards == NULL ? PyTuple_New(0) : Py_NewRef(self->guards);
}

static PyObject *
program_get_steps(GuardProgram *self, void *unused)
{
    return self->shortcut == NULL ? Py_NewRef(Py_None) : PyLong_FromLong(shortcut_steps(self->shortcut));
}

static PyMethodDef methods[] = {
    {"check", (PyCFunction)(void (*)(void))program_check, METH_VARARGS | METH_KEYWORDS,
     "check(args, globals, builtins, closure=None) -> bool"},
    {"first_failure", (PyCFunction)(void (*)(void))program_first_failure, METH_VARARGS | METH_KEYWORDS,
     "first_failure(args, globals, builtins, closure=None) -> index of a guard, -1 for an output, or None"},
    {"read", (PyCFunction)(void (*)(void))program_read, METH_VARARGS | METH_KEYWORDS,
     "read(args, globals, builtins, closure=None) -> tuple of outputs or None"},
    {NULL},
};

static PyMemberDef members[] = {
    {"num_outputs", T_INT, offsetof(GuardProgram, num_outputs), READONLY, "number of outputs"},
    {NULL},
};

static PyGetSetDef getset[] = {
    {"guards", (getter)program_get_guards, NULL, "the guards, for people", NULL},
    {"steps", (getter)program_get_steps, NULL, "the number of steps of its shortcut, or None", NULL},
    {NULL},
};

PyTypeObject GuardProgram_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.GuardProgram",
    .tp_doc = "A flat guard program; see guards.compile_guards.",
    .tp_basicsize = sizeof(GuardProgram),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(GuardProgram, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = program_new,
    .tp_dealloc = (destructor)program_dealloc,
    .tp_traverse = (traverseproc)program_traverse,
    .tp_clear = (inquiry)program_clear,
    .tp_repr = (reprfunc)program_repr,
    .tp_methods = methods,
    .tp_members = members,
    .tp_getset = getset,
};
