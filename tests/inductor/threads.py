"""What compiled code gives with several numbers of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dyncomp.runtime import num_threads, set_num_threads


def by_threads(call: Callable[[], Any], counts: Iterable[int] = (1, 2, 3, 7), times: int = 1) -> list[Any]:
    """The results of ``call``, made ``times`` with each number of threads."""
    before = num_threads()
    found = []
    try:
        for threads in counts:
            set_num_threads(threads)
            found += [call() for _ in range(times)]
    finally:
        set_num_threads(before)
    return found
