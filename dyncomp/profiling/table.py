"""Events summed by what ran, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..dataclass import dataclass
from ..wording import counted
from .events import KINDS, Event

if TYPE_CHECKING:
    from rich.table import Table

SORTS = ("self", "total", "calls", "name")
_HEADINGS = ("kind", "name", "calls", "total ms", "self ms", "self %", "µs a call", "where")
_MOST_NAME, _MOST_WHERE = 48, 60


@dataclass(frozen=True, slots=True)
class Row:
    """All events of one kind, name and place. ``total_ns`` counts time within recursion once."""

    kind: str
    name: str
    where: str
    calls: int
    total_ns: int
    self_ns: int


def rows_of(events: Iterable[Event], sort: str = "self") -> list[Row]:
    """One row for each kind, name and place. ``sort``: ``"self"``, ``"total"`` or ``"calls"``, largest
    first, or ``"name"``. Raises ``ValueError`` for anything else."""
    if sort not in SORTS:
        raise ValueError(f"sort={sort!r}: one of {', '.join(SORTS)}")
    sums: dict[tuple[str, str, str], list[int]] = {}
    for event in events:
        found = sums.setdefault((event.kind, event.name, event.where), [0, 0, 0])
        found[0] += 1
        found[1] += 0 if event.is_nested else event.ns
        found[2] += event.self_ns
    rows = [Row(*key, *numbers) for key, numbers in sums.items()]
    if sort == "name":
        return sorted(rows, key=lambda row: (row.name, row.kind))
    number = {"self": "self_ns", "total": "total_ns", "calls": "calls"}[sort]
    return sorted(rows, key=lambda row: (-int(getattr(row, number)), row.name))


def summary(events: Sequence[Event], wall_ns: int, dropped: int) -> list[str]:
    """Lines that say how much of the time was what."""
    own: dict[str, int] = dict.fromkeys(KINDS, 0)
    for event in events:
        own[event.kind] = own.get(event.kind, 0) + event.self_ns
    known = sum(own.values())
    threads = len({event.thread for event in events})
    lines = [
        f"{wall_ns / 1e6:.3f} ms; {known / 1e6:.3f} ms in compiled code and in compiling, "
        f"{counted(threads, 'thread')}, {counted(len(events), 'event')}"
    ]
    if dropped:
        lines.append(f"{dropped} more events were dropped: raise max_events")
    for kind, ns in sorted(own.items(), key=lambda item: -item[1]):
        if ns:
            lines.append(f"  {ns / 1e6:12.3f} ms {ns / known:6.1%}  {KINDS.get(kind, kind)}")
    return lines


def text_table(rows: Sequence[Row], top: int | None) -> str:
    """The table as text, its first ``top`` rows."""
    cells = [_HEADINGS, *_cells(rows, top)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(_HEADINGS))]
    lines = []
    for line in cells:
        parts = [_aligned(text, width, k) for k, (text, width) in enumerate(zip(line, widths))]
        lines.append("  ".join(parts).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    if top is not None and len(rows) > top:
        lines.append(f"… and {len(rows) - top} more rows")
    return "\n".join(lines)


def rich_table(rows: Sequence[Row], top: int | None) -> Table:
    """The same for a console of ``rich``."""
    from rich.table import Table

    table = Table(title="dyncomp.profile", title_justify="left")
    for number, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="right" if _is_number(number) else "left", overflow="fold")
    for line in _cells(rows, top):
        table.add_row(*line)
    return table


def _cells(rows: Sequence[Row], top: int | None) -> list[tuple[str, ...]]:
    whole = sum(row.self_ns for row in rows) or 1
    return [
        (
            row.kind,
            _shortened(row.name, _MOST_NAME),
            str(row.calls),
            f"{row.total_ns / 1e6:.3f}",
            f"{row.self_ns / 1e6:.3f}",
            f"{row.self_ns / whole:.1%}",
            f"{row.total_ns / row.calls / 1e3:.1f}",
            _shortened(row.where, _MOST_WHERE, keep_end=True),
        )
        for row in rows[:top]
    ]


def _shortened(text: str, most: int, keep_end: bool = False) -> str:
    if len(text) <= most:
        return text
    return f"…{text[1 - most :]}" if keep_end else f"{text[: most - 1]}…"


def _is_number(column: int) -> bool:
    return 2 <= column <= 6


def _aligned(text: str, width: int, column: int) -> str:
    return text.rjust(width) if _is_number(column) else text.ljust(width)
