"""European option prices by the Black-Scholes formula, with the classic polynomial for the normal law."""

from __future__ import annotations

import numpy as np


def cumulative_normal(d):
    """Abramowitz and Stegun, formula 26.2.17."""
    a1 = 0.31938153
    a2 = -0.356563782
    a3 = 1.781477937
    a4 = -1.821255978
    a5 = 1.330274429
    k = 1.0 / (1.0 + 0.2316419 * np.abs(d))
    tail = (
        1 / np.sqrt(2 * np.pi) * np.exp(-0.5 * d * d) * (k * (a1 + k * (a2 + k * (a3 + k * (a4 + k * a5)))))
    )
    return np.where(d > 0, 1.0 - tail, tail)


def black_scholes(price, strike, years, rate, volatility):
    """Prices of calls and puts, each of the shape of ``price``."""
    root = np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + 0.5 * volatility**2) * years) / (volatility * root)
    d2 = d1 - volatility * root
    discounted = strike * np.exp(-rate * years)
    call = price * cumulative_normal(d1) - discounted * cumulative_normal(d2)
    put = discounted * cumulative_normal(-d2) - price * cumulative_normal(-d1)
    return call, put


def make_inputs(quick):
    n = 2_000 if quick else 1_000_000
    rng = np.random.default_rng(0)
    price = rng.uniform(5.0, 30.0, n)
    strike = rng.uniform(1.0, 100.0, n)
    years = rng.uniform(0.25, 10.0, n)
    return price, strike, years, 0.02, 0.30
