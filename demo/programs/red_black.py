"""Poisson's equation by red-black Gauss-Seidel with over-relaxation, strided slices in place."""

from __future__ import annotations

import numpy as np


def relax(u, f, h2, omega, row, column):
    """Relax in place the points (row, column), (row, column + 2), … and every second row."""
    centre = u[row:-1:2, column:-1:2]
    north = u[row - 1 : -2 : 2, column:-1:2]
    south = u[row + 1 :: 2, column:-1:2]
    west = u[row:-1:2, column - 1 : -2 : 2]
    east = u[row:-1:2, column + 1 :: 2]
    change = 0.25 * (north + south + west + east - h2 * f[row:-1:2, column:-1:2]) - centre
    centre += omega * change
    return np.abs(change).max()


def solve_poisson(f, h, tol, max_sweeps):
    """Solution of ∇²u = f with u = 0 on the edge, and the number of sweeps. Odd grid sizes."""
    u = np.zeros_like(f)
    omega = 2.0 / (1.0 + np.sin(np.pi / (f.shape[0] - 1)))
    for sweep in range(1, max_sweeps + 1):  # noqa: B007 (used after the loop)
        change = relax(u, f, h * h, omega, 1, 1)
        change = max(change, relax(u, f, h * h, omega, 2, 2))
        change = max(change, relax(u, f, h * h, omega, 1, 2))
        change = max(change, relax(u, f, h * h, omega, 2, 1))
        if change < tol:
            break
    return u, sweep


def make_inputs(quick):
    n = 17 if quick else 257
    x = np.linspace(0.0, 1.0, n)
    f = np.sin(3 * np.pi * x)[:, None] * np.sin(2 * np.pi * x)[None, :] + 5.0 * (x[:, None] > 0.5)
    return f, x[1] - x[0], 1e-7, 40 if quick else 400
