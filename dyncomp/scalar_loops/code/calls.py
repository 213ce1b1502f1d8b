"""Functions called in generated code: builtins, ``math``, NumPy's on single numbers, and the program's
own."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ...python_code.instr import CO_NEWLOCALS, CO_OPTIMIZED
from ...python_code.versions import decode
from ..analysis.blocks import facts_of
from ..entry.references import is_let_go
from ..kinds import (
    arrays,
    complexes,
    creation,
    heaps,
    iterators,
    lists,
    rows,
    texts,
    whole_lists,
)
from ..kinds.kinds import (
    BOOL,
    FLOAT,
    INT,
    SHORT,
    IterDetail,
    TupleValue,
    Value,
    is_plain_function,
    moved,
    named,
    progress,
    range_kind,
)
from . import by_python, draws, of_numpy
from .arithmetic import (
    as_double,
    as_int,
    binary,
    bounds,
    check_numbers,
    compare,
    is_number,
    magnitude,
    result_kind,
)
from .block import Block
from .walk import Scope, Stop, int_literal

Answer = Callable[[Block, list[Value]], Value]
_FUNCTIONS: dict[Any, Answer] = {}
_DEEPEST = 5  # functions inlined into functions
_PLAIN_FLAGS = CO_OPTIMIZED | CO_NEWLOCALS | 0x10 | ~0xFFFF  # nested; of __future__


def call(b: Block, function: Value, args: list[Value], names: tuple[str, ...], taken: int) -> Value | None:
    """What a call gives; None where control went elsewhere. ``taken``: stack slots of function and
    arguments."""
    if function.kind.family == "method":
        if names:
            raise Stop("a call of a method with keywords")
        return _method(b, function, args)
    if function.kind.family != "constant":
        raise Stop(f"a call of {function.kind}")
    found = function.kind.detail
    if creation.is_creation(found) and not _is_vector(found, args, names):
        return creation.create(b, found, args, names)
    if type(found) is types.FunctionType:
        _inline(b, found, args, names, taken)
        return None
    if names:
        raise Stop("a call with keywords")
    if draws.is_draw(found):
        return draws.call(b, found, args)
    answer = _FUNCTIONS.get(found) if is_plain_function(found) else None
    if answer is None:
        raise Stop(f"a call of {found.__name__ if is_plain_function(found) else type(found).__name__}")
    return answer(b, args)


def _method(b: Block, function: Value, args: list[Value]) -> Value:
    kind, name = function.kind.detail
    owner = Value(kind, function.parts)
    if kind.family == "list" and name in whole_lists.METHODS:
        return whole_lists.method(b, owner, name, args)
    if kind == INT and not args:
        return _bits(b, owner, name)
    if kind.family == "list":
        return lists.call(b, owner, name, args)
    if kind.family == "generator":
        return draws.method(b, owner, name, args)
    if name == "copy" and not args and kind.family == "array":
        return creation.copy(b, owner)
    if name == "sum" and not args:
        return of_numpy.total(b, owner)
    if complexes.is_complex(owner) and not args:
        return complexes.conjugate(b, owner)
    raise Stop(f"a call of the method {name}")


def _bits(b: Block, number: Value, name: str) -> Value:
    """``n.bit_length()`` and ``n.bit_count()``."""
    size = b.temp("u64", f"{number.text} < 0 ? -(u64){number.text} : (u64){number.text}")
    if name == "bit_count":
        return b.new(INT, f"__builtin_popcountll({size})", 0, 64)
    return b.new(INT, f"{size} ? 64 - __builtin_clzll({size}) : 0", 0, 64)


def _is_vector(function: object, args: list[Value], names: tuple[str, ...]) -> bool:
    """Whether ``np.zeros`` makes so few numbers that they are variables of their own."""
    size = args[0].constant if function is np.zeros and len(args) == 1 and not names else None
    return size is not None and 0 < size <= SHORT


_WITHOUT_EFFECT = ("copy", "bit_length", "bit_count")


def has_effect(function: Value) -> bool:
    """Whether a call changes anything."""
    kind = function.kind
    if kind.family == "method":
        return kind.detail[1] not in _WITHOUT_EFFECT
    if kind.family != "constant":
        return False
    return draws.is_draw(kind.detail) or (is_plain_function(kind.detail) and kind.detail in heaps.FUNCTIONS)


def _inline(
    b: Block, function: types.FunctionType, args: list[Value], names: tuple[str, ...], taken: int
) -> None:
    """Follow a function of the program. It has no effects: where it leaves, its caller's statement
    begins anew."""
    code = function.__code__
    scope: Scope | None = b.scope
    depth = 0
    while scope is not None:
        depth += 1
        if scope.code.known.get("of") is code:
            raise Stop(f"recursion of {code.co_name}")
        scope = scope.parent
    if depth > _DEEPEST or function.__kwdefaults__ or code.co_kwonlyargcount:
        raise Stop(f"a call of {code.co_name}")
    if code.co_flags & ~_PLAIN_FLAGS or code.co_cellvars or not is_let_go(function.__defaults__):
        raise Stop(f"a call of {code.co_name}")
    given = _bind(b, function, args, names)
    inner = _scope_of(b, function, len(b.stack) - taken)
    for name, found in given.items():
        slot, value = inner.slot(name), named(found)
        held = b.walker.slot_value(slot, value.kind)
        for variable, text in zip(held.parts, value.parts):
            b.line(f"{variable} = {text};")
        b.env[slot] = moved(value, value.parts, value.fact)
    b.done = True
    b.line(b.goto(0, b.stack[: len(b.stack) - taken], inner))


def _bind(
    b: Block, function: types.FunctionType, args: list[Value], names: tuple[str, ...]
) -> dict[str, Value]:
    """The parameters' values."""
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount]
    positional = len(args) - len(names)
    given = dict(zip(parameters, args[:positional]))
    for name, value in zip(names, args[positional:]):
        if name not in parameters[code.co_posonlyargcount :] or name in given:
            raise Stop(f"the arguments of {code.co_name}")
        given[name] = value
    defaults = function.__defaults__ or ()
    for name, default in zip(parameters[len(parameters) - len(defaults) :], defaults):
        if name not in given:
            given[name] = b.walker.constant(default)
    if positional > len(parameters) or len(given) != len(parameters):
        raise Stop(f"the arguments of {code.co_name}")
    if any(value.kind.family in ("iter", "source", "pending") for value in given.values()):
        raise Stop("an iterator as an argument")
    b.walker.assume(function, "__code__", code)
    b.walker.assume(function, "__defaults__", function.__defaults__)
    return given


def _scope_of(b: Block, function: types.FunctionType, base: int) -> Scope:
    code = function.__code__
    decoded = b.walker.subject.decoded
    canonical = decoded.get(code)
    if canonical is None:
        canonical = decoded[code] = decode(code)
        canonical.known["of"] = code
    parent, return_at = b.scope, b.index + 1

    def make(number: int) -> Scope:
        facts = facts_of(canonical, -1, b.walker.subject.unrolls)
        return Scope(number, canonical, facts, function.__globals__, parent, return_at, base, function)

    return b.walker.new_scope((parent.number, b.index, b.walker.subject.number_of(function)), make)


def give_back(b: Block) -> None:
    """The end of an inlined function."""
    scope = b.scope
    assert scope.parent is not None
    result = b.pop()
    if result.kind.family in ("iter", "source", "pending"):
        raise Stop("an iterator as a result")
    if result.kind.family == "vector":
        result = rows.returned(b, result)
    b.done = True
    b.line(b.goto(scope.return_at, [*b.stack[: scope.base], result], scope.parent))


def answers(*functions: object) -> Callable[[Answer], Answer]:
    def register(answer: Answer) -> Answer:
        for function in functions:
            _FUNCTIONS[function] = answer
        return answer

    return register


# -- builtins -----------------------------------------------------------------------------------------------
@answers(range)
def _range(b: Block, args: list[Value]) -> Value:
    if not 1 <= len(args) <= 3:
        raise Stop("a call of range")
    numbers = [_index(b, value) for value in args]
    start, stop = (b.walker.constant(0), numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) == 3 else b.walker.constant(1)
    if step.constant:
        detail = progress(step.constant, bounds(start)[0])
    else:
        b.check(f"{step.text} != 0", "a step of zero")
        low, high = bounds(step)
        sign = (low >= 0) - (high <= 0)
        detail = IterDetail(0, sign, sign > 0 and bounds(start)[0] >= 0, None)
    literals = [v.text if v.constant is None else int_literal(v.constant) for v in (start, stop, step)]
    return Value(range_kind(detail), (*literals, "-1"))


def _index(b: Block, value: Value) -> Value:
    """What ``__index__`` gives."""
    kind = value.kind
    if kind in (INT, BOOL):
        return as_int(b, value)
    if kind.family == "numpy" and kind.detail.kind in "iu" and kind.code != "u8":
        return b.new(INT, f"(i64){value.text}")
    raise Stop(f"{kind} as an integer")


@answers(enumerate)
def _enumerate(b: Block, args: list[Value]) -> Value:
    if len(args) not in (1, 2):
        raise Stop("a call of enumerate")
    start = _index(b, args[1]) if len(args) == 2 else b.walker.constant(0)
    return iterators.enumerated(b, args[0], start)


@answers(zip)
def _zip(b: Block, args: list[Value]) -> Value:
    if not args:
        raise Stop("a call of zip")
    return iterators.zipped(b, args)


@answers(len)
def _len(b: Block, args: list[Value]) -> Value:
    if len(args) != 1:
        raise Stop("a call of len")
    return arrays.length(b, args[0])


@answers(ord)
def _ord(b: Block, args: list[Value]) -> Value:
    if len(args) != 1 or not texts.is_text(args[0]):
        raise Stop("a call of ord")
    return texts.number(b, args[0])


@answers(chr)
def _chr(b: Block, args: list[Value]) -> Value:
    if len(args) != 1:
        raise Stop("a call of chr")
    return texts.character(b, args[0])


@answers(abs)
def _abs(b: Block, args: list[Value]) -> Value:
    if len(args) == 1 and complexes.is_complex(args[0]):
        return complexes.magnitude(b, args[0])
    check_numbers(args, 1)
    value = args[0]
    if value.kind in (INT, BOOL):
        number = as_int(b, value)
        low, high = bounds(number)
        if low >= 0:
            return number
        if low == -(2**63):
            b.check(f"{number.text} != -9223372036854775807LL - 1", "an int of more than 64 bits")
        return b.new(
            INT, f"{number.text} < 0 ? -{number.text} : {number.text}", 0, min(max(-low, high), 2**63 - 1)
        )
    return magnitude(b, value, result_kind(abs, value.kind))


def _extreme(op: str) -> Answer:
    def answer(b: Block, args: list[Value]) -> Value:
        if whole_lists.is_one(args):
            return whole_lists.number(b, "min" if op == "<" else "max", args)
        if len(args) < 2 or not all(map(is_number, args)):
            raise Stop("min or max of other than numbers")
        best = args[0]
        for count, value in enumerate(args[1:], 2):
            chosen = compare(b, op, value, best)
            if value.kind != best.kind:
                if count < len(args):
                    raise Stop("min or max of numbers of several types")
                below = b.stack[: len(b.stack) - len(args) - 1]
                b.line(f"if ({chosen.text}) {{ {b.goto(b.index + 1, [*below, value])} }}")
                return best
            low, high = None, None
            if best.kind == INT:
                pick = min if op == "<" else max
                low, high = pick(bounds(value)[0], bounds(best)[0]), pick(bounds(value)[1], bounds(best)[1])
            best = b.new(best.kind, f"{chosen.text} ? {value.text} : {best.text}", low, high)
        return best

    return answer


_FUNCTIONS[min] = _extreme("<")
_FUNCTIONS[max] = _extreme(">")


@answers(int)
def _int(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 1)
    value = args[0]
    if value.kind in (INT, BOOL):
        return as_int(b, value)
    if value.kind.code == "u8":
        raise Stop("a number of 64 bits without sign")
    if value.kind == FLOAT or value.kind.detail.kind == "f":
        return whole(b, value.text, "trunc")
    return b.new(INT, f"(i64){value.text}", 0 if value.kind.detail.kind in "ub" else None)


def whole(b: Block, text: str, function: str) -> Value:
    """A double as an int, by ``trunc``, ``floor``, ``ceil`` or ``rint``."""
    number = text if function == "trunc" else f"__builtin_{function}({text})"
    found = b.walker.temp("i64")
    b.check(f"as_int({number}, &{found})", "a float that is no int")
    return Value(INT, (found,))


_FUNCTIONS[complex] = complexes.make
_FUNCTIONS[np.complex128] = complexes.make_numpy
_FUNCTIONS.update(complexes.FUNCTIONS)


@answers(float)
def _float(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 1)
    return args[0] if args[0].kind == FLOAT else b.new(FLOAT, f"(double){args[0].text}")


@answers(bool)
def _bool(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 1)
    return b.new(BOOL, b.truth(args[0]), 0, 1)


@answers(round)
def _round(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 1, 2)
    value = args[0]
    if len(args) == 2:
        if value.kind != FLOAT or args[1].kind != INT:
            raise Stop("a call of round")
        name = b.walker.temp("double")
        b.check(f"round_to({value.text}, {args[1].text}, &{name})", "a number that cannot be rounded")
        return Value(FLOAT, (name,))
    if value.kind in (INT, BOOL):
        return as_int(b, value)
    if value.kind.parts[0][1] == "double":
        return whole(b, value.text, "rint")
    raise Stop("a call of round")


@answers(divmod)
def _divmod(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 2)
    if any(a.kind.family == "numpy" for a in args):
        raise Stop("divmod of NumPy's numbers")
    return TupleValue([binary(b, "//", *args), binary(b, "%", *args)])


@answers(pow)
def _pow(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 2)
    return binary(b, "**", *args)


# -- math ---------------------------------------------------------------------------------------------------
# functions of libm that CPython calls as they are; the condition for the plain case on x and the result r
_NO_POLE = "is_finite({r}) || !is_finite({x})"
_LIBM: dict[str, str] = {
    "sin": "is_finite({x})", "cos": "is_finite({x})", "tan": "is_finite({x})",
    "asin": "{x} >= -1 && {x} <= 1", "acos": "{x} >= -1 && {x} <= 1", "atan": "",
    "sinh": _NO_POLE, "cosh": _NO_POLE, "tanh": "", "asinh": "",
    "exp": _NO_POLE, "expm1": _NO_POLE, "log1p": "{x} > -1", "sqrt": "{x} >= 0",
    "log": "{x} > 0", "log2": "{x} > 0 && is_finite({x})", "log10": "{x} > 0",
    "fabs": "", "erf": "", "erfc": "",
    "cbrt": "",
}  # fmt: skip


def _double(b: Block, value: Value) -> str:
    """What ``__float__`` gives."""
    if not is_number(value):
        raise Stop(f"{value.kind} as a float")
    return as_double(b, value)


def _libm(name: str, plain: str) -> Answer:
    called = f"__builtin_{name}" if name in ("sqrt", "fabs") else name

    def answer(b: Block, args: list[Value]) -> Value:
        if len(args) == 2 and name == "log":
            return by_python.call(b, name, args)
        check_numbers(args, 1)
        x = b.temp("double", _double(b, args[0]))
        if plain and "{r}" not in plain:
            b.check(plain.format(x=x), f"math.{name}")
        result = b.new(FLOAT, f"{called}({x})")
        if "{r}" in plain:
            b.check(plain.format(x=x, r=result.text), f"math.{name}")
        return result

    return answer


_FUNCTIONS.update(by_python.FUNCTIONS)
_FUNCTIONS.update(heaps.FUNCTIONS)
_FUNCTIONS.update(whole_lists.FUNCTIONS)
_FUNCTIONS.update(of_numpy.FUNCTIONS)
for _name, _plain in _LIBM.items():
    if hasattr(math, _name):
        _FUNCTIONS[getattr(math, _name)] = _libm(_name, _plain)


def _rounding(name: str) -> Answer:
    def answer(b: Block, args: list[Value]) -> Value:
        check_numbers(args, 1)
        if args[0].kind in (INT, BOOL):
            return as_int(b, args[0])
        if args[0].kind.parts[0][1] != "double":
            raise Stop(f"math.{name}")
        return whole(b, args[0].text, name)

    return answer


def _scaled(name: str, factor: float) -> None:
    def answer(b: Block, args: list[Value]) -> Value:
        check_numbers(args, 1)
        return b.new(FLOAT, f"PRODUCT({_double(b, args[0])}, {factor!r})")

    _FUNCTIONS[getattr(math, name)] = answer


_scaled("degrees", 180.0 / math.pi)
_scaled("radians", math.pi / 180.0)
for _name in ("floor", "ceil", "trunc"):
    _FUNCTIONS[getattr(math, _name)] = _rounding(_name)


@answers(math.isnan)
def _isnan(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 1)
    x = b.temp("double", _double(b, args[0]))
    return b.new(BOOL, f"{x} != {x}")


@answers(math.isinf)
def _isinf(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 1)
    x = b.temp("double", _double(b, args[0]))
    return b.new(BOOL, f"{x} == {x} && !is_finite({x})")


@answers(math.isfinite)
def _isfinite(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 1)
    return b.new(BOOL, f"is_finite({_double(b, args[0])})")


def _two(name: str, plain: str) -> Answer:
    def answer(b: Block, args: list[Value]) -> Value:
        check_numbers(args, 2)
        x, y = b.temp("double", _double(b, args[0])), b.temp("double", _double(b, args[1]))
        if plain:
            b.check(plain.format(x=x, y=y), f"math.{name}")
        return b.new(FLOAT, f"{name}({x}, {y})")

    return answer


_FUNCTIONS[math.atan2] = _two("atan2", "is_finite({x}) && is_finite({y})")
_FUNCTIONS[math.copysign] = _two("__builtin_copysign", "")
_FUNCTIONS[math.fmod] = _two("fmod", "is_finite({x}) && is_finite({y}) && {y} != 0")


@answers(math.pow)
def _math_pow(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 2)
    x, y = b.temp("double", _double(b, args[0])), b.temp("double", _double(b, args[1]))
    name = b.walker.temp("double")
    b.check(f"float_power({x}, {y}, &{name})", "math.pow")
    return Value(FLOAT, (name,))


@answers(math.gcd)
def _gcd(b: Block, args: list[Value]) -> Value:
    if len(args) == 3:
        return by_python.call(b, "gcd", args)
    check_numbers(args, 2)
    x, y = (_index(b, value) for value in args)
    b.check(f"{x.text} > -{2**62}LL && {y.text} > -{2**62}LL", "a large number")
    return b.new(INT, f"gcd({x.text}, {y.text})", 0)
