"""Functions of NumPy called with arrays of a library that overrides them (``__array_function__``,
``__array_ufunc__``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...frontends.base import Frontend, Rule
from ..breaks import Break
from ..values.array import ArrayValue
from ..values.base import Tracer, Value
from ..values.seq import ListValue, TupleValue


def overriding(
    tracer: Tracer, frontend: Frontend, rule: Rule, fn: Any, given: Sequence[Value]
) -> tuple[Frontend, Rule]:
    """The rule of what ``fn`` calls for these arguments, which is ``rule`` where no library overrides it."""
    for other in tracer.config.frontends:
        find: Any = getattr(other, "find_counterpart", None)
        if find is None or frontend.name != "numpy" or not _mentions(given, other.name):
            continue
        found = find(fn)
        if found is None:
            name = getattr(fn, "__name__", repr(fn))
            raise Break("unsupported-call", f"numpy.{name} of arrays of {other.name}")
        return other, found
    return frontend, rule


def overrides_numpy(value: Value) -> bool:
    """Whether it is an array whose class has its own meaning for NumPy's functions."""
    if not isinstance(value, ArrayValue) or value.pytype is np.ndarray:
        return False
    return value.ref.kind == "array" and hasattr(value.pytype, "__array_function__")


def _mentions(values: Sequence[Value], library: str) -> bool:
    """Whether arrays of a library are among the arguments, or in sequences that are."""
    for value in values:
        if isinstance(value, ArrayValue) and value.ref.frontend == library:
            return True
        if isinstance(value, (ListValue, TupleValue)) and _mentions(value.children(), library):
            return True
    return False
