"""Principal components of the handwritten digits, and how well a few of them describe each image."""

from __future__ import annotations

import numpy as np

from ..data import digits


def pca(data, n_components):
    """Scores (n, k), explained variance ratios (k,) and reconstruction error of each row (n,)."""
    centered = data - data.mean(axis=0)
    covariance = centered.T @ centered / (len(data) - 1)
    values, vectors = np.linalg.eigh(covariance)
    order = np.argsort(values)[::-1]
    values = values[order]
    vectors = vectors[:, order][:, :n_components]
    # eigenvectors have no sign of their own: make the largest entry of each positive
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(n_components)])
    scores = centered @ vectors
    error = np.sqrt(((centered - scores @ vectors.T) ** 2).sum(axis=1))
    return scores, values[:n_components] / values.sum(), error


def make_inputs(quick):
    data, _ = digits()
    return (data[:300] if quick else data), 10
