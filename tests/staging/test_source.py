"""The function that runs a graph's stages: numbers and lengths as symbols, variants, checks."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.staging.run import StagedGraph
from tests.capture.comparing import break_ids, call, differences


def check(function, *cases, breaks=()):
    dyncomp.reset()
    compiled = dyncomp.compile(function, backend="inductor", options={"debug_verify": True})
    for _ in range(2):
        for case in cases:
            expected = call(function, tuple(x.copy() if isinstance(x, np.ndarray) else x for x in case))
            found = call(compiled, tuple(x.copy() if isinstance(x, np.ndarray) else x for x in case))
            assert not differences(expected, found, 1e-12), case
    assert set(break_ids(compiled.config.records)) == set(breaks)
    return compiled


def rows(pointers, columns, values, x):
    y = np.empty(pointers.size - 1, values.dtype)
    for i in range(pointers.size - 1):
        part = slice(pointers[i], pointers[i + 1])
        y[i] = values[part] @ x[columns[part]]
    return y


def test_numbers_as_bounds():
    random = np.random.default_rng(0)
    values, x = random.random(8), random.random(4)
    columns = np.array([0, 1, 2, 0, 1, 3, 2, 3])
    cases = [np.array(p) for p in ([0, 2, 3, 6, 8], [0, 1, 2, 3, 8], [0, 0, 0, 8, 8])]
    check(rows, *((p, columns, values, x) for p in cases))


def test_a_number_that_is_a_value_too():
    def f(x, k):
        n = k.sum()
        return x[:n] * n, n

    x = np.arange(9.0)
    check(f, (x, np.array([1, 2])), (x, np.array([3, 4])), (x, np.array([0, 0])), (x, np.array([-1, 0])))


def test_results_of_several_dimensions():
    def f(x):
        where = np.argwhere(x > 0.5)
        return where * 2, where.sum(axis=0)

    random = np.random.default_rng(1)
    check(f, (random.random((5, 4)),), (random.random((7, 4)),), (np.zeros((5, 4)),), (np.ones((5, 4)),))


def test_several_results_of_one_length():
    def f(x):
        values, counts = np.unique(x, return_counts=True)
        return values * 2.0 + counts

    check(f, (np.array([3, 1, 3, 3]),), (np.array([3, 1, 2, 2, 5]),), (np.array([1]),), (np.array([], int),))


def test_selections_with_one_mask():
    def f(x, y, n):
        near = x < 0.5
        a, b = x[near], y[near]
        n[: len(a)] += 1
        return a @ b + np.sort(a)[:1].sum(), a * b

    random = np.random.default_rng(2)
    cases = [(random.random(k), random.random(k), np.zeros(k, int)) for k in (6, 9, 9, 40)]
    cases += [(np.ones(6), np.ones(6), np.zeros(6, int)), (np.zeros(6), np.ones(6), np.zeros(6, int))]
    check(f, *cases)


def test_a_shrinking_selection():
    def f(z, c, counts):
        where = np.arange(len(z))
        for i in range(12):
            z = z * z + c
            out = abs(z) > 2.0
            counts[where[out]] = i + 1
            stay = ~out
            z, c, where = z[stay], c[stay], where[stay]
        return counts, z

    random = np.random.default_rng(3)
    for size in (0, 1, 2, 50):
        c = random.normal(size=size) + 1j * random.normal(size=size)
        check(f, (np.zeros(size, complex), c, np.zeros(size, int)), breaks={"loop"})


def test_between_stages_nothing_is_looked_up(monkeypatch):
    def f(x):
        near = x[x > 0.0]
        return (near * 2.0).sum() / len(near)

    x = np.linspace(-1.0, 1.0, 11)
    compiled = check(f, (x,), (-x * 3.0,))
    written = []
    monkeypatch.setattr(StagedGraph, "_written", lambda self: written.append(self))
    compiled(x)
    assert not written


def test_tensors():
    torch = pytest.importorskip("torch")

    def f(x, k):
        near = x[x > 0.5]
        n = k.sum().item()
        return near * 2.0, near.sum() + n, x[:n] + 1

    dyncomp.reset()
    compiled = dyncomp.compile(f, backend="inductor")
    for seed in range(4):
        x = torch.rand(9, generator=torch.Generator().manual_seed(seed))
        k = torch.tensor([seed, 1])
        for found, expected in zip(compiled(x, k), f(x, k), strict=True):
            torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("make", [lambda x: x[:, :2], lambda x: x[::2], lambda x: x.T[1:], lambda x: x[::-1]])
def test_views_on_both_sides_of_a_cut(make):
    """A stage gives arrays packed: a view of more than it shows is made again by each stage that reads it."""

    def f(x):
        part = make(x)
        count = len(np.unique(part))
        return np.max(part, axis=1) + count, part.sum(), np.unique(part) * 2

    sizes = [(3, 4), (3, 5), (6, 4), (6, 7), (9, 3)]
    cases = [(np.arange(k * m * 1.0).reshape(k, m) % 7 + 1e3,) for k, m in sizes]
    check(f, *cases)
