"""Binary and unary operators over traced values."""

from __future__ import annotations

import enum
import operator
import types
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..device import CPU
from ..frontends.base import ArrayRef
from ..graph.ir import Var
from . import attributes
from .breaks import Break
from .guards import Kind
from .values.array import ArrayValue
from .values.base import OpaqueValue, Tracer, Value
from .values.func import BoundMethodValue, FunctionValue, PartialValue
from .values.mapping import DictValue
from .values.number import ConstValue, NumberValue, SymIntValue, binary_number, number_operand, unary_number
from .values.obj import InstanceValue
from .values.seq import ListValue, TupleValue
from .values.text import binary_text

# spelling -> (name in the operator module, the in-place name, the special method)
BINARY_NAMES: dict[str, str] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "@": "matmul",
    "<<": "lshift",
    ">>": "rshift",
    "&": "and_",
    "|": "or_",
    "^": "xor",
    "<": "lt",
    "<=": "le",
    "==": "eq",
    "!=": "ne",
    ">": "gt",
    ">=": "ge",
}
_REFLECTED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
UNARY_NAMES = {"-": "neg", "+": "pos", "~": "invert"}
_COMPARISONS = frozenset({"<", "<=", "==", "!=", ">", ">="})


def array_operator(tracer: Tracer, name: str, values: list[Value]) -> Value:
    """Emit an operator through the frontend of its array operands."""
    arrays = [v for v in values if isinstance(v, ArrayValue)]
    proper = [v for v in arrays if v.ref.kind != "python"]
    if not proper:
        return _number_from_array(tracer, name, values)
    names = {v.ref.frontend for v in proper}
    if len(names) > 1:
        raise Break("unsupported-operation", f"{name} of arrays of {' and '.join(sorted(names))}")
    rule = tracer.frontend(proper[0].ref).find_operator(name)
    if rule is None:
        raise Break("unsupported-operation", f"operator {name} on {proper[0].describe()}")
    return tracer.apply_rule(rule, values, {}, f"operator {name}")


# operators on floats that never raise, by their prim
_TOTAL_ON_FLOATS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "lt": "less",
    "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "neg": "negative",
    "abs": "abs",
}


def _number_from_array(tracer: Tracer, name: str, values: list[Value]) -> Value:
    """Python floats that the graph computes (``float(x.sum())``) stay in the graph where the operator is
    total, as Python's float arithmetic is float64's."""
    prim = _TOTAL_ON_FLOATS.get(name)
    if prim is not None and all(v.pytype is float for v in values):
        ops = tracer.tx.ops
        operands = [_float_variable(tracer, v) for v in values]
        var = getattr(ops, prim)(*operands)
        return tracer.wrap_result(ArrayRef(var, "python", tracer.config.frontends[0].name))
    raise Break("data-dependent-value", f"{name} of Python numbers that come from an array")


def _float_variable(tracer: Tracer, value: Value) -> Var:
    if value.is_const:
        found: Var = tracer.tx.ops.full(shape=(), value=value.const, dtype=dtypes.float64, device=CPU)
        return found
    ref: ArrayRef = value.for_rule(tracer)
    return ref.var


def binary(tracer: Tracer, op: str, a: Value, b: Value) -> Value:
    """``a op b`` where ``op`` is spelled as in Python, in-place forms included."""
    plain = op[:-1] if op.endswith("=") and op not in _COMPARISONS else op
    if _has_own_operator(tracer, op, plain, a) or (
        not isinstance(a, ArrayValue) and _has_own_operator(tracer, op, plain, b)
    ):
        return _special_method(tracer, op, plain, a, b)
    if isinstance(a, ArrayValue) or isinstance(b, ArrayValue):
        return _with_array(tracer, op, plain, a, b)
    if number_operand(a) and number_operand(b) and not (a.is_const and b.is_const):
        return binary_number(tracer, plain, a, b)
    text = binary_text(tracer, plain, a, b)
    if text is not None:
        return text
    if isinstance(a, (ListValue, TupleValue)) or isinstance(b, (ListValue, TupleValue)):
        found = _sequences(tracer, op, plain, _spread(a), _spread(b))
        if found is not None:
            return found
    if plain in ("==", "!=") and not (a.is_const and b.is_const):
        return _compare_unlike(plain, a, b)
    if a.is_const and b.is_const:
        function = getattr(
            operator, BINARY_NAMES[plain] if op == plain else f"i{BINARY_NAMES[plain].rstrip('_')}"
        )
        if plain in ("==", "!="):
            return ConstValue(bool(tracer.fold(function, a.const, b.const)))
        return tracer.wrap_result(tracer.fold(function, _immutable(a), _immutable(b)))
    raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")


def _immutable(value: Value) -> Any:
    constant = value.const
    if type(constant) in (type, types.GenericAlias, types.UnionType, enum.EnumMeta):
        return constant  # unions of types
    if isinstance(constant, type) or callable(constant):
        raise Break("unsupported-operation", f"an operator on {value.describe()}")
    return constant


def _with_array(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value:
    for v in (a, b):
        if v.is_const and v.const is None and plain in ("==", "!="):
            raise Break("unsupported-operation", "comparison of an array with None")
    in_place = op != plain and isinstance(a, ArrayValue) and a.ref.kind in ("array", "masked")
    name = BINARY_NAMES[plain].rstrip("_")
    if in_place:
        tracer.operator(f"i{name}", [a, b])
        return a
    return tracer.operator(BINARY_NAMES[plain], [a, b])


def _spread(value: Value) -> Value:
    """A constant tuple by its items, so that it goes with tuples that are not constant."""
    if isinstance(value, ConstValue) and type(value.const) is tuple:
        return TupleValue([ConstValue(item) for item in value.const])
    return value


def _sequences(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value | None:
    if isinstance(a, ListValue) and op == "+=":
        added = b.items(tracer)
        for item in added:
            a.append(tracer, item)
        return a
    same = isinstance(a, (ListValue, TupleValue)) and type(a) is type(b)
    if plain == "+" and same:
        assert isinstance(a, (ListValue, TupleValue))
        return a.rebuild(a.items(tracer) + b.items(tracer))
    if plain == "*":
        sequence, count = (a, b) if isinstance(a, (ListValue, TupleValue)) else (b, a)
        if isinstance(sequence, (ListValue, TupleValue)) and op == plain:
            return sequence.rebuild(sequence.items(tracer) * tracer.integer_of(count, "a repeat count"))
    if plain in ("==", "!=") and same:
        return ConstValue(_equal_items(tracer, a, b) == (plain == "=="))
    if plain in _COMPARISONS and same:
        return ConstValue(_ordered_items(tracer, plain, a, b))
    return None


def _equal_items(tracer: Tracer, a: Value, b: Value) -> bool:
    first, second = a.items(tracer), b.items(tracer)
    if len(first) != len(second):
        return False
    return all(x is y or tracer.compare("==", x, y).truth(tracer) for x, y in zip(first, second))


def _ordered_items(tracer: Tracer, op: str, a: Value, b: Value) -> bool:
    first, second = a.items(tracer), b.items(tracer)
    for x, y in zip(first, second):
        if x is not y and not tracer.compare("==", x, y).truth(tracer):
            return tracer.compare(op, x, y).truth(tracer)
    comparison: Callable[[int, int], bool] = getattr(operator, BINARY_NAMES[op])
    return comparison(len(first), len(second))


def _compare_unlike(op: str, a: Value, b: Value) -> Value:
    """Equality of values of unlike kinds whose types settle it."""
    settled = (int, float, complex, bool, str, bytes, type(None), tuple, list, dict, range, slice)
    if a.pytype in settled and b.pytype in settled:
        numbers = (int, float, complex, bool)
        if a.pytype is not b.pytype and not (a.pytype in numbers and b.pytype in numbers):
            return ConstValue(op == "!=")
    raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")


def has_methods(value: Value) -> bool:
    """Whether operators on the object may be methods that the program wrote."""
    if isinstance(value, TupleValue):
        return value.cls is not tuple
    if isinstance(value, ConstValue) and isinstance(value.const, enum.Enum):
        return True
    return isinstance(value, InstanceValue)


_NOT_IMPLEMENTED = ConstValue(NotImplemented)
# builtin types whose operators give ``NotImplemented`` for objects of other classes
_DEFERRING = (int, float, complex, bool, type(None), list, tuple, dict, set, frozenset, range, slice)
_DEFERRING += (types.FunctionType, types.MethodType, type, type(Ellipsis))


def _special_method(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value:
    """An operator with an object whose class may define it."""
    if plain in _COMPARISONS:
        return _compare_objects(tracer, plain, a, b)
    name = BINARY_NAMES[plain].rstrip("_")
    attempts: list[tuple[Value, str, Value]] = []
    if op != plain:
        attempts.append((a, f"__i{name}__", b))
    attempts.append((a, f"__{name}__", b))
    if b.pytype is not a.pytype:
        reflected = (b, f"__r{name}__", a)
        first = issubclass(b.pytype, a.pytype) and _overrides(tracer, b.pytype, a.pytype, f"__r{name}__")
        attempts.insert(len(attempts) - 1 if first else len(attempts), reflected)
    for owner, special, other in attempts:
        result = _try_method(tracer, owner, special, other)
        if result is not _NOT_IMPLEMENTED:
            return result
    raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")


def _overrides(tracer: Tracer, cls: type, base: type, name: str) -> bool:
    own = attributes.find_member(tracer, cls, name)
    inherited = attributes.find_member(tracer, base, name)
    if own is None:
        return False
    return inherited is None or own.raw is not inherited.raw or own.value is not inherited.value


def _try_method(tracer: Tracer, owner: Value, name: str, other: Value) -> Value:
    """What the special method gives; ``_NOT_IMPLEMENTED`` where there is none."""
    if not has_methods(owner):
        if owner.pytype in _DEFERRING or (owner.pytype in (str, bytes) and "mod" not in name):
            return _NOT_IMPLEMENTED
        raise Break("unsupported-operation", f"{name} of {owner.describe()}")
    member = attributes.find_member(tracer, owner.pytype, name)
    if member is None:
        attributes.guard_absent(tracer, owner.pytype, name)
        return _NOT_IMPLEMENTED
    if member.value is None and member.raw is getattr(object, name, None):
        return _default_comparison(tracer, owner, name, other)
    method = attributes.special_method(tracer, owner, name)
    if method is None:
        raise Break("unsupported-operation", f"{name} of {owner.describe()}")
    result = tracer.realize(tracer.call_value(method, [other], {}))
    return _NOT_IMPLEMENTED if result.is_const and result.const is NotImplemented else result


def _default_comparison(tracer: Tracer, owner: Value, name: str, other: Value) -> Value:
    """``object.__eq__`` and its kin."""
    if name == "__eq__" and identical(tracer, owner, other):
        return ConstValue(True)
    if name == "__ne__":
        equal = _try_method(tracer, owner, "__eq__", other)
        return equal if equal is _NOT_IMPLEMENTED else ConstValue(not equal.truth(tracer))
    return _NOT_IMPLEMENTED


def _compare_objects(tracer: Tracer, op: str, a: Value, b: Value) -> Value:
    forward = (a, f"__{BINARY_NAMES[op]}__", b)
    backward = (b, f"__{BINARY_NAMES[_REFLECTED[op]]}__", a)
    swapped = a.pytype is not b.pytype and issubclass(b.pytype, a.pytype)
    for owner, special, other in (backward, forward) if swapped else (forward, backward):
        result = _try_method(tracer, owner, special, other)
        if result is not _NOT_IMPLEMENTED:
            return result
    if op in ("==", "!="):
        return ConstValue(identical(tracer, a, b) == (op == "=="))
    raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")


def _has_own_operator(tracer: Tracer, op: str, plain: str, value: Value) -> bool:
    """Whether the class of a namedtuple or enum member defines the operator in Python."""
    if isinstance(value, InstanceValue):
        return True
    if not has_methods(value):
        return False
    name = BINARY_NAMES[plain].rstrip("_")
    names = [f"__{name}__", f"__r{name}__", f"__i{name}__"]
    if plain in _REFLECTED:
        names.append(f"__{BINARY_NAMES[_REFLECTED[plain]]}__")
    members = [attributes.find_member(tracer, value.pytype, n) for n in names]
    return any(
        m is not None and isinstance(m.raw, types.FunctionType) and m.raw.__module__ != "enum"
        for m in members
    )


def unary(tracer: Tracer, op: str, a: Value) -> Value:
    """``-a``, ``+a``, ``~a``."""
    if isinstance(a, ArrayValue):
        return tracer.operator(UNARY_NAMES[op], [a])
    if isinstance(a, (SymIntValue, NumberValue)):
        return unary_number(tracer, op, a)
    if isinstance(a, InstanceValue):
        method = a.special(tracer, f"__{UNARY_NAMES[op]}__")
        if method is not None:
            return tracer.realize(tracer.call_value(method, [], {}))
    if a.is_const and type(a.const) in (int, float, complex, bool):
        return ConstValue(tracer.fold(getattr(operator, UNARY_NAMES[op]), a.const))
    raise Break("unsupported-operation", f"unary {op} of {a.describe()}")


# constants that are equal exactly when they are the same object, as far as programs can tell
_SINGLETONS = (type(None), bool, type(Ellipsis), type(NotImplemented))
_SMALL_INTS = range(-5, 257)


def identical(tracer: Tracer, a: Value, b: Value) -> bool:
    """``a is b``; breaks where it is not certain."""
    if a is b:
        return True
    if isinstance(a, ConstValue) and isinstance(b, ConstValue):
        return _same_constant(a, b)
    if a.pytype is not b.pytype:
        return False
    if a.source is not None and b.source is not None:
        return a.source == b.source or _same_object(tracer, a, b)
    if isinstance(a, (SymIntValue, NumberValue)) or isinstance(b, (SymIntValue, NumberValue)):
        raise Break("unsupported-operation", f"identity of {a.describe()} and {b.describe()}")
    if isinstance(a, BoundMethodValue) or a.is_const or b.is_const:
        raise Break("unsupported-operation", f"identity of {a.describe()} and {b.describe()}")
    return False


def _same_constant(a: ConstValue, b: ConstValue) -> bool:
    first, second = a.const, b.const
    if type(first) is not type(second):
        return False
    if isinstance(first, (int, float, complex, str, bytes, tuple, frozenset)) and type(first) is not bool:
        if not _equal_constants(first, second):
            return False
        if (type(first) is int and first in _SMALL_INTS) or (first is second and _literals(a, b)):
            return True
        if isinstance(first, enum.Enum):
            return first is second
        raise Break("unsupported-operation", f"identity of {a.describe()} and {b.describe()}")
    return first is second


def _equal_constants(first: Any, second: Any) -> bool:
    return bool(first == second) or (first != first and second != second)


def _literals(a: Value, b: Value) -> bool:
    """Whether both come from the constants of code."""
    return a.source is None and b.source is None


def _same_object(tracer: Tracer, a: Value, b: Value) -> bool:
    """Identity of two objects from outside, which one guard settles."""
    first, second = _object_of(a), _object_of(b)
    if first is _UNKNOWN or second is _UNKNOWN:
        raise Break("unsupported-operation", f"identity of {a.describe()} and {b.describe()}")
    same = first is second
    tracer.guard(a.source, Kind.SAME_OBJECT if same else Kind.NOT_SAME_OBJECT, b.source)
    return same


_UNKNOWN = object()


def _object_of(value: Value) -> Any:
    """The object that a value from outside stands for."""
    if isinstance(value, FunctionValue):
        return value.function
    if isinstance(value, (InstanceValue, OpaqueValue, PartialValue)):
        return value.obj
    if isinstance(value, (ListValue, DictValue)) and value.obj is not None:
        return value.obj
    if isinstance(value, ArrayValue):
        return value  # one value per array: see ``tracer.by_id``
    return _UNKNOWN
