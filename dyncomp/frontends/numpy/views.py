"""Emitting views: reshapes, permutations, slices along one axis."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import (
    is_c_contiguous,
    is_one,
    iteration_order,
    k_order_axes,
    reshape_strides,
    sorted_axes,
)
from ...symbolic.integers import Dim, product
from ..base import TraceContext
from .operands import emit, in_memory_by


def reshapes_in_place(x: Var, shape: Sequence[Dim]) -> bool:
    """Whether a C-order reshape of ``x`` is a view; raises ``Unsupported`` where the sizes differ."""
    try:
        return reshape_strides(x.shape, x.type.strides, tuple(shape)) is not None
    except ValueError as error:
        raise Unsupported(str(error)) from error


def reshape_var(tx: TraceContext, x: Var, shape: Sequence[Dim]) -> Var:
    """C-order reshape: a view where NumPy gives one, else of a copy."""
    if not reshapes_in_place(x, shape):
        x = emit(tx, "contiguous", x)
    return emit(tx, "reshape", x, shape=tuple(shape))


def flatten_view(tx: TraceContext, x: Var) -> Var:
    """The elements in C order as one dimension; a view where that is possible."""
    return reshape_var(tx, x, (product(x.shape),))


def transpose_var(tx: TraceContext, x: Var, perm: Sequence[int]) -> Var:
    return emit(tx, "transpose", x, perm=tuple(perm))


def in_memory_as(tx: TraceContext, x: Var, *like: Var) -> Var:
    """``x`` with its axes in memory in the order in which a ufunc's result of ``like`` has them."""
    return in_memory_by(tx, x, k_order_axes(x.shape, [var.type.strides for var in like]))


def in_memory_of_copy(tx: TraceContext, x: Var, like: Var) -> Var:
    """``x`` with its axes in memory in the order in which ``np.empty_like`` and a copy of ``like`` have them,
    which is another than a ufunc's for broadcast arrays."""
    return in_memory_by(tx, x, sorted_axes(like.shape, like.type.strides))


def in_memory_of_reduction(tx: TraceContext, x: Var, like: Var, axes: Sequence[int]) -> Var:
    """``x`` with its axes in memory in the order in which a reduction of ``like`` over ``axes`` has them,
    which is that of ``like``, not of what it was converted to."""
    kept = [axis for axis in range(like.ndim) if axis not in axes]
    order = k_order_axes(like.shape, [like.type.strides])
    return in_memory_by(tx, x, [kept.index(axis) for axis in order if axis in kept])


def in_memory_of_products(tx: TraceContext, x: Var, operands: Sequence[Var]) -> Var:
    """A stack of matrices ``x``, the stack's axes in memory in the order in which a generalized ufunc of
    ``operands`` has them."""
    stack = x.shape[:-2]
    if len(stack) < 2 or all(is_c_contiguous(v.shape, v.type.strides) for v in operands):
        return x
    strides = []
    for var in operands:
        outer = [0 if is_one(d) else s for d, s in zip(var.shape[:-2], var.type.strides)]
        strides.append([*[0] * (len(stack) - len(outer)), *outer])
    return in_memory_by(tx, x, [*iteration_order(stack, strides), x.ndim - 2, x.ndim - 1])


def reversed_axes(tx: TraceContext, x: Var) -> Var:
    return transpose_var(tx, x, range(x.ndim)[::-1])


def slice_axis(tx: TraceContext, x: Var, axis: int, start: Dim, size: Dim, step: int = 1) -> Var:
    """``size`` elements along ``axis`` from ``start`` on."""
    starts = tuple(start if i == axis else 0 for i in range(x.ndim))
    sizes = tuple(size if i == axis else d for i, d in enumerate(x.shape))
    steps = tuple(step if i == axis else 1 for i in range(x.ndim))
    return emit(tx, "strided_slice", x, starts=starts, sizes=sizes, steps=steps)
