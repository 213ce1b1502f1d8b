"""Sorting by comparisons, and functions under ``lru_cache`` that are made in the frame."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check_program
from tests.capture.ordering_programs import PROGRAMS, gives_cached


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_same_as_plain_python(program):
    check_program(program)


def test_a_cached_function_leaves():
    compiled = dyncomp.compile(gives_cached, backend="eager")
    for _ in range(2):
        _, f = compiled(np.ones(3))
        _, g = gives_cached(np.ones(3))
        assert type(f) is type(g)
        assert (f.__name__, f.__doc__, f.__qualname__) == (g.__name__, g.__doc__, g.__qualname__)
        assert f.cache_parameters() == g.cache_parameters() == {"maxsize": 3, "typed": False}
        assert f(2) == f(2) == 3
        assert f.cache_info() == (1, 1, 3, 1)
        assert f.__wrapped__(5) == 6
