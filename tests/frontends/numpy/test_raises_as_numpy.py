"""Arguments that NumPy refuses, or for which it gives something of its own: compiled code does the same."""

from __future__ import annotations

import copy
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
    *(lambda x, a, n=n: np.unstack(n(x))[1] for n in (np.asarray, np.ndarray.tolist, np.ndarray.sum)),
    *(lambda x, a, f=f: f(x[1]) for f in (np.fft.fftn, np.fft.ifft2, np.fft.fft, np.isreal, np.iscomplex)),
    *(lambda x, a, f=f: f(2.5) for f in (np.fft.fftn, np.isreal, np.iscomplex)),
    *(lambda x, a, f=f: f(float(x[1])) for f in (np.isreal, np.iscomplex)),
    lambda x, a: np.cov(a[:0], dtype="f4"),
    lambda x, a: np.corrcoef(a, dtype=int),
    lambda x, a: np.linalg.cross(x, x + 1, axis=None),
    lambda x, a: np.linalg.outer(x[1], x),
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
BOOLEANS = (np.pad, np.resize, np.partition, np.argpartition, np.broadcast_to, np.reshape, np.sum, np.cumsum)
BOOLEANS += (np.argmax, np.mean, np.fft.fft, np.tile, np.diff, np.tril, np.split, np.flip, np.delete)
CALLS += [lambda x, a, f=f: f(a, True) for f in BOOLEANS]
CALLS += [
    lambda x, a, f=f, q=q, t=t: f(x.astype(t), q)
    for f in (np.quantile, np.percentile)
    for q in (True, 0, [0, 1], np.float32(0.3), 0.3)
    for t in ("i4", "f4", "f8")
]
CALLS += [lambda x, a: np.concatenate([a, a], True), lambda x, a: np.ones((True, 2)), lambda x, a: a[True]]
ORDERS = [
    lambda x, a: np.unwrap(np.broadcast_to(x, (2, 3))),
    lambda x, a: np.unwrap(np.ones((2, 3, 4)).transpose(2, 0, 1), axis=1),
    *(
        lambda x, a, f=f: f(np.broadcast_to(x, (2, 3)), axis=0)
        for f in (np.gradient, np.nancumsum, np.nansum)
    ),
    *(lambda x, a, f=f: f(np.broadcast_to(x, (2, 3))) for f in (np.fft.hfft, np.fft.ihfft, np.fft.fft)),
    lambda x, a: np.nan_to_num(np.broadcast_to(x, (2, 3))),
    lambda x, a: np.cross(np.ones((2, 3, 4)).transpose(2, 0, 1), x),
    *(lambda x, a, f=f: f(np.ones((2, 3, 4)).transpose(2, 0, 1)) for f in (copy.copy, np.round, np.ravel)),
    *(lambda x, a, f=f: f(np.ones((2, 3, 4)).transpose(2, 0, 1), 2) for f in (np.dot, np.inner, np.round)),
    *(lambda x, a, f=f: f(np.broadcast_to(x, (2, 3)), order="K") for f in (np.ravel, np.ndarray.flatten)),
    lambda x, a: x[1].dot(2),
    lambda x, a: np.imag(np.ones((2, 3, 4)).transpose(2, 0, 1)),
    lambda x, a: np.imag(a.T),
    lambda x, a: np.isreal(np.ones((2, 3, 4)).transpose(2, 0, 1)),
    *(lambda x, a, f=f: f(x[1], a.T) for f in (np.dot, np.inner, np.multiply)),
    *(lambda x, a, f=f: f(a.T, x[1]) for f in (np.dot, np.inner, np.multiply)),
    lambda x, a: np.kron(x[:2], a.T),
    lambda x, a: np.kron(a.T, x[::-1]),
    lambda x, a: np.kron(a, x),
    lambda x, a: np.linalg.qr(np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1))[1],
    lambda x, a: np.linspace(a.T, a.T + 1, 4),
    lambda x, a: np.linspace(a.T, x, 4),
    lambda x, a: np.linspace(a.T, a.T, 4),
    lambda x, a: np.linspace(x, a[::-1].T, 4),
    lambda x, a: np.linspace(a, a[:, ::-1].T, 4, endpoint=False),
    lambda x, a: np.linspace(a.T, 5, 1, dtype=int),
    lambda x, a: np.geomspace(a.T + 1, a.T + 2, 4),
]
CALLS += ORDERS
NUMBERS = (lambda x: x[1], lambda x: 2, lambda x: True, lambda x: x[1:2].reshape(()))
CALLS += [
    lambda x, a, n=n, w=w, mode=mode: np.pad(n(x), w, mode)
    for n in NUMBERS
    for w in (-1, [-1], [1, -1], [[1, -1]], 1)
    for mode in ("constant", "wrap", "empty")
]
CALLS += [lambda x, a, w=w: np.pad(a, w) for w in ([-1], [1, -1], [[1, -1]], [[1, 1], [1, -1]])]
CALLS += [lambda x, a, mode=mode: np.pad(x, 0, mode, constant_values=1) for mode in ("constant", "empty")]
SHIFTS = (np.fft.fftshift, np.fft.ifftshift)
CALLS += [lambda x, a, f=f, n=n: f(n(x)) for f in SHIFTS for n in NUMBERS]
CALLS += [lambda x, a, f=f, axes=axes: f(a, axes) for f in SHIFTS for axes in ((), [], 0, (0, 1))]
CALLS += [lambda x, a, n=n: np.select([x[2] > 0], [n(x)], n(x)) for n in NUMBERS]
CALLS += [lambda x, a, c=c: np.select([c], [2], a[0]) for c in (True, np.False_)]
CALLS += [lambda x, a, c=c: np.select([c], [2]) for c in (True, np.False_)]
FOURIER = (np.fft.fft, np.fft.rfft, np.fft.ihfft, np.fft.hfft, np.fft.irfft, np.fft.irfft2, np.fft.irfftn)
CALLS += [lambda x, a, f=f, size=size: f(a[:, :size]) for f in FOURIER for size in (0, 1, 2)]
CALLS += [
    lambda x, a, q=q, n=n: np.quantile((np.arange(n) ** 2 / 7).astype("f4"), q)
    for q in (0.1, 0.17, 0.93, [0.1, 0.93], np.float64(0.17))
    for n in (12, 13, 30)
]
QUANTILES = (
    *((np.percentile, q) for q in ([10, 50], [25.5], 10)),
    *((np.quantile, q) for q in ([0.1, 0.5], 0.3)),
)
CALLS += [
    lambda x, a, f=f, q=q, k=k, t=t: f(np.arange(24.0).reshape(4, 3, 2).transpose(t), q, axis=k)
    for f, q in QUANTILES
    for k in (0, 1, (0, 2))
    for t in ((1, 2, 0), (2, 0, 1))
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
    compiled = dyncomp.compile(CALLS[number], backend="eager")
    before = dyncomp.stats()["internal_errors"]
    found = outcome(compiled)
    # A bug within a rule makes the call run as plain Python: its outcome is right all the same.
    assert dyncomp.stats()["internal_errors"] == before, compiled.config.records.internal_errors
    assert found == outcome(CALLS[number])
