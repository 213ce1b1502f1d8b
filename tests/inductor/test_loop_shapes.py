"""Loops that the renderer reshapes (short axes, columns, copies, products), against NumPy, any threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.inductor import compile as inductor
from dyncomp.runtime import _launch

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _several_threads() -> Any:
    before = _launch.num_threads()
    _launch.set_num_threads(3)
    yield
    _launch.set_num_threads(before)


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The C++ of what is compiled in a test."""
    written: list[str] = []
    render = inductor.render_module

    def remember(*args: Any) -> str:
        written.append(render(*args))
        return written[-1]

    monkeypatch.setattr(inductor, "render_module", remember)
    return written


def check(function: Callable[..., Any], *args: Any, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    """Equal to NumPy, and the same bits with one thread."""
    compiled = dyncomp.compile(function, fullgraph=True)
    wanted = function(*args)
    found = compiled(*args)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
    _launch.set_num_threads(1)
    assert np.asarray(compiled(*args)).tobytes() == np.asarray(found).tobytes()


def normal(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


# -- short axes -------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [2, 3, 4, 7, 8, 9, 10, 16, 19, 20])
@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "argmax", "argmin", "mean"])
def test_short_rows(name: str, width: int) -> None:
    check(lambda x: getattr(x, name)(axis=1), normal(1000, width))


@pytest.mark.parametrize("name", ["sum", "max", "argmax"])
@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, np.bool_, np.float16])
def test_short_rows_of_other_dtypes(name: str, dtype: Any) -> None:
    check(lambda x: getattr(x, name)(axis=1), (normal(777, 5) * 3).astype(dtype), rtol=1e-3)


@pytest.mark.parametrize("rows", [31, 32, 33, 64, 65, 200])
def test_softmax_of_short_rows(rows: int) -> None:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return np.log(e / e.sum(axis=1, keepdims=True))

    check(softmax, normal(rows, 10))


def test_nan_in_short_rows() -> None:
    x = normal(100, 3)
    x[::7, 1] = np.nan
    x[5] = [np.inf, -np.inf, np.nan]
    check(lambda x: x.max(axis=1), x)
    check(lambda x: x.min(axis=1), x)


def test_channels_are_written_out(sources: list[str]) -> None:
    picture = RNG.integers(0, 256, (40, 50, 3)).astype(np.uint8)
    check(lambda p: (p * np.array([0.3, 0.6, 0.1])).sum(axis=2), picture)
    assert "i_i2" not in sources[0].partition("body0")[2]


def test_short_axes_that_are_kept() -> None:
    check(lambda p: p - p.mean(axis=0), normal(5000, 3))
    check(lambda p: (p / np.linalg.norm(p, axis=1, keepdims=True))[:, ::-1], normal(500, 3))
    check(lambda a, b: (a[:, None, :] - b[None, :, :]) ** 2, normal(60, 3), normal(7, 3))
    check(lambda a, b: np.einsum("nij,njk->nik", a, b), normal(300, 3, 3), normal(300, 3, 3))


# -- columns ----------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(1, 700), (5, 700), (203, 130), (64, 2048), (301, 3001), (40, 9000)])
@pytest.mark.parametrize("name", ["sum", "max", "argmax", "any"])
def test_columns(name: str, shape: tuple[int, int]) -> None:
    check(lambda x: getattr(x > 0 if name == "any" else x, name)(axis=0), normal(*shape))


def test_columns_in_two_passes() -> None:
    check(lambda x: (x - x.mean(axis=0)) / x.std(axis=0), normal(400, 700))
    check(lambda v, x: v @ x, normal(501), normal(501, 1030))


# -- vectors of several element sizes ---------------------------------------------------------
def test_sums_of_bytes() -> None:
    x = RNG.integers(0, 256, 100_003).astype(np.uint8)
    check(lambda x: (x > 3).sum(), x)
    check(lambda x: x.mean(), x)
    check(lambda x: (np.sqrt(x * 1.5) * (x % 3 == 0)).sum(), x)


@pytest.mark.parametrize("name", ["any", "all"])
def test_truth_of_rows(name: str) -> None:
    x = RNG.random((300, 1000)) < (0.002 if name == "any" else 0.998)
    check(lambda x: getattr(x, name)(axis=1), x)


def test_complex_arithmetic() -> None:
    z = normal(1001) + 1j * normal(1001)
    check(lambda z: np.where(np.abs(z) > 1, z * z + 2, z.conj()), z)
    check(lambda z: (np.abs(z * (1 + 2j)) ** 2).sum(), z)
    check(lambda z: (z * z).sum(), z.astype(np.complex64), rtol=1e-4)


# -- copies -----------------------------------------------------------------------------------
def test_copies_of_rows(sources: list[str]) -> None:
    check(lambda x: np.roll(np.roll(x, 3, axis=0), -5, axis=1), normal(200, 300))
    assert "__builtin_memcpy" in sources[0]


def test_swapped_rows() -> None:
    def swap(x: Any) -> Any:
        x[0], x[1] = x[1].copy(), x[0].copy()
        return x

    x = normal(2, 500)
    wanted = swap(x.copy())
    found = dyncomp.compile(swap, fullgraph=True)(x)
    np.testing.assert_array_equal(found, wanted)


# -- products ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "m, k, n", [(3000, 64, 10), (64, 3000, 64), (300, 70, 500), (9, 300, 700), (130, 130, 1)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_products_in_blocks(m: int, k: int, n: int, dtype: Any) -> None:
    # terms of both signs: the error goes by their sizes, not by the sum's
    bound = 8 * k * float(np.finfo(dtype).eps)
    check(lambda a, b: a @ b, normal(m, k, dtype=dtype), normal(k, n, dtype=dtype), rtol=bound, atol=bound)
    check(
        lambda a, b: a.T @ b.T, normal(k, m, dtype=dtype), normal(n, k, dtype=dtype), rtol=bound, atol=bound
    )


def test_many_products() -> None:
    check(lambda a, b: a @ b, normal(40, 33, 47), normal(40, 47, 29), rtol=1e-10)


def test_blas_threads_are_given_back() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def threads() -> list[int]:
        return [p["num_threads"] for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"]

    before = threads()
    check(lambda a, b: a @ b, normal(200, 200), normal(200, 200), rtol=1e-10)
    assert threads() == before


# -- gathers ----------------------------------------------------------------------------------
def unused(x: Any, i: Any) -> Any:
    x[i]
    return x * 2


def read_in_part(x: Any, i: Any) -> Any:
    return (x[i] * 2)[:2] + 1


@pytest.mark.parametrize("function", [unused, read_in_part])
def test_positions_are_checked_though_nobody_reads_them(function: Callable[..., Any]) -> None:
    x = np.arange(10.0)
    check(function, x, np.array([1, 2, 3, 4]))
    compiled = dyncomp.compile(function, fullgraph=True)
    with pytest.raises(IndexError, match="index 30 is out of bounds"):
        compiled(x, np.array([1, 2, 30, 4]))


# -- library calls ----------------------------------------------------------------------------
@pytest.mark.parametrize("size", [16, 700, 300_000])
def test_results_of_library_calls(size: int) -> None:
    check(lambda x: np.fft.fft(x), normal(size), rtol=1e-9)
    check(lambda x: np.fft.ifft(np.fft.fft(x) * 2).real + 1, normal(size), rtol=1e-9)
    check(lambda x: np.sort(x)[::-1], normal(size))
    compiled = dyncomp.compile(lambda x: np.sort(x), fullgraph=True)
    x = normal(size)
    first = compiled(x)
    kept = first.copy()
    second = compiled(-x)
    assert first.flags.owndata and first.base is None and first.flags.writeable
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)


# -- values kept between passes -----------------------------------------------------------------
def scaled(x: Any, y: Any) -> Any:
    """Three passes: what only the first needs is in no later one, though those need its result."""
    logs = np.log(np.abs(x))
    others = np.log(np.abs(y))
    x = x / np.exp((logs.max() + logs.min()) / 2)
    y = y / np.exp((others.max() + others.min()) / 2)
    weights = 1.0 / (x * y)
    return weights * (3.0 / weights.sum())


def powers(x: Any) -> Any:
    """Three passes that need the same expensive value, two of them another one made of it."""
    first = np.exp(x) * np.log(np.abs(x) + 1)
    second = np.exp(first - first.max())
    return np.sin(second / second.sum()) + first


def test_values_of_earlier_passes_are_not_kept(sources: list[str]) -> None:
    check(scaled, normal(5), normal(5), rtol=1e-9)
    assert not [line for source in sources for line in source.splitlines() if "_c_c" in line]


@pytest.mark.parametrize("shape", [(5,), (40,), (7, 30)])
def test_values_kept_between_three_passes(shape: tuple[int, ...]) -> None:
    check(scaled, normal(*shape), normal(*shape), rtol=1e-9)
    check(powers, normal(*shape), rtol=1e-9)


def turned(points: Any, out: Any) -> Any:
    moved = out + points[:, None]
    x, y = moved[:, 0], moved[:, 1]
    out[:, 0] = x * 0.7 - y * 0.3
    out[:, 1] = y * 0.7 + x * 0.3
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_not_joined_to_sums_and_differences_in_turn(dtype: Any) -> None:
    """gcc 12 makes fused operations of them in vectors, and none in what is left of a loop."""
    points, out = normal(1001, dtype=dtype), normal(1001, 2, dtype=dtype)
    expected = turned(points, out.copy())
    np.testing.assert_array_equal(dyncomp.compile(turned)(points, out.copy()), expected)
