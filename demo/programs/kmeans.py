"""k-means clustering (Lloyd's algorithm) of the handwritten digits."""

from __future__ import annotations

import numpy as np

from ..data import digits


def kmeans(points, centroids, max_iter=30, tol=1e-6):
    """Centroids (k, d), labels (n,) and inertia of points (n, d), from the given first centroids."""
    for _ in range(max_iter):
        distances = ((points[:, None, :] - centroids[None, :, :]) ** 2).sum(axis=2)
        labels = distances.argmin(axis=1)
        updated = np.array([points[labels == k].mean(axis=0) for k in range(len(centroids))])
        shift = np.abs(updated - centroids).max()
        centroids = updated
        if shift < tol:
            break
    distances = ((points[:, None, :] - centroids[None, :, :]) ** 2).sum(axis=2)
    labels = distances.argmin(axis=1)
    inertia = distances.min(axis=1).sum()
    return centroids, labels, inertia


def make_inputs(quick):
    points, _ = digits()
    if quick:
        points = points[:200]
    rng = np.random.default_rng(3)
    first = points[rng.choice(len(points), 10, replace=False)]
    return points, first, 3 if quick else 12
