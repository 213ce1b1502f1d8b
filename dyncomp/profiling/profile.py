"""``with dyncomp.profile() as prof:``."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from . import recorder, trace
from .events import Event, events_of
from .table import rich_table, rows_of, summary, text_table

if TYPE_CHECKING:
    from rich.table import Table

_TOP = 40


class profile:
    """Records what runs in compiled code, and what is compiled, in all threads, while the block runs.

        with dyncomp.profile() as prof:
            fast(x)
        print(prof)

    Calls of compiled functions, guards, graphs, each kernel, matrix product and library routine in them,
    loops compiled whole, and the phases of compiling (:data:`~dyncomp.profiling.events.KINDS`). What begins
    before the block, or ends after it, is left out. Profiles nest: each gets what ran while it was open. A
    profile whose block is never left ends when nothing refers to it. A forked child has no part in its
    parent's profiles: it may open one of its own.

    ``rank``: the number of this process among several (default: the environment variable ``RANK``), for
    :meth:`merge`. ``max_events``: how many events are kept at most (about 300 bytes each).

    Raises ``ValueError`` for a negative rank or limit, ``RuntimeError`` where the block is entered again.
    """

    def __init__(self, *, rank: int | None = None, max_events: int = 500_000) -> None:
        if max_events < 0:
            raise ValueError(f"max_events={max_events}: must not be negative")
        self.rank = _rank_of_environment() if rank is None else rank
        if self.rank is not None and self.rank < 0:
            raise ValueError(f"rank={self.rank}: must not be negative")
        self.max_events = max_events
        self._sink: recorder.Sink | None = None
        self._clock = trace.Clock(0, 0)
        self._threads: dict[int, str] = {}
        self._made: tuple[int, list[Event]] = (-1, [])

    def __enter__(self) -> profile:
        if self._sink is not None:
            raise RuntimeError("this profile has been entered before: make another with dyncomp.profile()")
        self._sink = recorder.Sink(self.max_events)
        recorder.begin(self._sink)
        self._clock = trace.clock(self._sink.began)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._sink is not None:
            self._name_threads()
            recorder.end(self._sink)

    def _name_threads(self) -> None:
        for thread in threading.enumerate():
            if thread.native_id is not None:
                self._threads[thread.native_id] = thread.name

    def _now(self) -> recorder.Sink:
        if self._sink is None:
            raise RuntimeError("nothing is recorded yet: use `with dyncomp.profile() as prof:`")
        if self._sink.ended is None:
            self._name_threads()
            recorder.collect()
        return self._sink

    @property
    def events(self) -> Sequence[Event]:
        """What ended so far, in the order in which it began."""
        sink = self._now()
        count, made = self._made
        if count != len(sink.events):
            made = events_of(sink.events, sink.began)
            self._made = (len(sink.events), made)
        return tuple(made)

    @property
    def wall_ns(self) -> int:
        """Nanoseconds that the block took, or takes so far."""
        sink = self._now()
        return (recorder.spans.now() if sink.ended is None else sink.ended) - sink.began

    @property
    def dropped(self) -> int:
        """How many events there was no room for (``max_events``)."""
        return self._now().dropped

    def table(self, sort: str = "self", top: int | None = None) -> str:
        """Calls, total and own time of what ran, as text. ``sort``: ``"self"``, ``"total"``, ``"calls"`` or
        ``"name"``; ``top``: so many rows."""
        if top is not None and top < 0:
            raise ValueError(f"top={top}: must not be negative")
        return text_table(rows_of(self.events, sort), top)

    def to_dict(self) -> dict[str, object]:
        """All of it as plain data: times in nanoseconds, events as in :attr:`events`."""
        fields = ("kind", "name", "where", "thread", "start_ns", "ns", "self_ns", "is_nested")
        row_fields = ("kind", "name", "where", "calls", "total_ns", "self_ns")
        return {
            "wall_ns": self.wall_ns,
            "dropped": self.dropped,
            "rank": self.rank,
            "rows": [{name: getattr(row, name) for name in row_fields} for row in rows_of(self.events)],
            "events": [
                {**{name: getattr(event, name) for name in fields}, "args": dict(event.args)}
                for event in self.events
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write trace events (JSON) for https://ui.perfetto.dev or chrome://tracing."""
        trace.write(trace.trace_of(self.events, self._clock, self.rank, self._threads, self.dropped), path)

    merge = staticmethod(trace.merge)

    def __str__(self) -> str:
        if self._sink is None:
            return "nothing is recorded yet"
        events = self.events
        return "\n".join([*summary(events, self.wall_ns, self.dropped), "", self.table(top=_TOP)])

    def __repr__(self) -> str:
        if self._sink is None:
            return "<dyncomp.profile, not entered>"
        state = "open" if self._sink.ended is None else "ended"
        return f"<dyncomp.profile, {state}: {len(self.events)} events>"

    def __rich__(self) -> Table:
        return rich_table(rows_of(self.events), _TOP)


def _rank_of_environment() -> int | None:
    text = os.environ.get("RANK", "")
    return int(text) if text.isdigit() else None
