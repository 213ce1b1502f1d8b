"""Ising model, checkerboard Metropolis sweeps with masks."""

from __future__ import annotations

import numpy as np


def ising(spins, beta, sweeps, rng):
    """Sweep spins (n, n) of int8 in place; returns magnetisation and energy per spin at each sweep."""
    n = spins.shape[0]
    i, j = np.indices(spins.shape)
    colours = [(i + j) % 2 == 0, (i + j) % 2 == 1]
    magnetisation = np.zeros(sweeps)
    energy = np.zeros(sweeps)
    for sweep in range(sweeps):
        for colour in colours:
            neighbours = (
                np.roll(spins, 1, axis=0)
                + np.roll(spins, -1, axis=0)
                + np.roll(spins, 1, axis=1)
                + np.roll(spins, -1, axis=1)
            )
            cost = 2 * spins * neighbours
            flip = colour & (rng.random((n, n)) < np.exp(-beta * cost))
            spins[flip] *= -1
        bonds = spins * (np.roll(spins, 1, axis=0) + np.roll(spins, 1, axis=1))
        magnetisation[sweep] = spins.mean()
        energy[sweep] = -bonds.mean()
    return magnetisation, energy


def make_inputs(quick):
    n = 16 if quick else 256
    rng = np.random.default_rng(11)
    spins = rng.choice(np.array([-1, 1], dtype=np.int8), (n, n))
    return spins, 0.44, 10 if quick else 60, np.random.default_rng(12)
