"""What programs ask of functions, classes and arrays: code objects, texts of classes, missing attributes."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np
import pytest

import dyncomp


def helper(x, scale, *, shift=0):
    return x * scale + shift


class Shape(abc.ABC):  # noqa: B024
    pass


def code_of_a_function(x):
    names = helper.__code__.co_varnames
    return x * names.index("scale") + helper.__code__.co_argcount, names


def code_of_a_local_function(x):
    def inner(a, b):
        return a + b

    return inner(x, inner.__code__.co_argcount), inner.__code__.co_name


def code_changes_the_way(x, function=helper):
    return x + 1 if "shift" in function.__code__.co_varnames else x - 1


def texts_of_classes(x):
    return x, str(type(x)), f"{Shape} {int!r:>20}", repr(dict), str([Shape, float])


def missing_attributes(x):
    y = x * 2
    found = getattr(x, "jax", 1), hasattr(y, "nothing"), hasattr(y, "shape")
    try:
        y.nothing  # noqa: B018
    except AttributeError as error:
        return y, found, str(error)


class Steps(Sequence):
    """Iterated by ``Sequence.__iter__``, a generator that stands in ``try``."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if index >= self.n:
            raise IndexError(index)
        return index * 2


def generators_given_up_unseen(x):
    total = [a + b for a, b in zip(Steps(2), Steps(5))]
    for step in Steps(4):
        if step > 2:
            break
    return x * sum(total) + step, next(iter(Steps(3))), 4 in Steps(9)


def seen_when_given_up(x):
    log = []

    def numbers():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    found = [a for a, _ in zip([0], numbers())]
    log.append("behind")
    return x + found[0], log


PROGRAMS = [
    code_of_a_function,
    code_of_a_local_function,
    code_changes_the_way,
    texts_of_classes,
    missing_attributes,
    generators_given_up_unseen,
    seen_when_given_up,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_plain_python(program):
    x = np.arange(4.0)
    compiled = dyncomp.compile(program, backend="eager")
    for _ in range(3):
        assert repr(compiled(x)) == repr(program(x))


@pytest.mark.parametrize("program", PROGRAMS[:-1], ids=lambda p: p.__name__)
def test_one_graph(program):
    report = dyncomp.explain(program, backend="eager")(np.arange(4.0))
    assert list(report.breaks) == []
    assert len(report.entries) == 1


def test_another_function_of_another_code():
    compiled = dyncomp.compile(code_changes_the_way, backend="eager")
    x = np.arange(3.0)
    assert compiled(x)[0] == 1.0
    assert compiled(x, lambda v: v)[0] == -1.0
    assert compiled(x, helper)[0] == 1.0
