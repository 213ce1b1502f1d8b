"""Values of all kinds written into arrays of all dtypes: converted, or refused, as NumPy does."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import dyncomp

MASK = np.array([True, False, True])
DTYPES = (np.float32, np.float64, np.int64, np.int8, bool, complex)
VALUES = {
    "float64 array": lambda: np.arange(3.0),
    "int64 array": lambda: np.arange(3),
    "float32 array": lambda: np.arange(3, dtype=np.float32),
    "bool array": lambda: MASK.copy(),
    "array of no dimensions": lambda: np.array(2.5),
    "integer array of no dimensions": lambda: np.array(2),
    "float64 scalar": lambda: np.float64(2.5),
    "int64 scalar": lambda: np.int64(2),
    "float": lambda: 2.5,
    "int": lambda: 2,
    "negative": lambda: -1,
    "large": lambda: 300,
    "complex": lambda: 2j,
    "None": lambda: None,
}


def putmask(a, v):
    np.putmask(a, MASK, v)
    return a


def place(a, v):
    np.place(a, MASK, v)
    return a


def put(a, v):
    a.put([0, 1], v)
    return a


def copyto(a, v):
    np.copyto(a, v, where=MASK)
    return a


def assigned(a, v):
    a[MASK] = v[0] if np.ndim(v) else v
    return a


def filled(a, v):
    return np.full_like(a, v)


def where(a, v):
    return np.where(MASK, a, v)


def dot(a, v):
    return np.dot(a, v)


def outcome(function, dtype, value):
    try:
        found = function(np.arange(3).astype(dtype), value)
    except Exception as error:
        return type(error), str(error)
    if not isinstance(found, np.ndarray):
        return type(found), repr(found)
    return found.dtype, repr(found)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("function", [putmask, place, put, copyto, assigned, filled, where, dot])
def test_as_numpy_does(function, dtype):
    compiled = dyncomp.compile(function, backend="eager", options={"recompile_limit": 1000})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in VALUES.items():
            assert outcome(compiled, dtype, make()) == outcome(function, dtype, make()), name


def angle(a, b):
    return np.angle(a)


def gradient(a, b):
    return np.gradient(a)


def vecdot(a, b):
    return np.vecdot(a, b) if hasattr(np, "vecdot") else np.dot(a, b)


def polyval(a, b):
    return np.polyval(a, b)


def quantiles(a, b):
    return np.quantile(a, [0.1, 0.45, 0.8])


def percentile(a, b):
    return np.percentile(a, 35)


def results(function, dtype):
    a, b = np.array([0.3, 2.7, 1.6]).astype(dtype), np.array([1.3, 0.7, 1.1]).astype(dtype)
    try:
        found = function(a, b)
    except Exception as error:
        return type(error)
    return type(found), found.dtype, repr(found)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int64, np.uint8, bool], ids=lambda d: d.__name__
)
@pytest.mark.parametrize("function", [angle, gradient, vecdot, polyval, quantiles, percentile])
def test_dtypes_of_results(function, dtype):
    compiled = dyncomp.compile(function, backend="eager")
    assert results(compiled, dtype) == results(function, dtype)


# -- NumPy scalars assigned to elements -----------------------------------------------------------------
def one_element(target, a, k):
    target[1] = a[0] * k
    return target


def elements(target, a, k):
    target[:2] = (a * k).sum()
    return target


def filled(target, a, k):
    target.fill(a[0] * k)
    return target


def by_position(target, a, k):
    target[[0, 2]] = a[0] * k
    return target


def assigned(function, target, dtype, k):
    found, a = np.zeros(3, target), np.arange(1, 4).astype(dtype)
    try:
        return repr(function(found, a, k)), found.tolist()
    except Exception as error:
        return type(error), str(error), found.tolist()


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("function", [one_element, elements, filled, by_position])
@pytest.mark.parametrize(
    "factors",
    [
        (np.float32, (1.5, math.nan, math.inf, 1e30, -3.0, 7e4, -32769.0)),
        (np.float64, (-2.0, math.nan, -math.inf, 2.0**31, 32767.9)),
        (np.int64, (-1, 300, 70000, 2**40)),
        (np.uint64, (1, np.uint64(2**63))),
    ],
    ids=["float32", "float64", "int64", "uint64"],
)
def test_scalars_fit_signed_integers(function, factors, backend):
    compiled = dyncomp.compile(function, backend=backend)
    dtype, values = factors
    for target in (np.int8, np.int16, np.int32, np.int64, np.uint8, bool):
        for k in values:
            assert assigned(compiled, target, dtype, k) == assigned(function, target, dtype, k), (target, k)


# -- linspace ---------------------------------------------------------------------------------------------
def lines(a, k):
    s = a.sum()
    ends = [np.linspace(s, k, 7), np.linspace(a, 3.0, 4), np.linspace(0, s, 3, endpoint=False)]
    return [*ends, *np.linspace(a[0], k, 5, retstep=True), np.linspace(s, 7.3, 5, dtype=int)]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int8, bool])
def test_linspace_has_the_type_of_its_ends(dtype):
    a = (np.arange(1, 4) * 0.7).astype(dtype)
    compiled = dyncomp.compile(lines, backend="eager")
    for found, expected in zip(compiled(a, 3.0), lines(a, 3.0), strict=True):
        assert (type(found), found.dtype, found.shape) == (type(expected), expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == np.float16 else 1e-6)
