"""Maxwell's equations in two dimensions (TM mode), Yee's scheme, a pulsed source between lossy edges."""

from __future__ import annotations

import numpy as np


def fdtd(permittivity, steps, courant=0.5, width=12.0, delay=40.0):
    """Electric field (nx, ny) after ``steps``, and its value at a probe at each step."""
    nx, ny = permittivity.shape
    ez = np.zeros((nx, ny))
    hx = np.zeros((nx, ny - 1))
    hy = np.zeros((nx - 1, ny))
    damping = np.ones((nx, ny))
    for layer in range(8):
        loss = 1.0 - 0.05 * ((8 - layer) / 8) ** 2
        damping[layer, :] *= loss
        damping[-1 - layer, :] *= loss
        damping[:, layer] *= loss
        damping[:, -1 - layer] *= loss
    probe = np.zeros(steps)
    for n in range(steps):
        hx -= courant * (ez[:, 1:] - ez[:, :-1])
        hy += courant * (ez[1:, :] - ez[:-1, :])
        curl = (hy[1:, 1:-1] - hy[:-1, 1:-1]) - (hx[1:-1, 1:] - hx[1:-1, :-1])
        ez[1:-1, 1:-1] += courant / permittivity[1:-1, 1:-1] * curl
        ez[nx // 4, ny // 2] += np.exp(-(((n - delay) / width) ** 2))
        ez *= damping
        probe[n] = ez[3 * nx // 4, ny // 2]
    return ez, probe


def make_inputs(quick):
    n = 32 if quick else 200
    permittivity = np.ones((n, n))
    permittivity[n // 2 : n // 2 + n // 8, :] = 4.0
    return permittivity, 30 if quick else 500
