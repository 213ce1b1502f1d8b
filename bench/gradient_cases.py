"""NumPy models whose gradients ``bench.gradients`` measures. None writes in place, so that JAX takes them
with ``np`` standing for ``jax.numpy``; loops are of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dyncomp.dataclass import dataclass

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A model: its loss, which is differentiated by the first ``wrt`` arguments, and what makes these."""

    name: str
    loss: Callable[..., Any]
    arguments: Callable[[np.random.Generator], Arrays]
    wrt: int


def logistic(w, b, x, y):  # type: ignore[no-untyped-def]
    scores = x @ w + b
    return (np.logaddexp(0.0, scores) - y * scores).mean() + 0.01 * (w * w).sum()


def perceptron(w1, b1, w2, b2, x, y):  # type: ignore[no-untyped-def]
    hidden = np.tanh(x @ w1 + b1)
    scores = hidden @ w2 + b2
    top = scores.max(axis=1, keepdims=True)
    logs = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    return -(logs * y).sum(axis=1).mean()


def attention(q, k, v, o, x):  # type: ignore[no-untyped-def]
    queries, keys, values = x @ q, x @ k, x @ v
    scores = queries @ keys.T / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = weights / weights.sum(axis=1, keepdims=True)
    out = x + (weights @ values) @ o
    centred = out - out.mean(axis=1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    return (normal**2 * np.tanh(normal)).mean()


def gaussian_process(parameters, x, y):  # type: ignore[no-untyped-def]
    scale, length, noise = np.exp(parameters[0]), np.exp(parameters[1]), np.exp(parameters[2])
    distances = (x[:, None] - x[None, :]) ** 2
    kernel = scale * np.exp(-0.5 * distances / length**2) + (noise + 1e-6) * np.eye(len(x))
    factor = np.linalg.cholesky(kernel)
    solved = np.linalg.solve(kernel, y)
    return 0.5 * y @ solved + np.log(np.diag(factor)).sum()


def body_energy(positions, velocities, masses):  # type: ignore[no-untyped-def]
    apart = positions[:, None, :] - positions[None, :, :]
    distances = np.sqrt((apart**2).sum(axis=2) + 1e-3)
    pairs = masses[:, None] * masses[None, :] / distances
    potential = -0.5 * (pairs.sum() - np.diag(pairs).sum())
    return 0.5 * (masses[:, None] * velocities**2).sum() + potential


def factorisation(left, right, ratings, known):  # type: ignore[no-untyped-def]
    errors = (left @ right.T - ratings) * known
    return (errors**2).sum() + 0.1 * ((left**2).sum() + (right**2).sum())


def runge_kutta(rates, start, seen):  # type: ignore[no-untyped-def]
    """Fit of the rates of a predator-prey system to observations, 50 steps."""

    def slope(state):  # type: ignore[no-untyped-def]
        prey, predators = state[0], state[1]
        return np.stack(
            [
                rates[0] * prey - rates[1] * prey * predators,
                rates[2] * prey * predators - rates[3] * predators,
            ]
        )

    state, loss, h = start, 0.0, 0.05
    for step in range(50):
        a = slope(state)
        b = slope(state + 0.5 * h * a)
        c = slope(state + 0.5 * h * b)
        d = slope(state + h * c)
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
        loss = loss + ((state - seen[step]) ** 2).sum()
    return loss


def recurrent(w, u, b, x, y):  # type: ignore[no-untyped-def]
    """An LSTM of 50 steps."""
    hidden = np.zeros((x.shape[1], u.shape[0]))
    cell = np.zeros((x.shape[1], u.shape[0]))
    n = u.shape[0]
    for step in range(50):
        gates = x[step] @ w + hidden @ u + b
        keep = 1 / (1 + np.exp(-gates[:, :n]))
        write = 1 / (1 + np.exp(-gates[:, n : 2 * n]))
        show = 1 / (1 + np.exp(-gates[:, 2 * n : 3 * n]))
        cell = keep * cell + write * np.tanh(gates[:, 3 * n :])
        hidden = show * np.tanh(cell)
    return ((hidden - y) ** 2).mean()


def variational(mean, spread, x, y, noise):  # type: ignore[no-untyped-def]
    """The evidence bound of a Bayesian linear model, by samples."""
    weights = mean + np.exp(spread) * noise
    errors = weights @ x.T - y
    likelihood = -0.5 * (errors**2).sum(axis=1).mean()
    divergence = 0.5 * (np.exp(2 * spread) + mean**2 - 1 - 2 * spread).sum()
    return divergence - likelihood


def _normal(rng: np.random.Generator, *shapes: tuple[int, ...]) -> Arrays:
    return tuple(rng.standard_normal(shape) * 0.3 for shape in shapes)


def _one_hot(rng: np.random.Generator, rows: int, classes: int) -> Any:
    return np.eye(classes)[rng.integers(0, classes, rows)]


CASES = (
    Case(
        "logistic regression",
        logistic,
        lambda rng: (*_normal(rng, (50,), ()), *_normal(rng, (5000, 50)), np.round(rng.random(5000))),
        2,
    ),
    Case(
        "MLP",
        perceptron,
        lambda rng: (
            *_normal(rng, (64, 128), (128,), (128, 10), (10,), (256, 64)),
            _one_hot(rng, 256, 10),
        ),
        4,
    ),
    Case("attention block", attention, lambda rng: _normal(rng, *[(64, 64)] * 4, (128, 64)), 4),
    Case(
        "Gaussian process",
        gaussian_process,
        lambda rng: (np.zeros(3), np.sort(rng.random(150)), *_normal(rng, (150,))),
        1,
    ),
    Case("n-body energy", body_energy, lambda rng: (*_normal(rng, (200, 3), (200, 3)), rng.random(200)), 2),
    Case(
        "matrix factorisation",
        factorisation,
        lambda rng: (*_normal(rng, (300, 20), (200, 20), (300, 200)), np.round(rng.random((300, 200)))),
        2,
    ),
    Case(
        "RK4 fit, 50 steps",
        runge_kutta,
        lambda rng: (np.array([1.1, 0.4, 0.1, 0.4]), np.ones((2, 8)), rng.random((50, 2, 8))),
        2,
    ),
    Case(
        "LSTM, 50 steps",
        recurrent,
        lambda rng: _normal(rng, (16, 128), (32, 128), (128,), (50, 16, 16), (16, 32)),
        3,
    ),
    Case(
        "variational inference",
        variational,
        lambda rng: _normal(rng, (20,), (20,), (500, 20), (500,), (64, 20)),
        2,
    ),
)
