"""Python numbers known at run time only that do not fit the array they are stored into."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp


def stored(x, value):
    y = np.zeros(3, dtype=np.int64)
    y[1] = value
    return y + x


def doubled(x, value):
    y = np.zeros(3, dtype=np.int64)
    y[:2] = value * 2
    return y + x


def outcome(program, *args):
    try:
        return program(*args).tolist()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", [stored, doubled])
def test_float_into_an_integer_array(program, backend):
    compiled = dyncomp.compile(program, backend=backend)
    x = np.arange(3.0)
    for value in (1.5, 2.5, 3.0, float("nan"), 4.0, float("inf"), 7):
        assert outcome(compiled, x, value) == outcome(program, x, value)
