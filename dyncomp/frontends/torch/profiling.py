"""``torch.profiler.record_function``: blocks that name what a profiler sees."""

from __future__ import annotations

from typing import Any

from ...errors import Unsupported
from ..base import StateGuard
from .library import torch

_profiler = torch.autograd.profiler
_record = _profiler.record_function
CLASSES: tuple[type, ...] = (_record,)


def is_profiled(_: object, expected: bool) -> bool:
    """Whether it is so that a profiler of torch is on, or not."""
    return _profiler._is_profiler_enabled is expected


def mode_of(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str, Any] | None:
    """A block without a meaning, as long as no profiler is on."""
    if cls is not _record:
        return None
    if is_profiled(None, True) or kwargs or len(args) != 1 or type(args[0]) is not str:
        raise Unsupported("torch.profiler.record_function while a profiler is on, or with these arguments")
    return "record_function", "", StateGuard(is_profiled, False, "no profiler of torch is on")
