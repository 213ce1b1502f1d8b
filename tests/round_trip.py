"""``ROUND_TRIP=1``: every new entry is stored as text and read again before it serves.

So the whole suite tests stored entries. What may not be stored is counted by reason.
"""

from __future__ import annotations

import atexit
import builtins
import collections
import dataclasses
import os
from typing import Any

REASONS: collections.Counter[str] = collections.Counter()


def use_stored_entries() -> None:
    from dyncomp.capture import convert
    from dyncomp.hook import _hook
    from dyncomp.warm_start.descriptions import NotStorable
    from dyncomp.warm_start.entries import pack, unpack
    from dyncomp.warm_start.pairs import StoredPair
    from dyncomp.warm_start.store import EntryStore, is_plain, may_store

    EntryStore.find = lambda *args: None  # type: ignore[method-assign]
    EntryStore.keep = lambda *args: None  # type: ignore[method-assign]
    finish = convert._finish
    backward = StoredPair.backward

    def read_again(self: Any, given: Any, wanted: Any) -> Any:
        return backward(self, given, wanted) and backward(self, given, wanted)

    _hook.mark(read_again.__code__, "skip")
    StoredPair.backward = read_again  # type: ignore[method-assign]

    def through_text(tracer: Any, end: Any, function: Any, args: Any) -> Any:
        captured = finish(tracer, end, function, args)
        config = tracer.config
        if not is_plain(config) or not may_store(
            dataclasses.replace(config.options, warm_start=True, debug_verify=False)
        ):
            return captured
        try:
            texts = pack(captured, config)
        except NotStorable as reason:
            REASONS[str(reason)] += 1
            return captured
        parts = InMemory()
        entry, record = unpack(texts, function, args, config, parts)
        if entry.guards is not None:
            entry.guards.check(args, function.__globals__, vars(builtins), function.__closure__)
        REASONS["stored"] += 1
        for name in ("compiled", "fallback"):
            if getattr(record, name, None) is None:
                setattr(record, name, getattr(captured.record, name))
        captured.entry, captured.record = entry, record
        return captured

    convert._finish = through_text
    atexit.register(_report)


class InMemory(dict[str, str]):
    """The parts of one entry: backward graphs are read again at once."""

    def read(self, name: str) -> str | None:
        return self.get(name)

    def write(self, name: str, text: str) -> None:
        self[name] = text
        REASONS["backward graphs"] += 1


def _report() -> None:
    path = os.environ.get("ROUND_TRIP_LOG")
    if path:
        with open(f"{path}.{os.getpid()}", "w") as out:
            for reason, count in REASONS.most_common():
                print(count, reason, file=out)
