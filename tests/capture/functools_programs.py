"""Small programs of ``functools`` and ``operator``; see ``programs.Program``."""

# ruff: noqa: B019
from __future__ import annotations

import functools
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


def combine(a, b=1, *rest, scale=1, **kw):
    return (a + b) * scale + len(rest) + len(kw)


@program(one)
def partials(x):
    p = functools.partial(combine, x, scale=2)
    q = functools.partial(p, 3, scale=4, z=1)
    return p(), p(2), q(), q(5, scale=1), q.args, q.keywords, q.func is combine, p


@program(lambda: (functools.partial(combine, 1, scale=3), vec()))
def partial_argument(p, x):
    return p(x), functools.partial(p, x)(), p.args[0] + x, p.keywords["scale"]


class Host:
    def __init__(self, k):
        self.k = k

    def scale(self, x, power=1):
        return x * self.k**power

    square = functools.partialmethod(scale, power=2)


@program(lambda: (Host(3), vec()))
def partial_method(h, x):
    return h.square(x), Host(2).square(x)


calls = []


@functools.cache
def cached(n):
    calls.append(n)
    return n * 2


@functools.cache
def cached_array(n):
    return np.arange(float(n))


@functools.lru_cache(maxsize=2)
def cached_small(n, k=1):
    return n + k


@program(one, breaks=("unsupported-call",))
def lru_cache(x):
    cached.cache_clear()
    calls.clear()
    y = x + cached(3) + cached(3)
    info = cached.cache_info()
    return y, calls.copy(), info.hits, info.misses, info.currsize


@program(one, breaks=("unsupported-call",), plain=True)
def lru_cache_of_arrays(x):
    a = cached_array(5)
    b = cached_array(5)
    return x + a, a is b


@program(one, breaks=("unsupported-call",))
def lru_cache_evicts(x):
    cached_small.cache_clear()
    total = cached_small(1) + cached_small(2) + cached_small(3) + cached_small(1, k=2)
    info = cached_small.cache_info()
    return x * total, tuple(info)


class WithCachedMethod:
    def __init__(self, k):
        self.k = k

    @functools.lru_cache(maxsize=8)
    def factor(self, n):
        return self.k * n


@program(lambda: (WithCachedMethod(2), vec()), breaks=("unsupported-call",))
def cached_method(o, x):
    return x * o.factor(3) + o.factor(3), o.factor.__name__


def logged(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        wrapper.count += 1
        return f(*args, **kwargs)

    wrapper.count = 0
    return wrapper


@logged
def logged_double(x):
    """Doubles."""
    return x * 2


@program(one)
def wrapped_functions(x):
    logged_double.count = 0
    y = logged_double(x) + logged_double(x + 1)
    return y, logged_double.__name__, logged_double.__doc__, logged_double.count, logged_double.__wrapped__(x)


@program(one)
def wraps_in_the_frame(x):
    def plain(v):
        "Plain."
        return v + 1

    @functools.wraps(plain)
    def wrapper(v):
        return plain(v) * 2

    return wrapper(x), wrapper.__name__, wrapper.__doc__, wrapper.__wrapped__ is plain


@functools.singledispatch
def kind_of(v, x):
    return x, "object"


@kind_of.register
def _(v: int, x):
    return x + v, "int"


@kind_of.register(str)
def _(v, x):
    return x, "str", v


@kind_of.register(np.ndarray)
def _(v, x):
    return x + v, "array"


@program(*[lambda v=v: (vec(), v) for v in (1, "s", 2.5, True, vec())])
def single_dispatch(x, v):
    return kind_of(v, x)


class Dispatching:
    @functools.singledispatchmethod
    def apply(self, v):
        return "object"

    @apply.register
    def _(self, v: int):
        return v + 1

    @apply.register
    def _(self, v: np.ndarray):
        return v * 2


@program(
    lambda: (Dispatching(), vec()),
    breaks=(
        "unsupported-attribute",
        "unsupported-call",
    ),
    plain=True,
)
def single_dispatch_method(d, x):
    return d.apply(x), d.apply(1), d.apply("s")


@program(one)
def reductions(x):
    total = functools.reduce(lambda a, b: a + b, [x, x + 1, 2])
    product = functools.reduce(operator.mul, (1, 2, 3), x)
    return total, product, functools.reduce(max, [3, 1, 2])


@program(one, breaks=("unsupported-call",))
def compared_by_cmp(x):
    key = functools.cmp_to_key(lambda a, b: (a < b) - (a > b))
    return x + 1, sorted([1, 3, 2], key=key)


class Thing:
    def __init__(self, name, v):
        self.name = name
        self.v = v
        self.inner = self

    def get(self, k, d=0):
        return self.v * k + d


@program(one)
def getters(x):
    t = Thing("n", x)
    name_of = operator.attrgetter("name")
    both = operator.attrgetter("name", "inner.v")
    first = operator.itemgetter(0)
    some = operator.itemgetter(0, 2)
    call = operator.methodcaller("get", 2, d=1)
    return name_of(t), both(t), first([x, 1]), some((x, 1, 2)), call(t), operator.itemgetter("k")({"k": x})


@program(
    lambda: (operator.itemgetter(1), operator.attrgetter("T"), operator.methodcaller("sum", axis=0), vec(6))
)
def getters_from_outside(first, transposed, total, x):
    y = x.reshape(2, 3)
    return first([1, x]), transposed(y) + 1, total(y)


@program(one)
def sorted_by_getters(x):
    things = [Thing("b", x), Thing("a", x + 1)]
    ordered = sorted(things, key=operator.attrgetter("name"))
    return ordered[0].v, max([(1, "b"), (2, "a")], key=operator.itemgetter(1))


@program(one)
def operator_functions(x):
    items = [1, 2, 3]
    operator.setitem(items, 0, 5)
    operator.delitem(items, 1)
    return (
        operator.add(x, 1),
        operator.contains(items, 3),
        operator.truth(items),
        operator.not_(items),
        operator.is_(x, x),
        operator.concat([1], [2]),
        operator.length_hint([1, 2]),
        operator.countOf([1, 1, 2], 1),
        operator.indexOf([1, 2], 2),
        operator.call(combine, x),
        items,
    )
