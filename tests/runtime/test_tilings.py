"""Products and convolutions cut in any way: the bits are those of the usual one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.runtime import _launch, num_threads, set_num_threads
from tests.runtime.test_gemm import EXTENTS, LAYOUTS, LETTERS, SETS, matrix, within_margins
from tests.runtime.test_windows import Case

Tiling = tuple[int, int, int, int, int]
USUAL: Tiling = (0, 0, 0, 0, 0)
NO_WINDOWS = (0,) * 16
SIZES = st.sampled_from((0, 1, 2, 3, 5, 16, 40, 1000))
TILINGS = st.tuples(st.sampled_from((0, 1, 2, 3, 4, 9)), SIZES, SIZES, SIZES, st.just(0))


def product(name: str | None, a: np.ndarray, b: np.ndarray, tiling: Tiling, kept: bool = False) -> np.ndarray:
    def write(out: np.ndarray) -> None:
        strides = [s // a.itemsize for x in (a, b) for s in x.strides]
        row = out.strides[0] // a.itemsize
        places = (a.ctypes.data, *strides[:2], b.ctypes.data, *strides[2:], out.ctypes.data, row)
        sizes = (a.shape[0], b.shape[1], a.shape[1])
        _launch.matrix_product(name, LETTERS[a.dtype.name], *sizes, *places, NO_WINDOWS, int(kept), tiling)

    return within_margins(a, b, write)


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=150, deadline=None)
@given(
    sizes=st.tuples(EXTENTS, EXTENTS, EXTENTS),
    dtype=st.sampled_from(sorted(LETTERS)),
    layouts=st.tuples(LAYOUTS, LAYOUTS),
    tiling=TILINGS,
    seed=st.integers(0, 1000),
)
def test_any_tiling(
    name: str,
    sizes: tuple[int, int, int],
    dtype: str,
    layouts: tuple[str, str],
    tiling: Tiling,
    seed: int,
) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(seed)
    a, b = matrix(m, k, dtype, layouts[0], rng), matrix(k, n, dtype, layouts[1], rng)
    np.testing.assert_array_equal(product(name, a, b, tiling), product(name, a, b, USUAL))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", sorted(LETTERS))
@pytest.mark.parametrize("layouts", [("rows", "rows"), ("rows", "columns"), ("columns", "rows")])
@pytest.mark.parametrize(
    "sizes", [(150, 70, 3000), (128, 500, 768), (40, 1000, 1025), (600, 130, 1024), (25, 333, 2500)]
)
def test_larger_ones(sizes: tuple[int, int, int], layouts: tuple[str, str], dtype: str, threads: int) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(0)
    a, b = matrix(m, k, dtype, layouts[0], rng), matrix(k, n, dtype, layouts[1], rng)
    a[m // 2, k // 3], b[k // 2, n // 3] = np.inf, -0.0
    before = num_threads()
    set_num_threads(threads)
    try:
        usual = product(None, a, b, USUAL)
        for tiling in (
            (0, 0, 0, 128, 0),
            (1, 3, 30, 0, 0),
            (2, 1, 50, 200, 0),
            (3, 2, 0, 7, 0),
            (9, 9**9, 1, 1, 0),
        ):
            np.testing.assert_array_equal(product(None, a, b, tiling), usual)
    finally:
        set_num_threads(before)


def test_kept_copies_of_other_widths() -> None:
    rng = np.random.default_rng(0)
    a, b = matrix(150, 300, "float32", "rows", rng), matrix(300, 500, "float32", "columns", rng)
    usual = product(None, a, b, USUAL)
    for _ in range(5):
        for tiling in (USUAL, (1, 0, 0, 0, 0), (3, 2, 0, 100, 0)):
            np.testing.assert_array_equal(product(None, a, b, tiling, kept=True), usual)


def test_half_precision() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 0x4000, shape).astype(np.uint16) for shape in ((70, 300), (300, 333)))
    found = []
    for tiling in (USUAL, (0, 2, 0, 0, 0), (0, 1, 30, 0, 0), (2, 3, 0, 64, 0)):
        out = np.empty((70, 333), np.float32)
        places = (a.ctypes.data, 300, 1, b.ctypes.data, 333, 1, out.ctypes.data, 333)
        _launch.matrix_product(None, "b", 70, 333, 300, *places, NO_WINDOWS, 0, tiling)
        found.append(out)
    assert all(np.array_equal(found[0], other) for other in found)


# -- convolutions -----------------------------------------------------------------------------
CASES = [
    Case(16, 24, (14, 15), (3, 3), padding=(1, 1)),
    Case(3, 33, (30, 31), (7, 7), stride=(2, 2), padding=(3, 3)),
    Case(20, 40, (9, 40), (1, 1), stride=(2, 2)),
    Case(5, 70, (1, 400), (1, 5), padding=(0, 2)),
    Case(8, 16, (20, 12), (3, 2), dilation=(2, 3)),
]


def convolution(name: str, case: Case, dtype: str, last: bool, tiling: Tiling) -> np.ndarray:
    rng = np.random.default_rng(1)
    rows, columns = case.result
    taps = case.kernel[0] * case.kernel[1]
    places, terms = rows * columns, case.channels * taps
    x = rng.standard_normal((*case.sizes, case.channels) if last else (case.channels, *case.sizes)).astype(
        dtype
    )
    w = rng.standard_normal((case.kernels, terms)).astype(dtype)
    steps = (1, case.sizes[1] * case.channels, case.channels) if last else (x[0].size, case.sizes[1], 1)
    windows = (
        columns,
        *case.sizes,
        *case.kernel,
        *case.stride,
        *case.dilation,
        *case.padding,
        *steps,
        last,
        0,
    )
    out = np.full((places, case.kernels) if last else (case.kernels, places), np.nan, dtype)
    image, kernels = (x.ctypes.data, 0, 1), (w.ctypes.data, 1, terms) if last else (w.ctypes.data, terms, 1)
    operands = (*image, *kernels) if last else (*kernels, *image)
    sizes = (*out.shape, terms)
    places_of_out = (out.ctypes.data, out.shape[1])
    _launch.matrix_product(name, LETTERS[dtype], *sizes, *operands, *places_of_out, windows, 0, tiling)
    return out


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_convolutions(name: str, case: Case, last: bool) -> None:
    for dtype in sorted(LETTERS):
        usual = convolution(name, case, dtype, last, USUAL)
        for tiling in ((1, 0, 0, 0, 0), (2, 1, 30, 50, 0), (3, 2, 0, 0, 0), (0, 0, 7, 16, 0)):
            np.testing.assert_array_equal(convolution(name, case, dtype, last, tiling), usual)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("case", CASES)
def test_ways_of_convolutions(name: str, case: Case) -> None:
    plain = convolution(name, case, "float64", False, (0, 0, 0, 0, 1))
    exact = convolution("portable", case, "float64", False, (0, 0, 0, 0, 2))
    np.testing.assert_allclose(plain, exact, rtol=1e-12, atol=1e-12)
    for way in (2, 3, 77):
        np.testing.assert_array_equal(convolution(name, case, "float64", False, (0, 0, 0, 0, way)), plain)


# -- batches ----------------------------------------------------------------------------------
def test_batches() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3, 20, 30)), rng.standard_normal((3, 30, 40))
    out = np.empty((2, 3, 20, 40))
    places = (a.ctypes.data, 30, 1, b.ctypes.data, 40, 1, out.ctypes.data, 40)
    batch = ((2, 1800, 0, 2400), (3, 600, 1200, 800))
    _launch.matrix_product(None, "d", 20, 40, 30, *places, NO_WINDOWS, 0, (2, 1, 0, 8, 0), batch)
    np.testing.assert_allclose(out, a @ b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "batch, error",
    [(((1, 0, 0, 0),) * 9, ValueError), (((1, 2),), TypeError), ((1,), TypeError), ([], TypeError)],
)
def test_bad_batches(batch: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        _launch.matrix_product(None, "d", *(0,) * 11, NO_WINDOWS, 0, USUAL, batch)
