"""What guards check of a CuPy array, and the state of CuPy that captured code relies upon."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...device import Device
from ...dtypes import DType
from ...errors import Unsupported
from ..base import ArrayFacts, StateGuard
from .library import cupy

# CuPy knows no bfloat16.
_KINDS = ("bool", "int", "uint", "float", "complex")

# From version 14 on promotion goes by types alone (NEP 50), as NumPy's does.
OLD = int(cupy.__version__.partition(".")[0]) < 14


def supported_dtype(dtype: object) -> DType:
    """The element type; raises ``Unsupported`` where dyncomp has none."""
    found = dtypes.from_numpy(dtype)
    if found is None or found.kind not in _KINDS or found == dtypes.bfloat16:
        raise Unsupported(f"CuPy arrays of dtype {dtype} are not compiled", break_id="array-dtype")
    return found


def describe(obj: Any) -> ArrayFacts:
    """:class:`ArrayFacts` of a ``cupy.ndarray``; see ``Frontend.describe``."""
    if OLD:
        raise Unsupported(
            "arrays of a CuPy before version 14, whose promotion is another", break_id="array-type"
        )
    if type(obj) is not cupy.ndarray:
        raise Unsupported(f"{type(obj).__name__} is a subclass of cupy.ndarray", break_id="array-subclass")
    dtype = supported_dtype(obj.dtype)
    itemsize = obj.itemsize
    if any(stride % itemsize for stride in obj.strides):
        raise Unsupported(
            "a CuPy array whose strides are not multiples of its elements", break_id="array-strides"
        )
    if obj.data.ptr % itemsize:
        raise Unsupported("a CuPy array whose memory is not aligned", break_id="array-type")
    index = obj.data.device_id
    if index != current_device():
        raise Unsupported(f"an array on device {index} while device {current_device()} is the current one")
    strides = tuple(stride // itemsize for stride in obj.strides)
    repeats = any(s == 0 and n > 1 for n, s in zip(obj.shape, strides))
    # aliasing elements: what is written there is left to CuPy
    return ArrayFacts(
        "array", cupy.ndarray, dtype, obj.shape, strides, Device("cuda", index), writeable=not repeats
    )


def current_device() -> int:
    """The device on which CuPy makes arrays."""
    index: int = cupy.cuda.runtime.getDevice()
    return index


def is_current(_: object, expected: int) -> bool:
    """Whether CuPy's current device is the one captured code was made for."""
    return current_device() == expected


def device_guard() -> StateGuard:
    now = current_device()
    return StateGuard(is_current, now, f"cupy: device {now} is the current one")
