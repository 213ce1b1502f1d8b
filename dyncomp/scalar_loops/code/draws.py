"""Random numbers in generated code, one at a time: the streams of ``random``, of ``np.random`` and of NumPy's
generators, read where these keep them.

NumPy's are drawn through the C interface of its bit generators (``numpy/random/bitgen.h``), by the formulas
of its ``distributions.c`` and ``legacy-distributions.c``; ``random`` is the Mersenne Twister of CPython's
``_randommodule.c`` (Matsumoto and Nishimura, 1998), whose words lie in the object. What was found out about
either is compared with the real thing once, before anything is compiled.
"""

from __future__ import annotations

import ctypes
import functools
import math
import random
import sys
import types
from collections.abc import Callable, Container
from typing import Any

import numpy as np

from ...hook._hook import OBJECT_LAYOUT
from ..kinds.kinds import FLOAT, INT, NUMPY, Kind, Value, generator_kind, method_kind
from . import arithmetic
from .block import Block
from .walk import Stop

_Draw = Callable[[Block, "_Stream", list[Value]], Value]
_PROBES = 64
_WORDS = 624
_WIDEST = 2**62


class _Stream:
    """Where numbers are drawn from: ``bits`` in C, and the object that they belong to in C."""

    def __init__(self, bits: str, owner: str, is_legacy: bool) -> None:
        self.bits = bits
        self.owner = owner
        self.is_legacy = is_legacy


def is_draw(function: object) -> bool:
    """Whether an object of the program is called for a random number."""
    return _name_of(function) is not None


def _name_of(function: object) -> tuple[str, str] | None:
    """Which module's function of which name it is."""
    if type(function) is not types.MethodType and type(function) is not types.BuiltinMethodType:
        return None  # the program's: it is asked for nothing
    owner = function.__self__
    legacy = sys.modules.get("numpy.random.mtrand")
    if owner is None:
        return None
    if owner is vars(random).get("_inst"):
        own = type(owner) is random.Random
        return ("random", function.__name__) if own and _is_member(random, function, _PYTHON) else None
    if legacy is not None and owner is vars(legacy).get("_rand"):
        return ("numpy", function.__name__) if _is_member(legacy, function, _LEGACY) else None
    return None


def _is_member(module: types.ModuleType, function: Any, known: Container[str]) -> bool:
    name = function.__name__
    return name in known and bool(function == getattr(module, name, None))


def call(b: Block, function: Any, args: list[Value]) -> Value:
    """What drawing gives. The caller makes the call an effect."""
    found = _name_of(function)
    assert found is not None
    module, name = found
    _check_place(b)
    if module == "random":
        if not _words_are_known():
            raise Stop("random keeps its state elsewhere")
        b.walker.assume(random, "_inst", function.__self__)
        return _PYTHON[name](b, args)
    legacy = sys.modules["numpy.random.mtrand"]
    b.walker.assume(legacy, "_rand", function.__self__)
    owner = b.walker.variable("v_$rand", "char*")
    b.line(f"if (!{owner}) {owner} = legacy_owner();")
    return _LEGACY[name](b, _stream(b, "v_$bits", owner, True), args)


def attribute(b: Block, value: Value, name: str) -> Value:
    """A method of a generator."""
    if name not in (_LEGACY if value.kind.detail is np.random.RandomState else _MODERN):
        raise Stop(f"the attribute {name} of a generator")
    return Value(method_kind(value.kind, name), value.parts)


def method(b: Block, owner: Value, name: str, args: list[Value]) -> Value:
    """What a method of a generator in a local gives."""
    _check_place(b)
    is_legacy = owner.kind.detail is np.random.RandomState
    stream = _stream(b, f"v_$bits_{owner.parts[0]}", owner.parts[0], is_legacy)
    return (_LEGACY if is_legacy else _MODERN)[name](b, stream, args)


def kind_of_generator(value: object, number: int) -> tuple[Kind, tuple[Any, ...]]:
    return generator_kind(type(value)), (id(value), number)


def _check_place(b: Block) -> None:
    if b.scope.parent is not None:
        raise Stop("a function that draws random numbers")
    b.walker.draws = True


def _stream(b: Block, bits: str, owner: str, is_legacy: bool) -> _Stream:
    """The bit generator, if no other thread is drawing from it; nobody else can while the loop runs."""
    if not _formulas_hold():
        raise Stop("another NumPy's random numbers")
    name = b.walker.variable(bits, "Bits*")
    attribute = "_bit_generator" if is_legacy else "bit_generator"
    b.check(f'{name} || ({name} = free_bits({owner}, "{attribute}"))', "random numbers that others draw")
    return _Stream(name, owner, is_legacy)


# -- arguments ----------------------------------------------------------------------------------------------
def _doubles(b: Block, args: list[Value], defaults: tuple[float, ...]) -> list[str]:
    """Arguments as doubles; those that are left out are their defaults."""
    if len(args) > len(defaults) or any(value.kind not in (INT, FLOAT) for value in args):
        raise Stop("the arguments of a random number")
    for value in args:
        if value.kind == INT:
            arithmetic.check_exact(b, value)
    found = [arithmetic.as_double(b, value) for value in args]
    return [*found, *map(repr, defaults[len(args) :])]


def _no_arguments(args: list[Value]) -> None:
    if args:
        raise Stop("the arguments of a random number")


def _range(b: Block, args: list[Value], is_closed: bool = False) -> tuple[str, str]:
    """The least number, and how many there are to choose from."""
    if len(args) not in (1, 2) or any(value.kind != INT for value in args):
        raise Stop("the arguments of a random number")
    low, high = (b.walker.constant(0), args[0]) if len(args) == 1 else args
    width = b.walker.temp("i64")
    more = " + 1" if is_closed else ""
    b.check(
        f"!__builtin_sub_overflow({high.text}, {low.text}, &{width}) && {width} < {_WIDEST}LL"
        f" && ({width} = {width}{more}) > 0",
        "an empty range, or one of too many numbers",
    )
    return low.text, width


# -- NumPy's ------------------------------------------------------------------------------------------------
def _next_double(b: Block, stream: _Stream, args: list[Value]) -> Value:
    _no_arguments(args)
    return b.new(FLOAT, f"{stream.bits}->next_double({stream.bits}->state)")


def _uniform(b: Block, stream: _Stream, args: list[Value]) -> Value:
    low, high = _doubles(b, args, (0.0, 1.0))
    if not stream.is_legacy:
        b.check(f"{high} >= {low}", "a range that goes down")
    width = b.temp("double", f"{high} - {low}")
    b.check(f"is_finite({width})", "a range that is not finite")
    return b.new(FLOAT, f"{low} + PRODUCT({width}, {stream.bits}->next_double({stream.bits}->state))")


def _standard_normal(b: Block, stream: _Stream, args: list[Value]) -> Value:
    _no_arguments(args)
    return b.new(FLOAT, f"legacy_gauss({stream.bits}, {_gauss_of(stream)})")


def _normal(b: Block, stream: _Stream, args: list[Value]) -> Value:
    loc, scale = _doubles(b, args, (0.0, 1.0))
    b.check(f"{scale} > 0", "a scale that is not positive")
    return b.new(FLOAT, f"{loc} + PRODUCT({scale}, legacy_gauss({stream.bits}, {_gauss_of(stream)}))")


def _gauss_of(stream: _Stream) -> str:
    return f"{stream.owner} + {place_of_gauss()}"


def _masked(b: Block, stream: _Stream, args: list[Value]) -> Value:
    low, width = _range(b, args)
    return b.new(INT, f"{low} + masked_below({stream.bits}, {width})")


def _multiplied(b: Block, stream: _Stream, args: list[Value]) -> Value:
    low, width = _range(b, args)
    b.check(f"{width} < 0xffffffffLL", "a range of many numbers")
    return b.new(NUMPY["i8"], f"{low} + multiplied_below({stream.bits}, {width})")


_LEGACY: dict[str, _Draw] = {
    "random": _next_double,
    "random_sample": _next_double,
    "rand": _next_double,
    "uniform": _uniform,
    "randn": _standard_normal,
    "standard_normal": _standard_normal,
    "normal": _normal,
    "randint": _masked,
}
_MODERN: dict[str, _Draw] = {"random": _next_double, "uniform": _uniform, "integers": _multiplied}


# -- random's -----------------------------------------------------------------------------------------------
def _words(b: Block) -> str:
    words = b.walker.variable("v_$words", "u32*")
    b.line(f"if (!{words}) {words} = python_words();")
    return words


def _python_random(b: Block, args: list[Value]) -> Value:
    _no_arguments(args)
    return b.new(FLOAT, f"twister_double({_words(b)})")


def _python_uniform(b: Block, args: list[Value]) -> Value:
    """``a + (b - a) * random()``."""
    if len(args) != 2 or any(value.kind != FLOAT for value in args):
        raise Stop("the arguments of a random number")
    low, high = args[0].text, args[1].text
    return b.new(FLOAT, f"{low} + PRODUCT({high} - {low}, twister_double({_words(b)}))")


def _python_below(is_closed: bool) -> Callable[[Block, list[Value]], Value]:
    """``randrange`` or ``randint``: bits until they are below the width."""

    def draw(b: Block, args: list[Value]) -> Value:
        if is_closed and len(args) != 2:
            raise Stop("the arguments of a random number")
        low, width = _range(b, args, is_closed)
        return b.new(INT, f"{low} + twister_below({_words(b)}, {width})")

    return draw


_PYTHON: dict[str, Callable[[Block, list[Value]], Value]] = {
    "random": _python_random,
    "uniform": _python_uniform,
    "randrange": _python_below(False),
    "randint": _python_below(True),
}
METHODS = frozenset({*_LEGACY, *_MODERN})
GENERATORS = (np.random.Generator, np.random.RandomState)


# -- whether they are as they were when this was written ----------------------------------------------------
def _words_are_known() -> bool:
    """Whether a ``Random`` keeps its position and its words behind the header."""
    if random.Random.__base__.__basicsize__ < OBJECT_LAYOUT["RANDOM_STATE"] + 4 * (_WORDS + 1):  # type: ignore[union-attr]
        return False
    made = random.Random(7)
    made.random()
    held = (ctypes.c_uint32 * (_WORDS + 1)).from_address(id(made) + OBJECT_LAYOUT["RANDOM_STATE"])
    state = made.getstate()[1]
    return [*held[1:], held[0]] == list(state)


@functools.cache
def place_of_gauss() -> int:
    """Where a ``RandomState`` keeps the normal number that is left over: behind a pointer to the copy of the
    bit generator's interface that lies before it."""
    made = np.random.RandomState(3)
    made.normal()
    _, _, _, has_gauss, gauss = made.get_state()
    size = type(made).__basicsize__ // 8
    words = (ctypes.c_uint64 * size).from_address(id(made))
    for at in range(7, size - 2):
        if words[at] != id(made) + 8 * (at - 5) or words[at + 1] & 0xFFFFFFFF != has_gauss:
            continue
        if ctypes.c_double.from_address(id(made) + 8 * (at + 2)).value == gauss:
            return 8 * (at + 1)
    raise Stop("another NumPy's normal numbers")


@functools.cache
def _formulas_hold() -> bool:
    """Whether NumPy's numbers are those of the formulas below, bit for bit."""
    real, copied = np.random.RandomState(11), np.random.RandomState(11)
    modern = np.random.Generator(np.random.MT19937(11))
    twin = np.random.MT19937(11)
    for _ in range(_PROBES):
        r = copied.random_sample()
        if real.uniform(0.1, 0.7) != 0.1 + (0.7 - 0.1) * r:
            return False
        if real.randint(-3, 900) != -3 + _masked_below(copied, 903):
            return False
        if modern.integers(-3, 900) != -3 + _multiplied_below(twin, 903):
            return False
    for _ in range(_PROBES):
        first, second = _gauss_pair(copied)
        if real.normal(0.5, 1.5) != 0.5 + 1.5 * first or real.standard_normal() != second:
            return False
    return True


def _masked_below(state: Any, width: int) -> int:
    mask = (1 << (width - 1).bit_length()) - 1
    while True:
        found = int(state._bit_generator.random_raw()) & mask
        if found < width:
            return found


def _multiplied_below(bits: Any, width: int) -> int:
    while True:
        product = int(bits.random_raw()) * width
        if product & 0xFFFFFFFF >= (2**32 - width) % width:
            return product >> 32


def _gauss_pair(state: Any) -> tuple[float, float]:
    while True:
        x = 2.0 * state.random_sample() - 1.0
        y = 2.0 * state.random_sample() - 1.0
        square = x * x + y * y
        if 0.0 < square < 1.0:
            factor = math.sqrt(-2.0 * math.log(square) / square)
            return factor * y, factor * x


PRELUDE = """\
struct Bits {
  char* state; u64 (*next_word)(char*); u32 (*next_half)(char*); double (*next_double)(char*);
  u64 (*next_raw)(char*);
};
extern "C" {
extern char _Py_TrueStruct;
char* PyImport_AddModule(const char*); void* PyCapsule_GetPointer(char*, const char*);
}
static void let_go(char* object) { if (object) Py_DecRef(object); }
static char* attribute_of(char* object, const char* name) {
  return object ? PyObject_GetAttrString(object, name) : 0;
}
/* The interface of a bit generator, if nobody holds its lock: while this runs nobody can take it. */
static Bits* free_bits(char* owner, const char* name) {
  char *bits = attribute_of(owner, name), *lock = attribute_of(bits, "lock");
  char* capsule = lock ? attribute_of(bits, "capsule") : 0;
  void* found = capsule ? PyCapsule_GetPointer(capsule, "BitGenerator") : 0;
  if (found) {
    char* taken = PyObject_CallMethod(lock, "acquire", "i", 0);
    if (taken == &_Py_TrueStruct) let_go(PyObject_CallMethod(lock, "release", 0));
    else found = 0;
    let_go(taken);
  }
  if (!found) PyErr_Clear();
  let_go(capsule);
  let_go(lock);
  let_go(bits);
  return (Bits*)found;
}
/* Borrowed from the modules. */
static char* legacy_owner() {
  char* found = attribute_of(PyImport_AddModule("numpy.random.mtrand"), "_rand");
  let_go(found);
  return found;
}
static u32* python_words() {
  char* found = attribute_of(PyImport_AddModule("random"), "_inst");
  let_go(found);
  return (u32*)(found + RANDOM_STATE);
}
struct Gauss { int is_left; double left; };
static double legacy_gauss(Bits* bits, char* place) {
  Gauss* held = (Gauss*)place;
  if (held->is_left) {
    double found = held->left;
    held->is_left = 0;
    held->left = 0.0;
    return found;
  }
  double x, y, square;
  do {
    x = 2.0 * bits->next_double(bits->state) - 1.0;
    y = 2.0 * bits->next_double(bits->state) - 1.0;
    square = PRODUCT(x, x) + PRODUCT(y, y);
  } while (square >= 1.0 || square == 0.0);
  double factor = __builtin_sqrt(-2.0 * log(square) / square);
  held->left = factor * x;
  held->is_left = 1;
  return factor * y;
}
static i64 masked_below(Bits* bits, i64 width) {
  u64 most = width - 1, mask = most ? ~0ULL >> __builtin_clzll(most) : 0, found;
  if (!most) return 0;
  if (most == 0xffffffffULL) return bits->next_half(bits->state);
  do found = (most > 0xffffffffULL ? bits->next_word(bits->state) : bits->next_half(bits->state)) & mask;
  while (found > most);
  return found;
}
/* Lemire, "Fast random integer generation in an interval", 2019. */
static i64 multiplied_below(Bits* bits, u64 width) {
  if (width == 1) return 0;
  u64 product = bits->next_half(bits->state) * width;
  if ((u32)product < width) {
    u64 least = (0x100000000ULL - width) % width;
    while ((u32)product < least) product = bits->next_half(bits->state) * width;
  }
  return product >> 32;
}
static u32 twister_next(u32* held) {
  u32 *words = held + 1, y;
  if (held[0] >= 624) {
    for (int k = 0; k < 624; k++) {
      y = (words[k] & 0x80000000U) | (words[k < 623 ? k + 1 : 0] & 0x7fffffffU);
      words[k] = words[k < 227 ? k + 397 : k - 227] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfU : 0);
    }
    held[0] = 0;
  }
  y = words[held[0]++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}
static double twister_double(u32* held) {
  u32 a = twister_next(held) >> 5, b = twister_next(held) >> 6;
  return (a * 67108864.0 + b) * (1.0 / 9007199254740992.0);
}
static i64 twister_below(u32* held, i64 width) {
  int size = 64 - __builtin_clzll(width);
  u64 found;
  do {
    found = twister_next(held) >> (size < 32 ? 32 - size : 0);
    if (size > 32) found |= (u64)(twister_next(held) >> (64 - size)) << 32;
  } while (found >= (u64)width);
  return found;
}
"""
DEFINED = ("free_bits(", "python_words(")
