"""Fourier transforms of rows that threads share: NumPy's bits, layouts and dtypes."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.inductor.lowering import fourier_routines
from dyncomp.prims.table import TABLE
from dyncomp.runtime import _launch, set_num_threads

UFUNCS = importlib.import_module("numpy.fft._pocketfft_umath")
# enough for rows to be shared, of lengths whose factors are small, large and one
SHAPES = ((130, 256), (257, 130), (3, 70, 101), (40, 7, 64))


def data(shape: tuple[int, ...], dtype: str) -> Any:
    random = np.random.default_rng(len(shape))
    x = random.standard_normal(shape)
    return (x + 1j * random.standard_normal(shape) if "complex" in dtype else x).astype(dtype)


def layouts(x: Any) -> list[Any]:
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return [x, np.asfortranarray(x), wide[..., ::2], x[::-1]]


TRANSFORMS = [
    (name, dtype)
    for name, dtypes in {
        "rfft": ("float32", "float64"),
        "fft": ("complex64", "complex128"),
        "ifft": ("complex64", "complex128"),
        "irfft": ("complex64", "complex128"),
    }.items()
    for dtype in dtypes
]


@pytest.mark.parametrize(("name", "dtype"), TRANSFORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bits_are_numpys(
    name: str, dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fourier_routines, "LEAST_ELEMENTS", 1)
    plain = getattr(np.fft, name)

    def refuse(x: Any) -> Any:
        raise AssertionError("NumPy's own is called")

    for x in layouts(data(shape, dtype)):
        for axis in (-1, 0, 1):
            for n, norm in ((None, None), (None, "ortho"), (50, "forward"), (301, "backward")):
                found = fourier_routines._transform(
                    name, TABLE[name].lower.transform, refuse, x, n=n, axis=axis, norm=norm
                )
                expected = plain(x, n=n, axis=axis, norm=norm)
                assert (found.dtype, found.shape, found.strides) == (
                    expected.dtype,
                    expected.shape,
                    expected.strides,
                )
                assert found.tobytes() == expected.tobytes()


def filtered(x):
    s = np.fft.rfft2(x)
    low = np.where(np.abs(s) > 3.0, s, 0)
    return np.fft.irfft2(low, s=x.shape), np.fft.fft(s, axis=0, norm="ortho")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_programs_have_numpys_bits_for_any_number_of_threads(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    own = fourier_routines._transform

    def note(*args: Any, **params: Any) -> Any:
        calls.append(args[0])
        return own(*args, **params)

    monkeypatch.setattr(fourier_routines, "_transform", note)
    x = data((200, 250), "float64")
    before = _launch.num_threads()
    set_num_threads(threads)
    try:
        found = dyncomp.compile(filtered)(x)
    finally:
        set_num_threads(before)
    assert sorted({*calls}) == ["fft", "ifft", "irfft", "rfft"]
    for mine, expected in zip(found, filtered(x), strict=True):
        assert mine.tobytes() == expected.tobytes()


def test_values_that_are_not_finite_are_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier_routines, "LEAST_ELEMENTS", 1)
    x = data((64, 60), "float64")
    x[3, 5], x[20, 7], x[33, 1] = np.nan, np.inf, -np.inf
    found = fourier_routines._transform("rfft", TABLE["rfft"].lower.transform, np.fft.rfft, x, n=None, axis=1)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, np.fft.rfft(x, axis=1))


def test_small_arrays_and_real_input_of_fft_are_left_to_numpy() -> None:
    called = []
    fourier_routines._transform(
        "rfft", TABLE["rfft"].lower.transform, called.append, np.ones((4, 4)), n=None, axis=0
    )
    assert len(called) == 1
    x = data((200, 250), "float64")
    np.testing.assert_array_equal(dyncomp.compile(lambda x: np.fft.fft(x))(x), np.fft.fft(x))


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (-3, ValueError)])
def test_no_points_raise_as_numpy_does(n: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        dyncomp.compile(lambda x: np.fft.rfft(x, n=n))(data((200, 250), "float64"))


X, OUT = np.ones((8, 16)), np.empty((8, 9), complex)
READ_ONLY = OUT.copy()
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "arguments",
    [
        (np.add, X, 1.0, OUT, 1),
        (object(), X, 1.0, OUT, 1),
        (UFUNCS.rfft_n_even, X, 1.0, READ_ONLY, 1),
        (UFUNCS.rfft_n_even, X, 1.0, OUT, 2),
        (UFUNCS.rfft_n_even, X, 1.0, OUT, 0),
        (UFUNCS.rfft_n_even, X, 1.0, OUT[:5], 1),
        (UFUNCS.rfft_n_even, X[0], 1.0, OUT[0], 0),
        (UFUNCS.rfft_n_even, X.astype("f4"), 1.0, OUT, 1),
        (UFUNCS.rfft_n_even, X.tolist(), 1.0, OUT, 1),
        (UFUNCS.rfft_n_even, X, "1", OUT, 1),
        (UFUNCS.rfft_n_even, X, 1.0, OUT),
    ],
)
def test_other_arguments_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        _launch.transform_rows(*arguments)


def sorted_into_a_view(x: Any) -> Any:
    out = x * 2
    out.T[...] = np.sort(x.T, axis=0)
    return out


def transformed_into_a_view(x: Any) -> Any:
    out = x + 0j
    np.fft.fft(out.T, axis=0, out=out.T)
    return out


@pytest.mark.parametrize("function", [sorted_into_a_view, transformed_into_a_view])
def test_a_result_goes_into_a_view_of_another_shape(function: Any) -> None:
    x = np.random.default_rng(0).random((40, 30))
    found, expected = dyncomp.compile(function)(x), function(x)
    assert (found.shape, found.strides) == (expected.shape, expected.strides)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
