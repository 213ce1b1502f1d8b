"""Heat equation on a plate, explicit steps written in place."""

from __future__ import annotations

import numpy as np


def heat(temperature, conductivity, steps, dt, dx):
    """Advance the plate (ny, nx) in place, edges held; returns its mean temperature after each step."""
    mean = np.empty(steps)
    for step in range(steps):
        laplacian = (
            temperature[2:, 1:-1]
            + temperature[:-2, 1:-1]
            + temperature[1:-1, 2:]
            + temperature[1:-1, :-2]
            - 4.0 * temperature[1:-1, 1:-1]
        ) / dx**2
        temperature[1:-1, 1:-1] += dt * conductivity[1:-1, 1:-1] * laplacian
        mean[step] = temperature.mean()
    return mean


def make_inputs(quick):
    n = 24 if quick else 256
    rng = np.random.default_rng(5)
    temperature = np.zeros((n, n))
    temperature[0, :] = 100.0
    temperature[n // 3 : n // 2, n // 4 : n // 2] = 80.0
    conductivity = 1e-4 * rng.uniform(0.5, 1.0, (n, n))
    return temperature, conductivity, 40 if quick else 1000, 0.02, 0.01
