"""Module globals read and written as a dict, and subclasses of the builtin descriptors."""

from __future__ import annotations

import abc
import importlib
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


# -- packages that answer for names that they do not have -----------------------------------------
def from_package(x):
    from dyncomp_test_package import part

    return x + part.VALUE


def from_its_getattr(x):
    from dyncomp_test_package import made

    return x * made


@pytest.mark.parametrize("function", (from_package, from_its_getattr))
def test_a_submodule_is_imported_where_getattr_has_no_answer(function, tmp_path, monkeypatch):
    package = tmp_path / "dyncomp_test_package"
    package.mkdir()
    text = "def __getattr__(name):\n    if name != 'made':\n        raise AttributeError(name)\n"
    text += "    return 3\n"
    (package / "__init__.py").write_text(text)
    (package / "part.py").write_text("VALUE = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("dyncomp_test_package")
    try:
        compiled = dyncomp.compile(function, backend="eager")
        expected = np.arange(3) + 2 if function is from_package else np.arange(3) * 3
        for _ in range(3):
            np.testing.assert_array_equal(compiled(np.arange(3)), expected)
    finally:
        for name in ("dyncomp_test_package", "dyncomp_test_package.part"):
            sys.modules.pop(name, None)


def behind_a_break(x):
    first = np.rec.fromarrays([x], names="a").a
    from numpy.lib import recfunctions

    return first, recfunctions.structured_to_unstructured(np.zeros(2, [("a", float)]))


def test_a_submodule_of_a_library_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "numpy.lib.recfunctions", raising=False)
    monkeypatch.delattr(np.lib, "recfunctions", raising=False)
    compiled = dyncomp.compile(behind_a_break, backend="eager")
    for _ in range(3):
        first, second = compiled(np.arange(3))
        np.testing.assert_array_equal(first, np.arange(3))
        np.testing.assert_array_equal(second, np.zeros((2, 1)))


class Borg:
    """All of its objects have one ``__dict__``."""

    shared = {"scale": 2.0}

    def __init__(self):
        self.__dict__ = Borg.shared


def test_objects_that_share_their_dict():
    def f(x, a, b):
        a.scale = 3.0
        y = x * b.scale
        b.scale = 5.0
        return y * a.scale

    x = np.arange(3.0)
    fast = dyncomp.compile(f)
    for _ in range(3):
        Borg.shared["scale"] = 2.0
        assert np.array_equal(fast(x, Borg(), Borg()), x * 15)
        assert Borg.shared == {"scale": 5.0}
