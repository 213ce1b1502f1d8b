"""How much memory compiled forms may hold: an estimate per entry, and who goes when it is too much."""

from __future__ import annotations

import sys
import types

from ...hook import _hook
from ..entries.config import CaptureConfig
from ..entries.records import EntryRecord, log

_GUARD_BYTES = 160
_NODE_BYTES = 1200  # before and after the passes
_ENTRY_BYTES = 2000
_SLACK = 16  # this part of the budget is free after entries were dropped


def estimate(record: EntryRecord, code: types.CodeType | None) -> int:
    """About how many bytes an entry keeps alive that would be free without it."""
    total = _ENTRY_BYTES + _GUARD_BYTES * len(record.guards) + len(record.source)
    if record.graph is not None:
        total += _NODE_BYTES * len(record.graph.nodes)
    artifact = getattr(record.compiled, "artifact", None)
    total += 3 * len(getattr(artifact, "source", None) or "")  # the text, and the library made of it
    total += _pinned_arrays(record)
    return total + (_code_bytes(code) if code is not None else 0)


def _code_bytes(code: types.CodeType) -> int:
    total = sys.getsizeof(code)
    for constant in code.co_consts:
        total += _code_bytes(constant) if isinstance(constant, types.CodeType) else _constant_bytes(constant)
    return total


def _constant_bytes(constant: object) -> int:
    if type(constant) in (str, bytes, int, float, tuple, frozenset):
        return sys.getsizeof(constant)
    return _array_bytes(constant)


def _array_bytes(obj: object) -> int:
    member = getattr(type(obj), "nbytes", None)
    ours = type(member) is types.GetSetDescriptorType or _is_torch_property(member)
    size = getattr(obj, "nbytes", 0) if ours else 0  # never ask objects of the program's classes
    return size if type(size) is int else 0


def _is_torch_property(member: object) -> bool:
    module = getattr(member.fget, "__module__", None) if type(member) is property else None
    return isinstance(module, str) and module.partition(".")[0] == "torch"


def _pinned_arrays(record: EntryRecord) -> int:
    """Arrays that only the entry may hold: results of ``assume_constant_result``."""
    pinned = {}
    seen: set[int] = set()  # guards share most of their ways to what they check
    for guard in record.guards:
        source = guard.source
        while source is not None and id(source) not in seen:
            seen.add(id(source))
            obj = getattr(source, "obj", None)
            if obj is not None and source.parent is None:
                pinned[id(obj)] = _array_bytes(obj)
            source = source.parent
    return sum(pinned.values())


def held(config: CaptureConfig) -> int:
    """The estimate for all entries of a configuration."""
    return sum(_bytes_of(e) for _, entries in _hook.all_entries(config) for e in entries)


def _bytes_of(entry: _hook.Entry) -> int:
    return entry.payload.bytes if isinstance(entry.payload, EntryRecord) else _ENTRY_BYTES


def make_room(config: CaptureConfig, needed: int) -> None:
    """Drop the entries that were not used for longest until ``needed`` more bytes are within the budget."""
    limit = config.options.cache_bytes
    config.held_at_most += needed
    if config.held_at_most <= limit:
        return  # counting all entries for each new one would take time in the square of their number
    known = [(entry, code) for code, entries in _hook.all_entries(config) for entry in entries]
    total = needed + sum(_bytes_of(entry) for entry, _ in known)
    wanted = limit - limit // _SLACK if total > limit else limit
    known.sort(key=lambda pair: pair[0].last_hit)
    for entry, code in known:
        if total <= wanted:
            break
        total -= _bytes_of(entry)
        _evict(config, code, entry)
    config.held_at_most = total


def _evict(config: CaptureConfig, code: types.CodeType, entry: _hook.Entry) -> None:
    _hook.drop_entry(code, config, entry)
    config.count_capture(code, -1)  # the limits are on forms that are kept
    records = config.records
    records.counters["evicted"] += 1
    if isinstance(entry.payload, EntryRecord):
        records.forget_entry(entry.payload)
    log.info(
        "compiled code of %s was dropped: options['cache_bytes'] is %d",
        code.co_qualname,
        config.options.cache_bytes,
    )
