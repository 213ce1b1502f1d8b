"""Steps over the rows of the same matrices as one: attention backward without scores in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyncomp
from tests.inductor.test_chain import data, softmax
from tests.inductor.threads import by_threads


def turned(x):
    return np.swapaxes(x, -1, -2)


def gradients(p, q, k, v, do, scale):
    dv = turned(p) @ do
    dp = do @ turned(v)
    ds = p * (dp - np.sum(dp * p, axis=-1, keepdims=True))
    return ds @ k * scale, turned(ds) @ q * scale, dv


def backward(q, k, v, do):
    """Weights are computed again."""
    return gradients(softmax(q @ turned(k) * 0.2), q, k, v, do, 0.2)


def masked(q, k, v, do, mask):
    return gradients(softmax(np.where(mask, q @ turned(k) * 0.2, -np.inf)), q, k, v, do, 0.2)


def causal(q, k, v, do):
    mask = np.tril(np.ones((q.shape[-2], k.shape[-2]), dtype=bool))
    return gradients(softmax(np.where(mask, q @ turned(k), -np.inf)), q, k, v, do, 1.0)


def from_weights(p, q, k, v, do):
    """Weights were kept."""
    return gradients(p, q, k, v, do, 0.5)


def from_statistics(q, k, v, do, top, total):
    """The largest score and the sum of each row were kept (Dao, "FlashAttention-2", 2023)."""
    p = np.exp(q @ turned(k) * 0.2 - top) / total
    return gradients(p, q, k, v, do, 0.2)


def step(q, k, v, target):
    """Forward and backward."""
    p = softmax(q @ turned(k) * 0.2)
    o = p @ v
    do = 2 * (o - target)
    return np.mean((o - target) ** 2), *gradients(p, q, k, v, do, 0.2)


def four(*lead: int, m: int = 50, n: int = 70, e: int = 32, f: int = 40, dtype: str = "float32") -> tuple:
    return (
        data(*lead, m, e, dtype=dtype),
        data(*lead, n, e, dtype=dtype),
        data(*lead, n, f, dtype=dtype),
        data(*lead, m, f, dtype=dtype),
    )


def check(program: Any, arguments: tuple, artifacts: list, groups: int = 1) -> None:
    wide = tuple(a.astype("float64") if a.dtype == np.float32 else a for a in arguments)
    with np.errstate(all="ignore"):
        want = program(*wide)
        found = dyncomp.compile(program)(*arguments)
    tolerance = 1e-12 if arguments[0].dtype == np.float64 else 1e-5
    for x, y in zip(want, found, strict=True):
        np.testing.assert_array_equal(np.isnan(y), np.isnan(x))
        scale = max([1.0, *np.abs(x[np.isfinite(x)])]) if isinstance(x, np.ndarray) else 1.0
        np.testing.assert_allclose(y, x, rtol=0, atol=tolerance * scale)
    assert artifacts[-1].describe().count("kernels of rows together") == groups


@pytest.mark.parametrize("sizes", [(), (3,), (2, 3), (1, 2)])
def test_backward(artifacts: list, sizes: tuple[int, ...]) -> None:
    check(backward, four(*sizes), artifacts)
    assert artifacts[-1].module.segments[0].steps[0].matrices == 4


@pytest.mark.parametrize(("m", "n"), [(13, 300), (300, 13), (97, 97), (200, 129), (500, 64)])
def test_lengths(artifacts: list, m: int, n: int) -> None:
    check(backward, four(2, m=m, n=n), artifacts)


@pytest.mark.parametrize(("e", "f"), [(33, 64), (64, 17), (128, 65)])
def test_widths(artifacts: list, e: int, f: int) -> None:
    check(backward, four(2, m=110, n=90, e=e, f=f), artifacts)


def test_float64(artifacts: list) -> None:
    check(backward, four(3, m=110, dtype="float64"), artifacts)


def test_masks(artifacts: list) -> None:
    mask = np.random.default_rng(1).random((50, 70)) < 0.6
    mask[:, 3] = True
    check(masked, (*four(2, 3), mask), artifacts)
    mask[7] = False  # a row that sees nothing: NaN, as in plain NumPy
    check(masked, (*four(2, 3), mask), artifacts)
    check(causal, four(3, m=130, n=130), artifacts)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_special_values(artifacts: list, place: int, value: float) -> None:
    arguments = four(2)
    arguments[place][0, 5, 3] = value
    check(backward, arguments, artifacts)


def test_weights_that_were_kept(artifacts: list) -> None:
    arguments = four(2, 3)
    p = softmax(data(2, 3, 50, 70))
    check(from_weights, (p, *arguments), artifacts)


def test_statistics_that_were_kept(artifacts: list) -> None:
    q, k, v, do = four(2, 3)
    s = q @ turned(k) * np.float32(0.2)
    top = s.max(axis=-1, keepdims=True)
    total = np.exp(s - top).sum(axis=-1, keepdims=True)
    check(from_statistics, (q, k, v, do, top, total), artifacts)
    assert artifacts[-1].module.segments[0].steps[0].matrices == 4


def test_forward_and_backward(artifacts: list) -> None:
    q, k, v, target = four(2, 3)
    check(step, (q, k, v, target), artifacts, groups=2)


def test_strides(artifacts: list) -> None:
    """Heads beside each other in memory."""
    q, k, v, do = (np.swapaxes(data(2, 60, 4, 32), 1, 2) for _ in range(4))
    check(backward, (q, k, v, do), artifacts)


def test_no_scores_in_memory(artifacts: list) -> None:
    arguments = four(4, m=200, n=300)
    check(backward, arguments, artifacts)
    assert artifacts[-1].temp_bytes < 4 * 200 * 300 * 4


def test_weights_that_are_wanted(artifacts: list) -> None:
    def program(q, k, v, do):
        p = softmax(q @ turned(k) * 0.2)
        return *gradients(p, q, k, v, do, 0.2), p

    check(program, four(2, 3), artifacts)


def test_an_operand_that_is_written_to() -> None:
    def program(q, k, v, do):
        p = softmax(q @ turned(k) * 0.2)
        q += 1
        return gradients(p, q, k, v, do, 0.2)

    arguments = four(3)
    copies = [a.copy() for a in arguments]
    want = program(*copies)
    found = dyncomp.compile(program)(*arguments)
    for x, y in zip(want, found, strict=True):
        np.testing.assert_allclose(y, x, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(arguments[0], copies[0])


def test_symbolic_sizes() -> None:
    compiled = dyncomp.compile(backward, dynamic=True)
    for m, n in ((50, 70), (130, 20), (7, 200)):
        arguments = four(2, m=m, n=n)
        for x, y in zip(backward(*arguments), compiled(*arguments), strict=True):
            np.testing.assert_allclose(y, x, rtol=0, atol=1e-4)


@pytest.mark.parametrize("sizes", [(1, 700, 50), (3, 300, 70), (16, 60, 60)])
def test_the_bits_do_not_depend_on_threads(artifacts: list, sizes: tuple[int, int, int]) -> None:
    count, m, n = sizes
    arguments = four(count, m=m, n=n)
    compiled = dyncomp.compile(backward)
    found = by_threads(lambda: compiled(*arguments))
    for other in found:
        assert all(np.array_equal(x, y) for x, y in zip(found[0], other))
    check(backward, arguments, artifacts)


def precomputed(q, k, v, do, o):
    """FlashAttention-2's form: the rows' sums come from the result."""
    p = softmax(q @ turned(k) * 0.2)
    ds = p * (do @ turned(v) - np.sum(do * o, axis=-1, keepdims=True))
    return ds @ k, turned(ds) @ q, turned(p) @ do


def test_sums_of_rows_from_the_result(artifacts: list) -> None:
    q, k, v, do = four(2, 3)
    check(precomputed, (q, k, v, do, softmax(q @ turned(k) * np.float32(0.2)) @ v), artifacts)


def test_layers_are_products_with_epilogues(artifacts: list) -> None:
    def layers(x, w, u, t):
        h = np.maximum(x @ w, 0)
        d = (h @ u - t) @ u.T * (h > 0)
        return x.T @ d, h.T @ (h @ u - t)

    check(layers, (data(60, 40), data(40, 50), data(50, 30), data(60, 30)), artifacts, groups=0)
