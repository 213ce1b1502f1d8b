"""``dyncomp demo``: a few small NumPy programs, as they are and compiled."""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np

from .. import runtime
from .answers import text_table
from .timing import cells, compare

_SECONDS = 1.0
_EXPECTED = 15


# -- programs, which know nothing of dyncomp --------------------------------------------------------
def black_scholes(
    spot: np.ndarray, strike: np.ndarray, years: np.ndarray, rate: float, volatility: float
) -> np.ndarray:
    """Prices of European call options; the normal distribution by an approximation of its tail."""
    root = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / root

    def below(x: np.ndarray) -> np.ndarray:
        k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
        terms = (((1.330274429 * k - 1.821255978) * k + 1.781477937) * k - 0.356563782) * k + 0.319381530
        tail = 0.3989422804 * np.exp(-0.5 * x * x) * terms * k
        return np.where(x >= 0, 1.0 - tail, tail)

    return spot * below(d1) - strike * np.exp(-rate * years) * below(d1 - root)


def heat(field: np.ndarray, steps: int, rate: float) -> np.ndarray:
    """Heat flow in a plate with a fixed edge."""
    for _ in range(steps):
        inner = field[1:-1, 1:-1]
        around = field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]
        field[1:-1, 1:-1] = inner + rate * (around - 4.0 * inner)
    return field


def nearest(points: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A step of k-means: the nearest centre of each point, and how far it is."""
    difference = points[:, None, :] - centres[None, :, :]
    distance = np.sqrt((difference**2).sum(axis=2))
    return distance.argmin(axis=1), distance.min(axis=1)


def balance(payments: np.ndarray, rate: float) -> float:
    """A loop over single numbers: an account with interest that is never overdrawn."""
    held = 0.0
    for payment in payments:
        held = held * (1.0 + rate) + payment
        if held < 0.0:
            held = 0.0
    return held


def _inputs() -> list[tuple[str, object, tuple[object, ...]]]:
    random = np.random.default_rng(1)
    count = 500_000
    prices, years = random.uniform(50, 150, (2, count)), random.uniform(0.1, 2.0, count)
    plate = np.zeros((400, 400))
    plate[0] = 100.0
    return [
        ("black_scholes", black_scholes, (prices[0], prices[1], years, 0.02, 0.3)),
        ("heat", heat, (plate, 40, 0.2)),
        ("nearest", nearest, (random.random((20_000, 3)), random.random((24, 3)))),
        ("balance", balance, (random.normal(0.1, 1.0, 300_000), 1e-4)),
    ]


def demo(options: argparse.Namespace) -> int:
    """0 if all results are right."""
    print(f"Four NumPy programs, as they are and compiled: about {_EXPECTED} seconds.", file=sys.stderr)
    times = []
    for name, function, arguments in _inputs():
        assert callable(function)
        times.append(compare(function, (arguments, {}), name, _SECONDS))
    good = all(t.same for t in times)
    if options.json:
        facts = {"programs": [t.facts() for t in times], "good": good, "threads": runtime.num_threads()}
        print(json.dumps(facts, indent=2))
        return 0 if good else 1
    print("\n".join(text_table(cells(times), numbers=range(1, 6))))
    print(
        f"\nMedians of calls made in turn, on {runtime.num_threads()} threads; NumPy uses one, but for "
        "products of matrices.\nThe first call compiles, or loads what an earlier run left on disk. Try "
        "your own program: `dyncomp run --table\nscript.py` runs it and says what is compiled of what you "
        "decorate with @dyncomp.compile, or name by --compile."
    )
    return 0 if good else 1
