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
