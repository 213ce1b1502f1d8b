"""Context variables that the frame sets and resets."""

from __future__ import annotations

import contextvars
import re

import numpy as np
import pytest

import dyncomp

PLAIN: contextvars.ContextVar = contextvars.ContextVar("PLAIN", default=None)
UNSET: contextvars.ContextVar = contextvars.ContextVar("UNSET")


def set_and_reset(x):
    token = PLAIN.set(5)
    try:
        y = x * PLAIN.get()
    finally:
        PLAIN.reset(token)
    return y, PLAIN.get()


def nested(x):
    outer = UNSET.set(3)
    inner = UNSET.set(4)
    UNSET.reset(inner)
    found = UNSET.get()
    UNSET.reset(outer)
    return x * found, inner.old_value, outer.old_value is contextvars.Token.MISSING


def left_set(x):
    token = PLAIN.set([1, 2])
    return x * len(PLAIN.get()), token.var is PLAIN


def tokens_escape(x):
    first = PLAIN.set(1)
    second = PLAIN.set(2)
    PLAIN.reset(second)
    PLAIN.set(3)
    return x, first, second, PLAIN.get()


def behind_a_break(x):
    token = PLAIN.set(x)
    if x.sum() > 0:
        x = x + PLAIN.get()
    PLAIN.reset(token)
    return x


def twice(x):
    token = PLAIN.set(x)
    PLAIN.reset(token)
    try:
        PLAIN.reset(token)
    except RuntimeError as error:
        return x, str(error)[:20]


def unset_again(x):
    token = UNSET.set(1)
    UNSET.reset(token)
    try:
        return UNSET.get()
    except LookupError:
        return x + 1


def outcome(function, x):
    result = function(x)
    return re.sub("0x[0-9a-f]+", "", repr((result, PLAIN.get(), UNSET.get("unset"))))


PROGRAMS = [set_and_reset, nested, left_set, tokens_escape, behind_a_break, twice, unset_again]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_plain_python(program):
    x = np.arange(4.0)
    expected = contextvars.copy_context().run(outcome, program, x)
    compiled = dyncomp.compile(program, backend="eager")
    for _ in range(3):
        assert contextvars.copy_context().run(outcome, compiled, x) == expected


@pytest.mark.parametrize("program", [set_and_reset, left_set, tokens_escape, unset_again])
def test_no_break(program):
    run = dyncomp.explain(program, backend="eager")
    assert contextvars.copy_context().run(run, np.arange(4.0)).breaks == []


def test_a_token_from_an_earlier_call():
    def set_it(x):
        return x + 1, PLAIN.set(7)

    def reset_it(x, token):
        PLAIN.reset(token)
        return x * 2, PLAIN.get()

    def both():
        first = dyncomp.compile(set_it, backend="eager")
        second = dyncomp.compile(reset_it, backend="eager")
        for _ in range(3):
            _, token = first(np.ones(3))
            assert PLAIN.get() == 7
            assert second(np.ones(3), token)[1] is None

    contextvars.copy_context().run(both)
