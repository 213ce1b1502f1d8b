"""Objects that the captured part takes away from where they were found: they live while, and only while,
variables of the program hold them, as weak references show."""

from __future__ import annotations

import sys
import types
import weakref

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import graphs


class Thing:
    def __init__(self, v):
        self.v = v


class Holder:
    pass


class Keeper:
    """A class whose attribute holds."""


HELD = None
MODULE = types.ModuleType("tests_module_that_holds")
exec("def let_go():\n    global thing\n    thing = None\n", vars(MODULE))


@pytest.fixture(autouse=True)
def module_that_holds(monkeypatch):
    monkeypatch.setitem(sys.modules, MODULE.__name__, MODULE)


# -- no variable holds it ----------------------------------------------------------------------------------
def global_assigned(o):
    global HELD
    HELD = o

    def f(r, a):
        global HELD
        s = a * HELD.v
        HELD = None
        return s[1], r() is None

    return f


def global_deleted(o):
    global HELD
    HELD = [o]

    def f(r, a):
        global HELD
        s = a * HELD[0].v
        del HELD
        return s[1], r() is None

    return f


def global_of_a_module(o):
    MODULE.thing = o

    def f(r, a):
        s = a * MODULE.thing.v
        MODULE.let_go()
        return s[1], r() is None

    return f


def cell_assigned(o):
    def f(r, a):
        nonlocal o
        s = a * o.v
        o = None
        return s[1], r() is None

    return f


def class_attribute(o):
    Keeper.o = o

    def f(r, a):
        s = a * Keeper.o.v
        Keeper.o = None
        return s[1], r() is None

    return f


# -- a variable holds it -----------------------------------------------------------------------------------
def local_of_the_frame(o):
    box = [o]

    def f(r, a):
        x = box[0]
        s = a * x.v
        box.clear()
        return s[1], r() is None

    return f


def local_and_global(o):
    global HELD
    HELD = [[o]]

    def f(r, a):
        global HELD
        x = HELD[0]
        s = a * x[0].v
        HELD = None
        return s[1], r() is None

    return f


def attribute(o):
    holder = Holder()
    holder.o = o

    def f(r, a):
        x = holder.o
        s = a * x.v
        holder.o = None
        return s[1], r() is None

    return f


def variable_of_a_loop(o):
    box = {"o": o}

    def f(r, a):
        for x in box.values():
            s = a * x.v
        box.clear()
        return s[1], r() is None

    return f


def inside_of_what_was_made(o):
    box = [o]

    def f(r, a):
        x = Holder()
        x.items = [box[0], a]
        s = a * x.items[0].v
        box.clear()
        return s[1], r() is None

    return f


def argument_of_an_inlined_function(o):
    box = [o]

    def f(r, a):
        def g(x, *rest):
            s = a * rest[0].v
            box.clear()
            return s[1], r() is None

        return g(1, *box), r() is None

    return f


def local_of_the_caller(o):
    box = [o]

    def f(r, a):
        x = box[0]

        def g(y):
            box.clear()
            return y[1], r() is None

        return g(a * x.v)

    return f


def what_a_reference_gave(o):
    box = [o]

    def f(r, a):
        s = a * box[0].v
        x = r()
        box.clear()
        dyncomp.graph_break()
        return s[1], r() is x, r() is None

    return f


def held_until_deleted(o):
    box = [o]

    def f(r, a):
        x = box[0]
        s = a * x.v
        box.clear()
        dyncomp.graph_break()
        before = r() is None
        del x
        return s[1], before, r() is None

    return f


@dyncomp.disable
def empty(container):
    container.clear()


def emptied_by_what_breaks(o):
    box = [o]

    def f(r, a):
        x = box[0]
        s = a * x.v
        empty(box)
        return s[1], r() is None

    return f


def emptied_by_what_breaks_in_a_callee(o):
    box = {"o": o}

    def g(items, a):
        x = items["o"]
        s = a * x.v
        empty(items)
        return s

    def f(r, a):
        x = box["o"]
        s = g(box, a)
        before = r() is None
        del x
        return s[1], before, r() is None

    return f


def emptied_in_a_loop(o):
    boxes = [[o], [1]]

    def f(r, a):
        seen = []
        for box in boxes:
            x = box[0]
            a = a + 1
            empty(box)
            seen.append((r() is None, x is None))
        return a[1], seen, r() is None

    return f


PROGRAMS = [
    global_assigned,
    global_deleted,
    global_of_a_module,
    cell_assigned,
    class_attribute,
    local_of_the_frame,
    local_and_global,
    attribute,
    variable_of_a_loop,
    inside_of_what_was_made,
    argument_of_an_inlined_function,
    local_of_the_caller,
    what_a_reference_gave,
    held_until_deleted,
    emptied_by_what_breaks,
    emptied_by_what_breaks_in_a_callee,
    emptied_in_a_loop,
]


def outcomes(program, compiled):
    found = []
    for _ in range(2):
        thing = Thing(2.0)
        reference = weakref.ref(thing)
        function = program(thing)
        del thing
        if compiled:
            function = dyncomp.compile(function, backend="eager")
        found.append(function(reference, np.arange(4.0)))
    return found, function


@pytest.mark.parametrize("program", PROGRAMS)
def test_objects_live_as_in_plain_python(program):
    expected, _ = outcomes(program, False)
    found, function = outcomes(program, True)
    assert found == expected
    assert graphs(function.config.records) >= 1
