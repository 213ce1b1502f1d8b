"""torch's profilers: blocks that name what they see (``record_function``), and names of compiled kernels."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any

from ...errors import Unsupported
from ...runtime._launch import use_ranges
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


@functools.cache
def show_graphs() -> bool:
    """Have graphs and their kernels run as ranges of torch's profiler while one watches the thread that
    calls; whether this version of torch allows it. While none does a call asks torch for a bool."""
    record = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)
    library = Path(torch.__file__).with_name("lib") / "libtorch_cpu.so"
    try:
        # at::hasCallbacks()
        found = ctypes.CDLL(str(library), mode=os.RTLD_NOLOAD | os.RTLD_NOW)._ZN2at12hasCallbacksEv
    except (OSError, AttributeError):
        return False
    if record is None:
        return False
    use_ranges(record, ctypes.cast(found, ctypes.c_void_p).value or 0)
    return True
