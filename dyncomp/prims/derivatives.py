"""Derivatives of linear and reducing rows. Those of pointwise rows follow from their ``partials``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..dtypes import int64
from ..graph.ir import Ops, Var
from .contract import free_dims
from .opdef import OpDef
from .pointwise.partials import pointwise_jvp, pointwise_vjp, require_real, zeros
from .shape import inverse

Vars = Sequence[Var]


def _linear_jvp(name: str) -> Callable[..., Var | None]:
    """The tangent goes through the op itself (rows linear in all their array operands together)."""

    def jvp(
        ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: object
    ) -> Var | None:
        require_real(inputs)
        if all(t is None for t in tangents):
            return None
        filled = [zeros(ops, x) if t is None else t for t, x in zip(tangents, inputs)]
        return getattr(ops, name)(*filled, **params)

    return jvp


def _in_order_of(ops: Ops, ct: Var, shape: Sequence[Any]) -> Var:
    return ops.reshape(ops.contiguous(ct), shape=tuple(shape))


def _slice_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, **params: object) -> tuple[Var | None, ...]:
    return (ops.update_slice(zeros(ops, inputs[0]), cts[0], **params),)


def _transpose_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, perm: tuple[int, ...]
) -> tuple[Var | None, ...]:
    return (ops.transpose(cts[0], perm=inverse(perm)),)


def _reshape_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, shape: object
) -> tuple[Var | None, ...]:
    return (_in_order_of(ops, cts[0], inputs[0].shape),)


def _broadcast_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, shape: object, dims: tuple[int, ...]
) -> tuple[Var | None, ...]:
    x = inputs[0]
    view = outputs[0].type
    kept = [axis for axis, dim in zip(dims, x.shape) if not (_is_one(dim) and not _is_one(view.shape[axis]))]
    axes = tuple(a for a in range(view.ndim) if a not in kept)
    return (_in_order_of(ops, ops.reduce_sum(cts[0], axes=axes), x.shape),)


def _is_one(dim: object) -> bool:
    return isinstance(dim, int) and dim == 1


def _diagonal_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, **params: object
) -> tuple[Var | None, ...]:
    return (ops.update_diagonal(zeros(ops, inputs[0]), cts[0], **params),)


def _update_vjp(update: str, view: str) -> Callable[..., tuple[Var | None, ...]]:
    def vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, **params: object) -> tuple[Var | None, ...]:
        base = getattr(ops, update)(cts[0], zeros(ops, inputs[1]), **params)
        return base, ops.copy(getattr(ops, view)(cts[0], **params))

    return vjp


def _triangle_vjp(name: str) -> Callable[..., tuple[Var | None, ...]]:
    def vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, **params: object) -> tuple[Var | None, ...]:
        return (getattr(ops, name)(cts[0], **params),)

    return vjp


def _spread(ops: Ops, value: Var, x: Var, axes: Sequence[int]) -> Var:
    return ops.broadcast_in_dim(value, shape=x.shape, dims=tuple(a for a in range(x.ndim) if a not in axes))


def _sum_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axes: tuple[int, ...]
) -> tuple[Var | None, ...]:
    return (ops.contiguous(_spread(ops, cts[0], inputs[0], axes)),)


def _shares(ops: Ops, x: Var, out: Var, axes: Sequence[int]) -> Var:
    """1/k at each of the k extreme elements of an extent, 0 elsewhere."""
    chosen = ops.convert(ops.equal(x, _spread(ops, out, x, axes)), dtype=x.dtype)
    return ops.divide(chosen, _spread(ops, ops.reduce_sum(chosen, axes=axes), x, axes))


def _extreme_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axes: tuple[int, ...]
) -> tuple[Var | None, ...]:
    shares = _shares(ops, inputs[0], outputs[0], axes)
    return (ops.multiply(_spread(ops, cts[0], inputs[0], axes), shares),)


def _extreme_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, *, axes: tuple[int, ...]
) -> Var | None:
    (t,) = tangents
    if t is None:
        return None
    return ops.reduce_sum(ops.multiply(t, _shares(ops, inputs[0], outputs[0], axes)), axes=axes)


def _flipped(ops: Ops, x: Var, axis: int) -> Var:
    n = x.shape[axis]
    starts = tuple(n - 1 if a == axis else 0 for a in range(x.ndim))
    steps = tuple(-1 if a == axis else 1 for a in range(x.ndim))
    return ops.strided_slice(x, starts=starts, sizes=x.shape, steps=steps)


def _cumsum_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axis: int) -> tuple[Var | None, ...]:
    back = ops.cumsum(_flipped(ops, cts[0], axis), axis=axis)
    return (ops.copy(_flipped(ops, back, axis)),)


def _index_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, **params: object) -> tuple[Var | None, ...]:
    x, *index = inputs
    grad = ops.index_put(zeros(ops, x), cts[0], *index, combine="add", **params)
    return (grad, *(None for _ in index))


def _index_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: Any
) -> Var | None:
    return None if tangents[0] is None else ops.index(tangents[0], *inputs[1:], **params)


def _along_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axis: int) -> tuple[Var | None, ...]:
    x, index = inputs
    dims = tuple(range(x.ndim))
    places = [index if a == axis else ops.iota(shape=index.shape, axis=a, dtype=int64) for a in dims]
    grad = ops.index_put(zeros(ops, x), cts[0], *places, dims=dims, position=0, combine="add")
    return grad, None


def _along_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, *, axis: int
) -> Var | None:
    return None if tangents[0] is None else ops.take_along_axis(tangents[0], inputs[1], axis=axis)


def _dot_vjp(
    ops: Ops,
    cts: Vars,
    inputs: Vars,
    outputs: Vars,
    *,
    contract: tuple[tuple[int, ...], tuple[int, ...]],
    batch: tuple[tuple[int, ...], tuple[int, ...]],
) -> tuple[Var | None, ...]:
    require_real(inputs)
    x, y = inputs
    return (
        _dot_side(ops, cts[0], x, y, contract, batch, 0),
        _dot_side(ops, cts[0], y, x, contract[::-1], batch[::-1], 1),
    )


def _dot_side(
    ops: Ops,
    ct: Var,
    wanted: Var,
    other: Var,
    contract: tuple[tuple[int, ...], tuple[int, ...]],
    batch: tuple[tuple[int, ...], tuple[int, ...]],
    side: int,
) -> Var:
    """The cotangent of ``wanted``: contract ct with the free dimensions of ``other``."""
    count = len(batch[0])
    mine = free_dims(wanted.ndim, contract[0], batch[0])
    theirs = free_dims(other.ndim, contract[1], batch[1])
    first = count + (len(mine) if side == 0 else 0)
    their_place = tuple(range(first, first + len(theirs)))
    product = ops.dot_general(
        ct, other, contract=(their_place, theirs), batch=(tuple(range(count)), tuple(batch[1]))
    )
    # dimensions of the product: batch, free of wanted, contracted ones in the order of other's dimensions
    left = sorted(zip(contract[1], contract[0]))
    order = [*batch[0], *mine, *(a for _, a in left)]
    return ops.transpose(product, perm=inverse(order))


def _dot_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: Any
) -> Var | None:
    require_real(inputs)
    x, y = inputs
    terms = []
    if tangents[0] is not None:
        terms.append(ops.dot_general(tangents[0], y, **params))
    if tangents[1] is not None:
        terms.append(ops.dot_general(x, tangents[1], **params))
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else ops.add(*terms)


VJPS: dict[str, Callable[..., Any]] = {
    "strided_slice": _slice_vjp,
    "transpose": _transpose_vjp,
    "reshape": _reshape_vjp,
    "broadcast_in_dim": _broadcast_vjp,
    "diagonal": _diagonal_vjp,
    "update_slice": _update_vjp("update_slice", "strided_slice"),
    "update_diagonal": _update_vjp("update_diagonal", "diagonal"),
    "tril": _triangle_vjp("tril"),
    "triu": _triangle_vjp("triu"),
    "reduce_sum": _sum_vjp,
    "reduce_max": _extreme_vjp,
    "reduce_min": _extreme_vjp,
    "cumsum": _cumsum_vjp,
    "index": _index_vjp,
    "take_along_axis": _along_vjp,
    "dot_general": _dot_vjp,
}

_LINEAR = (
    "strided_slice",
    "transpose",
    "reshape",
    "broadcast_in_dim",
    "diagonal",
    "update_slice",
    "update_diagonal",
    "tril",
    "triu",
    "reduce_sum",
    "cumsum",
)

JVPS: dict[str, Callable[..., Any]] = {
    **{name: _linear_jvp(name) for name in _LINEAR},
    "reduce_max": _extreme_jvp,
    "reduce_min": _extreme_jvp,
    "index": _index_jvp,
    "take_along_axis": _along_jvp,
    "dot_general": _dot_jvp,
}


def with_derivatives(row: OpDef) -> OpDef:
    """The row with its ``vjp`` and ``jvp``, if it has derivatives."""
    if row.partials is not None:
        return replace(row, vjp=pointwise_vjp(row.partials), jvp=pointwise_jvp(row.partials))
    return replace(row, vjp=VJPS.get(row.name), jvp=JVPS.get(row.name))
