"""The frames that ``sys._getframe`` and ``stacklevel`` count behind graph breaks are the program's."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import dyncomp


@dyncomp.disable
def stack(log, levels=4):
    frame = sys._getframe(1)
    found = []
    for _ in range(levels):
        found.append((frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    log.append(found)


def at_once(x, log):
    stack(log)
    return x + 1


def later_on(x, log):
    y = x + 1
    dyncomp.graph_break()
    stack(log)
    y = y * 2
    stack(log)
    return y


def callee(x, log):
    y = x + 1
    stack(log)
    y = y * 2
    stack(log)
    return y


def calls(x, log):
    y = callee(x, log)
    stack(log)
    return y + callee(y, log)


def middle(x, log):
    return callee(x + 1, log) * 2


def calls_deeper(x, log):
    y = middle(x, log) + 1
    stack(log)
    return y


def under_a_handler(x, log):
    try:
        y = callee(x, log)
        stack(log)
    finally:
        stack(log)
    stack(log)
    return y


def with_block(x, log):
    with np.errstate(all="ignore"):
        y = callee(x, log)
        stack(log)
    stack(log)
    return y


def closure(x, log):
    def inner():
        stack(log)
        return x * 2

    y = inner()
    stack(log)
    return y


def warns(x, log):
    def inner(level):
        warnings.warn("here", stacklevel=level)
        return x + level

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = inner(1) + inner(2) + inner(3)
    log.append([(w.filename, w.lineno) for w in caught])
    return y


def behind_a_loop(x, log):
    for k in range(40):
        x = x + k
    stack(log)
    return x


PROGRAMS = [
    at_once,
    later_on,
    calls,
    calls_deeper,
    under_a_handler,
    with_block,
    closure,
    warns,
    behind_a_loop,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_frames_are_those_of_the_program(program):
    compiled = dyncomp.compile(program, backend="eager")
    logs = []
    for function in (program, compiled, compiled):
        logs.append([])
        result = function(np.arange(3.0), logs[-1])
    assert result.shape == (3,)
    assert logs[1] == logs[0]
    assert logs[2] == logs[0]
