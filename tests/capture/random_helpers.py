"""What random programs call, and the arguments they are called with."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import dyncomp

Maker = Callable[[], tuple[Any, ...]]


# -- what programs call -------------------------------------------------------------------------------
class Thing:
    """The object that programs write attributes of."""

    def __init__(self, size: int) -> None:
        self.value = np.arange(float(size))
        self.count = 0

    def step(self, x: Any) -> Any:
        self.count += 1
        self.value = x
        return x + self.count

    @property
    def twice(self) -> Any:
        return self.value * 2


def scaled(x: Any, k: Any = 2) -> Any:
    return x * k + 1


def noisy(x: Any, label: Any = "noisy") -> Any:
    y = x + 1
    print(label, type(x).__name__)
    return y * 2


def logged(x: Any, out: list[Any]) -> Any:
    out.append("logged")
    return x - 1


def fails(x: Any, k: int) -> Any:
    y = x + 1
    if k % 2:
        raise ValueError(f"odd {k}")
    return y


def rows(x: Any, k: int) -> Iterator[Any]:
    for i in range(k):
        yield x + i


@contextlib.contextmanager
def tagged(label: str) -> Iterator[str]:
    print("<", label)
    try:
        yield label
    finally:
        print(">", label)


class Quiet:
    """A context manager written as a class; it swallows ``ValueError``."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return kind is ValueError


def deep(x: Any, k: int) -> Any:
    """Recursion, with a break at the bottom."""
    if k <= 0:
        print("bottom")
        return x * 2
    return deep(x + k, k - 1) + 1


def spread(x: Any, *rest: Any, k: int = 1, **named: Any) -> Any:
    for r in rest:
        x = x + r
    return x * k + len(named)


class Stack:
    """Made inside programs."""

    def __init__(self, *items: Any) -> None:
        self.items = list(items)
        self.top = items[-1] if items else None

    def push(self, item: Any) -> Stack:
        self.items.append(item)
        self.top = item
        return self

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: Any) -> Any:
        return self.items[i]

    def __iter__(self) -> Any:
        return iter(self.items)

    def __add__(self, other: Any) -> Any:
        return Stack(*self.items, other)


class Problem(LookupError):
    """An exception of the user's own."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.extra = len(args)


def averages(x: Any) -> Any:
    """A generator that is sent values and returns how many there were."""
    total, count = x, 1
    while count < 5:
        sent = yield total / count
        if sent is not None:
            total = total + sent
        count += 1
    return count


class Base:
    """What local classes inherit from."""

    def scale(self, v: Any, k: Any = 1) -> Any:
        return v * k

    @property
    def factor(self) -> int:
        return 3


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 1
    history: list[Any] = dataclasses.field(default_factory=list)

    def norm(self) -> Any:
        self.history.append(self.y)
        return self.x * self.x + self.y


class Pair(NamedTuple):
    left: Any
    right: Any = 0


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Mixin:
    """Inherited from with or without ``Base``."""

    def half(self, v: Any) -> Any:
        return v / 4


@dyncomp.disable
def opaque(x: Any) -> Any:
    """A break wherever it is called."""
    return x


def deeper(x: Any, k: int) -> Any:
    """Raises through frames of its own, one with a handler that does not apply."""
    try:
        return fails(x, k)
    except KeyError:
        return x


def depth_of(error: BaseException) -> list[tuple[str, int]]:
    """The frames of programs and their helpers in a traceback, as it is now."""
    trace = traceback.walk_tb(error.__traceback__)
    return [(f.f_code.co_name, line) for f, line in trace if "random" in f.f_code.co_filename]


class Limit:
    """A data descriptor."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        return self if obj is None else getattr(obj, self.name, 0)

    def __set__(self, obj: Any, value: Any) -> None:
        setattr(obj, self.name, min(value, 3))


class Described:
    """Descriptors, ``__getattr__``, operators."""

    limit = Limit()

    def __init__(self, x: Any) -> None:
        self.x = x
        self.extra = 1

    @functools.cached_property
    def total(self) -> Any:
        print("total")
        return self.x + 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("missing"):
            return name
        raise AttributeError(name)

    def __len__(self) -> int:
        return 4

    def __add__(self, other: Any) -> Any:
        return Described(self.x + other)

    def __call__(self, k: Any) -> Any:
        return self.x * k

    def __contains__(self, item: Any) -> bool:
        return item == self.limit


HELPERS = {
    "Problem": Problem,
    "averages": averages,
    "Base": Base,
    "Mixin": Mixin,
    "opaque": opaque,
    "deeper": deeper,
    "depth_of": depth_of,
    "Point": Point,
    "Pair": Pair,
    "Colour": Colour,
    "Described": Described,
    "collections": collections,
    "contextlib": contextlib,
    "copy": copy,
    "dataclasses": dataclasses,
    "functools": functools,
    "itertools": itertools,
    "math": math,
    "operator": operator,
    "Thing": Thing,
    "deep": deep,
    "spread": spread,
    "Stack": Stack,
    "np": np,
    "scaled": scaled,
    "noisy": noisy,
    "logged": logged,
    "fails": fails,
    "rows": rows,
    "tagged": tagged,
    "Quiet": Quiet,
}


# -- arguments ----------------------------------------------------------------------------------------
def make_arguments(number: Callable[[int, int], int]) -> Maker:
    """A maker of fresh, equal arguments."""
    size = (5, 5, 5, 4, 1)[number(0, 4)]
    n, m = number(-2, 6), number(-3, 5)
    f = (2.0, 0.5, -1.0)[number(0, 2)]
    alias = ("", "", "", "", "same", "view")[number(0, 5)]

    changes = [(number(0, len(_CHANGES) - 1), number(0, 9)) for _ in range((0, 0, 0, 1, 2)[number(0, 4)])]

    def make() -> tuple[Any, ...]:
        a = np.arange(size) - 1.0
        b = a if alias == "same" else a[::-1] if alias == "view" else np.linspace(0.0, 4.0, size)
        c = np.full(size, 2.0)
        given = [a, b, c, n, m, f, [1, a], {"k": c, 1: b}, Thing(size)]
        for which, how in changes:
            _CHANGES[which](given, how)
        return tuple(given)

    return make


# -- arguments of other kinds, to which the guards of earlier calls must not apply -----------------------
def _other_array(given: list[Any], how: int) -> None:
    a = np.arange(5) - 1.0
    given[how % 3] = [
        a.astype("f4"),
        a.astype("i8"),
        a > 0,
        a[:, None] + a,
        np.asfortranarray(np.ones((2, len(a)))),
        a[::2],
        np.float64(3.0),
        a.tolist(),
        np.broadcast_to(np.float64(1.5), a.shape),
        a.astype(object),
    ][how]


def _other_number(given: list[Any], how: int) -> None:
    given[3 + how % 3] = [2.5, True, np.int64(3), np.float32(0.5), 2**70, None, -0.0, float("nan"), 1j, 7][
        how
    ]


def _other_list(given: list[Any], how: int) -> None:
    given[6] = [
        [],
        [given[0]],
        [given[1], 1],
        (1, 2),
        [1, given[0], 3],
        ["t"],
        [None],
        [[1], 2],
        [given[6]],
        [2.5],
    ][how]


def _other_dict(given: list[Any], how: int) -> None:
    a = given[0]
    given[7] = [
        {},
        {"k": 1},
        {"k": a},
        {"k": given[2], True: given[1]},
        {1.0: a, "k": a},
        {"z": a, "k": a},
        {"k": None},
        {2: a, 0: a, 1: a, "k": given[1]},
        {(1, 2): a},
        {"k": [a]},
    ][how]


def _other_object(given: list[Any], how: int) -> None:
    thing = given[8]
    if how == 0:
        thing.count = 2.5
    elif how == 1:
        thing.value = given[0]
    elif how == 2:
        thing.extra = 3
    elif how == 3:
        thing.step = lambda x: x * 100
    elif how == 4:
        vars(thing).pop("value", None)
    elif how == 5:
        given[8] = OtherThing(3)
    elif how == 6:
        thing.twice_over = 1
    else:
        thing.count = how


class OtherThing(Thing):
    """A subclass that computes other things."""

    def step(self, x: Any) -> Any:
        return super().step(x) * 2

    @property
    def twice(self) -> Any:
        return self.value * 3


_CHANGES = (_other_array, _other_number, _other_list, _other_dict, _other_object)
