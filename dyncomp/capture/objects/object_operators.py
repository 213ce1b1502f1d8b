"""Operators on objects of classes that define them, as CPython chooses among the special methods."""

from __future__ import annotations

import enum
import types

from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.derived import DerivedValue
from ..values.number import ConstValue
from ..values.obj import InstanceValue
from ..values.seq import TupleValue
from . import attributes, derived
from .identity import identical

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
REFLECTED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
COMPARISONS = frozenset({"<", "<=", "==", "!=", ">", ">="})


def has_methods(value: Value) -> bool:
    """Whether operators on the object may be methods that the program wrote."""
    if isinstance(value, TupleValue):
        return value.cls is not tuple
    if isinstance(value, ConstValue) and isinstance(value.const, enum.Enum):
        return True
    return isinstance(value, InstanceValue)


_NOT_IMPLEMENTED = ConstValue(NotImplemented)
# builtin types whose operators give ``NotImplemented`` for objects of other classes
_DEFERRING = frozenset(
    (int, float, complex, bool, type(None), list, tuple, dict, set, frozenset, range, slice)
)
_DEFERRING |= {types.FunctionType, types.MethodType, type, type(Ellipsis)}


def special_method(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value:
    """An operator with an object whose class may define it."""
    if plain in COMPARISONS:
        return _compare_objects(tracer, plain, a, b)
    name = BINARY_NAMES[plain].rstrip("_")
    attempts: list[tuple[Value, str, Value]] = []
    if op != plain:
        attempts.append((a, f"__i{name}__", b))
    attempts.append((a, f"__{name}__", b))
    if b.pytype is not a.pytype:
        reflected = (b, f"__r{name}__", a)
        first = a.pytype in b.pytype.__mro__ and _overrides(tracer, b.pytype, a.pytype, f"__r{name}__")
        attempts.insert(len(attempts) - 1 if first else len(attempts), reflected)
    for owner, special, other in attempts:
        result = _try_method(tracer, owner, special, other)
        if result is not _NOT_IMPLEMENTED:
            return result
    if isinstance(a, InstanceValue) and isinstance(b, InstanceValue):
        shown = "** or pow()" if op == "**" else op
        names = f"{a.cls.__name__[:100]!r} and {b.cls.__name__[:100]!r}"
        tracer.raise_exception(TypeError, f"unsupported operand type(s) for {shown}: {names}")
    raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")


def _overrides(tracer: Tracer, cls: type, base: type, name: str) -> bool:
    own = attributes.find_member(tracer, cls, name)
    inherited = attributes.find_member(tracer, base, name)
    if own is None:
        return False
    return inherited is None or own.raw is not inherited.raw or own.value is not inherited.value


def _try_method(tracer: Tracer, owner: Value, name: str, other: Value) -> Value:
    """What the special method gives; ``_NOT_IMPLEMENTED`` where there is none."""
    if isinstance(owner, DerivedValue) or isinstance(other, DerivedValue):
        native, found = derived.native_operator(tracer, owner, name, other)
        if native:
            return _NOT_IMPLEMENTED if found is None else found
    if not has_methods(owner):
        if owner.pytype in _DEFERRING or (owner.pytype in (str, bytes) and "mod" not in name):
            return _NOT_IMPLEMENTED
        raise Break("unsupported-operation", f"{name} of {owner.describe()}")
    member = attributes.find_member(tracer, owner.pytype, name)
    if member is None:
        attributes.guard_absent(tracer, owner.pytype, name)
        return _NOT_IMPLEMENTED
    if member.raw is None:
        raise Break("would-raise", f"{name} of {owner.describe()} is None")
    if member.value is None and member.raw is getattr(object, name, None):
        return _default_comparison(tracer, owner, name, other)
    if member.raw in _OF_NAMESPACES:
        return _compare_namespaces(tracer, owner, name, other)
    method = attributes.special_method(tracer, owner, name)
    if method is None:
        raise Break("unsupported-operation", f"{name} of {owner.describe()}")
    result = tracer.realize(tracer.call_value(method, [other], {}))
    return _NOT_IMPLEMENTED if result.is_const and result.const is NotImplemented else result


_OF_NAMESPACES = (types.SimpleNamespace.__eq__, types.SimpleNamespace.__ne__)


def _compare_namespaces(tracer: Tracer, owner: Value, name: str, other: Value) -> Value:
    """``SimpleNamespace.__eq__``: by the attributes."""
    if not isinstance(owner, InstanceValue) or not isinstance(other, InstanceValue):
        return _NOT_IMPLEMENTED
    if not issubclass(other.cls, types.SimpleNamespace):
        return _NOT_IMPLEMENTED
    found: Value = tracer.binary("==" if name == "__eq__" else "!=", owner.namespace, other.namespace)
    return found


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
    backward = (b, f"__{BINARY_NAMES[REFLECTED[op]]}__", a)
    swapped = a.pytype is not b.pytype and a.pytype in b.pytype.__mro__  # not of virtual subclasses
    for owner, special, other in (backward, forward) if swapped else (forward, backward):
        result = _try_method(tracer, owner, special, other)
        if result is not _NOT_IMPLEMENTED:
            return result
    if op in ("==", "!="):
        return ConstValue(identical(tracer, a, b) == (op == "=="))
    names = f"{a.pytype.__name__[:100]!r} and {b.pytype.__name__[:100]!r}"
    raise tracer.raise_exception(TypeError, f"{op!r} not supported between instances of {names}")


def has_own_operator(tracer: Tracer, plain: str, value: Value) -> bool:
    """Whether the class of a namedtuple or enum member defines the operator in Python."""
    if isinstance(value, InstanceValue):
        return True
    if not has_methods(value):
        return False
    name = BINARY_NAMES[plain].rstrip("_")
    names = [f"__{name}__", f"__r{name}__", f"__i{name}__"]
    if plain in REFLECTED:
        names.append(f"__{BINARY_NAMES[REFLECTED[plain]]}__")
    members = [attributes.find_member(tracer, value.pytype, n) for n in names]
    return any(
        m is not None and isinstance(m.raw, types.FunctionType) and m.raw.__module__ != "enum"
        for m in members
    )
