"""Programs over CuPy's arrays, on a pretended GPU: run by ``test_cupy_path`` in a process of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyncomp
from tests.inductor.cupy_programs import CASES, EXPRESSIONS, expression, operands
from tests.inductor.gpu_simulator import InterpretedDriver, install

install()
cupy = pytest.importorskip("cupy")

from tests.inductor.cupy_simulator import numpy_of, over, pretend  # noqa: E402


@pytest.fixture(autouse=True)
def pretended(monkeypatch: Any) -> Any:
    pretend(monkeypatch)
    yield


def same(got: Any, want: Any) -> None:
    """Whether CuPy's results are NumPy's, with arrays in the place of scalars."""
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want) and len(got) == len(want)
        for a, b in zip(got, want):
            same(a, b)
        return
    if not isinstance(want, (np.ndarray, np.generic)):
        assert type(got) is type(want) and got == pytest.approx(want)
        return
    assert type(got) is cupy.ndarray
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(numpy_of(got), want, rtol=1e-5, atol=1e-6)


def copies(arguments: tuple[Any, ...]) -> list[Any]:
    return [a.copy(order="K") if a.flags.owndata else a[...] for a in arguments]


@pytest.mark.parametrize("program, make", CASES, ids=[p.__name__ for p, _ in CASES])
def test_program(program: Any, make: Any) -> None:
    compiled = dyncomp.compile(program, fullgraph=True)
    for _ in range(2):
        mine, theirs = make(), make()
        InterpretedDriver.launched.clear()
        same(compiled(cupy, *map(over, mine)), program(np, *theirs))
        assert InterpretedDriver.launched
        for a, b in zip(mine, theirs):
            np.testing.assert_allclose(a, b)


def test_guards() -> None:
    """Entries are for dtypes, shapes, strides and devices."""
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x * 2 + 1

    compiled = dyncomp.compile(f, dynamic=False)
    first = np.arange(12.0).reshape(3, 4)
    for array in (
        first,
        first,
        first[::-1],
        first.T,
        first.astype("float32"),
        first[:2],
        first[:, 0],
        first[::-1],
    ):
        same(compiled(over(array)), array * 2 + 1)
    assert dyncomp.explain(f)(over(first)).breaks == []


def test_sizes_become_symbols() -> None:
    def f(x: Any, y: Any) -> Any:
        return cupy.tanh(x) * 2 - y.sum(axis=0), x.T

    compiled = dyncomp.compile(f, fullgraph=True, dynamic=True)
    before = dyncomp.stats()["entries"]
    for rows, columns in ((3, 40), (5, 41), (70, 30)):
        x, y = np.random.default_rng(rows).random((2, rows, columns))
        same(compiled(over(x), over(y)), (np.tanh(x) * 2 - y.sum(axis=0), x.T))
        flipped = x[::-1]
        same(compiled(over(flipped), over(y)), (np.tanh(flipped) * 2 - y.sum(axis=0), flipped.T))
    assert dyncomp.stats()["entries"] <= before + 2


def test_views_share_memory() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return y, y[1:], x.T, x[0, 0]

    x = np.arange(12.0).reshape(3, 4)
    y, part, turned, element = dyncomp.compile(f, fullgraph=True)(over(x))
    numpy_of(part)[...] = 0
    assert (numpy_of(y)[1:] == 0).all()
    x[0, 0] = 77
    assert numpy_of(turned)[0, 0] == 77 and numpy_of(element) == 77


def test_overlapping_arguments_are_left_alone() -> None:
    def f(x: Any, y: Any) -> Any:
        x += y
        return x

    compiled = dyncomp.compile(f)
    x, y = np.arange(4.0), np.ones(4)
    same(compiled(over(x), over(y)), np.arange(4.0) + 1)
    memory = over(np.arange(5.0))
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):  # CuPy itself, which has no device here
        compiled(memory[1:], memory[:-1])


def test_other_types_than_numpys_are_left_to_cupy() -> None:
    def breaks(f: Any, *arrays: Any) -> bool:
        with pytest.raises(dyncomp.errors.GraphBreakError):
            dyncomp.compile(f, fullgraph=True)(*map(over, arrays))
        return True

    x, n = np.arange(4.0), np.arange(4)
    assert breaks(lambda x: x // 2, x)
    assert breaks(lambda x: cupy.sign(x), x)
    assert breaks(lambda x: x[x > 1], x)
    assert breaks(lambda x: cupy.add(x, [1, 2, 3, 4]), x)
    assert breaks(lambda x: cupy.sum(x, dtype="float32", out=x[0]), x)
    assert breaks(lambda x: np.percentile(x, 3), x)
    assert breaks(lambda x: x + np.ones(4), x)
    assert breaks(lambda n: 2**n, n)


def test_positions_wrap_around() -> None:
    x, rows = np.arange(4.0), np.array([0, 5, -7, 3])

    def f(x: Any, rows: Any) -> Any:
        return x[rows]

    same(dyncomp.compile(f, fullgraph=True)(over(x), over(rows)), x[rows % 4])


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression(text: str) -> None:
    program = expression(text)
    got = dyncomp.compile(program, fullgraph=True)(cupy, *map(over, operands()))
    same(got, program(np, *operands()))
