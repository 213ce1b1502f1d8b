"""Programs that write into arrays in long loops, in the form a JAX user writes them.

Each computes what the program of the same name in ``demo.programs`` does and also returns the arrays that
the original changes in place. Programs that run in JAX as they are need no entry here.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax


def heat(temperature, conductivity, steps, dt, dx):
    def step(i, carry):
        t, mean = carry
        laplacian = (t[2:, 1:-1] + t[:-2, 1:-1] + t[1:-1, 2:] + t[1:-1, :-2] - 4.0 * t[1:-1, 1:-1]) / dx**2
        t = t.at[1:-1, 1:-1].add(dt * conductivity[1:-1, 1:-1] * laplacian)
        return t, mean.at[i].set(t.mean())

    final, mean = lax.fori_loop(0, steps, step, (temperature, jnp.zeros(steps)))
    return mean, final


def shallow_water(height, u, v, steps, dt, dx, gravity=9.81, depth=100.0, coriolis=1e-4):
    def step(i, carry):
        h, u, v, crest = carry
        u = u.at[:, 1:-1].add(-gravity * dt / dx * (h[:, 1:] - h[:, :-1]))
        v = v.at[1:-1, :].add(-gravity * dt / dx * (h[1:, :] - h[:-1, :]))
        v_at_u = 0.25 * (v[:-1, :-1] + v[1:, :-1] + v[:-1, 1:] + v[1:, 1:])
        u_at_v = 0.25 * (u[:-1, :-1] + u[1:, :-1] + u[:-1, 1:] + u[1:, 1:])
        u = u.at[:, 1:-1].add(dt * coriolis * v_at_u)
        v = v.at[1:-1, :].add(-dt * coriolis * u_at_v)
        h = h - depth * dt / dx * ((u[:, 1:] - u[:, :-1]) + (v[1:, :] - v[:-1, :]))
        return h, u, v, crest.at[i].set(h.max())

    h, u, v, crest = lax.fori_loop(0, steps, step, (height, u, v, jnp.zeros(steps)))
    return crest, h, u, v


def _accelerations(position, mass, gravity, softening):
    x, y, z = position[:, 0:1], position[:, 1:2], position[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r3 = (dx**2 + dy**2 + dz**2 + softening**2) ** (-1.5)
    return jnp.stack([gravity * (d * inv_r3) @ mass for d in (dx, dy, dz)], axis=1)


def nbody(position, velocity, mass, dt, steps, gravity=1.0, softening=0.1):
    velocity = velocity - (mass[:, None] * velocity).sum(axis=0) / mass.sum()

    def step(i, carry):
        position, velocity, acceleration, energy = carry
        velocity = velocity + acceleration * dt / 2.0
        position = position + velocity * dt
        acceleration = _accelerations(position, mass, gravity, softening)
        velocity = velocity + acceleration * dt / 2.0
        energy = energy.at[i].set(0.5 * jnp.sum(mass[:, None] * velocity**2))
        return position, velocity, acceleration, energy

    first = (position, velocity, _accelerations(position, mass, gravity, softening), jnp.zeros(steps))
    position, velocity, _, energy = lax.fori_loop(0, steps, step, first)
    return position, velocity, energy


def julia(width, height, cx, cy, max_iter):
    x, y = jnp.meshgrid(jnp.linspace(-1.6, 1.6, width), jnp.linspace(-1.2, 1.2, height))

    def step(i, carry):
        x, y, counts = carry
        inside = x * x + y * y <= 4.0
        x_next = jnp.where(inside, x * x - y * y + cx, x)
        return x_next, jnp.where(inside, 2.0 * x * y + cy, y), counts + inside.astype(jnp.int32)

    return lax.fori_loop(0, max_iter, step, (x, y, jnp.zeros((height, width), dtype=jnp.int32)))[2]


def fdtd(permittivity, steps, courant=0.5, width=12.0, delay=40.0):
    nx, ny = permittivity.shape
    damping = jnp.ones((nx, ny))
    for layer in range(8):
        loss = 1.0 - 0.05 * ((8 - layer) / 8) ** 2
        damping = damping.at[layer, :].multiply(loss).at[-1 - layer, :].multiply(loss)
        damping = damping.at[:, layer].multiply(loss).at[:, -1 - layer].multiply(loss)

    def step(n, carry):
        ez, hx, hy, probe = carry
        hx = hx - courant * (ez[:, 1:] - ez[:, :-1])
        hy = hy + courant * (ez[1:, :] - ez[:-1, :])
        curl = (hy[1:, 1:-1] - hy[:-1, 1:-1]) - (hx[1:-1, 1:] - hx[1:-1, :-1])
        ez = ez.at[1:-1, 1:-1].add(courant / permittivity[1:-1, 1:-1] * curl)
        ez = ez.at[nx // 4, ny // 2].add(jnp.exp(-(((n - delay) / width) ** 2)))
        ez = ez * damping
        return ez, hx, hy, probe.at[n].set(ez[3 * nx // 4, ny // 2])

    fields = (jnp.zeros((nx, ny)), jnp.zeros((nx, ny - 1)), jnp.zeros((nx - 1, ny)), jnp.zeros(steps))
    ez, _, _, probe = lax.fori_loop(0, steps, step, fields)
    return ez, probe


FORMS = {
    "heat": heat,
    "shallow_water": shallow_water,
    "nbody": nbody,
    "julia": julia,
    "fdtd": fdtd,
}
