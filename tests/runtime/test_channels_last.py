"""Convolutions of the runtime with channels innermost, and depthwise ones in either order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.prims.convolution import convolution_ref
from dyncomp.runtime import _launch, num_threads, set_num_threads
from tests.runtime.test_gemm import LETTERS, MARGIN, SETS
from tests.runtime.test_windows import STEPS, Case, cases, check_what_is_not_finite


def convolve(
    name: str | None, case: Case, x: np.ndarray, w: np.ndarray, last: bool, depthwise: bool
) -> np.ndarray:
    """The convolution of an image (channels, rows, columns); nothing around the result may be written."""
    rows, columns = case.result
    places, kernels, taps = rows * columns, w.shape[0], w.shape[2] * w.shape[3]
    terms = taps * w.shape[1]
    steps = [s // x.itemsize for s in x.strides]
    windows = (columns, *case.sizes, *case.kernel, *case.stride, *case.dilation, *case.padding, *steps)
    around = np.full(kernels * places + 2 * MARGIN, 7, x.dtype)
    out = around[MARGIN:-MARGIN]
    if last:
        columns_of_kernels = np.ascontiguousarray(w.transpose(0, 2, 3, 1))
        sizes = (places, kernels, terms)
        a, b = (x.ctypes.data, 0, 1), (columns_of_kernels.ctypes.data, 1, terms)
        c = (out.ctypes.data, kernels)
    else:
        sizes = (kernels, places, terms)
        a, b = (w.ctypes.data, terms, 1), (x.ctypes.data, places, 1)
        c = (out.ctypes.data, places)
    flags = (int(last), int(depthwise))
    _launch.matrix_product(name, LETTERS[x.dtype.name], *sizes, *a, *b, *c, (*windows, *flags))
    assert (around[:MARGIN] == 7).all()
    assert (around[-MARGIN:] == 7).all()
    return (
        out.reshape(rows, columns, kernels).transpose(2, 0, 1)
        if last
        else out.reshape(kernels, rows, columns)
    )


def image(case: Case, dtype: str, layout: str, rng: np.random.Generator) -> np.ndarray:
    high, wide = case.sizes
    memory = {
        "rows": np.empty((case.channels, high, wide), dtype),
        "padded": np.empty((case.channels, high + 1, wide + 3), dtype)[:, 1:, 2:-1],
        "last": np.empty((high, wide, case.channels), dtype).transpose(2, 0, 1),
        "wide": np.empty((high, wide, case.channels + 3), dtype).transpose(2, 0, 1)[1:-2],
        "strided": np.empty((2 * high, 3 * wide, case.channels), dtype).transpose(2, 0, 1)[:, ::2, ::3],
    }[layout]
    memory[...] = rng.standard_normal(memory.shape)
    return memory


def check(
    name: str | None, case: Case, dtype: str, seed: int, last: bool, depthwise: bool, layout: str
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if depthwise:
        case = replace(case, kernels=case.channels)
    x = image(case, dtype, layout, rng)
    inner = 1 if depthwise else case.channels
    w = rng.standard_normal((case.kernels, inner, *case.kernel)).astype(dtype)
    found = convolve(name, case, x, w, last, depthwise)
    params = {
        "stride": case.stride,
        "padding": tuple((p, p) for p in case.padding),
        "dilation": case.dilation,
        "groups": case.channels if depthwise else 1,
    }
    exact = convolution_ref(x[None].astype(np.float64), w.astype(np.float64), **params)[0]
    most = convolution_ref(abs(x[None]).astype(np.float64), abs(w).astype(np.float64), **params)[0]
    assert (abs(found - exact) <= most * (w[0].size + 1) * np.finfo(dtype).eps).all()
    return found


@st.composite
def wide_cases(draw: st.DrawFn) -> Case:
    case = draw(cases())
    channels = draw(st.sampled_from((1, 2, 5, 8, 15, 16, 17, 31, 33, 50)))
    sizes = (min(case.sizes[0], 24), min(case.sizes[1], 40))
    reach = [d * (k - 1) + 1 - 2 * p for d, k, p in zip(case.dilation, case.kernel, case.padding)]
    least = (max(sizes[0], reach[0]), max(sizes[1], reach[1]))
    return replace(case, channels=channels, kernels=draw(st.integers(1, 150)), sizes=least)


LAYOUTS = {True: ("last", "wide", "strided"), False: ("rows", "padded", "last")}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("last", "depthwise"), [(True, False), (True, True), (False, True)])
@settings(max_examples=60, deadline=None)
@given(
    case=wide_cases(),
    dtype=st.sampled_from(sorted(LETTERS)),
    which=st.integers(0, 2),
    seed=st.integers(0, 99),
)
def test_any_sizes(
    name: str, last: bool, depthwise: bool, case: Case, dtype: str, which: int, seed: int
) -> None:
    check(name, case, dtype, seed, last, depthwise, LAYOUTS[last][which])


LARGE = [
    Case(64, 150, (30, 41), (3, 3), padding=(1, 1)),
    Case(48, 70, (30, 59), (3, 3), stride=(2, 2), padding=(0, 1)),
    Case(160, 32, (19, 25), (3, 3), padding=(2, 1)),
    Case(3, 70, (60, 90), (7, 7), stride=(2, 2), padding=(3, 3)),
    Case(300, 520, (7, 7), (3, 3), padding=(1, 1)),
    Case(33, 40, (61, 90), (5, 3), stride=(2, 1), dilation=(2, 2), padding=(4, 1)),
    Case(20, 30, (112, 200), (7, 7), padding=(3, 3)),
]


@pytest.mark.parametrize("case", LARGE, ids=str)
@pytest.mark.parametrize(("last", "depthwise"), [(True, False), (True, True), (False, True)])
def test_the_bits_do_not_depend_on_threads(case: Case, last: bool, depthwise: bool) -> None:
    before = num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            set_num_threads(threads)
            found.append(check(None, case, "float32", 1, last, depthwise, LAYOUTS[last][0]).copy())
    finally:
        set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("stride", STEPS)
@pytest.mark.parametrize("dtype", sorted(LETTERS))
@pytest.mark.parametrize("name", SETS)
def test_what_is_not_finite(name: str, dtype: str, stride: tuple[int, int]) -> None:
    def call(case: Case, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        innermost = np.ascontiguousarray(x.transpose(1, 2, 0)).transpose(2, 0, 1)
        return convolve(name, case, innermost, w, last=True, depthwise=False)

    check_what_is_not_finite(call, stride, dtype)


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("stride", STEPS)
def test_depthwise_sees_what_is_not_finite_where_it_is(stride: tuple[int, int], last: bool) -> None:
    case = Case(33, 33, (18, 45), (3, 3), stride=stride, padding=(1, 1))
    rng = np.random.default_rng(0)
    x = image(case, "float32", "last" if last else "rows", rng)
    w = rng.standard_normal((33, 1, 3, 3)).astype(np.float32)
    x[5, 0, 0], x[32, 17, 44], x[0, 9, 20] = np.inf, np.nan, -np.inf
    w[7, 0, 1, 2], w[20, 0, 0, 0] = np.inf, np.nan
    params = {"stride": stride, "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 33}
    with np.errstate(all="ignore"):
        wanted = convolution_ref(x[None], w, **params)[0]
    found = convolve(None, case, x, w, last, depthwise=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
