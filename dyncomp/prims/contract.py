"""``dot_general``: the one contraction. matmul, tensordot, einsum and the like are written in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..dtypes import ALL, DType, bfloat16, complex128, float16, float32, float64, int8, int32, int64, uint8
from ..graph.ir import ArrayType, array_type
from ..symbolic.integers import Dim
from .kit import Array, axes_tuple, widening
from .layout import dims_equal
from .opdef import Contract, OpDef, Sample, Tolerance
from .samples import data

Pair = tuple[tuple[int, ...], tuple[int, ...]]


def free_dims(ndim: int, contract: Sequence[int], batch: Sequence[int]) -> tuple[int, ...]:
    """Dimensions of an operand that are neither contracted nor batched, in order."""
    return tuple(a for a in range(ndim) if a not in contract and a not in batch)


def dot_meta(x: ArrayType, y: ArrayType, *, contract: Pair, batch: Pair) -> ArrayType:
    if x.dtype is not y.dtype:
        raise TypeError(f"dot_general needs operands of one dtype, not {x.dtype} and {y.dtype}")
    return _product_type(x, y, contract, batch, x.dtype)


def _product_type(x: ArrayType, y: ArrayType, contract: Pair, batch: Pair, dtype: DType) -> ArrayType:
    for operand, side in ((x, 0), (y, 1)):
        axes_tuple((*contract[side], *batch[side]), operand.ndim, "dot_general")
    for name, (xdims, ydims) in (("contract", contract), ("batch", batch)):
        if len(xdims) != len(ydims):
            raise ValueError(f"dot_general: {name} dimensions do not pair up")
        for a, b in zip(xdims, ydims):
            if not dims_equal(x.shape[a], y.shape[b]):
                raise ValueError(f"dot_general: {name} dimensions of sizes {x.shape[a]} and {y.shape[b]}")
    shape: list[Dim] = [x.shape[a] for a in batch[0]]
    shape += [x.shape[a] for a in free_dims(x.ndim, contract[0], batch[0])]
    shape += [y.shape[a] for a in free_dims(y.ndim, contract[1], batch[1])]
    return array_type(dtype, tuple(shape), x.device)


def _size(dims: Sequence[int]) -> int:
    total = 1
    for d in dims:
        total *= d
    return total


def _dot(x: Array, y: Array, *, contract: Pair, batch: Pair) -> Array:
    xfree = free_dims(x.ndim, contract[0], batch[0])
    yfree = free_dims(y.ndim, contract[1], batch[1])
    batch_shape = tuple(x.shape[a] for a in batch[0])
    xfree_shape = tuple(x.shape[a] for a in xfree)
    yfree_shape = tuple(y.shape[a] for a in yfree)
    depth = _size([x.shape[a] for a in contract[0]])
    left = x.transpose((*batch[0], *xfree, *contract[0])).reshape(*batch_shape, _size(xfree_shape), depth)
    right = y.transpose((*batch[1], *contract[1], *yfree)).reshape(*batch_shape, depth, _size(yfree_shape))
    out = np.matmul(left, right).reshape(batch_shape + xfree_shape + yfree_shape)
    return np.asarray(out, order="C")


_quiet_dot = widening(_dot)


def dot_ref(x: Array, y: Array, *, contract: Pair, batch: Pair) -> Array:
    return _quiet_dot(x, y, contract=contract, batch=batch)


BYTES = (int8, uint8)


def wide_dtype(x: DType, y: DType) -> DType | None:
    """The dtype in which ``wide_dot_general`` multiplies, if it takes such operands."""
    if x in BYTES and y in BYTES:
        return int32
    is_float = (x is y and x in (float16, bfloat16)) or (x is float32 and y in BYTES)
    return float32 if is_float else None


def wide_dot_meta(x: ArrayType, y: ArrayType, *, contract: Pair, batch: Pair) -> ArrayType:
    dtype = wide_dtype(x.dtype, y.dtype)
    if dtype is None:
        raise TypeError(f"wide_dot_general of {x.dtype} and {y.dtype}")
    return _product_type(x, y, contract, batch, dtype)


def wide_dot_ref(x: Array, y: Array, *, contract: Pair, batch: Pair) -> Array:
    wide = np.int32 if x.dtype.kind in "iu" else np.float32
    return dot_ref(x.astype(wide), y.astype(wide), contract=contract, batch=batch)


def wide_dot_samples() -> Iterator[Sample]:
    none: Pair = ((), ())
    for dtype in (float16, bfloat16):
        yield _case(dtype, (3, 4), (4, 5), ((1,), (0,)), none, "matmul")
        yield _case(dtype, (40, 32), (48, 32), ((1,), (1,)), none, "turned")
        yield _case(dtype, (2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,)), "batched")
    for left in (int8, uint8, float32):
        for right in BYTES:
            shapes: tuple[tuple[Sequence[int], Sequence[int], Pair, Pair], ...] = (
                ((33, 70), (70, 50), ((1,), (0,)), none),
                ((1, 300), (270, 300), ((1,), (1,)), none),
                ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
            )
            for number, (xs, ys, contract, batch) in enumerate(shapes):
                params = {"contract": contract, "batch": batch}
                # small where sums are rounded
                y = data(right, ys, 2) // (32 if left is float32 else 1)
                yield Sample((data(left, xs, 1), y), params, f"{left}-{right}-{number}")


def _case(
    dtype: Any, xs: Sequence[int], ys: Sequence[int], contract: Pair, batch: Pair, label: str
) -> Sample:
    params = {"contract": contract, "batch": batch}
    return Sample((data(dtype, xs, 1), data(dtype, ys, 2)), params, f"{dtype}-{label}")


def dot_samples() -> Iterator[Sample]:
    none: Pair = ((), ())
    matrix: Pair = ((1,), (0,))
    for dtype in ALL:
        yield _case(dtype, (3, 4), (4, 5), matrix, none, "matmul")
        yield _case(dtype, (7,), (7,), ((0,), (0,)), none, "dot")
        yield _case(dtype, (3, 4), (4,), matrix, none, "matvec")
    for dtype in (float64, float32, complex128, int64):
        yield _case(dtype, (4,), (4, 5), ((0,), (0,)), none, "vecmat")
        yield _case(dtype, (2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,)), "batched")
        yield _case(dtype, (4, 2, 3), (4, 5, 2), ((0,), (0,)), ((1,), (2,)), "batch inside")
        yield _case(dtype, (3, 4, 5), (5, 4, 2), ((2, 1), (0, 1)), none, "tensordot")
        yield _case(dtype, (3,), (4,), none, none, "outer")
        yield _case(dtype, (0, 4), (4, 5), matrix, none, "no rows")
        yield _case(dtype, (3, 0), (0, 5), matrix, none, "no depth")
        yield _case(dtype, (5, 3), (5, 3), ((), ()), ((0, 1), (0, 1)), "all batch")
        yield _case(dtype, (3, 3), (3, 3), ((0,), (1,)), none, "both transposed")
        x = data(dtype, (6, 5))
        params = {"contract": matrix, "batch": none}
        yield Sample((x.T, data(dtype, (8, 6)).T), params, f"{dtype}-fortran")
        yield Sample((x[::2, 1:4], data(dtype, (6, 4))[::-2]), params, f"{dtype}-strided")
        yield Sample((np.broadcast_to(x[0], (4, 5)), data(dtype, (5, 3))), params, f"{dtype}-broadcast")
    yield _case(float32, (100, 37), (37, 64), matrix, none, "large")
    yield _case(float64, (64, 128), (128, 32), matrix, none, "large")
    special = np.array([[np.nan, 1.0], [np.inf, 2.0]])
    yield Sample((special, np.eye(2)), {"contract": matrix, "batch": none}, "special")


ROWS: tuple[OpDef, ...] = (
    OpDef(
        "dot_general",
        ("contract", "batch"),
        dot_meta,
        dot_ref,
        lower=Contract(),
        samples=dot_samples,
        tolerance=Tolerance(64.0),
        doc="Sum of products over paired `contract` dimensions, for each of paired `batch` dimensions; "
        "result dimensions: batch, free of x, free of y, in C order. `contract` and `batch` are pairs of "
        "tuples (dimensions of x, of y). Same dtype in and out (bool: or of ands).",
    ),
    OpDef(
        "wide_dot_general",
        ("contract", "batch"),
        wide_dot_meta,
        wide_dot_ref,
        lower=Contract(),
        samples=wide_dot_samples,
        tolerance=Tolerance(64.0),
        doc="`dot_general` of narrow operands: of one half precision, with sums and results in float32, as a "
        "GPU's matrix units make them; of int8 and uint8, in int32, which wraps; of float32 by int8 or "
        "uint8, in float32.",
    ),
)
