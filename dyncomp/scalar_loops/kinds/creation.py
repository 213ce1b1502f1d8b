"""Arrays made in generated code, ``np.zeros(n)``, ``np.empty_like(a)``, ``u.copy()`` as a statement of their
own: NumPy's own objects, made by its C functions.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..code import arithmetic
from ..code.block import Block
from ..code.walk import Stop
from . import arrays
from .kinds import BOOL, FLOAT, INT, NUMPY, Kind, Unowned, Value, array_kind, is_plain_function, items_of

_MODULES = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
_ARRAY_MODULE = next(name for name in _MODULES if name in sys.modules)
_PARAMETERS: dict[Any, tuple[str, ...]] = {
    np.zeros: ("shape", "dtype"),
    np.empty: ("shape", "dtype"),
    np.ones: ("shape", "dtype"),
    np.full: ("shape", "fill_value", "dtype"),
    np.zeros_like: ("a",),
    np.empty_like: ("prototype",),
    np.ones_like: ("a",),
}
_OF_CONSTANTS: dict[Any, Kind] = {FLOAT: NUMPY["f8"], INT: NUMPY["i8"], BOOL: NUMPY["b1"]}
_C_ORDER, _KEEP_ORDER = 0, 2


def is_creation(function: object) -> bool:
    """Whether an object of the program is a function that makes an array."""
    return is_plain_function(function) and function in _PARAMETERS


def create(b: Block, function: Any, args: list[Value], names: tuple[str, ...]) -> Value:
    """What a call of ``function`` gives."""
    given = _bound(function, args, names)
    if "shape" not in given:
        return _alike(b, function, next(iter(given.values())))
    dims = _dims(b, given["shape"])
    fill = given.get("fill_value")
    if function is np.full and fill is None:
        raise Stop("a call of full")
    scalar = _scalar_of(given.get("dtype"), fill)
    number = None
    if fill is not None or function is np.ones:
        number = fill if fill is not None else b.walker.constant(1)
        if scalar.family != "numpy":
            raise Stop(f"{scalar} as the type of an array")
        text = b.temp(scalar.parts[0][1], arrays.cast(b, number, scalar))
    b.check_made_here()
    held = b.walker.variable(f"dims{len(dims)}[{len(dims)}]", "i64").partition("[")[0]
    for axis, size in enumerate(dims):
        b.line(f"{held}[{axis}] = {size};")
    how = "zeros" if function is np.zeros else "empty"
    made = b.temp("char*", f"array_{how}({len(dims)}, {held}, {scalar.detail.num})")
    found = _described(b, made, scalar, len(dims), _short(given["shape"]))
    if number is not None:
        _fill(b, found, text)
    return found


def copy(b: Block, array: Value) -> Value:
    """``array.copy()``."""
    b.check_made_here()
    detail = array.kind.detail
    if detail.path:
        raise Stop("a copy of a view")
    _check_has_axes(array)
    made = b.temp("char*", f"array_copy({arrays.parts_of(array).object}, {_C_ORDER})")
    return _described(b, made, detail.scalar, detail.ndim, detail.last)


def _alike(b: Block, function: Any, array: Value) -> Value:
    if array.kind.family != "array" or array.kind.detail.path:
        raise Stop(f"an array like {array.kind}")
    _check_has_axes(array)
    b.check_made_here()
    detail = array.kind.detail
    if function is np.ones_like and detail.scalar.family != "numpy":
        raise Stop(f"ones like {array.kind}")
    made = b.temp("char*", f"array_alike({arrays.parts_of(array).object}, {_KEEP_ORDER})")
    item = detail.scalar.detail.itemsize
    b.line(f"if ({made} && ARRAY({made})->strides[{detail.ndim - 1}] != {item}) {{")
    b.line(f"Py_DecRef({made}); {made} = 0; }}")
    found = _described(b, made, detail.scalar, detail.ndim, detail.last)
    if function is np.zeros_like:
        b.line(f"__builtin_memset({found.parts[0]}, 0, array_bytes({made}, {item}));")
    if function is np.ones_like:
        _fill(b, found, "1")
    return found


def _check_has_axes(array: Value) -> None:
    if not array.kind.detail.ndim:
        raise Stop("an array without axes")


def _fill(b: Block, found: Value, text: str) -> None:
    """All of it is one number. It has no gaps."""
    ctype = found.kind.detail.scalar.parts[0][1]
    size = found.kind.detail.scalar.detail.itemsize
    b.line(
        f"fill<{ctype}>({found.parts[0]}, array_bytes({_object(found)}, {size}) / {size}, {size}, {text});"
    )


def _object(array: Value) -> str:
    return arrays.parts_of(array).object.removeprefix("(i64)")


def _described(b: Block, made: str, scalar: Kind, ndim: int, last: int) -> Value:
    b.check(f"{made} != 0", "no memory for an array")
    kind = array_kind(scalar.code, ndim, True, True, "", last)
    parts = [b.temp("char*", f"ARRAY({made})->data")]
    parts += [b.temp("i64", f"ARRAY({made})->dims[{axis}]") for axis in range(ndim)]
    parts += [b.temp("i64", f"ARRAY({made})->strides[{axis}]") for axis in range(ndim - 1)]
    return Unowned(kind, (*parts, f"(i64){made}"))


def _bound(function: Any, args: list[Value], names: tuple[str, ...]) -> dict[str, Value]:
    parameters = _PARAMETERS[function]
    positional = len(args) - len(names)
    given = dict(zip(parameters, args[:positional]))
    given.update(zip(names, args[positional:]))
    known = positional <= len(parameters) and set(given) <= set(parameters)
    if not known or len(given) < len(args) or parameters[0] not in given:
        raise Stop(f"the arguments of {function.__name__}")
    return given


def _dims(b: Block, shape: Value) -> list[str]:
    items = items_of(shape) if shape.kind.family == "tuple" else [shape]
    if not 1 <= len(items) <= 4 or any(item.kind not in (INT, NUMPY["i8"]) for item in items):
        raise Stop(f"the shape {shape.kind}")
    for item in items:
        if item.kind != INT or arithmetic.bounds(item)[0] < 0:
            b.check(f"{item.text} >= 0", "a negative size")
    return [item.text for item in items]


def _short(shape: Value) -> int:
    """The length of the last axis where that is known and short, as kinds of arrays have it."""
    item = items_of(shape)[-1] if shape.kind.family == "tuple" else shape
    return item.constant if item.constant is not None and 0 < item.constant <= 4 else 0


def _scalar_of(dtype: Value | None, fill: Value | None) -> Kind:
    """The type of the elements."""
    if dtype is None or dtype.kind.family == "none":
        kind = FLOAT if fill is None else fill.kind
        found = _OF_CONSTANTS.get(kind, kind if kind.family == "numpy" else None)
    else:
        found = NUMPY.get(_code_of(dtype))
    if found is None:
        raise Stop("the type of an array")
    return found


def _code_of(dtype: Value) -> str:
    if dtype.kind.family != "constant" or not _tells_dtype(dtype.kind.detail):
        raise Stop(f"{dtype.kind} as the type of an array")
    try:
        found = np.dtype(dtype.kind.detail)
    except TypeError as error:
        raise Stop("the type of an array") from error
    code = found.str[1:] if found.isnative else ""
    known = NUMPY.get(code)
    if known is None or known.detail.char != found.char or found.metadata is not None:
        raise Stop("the type of an array")  # long long has the size of long, and is another type
    return code


def _tells_dtype(given: object) -> bool:
    """Whether NumPy makes a dtype of ``given`` without asking the program."""
    if type(given) is type:
        return issubclass(given, np.generic) or given in (bool, int, float, complex)
    return type(given) is str or issubclass(type(given), np.dtype)


PRELUDE = """\
extern "C" {
char* PyImport_AddModule(const char*); void* PyCapsule_GetPointer(char*, const char*);
void Py_IncRef(char*);
}
struct Array { i64 references; void* type; char* data; int ndim; i64 *dims, *strides; };
#define ARRAY(p) ((Array*)(p))
static void** array_functions() {
  static void** found;
  if (!found) {
    char* module = PyImport_AddModule("%MODULE%");
    char* capsule = module ? PyObject_GetAttrString(module, "_ARRAY_API") : 0;
    found = capsule ? (void**)PyCapsule_GetPointer(capsule, 0) : 0;
    if (!found) PyErr_Clear();
    if (capsule) Py_DecRef(capsule);
  }
  return found;
}
static char* or_none(char* made) {
  if (!made) PyErr_Clear();
  return made;
}
typedef char* (*Maker)(int, const i64*, char*, int);
static char* array_new(int place, int ndim, const i64* dims, int type) {
  void** known = array_functions();
  char* descr = known ? ((char* (*)(int))known[45])(type) : 0; /* PyArray_DescrFromType; taken over below */
  return or_none(descr ? ((Maker)known[place])(ndim, dims, descr, 0) : 0);
}
static char* array_zeros(int ndim, const i64* dims, int type) { return array_new(183, ndim, dims, type); }
static char* array_empty(int ndim, const i64* dims, int type) { return array_new(184, ndim, dims, type); }
static char* array_copy(i64 array, int order) {
  void** known = array_functions();
  return or_none(known ? ((char* (*)(i64, int))known[85])(array, order) : 0); /* PyArray_NewCopy */
}
static char* array_alike(i64 array, int order) {
  void** known = array_functions(); /* PyArray_NewLikeArray */
  return or_none(known ? ((char* (*)(i64, int, char*, int))known[277])(array, order, 0, 1) : 0);
}
static i64 array_bytes(char* array, i64 size) {
  for (int axis = 0; axis < ARRAY(array)->ndim; axis++) size *= ARRAY(array)->dims[axis];
  return size;
}
static inline char* kept(i64 array) {
  Py_IncRef((char*)array);
  return (char*)array;
}
static inline void own(char** place, char* array) {
  char* before = *place;
  *place = array;
  if (before) Py_DecRef(before);
}
""".replace("%MODULE%", _ARRAY_MODULE)
DEFINED = ("ARRAY(", "own(&")
