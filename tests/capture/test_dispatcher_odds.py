"""Compiled functions wherever functions go: partials, methods, descriptors, inspect, wrong arguments."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import operator
import pickle
import pydoc
import traceback
import typing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dyncomp


def compiled(f):
    return dyncomp.compile(f, backend="eager")


def vec(n=3):
    return np.arange(float(n))


def plain(x: np.ndarray, n: int = 2, /, m: float = 3.0, *, k=1) -> np.ndarray:
    """Some arithmetic."""
    return x * n + m - k


@dyncomp.compile(backend="eager")
def named(x):
    return x + 1


@pytest.mark.parametrize(
    "args, kwargs",
    [
        ((), {}),
        ((1, 2, 3, 4), {}),
        ((1,), {"z": 1}),
        ((1,), {"x": 1}),
        ((1,), {"n": 1}),
        ((1, 2, 3), {"m": 1}),
        ((), {"k": 1}),
        ((1,), {"k": 1, "y": 2, "z": 3}),
    ],
)
@pytest.mark.parametrize("how", ["call", "star", "partial", "method", "map", "thread"])
def test_wrong_arguments(how, args, kwargs):
    class Plain:
        def f(self, n=2, /, m=3.0, *, k=1):
            return m

    class Compiled:
        f = compiled(Plain.f)

    def outcome(function, owner):
        if how == "call" and len(args) == 1 and not kwargs:
            call = lambda: function(args[0])  # noqa: E731
        elif how == "partial":
            call = functools.partial(functools.partial(function, *args), **kwargs)
        elif how == "method":
            call = functools.partial(owner().f, *args, **kwargs)
        elif how == "map":
            call = lambda: list(map(functools.partial(function, **kwargs), *([a] for a in args)))  # noqa: E731
        elif how == "thread":
            with ThreadPoolExecutor(1) as pool:
                call = pool.submit(function, *args, **kwargs).result
        else:
            call = functools.partial(operator.call, function, *args, **kwargs)
        try:
            return call()
        except TypeError as error:
            names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
            return str(error), names[-1] == "plain"

    made = compiled(plain)
    for _ in range(2):
        expected = outcome(plain, Plain)
        assert outcome(made, Compiled) == expected


def test_descriptors():
    class A:
        scale = 2.0

        @compiled
        def method(self, x):
            return x * self.scale

        @staticmethod
        @compiled
        def static(x):
            return x + 1

        @compiled
        @staticmethod
        def static_inside(x):
            return x + 2

        @classmethod
        @compiled
        def of_class(cls, x):
            return x * cls.scale

        @property
        @compiled
        def value(self):
            return vec() * self.scale

        @functools.cached_property
        @compiled
        def once(self):
            return vec() + self.scale

        part = functools.partialmethod(method, vec(2))

        @compiled
        def __call__(self, x):
            return x - self.scale

        @compiled
        def __add__(self, x):
            return x + self.scale

        @compiled
        def __getattr__(self, name):
            if name == "made":
                return vec() * 5
            raise AttributeError(name)

        @compiled
        def __eq__(self, other):
            return self is other

        __hash__ = None

    class B(A):
        scale = 3.0

        @compiled
        def method(self, x):
            return super().method(x) + 1

    for cls, by in ((A, 2.0), (B, 3.0), (A, 2.0)):
        a = cls()
        more = 1 if cls is B else 0
        assert np.array_equal(a.method(vec()), vec() * by + more)
        assert np.array_equal(cls.method(a, vec()), vec() * by + more)
        assert np.array_equal(a.static(vec()), vec() + 1) and np.array_equal(cls.static(vec()), vec() + 1)
        assert np.array_equal(a.static_inside(vec()), vec() + 2)
        assert np.array_equal(a.of_class(vec()), vec() * by)
        assert np.array_equal(a.value, vec() * by)
        assert a.once is a.once
        assert np.array_equal(a.part(), vec(2) * by)
        assert np.array_equal(a(vec()), vec() - by)
        assert np.array_equal(a + vec(), vec() + by)
        assert np.array_equal(a.made, vec() * 5)
        assert (a == a) is True and (a == cls()) is False
        with pytest.raises(AttributeError, match="^missing$"):
            a.missing  # noqa: B018
    assert A.__dict__["method"].__get__(None, A) is A.__dict__["method"]
    assert A().method.__func__ is A.__dict__["method"]


def test_set_name_is_not_called_on_functions():
    class A:
        f = compiled(lambda self: 1)

    assert A().f() == 1 and not hasattr(A.__dict__["f"], "__set_name__")


def test_inspect():
    made = compiled(plain)
    assert inspect.signature(made) == inspect.signature(plain)
    assert inspect.getfullargspec(made) == inspect.getfullargspec(plain)
    assert inspect.getsource(made) == inspect.getsource(plain)
    assert inspect.getdoc(made) == "Some arithmetic."
    assert inspect.getmodule(made) is inspect.getmodule(plain)
    assert typing.get_type_hints(made) == typing.get_type_hints(plain)
    assert callable(made) and inspect.isroutine(made)
    assert "Some arithmetic." in pydoc.render_doc(made)

    async def coroutine():
        return 1

    def generator():
        yield 1

    async def both():
        yield 1

    for f in (coroutine, generator, both, plain):
        for ask in (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
            asyncio.iscoroutinefunction,
        ):
            assert ask(compiled(f)) == ask(f)


def test_wrapping_and_copying():
    made = compiled(plain)

    @functools.wraps(made)
    def outer(*args, **kwargs):
        return made(*args, **kwargs)

    assert outer.__wrapped__ is made and outer.__name__ == "plain"
    assert np.array_equal(outer(vec()), plain(vec()))
    assert copy.copy(made) is made and copy.deepcopy(made) is made
    assert pickle.loads(pickle.dumps(named)) is named
    assert pickle.loads(pickle.dumps(functools.partial(named, vec()))).func is named
    assert {made: 1}[made] == 1 and made != compiled(plain)


def test_singledispatch_and_caches():
    @functools.singledispatch
    def show(x):
        return "object"

    @show.register
    @compiled
    def _(x: np.ndarray):
        return x + 1

    assert np.array_equal(show(vec()), vec() + 1) and show(1) == "object"
    calls = []

    @functools.lru_cache
    @compiled
    def cached(n):
        calls.append(n)
        return vec(n) * 2

    assert cached(3) is cached(3) and calls == [3]


def test_keywords_by_vectorcall_and_dict():
    made = compiled(plain)
    x, rest = vec(), {"m": 5.0}
    for _ in range(2):
        assert np.array_equal(made(x, 4, k=2, m=1.0), plain(x, 4, k=2, m=1.0))
        assert np.array_equal(made(*(x, 4), **rest), plain(x, 4, m=5.0))
        assert np.array_equal(operator.call(made, x, m=2.0), plain(x, m=2.0))
        assert np.array_equal(made.__call__(x, m=2.0), plain(x, m=2.0))


class Name(str):
    """A key that is not exactly a str."""


def test_odd_keywords():
    def f(x, **rest):
        return x + len(rest), sorted(rest), [type(name) for name in rest]

    made = compiled(f)
    for _ in range(2):
        for rest in ({"a b": 1}, {Name("y"): 1}, {"self": 1, "func": 2}, {"x ": 0}):
            expected, found = f(vec(), **rest), made(vec(), **rest)
            assert np.array_equal(found[0], expected[0]) and found[1:] == expected[1:]
    with pytest.raises(TypeError, match="keywords must be strings"):
        made(vec(), **{1: 2})
    with pytest.raises(TypeError, match="multiple values for argument 'x'"):
        made(vec(), **{Name("x"): 1})
