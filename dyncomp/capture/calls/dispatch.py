"""Functions of NumPy called with arrays of a library that overrides them (``__array_function__``,
``__array_ufunc__``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...frontends.base import Frontend, Rule
from ..breaks import Break
from ..values.array import ArrayValue
from ..values.base import Tracer, Value
from ..values.seq import ListValue, TupleValue


def overriding(
    tracer: Tracer, frontend: Frontend, rule: Rule, fn: object, given: Sequence[Value]
) -> tuple[Frontend, Rule]:
    """The rule of what ``fn`` calls for these arguments, which is ``rule`` where no library overrides it."""
    for other in tracer.config.frontends:
        find: Any = getattr(other, "find_counterpart", None)
        if find is None or frontend.name != "numpy":
            continue
        if not any(array.ref.frontend == other.name for array in _arrays(given)):
            continue
        found = find(fn)
        if found is None:
            name = getattr(fn, "__name__", repr(fn))
            raise Break("unsupported-call", f"numpy.{name} of arrays of {other.name}")
        return other, found
    return frontend, rule


def is_of_two_libraries(tracer: Tracer, frontend: Frontend, given: Sequence[Value], result: Value) -> bool:
    """Whether NumPy's function gave arrays for those of a library that does not override it: what it makes of
    them (an array of NumPy, or of the library by ``__array_wrap__``) is up to the two."""
    if frontend.name != "numpy" or not any(_arrays([result])):
        return False
    known = [tracer.realize(value) for value in given]  # the function's rule looked at them
    return any(array.ref.kind == "array" and array.ref.frontend != "numpy" for array in _arrays(known))


def _arrays(values: Sequence[Value]) -> Iterator[ArrayValue]:
    """The arrays among the values, and in sequences that are."""
    for value in values:
        if isinstance(value, ArrayValue):
            yield value
        elif isinstance(value, (ListValue, TupleValue)):
            yield from _arrays(value.children())


def overrides_numpy(value: Value) -> bool:
    """Whether it is an array whose class has its own meaning for NumPy's functions."""
    if not isinstance(value, ArrayValue) or value.pytype is np.ndarray:
        return False
    return value.ref.kind == "array" and hasattr(value.pytype, "__array_function__")
