"""Constants and Python numbers.

A number that is not constant is either a symbolic integer (sizes, loop counters) or a
:class:`NumberValue`: an expression over the frame's inputs that compiled code evaluates *in Python*, so
that its semantics (big integers, ``ZeroDivisionError``) are Python's own.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dtypes import from_numpy
from ...frontends.base import ArrayRef
from ...graph.ir import array_type
from ...signals import is_from_handler
from ...symbolic.integers import SymInt
from ..breaks import Break
from ..guards.guard import CustomCheck, Kind, short
from ..guards.source import ConstSource, LocalSource, Source
from .base import Codegen, Tracer, Value

_GUARDED_BY_VALUE = (int, float, complex, str, bytes)


def is_unique(obj: object) -> bool:
    """Whether CPython has one object only of this number or string."""
    if type(obj) is int:
        return -5 <= obj <= 256
    return type(obj) in (str, bytes) and not obj


class ConstValue(Value):
    """An immutable constant: number, string, ``None``, type, dtype, module constant…"""

    def __init__(self, value: Any, source: Source | None = None, *, by_value: bool = False) -> None:
        """``by_value``: the guards of ``source`` let pass other objects that equal ``value``; numbers and
        texts have no other guards."""
        self.value = value
        self.source = source
        self.by_value = by_value or type(value) in _GUARDED_BY_VALUE

    @property
    def pytype(self) -> type:
        return type(self.value)

    def describe(self) -> str:
        return f"the constant {short(self.value):.60}"

    @property
    def is_const(self) -> bool:
        return True

    @property
    def const(self) -> Any:
        return self.value

    def reconstruct(self, cg: Codegen) -> str:
        if self.is_fixed:
            return cg.constant(self.value)
        assert self.source is not None
        return cg.load(self.source)  # the very object that came in, not one that equals it

    @property
    def is_fixed(self) -> bool:
        """Whether the object is one that compiled code holds, not one that it finds."""
        return self.source is None or not self._has_identity(self.source)

    def _has_identity(self, source: Source) -> bool:
        """Whether guards let pass other objects that equal the constant, and programs may tell them apart."""
        if not self.by_value or is_unique(self.value):
            return False
        return not isinstance(source.root(), ConstSource)

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.value)

    def length(self, tracer: Tracer) -> Value:
        if isinstance(self.value, type):
            return tracer.class_operation(self, "__len__", [])
        if not isinstance(self.value, (str, bytes, tuple, frozenset, range)):
            if type(self.value) in (int, float, complex, bool, type(None)):
                raise tracer.raise_like(len, self.value)
            raise Break("would-raise", f"len() of {self.describe()}")
        return ConstValue(len(self.value))

    def items(self, tracer: Tracer) -> list[Value]:
        if isinstance(self.value, (str, bytes, tuple, range, frozenset)):
            return [ConstValue(item) for item in self.value]
        if isinstance(self.value, type):
            found: list[Value] = self.iterate(tracer).items(tracer)
            return found
        raise Break("would-raise", f"unpacking of {self.describe()}")

    def iterate(self, tracer: Tracer) -> Value:
        if isinstance(self.value, type):
            return tracer.class_operation(self, "__iter__", [])
        if not isinstance(self.value, (str, bytes, tuple, frozenset)):
            raise Break("unsupported-operation", f"iteration over {self.describe()}")
        return tracer.sequence_iterator(self.items(tracer), self)

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        if isinstance(self.value, type):
            return tracer.class_operation(self, "__getitem__", [key])
        if type(self.value) in (int, float, bool, type(None)):
            name = type(self.value).__name__
            raise tracer.raise_exception(TypeError, f"'{name}' object is not subscriptable")
        index = tracer.constant_of(key, "an index")
        if isinstance(self.value, np.dtype) and type(index) in (int, str):
            return ConstValue(tracer.fold(operator.getitem, self.value, index))
        if not isinstance(self.value, (str, bytes, tuple, range)):
            raise Break("unsupported-operation", f"indexing of {self.describe()}")
        return ConstValue(tracer.fold(operator.getitem, self.value, index))

    def contains(self, tracer: Tracer, item: Value) -> Value:
        if isinstance(self.value, type):
            return ConstValue(tracer.class_operation(self, "__contains__", [item]).truth(tracer))
        if isinstance(self.value, enum.Flag) and item.is_const:
            return ConstValue(tracer.fold(operator.contains, self.value, item.const))
        if self.value is None:
            raise tracer.raise_like(operator.contains, None, None)
        if not isinstance(self.value, (str, bytes, tuple, frozenset, range)):
            raise Break("unsupported-operation", f"membership test in {self.describe()}")
        if isinstance(self.value, (str, bytes)) or item.is_const:
            return ConstValue(tracer.fold(operator.contains, self.value, item.const))
        for candidate in self.value:
            if tracer.same_or_equal(ConstValue(candidate), item):
                return ConstValue(True)
        return ConstValue(False)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.const_getattr(self, name)

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        if not isinstance(self.value, type):
            super().setattr(tracer, name, value)
        tracer.set_class_attribute(self, name, value)

    def delattr(self, tracer: Tracer, name: str) -> None:
        if not isinstance(self.value, type):
            super().delattr(tracer, name)
        tracer.set_class_attribute(self, name, None)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_object(self.value, self.source, args, kwargs)

    def for_rule(self, tracer: Tracer) -> Any:
        return self.value


class SymIntValue(Value):
    """A Python ``int`` whose value is a symbolic expression."""

    def __init__(self, sym: SymInt, source: Source | None = None) -> None:
        self.sym = sym
        self.source = source

    @property
    def pytype(self) -> type:
        return int

    def describe(self) -> str:
        return f"the symbolic integer {self.sym}"

    def reconstruct(self, cg: Codegen) -> str:
        return cg.symbolic(self.sym)

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.sym)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in ("real", "numerator"):
            return self
        if name in ("imag", "denominator"):
            return ConstValue(getattr(1, name))
        found: Value = tracer.container_method(self, name)
        return found

    def for_rule(self, tracer: Tracer) -> Any:
        return self.sym


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
PYTHON_NUMBERS = (bool, int, float, complex)


class ComputedValue(Value):
    """A Python number or text that compiled code computes in Python from its inputs.

    ``hint`` is its value at capture (its type is what counts), ``parts`` the template of the expression:
    strings and the Values of its operands.
    """

    def __init__(self, hint: Any, parts: tuple[str | Value, ...], source: Source | None = None) -> None:
        self.hint = hint
        self.parts = parts
        self.source = source

    @property
    def pytype(self) -> type:
        return type(self.hint)

    def describe(self) -> str:
        return f"a Python {type(self.hint).__name__} known only at run time"

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        return cg.number(self)

    def truth(self, tracer: Tracer) -> bool:
        raise Break("data-dependent-branch", f"a branch on {self.describe()}")


class NumberValue(ComputedValue):
    """A Python number known only at run time."""

    def __init__(self, hint: object, parts: tuple[str | Value, ...], source: Source | None = None) -> None:
        super().__init__(hint, parts, source)
        self._ref: ArrayRef | None = None
        self._symbol: SymInt | None = None

    def truth(self, tracer: Tracer) -> bool:
        compared = _as_comparison(self)
        if compared is None or not _may_assume(tracer, compared):
            return super().truth(tracer)
        source, check = compared
        tracer.guard(source, Kind.CUSTOM_ARRAY, check)
        outcome: bool = check.expected[-1]
        return outcome

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in ("real", "numerator") and isinstance(self.hint, int):
            return self if type(self.hint) is int else NumberValue(int(self.hint), ("(+", self, ")"))
        if name in ("real", "imag", "numerator", "denominator") and hasattr(self.hint, name):
            return NumberValue(getattr(self.hint, name), ("(", self, f").{name}"))
        found: Value = tracer.container_method(self, name)
        return found

    def as_integer(self, tracer: Tracer) -> SymInt | None:
        """A symbol for the value, so that it can be a size or an index; ``None`` where it is no int64."""
        if is_late(tracer, self):
            raise Break("data-dependent-value", f"{self.describe()}, which depends on the data")
        if self._symbol is None and type(self.hint) is int and -(2**63) <= self.hint < 2**63:
            if is_drawn(self):
                return None  # what is asked of it once would not hold again
            self._symbol = tracer.symbol_of(self)
        return self._symbol

    def for_rule(self, tracer: Tracer) -> Any:
        symbol = self.as_integer(tracer)
        if symbol is not None:
            return symbol
        if self._ref is None:
            self._ref = tracer.scalar_input(self)
        return self._ref


_MOST_OUTCOMES = 8  # of comparisons of one number that entries are kept for


def _as_comparison(value: NumberValue) -> tuple[Source, CustomCheck] | None:
    """A guard for the truth of a float that was passed or found (``if p``), or of its comparison with a
    constant (``if momentum != 0``)."""
    if value.source is not None and type(value.hint) is float:
        return value.source, _comparison(value.source, "!=", value.hint, 0.0)
    if len(value.parts) != 5 or value.parts[2] not in _COMPARISONS:
        return None
    number, op, other = value.parts[1], _COMPARISONS[value.parts[2]], value.parts[3]
    if isinstance(number, ConstValue):
        number, op, other = other, _SWAPPED[op], number
    if not isinstance(number, NumberValue) or number.source is None or type(number.hint) is not float:
        return None
    if not isinstance(other, ConstValue) or type(other.value) not in (int, float):
        return None
    return number.source, _comparison(number.source, op, number.hint, other.value)


_COMPARISONS = {f" {op} ": op for op in ("<", "<=", "==", "!=", ">", ">=")}
_SWAPPED = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">": "<", ">=": "<="}


def _comparison(source: Source, op: str, hint: float, other: float) -> CustomCheck:
    outcome = bool(_BINARY[op](hint, other))
    text = f"{source.expr()} {op} {other!r}" if outcome else f"not {source.expr()} {op} {other!r}"
    return CustomCheck(_holds, (op, other, outcome), text)


def _holds(found: object, expected: tuple[str, float, bool]) -> bool:
    op, other, outcome = expected
    return type(found) is float and _BINARY[op](found, other) is outcome


def _may_assume(tracer: Tracer, compared: tuple[Source, CustomCheck]) -> bool:
    """Whether each outcome gets an entry of its own. A variable of a loop takes its branches in turn, and one
    that is compared with many numbers would have too many entries."""
    source, check = compared
    root = source.root()
    if isinstance(root, LocalSource) and root.local in tracer.varying:
        return False
    outcomes = tracer.config.state_of(tracer.code).seen.setdefault(f"{source.expr()}: outcomes", set())
    outcomes.add(check.expected)
    return len(outcomes) <= _MOST_OUTCOMES


def is_drawn(value: Value) -> bool:
    """Whether a number depends on random numbers."""
    parts = value.parts if isinstance(value, ComputedValue) else ()
    return hasattr(value, "draw") or any(isinstance(part, Value) and is_drawn(part) for part in parts)


def is_late(tracer: Tracer, value: Value) -> bool:
    """Whether a number (or text) is made of one that depends on the data, so that it is known only after the
    graph."""
    if isinstance(value, SymIntValue):
        return bool(tracer.env.is_unbacked(value.sym))
    if hasattr(value, "ref"):
        return True  # an array scalar
    parts = getattr(value, "parts", ())
    return isinstance(parts, tuple) and any(isinstance(p, Value) and is_late(tracer, p) for p in parts)


class TextValue(ComputedValue):
    """A string or bytes object known only at run time (``f"step {i}"``)."""

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.container_method(self, name)

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        found: Value = tracer.call_container_method(self, "__getitem__", [key], {})
        return found

    def contains(self, tracer: Tracer, item: Value) -> Value:
        found: Value = tracer.call_container_method(self, "__contains__", [item], {})
        return found

    def length(self, tracer: Tracer) -> Value:
        return NumberValue(len(self.hint), (ConstValue(len), "(", self, ")"))


def number_operand(value: Value) -> bool:
    """Whether the value is a Python number of any kind that expressions can be made of."""
    if isinstance(value, (SymIntValue, NumberValue)):
        return True
    return value.is_const and type(value.const) in PYTHON_NUMBERS


def hint_of(value: Value) -> Any:
    """The number's value at capture."""
    if isinstance(value, SymIntValue):
        return value.sym.hint
    if isinstance(value, ComputedValue):
        return value.hint
    if value.children() and not value.is_const:
        return value.pytype(*_hints(value))
    return value.const


def _hints(value: Value) -> list[Any]:
    hints = [hint_of(v) for v in value.children()]
    return hints if value.pytype is slice else [hints]


def binary_number(tracer: Tracer, op: str, a: Value, b: Value) -> Value:
    """``a op b`` for Python numbers, at least one of them not constant."""
    integers = [v.sym if isinstance(v, SymIntValue) else v.const if v.is_const else None for v in (a, b)]
    if all(isinstance(i, (int, SymInt)) for i in integers):
        folded = _integer(op, integers[0], integers[1])
        if folded is not None:
            return SymIntValue(folded) if isinstance(folded, SymInt) else ConstValue(folded)
    try:
        hint = _BINARY[op](hint_of(a), hint_of(b))
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Break("would-raise", f"{op}: {error}") from None
    result = NumberValue(hint, ("(", a, f" {op} ", b, ")"))
    if op in _MAY_RAISE:
        tracer.may_raise_before.append(result)
    return result


_MAY_RAISE = ("/", "//", "%", "**", "<<", ">>")


def _integer(op: str, a: Any, b: Any) -> Any:
    if op in ("+", "-", "*", "<", "<=", "==", "!=", ">", ">="):
        return _BINARY[op](a, b)
    if op in ("//", "%") and isinstance(b, int) and b > 0:
        return _BINARY[op](a, b)
    if op in ("//", "%") and isinstance(b, SymInt) and b > 0:
        return _BINARY[op](a, b)
    if op == "**" and type(b) is int and 0 <= b <= 4:
        result: Any = 1
        for _ in range(b):
            result = result * a
        return result
    if op == "<<" and type(b) is int and 0 <= b < 62:
        return a * (1 << b)
    if op == ">>" and type(b) is int and 0 <= b < 62:
        return a // (1 << b)
    return None


def unary_number(tracer: Tracer, op: str, a: Value) -> Value:
    """``-a``, ``+a``, ``~a`` for a Python number that is not constant."""
    if isinstance(a, SymIntValue):
        result = {"-": -a.sym, "+": a.sym, "~": -a.sym - 1}[op]
        return SymIntValue(result) if isinstance(result, SymInt) else ConstValue(result)
    functions: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
    try:
        hint = functions[op](hint_of(a))
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Break("would-raise", f"{op}: {error}") from None
    return NumberValue(hint, ("(", op, a, ")"))


def scalar_type(hint: object) -> Any:
    """The graph type of a by-value Python number."""
    dtype = from_numpy(np.asarray(hint).dtype) if not isinstance(hint, int) else None
    if isinstance(hint, bool):
        dtype = from_numpy(np.bool_)
    elif isinstance(hint, int):
        dtype = from_numpy(np.int64)
    assert dtype is not None
    return array_type(dtype, ())
