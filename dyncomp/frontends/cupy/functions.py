"""Functions and methods of CuPy whose meaning is that of NumPy's of the same name, by CuPy's signatures.

Python functions of CuPy that are not here are followed like the program's own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Unsupported
from ..base import ArrayRef, Rule, TraceContext
from .cupy_rules import NUMPY, RuleTable, bound, is_own, on_device, own, resolve, taken
from .library import cupy

TABLE = RuleTable()

# Methods and their arguments in CuPy's order.
_METHODS = {
    "sum prod": "axis dtype out keepdims",
    "mean": "axis dtype out keepdims",
    "max min all any": "axis out keepdims",
    "argmax argmin": "axis out dtype keepdims",
    "var std": "axis dtype out ddof keepdims",
    "cumsum cumprod": "axis dtype out",
    "clip": "min max out",
    "conj conjugate": "",
    "dot": "b out",
    "swapaxes": "axis1 axis2",
    "squeeze": "axis",
    "repeat": "repeats axis",
    "diagonal": "offset axis1 axis2",
    "trace": "offset axis1 axis2",
    "round": "decimals",
    "fill": "value",
    "item": "",
    "flatten": "order",
    "ravel": "order",
    "copy": "order",
    "astype": "dtype order casting subok copy",
}
_ATTRIBUTES = "shape ndim size dtype itemsize nbytes strides T mT"

# Functions of an array, and which arguments besides may say more than their default.
_FUNCTIONS = {
    "sum prod mean": "axis dtype keepdims",
    "max min amax amin all any argmax argmin": "axis keepdims",
    "var std": "axis dtype ddof keepdims",
    "cumsum cumprod": "axis dtype",
    "clip": "a_min a_max",
    "round around": "decimals",
    "reshape": "newshape shape",
    "ravel": "",
    "transpose": "axes",
    "swapaxes": "axis1 axis2",
    "moveaxis": "source destination",
    "rollaxis": "axis start",
    "squeeze expand_dims flip": "axis",
    "flipud fliplr": "",
    "roll": "shift axis",
    "repeat": "repeats axis",
    "tile": "reps",
    "broadcast_to": "shape",
    "tril triu": "k",
    "diagonal trace": "offset axis1 axis2",
    "diff": "n axis",
    "rot90": "k axes",
    "ascontiguousarray": "",
    "nan_to_num": "",
}
# Functions of two arrays.
_PAIRS = {"dot inner outer vdot": "", "tensordot": "axes", "isclose": "rtol atol equal_nan"}
_FRESH_LIKE = {"zeros_like ones_like empty_like": "dtype", "full_like": "fill_value dtype", "copy": "order"}
_JOINED = {"concatenate concat stack": "axis", "vstack hstack dstack column_stack": ""}
_SPLIT = {"split array_split": "indices_or_sections axis", "vsplit hsplit dsplit": "indices_or_sections"}
_CREATED = {
    "zeros ones empty": "shape dtype",
    "full": "shape fill_value dtype",
    "arange": "start stop step dtype",
    "linspace": "start stop num endpoint dtype",
    "eye": "N M k dtype",
    "identity": "n dtype",
    "tri": "N M k dtype",
}
_RENAMED = {"newshape": "shape"}


def _spread(table: dict[str, str]) -> list[tuple[str, tuple[str, ...]]]:
    return [(name, tuple(words.split())) for names, words in table.items() for name in names.split()]


# -- methods --------------------------------------------------------------------------------------
def _refuse(name: str, named: dict[str, Any]) -> None:
    """What CuPy and NumPy do not mean the same by."""
    if name in ("argmax", "argmin") and "dtype" in named:
        raise Unsupported(f"cupy.{name} with a dtype")
    if name in ("round", "around") and named.get("decimals", 0) != 0:
        raise Unsupported("rounding to decimals")
    if name in ("ravel", "flatten", "copy", "astype") and named.get("order", "C") not in ("C", "K"):
        raise Unsupported(f"order={named['order']!r}")
    if name == "ravel" and named.get("order", "C") != "C":
        raise Unsupported("cupy.ravel in memory order")
    if name == "astype" and ("casting" in named or "subok" in named):
        raise Unsupported("cupy.ndarray.astype with casting")


_IN_ORDER = ("astype", "copy", "zeros_like", "ones_like", "empty_like", "full_like")


def _refuse_complex(name: str, x: ArrayRef) -> None:
    agree = ("sum", "prod", "mean", "cumsum", "cumprod", "dot", "conj", "conjugate", "inner", "outer")
    computes = name in {n for n, _ in _spread(_METHODS | _PAIRS)} and name not in _SHAPES
    if x.dtype.is_complex and computes and name not in agree:
        raise Unsupported(f"cupy.{name} of complex numbers")


_SHAPES = ("swapaxes", "squeeze", "repeat", "diagonal", "fill", "item", "flatten", "ravel", "copy", "astype")


def _method_rule(name: str, order: tuple[str, ...]) -> Rule:
    rule = NUMPY.rules.methods[name]

    def call(tx: TraceContext, x: object, *args: object, **kwargs: object) -> Any:
        named = bound(order, args, kwargs)
        _refuse(name, named)
        _refuse_complex(name, own(x))
        if "b" in named:
            own(named["b"])
        return taken(tx, rule, x, *_first(name, named), keep_order=name in _IN_ORDER, **named)

    return call


def _first(name: str, named: dict[str, Any]) -> list[Any]:
    """Arguments that NumPy takes by position only."""
    by_position = {"dot": ("b",), "astype": ("dtype",), "fill": ("value",), "swapaxes": ("axis1", "axis2")}
    return [named.pop(key) for key in by_position.get(name, ()) if key in named]


for _name, _order in _spread(_METHODS):
    if _name in NUMPY.rules.methods:
        TABLE.methods[_name] = _method_rule(_name, _order)


def _varied_rule(name: str) -> Rule:
    rule = NUMPY.rules.methods[name]
    return lambda tx, x, *args: taken(tx, rule, own(x), *args)


for _name in ("reshape", "transpose"):
    TABLE.methods[_name] = _varied_rule(_name)


@TABLE.method("__len__")
def length(tx: TraceContext, x: object) -> Any:
    return NUMPY.rules.methods["__len__"](tx, own(x))


def _attribute_rule(name: str) -> Rule:
    rule = NUMPY.rules.attributes[name]
    return lambda tx, x: taken(tx, rule, own(x))


for _name in _ATTRIBUTES.split():
    TABLE.attributes[_name] = _attribute_rule(_name)


# -- functions ------------------------------------------------------------------------------------
class Signature:
    """A Python function of CuPy, called by its own signature."""

    def __init__(self, path: str, function: Any) -> None:
        parameters = inspect.signature(function).parameters
        self.name = path
        self.order = tuple(parameters)
        self.defaults = {name: p.default for name, p in parameters.items()}

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any], allowed: tuple[str, ...]) -> dict[str, Any]:
        """The arguments by NumPy's names; refused where one says something that is not ``allowed``."""
        named = bound(self.order, args, kwargs)
        for name, value in list(named.items()):
            if name in allowed:
                continue
            default = self.defaults[name]
            if isinstance(value, ArrayRef) or type(value) is not type(default) or value != default:
                raise Unsupported(f"the argument {name} of cupy.{self.name}")
            del named[name]
        return {_RENAMED.get(name, name): value for name, value in named.items()}


def _known(name: str) -> tuple[Any, Rule] | None:
    """CuPy's function of a name and NumPy's rule of that name, if there are both."""
    function, numpys = resolve(name), getattr(np, name, None)
    rule = NUMPY.find_function(numpys) if numpys is not None else None
    return None if function is None or rule is None else (function, rule)


def _array_rule(name: str, function: object, rule: Rule, allowed: tuple[str, ...], arrays: int) -> Rule:
    signature = Signature(name, function)
    leading = signature.order[:arrays]

    def call(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        named = signature.read(args, kwargs, (*leading, *allowed))
        operands = [own(named.pop(key, None)) for key in leading]
        _refuse(name, named)
        for x in operands:
            _refuse_complex(name, x)
        return taken(tx, rule, *operands, keep_order=name in _IN_ORDER, **named)

    return call


def _joining_rule(name: str, function: object, rule: Rule, allowed: tuple[str, ...]) -> Rule:
    signature = Signature(name, function)
    first = signature.order[0]

    def call(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        named = signature.read(args, kwargs, (first, *allowed))
        parts = named.pop(first, None)
        if not isinstance(parts, (list, tuple)) or len({own(part).dtype for part in parts}) != 1:
            raise Unsupported(f"cupy.{name} of what are not arrays of one type")
        return taken(tx, rule, parts, **named)

    return call


def _creating_rule(name: str, function: object, rule: Rule, allowed: tuple[str, ...]) -> Rule:
    signature = Signature(name, function)

    def call(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        named = signature.read(args, kwargs, allowed)
        if any(isinstance(value, ArrayRef) for value in named.values()):
            raise Unsupported(f"cupy.{name} of arrays")
        positional = [named.pop(key) for key in signature.order[:1] if key in named]
        on_device(tx)
        return taken(tx, rule, *positional, **named)

    return call


def _add(table: dict[str, str], make: Callable[..., Any]) -> None:
    for name, allowed in _spread(table):
        known = _known(name)
        if known is not None:
            TABLE.functions[known[0]] = make(name, *known, allowed)


_add(_FUNCTIONS | _FRESH_LIKE | _SPLIT, functools.partial(_array_rule, arrays=1))
_add(_PAIRS, functools.partial(_array_rule, arrays=2))
_add(_JOINED, _joining_rule)
_add(_CREATED, _creating_rule)


@TABLE.function("asarray", "asanyarray")
def asarray(tx: TraceContext, a: object, dtype: object = None) -> Any:
    """One of CuPy's arrays is itself."""
    return a if is_own(a) and dtype is None else array(tx, a, dtype)


@TABLE.function("linalg.norm")
def norm(
    tx: TraceContext, x: object, ord: object = None, axis: object = None, keepdims: object = False
) -> Any:
    if ord is not None or not own(x).dtype.is_float:
        raise Unsupported("cupy.linalg.norm of another order, or of what are not floats")
    rule = NUMPY.find_function(np.linalg.norm)
    assert rule is not None
    return taken(tx, rule, x, axis=axis, keepdims=keepdims)


@TABLE.function("array")
def array(tx: TraceContext, obj: object, dtype: object = None) -> Any:
    """A copy, or numbers in lists."""
    if is_own(obj) and dtype is None:
        return taken(tx, NUMPY.rules.methods["copy"], obj, order="K", keep_order=True)
    if not isinstance(obj, (list, tuple, int, float)):
        raise Unsupported(f"cupy.array of a {type(obj).__name__}")
    on_device(tx)
    return taken(tx, NUMPY.rules.functions[np.array], obj, dtype=dtype)


@TABLE.function("get_array_module")
def get_array_module(tx: TraceContext, *args: object) -> Any:
    if not any(isinstance(value, ArrayRef) and value.frontend == "cupy" for value in args):
        raise Unsupported("cupy.get_array_module without CuPy arrays")
    return cupy
