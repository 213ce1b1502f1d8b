"""Ports of the models of ``gradient_cases.py`` to JAX, where ``jax.numpy`` in place of ``numpy`` would do
worse than what a user of JAX writes: loops over time are scans, convolutions are calls of its own."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def convolutional(k1, b1, k2, b2, w, b, images, y):  # type: ignore[no-untyped-def]
    """Channels last, which XLA computes in two thirds of the time."""

    def layer(x, kernels, bias):  # type: ignore[no-untyped-def]
        turned = kernels.transpose(2, 3, 1, 0)
        out = lax.conv_general_dilated(x, turned, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        out = jnp.maximum(out + bias, 0.0)
        n, height, width, channels = out.shape
        return out.reshape(n, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))

    features = layer(layer(images.transpose(0, 2, 3, 1), k1, b1), k2, b2).transpose(0, 3, 1, 2)
    scores = features.reshape(len(images), -1) @ w + b
    return -(jax.nn.log_softmax(scores, axis=1) * y).sum(axis=1).mean()


def recurrent(w, u, b, x, y):  # type: ignore[no-untyped-def]
    n = u.shape[0]
    start = jnp.zeros((x.shape[1], n))

    def step(state, given):  # type: ignore[no-untyped-def]
        hidden, cell = state
        gates = given + hidden @ u
        keep, write, show = jnp.split(jax.nn.sigmoid(gates[:, : 3 * n]), 3, axis=1)
        cell = keep * cell + write * jnp.tanh(gates[:, 3 * n :])
        return (show * jnp.tanh(cell), cell), None

    (hidden, _), _ = lax.scan(step, (start, start), x @ w + b)
    return ((hidden - y) ** 2).mean()


def kalman(drift, log_q, log_r, observed):  # type: ignore[no-untyped-def]
    n, m = len(drift), observed.shape[1]
    transition = jnp.eye(n) + 0.1 * drift
    seen = jnp.eye(m, n)
    q, r = jnp.exp(log_q) * jnp.eye(n), jnp.exp(log_r) * jnp.eye(m)

    def step(state, z):  # type: ignore[no-untyped-def]
        mean, covariance = state
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + q
        error = z - seen @ mean
        spread = seen @ covariance @ seen.T + r
        gain = jnp.linalg.solve(spread, seen @ covariance).T
        loss = 0.5 * (error @ jnp.linalg.solve(spread, error) + jnp.linalg.slogdet(spread)[1])
        return (mean + gain @ error, covariance - gain @ seen @ covariance), loss

    _, losses = lax.scan(step, (jnp.zeros(n), jnp.eye(n)), observed)
    return losses.sum()


def runge_kutta(rates, start, seen):  # type: ignore[no-untyped-def]
    h = 0.05

    def slope(state):  # type: ignore[no-untyped-def]
        prey, predators = state
        both = prey * predators
        return jnp.stack([rates[0] * prey - rates[1] * both, rates[2] * both - rates[3] * predators])

    def step(state, wanted):  # type: ignore[no-untyped-def]
        a = slope(state)
        b = slope(state + 0.5 * h * a)
        c = slope(state + 0.5 * h * b)
        d = slope(state + h * c)
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
        return state, ((state - wanted) ** 2).sum()

    return lax.scan(step, start, seen)[1].sum()


def random_field(moves, weights, bias, x, tags):  # type: ignore[no-untyped-def]
    scores = x @ weights + bias
    right = (scores * tags).sum() + (moves * (tags[:-1].T @ tags[1:])).sum()

    def step(alpha, score):  # type: ignore[no-untyped-def]
        return score + jax.nn.logsumexp(alpha[:, None] + moves, axis=0), None

    alpha, _ = lax.scan(step, scores[0], scores[1:])
    return jax.nn.logsumexp(alpha) - right


_PORTS: Mapping[str, Callable[..., Any]] = {
    port.__name__: port for port in (convolutional, recurrent, kalman, runge_kutta, random_field)
}


def ported(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A model for JAX: its port, or the function with ``jax.numpy`` for ``np``."""
    as_is = types.FunctionType(loss.__code__, {**loss.__globals__, "np": jnp})
    return _PORTS.get(loss.__name__, as_is)
