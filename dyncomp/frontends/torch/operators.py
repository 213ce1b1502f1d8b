"""Operators by their names in ``torch.ops``, those of other libraries (``custom_op``) among them."""

from __future__ import annotations

from typing import Any

from ..base import Rule
from .calls import OPERATORS, routine
from .library import torch

_OVERLOAD, _PACKET = OPERATORS
NAMESPACES: tuple[type, ...] = (type(torch.ops), type(torch.ops.aten))
_OTHERWISE = (
    torch.Tag.nondeterministic_seeded,
    torch.Tag.dynamic_output_shape,
    torch.Tag.data_dependent_output,
)


def rule_of(fn: Any) -> Rule | None:
    """A routine call, where the operator's schema says that it gives new tensors, changes nothing, and gives
    the same each time."""
    if type(fn) is _OVERLOAD:
        return routine(fn) if _is_function(fn) else None
    if type(fn) is _PACKET:
        overloads = [getattr(fn, name) for name in fn.overloads()]
        return routine(fn) if all(map(_is_function, overloads)) else None
    return None


def _is_function(overload: Any) -> bool:
    schema = overload._schema
    told = [*schema.arguments, *schema.returns]
    if any(part.alias_info is not None for part in told) or any(tag in overload.tags for tag in _OTHERWISE):
        return False
    # what takes or gives no tensors is there for what else it does (``torch.ops.profiler``)
    return all(any("Tensor" in str(p.type) for p in parts) for parts in (schema.arguments, schema.returns))
