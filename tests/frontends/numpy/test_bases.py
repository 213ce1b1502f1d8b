"""What NumPy says of a result's memory: copies own theirs, and a write may meet what it reads."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check

COPIES = {
    "flatten": lambda a: a.flatten(),
    "flatten in Fortran order": lambda a: a.T.flatten("F"),
    "ravel of a transposed array": lambda a: a.T.ravel(),
    "ravel in Fortran order": lambda a: a.ravel("F"),
    "repeat": lambda a: np.repeat(a, 2),
    "sum that keeps its axes": lambda a: a.sum(0, keepdims=True),
    "mean that keeps its axes": lambda a: a.mean(1, keepdims=True),
}
VIEWS = {
    "ravel": lambda a: a.ravel(),
    "reshaped copy": lambda a: (a + 1).reshape(-1),
    "transposed copy": lambda a: (a + 1).T,
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", [*COPIES, *VIEWS])
def test_base_of_results(name, backend):
    function = COPIES.get(name) or VIEWS[name]
    array = np.arange(6.0).reshape(2, 3)
    expected = function(array)
    found = dyncomp.compile(function, backend=backend)(array)
    assert (found.base is None) == (expected.base is None) == (name in COPIES)
    assert np.array_equal(found, expected)


def reversed_through_a_mask(a):
    a[a > 0] = a[::-1]
    return a


def shifted_through_a_mask(a):
    mask = a > 2
    a[mask] = a[1 : 1 + int(mask.sum())]
    return a


def through_positions(a):
    a[np.arange(len(a))] = a[::-1]
    return a


def from_another_array(a):
    b = a * 2
    a[a > 0] = b[::-1]
    return a


PROGRAMS = [reversed_through_a_mask, shifted_through_a_mask, through_positions, from_another_array]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_writes_of_what_is_read(function):
    check(function, lambda: (np.arange(1.0, 8.0),))


ORDERS = {
    "ldexp": lambda a: np.ldexp(a, 2),
    "imag": lambda a: np.imag(a),
    "isreal": lambda a: np.isreal(a),
    "iscomplex": lambda a: np.iscomplex(a),
    "gradient": lambda a: np.gradient(a, axis=0),
    "angle": lambda a: np.angle(a),
}


@pytest.mark.parametrize("name", ORDERS)
def test_order_in_memory(name):
    function = ORDERS[name]
    for array in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))):
        found, expected = dyncomp.compile(function, backend="eager")(array), function(array)
        assert found.strides == expected.strides
        assert np.array_equal(found, expected)
