"""Convolutions of the runtime: products with what the windows of a kernel see of an image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.prims.convolution import convolution_ref
from dyncomp.runtime import _launch, num_threads, set_num_threads
from tests.runtime.test_gemm import LETTERS, MARGIN, SETS

Pair = tuple[int, int]


@dataclass(frozen=True)
class Case:
    channels: int
    kernels: int
    sizes: Pair
    kernel: Pair
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Pair = (0, 0)

    @property
    def result(self) -> Pair:
        rows, columns = (
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, p, d, k, s in zip(self.sizes, self.padding, self.dilation, self.kernel, self.stride)
        )
        return rows, columns


def convolve(
    name: str | None, case: Case, x: np.ndarray, w: np.ndarray, turned: bool = False, kept: bool = False
) -> np.ndarray:
    """The convolution of an image in memory of any strides; nothing around the result may be written.
    ``turned``: the kernels are columns of a matrix in memory. ``kept``: they may be kept."""
    rows, columns = case.result
    steps = [s // x.itemsize for s in x.strides]
    windows = (columns, *case.sizes, *case.kernel, *case.stride, *case.dilation, *case.padding, *steps, 0, 0)
    terms = w[0].size
    around = np.full(case.kernels * rows * columns + 2 * MARGIN, 7, x.dtype)
    out = around[MARGIN:-MARGIN]
    kernels = np.ascontiguousarray(w.reshape(-1, terms).T) if turned else w
    steps_of_kernels = (1, case.kernels) if turned else (terms, 1)
    places = (kernels.ctypes.data, *steps_of_kernels, x.ctypes.data, 0, 1, out.ctypes.data, rows * columns)
    sizes = (case.kernels, rows * columns, terms)
    _launch.matrix_product(name, LETTERS[x.dtype.name], *sizes, *places, windows, int(kept))
    assert (around[:MARGIN] == 7).all()
    assert (around[-MARGIN:] == 7).all()
    return out.reshape(case.kernels, rows, columns)


def check(name: str | None, case: Case, dtype: str, seed: int, layout: str = "rows") -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = (case.channels, *case.sizes)
    memory = {
        "rows": np.empty(shape, dtype),
        "padded": np.empty((case.channels, case.sizes[0] + 1, case.sizes[1] + 3), dtype)[:, 1:, 2:-1],
        "last": np.empty((*case.sizes, case.channels), dtype).transpose(2, 0, 1),
        "strided": np.empty((case.channels, 2 * case.sizes[0], 2 * case.sizes[1]), dtype)[:, ::2, ::2],
    }[layout]
    memory[...] = rng.standard_normal(shape)
    w = rng.standard_normal((case.kernels, case.channels, *case.kernel)).astype(dtype)
    found = convolve(name, case, memory, w)
    np.testing.assert_array_equal(found, convolve(name, case, memory, w, turned=True))
    params = {
        "stride": case.stride,
        "padding": tuple((p, p) for p in case.padding),
        "dilation": case.dilation,
    }
    exact = convolution_ref(memory[None].astype(np.float64), w.astype(np.float64), **params)[0]
    most = convolution_ref(abs(memory[None]).astype(np.float64), abs(w).astype(np.float64), **params)[0]
    assert (abs(found - exact) <= most * (w[0].size + 1) * np.finfo(dtype).eps).all()
    return found


SMALL = st.integers(1, 3)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    dilation, stride = draw(st.tuples(SMALL, SMALL)), draw(st.tuples(SMALL, SMALL))
    padding = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    extra = draw(st.tuples(st.integers(0, 40), st.sampled_from((0, 1, 6, 13, 14, 15, 16, 30, 47, 70))))
    sizes = tuple(max(1, d * (k - 1) + 1 - 2 * p) + e for d, k, p, e in zip(dilation, kernel, padding, extra))
    channels, kernels = draw(st.one_of(st.just((1, 1)), st.tuples(st.integers(1, 4), st.integers(1, 20))))
    return Case(channels, kernels, (sizes[0], sizes[1]), kernel, stride, dilation, padding)


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=150, deadline=None)
@given(
    case=cases(),
    dtype=st.sampled_from(sorted(LETTERS)),
    layout=st.sampled_from(("rows", "padded", "last", "strided")),
    seed=st.integers(0, 1000),
)
def test_any_sizes(name: str, case: Case, dtype: str, layout: str, seed: int) -> None:
    check(name, case, dtype, seed, layout)


# As those that are gradients with respect to kernels.
FEW_PLACES = [
    Case(3, 20, (20, 23), (18, 17), padding=(1, 0)),
    Case(40, 70, (9, 8), (6, 4), padding=(1, 1)),
    Case(2, 33, (41, 39), (18, 19), dilation=(2, 2), padding=(2, 1)),
    Case(1, 9, (61, 64), (55, 60), padding=(0, 1)),
    Case(4, 130, (30, 32), (9, 7), stride=(2, 2), dilation=(3, 4), padding=(2, 0)),
    Case(5, 17, (1, 70), (1, 30), dilation=(1, 2), padding=(0, 7)),
]
LARGE = [
    Case(70, 33, (30, 41), (3, 3), padding=(1, 1)),
    Case(100, 20, (14, 14), (3, 3), stride=(2, 2), padding=(1, 1)),
    Case(3, 16, (60, 90), (7, 7), stride=(2, 2), padding=(3, 3)),
    Case(40, 30, (64, 90), (3, 3), padding=(1, 1)),
    Case(64, 20, (1, 6000), (1, 9), padding=(0, 4)),
    Case(30, 17, (95, 100), (5, 3), stride=(2, 2), dilation=(2, 1), padding=(4, 1)),
    Case(40, 9, (100, 110), (1, 1), stride=(2, 2)),
    Case(20, 50, (70, 70), (7, 7), stride=(3, 3), padding=(1, 2)),
    Case(3, 40, (64, 64), (16, 16), stride=(16, 16)),
    Case(1, 1, (130, 150), (5, 5), stride=(2, 1), padding=(2, 2)),
    Case(64, 48, (29, 31), (3, 3), padding=(2, 0)),
    Case(16, 100, (13, 90), (3, 3), padding=(0, 3)),
    Case(150, 17, (12, 12), (3, 3), padding=(1, 1)),
    Case(60, 75, (31, 41), (3, 3), stride=(2, 2), padding=(1, 1)),
    Case(130, 66, (26, 70), (3, 3), stride=(2, 2), padding=(0, 2)),
    Case(1, 1, (1, 5000), (1, 9), dilation=(1, 3), padding=(0, 12)),
    *FEW_PLACES,
]


@pytest.mark.parametrize("case", LARGE, ids=str)
@pytest.mark.parametrize("name", SETS)
def test_more_than_a_block(name: str, case: Case) -> None:
    check(name, case, "float32", 0)


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_the_bits_do_not_depend_on_threads(case: Case) -> None:
    before = num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            set_num_threads(threads)
            found.append(check(None, case, "float32", 1).copy())
    finally:
        set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found)


def check_what_is_not_finite(call: Callable[..., np.ndarray], stride: Pair, dtype: str) -> None:
    """It goes no further than it is seen, and its results are those of products: ``call(case, x, w)``."""
    case = Case(32, 66, (17, 39), (3, 3), stride=stride, padding=(1, 1))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 17, 39)).astype(dtype)
    w = rng.standard_normal((66, 32, 3, 3)).astype(dtype)
    w[3] = 0
    plain = call(case, x, w)
    large = np.finfo(dtype).max
    seen = np.zeros(case.sizes)
    for place, value in (
        ((0, 0, 0), np.inf),
        ((5, 8, 8), -np.inf),
        ((7, 3, 21), np.nan),
        ((9, 12, 30), large / 16),
        ((11, 16, 38), np.inf),
    ):
        x[place] = value
        seen[place[1:]] = 1
    x[3, 14:, 5] = np.inf
    x[4, 14:, 5] = -np.inf
    seen[14:, 5] = 1
    w[5, 2, 1, 1] = np.nan
    w[6, 2] = large / 64
    found = call(case, x, w)
    params = {"stride": stride, "padding": ((1, 1), (1, 1)), "dilation": (1, 1)}
    with np.errstate(all="ignore"):
        wanted = convolution_ref(x[None], w, **params)[0]
        # errors are relative to the largest element that a place sees, whatever it is multiplied with
        largest = np.broadcast_to(abs(w).max((2, 3), keepdims=True), w.shape)
        most = convolution_ref(abs(x[None]), largest, **params)[0]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(found[np.isinf(wanted)], wanted[np.isinf(wanted)])
    finite = np.isfinite(wanted) & np.isfinite(most)
    error = abs(found[finite].astype(np.longdouble) - wanted[finite])
    assert (error <= most[finite].astype(np.longdouble) * (w[0].size + 1) * np.finfo(dtype).eps).all()
    unseen = convolution_ref(seen[None, None], np.ones((1, 1, 3, 3)), **params)[0, 0] == 0
    others = [k for k in range(66) if k not in (5, 6)]
    np.testing.assert_array_equal(found[others][:, unseen], plain[others][:, unseen])


STEPS = [(1, 1), (2, 2)]


@pytest.mark.parametrize("stride", STEPS)
@pytest.mark.parametrize("dtype", sorted(LETTERS))
@pytest.mark.parametrize("name", SETS)
def test_what_is_not_finite(name: str, dtype: str, stride: Pair) -> None:
    check_what_is_not_finite(partial(convolve, name), stride, dtype)


@pytest.mark.parametrize("stride", STEPS)
def test_an_element_changes_only_what_sees_it(stride: Pair) -> None:
    case = Case(16, 64, (24, 24), (3, 3), stride=stride, padding=(1, 1))
    x = np.zeros((16, 24, 24), np.float32)
    x[2, 5, 6] = 1e30
    w = np.random.default_rng(0).standard_normal((64, 16, 3, 3)).astype(np.float32)
    params = {"stride": stride, "padding": ((1, 1), (1, 1)), "dilation": (1, 1)}
    large = convolution_ref(abs(x[None]), np.ones_like(w), **params)[0]
    x[3, 9, 1] = 1e-3
    found = convolve(None, case, x, w)
    exact = convolution_ref(x[None].astype(np.float64), w.astype(np.float64), **params)[0]
    small = large == 0
    assert small.any() and not small.all()
    np.testing.assert_allclose(found[small], exact[small], rtol=0, atol=1e-3 * np.abs(w).max() * 1e-6)
    assert (found[small][exact[small] == 0] == 0).all()


@pytest.mark.parametrize("stride", STEPS)
@pytest.mark.parametrize("sizes", [(7, 7), (6, 9), (20, 20)])
def test_sums_of_kernels_that_are_kept(sizes: Pair, stride: Pair) -> None:
    sizes = (sizes[0] * stride[0], sizes[1] * stride[1])
    case = Case(48, 80, sizes, (3, 3), stride=stride, padding=(1, 1))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((48, *sizes)).astype(np.float32)
    w = rng.standard_normal((80, 48, 3, 3)).astype(np.float32)
    params = {"stride": stride, "padding": ((1, 1), (1, 1)), "dilation": (1, 1)}
    for change in (0.0, 1.0, -3.0, np.nan):
        w[7:9] += np.float32(change)
        if np.isnan(change):
            w[7:9] = 0
            w[7, 0, 1] = 1  # a kernel with holes
        found = [convolve(None, case, x, w, kept=True) for _ in range(20)]
        assert all(np.array_equal(found[0], other) for other in found)
        exact = convolution_ref(x[None].astype(np.float64), w.astype(np.float64), **params)[0]
        np.testing.assert_allclose(found[0], exact, rtol=0, atol=1e-5 * abs(exact).max())
