"""Print the Chebyshev series of modified Bessel functions in ``dyncomp/prims/pointwise/special.py``.."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

mp.dps = 50
_NODES = 60
_SMALLEST = mpf(2) ** -58  # of the largest coefficient


def series(function: Callable[[Any], Any]) -> list[Any]:
    """Coefficients by interpolation at Chebyshev nodes in [-1, 1]."""
    nodes = [mp.cos(mp.pi * (k + mpf(1) / 2) / _NODES) for k in range(_NODES)]
    values = [function(x) for x in nodes]
    found = []
    for j in range(_NODES):
        terms = [v * mp.cos(j * mp.pi * (k + mpf(1) / 2) / _NODES) for k, v in enumerate(values)]
        found.append(2 * mp.fsum(terms) / _NODES)
    found[0] /= 2
    while abs(found[-1]) < _SMALLEST * max(map(abs, found)):
        found.pop()
    return found


def near(order: int) -> Callable[[Any], Any]:
    """``exp(-x) I(x)`` (of order 1: over x) on [0, 8], by ``x/4 - 1``."""

    def function(t: Any) -> Any:
        x = 4 * (t + 1)
        if order and not x:
            return mpf(1) / 2
        return mp.exp(-x) * mp.besseli(order, x) / (x if order else 1)

    return function


def far(order: int) -> Callable[[Any], Any]:
    """``sqrt(x) exp(-x) I(x)`` on [8, inf), by ``16/x - 1``."""

    def function(t: Any) -> Any:
        if t == -1:
            return 1 / mp.sqrt(2 * mp.pi)
        x = 16 / (t + 1)
        return mp.exp(-x) * mp.besseli(order, x) * mp.sqrt(x)

    return function


if __name__ == "__main__":
    for order in (0, 1):
        for name, function in (("NEAR", near(order)), ("FAR", far(order))):
            print(f"_I{order}_{name} =", tuple(float(c) for c in series(function)))
