"""Functions that are left to plain Python as they look at their own frame: what they call is captured."""

from __future__ import annotations

import numpy as np

import dyncomp


def work(x):
    return (x * 2 + 1).sum()


def looks(x, scale=2.0):
    names = sorted(locals())
    return work(x) * scale, names


def wrapped(*args, **kwargs):
    return looks(*args, **kwargs)


def check(function):
    dyncomp.reset()
    fast = dyncomp.compile(function, options={"strict": True})
    x = np.arange(5.0)
    for _ in range(3):
        assert fast(x) == function(x)
    assert dyncomp.stats()["graphs"] == 1
    assert dyncomp.explain(function)(x).graphs
    dyncomp.reset()


def test_the_function_itself_looks():
    check(looks)


def test_a_wrapper_of_it():
    check(wrapped)
