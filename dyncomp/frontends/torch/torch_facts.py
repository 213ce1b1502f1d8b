"""What guards check of a tensor, and torch's names of element types."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ... import dtypes
from ...device import CPU, Device
from ...dtypes import DType
from ...errors import Unsupported
from ..base import ArrayFacts, StateGuard
from . import state
from .library import torch

# Devices whose memory kernels can be made for.
DEVICES = ("cpu", "cuda") if torch.version.cuda is not None else ("cpu",)
ARRAY_TYPES: tuple[type, ...] = (torch.Tensor, torch.nn.Parameter)

FROM_TORCH: MappingProxyType[Any, DType] = MappingProxyType(
    {
        getattr(torch, d.name): d
        for d in dtypes.ALL
        if hasattr(torch, d.name) and d.name not in ("uint16", "uint32", "uint64")
    }
)
TO_TORCH: MappingProxyType[DType, Any] = MappingProxyType({d: t for t, d in FROM_TORCH.items()})


def from_torch(dtype: object) -> DType:
    """The element type; raises ``Unsupported`` where dyncomp has none."""
    found = FROM_TORCH.get(dtype)
    if found is None:
        raise Unsupported(f"tensors of dtype {dtype} are not compiled", break_id="array-dtype")
    return found


def describe(obj: Any) -> ArrayFacts:
    """:class:`ArrayFacts` of a dense tensor; see ``Frontend.describe``."""
    if type(obj) not in ARRAY_TYPES:
        raise Unsupported(f"{type(obj).__name__} is a subclass of torch.Tensor", break_id="array-subclass")
    now = state.read_state()
    trouble = state.problem(now)
    if trouble:
        raise Unsupported(trouble)
    if obj.layout is not torch.strided or obj.device.type not in DEVICES or obj.is_quantized:
        raise Unsupported(f"a tensor of layout {obj.layout} on {obj.device}", break_id="array-type")
    dtype = from_torch(obj.dtype)
    if dtype.is_complex and obj.device.type != "cpu":
        raise Unsupported("complex tensors on a GPU are not compiled", break_id="array-dtype")
    if obj.is_neg() or obj.is_conj():
        raise Unsupported("a tensor with the negative or the conjugate bit set", break_id="array-type")
    try:
        strides = tuple(obj.stride())
        obj.data_ptr()
    except RuntimeError as error:
        raise Unsupported("a tensor without memory of its own", break_id="array-type") from error
    return _facts(obj, dtype, strides, grad_mode=now[0])


def _facts(obj: Any, dtype: DType, strides: tuple[int, ...], grad_mode: bool) -> ArrayFacts:
    extra = (("requires_grad", bool(obj.requires_grad)),) if grad_mode else ()
    shape = tuple(obj.shape)
    checks = () if _cannot_be_negated(obj) else (NOT_NEGATED,)
    if dtype.is_complex:
        checks = (*checks, NOT_CONJUGATED)
    return ArrayFacts("array", type(obj), dtype, shape, strides, device_of(obj), extra=extra, checks=checks)


def device_of(obj: Any) -> Device:
    """Where a tensor lives."""
    place = obj.device
    return CPU if place.type == "cpu" else Device(place.type, place.index or 0)


def _cannot_be_negated(obj: Any) -> bool:
    """The negative bit comes with every second element of a complex tensor, which is never contiguous."""
    return not obj.dtype.is_floating_point or (obj.is_contiguous() and obj.numel() > 1)


def not_negated(obj: Any, _: object) -> bool:
    """Whether the values are what the memory holds (DLPack does not tell)."""
    return not obj.is_neg()


NOT_NEGATED = StateGuard(not_negated, None, "without negative bit")


def not_conjugated(obj: Any, _: object) -> bool:
    """The same for complex tensors, which ``conj()`` marks only."""
    return not obj.is_conj()


NOT_CONJUGATED = StateGuard(not_conjugated, None, "without conjugate bit")
