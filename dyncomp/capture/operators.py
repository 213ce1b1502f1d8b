"""Binary and unary operators over traced values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..device import CPU
from ..frontends.base import ArrayRef
from ..graph.ir import Var
from .breaks import Break
from .folding import text_operator
from .mappings import container_operator
from .values.array import ArrayValue
from .values.base import Tracer, Value
from .values.number import ConstValue, NumberValue, SymIntValue, binary_number, number_operand, unary_number
from .values.obj import InstanceValue
from .values.seq import ListValue, TupleValue

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
    if isinstance(a, ArrayValue) or isinstance(b, ArrayValue):
        return _with_array(tracer, op, plain, a, b)
    if number_operand(a) and number_operand(b) and not (a.is_const and b.is_const):
        return binary_number(tracer, plain, a, b)
    text = text_operator(tracer, plain, a, b)
    if text is not None:
        return text
    if isinstance(a, (ListValue, TupleValue)) or isinstance(b, (ListValue, TupleValue)):
        found = _sequences(tracer, op, plain, _spread(a), _spread(b))
        if found is not None:
            return found
    found = container_operator(tracer, op, plain, a, b)
    if found is not None:
        return found
    if isinstance(a, InstanceValue) or isinstance(b, InstanceValue):
        return _special_method(tracer, op, plain, a, b)
    if plain in ("==", "!=") and not (a.is_const and b.is_const):
        return _compare_unlike(plain, a, b)
    if a.is_const and b.is_const:
        function = getattr(operator, BINARY_NAMES[plain])
        if plain in ("==", "!="):
            return ConstValue(bool(tracer.fold(function, a.const, b.const)))
        return tracer.wrap_result(tracer.fold(function, _immutable(a), _immutable(b)))
    raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")


def _immutable(value: Value) -> Any:
    constant = value.const
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
            a.append(tracer, tracer.realize(item))
        return a
    if isinstance(a, ListValue) and op == "*=":
        repeated = a.items(tracer) * tracer.integer_of(b, "a repeat count")
        items = a.contents(tracer)
        a.touch(tracer)
        items[:] = repeated
        return a
    same = isinstance(a, (ListValue, TupleValue)) and type(a) is type(b)
    if plain == "+" and same:
        assert isinstance(a, (ListValue, TupleValue))
        return a.rebuild(a.items(tracer) + b.items(tracer))
    if plain == "*":
        sequence, count = (a, b) if isinstance(a, (ListValue, TupleValue)) else (b, a)
        if isinstance(sequence, (ListValue, TupleValue)):
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
    settled = (
        int,
        float,
        complex,
        bool,
        str,
        bytes,
        type(None),
        tuple,
        list,
        dict,
        range,
        slice,
        set,
        frozenset,
    )
    if a.pytype in settled and b.pytype in settled:
        numbers, sets = (int, float, complex, bool), (set, frozenset)
        alike = (a.pytype in numbers and b.pytype in numbers) or (a.pytype in sets and b.pytype in sets)
        if a.pytype is not b.pytype and not alike:
            return ConstValue(op == "!=")
    raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")


def _special_method(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value:
    name = BINARY_NAMES[plain].rstrip("_")
    attempts: list[tuple[Value, str, Value]] = []
    if op != plain:
        attempts.append((a, f"__i{name}__", b))
    attempts.append((a, f"__{name}__", b))
    reflected = f"__{BINARY_NAMES[_REFLECTED[plain]]}__" if plain in _REFLECTED else f"__r{name}__"
    attempts.append((b, reflected, a))
    if b.pytype is not a.pytype and issubclass(b.pytype, a.pytype):
        attempts.insert(0, attempts.pop())
    for owner, special, other in attempts:
        method = owner.special(tracer, special) if isinstance(owner, InstanceValue) else None
        if method is None:
            continue
        result = tracer.call_value(method, [other], {})
        if not (result.is_const and result.const is NotImplemented):
            return result
    if plain in ("==", "!=") and isinstance(a, InstanceValue) and a.cls.__eq__ is object.__eq__:
        if not isinstance(b, InstanceValue) or b.cls.__eq__ is object.__eq__:
            return ConstValue((a is b) == (plain == "=="))
    raise Break("unsupported-operation", f"{op} of {a.describe()} and {b.describe()}")


def unary(tracer: Tracer, op: str, a: Value) -> Value:
    """``-a``, ``+a``, ``~a``."""
    if isinstance(a, ArrayValue):
        return tracer.operator(UNARY_NAMES[op], [a])
    if isinstance(a, (SymIntValue, NumberValue)):
        return unary_number(tracer, op, a)
    if isinstance(a, InstanceValue):
        method = a.special(tracer, f"__{UNARY_NAMES[op]}__")
        if method is not None:
            return tracer.call_value(method, [], {})
    if a.is_const and type(a.const) in (int, float, complex, bool):
        return ConstValue(tracer.fold(getattr(operator, UNARY_NAMES[op]), a.const))
    raise Break("unsupported-operation", f"unary {op} of {a.describe()}")


def identical(a: Value, b: Value) -> bool:
    """``a is b``; breaks where it is not certain."""
    if a is b:
        return True
    if a.is_const and b.is_const and not isinstance(a, TupleValue) and not isinstance(b, TupleValue):
        return a.const is b.const or (
            type(a.const) is type(b.const) and type(a.const) in (int, str, bool) and a.const == b.const
        )
    if a.pytype is not b.pytype:
        return False
    if a.source is not None and b.source is not None and a.source == b.source:
        return True
    if (a.source is None) != (b.source is None) and not a.is_const and not b.is_const:
        return False
    if a.source is None and b.source is None and not a.is_const and not b.is_const:
        return False
    raise Break("unsupported-operation", f"identity of {a.describe()} and {b.describe()}")
