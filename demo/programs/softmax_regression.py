"""Softmax regression on the handwritten digits: scoring, and training by gradient descent."""

from __future__ import annotations

import numpy as np

from ..data import digits


def log_softmax(logits):
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def score(images, labels, weights, bias):
    """Mean cross-entropy, accuracy and the probabilities (n, classes)."""
    log_p = log_softmax(images @ weights + bias)
    loss = -log_p[np.arange(len(labels)), labels].mean()
    accuracy = np.mean(log_p.argmax(axis=1) == labels)
    return loss, accuracy, np.exp(log_p)


def train(images, labels, steps, rate=0.5, decay=1e-3):
    """Weights (d, 10), bias (10,) and the loss at each step."""
    targets = np.zeros((len(labels), 10))
    targets[np.arange(len(labels)), labels] = 1.0
    weights = np.zeros((images.shape[1], 10))
    bias = np.zeros(10)
    losses = []
    for _ in range(steps):
        log_p = log_softmax(images @ weights + bias)
        losses.append(-(targets * log_p).sum() / len(labels))
        error = (np.exp(log_p) - targets) / len(labels)
        weights -= rate * (images.T @ error + decay * weights)
        bias -= rate * error.sum(axis=0)
    return weights, bias, np.array(losses)


def make_inputs(quick):
    """For ``train``."""
    images, labels = digits()
    images = images / 16.0
    if quick:
        return images[:200], labels[:200], 12
    return images, labels, 100


def make_score_inputs(quick):
    """For ``score``: every image many times over, with noise."""
    images, labels = digits()
    rng = np.random.default_rng(1)
    times = 1 if quick else 20
    images = np.tile(images / 16.0, (times, 1)) + 0.05 * rng.standard_normal((times * len(images), 64))
    weights = 0.3 * rng.standard_normal((64, 10))
    return images, np.tile(labels, times), weights, np.zeros(10)
