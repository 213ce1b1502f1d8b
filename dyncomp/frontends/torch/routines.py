"""Torch's own routines for ops whose reference would be slow: on tensors, and on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .autocast import switched_off
from .library import torch
from .torch_facts import TO_TORCH

Routine = Callable[..., Any]


def _convolve(x: object, *arguments: object) -> Any:
    """What the graph says, whatever mode is on around it: it has its operands in the types it wants."""
    with switched_off():
        return torch.convolution(x, *arguments)


def _convolution(
    x: Any,
    w: object,
    *,
    stride: object,
    padding: Any,
    dilation: object,
    groups: int = 1,
    channels_last: bool = False,
) -> Any:
    pads = [low for low, _ in padding]
    if any(low != high for low, high in padding):
        widths = [n for pair in reversed(padding) for n in pair]
        x, pads = torch.nn.functional.pad(x, widths), [0] * len(pads)
    return _convolve(x, w, None, stride, pads, dilation, False, [0] * len(pads), groups)


def _convolution_transpose(
    x: object,
    w: object,
    *,
    stride: object,
    padding: object,
    output_padding: object,
    dilation: object,
    groups: int = 1,
    channels_last: bool = False,
) -> Any:
    return _convolve(x, w, None, stride, padding, dilation, True, output_padding, groups)


def _tensor(array: object) -> Any:
    """A tensor over the array's memory."""
    array = np.asarray(array)
    if not array.flags.writeable or any(s < 0 for s in array.strides):
        array = array.copy(order="K" if array.flags.writeable else "C")
    return torch.from_numpy(array)


def _on_arrays(routine: Routine) -> Routine:
    return lambda *arrays, **params: routine(*map(_tensor, arrays), **params).numpy()


ON_TENSORS: tuple[tuple[str, Routine], ...] = (
    ("convolution", _convolution),
    ("convolution_transpose", _convolution_transpose),
)
ON_ARRAYS: tuple[tuple[str, Routine], ...] = tuple((op, _on_arrays(routine)) for op, routine in ON_TENSORS)


def _to_tensors(routine: Routine) -> Routine:
    return lambda *arrays, **params: routine(*map(_tensor, arrays), **params)


def _routine_call_on_host(*arrays: Any, callee: Any, numbers: Any, dtypes: Any, shapes: Any) -> Any:
    """A function of torch on NumPy arrays; results of other types or sizes than were found raise."""
    made = callee.function.to_tensors(arrays, numbers)
    _check(made, callee.name, dtypes, shapes)
    return made if len(made) > 1 else made[0]


TO_TENSORS: tuple[tuple[str, Routine], ...] = (
    *((op, _to_tensors(routine)) for op, routine in ON_TENSORS),
    ("routine_call", _routine_call_on_host),
)


def _check(made: Any, name: str, dtypes: Any, shapes: Any) -> None:
    for result, dtype, shape in zip(made, dtypes, shapes, strict=True):
        if result.dtype is not TO_TORCH[dtype] or result.shape != shape:
            raise TypeError(f"{name} returned {result.dtype}{tuple(result.shape)}, not {dtype}{shape}")


def _routine_call(*tensors: Any, callee: Any, numbers: Any, dtypes: Any, shapes: Any) -> Any:
    """A function of torch on tensors of a device; results of other types or sizes than were found raise."""
    made = callee.function.on_device(tensors, numbers)
    _check(made, callee.name, dtypes, shapes)
    return made if len(made) > 1 else made[0]


ON_DEVICES: tuple[tuple[str, Routine], ...] = (*ON_TENSORS, ("routine_call", _routine_call))
