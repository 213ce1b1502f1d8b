"""Linear algebra in terms of ``dot_general`` and the LAPACK rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...dtypes import DType, complex128, float32, float64, int64
from ...graph.ir import Ops, Var
from ...symbolic.integers import Dim
from ..kit import Array
from ..layout import dims_equal, is_one
from ..linalg import LAPACK
from ..opdef import OpDef, Sample
from ..samples import data
from .kit import composite, filled, number, spread, window

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


def inner(ops: Ops, x: Var, y: Var) -> Var:
    return ops.dot_general(x, y, contract=((x.ndim - 1,), (y.ndim - 1,)), batch=_NONE)


def dot(ops: Ops, x: Var, y: Var) -> Var:
    """``np.dot``: the last axis of x with the second last of y."""
    return ops.dot_general(x, y, contract=((x.ndim - 1,), (max(0, y.ndim - 2),)), batch=_NONE)


def vdot(ops: Ops, x: Var, y: Var) -> Var:
    """Vectors; the first is conjugated."""
    return ops.dot_general(ops.conj(x), y, contract=((0,), (0,)), batch=_NONE)


def vecdot(ops: Ops, x: Var, y: Var) -> Var:
    """Over the last axis of arrays of one shape; the first is conjugated."""
    batch = tuple(range(x.ndim - 1))
    return ops.dot_general(ops.conj(x), y, contract=((x.ndim - 1,), (y.ndim - 1,)), batch=(batch, batch))


def tensordot(ops: Ops, x: Var, y: Var, *, axes: tuple[tuple[int, ...], tuple[int, ...]]) -> Var:
    return ops.dot_general(x, y, contract=axes, batch=_NONE)


def kron(ops: Ops, x: Var, y: Var) -> Var:
    """Kronecker product of arrays of one number of dimensions."""
    n = x.ndim
    shape = tuple(d for pair in zip(x.shape, y.shape) for d in pair)
    left = ops.broadcast_in_dim(x, shape=shape, dims=tuple(range(0, 2 * n, 2)))
    right = ops.broadcast_in_dim(y, shape=shape, dims=tuple(range(1, 2 * n, 2)))
    product = ops.contiguous(ops.multiply(left, right))
    return ops.reshape(product, shape=tuple(a * b for a, b in zip(x.shape, y.shape)))


def cross(ops: Ops, x: Var, y: Var) -> Var:
    """Cross product of vectors of three on the last axis."""
    last = x.ndim - 1

    def part(v: Var, i: int) -> Var:
        return ops.reduce_sum(window(ops, v, last, i, 1), axes=(last,))

    def component(i: int, j: int) -> Var:
        left = ops.multiply(part(x, i), part(y, j))
        return ops.subtract(left, ops.multiply(part(x, j), part(y, i)))

    return ops.stack(component(1, 2), component(2, 0), component(0, 1), axis=last)


def frobenius_norm(ops: Ops, x: Var) -> Var:
    """Of the last two axes."""
    return ops.vector_norm(x, axes=(x.ndim - 2, x.ndim - 1), ord=2)


def _cutoff(ops: Ops, values: Var, relative: object) -> Var:
    """The largest singular value times ``relative``, spread over the values."""
    last = values.ndim - 1
    top = ops.reduce_max(values, axes=(last,))
    return spread(ops, ops.multiply(top, filled(ops, top, relative)), values, (last,))


def matrix_rank(ops: Ops, x: Var) -> Var:
    """Number of singular values above max(rows, columns)*eps times the largest; int64."""
    values = ops.svdvals(x)
    longest = max(x.shape[-2], x.shape[-1])
    tolerance = longest * float(np.finfo(x.dtype.numpy).eps)
    above = ops.greater(values, _cutoff(ops, values, tolerance))
    return ops.count_nonzero(above, axes=(values.ndim - 1,))


def pinv(ops: Ops, x: Var, *, rcond: float) -> Var:
    """Moore-Penrose inverse; singular values up to rcond times the largest count as 0."""
    u, values, vh = ops.svd(ops.conj(x), full_matrices=False)
    large = ops.greater(values, _cutoff(ops, values, rcond))
    weights = ops.where(large, ops.reciprocal(values), filled(ops, values, 0))
    n = x.ndim
    turned = tuple(range(n - 2)) + (n - 1, n - 2)
    ut = ops.transpose(u, perm=turned)
    scale = ops.convert(weights, dtype=x.dtype)
    scaled = ops.multiply(ops.broadcast_in_dim(scale, shape=ut.shape, dims=tuple(range(n - 1))), ut)
    return ops.matmul(ops.transpose(vh, perm=turned), scaled)


def matrix_power(ops: Ops, x: Var, *, n: int) -> Var:
    """Repeated squaring; negative powers through the inverse. ``n`` is a constant."""
    if n < 0:
        return matrix_power(ops, ops.inv(x), n=-n) if n < -1 else ops.inv(x)
    if n == 0:
        size = x.shape[-1]
        unit = ops.eye(rows=size, columns=size, k=0, dtype=x.dtype)
        return ops.contiguous(_broadcast_stack(ops, unit, x.shape[:-2]))
    if n == 1:
        return ops.copy(x)
    half = matrix_power(ops, x, n=n // 2) if n > 3 else x
    square = ops.matmul(half, half)
    return ops.matmul(square, x) if n % 2 else square


def trapezoid(ops: Ops, y: Var, *, dx: float, axis: int) -> Var:
    n = y.shape[axis]
    pair = ops.add(window(ops, y, axis, 1, n - 1), window(ops, y, axis, 0, n - 1))
    step = number(ops, dx, y.dtype, y)
    scaled = ops.multiply(ops.broadcast_in_dim(step, shape=pair.shape, dims=()), pair)
    return ops.reduce_sum(ops.divide(scaled, filled(ops, scaled, 2.0)), axes=(axis,))


def polyval(ops: Ops, p: Var, x: Var) -> Var:
    """Horner's rule; coefficients from the highest power, their number a constant."""
    out = filled(ops, x, 0)
    for i in range(int(p.shape[0])):
        coefficient = ops.reduce_sum(window(ops, p, 0, i, 1), axes=(0,))
        out = ops.add(ops.multiply(out, x), ops.broadcast_in_dim(coefficient, shape=x.shape, dims=()))
    return out if p.shape[0] else ops.contiguous(out)


# -- references and samples -------------------------------------------------------------------
def _matrix_power_ref(x: Array, *, n: int) -> Array:
    return np.array(np.linalg.matrix_power(x, n), order="K")


def _polyval_ref(p: Array, x: Array) -> Array:
    return np.asarray(np.polyval(p, x))


def _plain(fn: Callable[..., Any]) -> Callable[..., Array]:
    def ref(*args: Array, **params: object) -> Array:
        return np.asarray(fn(*args, **params), order="C")

    return ref


def _pairs(
    *shapes: tuple[tuple[int, ...], tuple[int, ...]], params: Any = None
) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in _FEW:
            for xs, ys in shapes:
                args = (data(dtype, xs, 1), data(dtype, ys, 2))
                yield Sample(args, params or {}, f"{dtype}-{xs}-{ys}")
                if len(xs) == 2 and len(ys) == 2 and xs[0] == ys[1]:
                    yield Sample((args[1].T, args[0].T), params or {}, f"{dtype}-{xs}-{ys}-transposed")

    return samples


def _singles(
    *shapes: tuple[int, ...],
    choices: tuple[dict[str, Any], ...] = ({},),
    dtypes: Sequence[DType] = LAPACK,
    square: bool = False,
) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for shape in shapes:
                for number_, params in enumerate(choices):
                    x = data(dtype, shape, 3)
                    if square:
                        x = (x + 8 * np.eye(shape[-1])).astype(dtype.numpy)
                    yield Sample((x,), params, f"{dtype}-{shape}-{number_}")

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
    params: tuple[str, ...] = (),
    **kw: Any,
) -> OpDef:
    return composite(name, params, decomp, _plain(ref), samples, doc, eps=256.0, absolute=256.0, **kw)


ROWS: tuple[OpDef, ...] = (
    _row("matmul", matmul, np.matmul, _pairs(*_M), "x @ y on one dtype, in C order.", rare_errors=("over",)),
    _row(
        "outer", outer, np.outer, _pairs(*_V, ((2,), (5,))), "Products of all pairs of two vectors' elements."
    ),
    _row("inner", inner, np.inner, _pairs(*_V, ((2, 3), (4, 3))), "Sum of products over the last axes."),
    _row(
        "dot",
        dot,
        np.dot,
        _pairs(*_V, ((3, 4), (4, 5)), ((2, 3, 4), (5, 4, 6))),
        "np.dot of arrays with dimensions.",
    ),
    _row("vdot", vdot, np.vdot, _pairs(*_V), "conj(x) . y for vectors."),
    _row("vecdot", vecdot, np.vecdot, _pairs(*_V, ((2, 3), (2, 3))), "conj(x) . y over the last axis."),
    _row(
        "tensordot",
        tensordot,
        np.tensordot,
        _pairs(((3, 4, 5), (4, 3, 2)), params={"axes": ((0, 1), (1, 0))}),
        "Sum of products over paired axes.",
        ("axes",),
    ),
    _row("kron", kron, np.kron, _pairs(((3,), (2,)), ((2, 3), (4, 5))), "Kronecker product."),
    _row(
        "cross", cross, np.cross, _pairs(((3,), (3,)), ((5, 3), (5, 3))), "Cross product on a last axis of 3."
    ),
    _row(
        "frobenius_norm",
        frobenius_norm,
        lambda x: np.linalg.norm(x, axis=(-2, -1)),
        _singles((3, 4), (2, 3, 4), (1, 1)),
        "Frobenius norm of matrices.",
        dtypes=LAPACK,
    ),
    _row(
        "matrix_rank",
        matrix_rank,
        lambda x: np.linalg.matrix_rank(x),
        _singles((3, 4), (2, 5, 3), (4, 4)),
        "Numerical rank, int64.",
        dtypes=LAPACK,
    ),
    _row(
        "pinv",
        pinv,
        np.linalg.pinv,
        _singles((3, 4), (5, 3), (2, 4, 3), choices=({"rcond": 1e-6},)),
        "Moore-Penrose inverse.",
        ("rcond",),
        dtypes=LAPACK,
    ),
    _row(
        "matrix_power",
        matrix_power,
        _matrix_power_ref,
        _singles((3, 3), (2, 4, 4), choices=tuple({"n": n} for n in (-3, -1, 0, 1, 2, 3, 4, 7)), square=True),
        "Integer power of square matrices.",
        ("n",),
        dtypes=LAPACK,
    ),
    _row(
        "trapezoid",
        trapezoid,
        np.trapezoid,
        _singles(
            (5,), (3, 6), choices=({"dx": 1.0, "axis": 0}, {"dx": 0.5, "axis": 0}), dtypes=(float64, float32)
        ),
        "Integral by the trapezoidal rule.",
        ("dx", "axis"),
        dtypes=(float64, float32),
    ),
    _row(
        "polyval",
        polyval,
        _polyval_ref,
        _pairs(((4,), (7,)), ((1,), (3, 4)), ((0,), (3,))),
        "A polynomial's values, by Horner's rule.",
    ),
)
