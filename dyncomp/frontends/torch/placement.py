"""Tensors on the CPU in a graph on a GPU.

torch takes a tensor without dimensions on the CPU for a number beside tensors on a GPU, and a factory that is
told no device makes tensors on the CPU. In a graph on a GPU these values are computed there, too; traced
arrays say that the program sees them on the CPU (``ArrayRef.host``). What torch refuses to mix, and writes to
the program's own tensors on the CPU, break the graph.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from ...device import CPU, Device
from ...errors import Unsupported
from ...graph.ir import COPY
from ..base import ArrayRef, Rule, StateGuard, TraceContext, TypedTuple, memory_of
from . import state
from .library import torch

# Where a rule that is told a device puts its results: of ``TraceContext.memo``, while the rule runs.
_PLACE = "torch: results on the CPU"
# Functions of two tensors to which torch's iterators pass a number on the CPU (``allow_cpu_scalars``).
_NAMES = (
    "add sub mul truediv floordiv mod pow and or xor and_ or_ xor_ subtract multiply div divide true_divide"
    " floor_divide remainder maximum minimum atan2 arctan2 eq ne lt le gt ge less less_equal greater"
    " greater_equal not_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor"
)
_BINARY = frozenset(_NAMES.split())
_IN_PLACE = frozenset([f"i{name.rstrip('_')}" for name in _BINARY] + [f"{name}_" for name in _BINARY])
# Those that take a number on the CPU as an operand other than their first.
_LATER = frozenset(("masked_fill", "masked_fill_", "fill_"))
# Those that say themselves where their results are.
_MOVING = frozenset(("to", "type_as"))


def refs_in(values: object) -> list[ArrayRef]:
    """Traced arrays among arguments, and in lists and tuples of these."""
    if isinstance(values, ArrayRef):
        return [values]
    if isinstance(values, (list, tuple)):
        return [ref for value in values for ref in refs_in(value)]
    return []


def kind_of(ref: ArrayRef) -> str:
    """The kind of device that the program sees a tensor on."""
    return CPU.kind if ref.host else ref.type.device.kind


# -- rules that are told a device ---------------------------------------------------------------
def puts(tx: TraceContext, on_host: bool) -> None:
    """Results of the rule that runs are on the CPU, or on the graph's device."""
    tx.memo[_PLACE] = on_host


def device_named(tx: TraceContext, device: object) -> Device:
    """A device as the program says it; of a GPU without a number the current one, which is guarded."""
    given = torch.device(device)
    if given.type != "cuda":
        return Device(given.type, 0)
    if given.index is not None:
        return Device("cuda", given.index)
    index = state.current_device()
    name = "the current CUDA device"
    tx.states[name] = StateGuard(state.current_device_is, index, f"{name} is {index}")
    return Device("cuda", index)


# -- all rules ----------------------------------------------------------------------------------
@functools.lru_cache(maxsize=4096)
def placed(rule: Rule, name: str) -> Rule:
    """``rule`` for the function ``name``, whose results are where torch has them."""

    @functools.wraps(rule)  # what is known of arguments is told by the rule's names for them
    def place(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        if tx.builder.device in (None, CPU):
            return rule(tx, *args, **kwargs)
        refs = [ref for ref in refs_in([*args, *kwargs.values()]) if ref.kind == "array"]
        host = [ref for ref in refs if ref.host]
        if host and len(host) < len(refs) and name not in _MOVING:
            _check_mixed(name, args, kwargs, host)
        tx.memo.pop(_PLACE, None)
        before = len(tx.builder.nodes)
        result = rule(tx, *args, **kwargs)
        if host:
            _check_writes(tx, before)
        all_host = bool(host) and len(host) == len(refs)
        return _moved(result) if tx.memo.pop(_PLACE, all_host) else result

    return place


def _check_mixed(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], host: list[ArrayRef]) -> None:
    """Refuse what torch refuses, or computes otherwise."""
    first = args[0] if args else None
    leads = isinstance(first, ArrayRef) and first.host
    numbers = all(ref.ndim == 0 for ref in host)
    if name == "copy_" and not leads:
        return
    if numbers and (name in _BINARY or name == "where") and "out" not in kwargs:
        return
    if numbers and not leads and (name in _IN_PLACE or name in _LATER):
        return
    sets = name in ("setitem", "__setitem__") and not any(ref.host for ref in refs_in(args[1]))
    if numbers and not leads and sets:
        return
    raise Unsupported(f"{name} of tensors on a GPU and on the CPU")


def _check_writes(tx: TraceContext, before: int) -> None:
    """Refuse writes to the program's own tensors on the CPU."""
    numbers = {inp.var.name for inp in tx.builder.inputs if inp.kind != "array"}
    for node in tx.builder.nodes[before:]:
        if node.op == COPY and memory_of(tx.builder, node.inputs[0]) in numbers:
            raise Unsupported("a write to a tensor on the CPU beside tensors on a GPU")


def _moved(result: Any) -> Any:
    """A rule's results, on the CPU."""
    if isinstance(result, ArrayRef):
        return replace(result, host=True) if result.kind == "array" and not result.host else result
    if type(result) in (list, tuple):
        return type(result)(map(_moved, result))
    if isinstance(result, TypedTuple):
        return replace(result, items=tuple(map(_moved, result.items)))
    return result
