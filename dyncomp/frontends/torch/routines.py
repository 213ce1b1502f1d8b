"""Torch's own routines on NumPy arrays, for ops whose reference would be slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .library import torch


def _tensor(array: Any) -> Any:
    """A tensor over the array's memory."""
    array = np.asarray(array)
    if not array.flags.writeable or any(s < 0 for s in array.strides):
        array = array.copy(order="K" if array.flags.writeable else "C")
    return torch.from_numpy(array)


def _convolution(
    x: Any, w: Any, *, stride: Any, padding: Any, dilation: Any, groups: int = 1, channels_last: bool = False
) -> Any:
    image = _tensor(x)
    pads = [low for low, _ in padding]
    if any(low != high for low, high in padding):
        widths = [n for pair in reversed(padding) for n in pair]
        image, pads = torch.nn.functional.pad(image, widths), [0] * len(pads)
    none = [0] * len(pads)
    out = torch.convolution(image, _tensor(w), None, stride, pads, dilation, False, none, groups)
    return out.numpy()


def _convolution_transpose(
    x: Any,
    w: Any,
    *,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
    groups: int = 1,
    channels_last: bool = False,
) -> Any:
    out = torch.convolution(
        _tensor(x), _tensor(w), None, stride, padding, dilation, True, output_padding, groups
    )
    return out.numpy()


ROUTINES: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("convolution", _convolution),
    ("convolution_transpose", _convolution_transpose),
)
