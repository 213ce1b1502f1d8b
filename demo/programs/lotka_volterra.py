"""An ensemble of predator-prey systems, classical Runge-Kutta."""

from __future__ import annotations

import numpy as np


class LotkaVolterra:
    """Rates of many systems; calling it gives the time derivative of the state (2, n)."""

    def __init__(self, alpha, beta, gamma, delta):
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.delta = delta

    def __call__(self, t, state):
        prey, predator = state
        return np.array(
            [
                self.alpha * prey - self.beta * prey * predator,
                self.delta * prey * predator - self.gamma * predator,
            ]
        )


def rk4_step(f, t, y, h):
    k1 = f(t, y)
    k2 = f(t + h / 2, y + h / 2 * k1)
    k3 = f(t + h / 2, y + h / 2 * k2)
    k4 = f(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def integrate(system, state, h, steps):
    """Final state (2, n) and the ensemble mean (steps, 2)."""
    mean = np.zeros((steps, 2))
    t = 0.0
    for i in range(steps):
        state = rk4_step(system, t, state, h)
        t += h
        mean[i] = state.mean(axis=1)
    return state, mean


def make_inputs(quick):
    n = 300 if quick else 20_000
    rng = np.random.default_rng(7)
    rates = rng.uniform([[0.9], [0.3], [0.7], [0.2]], [[1.3], [0.5], [1.1], [0.4]], (4, n))
    system = LotkaVolterra(*rates)
    state = np.array([np.full(n, 5.0), np.full(n, 2.0)])
    return system, state, 0.02, 20 if quick else 300
