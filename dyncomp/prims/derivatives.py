"""Derivatives of rows: one table of partial derivatives for pointwise ops, one of linear rules.

A pointwise row needs only its partials, from which both directions follow: ``vjp`` multiplies each by the
cotangent, ``jvp`` sums partial times tangent. A ``None`` partial or cotangent is zero. Derivatives are those
of real floating types; complex and integer operands raise ``TypeError``. At kinks (``abs`` at 0, ties of
``maximum``) the mean of the two sides is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import int64
from ..graph.ir import Var
from .contract import free_dims
from .shape import inverse

Vars = Sequence[Var]
Partials = Callable[[Any, Vars, Var], Sequence[Var | None]]


def scalar(ops: Any, x: Var, value: float) -> Var:
    """``value`` broadcast to the shape of ``x``."""
    number = ops.full(shape=(), value=value, dtype=x.dtype, device=x.type.device)
    return ops.broadcast_in_dim(number, shape=x.shape, dims=())


def zeros(ops: Any, x: Var) -> Var:
    return ops.full(shape=x.shape, value=0, dtype=x.dtype, device=x.type.device)


def _require_real(values: Vars) -> None:
    for v in values:
        if not v.dtype.is_float and not v.dtype.is_bool:
            raise TypeError(f"no derivative for {v.dtype}")


# -- partial derivatives of pointwise rows ----------------------------------------------------
def _of_x(fn: Callable[[Any, Var, Var], Var]) -> Partials:
    def partials(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
        return (fn(ops, inputs[0], out),)

    return partials


def _constant(*values: float) -> Partials:
    def partials(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
        return tuple(scalar(ops, x, v) if v else None for x, v in zip(inputs, values))

    return partials


def _over_root(sign: float, of: Callable[[Any, Var, Var], Var]) -> Partials:
    """sign / sqrt(of(one, x*x))"""

    def fn(ops: Any, x: Var, out: Var) -> Var:
        return ops.divide(scalar(ops, x, sign), ops.sqrt(of(ops, scalar(ops, x, 1.0), ops.square(x))))

    return _of_x(fn)


def _less(ops: Any, a: Var, b: Var) -> Var:
    return ops.subtract(a, b)


def _minus_one(ops: Any, one: Var, square: Var) -> Var:
    return ops.subtract(square, one)


def _more(ops: Any, a: Var, b: Var) -> Var:
    return ops.add(a, b)


def _log(base: float) -> Partials:
    return _of_x(lambda ops, x, out: ops.reciprocal(ops.multiply(x, scalar(ops, x, math.log(base)))))


def _gauss(sign: float) -> Partials:
    """sign * 2/sqrt(pi) * exp(-x*x)"""

    def fn(ops: Any, x: Var, out: Var) -> Var:
        bell = ops.exp(ops.negative(ops.square(x)))
        return ops.multiply(scalar(ops, x, sign * 2.0 / math.sqrt(math.pi)), bell)

    return _of_x(fn)


def _one_minus_square(ops: Any, x: Var, out: Var) -> Var:
    return ops.subtract(scalar(ops, x, 1.0), ops.square(out))


def _one_plus_square(ops: Any, x: Var, out: Var) -> Var:
    return ops.add(scalar(ops, x, 1.0), ops.square(out))


def _multiply(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
    return inputs[1], inputs[0]


def _divide(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
    return ops.reciprocal(inputs[1]), ops.negative(ops.divide(out, inputs[1]))


def _power(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
    x, y = inputs
    first = ops.multiply(y, ops.power(x, ops.subtract(y, scalar(ops, y, 1.0))))
    zero = scalar(ops, x, 0.0)
    # 0**0 has no slope in x, and out is 0 where x is
    first = ops.where(ops.equal(y, zero), zero, first)
    log = ops.log(ops.where(ops.equal(x, zero), scalar(ops, x, 1.0), x))
    return first, ops.multiply(out, log)


def _arctan2(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
    y, x = inputs
    square = ops.add(ops.square(x), ops.square(y))
    return ops.divide(x, square), ops.negative(ops.divide(y, square))


def _hypot(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
    return tuple(ops.divide(v, out) for v in inputs)


def _extreme(larger: str) -> Partials:
    """1 for the operand chosen, a half each for ties."""

    def partials(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
        x, y = inputs
        tie = ops.equal(x, y)
        half, one, zero = (scalar(ops, x, v) for v in (0.5, 1.0, 0.0))
        first = ops.where(tie, half, ops.where(getattr(ops, larger)(x, y), one, zero))
        return first, ops.subtract(one, first)

    return partials


def _where(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
    one = scalar(ops, out, 1.0)
    zero = scalar(ops, out, 0.0)
    return None, ops.where(inputs[0], one, zero), ops.where(inputs[0], zero, one)


def _clip(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
    x, lo, hi = inputs
    one = scalar(ops, x, 1.0)
    zero = scalar(ops, x, 0.0)
    low = ops.less(x, lo)
    above = ops.greater(ops.maximum(x, lo), hi)
    inside = ops.logical_not(ops.logical_or(low, above))
    floor = ops.logical_and(low, ops.logical_not(above))
    return ops.where(inside, one, zero), ops.where(floor, one, zero), ops.where(above, one, zero)


def _logaddexp(exp: str) -> Partials:
    def partials(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
        return tuple(getattr(ops, exp)(ops.subtract(v, out)) for v in inputs)

    return partials


def _copysign(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
    x, y = inputs
    return ops.multiply(ops.sign(x), ops.copysign(scalar(ops, x, 1.0), y)), None


def _remainder(rounding: str) -> Partials:
    def partials(ops: Any, inputs: Vars, out: Var) -> Sequence[Var | None]:
        quotient = getattr(ops, rounding)(ops.divide(*inputs))
        return scalar(ops, out, 1.0), ops.negative(quotient)

    return partials


_ZERO = _constant(0.0, 0.0)

PARTIALS: dict[str, Partials] = {
    "negative": _constant(-1.0),
    "abs": _of_x(lambda ops, x, out: ops.sign(x)),
    "sign": _ZERO,
    "floor": _ZERO,
    "ceil": _ZERO,
    "trunc": _ZERO,
    "rint": _ZERO,
    "sqrt": _of_x(lambda ops, x, out: ops.divide(scalar(ops, x, 0.5), out)),
    "cbrt": _of_x(lambda ops, x, out: ops.divide(scalar(ops, x, 1 / 3), ops.square(out))),
    "exp": _of_x(lambda ops, x, out: out),
    "exp2": _of_x(lambda ops, x, out: ops.multiply(out, scalar(ops, x, math.log(2)))),
    "expm1": _of_x(lambda ops, x, out: ops.add(out, scalar(ops, x, 1.0))),
    "log": _of_x(lambda ops, x, out: ops.reciprocal(x)),
    "log2": _log(2.0),
    "log10": _log(10.0),
    "log1p": _of_x(lambda ops, x, out: ops.reciprocal(ops.add(x, scalar(ops, x, 1.0)))),
    "sin": _of_x(lambda ops, x, out: ops.cos(x)),
    "cos": _of_x(lambda ops, x, out: ops.negative(ops.sin(x))),
    "tan": _of_x(_one_plus_square),
    "arcsin": _over_root(1.0, _less),
    "arccos": _over_root(-1.0, _less),
    "arctan": _of_x(lambda ops, x, out: ops.reciprocal(ops.add(scalar(ops, x, 1.0), ops.square(x)))),
    "sinh": _of_x(lambda ops, x, out: ops.cosh(x)),
    "cosh": _of_x(lambda ops, x, out: ops.sinh(x)),
    "tanh": _of_x(_one_minus_square),
    "arcsinh": _over_root(1.0, _more),
    "arccosh": _over_root(1.0, _minus_one),
    "arctanh": _of_x(lambda ops, x, out: ops.reciprocal(ops.subtract(scalar(ops, x, 1.0), ops.square(x)))),
    "erf": _gauss(1.0),
    "erfc": _gauss(-1.0),
    "sigmoid": _of_x(lambda ops, x, out: ops.multiply(out, ops.subtract(scalar(ops, x, 1.0), out))),
    "reciprocal": _of_x(lambda ops, x, out: ops.negative(ops.square(out))),
    "square": _of_x(lambda ops, x, out: ops.multiply(scalar(ops, x, 2.0), x)),
    "conj": _constant(1.0),
    "real": _constant(1.0),
    "copy": _constant(1.0),
    "contiguous": _constant(1.0),
    "add": _constant(1.0, 1.0),
    "subtract": _constant(1.0, -1.0),
    "multiply": _multiply,
    "divide": _divide,
    "floor_divide": _ZERO,
    "remainder": _remainder("floor"),
    "fmod": _remainder("trunc"),
    "power": _power,
    "maximum": _extreme("greater"),
    "minimum": _extreme("less"),
    "fmax": _extreme("greater"),
    "fmin": _extreme("less"),
    "arctan2": _arctan2,
    "hypot": _hypot,
    "copysign": _copysign,
    "logaddexp": _logaddexp("exp"),
    "logaddexp2": _logaddexp("exp2"),
    "where": _where,
    "clip": _clip,
}


def pointwise_vjp(partials: Partials) -> Callable[..., tuple[Var | None, ...]]:
    def vjp(ops: Any, cotangents: Vars, inputs: Vars, outputs: Vars, **params: Any) -> tuple[Var | None, ...]:
        _require_real(inputs)
        (ct,) = cotangents
        slopes = partials(ops, inputs, outputs[0])
        return tuple(None if d is None else ops.multiply(ct, d) for d in slopes)

    return vjp


def pointwise_jvp(partials: Partials) -> Callable[..., Var | None]:
    def jvp(
        ops: Any, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: Any
    ) -> Var | None:
        _require_real(inputs)
        total: Var | None = None
        for t, d in zip(tangents, partials(ops, inputs, outputs[0])):
            if t is None or d is None:
                continue
            term = ops.multiply(t, d)
            total = term if total is None else ops.add(total, term)
        return total

    return jvp


# -- rules of linear and reducing rows --------------------------------------------------------
def _linear_jvp(name: str) -> Callable[..., Var | None]:
    """The tangent goes through the op itself (rows linear in all their array operands together)."""

    def jvp(
        ops: Any, tangents: Sequence[Var | None], inputs: Vars, outputs: Vars, **params: Any
    ) -> Var | None:
        _require_real(inputs)
        if all(t is None for t in tangents):
            return None
        filled = [zeros(ops, x) if t is None else t for t, x in zip(tangents, inputs)]
        return getattr(ops, name)(*filled, **params)

    return jvp


def _in_order_of(ops: Any, ct: Var, shape: Sequence[Any]) -> Var:
    return ops.reshape(ops.contiguous(ct), shape=tuple(shape))


def _slice_vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, **params: Any) -> tuple[Var | None, ...]:
    return (ops.update_slice(zeros(ops, inputs[0]), cts[0], **params),)


def _transpose_vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, *, perm: Any) -> tuple[Var | None, ...]:
    return (ops.transpose(cts[0], perm=inverse(perm)),)


def _reshape_vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, *, shape: Any) -> tuple[Var | None, ...]:
    return (_in_order_of(ops, cts[0], inputs[0].shape),)


def _broadcast_vjp(
    ops: Any, cts: Vars, inputs: Vars, outputs: Vars, *, shape: Any, dims: Any
) -> tuple[Var | None, ...]:
    x = inputs[0]
    view = outputs[0].type
    kept = [axis for axis, dim in zip(dims, x.shape) if not (_is_one(dim) and not _is_one(view.shape[axis]))]
    axes = tuple(a for a in range(view.ndim) if a not in kept)
    return (_in_order_of(ops, ops.reduce_sum(cts[0], axes=axes), x.shape),)


def _is_one(dim: Any) -> bool:
    return isinstance(dim, int) and dim == 1


def _diagonal_vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, **params: Any) -> tuple[Var | None, ...]:
    return (ops.update_diagonal(zeros(ops, inputs[0]), cts[0], **params),)


def _update_vjp(update: str, view: str) -> Callable[..., tuple[Var | None, ...]]:
    def vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, **params: Any) -> tuple[Var | None, ...]:
        base = getattr(ops, update)(cts[0], zeros(ops, inputs[1]), **params)
        return base, ops.copy(getattr(ops, view)(cts[0], **params))

    return vjp


def _triangle_vjp(name: str) -> Callable[..., tuple[Var | None, ...]]:
    def vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, **params: Any) -> tuple[Var | None, ...]:
        return (getattr(ops, name)(cts[0], **params),)

    return vjp


def _spread(ops: Any, value: Var, x: Var, axes: Sequence[int]) -> Var:
    return ops.broadcast_in_dim(value, shape=x.shape, dims=tuple(a for a in range(x.ndim) if a not in axes))


def _sum_vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, *, axes: Any) -> tuple[Var | None, ...]:
    return (ops.contiguous(_spread(ops, cts[0], inputs[0], axes)),)


def _shares(ops: Any, x: Var, out: Var, axes: Sequence[int]) -> Var:
    """1/k at each of the k extreme elements of an extent, 0 elsewhere."""
    chosen = ops.convert(ops.equal(x, _spread(ops, out, x, axes)), dtype=x.dtype)
    return ops.divide(chosen, _spread(ops, ops.reduce_sum(chosen, axes=axes), x, axes))


def _extreme_vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, *, axes: Any) -> tuple[Var | None, ...]:
    shares = _shares(ops, inputs[0], outputs[0], axes)
    return (ops.multiply(_spread(ops, cts[0], inputs[0], axes), shares),)


def _extreme_jvp(ops: Any, tangents: Any, inputs: Vars, outputs: Vars, *, axes: Any) -> Var | None:
    (t,) = tangents
    if t is None:
        return None
    return ops.reduce_sum(ops.multiply(t, _shares(ops, inputs[0], outputs[0], axes)), axes=axes)


def _flipped(ops: Any, x: Var, axis: int) -> Var:
    n = x.shape[axis]
    starts = tuple(n - 1 if a == axis else 0 for a in range(x.ndim))
    steps = tuple(-1 if a == axis else 1 for a in range(x.ndim))
    return ops.strided_slice(x, starts=starts, sizes=x.shape, steps=steps)


def _cumsum_vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, *, axis: int) -> tuple[Var | None, ...]:
    back = ops.cumsum(_flipped(ops, cts[0], axis), axis=axis)
    return (ops.copy(_flipped(ops, back, axis)),)


def _index_vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, **params: Any) -> tuple[Var | None, ...]:
    x, *index = inputs
    grad = ops.index_put(zeros(ops, x), cts[0], *index, combine="add", **params)
    return (grad, *(None for _ in index))


def _index_jvp(ops: Any, tangents: Any, inputs: Vars, outputs: Vars, **params: Any) -> Var | None:
    return None if tangents[0] is None else ops.index(tangents[0], *inputs[1:], **params)


def _along_vjp(ops: Any, cts: Vars, inputs: Vars, outputs: Vars, *, axis: int) -> tuple[Var | None, ...]:
    x, index = inputs
    dims = tuple(range(x.ndim))
    places = [index if a == axis else ops.iota(shape=index.shape, axis=a, dtype=int64) for a in dims]
    grad = ops.index_put(zeros(ops, x), cts[0], *places, dims=dims, position=0, combine="add")
    return grad, None


def _along_jvp(ops: Any, tangents: Any, inputs: Vars, outputs: Vars, *, axis: int) -> Var | None:
    return None if tangents[0] is None else ops.take_along_axis(tangents[0], inputs[1], axis=axis)


def _dot_vjp(
    ops: Any, cts: Vars, inputs: Vars, outputs: Vars, *, contract: Any, batch: Any
) -> tuple[Var | None, ...]:
    _require_real(inputs)
    x, y = inputs
    return (
        _dot_side(ops, cts[0], x, y, contract, batch, 0),
        _dot_side(ops, cts[0], y, x, contract[::-1], batch[::-1], 1),
    )


def _dot_side(ops: Any, ct: Var, wanted: Var, other: Var, contract: Any, batch: Any, side: int) -> Var:
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


def _dot_jvp(ops: Any, tangents: Any, inputs: Vars, outputs: Vars, **params: Any) -> Var | None:
    _require_real(inputs)
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


def rules(name: str) -> dict[str, Callable[..., Any]]:
    """The ``vjp`` and ``jvp`` of a row, as fields to be replaced (empty where there are none)."""
    if name in PARTIALS:
        return {"vjp": pointwise_vjp(PARTIALS[name]), "jvp": pointwise_jvp(PARTIALS[name])}
    return {field: found[name] for field, found in (("vjp", VJPS), ("jvp", JVPS)) if name in found}
