/* Guard programs that have held before, run again with less work.
 *
 * A model's guards read thousands of attributes and items of dictionaries that never change between two calls.
 * A dictionary's version is another after every change, and no two dictionaries have had the same one: where a
 * dictionary is at its old address with its old version it is the same dictionary, with the same keys and values,
 * and has held its values all the time. So a run in which all guards held leaves a shortcut: the steps to see that
 * each dictionary is as it was, and those instructions whose answer that does not settle.
 *
 * A register is one of
 *   UNKNOWN  its instruction is run,
 *   PINNED   it holds an object at the address of before, perhaps another one,
 *   SAME     it holds the very object of before.
 * References to objects of before are borrowed: a step only reads what the steps before it found to be there.
 * Checks that may run Python code come last, with references of their own.
 *
 * From CPython 3.13 on most objects keep their attributes in themselves, where stores change no version: there the
 * steps compare each attribute, and what is read is only PINNED.
 *
 * What turns out to change between calls (a counter in a module's globals) is run in the next shortcut.
 */
#include "program.h"

#define FIRST_WAIT 2
#define LONGEST_WAIT (1u << 20)
#define FEW_HITS 32

enum { UNKNOWN, PINNED, SAME };
enum { CHANGES_VALUE = 1, CHANGES_DICT = 2 };

enum { OBJECT, DICTIONARY, FIELD, NAMES, LOAD, PIN, CHECK };

typedef struct {
    int kind;
    int from;           /* the instruction that loads what may have changed */
    PyObject *object;   /* all but LOAD and CHECK: at its address of before */
    PyTypeObject *type; /* OBJECT, DICTIONARY, FIELD, NAMES */
    PyObject **slot;    /* OBJECT: of its dictionary; FIELD: of the attribute */
    union {
        PyObject *value; /* OBJECT, FIELD: what is in the slot */
        Instr *instr;    /* LOAD, PIN, CHECK: with registers of the shortcut */
    };
    uint64_t version; /* OBJECT, DICTIONARY; NAMES: the number of names */
} Step;

struct Shortcut {
    int users; /* the program, and runs under way */
    uint32_t hits;
    int unsure; /* the step that did not hold in the last run */
    int num_steps, num_last, num_instrs;
    Step *steps; /* the last ones may run Python code */
    Instr *instrs;
    int num_known, num_registers;
    PyObject **known; /* borrowed: the first registers */
    int num_outputs;
    int *outputs;
    PyObject *kept; /* list: types, and specifications of this shortcut's own */
};

static void
release(Shortcut *s)
{
    if (s == NULL || --s->users > 0) {
        return;
    }
    PyMem_Free(s->steps);
    PyMem_Free(s->instrs);
    PyMem_Free(s->known);
    PyMem_Free(s->outputs);
    Py_XDECREF(s->kept);
    PyMem_Free(s);
}

void
shortcut_drop(GuardProgram *program)
{
    Shortcut *old = program->shortcut;
    program->shortcut = NULL;
    release(old);
}

int
shortcut_steps(const Shortcut *s)
{
    return s->num_steps;
}

int
shortcut_traverse(Shortcut *s, visitproc visit, void *arg)
{
    Py_VISIT(s->kept);
    return 0;
}

/* -- running ------------------------------------------------------------------------------------------ */
/* How many attributes instances of a type may have in themselves. */
static uint64_t
number_of_names(PyTypeObject *type)
{
    return (uint64_t)((PyHeapTypeObject *)type)->ht_cached_keys->dk_nentries;
}

/* The number of steps that hold; `loaded` counts the strong references in registers from `num_known` on. */
static int
run_steps(Shortcut *s, int first, int end, const GuardEnv *env, PyObject **regs, int64_t *symbols, int *loaded)
{
    int k = first;
    for (; k < end; k++) {
        Step *step = &s->steps[k];
        if (step->kind == DICTIONARY) {
            if (Py_TYPE(step->object) != step->type || dict_version(step->object) != step->version) {
                break;
            }
        }
        else if (step->kind == OBJECT) {
            if (Py_TYPE(step->object) != step->type || *step->slot != step->value
                || dict_version(step->value) != step->version) {
                break;
            }
        }
        else if (step->kind == FIELD || step->kind == NAMES) {
            if (Py_TYPE(step->object) != step->type || instance_inline_values(step->object) == NULL
                || (step->kind == FIELD ? *step->slot != step->value : number_of_names(step->type) != step->version)) {
                break;
            }
        }
        else if (step->kind == CHECK) {
            if (!guard_check(step->instr, env, regs, symbols)) {
                break;
            }
        }
        else {
            PyObject *value = guard_load(step->instr, env, regs);
            if (value == NULL) {
                break;
            }
            regs[s->num_known + (*loaded)++] = value;
            if (step->kind == PIN && value != step->object) {
                break;
            }
        }
    }
    return k;
}

static bool
all_hold(Shortcut *s, const GuardEnv *env, PyObject **regs, PyObject **outputs, int *failed)
{
    int64_t symbols[MAX_SYMBOLS];
    int loaded = 0, first_last = s->num_steps - s->num_last;
    memcpy(regs, s->known, (size_t)s->num_known * sizeof(PyObject *));
    *failed = run_steps(s, 0, first_last, env, regs, symbols, &loaded);
    bool good = *failed == first_last;
    if (good) {
        for (int k = 0; k < s->num_outputs; k++) {
            outputs[k] = Py_NewRef(regs[s->outputs[k]]);
        }
        if (s->num_last > 0) {
            for (int k = 0; k < s->num_known; k++) {
                Py_INCREF(regs[k]);
            }
            *failed = run_steps(s, first_last, s->num_steps, env, regs, symbols, &loaded);
            good = *failed == s->num_steps;
            release_registers(regs, s->num_known);
        }
        if (!good) {
            release_registers(outputs, s->num_outputs);
        }
    }
    release_registers(regs + s->num_known, loaded);
    return good;
}

int
shortcut_run(GuardProgram *program, const GuardEnv *env, PyObject **registers, Py_ssize_t *failed)
{
    Shortcut *s = program->shortcut;
    PyObject *few[4 * STACK_REGISTERS];
    PyObject **regs = few;
    if (s->num_registers > 4 * STACK_REGISTERS) {
        regs = PyMem_Malloc((size_t)s->num_registers * sizeof(PyObject *));
        if (regs == NULL) {
            return SHORTCUT_UNSURE;
        }
    }
    int at, result = SHORTCUT_HOLDS;
    s->users++;
    if (all_hold(s, env, regs, registers, &at)) {
        s->hits++;
    }
    else {
        Step *step = &s->steps[at];
        s->unsure = at;
        *failed = step->from;
        result = step->kind == CHECK ? SHORTCUT_FAILS : SHORTCUT_UNSURE;
    }
    release(s);
    if (regs != few) {
        PyMem_Free(regs);
    }
    return result;
}

/* All guards held, though a step of the shortcut did not. */
static void
is_stale(GuardProgram *program)
{
    Shortcut *s = program->shortcut;
    Step *step = &s->steps[s->unsure];
    bool is_dict = step->kind == OBJECT || step->kind == DICTIONARY;
    program->instrs[step->from].changes |= is_dict ? CHANGES_DICT : CHANGES_VALUE;
    program->patience = s->hits >= FEW_HITS ? FIRST_WAIT : Py_MIN(2 * program->patience, LONGEST_WAIT);
    program->wait = program->patience;
    shortcut_drop(program);
}

/* -- making ------------------------------------------------------------------------------------------- */
typedef struct {
    GuardProgram *program;
    PyObject **values; /* of registers */
    Shortcut *made;
    uint8_t *state;   /* of registers: UNKNOWN, PINNED, SAME */
    uint8_t *is_base; /* whether something is read of it that a dictionary's version may settle */
    int8_t *settled;  /* 1: there is a step for its dictionary; -1: there cannot be one; 0: not asked yet */
    int *from;        /* the instruction that loads a register */
    int *number;      /* in the shortcut: of what is known, or FIRST_LOADED - n of the n-th that it loads itself */
} Making;

enum { NO_NUMBER = -1, FIRST_LOADED = -2 };

static Step *
add_step(Making *m, int kind, int from)
{
    Step *step = &m->made->steps[m->made->num_steps++];
    *step = (Step){.kind = kind, .from = from};
    return step;
}

/* Give a register that an instruction reads a number in the shortcut, if it has none yet. */
static void
number(Making *m, int reg)
{
    if (m->number[reg] == NO_NUMBER) {
        m->made->known[m->made->num_known] = m->values[reg];
        m->number[reg] = m->made->num_known++;
    }
}

static bool
keep(Making *m, PyObject *object)
{
    if (PyType_Check(object) && !(((PyTypeObject *)object)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        return true; /* it stays */
    }
    return PyList_Append(m->made->kept, object) == 0;
}

/* Whether all stores into a dictionary change its version: on 3.13 not those into one that shares the values
   kept in an object. */
static bool
has_versions(PyObject *dict)
{
#if PY_VERSION_HEX >= 0x030D0000
    if (((PyDictObject *)dict)->ma_values != NULL) {
        return false;
    }
#endif
    return PyDict_Check(dict) && dict_version(dict) != 0 && names_are_plain(dict);
}

/* Where the object has the address of its dictionary, which only the type says: nowhere, NULL, in objects whose
   sizes differ. */
static PyObject **
slot_of_dict(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (has_managed_dict(type)) {
        return managed_dict_slot(object);
    }
    return type->tp_dictoffset > 0 ? (PyObject **)((char *)object + type->tp_dictoffset) : NULL;
}

/* Have the shortcut see that the attributes of what is in a register are as they were. */
static bool
settle_object(Making *m, int reg)
{
    if (m->settled[reg] == 0) {
        m->settled[reg] = -1;
        PyObject *object = m->values[reg];
        if (m->state[reg] == UNKNOWN || PyType_Check(object)
            || m->program->instrs[m->from[reg]].changes & CHANGES_DICT) {
            return false;
        }
        PyObject **slot = slot_of_dict(object);
        PyObject *dict = plain_dict(object);
        if (slot == NULL || dict == NULL || *slot != dict || !has_versions(dict)
            || !keep(m, (PyObject *)Py_TYPE(object))) {
            return false;
        }
        Step *step = add_step(m, OBJECT, m->from[reg]);
        step->object = object;
        step->type = Py_TYPE(object);
        step->slot = slot;
        step->value = dict;
        step->version = dict_version(dict);
        m->settled[reg] = 1;
    }
    return m->settled[reg] > 0;
}

/* The same of a dictionary's items. */
static bool
settle_dict(Making *m, int reg)
{
    if (m->settled[reg] == 0) {
        m->settled[reg] = -1;
        PyObject *dict = m->values[reg];
        if (m->state[reg] == UNKNOWN || !PyDict_Check(dict) || !has_versions(dict)
            || m->program->instrs[m->from[reg]].changes & CHANGES_DICT || !keep(m, (PyObject *)Py_TYPE(dict))) {
            return false;
        }
        Step *step = add_step(m, DICTIONARY, m->from[reg]);
        step->object = dict;
        step->type = Py_TYPE(dict);
        step->version = dict_version(dict);
        m->settled[reg] = 1;
    }
    return m->settled[reg] > 0;
}

/* Have the shortcut see that an attribute that the object has in itself, or has not, is as it was. */
static bool
settle_field(Making *m, int reg, int k)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *object = m->values[reg];
    const Instr *i = &m->program->instrs[k];
    if (m->state[reg] == UNKNOWN || i->changes & CHANGES_VALUE) {
        return false;
    }
    PyDictValues *values = instance_inline_values(object);
    PyTypeObject *type = Py_TYPE(object);
    if (values == NULL || ((PyHeapTypeObject *)type)->ht_cached_keys == NULL || !keep(m, (PyObject *)type)) {
        return false;
    }
    int place = place_of_inline_value(object, i->obj);
    Step *step = add_step(m, place >= 0 ? FIELD : NAMES, k);
    step->object = object;
    step->type = type;
    if (place >= 0) {
        step->slot = &values->values[place];
        step->value = *step->slot;
    }
    else {
        step->version = number_of_names(type);
    }
    return true;
#else
    return false;
#endif
}

static bool
is_constant(PyObject *value)
{
    return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyUnicode_CheckExact(value)
        || PyFloat_CheckExact(value) || PyBytes_CheckExact(value) || PyComplex_CheckExact(value);
}

/* Whether what an instruction asks about an object stays so as long as the object lives. */
static bool
stays_so(const Instr *i, PyObject *value)
{
    switch (i->op) {
    case OP_TYPE_IS: return !(Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE);
    case OP_EQUALS: return is_constant(value);
    case OP_LEN: return PyTuple_CheckExact(value) || PyUnicode_CheckExact(value);
    default: return false;
    }
}

/* Whether the steps so far settle a check that has held. */
static bool
is_settled(Making *m, int k)
{
    const Instr *i = &m->program->instrs[k];
    if (i->op >= OP_GLOBAL_MISSING) {
        return false;
    }
    int state = m->state[i->reg];
    bool is_dict = PyDict_Check(m->values[i->reg]);
    switch (i->op) {
    case OP_IS: case OP_IS_NOT: return state != UNKNOWN;
    case OP_SAME: case OP_NOT_SAME: return state != UNKNOWN && m->state[i->a] != UNKNOWN;
    case OP_INSTANCE_HAS: case OP_INSTANCE_LACKS: return settle_object(m, i->reg) || settle_field(m, i->reg, k);
    case OP_DICT_HAS: case OP_DICT_LACKS: return settle_dict(m, i->reg);
    /* the order of an OrderedDict changes without its version */
    case OP_DICT_KEYS: return PyDict_CheckExact(m->values[i->reg]) && settle_dict(m, i->reg);
    case OP_LEN:
        if (is_dict && settle_dict(m, i->reg)) {
            return true;
        }
        break;
    case OP_TYPE_IS: /* the steps of dictionaries look at the type too */
        if (m->is_base[i->reg] && (is_dict ? settle_dict(m, i->reg) : settle_object(m, i->reg))) {
            return true;
        }
        break;
    default: break;
    }
    return state == SAME && stays_so(i, m->values[i->reg]);
}

/* What the steps so far make of the result of a load. */
static int
state_of_load(Making *m, int k)
{
    const Instr *i = &m->program->instrs[k];
    switch (i->op) {
    case OP_LOAD_CONST: return SAME;
    case OP_INSTANCE_ATTR:
        if (settle_object(m, i->a)) {
            return SAME;
        }
        return settle_field(m, i->a, k) ? PINNED : UNKNOWN;
    case OP_ITEM:
        if (PyTuple_CheckExact(m->values[i->a])) {
            return m->state[i->a] == SAME ? SAME : UNKNOWN;
        }
        return PyDict_Check(m->values[i->a]) && settle_dict(m, i->a) ? SAME : UNKNOWN;
    default: return UNKNOWN;
    }
}

static bool
may_run_python(const Instr *i)
{
    return i->op == OP_PYCHECK || i->op == OP_CLASS || i->op == OP_DICT;
}

static bool
reads_base(int op)
{
    return (op > OP_LOAD_CONST && op < FIRST_CHECK) || op == OP_SAME || op == OP_NOT_SAME;
}

static bool
reads_register(int op)
{
    return op >= FIRST_CHECK && op < OP_GLOBAL_MISSING;
}

static void
number_registers(Making *m, const Instr *i)
{
    if (reads_base(i->op)) {
        number(m, i->a);
    }
    if (reads_register(i->op)) {
        number(m, i->reg);
    }
    if (i->op == OP_DISJOINT) { /* its registers are in a tuple */
        PyObject *registers = PyTuple_GET_ITEM(i->obj, 0);
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(registers); k++) {
            number(m, (int)PyLong_AsLong(PyTuple_GET_ITEM(registers, k)));
        }
    }
}

static void
add_instr(Making *m, int k, int *loaded)
{
    Instr *i = &m->program->instrs[k];
    bool is_load = i->op < FIRST_CHECK;
    int kind = is_load ? LOAD : CHECK;
    if (is_load && m->is_base[i->reg] && !(i->changes & CHANGES_VALUE)) {
        kind = PIN;
    }
    number_registers(m, i);
    Instr *copy = &m->made->instrs[m->made->num_instrs++];
    *copy = *i;
    Step *step = add_step(m, kind, k);
    step->instr = copy;
    if (is_load) {
        step->object = m->values[i->reg];
        m->state[i->reg] = kind == PIN ? PINNED : UNKNOWN;
        if (kind == LOAD) {
            m->number[i->reg] = FIRST_LOADED - *loaded;
        }
        ++*loaded;
    }
}

/* A register's number, now that it is known how many come before those that are loaded. */
static int
final_number(const Making *m, int reg)
{
    int found = m->number[reg];
    return found <= FIRST_LOADED ? m->made->num_known + FIRST_LOADED - found : found;
}

/* The specification of OP_DISJOINT with registers of the shortcut. Borrowed; NULL: out of memory. */
static PyObject *
renumbered(Making *m, PyObject *spec)
{
    PyObject *registers = PyTuple_GET_ITEM(spec, 0);
    Py_ssize_t n = PyTuple_GET_SIZE(registers);
    PyObject *own = PyTuple_New(n);
    for (Py_ssize_t k = 0; own != NULL && k < n; k++) {
        int reg = (int)PyLong_AsLong(PyTuple_GET_ITEM(registers, k));
        PyObject *item = PyLong_FromLong(final_number(m, reg));
        if (item == NULL) {
            Py_CLEAR(own);
            break;
        }
        PyTuple_SET_ITEM(own, k, item);
    }
    PyObject *made = own == NULL ? NULL : PyTuple_Pack(2, own, PyTuple_GET_ITEM(spec, 1));
    Py_XDECREF(own);
    bool good = made != NULL && keep(m, made);
    Py_XDECREF(made);
    return good ? made : NULL;
}

static bool
renumber(Making *m)
{
    Shortcut *s = m->made;
    for (int k = 0; k < s->num_instrs; k++) {
        Instr *i = &s->instrs[k];
        if (reads_base(i->op)) {
            i->a = final_number(m, i->a);
        }
        if (reads_register(i->op)) {
            i->reg = final_number(m, i->reg);
        }
        if (i->op == OP_DISJOINT) {
            i->obj = renumbered(m, i->obj);
            if (i->obj == NULL) {
                return false;
            }
        }
    }
    for (int k = 0; k < s->num_outputs; k++) {
        s->outputs[k] = final_number(m, m->program->outputs[k]);
    }
    return true;
}

/* Mark the registers of which something is read that the version of a dictionary may settle. */
static void
find_bases(Making *m)
{
    for (Py_ssize_t k = 0; k < m->program->num_instrs; k++) {
        Instr *i = &m->program->instrs[k];
        if (i->op < FIRST_CHECK) {
            m->from[i->reg] = (int)k;
        }
        if (i->op == OP_INSTANCE_ATTR) {
            m->is_base[i->a] = plain_dict(m->values[i->a]) != NULL;
        }
        else if (i->op == OP_INSTANCE_HAS || i->op == OP_INSTANCE_LACKS) {
            m->is_base[i->reg] = plain_dict(m->values[i->reg]) != NULL;
        }
        else if (i->op == OP_ITEM && PyDict_Check(m->values[i->a])) {
            m->is_base[i->a] = 1;
        }
    }
}

static bool
make(Making *m)
{
    GuardProgram *program = m->program;
    Shortcut *s = m->made;
    int loaded = 0;
    find_bases(m);
    for (int last = 0; last < 2; last++) {
        int before = s->num_steps;
        for (int k = 0; k < program->num_instrs; k++) {
            Instr *i = &program->instrs[k];
            if (i->op < FIRST_CHECK) {
                if (last) {
                    continue;
                }
                m->state[i->reg] = (uint8_t)state_of_load(m, k);
                if (m->state[i->reg] != UNKNOWN) {
                    continue;
                }
            }
            else if (may_run_python(i) != last || is_settled(m, k)) {
                continue;
            }
            add_instr(m, k, &loaded);
        }
        s->num_last = last ? s->num_steps - before : 0;
    }
    for (int k = 0; k < program->num_outputs; k++) {
        number(m, program->outputs[k]);
    }
    s->num_outputs = program->num_outputs;
    s->num_registers = s->num_known + loaded;
    return renumber(m) && 4 * s->num_instrs <= 3 * program->num_instrs;
}

static Shortcut *
shortcut_new(GuardProgram *program, PyObject **registers)
{
    size_t n = (size_t)program->num_registers + 1, most = (size_t)program->num_instrs + 1;
    Shortcut *s = PyMem_Calloc(1, sizeof(Shortcut));
    Making m = {.program = program, .values = registers, .made = s};
    m.state = PyMem_Calloc(3 * n, 1);
    m.from = PyMem_Calloc(2 * n, sizeof(int));
    if (s != NULL) {
        s->users = 1;
        s->steps = PyMem_Calloc(2 * most, sizeof(Step));
        s->instrs = PyMem_Calloc(most, sizeof(Instr));
        s->known = PyMem_Calloc(n, sizeof(PyObject *));
        s->outputs = PyMem_Calloc((size_t)program->num_outputs + 1, sizeof(int));
        s->kept = PyList_New(0);
    }
    bool good = s != NULL && m.state != NULL && m.from != NULL && s->steps != NULL && s->instrs != NULL
        && s->known != NULL && s->outputs != NULL && s->kept != NULL;
    if (good) {
        m.is_base = m.state + n;
        m.settled = (int8_t *)m.state + 2 * n;
        m.number = m.from + n;
        memset(m.number, 0xff, n * sizeof(int)); /* NO_NUMBER */
        good = make(&m);
    }
    PyErr_Clear(); /* out of memory: no shortcut */
    PyMem_Free(m.state);
    PyMem_Free(m.from);
    if (!good) {
        release(s);
        return NULL;
    }
    s->steps = PyMem_Realloc(s->steps, (size_t)(s->num_steps + 1) * sizeof(Step));
    return s;
}

void
shortcut_learn(GuardProgram *program, PyObject **registers)
{
    if (program->patience == 0) {
        program->wait = program->patience = FIRST_WAIT;
    }
    if (program->shortcut != NULL) {
        is_stale(program);
    }
    if (program->num_outputs > program->num_registers || --program->wait > 0) {
        return;
    }
    /* the references that the caller holds keep every value where it is */
    Shortcut *made = shortcut_new(program, registers);
    if (made == NULL) {
        program->patience = Py_MIN(4 * program->patience, LONGEST_WAIT);
        program->wait = program->patience;
    }
    else if (program->shortcut == NULL) { /* a collection may have run code */
        program->shortcut = made;
    }
    else {
        release(made);
    }
}
