"""Products of bfloat16 by the runtime: with the processor's instructions and widened, any layout and size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.runtime import _launch, num_threads, set_num_threads
from tests.runtime.test_gemm import EXTENTS, LAYOUTS, MARGIN, SETS, before_a_gap, matrix


def brain(values: np.ndarray) -> np.ndarray:
    """The bits of float32 numbers rounded to bfloat16, where they are finite."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def wide(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def random(rows: int, cols: int, layout: str, rng: np.random.Generator) -> np.ndarray:
    """Random bfloat16 numbers in memory of some layout."""
    values = matrix(rows, cols, "float32", layout, rng)
    found = np.lib.stride_tricks.as_strided(
        np.zeros(
            1 + 2 * (sum((n - 1) * abs(s) for n, s in zip(values.shape, values.strides)) // 4), np.uint16
        ),
        values.shape,
        [abs(s) // 2 for s in values.strides],
    )
    flips = tuple(slice(None, None, -1 if s < 0 else 1) for s in values.strides)
    found = found[flips]
    found[...] = brain(values)
    return found


def multiply(name: str | None, a: np.ndarray, b: np.ndarray, out: np.ndarray, kept: bool = False) -> None:
    def steps(x: np.ndarray) -> list[int]:
        return [s // x.itemsize for s in x.strides]

    sizes = (a.shape[0], b.shape[1], a.shape[1])
    places = (a.ctypes.data, *steps(a), b.ctypes.data, *steps(b), out.ctypes.data, steps(out)[0])
    _launch.matrix_product(name, "b", *sizes, *places, (0,) * 16, int(kept))


def check(name: str | None, a: np.ndarray, b: np.ndarray, kept: bool = False) -> np.ndarray:
    around = np.full((a.shape[0], b.shape[1] + 2 * MARGIN), 7, np.float32)
    out = around[:, MARGIN : MARGIN + b.shape[1]]
    multiply(name, a, b, out, kept)
    assert (around[:, :MARGIN] == 7).all()
    assert (around[:, MARGIN + b.shape[1] :] == 7).all()
    left, right = wide(a).astype(np.float64), wide(b).astype(np.float64)
    bound = np.abs(left) @ np.abs(right) * (a.shape[1] + 1) * np.finfo(np.float32).eps
    assert (np.abs(out - left @ right) <= bound).all()
    return out


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=150, deadline=None)
@given(
    sizes=st.tuples(EXTENTS, EXTENTS, EXTENTS), layouts=st.tuples(LAYOUTS, LAYOUTS), seed=st.integers(0, 1000)
)
def test_any_layout(name: str, sizes: tuple[int, int, int], layouts: tuple[str, str], seed: int) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(seed)
    check(name, random(m, k, layouts[0], rng), random(k, n, layouts[1], rng))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("layouts", [("rows", "rows"), ("rows", "columns"), ("columns", "rows")])
@pytest.mark.parametrize(
    "sizes", [(3, 70, 5001), (150, 70, 5000), (700, 130, 41), (40, 1000, 130), (49, 200, 2100), (1, 901, 700)]
)
def test_more_than_a_block(name: str, layouts: tuple[str, str], sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(0)
    check(name, random(m, k, layouts[0], rng), random(k, n, layouts[1], rng))


@pytest.mark.parametrize(
    "sizes", [(200, 300, 400), (8, 2000, 301), (50, 900, 200), (2000, 70, 30), (60, 200, 2300)]
)
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_the_bits_do_not_depend_on_threads_and_copies(sizes: tuple[int, int, int], layout: str) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(1)
    a, b = random(m, k, "rows", rng), random(k, n, layout, rng)
    before = num_threads()
    found = []
    try:
        for threads in (1, 2, 3, 7):
            set_num_threads(threads)
            found.append(check(None, a, b).copy())
        found += [check(None, a, b, kept=True).copy() for _ in range(5)]
    finally:
        set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    "sizes", [(20, 20, 300), (9, 3, 41), (7, 1, 50), (50, 70, 33), (200, 37, 20), (2, 5, 1)]
)
def test_nothing_behind_the_operands_is_read(name: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(2)
    a, b = random(m, k, "rows", rng), random(k, n, "rows", rng)
    check(name, before_a_gap(a), before_a_gap(b))
    turned = [np.ascontiguousarray(x.T) for x in (a, b)]
    check(name, before_a_gap(turned[0]).T, before_a_gap(turned[1]).T)
    check(name, before_a_gap(a), before_a_gap(turned[1]).T)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("k", [2, 3, 33])
@pytest.mark.parametrize("m", [3, 30])
def test_special_values(name: str, k: int, m: int) -> None:
    """The terms that fill up pairs and vectors meet no element of the matrices."""
    a, b = np.ones((m, k), np.float32), np.ones((k, 3), np.float32)
    a[0, k - 1], a[1, 0], a[2, k - 1] = np.inf, np.nan, -0.0
    b[:, 1], b[k - 1, 2] = 0, -1
    with np.errstate(invalid="ignore"):
        want = a[:3].astype(np.float64) @ b.astype(np.float64)
    for left in (brain_all(a), np.asfortranarray(brain_all(a))):
        for right in (brain_all(b), np.asfortranarray(brain_all(b))):
            out = np.empty((m, 3), np.float32)
            multiply(name, left, right, out)
            np.testing.assert_array_equal(out[:3], want)


def brain_all(values: np.ndarray) -> np.ndarray:
    """The bits of numbers that bfloat16 has, non-finite ones too."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
