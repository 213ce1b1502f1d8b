"""Views and their updates, sums and extremes, indexing, products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dtypes import int64
from ...graph.ir import Ops, Var
from ...symbolic.integers import product, same
from ..composite.kit import spread
from ..contract import free_dims
from ..pointwise.partials import conjugate, scalar, total, zeros
from ..shape import inverse

Vars = Sequence[Var]


def linear_jvp(name: str) -> Callable[..., Var | None]:
    """The tangent goes through the op itself (rows linear in all their array operands together)."""

    def jvp(
        ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: object
    ) -> Var | None:
        if all(t is None for t in tangents):
            return None
        filled = [zeros(ops, x) if t is None else t for t, x in zip(tangents, inputs)]
        return getattr(ops, name)(*filled, **params)

    return jvp


def bilinear_jvp(name: str) -> Callable[..., Var | None]:
    """The tangent of a row that is linear in each of its two operands."""

    def jvp(
        ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: object
    ) -> Var | None:
        op = getattr(ops, name)
        (x, y), (tx, ty) = inputs, tangents
        first = None if tx is None else op(tx, y, **params)
        return total(ops, (first, None if ty is None else op(x, ty, **params)))

    return jvp


def ldexp_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars) -> tuple[Var | None, ...]:
    return ops.ldexp(cts[0], inputs[1]), None


def ldexp_jvp(ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars) -> Var | None:
    return None if tangents[0] is None else ops.ldexp(tangents[0], inputs[1])


def _in_order_of(ops: Ops, ct: Var, shape: Sequence[Any]) -> Var:
    return ops.reshape(ops.contiguous(ct), shape=tuple(shape))


def _slice_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, **params: object) -> tuple[Var | None, ...]:
    return (ops.update_slice(zeros(ops, inputs[0]), cts[0], **params),)


def _transpose_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, perm: Any) -> tuple[Var | None, ...]:
    return (ops.transpose(cts[0], perm=inverse(perm)),)


def _reshape_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, shape: Any) -> tuple[Var | None, ...]:
    return (_in_order_of(ops, cts[0], inputs[0].shape),)


def _broadcast_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, shape: Any, dims: Any
) -> tuple[Var | None, ...]:
    x = inputs[0]
    view = outputs[0].type
    kept = [axis for axis, dim in zip(dims, x.shape) if not (_is_one(dim) and not _is_one(view.shape[axis]))]
    axes = tuple(a for a in range(view.ndim) if a not in kept)
    return (_in_order_of(ops, ops.reduce_sum(cts[0], axes=axes), x.shape),)


def _is_one(dim: Any) -> bool:
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


def _sum_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axes: Any) -> tuple[Var | None, ...]:
    return (ops.contiguous(spread(ops, cts[0], inputs[0], axes)),)


def _shares(ops: Ops, x: Var, out: Var, axes: Sequence[int]) -> Var:
    """1/k at each of the k extreme elements of an extent, 0 elsewhere."""
    chosen = ops.convert(ops.equal(x, spread(ops, out, x, axes)), dtype=x.dtype)
    return ops.divide(chosen, spread(ops, ops.reduce_sum(chosen, axes=axes), x, axes))


def _extreme_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axes: Any) -> tuple[Var | None, ...]:
    shares = _shares(ops, inputs[0], outputs[0], axes)
    return (ops.multiply(spread(ops, cts[0], inputs[0], axes), shares),)


def _extreme_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, *, axes: Any
) -> Var | None:
    (t,) = tangents
    if t is None:
        return None
    return ops.reduce_sum(ops.multiply(t, _shares(ops, inputs[0], outputs[0], axes)), axes=axes)


def flipped(ops: Ops, x: Var, axis: int) -> Var:
    n = x.shape[axis]
    starts = tuple(n - 1 if a == axis else 0 for a in range(x.ndim))
    steps = tuple(-1 if a == axis else 1 for a in range(x.ndim))
    return ops.strided_slice(x, starts=starts, sizes=x.shape, steps=steps)


def _cumsum_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axis: int) -> tuple[Var | None, ...]:
    back = ops.cumsum(flipped(ops, cts[0], axis), axis=axis)
    return (ops.copy(flipped(ops, back, axis)),)


def window(ops: Ops, x: Var, axis: int, start: Any, count: Any) -> Var:
    """``count`` positions of an axis from ``start`` on, as a fresh array."""
    starts = tuple(start if a == axis else 0 for a in range(x.ndim))
    sizes = tuple(count if a == axis else d for a, d in enumerate(x.shape))
    found: Var = ops.copy(ops.strided_slice(x, starts=starts, sizes=sizes, steps=(1,) * x.ndim))
    return found


def put_along(ops: Ops, base: Var, value: Var, index: Var, axis: int, combine: str) -> Var:
    """``base`` with ``value`` combined at what ``take_along_axis`` would read."""
    dims = tuple(range(base.ndim))
    device = base.type.device
    places = [
        index if a == axis else ops.iota(shape=index.shape, axis=a, dtype=int64, device=device) for a in dims
    ]
    found: Var = ops.index_put(base, value, *places, dims=dims, position=0, combine=combine)
    return found


def _along(ops: Ops, index: Var) -> int | None:
    """The axis along which an index array is the position."""
    node = ops.builder.producer(index)
    if node is not None and node.op == "broadcast_in_dim":
        inner = ops.builder.producer(node.inputs[0])
        one = inner is not None and inner.op == "iota" and node.inputs[0].ndim == 1
        (axis,) = node.kwargs["dims"] if one else (None,)
        return axis if axis is not None and same(index.shape[axis], node.inputs[0].shape[0]) else None
    return node.kwargs["axis"] if node is not None and node.op == "iota" else None


def _odd_one(ops: Ops, x: Var, index: Vars, dims: Sequence[int]) -> tuple[int, list[int]] | None:
    """Where all index arrays but one are positions along the axes of their shape, each along another one
    and for a whole dimension of ``x``: the number of that one, and the dimensions for the axes of the shape.
    Each element of ``x`` is read once at most then."""
    axes = [_along(ops, var) for var in index]
    odd = axes.index(None) if None in axes else -1
    places = {axis: dims[k] for k, axis in enumerate(axes) if k != odd and axis is not None}
    found = [places.get(axis) for axis in range(index[0].ndim)]
    known = [d for d in found if d is not None]
    if odd < 0 or not len(known) == len(found) == len(index) - 1:
        return None
    whole = all(same(n, x.shape[d]) for n, d in zip(index[0].shape, known))
    return (odd, known) if whole else None


def _onto(ops: Ops, v: Var, x: Var, dims: Sequence[int]) -> Var:
    """``v``, whose axes are these dimensions of ``x``, with the shape of ``x``."""
    order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
    found: Var = ops.broadcast_in_dim(ops.transpose(v, perm=order), shape=x.shape, dims=tuple(sorted(dims)))
    return found


def _where_chosen(ops: Ops, x: Var, ct: Var, index: Var, axis: int) -> Var:
    """``ct`` where the position along ``axis`` is ``index``, which is within bounds, and zeros. All have
    the shape of ``x``."""
    size = scalar(ops, index, x.shape[axis])
    place = ops.where(ops.less(index, zeros(ops, index)), ops.add(index, size), index)
    along = ops.iota(shape=x.shape, axis=axis, dtype=int64, device=x.type.device)
    found: Var = ops.where(ops.equal(along, place), ct, zeros(ops, x))
    return found


def _index_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, dims: Any, position: int
) -> tuple[Var | None, ...]:
    x, *index = inputs
    nothing = (None,) * len(index)
    odd = _odd_one(ops, x, index, dims)
    if odd is not None:
        # no scatter: it would not be part of another loop
        number, known = odd
        others = [d for d in range(x.ndim) if d not in dims]
        ct = _onto(ops, cts[0], x, [*others[:position], *known, *others[position:]])
        return (_where_chosen(ops, x, ct, _onto(ops, index[number], x, known), dims[number]), *nothing)
    grad = ops.index_put(zeros(ops, x), cts[0], *index, dims=dims, position=position, combine="add")
    return (grad, *nothing)


def _index_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: object
) -> Var | None:
    return None if tangents[0] is None else ops.index(tangents[0], *inputs[1:], **params)


def _along_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, axis: int) -> tuple[Var | None, ...]:
    x, index = inputs
    if _is_one(index.shape[axis]):
        dims = tuple(range(x.ndim))
        ct, place = (ops.broadcast_in_dim(v, shape=x.shape, dims=dims) for v in (cts[0], index))
        return _where_chosen(ops, x, ct, place, axis), None
    return put_along(ops, zeros(ops, x), cts[0], index, axis, "add"), None


def _along_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, *, axis: int
) -> Var | None:
    return None if tangents[0] is None else ops.take_along_axis(tangents[0], inputs[1], axis=axis)


def _dot_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, contract: Any, batch: Any
) -> tuple[Var | None, ...]:
    x, y = inputs
    return (
        _dot_side(ops, cts[0], x, conjugate(ops, y), contract, batch, 0),
        _dot_side(ops, cts[0], y, conjugate(ops, x), contract[::-1], batch[::-1], 1),
    )


def _dot_side(ops: Ops, ct: Var, wanted: Var, other: Var, contract: Any, batch: Any, side: int) -> Var:
    """The cotangent of ``wanted``: contract ct with the free dimensions of ``other``."""
    count = len(batch[0])
    mine = free_dims(wanted.ndim, contract[0], batch[0])
    theirs = free_dims(other.ndim, contract[1], batch[1])
    first = count + (len(mine) if side == 0 else 0)
    their_place = tuple(range(first, first + len(theirs)))
    found = ops.dot_general(
        ct, other, contract=(their_place, theirs), batch=(tuple(range(count)), tuple(batch[1]))
    )
    # dimensions of what is found: batch, free of wanted, contracted ones in the order of other's dimensions
    left = sorted(zip(contract[1], contract[0]))
    order = [*batch[0], *mine, *(a for _, a in left)]
    return ops.transpose(found, perm=inverse(order))


# -- scatters ---------------------------------------------------------------------------------
def _put_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, combine: str, **at: Any
) -> tuple[Var | None, ...]:
    base, value, *index = inputs
    (ct,) = cts
    here = ops.index(ct, *index, **at)
    nothing = (None,) * len(index)
    if combine == "add":
        return (ct, here, *nothing)
    if combine == "set":
        kept = ops.index_put(ct, zeros(ops, value), *index, combine="set", **at)
        return (kept, ops.where(_lasts(ops, base, value, index, at), here, zeros(ops, value)), *nothing)
    if combine == "multiply":
        kept = ops.index_put(ct, conjugate(ops, value), *index, combine="multiply", **at)
        others = ops.divide(ops.index(outputs[0], *index, **at), value)
        return (kept, ops.multiply(here, conjugate(ops, others)), *nothing)
    # max and min: shared among those that are as large
    ties = ops.convert(ops.equal(base, outputs[0]), dtype=base.dtype)
    reached = ops.index(outputs[0], *index, **at)
    chosen = ops.convert(ops.equal(value, reached), dtype=value.dtype)
    share = ops.divide(ct, ops.index_put(ties, chosen, *index, combine="add", **at))
    return (ops.multiply(share, ties), ops.multiply(ops.index(share, *index, **at), chosen), *nothing)


def _lasts(ops: Ops, base: Var, value: Var, index: Vars, at: dict[str, Any]) -> Var:
    """Whether an element of ``value`` is the last that is put in its place."""
    numbers = ops.iota(shape=(product(value.shape),), axis=0, dtype=int64, device=value.type.device)
    numbers = ops.reshape(numbers, shape=value.shape)
    none = ops.full(shape=base.shape, value=-1, dtype=int64, device=base.type.device)
    last = ops.index(ops.index_put(none, numbers, *index, combine="set", **at), *index, **at)
    found: Var = ops.equal(last, numbers)
    return found


def _put_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, *, combine: str, **at: Any
) -> Var | None:
    base, value, *index = inputs
    if tangents[0] is None and tangents[1] is None:
        return None
    tb, tv = (zeros(ops, x) if t is None else t for t, x in zip(tangents, (base, value)))
    found: Var
    if combine in ("add", "set"):
        found = ops.index_put(tb, tv, *index, combine=combine, **at)
        return found
    if combine == "multiply":
        found = ops.index_put(tb, value, *index, combine="multiply", **at)
        others = ops.divide(ops.index(outputs[0], *index, **at), value)
        return ops.index_put(found, ops.multiply(tv, others), *index, combine="add", **at)  # type: ignore[no-any-return]
    ties = ops.convert(ops.equal(base, outputs[0]), dtype=base.dtype)
    chosen = ops.convert(ops.equal(value, ops.index(outputs[0], *index, **at)), dtype=value.dtype)
    total = ops.index_put(ops.multiply(tb, ties), ops.multiply(tv, chosen), *index, combine="add", **at)
    found = ops.divide(total, ops.index_put(ties, chosen, *index, combine="add", **at))
    return found


# -- windows on memory ------------------------------------------------------------------------
def _check_order(x: Var) -> None:
    if not x.type.is_contiguous:
        raise TypeError("no derivative of as_strided of an array that is not in C order")


def _strided_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, shape: Any, strides: Any, offset: Any
) -> tuple[Var | None, ...]:
    """Of an operand in C order, whose memory is its elements in order."""
    (x,) = inputs
    _check_order(x)
    place = ops.full(shape=tuple(shape), value=offset, dtype=int64, device=x.type.device)
    for axis, stride in enumerate(strides):
        along = ops.iota(shape=tuple(shape), axis=axis, dtype=int64, device=x.type.device)
        place = ops.add(place, ops.multiply(along, scalar(ops, along, stride)))
    flat = ops.full(shape=(product(x.shape),), value=0, dtype=x.dtype, device=x.type.device)
    flat = ops.index_put(flat, cts[0], place, dims=(0,), position=0, combine="add")
    return (ops.reshape(flat, shape=x.shape),)


def _strided_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: object
) -> Var | None:
    if tangents[0] is None:
        return None
    _check_order(inputs[0])
    found: Var = ops.as_strided(ops.contiguous(tangents[0]), **params)
    return found


def _put_strided_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, **params: object
) -> tuple[Var | None, ...]:
    _check_order(inputs[0])
    ct = ops.contiguous(cts[0])
    base = ops.update_strided(ct, zeros(ops, inputs[1]), **params)
    return base, ops.copy(ops.as_strided(ct, **params))


def _put_strided_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: object
) -> Var | None:
    _check_order(inputs[0])
    if all(t is None for t in tangents):
        return None
    base, value = (zeros(ops, x) if t is None else t for t, x in zip(tangents, inputs))
    found: Var = ops.update_strided(ops.contiguous(base), value, **params)
    return found


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
    "index_put": _put_vjp,
    "as_strided": _strided_vjp,
    "update_strided": _put_strided_vjp,
    "stop_gradient": lambda ops, cts, inputs, outputs: (None,),
    "copy": _triangle_vjp("copy"),
    "contiguous": _triangle_vjp("copy"),
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
    "copy",
    "contiguous",
)

JVPS: dict[str, Callable[..., Any]] = {
    "stop_gradient": lambda ops, tangents, inputs, outputs: None,
    **{name: linear_jvp(name) for name in _LINEAR},
    "reduce_max": _extreme_jvp,
    "reduce_min": _extreme_jvp,
    "index": _index_jvp,
    "take_along_axis": _along_jvp,
    "dot_general": bilinear_jvp("dot_general"),
    "index_put": _put_jvp,
    "as_strided": _strided_jvp,
    "update_strided": _put_strided_jvp,
}
