"""Convolutions of bfloat16 by the runtime: by the processor's instructions and widened, in either layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.prims.convolution import convolution_ref
from dyncomp.runtime import _launch, num_threads, set_num_threads
from tests.runtime.test_channels_last import LAYOUTS, image
from tests.runtime.test_gemm import MARGIN, SETS, before_a_gap
from tests.runtime.test_gemm_brain import brain, brain_all, wide
from tests.runtime.test_windows import Case, cases


def laid_out(w: np.ndarray, last: bool) -> np.ndarray:
    """Kernels as they lie beside images in this order; nothing behind them may be read."""
    return before_a_gap(np.ascontiguousarray(w.transpose(0, 2, 3, 1) if last else w))


def convolve(
    name: str | None,
    case: Case,
    x: np.ndarray,
    kernels: np.ndarray,
    last: bool,
    depthwise: bool = False,
    kept: bool = False,
) -> np.ndarray:
    """The float32 convolution of bits of bfloat16; nothing around the result may be written."""
    rows, columns = case.result
    places, count, terms = rows * columns, kernels.shape[0], kernels[0].size
    steps = [s // x.itemsize for s in x.strides]
    windows = (columns, *case.sizes, *case.kernel, *case.stride, *case.dilation, *case.padding, *steps)
    around = np.full(count * places + 2 * MARGIN, 7, np.float32)
    out = around[MARGIN:-MARGIN]
    image, matrix = x.ctypes.data, kernels.ctypes.data
    if last:
        sizes = (places, count, terms)
        a, b, c = (image, 0, 1), (matrix, 1, terms), (out.ctypes.data, count)
    else:
        sizes = (count, places, terms)
        a, b, c = (matrix, terms, 1), (image, places, 1), (out.ctypes.data, places)
    flags = (int(last), int(depthwise))
    _launch.matrix_product(name, "b", *sizes, *a, *b, *c, (*windows, *flags), int(kept))
    assert (around[:MARGIN] == 7).all()
    assert (around[-MARGIN:] == 7).all()
    if last:
        return out.reshape(rows, columns, count).transpose(2, 0, 1)
    return out.reshape(count, rows, columns)


def bits_of(values: np.ndarray) -> np.ndarray:
    """The same array in bfloat16, its elements as far apart."""
    elements = sum((n - 1) * s for n, s in zip(values.shape, values.strides)) // values.itemsize + 1
    memory = before_a_gap(np.zeros(elements, np.uint16))
    steps = tuple(s // values.itemsize * memory.itemsize for s in values.strides)
    made = np.lib.stride_tricks.as_strided(memory, values.shape, steps)
    made[...] = brain(values)
    return made


def params_of(case: Case, groups: int = 1) -> dict[str, object]:
    return {
        "stride": case.stride,
        "padding": tuple((p, p) for p in case.padding),
        "dilation": case.dilation,
        "groups": groups,
    }


def check(
    name: str | None, case: Case, seed: int, last: bool, layout: str, depthwise: bool = False
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if depthwise:
        case = replace(case, kernels=case.channels)
    x = bits_of(image(case, "float32", layout, rng))
    w = brain(rng.standard_normal((case.kernels, 1 if depthwise else case.channels, *case.kernel)))
    found = convolve(name, case, x, laid_out(w, last), last, depthwise)
    params = params_of(case, case.channels if depthwise else 1)
    left, right = wide(x).astype(np.float64), wide(w).astype(np.float64)
    exact = convolution_ref(left[None], right, **params)[0]
    most = convolution_ref(abs(left[None]), abs(right), **params)[0]
    assert (abs(found - exact) <= most * (w[0].size + 1) * np.finfo(np.float32).eps).all()
    return found


@st.composite
def some_cases(draw: st.DrawFn) -> Case:
    case = draw(cases())
    channels = draw(st.sampled_from((1, 2, 3, 4, 7, 8, 15, 16, 17, 30, 33, 50)))
    sizes = (min(case.sizes[0], 24), min(case.sizes[1], 40))
    reach = [d * (k - 1) + 1 - 2 * p for d, k, p in zip(case.dilation, case.kernel, case.padding)]
    least = (max(sizes[0], reach[0]), max(sizes[1], reach[1]))
    return replace(case, channels=channels, kernels=draw(st.integers(1, 150)), sizes=least)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("last", [True, False])
@settings(max_examples=50, deadline=None)
@given(case=some_cases(), which=st.integers(0, 2), seed=st.integers(0, 99))
def test_any_sizes(name: str, last: bool, case: Case, which: int, seed: int) -> None:
    check(name, case, seed, last, LAYOUTS[last][which])


@pytest.mark.parametrize("last", [True, False])
def test_depthwise(last: bool) -> None:
    check(None, Case(33, 33, (18, 45), (3, 3), padding=(1, 1)), 0, last, LAYOUTS[last][0], depthwise=True)


LARGE = [
    Case(64, 150, (30, 41), (3, 3), padding=(1, 1)),
    Case(48, 70, (30, 59), (3, 3), stride=(2, 2), padding=(0, 1)),
    Case(3, 70, (60, 90), (7, 7), stride=(2, 2), padding=(3, 3)),
    Case(301, 520, (7, 7), (3, 3), padding=(1, 1)),
    Case(33, 40, (61, 90), (5, 3), stride=(2, 1), dilation=(2, 2), padding=(4, 1)),
    Case(20, 90, (112, 100), (1, 1), stride=(2, 2)),
    Case(80, 48, (1, 3000), (1, 3), padding=(0, 1)),
]


@pytest.mark.parametrize("case", LARGE, ids=str)
@pytest.mark.parametrize("last", [True, False])
def test_the_bits_do_not_depend_on_threads(case: Case, last: bool) -> None:
    before = num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            set_num_threads(threads)
            found.append(check(None, case, 1, last, LAYOUTS[last][0]).copy())
    finally:
        set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("last", [True, False])
def test_kernels_that_are_kept(last: bool) -> None:
    case = Case(48, 80, (14, 20), (3, 3), padding=(1, 1))
    rng = np.random.default_rng(0)
    x = bits_of(image(case, "float32", "last" if last else "rows", rng))
    w = brain(rng.standard_normal((80, 48, 3, 3)))
    kernels = laid_out(w, last)
    for change in range(3):
        w[7:9] = brain(rng.standard_normal((2, 48, 3, 3)) + change)
        kernels[...] = laid_out(w, last)
        found = [convolve(None, case, x, kernels, last, kept=True) for _ in range(12)]
        assert all(np.array_equal(found[0], other) for other in found)
        exact = convolution_ref(wide(x)[None].astype(np.float64), wide(w), **params_of(case))[0]
        np.testing.assert_allclose(found[0], exact, rtol=0, atol=1e-5 * abs(exact).max())


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize(
    "case",
    [
        Case(3, 20, (17, 30), (3, 3)),
        Case(17, 20, (17, 30), (3, 3), stride=(2, 2), padding=(1, 1)),
        Case(5, 20, (17, 30), (7, 7), stride=(2, 2), padding=(3, 3)),
        Case(16, 20, (17, 30), (3, 3), padding=(1, 1)),
    ],
    ids=str,
)
def test_what_is_not_finite_is_seen_where_it_is(name: str, last: bool, case: Case) -> None:
    """The elements that fill up pairs meet nothing of the image."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((case.channels, *case.sizes)).astype(np.float32)
    values[-1, 3, 4], values[0, 8, 20], values[1, 16, 29] = np.inf, np.nan, -np.inf
    x = brain_all(values.transpose(1, 2, 0)).transpose(2, 0, 1) if last else brain_all(values)
    w = brain(rng.standard_normal((case.kernels, case.channels, *case.kernel)))
    found = convolve(name, case, x, laid_out(w, last), last)
    with np.errstate(invalid="ignore"):
        wanted = convolution_ref(wide(x)[None], wide(w), **params_of(case))[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
