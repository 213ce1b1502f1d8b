"""Rules of SciPy's functions on whole arrays: nodes that call these. They check their arguments and raise as
always: then the graph does, and the original runs.

SciPy may be imported later than rules are collected, or never: functions are found by name.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType, NoneType
from typing import Any

import numpy as np

from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.scipy_routines import Routine, routine_callee
from ...signals import is_from_handler
from ...symbolic.integers import Dim
from ..base import ArrayRef, Rule, TraceContext
from . import promote
from .operands import emit

RULES: dict[tuple[str, str], Rule] = {}
_KINDS = (FunctionType, type(functools.cache(id)))
_MODULES = ("scipy.linalg", "scipy.fft", "scipy.spatial.distance")


def rule(module: str) -> Callable[[Rule], Rule]:
    """Register the rule of the module's function of the same name."""

    def register(found: Rule) -> Rule:
        RULES[module, found.__name__] = found
        return found

    return register


def find(function: object) -> Rule | None:
    """The rule of one of SciPy's functions."""
    if type(function) not in _KINDS and not is_transform(function):
        return None
    name, defined = function.__name__, str(function.__module__)  # type: ignore[attr-defined]
    for module in _MODULES if defined.startswith("scipy.") else ():
        if defined.startswith(module):
            found = RULES.get((module, name))
            here = getattr(sys.modules.get(module), name, None) is function
            return found if here else None
    return None


def is_transform(obj: object) -> bool:
    """Whether an object is of the type of ``scipy.fft``'s functions, which choose among backends."""
    library: Any = sys.modules.get("scipy.fft")
    kind = type(getattr(library, "fft", None))
    return kind is not NoneType and kind is not FunctionType and type(obj) is kind


def call(
    tx: TraceContext,
    module: str,
    name: str,
    inputs: list[ArrayRef],
    shapes: list[tuple[Dim, ...]],
    small: list[np.ndarray[Any, Any]],
    options: dict[str, Any],
) -> list[Var]:
    """The results of a routine, of which it makes the types and lays out the axes as it does for small
    arrays."""
    try:
        made = Routine(module, name, tuple(options.items())).results(tuple(small))
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Unsupported(f"{module}.{name}: {error}") from None
    orders = tuple(tuple(sorted(range(a.ndim), key=lambda axis: -abs(a.strides[axis]))) for a in made)
    ordered = [tuple(shape[axis] for axis in order) for shape, order in zip(shapes, orders, strict=True)]
    found = emit(
        tx,
        "routine_call",
        *(ref.var for ref in inputs),
        callee=routine_callee(module, name, options, orders),
        numbers=(),
        dtypes=tuple(promote.from_np(a.dtype) for a in made),
        shapes=tuple(ordered),
    )
    results = found if isinstance(found, tuple) else (found,)
    return [_turned_back(tx, var, order) for var, order in zip(results, orders)]


def _turned_back(tx: TraceContext, var: Var, order: tuple[int, ...]) -> Var:
    if order == tuple(range(len(order))):
        return var
    back: Var = emit(tx, "transpose", var, perm=tuple(sorted(range(len(order)), key=order.__getitem__)))
    return back
