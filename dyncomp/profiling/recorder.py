"""What is recorded while profiles are open, and to which of them it goes.

Stamps come from three places: the hook (calls, guards, loops), the launcher (graphs and their parts) and
:mod:`dyncomp.spans` (compiling). They are collected whenever a profile begins, ends or is looked at, so that
each gets what ended while it was open.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from types import CodeType

from .. import spans
from ..hook import _hook
from ..inductor.launch import Part
from ..runtime import _launch
from ..spans import Span
from .events import Raw

_CALL, _GUARDS = 0, 1


class Sink:
    """The events of one profile, at most ``limit``; ``dropped``: how many more there were."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.events: list[Raw] = []
        self.dropped = 0
        self.began = spans.now()
        self.ended: int | None = None

    def add(self, found: list[Raw], dropped: int) -> None:
        own = [raw for raw in found if raw.start >= self.began]
        room = self.limit - len(self.events)
        self.events += own[:room]
        self.dropped += max(len(own) - room, 0) + dropped


_lock = threading.RLock()
# weak: what a thread left open ends with it
_open: list[weakref.ref[Sink]] = []
_spoken: list[Span] = []


def begin(sink: Sink) -> None:
    """Have ``sink`` get what ends from now on."""
    with _lock:
        collect()
        limit = max([sink.limit, *(other.limit for other in _sinks())])
        if not _open:
            spans.listen(_hear)
        _open.append(weakref.ref(sink, _gone))
        _hook.spans_begin(limit)
        _launch.spans_begin(limit)
        sink.began = spans.now()


def end(sink: Sink) -> None:
    """``sink`` gets what has ended, and no more."""
    with _lock:
        if sink.ended is not None:
            return
        collect()
        sink.ended = spans.now()
        _open[:] = [ref for ref in _open if ref() is not sink]
        _stop_if_none()


def collect() -> None:
    """Give the open profiles what has ended since the last time."""
    with _lock:
        spoken = _spoken[:]
        del _spoken[: len(spoken)]
        hooked, lost = _hook.spans_take()
        launched, lost_too = _launch.spans_take()
        sinks = _sinks()
        if not sinks:
            return
        found = [Raw(s.kind, s.name, s.where, s.thread, s.start, s.end, {}) for s in spoken]
        found += [_of_hook(*record) for record in hooked]
        for record in launched:
            found += _of_graph(*record)
        for sink in sinks:
            sink.add(found, lost + lost_too)


def _sinks() -> list[Sink]:
    return [sink for ref in _open if (sink := ref()) is not None]


def _hear(span: Span) -> None:
    _spoken.append(span)


def _gone(ref: weakref.ref[Sink]) -> None:
    """A profile that nobody ended is gone. (Called wherever it dies: no lock, no wait.)"""
    if ref in _open:
        _open.remove(ref)
    _stop_if_none()


def _stop_if_none() -> None:
    if not _open:
        _hook.spans_end()
        _launch.spans_end()
        spans.ignore(_hear)


def _forget() -> None:
    """In a forked child: the open profiles are the parent's."""
    global _lock
    _lock = threading.RLock()  # another thread may have held it
    for sink in _sinks():
        sink.ended = sink.began
        sink.events.clear()
    _open.clear()
    _stop_if_none()
    _spoken.clear()
    _hook.spans_take()
    _launch.spans_take()


os.register_at_fork(after_in_child=_forget)


# -- what was recorded in C ---------------------------------------------------------------------------
def _of_hook(
    kind: int, subject: object, origin: object, piece: bool, thread: int, start: int, end: int, detail: int
) -> Raw:
    if not isinstance(subject, CodeType) or not isinstance(origin, CodeType):
        record = getattr(subject, "record", None)
        name, where = ("loop", "") if record is None else (record.name, str(record.loc))
        return Raw("loop", name, where, thread, start, end, {})
    name = f"{origin.co_qualname} (continued)" if piece else origin.co_qualname
    where = f"{subject.co_filename}:{subject.co_firstlineno}"
    if kind == _GUARDS:
        return Raw("guards", f"guards of {name}", where, thread, start, end, {"held": bool(detail)})
    return Raw("call", name, where, thread, start, end, {} if detail else {"raised": True})


def _of_graph(
    labels: tuple[tuple[str, ...], tuple[str, tuple[Part, ...]]],
    thread: int,
    start: int,
    end: int,
    parts: tuple[tuple[int, int, int], ...],
) -> Iterator[Raw]:
    name, all_parts = labels[1]
    lines = dict.fromkeys(line for part in all_parts for line in part.origin)
    yield Raw("graph", name, next(iter(lines), ""), thread, start, end, {})
    for number, began, ended in parts:
        if number >= len(all_parts):
            continue
        part = all_parts[number]
        args: dict[str, object] = {"graph": name}
        if part.bytes is not None:
            args["bytes"] = part.bytes
        yield Raw(part.kind, part.name, ", ".join(part.origin), thread, began, ended, args)
