"""Arrays to run a graph on where the program's own were not kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.ir import ArrayType
from ...symbolic.integers import hint


def made_up(type: ArrayType) -> np.ndarray[Any, Any]:
    """Numbers about one in C order; zeros, which are good positions, for integers."""
    shape = tuple(map(hint, type.shape))
    if type.dtype.is_integer or type.dtype.name == "bool":
        return np.zeros(shape, type.dtype.numpy)
    return np.random.default_rng(0).normal(size=shape).astype(type.dtype.numpy)


def laid_out(array: np.ndarray[Any, Any], type: ArrayType) -> np.ndarray[Any, Any]:
    """A copy with the strides of ``type``."""
    if array.size == 0:
        return array
    strides = tuple(map(hint, type.strides))
    steps = [(n - 1) * s for n, s in zip(array.shape, strides)]
    low = sum(s for s in steps if s < 0)
    memory = np.zeros((sum(s for s in steps if s > 0) - low + 1) * array.itemsize, np.uint8)
    scaled = tuple(s * array.itemsize for s in strides)
    window: Any = np.ndarray(array.shape, array.dtype, memory.data, -low * array.itemsize, scaled)
    window[...] = array
    return window


def copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same strides."""
    if array.size == 0:
        return array.copy()
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = np.empty(high - low, np.uint8)
    offset = array.__array_interface__["data"][0] - low
    window: Any = np.ndarray(array.shape, array.dtype, memory.data, offset, array.strides)
    window[...] = array
    return window
