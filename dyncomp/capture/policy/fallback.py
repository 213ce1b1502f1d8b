"""Calls whose graph raised: the original runs instead, and after some in a row it runs at once.

What raises in compiled code is begun again in the original, so such a call takes longer than a plain one.
After a few in a row the entry rests: the original runs at once, for a number of calls that doubles each
time that the graph is found to raise still (exponential backoff). So the detours soon count for nothing,
and a program whose data are good again is back in compiled code after at most as many calls as it had bad
ones.

What a graph assumes of sizes that depend on the data (that two of them agree, that one is not 1) may not
hold. Where it does not in the calls that the graph was made for, or in a good part of all calls, it would not
do so the next time either: the entry is dropped, and the next capture breaks the graph at the instruction
that assumed it. So it is with branches that are presumed to go as they usually do (``arrays.finite_tests``).
An entry from disk does not know the instruction: the function is captured anew first.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from ...graph.ir import Loc
from ...hook import _hook
from ..breaks import Break
from ..entries.config import CaptureConfig
from ..entries.floating import waiting_watch
from ..entries.records import EntryRecord, log

_ENOUGH = 4  # calls in a row whose graph raised
_FIRST_REST = 16
_LONGEST_REST = 1 << 20
_OFTEN = 8  # a good part of all calls: more than one in so many


class Fallback:
    """Makes the original for calls of one entry whose graph raised, and counts them.

    Replacement code holds it, whose constants the garbage collector does not see: it holds nothing that leads
    to that code.
    """

    def __init__(
        self,
        config: CaptureConfig,
        code: types.CodeType,
        breaks_are_errors: bool,
        presumed: tuple[tuple[weakref.ref[types.CodeType], int], ...] = (),
        presumes: bool = False,
    ) -> None:
        """``presumed``: jumps that the graph checks to go as they usually do; ``presumes``: it has some."""
        self.presumed = presumed
        self.presumes = presumes or bool(presumed)
        self.may_break = not breaks_are_errors
        self._config = weakref.ref(config)
        self._code = code
        self._records = config.records
        self._awaited = 0  # the number of the hit that comes next, if no call succeeds in between
        self._in_row = 0
        self._rest = 0
        self._wrong_guesses = 0  # calls in which what was assumed of the data did not hold

    def __call__(
        self, plain: types.CodeType | Callable[[], types.CodeType], namespace: dict[str, Any], closure: Any
    ) -> Callable[..., Any]:
        """The original as a function that is not captured. ``plain``: its code, or what makes it."""
        if not isinstance(plain, types.CodeType):
            plain = plain()
        _hook.mark(plain, "skip")
        watch = waiting_watch()
        if watch is not None:
            self._records.counters["floating_point_reruns"] += 1
            log.info("a floating-point error in the graph of %s: the original runs", plain.co_qualname)
            return watch.rerun(types.FunctionType(plain, namespace, plain.co_name, None, closure))
        self._records.counters["fallbacks"] += 1
        entry = self._entry()
        name = plain.co_qualname if entry is None else entry.payload.name
        log.info("the graph of %s raised: the original runs", name)
        if entry is not None and not self._breaks_next_time(entry):
            self._count(entry)
        return types.FunctionType(plain, namespace, plain.co_name, None, closure)

    def _entry(self) -> _hook.Entry | None:
        config = self._config()
        entries = [] if config is None else _hook.cache_entries(self._code, config)
        for entry in entries:
            if isinstance(entry.payload, EntryRecord) and entry.payload.fallback is self:
                return entry
        return None

    def _breaks_next_time(self, entry: _hook.Entry) -> bool:
        """Whether the entry is dropped, to be captured again with a break where its assumption fails."""
        record, config = entry.payload, self._config()
        env = record.assumed
        if env is None or config is None or not self.may_break:
            return False
        failed, env.failed = env.failed, None
        instruction = None if failed is None else env.instructions.get(failed.key)
        is_known = failed is not None if record.from_disk else instruction is not None
        if not is_known and (failed is not None or not self.presumes):
            return False
        self._wrong_guesses += 1
        held_once = self._wrong_guesses <= entry.hits
        if held_once and self._wrong_guesses < max(_ENOUGH, entry.hits / _OFTEN):
            return False
        if record.from_disk:
            config.not_from_disk.add(self._code)
            reason = "what was assumed of its data, in another process, does not hold here"
        elif instruction is None:  # it is not known which of the jumps goes otherwise, or whether one does
            found = {(code, index) for ref, index in self.presumed if (code := ref()) is not None}
            reason = "there are numbers that are not finite, or the graph raises for another reason"
            config.unusual.update(found)
        else:
            code = instruction[0]()
            if code is None or (code, instruction[1]) in config.failed_checks:
                return False
            reason = f"sizes that depend on the data are not as they usually are ({failed} does not hold)"
            config.failed_checks[code, instruction[1]] = Break("data-dependent-shape", reason)
        log.info("%s at %s is captured again: %s", record.name, record.loc, reason)
        _hook.drop_entry(self._code, config, entry)
        config.records.forget_entry(entry.payload)
        return True

    def _count(self, entry: _hook.Entry) -> None:
        number = entry.hits
        if number != self._awaited:
            self._in_row = self._rest = 0
            entry.payload.resting = ""
        self._in_row += 1
        self._awaited = number + 1
        if self._in_row < _ENOUGH:
            return
        self._rest = min(max(2 * self._rest, _FIRST_REST), _LONGEST_REST)
        entry.rests_until = self._awaited = number + 1 + self._rest
        record = entry.payload
        record.resting = (
            f"its graph raised in {self._in_row} calls in a row: the original runs, and the graph is tried "
            f"again after {self._rest} calls"
        )
        log.info("%s at %s: %s", record.name, record.loc, record.resting)


def resting(config: CaptureConfig) -> list[tuple[str, Loc, str]]:
    """The entries that rest now: names, places and why."""
    found = []
    for _, entries in _hook.all_entries(config):
        for entry in entries:
            record = entry.payload
            if entry.hits + 1 < entry.rests_until and isinstance(record, EntryRecord):
                found.append((record.name, record.loc, record.resting))
    return found
