"""How compiled graphs read and make CuPy's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...device import Device
from ...errors import LoweringError
from ..base import ArrayOwner
from .devices import LIBRARY, empty, window
from .library import cupy


def _describe(array: Any) -> tuple[int, tuple[int, ...], tuple[int, ...], str]:
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return array.data.ptr, array.shape, strides, array.dtype.name


def _empty(shape: Sequence[int], strides: Sequence[int], name: str) -> Any:
    return empty(shape, strides, name, Device("cuda", cupy.cuda.runtime.getDevice()))


def _as_strided(base: object, shape: Sequence[int], strides: Sequence[int], offset: int, name: str) -> Any:
    return window(base, offset * cupy.dtype(name).itemsize, shape, strides, name)


def _no_numpy(value: object) -> Any:
    """Values that are not arrays pass; CuPy's arrays share no memory with NumPy's."""
    if isinstance(value, cupy.ndarray):
        raise LoweringError("a CuPy array where a NumPy array is needed")
    return value


OWNER = ArrayOwner(
    cupy.ndarray,
    _describe,
    _empty,
    _as_strided,
    _no_numpy,
    _no_numpy,
    lambda arrays: None,
    devices=LIBRARY,
)
