"""``x[mask]``, whose size depends on the data: a library's call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtypes import int64
from ...graph.ir import Ops, Var
from ...symbolic.integers import product
from ..pointwise.partials import zeros

_SELECT = "select"


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
) -> Var | None:
    _check(function)
    if tangents[0] is None:
        return None
    found: Var = ops.library_call(tangents[0], inputs[1], function=function, **params)
    return found
