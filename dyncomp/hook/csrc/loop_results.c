/* How the values of a compiled loop come back: see scalar_loops/entry/entry_plan.py. */
#include "loop_plan.h"

static PyObject *
scalar_of(Word word, int num)
{
    union {
        npy_bool b1;
        npy_byte i1;
        npy_ubyte u1;
        npy_short i2;
        npy_ushort u2;
        npy_int i4;
        npy_uint u4;
        npy_long i8;
        npy_ulong u8;
        npy_float f4;
        npy_double f8;
    } data;
    switch (num) {
    case NPY_BOOL: data.b1 = word.i != 0; break;
    case NPY_BYTE: data.i1 = (npy_byte)word.i; break;
    case NPY_UBYTE: data.u1 = (npy_ubyte)word.i; break;
    case NPY_SHORT: data.i2 = (npy_short)word.i; break;
    case NPY_USHORT: data.u2 = (npy_ushort)word.i; break;
    case NPY_INT: data.i4 = (npy_int)word.i; break;
    case NPY_UINT: data.u4 = (npy_uint)word.i; break;
    case NPY_LONG: data.i8 = (npy_long)word.i; break;
    case NPY_ULONG: data.u8 = (npy_ulong)word.i; break;
    case NPY_FLOAT: data.f4 = (npy_float)word.d; break;
    default: data.f8 = word.d; break;
    }
    PyArray_Descr *descr = PyArray_DescrFromType(num);
    PyObject *made = descr == NULL ? NULL : PyArray_Scalar(&data, descr, NULL);
    Py_XDECREF(descr);
    return made;
}

static PyObject *
complex_of(double real, double imaginary, bool is_numpy)
{
    if (!is_numpy) {
        return PyComplex_FromDoubles(real, imaginary);
    }
    double parts[2] = {real, imaginary};
    PyArray_Descr *descr = PyArray_DescrFromType(NPY_CDOUBLE);
    PyObject *made = descr == NULL ? NULL : PyArray_Scalar(parts, descr, NULL);
    Py_XDECREF(descr);
    return made;
}

/* New reference; NULL without an exception where it takes Python to make it. */
static PyObject *
boxed(const LoopPlan *plan, const Box *box, PyObject *values, const Word *out)
{
    const Word *word = out + box->at;
    switch (box->code) {
    case 'i': return PyLong_FromLongLong(word->i);
    case 'f': return PyFloat_FromDouble(word->d);
    case 'b': return PyBool_FromLong(word->i != 0);
    case 'n': return Py_NewRef(Py_None);
    case 's': return scalar_of(*word, box->num);
    case 'z': return complex_of(word[0].d, word[1].d, box->num);
    case 'c': return PyUnicode_FromOrdinal((int)word->i);
    case 'a': return Py_NewRef((PyObject *)(intptr_t)word->i);
    case 'g': /* an object that was given */
        if (word->i < 0 || word->i >= plan->num_inputs) {
            return NULL;
        }
        return Py_NewRef(PyTuple_GET_ITEM(values, plan->inputs[word->i].index));
    default: return NULL;
    }
}

PyObject *
plan_output(const LoopPlan *plan, Py_ssize_t k, PyObject *values, const Word *out)
{
    const Output *output = &plan->outputs[k];
    int64_t tag = output->at < 0 ? TAG_GIVEN : out[output->at].i;
    if (tag == TAG_GIVEN) {
        return Py_NewRef(PyTuple_GET_ITEM(values, output->index));
    }
    if (tag == TAG_UNBOUND) {
        return Py_NewRef(plan->unbound);
    }
    return tag - FIRST_TAG < output->count ? boxed(plan, &output->boxes[tag - FIRST_TAG], values, out) : NULL;
}

void
plan_release(const LoopPlan *plan, Word *out)
{
    for (Py_ssize_t k = plan->owned_at; k < plan->owned_at + plan->num_owned; k++) {
        PyObject *owned = (PyObject *)(intptr_t)out[k].i;
        out[k].i = 0;
        Py_XDECREF(owned);
    }
}
