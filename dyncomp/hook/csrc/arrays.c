/* Facts of NumPy arrays and of tensors with a DLPack exchange table; overlap; sizes. */
#include "hook.h"

#define FREE_DIM (-1)
#define FEW_ARRAYS 32
#define FEW_OBJECTS 256
#define FREE_STRIDE NPY_MIN_INTP

/* -- NumPy arrays ------------------------------------------------------------------------- */
typedef struct {
    PyTypeObject *type; /* borrowed from the specification, which the instruction keeps alive */
    PyArray_Descr *descr;
    int ndim;
    int flags_on, flags_off;
    bool all_dims, all_strides, any_stride;
    npy_intp values[]; /* shape, then strides */
} ArrayFacts;

/* A tuple of ints or None into `out`; reports whether all or any are fixed. */
static bool
read_sizes(PyObject *sizes, Py_ssize_t n, npy_intp *out, npy_intp free_value, bool *all, bool *any)
{
    *all = sizes != Py_None;
    *any = false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = sizes == Py_None ? Py_None : PyTuple_GET_ITEM(sizes, i);
        if (item == Py_None) {
            out[i] = free_value;
            *all = false;
            continue;
        }
        out[i] = PyLong_AsSsize_t(item);
        if (out[i] == -1 && PyErr_Occurred()) {
            return false;
        }
        *any = true;
    }
    return true;
}

/* spec: (type, dtype, shape, strides or None, flags_on, flags_off) */
void *
array_facts_new(PyObject *spec)
{
    PyObject *type, *dtype, *shape, *strides;
    int on, off;
    if (!PyArg_ParseTuple(spec, "O!O!O!Oii", &PyType_Type, &type, &PyArrayDescr_Type, &dtype, &PyTuple_Type,
                          &shape, &strides, &on, &off)) {
        return NULL;
    }
    Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
    bool bad = strides != Py_None && (!PyTuple_Check(strides) || PyTuple_GET_SIZE(strides) != ndim);
    if (bad || ndim > NPY_MAXDIMS || !PyType_IsSubtype((PyTypeObject *)type, &PyArray_Type)) {
        PyErr_SetString(PyExc_ValueError, "malformed array facts");
        return NULL;
    }
    ArrayFacts *facts = PyMem_Calloc(1, sizeof(ArrayFacts) + 2 * (size_t)ndim * sizeof(npy_intp));
    if (facts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    facts->type = (PyTypeObject *)type;
    facts->descr = (PyArray_Descr *)dtype;
    facts->ndim = (int)ndim;
    facts->flags_on = on;
    facts->flags_off = off;
    bool any;
    if (!read_sizes(shape, ndim, facts->values, FREE_DIM, &facts->all_dims, &any)
        || !read_sizes(strides, ndim, facts->values + ndim, FREE_STRIDE, &facts->all_strides,
                       &facts->any_stride)) {
        PyMem_Free(facts);
        return NULL;
    }
    return facts;
}

static bool
descr_matches(PyArray_Descr *found, PyArray_Descr *wanted)
{
    if (found == wanted) {
        return true;
    }
    if (found->type_num != wanted->type_num || found->type_num >= NPY_USERDEF) {
        return false;
    }
    if (PyTypeNum_ISNUMBER(found->type_num) || found->type_num == NPY_BOOL) {
        return PyArray_ISNBO(found->byteorder) == PyArray_ISNBO(wanted->byteorder);
    }
    bool same = PyArray_EquivTypes(found, wanted);
    PyErr_Clear();
    return same;
}

static inline bool
sizes_match(const npy_intp *found, const npy_intp *wanted, int n, npy_intp free_value)
{
    for (int i = 0; i < n; i++) {
        if (wanted[i] != free_value && wanted[i] != found[i]) {
            return false;
        }
    }
    return true;
}

static inline bool
sizes_equal(const npy_intp *found, const npy_intp *wanted, int n)
{
    for (int i = 0; i < n; i++) {
        if (wanted[i] != found[i]) {
            return false;
        }
    }
    return true;
}

bool
array_matches(const void *data, PyObject *value)
{
    const ArrayFacts *facts = data;
    if (Py_TYPE(value) != facts->type) {
        return false;
    }
    PyArrayObject *array = (PyArrayObject *)value;
    int n = facts->ndim;
    if (PyArray_NDIM(array) != n || !descr_matches(PyArray_DESCR(array), facts->descr)) {
        return false;
    }
    int flags = PyArray_FLAGS(array);
    if ((flags & facts->flags_on) != facts->flags_on || (flags & facts->flags_off) != 0) {
        return false;
    }
    const npy_intp *dims = PyArray_DIMS(array), *strides = PyArray_STRIDES(array);
    bool same = facts->all_dims ? sizes_equal(dims, facts->values, n)
                                : sizes_match(dims, facts->values, n, FREE_DIM);
    if (!same || !facts->any_stride) {
        return same;
    }
    return facts->all_strides ? sizes_equal(strides, facts->values + n, n)
                              : sizes_match(strides, facts->values + n, n, FREE_STRIDE);
}

static void
extent(PyArrayObject *array, uintptr_t *low, uintptr_t *high)
{
    uintptr_t first = (uintptr_t)PyArray_DATA(array);
    uintptr_t last = first + (uintptr_t)PyArray_ITEMSIZE(array);
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        npy_intp n = PyArray_DIM(array, i), span;
        if (n == 0) {
            *low = *high = first;
            return;
        }
        span = (n - 1) * PyArray_STRIDE(array, i);
        if (span < 0) {
            first += (uintptr_t)span;
        }
        else {
            last += (uintptr_t)span;
        }
    }
    *low = first;
    *high = last;
}

/* -- tensors through DLPack's C exchange table (dlpack.h, version 1) ------------------------ */
typedef struct {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct ExchangeHeader {
    uint32_t major, minor;
    struct ExchangeHeader *previous;
} ExchangeHeader;

typedef struct {
    ExchangeHeader header;
    void *allocate, *from_object, *to_object;
    int (*view)(void *object, DLTensor *out); /* may be NULL */
    void *current_stream;
} ExchangeTable;

typedef int (*TensorView)(void *, DLTensor *);

/* -- arrays on a GPU without such a table (CuPy's), through their attributes ------------------ */
enum { MOST_DIMS = 64, CPU_DEVICE = 1, CUDA_DEVICE = 2 };

/* The sizes of a tuple of ints; nothing here runs Python code. */
static bool
sizes_of_tuple(PyObject *tuple, int64_t *out, Py_ssize_t expected)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != expected) {
        return false;
    }
    for (Py_ssize_t i = 0; i < expected; i++) {
        PyObject *size = PyTuple_GET_ITEM(tuple, i);
        int overflow;
        if (!PyLong_CheckExact(size)) {
            return false;
        }
        out[i] = PyLong_AsLongLongAndOverflow(size, &overflow);
        if (overflow) {
            return false;
        }
    }
    return true;
}

static bool
number_attribute(PyObject *obj, const char *name, int64_t *value)
{
    PyObject *number = PyObject_GetAttrString(obj, name);
    bool fine = number != NULL && PyLong_CheckExact(number);
    if (fine) {
        *value = (int64_t)PyLong_AsUnsignedLongLongMask(number);
    }
    Py_XDECREF(number);
    return fine;
}

static int
dlpack_code(char kind)
{
    switch (kind) {
    case 'i': return 0;
    case 'u': return 1;
    case 'f': return 2;
    case 'c': return 5;
    case 'b': return 6;
    default: return 255;
    }
}

/* Shape and strides lie in static memory, until the next array is read: the caller uses them at once. */
static int
view_by_attributes(void *object, DLTensor *t)
{
    static int64_t sizes[2][MOST_DIMS];
    PyObject *obj = object;
    int result = -1;
    int64_t pointer = 0, device = 0;
    PyObject *shape = PyObject_GetAttrString(obj, "shape");
    PyObject *strides = shape != NULL ? PyObject_GetAttrString(obj, "strides") : NULL;
    PyObject *dtype = strides != NULL ? PyObject_GetAttrString(obj, "dtype") : NULL;
    PyObject *data = dtype != NULL ? PyObject_GetAttrString(obj, "data") : NULL;
    if (data == NULL || !PyArray_DescrCheck(dtype) || !number_attribute(data, "ptr", &pointer)
        || !number_attribute(data, "device_id", &device)) {
        goto done;
    }
    PyArray_Descr *descr = (PyArray_Descr *)dtype;
    Py_ssize_t ndim = PyTuple_Check(shape) ? PyTuple_GET_SIZE(shape) : MOST_DIMS + 1;
    npy_intp itemsize = PyDataType_ELSIZE(descr);
    if (ndim > MOST_DIMS || itemsize <= 0 || itemsize > 16 || !PyArray_ISNBO(descr->byteorder)
        || !sizes_of_tuple(shape, sizes[0], ndim) || !sizes_of_tuple(strides, sizes[1], ndim)) {
        goto done;
    }
    for (Py_ssize_t i = 0; i < ndim; i++) {
        if (sizes[1][i] % itemsize != 0) {
            goto done;
        }
        sizes[1][i] /= itemsize;
    }
    *t = (DLTensor){.data = (void *)(uintptr_t)pointer, .device_type = CUDA_DEVICE,
                    .device_id = (int32_t)device, .ndim = (int32_t)ndim, .code = (uint8_t)dlpack_code(descr->kind),
                    .bits = (uint8_t)(8 * itemsize), .lanes = 1, .shape = sizes[0], .strides = sizes[1]};
    result = 0;
done:
    Py_XDECREF(data);
    Py_XDECREF(dtype);
    Py_XDECREF(strides);
    Py_XDECREF(shape);
    return result;
}

/* A quicker function for the tensors of a type and of types derived from it. */
static struct { PyTypeObject *type; TensorView view; } direct;

PyObject *
tensor_view_set(PyObject *module, PyObject *args)
{
    PyObject *type;
    unsigned long long address;
    if (!PyArg_ParseTuple(args, "O!K", &PyType_Type, &type, &address)) {
        return NULL;
    }
    Py_XSETREF(direct.type, (PyTypeObject *)Py_NewRef(type));
    direct.view = (TensorView)(uintptr_t)address;
    Py_RETURN_NONE;
}

static TensorView
tensor_view_function(PyObject *type)
{
    if (direct.type != NULL && PyType_IsSubtype((PyTypeObject *)type, direct.type)) {
        return direct.view;
    }
    PyObject *capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    if (capsule == NULL) {
        PyErr_Clear();
        int by_attributes = PyObject_HasAttrString(type, "__cuda_array_interface__");
        return by_attributes ? view_by_attributes : NULL;
    }
    ExchangeTable *table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_DECREF(capsule); /* the table is static data of the library */
    if (table == NULL) {
        PyErr_Clear();
        return NULL;
    }
    ExchangeHeader *header = &table->header;
    while (header != NULL && header->major != 1) {
        header = header->previous;
    }
    return header == NULL ? NULL : ((ExchangeTable *)header)->view;
}

typedef struct {
    PyTypeObject *type;
    TensorView view;
    int code, bits, lanes, device_type, device_id;
    int ndim;
    bool all_dims, all_strides, any_stride;
    npy_intp values[];
} TensorFacts;

/* spec: (type, (code, bits, lanes), shape, strides or None, (device type, id)) */
void *
tensor_facts_new(PyObject *spec)
{
    PyObject *type, *shape, *strides;
    int code, bits, lanes, device_type, device_id;
    if (!PyArg_ParseTuple(spec, "O!(iii)O!O(ii)", &PyType_Type, &type, &code, &bits, &lanes, &PyTuple_Type,
                          &shape, &strides, &device_type, &device_id)) {
        return NULL;
    }
    Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
    TensorView view = tensor_view_function(type);
    if (view == NULL) {
        PyErr_SetString(PyExc_ValueError, "the tensor type has no DLPack C exchange table");
        return NULL;
    }
    if (ndim > 64 || (strides != Py_None && (!PyTuple_Check(strides) || PyTuple_GET_SIZE(strides) != ndim))) {
        PyErr_SetString(PyExc_ValueError, "malformed tensor facts");
        return NULL;
    }
    TensorFacts *facts = PyMem_Calloc(1, sizeof(TensorFacts) + 2 * (size_t)ndim * sizeof(npy_intp));
    if (facts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *facts = (TensorFacts){.type = (PyTypeObject *)type, .view = view, .code = code, .bits = bits,
                           .lanes = lanes, .device_type = device_type, .device_id = device_id,
                           .ndim = (int)ndim};
    bool any;
    if (!read_sizes(shape, ndim, facts->values, FREE_DIM, &facts->all_dims, &any)
        || !read_sizes(strides, ndim, facts->values + ndim, FREE_STRIDE, &facts->all_strides,
                       &facts->any_stride)) {
        PyMem_Free(facts);
        return NULL;
    }
    return facts;
}

bool
tensor_matches(const void *data, PyObject *value)
{
    const TensorFacts *facts = data;
    DLTensor t;
    if (Py_TYPE(value) != facts->type) {
        return false;
    }
    if (facts->view(value, &t) != 0) {
        PyErr_Clear();
        return false;
    }
    if (t.code != facts->code || t.bits != facts->bits || t.lanes != facts->lanes || t.ndim != facts->ndim
        || t.device_type != facts->device_type || t.device_id != facts->device_id) {
        return false;
    }
    int n = facts->ndim;
    if (!sizes_match((const npy_intp *)t.shape, facts->values, n, FREE_DIM)) {
        return false;
    }
    if (!facts->any_stride) {
        return true;
    }
    return t.strides != NULL && sizes_match((const npy_intp *)t.strides, facts->values + n, n, FREE_STRIDE);
}

/* -- integers for symbolic conditions ------------------------------------------------------- */
static bool
tensor_view(PyObject *obj, DLTensor *t)
{
    static PyObject *last_type = NULL; /* strong: its address cannot be reused */
    static TensorView last_view = NULL;
    PyObject *type = (PyObject *)Py_TYPE(obj);
    if (type != last_type) {
        TensorView view = tensor_view_function(type);
        if (view == NULL) {
            return false;
        }
        Py_XSETREF(last_type, Py_NewRef(type));
        last_view = view;
    }
    if (last_view(obj, t) != 0) {
        PyErr_Clear();
        return false;
    }
    return true;
}

static bool
tensor_size(PyObject *obj, bool stride, int axis, int64_t *value)
{
    DLTensor t;
    if (!tensor_view(obj, &t)) {
        return false;
    }
    const int64_t *sizes = stride ? t.strides : t.shape;
    if (sizes == NULL || axis < 0 || axis >= t.ndim) {
        return false;
    }
    *value = sizes[axis];
    return true;
}

static bool
tensor_extent(PyObject *obj, uintptr_t *low, uintptr_t *high)
{
    DLTensor t;
    if (!tensor_view(obj, &t)) {
        return false;
    }
    int64_t itemsize = ((int64_t)t.bits * t.lanes + 7) / 8;
    uintptr_t first = (uintptr_t)t.data + t.byte_offset;
    uintptr_t last = first + (uintptr_t)itemsize;
    for (int i = 0; i < t.ndim; i++) {
        if (t.shape[i] == 0) {
            *low = *high = first;
            return true;
        }
        if (t.strides == NULL) {
            return false;
        }
        int64_t span = (t.shape[i] - 1) * t.strides[i] * itemsize;
        *(span < 0 ? &first : &last) += (uintptr_t)span;
    }
    *low = first;
    *high = last;
    return true;
}

static bool
memory_of(PyObject *obj, uintptr_t *low, uintptr_t *high)
{
    if (PyArray_Check(obj)) {
        extent((PyArrayObject *)obj, low, high);
        return true;
    }
    return tensor_extent(obj, low, high);
}

/* Whether an array or a tensor in the computer's own memory holds just these bytes, in C order without gaps. */
bool
elements_are(PyObject *value, PyObject *bytes)
{
    size_t length = (size_t)PyBytes_GET_SIZE(bytes);
    if (PyArray_Check(value)) {
        PyArrayObject *array = (PyArrayObject *)value;
        return PyArray_IS_C_CONTIGUOUS(array) && (size_t)PyArray_NBYTES(array) == length
               && memcmp(PyArray_DATA(array), PyBytes_AS_STRING(bytes), length) == 0;
    }
    DLTensor t;
    if (!tensor_view(value, &t) || t.device_type != CPU_DEVICE) {
        return false;
    }
    size_t size = ((size_t)t.bits * t.lanes + 7) / 8;
    int64_t stride = 1;
    for (int i = t.ndim - 1; i >= 0; i--) {
        if (t.shape[i] != 1 && (t.strides == NULL || t.strides[i] != stride)) {
            return false;
        }
        stride *= t.shape[i];
    }
    const char *first = (const char *)t.data + t.byte_offset;
    return (size_t)stride * size == length && memcmp(first, PyBytes_AS_STRING(bytes), length) == 0;
}

typedef struct {
    uintptr_t low, high;
    bool written;
} Extent;

static int
by_address(const void *a, const void *b)
{
    uintptr_t first = ((const Extent *)a)->low, second = ((const Extent *)b)->low;
    return (first > second) - (first < second);
}

static int
by_pointer(const void *a, const void *b)
{
    uintptr_t first = *(const uintptr_t *)a, second = *(const uintptr_t *)b;
    return (first > second) - (first < second);
}

/* spec: the registers of objects, no two of which may be the same, and an empty tuple */
bool
objects_distinct(PyObject *spec, PyObject **regs)
{
    PyObject *objects = PyTuple_GET_ITEM(spec, 0);
    Py_ssize_t count = PyTuple_GET_SIZE(objects);
    uintptr_t few[FEW_OBJECTS], *sorted = few;
    if (count > FEW_OBJECTS && (sorted = PyMem_Malloc((size_t)count * sizeof(uintptr_t))) == NULL) {
        return false;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        sorted[k] = (uintptr_t)regs[PyLong_AsLong(PyTuple_GET_ITEM(objects, k))];
    }
    qsort(sorted, (size_t)count, sizeof(uintptr_t), by_pointer);
    bool distinct = true;
    for (Py_ssize_t k = 1; k < count && distinct; k++) {
        distinct = sorted[k] != sorted[k - 1];
    }
    if (sorted != few) {
        PyMem_Free(sorted);
    }
    return distinct;
}

/* spec: the registers of arrays, and numbers of those that must share no memory with any other */
bool
arrays_disjoint(PyObject *spec, PyObject **regs)
{
    PyObject *arrays = PyTuple_GET_ITEM(spec, 0), *written = PyTuple_GET_ITEM(spec, 1);
    Py_ssize_t count = PyTuple_GET_SIZE(arrays);
    Extent few[FEW_ARRAYS], *extents = few;
    if (count > FEW_ARRAYS && (extents = PyMem_Malloc((size_t)count * sizeof(Extent))) == NULL) {
        return false;
    }
    bool known = true;
    for (Py_ssize_t k = 0; k < count && known; k++) {
        PyObject *array = regs[PyLong_AsLong(PyTuple_GET_ITEM(arrays, k))];
        known = memory_of(array, &extents[k].low, &extents[k].high);
        extents[k].written = false;
    }
    for (Py_ssize_t m = 0; m < PyTuple_GET_SIZE(written); m++) {
        extents[PyLong_AsSsize_t(PyTuple_GET_ITEM(written, m))].written = true;
    }
    if (known) {
        qsort(extents, (size_t)count, sizeof(Extent), by_address);
    }
    uintptr_t reach = 0, reach_written = 0; /* how far the memory goes of what begins before */
    for (Py_ssize_t k = 0; k < count && known; k++) {
        Extent here = extents[k];
        if (here.low == here.high) {
            continue;
        }
        known = here.low >= (here.written ? reach : reach_written);
        reach = here.high > reach ? here.high : reach;
        if (here.written && here.high > reach_written) {
            reach_written = here.high;
        }
    }
    if (extents != few) {
        PyMem_Free(extents);
    }
    return known;
}

/* what: 0 int, 1 dim, 2 stride (bytes), 3 size, 4 len, 5 tensor dim, 6 tensor stride (elements) */
bool
symbol_value(PyObject *obj, int what, int axis, int64_t *value)
{
    if (what == 0) {
        if (!PyLong_CheckExact(obj)) {
            return false;
        }
        int overflow;
        *value = PyLong_AsLongLongAndOverflow(obj, &overflow);
        return overflow == 0;
    }
    if (what == 4) {
        return length_of(obj, value);
    }
    if (what >= 5) {
        return tensor_size(obj, what == 6, axis, value);
    }
    if (!PyArray_Check(obj)) {
        return false;
    }
    PyArrayObject *array = (PyArrayObject *)obj;
    if (what == 3) {
        *value = PyArray_SIZE(array);
        return true;
    }
    if (axis < 0 || axis >= PyArray_NDIM(array)) {
        return false;
    }
    *value = what == 1 ? PyArray_DIM(array, axis) : PyArray_STRIDE(array, axis);
    return true;
}

/* -- regions in which graph breaks are errors ------------------------------------------------ */
/* A context variable of (the innermost region, those around it) or None: see regions.py. */
static PyObject *regions_variable = NULL;

/* Borrowed reference. */
PyObject *
regions_setup(void)
{
    if (regions_variable == NULL) {
        regions_variable = PyContextVar_New("dyncomp_error_on_graph_break", Py_None);
    }
    return regions_variable;
}

/* What the innermost region says; ``outside``: where there is none. */
bool
breaks_are_errors(bool outside)
{
    PyObject *regions = NULL;
    if (PyContextVar_Get(regions_variable, NULL, &regions) < 0) {
        PyErr_Clear();
        return outside;
    }
    bool answer = outside;
    if (regions != NULL && PyTuple_Check(regions) && PyTuple_GET_SIZE(regions) == 2) {
        answer = PyTuple_GET_ITEM(regions, 0) == Py_True;
    }
    Py_XDECREF(regions);
    return answer;
}
