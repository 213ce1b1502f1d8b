"""Two networks for images of digits in nothing but NumPy: weights are a dict, images (n, 8, 8) from 0 to 1.

``dense_loss`` and ``convolutional_loss`` are what is differentiated; the functions named ``..._by_hand`` are
the same with backward passes as one writes them without a tool for derivatives.
"""

from __future__ import annotations

import numpy as np

from ..data import digits


def cross_entropy(scores, labels):
    scores = scores - scores.max(axis=1, keepdims=True)
    return (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(labels)), labels]).mean()


# -- two dense layers ---------------------------------------------------------------------------
def dense_weights(rng, hidden=64):
    return {
        "hidden": rng.normal(0.0, np.sqrt(2 / 64), (64, hidden)),
        "hidden bias": np.zeros(hidden),
        "scores": rng.normal(0.0, np.sqrt(1 / hidden), (hidden, 10)),
        "scores bias": np.zeros(10),
    }


def dense_scores(weights, images):
    pixels = images.reshape(len(images), -1)
    hidden = np.maximum(pixels @ weights["hidden"] + weights["hidden bias"], 0.0)
    return hidden @ weights["scores"] + weights["scores bias"]


def dense_loss(weights, images, labels, decay=1e-4):
    penalty = sum((w * w).sum() for w in weights.values())
    return cross_entropy(dense_scores(weights, images), labels) + decay * penalty


# -- two convolutions ---------------------------------------------------------------------------
def convolutional_weights(rng, first=16, second=32):
    """Biases begin above zero: where an image is black they are all there is before a kink at zero."""
    return {
        "first": rng.normal(0.0, np.sqrt(2 / 9), (9, first)),
        "first bias": np.full(first, 0.01),
        "second": rng.normal(0.0, np.sqrt(2 / (9 * first)), (9 * first, second)),
        "second bias": np.full(second, 0.01),
        "scores": rng.normal(0.0, np.sqrt(1 / (4 * second)), (4 * second, 10)),
        "scores bias": np.zeros(10),
    }


def patches(x):
    """The 3 x 3 surroundings of each pixel: (n, h, w, c) to (n, h, w, 9 c), zeros beyond the edge."""
    n, h, w, c = x.shape
    padded = np.zeros((n, h + 2, w + 2, c))
    padded[:, 1:-1, 1:-1] = x
    return np.concatenate([padded[:, i : i + h, j : j + w] for i in range(3) for j in range(3)], axis=-1)


def pooled(x):
    """The largest of each 2 x 2 pixels."""
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))


def convolutional_scores(weights, images):
    x = images[..., np.newaxis]
    for layer in ("first", "second"):
        x = pooled(np.maximum(patches(x) @ weights[layer] + weights[layer + " bias"], 0.0))
    return x.reshape(len(x), -1) @ weights["scores"] + weights["scores bias"]


def convolutional_loss(weights, images, labels, decay=1e-4):
    penalty = sum((w * w).sum() for w in weights.values())
    return cross_entropy(convolutional_scores(weights, images), labels) + decay * penalty


# -- by hand ------------------------------------------------------------------------------------
def cross_entropy_by_hand(scores, labels):
    """The loss, and its gradient by the scores."""
    n = len(labels)
    scores = scores - scores.max(axis=1, keepdims=True)
    odds = np.exp(scores)
    total = odds.sum(axis=1, keepdims=True)
    loss = (np.log(total[:, 0]) - scores[np.arange(n), labels]).mean()
    slopes = odds / total
    slopes[np.arange(n), labels] -= 1.0
    return loss, slopes / n


def with_decay(loss, gradient, weights, decay):
    for name, w in weights.items():
        loss = loss + decay * (w * w).sum()
        gradient[name] = gradient[name] + 2 * decay * w
    return loss, gradient


def dense_by_hand(weights, images, labels, decay=1e-4):
    pixels = images.reshape(len(images), -1)
    before = pixels @ weights["hidden"] + weights["hidden bias"]
    hidden = np.maximum(before, 0.0)
    loss, slopes = cross_entropy_by_hand(hidden @ weights["scores"] + weights["scores bias"], labels)
    back = (slopes @ weights["scores"].T) * (before > 0)
    gradient = {
        "hidden": pixels.T @ back,
        "hidden bias": back.sum(axis=0),
        "scores": hidden.T @ slopes,
        "scores bias": slopes.sum(axis=0),
    }
    return with_decay(loss, gradient, weights, decay)


def patches_back(slopes):
    """The transpose of ``patches``."""
    n, h, w, c = slopes.shape
    c //= 9
    padded = np.zeros((n, h + 2, w + 2, c))
    for k in range(9):
        i, j = divmod(k, 3)
        padded[:, i : i + h, j : j + w] += slopes[..., k * c : (k + 1) * c]
    return padded[:, 1:-1, 1:-1]


def pooled_back(x, largest, slopes):
    """Ties share, which are zeros behind a ``maximum``: nothing goes through these."""
    n, h, w, c = x.shape
    cells = x.reshape(n, h // 2, 2, w // 2, 2, c)
    hit = cells == largest[:, :, np.newaxis, :, np.newaxis]
    share = slopes[:, :, np.newaxis, :, np.newaxis] / hit.sum(axis=(2, 4), keepdims=True)
    return (hit * share).reshape(x.shape)


def convolutional_by_hand(weights, images, labels, decay=1e-4):
    x = images[..., np.newaxis]
    kept = {}
    for layer in ("first", "second"):
        columns = patches(x)
        before = columns @ weights[layer] + weights[layer + " bias"]
        active = np.maximum(before, 0.0)
        x = pooled(active)
        kept[layer] = (columns, before, active, x)
    flat = x.reshape(len(x), -1)
    loss, slopes = cross_entropy_by_hand(flat @ weights["scores"] + weights["scores bias"], labels)
    gradient = {"scores": flat.T @ slopes, "scores bias": slopes.sum(axis=0)}
    back = (slopes @ weights["scores"].T).reshape(x.shape)
    for layer in ("second", "first"):
        columns, before, active, largest = kept[layer]
        back = pooled_back(active, largest, back) * (before > 0)
        gradient[layer] = columns.reshape(-1, columns.shape[-1]).T @ back.reshape(-1, back.shape[-1])
        gradient[layer + " bias"] = back.sum(axis=(0, 1, 2))
        if layer == "second":
            back = patches_back(back @ weights[layer].T)
    return with_decay(loss, {name: gradient[name] for name in weights}, weights, decay)


def make_inputs(quick):
    pixels, labels = digits()
    n = 16 if quick else 64
    weights = convolutional_weights(np.random.default_rng(11))
    return weights, pixels[:n].reshape(-1, 8, 8) / 16, labels[:n]
