"""Arguments that NumPy refuses, or for which it gives something of its own: compiled code does the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dyncomp

X = np.arange(3.0)
A = np.arange(9.0).reshape(3, 3) + np.eye(3)

CALLS = [
    lambda x, a: np.poly(3.0),
    lambda x, a: np.roots(x.sum()),
    lambda x, a: np.poly(x),
    lambda x, a: np.roots(x + 1),
    lambda x, a: np.linalg.multi_dot([x, x]),
    lambda x, a: np.linalg.multi_dot([x, a, x]),
    lambda x, a: np.linalg.multi_dot([x, x, x]),
    lambda x, a: np.linalg.multi_dot([a, x, a]),
    lambda x, a: np.linalg.multi_dot([a, a.reshape(1, 3, 3), a]),
    lambda x, a: np.linalg.tensorinv(3.0, 1),
    lambda x, a: np.linalg.tensorinv(x.sum(), 1),
    lambda x, a: x.reshape(),
    lambda x, a: np.polyval([], 2.0),
    lambda x, a: np.polyval(x[:0], x),
    lambda x, a: np.polyval(x[:0], x[1]),
    lambda x, a: np.polyval([1, 2], 3),
    lambda x, a: np.nanmedian(x[:0], out=x[:1].reshape(())),
    lambda x, a: np.nanmean(x[:0]),
    lambda x, a: np.nanmean(np.zeros((0, 3)), axis=1),
]


def outcome(function):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            found = function(X.copy(), A.copy())
        except Exception as error:
            found = (type(error), str(error))
    layout = (found.dtype, found.shape, found.strides) if isinstance(found, np.ndarray) else ()
    return type(found), repr(found), layout, [(w.category, str(w.message)) for w in seen]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_same_as_numpy(number):
    function = CALLS[number]
    assert outcome(dyncomp.compile(function, backend="eager")) == outcome(function)
