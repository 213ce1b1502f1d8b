"""Routines of NumPy's that the graph calls, and those that take elements known at capture."""

# ruff: noqa: E501
from __future__ import annotations

import warnings

import numpy as np
import pytest

import dyncomp

X = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 0.0])
M = np.arange(12.0).reshape(4, 3) % 5


def deleted(x, m):
    some = np.delete(x, 2) + 1, np.delete(x, [0, -1]), np.delete(x, slice(1, 4, 2)), np.delete(x, [])
    return (
        *some,
        np.delete(m, 1, axis=0) * 2,
        np.delete(m, [0, 2], axis=1),
        np.delete(m, 5),
        np.delete(m, -1, 1),
    )


def deleted_by_data(x, m):
    return np.delete(x, np.argsort(x)[:2]) + 1, np.delete(m, m[:, 0] > 1, axis=0)


def inserted(x, m):
    one = (
        np.insert(x, 2, 9.0) + 1,
        np.insert(x, [0, 6], 7),
        np.insert(x, [3, 0], [1.0, 2.0]),
        np.insert(x, -1, 4),
    )
    several = np.insert(x, 3, [1.0, 2.0, 3.0]), np.insert(x, slice(0, 4, 2), x[:2]), np.insert(x, 1, x[:2])
    return (
        *one,
        *several,
        np.insert(m, 1, 7, axis=1) * 2,
        np.insert(m, [0, 2], 3.0, axis=0),
        np.insert(m, 4, 1.0),
    )


def histograms(x, m):
    counts, edges = np.histogram(x, bins=4)
    own, same = np.histogram(x * 2, bins=x[:0:-2].cumsum())
    shares, _ = np.histogram(m, bins=[0, 1, 2.5, 4], weights=m + 1, density=True)
    return (
        counts * 2,
        edges + 1,
        own,
        same,
        shares,
        *np.histogram(x, 3, (0, 6)),
    )


def bins_come_back(x, m):
    edges = np.arange(5.0)
    counts, same = np.histogram(x, edges)
    return counts, same is edges


def placed(x, m):
    edges = np.sort(x)
    return (
        np.digitize(x, edges),
        np.digitize(m, edges[::-1], right=True),
        np.lexsort((x, -x)),
        np.lexsort([x]),
    )


def fitted(x, m):
    return np.polyfit(np.arange(6.0), x, 2) * 2, np.polyfit(x, x * 3, 1)


def distinct_rows(x, m):
    rows, where, counts = np.unique(m, axis=0, return_index=True, return_counts=True)
    return np.unique(x, axis=0) + 1, np.unique(m % 2, axis=0), rows * 2, where, counts


def joined(x, m):
    r = (
        np.r_[0, x, 1],
        np.r_[1:4, 0, x[:2]],
        np.r_[0:1:5j],
        np.r_[m, m],
        np.r_[np.float32(1), 2],
        np.r_[True, 2],
    )
    return *r, np.c_[x, x + 1], np.c_[m, m[:, :1]], np.c_[x[:4], m], np.c_[1:3, 4:6], np.r_[[1, 2], 3.5]


def crossed(x, m):
    return m[np.ix_([True, False, True, False], [1, 2])] * 2, m[np.ix_([0, 2], [False, True, False])]


def pieces(x, m):
    bent = np.piecewise(x, [x < 1, x >= 2], [lambda v: -v, lambda v: v * 2, 7.0])
    return bent, np.piecewise(x, [x > 2], [1.0, -1.0]), np.sinc(x), np.i0(x) > 0


def along(x, m):
    return np.apply_along_axis(lambda v: v.sum() * v, 0, m) + 1, np.apply_along_axis(np.max, 1, m)


WHOLE = (
    deleted,
    deleted_by_data,
    inserted,
    histograms,
    bins_come_back,
    placed,
    fitted,
    distinct_rows,
    joined,
    crossed,
)
OTHERS = (pieces, along)


def same(got, wanted):
    assert type(got) is type(wanted)
    if not isinstance(wanted, (np.ndarray, np.generic)):
        assert got == wanted
        return
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if isinstance(wanted, np.ndarray):
        steps = [(s, t) for n, s, t in zip(wanted.shape, got.strides, wanted.strides) if n > 1]
        assert not wanted.size or all(s == t for s, t in steps)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", WHOLE, ids=lambda p: p.__name__)
def test_is_captured_whole(program, backend):
    compiled = dyncomp.compile(program, backend=backend, fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x, m in ((X, M), (X, M), (X[::-1].copy(), M + 1)):
            for got, wanted in zip(compiled(x, m), program(x, m), strict=True):
                same(got, wanted)


@pytest.mark.parametrize("program", OTHERS, ids=lambda p: p.__name__)
def test_gives_the_same(program):
    compiled = dyncomp.compile(program, backend="eager")
    for _ in range(2):
        for got, wanted in zip(compiled(X, M), program(X, M), strict=True):
            same(got, wanted)


def test_in_fortran_order():
    def program(m):
        return (
            np.delete(m, 1, axis=0),
            np.delete(m, [0, 1], axis=1),
            np.delete(m, m[0] > 1, axis=1),
            np.insert(m, 1, 5.0, axis=1),
            np.unique(m, axis=1),
        )

    compiled = dyncomp.compile(program, backend="eager")
    for m in (np.asfortranarray(M), M.T, M[::2], M):
        for got, wanted in zip(compiled(m), program(m), strict=True):
            same(got, wanted)


def test_what_raises():
    programs = (
        lambda x: np.delete(x, 9),
        lambda x: np.insert(x, 9, 1.0),
        lambda x: np.insert(x, [0, 1], [1.0, 2.0, 3.0]),
        lambda x: np.digitize(x, x),
        lambda x: np.histogram(x / 0.0 * 0.0, 3),
        lambda x: np.histogram(x, [2, 1]),
        lambda x: np.lexsort((x, x[:2])),
        lambda x: np.r_[x, "a"],
    )
    for program in programs:
        compiled = dyncomp.compile(program, backend="eager")
        for _ in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with pytest.raises(Exception) as wanted:
                    program(X)
                with pytest.raises(type(wanted.value)) as got:
                    compiled(X)
            assert str(got.value) == str(wanted.value)


def test_integers_and_small_floats():
    def program(x):
        return (
            np.delete(x, 1),
            np.insert(x, 1, 3),
            np.histogram(x, 3)[1],
            np.histogram(x, 3, density=True)[0],
            np.histogram(x, [0, 1, 5]),
            np.digitize(x, np.sort(x)),
            np.r_[x, 1],
            np.r_[x, 1.5],
            np.unique(x, axis=0),
        )

    for dtype in (np.float32, np.int32, np.uint8, np.int64):
        compiled = dyncomp.compile(program, backend="eager")
        x = X.astype(dtype)
        for got, wanted in zip(compiled(x), program(x), strict=True):
            pairs = [(got, wanted)] if isinstance(wanted, np.ndarray) else zip(got, wanted, strict=True)
            for a, b in pairs:
                same(a, b)
