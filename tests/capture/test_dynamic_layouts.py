"""Memory order, views and flags of results at sizes 0 and 1, where NumPy's are others than at larger sizes.

Code for symbolic sizes must not take the answer for large arrays to be that for all.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dyncomp
from tests.capture.comparing import call, composed, differences


def written(v: Any) -> Any:
    """Shows whether a reshape was a view."""
    flat = v.reshape(-1)
    if flat.flags.writeable and flat.size:
        flat[0] = 5
    return v + flat.size


# each takes an array of one to three dimensions and gives one
STEPS = {
    "transpose": lambda v: v.T,
    "move": lambda v: np.moveaxis(v, 0, -1),
    "first": lambda v: v[:1],
    "but_first": lambda v: v[1:],
    "half": lambda v: v[v.shape[0] // 2 :],
    "first_column": lambda v: v[..., :1],
    "fortran": lambda v: np.asfortranarray(v),
    "contiguous": lambda v: np.ascontiguousarray(v),
    "copy_k": lambda v: v.copy(order="K"),
    "scaled": lambda v: v * 2,
    "with_transposed": lambda v: v + np.zeros(v.shape[::-1]).T,
    "flags": lambda v: v + v.flags.c_contiguous + 2 * v.flags.f_contiguous,
    "is_fortran": lambda v: v + np.isfortran(v),
    "written": written,
    "ravel_k": lambda v: v.ravel(order="K"),
    "ravel_a": lambda v: v.ravel(order="A"),
    "reshape_a": lambda v: v.reshape(-1, 1, order="A"),
    "squeeze": lambda v: np.atleast_1d(v.squeeze()),
    "pad": lambda v: np.pad(v, 1),
    "pad_edge": lambda v: np.pad(v, 1, mode="edge") if v.size else v,
    "tile": lambda v: np.tile(v, 2),
    "tile_once": lambda v: np.tile(v, 1),
    "join_last": lambda v: np.concatenate([v, v], axis=-1),
    "join_transposed": lambda v: np.hstack([v.T, v.T]),
    "stack": lambda v: np.stack([v, v], axis=-1)[..., 0],
    "like": lambda v: np.ones_like(v),
    "argwhere": lambda v: np.argwhere(v > 0),
    "select": lambda v: v[v > 0],
    "nonzero": lambda v: np.stack(np.nonzero(v)),
    "sum_last": lambda v: v.sum(axis=-1) if v.ndim > 1 else v,
    "cumulated": lambda v: np.cumsum(v, axis=0),
    "outer": lambda v: np.outer(v.ravel()[:4], v.ravel()[:3]),
    "rotated": lambda v: np.rot90(np.atleast_2d(v)),
    "rolled": lambda v: np.roll(v, 1, axis=-1),
    "unique": lambda v: np.unique(np.round(v)),
}
SHAPES = [(), (3,), (2, 3)]
SIZES = st.lists(st.sampled_from([0, 1, 2, 3, 5, 7, 12]), min_size=3, max_size=6)
CHAINS = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5)


def compare(names: list[str], sizes: list[int], rest: tuple[int, ...], dynamic: bool | None) -> None:
    function = composed([STEPS[name] for name in names])
    compiled = dyncomp.compile(function, backend="eager", dynamic=dynamic, options={"debug_verify": True})
    for size in sizes:
        x = np.random.default_rng(size).standard_normal((size, *rest))
        problems = differences(call(function, (x.copy(),)), call(compiled, (x.copy(),)), 1e-9)
        assert not problems, (size, problems)


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(CHAINS, SIZES, st.sampled_from(SHAPES), st.sampled_from([None, True]))
def test_chains(names, sizes, rest, dynamic):
    compare(names, sizes, rest, dynamic)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(CHAINS, SIZES, st.sampled_from(SHAPES), st.sampled_from([None, True]))
def test_many_chains(names, sizes, rest, dynamic):
    compare(names, sizes, rest, dynamic)


@pytest.mark.parametrize(
    "names",
    [
        ["unique", "select", "stack", "transpose", "pad"],
        ["half", "join_transposed"],
        ["argwhere", "pad"],
        ["but_first", "transpose", "written"],
        ["but_first", "transpose", "flags"],
        ["fortran"],
        ["squeeze"],
        ["transpose", "pad_edge"],
        ["tile"],
    ],
)
def test_known(names):
    for rest in SHAPES:
        compare(names, [5, 7, 2, 1, 0, 3], rest, None)


MODES = ["edge", "reflect", "symmetric", "wrap"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("widths", [1, (3, 1), 30])
def test_padding(mode, widths):
    def padded(x):
        return np.pad(x, widths, mode=mode)

    for rest in SHAPES[:2]:
        compiled = dyncomp.compile(padded, backend="eager", options={"debug_verify": True})
        for size in (5, 6, 7, 3, 2, 100, 1, 0):
            x = np.random.default_rng(size).standard_normal((size, *rest)).T
            assert not differences(call(padded, (x,)), call(compiled, (x,))), size
        sizes_above_one = [e for e in compiled.config.records.entries if e.graph is not None]
        assert len(sizes_above_one) <= 3


def strided(x):
    y = x.reshape(-1)
    y[:1] = 9.0
    return x + 1


def test_free_strides_that_turn_out_packed():
    """Entries for strided arrays are not used for contiguous ones, of which a reshape is a view."""
    for dynamic in (None, True):
        compiled = dyncomp.compile(strided, backend="eager", dynamic=dynamic)
        for n in (4, 5, 6, 7):
            for cut in (n, n - 1, n - 2):
                arrays = [np.arange(3.0 * n).reshape(3, n)[:, :cut] for _ in range(2)]
                assert not differences(call(strided, (arrays[0],)), call(compiled, (arrays[1],)))
                assert np.array_equal(arrays[0], arrays[1])
