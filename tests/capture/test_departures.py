"""Objects that the program sees go do so in their place, also where captured code lets go of them."""

# ruff: noqa: F841
from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import dyncomp
from tests.capture.lifetime_programs import Loud, Plain


@dyncomp.disable
def made(log):
    return Loud(log, "made")


@dyncomp.disable
def opaque(value):
    return value


@dyncomp.disable
def watched(o, log):
    return weakref.ref(o, lambda _: log.append("called back"))


def deleted(x, log):
    o = made(log)
    log.append(1)
    del o
    log.append(x + 1)


def assigned(x, log):
    o = made(log)
    log.append(1)
    o = 3
    log.append(x + o)


def of_a_statement(x, log):
    made(log)
    log.append(x + 1)


def temporary(x, log):
    log.append(made(log).name)
    log.append(x + 1)


def in_a_list(x, log):
    box = [made(log)]
    log.append(1)
    box = x
    log.append(box + 1)


def in_an_object(x, log):
    box = Plain()
    box.o = made(log)
    log.append(1)
    box = x
    log.append(box + 1)


def by_weak_reference(x, log):
    o = Plain()
    r = watched(o, log)
    log.append(1)
    o = x
    log.append(o + 1)
    return r


def variable_of_a_callee(x, log):
    def callee(o):
        log.append(1)
        o = 3
        log.append(2)
        return x + o

    log.append(callee(made(log)))
    log.append(3)


def return_of_a_callee(x, log):
    def callee(o):
        log.append(1)
        p = o
        return x + 1

    log.append(callee(made(log)))
    log.append(2)


def in_a_cell(x, log):
    o = made(log)

    def callee():
        nonlocal o
        o = 3
        return x + o

    log.append(callee())
    log.append(2)


def items(x, log):
    for o in [made(log), made(log)]:
        log.append(1)
        o = x
        log.append(o + 1)
    log.append(2)


def unpacked(x, log):
    pair = (made(log), x)
    log.append(1)
    o, x = pair
    pair = 3
    log.append(2)
    o = 3
    log.append(x + o)


def under_a_handler(x, log):
    o = made(log)
    try:
        log.append(1)
        o = x.nothing
    except AttributeError:
        log.append(2)
        del o
    log.append(x + 1)


def in_a_loop(x, log):
    for k in range(20):
        o = made(log)
        log.append(x + k)
        o = None
        log.append(k)


def attribute_assigned(x, log):
    box = Plain()
    box.o = made(log)
    opaque(1)
    log.append(1)
    box.o = None
    log.append(x + 1)


def list_cleared(x, log):
    box = [made(log)]
    opaque(1)
    log.append(1)
    box.clear()
    log.append(x + 1)


def taken_from_a_dict(x, log):
    box = {1: [made(log)]}
    opaque(1)
    log.append(1)
    box.pop(1)
    log.append(x + 1)


def held_besides(x, log):
    o = made(log)
    p = [o]
    log.append(1)
    del o
    log.append(2)
    p = x
    log.append(p + 1)


def generator(x, log):
    def steps(v, k):
        try:
            for j in range(k):
                yield opaque(v + j)
        finally:
            log.append("closed")

    g = steps(x, 4)
    log.append(next(g))
    del g
    log.append(x + 1)


PROGRAMS = [
    *(deleted, assigned, of_a_statement, temporary, in_a_list, in_an_object, by_weak_reference),
    *(variable_of_a_callee, return_of_a_callee, in_a_cell, items, unpacked, under_a_handler, in_a_loop),
    *(attribute_assigned, list_cleared, taken_from_a_dict, held_besides, generator),
]


def seen(function):
    log = []
    function(np.ones(3), log)
    return [entry.tolist() if isinstance(entry, np.ndarray) else entry for entry in log]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_each_goes_in_its_place(program):
    gc.collect()
    compiled = dyncomp.compile(program, backend="eager")
    expected = seen(program)
    for _ in range(3):
        assert seen(compiled) == expected


def test_numbers_of_steps_seen_as_symbols():
    def program(x, n, log):
        def steps(v, k):
            try:
                for _ in range(k):
                    yield v
            finally:
                log.append("closed")

        g = steps(x, n)
        next(g)
        del g
        log.append((x * n).tolist())

    compiled = dyncomp.compile(program, backend="eager")
    for n in (6, 4, 5):
        log, expected = [], []
        program(np.ones(3), n, expected)
        compiled(np.ones(3), n, log)
        assert log == expected


def test_what_nobody_sees_go_breaks_nothing():
    def program(x, box):
        y = box[0] + x
        box = y
        x = None
        return box * 2

    explained = dyncomp.explain(program, backend="eager")(np.ones(3), [np.ones(3), Plain()])
    assert not explained.breaks
