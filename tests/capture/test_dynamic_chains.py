"""Random chains of operations on shapes: one compiled function over many sizes equals NumPy."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dyncomp
from tests.capture.comparing import call, composed, differences

Step = Callable[[Any], Any]

# each takes an array of one or two dimensions and gives one
STEPS: dict[str, Step] = {
    "ravel": lambda v: v.ravel(),
    "column": lambda v: v.reshape(-1, 1),
    "row": lambda v: v.reshape(1, -1),
    "transpose": lambda v: v.T,
    "head": lambda v: v[: v.shape[0] // 2 + 1],
    "tail": lambda v: v[v.shape[0] // 3 :],
    "drop_ends": lambda v: v[1:-1],
    "reverse": lambda v: v[::-1],
    "every_other": lambda v: v[::2],
    "twice": lambda v: np.concatenate([v, v]),
    "stack": lambda v: np.stack([v.ravel(), v.ravel() + 1], axis=1),
    "sum_last": lambda v: v.sum(axis=-1) if v.ndim == 2 else np.cumsum(v),
    "pad": lambda v: np.pad(v, 1),
    "tile": lambda v: np.tile(v, 2),
    "roll": lambda v: np.roll(v, v.shape[0] // 2),
    "outer": lambda v: v[:4].reshape(-1, 1) * v.ravel()[None, :5],
    "scale": lambda v: v * (1.0 / (v.size + 1)),
    "centre": lambda v: v - v.sum() / max(v.size, 1),
    "positions": lambda v: np.arange(v.shape[0] * 2) * 0.5,
    "zeros": lambda v: np.zeros((v.shape[0], 2)) + v.size,
    "repeat": lambda v: np.repeat(v.ravel(), 2),
    "select": lambda v: v[v > 0],
    "select_again": lambda v: v.ravel()[np.flatnonzero(v.ravel() > -1)],
    "sorted": lambda v: np.sort(v.ravel()),
    "unique": lambda v: np.unique(np.round(v)),
    "count": lambda v: np.ones(int((v > 0).sum()) + 1),
}
SIZES = st.lists(st.integers(0, 12), min_size=3, max_size=6)
CHAINS = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(CHAINS, SIZES)
def test_chains(names, sizes):
    logging.disable(logging.CRITICAL)
    function = composed([STEPS[name] for name in names])
    compiled = dyncomp.compile(function, backend="eager", options={"debug_verify": True})
    try:
        for size in sizes:
            x = np.random.default_rng(size).standard_normal(size)
            problems = differences(call(function, (x.copy(),)), call(compiled, (x.copy(),)), 1e-9)
            assert not problems, (size, problems)
    finally:
        logging.disable(logging.NOTSET)
