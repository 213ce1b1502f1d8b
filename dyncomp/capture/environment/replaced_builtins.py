"""Capture is Python itself: while a program has put its own ``len`` into ``builtins``, it would call that."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")

_NEEDED = tuple(
    (name, getattr(builtins, name))
    for name in [
        "abs",
        "all",
        "any",
        "bool",
        "bytes",
        "callable",
        "dict",
        "enumerate",
        "filter",
        "float",
        "frozenset",
        "getattr",
        "hasattr",
        "hash",
        "id",
        "int",
        "isinstance",
        "issubclass",
        "iter",
        "len",
        "list",
        "map",
        "max",
        "min",
        "next",
        "object",
        "property",
        "range",
        "repr",
        "reversed",
        "set",
        "setattr",
        "slice",
        "sorted",
        "str",
        "sum",
        "super",
        "tuple",
        "type",
        "vars",
        "zip",
        "__build_class__",
        "__import__",
    ]
)
_BUILTINS = vars(builtins)


def are_replaced() -> bool:
    for name, needed in _NEEDED:  # noqa: SIM110 - any() may be one of them
        if name not in _BUILTINS or _BUILTINS[name] is not needed:
            return True
    return False


def with_own_builtins(make: Callable[[], Made]) -> Made:
    """``make()``, for what has to be made while the program runs, with the builtins as they were."""
    if not are_replaced():
        return make()
    program = {name: _BUILTINS[name] for name, _ in _NEEDED if name in _BUILTINS}
    _BUILTINS.update(_NEEDED)
    try:
        return make()
    finally:
        for name, _ in _NEEDED:
            if name in program:
                _BUILTINS[name] = program[name]
            else:
                del _BUILTINS[name]
