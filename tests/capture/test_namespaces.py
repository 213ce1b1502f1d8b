"""Module globals read and written as a dict, and subclasses of the builtin descriptors."""

from __future__ import annotations

import abc
import sys
import threading

import numpy as np
import pytest

import dyncomp

COUNT = 1


class Marked(classmethod):
    """A classmethod that binds as any other."""


class Base:
    @abc.abstractclassmethod
    def first(cls, x):
        return x + 1, cls.__name__

    @Marked
    def second(cls, x):
        return x + 2, cls.__name__


class Derived(Base):
    pass


def of_class(x):
    return Derived.first(x), Base.second(x)


def of_instance(x):
    return Derived().second(x)


def shadowing(x):
    names = globals()
    names["len"] = lambda v: 77
    try:
        found = len(x)
    finally:
        del names["len"]
    return x + found, len(x)


def counting(x):
    global COUNT
    COUNT += 1
    y = x * globals()["COUNT"]
    globals()["COUNT"] = 5
    y = y + COUNT
    COUNT = 1
    return y, vars()["y"] is y


def loaded(x):
    found = [sys.modules.get(name) is not None for name in ("numpy", "no_such_module")]
    try:
        found.append(sys.modules["no_such_module"])
    except KeyError as e:
        found.append(e.args)
    return x + 1, found, "sys" in sys.modules, sys.modules["numpy"] is np


SETTINGS = threading.local()
SETTINGS.scale = 2.0


def of_thread(x):
    return x * SETTINGS.scale if hasattr(SETTINGS, "scale") else x - 1


def unlike(x, mode="abc"):
    return x + 1 if mode == of_thread or mode != len else x, of_thread == "abc", mode == unlike, x.device


def flags(x):
    y = np.outer(x, x)
    z = y.T
    arrays = [x, y, z, z[1:], np.broadcast_to(x, (2, 3)), y.sum(axis=0)]
    return [(a.flags.writeable, a.flags.c_contiguous, a.flags["F"], a.flags["W"]) for a in arrays], z + 1


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    "program", [of_class, of_instance, shadowing, counting, loaded, flags, of_thread, unlike]
)
def test_same_as_plain_python(program, plain):
    compiled = dyncomp.compile(program, backend="eager", options={"capture_plain": plain})
    for _ in range(3):
        np.testing.assert_equal(compiled(np.arange(3.0)), program(np.arange(3.0)))


@pytest.mark.parametrize("program", [loaded, flags, of_thread, unlike])
def test_no_break(program):
    assert not dyncomp.explain(program)(np.arange(3.0)).breaks


def test_each_thread_has_its_own():
    compiled = dyncomp.compile(of_thread, backend="eager")
    x, found = np.ones(2), []
    compiled(x)

    def other():
        found.append(compiled(x))
        SETTINGS.scale = 5.0
        found.append(compiled(x))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    np.testing.assert_equal([*found, compiled(x)], [x - 1, x * 5, x * 2])
