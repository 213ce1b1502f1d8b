"""Small programs, one or a few constructs of Python each, with the arguments they are called with.

Not a test module: pytest does not rewrite the asserts in it.
"""

# ruff: noqa: B006, B007, B009, B010, B023, B904, C403, C405, C408, C416, C417, C419, E731, F601, F841, RET505, RET503, SIM105, SIM108, UP031, UP032
from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Maker = Callable[[], tuple[Any, ...]]


@dataclass(frozen=True)
class Program:
    """``breaks``: the ids of the graph breaks that capturing it may take; ``plain``: whether frames may be
    left to plain Python."""

    function: Callable[..., Any]
    makers: tuple[Maker, ...]
    breaks: tuple[str, ...] = ()
    plain: bool = False

    @property
    def name(self) -> str:
        return self.function.__name__


PROGRAMS: list[Program] = []


def program(*makers: Maker, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


def vec(n: int = 5, start: float = 0.5) -> np.ndarray:
    return np.linspace(start, start + 2.0, n)


def one() -> tuple[Any, ...]:
    return (vec(),)


# -- calling conventions ------------------------------------------------------------------------------
def everything(a, b=2, /, c=3, *args, d, e=5, **kwargs):
    return a * b + c + sum(args) + d * e + sum(kwargs.values()) + len(kwargs)


@program(one)
def call_forms(x):
    parts = {"d": 1, "z": 9}
    return (
        everything(x, d=1),
        everything(x, 7, d=1),
        everything(x, 7, 8, 9, 10, d=1, e=2, f=3),
        everything(*(x, 2), c=4, **parts),
        everything(x, *[1, 2], **{**parts, "e": 0}),
    )


@program(lambda: (vec(), 2.0), lambda: (vec(), 3.0), lambda: (vec(), 3))
def positional_only(x, k, /, *, scale=2):
    return x * k + scale


@program(lambda: (vec(), 1, 2, 3), lambda: (vec(),))
def variadic(x, *rest):
    for r in rest:
        x = x + r
    return x, rest


def with_keyword_default(x, *, table={"k": 3}, power=2):
    return x**power * table["k"]


@program(one)
def keyword_defaults(x):
    return with_keyword_default(x) + with_keyword_default(x, power=3, table={"k": 1})


def remembers(x, seen=[]):
    seen.append(len(seen))
    return x + len(seen), list(seen)


@program(lambda: (vec(), []))
def mutable_default_of_a_local(x, out):
    def keep(v, seen=[]):
        seen.append(float(v.shape[0]))
        return seen

    keep(x)
    out.append(len(keep(x)))
    return x + len(keep(x))


@program(lambda: (vec(), "a"), lambda: (vec(), "b"), breaks=("would-raise",))
def wrong_call(x, how):
    y = x + 1
    if how == "a":
        return everything(y)
    return everything(y, d=1, a=3)


@program(one)
def lambdas_and_partials(x):
    add = lambda v, k=1: v + k
    twice = functools.partial(operator.mul, 2)
    again = functools.partial(add, k=3)
    return add(x), twice(x), again(x), functools.reduce(lambda a, b: a + b, [x, x, x])


# -- closures -----------------------------------------------------------------------------------------
@program(one)
def counter_with_nonlocal(x):
    count = 0

    def step(v):
        nonlocal count
        count += 1
        return v * count

    a = step(x)
    b = step(x)
    return a, b, count


@program(one)
def closure_sees_later_value(x):
    k = 1

    def f(v):
        return v + k

    first = f(x)
    k = 10
    return first, f(x)


@program(one)
def nested_three_deep(x):
    a = 2

    def outer(v):
        b = 3

        def inner(w):
            nonlocal a
            a += 1
            return w * a + b

        return inner(v) + inner(v)

    y = outer(x)
    return y, a


def adder(k):
    def add(v):
        return v + k

    return add


@program(one)
def closure_factory(x):
    fs = [adder(i) for i in range(3)]
    return [f(x) for f in fs]


@program(one)
def late_binding(x):
    fs = [lambda v: v + i for i in range(3)]
    return [f(x) for f in fs]


def make_outer_counter() -> Any:
    state = 0

    def bump(x):
        nonlocal state
        state += 1
        return x + state, state

    return bump


SCALE = 3.0
COUNT = 0


@program(one)
def global_read_and_write(x):
    global COUNT
    before = COUNT
    COUNT = before + 1
    y = x * SCALE + (COUNT - before)
    COUNT = before
    return y


# -- objects ------------------------------------------------------------------------------------------
class Layer:
    scale = 2.0
    made = 0

    def __init__(self, weight: Any, bias: float = 0.5) -> None:
        self.weight = weight
        self.bias = bias
        self.calls: list[int] = []

    def __call__(self, x: Any) -> Any:
        self.calls.append(len(self.calls))
        return x * self.weight + self.bias

    @property
    def total(self) -> float:
        return self.weight.sum()

    @total.setter
    def total(self, value: float) -> None:
        self.weight = self.weight * (value / self.weight.sum())

    @staticmethod
    def double(x: Any) -> Any:
        return x * 2

    @classmethod
    def named(cls, x: Any) -> Any:
        return cls.__name__, x * cls.scale

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: Any) -> Any:
        return self.weight[i]

    def __add__(self, other: Any) -> Any:
        return Layer(self.weight + other, self.bias)

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __iadd__(self, other: Any) -> Any:
        self.weight += other
        return self

    def __contains__(self, item: Any) -> bool:
        return item == 1

    def __iter__(self) -> Any:
        return iter([1, 2, 3])

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layer)

    def __neg__(self) -> Any:
        return -self.weight


class Deep(Layer):
    scale = 5.0

    def __init__(self, weight: Any) -> None:
        super().__init__(weight, bias=1.0)
        self.extra = weight + 1

    def __call__(self, x: Any) -> Any:
        return super().__call__(x) + self.extra


def layer() -> tuple[Any, ...]:
    return (Layer(vec()), vec())


@program(layer, lambda: (Deep(vec()), vec()))
def call_of_an_object(f, x):
    return f(f(x))


@program(layer)
def properties(f, x):
    before = f.total
    f.total = 10.0
    return before, f.total, x + f.total


@program(layer)
def attribute_writes(f, x):
    f.last = x
    f.bias = f.bias + 1
    f.weight[1:] = 7
    f.new = {"x": x * 2}
    return f.last + f.bias


@program(layer)
def same_object_twice(f, x):
    g = f
    g.bias = 4.0
    return f.bias + x, f is g


@program(layer)
def static_and_class_methods(f, x):
    return f.double(x), f.named(x), Layer.double(x), Deep.named(x), type(f).scale


@program(
    layer,
    breaks=(
        "unsupported-call",
        "unsupported-operation",
    ),
)
def dunder_methods(f, x):
    a = (f + x).weight
    b = (x.sum() * 0 + 1, len(f), f[2], 1 in f, 2 in f, bool(f), f == f, f != 3)
    f += 1
    return a, b, -f, list(f)


@program(one)
def makes_objects(x):
    f = Deep(x)
    y = f(x)
    return y, f


@program(layer)
def getattr_and_setattr(f, x):
    f.bias = f.bias * 2
    return x * getattr(f, "missing", 3) + f.bias, hasattr(f, "weight"), hasattr(f, "nothing")


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 2.0
    tags: list[str] = dataclasses.field(default_factory=list)

    def norm(self) -> Any:
        return (self.x**2 + self.y**2) ** 0.5


@program(lambda: (Point(vec()),), lambda: (Point(vec(), 3.0),))
def dataclass_argument(p):
    p.tags.append("seen")
    p.y = p.y + 1
    return p.norm()


@program(one)
def dataclass_made(x):
    p = Point(x, x + 1)
    p.tags.append("new")
    return p.norm(), p


class Pair(NamedTuple):
    a: Any
    b: Any = 4

    def both(self) -> Any:
        return self.a + self.b


@program(one, lambda: (Pair(vec(), 1),), breaks=("unsupported-call",))
def named_tuples(x):
    p = Pair(x) if isinstance(x, np.ndarray) else x
    a, b = p
    return p.both(), a * b, p._replace(b=9), p[0], len(p)


class Mode(enum.Enum):
    UP = 1
    DOWN = 2


@program(lambda: (vec(), Mode.UP), lambda: (vec(), Mode.DOWN))
def enums(x, mode):
    if mode is Mode.UP:
        return x + mode.value
    return x - 1 if mode == Mode.DOWN else x


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@program(one)
def slots(x):
    s = Slotted(x)
    s.b = s.a * 2
    return s.a + s.b


# -- generators ---------------------------------------------------------------------------------------
def scaled(x, n):
    for i in range(n):
        yield x * i


def chained(x):
    yield x
    yield from scaled(x, 2)


@program(
    one,
    breaks=(
        "generator",
        "loop",
    ),
)
def generators(x):
    total = 0
    for y in scaled(x, 3):
        total = total + y
    return total, list(chained(x)), sum(scaled(x, 2)), next(scaled(x, 1))


@program(one, breaks=("loop",), plain=True)
def generator_closed_early(x):
    found = None
    for y in scaled(x, 5):
        found = y
        if y is not x:
            break
    return found


# -- recursion ----------------------------------------------------------------------------------------
def power(x, n):
    return x if n == 0 else power(x, n - 1) * 2


@program(lambda: (vec(), 2))
def shallow_recursion(x, n):
    return power(x, n)


@program(lambda: (vec(), 12), breaks=("inline-refused",))
def deep_recursion(x, n):
    return power(x + 1, n) + 1


# -- collections ---------------------------------------------------------------------------------------
@program(lambda: (vec(), collections.OrderedDict(a=1.0, b=2.0)), breaks=("unsupported-operation",))
def ordered_dict(x, d):
    return x * d["a"] + d["b"]


@program(
    one,
    breaks=(
        "unsupported-call",
        "unsupported-operation",
    ),
)
def default_dict(x):
    d = collections.defaultdict(list)
    d["a"].append(x.shape[0])
    return x + d["a"][0], dict(d)


@program(one)
def deque_of_arrays(x):
    q = collections.deque(maxlen=2)
    for i in range(4):
        q.append(x + i)
    return list(q), len(q)
