"""Loops compiled whole: what capture finds and the compiler of the backend, put together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..options import Options


def native_maker(options: Options) -> Callable[..., Any] | None:
    """What makes the compiled form of a loop; ``None`` where the backend has no compiler for them."""
    if options.backend != "inductor" or not options.native_loops:
        return None
    if options.numerics == "strict":  # functions of C, and of constants that the compiler computes
        return None
    return partial(_make, options.dump)


def _make(
    dump: str, code: Any, loop: Any, names: tuple[str, ...], namespace: dict[str, Any], record: Any
) -> Any:
    from .build import build
    from .entry.native_loop import NativeLoop

    return NativeLoop(code, loop, names, namespace, partial(build, dump=dump), record)
