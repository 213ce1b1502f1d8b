"""What may raise on Python floats that the graph computes: functions of ``math``, division and powers.

Each is a node that calls the function itself. Where that raises, the graph does, and the original runs; the
results are outputs of the graph, so that no pass leaves such a node out.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dtypes import bool_, float64
from ...frontends.base import ArrayRef
from ...graph.ir import Callee, array_type
from ..values.array import ArrayValue
from ..values.base import Tracer, Value

# fmt: off
_NAMES = (
    "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "hypot", "pow", "copysign", "fabs",
    "fmod", "remainder", "degrees", "radians", "erf", "erfc", "gamma", "lgamma", "cbrt", "nextafter", "ulp",
)
# fmt: on
_FLOATS = frozenset(getattr(math, name) for name in _NAMES if hasattr(math, name))
_QUESTIONS = frozenset((math.isnan, math.isinf, math.isfinite))
_OPERATORS = {
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
}
_EXACT = 2**53


class _OnFloats:
    """A function of Python floats as one of arrays without dimensions."""

    def __init__(self, function: Callable[..., Any], kind: type) -> None:
        self.function = function
        self.kind = kind
        self.made: Any = np.bool_ if kind is bool else np.float64

    def __call__(self, *arrays: Any) -> Any:
        result = self.function(*(array.item() for array in arrays))
        if type(result) is not self.kind:
            raise TypeError(f"{self.function.__name__} returned a {type(result).__name__}")
        return self.made(result)


@functools.lru_cache(maxsize=256)
def _callee(function: Callable[..., Any], kind: type) -> Callee:
    dtype, made = (bool_, np.bool_) if kind is bool else (float64, np.float64)
    path = f"{function.__module__.lstrip('_')}.{function.__name__}"
    return Callee(_OnFloats(function, kind), function.__name__, (array_type(dtype, ()),), (made,), path=path)


def math_call(tracer: Tracer, function: object, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function of ``math`` on numbers of which the graph computes some; else ``None``."""
    if type(function) is not type(math.sqrt) or kwargs or not 1 <= len(args) <= 2:
        return None
    kind = float if function in _FLOATS else bool if function in _QUESTIONS else None
    if kind is None:
        return None
    return _float_call(tracer, function, [tracer.realize(a) for a in args], kind)


def float_operator(tracer: Tracer, name: str, values: list[Value]) -> Value | None:
    """An operator that may raise on Python floats; ``None`` for other operators and operands."""
    function = _OPERATORS.get(name)
    if function is None or not all(v.pytype is float or is_exact(v) for v in values):
        return None
    return _float_call(tracer, function, values, float)


def is_exact(value: Value) -> bool:
    """Whether an operand of Python's float arithmetic is a constant int that is a float just as well."""
    return value.is_const and type(value.const) is int and abs(value.const) <= _EXACT


def _float_call(tracer: Tracer, function: object, values: list[Value], kind: type) -> Value | None:
    if not any(isinstance(v, ArrayValue) for v in values) or not all(_is_float(v) for v in values):
        return None
    frontend = tracer.config.frontends[0]
    operands = [tracer.float_variable(v) for v in values]
    tracer.builder.loc = tracer.loc
    var = tracer.builder.emit("python_call", *operands, callee=_callee(function, kind))
    result = tracer.array_value(ArrayRef(var, "python", frontend.name))
    tracer.note_may_raise(result)
    return result


def _is_float(value: Value) -> bool:
    if isinstance(value, ArrayValue):
        return value.ref.kind in ("scalar", "python") and value.ref.dtype == float64
    return value.pytype is float or is_exact(value)
