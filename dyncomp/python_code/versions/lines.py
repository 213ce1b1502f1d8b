"""The exception table of code objects: see CPython's ``Objects/exception_handling_notes.txt``. (The location
table, ``Objects/locations.md``, is written by ``csrc/assemble.c``.)
"""

from __future__ import annotations

from collections.abc import Iterable


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
