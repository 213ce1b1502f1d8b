"""Events of a profile: what ran, in which thread, from when to when, and how much of that was its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ..dataclass import dataclass

# What events are of, in the order in which summaries have them.
KINDS: Mapping[str, str] = {
    "call": "compiled functions, Python between graphs",
    "guards": "guards",
    "graph": "graphs: reading arguments, making results",
    "kernel": "kernels",
    "product": "matrix products",
    "library": "routines of libraries",
    "loop": "loops compiled whole",
    "compile": "compiling: the rest",
    "capture": "compiling: capture",
    "pass": "compiling: passes over graphs",
    "inductor": "compiling: passes to C++",
    "build": "compiling: the C++ compiler",
    "disk": "code on disk",
}


@dataclass(frozen=True, slots=True)
class Raw:
    """One event as it was recorded; times in nanoseconds of ``CLOCK_MONOTONIC``."""

    kind: str
    name: str
    where: str
    thread: int
    start: int
    end: int
    args: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that ran.

    ``kind``: a key of :data:`KINDS`. ``where``: the user's functions and lines. ``thread``: the native id.
    ``start_ns``: nanoseconds after the profile began. ``ns``: how long it took, ``self_ns`` without the
    events within it. ``is_nested``: within another one of the same kind, name and place (recursion).
    ``args``: more, such as ``bytes`` that a kernel moves and the ``graph`` that it is of.
    """

    kind: str
    name: str
    where: str
    thread: int
    start_ns: int
    ns: int
    self_ns: int
    is_nested: bool
    args: Mapping[str, object]


class _Running:
    """An event and those within it, while they are gone through."""

    def __init__(self, number: int, raw: Raw) -> None:
        self.number = number
        self.end = raw.end
        self.key = (raw.kind, raw.name, raw.where)
        self.within = 0


def events_of(found: Iterable[Raw], began: int) -> list[Event]:
    """The events in the order in which they began, with their own times."""
    by_thread: defaultdict[int, list[Raw]] = defaultdict(list)
    for raw in found:
        by_thread[raw.thread].append(raw)
    made = [event for raws in by_thread.values() for event in _of_thread(raws, began)]
    made.sort(key=lambda event: (event.start_ns, -event.ns))
    return made


def _of_thread(raws: Sequence[Raw], began: int) -> list[Event]:
    ordered = sorted(raws, key=lambda raw: (raw.start, -raw.end))
    within = [0] * len(ordered)
    nested = [False] * len(ordered)
    stack: list[_Running] = []

    def leave() -> None:
        gone = stack.pop()
        within[gone.number] = gone.within

    for number, raw in enumerate(ordered):
        while stack and stack[-1].end <= raw.start:
            leave()
        if stack:
            stack[-1].within += min(raw.end, stack[-1].end) - raw.start
        running = _Running(number, raw)
        nested[number] = any(other.key == running.key for other in stack)
        stack.append(running)
    while stack:
        leave()
    return [
        Event(
            raw.kind,
            raw.name,
            raw.where,
            raw.thread,
            raw.start - began,
            raw.end - raw.start,
            max(raw.end - raw.start - inner, 0),
            is_nested,
            raw.args,
        )
        for raw, inner, is_nested in zip(ordered, within, nested)
    ]
