"""A program that shows what reports are about. Lines end in what becomes of them."""

# ruff: noqa: F841
from __future__ import annotations

import numpy as np

import dyncomp


@dyncomp.disable
def helper(x):
    return x.sum()


def inner(x, k):
    return x * k  # graph


def program(x, w):
    """Text."""
    y = np.tanh(x @ w)  # graph
    z = y - y.max(  # graph
        axis=1,  # graph
        keepdims=True,  # graph
    )  # graph
    if z is None:  # followed
        return None  # unreached
    dyncomp.graph_break()  # break
    s = helper(z)  # break
    total = 0.0  # followed
    for i in range(200_000):  # native
        total += i * 0.5  # native
    return inner(z, 1.5) + inner(z, 2.5) + total + s  # graph


def looks(x):
    n = len(locals())  # plain
    return x * n  # plain


def arguments():
    return np.linspace(-1, 1, 600).reshape(20, 30), np.linspace(0, 1, 1200).reshape(30, 40)
