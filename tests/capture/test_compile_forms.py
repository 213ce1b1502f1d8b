"""What can be compiled and how it then looks: descriptors, pickles, copies; bad input."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import logging
import pickle
import pydoc
import weakref

import numpy as np
import pytest

import dyncomp
from tests.capture.programs import vec

eager = functools.partial(dyncomp.compile, backend="eager")


def scale(x, k=2.0, *, shift=1.0):
    """Scale and shift."""
    return x * k + shift


renamed = dyncomp.compile(scale, backend="eager", dynamic=True, options={"recompile_limit": 3})


@eager
def decorated(x):
    return x + 1


class Model:
    def __init__(self):
        self.w = 3.0
        self.log = []

    @eager
    @staticmethod
    def static_inside(x):
        return x + 1

    @staticmethod
    @eager
    def static_outside(x):
        return x + 1

    @eager
    @classmethod
    def class_inside(cls, x):
        return cls.__name__, x + 1

    @classmethod
    @eager
    def class_outside(cls, x):
        return cls.__name__, x + 1

    @property
    @eager
    def getter(self):
        return np.ones(3) * self.w

    @getter.setter
    @eager
    def getter(self, value):
        self.w = value * 2

    @eager
    @property
    def whole_property(self):
        """A property."""
        return np.ones(3) * self.w

    @functools.cached_property
    @eager
    def cached(self):
        self.log.append("made")
        return np.ones(2) * self.w

    @eager
    @functools.lru_cache  # noqa: B019
    def remembered(self, n):
        return n + self.w

    @eager
    def method(self, x):
        return x * self.w


class Adds:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x + self.k


class Inherits(Model):
    def method(self, x):
        return super().method(x) + 1


class InheritsCompiled(Model):
    @eager
    def method(self, x):
        return super().method(x) + 1


@pytest.mark.parametrize("name", ["static_inside", "static_outside", "class_inside", "class_outside"])
@pytest.mark.parametrize("owner", [Model, Model()])
def test_static_and_class_methods_in_both_orders(name, owner):
    result = getattr(owner, name)(vec())
    if name.startswith("class"):
        assert result[0] == "Model"
        result = result[1]
    assert np.array_equal(result, vec() + 1)


def test_properties():
    model = Model()
    assert np.array_equal(model.getter, np.full(3, 3.0))
    assert np.array_equal(model.whole_property, np.full(3, 3.0))
    assert Model.whole_property.__doc__ == "A property."
    model.getter = 4.0
    assert model.w == 8.0
    assert np.array_equal(model.cached, np.full(2, 8.0))
    assert model.cached is model.cached and model.log == ["made"]
    assert model.remembered(2) == 10.0


def test_inheritance():
    assert np.array_equal(Inherits().method(vec()), vec() * 3 + 1)
    assert np.array_equal(InheritsCompiled().method(vec()), vec() * 3 + 1)


def test_generators_and_coroutines():
    def pairs(x):
        yield x + 1
        yield x * 2

    async def later(x):
        return x + 1

    async def stream(x):
        yield x + 1

    async def collect():
        return [y async for y in eager(stream)(vec())]

    assert all(np.array_equal(a, b) for a, b in zip(eager(pairs)(vec()), pairs(vec())))
    assert np.array_equal(asyncio.run(eager(later)(vec())), vec() + 1)
    assert np.array_equal(asyncio.run(collect())[0], vec() + 1)
    assert inspect.iscoroutinefunction(eager(later)) and inspect.isgeneratorfunction(eager(pairs))


def test_it_looks_like_the_function():
    assert inspect.signature(renamed) == inspect.signature(scale)
    assert inspect.getsource(renamed) == inspect.getsource(scale)
    assert inspect.unwrap(renamed) is scale
    assert renamed.__defaults__ == (2.0,) and renamed.__kwdefaults__ == {"shift": 1.0}
    assert renamed.__code__ is scale.__code__
    assert "Scale and shift." in pydoc.render_doc(renamed)
    assert functools.wraps(renamed)(lambda: 0).__name__ == "scale"
    assert weakref.ref(renamed)() is renamed
    assert renamed == renamed and renamed != scale and len({renamed, decorated, renamed}) == 2


def test_pickles_and_copies():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    again = pickle.loads(pickle.dumps(renamed))
    assert again is not renamed
    assert np.array_equal(again(vec(), 3.0), scale(vec(), 3.0))
    assert again.config.options == renamed.config.options
    assert copy.copy(renamed) is renamed and copy.deepcopy([renamed])[0] is renamed
    model = pickle.loads(pickle.dumps(Model()))
    assert np.array_equal(model.method(vec()), vec() * 3)
    assert np.array_equal(pickle.loads(pickle.dumps(model.method))(vec()), vec() * 3)
    model.own = eager(model.method)
    assert np.array_equal(copy.deepcopy(model).own(vec()), vec() * 3)
    compiled = eager(Adds(2.0))
    for other in (copy.copy(compiled), copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert np.array_equal(other(vec()), vec() + 2)
        other.k = 5.0
        assert np.array_equal(other(vec()), vec() + 5) and compiled.k == 2.0


# -- bad input -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"options": {"nope": 1}}, ValueError, "unknown option 'nope'.*unroll_limit"),
        ({"options": [("cache", False)]}, TypeError, "options must be a mapping"),
        ({"options": {"unroll_limit": "8"}}, TypeError, "unroll_limit must be an integer"),
        ({"options": {"cache": 1}}, TypeError, "cache must be True or False"),
        ({"options": {"recompile_limit": -1}}, ValueError, "recompile_limit must not be negative"),
        ({"backend": "nope"}, ValueError, "unknown backend 'nope'; known: eager"),
        ({"backend": 3}, TypeError, "backend must be a name or a callable"),
        ({"dynamic": "yes"}, TypeError, "dynamic must be None, True, False or a mapping"),
        ({"fullgraph": "no"}, TypeError, "fullgraph must be True or False"),
        ({"mode": None}, ValueError, "unknown mode None"),
        ({"options": {"mode": "slow"}}, ValueError, "unknown mode 'slow'; known: default"),
        ({"options": {"num_threads": 257}}, ValueError, "num_threads must be at most 256"),
        ({"options": {"tuning_seconds": float("nan")}}, ValueError, "tuning_seconds must not be negative"),
        ({"options": {"dump": "a\0b"}}, ValueError, "dump must be the name of a directory"),
        ({"options": {"dump": None}}, TypeError, "dump must be a string"),
    ],
)
def test_wrong_settings(settings, error, text):
    with pytest.raises(error, match=text):
        dyncomp.compile(scale, **settings)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("NUM_THREADS", "two", "DYNCOMP_NUM_THREADS must be an integer, not 'two'"),
        ("TUNING_SECONDS", "long", "DYNCOMP_TUNING_SECONDS must be a number, not 'long'"),
        ("UNROLL_LIMIT", "-1", "unroll_limit must not be negative"),
        ("TIER", "none", "tier must be one of"),
    ],
)
def test_wrong_environment(name, text, message, monkeypatch):
    monkeypatch.setenv(f"DYNCOMP_{name}", text)
    with pytest.raises(ValueError, match=message):
        dyncomp.compile(scale)


def test_what_cannot_be_compiled():
    for wrong in (3, "text", None, Model):
        with pytest.raises(TypeError, match="cannot compile"):
            eager()(wrong)


def raises(graph, examples):
    raise RuntimeError("boom")


def returns_no_callable(graph, examples):
    return 3


def gives_too_many(graph, examples):
    return lambda *args: (1, 2, 3)


def gives_text(graph, examples):
    return lambda *args: "text"


def gives_a_wrong_shape(graph, examples):
    return lambda *args: np.zeros(17)


def gives_a_wrong_dtype(graph, examples):
    return lambda *args: np.zeros(5, np.int8)


@pytest.mark.parametrize(
    ("backend", "text"),
    [
        (raises, "the backend raises raised"),
        (returns_no_callable, "the backend returns_no_callable returned int, not a callable"),
        (gives_too_many, "it gave 3 outputs, not 1"),
        (gives_text, "output 0 is a str, not an array"),
        (gives_a_wrong_shape, r"output 0 has shape (17,), not (5,)"),
        (gives_a_wrong_dtype, "output 0 has dtype int8, not float64"),
    ],
)
def test_backends_that_fail_leave_the_program_as_it_is(backend, text, caplog):
    compiled = dyncomp.compile(scale, backend=backend)
    with caplog.at_level(logging.WARNING, logger="dyncomp"):
        for _ in range(3):
            assert np.array_equal(compiled(vec()), scale(vec()))
    assert text in caplog.text and backend.__name__ in caplog.text
    assert len(caplog.records) == 1
    assert dyncomp.stats()["internal_errors"] == 0
