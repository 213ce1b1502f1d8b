"""Pure functions of constants, computed at capture, and of Python numbers and texts that are known only at
run time: those become expressions that compiled code evaluates in Python."""

from __future__ import annotations

import cmath
import functools
import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

from ...signals import is_from_handler
from ..breaks import Break
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Guard, Kind
from ..guards.source import ConstSource, GlobalSource, ItemSource, ModuleDictSource
from ..values.base import Tracer, Value
from ..values.mapping import DictValue
from ..values.number import (
    PYTHON_NUMBERS,
    ComputedValue,
    ConstValue,
    NumberValue,
    SymIntValue,
    TextValue,
    hint_of,
    number_operand,
)
from ..values.obj import InstanceValue
from ..values.seq import ListValue, RangeValue, SliceValue, TupleValue
from ..values.sets import SetValue
from .known_results import NOTHING, HeldResult, known_result, lacks_result

_TEXTS = (str, bytes)
_FOLDED: frozenset[Any] = frozenset(
    [f for module in (math, cmath) for f in vars(module).values() if callable(f)]
    + [bytes, round, ord, chr, hash, hex, bin, oct, float.fromhex]
    + [int.from_bytes, str.maketrans, bytes.fromhex, bytes.maketrans, int, float, complex, pow, divmod, abs]
)


def fold_call(tracer: Tracer, obj: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A pure C function of constants is computed at capture; of Python numbers, in Python at run time."""
    if isinstance(obj, functools._lru_cache_wrapper):
        return _cached_call(tracer, obj, args, kwargs)
    try:
        if obj not in _FOLDED:
            return None
    except TypeError:
        return None
    values = [*args, *kwargs.values()]
    if any(is_computed(v) for v in values):
        if all(pure_operand(v) for v in values) and obj is not hash:
            return python_call(tracer, obj, args, kwargs)
        return None
    if not all(_foldable(v) for v in values):
        return None
    constants = [literal(tracer, a, "an argument") for a in args]
    keywords = {k: literal(tracer, v, "an argument") for k, v in kwargs.items()}
    return tracer.wrap_result(tracer.fold(lambda: obj(*constants, **keywords)))


def _cached_call(
    tracer: Tracer, obj: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """A library's function under ``lru_cache`` gives the same object for the same constants: ask it at
    capture; for anything else the function behind it is followed. A program's own is called when the program
    runs, as the program may look at its cache."""
    if not tracer.config.is_trusted(str(obj.__module__)):
        return _expected_call(tracer, obj, args, kwargs)
    if not all(v.is_const for v in (*args, *kwargs.values())):
        return tracer.call_value(tracer.child_or_constant(inspect.unwrap(obj), None), args, kwargs)
    result = tracer.fold(lambda: obj(*(a.const for a in args), **{k: v.const for k, v in kwargs.items()}))
    if isinstance(result, (int, float, complex, str, bytes, type(None), type)):
        return tracer.wrap_result(result)
    return tracer.child_or_constant(result, None)


_EXPECTED = (bool, int, str, type(None))


def _expected_call(tracer: Tracer, obj: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The result that the cache holds, or else by following the function behind it, if that gives a constant
    and changes nothing.
    Compiled code asks the cache too, and goes on where it says the same. Where the graph breaks as the cache
    holds nothing, as at the first call of ``logger.warning_once``, that is so until it does."""
    refusal = Break("unsupported-call", f"call of {obj.__name__}, whose results are cached")
    tracer.take_direct()
    if not all(map(_is_steady, (*args, *kwargs.values()))) or not all(map(str.isidentifier, kwargs)):
        raise refusal
    constants = tuple(_steady(tracer, a) for a in args)
    keywords = {name: _steady(tracer, value) for name, value in kwargs.items()}
    held = known_result(obj, constants, keywords)
    # called it would not see what was written, as the cache is asked before; nor is it traced with objects
    only_held = bool(tracer.mutated or tracer.global_writes or not all(v.is_const for v in args))
    if type(held) in _EXPECTED:
        asked = HeldResult(obj) if only_held else obj
        tracer.expected_calls.append((asked, constants, keywords, held))
        return ConstValue(held)
    if held is NOTHING:
        tracer.decisions.unknown_results.append((obj, constants, keywords))
    if only_held or not all(v.is_const for v in kwargs.values()):
        raise refusal
    before = _changes(tracer)
    inside = len(tracer.expected_calls)
    function = tracer.child_or_constant(obj.__wrapped__, None)
    result, raised = tracer.unless_raised(lambda: tracer.call_value(function, args, kwargs))
    if raised is not None or result is None:  # of which the cache keeps nothing
        raise refusal
    del tracer.expected_calls[inside:]  # the cache's own call makes them, where it makes any
    if not (before == _changes(tracer) and result.is_const and type(result.const) in _EXPECTED):
        raise refusal
    tracer.expected_calls.append((obj, constants, keywords, result.const))
    if held is NOTHING:
        tracer.decisions.unknown_results.pop()
    return result


def guards_of_unknown_results(tracer: Tracer) -> list[Guard]:
    """That caches still hold nothing for the calls at which the graph broke for that reason."""
    return [
        Guard(
            ConstSource(function, function.__name__),
            Kind.CUSTOM_ARRAY,
            CustomCheck(lacks_result, (args, kwargs), f"the cache of {function.__name__} holds no result"),
        )
        for function, args, kwargs in tracer.decisions.unknown_results
    ]


def _is_steady(value: Value) -> bool:
    """A constant, or an object that a global variable of the program holds."""
    source = value.source
    is_global = isinstance(source, GlobalSource) or (
        isinstance(source, ItemSource) and isinstance(source.base, ModuleDictSource)
    )
    return value.is_const or (type(value) is InstanceValue and is_global and not value.mutated)


def _steady(tracer: Tracer, value: Value) -> Any:
    if isinstance(value, InstanceValue):
        tracer.guard(value.source, Kind.IS, value.obj)
        return value.obj
    return value.const


def _changes(tracer: Tracer) -> tuple[int, ...]:
    """Grows with each change that the program may see, and with the graph."""
    return tracer.outside_changes, len(tracer.builder.nodes), len(tracer.global_writes)


_PLAIN = (int, float, complex, str, bytes, bool, type(None))


def _foldable(value: Value) -> bool:
    """Whether a value is made of plain constants all through."""
    if isinstance(value, SymIntValue):
        return True
    if isinstance(value, (ListValue, TupleValue)):
        return value.pytype in (list, tuple) and all(_foldable(v) for v in value.children())
    if isinstance(value, RangeValue):
        return value.is_const
    return value.is_const and _is_plain(value.const)


def _is_plain(constant: object) -> bool:
    return all(map(_is_plain, constant)) if type(constant) is tuple else type(constant) in _PLAIN


def is_library_tuple(tracer: Tracer, value: Value) -> bool:
    """Whether it is of a class of tuples that an array library has (``torch.Size``)."""
    return isinstance(value, TupleValue) and any(f.is_constant(value.cls) for f in tracer.config.frontends)


def literal(tracer: Tracer, value: Value, what: str, inside: tuple[Value, ...] = ()) -> Any:
    """A real object equal to a value that is constant all through, for a function that only reads it."""
    value = tracer.realize(value)
    if type(value) is ConstValue:
        return value.const
    if any(value is outer for outer in inside):
        raise Break("unsupported-operation", f"{what} that contains itself")
    around = (*inside, value)
    if isinstance(value, ListValue):
        return [literal(tracer, v, what, around) for v in value.contents(tracer)]
    if isinstance(value, TupleValue) and (value.cls is tuple or is_library_tuple(tracer, value)):
        return value.cls(literal(tracer, v, what, around) for v in value.contents(tracer))
    if isinstance(value, DictValue) and value.cls is dict:
        return {k: literal(tracer, v, what, around) for k, v in value.contents(tracer).items()}
    if isinstance(value, SetValue):
        value.ordered(tracer)
        if not value.certain or value.source is not None:
            raise Break("unsupported-operation", f"{what} that is a set from outside")
        return value.elements(tracer)
    return tracer.constant_of(value, what)


# -- expressions at run time ------------------------------------------------------------------------------
def is_computed(value: Value) -> bool:
    """Whether a value, or a part of it, is known only at run time."""
    if isinstance(value, (ListValue, TupleValue, SliceValue)):
        return any(is_computed(v) for v in value.children())
    return isinstance(value, (ComputedValue, SymIntValue))


def pure_operand(value: Value) -> bool:
    """Whether an expression in Python can be made of the value."""
    if isinstance(value, (ListValue, TupleValue, SliceValue)):
        looked_into = not isinstance(value, ListValue) or value.looked_into
        plain = (value.pytype in (list, tuple, slice) or _is_size(value)) and looked_into
        return plain and all(pure_operand(v) for v in value.children())
    if number_operand(value) or isinstance(value, ComputedValue):
        return True
    return value.is_const and (value.const is None or type(value.const) in _TEXTS)


def _is_size(value: Value) -> bool:
    """Whether it is a tuple of numbers of a class of a library: ``torch.Size``."""
    return isinstance(value, TupleValue) and value.keeps_class


def template(value: Value) -> list[Any]:
    """The parts of an expression for a pure operand."""
    if isinstance(value, (ListValue, TupleValue)):
        opening, closing = "[]" if isinstance(value, ListValue) else "()"
        parts: list[Any] = [opening]
        for item in value.children():
            parts += [*template(item), ", "]
        parts.append(closing)
        return [ConstValue(value.pytype), "(", *parts, ")"] if _is_size(value) else parts
    if isinstance(value, SliceValue):
        return [ConstValue(slice), *template(TupleValue(list(value.parts)))]
    return [value]


def python_call(
    tracer: Tracer, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value] | None = None
) -> Value:
    """A pure function of Python numbers and texts, called by compiled code in Python."""
    given = kwargs or {}
    try:
        hint = function(*(hint_of(a) for a in args), **{k: hint_of(v) for k, v in given.items()})
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Break("would-raise", f"{function.__name__}: {error}") from None
    result = computed(hint, [ConstValue(function), *_arguments(args, given)], function.__name__)
    if function not in _NEVER_RAISE:
        tracer.may_raise_before.append(result)
    return result


_NEVER_RAISE = (min, max, abs, bool, repr)


def _arguments(args: list[Value], kwargs: dict[str, Value]) -> list[Any]:
    parts: list[Any] = ["("]
    for arg in args:
        parts += [*template(arg), ", "]
    for name, value in kwargs.items():
        parts += [f"{name}=", *template(value), ", "]
    return [*parts, ")"]


def computed(hint: object, parts: list[Any], what: str) -> ComputedValue:
    """The value of an expression whose value at capture is ``hint``."""
    if type(hint) in PYTHON_NUMBERS:
        return NumberValue(hint, tuple(parts))
    if type(hint) in _TEXTS:
        return TextValue(hint, tuple(parts))
    raise Break("unsupported-call", f"{what} of a Python number or text known only at run time")


def _is_scalar(value: Value) -> bool:
    """Whether a value is an array scalar, or a number from an array, of which a text can be made."""
    ref = None if isinstance(value, ComputedValue) else getattr(value, "ref", None)
    return ref is not None and ref.kind in ("scalar", "python") and ref.frontend == "numpy"


def _is_unknown(value: Value, formatting: bool) -> bool:
    if formatting and isinstance(value, TupleValue):
        return any(_is_unknown(v, formatting) for v in value.children())
    return is_computed(value) or (formatting and _is_scalar(value))


def _is_said(value: Value, formatting: bool) -> bool:
    if formatting and isinstance(value, TupleValue) and value.cls is tuple:
        return all(_is_said(v, formatting) for v in value.children())
    return pure_operand(value) or (formatting and _is_scalar(value))


def _example_of(value: Value) -> Any:
    """The value at capture; of an array scalar any of its type."""
    if isinstance(value, TupleValue):
        return tuple(map(_example_of, value.children()))
    if not _is_scalar(value):
        return hint_of(value)
    ref: Any = getattr(value, "ref")  # noqa: B009 - arrays are above this module
    example = ref.dtype.numpy.type(0)
    return example.item() if ref.kind == "python" else example


def computed_method(
    tracer: Tracer, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """A method of a string or number that involves what is known only at run time; else ``None``."""
    values = [owner, *args, *kwargs.values()]
    formatting = name == "format" and owner.pytype is str
    if not any(_is_unknown(v, formatting) for v in values) or not all(
        _is_said(v, formatting) for v in values
    ):
        return None
    method = getattr(hint_of(owner), name)
    keywords = {k: _example_of(v) for k, v in kwargs.items()}
    hint = tracer.fold(lambda: method(*(_example_of(a) for a in args), **keywords))
    return computed(hint, ["(", owner, f").{name}", *_arguments(args, kwargs)], f"method {name}")


_TEXT_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "*": operator.mul,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def text_operator(tracer: Tracer, op: str, a: Value, b: Value) -> Value | None:
    """``a op b`` with a string known only at run time, or ``text % value``."""
    kinds = [v.pytype in _TEXTS for v in (a, b)]
    textual = any(kinds) if op == "*" else kinds[0] if op == "%" else a.pytype is b.pytype and all(kinds)
    formatting = op == "%" and a.pytype is str
    if not textual or op not in _TEXT_OPERATORS or not any(_is_unknown(v, formatting) for v in (a, b)):
        return None
    if not all(_is_said(v, formatting) for v in (a, b)):
        return None
    hint = tracer.fold(_TEXT_OPERATORS[op], _example_of(a), _example_of(b))
    return computed(hint, ["(", *template(a), f" {op} ", *template(b), ")"], f"operator {op}")
