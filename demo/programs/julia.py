"""A Julia set in real arithmetic: only the points still inside move on."""

from __future__ import annotations

import numpy as np


def julia(width, height, cx, cy, max_iter):
    """Number of steps (height, width) that each point stays within radius 2, as int32."""
    x, y = np.meshgrid(np.linspace(-1.6, 1.6, width), np.linspace(-1.2, 1.2, height))
    counts = np.zeros((height, width), dtype=np.int32)
    for _ in range(max_iter):
        inside = x * x + y * y <= 4.0
        counts += inside
        x_next = np.where(inside, x * x - y * y + cx, x)
        y = np.where(inside, 2.0 * x * y + cy, y)
        x = x_next
    return counts


def make_inputs(quick):
    return (40, 30, -0.8, 0.156, 12) if quick else (400, 300, -0.8, 0.156, 100)
