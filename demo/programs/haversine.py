"""Great-circle distances between all pairs of two sets of places."""

from __future__ import annotations

import numpy as np


def haversine(latitude, longitude, other_latitude, other_longitude, radius=6371.0):
    """Distances (n, m) in km between places in degrees, and the nearest of the others to each (n,)."""
    lat1 = np.radians(latitude)[:, np.newaxis]
    lon1 = np.radians(longitude)[:, np.newaxis]
    lat2 = np.radians(other_latitude)[np.newaxis, :]
    lon2 = np.radians(other_longitude)[np.newaxis, :]
    a = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    distance = 2 * radius * np.arcsin(np.sqrt(a))
    return distance, distance.argmin(axis=1)


def make_inputs(quick):
    n = 30 if quick else 1000
    rng = np.random.default_rng(41)
    return (
        rng.uniform(-85, 85, n),
        rng.uniform(-180, 180, n),
        rng.uniform(-85, 85, n + 7),
        rng.uniform(-180, 180, n + 7),
    )
