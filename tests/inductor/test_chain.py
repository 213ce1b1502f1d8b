"""Chains of two products with a kernel of rows between them: attention without the matrix of scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyncomp
from tests.inductor.threads import by_threads

RNG = np.random.default_rng(0)


def data(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def softmax(s):
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2) * 0.3) @ v


def untransposed(q, k, v):
    return softmax(q @ k) @ v


def masked(q, k, v, mask):
    return softmax(np.where(mask, q @ np.swapaxes(k, -1, -2), -1e9)) @ v


def biased(q, k, v, bias):
    return softmax(q @ np.swapaxes(k, -1, -2) + bias) @ v


def causal(q, k, v):
    n = q.shape[-2]
    seen = np.tril(np.ones((n, n), dtype=bool))
    return softmax(np.where(seen, q @ np.swapaxes(k, -1, -2), -np.inf)) @ v


def normalised(q, k, v):
    s = q @ np.swapaxes(k, -1, -2)
    return (s - np.mean(s, axis=-1, keepdims=True)) / np.std(s, axis=-1, keepdims=True) @ v


def one_plus(q, k, v):
    return attention(q, k, v) + 1


def heads(q, k, v):
    """Heads beside each other in memory, as models hold them."""
    q, k, v = (np.swapaxes(x.reshape(*x.shape[:-1], 4, -1), -3, -2) for x in (q, k, v))
    return np.swapaxes(attention(q, k, v), -3, -2)


def weights_wanted(q, k, v):
    w = softmax(q @ np.swapaxes(k, -1, -2))
    return w @ v, w


def scores_wanted(q, k, v):
    s = q @ np.swapaxes(k, -1, -2)
    return softmax(s) @ v, s * 2


def turned_weights(q, k, v):
    return np.swapaxes(softmax(q @ np.swapaxes(k, -1, -2)), -1, -2) @ v


def over_columns(q, k, v):
    s = q @ np.swapaxes(k, -1, -2)
    e = np.exp(s - np.max(s, axis=-2, keepdims=True))
    return e / np.sum(e, axis=-2, keepdims=True) @ v


def three(*lead: int, m: int = 40, n: int = 50, e: int = 16, f: int = 24, dtype: str = "float32") -> tuple:
    return data(*lead, m, e, dtype=dtype), data(*lead, n, e, dtype=dtype), data(*lead, n, f, dtype=dtype)


CHAINS = [
    (attention, three()),
    (attention, three(3)),
    (attention, three(2, 3, dtype="float64")),
    (attention, three(m=300, n=200, e=64, f=64)),
    (attention, three(m=13, n=1000, e=70, f=33)),
    (attention, three(5, m=100, n=17, e=33, f=5)),
    (attention, three(3, m=70, n=4000, e=8, f=8)),
    (untransposed, (data(2, 40, 16), data(2, 16, 50), data(2, 50, 24))),
    (untransposed, (data(40, 16), data(16, 50), data(100, 24)[::2])),
    (masked, (*three(2, 3), RNG.random((40, 50)) < 0.5)),
    (masked, (*three(2, 3), RNG.random((2, 1, 1, 50)) < 0.5)),
    (biased, (*three(2, 3), data(3, 40, 50))),
    (biased, (*three(2, 3), data(50))),
    (causal, three(2, m=130, n=130)),
    (normalised, three(4)),
    (one_plus, three(4)),
    (heads, three(2, m=60, n=60, e=32, f=32)),
]
NOT_CHAINS = [
    (weights_wanted, three(2)),
    (scores_wanted, three(2)),
    (turned_weights, three(2, m=50)),
    (over_columns, three(2)),
    (attention, three(m=20, n=9000, e=8, f=8)),
]


def same(program: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> None:
    expected, found = program(*arguments), dyncomp.compile(program)(*arguments)
    several = expected if isinstance(expected, tuple) else (expected,)
    for want, got in zip(several, found if isinstance(found, tuple) else (found,), strict=True):
        assert (got.dtype, got.shape, got.strides) == (want.dtype, want.shape, want.strides)
        tolerance = 3e-5 if want.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize(("program", "arguments"), CHAINS)
def test_chained(artifacts: list, program: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> None:
    same(program, arguments)
    (artifact,) = artifacts
    assert "rows between them by" in artifact.describe()


@pytest.mark.parametrize(("program", "arguments"), NOT_CHAINS)
def test_not_chained(artifacts: list, program: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> None:
    same(program, arguments)
    assert "rows between them by" not in artifacts[0].describe()


def test_the_scores_have_no_memory(artifacts: list) -> None:
    same(attention, three(4, m=200, n=300))
    assert artifacts[0].temp_bytes == 0


@pytest.mark.parametrize("place", [(3, 5), (0, 0)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values(artifacts: list, place: tuple[int, int], value: float) -> None:
    q, k, v = three()
    q[place] = value
    with np.errstate(all="ignore"):
        expected = attention(q, k, v)
    found = dyncomp.compile(attention)(q, k, v)
    assert "rows between them by" in artifacts[0].describe()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_rows_that_see_nothing_and_values_that_are_not_numbers(artifacts: list) -> None:
    q, k, v = three(m=60, n=60)
    v[7] = np.nan
    with np.errstate(all="ignore"):
        expected = causal(q, k, v)
    found = dyncomp.compile(causal)(q, k, v)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


@pytest.mark.parametrize("sizes", [(1, 300, 300), (6, 70, 40), (2, 500, 64)])
def test_the_bits_do_not_depend_on_threads(sizes: tuple[int, int, int]) -> None:
    count, m, n = sizes
    arguments = three(count, m=m, n=n, e=32, f=48)
    compiled = dyncomp.compile(causal if m == n else attention)
    found = by_threads(lambda: compiled(*arguments))
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("keys", [300, 700])
@pytest.mark.parametrize("rows", [3, 14, 150])
def test_the_bits_of_turned_values_do_not_depend_on_threads(rows: int, keys: int) -> None:
    """Values whose columns are contiguous, and rows of which some are too large, or no numbers, undivided."""
    q, k = data(2, rows, 32), data(2, keys, 32)
    v = data(2, 24, keys).swapaxes(1, 2)
    large = 4e37 * np.abs(v)
    broken = q.copy()
    broken[0, rows // 2] = np.nan
    for arguments in [(q, k, v), (q, k, large), (broken, k, v)]:
        compiled = dyncomp.compile(attention)
        with np.errstate(all="ignore"):  # else the original runs once, to warn
            found = by_threads(lambda compiled=compiled, arguments=arguments: compiled(*arguments))
            expected = attention(*arguments)
        np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)
        assert len({result.tobytes() for result in found}) == 1


def test_an_operand_written_before_the_second_product() -> None:
    def program(q, k, v):
        s = q @ k.T
        q += 1
        w = softmax(s)
        return w @ v

    arguments = three()
    copies = [x.copy() for x in arguments]
    expected = program(*copies)
    mine = [x.copy() for x in arguments]
    np.testing.assert_allclose(dyncomp.compile(program)(*mine), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(mine[0], copies[0])


def test_symbolic_sizes() -> None:
    compiled = dyncomp.compile(attention, dynamic=True)
    for m, n in ((40, 50), (7, 90), (200, 130)):
        arguments = three(2, m=m, n=n)
        np.testing.assert_allclose(compiled(*arguments), attention(*arguments), rtol=1e-4, atol=1e-5)


def test_torch() -> None:
    torch = pytest.importorskip("torch")

    def plain(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    def seen(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def mask(q, k, v, m):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=m)

    arguments = [torch.from_numpy(x) for x in three(2, 3, m=70, n=70, e=32, f=32)]
    allowed = torch.from_numpy(RNG.random((70, 70)) < 0.5)
    allowed[5] = False
    with torch.no_grad():
        for program, extra in ((plain, ()), (seen, ()), (mask, (allowed,))):
            found, want = dyncomp.compile(program)(*arguments, *extra), program(*arguments, *extra)
            torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5, equal_nan=True)
