"""What compiled loops know of objects of the program, functions above all, without keeping them alive."""

from __future__ import annotations

import types
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

_PLAIN = (int, float, complex, bool, str, bytes, type(None), np.ufunc, type(np.zeros_like))

_HEAP_TYPE = 1 << 9


def refer(obj: object) -> Any:
    """A weak reference, without a callback, or the object itself where it allows none: numbers, strings,
    tuples, NumPy's own functions (see ``is_let_go``)."""
    try:
        return weakref.ref(obj)
    except TypeError:
        return obj


def referent(reference: object) -> Any:
    """The object that ``refer`` was given; None when it is gone."""
    return reference() if type(reference) is weakref.ref else reference


def is_let_go(obj: object) -> bool:
    """Whether ``refer`` keeps no array, function or such alive: it refers to it weakly, or it holds none."""
    return type(refer(obj)) is weakref.ref or holds_nothing(obj)


def holds_nothing(obj: object) -> bool:
    """Whether an object that is kept alive keeps nothing of the program alive but modules and code."""
    if type(obj) is tuple:
        return all(map(holds_nothing, obj))
    if type(obj) is types.FunctionType:
        return obj.__closure__ is None and obj.__defaults__ is None
    if type(obj) is types.BuiltinFunctionType:
        return obj.__self__ is None or type(obj.__self__) is types.ModuleType
    if type(obj) is type:
        return not obj.__flags__ & _HEAP_TYPE
    return type(obj) is types.ModuleType or type(obj) in _PLAIN or issubclass(type(obj), np.generic)


class References(Sequence[Any]):
    """A growing list of objects, each told by its identity."""

    def __init__(self) -> None:
        self._references: list[Any] = []

    def __getitem__(self, number: Any) -> Any:
        return referent(self._references[number])

    def __len__(self) -> int:
        return len(self._references)

    def number_of(self, obj: object) -> int | None:
        for number, reference in enumerate(self._references):
            if referent(reference) is obj:
                return number
        return None

    def append(self, obj: object) -> int:
        self._references.append(refer(obj))
        return len(self._references) - 1
