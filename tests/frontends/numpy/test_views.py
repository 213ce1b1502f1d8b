"""``ndarray.view`` with every form of its arguments: dtype, class, memory and exceptions as NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyncomp


class Sub(np.ndarray):
    pass


FORMS: list[Callable[[Any], Any]] = [
    lambda x: x.view(),
    lambda x: x.view(x.dtype),
    lambda x: x.view(None),
    lambda x: x.view(dtype=None),
    lambda x: x.view(np.float32),
    lambda x: x.view("i4"),
    lambda x: x.view(Sub),
    lambda x: x.view(dtype=Sub),
    lambda x: x.view(type=Sub),
    lambda x: x.view(np.float32, Sub),
    lambda x: x.view(type=np.ndarray),
    lambda x: x.view(np.float32, np.ndarray),
    lambda x: x.view(np.float32, np.ndarray, 3),
    lambda x: x.view(np.float32, dtype=np.float32),
    lambda x: x.view(type=None),
    lambda x: x.view(other=1),
]


def outcome(function: Callable[[Any], Any], x: np.ndarray) -> Any:
    try:
        found = function(x)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return type(found), found.dtype, found.tolist(), np.shares_memory(found, x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", range(len(FORMS)))
def test_view(form: int, dtype: str) -> None:
    x = np.arange(4, dtype=dtype)
    compiled = dyncomp.compile(FORMS[form], backend="eager")
    assert outcome(compiled, x) == outcome(FORMS[form], x)


@pytest.mark.parametrize(
    "ask", [np.nonzero, np.where, np.ndarray.nonzero], ids=["nonzero", "where", "method"]
)
def test_places_of_a_matrix_are_columns_of_one_array(ask) -> None:
    def program(x):
        return ask(x > 1)

    compiled = dyncomp.compile(program, backend="eager")
    x = np.arange(12.0).reshape(3, 4) % 5
    for given in (x, x.T, x):
        found, expected = compiled(given), program(given)
        for mine, plain in zip(found, expected):
            assert np.array_equal(mine, plain)
            assert mine.strides == plain.strides
        assert np.may_share_memory(*found)


@pytest.mark.parametrize("case", range(25))
def test_vectors_written_to_memory_that_they_overlap(case: int) -> None:
    """NumPy makes no copy of these first, and may read what it has written."""
    rng = np.random.default_rng(case)
    a, c = (int(n) for n in rng.integers(0, 10, 2))
    b, d = (int(n) for n in rng.choice([-2, -1, 1, 2, 3], 2))
    row, column = (int(n) for n in rng.integers(0, 6, 2))

    def vector(x: np.ndarray) -> np.ndarray:
        v = x.ravel() * 1.0
        count = min(len(v[a::b]), len(v[c::d]))
        v[a::b][:count] = v[c::d][:count]
        return v

    def matrix(x: np.ndarray) -> np.ndarray:
        m = x * 1.0
        m[row] = m[:, column]
        m[column, row:] = m[row:, column]
        return m

    x = rng.standard_normal((6, 6))
    for function in (vector, matrix):
        np.testing.assert_array_equal(dyncomp.compile(function)(x), function(x))
