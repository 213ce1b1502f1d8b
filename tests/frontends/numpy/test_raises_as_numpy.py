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
    lambda x, a: np.row_stack([x, x]),
    lambda x, a: np.rollaxis(x.tolist(), 0),
    lambda x, a: np.rollaxis(float(x[1]), 0),
    lambda x, a: np.take_along_axis([1.0, 2.0], np.array([0]), 0),
    lambda x, a: np.take_along_axis(x, [0], 0),
    lambda x, a: np.correlate(x[1], x),
    lambda x, a: np.correlate(x, 2.0),
    lambda x, a: np.block((x, x)),
    lambda x, a: np.block([(x, x), [x]]),
    lambda x, a: np.block(x),
    lambda x, a: np.block(a.T),
    lambda x, a: np.block(2.5),
    lambda x, a: np.block(x[1]),
    lambda x, a: np.flip(x[1:2].reshape(())),
    lambda x, a: np.flip(x[1]),
    lambda x, a: np.einsum("...", x[1]),
    lambda x, a: np.einsum("...", 2.5),
    lambda x, a: np.einsum("...", x[1:2].reshape(())),
    *(
        lambda x, a, w=w: np.pad(a, w)
        for w in ([1, 2, 3], [[1, 2, 3]], [1], [[1], [2]], [[1], [2, 3]], [], -1)
    ),
    *(
        lambda x, a, s=s: np.broadcast_shapes(*s)
        for s in (([3], [1]), ([], []), ((2, -3),), (-1,), (1.5,), ([[1]],), ((3,), 1, np.int64(3)))
    ),
    *(
        lambda x, a, f=f, k=k: f(a[:0], axis=k)
        for f in (np.average, np.nanstd, np.nanvar, np.nanmean)
        for k in (None, 0, 1)
    ),
    *(lambda x, a, f=f: f(2.5) for f in (np.squeeze, np.transpose, np.real, np.imag)),
    *(lambda x, a, f=f: f(float(x[1])) for f in (np.squeeze, np.transpose, np.real, np.imag)),
    *(lambda x, a, f=f: f(bool(x[1] > 0)) for f in (np.squeeze, np.real, np.imag)),
    *(lambda x, a, f=f: f(x[1]) for f in (np.squeeze, np.transpose, np.real, np.imag)),
    *(lambda x, a, f=f: f(len(x)) for f in (np.squeeze, np.real, np.imag)),
]

OF_ONE_NUMBER = (
    *(np.argmax, np.argmin, np.cumsum, np.cumprod, np.mean, np.std, np.var, np.average),
    *(np.sum, np.max, np.any, np.nancumsum),
)
CALLS += [
    lambda x, a, f=f, k=axis: f(x[1:2].reshape(()), axis=k) for f in OF_ONE_NUMBER for axis in (0, -1, 1)
]
ORDERS = [
    lambda x, a: np.linspace(a.T, a.T + 1, 4),
    lambda x, a: np.linspace(a.T, x, 4),
    lambda x, a: np.linspace(a.T, a.T, 4),
    lambda x, a: np.linspace(x, a[::-1].T, 4),
    lambda x, a: np.linspace(a, a[:, ::-1].T, 4, endpoint=False),
    lambda x, a: np.linspace(a.T, 5, 1, dtype=int),
    lambda x, a: np.geomspace(a.T + 1, a.T + 2, 4),
]
CALLS += ORDERS


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
