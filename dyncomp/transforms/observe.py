"""Observers: what ranges values have in runs of a graph."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..dataclass import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Range:
    """The smallest and the largest value."""

    low: float
    high: float

    @property
    def is_signed(self) -> bool:
        return self.low < 0


class Observer(Protocol):
    """Sees arrays, and says the range that 8-bit integers are to cover."""

    def see(self, array: Array) -> None: ...

    @property
    def range(self) -> Range: ...


class MinMax:
    """The range of all that was seen."""

    def __init__(self) -> None:
        self._low, self._high = np.inf, -np.inf

    def see(self, array: Array) -> None:
        if array.size:
            self._low = min(self._low, float(array.min()))
            self._high = max(self._high, float(array.max()))

    @property
    def range(self) -> Range:
        return Range(self._low, self._high)


class Percentile:
    """The range that ``percent`` of the values of a batch are in, on average over batches: outliers are cut
    off."""

    def __init__(self, percent: float = 99.9) -> None:
        if not 50 < percent <= 100:
            raise ValueError(f"percent={percent}: more than 50, and up to 100")
        self.percent = percent
        self._ranges: list[tuple[float, float]] = []

    def see(self, array: Array) -> None:
        if array.size:
            rest = 100 - self.percent
            low, high = np.percentile(array, [rest, self.percent])
            low = 0.0 if array.min() >= 0 else low  # what is never negative stays so
            self._ranges.append((float(low), float(high)))

    @property
    def range(self) -> Range:
        if not self._ranges:
            return Range(np.inf, -np.inf)
        low, high = np.mean(self._ranges, axis=0)
        return Range(float(low), float(high))
