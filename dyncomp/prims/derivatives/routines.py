"""Routines of libraries: those of torch differentiate themselves, of those of scipy we know the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.ir import Callee, Ops, Var
from ..pointwise.partials import zeros
from . import scipy_linalg


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
    """By the library's own reverse mode: ``callee.function.gradient(which)`` is a routine of the arguments
    and of cotangents of the results of inexact dtypes. ``TypeError`` where there is none."""
    if isinstance(callee.function, scipy_linalg.Routine):
        return scipy_linalg.vjp(ops, callee.function, cts, inputs, outputs, numbers)
    make = getattr(callee.function, "gradient", None)
    if make is None:
        raise TypeError("what it calls is not known to dyncomp")
    by = [k for k, x in enumerate(inputs) if x.dtype.is_inexact]
    given = [
        zeros(ops, out) if ct is None else ops.contiguous(ct)
        for out, ct in zip(outputs, cts)
        if out.dtype.is_inexact
    ]
    made = ops.routine_call(
        *inputs,
        *given,
        callee=Callee(make(by), f"gradient of {callee.name}", (), ()),
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
    if not isinstance(callee.function, scipy_linalg.Routine):
        raise TypeError("it has no derivative in forward mode")
    return scipy_linalg.jvp(ops, callee.function, tangents, inputs, outputs, numbers)
