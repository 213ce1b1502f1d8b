"""The C functions of ``heapq``, with the comparisons that they make."""

from __future__ import annotations

import heapq
from typing import Any


def _sift_down(heap: Any, start: int, position: int) -> None:
    item = heap[position]
    while position > start:
        parent = (position - 1) >> 1
        above = heap[parent]
        if not item < above:
            break
        heap[position] = above
        position = parent
    heap[position] = item


def _sift_up(heap: Any, position: int) -> None:
    end = len(heap)
    start = position
    item = heap[position]
    child = 2 * position + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[position] = heap[child]
        position = child
        child = 2 * position + 1
    heap[position] = item
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
    if heap and heap[0] < item:
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
