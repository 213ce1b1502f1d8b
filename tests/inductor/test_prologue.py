"""Matrix products whose operands are made as they are packed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.runtime import _launch
from tests.inductor.threads import by_threads

RNG = np.random.default_rng(0)
CAN_WATCH = _launch.kept_copies()["can_watch"]


def data(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def small(*shape: int) -> np.ndarray:
    return RNG.integers(-127, 128, shape).astype(np.int8)


def quantised(x, w, scale):
    return x @ (w.astype(np.float32) * scale)


def by_group(x, w, scale, zero):
    """Each column has a scale and a zero point for each 32 rows."""
    rows = w.reshape(-1, 32, w.shape[1]).astype(np.float32)
    return x @ ((rows - zero[:, None, :]) * scale[:, None, :]).reshape(w.shape)


def of_rows(x, w, scale):
    return x @ (w.astype(np.float32) * scale[:, None]).T


def rectified(x, w, b):
    return np.maximum(x, 0) @ w + b


def rectified_by_rows(x, w):
    return np.maximum(x, 0) @ w.T


def normalised(x, w, mean, scale):
    return ((x - mean[:, None]) * scale) @ w


def weight_of_two(x, w, v):
    return x @ (w + v)


def both(x, w):
    return np.maximum(x, 0) @ (w * 2 - 1)


def halves(x, w):
    return x.astype(np.float32) @ w.astype(np.float32)


def left_turned(x, w):
    return (x * 2).T @ (w - 1)


def returned_too(x, w):
    y = w * 2
    return x @ y, y


def read_by_two(x, w):
    y = np.sqrt(np.abs(w))
    return x @ y, (x + 1) @ y


def three(x, a, b, c):
    return x @ (a * 2), x @ (b * 2), x @ (c * 2)


def batched(x, w, scale):
    return x @ (w * scale[:, None, None])


MADE = [
    (quantised, (data(5, 64), small(64, 48), data(48))),
    (quantised, (data(130, 257), small(257, 131), data(131))),
    (quantised, (data(2, 700), small(700, 64), data(64))),
    (of_rows, (data(5, 64), small(48, 64), data(48))),
    (of_rows, (data(2, 601), small(131, 601), data(131))),
    (of_rows, (data(4, 300), small(49, 300), data(49))),
    (of_rows, (data(2, 9000), small(40, 9000), data(40))),
    (of_rows, (data(37, 601), small(131, 601), data(131))),
    (of_rows, (data(37, 601), small(262, 601)[::-2], data(131))),
    (rectified, (data(3000, 64), data(64, 17), data(17))),
    (rectified, (data(1000, 700), data(700, 40), data(40))),
    (rectified_by_rows, (data(8, 20000), data(33, 20000))),
    (normalised, (data(900, 301), data(301, 70), data(900), data(301))),
    (weight_of_two, (data(30, 50), data(50, 70), data(50, 70))),
    (weight_of_two, (data(30, 50), data(70, 50).T, data(70, 50).T)),
    (weight_of_two, (data(30, 50), np.broadcast_to(data(1, 70), (50, 70)), data(50, 70)[:, ::-1])),
    (both, (data(3000, 64), data(64, 17))),
    (both, (data(2999, 67, dtype="float64"), data(67, 19, dtype="float64"))),
    (halves, (data(40, 64, dtype="float16"), data(64, 48, dtype="float16"))),
    (left_turned, (data(300, 40), data(300, 50))),
    (batched, (data(3, 40, 30), data(3, 30, 50), data(3))),
    (batched, (data(40, 30), data(3, 30, 50), data(3))),
]


def same(program: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> None:
    expected, found = program(*arguments), dyncomp.compile(program)(*arguments)
    several = expected if isinstance(expected, tuple) else (expected,)
    for want, got in zip(several, found if isinstance(found, tuple) else (found,), strict=True):
        assert (got.dtype, got.shape, got.strides) == (want.dtype, want.shape, want.strides)
        tolerance = 1e-5 if got.dtype == np.float32 else 1e-13
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * np.abs(want).max(initial=0) * 20)


@pytest.mark.parametrize(("program", "arguments"), MADE)
def test_made(artifacts: list, program: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> None:
    same(program, arguments)
    (artifact,) = artifacts
    assert "operand made by" in artifact.describe()


@pytest.mark.parametrize("program", [returned_too, read_by_two])
def test_what_others_need_is_in_memory(artifacts: list, program: Callable[..., Any]) -> None:
    same(program, (data(40, 50), data(50, 60)))
    assert "operand made by" not in artifacts[0].describe()


def test_operands_made_together_are_made_apart(artifacts: list) -> None:
    same(three, (data(40, 50), data(50, 60), data(50, 60), data(50, 60)))
    assert artifacts[0].describe().count("right operand made by") == 3


@pytest.mark.parametrize("m", [0, 1, 2, 7, 150])
@pytest.mark.parametrize("n", [0, 1, 3, 67])
@pytest.mark.parametrize("k", [0, 1, 5, 521])
def test_any_sizes(m: int, n: int, k: int) -> None:
    same(quantised, (data(m, k), small(k, n), data(n)))


def not_finite(x, w):
    return np.maximum(x, 0) @ (w / 2)


def test_not_finite() -> None:
    x, w = data(3000, 64), data(64, 48)
    x[7, 3], x[8, 4], w[5, 6], w[7, 8] = np.nan, np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isnan(dyncomp.compile(not_finite)(x, w)), np.isnan(not_finite(x, w)))


def test_what_does_not_go_by_rows(artifacts: list) -> None:
    same(by_group, (data(20, 96), small(96, 70), data(3, 70), data(3, 70)))


# -- what is written to -----------------------------------------------------------------------
def source_overwritten(x, w):
    v = w * 2
    w[...] = 7
    return x @ v


def result_overwrites_source(x, w):
    w[...] = x @ np.maximum(w, 0)
    return w


def epilogue_overwrites_source(x, w):
    w[...] = x @ np.maximum(w, 0) + w
    return w


@pytest.mark.parametrize(
    "program", [source_overwritten, result_overwrites_source, epilogue_overwrites_source]
)
def test_sources_that_are_written_to(program: Callable[..., Any]) -> None:
    x, w = data(60, 60), data(60, 60)
    mine, theirs = w.copy(), w.copy()
    fast = dyncomp.compile(program)
    for _ in range(3):
        expected, found = program(x, theirs), fast(x, mine)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3 * np.abs(theirs).max())
        mine[...] = theirs


# -- kept -------------------------------------------------------------------------------------
@pytest.fixture
def nothing_kept():
    _launch.release_memory()
    yield
    _launch.release_memory()


@pytest.mark.skipif(not CAN_WATCH, reason="this system does not tell of writes to memory")
@pytest.mark.parametrize("program", [quantised, of_rows])
def test_kept_until_something_is_written(nothing_kept: None, program: Callable[..., Any]) -> None:
    """A copy of what is made is used while what it is made of stays."""
    x, w = data(8, 512), small(512, 512)
    scale = data(512)
    fast = dyncomp.compile(program)

    def check() -> None:
        np.testing.assert_allclose(fast(x, w, scale), program(x, w, scale), rtol=0, atol=0.1)

    def keep() -> None:
        for _ in range(80):
            check()
            if _launch.kept_copies()["copies"] == 1:
                return
        raise AssertionError("nothing is kept")

    keep()
    scale[200] = 3
    check()
    keep()
    w[400, 400] ^= 5
    check()
    keep()
    w[0, 0] ^= 5
    scale[:] = 2
    check()


def shifted(x, w):
    return x @ (w.astype(np.float32) + 1)


def shifted_more(x, w):
    return x @ (w.astype(np.float32) + 2)


@pytest.mark.skipif(not CAN_WATCH, reason="this system does not tell of writes to memory")
def test_other_things_made_of_the_same(nothing_kept: None) -> None:
    x, w = data(8, 512), small(512, 512)
    programs = [(f, dyncomp.compile(f)) for f in (shifted, shifted_more)]
    for _ in range(8):
        for plain, fast in programs:
            np.testing.assert_allclose(fast(x, w), plain(x, w), rtol=0, atol=0.1)
    assert _launch.kept_copies()["copies"] == 2


@pytest.mark.parametrize("program", [both, weight_of_two])
def test_bits_do_not_depend_on_threads(program: Callable[..., Any]) -> None:
    arguments = (data(3000, 130), data(130, 70), data(130, 70))[: program.__code__.co_argcount]
    fast = dyncomp.compile(program)
    found = by_threads(lambda: fast(*arguments), (1, 2, 5), times=5)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
