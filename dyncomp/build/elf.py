"""Whether a shared library is whole: everything that the dynamic loader follows lies inside of the file.

The loader itself does not look: a file that was cut off ends the process with SIGBUS or SIGSEGV.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator

from ..errors import ToolchainError

_HEADER = struct.Struct("16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("IIQQQQQQ")
_SECTION = struct.Struct("IIQQQQIIQQ")
_ENTRY = struct.Struct("qQ")
_SHARED = 3
_LOAD, _DYNAMIC = 1, 2
_NO_BITS = 8
# Tags of the dynamic section: tables and functions with, where there is one, the tag of the size in bytes.
_STRINGS, _SYMBOLS, _HASH, _GNU_HASH = 5, 6, 4, 0x6FFFFEF5
_NONE = -1
_PLACES = dict.fromkeys((_SYMBOLS, _HASH, _GNU_HASH, 12, 13), _NONE)
_PLACES |= {_STRINGS: 10, 7: 8, 17: 18, 23: 2, 25: 27, 26: 28, 36: 35}


@functools.cache
def _own_kind() -> bytes:
    """Class, byte order and ABI of this process's code, then its processor's number."""
    from ..runtime import _launch

    with open(_launch.__file__, "rb") as file:
        head = file.read(20)
    return head[:7] + head[18:20]


def damage(content: bytes | memoryview) -> str:
    """What is wrong with a library of kernels; empty where it is whole."""
    try:
        return _damage(memoryview(content))
    except struct.error:
        return "it is cut off"


def check_whole(content: bytes, compiler: str) -> None:
    """``ToolchainError`` where a compiler that reported success made no whole library."""
    found = damage(content)
    if found:
        raise ToolchainError(f"{compiler} reported success, but what it made cannot be loaded: {found}")


def _damage(content: memoryview) -> str:
    head = _HEADER.unpack_from(content)
    if bytes(content[:7]) + bytes(content[18:20]) != _own_kind() or head[1] != _SHARED:
        return "it is no shared library for this processor"
    if head[9] != _SEGMENT.size or (head[12] and head[11] != _SECTION.size):
        return "its headers are damaged"
    size = len(content)
    if head[5] + head[10] * _SEGMENT.size > size or head[6] + head[12] * _SECTION.size > size:
        return "its headers end behind the file's end"
    found = list(_table(content, _SEGMENT, head[5], head[10]))
    loaded = [(s[3], s[3] + s[5]) for s in found if s[0] == _LOAD]
    dynamic = [(s[2], s[5]) for s in found if s[0] == _DYNAMIC]
    if any(s[2] + s[5] > size or s[6] < s[5] for s in found):
        return "a segment ends behind the file's end"
    for section in _table(content, _SECTION, head[6], head[12]):
        if section[1] != _NO_BITS and section[4] + section[5] > size:
            return "a section ends behind the file's end"
    if not loaded or len(dynamic) != 1:
        return "it has nothing to load"
    return _dynamic_damage(content, loaded, *dynamic[0])


def _dynamic_damage(content: memoryview, loaded: list[tuple[int, int]], at: int, size: int) -> str:
    tags: dict[int, int] = {}
    for tag, value in _table(content, _ENTRY, at, size // _ENTRY.size):
        if tag == 0:
            break
        tags[tag] = value
    if not {_STRINGS, _SYMBOLS} <= tags.keys() or not tags.keys() & {_HASH, _GNU_HASH}:
        return "its dynamic section is damaged"
    for tag, of_size in _PLACES.items():
        place = tags.get(tag)
        end = 0 if place is None else place + tags.get(of_size, 1)
        if place is not None and not any(start <= place and end <= stop for start, stop in loaded):
            return "a part of its dynamic section lies outside of the file"
    return ""


def _table(content: memoryview, row: struct.Struct, at: int, count: int) -> Iterator[tuple[int, ...]]:
    return row.iter_unpack(content[at : at + count * row.size])
