"""Products of matrices and vectors in terms of ``dot_general``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...dtypes import complex128, float32, float64, int64
from ...graph.ir import Ops, Var
from ...symbolic.integers import Dim
from ..kit import Array
from ..layout import dims_equal, is_one
from ..opdef import OpDef, Sample
from ..samples import data
from .kit import composite

_FEW = (float64, float32, complex128, int64)
_NONE: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


def _broadcast_stack(ops: Ops, x: Var, stack: tuple[Dim, ...]) -> Var:
    """``x`` with its leading dimensions broadcast to ``stack`` (the last two stay)."""
    shape = (*stack, *x.shape[-2:])
    return ops.broadcast_in_dim(x, shape=shape, dims=tuple(range(len(shape) - x.ndim, len(shape))))


def _stack_shape(x: Var, y: Var) -> tuple[Dim, ...]:
    left, right = x.shape[:-2], y.shape[:-2]
    length = max(len(left), len(right))
    left = (1,) * (length - len(left)) + left
    right = (1,) * (length - len(right)) + right
    out: list[Dim] = []
    for a, b in zip(left, right):
        if not is_one(a) and not is_one(b) and not dims_equal(a, b):
            raise ValueError(f"matmul: stacks {x.shape} and {y.shape} do not broadcast")
        out.append(b if is_one(a) else a)
    return tuple(out)


def matmul(ops: Ops, x: Var, y: Var) -> Var:
    """``x @ y`` on one dtype, stacks broadcast, vectors as NumPy treats them."""
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError("matmul: operands must have dimensions")
    if x.ndim == 1 or y.ndim <= 2:
        # one operand has no stack: a single product
        ydim = max(0, y.ndim - 2)
        return ops.dot_general(x, y, contract=((x.ndim - 1,), (ydim,)), batch=_NONE)
    stack = _stack_shape(x, y)
    left = _broadcast_stack(ops, x, stack)
    right = _broadcast_stack(ops, y, stack)
    n = len(stack)
    batch = tuple(range(n))
    return ops.dot_general(left, right, contract=((n + 1,), (n,)), batch=(batch, batch))


def outer(ops: Ops, x: Var, y: Var) -> Var:
    shape = (x.shape[0], y.shape[0])
    return ops.multiply(
        ops.broadcast_in_dim(x, shape=shape, dims=(0,)), ops.broadcast_in_dim(y, shape=shape, dims=(1,))
    )


# -- references and samples -------------------------------------------------------------------
def _plain(fn: Callable[..., Any]) -> Callable[..., Array]:
    def ref(*args: Array, **params: object) -> Array:
        return np.asarray(fn(*args, **params), order="C")

    return ref


def _pairs(*shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in _FEW:
            for xs, ys in shapes:
                args = (data(dtype, xs, 1), data(dtype, ys, 2))
                yield Sample(args, {}, f"{dtype}-{xs}-{ys}")
                if len(xs) == 2 and len(ys) == 2 and xs[0] == ys[1]:
                    yield Sample((args[1].T, args[0].T), {}, f"{dtype}-{xs}-{ys}-transposed")

    return samples


_V = (((3,), (3,)), ((0,), (0,)), ((50,), (50,)))
_M = (
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((7,), (7,)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 2)),
    ((0, 4), (4, 2)),
    ((4,), (2, 4, 3)),
    ((2, 3, 4), (4,)),
)


def _row(
    name: str,
    decomp: Callable[..., Any],
    ref: Callable[..., Any],
    samples: Any,
    doc: str,
    **kw: Any,
) -> OpDef:
    return composite(name, (), decomp, _plain(ref), samples, doc, eps=256.0, absolute=256.0, **kw)


ROWS: tuple[OpDef, ...] = (
    _row("matmul", matmul, np.matmul, _pairs(*_M), "x @ y on one dtype, in C order.", rare_errors=("over",)),
    _row(
        "outer", outer, np.outer, _pairs(*_V, ((2,), (5,))), "Products of all pairs of two vectors' elements."
    ),
)
