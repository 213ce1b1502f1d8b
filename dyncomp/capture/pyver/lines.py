"""The location table (PEP 626, PEP 657) and the exception table of code objects.

Formats: CPython's ``Objects/locations.md`` and ``Objects/exception_handling_notes.txt``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dyncomp.capture.bytecode.instr import Loc

_MAX_UNITS = 8
_NO_COLUMNS = 13
_LONG = 14
_NONE = 15


def _varint(out: bytearray, value: int) -> None:
    while value >= 64:
        out.append(64 | (value & 63))
        value >>= 6
    out.append(value)


def _signed_varint(out: bytearray, value: int) -> None:
    _varint(out, ((-value) << 1) | 1 if value < 0 else value << 1)


def _entry(out: bytearray, loc: Loc, units: int, line: int) -> int:
    """Append one entry for ``units`` (1-8) code units; returns the line that the next entry counts from."""
    at, end_line, col, end_col = loc
    if at is None:
        out.append(0x80 | (_NONE << 3) | (units - 1))
        return line
    delta = at - line
    if end_line is None:
        end_line = at
    if col is None or end_col is None:
        if end_line == at:
            out.append(0x80 | (_NO_COLUMNS << 3) | (units - 1))
            _signed_varint(out, delta)
            return at
    elif end_line == at:
        if delta == 0 and col < 80 and 0 <= end_col - col < 16:
            out.append(0x80 | ((col >> 3) << 3) | (units - 1))
            out.append(((col & 7) << 4) | (end_col - col))
            return line
        if 0 <= delta < 3 and col < 128 and end_col < 128:
            out.append(0x80 | ((10 + delta) << 3) | (units - 1))
            out.append(col)
            out.append(end_col)
            return at
    out.append(0x80 | (_LONG << 3) | (units - 1))
    _signed_varint(out, delta)
    _varint(out, end_line - at)
    _varint(out, 0 if col is None else col + 1)
    _varint(out, 0 if end_col is None else end_col + 1)
    return at


def encode_locations(runs: Iterable[tuple[Loc, int]], firstlineno: int, merge: bool) -> bytes:
    """The location table for instructions given as (location, code units); ``merge``: equal ones that follow
    each other share an entry."""
    if merge:
        runs = _merged(runs)
    out = bytearray()
    line = firstlineno
    for loc, units in runs:
        while units > _MAX_UNITS:
            line = _entry(out, loc, _MAX_UNITS, line)
            units -= _MAX_UNITS
        line = _entry(out, loc, units, line)
    return bytes(out)


def _merged(runs: Iterable[tuple[Loc, int]]) -> Iterator[tuple[Loc, int]]:
    current: Loc | None = None
    total = 0
    for loc, units in runs:
        if loc is current or loc == current:
            total += units
            continue
        if current is not None:
            yield current, total
        current = loc
        total = units
    if current is not None:
        yield current, total


def parse_exceptions(table: bytes) -> list[tuple[int, int, int, int, bool]]:
    """The exception table as (start, end, target, depth, lasti), in code units."""
    out = []
    position = 0
    fields = [0, 0, 0, 0]
    size = len(table)
    while position < size:
        for k in range(4):
            byte = table[position]
            position += 1
            value = byte & 63
            while byte & 64:
                byte = table[position]
                position += 1
                value = (value << 6) | (byte & 63)
            fields[k] = value
        start, length, target, depth_lasti = fields
        out.append((start, start + length, target, depth_lasti >> 1, bool(depth_lasti & 1)))
    return out


def _exception_varint(out: bytearray, value: int, marker: int) -> None:
    groups = [value & 63]
    while value > 63:
        value >>= 6
        groups.append(value & 63)
    for k in range(len(groups) - 1, -1, -1):
        out.append(groups[k] | (64 if k else 0) | marker)
        marker = 0


def encode_exceptions(entries: Iterable[tuple[int, int, int, int, bool]]) -> bytes:
    """Inverse of :func:`parse_exceptions`; entries must be sorted and must not overlap."""
    out = bytearray()
    for start, end, target, depth, lasti in entries:
        _exception_varint(out, start, 0x80)
        _exception_varint(out, end - start, 0)
        _exception_varint(out, target, 0)
        _exception_varint(out, (depth << 1) | lasti, 0)
    return bytes(out)
