"""A chain of filters on a photograph: grey, blur, sharpen, edges, tone curve."""

from __future__ import annotations

import numpy as np

from ..data import photograph


def blur(image, sigma):
    """Separable Gaussian, edges repeated."""
    radius = int(3 * sigma + 0.5)
    offsets = np.arange(-radius, radius + 1)
    weights = np.exp(-(offsets**2) / (2 * sigma**2))
    weights /= weights.sum()
    rows, columns = image.shape
    padded = np.pad(image, ((radius, radius), (0, 0)), mode="edge")
    result = np.zeros_like(image)
    for i, weight in enumerate(weights):
        result += weight * padded[i : i + rows, :]
    padded = np.pad(result, ((0, 0), (radius, radius)), mode="edge")
    result = np.zeros_like(image)
    for i, weight in enumerate(weights):
        result += weight * padded[:, i : i + columns]
    return result


def edges(image):
    """Magnitude of the Sobel gradient, zero on the rim."""
    gx = np.zeros_like(image)
    gy = np.zeros_like(image)
    gx[1:-1, 1:-1] = (
        image[:-2, 2:] + 2 * image[1:-1, 2:] + image[2:, 2:]
        - image[:-2, :-2] - 2 * image[1:-1, :-2] - image[2:, :-2]
    )  # fmt: skip
    gy[1:-1, 1:-1] = (
        image[2:, :-2] + 2 * image[2:, 1:-1] + image[2:, 2:]
        - image[:-2, :-2] - 2 * image[:-2, 1:-1] - image[:-2, 2:]
    )  # fmt: skip
    return np.hypot(gx, gy)


def filter_chain(rgb, sigma=1.5, amount=0.8, gamma=0.8):
    """Sharpened picture with its edges darkened, as uint8, from an RGB picture as uint8."""
    grey = (rgb / 255.0) @ np.array([0.2125, 0.7154, 0.0721])
    soft = blur(grey, sigma)
    sharp = np.clip(grey + amount * (grey - soft), 0.0, 1.0)
    outline = edges(soft)
    low = sharp.min()
    high = sharp.max()
    toned = ((sharp - low) / (high - low)) ** gamma
    toned[outline > 0.5 * outline.max()] *= 0.25
    return np.round(255 * toned).astype(np.uint8)


def make_inputs(quick):
    return (photograph(quick),)
