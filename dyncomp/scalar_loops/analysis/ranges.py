"""Between which numbers the ints in variables are at the start of each block: interval analysis with widening
(Cousot and Cousot, "Abstract interpretation: a unified lattice model", 1977).

The walk is made twice. The first one looks at a block again whenever more numbers come to it than were taken
for granted, and what it writes is thrown away; the second writes with what holds everywhere, and sees that it
does.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

Interval = tuple[int, int]
Below = Mapping[str, int]
"""Less than which variables an int is: than each and its number together."""
NOTHING: Below = {}
Known = tuple[Interval, Below]
LEAST, GREATEST = -(2**63), 2**63 - 1
ALL: Interval = (LEAST, GREATEST)
_LOWS = (1, 0, -1, -(2**8), -(2**31), -(2**32), -(2**40), -(2**53), -(2**62), LEAST)
_HIGHS = (255, 2**31, 2**32, 2**40, 2**53, 2**62, GREATEST)
_FAR = 2**20
_MOST_VISITS = 6
"""So often is a block looked at again before what still grows is taken to be any int."""


class Ranges:
    """What is taken for granted of each version of a block, by its key: an interval for each of its ints."""

    def __init__(self) -> None:
        self.is_final = False
        self.has_failed = False
        """Whether the final walk came to a block with more than was taken for granted."""
        self._known: dict[Hashable, tuple[Known, ...]] = {}
        self._visits: dict[Hashable, int] = {}

    def begin(self, key: Hashable, found: Sequence[Known]) -> tuple[Known, ...]:
        """What the version is to be made with that is first reached with ``found``."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = tuple([(_rounded(interval), below) for interval, below in found])
        elif not _all_within(found, known):
            self.grow(key, found)
            known = self._known[key]
        return known

    def grow(self, key: Hashable, found: Sequence[Known]) -> bool:
        """It is reached with ``found`` again: whether that is more than was taken for granted."""
        known = self._known[key]
        if _all_within(found, known):
            return False
        if self.is_final:
            self.has_failed = True
        visits = self._visits[key] = self._visits.get(key, 0) + 1
        join = _widest if visits > _MOST_VISITS else _joined
        self._known[key] = tuple([(join(a, b), _both(x, y)) for (a, x), (b, y) in zip(known, found)])
        return True

    def known(self, key: Hashable) -> tuple[Known, ...]:
        return self._known[key]


def _rounded(found: Interval) -> Interval:
    """An interval around it with one of a few lows and highs, so that it grows a few times only."""
    low, high = found
    return next(x for x in _LOWS if x <= low), next(x for x in _HIGHS if x >= high)


def _joined(x: Interval, y: Interval) -> Interval:
    return _rounded((min(x[0], y[0]), max(x[1], y[1])))


def _widest(x: Interval, y: Interval) -> Interval:
    """Where it grows it has no end."""
    return x[0] if y[0] >= x[0] else LEAST, x[1] if y[1] <= x[1] else GREATEST


def _both(known: Below, found: Below) -> Below:
    """What still holds."""
    return {text: more for text, more in known.items() if text in found and found[text] <= more}


def _all_within(found: Sequence[Known], known: Sequence[Known]) -> bool:
    for ((a, b), below), ((low, high), held) in zip(found, known):
        if a < low or b > high or len(_both(held, below)) < len(held):
            return False
    return True


def raised(below: Below, by: int) -> Below:
    """What a number is less than that is greater by this."""
    return {text: more + by for text, more in below.items()} if abs(by) < _FAR else NOTHING


def compared(op: str, x: Interval, y: Interval) -> bool | None:
    """What ``x op y`` is for all numbers of two intervals, if it is the same."""
    if op in NEGATED and op not in ("<", "==", ">"):
        found = compared(NEGATED[op], x, y)
        return None if found is None else not found
    if op == ">":
        return compared("<", y, x)
    if op == "==":
        if x[1] < y[0] or y[1] < x[0]:
            return False
        return True if x[0] == x[1] == y[0] == y[1] else None
    if x[1] < y[0]:
        return True
    return False if x[0] >= y[1] else None


NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def narrowed(op: str, x: Interval, y: Interval, holds: bool) -> tuple[Interval, Interval]:
    """The intervals where ``x op y`` holds, or does not; the same ones where that is never so."""
    if not holds:
        op = NEGATED[op]
    if op in (">", ">="):
        y, x = _narrowed("<" if op == ">" else "<=", y, x)
        return x, y
    return _narrowed(op, x, y)


def _narrowed(op: str, x: Interval, y: Interval) -> tuple[Interval, Interval]:
    if op == "==":
        both = max(x[0], y[0]), min(x[1], y[1])
        found = both, both
    elif op == "!=":
        found = _without(x, y), _without(y, x)
    else:
        less = int(op == "<")
        found = (x[0], min(x[1], y[1] - less)), (max(y[0], x[0] + less), y[1])
    return found if all(low <= high for low, high in found) else (x, y)


def _without(x: Interval, y: Interval) -> Interval:
    """``x`` without the one number of ``y``."""
    if y[0] != y[1]:
        return x
    return x[0] + (x[0] == y[0]), x[1] - (x[1] == y[0])
