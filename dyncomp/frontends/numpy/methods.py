"""Methods of arrays and scalars that are not functions as well."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import has_c_order, has_f_order
from ...symbolic.integers import Dim, product
from ..base import ArrayRef, TraceContext, own_number
from ..known import relied_array
from ..rule_table import refusal
from . import promote
from .indexing import assigned_value, fitting, getitem
from .numpy_rules import RuleTable
from .operands import (
    IN_MEMORY,
    broadcast_to,
    convert,
    converted,
    emit,
    memory_order,
    told_order,
    write,
)
from .promote import parse_dtype
from .sorting import partition, sort
from .views import reshape_var, reversed_axes

TABLE = RuleTable()


@TABLE.method("astype")
def astype(
    tx: TraceContext,
    x: ArrayRef,
    dtype: object,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: object = True,
) -> ArrayRef:
    """``x.astype(dtype)``: a copy unless ``copy=False`` and nothing changes."""
    wanted = parse_dtype(dtype)
    if not promote.can_cast(x.dtype, wanted, casting):
        raise Unsupported(f"Cannot cast array data from {x.dtype} to {wanted} according to {casting!r}")
    order = told_order(x.var, order)
    if x.dtype == wanted and not copy and x.kind == "array" and _has_order(x.var, order):
        if x.part is not None and memory_order(order) in ("C", "F"):
            raise Unsupported(IN_MEMORY)
        return x
    var = converted(tx, x.var, wanted)
    if var is x.var:
        var = emit(tx, "copy", var)
    return ArrayRef(_in_order(tx, var, order), "array" if x.kind == "array" else "scalar")


@TABLE.function("astype")
def astype_function(
    tx: TraceContext, x: object, dtype: object, /, *, copy: bool = True, device: object = None
) -> ArrayRef:
    if not isinstance(x, ArrayRef) or device is not None or x.kind != "array":
        raise Unsupported("Input should be a NumPy array.")
    return astype(tx, x, dtype, copy=copy)


def _has_order(x: Var, order: str) -> bool:
    strides = x.type.strides
    order = memory_order(order)
    if order == "C":
        return has_c_order(x.shape, strides)
    if order == "F":
        return has_f_order(x.shape, strides)
    return True


def _in_order(tx: TraceContext, x: Var, order: str) -> Var:
    if _has_order(x, order):
        return x
    if memory_order(order) == "C":
        return emit(tx, "contiguous", x)
    return reversed_axes(tx, emit(tx, "contiguous", reversed_axes(tx, x)))


_PYTHON_TYPES: dict[str, DType] = {
    "bool": dtypes.bool_,
    "int": dtypes.int64,
    "uint": dtypes.int64,
    "float": dtypes.float64,
    "complex": dtypes.complex128,
}


def _python_value(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    """The only element as a Python number."""
    if not product(x.shape) == 1:
        raise Unsupported("can only convert an array of size 1 to a Python scalar")
    if x.dtype == dtypes.uint64:
        raise Unsupported("a Python integer above 63 bits")
    var = reshape_var(tx, x.var, ())
    wide = convert(tx, var, _PYTHON_TYPES[x.dtype.kind])
    return ArrayRef(own_number(tx, wide, var), "python")


@TABLE.method("item")
def item(tx: TraceContext, x: ArrayRef, *args: object) -> ArrayRef:
    if not args:
        return _python_value(tx, x)
    key = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    if len(key) == 1 and x.ndim != 1:
        x = ArrayRef(reshape_var(tx, x.var, (product(x.shape),)))
    if len(key) != x.ndim:
        raise Unsupported("incorrect number of indices for array")
    return _python_value(tx, getitem(tx, x, tuple(key)))


@TABLE.method("__array_namespace__")
def array_namespace(tx: TraceContext, x: ArrayRef, /, *, api_version: object = None) -> Any:
    if api_version is not None:
        raise Unsupported("a version of the array API")
    return np


@TABLE.method("tolist")
def tolist(tx: TraceContext, x: ArrayRef) -> Any:
    if x.ndim == 0:
        return _python_value(tx, x)
    known = relied_array(tx.builder, x.var)
    if known is not None:
        return known.tolist()
    if x.ndim > 1 or not x.shape[0] <= 8:
        raise Unsupported("a list of Python numbers from a large array")
    return [_python_value(tx, getitem(tx, x, i)) for i in range(int(x.shape[0]))]


@TABLE.method("__float__")
def to_float(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    if x.dtype.is_complex or x.ndim:
        raise Unsupported("float() of a complex number or an array with dimensions")
    value = convert(tx, x.var, dtypes.float64)
    return ArrayRef(own_number(tx, value, x.var), "python")


@TABLE.method("__int__")
def to_int(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    """Of integers only: ``int`` of a float is unbounded and raises for NaN."""
    if x.ndim or x.dtype.is_inexact or x.dtype == dtypes.uint64:
        raise Unsupported("int() of a value that may not fit 64 bits")
    value = convert(tx, x.var, dtypes.int64)
    return ArrayRef(own_number(tx, value, x.var), "python")


@TABLE.method("__complex__")
def to_complex(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    if x.ndim:
        raise Unsupported("complex() of an array with dimensions")
    value = convert(tx, x.var, dtypes.complex128)
    return ArrayRef(own_number(tx, value, x.var), "python")


@TABLE.method("__len__")
def length(tx: TraceContext, x: ArrayRef) -> Dim:
    if not x.ndim:
        raise Unsupported("len() of unsized object")
    return x.shape[0]


@TABLE.method("fill")
def fill(tx: TraceContext, x: ArrayRef, value: object) -> None:
    var = assigned_value(tx, fitting(tx, value, x.dtype), x.dtype)
    if var.ndim:
        raise Unsupported("fill with an array that has dimensions")
    write(tx, x, broadcast_to(tx, var, x.shape))


@TABLE.method("view")
def view(tx: TraceContext, x: ArrayRef, *args: object, **kwargs: object) -> ArrayRef:
    """Of the same dtype and class. ``dtype=None`` is not the same as no ``dtype``: it means float64."""
    asked = dict(zip(("dtype", "type"), args), **kwargs)
    is_call = len(asked) == len(args) + len(kwargs) and asked.keys() <= {"dtype", "type"}
    if not is_call or asked.get("type", np.ndarray) is not np.ndarray:
        raise Unsupported("a view() of another class")
    dtype = asked.get("dtype", x.dtype)
    if not isinstance(dtype, type) or issubclass(dtype, np.generic):
        if dtype is not None and promote.parse_dtype(dtype) == x.dtype:
            return getitem(tx, x, Ellipsis) if x.kind == "array" else x
    raise Unsupported("reinterpreting memory with view()")


@TABLE.method("sort")
def sort_in_place(
    tx: TraceContext, x: ArrayRef, axis: object = -1, kind: object = None, order: object = None
) -> None:
    if order is not None:
        raise Unsupported("sort with order=")
    write(tx, x, sort(tx, x, axis, kind).var)


@TABLE.method("partition")
def partition_in_place(
    tx: TraceContext,
    x: ArrayRef,
    kth: object,
    axis: object = -1,
    kind: str = "introselect",
    order: object = None,
) -> None:
    write(tx, x, partition(tx, x, kth, axis, kind, order).var)


for _name in ("tobytes", "tofile", "dump", "byteswap", "setflags", "resize"):
    TABLE.methods[_name] = refusal("a method that deals with raw memory")


@TABLE.method("__array_wrap__")
def array_wrap(
    tx: TraceContext, x: ArrayRef, array: Any, context: object = None, return_scalar: object = False, /
) -> ArrayRef:
    """Of plain arrays: the array given."""
    both = all(isinstance(ref, ArrayRef) and ref.kind == "array" for ref in (x, array))
    if not both or return_scalar is not False or context is not None:
        raise Unsupported("__array_wrap__ of what is no array, or with a context")
    return array


@TABLE.method("__array__")
def to_array(tx: TraceContext, x: ArrayRef, dtype: object = None, *, copy: object = None) -> ArrayRef:
    if dtype is not None or copy is not None or x.kind != "array":
        raise Unsupported("__array__ with arguments")
    return x
