"""What users say about sizes: ``mark_dynamic`` and ``mark_static``.

Arrays have no place for such notes: they are kept beside them, by identity, for as long as the array lives.
"""

from __future__ import annotations

import operator
from typing import Any

from ...dataclass import dataclass, field
from ..lifetimes.by_identity import WeakIdentityDict


@dataclass(frozen=True)
class Range:
    """Inclusive bounds of a size; ``None``: unbounded."""

    low: int | None = None
    high: int | None = None

    def __contains__(self, size: int) -> bool:
        return (self.low is None or size >= self.low) and (self.high is None or size <= self.high)


@dataclass
class Marks:
    """Of one array: the axes that are to be symbolic, and those that are to be constant."""

    dynamic: dict[int, Range] = field(default_factory=dict)
    static: set[int] = field(default_factory=set)


_NOTHING = Marks()


class MarkTable:
    """Marks by the array's identity."""

    def __init__(self) -> None:
        self._marks: WeakIdentityDict[Marks] = WeakIdentityDict()

    def of(self, array: object) -> Marks:
        """The marks of an array; not to be changed."""
        return self._marks.get(array) or _NOTHING

    def open(self, array: object) -> Marks:
        """The marks of an array, to be changed."""
        found = self._marks.get(array)
        if found is None:
            found = self._marks[array] = Marks()
        return found


MARKS = MarkTable()


def mark_dynamic(x: Any, axis: int | tuple[int, ...], min: int | None = None, max: int | None = None) -> None:
    """Have the size of ``x`` along ``axis`` (or each of several) be symbolic from the first capture on.

    ``min`` and ``max``: the sizes for which the compiled code shall serve. A function that fixes the size
    (by using it as a constant) then raises :class:`~dyncomp.errors.ConstraintError` when it is compiled.
    Sizes 0 and 1 have code of their own in any case. The mark belongs to this array object; views and copies
    are not marked.

    Raises ``IndexError`` for an axis that there is not, ``ValueError`` for a size outside of the bounds.
    """
    bounds = Range(min, max)
    for number in _axes(x, axis):
        if x.shape[number] not in bounds:
            raise ValueError(f"axis {number} has size {x.shape[number]}, not between {min} and {max}")
        marks = MARKS.open(x)
        marks.dynamic[number] = bounds
        marks.static.discard(number)


def mark_static(x: object, axis: int | tuple[int, ...] | None = None) -> None:
    """Have the size of ``x`` along ``axis`` (default: all) be a constant of compiled code, also where it
    changes from call to call: each size is then compiled anew.

    Raises ``IndexError`` for an axis that there is not.
    """
    for number in _axes(x, axis):
        marks = MARKS.open(x)
        marks.static.add(number)
        marks.dynamic.pop(number, None)


def _axes(x: object, axis: int | tuple[int, ...] | None) -> list[int]:
    if not hasattr(x, "shape") or not hasattr(x, "ndim"):
        raise TypeError(f"not an array: an object of type {type(x).__qualname__}")
    if axis is None:
        return list(range(x.ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    numbers = []
    for each in given:
        number = operator.index(each)
        if not -x.ndim <= number < x.ndim:
            raise IndexError(f"axis {number} is out of bounds for an array with {x.ndim} dimensions")
        numbers.append(number % x.ndim)
    return numbers
