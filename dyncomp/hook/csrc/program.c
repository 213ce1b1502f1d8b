/* Guard programs: a flat list of instructions over registers.
 *
 * Loads write registers 0, 1, 2, ... in order and hold a strong reference; checks read them. Everything
 * about an instruction is verified when the program is made, so that running it only has to look at values.
 */
#include "program.h"

#define MAX_STACK 64

PyObject *
guard_opcodes(void)
{
#define AS_NAME(name) {#name, OP_##name},
    static const struct { const char *name; int op; } table[] = {LOADS(AS_NAME) CHECKS(AS_NAME) GLOBALS(AS_NAME)};
    PyObject *ops = PyDict_New();
    for (size_t i = 0; ops != NULL && i < sizeof(table) / sizeof(table[0]); i++) {
        PyObject *number = PyLong_FromLong(table[i].op);
        if (number == NULL || PyDict_SetItemString(ops, table[i].name, number) < 0) {
            Py_CLEAR(ops);
        }
        Py_XDECREF(number);
    }
    return ops;
}

/* -- symbolic conditions --------------------------------------------------------------------- */
enum { C_CONST, C_SYMBOL, C_ADD, C_SUB, C_MUL, C_NEG, C_FLOORDIV, C_MOD, C_MIN, C_MAX, C_EQ, C_NE, C_LT, C_LE,
       C_GT, C_GE, C_AND, C_OR, C_NOT, NUM_CODES };

typedef struct {
    int relation; /* C_EQ, C_NE, C_LT or C_LE */
    Py_ssize_t n;
    struct { int code; int64_t value; } items[];
} Condition;

static int
condition_arity(int code)
{
    return code <= C_SYMBOL ? 0 : code == C_NEG || code == C_NOT ? 1 : 2;
}

/* program: (code, value, code, value, ...) */
static Condition *
condition_new(PyObject *program, int relation, int num_symbols)
{
    Py_ssize_t n = PyTuple_Check(program) ? PyTuple_GET_SIZE(program) / 2 : 0;
    Condition *c = PyMem_Calloc(1, sizeof(Condition) + (size_t)n * sizeof(c->items[0]));
    if (c == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    c->relation = relation;
    c->n = n;
    int depth = 0;
    bool good = n > 0 && (relation == C_EQ || relation == C_NE || relation == C_LT || relation == C_LE);
    for (Py_ssize_t i = 0; good && i < n; i++) {
        long code = PyLong_AsLong(PyTuple_GET_ITEM(program, 2 * i));
        long long value = PyLong_AsLongLong(PyTuple_GET_ITEM(program, 2 * i + 1));
        good = !PyErr_Occurred() && code >= 0 && code < NUM_CODES;
        if (good) {
            int arity = condition_arity((int)code);
            good = depth >= arity && (code != C_SYMBOL || (value >= 0 && value < num_symbols));
            depth += 1 - arity;
            good = good && depth <= MAX_STACK;
            c->items[i].code = (int)code;
            c->items[i].value = value;
        }
    }
    if (!good || depth != 1) {
        PyMem_Free(c);
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "malformed condition");
        }
        return NULL;
    }
    return c;
}

static bool
divide(int64_t a, int64_t b, bool quotient, int64_t *out)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        return false;
    }
    int64_t q = a / b, r = a % b;
    if (r != 0 && ((r < 0) != (b < 0))) {
        q--;
        r += b;
    }
    *out = quotient ? q : r;
    return true;
}

static bool
apply(int code, int64_t a, int64_t b, int64_t *out)
{
    switch (code) {
    case C_ADD: return !__builtin_add_overflow(a, b, out);
    case C_SUB: return !__builtin_sub_overflow(a, b, out);
    case C_MUL: return !__builtin_mul_overflow(a, b, out);
    case C_FLOORDIV: return divide(a, b, true, out);
    case C_MOD: return divide(a, b, false, out);
    case C_MIN: *out = a < b ? a : b; return true;
    case C_MAX: *out = a > b ? a : b; return true;
    case C_EQ: *out = a == b; return true;
    case C_NE: *out = a != b; return true;
    case C_LT: *out = a < b; return true;
    case C_LE: *out = a <= b; return true;
    case C_GT: *out = a > b; return true;
    case C_GE: *out = a >= b; return true;
    case C_AND: *out = a && b; return true;
    case C_OR: *out = a || b; return true;
    default: return false;
    }
}

static bool
condition_holds(const Condition *c, const int64_t *symbols)
{
    int64_t stack[MAX_STACK + 1];
    int top = 0;
    for (Py_ssize_t i = 0; i < c->n; i++) {
        int code = c->items[i].code;
        if (code == C_CONST) {
            stack[top++] = c->items[i].value;
        }
        else if (code == C_SYMBOL) {
            stack[top++] = symbols[c->items[i].value];
        }
        else if (code == C_NOT) {
            stack[top - 1] = !stack[top - 1];
        }
        else if (code == C_NEG) {
            if (__builtin_sub_overflow((int64_t)0, stack[top - 1], &stack[top - 1])) {
                return false;
            }
        }
        else {
            top--;
            if (!apply(code, stack[top - 1], stack[top], &stack[top - 1])) {
                return false;
            }
        }
    }
    int64_t holds;
    return apply(c->relation, stack[0], 0, &holds) && holds;
}

/* -- running --------------------------------------------------------------------------------- */
static inline PyObject *
borrowed_to_new(PyObject *dict, PyObject *name)
{
    if (dict == NULL || !PyDict_Check(dict) || !names_are_plain(dict)) {
        return NULL;
    }
    PyObject *value = PyDict_GetItemWithError(dict, name);
    if (value == NULL) {
        PyErr_Clear();
    }
    return Py_XNewRef(value);
}

static PyObject *
free_cell(const GuardEnv *env, int index)
{
    PyObject *closure = env->closure;
    if (closure == NULL || index >= PyTuple_GET_SIZE(closure)) {
        return NULL;
    }
    PyObject *cell = PyTuple_GET_ITEM(closure, index);
    return PyCell_Check(cell) ? cell : NULL;
}

static inline PyObject *
cell_contents(PyObject *cell)
{
    return cell != NULL && PyCell_Check(cell) ? Py_XNewRef(PyCell_GET(cell)) : NULL;
}

PyObject *
guard_load(const Instr *i, const GuardEnv *env, PyObject **regs)
{
    switch (i->op) {
    case OP_LOAD_ARG: return i->a < env->nargs ? Py_XNewRef(env->args[i->a]) : NULL;
    case OP_LOAD_CELL: return cell_contents(free_cell(env, i->a));
    case OP_LOAD_FREE_CELL: return Py_XNewRef(free_cell(env, i->a));
    case OP_LOAD_GLOBAL: return borrowed_to_new(env->globals, i->obj);
    case OP_LOAD_BUILTIN: return borrowed_to_new(env->builtins, i->obj);
    case OP_LOAD_GLOBALS: return Py_XNewRef(env->globals);
    case OP_LOAD_CONST: return Py_NewRef(i->obj);
    case OP_ATTR: return access_attr(regs[i->a], i->obj);
    case OP_TYPE_ATTR: return access_type_attr(regs[i->a], i->obj);
    case OP_INSTANCE_ATTR: return access_instance(regs[i->a], i->obj);
    case OP_ITEM: return access_item(regs[i->a], i->obj, i->b);
    case OP_DICT_KEY: return access_dict_nth(regs[i->a], i->b, false);
    case OP_DICT_VALUE: return access_dict_nth(regs[i->a], i->b, true);
    case OP_TYPE: return Py_NewRef((PyObject *)Py_TYPE(regs[i->a]));
    case OP_CELL_CONTENTS: return cell_contents(regs[i->a]);
    case OP_REFERENT: return access_referent(regs[i->a]);
    case OP_MAPPING: return access_mapping(regs[i->a]);
    default: return NULL;
    }
}

/* Code of the function is the guarded one; for stored guards the first code with the right hash is kept. */
static bool
code_is(Instr *i, PyObject *value)
{
    if (!PyFunction_Check(value)) {
        return false;
    }
    PyObject *code = PyFunction_GET_CODE(value);
    if (i->aux != NULL) {
        return code == (PyObject *)i->aux;
    }
    thread_state.compiling++; /* our own Python code is not captured */
    PyObject *found = PyObject_CallOneArg(PyTuple_GET_ITEM(i->obj, 1), code);
    thread_state.compiling--;
    PyObject *wanted = PyTuple_GET_ITEM(i->obj, 2);
    bool same = found != NULL && PyUnicode_Check(found) && PyUnicode_Compare(found, wanted) == 0;
    Py_XDECREF(found);
    drop_error();
    if (same && i->aux == NULL) {
        i->aux = Py_NewRef(code);
    }
    return same;
}

static bool
global_missing(const GuardEnv *env, PyObject *name)
{
    return env->globals != NULL && names_are_plain(env->globals) && access_in_dict(env->globals, name) == 0;
}

static bool
in_instance(PyObject *value, PyObject *name)
{
    PyObject *found = access_instance(value, name);
    Py_XDECREF(found);
    return found != NULL;
}

bool
guard_check(Instr *i, const GuardEnv *env, PyObject **regs, int64_t *symbols)
{
    switch (i->op) {
    case OP_ARRAY: return array_matches(i->aux, regs[i->reg]);
    case OP_TYPE_IS: return (PyObject *)Py_TYPE(regs[i->reg]) == i->obj;
    case OP_IS: return regs[i->reg] == i->obj;
    case OP_IS_NOT: return regs[i->reg] != i->obj;
    case OP_EQUALS: return const_equal(regs[i->reg], i->obj);
    case OP_LEN: return length_is(regs[i->reg], i->obj, i->a);
    case OP_DICT_KEYS: return dict_keys_are(regs[i->reg], i->obj);
    case OP_DICT_HAS: return access_in_dict(regs[i->reg], i->obj) == 1;
    case OP_DICT_LACKS: return access_in_dict(regs[i->reg], i->obj) == 0;
    case OP_HASATTR: return access_has_attr(regs[i->reg], i->obj) == 1;
    case OP_NOATTR: return access_has_attr(regs[i->reg], i->obj) == 0;
    case OP_INSTANCE_HAS: return in_instance(regs[i->reg], i->obj);
    case OP_INSTANCE_LACKS: return access_lacks_in_instance(regs[i->reg], i->obj);
    case OP_CODE_IS: return code_is(i, regs[i->reg]);
    case OP_TENSOR: return tensor_matches(i->aux, regs[i->reg]);
    case OP_ELEMENTS: return elements_are(regs[i->reg], i->obj);
    case OP_INT64: {
        int64_t value;
        return symbol_value(regs[i->reg], 0, 0, &value);
    }
    case OP_SAME: return regs[i->reg] == regs[i->a];
    case OP_NOT_SAME: return regs[i->reg] != regs[i->a];
    case OP_PYCHECK: return python_check(i->obj, regs[i->reg]);
    case OP_SYMBOL: return symbol_value(regs[i->reg], i->b & 15, i->b >> 4, &symbols[i->a]);
    case OP_GLOBAL_MISSING: return global_missing(env, i->obj);
    case OP_CONDITION: return condition_holds(i->aux, symbols);
    case OP_DISJOINT: /* 0, 1: of arrays, which share memory or do not; 2: of any objects */
        return i->a == 2 ? objects_distinct(i->obj, regs) : arrays_disjoint(i->obj, regs) == (i->a != 0);
    case OP_ERRSTATE: return errstate_read() == i->a;
    case OP_CLASS: return class_is(i->obj, &i->version);
    case OP_DICT: return dict_is(i->obj, &i->version);
    case OP_REGION: return breaks_are_errors(i->b != 0) == (i->a != 0);
    default: return false;
    }
}

static Py_ssize_t
run_all(GuardProgram *program, const GuardEnv *env, PyObject **registers, int *filled)
{
    int64_t symbols[MAX_SYMBOLS];
    Instr *instr = program->instrs, *end = instr + program->num_instrs;
    int n = 0;
    for (; instr < end; instr++) {
        if (instr->op < FIRST_CHECK) {
            PyObject *value = guard_load(instr, env, registers);
            if (value == NULL) {
                break;
            }
            registers[n++] = value;
        }
        else if (!guard_check(instr, env, registers, symbols)) {
            break;
        }
    }
    *filled = n;
    return instr == end ? -1 : instr - program->instrs;
}

Py_ssize_t
guard_run(GuardProgram *program, const GuardEnv *env, PyObject **registers, int *filled, const int **outputs)
{
    Py_ssize_t failed;
    int found = program->shortcut == NULL ? SHORTCUT_UNSURE : shortcut_run(program, env, registers, &failed);
    if (found != SHORTCUT_UNSURE) {
        *filled = found == SHORTCUT_HOLDS ? program->num_outputs : 0;
        *outputs = NULL;
        return found == SHORTCUT_HOLDS ? -1 : failed;
    }
    *outputs = program->outputs;
    failed = run_all(program, env, registers, filled);
    if (failed < 0 && program->num_instrs >= SHORTCUT_LEAST) {
        shortcut_learn(program, registers);
    }
    return failed;
}

/* -- building -------------------------------------------------------------------------------- */
static bool
wants_name(int op)
{
    return op == OP_LOAD_GLOBAL || op == OP_LOAD_BUILTIN || op == OP_ATTR || op == OP_TYPE_ATTR
        || op == OP_INSTANCE_ATTR || op == OP_HASATTR || op == OP_NOATTR || op == OP_INSTANCE_HAS
        || op == OP_INSTANCE_LACKS || op == OP_GLOBAL_MISSING;
}

static bool
reads_register(int op)
{
    return (op >= OP_ATTR && op < FIRST_CHECK) || op == OP_SAME || op == OP_NOT_SAME;
}

static bool
disjoint_is_valid(PyObject *spec, int n)
{
    if (!PyTuple_Check(spec) || PyTuple_GET_SIZE(spec) != 2) {
        return false;
    }
    int limit = n;
    for (int part = 0; part < 2; part++) {
        PyObject *numbers = PyTuple_GET_ITEM(spec, part);
        if (!PyTuple_Check(numbers)) {
            return false;
        }
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); i++) {
            PyObject *item = PyTuple_GET_ITEM(numbers, i); /* read again at each run: it must stay the same */
            long number = PyLong_CheckExact(item) ? PyLong_AsLong(item) : -1;
            if (number < 0 || number >= limit) {
                return false;
            }
        }
        limit = (int)PyTuple_GET_SIZE(numbers);
    }
    return true;
}

static bool
is_triple(PyObject *spec)
{
    return PyTuple_Check(spec) && PyTuple_GET_SIZE(spec) == 3;
}

static bool
code_spec_is_valid(Instr *i)
{
    PyObject *spec = i->obj;
    if (!PyTuple_Check(spec) || PyTuple_GET_SIZE(spec) != 3 || !PyUnicode_Check(PyTuple_GET_ITEM(spec, 2))) {
        return false;
    }
    PyObject *code = PyTuple_GET_ITEM(spec, 0);
    if (code != Py_None && !PyCode_Check(code)) {
        return false;
    }
    i->aux = code == Py_None ? NULL : Py_NewRef(code);
    return true;
}

/* Checks one instruction given what is defined so far; fills aux. -1 with an exception. */
static int
instr_finish(GuardProgram *program, Instr *i, int defined)
{
    bool good = true;
    if (i->op < FIRST_CHECK) {
        good = i->reg == defined && i->reg < program->num_registers && i->a >= 0;
    }
    else if (i->op < OP_GLOBAL_MISSING) {
        good = i->reg >= 0 && i->reg < defined;
    }
    if (reads_register(i->op)) {
        good = good && i->a >= 0 && i->a < defined;
    }
    if (good && wants_name(i->op)) {
        good = PyUnicode_CheckExact(i->obj);
        if (good) {
            PyUnicode_InternInPlace(&i->obj);
        }
    }
    if (!good) {
        goto malformed;
    }
    switch (i->op) {
    case OP_ARRAY: i->aux = array_facts_new(i->obj); break;
    case OP_TENSOR: i->aux = tensor_facts_new(i->obj); break;
    case OP_CONDITION: i->aux = condition_new(i->obj, i->a, program->num_symbols); break;
    case OP_ELEMENTS: good = PyBytes_CheckExact(i->obj); break;
    case OP_LEN: good = PyType_Check(i->obj); break;
    case OP_DICT_KEYS: good = PyTuple_Check(i->obj); break;
    case OP_PYCHECK: good = PyTuple_Check(i->obj) && PyTuple_GET_SIZE(i->obj) == 2; break;
    case OP_CLASS: good = is_triple(i->obj) && PyType_Check(PyTuple_GET_ITEM(i->obj, 2)); break;
    case OP_DICT: good = is_triple(i->obj) && PyDict_Check(PyTuple_GET_ITEM(i->obj, 2)); break;
    case OP_DISJOINT: good = disjoint_is_valid(i->obj, defined); break;
    case OP_CODE_IS: good = code_spec_is_valid(i); break;
    case OP_SYMBOL:
        good = i->a == program->num_symbols && i->a < MAX_SYMBOLS && i->b >= 0;
        program->num_symbols++;
        break;
    default: break;
    }
    if (PyErr_Occurred()) {
        return -1;
    }
    if (good) {
        return 0;
    }
malformed:
    PyErr_Format(PyExc_ValueError, "malformed guard instruction %d", i->op);
    return -1;
}

static int
program_fill(GuardProgram *self, PyObject *instructions)
{
    Py_ssize_t n = PyTuple_GET_SIZE(instructions);
    int defined = 0;
    self->instrs = PyMem_Calloc((size_t)n + 1, sizeof(Instr));
    if (self->instrs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < n; k++) {
        int op, reg, a, b, guard;
        PyObject *obj;
        PyObject *item = PyTuple_GET_ITEM(instructions, k);
        if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "iiiiOi", &op, &reg, &a, &b, &obj, &guard)) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_TypeError, "instructions are tuples");
            }
            return -1;
        }
        if (op < 0 || op >= NUM_OPS) {
            PyErr_Format(PyExc_ValueError, "unknown guard opcode %d", op);
            return -1;
        }
        Instr *i = &self->instrs[k];
        *i = (Instr){.op = (uint16_t)op, .reg = reg, .a = a, .b = b, .guard = guard, .obj = Py_NewRef(obj)};
        self->num_instrs = k + 1;
        if (instr_finish(self, i, defined) < 0) {
            return -1;
        }
        defined += op < FIRST_CHECK;
    }
    if (defined != self->num_registers) {
        PyErr_SetString(PyExc_ValueError, "the number of registers is wrong");
        return -1;
    }
    return 0;
}

static int
program_outputs(GuardProgram *self, PyObject *outputs)
{
    PyObject *items = PySequence_Tuple(outputs);
    if (items == NULL) {
        return -1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    self->outputs = PyMem_Calloc((size_t)n + 1, sizeof(int));
    for (Py_ssize_t k = 0; self->outputs != NULL && k < n; k++) {
        long number = PyLong_AsLong(PyTuple_GET_ITEM(items, k));
        if (number < 0 || number >= self->num_registers) {
            Py_DECREF(items);
            PyErr_Clear();
            PyErr_SetString(PyExc_ValueError, "an output is not a register");
            return -1;
        }
        self->outputs[k] = (int)number;
    }
    self->num_outputs = (int)n;
    Py_DECREF(items);
    return self->outputs == NULL ? -1 : 0;
}

PyObject *
program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"instructions", "num_registers", "guards", "outputs", NULL};
    PyObject *instructions, *guards = NULL, *outputs = NULL;
    int num_registers;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi|OO", names, &instructions, &num_registers, &guards,
                                     &outputs)) {
        return NULL;
    }
    GuardProgram *self = (GuardProgram *)type->tp_alloc(type, 0);
    PyObject *items = self == NULL ? NULL : PySequence_Tuple(instructions);
    if (items == NULL) {
        Py_XDECREF(self);
        return NULL;
    }
    self->vectorcall = (vectorcallfunc)program_call;
    self->num_registers = num_registers;
    self->guards = guards != NULL ? Py_NewRef(guards) : PyTuple_New(0);
    int bad = self->guards == NULL || program_fill(self, items) < 0
        || (outputs != NULL && program_outputs(self, outputs) < 0);
    Py_DECREF(items);
    if (bad) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

int
program_traverse(GuardProgram *self, visitproc visit, void *arg)
{
    Py_VISIT(self->guards);
    int stop = self->shortcut == NULL ? 0 : shortcut_traverse(self->shortcut, visit, arg);
    if (stop) {
        return stop;
    }
    for (Py_ssize_t k = 0; k < self->num_instrs; k++) {
        Py_VISIT(self->instrs[k].obj);
    }
    return 0;
}

int
program_clear(GuardProgram *self)
{
    /* Only the garbage collector comes here, when nobody can run the program any more. Instructions are
       disabled before their objects go, since destructors may still reach this object. */
    Py_ssize_t n = self->num_instrs;
    Instr *instrs = self->instrs;
    self->num_instrs = 0;
    self->instrs = NULL;
    self->num_outputs = 0;
    shortcut_drop(self);
    Py_CLEAR(self->guards);
    for (Py_ssize_t k = 0; k < n; k++) {
        if (instrs[k].op == OP_CODE_IS) {
            Py_XDECREF((PyObject *)instrs[k].aux);
        }
        else {
            PyMem_Free(instrs[k].aux);
        }
        Py_XDECREF(instrs[k].obj);
    }
    PyMem_Free(instrs);
    return 0;
}

void
program_dealloc(GuardProgram *self)
{
    PyObject_GC_UnTrack(self);
    program_clear(self);
    PyMem_Free(self->outputs);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

int
guard_of_instr(GuardProgram *program, Py_ssize_t number)
{
    return number < program->num_instrs ? program->instrs[number].guard : -1;
}
