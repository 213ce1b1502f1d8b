"""Products of 8-bit integers by the runtime, exact for any layout, size and sign; float32 by them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.runtime import _launch, num_threads, set_num_threads
from tests.runtime.test_gemm import EXTENTS, LAYOUTS, MARGIN, SETS, before_a_gap, matrix

KINDS = {"int8": 1, "uint8": 2}
DTYPES = st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(KINDS)))
BATCHES = 3


def numbers(rows: int, cols: int, dtype: str, layout: str, rng: np.random.Generator) -> np.ndarray:
    """Random 8-bit integers in memory of some layout, the extremes among them."""
    values = rng.choice(
        np.r_[np.iinfo(dtype).min, np.iinfo(dtype).max, 0, rng.integers(-128, 255, 20)], (rows, cols)
    )
    found = matrix(rows, cols, dtype, layout, rng)
    if layout != "broadcast":
        found[...] = values.astype(dtype)
    return found


def multiply(
    name: str | None, letter: str, a: np.ndarray, b: np.ndarray, out: np.ndarray, kept: bool = False
) -> None:
    """The last two axes are the matrices'."""

    def steps(x: np.ndarray) -> list[int]:
        return [s // x.itemsize for s in x.strides[-2:]]

    sizes = (a.shape[-2], b.shape[-1], a.shape[-1])
    places = (a.ctypes.data, *steps(a), b.ctypes.data, *steps(b), out.ctypes.data, steps(out)[0])
    batch = tuple(
        (out.shape[k], *(x.strides[k] // x.itemsize for x in (a, b, out))) for k in range(out.ndim - 2)
    )
    kinds = (KINDS.get(a.dtype.name, 0), KINDS[b.dtype.name])
    _launch.matrix_product(name, letter, *sizes, *places, (0,) * 16, int(kept), (0,) * 5, batch, *kinds)


def check(name: str | None, a: np.ndarray, b: np.ndarray, kept: bool = False) -> np.ndarray:
    around = np.full((a.shape[0], b.shape[1] + 2 * MARGIN), 7, np.int32)
    out = around[:, MARGIN : MARGIN + b.shape[1]]
    multiply(name, "i", a, b, out, kept)
    assert (around[:, :MARGIN] == 7).all()
    assert (around[:, MARGIN + b.shape[1] :] == 7).all()
    np.testing.assert_array_equal(out, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64))
    return out


def check_floats(name: str | None, a: np.ndarray, b: np.ndarray, kept: bool = False) -> np.ndarray:
    around = np.full((a.shape[0], b.shape[1] + 2 * MARGIN), 7, np.float32)
    out = around[:, MARGIN : MARGIN + b.shape[1]]
    multiply(name, "s", a, b, out, kept)
    assert (around[:, :MARGIN] == 7).all()
    assert (around[:, MARGIN + b.shape[1] :] == 7).all()
    left, right = a.astype(np.float64), b.astype(np.float64)
    bound = np.abs(left) @ np.abs(right) * (a.shape[1] + 1) * np.finfo(np.float32).eps
    assert (np.abs(out - left @ right) <= bound).all()
    return out


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=200, deadline=None)
@given(
    sizes=st.tuples(EXTENTS, EXTENTS, EXTENTS),
    layouts=st.tuples(LAYOUTS, LAYOUTS),
    dtypes=DTYPES,
    seed=st.integers(0, 1000),
)
def test_any_layout(
    name: str, sizes: tuple[int, int, int], layouts: tuple[str, str], dtypes: tuple[str, str], seed: int
) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(seed)
    right = numbers(k, n, dtypes[1], layouts[1], rng)
    check(name, numbers(m, k, dtypes[0], layouts[0], rng), right)
    check_floats(name, matrix(m, k, "float32", layouts[0], rng), right)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("layouts", [("rows", "rows"), ("rows", "columns"), ("columns", "rows")])
@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8")])
@pytest.mark.parametrize(
    "sizes",
    [(3, 70, 5001), (150, 70, 5000), (700, 130, 41), (40, 1000, 130), (49, 200, 2100), (1, 5000, 701),
     (4, 901, 1399), (2, 333, 2048)],
)  # fmt: skip
def test_more_than_a_block(
    name: str, layouts: tuple[str, str], dtypes: tuple[str, str], sizes: tuple[int, int, int]
) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(0)
    right = numbers(k, n, dtypes[1], layouts[1], rng)
    check(name, numbers(m, k, dtypes[0], layouts[0], rng), right)
    if dtypes[0] == "int8":
        check_floats(name, matrix(m, k, "float32", layouts[0], rng), right)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("m", [1, 30])
def test_the_largest_sums(name: str, m: int) -> None:
    """All terms are extremes; sums beyond int32 wrap."""
    for left, right in ((-128, -128), (-128, 127), (255, -128), (255, 255), (255, 127)):
        for k, layout in ((2047, "rows"), (2048, "columns")):
            a = np.full((m, k), left, "int8" if left < 0 else "uint8")
            b = np.full((k, 300), right, "uint8" if right > 127 else "int8")
            check(name, a, b if layout == "rows" else np.asfortranarray(b))
    k = 40000
    a, b = np.full((m, k), 255, np.uint8), np.full((k, 300), 255, np.uint8)
    out = np.empty((m, 300), np.int32)
    multiply(name, "i", a, b, out)
    assert (out == np.int64(k * 255 * 255 - 2**32)).all()


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("sizes", [(1, 600, 65), (5, 33, 70), (4, 300, 31)])
@pytest.mark.parametrize("shared", ["a", "b", ""])
def test_batches(name: str, sizes: tuple[int, int, int], shared: str) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(3)
    a = np.stack([numbers(m, k, "int8", "rows", rng) for _ in range(BATCHES)])
    b = np.stack([numbers(k, n, "uint8", "rows", rng) for _ in range(BATCHES)])
    a = np.broadcast_to(a[:1], a.shape) if shared == "a" else a
    b = np.broadcast_to(b[:1], b.shape) if shared == "b" else b
    two = [np.stack([x, x[::-1]]) if not shared else np.broadcast_to(x, (2, *x.shape)) for x in (a, b)]
    for left, right in ((a, b), (two[0], two[1])):
        out = np.full((*left.shape[:-1], n), 7, np.int32)
        multiply(name, "i", left, right, out)
        np.testing.assert_array_equal(out, left.astype(np.int32) @ right.astype(np.int32))
        floats = np.full(out.shape, 7, np.float32)
        multiply(name, "s", left.astype(np.float32), right, floats)
        np.testing.assert_array_equal(floats, out)


@pytest.mark.parametrize(
    "sizes", [(200, 300, 400), (8, 2000, 301), (50, 900, 200), (2000, 70, 30), (1, 3000, 2300), (4, 900, 801)]
)
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_the_bits_do_not_depend_on_threads_and_copies(sizes: tuple[int, int, int], layout: str) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(1)
    a, b = numbers(m, k, "uint8", "rows", rng), numbers(k, n, "int8", layout, rng)
    x = matrix(m, k, "float32", "rows", rng)
    before = num_threads()
    found = []
    try:
        for threads in (1, 2, 3, 7):
            set_num_threads(threads)
            check(None, a, b)
            found.append(check_floats(None, x, b).copy())
        for _ in range(5):
            check(None, a, b, kept=True)
            check(None, a, b.view(np.uint8), kept=True)  # the same memory, other numbers
            found.append(check_floats(None, x, b, kept=True).copy())
            check_floats(None, x, b.view(np.uint8), kept=True)
    finally:
        set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    "sizes",
    [
        (20, 20, 300),
        (9, 3, 41),
        (7, 1, 50),
        (50, 70, 33),
        (200, 37, 20),
        (2, 5, 1),
        (4, 267, 31),
        (1, 257, 9),
    ],
)
def test_nothing_behind_the_operands_is_read(name: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(2)
    a, b = numbers(m, k, "int8", "rows", rng), numbers(k, n, "uint8", "rows", rng)
    turned = [np.ascontiguousarray(x.T) for x in (a, b)]
    right = before_a_gap(b), before_a_gap(turned[1]).T
    check(name, before_a_gap(a), right[0])
    check(name, before_a_gap(turned[0]).T, right[1])
    check(name, before_a_gap(a), right[1])
    x = before_a_gap(a.astype(np.float32))
    for each in right:
        check_floats(name, x, each)
