"""The call that has its function captured keeps nothing of the program: no exception is in a cycle."""

from __future__ import annotations

import contextlib
import gc
import weakref

import numpy as np
import pytest

import dyncomp


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Thing:
    value = 1

    @property
    def failing(self):
        return self.absent


def unbound(thing, x):
    if x is None:
        text = ""
    return text


def raising(thing, x):
    raise ValueError("no")


def raising_inside(thing, x):
    def inner():
        raise KeyError(1)

    return inner()


def attribute(thing, x):
    return thing.failing


def index(thing, x):
    return [1, 2][5]


def key(thing, x):
    return {"a": 1}[thing]


def branch(thing, x):
    return x + 1 if x.sum() > 0 else x - 1


def loop(thing, x):
    total = x
    while total.sum() < 50:
        total = total + thing.value
    return total


def arguments(thing, x):
    def inner(a, b):
        return a

    return inner(thing)


def unsupported(thing, x):
    return memoryview(x).nbytes + thing.value


def thrown(thing, x):
    def inner():
        yield thing

    made = inner()
    next(made)
    made.throw(KeyError("thrown"))


def outside(thing, x):
    return np.zeros(3)[7] + x


def shapes(thing, x):
    return x + np.ones(17)


def broken(thing, x):
    y = x * 2
    dyncomp.graph_break()
    return y + thing.value


PROGRAMS = [
    unbound,
    raising,
    raising_inside,
    attribute,
    index,
    key,
    branch,
    loop,
    arguments,
    unsupported,
    thrown,
    outside,
    shapes,
    broken,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("plain", [False, True])
def test_first_calls_let_go(program, plain):
    compiled = dyncomp.compile(program, backend="eager", options={"capture_plain": plain})
    for _ in range(2):
        thing, x = Thing(), np.ones(3)
        alive = weakref.ref(thing), weakref.ref(x)
        with contextlib.suppress(Exception):
            compiled(thing, x)
        del thing, x
        assert [ref() is None for ref in alive] == [True, True]
