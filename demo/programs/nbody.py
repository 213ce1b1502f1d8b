"""Gravitational N-body problem, all pairs, leapfrog steps."""

from __future__ import annotations

import numpy as np


def accelerations(position, mass, gravity, softening):
    """Accelerations (n, 3) at positions (n, 3)."""
    x = position[:, 0:1]
    y = position[:, 1:2]
    z = position[:, 2:3]
    dx = x.T - x
    dy = y.T - y
    dz = z.T - z
    inv_r3 = (dx**2 + dy**2 + dz**2 + softening**2) ** (-1.5)
    ax = gravity * (dx * inv_r3) @ mass
    ay = gravity * (dy * inv_r3) @ mass
    az = gravity * (dz * inv_r3) @ mass
    return np.stack([ax, ay, az], axis=1)


def nbody(position, velocity, mass, dt, steps, gravity=1.0, softening=0.1):
    """Positions and velocities (n, 3) after ``steps``, and the kinetic energy at each step (steps,)."""
    velocity = velocity - (mass[:, None] * velocity).sum(axis=0) / mass.sum()
    acceleration = accelerations(position, mass, gravity, softening)
    energy = np.zeros(steps)
    for i in range(steps):
        velocity = velocity + acceleration * dt / 2.0
        position = position + velocity * dt
        acceleration = accelerations(position, mass, gravity, softening)
        velocity = velocity + acceleration * dt / 2.0
        energy[i] = 0.5 * np.sum(mass[:, None] * velocity**2)
    return position, velocity, energy


def make_inputs(quick):
    n = 40 if quick else 500
    rng = np.random.default_rng(17)
    mass = 20.0 * np.ones(n) / n
    position = rng.standard_normal((n, 3))
    velocity = rng.standard_normal((n, 3))
    return position, velocity, mass, 0.01, 12 if quick else 20
