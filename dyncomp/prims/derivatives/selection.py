"""Calls of NumPy's routines; ``x[mask]``, whose size depends on the data, is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...dtypes import int64
from ...graph.ir import Ops, Var
from ...symbolic.integers import product
from ..pointwise.partials import zeros
from . import least_squares, reduced, scans

Rule = Callable[..., Any]
_SELECT = "select"


def _counts_vjp(
    ops: Ops, cts: Sequence[Var | None], inputs: Sequence[Var], outputs: Sequence[Var], **_: object
) -> tuple[Var | None, ...]:
    """``np.bincount`` with weights: each weight is in the sum of its bin."""
    (ct,) = cts
    if len(inputs) == 1:
        return (None,)
    return None, ops.index(ct, ops.convert(inputs[0], dtype=int64), dims=(0,), position=0)


def _counts_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Sequence[Var], outputs: Sequence[Var], **params: Any
) -> Var | None:
    if len(inputs) == 1 or tangents[1] is None:
        return None
    found: Var = ops.library_call(inputs[0], tangents[1], **params)
    return found


# functions that pick elements of one of their arguments, by its number
_PICKED: Mapping[str, int] = {"compress": 1, "delete": 0, "extract": 1, "repeat": 0}


def _picked_vjp(
    ops: Ops,
    cts: Sequence[Var | None],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    *,
    function: str,
    options: Any,
    **params: Any,
) -> tuple[Var | None, ...]:
    """Where each element of the result comes from is what the function picks of an array of places."""
    number = _PICKED[function]
    x = inputs[number]
    axis = dict(options).get("axis")
    base = zeros(ops, x)
    if axis is None:
        axis, base = 0, ops.reshape(base, shape=(product(x.shape),))
    places = ops.iota(shape=(base.shape[axis],), axis=0, dtype=int64, device=x.type.device)
    origins = ops.library_call(
        *(places if k == number else v for k, v in enumerate(inputs)),
        function=function,
        options=tuple((k, 0 if k == "axis" else v) for k, v in options),
        dtypes=(int64,),
        shapes=((outputs[0].shape[axis],),),
    )
    made = ops.index_put(base, cts[0], origins, dims=(axis,), position=axis, combine="add")
    return tuple(ops.reshape(made, shape=x.shape) if k == number else None for k in range(len(inputs)))


def _picked_jvp(
    ops: Ops,
    tangents: Sequence[Var | None],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    *,
    function: str,
    **params: Any,
) -> Var | None:
    tangent = tangents[_PICKED[function]]
    if tangent is None:
        return None
    given = [tangent if k == _PICKED[function] else x for k, x in enumerate(inputs)]
    found: Var = ops.library_call(*given, function=function, **params)
    return found


def _running(name: str) -> Rule:
    """Of ``ufunc.accumulate``, of products (of complex numbers)."""
    rule: Rule = getattr(scans, f"cumprod_{name}")

    def derivative(ops: Ops, given: Any, inputs: Any, outputs: Any, *, options: Any, **_: object) -> Any:
        named = dict(options)
        if named["ufunc"] != "multiply":
            raise TypeError(f"numpy.{named['ufunc']}.accumulate has no derivative")
        return rule(ops, given, inputs, outputs, axis=named["axis"])

    return derivative


_KNOWN: Mapping[str, tuple[Rule, Rule]] = {
    **dict.fromkeys(_PICKED, (_picked_vjp, _picked_jvp)),
    "accumulated": (_running("vjp"), _running("jvp")),
    "bincount": (_counts_vjp, _counts_jvp),
    "least_squares": (least_squares.vjp, least_squares.jvp),
    "lstsq": (least_squares.vjp, least_squares.jvp),
    "reduced": (reduced.vjp, reduced.jvp),
}


def _check(function: str) -> None:
    if function != _SELECT:
        raise TypeError(f"numpy.{function} has no derivative")


def call_vjp(
    ops: Ops,
    cts: Sequence[Var | None],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    *,
    function: str,
    **_: Any,
) -> tuple[Var | None, ...]:
    """Each element takes the cotangent of its place among the chosen ones; the others take a zero that is
    put behind these."""
    if function in _KNOWN:
        known: tuple[Var | None, ...] = _KNOWN[function][0](ops, cts, inputs, outputs, function=function, **_)
        return known
    _check(function)
    x, mask = inputs
    (ct,) = cts
    assert ct is not None
    flat = ops.reshape(ops.contiguous(mask), shape=(product(mask.shape),))
    ranks = ops.cumsum(ops.convert(flat, dtype=int64), axis=0)
    rest = x.shape[mask.ndim :]
    none = ops.full(shape=(1, *rest), value=0, dtype=ct.dtype, device=ct.type.device)
    places = ops.where(flat, ranks, zeros(ops, ranks))
    found = ops.index(ops.concatenate(none, ct, axis=0), places, dims=(0,), position=0)
    return ops.reshape(ops.contiguous(found), shape=x.shape), None


def call_jvp(
    ops: Ops,
    tangents: Sequence[Var | None],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    *,
    function: str,
    **params: Any,
) -> Any:
    if function in _KNOWN:
        return _KNOWN[function][1](ops, tangents, inputs, outputs, function=function, **params)
    _check(function)
    if tangents[0] is None:
        return None
    found: Var = ops.library_call(tangents[0], inputs[1], function=function, **params)
    return found
