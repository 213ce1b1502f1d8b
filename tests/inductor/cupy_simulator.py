"""CuPy without a GPU: its own arrays over the computer's memory, its device and its streams pretended.

What CuPy computes itself needs a GPU: the programs' answers are compared with NumPy's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from dyncomp.frontends.cupy import cupy_facts, devices
from dyncomp.frontends.cupy.frontend import CupyFrontend
from dyncomp.inductor.gpu import compile as gpu
from tests.inductor.gpu_simulator import STREAM, InterpretedDriver


def over(array: Any) -> Any:
    """CuPy's array over a NumPy array's memory."""
    base = array if array.ndim else array.reshape(1)
    while isinstance(base.base, np.ndarray):
        base = base.base
    memory = cupy.cuda.UnownedMemory(base.ctypes.data, max(base.nbytes, 1), base, 0)
    pointer = cupy.cuda.MemoryPointer(memory, array.ctypes.data - base.ctypes.data)
    return cupy.ndarray(array.shape, array.dtype, pointer, strides=array.strides)


def numpy_of(array: Any) -> Any:
    """The values behind one of CuPy's arrays; other things as they are."""
    if not isinstance(array, cupy.ndarray):
        return array
    owner: Any = array.data.mem
    while not isinstance(owner, cupy.cuda.UnownedMemory):
        owner = owner.base
    held = owner._owner
    offset = array.data.ptr - held.ctypes.data
    return np.ndarray(array.shape, array.dtype, _bytes(held), offset, array.strides)


def _bytes(array: Any) -> Any:
    """The memory of an array that owns it."""
    return np.lib.stride_tricks.as_strided(array.view(), (array.size,), (array.itemsize,)).view(np.uint8)


def _empty(shape: Any, strides: Any, name: str, device: Any) -> Any:
    if strides is None:
        return over(np.empty(shape, name))
    dtype = np.dtype(name)
    memory = np.empty(devices._span(shape, strides), dtype)
    return over(np.ndarray(shape, dtype, memory, 0, tuple(s * dtype.itemsize for s in strides)))


def _matmul(a: Any, b: Any, out: Any) -> None:
    numpy_of(out)[...] = np.matmul(numpy_of(a).astype(out.dtype), numpy_of(b).astype(out.dtype))


def pretend(monkeypatch: Any) -> None:
    """Have CuPy's arrays be on the device cuda:0 of a computer that has none."""

    def milliseconds(call: Callable[[], None]) -> float:
        call()
        return 500.0

    library = dataclasses.replace(
        devices.LIBRARY,
        empty=_empty,
        full=lambda value, name, device: over(np.array(value, name)),
        scratch=lambda size, device: over(np.empty(size, np.uint8)),
        upload=lambda array, device: over(array.copy()),
        item=lambda array: numpy_of(array).item(),
        matmul=_matmul,
        stream=lambda index: STREAM,
        enter=lambda index: -1,
        leave=lambda previous: None,
        milliseconds=milliseconds,
        facts=lambda index: ("pretended", 4, False),
    )
    owner = dataclasses.replace(CupyFrontend.owner, devices=library)
    monkeypatch.setattr(CupyFrontend, "owner", owner)
    monkeypatch.setattr(cupy_facts, "current_device", lambda: 0)
    monkeypatch.setattr(gpu, "TritonDriver", InterpretedDriver)
