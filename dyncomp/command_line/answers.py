"""What a command has to say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..dataclass import dataclass


@dataclass(frozen=True)
class Answer:
    """``facts``: what ``--json`` prints. ``lines``: for people. ``good``: whether the exit status is 0."""

    facts: Mapping[str, object]
    lines: Sequence[str]
    good: bool = True


def size_text(size: int) -> str:
    """A number of bytes for people."""
    if size < 1024:
        return f"{size} bytes"
    number, units = size / 1024, ["KiB", "MiB", "GiB"]
    while number >= 1024 and len(units) > 1:
        number /= 1024
        del units[0]
    return f"{number:.1f} {units[0]}"


def text_table(cells: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> list[str]:
    """Rows in columns, the first as a heading; columns ``numbers`` are aligned to the right."""
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    lines = []
    for row in cells:
        parts = [
            text.rjust(width) if k in numbers else text.ljust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(parts).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines
