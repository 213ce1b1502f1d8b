"""Linear shallow water on a staggered grid (Arakawa C), a thousand steps written in place."""

from __future__ import annotations

import numpy as np


def shallow_water(height, u, v, steps, dt, dx, gravity=9.81, depth=100.0, coriolis=1e-4):
    """Advance surface height (ny, nx) and velocities u (ny, nx + 1), v (ny + 1, nx) in place.

    Closed walls: the outermost velocities stay as they are. Returns the largest height seen at each step.
    """
    crest = np.zeros(steps)
    for step in range(steps):
        u[:, 1:-1] -= gravity * dt / dx * (height[:, 1:] - height[:, :-1])
        v[1:-1, :] -= gravity * dt / dx * (height[1:, :] - height[:-1, :])
        v_at_u = 0.25 * (v[:-1, :-1] + v[1:, :-1] + v[:-1, 1:] + v[1:, 1:])
        u_at_v = 0.25 * (u[:-1, :-1] + u[1:, :-1] + u[:-1, 1:] + u[1:, 1:])
        u[:, 1:-1] += dt * coriolis * v_at_u
        v[1:-1, :] -= dt * coriolis * u_at_v
        height -= depth * dt / dx * ((u[:, 1:] - u[:, :-1]) + (v[1:, :] - v[:-1, :]))
        crest[step] = height.max()
    return crest


def make_inputs(quick):
    n = 24 if quick else 200
    x = np.linspace(-1.0, 1.0, n)
    height = np.exp(-((x[None, :] + 0.3) ** 2 + x[:, None] ** 2) / 0.02)
    u = np.zeros((n, n + 1))
    v = np.zeros((n + 1, n))
    return height, u, v, 40 if quick else 1000, 10.0, 1000.0
