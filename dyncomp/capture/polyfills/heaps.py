"""The C functions of ``heapq``, with the comparisons that they make."""

from __future__ import annotations

import heapq
from typing import Any


def _check(heap: Any, size: int) -> None:
    if len(heap) != size:
        raise RuntimeError("list changed size during iteration")


def _sift_down(heap: Any, start: int, position: int) -> None:
    size = len(heap)
    if position >= size:
        raise IndexError("index out of range")
    while position > start:
        parent = (position - 1) >> 1
        less = bool(heap[position] < heap[parent])
        _check(heap, size)
        if not less:
            break
        heap[parent], heap[position] = heap[position], heap[parent]
        position = parent


def _sift_up(heap: Any, position: int) -> None:
    size = len(heap)
    start = position
    if position >= size:
        raise IndexError("index out of range")
    while position < size >> 1:
        child = 2 * position + 1
        if child + 1 < size:
            less = bool(heap[child] < heap[child + 1])
            _check(heap, size)
            if not less:
                child += 1
        heap[position], heap[child] = heap[child], heap[position]
        position = child
    _sift_down(heap, start, position)


def heappush(heap: Any, item: Any, /) -> None:
    heap.append(item)
    _sift_down(heap, 0, len(heap) - 1)


def heappop(heap: Any, /) -> Any:
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    if not heap:
        return last
    found = heap[0]
    heap[0] = last
    _sift_up(heap, 0)
    return found


def heapify(heap: Any, /) -> None:
    for position in reversed(range(len(heap) // 2)):
        _sift_up(heap, position)


def heapreplace(heap: Any, item: Any, /) -> Any:
    if not heap:
        raise IndexError("index out of range")
    found = heap[0]
    heap[0] = item
    _sift_up(heap, 0)
    return found


def heappushpop(heap: Any, item: Any, /) -> Any:
    if not heap:
        return item
    if not heap[0] < item:
        return item
    if not heap:
        raise IndexError("index out of range")
    item, heap[0] = heap[0], item
    _sift_up(heap, 0)
    return item


FUNCTIONS: dict[Any, Any] = {
    heapq.heappush: heappush,
    heapq.heappop: heappop,
    heapq.heapify: heapify,
    heapq.heapreplace: heapreplace,
    heapq.heappushpop: heappushpop,
}
