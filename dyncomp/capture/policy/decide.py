"""Whether and when to compile: the questions, in the order in which the way of a miss comes to them.

1. :func:`decide`, before anything is captured;
2. ``captured.refuse_idle`` and ``captured.is_worth_compiling``, when it is known what was captured, and
   ``trial.trial_of``, whether early calls are made both ways;
3. :func:`after_error`, where capture or compiling was refused or failed, else :func:`note_kept`.

What each looks at is in its own module; what things cost, in ``cost_model``.
"""

from __future__ import annotations

import types
from typing import Any

from ... import faults, notices
from ...errors import LoweringError, ToolchainError, Unsupported
from ...hook import _hook
from ...signals import is_from_handler
from ..breaks import Break, Skip
from ..entries.call_names import in_words, location
from ..entries.config import CaptureConfig
from ..entries.records import EntryRecord
from ..environment import replaced_builtins
from ..environment.other_compilers import is_foreign
from ..environment.regions import disabled_reason
from ..guards.guard import GuardRefused
from . import memory_budget, no_array_work, patience, recompilation
from .captured import PlainRecursion
from .decision import Compile, Plain, Until

_REFUSALS = (Skip, Break, Unsupported, GuardRefused, LoweringError, ToolchainError)


def decide(function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig) -> Compile | Plain:
    """What to do about a call that no entry serves. Where an entry is made for it, whichever, the capture is
    counted. Raises ``RecompileError`` where the stance forbids to compile again."""
    code = function.__code__
    disabled = disabled_reason(function)
    if disabled:
        return Plain(f"disabled: {disabled}", Until.FOREVER)
    if is_foreign(str(function.__globals__.get("__name__"))):
        return Plain("another compiler made it", Until.FOREVER)
    if patience.still_waits(code, config):
        return patience.WAITS
    if replaced_builtins.are_replaced():
        return Plain("builtins that capture needs are replaced", Until.NEXT_CALL)
    if not _is_hashable(code):
        return Plain("constants of its code cannot be hashed", Until.FOREVER)
    failure = recompilation.why_missed(function, args, config)
    plain = (
        recompilation.by_stance(function, args, config, failure)
        or patience.to_wait(function, args, config)
        or recompilation.over_limit(function, args, config, failure)
    )
    if plain is not None:
        return plain
    config.count_capture(code)
    if failure is None:
        return Compile()
    return no_array_work.left_alone(function, args, config) or Compile(in_words(str(failure)))


def _is_hashable(code: types.CodeType) -> bool:
    """Whether capture can remember things by code object: tools make any object a constant."""
    try:
        hash(code)
    except TypeError:
        return False
    return True


def after_error(error: Exception, code: types.CodeType, config: CaptureConfig) -> Plain:
    """What follows from a capture that ended in an error, for the handler of that error. Bugs of dyncomp are
    counted; an error that a signal's handler raised is the program's and raised again."""
    place = f"{code.co_qualname} at {location(code)} runs as plain Python"
    if isinstance(error, PlainRecursion):
        return Plain(error.reason, Until.FOREVER)
    if isinstance(error, _REFUSALS):
        if faults.is_fault(error):
            config.note_fault(place, error)
        elif isinstance(error, ToolchainError):
            notices.tell_of(error)
        calls = isinstance(error, Skip) and error.calls
        return Plain(getattr(error, "reason", None) or str(error), Until.OTHER_INPUTS, calls=calls)
    if isinstance(error, MemoryError):
        return Plain("no memory left while capturing", Until.NEXT_CALL)
    if isinstance(error, RecursionError):  # the program is deep in calls, or its objects are deeply nested
        return Plain("no stack left for capture", Until.OTHER_INPUTS)
    if is_from_handler(error):
        raise
    config.note_fault(place, error)  # which must never change what the program does
    return Plain(f"internal error: {type(error).__name__}: {error}", Until.OTHER_INPUTS)


def note_left(code: types.CodeType, config: CaptureConfig) -> None:
    """Count that the original runs for some inputs of ``code``, which could not be captured."""
    if config.is_loop_body(code):
        config.note_plain_body(code)
    no_array_work.note_outcome(config, code, len(_hook.cache_entries(code, config)) > 0, None)


def note_found(code: types.CodeType, config: CaptureConfig, entry: _hook.Entry, record: EntryRecord) -> None:
    """Count that an entry of ``code`` came from disk, and make room for it."""
    no_array_work.note_outcome(config, code, bool(record.missed), record.has_graph or None)
    config.records.waiting.discard(code)
    if entry.code is None:
        config.note_plain_body(code)
    elif record.has_graph:
        config.note_array_work(code)
    memory_budget.make_room(config, record.bytes)


def note_kept(code: types.CodeType, config: CaptureConfig, entry: _hook.Entry, record: EntryRecord) -> None:
    """Count that ``code`` was captured, and make room for the entry."""
    no_array_work.note_outcome(config, code, bool(record.missed), record.graph)
    patience.note_kept(config, code, record.graph)
    record.bytes = memory_budget.estimate(record, entry.code)
    memory_budget.make_room(config, record.bytes)
