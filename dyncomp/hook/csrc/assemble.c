/* The bytes of a code object and of its location table from real instructions, said in C since every replacement
   and continuation comes through here. python_code/versions/raw.py says what the instructions are, lines.py what the
   formats of the tables. */
#define PY_SSIZE_T_CLEAN
#include "hook.h"
#include <string.h>

enum { NO_COLUMNS = 13, LONG_FORM = 14, NO_LOCATION = 15, MOST_UNITS = 8 };

typedef struct {
    unsigned char *data;
    Py_ssize_t size, room;
} Bytes;

typedef struct {
    long arg;
    Py_ssize_t target; /* index of an instruction, -1 for what does not jump */
    int opcode, prefixes, units;
} RawInstr;

typedef struct {
    RawInstr *items;
    Py_ssize_t *starts; /* code units before each instruction, and all of them */
    Py_ssize_t count;
} Layout;

/* Tables by opcode: code units without prefixes, and 1 for jumps forward, 2 for jumps backward. */
typedef struct {
    PyObject *opmap;
    const unsigned char *units, *directions;
    int extended_arg;
} Tables;

static bool
put(Bytes *out, unsigned value)
{
    if (out->size == out->room) {
        Py_ssize_t room = 2 * out->room + 64;
        unsigned char *data = PyMem_Realloc(out->data, room);
        if (data == NULL) {
            PyErr_NoMemory();
            return false;
        }
        out->data = data;
        out->room = room;
    }
    out->data[out->size++] = (unsigned char)value;
    return true;
}

static bool
put_varint(Bytes *out, unsigned long value)
{
    for (; value >= 64; value >>= 6) {
        if (!put(out, 64 | (value & 63))) {
            return false;
        }
    }
    return put(out, (unsigned)value);
}

static bool
put_signed_varint(Bytes *out, long value)
{
    return put_varint(out, value < 0 ? ((unsigned long)-value << 1) | 1 : (unsigned long)value << 1);
}

/* A field of a location: -1 for None. */
static long
field_of(PyObject *loc, int number)
{
    PyObject *value = PyTuple_GET_ITEM(loc, number);
    return value == Py_None ? -1 : PyLong_AsLong(value);
}

static bool
put_head(Bytes *out, int form, int units)
{
    return put(out, 0x80 | (form << 3) | (units - 1));
}

/* One entry of the location table for up to eight code units; `line` is what it counts from. */
static bool
put_entry(Bytes *out, PyObject *loc, int units, long *line)
{
    long at = field_of(loc, 0), end_line = field_of(loc, 1), col = field_of(loc, 2), end_col = field_of(loc, 3);
    if (PyErr_Occurred()) {
        return false;
    }
    if (at < 0) {
        return put_head(out, NO_LOCATION, units);
    }
    long delta = at - *line;
    *line = at;
    if (end_line < at) {
        end_line = at;
    }
    if (end_line == at && (col < 0 || end_col < 0)) {
        return put_head(out, NO_COLUMNS, units) && put_signed_varint(out, delta);
    }
    if (end_line == at && delta == 0 && col < 80 && end_col >= col && end_col - col < 16) {
        return put_head(out, (int)(col >> 3), units) && put(out, (unsigned)(((col & 7) << 4) | (end_col - col)));
    }
    if (end_line == at && 0 <= delta && delta < 3 && col < 128 && end_col < 128) {
        return put_head(out, 10 + (int)delta, units) && put(out, (unsigned)col) && put(out, (unsigned)end_col);
    }
    return put_head(out, LONG_FORM, units) && put_signed_varint(out, delta)
           && put_varint(out, (unsigned long)(end_line - at)) && put_varint(out, (unsigned long)(col + 1))
           && put_varint(out, (unsigned long)(end_col + 1));
}

static bool
put_run(Bytes *out, PyObject *loc, Py_ssize_t units, long *line)
{
    for (; units > MOST_UNITS; units -= MOST_UNITS) {
        if (!put_entry(out, loc, MOST_UNITS, line)) {
            return false;
        }
    }
    return put_entry(out, loc, (int)units, line);
}

/* The location table; `merge`: instructions of one place that follow each other share an entry. */
static PyObject *
location_table(PyObject *raw, const Layout *layout, long line, bool merge)
{
    Bytes out = {NULL, 0, 0};
    PyObject *current = NULL, *table = NULL;
    Py_ssize_t total = 0;
    bool done = true;
    for (Py_ssize_t i = 0; done && i < layout->count; i++) {
        PyObject *loc = PyTuple_GET_ITEM(PyList_GET_ITEM(raw, i), 3);
        Py_ssize_t units = layout->starts[i + 1] - layout->starts[i];
        int same = current == NULL || !merge ? 0 : PyObject_RichCompareBool(current, loc, Py_EQ);
        if (same < 0) {
            done = false;
        }
        else if (same) {
            total += units;
        }
        else {
            done = current == NULL || put_run(&out, current, total, &line);
            current = loc;
            total = units;
        }
    }
    if (done && current != NULL) {
        done = put_run(&out, current, total, &line);
    }
    if (done) {
        table = PyBytes_FromStringAndSize((char *)out.data, out.size);
    }
    PyMem_Free(out.data);
    return table;
}

static int
prefixes_for(long arg)
{
    return arg < 0x100 ? 0 : arg < 0x10000 ? 1 : arg < 0x1000000 ? 2 : 3;
}

/* Where a jump to `label` goes: an index of an instruction, or a key of `places` for one; -1 for no jump. */
static bool
find_target(PyObject *label, PyObject *places, Py_ssize_t count, Py_ssize_t *target)
{
    *target = -1;
    if (label == Py_None) {
        return true;
    }
    PyObject *place = places == Py_None ? label : PyDict_GetItemWithError(places, label);
    if (place == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetObject(PyExc_KeyError, label);
        }
        return false;
    }
    *target = PyLong_AsSsize_t(place);
    if (PyErr_Occurred()) {
        return false;
    }
    if (*target < -1 || *target > count) {
        PyErr_SetString(PyExc_IndexError, "a jump to nowhere");
        return false;
    }
    return true;
}

/* Read (op, argument, label, location, least number of prefixes). */
static bool
read_instr(PyObject *item, PyObject *places, const Tables *tables, Py_ssize_t count, RawInstr *made)
{
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 5 || !PyTuple_Check(PyTuple_GET_ITEM(item, 3))
        || PyTuple_GET_SIZE(PyTuple_GET_ITEM(item, 3)) != 4) {
        PyErr_SetString(PyExc_TypeError, "a real instruction is a tuple of five");
        return false;
    }
    PyObject *opcode = PyDict_GetItemWithError(tables->opmap, PyTuple_GET_ITEM(item, 0));
    if (opcode == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetObject(PyExc_KeyError, PyTuple_GET_ITEM(item, 0));
        }
        return false;
    }
    made->opcode = (int)(PyLong_AsLong(opcode) & 0xFF);
    made->arg = PyLong_AsLong(PyTuple_GET_ITEM(item, 1));
    made->prefixes = (int)PyLong_AsLong(PyTuple_GET_ITEM(item, 4));
    made->units = tables->units[made->opcode];
    if (PyErr_Occurred() || !find_target(PyTuple_GET_ITEM(item, 2), places, count, &made->target)) {
        return false;
    }
    if (made->target < 0 && prefixes_for(made->arg) > made->prefixes) {
        made->prefixes = prefixes_for(made->arg);
    }
    return true;
}

/* Set arguments of jumps, which grow until all of them fit; false where a jump goes the wrong way: `wrong`. */
static bool
lay_out(Layout *layout, const Tables *tables, Py_ssize_t *wrong)
{
    bool grown = true;
    while (grown) {
        grown = false;
        Py_ssize_t start = 0;
        for (Py_ssize_t i = 0; i < layout->count; i++) {
            layout->starts[i] = start;
            start += layout->items[i].units + layout->items[i].prefixes;
        }
        layout->starts[layout->count] = start;
        for (Py_ssize_t i = 0; i < layout->count; i++) {
            RawInstr *instr = &layout->items[i];
            if (instr->target < 0) {
                continue;
            }
            Py_ssize_t distance = layout->starts[instr->target] - layout->starts[i + 1];
            int direction = tables->directions[instr->opcode];
            instr->arg = (long)(direction == 1 ? distance : direction == 2 ? -distance : 0);
            if (instr->arg < 0) {
                *wrong = i;
                return false;
            }
            if (prefixes_for(instr->arg) > instr->prefixes) {
                instr->prefixes = prefixes_for(instr->arg);
                grown = true;
            }
        }
    }
    return true;
}

static PyObject *
code_bytes(const Layout *layout, const Tables *tables)
{
    PyObject *made = PyBytes_FromStringAndSize(NULL, 2 * layout->starts[layout->count]);
    if (made == NULL) {
        return NULL;
    }
    unsigned char *out = (unsigned char *)PyBytes_AS_STRING(made);
    memset(out, 0, (size_t)PyBytes_GET_SIZE(made)); /* which caches are */
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        const RawInstr *instr = &layout->items[i];
        unsigned char *place = out + 2 * layout->starts[i];
        for (int k = instr->prefixes; k > 0; k--) {
            *place++ = (unsigned char)tables->extended_arg;
            *place++ = (unsigned char)((unsigned long)instr->arg >> (8 * k));
        }
        *place++ = (unsigned char)instr->opcode;
        *place = (unsigned char)instr->arg;
    }
    return made;
}

/* (first units, units past the prefixes) of all instructions, and of their end the first. */
static PyObject *
places_of(const Layout *layout)
{
    PyObject *starts = PyList_New(layout->count + 1), *addresses = PyList_New(layout->count);
    bool done = starts != NULL && addresses != NULL;
    for (Py_ssize_t i = 0; done && i <= layout->count; i++) {
        PyObject *start = PyLong_FromSsize_t(layout->starts[i]);
        done = start != NULL;
        if (done) {
            PyList_SET_ITEM(starts, i, start);
        }
        if (done && i < layout->count) {
            PyObject *address = PyLong_FromSsize_t(layout->starts[i] + layout->items[i].prefixes);
            done = address != NULL;
            if (done) {
                PyList_SET_ITEM(addresses, i, address);
            }
        }
    }
    PyObject *pair = done ? PyTuple_Pack(2, starts, addresses) : NULL;
    Py_XDECREF(starts);
    Py_XDECREF(addresses);
    return pair;
}

static PyObject *
assembled(PyObject *raw, PyObject *places, long line, bool merge, const Tables *tables, Layout *layout)
{
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        if (!read_instr(PyList_GET_ITEM(raw, i), places, tables, layout->count, &layout->items[i])) {
            return NULL;
        }
    }
    Py_ssize_t wrong;
    if (!lay_out(layout, tables, &wrong)) {
        return PyLong_FromSsize_t(wrong);
    }
    PyObject *code = code_bytes(layout, tables);
    PyObject *lines = code == NULL ? NULL : location_table(raw, layout, line, merge);
    PyObject *where = lines == NULL ? NULL : places_of(layout);
    PyObject *made = where == NULL ? NULL : PyTuple_Pack(3, code, lines, where);
    Py_XDECREF(code);
    Py_XDECREF(lines);
    Py_XDECREF(where);
    return made;
}

/* assemble(instructions, places or None, first line, merge, (opcodes, units, directions, EXTENDED_ARG)) ->
   (code, location table, (first units, units past the prefixes)), or the index of a jump that goes the wrong way */
PyObject *
instructions_assemble(PyObject *module, PyObject *args)
{
    PyObject *raw, *places;
    long line;
    int merge;
    Py_ssize_t units, directions;
    Tables tables;
    if (!PyArg_ParseTuple(args, "O!Olp(O!y#y#i)", &PyList_Type, &raw, &places, &line, &merge, &PyDict_Type,
                          &tables.opmap, &tables.units, &units, &tables.directions, &directions,
                          &tables.extended_arg)) {
        return NULL;
    }
    if (units != 256 || directions != 256 || (places != Py_None && !PyDict_Check(places))) {
        PyErr_SetString(PyExc_TypeError, "tables are of 256 bytes, and places a dict");
        return NULL;
    }
    Layout layout = {NULL, NULL, PyList_GET_SIZE(raw)};
    layout.items = PyMem_New(RawInstr, layout.count + 1);
    layout.starts = PyMem_New(Py_ssize_t, layout.count + 1);
    PyObject *made = NULL;
    if (layout.items == NULL || layout.starts == NULL) {
        PyErr_NoMemory();
    }
    else {
        made = assembled(raw, places, line, merge, &tables, &layout);
    }
    PyMem_Free(layout.items);
    PyMem_Free(layout.starts);
    return made;
}
