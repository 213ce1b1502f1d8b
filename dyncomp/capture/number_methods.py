"""Methods of Python numbers that are known only at run time: ``n.bit_length()``, ``x.is_integer()``."""

from __future__ import annotations

from collections.abc import Callable

from .library.folding import python_call
from .values.base import Tracer, Value
from .values.number import NumberValue, SymIntValue

Method = Callable[..., Value]
# pure methods without arguments that give a number
_NAMES = (
    "bit_length",
    "bit_count",
    "conjugate",
    "is_integer",
    "__index__",
    "__int__",
    "__float__",
    "__abs__",
)


def method_table(owner: Value) -> dict[str, Method]:
    """The methods of a number, by name."""
    if not isinstance(owner, (SymIntValue, NumberValue)):
        return {}
    return {name: _method(getattr(owner.pytype, name)) for name in _NAMES if hasattr(owner.pytype, name)}


def _method(function: Callable[..., object]) -> Method:
    def call(tracer: Tracer, owner: Value) -> Value:
        return python_call(tracer, function, [owner])

    return call
