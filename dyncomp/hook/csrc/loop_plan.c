/* How values enter one compiled loop: see scalar_loops/entry/entry_plan.py. loop_results.c: how they come back. */
#include "loop_plan.h"

#define LARGEST ((int64_t)1 << 31)       /* as in scalar_loops/kinds/kinds.py */
#define LARGEST_AXIS ((int64_t)1 << 40)
#define LONGEST_STEP ((int64_t)1 << 20)

static PyObject *builtins; /* the module's names */

/* -- making ---------------------------------------------------------------------------------- */
static bool
read_input(PyObject *spec, Input *in)
{
    int code;
    return PyArg_ParseTuple(spec, "nCOiiii", &in->index, &code, &in->object, &in->a, &in->b, &in->c, &in->d)
        && (in->code = (char)code, true);
}

static bool
read_box(PyObject *spec, Box *box)
{
    int code;
    return PyArg_ParseTuple(spec, "Cni", &code, &box->at, &box->num) && (box->code = (char)code, true);
}

static bool
read_output(PyObject *spec, Output *out)
{
    PyObject *boxes;
    if (!PyArg_ParseTuple(spec, "nnO!", &out->index, &out->at, &PyTuple_Type, &boxes)) {
        return false;
    }
    out->count = PyTuple_GET_SIZE(boxes);
    out->boxes = PyMem_Calloc((size_t)out->count + 1, sizeof(Box));
    if (out->boxes == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t k = 0; k < out->count; k++) {
        if (!read_box(PyTuple_GET_ITEM(boxes, k), &out->boxes[k])) {
            return false;
        }
    }
    return true;
}

/* The tuples stay alive with the plan: what is read from them is borrowed. */
static bool
read_all(LoopPlan *self)
{
    for (Py_ssize_t k = 0; k < self->num_inputs; k++) {
        if (!read_input(PyTuple_GET_ITEM(self->given_inputs, k), &self->inputs[k])) {
            return false;
        }
    }
    for (Py_ssize_t k = 0; k < self->num_outputs; k++) {
        if (!read_output(PyTuple_GET_ITEM(self->given_outputs, k), &self->outputs[k])) {
            return false;
        }
    }
    for (Py_ssize_t k = 0; k < self->num_leaves; k++) {
        Leave *leave = &self->leaves[k];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(self->given_leaves, k), "ii", &leave->way, &leave->form)) {
            return false;
        }
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(self->assumptions); k++) {
        PyObject *holder, *name, *found;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(self->assumptions, k), "OOO", &holder, &name, &found)) {
            return false;
        }
        if (!PyUnicode_Check(name) && !PyLong_CheckExact(name)) {
            PyErr_SetString(PyExc_TypeError, "an assumption needs the name of a variable or the number of a cell");
            return false;
        }
    }
    return true;
}

static PyObject *
plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    unsigned long long address;
    Py_ssize_t words;
    PyObject *program, *unbound, *inputs, *assumptions, *outputs, *leaves;
    Py_ssize_t owned_at, num_owned;
    if (!PyArg_ParseTuple(args, "OKnOO!O!O!O!nn", &program, &address, &words, &unbound, &PyTuple_Type, &inputs,
                          &PyTuple_Type, &assumptions, &PyTuple_Type, &outputs, &PyTuple_Type, &leaves,
                          &owned_at, &num_owned)) {
        return NULL;
    }
    if (builtins == NULL) {
        PyObject *module = PyImport_ImportModule("builtins");
        builtins = module == NULL ? NULL : Py_NewRef(PyModule_GetDict(module));
        Py_XDECREF(module);
    }
    LoopPlan *self = builtins == NULL ? NULL : (LoopPlan *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->function = (LoopFunction)(uintptr_t)address;
    self->words = words;
    self->owned_at = owned_at;
    self->num_owned = num_owned;
    self->program = Py_NewRef(program);
    self->unbound = Py_NewRef(unbound);
    self->given_inputs = Py_NewRef(inputs);
    self->assumptions = Py_NewRef(assumptions);
    self->given_outputs = Py_NewRef(outputs);
    self->given_leaves = Py_NewRef(leaves);
    self->num_inputs = PyTuple_GET_SIZE(inputs);
    self->num_leaves = PyTuple_GET_SIZE(leaves);
    self->inputs = PyMem_Calloc((size_t)self->num_inputs + 1, sizeof(Input));
    self->outputs = PyMem_Calloc((size_t)PyTuple_GET_SIZE(outputs) + 1, sizeof(Output));
    self->leaves = PyMem_Calloc((size_t)self->num_leaves + 1, sizeof(Leave));
    if (self->inputs == NULL || self->outputs == NULL || self->leaves == NULL) {
        PyErr_NoMemory();
        Py_DECREF(self);
        return NULL;
    }
    self->num_outputs = PyTuple_GET_SIZE(outputs);
    if (!read_all(self)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int
plan_traverse(LoopPlan *self, visitproc visit, void *arg)
{
    Py_VISIT(self->program);
    Py_VISIT(self->unbound);
    Py_VISIT(self->given_inputs);
    Py_VISIT(self->assumptions);
    Py_VISIT(self->given_outputs);
    Py_VISIT(self->given_leaves);
    return 0;
}

/* No tp_clear: what a plan holds is immutable, and whoever holds plans lets go of them. */
static void
plan_dealloc(LoopPlan *self)
{
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t k = 0; self->outputs != NULL && k < self->num_outputs; k++) {
        PyMem_Free(self->outputs[k].boxes);
    }
    PyMem_Free(self->inputs);
    PyMem_Free(self->outputs);
    PyMem_Free(self->leaves);
    Py_XDECREF(self->program);
    Py_XDECREF(self->unbound);
    Py_XDECREF(self->given_inputs);
    Py_XDECREF(self->assumptions);
    Py_XDECREF(self->given_outputs);
    Py_XDECREF(self->given_leaves);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* -- values that enter ----------------------------------------------------------------------- */
/* One of NumPy's scalars as its word. */
static void
word_of(const void *data, int num, Word *word)
{
    switch (num) {
    case NPY_BOOL: word->i = *(const npy_bool *)data != 0; break;
    case NPY_BYTE: word->i = *(const npy_byte *)data; break;
    case NPY_UBYTE: word->i = *(const npy_ubyte *)data; break;
    case NPY_SHORT: word->i = *(const npy_short *)data; break;
    case NPY_USHORT: word->i = *(const npy_ushort *)data; break;
    case NPY_INT: word->i = *(const npy_int *)data; break;
    case NPY_UINT: word->i = *(const npy_uint *)data; break;
    case NPY_LONG: word->i = *(const npy_long *)data; break;
    case NPY_ULONG: word->i = (int64_t)*(const npy_ulong *)data; break;
    case NPY_FLOAT: word->d = *(const npy_float *)data; break;
    default: word->d = *(const npy_double *)data; break;
    }
}

static Word *
array_enters(PyObject *value, const Input *in, Word *at)
{
    if (!PyArray_CheckExact(value)) {
        return NULL;
    }
    PyArrayObject *array = (PyArrayObject *)value;
    PyArray_Descr *descr = PyArray_DESCR(array);
    int n = PyArray_NDIM(array);
    if (descr->type_num != in->a || !PyArray_ISNBO(descr->byteorder) || n != in->b
        || PyArray_ISWRITEABLE(array) != (in->c != 0)) {
        return NULL;
    }
    const npy_intp *dims = PyArray_DIMS(array), *strides = PyArray_STRIDES(array);
    bool dense = n > 0 && strides[n - 1] == PyArray_ITEMSIZE(array);
    if (dense != (in->d & 1) || (in->d > 1 && dims[n - 1] != (in->d >> 1) - 1)) {
        return NULL;
    }
    (at++)->i = (int64_t)(intptr_t)PyArray_DATA(array);
    for (int k = 0; k < n; k++) {
        if (dims[k] > LARGEST_AXIS) {
            return NULL;
        }
        (at++)->i = dims[k];
    }
    for (int k = 0; k < n - dense; k++) {
        (at++)->i = strides[k];
    }
    (at++)->i = (int64_t)(intptr_t)value;
    return at;
}

static bool
is_small(int64_t value)
{
    return value > -LARGEST && value < LARGEST;
}

static Word *
range_enters(PyObject *value, const Input *in, Word *at)
{
    if (!Py_IS_TYPE(value, &PyRangeIter_Type)) {
        return NULL;
    }
    const RangeIterator *it = (const RangeIterator *)value;
    long start, left, step = it->step, stop;
    range_rest(it, &start, &left);
    if (!is_small(start) || !is_small(step) || __builtin_mul_overflow(left, step, &stop)
        || __builtin_add_overflow(stop, start, &stop) || !is_small(stop)) {
        return NULL;
    }
    int known = step > -LONGEST_STEP && step < LONGEST_STEP ? (int)step : 0;
    if (known != in->a || (step > 0) - (step < 0) != in->b || (step > 0 && start >= 0) != (in->c != 0)) {
        return NULL;
    }
    (at++)->i = start;
    (at++)->i = stop;
    (at++)->i = step;
    return at;
}

static bool is_list_of(PyObject *value, const char *levels);

static bool
is_scalar(PyObject *value, int num)
{
    PyObject *type = PyArray_TypeObjectFromType(num);
    bool found = (PyObject *)Py_TYPE(value) == type;
    Py_XDECREF(type);
    return found;
}

/* Whether a tuple has items of these kinds; a parenthesis ends them. */
static bool
is_tuple_of(PyObject *value, const char *kinds)
{
    if (!PyTuple_CheckExact(value)) {
        return false;
    }
    Py_ssize_t size = PyTuple_GET_SIZE(value);
    for (Py_ssize_t k = 0; k < size; k++) {
        if (kinds[k] == ')' || !is_list_of(PyTuple_GET_ITEM(value, k), kinds + k)) {
            return false;
        }
    }
    return kinds[size] == ')';
}

/* Whether a list is one of lists (an l each) of numbers or tuples of numbers; e: an empty one. */
static bool
is_list_of(PyObject *value, const char *levels)
{
    switch (*levels) {
    case 'i': return PyLong_CheckExact(value);
    case 'f': return PyFloat_CheckExact(value);
    case 'b': return PyBool_Check(value);
    case 'z': return PyComplex_CheckExact(value);
    case '(': return is_tuple_of(value, levels + 1);
    case 'l': break;
    default: return *levels >= 'A' && *levels <= 'A' + NPY_DOUBLE && is_scalar(value, *levels - 'A');
    }
    if (!PyList_CheckExact(value)) {
        return false;
    }
    if (PyList_GET_SIZE(value) == 0) {
        return levels[1] == 'e';
    }
    return is_list_of(PyList_GET_ITEM(value, PyList_GET_SIZE(value) - 1), levels + 1);
}

static Word *
list_enters(PyObject *value, const Input *in, Word *at)
{
    if (!is_list_of(value, PyUnicode_DATA(in->object))) {
        return NULL;
    }
    (at++)->i = (int64_t)(intptr_t)value;
    (at++)->i = (int64_t)(intptr_t)value;
    return at;
}

/* What a string keeps a character in (1, 2 or 4 bytes; 0: bytes, -1: a bytearray, -2: something else), where and
 * how many. */
static int
text_parts(PyObject *value, int64_t *data, int64_t *length)
{
    if (PyUnicode_CheckExact(value)) {
        if (PyUnicode_READY(value) < 0) {
            PyErr_Clear();
            return -2;
        }
        *data = (int64_t)(intptr_t)PyUnicode_DATA(value);
        *length = PyUnicode_GET_LENGTH(value);
        return (int)PyUnicode_KIND(value);
    }
    if (PyBytes_CheckExact(value)) {
        *data = (int64_t)(intptr_t)PyBytes_AS_STRING(value);
        *length = PyBytes_GET_SIZE(value);
        return 0;
    }
    if (PyByteArray_CheckExact(value)) {
        *data = (int64_t)(intptr_t)PyByteArray_AS_STRING(value);
        *length = PyByteArray_GET_SIZE(value);
        return -1;
    }
    return -2;
}

PyObject *
loop_text_of(PyObject *module, PyObject *value)
{
    int64_t data = 0, length = 0;
    int width = text_parts(value, &data, &length);
    if (width == -2) {
        PyErr_SetString(PyExc_TypeError, "neither a string nor bytes");
        return NULL;
    }
    return Py_BuildValue("iLL", width, (long long)data, (long long)length);
}

static Word *
text_enters(PyObject *value, const Input *in, Py_ssize_t number, Word *at)
{
    if (text_parts(value, &at[0].i, &at[1].i) != in->a) {
        return NULL;
    }
    at[2].i = number;
    return at + 3;
}

/* The object of a weak reference, or the object itself where it is none (see scalar_loops/entry/references.py);
   NULL when it is gone. Borrowed: it is only compared, or something else holds it. */
static PyObject *
referent(PyObject *reference)
{
    if (!PyWeakref_CheckRefExact(reference)) {
        return reference;
    }
    PyObject *found = ((PyWeakReference *)reference)->wr_object;
    return found == Py_None ? NULL : found;
}

/* Write the words of a value; where the next one's go, or NULL where it is of another kind. */
static Word *
enters(PyObject *value, const Input *in, Py_ssize_t number, Word *at)
{
    int overflow;
    switch (in->code) {
    case 'i':
        if (!PyLong_CheckExact(value)) {
            return NULL;
        }
        at->i = PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow ? NULL : at + 1;
    case 'k': /* a number from a to b */
        if (!PyLong_CheckExact(value)) {
            return NULL;
        }
        at->i = PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow || at->i < in->a || at->i > in->b ? NULL : at + 1;
    case 'f':
        if (!PyFloat_CheckExact(value)) {
            return NULL;
        }
        at->d = PyFloat_AS_DOUBLE(value);
        return at + 1;
    case 'b':
        if (!PyBool_Check(value)) {
            return NULL;
        }
        at->i = value == Py_True;
        return at + 1;
    case 'n': return value == Py_None ? at : NULL;
    case 'u': /* one object */
        return value == referent(in->object) ? at : NULL;
    case 'o':
        if ((PyObject *)Py_TYPE(value) != in->object) {
            return NULL;
        }
        at->i = number;
        return at + 1;
    case 'p':
        if ((PyObject *)Py_TYPE(value) != in->object) {
            return NULL;
        }
        (at++)->i = (int64_t)(intptr_t)value;
        (at++)->i = number;
        return at;
    case 's': {
        npy_longdouble data; /* as large as any */
        if ((PyObject *)Py_TYPE(value) != in->object) {
            return NULL;
        }
        PyArray_ScalarAsCtype(value, &data);
        word_of(&data, in->a, at);
        return at + 1;
    }
    case 'z': {
        double parts[2];
        if ((PyObject *)Py_TYPE(value) != in->object) {
            return NULL;
        }
        if (in->a) {
            PyArray_ScalarAsCtype(value, parts);
        } else {
            parts[0] = PyComplex_RealAsDouble(value);
            parts[1] = PyComplex_ImagAsDouble(value);
        }
        (at++)->d = parts[0];
        (at++)->d = parts[1];
        return at;
    }
    case 'a': return array_enters(value, in, at);
    case 'r': return range_enters(value, in, at);
    case 'l': return list_enters(value, in, at);
    case 't': return text_enters(value, in, number, at);
    default: return NULL;
    }
}

static bool
is_member(PyObject *dict, PyObject *name, PyObject *found, bool or_builtin)
{
    if (!names_are_plain(dict) || (or_builtin && !names_are_plain(builtins))) {
        return false; /* comparing keys would run code */
    }
    PyObject *value = PyDict_GetItemWithError(dict, name);
    if (value == NULL && or_builtin && !PyErr_Occurred()) {
        value = PyDict_GetItemWithError(builtins, name);
    }
    if (value == NULL) {
        PyErr_Clear();
    }
    return value == found;
}

/* Whether a function's cell holds an object. */
static bool
is_in_cell(PyObject *function, Py_ssize_t number, PyObject *found)
{
    PyObject *closure = PyFunction_Check(function) ? PyFunction_GET_CLOSURE(function) : NULL;
    return closure != NULL && number >= 0 && number < PyTuple_GET_SIZE(closure)
           && PyCell_GET(PyTuple_GET_ITEM(closure, number)) == found;
}

/* Whether what was looked up when the loop was compiled is what is found now. */
static bool
holds(PyObject *assumption)
{
    PyObject *holder = PyTuple_GET_ITEM(assumption, 0), *name = PyTuple_GET_ITEM(assumption, 1);
    PyObject *found = PyTuple_GET_ITEM(assumption, 2);
    holder = referent(holder);
    found = referent(found);
    if (holder == NULL || found == NULL) {
        return false;
    }
    if (PyLong_CheckExact(name)) {
        return is_in_cell(holder, PyLong_AsSsize_t(name), found);
    }
    if (PyFunction_Check(holder)) {
        PyFunctionObject *function = (PyFunctionObject *)holder;
        PyObject *defaults = function->func_defaults == NULL ? Py_None : function->func_defaults;
        if (PyUnicode_CompareWithASCIIString(name, "__code__") == 0) {
            return function->func_code == found;
        }
        return PyUnicode_CompareWithASCIIString(name, "__defaults__") == 0 && defaults == found;
    }
    if (PyDict_Check(holder)) {
        return is_member(holder, name, found, true);
    }
    return PyModule_Check(holder) && is_member(PyModule_GetDict(holder), name, found, false);
}

/* Whether an int is no more than the length of the array number `a` along the axis `b`. */
static bool
is_at_most(PyObject *values, const Input *input)
{
    PyObject *number = PyTuple_GET_ITEM(values, input->index);
    PyObject *array = input->a < PyTuple_GET_SIZE(values) ? PyTuple_GET_ITEM(values, input->a) : NULL;
    if (array == NULL || !PyLong_CheckExact(number) || !PyArray_CheckExact(array)
        || input->b >= PyArray_NDIM((PyArrayObject *)array)) {
        return false;
    }
    int overflow;
    long long found = PyLong_AsLongLongAndOverflow(number, &overflow);
    return !overflow && found <= PyArray_DIM((PyArrayObject *)array, input->b);
}

bool
plan_takes(const LoopPlan *plan, PyObject *values, Word *in)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(plan->assumptions); k++) {
        if (!holds(PyTuple_GET_ITEM(plan->assumptions, k))) {
            return false;
        }
    }
    for (Py_ssize_t k = 0; k < plan->num_inputs; k++) {
        const Input *input = &plan->inputs[k];
        if (input->index >= PyTuple_GET_SIZE(values)) {
            return false;
        }
        if (input->code == 'q') {
            if (!is_at_most(values, input)) {
                return false;
            }
            continue;
        }
        in = enters(PyTuple_GET_ITEM(values, input->index), input, k, in);
        if (in == NULL) {
            return false;
        }
    }
    return true;
}

static PyMemberDef plan_members[] = {
    {"program", T_OBJECT_EX, offsetof(LoopPlan, program), READONLY, "whose plan it is"},
    {NULL},
};

PyTypeObject LoopPlan_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyncomp.hook._hook.LoopPlan",
    .tp_basicsize = sizeof(LoopPlan),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "How values enter a compiled loop and come back from it: see scalar_loops.entry.entry_plan.",
    .tp_new = plan_new,
    .tp_dealloc = (destructor)plan_dealloc,
    .tp_traverse = (traverseproc)plan_traverse,
    .tp_members = plan_members,
};
