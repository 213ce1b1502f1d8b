"""NumPy's side of the sweep over memory layouts: inputs, layouts and what is seen of a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..layout_sweep import Sweep

EXPRESSIONS = [
    line
    for name in ("layout_expressions.txt", "layout_idioms.txt")
    for line in Path(__file__).with_name(name).read_text().splitlines()
    if line and not line.startswith("#")
]


def make() -> dict[str, Any]:
    g = np.random.default_rng(0)
    return {
        "x": g.uniform(0.1, 1.0, (2, 4, 6, 6)),
        "y": g.uniform(0.1, 1.0, (2, 4, 6, 6)),
        "m": g.random((2, 4, 6, 6)) > 0.5,
        "q": np.eye(6) * 7 + g.random((6, 6)),
        "r": g.random((6, 6)) + 0.1,
        "k": g.integers(0, 4, (2, 4, 6, 6)),
        "i": np.array([1, 0, 1]),
        "j": g.integers(0, 4, (6, 6)),
        "v": g.random(6) + 0.1,
        "n": g.random((2, 6, 6)) + 0.1,
        "z": g.random((2, 4, 6, 6)) + 1j * g.random((2, 4, 6, 6)),
        "u": g.integers(0, 200, (2, 4, 6, 6)).astype(np.uint8),
    }


def in_order(a: Any, order: list[int]) -> Any:
    back = [order.index(axis) for axis in range(a.ndim)]
    return np.ascontiguousarray(a.transpose(order)).transpose(back)


def window(a: Any, axis: int, start: int, step: int) -> Any:
    """Every ``step``-th element from ``start`` on; backwards where that is negative."""
    shape = list(a.shape)
    shape[axis] = start + abs(step) * shape[axis]
    whole = np.zeros(shape, a.dtype)
    part = whole[(slice(None),) * axis + (slice(start, None, abs(step)),)]
    part = part[(slice(None),) * axis + (slice(None, None, -1 if step < 0 else 1),)]
    part[...] = a
    return part


def swapped(a: Any, i: int, j: int) -> Any:
    order = list(range(a.ndim))
    if a.ndim > max(i, j):
        order[i], order[j] = order[j], order[i]
    return in_order(a, order)


LAYOUTS: dict[str, Any] = {
    "contiguous": lambda a: a,
    "fortran": np.asfortranarray,
    "permuted": lambda a: in_order(a, [*range(1, a.ndim), 0]),
    "expanded": lambda a: np.broadcast_to(a[:1].copy(), a.shape),
    "transposed": lambda a: swapped(a, a.ndim - 1, max(a.ndim - 2, 0)),
    "heads": lambda a: swapped(a, 1, 2),
    "sliced": lambda a: window(a, a.ndim - 1, 0, 2),
    "rows": lambda a: window(a, 0, 0, 2),
    "backwards": lambda a: window(a, a.ndim - 1, 0, -1),
    "upside down": lambda a: window(a, 0, 1, -2),
    "offset": lambda a: window(a, a.ndim - 1, 3, 1),
    "one": lambda a: a[:1] if a.ndim < 4 else a[:, :1],
    "none": lambda a: a[:0] if a.ndim < 4 else a[:, :, :0],
}


def facts(a: Any) -> Any:
    strides = tuple(s for s, d in zip(a.strides, a.shape) if d != 1) if a.size else ()
    flags = (a.flags.writeable, a.flags.c_contiguous, a.flags.f_contiguous)
    return type(a), a.dtype, a.dtype.num, a.shape, strides, flags


def close(a: Any, b: Any) -> bool:
    if not a.size or a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    scale = float(np.nan_to_num(np.abs(a).astype(float), posinf=0.0, neginf=0.0).max())
    eps = 64 * float(np.finfo(a.dtype).eps)
    return bool(np.allclose(a, b, rtol=eps, atol=eps * max(scale, 1e-3), equal_nan=True))


def memory(a: Any) -> tuple[int, int, int]:
    """The first and the last address, and that of the first element."""
    low, high = np.lib.array_utils.byte_bounds(a)
    return low, high, a.__array_interface__["data"][0]


def sweep(**settings: Any) -> Sweep:
    array = (np.ndarray, np.matrix, *(t for t in np.sctypeDict.values() if issubclass(t, np.number)))
    return Sweep({"np": np}, make, LAYOUTS, array, facts, memory, close, "{}[...] = 1", **settings)
