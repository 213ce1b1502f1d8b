"""Calls that captures found they cannot inline, remembered for the captures after them.

A capture that breaks inside of a call from which the caller cannot be resumed begins again without inlining
it. The functions around are captured afterwards, each of them as it is called, and each would come to the
same place and begin again too. What was found of arguments of the same kinds is believed a few times; then
the call is tried again, as the program may have moved on (caches are filled, states are set).
"""

from __future__ import annotations

import types
from typing import Any

from ...dataclass import dataclass
from ..values.base import LazyValue, Value
from ..values.number import ConstValue
from ..values.obj import InstanceValue

_BELIEVED = 8  # times
_TOLD_APART = frozenset({bool, str, type(None)})  # constants of these types are often switches


@dataclass(eq=False)
class _Refusal:
    """``caller``, ``callee``: held so that their ids stay their own."""

    caller: types.CodeType
    callee: types.CodeType
    kinds: tuple[Any, ...]
    reason: str
    believed: int = 0


class RefusedCalls:
    """Why calls were not inlined, by the caller's code, the instruction that calls, and the one at which the
    capture began: what follows a break has other values than what is captured from the start."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], list[_Refusal]] = {}

    def note(
        self,
        caller: types.CodeType,
        at: int,
        start: int,
        callee: types.CodeType,
        args: tuple[Value, ...],
        reason: str,
    ) -> None:
        kinds = _kinds(args)
        known = self._known.setdefault((id(caller), at, start), [])
        if not any(item.callee is callee and item.kinds == kinds for item in known):
            known.append(_Refusal(caller, callee, kinds, reason))

    def reason(
        self, caller: types.CodeType, at: int, start: int, callee: types.CodeType, args: tuple[Value, ...]
    ) -> str | None:
        """Why the call is not to be inlined, ``None`` where nothing is known against it."""
        known = self._known.get((id(caller), at, start))
        if known is None:
            return None
        kinds = _kinds(args)
        for item in known:
            if item.callee is callee and item.kinds == kinds:
                item.believed += 1
                if item.believed > _BELIEVED:
                    known.remove(item)
                    return None
                return item.reason
        return None

    def clear(self) -> None:
        self._known.clear()


def _kinds(args: tuple[Value, ...]) -> tuple[Any, ...]:
    return tuple(map(_kind, args))


def _kind(value: Value) -> Any:
    if isinstance(value, LazyValue) or (isinstance(value, InstanceValue) and value.obj is not None):
        return _constant_kind(value.obj)
    if isinstance(value, ConstValue):
        return _constant_kind(value.const)
    return value.pytype


def _constant_kind(obj: object) -> Any:
    cls = type(obj)
    if cls in _TOLD_APART:
        return cls, obj
    if not cls.__dictoffset__:
        return cls
    namespace = object.__getattribute__(obj, "__dict__")  # never by a ``__getattribute__`` of the program
    if type(namespace) is not dict:
        return cls
    switches = [item for item in namespace.items() if type(item[1]) is bool]
    return (cls, *switches) if switches else cls  # such as a module in training or not
