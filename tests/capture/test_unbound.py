"""Variables shared with inner functions without a value: the error is plain Python's behind breaks, too."""
# ruff: noqa: F821

from __future__ import annotations

import pytest

import dyncomp
from tests.capture.comparing import check
from tests.capture.programs import vec


def read_too_early(x):
    dyncomp.graph_break()
    y = shared + x.sum()

    def inner():
        return shared

    shared = 1
    return y + inner()


def deleted(x):
    shared = x + 1

    def inner():
        return shared

    dyncomp.graph_break()
    y = inner()
    del shared
    dyncomp.graph_break()
    return y + shared


def deleted_twice(x):
    shared = x + 1

    def inner():
        return shared

    dyncomp.graph_break()
    del shared
    dyncomp.graph_break()
    del shared
    return inner


def deleted_inside(x):
    shared = x + 1

    def inner():
        nonlocal shared
        del shared

    dyncomp.graph_break()
    inner()
    dyncomp.graph_break()
    return shared


def in_a_branch(x):
    if x.sum() > 1e9:
        shared = 1
    dyncomp.graph_break()

    def inner():
        return shared

    return shared + x + inner()


def caught(x):
    def inner():
        return shared

    dyncomp.graph_break()
    try:
        x = x + shared
    except UnboundLocalError as error:
        x = x + len(str(error))
    dyncomp.graph_break()
    try:
        x = x + inner()
    except UnboundLocalError:
        x = x + 1000
    except NameError as error:
        x = x - len(str(error))
    shared = 3
    dyncomp.graph_break()
    return x + inner() + shared


def in_a_loop(x):
    def inner():
        return shared

    for k in range(30):
        if k > 20:
            dyncomp.graph_break()
            x = x + shared
        x = x + k
    shared = 3
    return x + inner()


def emptied_from_outside(x):
    if x is None:
        shared = 1

    def inner():
        return shared

    x = x + 1
    try:
        print(shared)
    except NameError as error:
        x = x + len(str(error))
    shared = 1
    del inner.__closure__[0].cell_contents
    try:
        dyncomp.graph_break()
        print(shared)
    except NameError as error:
        x = x + len(str(error))
    return x


def outer_variable(x):
    def middle():
        dyncomp.graph_break()
        return shared

    try:
        return x + middle()
    except UnboundLocalError:
        return x
    except NameError as error:
        x = x + len(str(error))
    shared = 1
    return x + middle() + shared


PROGRAMS = [
    read_too_early,
    deleted,
    deleted_twice,
    deleted_inside,
    in_a_branch,
    caught,
    in_a_loop,
    emptied_from_outside,
    outer_variable,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_unbound_shared_variables(program):
    check(program, lambda: (vec(),))


def test_bound_ones_are_not_checked():
    def f(x):
        shared = x + 1
        dyncomp.graph_break()
        y = (lambda: shared)()
        dyncomp.graph_break()
        return y + shared

    report = dyncomp.explain(f, backend="eager")(vec())
    assert not any("check_cell" in entry.source for entry in report.entries)
