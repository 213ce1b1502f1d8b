"""Hares and lynxes of the Hudson Bay: the parameters of Lotka and Volterra's equations from yearly counts."""

from __future__ import annotations

import numpy as np

YEARS = np.arange(1900, 1921)
# Pelts that the Hudson's Bay Company collected, in thousands: hares and lynxes.
PELTS = np.array(
    [
        [30.0, 4.0],
        [47.2, 6.1],
        [70.2, 9.8],
        [77.4, 35.2],
        [36.3, 59.4],
        [20.6, 41.7],
        [18.1, 19.0],
        [21.4, 13.0],
        [22.0, 8.3],
        [25.4, 9.1],
        [27.1, 7.4],
        [40.3, 8.0],
        [57.0, 12.3],
        [76.6, 19.5],
        [52.3, 45.7],
        [19.5, 51.1],
        [11.2, 29.7],
        [7.6, 15.8],
        [14.6, 9.7],
        [16.2, 10.1],
        [24.7, 8.6],
    ]
)
NAMES = ("growth of hares", "loss to lynxes", "death of lynxes", "growth by hares", "hares in 1900", "lynxes in 1900")
START = np.log([0.5, 0.02, 0.8, 0.02, 30.0, 5.0])


def populations(log_params, years, steps_per_year=2):
    """Logarithms of both populations (years, 2): Runge-Kutta steps of the logarithms' equations."""
    params = np.exp(log_params)
    own = params[:4:2] * np.array([1.0, -1.0])
    other = params[1:4:2] * np.array([-1.0, 1.0])

    def rate(z):
        return own + other * np.exp(z[::-1])

    h = 1.0 / steps_per_year
    z = log_params[4:]
    path = np.empty((years, 2))
    path[0] = z
    for year in range(1, years):
        for _ in range(steps_per_year):
            k1 = rate(z)
            k2 = rate(z + h / 2 * k1)
            k3 = rate(z + h / 2 * k2)
            k4 = rate(z + h * k3)
            z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path[year] = z
    return path


def residuals(log_params, pelts):
    """Of the logarithms: errors are a share of the counts."""
    return (populations(log_params, len(pelts)) - np.log(pelts)).ravel()


def misfit(log_params, pelts):
    r = residuals(log_params, pelts)
    return 0.5 * (r @ r)


def make_inputs(quick):
    return START, PELTS[: 4 if quick else len(PELTS)]
