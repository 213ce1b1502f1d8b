"""From operands of the user's program to graph values, and pointwise results in torch's memory order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...device import CPU
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var, contiguous_strides
from ...prims.layout import is_c_contiguous, is_one
from ...symbolic.integers import Dim, SymInt, same
from ..base import ArrayRef, TraceContext, part_shown
from ..numpy.operands import broadcast_shapes, broadcast_to, emit, exact_value, symbolic
from ..numpy.operands import write as write_array
from .library import torch
from .promote import can_cast, is_tensor, scalar_dtype
from .regions import check_write
from .torch_facts import TO_TORCH

Number = (bool, int, float, complex)  # complex numbers come to the rules of complex_numbers only


def tensor(var: Var) -> ArrayRef:
    return ArrayRef(var, "array", "torch")


def need_tensor(value: Any) -> ArrayRef:
    """The tensor argument of a function; anything else makes torch raise."""
    if not is_tensor(value) or value.frontend != "torch":
        raise Unsupported(f"a {type(value).__name__} where a tensor is needed")
    found: ArrayRef = value
    return found


def only_defaults(**arguments: object) -> None:
    """Refuse arguments that say more than their default (``out=``, ``requires_grad=True``…)."""
    for name, value in arguments.items():
        if value is None or value is False:
            continue
        raise Unsupported(f"{name}={value!r}")


def integer(value: object) -> Dim:
    """An integer argument known at capture."""
    if isinstance(value, (int, SymInt)):
        return value
    if isinstance(value, np.integer):  # of a tensor whose number is known
        return int(value)
    raise Unsupported(f"a {type(value).__name__} where an integer known at capture is needed")


def axis_of(dim: object, ndim: int) -> int:
    """A dimension in ``range(ndim)``; 0-d tensors count as having one."""
    number = int(integer(dim))
    limit = max(ndim, 1)
    if not -limit <= number < limit:
        raise Unsupported(f"Dimension out of range: {number} for {ndim} dimensions")
    return number % limit


def axes_of(dim: object, ndim: int) -> tuple[int, ...]:
    """Dimensions of a reduction; ``None`` and ``()`` mean all."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = tuple(axis_of(d, ndim) for d in given)
    if len(set(axes)) != len(axes):
        raise Unsupported("a dimension appears twice")
    return tuple(sorted(axes)) if ndim else ()


# -- conversion -------------------------------------------------------------------------------
def convert(tx: TraceContext, var: Var, dtype: DType) -> Var:
    """The value in another dtype, in torch's memory order; the same value where it is right."""
    if var.dtype == dtype:
        return var
    if var.dtype.is_complex and not dtype.is_complex:
        raise Unsupported("complex numbers converted to real ones")
    return ordered(tx, emit(tx, "convert", var, dtype=dtype), [var])


def constant(tx: TraceContext, value: object, dtype: DType) -> Var:
    """A zero-dimensional value of a Python number."""
    return emit(tx, "full", shape=(), value=fitting(value, dtype), dtype=dtype, device=CPU)


def fitting(value: Any, dtype: DType) -> Any:
    """A Python number rounded to ``dtype``, whose range it may not leave before it is rounded."""
    if type(value) in (int, float) and _may_overflow(dtype):
        if _largest(dtype) < abs(value) != math.inf:
            raise Unsupported(f"{value!r} overflows {dtype}")
    return exact_value(value, dtype)


def _may_overflow(dtype: DType) -> bool:
    return dtype.is_float and dtype != dtypes.float64


def _largest(dtype: DType) -> float:
    return float(torch.finfo(TO_TORCH[dtype]).max)


def checked_number(tx: TraceContext, var: Var, dtype: DType, largest: float = math.inf) -> Var:
    """A number known at run time only in ``dtype``; calls in which it is out of range, where torch raises
    for most functions ("value cannot be converted ... without overflow"), run as they are."""
    if dtype.is_integer and (var.dtype.is_float or (dtype != dtypes.int64 and not var.dtype.is_bool)):
        raise Unsupported(f"a Python number known at run time only may not fit {dtype}")
    if not _may_overflow(dtype) or not (var.dtype.is_float or var.dtype.is_integer) or var.dtype == dtype:
        return convert(tx, var, dtype)
    wide = convert(tx, var, dtypes.float64)
    size = emit(tx, "abs", wide)
    limit, infinity = (
        constant(tx, number, dtypes.float64) for number in (min(_largest(dtype), largest), math.inf)
    )
    is_beyond = emit(tx, "logical_and", emit(tx, "greater", size, limit), emit(tx, "less", size, infinity))
    alone = emit(tx, "broadcast_in_dim", wide, shape=(1,), dims=())
    place = emit(tx, "convert", is_beyond, dtype=dtypes.int64)  # 1 is out of bounds
    return convert(tx, emit(tx, "index", alone, place, dims=(0,), position=0), dtype)


def to_var(tx: TraceContext, value: object, dtype: DType, *, may_overflow: bool = False) -> Var:
    """An operand (tensor, Python number, SymInt) as a value of ``dtype``, in its own shape. With
    ``may_overflow`` numbers known at run time only become infinite where ``dtype`` ends."""
    if isinstance(value, ArrayRef):
        if is_tensor(value) or (may_overflow and not dtype.is_integer):
            return convert(tx, value.var, dtype)
        return checked_number(tx, value.var, dtype)
    if isinstance(value, SymInt):
        if dtype == dtypes.float16 and not may_overflow:
            return checked_number(tx, symbolic(tx, value, dtypes.int64), dtype)
        return symbolic(tx, value, dtype)
    if isinstance(value, Number):
        return constant(tx, value, dtype)
    raise Unsupported(f"a {type(value).__name__} as operand of a tensor operation")


def as_tensor(tx: TraceContext, value: object) -> ArrayRef:
    """A tensor operand as it is, a number as a zero-dimensional tensor of its default dtype."""
    if is_tensor(value):
        return need_tensor(value)
    return tensor(to_var(tx, value, scalar_dtype(value)))


# -- pointwise --------------------------------------------------------------------------------
def pointwise(tx: TraceContext, op: str, *operands: Var, **params: object) -> Var:
    """Emit a pointwise op of operands broadcast to their common shape."""
    shape = broadcast_shapes(*(v.shape for v in operands))
    spread = [broadcast_to(tx, v, shape) for v in operands]
    return ordered(tx, emit(tx, op, *spread, **params), spread)


def ordered(tx: TraceContext, result: Var, operands: Sequence[Var]) -> Var:
    """``result`` in the memory order that torch gives to a pointwise result of ``operands``."""
    shaped = [v for v in operands if v.ndim == result.ndim]
    if result.ndim < 2 or not shaped:
        return result
    order = iteration_order(result.shape, [v.type.strides for v in shaped])
    return in_order(tx, result, order)


def in_order(tx: TraceContext, x: Var, order: Sequence[int]) -> Var:
    """``x``, copied where its memory is not dense with ``order`` listing axes from outermost to innermost."""
    wanted: list[Dim] = [1] * x.ndim
    for axis, stride in zip(order, contiguous_strides(tuple(x.shape[a] for a in order))):
        wanted[axis] = stride
    if all(same(a, b) or is_one(d) for a, b, d in zip(x.type.strides, wanted, x.shape)):
        return x
    back = tuple(list(order).index(a) for a in range(x.ndim))
    copied = emit(tx, "contiguous", emit(tx, "transpose", x, perm=tuple(order)))
    return emit(tx, "transpose", copied, perm=back)


def iteration_order(shape: Sequence[Dim], operands: Sequence[Sequence[Dim]]) -> list[int]:
    """Axes from outermost to innermost as ``at::TensorIterator`` orders them (``reorder_dimensions`` of
    ATen/TensorIterator.cpp): a stable insertion sort by stride, broadcast axes undecided."""
    inner_first = list(range(len(shape)))[::-1]
    for start in range(1, len(shape)):
        place = start
        for other in range(start - 1, -1, -1):
            verdict = _compare(shape, operands, inner_first[other], inner_first[place])
            if verdict > 0:
                inner_first[other], inner_first[place] = inner_first[place], inner_first[other]
                place = other
            elif verdict < 0:
                break
    return inner_first[::-1]


def _compare(shape: Sequence[Dim], operands: Sequence[Sequence[Dim]], a: int, b: int) -> int:
    """1 if axis ``b`` belongs inside ``a``, -1 if ``a`` inside ``b``, 0 where no operand tells."""
    for strides in operands:
        first, second = strides[a], strides[b]
        if same(first, 0) or same(second, 0):
            continue
        if not same(first, second):
            return -1 if first < second else 1
        if not same(shape[a], shape[b]) and shape[a] > shape[b]:
            return 1
    return 0


def contiguous(tx: TraceContext, var: Var) -> Var:
    """In C order; the same value where it already is."""
    return var if is_c_contiguous(var.shape, var.type.strides) else emit(tx, "contiguous", var)


def as_own(tx: TraceContext, x: Var) -> Var:
    """A view of fresh values as a tensor of its own, which is no view, where a copy would lie as it does:
    the copy is not made."""
    own: Var = emit(tx, "copy", x)
    return own if all(map(same, own.type.strides, x.type.strides)) else x


# -- writing ----------------------------------------------------------------------------------
def write(tx: TraceContext, target: object, value: Var) -> ArrayRef:
    """Write into the target's memory, cast to its dtype as in-place operators do; the target."""
    ref = need_tensor(target)
    check_write(tx, ref.var)
    shown = part_shown(tx.builder, ref.var)
    if shown is not None and shown.name not in tx.builder.unheard_views:
        raise Unsupported("a write to a view of another dtype, which is a copy in the graph")
    if not can_cast(value.dtype, ref.dtype):
        raise Unsupported(f"result type {value.dtype} can't be cast to the desired output type {ref.dtype}")
    if any(same(s, 0) and not is_one(d) for d, s in zip(ref.shape, ref.strides)):
        raise Unsupported("more than one element of the written-to tensor refers to a single memory location")
    if value.ndim > ref.ndim:
        raise Unsupported("an in-place operation that would change the tensor's shape")
    return write_array(tx, ref, convert(tx, value, ref.dtype))


def into(tx: TraceContext, out: object, value: Var) -> ArrayRef:
    """A result, written to ``out`` where that is given: a tensor of its dtype and shape."""
    if out is None:
        return tensor(value)
    ref = need_tensor(out)
    alike = len(ref.shape) == value.ndim and all(map(same, ref.shape, value.shape))
    if ref.dtype != value.dtype or not alike:
        raise Unsupported("out= of another dtype or shape")
    return write(tx, ref, value)
