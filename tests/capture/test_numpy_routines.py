"""NumPy functions that are routines of the graph, or whose own Python code is traced: as plain NumPy does, in
one graph where the arguments are right, and with its exceptions where not."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, check, differences

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((6, 5))
Y = RANDOM.random((6, 5)) + 0.1
V = RANDOM.standard_normal(12)
W = RANDOM.random(12) + 0.1
GAPS = np.where(RANDOM.random((6, 5)) < 0.2, np.nan, X)
INTEGERS = RANDOM.integers(0, 5, 12)
S = RANDOM.standard_normal((4, 4))
H = S @ S.T + np.eye(4)
C = S + 1j * S.T
U = RANDOM.integers(0, 256, (4, 8)).astype(np.uint8)
B = RANDOM.random((4, 9)) > 0.5
F = np.asfortranarray(X)
NAMES = {
    "x": X,
    "y": Y,
    "v": V,
    "w": W,
    "g": GAPS,
    "i": INTEGERS,
    "s": S,
    "h": H,
    "c": C,
    "u": U,
    "b": B,
    "f": F,
}

ONE_GRAPH = """
np.average(x, weights=y)
np.average(x, axis=0, weights=x[:, 0] ** 2)
np.average(v, weights=w, returned=True)
np.average(x, axis=1, returned=True)
np.nanmedian(g)
np.nanmedian(g, axis=0)
np.nanmedian(f, axis=1, keepdims=True)
np.nanpercentile(g, 30)
np.nanpercentile(g, [25, 75], axis=1)
np.nanquantile(g, 0.3, axis=0)
np.nanquantile(f, (0.1, 0.5), axis=1)
np.nanargmax(g)
np.nanargmin(g, axis=0)
np.isin(i, [1, 2])
np.isin(x, v, invert=True)
np.unravel_index(i, (3, 4))
np.unravel_index(i.reshape(3, 4), (3, 4))
np.unravel_index(np.argsort(x, axis=None), x.shape)
np.ravel_multi_index((i, i), (5, 5))
np.ravel_multi_index((i, i), (4, 4), mode="clip")
np.ravel_multi_index(np.nonzero(x > 0), x.shape)
np.choose(i % 3, [v, w, v + w])
np.choose(i % 2, [1, 2.5])
np.packbits(b)
np.packbits(b, axis=1, bitorder="little")
np.unpackbits(u)
np.unpackbits(u, axis=1, count=12)
np.unpackbits(u, axis=0, count=-2, bitorder="little")
np.add.reduceat(v, [0, 3, 5])
np.maximum.reduceat(v, np.sort(i))
np.add.reduceat(x, [0, 2], axis=1)
np.logical_or.reduceat(b, [0, 2], axis=0)
np.bitwise_or.reduce(u)
np.bitwise_xor.reduce(u, axis=1)
np.gcd.reduce(i)
np.hypot.reduce(x, axis=0)
np.subtract.accumulate(v)
np.bitwise_or.accumulate(u, axis=1)
np.linalg.lstsq(x, x[:, 0], rcond=None)
np.linalg.lstsq(x, y, rcond=None)
np.linalg.lstsq(s, h[0], rcond=1e-9)
np.linalg.cond(s)
np.linalg.cond(x, -2)
np.linalg.cond(np.stack([s, h]))
np.linalg.matrix_rank(x, tol=1e-3)
np.linalg.pinv(h, hermitian=True)
np.linalg.svd(h, hermitian=True)[1]
np.linalg.matrix_power(h, -2)
np.linalg.norm(x, 2)
np.linalg.norm(x, "nuc")
np.histogram2d(v, w, bins=4)
np.histogram2d(v, w, bins=[3, 4], range=[[0, 1], [0, 1]], density=True)
np.histogram2d(v, w, bins=3, weights=w)
np.searchsorted(w, v, sorter=np.argsort(w))
np.interp(v, np.sort(w), w, period=3.0)
np.pad(x, 2, mode="mean")
np.pad(x, 2, mode="maximum")
np.pad(v, 3, mode="minimum", stat_length=2)
np.pad(x, ((1, 2), (0, 3)), constant_values=((1, 2), (3, 4)))
np.apply_along_axis(np.sort, 0, x)
np.apply_along_axis(lambda r: r.sum(), 1, x)
np.ediff1d(v, to_begin=0.0, to_end=[1.0, 2.0])
np.unique_counts(i)
np.unique_inverse(i)
np.asarray_chkfinite(x)
np.diag_indices(4)
np.repeat(x, [1] * 5, axis=1)
x.flat[3]
x.flat[2:5]
x.flat[[1, 2]]
sum(x.flat[:5])
len(x.flat)
3.0 in v
x.__array_namespace__().sqrt(w)
np.zeros((2, 2), order=None)
np.std(x, correction=1)
1 in i
2 not in i
any(v > 0)
all(w > 0)
any(np.zeros(3))
x.transpose(np.array([1, 0]))
np.array([[1, 2], [3, 4]]).tolist()
""".strip().splitlines()

REFUSED = """
np.average(x, weights=y * 0)
np.nanmedian(g * np.nan)
np.nanquantile(x, 0.5, axis=7)
np.nanargmax(g * np.nan)
np.unravel_index(i + 20, (3, 4))
np.ravel_multi_index((i, i), (3, 3))
np.choose(i, [v, w])
np.add.reduceat(v, [0, 30])
np.linalg.lstsq(np.ones((6, 2)), x[:, 0], rcond=None)
np.linalg.lstsq(x * np.nan, x[:, 0], rcond=None)
np.linalg.cond(s * np.nan)
np.histogram2d(v * np.nan, w, bins=4)
np.average(x, axis=3, weights=y)
np.unpackbits(x)
x.flat[77]
np.pad(x, -1, mode="mean")
np.var(x, ddof=1, correction=0)
"a" in None
""".strip().splitlines()


def function_of(text):
    code = compile(text, "<expression>", "eval")
    used = [name for name in NAMES if name in code.co_names]
    space = {"np": np}
    exec(compile(f"def program({', '.join(used)}):\n    return {text}\n", "<program>", "exec"), space)
    return space["program"], [NAMES[name] for name in used]


def compare(text, **settings):
    program, given = function_of(text)
    compiled = dyncomp.compile(program, **settings)
    for _ in range(2):
        expected = call(program, tuple(a.copy(order="K") for a in given))
        found = call(compiled, tuple(a.copy(order="K") for a in given))
        assert not differences(expected, found, 1e-12)


@pytest.mark.parametrize("text", ONE_GRAPH)
def test_one_graph(text):
    before = dyncomp.stats()["fallbacks"]
    compare(text, backend="eager", fullgraph=True, options={"debug_verify": True})
    assert dyncomp.stats()["fallbacks"] == before


@pytest.mark.parametrize("text", ONE_GRAPH[::6])
def test_inductor(text):
    compare(text)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", REFUSED)
def test_what_numpy_refuses(text):
    compare(text, backend="eager")


def written(x, v):
    x.flat[3] = 7.5
    x.flat[:: x.shape[1] + 1] = 0
    x.flat[[1, 2]] = v.max()
    return x.flat, [k * 2 for k in x.flat[:4]]


def stepped(x):
    total = 0.0
    for value in x.flat:
        total = total + value
    return total, x.flat.base is x


@pytest.mark.parametrize("program", [written, stepped])
def test_flat(program):
    compiled = dyncomp.compile(program, backend="eager")
    for given in (X, S, F, np.arange(6).reshape(2, 3)):
        args = (given, V)[: program.__code__.co_argcount]
        expected = call(program, tuple(a.copy(order="K") for a in args))
        found = call(compiled, tuple(a.copy(order="K") for a in args))
        if program is written and expected.error is None:
            first, second = expected.world[2], found.world[2]
            assert first[0].base.tolist() == second[0].base.tolist() and first[1] == second[1]
            continue
        assert not differences(expected, found, 1e-12)


def written_where_it_does_not_fit(x, m):
    g = np.arange(3)
    g += m
    return g * 2


def written_as_out(x, m):
    g = np.arange(2)
    np.add(x, m, g)
    return g


def written_by_copying(x, m):
    g = np.arange(2)
    np.copyto(g, x)
    return g


@pytest.mark.parametrize("program", [written_where_it_does_not_fit, written_as_out, written_by_copying])
def test_known_arrays_that_are_written(program):
    """What an array of integers is known to hold does not stand for the array where it is written to."""
    check(program, lambda: (np.ones(2), 2.5))


def set_where(x, y):
    x[x.sum() > 3] = 7
    y[y.max() > 100] = 1.5
    return x * 2


def test_set_through_one_flag():
    compiled = dyncomp.compile(set_where, backend="eager", fullgraph=True)
    for x, y in (
        (np.arange(4.0), np.arange(3)),
        (np.arange(2.0), np.array([5, 500])),
        (np.ones(9), np.ones(2)),
    ):
        expected, found = call(set_where, (x.copy(), y.copy())), call(compiled, (x.copy(), y.copy()))
        assert not differences(expected, found)
