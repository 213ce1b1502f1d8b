"""The Mandelbrot set, as NumPy's own quick start writes it (numpy.org, BSD-3-Clause)."""

from __future__ import annotations

import numpy as np


def mandelbrot(h, w, maxit=20, r=2):
    """Step at which each point of a grid diverges (maxit where it does not)."""
    x = np.linspace(-2.5, 1.5, 4 * h + 1)
    y = np.linspace(-1.5, 1.5, 3 * w + 1)
    A, B = np.meshgrid(x, y)
    C = A + B * 1j
    z = np.zeros_like(C)
    divtime = maxit + np.zeros(z.shape, dtype=int)

    for i in range(maxit):
        z = z**2 + C
        diverge = abs(z) > r  # who is diverging
        div_now = diverge & (divtime == maxit)  # who is diverging now
        divtime[div_now] = i  # note when
        z[diverge] = r  # avoid diverging too much

    return divtime


def make_inputs(quick):
    return (20, 20, 12) if quick else (120, 120, 50)
