"""Kalman filter of a noisy track: many steps on tiny matrices."""

from __future__ import annotations

import numpy as np


def kalman(measurements, transition, observation, process_noise, measurement_noise, state, covariance):
    """Filtered states (n, d) of measurements (n, m), and the log-likelihood."""
    identity = np.eye(len(state))
    states = np.zeros((len(measurements), len(state)))
    log_likelihood = 0.0
    for i, measurement in enumerate(measurements):
        state = transition @ state
        covariance = transition @ covariance @ transition.T + process_noise
        residual = measurement - observation @ state
        spread = observation @ covariance @ observation.T + measurement_noise
        gain = covariance @ observation.T @ np.linalg.inv(spread)
        state = state + gain @ residual
        covariance = (identity - gain @ observation) @ covariance
        states[i] = state
        log_likelihood -= 0.5 * (residual @ np.linalg.solve(spread, residual) + np.log(np.linalg.det(spread)))
    return states, log_likelihood


def make_inputs(quick):
    n = 30 if quick else 1000
    dt = 0.1
    transition = np.eye(4)
    transition[0, 2] = transition[1, 3] = dt
    observation = np.zeros((2, 4))
    observation[0, 0] = observation[1, 1] = 1.0
    rng = np.random.default_rng(31)
    time = dt * np.arange(n)
    track = np.column_stack([np.cos(0.3 * time), np.sin(0.2 * time)])
    measurements = track + 0.1 * rng.standard_normal((n, 2))
    noise = 1e-3 * np.eye(4)
    return measurements, transition, observation, noise, 0.01 * np.eye(2), np.zeros(4), np.eye(4)
