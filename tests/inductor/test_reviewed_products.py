"""What reviews of products in chains, row groups and prologues found."""

import numpy as np
import pytest

import dyncomp

torch = pytest.importorskip("torch")


def close(function, *args, tolerance=2e-5):
    with torch.no_grad():
        expected = function(*args)
        compiled = dyncomp.compile(function)
        for _ in range(2):
            found = compiled(*args)
            for want, got in zip(_results(expected), _results(found), strict=True):
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def _results(found):
    return found if isinstance(found, tuple) else (found,)


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


R = np.random.default_rng(0)


def random(*shape):
    return R.standard_normal(shape).astype(np.float32)


def normalised(x, w):
    y = x @ w
    return (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)


def test_a_product_ends_one_chain_or_begins_another():
    a, b, c = random(200, 200), random(200, 200), random(200, 200)
    close(lambda x: normalised(normalised(normalised(x, a), b), c), random(300, 200), tolerance=1e-4)


def test_what_all_rows_add_to_is_read_when_it_is_done():
    def steps(x, m):
        m = softmax(x @ m.T).T @ x
        return softmax(x @ m.T).T @ x

    close(steps, random(300, 32), random(40, 32) * 0.1, tolerance=1e-4)


@pytest.mark.parametrize("kind", ["bool", "int32", "uint8"])
def test_weights_that_become_integers_are_no_softmax(kind):
    def chosen(q, k, v):
        return softmax(q @ k.T).astype(kind).astype(np.float32) @ v

    close(chosen, random(64, 16), random(64, 16), random(64, 16))


def test_scores_of_a_matrix_with_itself():
    y, v = random(16, 96) * 0.3, random(96, 32)
    close(lambda y, v: softmax(y.T @ y) @ v, y, v)

    def both(y, v):
        weights = softmax(y.T @ y)
        return weights @ v + weights.T @ v

    close(both, y, v)


@pytest.mark.parametrize("size", [1.0, 3e4])
def test_large_scores(size):
    q, k, v = (torch.from_numpy(random(64, 96)) * s for s in (size, size, 1.0))

    def attention(q, k, v, hidden):
        scores = (q @ k.T).masked_fill(hidden, torch.finfo(torch.float32).min) * 0.3
        return torch.softmax(scores, -1) @ v

    hidden = torch.zeros(64, 64, dtype=torch.bool)
    hidden[3] = True
    with torch.no_grad():
        expected = attention(q, k, v, hidden)
        found = dyncomp.compile(attention)(q, k, v, hidden)
    assert torch.isfinite(found).all()
    near = torch.isclose(found, expected, rtol=1e-4, atol=1e-4).all(1)
    assert near.sum() >= 60, "a tie of rounded scores may be broken in a few rows"


def test_what_is_made_of_weights_is_kept_by_its_sizes():
    weights = torch.from_numpy(random(2048))

    def scaled(x, y):
        return x @ (weights[:, None].expand(-1, y.shape[0]) * 2.0)

    x = torch.from_numpy(random(16, 2048))
    compiled = dyncomp.compile(scaled)
    with torch.no_grad():
        for size in (64, 96, 64, 64, 64, 64, 128, 96):
            y = torch.zeros(size)
            torch.testing.assert_close(compiled(x, y), scaled(x, y), rtol=1e-4, atol=1e-3)


def test_sums_of_one_column():
    def backward(q, k, v, out):
        weights = softmax(q @ k.T)
        return weights @ v, weights.T @ out

    close(backward, random(96, 16), random(80, 16), random(80, 1), random(1, 96).T)
