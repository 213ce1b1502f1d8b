"""Quantization-aware training: modules that compute as if quantized, with gradients straight through it.

``prepare`` changes a PyTorch module so that products see weights and activations rounded as
:func:`~dyncomp.transforms.quantize.quantize_static` will round them; it trains as before, compiled by
``dyncomp.compile`` or not. ``convert`` makes the quantized graph of it.
"""

from __future__ import annotations

import copy
import fnmatch
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import GraphError
from ..tracing.function import GraphFunction, symbolic_trace
from .observe import Range
from .quantize import quantize_static

_LOW, _HIGH = "activation_low", "activation_high"
_PREFIX = "Quantized"


def fake_quantize(x: Any, scale: Any, low: Any, high: Any) -> Any:
    """``x`` rounded to multiples of ``scale`` between ``low`` and ``high`` times it. Its gradient is that of
    clipping: straight through the rounding."""
    clipped = (x / scale).clamp(low, high)
    rounded = clipped + (clipped.round() - clipped).detach()
    return rounded * scale


def prepare(module: Any, leave_out: Sequence[str] = ()) -> Any:
    """Have all ``Linear`` and ``Conv2d`` layers in ``module`` compute with rounded weights and activations.
    Returns the module, changed in place: parameters and their names stay.

    In training mode layers record the range of their activations, in two buffers. ``leave_out``: patterns of
    names of weights that stay as they are. Raises :class:`~dyncomp.errors.GraphError` where no layer is left.
    """
    torch = _torch()
    changed = 0
    for name, layer in module.named_modules():
        fits = type(layer) in (torch.nn.Linear, torch.nn.Conv2d)
        weight = f"{name}.weight" if name else "weight"
        if not fits or any(fnmatch.fnmatch(weight, pattern) for pattern in leave_out):
            continue
        if isinstance(layer, torch.nn.Conv2d) and layer.padding_mode != "zeros":
            continue
        like = layer.weight
        layer.register_buffer(_LOW, torch.zeros((), dtype=like.dtype, device=like.device))
        layer.register_buffer(_HIGH, torch.zeros((), dtype=like.dtype, device=like.device))
        layer.__class__ = _classes()[type(layer)]
        changed += 1
    if not changed:
        raise GraphError(f"{type(module).__name__} has no Linear or Conv2d layer left to quantize")
    return module


def convert(
    module: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: bool | Mapping[str, Any] | None = None,
) -> GraphFunction:
    """The quantized graph of a module that was prepared and trained, for arguments like ``args``
    (:func:`dyncomp.symbolic_trace`). The module stays as it is. Raises :class:`~dyncomp.errors.GraphError`
    where nothing is prepared or trained."""
    torch = _torch()
    plain = copy.deepcopy(module).eval()
    ranges: dict[str, Range] = {}
    weights = set()
    for name, layer in plain.named_modules():
        if hasattr(layer, "weight"):
            weights.add(f"{name}.weight" if name else "weight")
        base = type(layer).__mro__[1]
        if type(layer) not in (_classes().get(torch.nn.Linear), _classes().get(torch.nn.Conv2d)):
            continue
        low, high = float(getattr(layer, _LOW)), float(getattr(layer, _HIGH))
        if low == high:
            raise GraphError(f"{name} saw no activations: train the prepared module before it is converted")
        ranges[f"{name}.weight" if name else "weight"] = Range(low, high)
        layer.__class__ = base
    if not ranges:
        raise GraphError(f"{type(module).__name__} has no prepared layer")
    traced = symbolic_trace(plain, args, kwargs, dynamic=dynamic)
    others = [name for name in traced.constants if name not in ranges]
    return quantize_static(traced, leave_out=others, ranges=ranges)


def _torch() -> Any:
    if "torch" not in sys.modules:
        raise GraphError("quantization-aware training is of modules of PyTorch, which is not imported")
    return sys.modules["torch"]


_MADE: dict[type, type] = {}


def _classes() -> dict[type, type]:
    """The classes of prepared layers, by those of the layers."""
    if not _MADE:
        torch = _torch()
        linear, conv = torch.nn.Linear, torch.nn.Conv2d

        def linear_forward(self: Any, input: Any) -> Any:
            return torch.nn.functional.linear(*_rounded(self, input), self.bias)

        def conv_forward(self: Any, input: Any) -> Any:
            return self._conv_forward(*_rounded(self, input), self.bias)

        for base, forward in ((linear, linear_forward), (conv, conv_forward)):
            _MADE[base] = type(
                f"{_PREFIX}{base.__name__}", (base,), {"forward": forward, "__doc__": base.__doc__}
            )
    return _MADE


def _rounded(layer: Any, input: Any) -> tuple[Any, Any]:
    """The activation and the weight of a prepared layer as its product sees them."""
    torch = sys.modules["torch"]
    low, high = getattr(layer, _LOW), getattr(layer, _HIGH)
    if layer.training:
        with torch.no_grad():
            low.copy_(torch.minimum(low, input.min()))
            high.copy_(torch.maximum(high, input.max()))
    signed = low < 0
    top = torch.where(signed, 127.0, 255.0)
    largest = torch.where(signed, torch.maximum(-low, high), high)
    scale = torch.where(largest > 0, largest / top, 1.0)
    x = fake_quantize(input, scale.detach(), torch.where(signed, -127.0, 0.0), top)
    weight = layer.weight
    others = tuple(range(1, weight.dim()))
    widest = weight.detach().abs().amax(others, keepdim=True)
    steps = torch.where(widest > 0, widest / 127, 1.0)
    return x, fake_quantize(weight, steps, -127, 127)
