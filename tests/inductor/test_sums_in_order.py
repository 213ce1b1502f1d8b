"""Sums over a few rows of a few columns add the rows one after another, as NumPy does: the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp


def total(x, labels):
    return x.sum(axis=0)


def spread(x, labels):
    return x.var(axis=0)


def means_of_labels(x, labels):
    return np.stack([x[labels == j].mean(axis=0) for j in (0, 1)])


def complex_total(x, labels):
    return (x * 1j + x).sum(axis=0)


def halves(x, labels):
    return x.astype(np.float32).sum(axis=0)


@pytest.mark.parametrize("program", [total, spread, means_of_labels, complex_total, halves])
@pytest.mark.parametrize("columns", [2, 3, 8])
def test_bits_are_those_of_numpy(program, columns):
    rng = np.random.default_rng(columns)
    x, labels = rng.normal(size=(301, columns)), rng.integers(0, 2, 301)
    found = dyncomp.compile(program, backend="inductor")(x, labels)
    expected = program(x, labels)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def test_iterations_until_nothing_changes():
    def means(x, centres):
        step = 0
        while step < 60:
            nearest = ((x[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)
            new = np.stack([x[nearest == j].mean(axis=0) for j in range(len(centres))])
            if (new == centres).all():
                break
            centres = new
            step += 1
        return centres, step

    x = np.random.default_rng(0).normal(size=(60, 3))
    expected, steps = means(x, x[:4].copy())
    compiled = dyncomp.compile(means)
    for _ in range(3):
        found, taken = compiled(x, x[:4].copy())
        assert taken == steps
        assert found.tobytes() == expected.tobytes()
