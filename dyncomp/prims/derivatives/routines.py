"""Routines of libraries: those of torch differentiate themselves, of those of scipy we know the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.ir import Callee, Ops, Var
from ..pointwise.partials import zeros
from . import scipy_linalg, scipy_others

_KNOWN = {**scipy_linalg.RULES, **scipy_others.RULES}


def routine_vjp(
    ops: Ops,
    cts: Sequence[Var | None],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    *,
    callee: Callee,
    numbers: Any,
    dtypes: object,
    shapes: object,
) -> tuple[Var | None, ...]:
    """By the library's own reverse mode: ``callee.function.gradient(tensors, count)`` is a routine of the
    ``count`` arguments and of cotangents of the results of inexact dtypes; it gives the gradients by those of
    the arguments ``tensors`` that its ``by`` names. ``TypeError`` where there is none."""
    if callee.path in _KNOWN:
        known: tuple[Var | None, ...] = _KNOWN[callee.path][0](ops, cts, inputs, outputs, callee=callee)
        return known
    make = getattr(callee.function, "gradient", None)
    if make is None:
        raise TypeError("what it calls is not known to dyncomp")
    gradient = make([k for k, x in enumerate(inputs) if x.dtype.is_inexact], len(inputs))
    by = gradient.by
    if not by:
        return (None,) * len(inputs)
    given = [
        zeros(ops, out) if ct is None else ops.contiguous(ct)
        for out, ct in zip(outputs, cts)
        if out.dtype.is_inexact
    ]
    made = ops.routine_call(
        *inputs,
        *given,
        callee=Callee(gradient, f"gradient of {callee.name}", (), ()),
        numbers=numbers,
        dtypes=tuple(inputs[k].dtype for k in by),
        shapes=tuple(inputs[k].shape for k in by),
    )
    found = dict(zip(by, made if isinstance(made, tuple) else (made,)))
    return tuple(found.get(k) for k in range(len(inputs)))


def routine_jvp(
    ops: Ops,
    tangents: Sequence[Var | None],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    *,
    callee: Callee,
    numbers: Any,
    dtypes: object,
    shapes: object,
) -> Any:
    known = _KNOWN.get(callee.path, (None, None))[1]
    if known is None:
        raise TypeError("it has no derivative in forward mode")
    return known(ops, tangents, inputs, outputs, callee=callee)
