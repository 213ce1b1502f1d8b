"""``ufunc.reduce``, ``accumulate``, ``outer`` and ``at``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ..base import ArrayRef, TraceContext
from . import promote
from .numpy_rules import RuleTable
from .operands import (
    NO,
    as_ref,
    broadcast_to,
    convert,
    emit,
    given,
    normalize_axes,
    normalize_axis,
    operand,
    to_var,
    value_of,
    write,
)
from .routines import accumulated, reduce_at, reduced
from .ufunc_emit import full_like
from .ufuncs import call_ufunc, elementwise_ufuncs
from .views import in_memory_as, in_memory_of_reduction

TABLE = RuleTable()

_REDUCERS = {"add": "reduce_sum", "multiply": "reduce_prod", "maximum": "reduce_max", "minimum": "reduce_min"}
_BOOLEAN_REDUCERS = {
    "add": "reduce_any",
    "multiply": "reduce_all",
    "maximum": "reduce_any",
    "minimum": "reduce_all",
    "logical_or": "reduce_any",
    "logical_and": "reduce_all",
    "bitwise_or": "reduce_any",
    "bitwise_and": "reduce_all",
}
_SCANS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
_NO_IDENTITY = frozenset(("maximum", "minimum", "fmax", "fmin"))


def reduce_ufunc(
    tx: TraceContext,
    ufunc: np.ufunc,
    array: object,
    axis: object = 0,
    dtype: object = None,
    out: object = None,
    keepdims: object = False,
    initial: object = NO,
    where: object = True,
) -> ArrayRef:
    """``ufunc.reduce(array, axis, dtype, out, keepdims, initial, where)``."""
    x = as_ref(tx, array)
    axes = reduction_axes(axis, x.ndim)
    target = single_out(out)
    wanted = None if dtype is None else promote.parse_dtype(dtype)
    out_dtype = None if target is None else target.dtype.numpy
    computed, result_dtype = promote.resolve_reduction(ufunc, x.dtype.numpy, wanted, out_dtype)
    if computed.is_inexact:
        tx.assume("numpy-errstate")
    var = convert(tx, x.var, computed)
    if where is not True and where is not NO:
        var = _masked(tx, ufunc, var, where, initial)
    reduced = in_memory_of_reduction(tx, _reduce_with_initial(tx, ufunc, var, axes, initial), x.var, axes)
    if given(keepdims) and keepdims:
        reduced = keep_dims(tx, reduced, x.shape, axes)
    return deliver(tx, convert(tx, reduced, result_dtype), target)


def reduction_axes(axis: object, ndim: int) -> tuple[int, ...]:
    """As :func:`normalize_axes`, and scalars take axis 0 and -1 as NumPy lets them."""
    if ndim == 0 and isinstance(axis, (int, np.integer)) and axis in (0, -1):
        return ()
    return normalize_axes(axis, ndim)


def single_out(out: object) -> ArrayRef | None:
    """The one array of an ``out=`` argument."""
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if out is None or out is NO:
        return None
    if isinstance(out, ArrayRef) and out.kind == "array":
        return out
    raise Unsupported("out= must be an array")


def deliver(tx: TraceContext, var: Var, out: ArrayRef | None, casting: str = "same_kind") -> ArrayRef:
    """The result, written to ``out`` (of exactly its shape) where there is one."""
    if out is None:
        return value_of(var)
    if len(out.shape) != var.ndim or not all(a == b for a, b in zip(out.shape, var.shape)):
        raise Unsupported("output array has the wrong shape")
    if not promote.can_cast(var.dtype, out.dtype, casting):
        raise Unsupported(f"cannot cast the result from {var.dtype} to {out.dtype} with rule {casting!r}")
    return write(tx, out, convert(tx, var, out.dtype))


def keep_dims(tx: TraceContext, var: Var, shape: tuple[Any, ...], axes: tuple[int, ...]) -> Var:
    """Put the reduced axes back with size one."""
    kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    return emit(tx, "copy", emit(tx, "reshape", var, shape=kept)) if axes else var


def _masked(tx: TraceContext, ufunc: np.ufunc, var: Var, where: object, initial: object) -> Var:
    mask = to_var(tx, operand(tx, where), dtypes.bool_)
    neutral = _neutral(ufunc, var.dtype)
    if ufunc.__name__ in _NO_IDENTITY:
        if not given(initial):
            raise Unsupported("a reduction without identity needs initial= with where=")
    fill = full_like(tx, var, neutral)
    return emit(tx, "where", broadcast_to(tx, mask, var.shape), var, fill)


def _neutral(ufunc: np.ufunc, dtype: DType) -> Any:
    name = ufunc.__name__
    if name in ("maximum", "fmax"):
        return _lowest(dtype)
    if name in ("minimum", "fmin"):
        return _highest(dtype)
    if ufunc.identity is None:
        raise Unsupported(f"numpy.{name}.reduce with where= has no identity")
    return dtype.numpy.type(ufunc.identity).item()


def _lowest(dtype: DType) -> Any:
    if dtype.is_integer:
        return int(np.iinfo(dtype.numpy).min)
    return False if dtype.is_bool else -np.inf


def _highest(dtype: DType) -> Any:
    if dtype.is_integer:
        return int(np.iinfo(dtype.numpy).max)
    return True if dtype.is_bool else np.inf


# What an initial value may as well be joined to last.
_IN_ANY_ORDER = frozenset(
    (
        *("add", "multiply", "maximum", "minimum", "fmax", "fmin", "gcd", "lcm"),
        *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
    )
)


def _reduce_with_initial(
    tx: TraceContext, ufunc: np.ufunc, var: Var, axes: tuple[int, ...], initial: object
) -> Var:
    empty = ufunc.__name__ in _NO_IDENTITY and any(var.shape[axis] == 0 for axis in axes)
    if initial is None or initial is NO:
        if empty:
            raise Unsupported("zero-size array to a reduction operation which has no identity")
        return reduce_axes(tx, ufunc, var, axes)
    if ufunc.__name__ not in _IN_ANY_ORDER:
        raise Unsupported(f"numpy.{ufunc.__name__}.reduce with initial=, which comes first")
    start = to_var(tx, operand(tx, initial), var.dtype)
    if empty:
        rest = tuple(d for axis, d in enumerate(var.shape) if axis not in axes)
        return emit(tx, "copy", broadcast_to(tx, start, rest))
    reduced = reduce_axes(tx, ufunc, var, axes)
    combined = call_ufunc(tx, ufunc, value_of(reduced), value_of(start))
    return convert(tx, combined.var, var.dtype)


def reduce_axes(tx: TraceContext, ufunc: np.ufunc, var: Var, axes: tuple[int, ...]) -> Var:
    """The reduction of a value already of the right dtype; the axes are dropped."""
    name = ufunc.__name__
    if var.dtype.is_bool and name in _BOOLEAN_REDUCERS:
        return emit(tx, _BOOLEAN_REDUCERS[name], var, axes=axes)
    if name in _REDUCERS:
        return emit(tx, _REDUCERS[name], var, axes=axes)
    if name in ("fmax", "fmin"):
        return _reduce_ignoring_nan(tx, ufunc, var, axes)
    if var.dtype.is_bool and name in ("logical_xor", "bitwise_xor"):
        count = emit(tx, "reduce_sum", convert(tx, var, dtypes.int64), axes=axes)
        odd = emit(tx, "bitwise_and", count, full_like(tx, count, 1))
        return convert(tx, odd, dtypes.bool_)
    return reduced(tx, ufunc, var, axes)


def _reduce_ignoring_nan(tx: TraceContext, ufunc: np.ufunc, var: Var, axes: tuple[int, ...]) -> Var:
    largest = ufunc.__name__ == "fmax"
    op = "reduce_max" if largest else "reduce_min"
    if var.dtype.is_complex:
        raise Unsupported(f"numpy.{ufunc.__name__}.reduce of complex numbers")
    if not var.dtype.is_float:
        return emit(tx, op, var, axes=axes)
    missing = emit(tx, "isnan", var)
    neutral = full_like(tx, var, -np.inf if largest else np.inf)
    reduced = emit(tx, op, emit(tx, "where", missing, neutral, var), axes=axes)
    nothing = emit(tx, "reduce_all", missing, axes=axes)
    return emit(tx, "where", nothing, full_like(tx, reduced, np.nan), reduced)


def accumulate_ufunc(
    tx: TraceContext,
    ufunc: np.ufunc,
    array: object,
    axis: object = 0,
    dtype: object = None,
    out: object = None,
) -> ArrayRef:
    """``ufunc.accumulate(array, axis, dtype, out)``."""
    x = as_ref(tx, array)
    if x.ndim == 0:
        raise Unsupported("cannot accumulate on a scalar")
    target = single_out(out)
    wanted = None if dtype is None else promote.parse_dtype(dtype)
    out_dtype = None if target is None else target.dtype.numpy
    computed, result_dtype = promote.resolve_reduction(ufunc, x.dtype.numpy, wanted, out_dtype)
    if computed.is_inexact:
        tx.assume("numpy-errstate")
    var = convert(tx, x.var, computed)
    scanned = in_memory_as(tx, _scan(tx, ufunc, var, normalize_axis(axis, x.ndim)), x.var)
    return deliver(tx, convert(tx, scanned, result_dtype), target)


def _scan(tx: TraceContext, ufunc: np.ufunc, var: Var, axis: int) -> Var:
    op = _SCANS.get(ufunc.__name__)
    if ufunc.__name__ in ("logical_and", "logical_or"):
        op = "cummin" if ufunc.__name__ == "logical_and" else "cummax"
    begins_with_one = op == "cumprod" and var.dtype.is_complex  # times which inf+0j is inf+nanj
    if op is None or begins_with_one:
        return accumulated(tx, ufunc, var, axis)
    if var.dtype.is_bool:
        # bool as integers: add and maximum are "or", multiply and minimum are "and"
        op = {"cumsum": "cummax", "cumprod": "cummin"}.get(op, op)
        return convert(tx, emit(tx, op, convert(tx, var, dtypes.uint8), axis=axis), dtypes.bool_)
    return emit(tx, op, var, axis=axis)


def outer_ufunc(tx: TraceContext, ufunc: np.ufunc, a: Any, b: Any, **kwargs: Any) -> Any:
    """``ufunc.outer(a, b)``: every pair of elements."""
    x = as_ref(tx, operand(tx, a))
    y = as_ref(tx, operand(tx, b))
    if not y.ndim or not x.ndim:
        return call_ufunc(tx, ufunc, operand(tx, a), operand(tx, b), **kwargs)
    spread = emit(tx, "reshape", x.var, shape=(*x.shape, *[1] * y.ndim))
    return call_ufunc(tx, ufunc, ArrayRef(spread, "array"), y, **kwargs)


_AT = {"add": "add", "multiply": "multiply", "maximum": "max", "minimum": "min", "subtract": "add"}


def at_ufunc(combine: Callable[..., None], ufunc: np.ufunc) -> Any:
    """The rule of ``ufunc.at(array, indices[, values])``; ``combine`` writes at indices."""

    def rule(tx: TraceContext, array: object, indices: object, values: object = None) -> None:
        name = ufunc.__name__
        if name not in _AT or values is None:
            raise Unsupported(f"numpy.{name}.at has no rule")
        if not isinstance(array, ArrayRef) or array.kind != "array":
            raise Unsupported("first operand of ufunc.at must be an array")
        update = operand(tx, values)
        kinds = [array.dtype.numpy, promote.operand_type(update)]
        loop = promote.resolve(ufunc, kinds, [array.dtype.numpy])
        if promote.from_np(loop[0]) != array.dtype:
            raise Unsupported("ufunc.at that computes in another dtype than the array's")
        if array.dtype.is_inexact:
            tx.assume("numpy-errstate")
        value = to_var(tx, update, array.dtype)
        if name == "subtract":
            value = emit(tx, "negative", value)
        combine(tx, array, indices, value, _AT[name])

    return rule


def _bind(function: Callable[..., Any], ufunc: np.ufunc) -> Any:
    def rule(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        return function(tx, ufunc, *args, **kwargs)

    return rule


for _ufunc in elementwise_ufuncs():
    if _ufunc.nin == 2 and _ufunc.nout == 1:
        TABLE.functions[_ufunc.reduce] = _bind(reduce_ufunc, _ufunc)
        TABLE.functions[_ufunc.accumulate] = _bind(accumulate_ufunc, _ufunc)
        TABLE.functions[_ufunc.reduceat] = _bind(reduce_at, _ufunc)
        TABLE.functions[_ufunc.outer] = _bind(outer_ufunc, _ufunc)
