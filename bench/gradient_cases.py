"""NumPy models whose gradients ``bench.gradients`` measures, as they are written without a thought of
compilers. Most of them JAX takes with ``np`` standing for ``jax.numpy``; those with loops of Python have a
port in ``jax_models.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dyncomp.dataclass import dataclass

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A model: its loss, which is differentiated by the first ``wrt`` arguments, what makes its arguments,
    and what makes small ones."""

    name: str
    loss: Callable[..., Any]
    arguments: Callable[[np.random.Generator], Arrays]
    small: Callable[[np.random.Generator], Arrays]
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


def convolutional(k1, b1, k2, b2, w, b, images, y):  # type: ignore[no-untyped-def]
    """Two convolutions of 3 x 3, each followed by the maximum of blocks of 2 x 2, and a linear layer."""

    def layer(x, kernels, bias):  # type: ignore[no-untyped-def]
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
        out = np.maximum(np.einsum("nchwij,ocij->nohw", windows, kernels) + bias[:, None, None], 0.0)
        n, channels, height, width = out.shape
        return out.reshape(n, channels, height // 2, 2, width // 2, 2).max(axis=(3, 5))

    features = layer(layer(images, k1, b1), k2, b2)
    scores = features.reshape(len(images), -1) @ w + b
    top = scores.max(axis=1, keepdims=True)
    logs = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    return -(logs * y).sum(axis=1).mean()


def recurrent(w, u, b, x, y):  # type: ignore[no-untyped-def]
    """An LSTM, by steps of ``x``."""
    hidden = np.zeros((x.shape[1], u.shape[0]))
    cell = np.zeros((x.shape[1], u.shape[0]))
    n = u.shape[0]
    for step in range(len(x)):
        gates = x[step] @ w + hidden @ u + b
        keep = 1 / (1 + np.exp(-gates[:, :n]))
        write = 1 / (1 + np.exp(-gates[:, n : 2 * n]))
        show = 1 / (1 + np.exp(-gates[:, 2 * n : 3 * n]))
        cell = keep * cell + write * np.tanh(gates[:, 3 * n :])
        hidden = show * np.tanh(cell)
    return ((hidden - y) ** 2).mean()


def kalman(drift, log_q, log_r, observed):  # type: ignore[no-untyped-def]
    """The negative log-likelihood of observations of the first two of four states."""
    n, m = len(drift), observed.shape[1]
    transition = np.eye(n) + 0.1 * drift
    seen = np.eye(m, n)
    q, r = np.exp(log_q) * np.eye(n), np.exp(log_r) * np.eye(m)
    mean, covariance = np.zeros(n), np.eye(n)
    loss = 0.0
    for z in observed:
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + q
        error = z - seen @ mean
        spread = seen @ covariance @ seen.T + r
        gain = np.linalg.solve(spread, seen @ covariance).T
        loss = loss + 0.5 * (error @ np.linalg.solve(spread, error) + np.linalg.slogdet(spread)[1])
        mean = mean + gain @ error
        covariance = covariance - gain @ seen @ covariance
    return loss


def runge_kutta(rates, start, seen):  # type: ignore[no-untyped-def]
    """Fit of the rates of a predator-prey system to observations at each step."""

    def slope(state):  # type: ignore[no-untyped-def]
        prey, predators = state[0], state[1]
        return np.stack(
            [
                rates[0] * prey - rates[1] * prey * predators,
                rates[2] * prey * predators - rates[3] * predators,
            ]
        )

    state, loss, h = start, 0.0, 0.05
    for step in range(len(seen)):
        a = slope(state)
        b = slope(state + 0.5 * h * a)
        c = slope(state + 0.5 * h * b)
        d = slope(state + h * c)
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
        loss = loss + ((state - seen[step]) ** 2).sum()
    return loss


def variational(mean, spread, x, y, noise):  # type: ignore[no-untyped-def]
    """The evidence bound of a Bayesian linear model, by samples."""
    weights = mean + np.exp(spread) * noise
    errors = weights @ x.T - y
    likelihood = -0.5 * (errors**2).sum(axis=1).mean()
    divergence = 0.5 * (np.exp(2 * spread) + mean**2 - 1 - 2 * spread).sum()
    return divergence - likelihood


def random_field(moves, weights, bias, x, tags):  # type: ignore[no-untyped-def]
    """A linear chain (a CRF): the negative log-likelihood of tags, given as ones in rows of zeros."""
    scores = x @ weights + bias
    right = (scores * tags).sum() + (moves * (tags[:-1].T @ tags[1:])).sum()
    alpha = scores[0]
    for step in range(1, len(scores)):
        paths = alpha[:, None] + moves
        top = paths.max(axis=0)
        alpha = scores[step] + top + np.log(np.exp(paths - top).sum(axis=0))
    top = alpha.max()
    return top + np.log(np.exp(alpha - top).sum()) - right


def _normal(rng: np.random.Generator, *shapes: tuple[int, ...]) -> Arrays:
    return tuple(rng.standard_normal(shape) * 0.3 for shape in shapes)


def _one_hot(rng: np.random.Generator, rows: int, classes: int) -> Any:
    return np.eye(classes)[rng.integers(0, classes, rows)]


def _logistic(rng: np.random.Generator, rows: int, features: int) -> Arrays:
    return (*_normal(rng, (features,), (), (rows, features)), np.round(rng.random(rows)))


def _perceptron(rng: np.random.Generator, rows: int, features: int, hidden: int, classes: int) -> Arrays:
    weights = _normal(rng, (features, hidden), (hidden,), (hidden, classes), (classes,), (rows, features))
    return (*weights, _one_hot(rng, rows, classes))


def _convolutional(rng: np.random.Generator, rows: int, size: int, channels: int, classes: int) -> Arrays:
    """``size``: the images', which 3 x 3 windows and halving twice take without a rest."""
    kernels = _normal(rng, (channels, 1, 3, 3), (channels,), (2 * channels, channels, 3, 3), (2 * channels,))
    left = ((size - 2) // 2 - 2) // 2
    last = _normal(rng, (2 * channels * left**2, classes), (classes,), (rows, 1, size, size))
    return (*kernels, *last, _one_hot(rng, rows, classes))


def _recurrent(rng: np.random.Generator, steps: int, rows: int, features: int, hidden: int) -> Arrays:
    shapes = (features, 4 * hidden), (hidden, 4 * hidden), (4 * hidden,), (steps, rows, features)
    return _normal(rng, *shapes, (rows, hidden))


def _attention(rng: np.random.Generator, rows: int, width: int) -> Arrays:
    return _normal(rng, *[(width, width)] * 4, (rows, width))


def _gaussian_process(rng: np.random.Generator, points: int) -> Arrays:
    return (np.zeros(3), np.sort(rng.random(points)), *_normal(rng, (points,)))


def _kalman(rng: np.random.Generator, steps: int) -> Arrays:
    return (*_normal(rng, (4, 4)), np.array(-1.0), np.array(-0.5), *_normal(rng, (steps, 2)))


def _body_energy(rng: np.random.Generator, bodies: int) -> Arrays:
    return (*_normal(rng, (bodies, 3), (bodies, 3)), rng.random(bodies))


def _factorisation(rng: np.random.Generator, rows: int, columns: int, rank: int) -> Arrays:
    known = np.round(rng.random((rows, columns)))
    return (*_normal(rng, (rows, rank), (columns, rank), (rows, columns)), known)


def _runge_kutta(rng: np.random.Generator, steps: int, runs: int) -> Arrays:
    return np.array([1.1, 0.4, 0.1, 0.4]), np.ones((2, runs)), rng.random((steps, 2, runs))


def _variational(rng: np.random.Generator, rows: int, features: int, samples: int) -> Arrays:
    return _normal(rng, (features,), (features,), (rows, features), (rows,), (samples, features))


def _random_field(rng: np.random.Generator, steps: int, tags: int, features: int) -> Arrays:
    given = _normal(rng, (tags, tags), (features, tags), (tags,), (steps, features))
    return (*given, _one_hot(rng, steps, tags))


def _case(
    name: str, loss: Callable[..., Any], arguments: Callable[..., Arrays], wrt: int, **sizes: Any
) -> Case:
    """``sizes``: each measured and small."""

    def made(which: int) -> Callable[[np.random.Generator], Arrays]:
        return lambda rng: arguments(rng, **{size: two[which] for size, two in sizes.items()})

    return Case(name, loss, made(0), made(1), wrt)


CASES = (
    _case("logistic regression", logistic, _logistic, 2, rows=(5000, 12), features=(50, 3)),
    _case(
        "MLP", perceptron, _perceptron, 4, rows=(256, 6), features=(64, 4), hidden=(128, 5), classes=(10, 3)
    ),
    _case(
        "CNN", convolutional, _convolutional, 6, rows=(32, 2), size=(30, 14), channels=(8, 2), classes=(10, 3)
    ),
    _case(
        "LSTM, 50 steps",
        recurrent,
        _recurrent,
        3,
        steps=(50, 4),
        rows=(16, 2),
        features=(16, 3),
        hidden=(32, 2),
    ),
    _case("attention block", attention, _attention, 4, rows=(128, 5), width=(64, 4)),
    _case("Gaussian process", gaussian_process, _gaussian_process, 1, points=(150, 8)),
    _case("Kalman filter, 50 steps", kalman, _kalman, 3, steps=(50, 5)),
    _case("RK4 fit, 50 steps", runge_kutta, _runge_kutta, 2, steps=(50, 4), runs=(8, 2)),
    _case("n-body energy", body_energy, _body_energy, 2, bodies=(200, 5)),
    _case(
        "variational inference",
        variational,
        _variational,
        2,
        rows=(500, 7),
        features=(20, 3),
        samples=(64, 4),
    ),
    _case(
        "matrix factorisation",
        factorisation,
        _factorisation,
        2,
        rows=(300, 6),
        columns=(200, 5),
        rank=(20, 2),
    ),
    _case("CRF, 50 steps", random_field, _random_field, 3, steps=(50, 5), tags=(12, 3), features=(30, 4)),
)
