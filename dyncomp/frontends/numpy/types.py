"""Scalar types as functions, and questions about dtypes and shapes that are answered at capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...prims.layout import is_fortran
from ...symbolic.integers import Dim, SymInt, product
from ..base import ArrayRef, TraceContext
from . import promote
from .numpy_facts import SCALAR_TYPES
from .numpy_rules import RuleTable, resolve
from .operands import as_ref, convert, emit, normalize_axis, value_of
from .operands import broadcast_shapes as common
from .shape import parse_shape

TABLE = RuleTable()


def _scalar_type_rule(kind: type) -> Any:
    dtype = promote.from_np(np.dtype(kind))

    def rule(tx: TraceContext, value: object = 0, /) -> Any:
        """``np.float32(x)``: a scalar of a scalar, an array of an array."""
        if not isinstance(value, ArrayRef) and isinstance(
            value, (bool, int, float, complex, str, np.generic)
        ):
            return kind(value)
        ref = as_ref(tx, value)
        if ref.kind == "python" and ref.dtype == dtypes.int64 and dtype.is_integer and dtype != ref.dtype:
            raise Unsupported(f"a Python integer known at run time only may not fit {dtype}")
        if ref.kind == "python" and ref.dtype.is_float and dtype.is_integer:
            raise Unsupported("converting a Python float known at run time only to an integer may raise")
        var = convert(tx, ref.var, dtype)
        return value_of(emit(tx, "copy", var) if var is ref.var else var)

    return rule


for _kind in dict.fromkeys(SCALAR_TYPES):
    TABLE.functions[_kind] = _scalar_type_rule(_kind)


def _question_rule(function: Callable[..., Any]) -> Any:
    """A question about dtypes: arrays stand for their dtype, Python scalars known at run time for
    their type's zero."""

    def rule(tx: TraceContext, *args: object, **kwargs: Any) -> Any:
        concrete = [_representative(a) for a in args]
        return function(*concrete, **{name: _representative(v) for name, v in kwargs.items()})

    return rule


def _representative(value: object) -> Any:
    if isinstance(value, ArrayRef):
        if value.kind == "python":
            return value.dtype.numpy.type(0).item()
        return value.dtype.numpy
    if isinstance(value, SymInt):
        return 0
    if isinstance(value, (list, tuple)):
        return type(value)(_representative(v) for v in value)
    return value


for _path in ("result_type", "can_cast"):
    TABLE.functions[resolve(_path)] = _question_rule(resolve(_path))


def _dtype_question_rule(function: Any, scalars: bool) -> Any:
    """A question about dtypes that raises for arrays, and for array scalars unless ``scalars``."""
    ask = _question_rule(function)

    def rule(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        for value in (*args, *kwargs.values()):
            known_type = scalars and getattr(value, "kind", "python") == "scalar"
            if isinstance(value, (ArrayRef, SymInt)) and not known_type:
                raise Unsupported(f"{function.__name__} of an array or a number")
        return ask(tx, *args, **kwargs)

    return rule


for _function in map(resolve, ("promote_types", "issubdtype", "isdtype", "dtype")):
    if _function is not None:
        TABLE.functions[_function] = _dtype_question_rule(_function, scalars=False)
for _function in (np.finfo, np.iinfo):
    TABLE.functions[_function] = _dtype_question_rule(_function, scalars=True)


@TABLE.function("min_scalar_type")
def min_scalar_type(tx: TraceContext, a: Any) -> Any:
    if isinstance(a, SymInt) or (isinstance(a, ArrayRef) and (a.kind != "array" or not a.ndim)):
        raise Unsupported("min_scalar_type of a number that is not known", break_id="data-dependent-value")
    if isinstance(a, (list, tuple)):
        raise Unsupported("min_scalar_type of a sequence")
    return np.min_scalar_type(a) if not isinstance(a, ArrayRef) else a.dtype.numpy


@TABLE.function("shape")
def shape(tx: TraceContext, a: object) -> tuple[Dim, ...]:
    return as_ref(tx, a).shape


@TABLE.function("ndim")
def ndim(tx: TraceContext, a: object) -> int:
    return as_ref(tx, a).ndim


@TABLE.function("size")
def size(tx: TraceContext, a: object, axis: object = None) -> Dim:
    ref = as_ref(tx, a)
    return product(ref.shape) if axis is None else ref.shape[normalize_axis(axis, ref.ndim)]


@TABLE.function("iscomplexobj")
def iscomplexobj(tx: TraceContext, x: object) -> bool:
    return as_ref(tx, x).dtype.is_complex


@TABLE.function("isrealobj")
def isrealobj(tx: TraceContext, x: object) -> bool:
    return not as_ref(tx, x).dtype.is_complex


@TABLE.function("isscalar")
def isscalar(tx: TraceContext, element: object) -> bool:
    if isinstance(element, ArrayRef):
        return element.kind != "array"
    if isinstance(element, SymInt):
        return True
    return bool(np.isscalar(element))


@TABLE.function("isfortran")
def isfortran(tx: TraceContext, a: object) -> bool:

    x = as_ref(tx, a)
    return is_fortran(x.shape, x.strides)


@TABLE.function("iterable")
def iterable(tx: TraceContext, y: object) -> bool:
    if isinstance(y, ArrayRef):
        return y.kind == "array" and y.ndim > 0
    return bool(np.iterable(y))


@TABLE.function("broadcast_shapes")
def broadcast_shapes(tx: TraceContext, *args: object) -> tuple[Dim, ...]:
    shapes = [parse_shape(a) for a in args]
    if any(not isinstance(d, SymInt) and d < 0 for shape in shapes for d in shape):
        raise Unsupported("negative dimensions are not allowed")
    return common(*shapes)
