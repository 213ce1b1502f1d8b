"""Small programs of ``match`` statements; see ``programs.Program``."""

from __future__ import annotations

import collections
import dataclasses
import enum
from typing import Any, NamedTuple

import numpy as np

from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Limits:
    low = 3
    high = 7


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 0


class Spot(NamedTuple):
    row: Any
    column: Any


class Named:
    __match_args__ = ("first", "second")

    def __init__(self, first, second):
        self.first = first
        self.second = second


class NoArgs:
    def __init__(self, value):
        self.value = value


def _literals():
    return [lambda v=v: (vec(), v) for v in (1, 2, "add", "none", None, True, 2.5, -1, (1,), b"x")]


@program(*_literals(), breaks=("data-dependent-branch",))
def literals(x, v):
    match v:
        case True:
            return x + 100
        case 1:
            return x + 1
        case "add" | "plus":
            return x + 2
        case None:
            return x + 3
        case 2.5:
            return x + 4
        case -1:
            return x + 5
        case b"x":
            return x + 6
        case 2 as two:
            return x * two
        case _:
            return x - 1


@program(
    *[
        lambda v=v: (vec(), v)
        for v in (
            [],
            [1],
            [1, 2],
            [1, 2, 3],
            (1, [2, 3]),
            "ab",
            b"ab",
            {1: 2},
            5,
            range(2),
            (),
            bytearray(b"x"),
        )
    ],
    lambda: (vec(), collections.deque([1, 2])),
)
def sequences(x, v):
    match v:
        case []:
            return x, "empty"
        case [a]:
            return x + a, "one"
        case [a, [b, c]]:
            return x + a + b + c, "nested"
        case [a, b]:
            return x + a * b, "two"
        case [first, *rest]:
            return x + first, rest
        case _:
            return x, "other"


@program(*[lambda v=v: (vec(), v) for v in ([1, 2, 3, 4], [1, 4], [2, 4], (1, 9, 4))])
def stars(x, v):
    match v:
        case [1, *middle, 4]:
            return x + 1, middle
        case [*start, 4]:
            return x + 2, start
        case [_, *_]:
            return x + 3, None


@program(
    *[
        lambda v=v: (vec(), v)
        for v in (
            {"op": "scale", "k": 3},
            {"op": "shift", "k": 2, "extra": 1},
            {"op": "none"},
            {},
            {"k": [1, 2]},
            3,
        )
    ]
)
def mappings(x, v):
    match v:
        case {"op": "scale", "k": k}:
            return x * k
        case {"op": "shift", "k": k, **rest}:
            return x + k, rest
        case {"k": [a, b]}:
            return x + a + b
        case {"op": name}:
            return x, name
        case {}:
            return x, "mapping"
        case _:
            return x, "other"


@program(lambda: (vec(), {"a": vec(3), "b": {"c": [vec(3), 2]}}))
def nested_patterns(x, v):
    match v:
        case {"a": a, "b": {"c": [b, int(k)]}}:
            return x.sum() + a + b * k
    return None


@program(
    *[
        lambda v=v: (vec(), v)
        for v in (
            Point(1, 2),
            Point(0),
            Spot(1, 2),
            Named(3, 4),
            NoArgs(5),
            Color.RED,
            Color.GREEN,
            3,
            7,
            8,
            "s",
            2.5,
        )
    ],
    breaks=("unsupported-operation",),
)
def classes(x, v):
    match v:
        case Point(0, 0):
            return x
        case Point(x=a, y=b):
            return x + a * b
        case Spot(row, column=c):
            return x + row - c
        case Named(3, second):
            return x * second
        case NoArgs(value=w):
            return x * w
        case Color.RED:
            return x + 10
        case Color():
            return x + 20
        case Limits.low | Limits.high:
            return x + 30
        case int(n) if n > 7:
            return x + n
        case str() | float():
            return x, v


@program(
    *[
        lambda v=v: (vec(), v)
        for v in (1, 1.5, "s", b"b", [1], (1,), {"a": 1}, True, {1}, frozenset((1,)), None)
    ]
)
def builtin_classes(x, v):
    match v:
        case bool(b):
            return x, "bool", b
        case int(i):
            return x + i, "int"
        case float(f):
            return x + f, "float"
        case str(s):
            return x, "str", s
        case bytes(s):
            return x, "bytes", s
        case list([a]):
            return x + a, "list"
        case tuple((a,)):
            return x + a, "tuple"
        case dict({"a": a}):
            return x + a, "dict"
        case set() | frozenset():
            return x, "set"
        case other:
            return x, other


@program(lambda: (vec(), [vec(3), vec(4)]), lambda: (vec(), (vec(3), 2)))
def arrays_inside(x, v):
    match v:
        case [np.ndarray() as a, np.ndarray(shape=(4,)) as b]:
            return x.sum() + a.sum() + b
        case [np.ndarray() as a, int(k)]:
            return a * k + x.sum()


@program(one)
def array_as_subject(x):
    match x:
        case [a, b]:
            return a + b
        case {"a": a}:
            return a
        case np.ndarray(ndim=1) as y:
            return y * 2


@program(lambda: (np.array(2.0),), lambda: (np.array(3.0),), breaks=("data-dependent-branch",))
def array_against_a_number(x):
    match x:
        case 2.0:
            return x + 1
        case _:
            return x - 1


@program(lambda: (vec(), Named(1, 2)), lambda: (vec(), Named(2, 2)))
def guards(x, v):
    match v:
        case Named(a, b) if a == b:
            return x * a
        case Named(a, b) if a < b:
            y = x + a
            return y * b


@program(lambda: (vec(), NoArgs(1)), breaks=("would-raise",))
def no_match_args(x, v):
    y = x + 1
    try:
        match v:
            case NoArgs(a):
                return a
    except TypeError as e:
        return y, str(e)


@program(lambda: (vec(), "go north"), lambda: (vec(), "stop"), lambda: (vec(), "go a b"))
def commands(x, text):
    match text.split():
        case ["go", ("north" | "south") as where]:
            return x + 1, where
        case ["stop"]:
            return x - 1
        case [_, *args]:
            return x, args


class Dynamic:
    __match_args__ = ("doubled",)

    def __init__(self, x):
        self.x = x

    @property
    def doubled(self):
        return self.x * 2


@program(lambda: (Dynamic(vec()),))
def property_pattern(o):
    match o:
        case Dynamic(doubled=d, missing=m):
            return d, m
        case Dynamic(d):
            return d + 1


@program(lambda: (vec(), collections.OrderedDict(a=1)), lambda: (vec(), collections.defaultdict(int, a=2)))
def other_mappings(x, v):
    match v:
        case {"b": b}:
            return b
        case {"a": a}:
            return x + a, len(v)


@program(one)
def made_here(x):
    total = 0
    for item in (Point(x, 1), Spot(x, 2), [x, x], {"x": x}, 3, None):
        match item:
            case Point(p, k) | Spot(p, k):
                total = total + p * k
            case [a, b]:
                total = total + a + b
            case {"x": a}:
                total = total + a
            case int():
                total = total + item
            case None:
                total = total * 2
    return total
