"""A multilayer perceptron and a convolutional network for the handwritten digits, in NumPy: loss, prediction, and
for both the gradient of the loss by backpropagation written out."""

from __future__ import annotations

import numpy as np

from ..data import digits

CLASSES = 10


def split_digits(test_share=0.2, seed=0):
    """Images (n, 8, 8) from 0 to 1 and labels, for training and for testing."""
    images, labels = digits()
    images = images.reshape(-1, 8, 8) / 16.0
    order = np.random.default_rng(seed).permutation(len(images))
    count = int(test_share * len(images))
    test, train = order[:count], order[count:]
    return images[train], labels[train], images[test], labels[test]


def log_softmax(scores):
    shifted = scores - scores.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def cross_entropy(scores, labels):
    return -log_softmax(scores)[np.arange(len(labels)), labels].mean()


# -- multilayer perceptron --------------------------------------------------------------------------
def init_mlp(sizes, rng):
    """Weights and biases of each layer, for layers of these sizes."""
    return [
        (rng.standard_normal((m, n)) * np.sqrt(2.0 / m), np.zeros(n)) for m, n in zip(sizes[:-1], sizes[1:])
    ]


def mlp(layers, images):
    """Scores (n, classes)."""
    x = images.reshape(len(images), -1)
    for weights, bias in layers[:-1]:
        x = np.maximum(x @ weights + bias, 0.0)
    weights, bias = layers[-1]
    return x @ weights + bias


def mlp_loss(layers, images, labels, decay=1e-4):
    penalty = sum((weights**2).sum() for weights, _ in layers)
    return cross_entropy(mlp(layers, images), labels) + 0.5 * decay * penalty


def mlp_backpropagation(layers, images, labels, decay=1e-4):
    """The loss, and its gradient in the form of ``layers``."""
    inputs = [images.reshape(len(images), -1)]
    for weights, bias in layers[:-1]:
        inputs.append(np.maximum(inputs[-1] @ weights + bias, 0.0))
    weights, bias = layers[-1]
    log_p = log_softmax(inputs[-1] @ weights + bias)
    rows = np.arange(len(labels))
    loss = -log_p[rows, labels].mean() + 0.5 * decay * sum((weights**2).sum() for weights, _ in layers)
    error = np.exp(log_p)
    error[rows, labels] -= 1.0
    error /= len(labels)
    gradient = []
    for x, (weights, _) in zip(inputs[::-1], layers[::-1]):
        gradient.append((x.T @ error + decay * weights, error.sum(axis=0)))
        error = (error @ weights.T) * (x > 0)
    return loss, gradient[::-1]


# -- convolutional network --------------------------------------------------------------------------
def init_cnn(rng, first=16, second=32):
    """Two layers of 3 x 3 kernels and one that joins all, by name."""

    def normal(*shape):
        return rng.standard_normal(shape) * np.sqrt(2.0 / np.prod(shape[:-1]))

    return {
        "kernels1": normal(3, 3, 1, first),
        "bias1": np.zeros(first),
        "kernels2": normal(3, 3, first, second),
        "bias2": np.zeros(second),
        "weights": normal(4 * second, CLASSES),
        "bias": np.zeros(CLASSES),
    }


def convolve(x, kernels):
    """Images (n, h, w, channels) with kernels (3, 3, channels, more), zero outside: a product per offset."""
    n, height, width, channels = x.shape
    padded = np.zeros((n, height + 2, width + 2, channels))
    padded[:, 1:-1, 1:-1] = x
    out = np.zeros((n, height, width, kernels.shape[-1]))
    for i in range(3):
        for j in range(3):
            out += padded[:, i : i + height, j : j + width] @ kernels[i, j]
    return out


def pool(x):
    """The largest of each 2 x 2 pixels."""
    n, height, width, channels = x.shape
    return x.reshape(n, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def cnn(params, images):
    """Scores (n, classes)."""
    x = images[..., None]
    x = pool(np.maximum(convolve(x, params["kernels1"]) + params["bias1"], 0.0))
    x = pool(np.maximum(convolve(x, params["kernels2"]) + params["bias2"], 0.0))
    return x.reshape(len(x), -1) @ params["weights"] + params["bias"]


def cnn_loss(params, images, labels, decay=1e-4):
    penalty = sum((params[name] ** 2).sum() for name in ("kernels1", "kernels2", "weights"))
    return cross_entropy(cnn(params, images), labels) + 0.5 * decay * penalty


def convolve_back(x, kernels, error):
    """The gradients by ``x`` and by the kernels, of that by the result."""
    n, height, width, channels = x.shape
    padded = np.zeros((n, height + 2, width + 2, channels))
    padded[:, 1:-1, 1:-1] = x
    by_padded = np.zeros_like(padded)
    by_kernels = np.empty_like(kernels)
    flat = error.reshape(-1, kernels.shape[-1])
    for i in range(3):
        for j in range(3):
            window = padded[:, i : i + height, j : j + width]
            by_kernels[i, j] = window.reshape(-1, channels).T @ flat
            by_padded[:, i : i + height, j : j + width] += error @ kernels[i, j].T
    return by_padded[:, 1:-1, 1:-1], by_kernels


def pool_back(x, pooled, error):
    """Of equal largest pixels each gets the same share."""
    n, height, width, channels = x.shape
    blocks = x.reshape(n, height // 2, 2, width // 2, 2, channels)
    largest = blocks == pooled[:, :, None, :, None]
    share = largest / largest.sum(axis=(2, 4), keepdims=True)
    return (share * error[:, :, None, :, None]).reshape(x.shape)


def cnn_backpropagation(params, images, labels, decay=1e-4):
    """The loss, and its gradient by name."""
    x0 = images[..., None]
    a1 = convolve(x0, params["kernels1"]) + params["bias1"]
    r1 = np.maximum(a1, 0.0)
    x1 = pool(r1)
    a2 = convolve(x1, params["kernels2"]) + params["bias2"]
    r2 = np.maximum(a2, 0.0)
    x2 = pool(r2)
    flat = x2.reshape(len(x2), -1)
    log_p = log_softmax(flat @ params["weights"] + params["bias"])
    rows = np.arange(len(labels))
    names = ("kernels1", "kernels2", "weights")
    loss = -log_p[rows, labels].mean() + 0.5 * decay * sum((params[k] ** 2).sum() for k in names)

    error = np.exp(log_p)
    error[rows, labels] -= 1.0
    error /= len(labels)
    gradient = {"weights": flat.T @ error, "bias": error.sum(axis=0)}
    error = (error @ params["weights"].T).reshape(x2.shape)
    error = pool_back(r2, x2, error) * (a2 > 0)
    gradient["bias2"] = error.sum(axis=(0, 1, 2))
    error, gradient["kernels2"] = convolve_back(x1, params["kernels2"], error)
    error = pool_back(r1, x1, error) * (a1 > 0)
    gradient["bias1"] = error.sum(axis=(0, 1, 2))
    _, gradient["kernels1"] = convolve_back(x0, params["kernels1"], error)
    for name in names:
        gradient[name] += decay * params[name]
    return loss, {name: gradient[name] for name in params}


def make_inputs(quick):
    """For the gradient of the convolutional network's loss."""
    images, labels, _, _ = split_digits()
    n = 16 if quick else 256
    return init_cnn(np.random.default_rng(2)), images[:n], labels[:n]
