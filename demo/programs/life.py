"""Conway's Game of Life on a torus."""

from __future__ import annotations

import numpy as np


def life(board, generations):
    """Board (n, m) of bool after some generations, and the population at each."""
    population = np.zeros(generations, dtype=np.int64)
    for g in range(generations):
        neighbours = sum(
            np.roll(np.roll(board, i, 0), j, 1).astype(np.uint8)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i != 0 or j != 0)
        )
        board = (neighbours == 3) | (board & (neighbours == 2))
        population[g] = board.sum()
    return board, population


def make_inputs(quick):
    n = 24 if quick else 512
    rng = np.random.default_rng(51)
    return rng.random((n, n)) < 0.3, 10 if quick else 40
