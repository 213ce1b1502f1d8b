"""A Gaussian process of the greatest likelihood: ``scipy.optimize.minimize`` with ``dyncomp.value_and_grad``.

The series is made up: a slow trend, a season whose form drifts, and noise, monthly, with a gap of two years.
The covariance has a part for each (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 5.4.3);
its eight constants are found together, and the process then fills the gap and goes on for three years.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import dyncomp

from .pictures import BLUE, GREY, axes_side_by_side, save

NAMES = (
    "size of the trend",
    "years of the trend",
    "size of the season",
    "years until the season has another form",
    "period in years",
    "smoothness of the season",
    "size of fast changes",
    "noise",
)
START = np.log([3.0, 5.0, 2.0, 10.0, 1.05, 1.0, 0.3, 0.3])
MONTHS_AHEAD = 36


def series(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """Years (n,) and what was measured (n,)."""
    rng = np.random.default_rng(12)
    t = np.arange(48 if quick else 168) / 12
    trend = 0.02 * t**2 + 0.9 * np.sin(t / 4)
    season = (1.3 + 0.03 * t) * np.sin(2 * np.pi * t) + 0.4 * np.cos(4 * np.pi * t + t / 9)
    x = trend + season + 0.25 * rng.standard_normal(len(t))
    kept = (t < 8) | (t > 10)
    return t[kept], x[kept] - x[kept].mean()


def covariance(constants, s, t):
    """Of the process at times ``s`` (n,) and ``t`` (m,), without noise: (n, m)."""
    size, years, season, drift, period, smoothness, fast, _ = np.exp(constants)
    d = np.subtract.outer(s, t)
    trend = size**2 * np.exp(-0.5 * (d / years) ** 2)
    turn = np.sin(np.pi * d / period) / smoothness
    seasonal = season**2 * np.exp(-0.5 * (d / drift) ** 2 - 2 * turn**2)
    return trend + seasonal + fast**2 / (1 + (d / 0.25) ** 2)


def improbability(constants, t, x):
    """The negative logarithm of the likelihood."""
    k = covariance(constants, t, t) + (np.exp(2 * constants[-1]) + 1e-10) * np.eye(len(t))
    factor = np.linalg.cholesky(k)
    white = np.linalg.solve(factor, x)
    return 0.5 * white @ white + np.log(np.diag(factor)).sum() + 0.5 * len(t) * np.log(2 * np.pi)


def predicted(constants, t, x, at):
    """Mean and standard deviation of the process at other times, without noise."""
    k = covariance(constants, t, t) + (np.exp(2 * constants[-1]) + 1e-10) * np.eye(len(t))
    across = covariance(constants, at, t)
    mean = across @ np.linalg.solve(k, x)
    left = covariance(constants, at, at) - across @ np.linalg.solve(k, across.T)
    return mean, np.sqrt(np.maximum(np.diag(left), 0.0))


@dataclass(frozen=True)
class Fit:
    constants: np.ndarray
    value: float
    calls: int
    iterations: int
    seconds: float


def fitted(f: Callable[[np.ndarray], Any], with_gradient: bool, tick: Callable[[], Any]) -> Fit:
    from scipy.optimize import minimize

    begin = time.perf_counter()
    found = minimize(
        f,
        START,
        jac=with_gradient,
        method="L-BFGS-B",
        bounds=[(-7.0, 7.0)] * len(START),
        callback=lambda intermediate_result: tick(),
    )
    return Fit(found.x, float(found.fun), found.nfev, found.nit, time.perf_counter() - begin)


@dataclass(frozen=True)
class Result:
    own: Fit
    differences: Fit
    first: float  # seconds of the first gradient


def run(console: Console, folder: Path | None, quick: bool = False) -> Result:
    t, x = series(quick)

    def f(constants):
        return improbability(constants, t, x)

    both = dyncomp.value_and_grad(f)
    begin = time.perf_counter()
    both(START)
    first = time.perf_counter() - begin
    with Progress(console=console) as progress:
        fits = []
        for name, function, with_gradient in (
            ("dyncomp", both, True),
            ("finite differences", f, False),
        ):
            task = progress.add_task(name, total=None)
            fits.append(fitted(function, with_gradient, lambda task=task: progress.advance(task)))
            progress.update(task, total=fits[-1].iterations, completed=fits[-1].iterations)
    result = Result(*fits, first)
    report(console, result, len(t))
    if folder is not None:
        for path in picture(result, t, x, folder):
            console.print(f"written: {path}", highlight=False)
    return result


def report(console: Console, result: Result, count: int) -> None:
    table = Table(title=f"A Gaussian process through {count} points", title_justify="left")
    table.add_column("derivatives")
    for name in ("-log likelihood", "iterations", "calls of the function", "first call s", "search s"):
        table.add_column(name, justify="right")
    own, other = result.own, result.differences
    table.add_row(
        "dyncomp",
        f"{own.value:.6f}",
        str(own.iterations),
        f"{own.calls}, with gradients",
        f"{result.first:.2f}",
        f"{own.seconds:.2f}",
    )
    table.add_row(
        "finite differences",
        f"{other.value:.6f}",
        str(other.iterations),
        str(other.calls),
        "",
        f"{other.seconds:.2f}",
    )
    console.print(table)
    for name, value in zip(NAMES, np.exp(own.constants)):
        console.print(f"{name:42}{value:9.3f}", highlight=False)


def picture(result: Result, t: np.ndarray, x: np.ndarray, folder: Path) -> list[Path]:
    figure, (axes,) = axes_side_by_side([9.0])
    at = np.arange(0.0, t[-1] + MONTHS_AHEAD / 12, 1 / 48)
    mean, spread = predicted(result.own.constants, t, x, at)
    axes.fill_between(at, mean - 2 * spread, mean + 2 * spread, color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(at, mean, color=BLUE, linewidth=1.2, label="process, give or take 2 standard deviations")
    axes.plot(t, x, ".", color=GREY, markersize=4, label="measured")
    axes.axvline(t[-1], color=GREY, linewidth=0.8, linestyle=":")
    axes.set(xlabel="years", title="A Gaussian process of the greatest likelihood")
    axes.legend(loc="upper left")
    return save(figure, folder, "process")
