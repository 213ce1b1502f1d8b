"""Lanes of accumulators folded as whole vectors: the bits of folding them one by one."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.inductor.render.cpp.reduce import ReductionPrinter

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40)


def reduced(x):
    return x.sum(axis=1), x.max(axis=1), x.min(axis=1), x.prod(axis=1), x.argmax(axis=1), (x > 0).any(axis=1)


def numbers(dtype: str, length: int) -> np.ndarray:
    rng = np.random.default_rng(length)
    x = rng.standard_normal((len(SPECIAL) + 3, length)).astype(dtype)
    for row, value in enumerate(SPECIAL):
        x[row, rng.integers(0, length, 3)] = value
    x[-3], x[-2] = -0.0, -np.inf
    return x


def built(x: np.ndarray) -> tuple[tuple[np.ndarray, ...], str]:
    report = dyncomp.explain(lambda x: reduced(x), dynamic=False)(x)
    sources = [e.compiled.artifact.source for e in report.entries if e.graph is not None]
    return report.result, "\n".join(sources)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [64, 100])
def test_vectors_and_loops_give_the_same_bits(monkeypatch, dtype: str, length: int) -> None:
    x = numbers(dtype, length)
    found, source = built(x)
    assert "vector_size(" in source
    monkeypatch.setattr(ReductionPrinter, "in_vectors", lambda self, acc: False)
    expected, loops = built(x)
    assert "vector_size(" not in loops
    assert [r.tobytes() for r in found] == [r.tobytes() for r in expected]
    with np.errstate(all="ignore"):
        wanted = reduced(x)
    for place in (1, 2, 4, 5):  # what does not depend on an order
        np.testing.assert_array_equal(found[place], wanted[place])


def test_integers_halves_and_positions_stay_loops() -> None:
    def mixed(x):
        return x.astype(np.int64).sum(axis=1), x.argmin(axis=1)

    x = numbers("float32", 64)[-1:].repeat(3, axis=0)
    report = dyncomp.explain(mixed, dynamic=False)(x)
    (entry,) = (e for e in report.entries if e.graph is not None)
    assert "vector_size(" not in entry.compiled.artifact.source
    for got, want in zip(report.result, mixed(x), strict=True):
        np.testing.assert_array_equal(got, want)
