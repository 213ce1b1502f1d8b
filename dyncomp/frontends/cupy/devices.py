"""CuPy's arrays as compiled graphs need them: its allocator and its current streams."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...device import Device
from ...notices import setup_error
from ..base import DeviceLibrary
from .library import cupy


def _in_bytes(strides: Sequence[int], dtype: Any) -> tuple[int, ...]:
    return tuple(stride * dtype.itemsize for stride in strides)


def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements lie from the first to the last."""
    if 0 in shape:
        return 0
    return sum((size - 1) * stride for size, stride in zip(shape, strides)) + 1


def empty(shape: Sequence[int], strides: Sequence[int] | None, name: str, device: Device) -> Any:
    """On the current device, which is ``device`` wherever a graph runs."""
    dtype = np.dtype(name)
    if strides is None:
        return cupy.ndarray(tuple(shape), dtype)
    memory = cupy.cuda.alloc(_span(shape, strides) * dtype.itemsize)
    return cupy.ndarray(tuple(shape), dtype, memptr=memory, strides=_in_bytes(strides, dtype))


def _full(value: object, name: str, device: Device) -> Any:
    # a recording has its numbers as arrays already
    return value if isinstance(value, cupy.ndarray) else cupy.asarray(np.array(value, np.dtype(name)))


def _scratch(size: int, device: Device) -> Any:
    return cupy.ndarray((size,), np.dtype(np.uint8))


def _upload(array: object, device: Device) -> Any:
    with cupy.cuda.Device(device.index):
        return cupy.array(array, order="C")


def window(base: Any, offset: int, shape: Sequence[int], strides: Sequence[int], name: str) -> Any:
    dtype = np.dtype(name)
    return cupy.ndarray(tuple(shape), dtype, memptr=base.data + offset, strides=_in_bytes(strides, dtype))


def _pointer(array: Any) -> int:
    address: int = array.data.ptr
    return address


def _matmul(a: Any, b: Any, out: Any) -> None:
    if a.dtype != out.dtype:  # halves with results in float32
        a, b = a.astype(out.dtype), b.astype(out.dtype)
    cupy.matmul(a, b, out=out)


def _stream(index: int) -> int:
    handle: int = cupy.cuda.get_current_stream(index).ptr
    return handle


def _enter(index: int) -> int:
    previous: int = cupy.cuda.runtime.getDevice()
    if previous != index:
        cupy.cuda.runtime.setDevice(index)
    return -1 if previous == index else previous


def _leave(previous: int) -> None:
    if previous >= 0:
        cupy.cuda.runtime.setDevice(previous)


def _milliseconds(call: Callable[[], None]) -> float:
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    call()
    end.record()
    end.synchronize()
    elapsed: float = cupy.cuda.get_elapsed_time(start, end)
    return elapsed


def _check_driver() -> None:
    """Triton's driver is torch's in some versions of it: refuse at compilation where there is none."""
    try:
        from triton.runtime import driver

        driver.active.get_current_target()
    except (ImportError, RuntimeError) as error:
        raise setup_error("compiler", f"Triton has no driver for CuPy's arrays ({error})") from error


@functools.cache
def _facts(index: int) -> tuple[str, int, bool]:
    _check_driver()
    found = cupy.cuda.runtime.getDeviceProperties(index)
    is_nvidia = not cupy.cuda.runtime.is_hip
    return found["name"].decode(), found["multiProcessorCount"], is_nvidia and found["major"] >= 9


LIBRARY = DeviceLibrary(
    empty,
    _full,
    _scratch,
    _upload,
    window,
    lambda array: array,
    _pointer,
    cupy.ndarray.item,
    _matmul,
    _stream,
    _enter,
    _leave,
    _milliseconds,
    _facts,
    lambda: False,
)
