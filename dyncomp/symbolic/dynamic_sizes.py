"""What ``compile(dynamic={…})`` says of arguments: symbolic axes, their bounds, and which are equal."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import NamedTuple


class Axis(NamedTuple):
    """Inclusive bounds of a size (``None``: unbounded); axes of one ``name`` have one size."""

    name: str = ""
    low: int | None = None
    high: int | None = None

    def admits(self, size: int) -> bool:
        """Whether the size is within the bounds."""
        return (self.low is None or size >= self.low) and (self.high is None or size <= self.high)


class Argument(NamedTuple):
    """One argument; ``axes`` is ``None`` for all axes of an array, and for a number."""

    name: str
    axes: tuple[tuple[int, Axis], ...] | None

    def of_rank(self, ndim: int) -> dict[int, Axis]:
        """The axes of an array with ``ndim`` of them."""
        if self.axes is None:
            return {number: Axis() for number in range(ndim)}
        return {number % ndim: axis for number, axis in self.axes if -ndim <= number < ndim}


class DynamicArguments(NamedTuple):
    """By argument name."""

    arguments: tuple[Argument, ...]

    def find(self, name: str) -> Argument | None:
        """What is said of an argument."""
        return next((a for a in self.arguments if a.name == name), None)


def parse_dynamic(given: object) -> bool | DynamicArguments | None:
    """The ``dynamic`` argument of ``compile`` as a value of ``Options``.

    Raises ``TypeError`` for what is no such argument and ``ValueError`` for bounds that admit no size.
    """
    if given is None or isinstance(given, (bool, DynamicArguments)):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"dynamic must be None, True, False or a mapping of argument names, not {given!r}")
    return DynamicArguments(tuple(Argument(_name(k), _axes(v)) for k, v in given.items()))


def _name(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"dynamic: an argument's name must be a string, not {given!r}")
    return given


def _axes(given: object) -> tuple[tuple[int, Axis], ...] | None:
    if given is True:
        return None
    if isinstance(given, Mapping):
        return tuple((operator.index(number), _axis(axis)) for number, axis in given.items())
    numbers = given if isinstance(given, (tuple, list, set, frozenset)) else (given,)
    return tuple((operator.index(number), Axis()) for number in numbers)


def _axis(given: object) -> Axis:
    if given is None or given is True:
        return Axis()
    if isinstance(given, str):
        return Axis(given)
    parts = tuple(given) if isinstance(given, (tuple, list)) else ()
    name = parts[0] if parts and isinstance(parts[0], str) else ""
    bounds = parts[1:] if name else parts
    if len(bounds) != 2:
        raise TypeError(f"dynamic: an axis is True, a name, (min, max) or (name, min, max), not {given!r}")
    low, high = (None if b is None else operator.index(b) for b in bounds)
    if (low is not None and low < 0) or (low is not None and high is not None and low > high):
        raise ValueError(f"dynamic: there are no sizes between {low} and {high}")
    return Axis(name, low, high)
