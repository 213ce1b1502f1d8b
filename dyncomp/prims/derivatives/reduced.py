"""``ufunc.reduce`` as a library's call: of ufuncs without a reduction of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...graph.ir import Ops, Var
from ..pointwise import partials

Options = tuple[tuple[str, Any], ...]

# Ufuncs f with f(x, y, ...) = g(h(x) + h(y) + ...), h the inverse of g: the slope by an operand is that of
# the ufunc of two, a function of the operand and of the result.
_OF_SUMS: Mapping[str, partials.Partials] = {
    "logaddexp": partials.logaddexp("exp"),
    "logaddexp2": partials.logaddexp("exp2"),
    "hypot": partials.hypot,
}


def _axes(x: Var, options: Options) -> tuple[int, ...]:
    axis = dict(options)["axis"]
    return tuple(sorted(a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))))


def _spread(ops: Ops, value: Var, x: Var, options: Options) -> Var:
    """A value for each result as one for each element."""
    dims = tuple(a for a in range(x.ndim) if a not in _axes(x, options))
    found: Var = ops.broadcast_in_dim(value, shape=x.shape, dims=dims)
    return found


def _slope(ops: Ops, x: Var, out: Var, options: Options) -> Var:
    """Of the result by each element."""
    name = dict(options)["ufunc"]
    if name not in _OF_SUMS:
        raise TypeError(f"numpy.{name}.reduce has no derivative")
    (found,) = _OF_SUMS[name](ops, (x,), _spread(ops, out, x, options))
    assert isinstance(found, Var)
    return found


def vjp(
    ops: Ops,
    cts: Sequence[Var | None],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    *,
    options: Options,
    **_: object,
) -> tuple[Var | None, ...]:
    (x,), (out,), (ct,) = inputs, outputs, cts
    assert ct is not None
    return (ops.multiply(_spread(ops, ct, x, options), _slope(ops, x, out, options)),)


def jvp(
    ops: Ops,
    tangents: Sequence[Var | None],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    *,
    options: Options,
    **_: object,
) -> Var | None:
    (x,), (out,), (tangent,) = inputs, outputs, tangents
    if tangent is None:
        return None
    slope = _slope(ops, x, out, options)
    found: Var = ops.reduce_sum(ops.multiply(tangent, slope), axes=_axes(x, options))
    return found
