"""Programs of small arrays in many pieces: what has not run for long waits with its capture.

A piece costs some milliseconds of capture, and with a graph some dozens of the C++ compiler; work on a few
numbers between two graph breaks may never earn that. So the first pieces of a configuration are captured as
they come. When these have cost a good part of a second, and no array was large, others run as they are until
they took as long as a capture would gain in time (the old question of renting or buying skis). What has loops
is never kept waiting: one call of it may be all of the program's work.

The same holds for a function that is compiled anew again and again (a small objective, made in a loop): each
``compile`` call is a configuration of its own, so what captures of equal code cost under earlier ones counts.
"""

from __future__ import annotations

import contextlib
import math
import types
import weakref
from collections import Counter
from typing import Any

from ...errors import Unsupported
from ...graph.ir import Graph
from ...hook import _hook
from ...python_code.continuation import place_of
from ...python_code.flow import reachable, successors
from ...python_code.instr import CanonicalCode
from ..entries.call_names import name_of_call, place_of_call
from ..entries.config import CaptureConfig
from ..environment.regions import breaks_are_errors
from ..frames import code_info
from . import cost_model
from .decision import Plain, Until
from .no_array_work import arrays_in
from .stance import STANCES

_DEFAULT_STANCE = STANCES.index("default")
# what it is is said in ``Records.waiting``
WAITS = Plain("", Until.IT_RAN_LONG, _hook.Entry(None, None, needs_hook=True, rank=-1))


# By code and options: milliseconds that captures took under all configurations. Code goes with the program's.
_SPENT: weakref.WeakKeyDictionary[types.CodeType, Counter[tuple[Any, ...]]] = weakref.WeakKeyDictionary()


def forget() -> None:
    """Have no function be one that was compiled before."""
    _SPENT.clear()


def note_kept(config: CaptureConfig, code: types.CodeType, graph: Graph | None) -> None:
    """Count that ``code`` was captured, and compiled as ``graph``."""
    config.records.waiting.discard(code)
    cost = cost_model.capture_ms(graph)
    config.spent_ms += cost
    if not config.is_private and config.options.patience_us:
        _SPENT.setdefault(code, Counter())[config.options.key()] += cost
    if graph is not None:
        config.has_large_work |= cost_model.works_on_much(graph, config.table)


def still_waits(code: types.CodeType, config: CaptureConfig) -> bool:
    """Whether a capture of ``code`` that was put off is put off once more. What a call brings is not looked
    at again: where that is much, the wait is soon over."""
    if code not in config.records.waiting or config.has_large_work or not _may_wait(config):
        return False
    return _hook.waited(code, config) < _patience_ns(code, config)


def to_wait(function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig) -> Plain | None:
    """For a miss: whether the original runs this once, as the capture has to wait."""
    code = function.__code__
    spent = max(config.spent_ms, _spent_on(code, config))
    if spent < cost_model.FREE_MS or config.has_large_work or not _may_wait(config):
        return None
    patience = _patience_ns(code, config)
    if _hook.waited(code, config) >= patience or _runs_loops(code, config) or _brings_much(args, config):
        config.records.waiting.discard(code)
        return None
    why = (
        "small arrays in many pieces" if config.spent_ms >= cost_model.FREE_MS else "compiled anew many times"
    )
    reason = f"waits with its capture until it ran for {patience / 1e6:g} ms: {why}"
    config.records.waiting[code] = (name_of_call(function, args), place_of_call(function, args), reason)
    return WAITS


def _spent_on(code: types.CodeType, config: CaptureConfig) -> int:
    """What captures of equal code took, under this configuration and others of the same options."""
    return _SPENT[code][config.options.key()] if code in _SPENT else 0


def _patience_ns(code: types.CodeType, config: CaptureConfig) -> int:
    return config.options.patience_us * 1000 * (1 + config.state_of(code).captures)


def _may_wait(config: CaptureConfig) -> bool:
    """Whether plain Python in place of compiled code would neither be an error nor a surprise."""
    options = config.options
    if not options.measure or options.backend != "inductor" or options.mode == "max-autotune":
        return False
    asked = options.fullgraph or options.capture_plain or breaks_are_errors()
    return not asked and _hook.get_stance() == _DEFAULT_STANCE


def _brings_much(args: tuple[Any, ...], config: CaptureConfig) -> bool:
    for arg in args:
        for frontend, array in arrays_in(arg, config):
            with contextlib.suppress(Unsupported):
                if math.prod(frontend.describe(array).shape) > cost_model.MUCH:
                    return True
    return False


def _runs_loops(raw: types.CodeType, config: CaptureConfig) -> bool:
    place = place_of(config, raw)
    return _loops_from(code_info(config, raw).code, 0 if place is None else place.at)


def _loops_from(code: CanonicalCode, start: int) -> bool:
    instructions = code.instructions
    return any(after <= at for at in reachable(code, start) for after in successors(instructions[at]))
