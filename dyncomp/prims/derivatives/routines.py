"""Derivatives of NumPy's own routines that graphs call (``library_call``), by their names there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...graph.ir import Ops, Var
from ..pointwise import partials
from ..pointwise.partials import total

Rule = Callable[..., Any]
Vars = Sequence[Var]

# Ufuncs f with f(x, y, ...) = g(h(x) + h(y) + ...), h the inverse of g: the slope by an operand is that of
# the ufunc of two, a function of the operand and of the result.
_OF_SUMS: Mapping[str, partials.Partials] = {
    "logaddexp": partials.logaddexp("exp"),
    "logaddexp2": partials.logaddexp("exp2"),
    "hypot": partials.hypot,
}


def _reduced_slope(ops: Ops, x: Var, out: Var, options: tuple[tuple[str, Any], ...]) -> tuple[Var, Rule]:
    """The slope of ``ufunc.reduce`` by each element, and what spreads values of the result over these."""
    given = dict(options)
    slopes = _OF_SUMS.get(given["ufunc"])
    if slopes is None:
        raise TypeError(f"numpy.{given['ufunc']}.reduce has no rule")
    axis = given["axis"]
    axes = {a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))}
    dims = tuple(range(x.ndim)) if given["keepdims"] else tuple(a for a in range(x.ndim) if a not in axes)

    def spread(value: Var) -> Var:
        found: Var = ops.broadcast_in_dim(value, shape=x.shape, dims=dims)
        return found

    slope = slopes(ops, (x,), spread(out))[0]
    assert slope is not None
    return slope, spread


def reduced_vjp(
    ops: Ops,
    cts: Vars,
    inputs: Vars,
    outputs: Vars,
    *,
    options: tuple[tuple[str, Any], ...],
    **params: object,
) -> tuple[Var | None, ...]:
    slope, spread = _reduced_slope(ops, inputs[0], outputs[0], options)
    return (ops.multiply(spread(cts[0]), slope),)


def reduced_jvp(
    ops: Ops,
    tangents: Sequence[Var | None],
    inputs: Vars,
    outputs: Vars,
    *,
    options: tuple[tuple[str, Any], ...],
    **params: object,
) -> Var | None:
    if tangents[0] is None:
        return None
    slope, _ = _reduced_slope(ops, inputs[0], outputs[0], options)
    given = dict(options)
    axis = given["axis"]
    axes = tuple(sorted(a % inputs[0].ndim for a in (axis if isinstance(axis, tuple) else (axis,))))
    found: Var = ops.reduce_sum(ops.multiply(tangents[0], slope), axes=axes)
    return total(ops, (found,))


RULES: Mapping[str, tuple[Rule, Rule]] = {"library.reduced": (reduced_vjp, reduced_jvp)}
