/* Instructions of guard programs, for what runs them. */
#ifndef DYNCOMP_PROGRAM_H
#define DYNCOMP_PROGRAM_H

#include "hook.h"

struct Instr {
    uint16_t op;
    int reg, a, b, guard;
    PyObject *obj;
    void *aux;
    uint64_t version; /* of a class or dict when it was last found to be as it was */
    uint8_t changes;  /* of a load: what shortcut.c found to change between calls */
};

/* name, reads register `reg` (checks) or `a` (loads): see INSTRUCTIONS in capture/guards/program.py */
#define LOADS(X) \
    X(LOAD_ARG) X(LOAD_CELL) X(LOAD_FREE_CELL) X(LOAD_GLOBAL) X(LOAD_BUILTIN) X(LOAD_GLOBALS) X(LOAD_CONST) \
    X(ATTR) X(TYPE_ATTR) X(INSTANCE_ATTR) X(ITEM) X(DICT_KEY) X(DICT_VALUE) X(TYPE) X(CELL_CONTENTS) X(REFERENT) \
    X(MAPPING)
#define CHECKS(X) \
    X(IS) X(IS_NOT) X(TYPE_IS) X(EQUALS) X(LEN) X(DICT_KEYS) X(DICT_HAS) X(DICT_LACKS) X(HASATTR) X(NOATTR) \
    X(INSTANCE_HAS) X(INSTANCE_LACKS) X(CODE_IS) X(ARRAY) X(TENSOR) X(ELEMENTS) X(INT64) X(SAME) X(NOT_SAME) \
    X(PYCHECK) X(SYMBOL)
#define GLOBALS(X) X(GLOBAL_MISSING) X(CONDITION) X(DISJOINT) X(ERRSTATE) X(REGION) X(CLASS) X(DICT)

#define AS_ENUM(name) OP_##name,
enum { LOADS(AS_ENUM) FIRST_CHECK, BEFORE_CHECKS = FIRST_CHECK - 1, CHECKS(AS_ENUM) GLOBALS(AS_ENUM) NUM_OPS };

#define MAX_SYMBOLS 256

/* New reference, or NULL: the guard misses. */
PyObject *guard_load(const Instr *i, const GuardEnv *env, PyObject **regs);
bool guard_check(Instr *i, const GuardEnv *env, PyObject **regs, int64_t *symbols);

#endif
