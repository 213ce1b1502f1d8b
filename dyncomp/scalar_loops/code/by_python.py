"""Functions of ``math`` that generated code leaves to CPython: what they give is rounded in ways of their own
(``hypot`` since 3.10), or an int of any size.

They have no effects: where one raises, or gives what is no double and no int of 60 bits, generated code
leaves before the call, which plain Python then makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..kinds.kinds import BOOL, FLOAT, INT, Kind, Value
from .arithmetic import is_number
from .block import Block
from .walk import Stop

_OF_FLOATS: dict[str, tuple[int, ...]] = {
    "hypot": (1, 2, 3, 4), "gamma": (1,), "lgamma": (1,), "log": (2,), "remainder": (2,), "nextafter": (2,),
    "ulp": (1,), "exp2": (1,), "atanh": (1,), "acosh": (1,), "ldexp": (2,),
}  # fmt: skip
_OF_INTS: dict[str, tuple[int, ...]] = {
    "isqrt": (1,), "comb": (2,), "perm": (1, 2), "factorial": (1,), "lcm": (2, 3), "gcd": (3,),
}  # fmt: skip
_MADE = {"int": "PyLong_FromLongLong", "float": "PyFloat_FromDouble", "bool": "PyBool_FromLong"}


def call(b: Block, name: str, args: list[Value]) -> Value:
    """What ``math.name`` gives."""
    counts, kind = (_OF_FLOATS[name], FLOAT) if name in _OF_FLOATS else (_OF_INTS[name], INT)
    if len(args) not in counts or not all(map(is_number, args)):
        raise Stop(f"a call of math.{name}")
    given = [_object(value, kind) for value in args]
    b.walker.member(f"math_{name}", "math", name)
    found = b.walker.temp(kind.parts[0][1])
    objects = b.walker.variable(f"given{len(given)}[{len(given)}]", "char*").partition("[")[0]
    for k, text in enumerate(given):
        b.line(f"{objects}[{k}] = {text};")
    b.check(f"call_{kind.family}(math_{name}, {len(given)}, {objects}, &{found})", f"math.{name}")
    return Value(kind, (found,))


def _object(value: Value, result: Kind) -> str:
    """A new number of Python's: of NumPy's floats and ints these functions take the value."""
    kind = value.kind
    if kind in (INT, FLOAT, BOOL):
        return f"{_MADE[kind.family]}({value.text})"
    code = kind.detail.kind
    if code == "f" and result == FLOAT:
        return f"PyFloat_FromDouble((double){value.text})"
    if code in "iu" and kind.code != "u8":
        return f"PyLong_FromLongLong((i64){value.text})"
    raise Stop(f"math of {kind}")


def _answer(name: str) -> Callable[[Block, list[Value]], Value]:
    return lambda b, args: call(b, name, args)


FUNCTIONS = {getattr(math, name): _answer(name) for name in (*_OF_FLOATS, *_OF_INTS) if hasattr(math, name)}
