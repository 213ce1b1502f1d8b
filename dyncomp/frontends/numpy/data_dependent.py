"""Functions whose results have sizes that depend on the data: NumPy's own routines, called by the graph.

A size is a symbol that the call defines (``symbolic.integers``: unbacked); sizes that are certainly equal are
one symbol (``frontends.meaning``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import Dim
from ..base import ArrayRef, TraceContext
from ..meaning import size_of, size_of_selection
from . import promote
from .masked import mask_of
from .numpy_rules import RuleTable
from .operands import array_of, as_ref, emit, normalize_axis, to_var

TABLE = RuleTable()
Output = tuple[DType, tuple[Dim, ...]]


def call(tx: TraceContext, function: str, inputs: list[Var], outputs: list[Output], **options: object) -> Any:
    """A node that calls ``prims.dynamic.FUNCTIONS[function]``: its value, or a tuple of them."""
    if any(var.dtype.name == "bfloat16" for var in inputs):
        raise Unsupported(f"{function} of bfloat16")
    return emit(
        tx,
        "library_call",
        *inputs,
        function=function,
        options=tuple(options.items()),
        dtypes=tuple(dtype for dtype, _ in outputs),
        shapes=tuple(shape for _, shape in outputs),
    )


def selected(tx: TraceContext, ref: ArrayRef) -> ArrayRef:
    """The array that a masked value stands for."""
    mask = mask_of(ref)
    size = size_of_selection(tx, mask)
    shape = (size, *ref.shape[mask.ndim :])
    return ArrayRef(call(tx, "select", [ref.var, mask], [(ref.dtype, shape)]), "array", ref.frontend)


def positions(tx: TraceContext, mask: Var, size: Dim | None = None) -> tuple[Var, ...]:
    """``np.nonzero(mask)``; ``size``: how many there are, if that is known."""
    if not mask.ndim:
        raise Unsupported("nonzero of an array without dimensions")
    size = size_of_selection(tx, mask) if size is None else size
    made = call(tx, "nonzero", [mask], [(dtypes.int64, (size,))] * mask.ndim)
    return made if isinstance(made, tuple) else (made,)


@TABLE.function("nonzero")
def nonzero(tx: TraceContext, a: object) -> tuple[ArrayRef, ...]:
    x = as_ref(tx, a).var
    if x.ndim < 2:
        return tuple(array_of(var) for var in positions(tx, x))
    # NumPy gives the columns of one array with a row for each element
    size = size_of_selection(tx, x)
    rows = call(tx, "positions", [x], [(dtypes.int64, (size, x.ndim))])
    return tuple(array_of(_column(tx, rows, axis)) for axis in range(x.ndim))


def _column(tx: TraceContext, rows: Var, axis: int) -> Var:
    size = rows.shape[0]
    cut = emit(tx, "strided_slice", rows, starts=(0, axis), sizes=(size, 1), steps=(1, 1))
    found: Var = emit(tx, "reshape", cut, shape=(size,))
    return found


@TABLE.function("flatnonzero")
def flatnonzero(tx: TraceContext, a: object) -> ArrayRef:
    x = as_ref(tx, a).var
    return array_of(call(tx, "flatnonzero", [x], [(dtypes.int64, (size_of_selection(tx, x),))]))


@TABLE.function("argwhere")
def argwhere(tx: TraceContext, a: object) -> ArrayRef:
    x = as_ref(tx, a).var
    if not x.ndim:
        raise Unsupported("argwhere of an array without dimensions")
    made = call(tx, "argwhere", [x], [(dtypes.int64, (x.ndim, size_of_selection(tx, x)))])
    # NumPy gives the transpose of what it computes
    return array_of(emit(tx, "transpose", made, perm=(1, 0)))


@TABLE.function("compress")
def compress(
    tx: TraceContext, condition: object, a: object, axis: object = None, out: object = None
) -> ArrayRef:
    x = as_ref(tx, a)
    chosen = as_ref(tx, condition)
    if out is not None or chosen.ndim != 1 or not x.ndim:
        raise Unsupported("numpy.compress with out=, or of these dimensions")
    size = size_of_selection(tx, chosen.var)
    shape: tuple[Dim, ...] = (size,)
    if axis is not None:
        axis = normalize_axis(axis, x.ndim)
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    return array_of(call(tx, "compress", [chosen.var, x.var], [(x.dtype, shape)], axis=axis))


@TABLE.method("compress")
def compress_method(
    tx: TraceContext, a: object, condition: object, axis: object = None, out: object = None
) -> ArrayRef:
    return compress(tx, condition, a, axis, out)


@TABLE.function("extract")
def extract(tx: TraceContext, condition: object, arr: object) -> ArrayRef:
    chosen = as_ref(tx, condition).var
    x = as_ref(tx, arr).var
    return array_of(call(tx, "extract", [chosen, x], [(x.dtype, (size_of_selection(tx, chosen),))]))


@TABLE.function("unique")
def unique(
    tx: TraceContext,
    ar: object,
    return_index: object = False,
    return_inverse: object = False,
    return_counts: object = False,
    axis: object = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    x = as_ref(tx, ar)
    if axis is not None and x.ndim == 1:
        axis = normalize_axis(axis, 1)
    if not sorted or (x.ndim != 1 and return_inverse) or not _has_order(x, axis):
        raise Unsupported("numpy.unique along an axis, or not sorted")
    wanted = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
    flags = {name: bool(value) for name, value in wanted.items()}
    options: dict[str, Any] = {**flags, "equal_nan": bool(equal_nan)}
    if axis is not None:
        options["axis"] = axis = normalize_axis(axis, x.ndim)
    size = size_of(tx, "unique", x.var, axis=axis, equal_nan=bool(equal_nan))
    shape: tuple[Dim, ...] = (size,)
    if axis is not None:
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    outputs: list[Output] = [(x.dtype, shape)]
    outputs += [(dtypes.int64, (size,))] if flags["return_index"] else []
    outputs += [(dtypes.int64, x.shape)] if flags["return_inverse"] else []
    outputs += [(dtypes.int64, (size,))] if flags["return_counts"] else []
    made = call(tx, "unique", [x.var], outputs, **options)
    return tuple(map(array_of, made)) if len(outputs) > 1 else array_of(made)


def _has_order(x: ArrayRef, axis: object) -> bool:
    """Whether what ``np.unique`` gives is in C order: rows of an array are."""
    return axis is None or (x.ndim > 0 and normalize_axis(axis, x.ndim) == 0 and not x.dtype.is_complex)


@TABLE.function("bincount")
def bincount(tx: TraceContext, x: object, /, weights: object = None, minlength: object = 0) -> ArrayRef:
    inputs = [as_ref(tx, x).var]
    if type(minlength) is not int or minlength < 0 or not inputs[0].dtype.is_integer:
        raise Unsupported("numpy.bincount with these arguments")
    if weights is not None:
        inputs.append(to_var(tx, as_ref(tx, weights), dtypes.float64))
    dtype = dtypes.int64 if weights is None else dtypes.float64
    shape = (size_of(tx, "bincount", inputs[0], low=minlength),)
    return array_of(call(tx, "bincount", inputs, [(dtype, shape)], minlength=minlength))


@TABLE.function("setdiff1d")
def setdiff1d(tx: TraceContext, ar1: object, ar2: object, assume_unique: bool = False) -> ArrayRef:
    first, second = as_ref(tx, ar1), as_ref(tx, ar2)
    return _of_sets(tx, "setdiff1d", first, second, first.dtype, assume_unique=bool(assume_unique))


@TABLE.function("setxor1d")
def setxor1d(tx: TraceContext, ar1: object, ar2: object, assume_unique: bool = False) -> ArrayRef:
    first, second = as_ref(tx, ar1), as_ref(tx, ar2)
    return _of_sets(tx, "setxor1d", first, second, _common(first, second), assume_unique=bool(assume_unique))


@TABLE.function("union1d")
def union1d(tx: TraceContext, ar1: object, ar2: object) -> ArrayRef:
    if not (isinstance(ar1, ArrayRef) and isinstance(ar2, ArrayRef)):
        raise Unsupported("numpy.union1d of a number, which takes the type of the array")
    first, second = as_ref(tx, ar1), as_ref(tx, ar2)
    return _of_sets(tx, "union1d", first, second, _common(first, second))


def _of_sets(
    tx: TraceContext, name: str, first: ArrayRef, second: ArrayRef, dtype: DType, **options: Any
) -> ArrayRef:
    size = size_of(tx, name, first.var, second.var, **options)
    return array_of(call(tx, name, [first.var, second.var], [(dtype, (size,))], **options))


def _common(first: ArrayRef, second: ArrayRef) -> DType:
    return promote.from_np(np.result_type(first.dtype.numpy, second.dtype.numpy))


@TABLE.function("intersect1d")
def intersect1d(
    tx: TraceContext, ar1: object, ar2: object, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    first, second = as_ref(tx, ar1), as_ref(tx, ar2)
    size = size_of(tx, "intersect1d", first.var, second.var, assume_unique=bool(assume_unique))
    outputs: list[Output] = [(_common(first, second), (size,))]
    outputs += [(dtypes.int64, (size,))] * 2 if return_indices else []
    flags = {"assume_unique": bool(assume_unique), "return_indices": bool(return_indices)}
    made = call(tx, "intersect1d", [first.var, second.var], outputs, **flags)
    return tuple(map(array_of, made)) if return_indices else array_of(made)


def repeat_by_counts(tx: TraceContext, x: Var, counts: Var, axis: int) -> ArrayRef:
    """``np.repeat`` with counts that are data."""
    if not counts.dtype.is_integer or counts.ndim > 1:
        raise Unsupported("numpy.repeat with counts of this type")
    size = size_of(tx, "repeat", counts, along=x.shape[axis])
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    return array_of(call(tx, "repeat", [x, counts], [(x.dtype, shape)], axis=axis))
