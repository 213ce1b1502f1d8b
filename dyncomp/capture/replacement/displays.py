"""What stands in the brackets of a display: many items that repeat are written as a repetition, so that
``[None] * 100_000`` is one instruction again and not as many as it has items; many different constants
are one constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from ..guards.source import ItemSource
from ..values.base import LazyValue, Value
from ..values.number import ConstValue

LONG = 64  # shorter displays, and shorter repetitions, are written out
_SHORT_PERIODS = range(1, 9)


def many_constants(values: Sequence[Value]) -> list[Any] | None:
    """The objects of so many different constants that they are to be one constant of the code; else ``None``.
    The code then copies a list of them: equal texts in a tuple, CPython would replace."""
    if len(values) < LONG:
        return None
    objects = [value.value for value in values if _is_constant(value)]
    if len(objects) < len(values) or len(set(map(id, objects))) < len(objects) // 2:
        return None
    return objects


def _is_constant(value: Value) -> TypeGuard[ConstValue]:
    return type(value) is ConstValue and value.is_fixed


def end_of_constants(values: Sequence[Value], start: int) -> int:
    """Up to where ``values`` from ``start`` on are constants."""
    end = start
    while end < len(values) and _is_constant(values[end]):
        end += 1
    return end


def end_of_items(values: Sequence[Value], start: int, is_built: Callable[[Value], bool]) -> int:
    """Up to where ``values`` from ``start`` on are items of one sequence from outside, one after the other,
    that nothing needed so far; at least ``start + 1``."""
    first = _item_source(values[start])
    if first is None or is_built(values[start]):
        return start + 1
    end = start + 1
    while end < len(values) and not is_built(values[end]):
        source = _item_source(values[end])
        if source is None or source.base != first.base or source.key != first.key + end - start:
            break
        end += 1
    return end


def _item_source(value: Value) -> ItemSource | None:
    """Where the object of ``value`` is found, if compiled code gets it from there, by number."""
    if not isinstance(value, LazyValue) and (type(value) is not ConstValue or value.is_fixed):
        return None
    source = value.source
    return source if isinstance(source, ItemSource) and type(source.key) is int and source.key >= 0 else None


def display_items(texts: list[str]) -> str:
    """The items with these expressions, which have no side effects, one after the other."""
    if len(texts) < LONG:
        return ", ".join(texts)
    periods = [*_SHORT_PERIODS, _period(texts)]
    parts: list[str] = []
    start = 0
    while start < len(texts):
        period, times = _repetition(texts, start, periods)
        if times == 1:
            parts.append(texts[start])
        else:
            parts.append(f"*[{', '.join(texts[start : start + period])}] * {times}")
        start += period * times
    return ", ".join(parts)


def _repetition(texts: list[str], start: int, periods: list[int]) -> tuple[int, int]:
    """How many items from ``start`` on stand there how often: ``(1, 1)`` where nothing repeats for long."""
    for period in periods:
        end = start + period
        while end < len(texts) and texts[end] == texts[end - period]:
            end += 1
        times = (end - start) // period
        if times > 1 and times * period >= LONG:
            return period, times
    return 1, 1


def _period(texts: list[str]) -> int:
    """After how many items all of them repeat, at the least (Knuth, Morris and Pratt's failure function)."""
    borders = [0] * len(texts)
    length = 0
    for index in range(1, len(texts)):
        while length and texts[index] != texts[length]:
            length = borders[length - 1]
        if texts[index] == texts[length]:
            length += 1
        borders[index] = length
    return len(texts) - length
