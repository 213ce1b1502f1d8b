"""Statistics of a price series over a moving window, and a crossing signal from them."""

from __future__ import annotations

import numpy as np


def moving_mean(x, window):
    total = np.cumsum(x)
    total[window:] = total[window:] - total[:-window]
    return total[window - 1 :] / window


def bollinger(prices, fast=20, slow=100, width=2.0):
    """Position (n - slow + 1,) in {-1, 0, 1} as int8, its growth of wealth, and z-scores."""
    mean = moving_mean(prices, slow)
    variance = moving_mean(prices**2, slow) - mean**2
    deviation = np.sqrt(np.maximum(variance, 1e-12))
    quick = moving_mean(prices, fast)[slow - fast :]
    z = (quick - mean) / deviation
    position = np.zeros(z.shape, dtype=np.int8)
    position[z > width / 2] = 1
    position[z < -width / 2] = -1
    returns = np.diff(prices[slow - 1 :]) / prices[slow - 1 : -1]
    wealth = np.cumprod(1.0 + position[:-1] * returns)
    return position, wealth, z


def make_inputs(quick):
    n = 3_000 if quick else 1_000_000
    rng = np.random.default_rng(21)
    steps = 2e-4 * rng.standard_normal(n)
    return (100.0 * np.exp(np.cumsum(steps)),)
