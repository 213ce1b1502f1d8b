"""The C functions of ``bisect``."""

from __future__ import annotations

import bisect
from typing import Any


def bisect_right(a: Any, x: object, lo: int = 0, hi: int | None = None, *, key: Any = None) -> int:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        found = a[middle] if key is None else key(a[middle])
        if x < found:
            hi = middle
        else:
            lo = middle + 1
    return lo


def bisect_left(a: Any, x: object, lo: int = 0, hi: int | None = None, *, key: Any = None) -> int:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        found = a[middle] if key is None else key(a[middle])
        if found < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


def insort_right(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> None:
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_left(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> None:
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


FUNCTIONS: dict[Any, Any] = {
    bisect.bisect_right: bisect_right,
    bisect.bisect_left: bisect_left,
    bisect.insort_right: insort_right,
    bisect.insort_left: insort_left,
}
