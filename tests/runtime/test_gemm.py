"""Matrix products of the runtime: every instruction set that this processor has, any layout and size."""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.runtime import _launch, num_threads, set_num_threads

LETTERS = {"float32": "s", "float64": "d"}
MARGIN = 3


def _available() -> list[str]:
    found = []
    for name in ("avx512", "avx2", "portable"):
        try:
            _launch.matrix_product(name, "s", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        except LookupError:
            continue
        found.append(name)
    return found


SETS = _available()


def multiply(name: str | None, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    def steps(x: np.ndarray) -> list[int]:
        return [s // x.itemsize for s in x.strides]

    sizes = (a.shape[0], b.shape[1], a.shape[1])
    places = (a.ctypes.data, *steps(a), b.ctypes.data, *steps(b), out.ctypes.data, steps(out)[0])
    _launch.matrix_product(name, LETTERS[a.dtype.name], *sizes, *places)


def matrix(rows: int, cols: int, dtype: str, layout: str, rng: np.random.Generator) -> np.ndarray:
    """Random numbers in row-major, column-major, padded, turned, strided or broadcast memory."""
    values = rng.standard_normal((rows, cols)).astype(dtype)
    if layout == "columns":
        return np.asfortranarray(values)
    if layout == "broadcast":
        return np.broadcast_to(values[:1], (rows, cols)) if rows else values
    memory = {
        "rows": np.empty((rows, cols), dtype),
        "padded": np.empty((rows, cols + 5), dtype)[:, 2 : 2 + cols],
        "turned": np.empty((cols, rows + 3), dtype)[:, 1 : 1 + rows].T,
        "strided": np.empty((2 * rows, 3 * cols), dtype)[::2, ::3],
        "backwards": np.empty((rows, cols), dtype)[::-1, ::-1],
    }[layout]
    memory[...] = values
    return memory


def within_margins(a: np.ndarray, b: np.ndarray, write: Callable[[np.ndarray], None]) -> np.ndarray:
    """What is written of ``a @ b``; nothing around it may be."""
    around = np.full((a.shape[0], b.shape[1] + 2 * MARGIN), 7, a.dtype)
    out = around[:, MARGIN : MARGIN + b.shape[1]]
    write(out)
    assert (around[:, :MARGIN] == 7).all()
    assert (around[:, MARGIN + b.shape[1] :] == 7).all()
    return out


def exact_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``a @ b`` in a wider type, and how far off a product in the type of ``a`` may be. Products of long
    doubles are slow: a second each for some of the sizes below."""
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    sums = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    return a.astype(wide) @ b.astype(wide), sums * (a.shape[1] + 1) * np.finfo(a.dtype).eps


def check(
    name: str | None, a: np.ndarray, b: np.ndarray, wanted: tuple[np.ndarray, np.ndarray] | None = None
) -> np.ndarray:
    """What is computed; ``wanted``: :func:`exact_product`, where it is known."""
    out = within_margins(a, b, lambda out: multiply(name, a, b, out))
    exact, bound = exact_product(a, b) if wanted is None else wanted
    assert (np.abs(out - exact) <= bound).all()
    return out


def product(name: str | None, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.full((a.shape[0], b.shape[1]), np.nan, a.dtype)
    multiply(name, a, b, out)
    return out


EXTENTS = st.one_of(st.integers(0, 20), st.sampled_from((31, 32, 33, 63, 64, 65, 95, 96, 100, 127, 130, 200)))
LAYOUTS = st.sampled_from(("rows", "columns", "padded", "turned", "strided", "backwards", "broadcast"))


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=150, deadline=None)
@given(
    sizes=st.tuples(EXTENTS, EXTENTS, EXTENTS),
    dtype=st.sampled_from(sorted(LETTERS)),
    layouts=st.tuples(LAYOUTS, LAYOUTS),
    seed=st.integers(0, 1000),
)
def test_any_layout(
    name: str, sizes: tuple[int, int, int], dtype: str, layouts: tuple[str, str], seed: int
) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(seed)
    check(name, matrix(m, k, dtype, layouts[0], rng), matrix(k, n, dtype, layouts[1], rng))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("dtype", sorted(LETTERS))
@pytest.mark.parametrize("layouts", [("rows", "rows"), ("rows", "columns"), ("columns", "rows")])
@pytest.mark.parametrize(
    "sizes",
    [
        (3, 70, 5000),
        (150, 70, 5000),
        (700, 130, 40),
        (40, 1000, 130),
        (49, 200, 900),
        (1, 9001, 700),
        (1, 700, 301),
    ],
)
def test_more_than_a_block(
    name: str, dtype: str, layouts: tuple[str, str], sizes: tuple[int, int, int]
) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(0)
    a, b = matrix(m, k, dtype, layouts[0], rng), matrix(k, n, dtype, layouts[1], rng)
    check(name, a, b, exact_product_of_random_numbers(dtype, sizes))


@functools.cache
def exact_product_of_random_numbers(dtype: str, sizes: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    m, n, k = sizes
    rng = np.random.default_rng(0)
    return exact_product(matrix(m, k, dtype, "rows", rng), matrix(k, n, dtype, "rows", rng))


@pytest.mark.parametrize(
    "sizes",
    [(200, 300, 400), (8, 2000, 300), (16, 3000, 100), (50, 900, 200), (2000, 70, 30), (1, 258, 30000)],
)
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_the_bits_do_not_depend_on_threads(sizes: tuple[int, int, int], layout: str) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(1)
    a, b = matrix(m, k, "float32", "rows", rng), matrix(k, n, "float32", layout, rng)
    before = num_threads()
    wanted = exact_product(a, b)
    found = []
    try:
        for threads in (1, 2, 3, 7):
            set_num_threads(threads)
            found.append(check(None, a, b, wanted).copy())
    finally:
        set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found)


def before_a_gap(values: np.ndarray) -> np.ndarray:
    """The same at the end of a page behind which nothing may be read."""
    pages = -(-values.nbytes // mmap.PAGESIZE)
    memory = np.frombuffer(mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE), np.uint8)
    end = pages * mmap.PAGESIZE
    protect = ctypes.CDLL(None).mprotect
    assert protect(ctypes.c_void_p(memory.ctypes.data + end), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    found = memory[end - values.nbytes : end].view(values.dtype).reshape(values.shape)
    found[...] = values
    return found


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    "sizes", [(20, 20, 300), (9, 3, 40), (7, 1, 50), (50, 70, 33), (200, 37, 20), (2, 5, 1), (1, 259, 19)]
)
def test_nothing_behind_the_operands_is_read(name: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(2)
    for dtype in sorted(LETTERS):
        a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
        check(name, before_a_gap(a), before_a_gap(b))
        check(name, before_a_gap(a.T).T, before_a_gap(b.T).T)


@pytest.mark.parametrize("name", SETS)
def test_special_values(name: str) -> None:
    a = np.array([[np.inf, 1.0], [np.nan, 0.0], [-0.0, 0.0]])
    b = np.array([[1.0, 0.0, -1.0], [2.0, 3.0, -0.0]])
    out = np.empty((3, 3))
    multiply(name, a, b, out)
    np.testing.assert_array_equal(out, [[np.inf, np.nan, -np.inf], [np.nan] * 3, [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("dtype", sorted(LETTERS))
def test_groups_of_rows_of_several_heights(name: str, dtype: str) -> None:
    """A lies by columns: groups of full height are packed together, but not those beside taller ones."""
    sizes = [(m, n) for m in (*range(2, 65), *range(480, 601, 13)) for n in (24, 33, 48, 96)]
    rng = np.random.default_rng(3)
    before = num_threads()
    try:
        for m, n in sizes:
            a, b = matrix(m, 7, dtype, "columns", rng), matrix(7, n, dtype, "rows", rng)
            found = []
            for threads in (1, 2, 16):
                set_num_threads(threads)
                found.append(check(name, a, b) if threads == 1 else product(name, a, b))
            assert all(np.array_equal(found[0], other) for other in found)
    finally:
        set_num_threads(before)


def test_an_instruction_set_that_is_not_there() -> None:
    with pytest.raises(LookupError, match="no instruction set sse9"):
        _launch.matrix_product("sse9", "s", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
