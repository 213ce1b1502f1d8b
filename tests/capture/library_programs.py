"""Programs of user classes and of the standard library's helpers; see ``programs.Program``."""

# ruff: noqa: B008, B010, B018, C400, C403, C416, C417, C419, F841, UP032
from __future__ import annotations

import abc
import collections.abc
import copy
import dataclasses
import functools
import itertools
import numbers
import operator
from typing import Any

import numpy as np

from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


# -- classes ------------------------------------------------------------------------------------------
class Shape(abc.ABC):
    count = 0

    def __init__(self, size):
        self.size = size
        type(self).count += 1

    @abc.abstractmethod
    def area(self): ...

    def scaled(self, k):
        return type(self)(self.size * k)

    @functools.cached_property
    def slow(self):
        return self.size + 1


class Named:
    label = "named"

    def describe(self):
        return f"{self.label}:{type(self).__name__}"


class Square(Named, Shape):
    def area(self):
        return self.size**2

    def describe(self):
        return "square " + super().describe()


@program(
    lambda: (vec(), Square(2.0)),
    breaks=(
        "unsupported-attribute",
        "unsupported-call",
    ),
)
def abstract_classes_and_mixins(x, s):
    t = s.scaled(3)
    return x * t.area(), s.describe(), isinstance(s, Shape), t.size, [c.__name__ for c in type(s).__mro__][:2]


@program(
    lambda: (vec(), Square(2.0)),
    breaks=(
        "unsupported-attribute",
        "unsupported-call",
    ),
)
def cached_properties(x, s):
    return x + s.slow, s.slow is s.slow, "slow" in vars(s)


@dataclasses.dataclass(frozen=True, order=True)
class Setting:
    a: int
    b: float = 2.0

    @property
    def both(self):
        return self.a + self.b


@program(
    lambda: (vec(), Setting(1)),
    lambda: (vec(), Setting(2)),
    breaks=(
        "loop",
        "unsupported-attribute",
        "unsupported-operation",
        "unsupported-call",
    ),
    plain=True,
)
def frozen_dataclasses(x, s):
    t = dataclasses.replace(s, b=5.0)
    try:
        s.a = 9
    except dataclasses.FrozenInstanceError as error:
        text = str(error)
    return x * s.both + t.b, s == Setting(1), s < t, text, dataclasses.astuple(t)


class Observed:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __setattr__(self, name, value):
        self.log.append(name)
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        return f"no {name}"

    def __delattr__(self, name):
        self.log.append(f"del {name}")
        object.__delattr__(self, name)


@program(lambda: (vec(), Observed()), breaks=("unsupported-attribute",), plain=True)
def attribute_hooks(x, o):
    o.a = x + 1
    o.b = o.a * 2
    del o.a
    return o.b, o.missing, o.log


class Managed:
    @property
    def value(self):
        return self._value * 2

    @value.setter
    def value(self, new):
        self._value = new + 1

    @value.deleter
    def value(self):
        self._value = 0

    def __call__(self, *args, **kwargs):
        return len(args), sorted(kwargs)

    def __matmul__(self, other):
        return "matmul", other

    def __rsub__(self, other):
        return other

    def __lt__(self, other):
        return True

    def __hash__(self):
        return 7

    def __eq__(self, other):
        return other is self

    def __format__(self, spec):
        return f"<{spec}>"

    def __len__(self):
        return 0

    def __reversed__(self):
        return iter([3, 2])

    def __index__(self):
        return 2

    def __float__(self):
        return 1.5


@program(
    lambda: (vec(), Managed()),
    breaks=(
        "data-dependent-value",
        "unsupported-call",
        "unsupported-opcode",
        "unsupported-operation",
    ),
    plain=True,
)
def operators_of_a_class(x, m):
    m.value = x
    y = m.value
    del m.value
    return (
        y,
        m(1, 2, k=3),
        m @ 5,
        5 - m,
        m < 3,
        m == m,
        {m: 1}[m],
        f"{m:abc}",
        bool(m),
        list(reversed(m)),
        [1, 2, 3][m],
        float(m),
        x[m],
    )


@program(
    one,
    breaks=(
        "unsupported-call",
        "class-definition",
    ),
)
def class_made_inside(x):
    y = x + 1

    class Local:
        k = 3

        def run(self, v):
            return v * self.k + len(y)

    return Local().run(x)


# -- the standard library -----------------------------------------------------------------------------
@program(
    one,
    breaks=(
        "loop",
        "opaque-object",
        "unsupported-call",
        "unsupported-operation",
    ),
    plain=True,
)
def itertools_helpers(x):
    a = list(itertools.chain([x], [x + 1]))
    b = list(itertools.product([1, 2], "ab"))
    c = list(itertools.accumulate([1, 2, 3]))
    d = list(itertools.islice(itertools.count(5), 3))
    e = list(itertools.zip_longest([1], [2, 3], fillvalue=0))
    f = [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])]
    g = list(itertools.combinations(range(3), 2))
    for i, j in itertools.pairwise([1, 2, 3]):
        x = x + i * j
    return a, b, c, d, e, f, g, list(itertools.starmap(pow, [(2, 3)])), list(itertools.repeat(x, 2)), x


@program(one, breaks=("unsupported-call",), plain=True)
def operator_helpers(x):
    pair = (x, 2)
    get = operator.itemgetter(1, 0)
    return get(pair), operator.attrgetter("shape")(x), operator.methodcaller("sum")(x), operator.mul(x, 2)


@program(
    one,
    breaks=(
        "data-dependent-value",
        "loop",
        "unsupported-call",
        "unsupported-operation",
        "would-raise",
    ),
    plain=True,
)
def copies(x):
    d = {"x": x, "l": [1, [2]]}
    a, b = copy.copy(d), copy.deepcopy(d)
    return a["x"] is x, b["x"] is x, b["l"] is d["l"], a["l"] is d["l"], b["x"] + 1, copy.copy(x)


@program(
    lambda: (vec(), 3),
    lambda: (vec(), 2.0),
    lambda: (vec(), True),
    lambda: (vec(), np.float64(1)),
    breaks=(
        "data-dependent-value",
        "unsupported-operation",
    ),
)
def abstract_types(x, n):
    return (
        x * n,
        isinstance(n, numbers.Number),
        isinstance(n, numbers.Integral),
        isinstance([x], collections.abc.Sequence),
        isinstance({}, collections.abc.Mapping),
        isinstance(x, collections.abc.Iterable),
        isinstance(n, int | float),
        issubclass(type(n), object),
    )


@functools.singledispatch
def dispatched(v):
    return "object"


@dispatched.register
def _(v: int):
    return "int"


@dispatched.register(np.ndarray)
def _(v):
    return v + 1


@program(
    one,
    breaks=(
        "unsupported-attribute",
        "unsupported-call",
    ),
)
def single_dispatch(x):
    return dispatched(x), dispatched(3), dispatched("s")


@functools.lru_cache
def table_of(n):
    return np.arange(n) * 2.0


@program(one, breaks=("unsupported-call",), plain=True)
def cached_functions(x):
    return x + table_of(5), table_of(5) is table_of(5)


@program(lambda: (vec(), {1: 2.0}), lambda: (vec(), {True: 2.0}), lambda: (vec(), {1.0: 2.0}))
def keys_that_are_equal_but_differ(x, d):
    return x * d[1], list(d), [type(k).__name__ for k in d]


@program(
    lambda: (vec(), (1, 2)),
    lambda: (vec(), [1, 2]),
    lambda: (vec(), range(1, 3)),
    lambda: (vec(), (1.0, True)),
    breaks=("unsupported-operation",),
)
def sequences_that_are_equal_but_differ(x, s):
    total = x
    for v in s:
        total = total + v
    return total, type(s).__name__, [type(v).__name__ for v in s], s == (1, 2)


@program(lambda: (vec(), 2**20), lambda: (vec(), 2**21), lambda: (vec(), 3), lambda: (vec(), -(2**20)))
def products_beyond_64_bits(x, n):
    return x + n**4, n * n * n * n, x * (n * n), (n * n * n * n) // 3 - n


async def coroutine(x):
    return x + 1


@program(
    one,
    breaks=(
        "generator",
        "unsupported-attribute",
    ),
    plain=True,
)
def runs_a_coroutine(x):
    c = coroutine(x * 2)
    try:
        c.send(None)
    except StopIteration as stop:
        return stop.value + 1


@program(
    one,
    breaks=(
        "loop",
        "unsupported-operation",
        "would-raise",
    ),
    plain=True,
)
def iterates_with_a_sentinel(x):
    values = [3, 2, 1]
    return [x + v for v in iter(values.pop, 2)], values


@program(lambda: (vec(), [3, 1, 2], ["b", "a"]))
def sorting(x, numbers_, words):
    numbers_.sort(reverse=True)
    return (
        x + numbers_[0],
        sorted(words, key=lambda w: w * 2),
        sorted([(2, "a"), (1, "b")]),
        max(words, key=ord),
    )


@program(lambda: (vec(), [1, 2, 3]))
def zips_of_unequal_length(x, items):
    a = list(zip(items, "ab"))
    it = iter(items)
    pairs = list(zip(it, it))
    return x + len(a), pairs, list(it), dict(zip("ab", items)), list(zip(*[(1, 2), (3, 4)]))


@program(lambda: (vec(), [1, 2, 3]), breaks=("would-raise",), plain=True)
def strict_zip_raises(x, items):
    y = x + 1
    return list(zip(items, [1], strict=True)), y


@program(one, breaks=("data-dependent-branch",))
def conditional_expressions_on_data(x):
    a = x[0] if x.sum() > 1 else x[1]
    b = float(x.max()) if (x > 0).all() else None
    c = "big" if x.mean() > 100 else "small"
    return a, b, c, x.any() or 3, x.size and 7


@program(
    lambda: (np.arange(6).reshape(2, 3),),
    breaks=(
        "data-dependent-value",
        "unsupported-call",
    ),
)
def item_and_tolist(x):
    y = x * 2
    return (
        y.item(0),
        y.tolist(),
        int(y[0, 1]),
        float(y.sum()),
        list(y[0]),
        y.sum().item(),
        bool(y[0, 0]),
        [*y],
    )


@program(
    one,
    breaks=(
        "unsupported-attribute",
        "unsupported-call",
    ),
)
def numpy_namespaces(x):
    import numpy

    rng = np.random.default_rng(3)
    return numpy.sqrt(x), np.linalg.norm(x), np.fft.rfft(x), rng.random(2), np.pi * x, np.float64(3) + x, np.e
