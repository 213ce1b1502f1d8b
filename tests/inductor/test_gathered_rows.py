"""Rows read at positions: these are looked at once for a row; what lies in it is read like other memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import dyncomp

RNG = np.random.default_rng(3)
TABLE = RNG.normal(size=(40, 24))
CUBE = RNG.normal(size=(6, 9, 24))
AT = RNG.integers(-40, 40, 30)
PAIR = (RNG.integers(-6, 6, 30), RNG.integers(-9, 9, 30))


def normal(x: Any, i: Any) -> Any:
    rows = x[i]
    rows = rows - rows.mean(axis=1, keepdims=True)
    return rows / np.sqrt((rows * rows).mean(axis=1, keepdims=True) + 1e-5)


PROGRAMS: dict[str, tuple[Any, ...]] = {
    "rows": (lambda x, i: x[i] * 2.0, TABLE, AT),
    "normal": (normal, TABLE, AT),
    "columns": (lambda x, i: x[:, i].sum(axis=0), TABLE.T, AT),
    "totals": (lambda x, i: x[i].sum(axis=0), TABLE, AT),
    "one": (lambda x, i: x[i] + x[0], TABLE, np.array(-3)),
    "pairs": (lambda x, i, j: np.exp(x[i, j]) + 1.0, CUBE, *PAIR),
    "middle": (lambda x, i: x[:, i] + 1.0, CUBE, PAIR[1]),
    "of_rows": (lambda x, i: x[i][:, ::-1] * x[i], TABLE, AT),
    "grid": (lambda x, i: x[i.reshape(5, 6)].max(axis=2), TABLE, AT),
    "narrow": (lambda x, i: x[i] * 0.5, TABLE.astype(np.float16), AT),
    "bools": (lambda x, i: (x[i] & True).any(axis=1), TABLE > 1.0, AT),
    "complex": (lambda x, i: x[i] * 1j, TABLE.astype(np.complex64), AT),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    program, *arguments = PROGRAMS[name]
    expected = program(*arguments)
    found = dyncomp.compile(program)(*arguments)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12 if name != "narrow" else 0)


@pytest.mark.parametrize("name", ["rows", "normal", "totals", "pairs", "grid"])
@pytest.mark.parametrize("wild", [-41, 40, 1 << 40])
def test_positions_out_of_bounds(name: str, wild: int) -> None:
    program, x, *indices = PROGRAMS[name]
    indices[-1] = indices[-1].copy()
    indices[-1][17] = wild
    with pytest.raises(IndexError) as plain:
        program(x, *indices)
    with pytest.raises(IndexError) as mine:
        dyncomp.compile(program)(x, *indices)
    assert str(mine.value) == str(plain.value)


def test_nothing_to_read() -> None:
    rows = dyncomp.compile(lambda x, i: x[i] * 2.0)
    assert rows(np.ones((0, 4)), np.zeros(0, int)).shape == (0, 4)
    with pytest.raises(IndexError):
        rows(np.ones((0, 4)), np.zeros(3, int))


def test_positions_are_looked_at_outside_of_rows() -> None:
    report = dyncomp.explain(normal)(TABLE, AT)
    (entry,) = report.entries
    source = entry.compiled.artifact.source  # type: ignore[union-attr]
    assert source.count("bad |= ") == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda table, rows: table[rows] + 1,
        lambda table, rows: table[rows],
        lambda table, rows: np.take(table, rows, axis=0),
        lambda table, rows: np.ones((50, 4))[rows][:, :0] + 1,
        lambda table, rows: operator.setitem(table, rows, 1),
    ],
)
def test_positions_where_there_are_no_elements(function: Any) -> None:
    """Positions out of bounds raise though nothing is read or written at them."""
    compiled = dyncomp.compile(function)
    table = np.zeros((50, 0))
    with pytest.raises(IndexError, match="index 50 is out of bounds"):
        compiled(table, np.array([3, 50]))
    np.testing.assert_equal(compiled(table, np.array([3, 49])), function(table, np.array([3, 49])))
