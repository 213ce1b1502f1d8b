"""The constants of a differential equation, found by Newton's method with ``dyncomp.hessian``.

Lynxes and hares, as pelts that the Hudson's Bay Company bought, in thousands (C. Elton and M. Nicholson, "The
ten-year cycle in numbers of the lynx in Canada", 1942; the years that P. Howard tabulated in 2009). The model
is Lotka's and Volterra's. Its solution is shot from every year to the next, so unknowns are four rates and
the true numbers in all years; what is minimised is the negative logarithm of their posterior density, where
numbers are caught with an error of a quarter and the equation is obeyed up to a twentieth a year.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import dyncomp

from .pictures import BLUE, GREY, ORANGE, axes_side_by_side, save

# fmt: off
HARES = np.array([
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1,
    40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7,
])
LYNXES = np.array([
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4,
    8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
])
# fmt: on
FIRST_YEAR = 1900
RATES = ("hares born", "hares caught by a lynx", "lynxes dying", "lynxes fed by a hare")
START = np.log([1.0, 0.05, 1.0, 0.05])
CATCH_ERROR, MODEL_ERROR = 0.25, 0.05
STEPS = 4  # in a year

Function = Callable[[np.ndarray], Any]


# -- the model ----------------------------------------------------------------------------------
def slope(rates, hares, lynxes):
    """Of the logarithms of the numbers."""
    birth, catch, death, feed = rates
    return birth - catch * lynxes, feed * hares - death


def year_later(rates, state, steps=STEPS):
    """Logarithms of hares and lynxes (2, n), a year later: Runge and Kutta's method."""
    x, y = state
    h = 1.0 / steps
    for _ in range(steps):
        a1, b1 = slope(rates, np.exp(x), np.exp(y))
        a2, b2 = slope(rates, np.exp(x + h / 2 * a1), np.exp(y + h / 2 * b1))
        a3, b3 = slope(rates, np.exp(x + h / 2 * a2), np.exp(y + h / 2 * b2))
        a4, b4 = slope(rates, np.exp(x + h * a3), np.exp(y + h * b3))
        x = x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        y = y + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
    return np.stack([x, y])


def improbability(unknown, seen):
    """``unknown``: logarithms of rates (4,) and numbers (2 n,); ``seen``: logarithms of numbers (2, n)."""
    rates, states = np.exp(unknown[:4]), unknown[4:].reshape(2, -1)
    caught = (seen - states) / CATCH_ERROR
    jumps = (states[:, 1:] - year_later(rates, states[:, :-1])) / MODEL_ERROR
    return 0.5 * (caught**2).sum() + 0.5 * (jumps**2).sum()


# -- Newton's method ----------------------------------------------------------------------------
@dataclass
class Found:
    """``slopes``: the largest element of the gradient before each step; ``seconds`` of all derivatives
    after the first of each kind, which took ``first``."""

    unknown: np.ndarray
    value: float
    hessian: np.ndarray
    slopes: list[float] = field(default_factory=list)
    first: float = 0.0
    seconds: float = 0.0


def minimum(
    f: Function, gradient: Function, hessian: Function, start: np.ndarray, most: int, tick: Callable[[], Any]
) -> Found:
    """Newton's method with Levenberg's damping, until a step changes nothing any more."""
    found = Found(start, float(f(start)), np.eye(len(start)))
    damping = 1.0
    for count in range(most):
        begin = time.perf_counter()
        g, found.hessian = gradient(found.unknown), hessian(found.unknown)
        seconds = time.perf_counter() - begin
        if count:
            found.seconds += seconds
        else:
            found.first = seconds
        found.slopes.append(float(abs(g).max()))
        tick()
        values, vectors = np.linalg.eigh(found.hessian)
        while damping < 1e12:
            step = vectors @ ((vectors.T @ g) / (abs(values) + damping))
            new = found.unknown - step
            with np.errstate(over="ignore", invalid="ignore"):
                value = float(f(new))
            if value <= found.value:
                break
            damping = max(10 * damping, 1e-3)
        else:
            break
        done = abs(step).max() < 1e-10
        found.unknown, found.value = new, value
        damping = damping / 10 if damping > 1e-6 else 0.0
        if done:
            break
    return found


# -- finite differences ---------------------------------------------------------------------------
def difference_gradient(f: Function, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    moves = step * np.eye(len(x))
    return np.array([(f(x + move) - f(x - move)) / (2 * step) for move in moves])


def difference_hessian(f: Function, x: np.ndarray, step: float = 1e-4) -> np.ndarray:
    n = len(x)
    moves = step * np.eye(n)
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            both, one = moves[i] + moves[j], moves[i] - moves[j]
            found[i, j] = f(x + both) - f(x + one) - f(x - one) + f(x - both)
            found[j, i] = found[i, j]
    return found / (4 * step * step)


# -- the example ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Result:
    own: Found
    differences: Found
    seen: np.ndarray

    @property
    def rates(self) -> np.ndarray:
        return np.exp(self.own.unknown[:4])

    @property
    def errors(self) -> np.ndarray:
        """Standard deviations of the logarithms of all unknowns: the normal approximation at the maximum."""
        return np.sqrt(np.diag(np.linalg.inv(self.own.hessian)))


def run(console: Console, folder: Path | None, quick: bool = False) -> Result:
    years = 8 if quick else len(HARES)
    seen = np.log([HARES[:years], LYNXES[:years]])
    start = np.concatenate([START, seen.ravel()])
    most = 50

    def f(unknown):
        return improbability(unknown, seen)

    gradient, hessian = dyncomp.grad(f), dyncomp.hessian(f)
    with Progress(console=console) as progress:
        tasks = [progress.add_task(name, total=None) for name in ("dyncomp", "finite differences")]
        ticks = [functools.partial(progress.advance, task) for task in tasks]
        own = minimum(f, gradient, hessian, start, most, ticks[0])
        by_differences = minimum(
            f,
            functools.partial(difference_gradient, f),
            functools.partial(difference_hessian, f),
            start,
            most,
            ticks[1],
        )
        for task in tasks:
            progress.update(task, total=progress.tasks[task].completed)
    result = Result(own, by_differences, seen)
    report(console, result)
    if folder is not None:
        for path in picture(result, folder):
            console.print(f"written: {path}", highlight=False)
    return result


def report(console: Console, result: Result) -> None:
    table = Table(title="Hares and lynxes: Newton's method", title_justify="left")
    table.add_column("derivatives")
    for name in ("unknowns", "steps", "minimum", "gradient left", "first s", "all others s"):
        table.add_column(name, justify="right")
    for name, found in (("dyncomp", result.own), ("finite differences", result.differences)):
        table.add_row(
            name,
            str(len(found.unknown)),
            str(len(found.slopes)),
            f"{found.value:.9f}",
            f"{found.slopes[-1]:.0e}",
            f"{found.first:.2f}",
            f"{found.seconds:.3f}",
        )
    console.print(table)
    for name, rate, error in zip(RATES, result.rates, result.errors):
        console.print(f"{name:24}{rate:8.4f} a year, give or take {100 * error:.0f} %", highlight=False)


def between(rates: np.ndarray, states: np.ndarray, count: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Years after the first (n,), and numbers (2, n), with ``count`` points in a year."""
    parts = []
    for k in range(count):
        scaled = rates * k / count  # a part of a year at these rates is a year at such a part of them
        parts.append(year_later(scaled, states[:, :-1]))
    numbers = np.exp(np.stack(parts, axis=-1).reshape(2, -1))
    return np.arange(numbers.shape[1]) / count, numbers


def picture(result: Result, folder: Path) -> list[Path]:
    figure, (curves, circle, steps) = axes_side_by_side([5.6, 3.4, 3.4])
    states = result.own.unknown[4:].reshape(2, -1)
    spread = result.errors[4:].reshape(2, -1)
    years = FIRST_YEAR + np.arange(states.shape[1])
    times, numbers = between(result.rates, states)
    for k, (name, colour) in enumerate((("hares", BLUE), ("lynxes", ORANGE))):
        low, high = np.exp(states[k] - 2 * spread[k]), np.exp(states[k] + 2 * spread[k])
        curves.fill_between(years, low, high, color=colour, alpha=0.2, linewidth=0)
        curves.plot(FIRST_YEAR + times, numbers[k], color=colour, label=name)
        curves.plot(years, np.exp(result.seen[k]), "o", color=colour, markersize=3.5)
    curves.set(xlabel="year", ylabel="thousands of pelts", title="Caught, and the equation's solution")
    curves.xaxis.get_major_locator().set_params(integer=True)
    curves.legend()
    circle.plot(numbers[0], numbers[1], color=GREY)
    circle.plot(*np.exp(result.seen), "o", color=GREY, markersize=3, alpha=0.6)
    circle.set(xlabel="hares", ylabel="lynxes", title="Round and round")
    for name, found, colour in (
        ("dyncomp", result.own, BLUE),
        ("finite differences", result.differences, ORANGE),
    ):
        steps.plot(np.arange(len(found.slopes)), found.slopes, "o-", color=colour, markersize=3, label=name)
    steps.set(yscale="log", xlabel="Newton step", ylabel="largest slope", title="Convergence")
    steps.legend()
    return save(figure, folder, "equation")
