/* Where CPython's and NumPy's objects keep what compiled loops read and write in place (`scalar_loops`).
 *
 * The offsets are the compiler's, from the headers of the version that this is built for. What no header
 * declares is declared here and stands under the versions for which it was read. */
#include "hook.h"

#include <stddef.h>

#include <numpy/arrayscalars.h>

/* Modules/_collectionsmodule.c of 3.11 to 3.13 */
#define DEQUE_BLOCK 64
typedef struct block {
    struct block *left;
    PyObject *data[DEQUE_BLOCK];
    struct block *right;
} DequeBlock;
typedef struct {
    PyObject_VAR_HEAD
    DequeBlock *left, *right;
    Py_ssize_t left_index, right_index;
    size_t state;
    Py_ssize_t max_length;
} Deque;

/* Modules/_randommodule.c of 3.11 to 3.13 */
typedef struct {
    PyObject_HEAD
    int index;
    uint32_t words[624];
} RandomState;

#if PY_VERSION_HEX >= 0x030C0000
#define INT_HEAD offsetof(PyLongObject, long_value.lv_tag)
#define INT_DIGITS offsetof(PyLongObject, long_value.ob_digit)
#else
#define INT_HEAD offsetof(PyLongObject, ob_base.ob_size)
#define INT_DIGITS offsetof(PyLongObject, ob_digit)
#endif

/* `struct List` of the generated code */
static_assert(offsetof(PyListObject, ob_base.ob_size) == 16, "lists");
static_assert(offsetof(PyListObject, ob_item) == 24, "lists");
static_assert(offsetof(PyListObject, allocated) == 32, "lists");
static_assert(offsetof(PyTupleObject, ob_base.ob_size) == 16, "tuples");
static_assert(offsetof(Deque, ob_base.ob_size) == 16, "deques");
/* types and reference counts are read without a name */
static_assert(offsetof(PyObject, ob_refcnt) == 0 && offsetof(PyObject, ob_type) == 8, "objects");
/* a key lies before its value */
static_assert(offsetof(PyDictKeyEntry, me_value) - offsetof(PyDictKeyEntry, me_key) == 8, "dicts");
static_assert(offsetof(PyDictUnicodeEntry, me_value) - offsetof(PyDictUnicodeEntry, me_key) == 8, "dicts");
/* np.float64 is a float */
static_assert(offsetof(PyFloatObject, ob_fval) == offsetof(PyDoubleScalarObject, obval), "floats");
/* one name for the value of all of NumPy's integers and floats */
static_assert(offsetof(PyLongScalarObject, obval) == offsetof(PyDoubleScalarObject, obval), "scalars");
static_assert(offsetof(PyIntScalarObject, obval) == offsetof(PyDoubleScalarObject, obval), "scalars");
static_assert(offsetof(PyFloatScalarObject, obval) == offsetof(PyDoubleScalarObject, obval), "scalars");
static_assert(PyLong_SHIFT == 30 && sizeof(digit) == 4, "digits");

static const struct {
    const char *name;
    size_t value;
} LAYOUT[] = {
    {"FLOAT_VALUE", offsetof(PyFloatObject, ob_fval)},
    {"COMPLEX_REAL", offsetof(PyComplexObject, cval.real)},
    {"COMPLEX_IMAG", offsetof(PyComplexObject, cval.imag)},
    {"SCALAR_VALUE", offsetof(PyDoubleScalarObject, obval)},
    {"INT_HEAD", INT_HEAD},
    {"INT_DIGITS", INT_DIGITS},
    {"TUPLE_ITEMS", offsetof(PyTupleObject, ob_item)},
    {"TEXT_HASH", offsetof(PyASCIIObject, hash)},
    {"DICT_USED", offsetof(PyDictObject, ma_used)},
    {"DICT_KEYS", offsetof(PyDictObject, ma_keys)},
    {"KEYS_BITS", offsetof(PyDictKeysObject, dk_log2_size)},
    {"KEYS_INDEX_BITS", offsetof(PyDictKeysObject, dk_log2_index_bytes)},
    {"KEYS_KIND", offsetof(PyDictKeysObject, dk_kind)},
    {"KEYS_INDICES", offsetof(PyDictKeysObject, dk_indices)},
    {"ENTRY_HASH", offsetof(PyDictKeyEntry, me_hash)},
    {"ENTRY_KEY", offsetof(PyDictKeyEntry, me_key)},
    {"ENTRY_VALUE", offsetof(PyDictKeyEntry, me_value)},
    {"ENTRY_SIZE", sizeof(PyDictKeyEntry)},
    {"TEXT_ENTRY_KEY", offsetof(PyDictUnicodeEntry, me_key)},
    {"TEXT_ENTRY_VALUE", offsetof(PyDictUnicodeEntry, me_value)},
    {"TEXT_ENTRY_SIZE", sizeof(PyDictUnicodeEntry)},
    {"SET_USED", offsetof(PySetObject, used)},
    {"SET_MASK", offsetof(PySetObject, mask)},
    {"SET_TABLE", offsetof(PySetObject, table)},
    {"SET_ENTRY_KEY", offsetof(setentry, key)},
    {"SET_ENTRY_HASH", offsetof(setentry, hash)},
    {"SET_ENTRY_SIZE", sizeof(setentry)},
    {"DEQUE_BLOCK", DEQUE_BLOCK},
    {"DEQUE_LEFT", offsetof(Deque, left)},
    {"DEQUE_RIGHT", offsetof(Deque, right)},
    {"DEQUE_LEFT_INDEX", offsetof(Deque, left_index)},
    {"DEQUE_RIGHT_INDEX", offsetof(Deque, right_index)},
    {"DEQUE_STATE", offsetof(Deque, state)},
    {"DEQUE_MAX_LENGTH", offsetof(Deque, max_length)},
    {"BLOCK_ITEMS", offsetof(DequeBlock, data)},
    {"RANDOM_STATE", offsetof(RandomState, index)},
};

/* A new dict of these names and numbers. */
PyObject *
object_layout(void)
{
    PyObject *found = PyDict_New();
    for (size_t i = 0; found != NULL && i < sizeof LAYOUT / sizeof *LAYOUT; i++) {
        PyObject *value = PyLong_FromSize_t(LAYOUT[i].value);
        if (value == NULL || PyDict_SetItemString(found, LAYOUT[i].name, value) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(value);
    }
    return found;
}
