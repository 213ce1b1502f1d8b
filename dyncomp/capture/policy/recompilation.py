"""Compiling a code object again: why, how often, and what is said when it has been too often.

Before giving up, the guard that keeps failing is generalised where it can be: sizes, ints and floats become
symbolic the second time that another value is seen (``wrap.is_dynamic``), wherever they were read from.
"""

from __future__ import annotations

import contextlib
import types
from collections import Counter
from typing import Any

from ...dataclass import dataclass
from ...errors import GraphBreakError, RecompileError, Unsupported
from ...hook import _hook
from ..entries.call_names import in_words, name_of_call, place_of_call
from ..entries.config import CaptureConfig, FrameState
from ..entries.records import log
from ..guards.guard import Failure, Guard, Kind, find_failure
from ..guards.source import ItemSource, LocalSource, Source
from .decision import Plain, Until
from .stance import STANCES

_EAGER_THEN_COMPILE = STANCES.index("eager_then_compile")
_FAIL_ON_RECOMPILE = STANCES.index("fail_on_recompile")


@dataclass(frozen=True)
class Attribution:
    """The guard that made most of the misses, and the values that it met last."""

    guard: Guard
    count: int
    values: tuple[str, ...]


def why_missed(function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig) -> Failure | None:
    """Which guard of the entry used last failed; ``None`` for the first capture."""
    guarded = [e for e in _hook.cache_entries(function.__code__, config) if e.guards is not None]
    if not guarded:
        return None
    program = max(guarded, key=lambda entry: entry.last_hit).guards
    assert program is not None
    return find_failure(
        program, args, function.__globals__, builtins_of(function), function.__closure__
    ) or Failure(None, "")


def builtins_of(function: Any) -> dict[str, Any]:
    found = function.__builtins__
    return found if isinstance(found, dict) else vars(found)


# -- stances ----------------------------------------------------------------------------------------
def by_stance(
    function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig, failure: Failure | None
) -> Plain | None:
    """Whether the stance has this call run the original; raises where it forbids to compile again."""
    stance = _hook.get_stance()
    code = function.__code__
    state = config.state_of(code)
    if stance == _FAIL_ON_RECOMPILE and failure is not None:
        raise RecompileError(_forbidden(function, args, failure))
    if stance == _EAGER_THEN_COMPILE and not state.captures and not state.observed:
        state.observed = True
        _observe_arguments(function, args, config, state)
        return Plain("", Until.NEXT_CALL)
    return None


def _forbidden(function: types.FunctionType, args: tuple[Any, ...], failure: Failure) -> str:
    where = f"{name_of_call(function, args)} at {place_of_call(function, args)}"
    guard = failure.guard
    assumed = f" (assumed at {guard.loc})" if guard is not None and guard.loc is not None else ""
    return f"{where} would be compiled again under the stance 'fail_on_recompile': {failure}{assumed}"


def _observe_arguments(
    function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig, state: FrameState
) -> None:
    """Remember sizes and numbers, so that the first capture knows which of them change."""
    for index, (name, obj) in enumerate(zip(function.__code__.co_varnames, args)):
        _observe(obj, LocalSource(name, index), config, state, depth=3)


def _observe(obj: Any, source: Source, config: CaptureConfig, state: FrameState, depth: int) -> None:
    if type(obj) in (int, float):
        state.seen.setdefault((source.expr(), type(obj)), obj)
    elif type(obj) in (list, tuple) and depth and len(obj) <= 64:
        for index, item in enumerate(obj):
            _observe(item, ItemSource(source, index), config, state, depth - 1)
    elif type(obj) is dict and depth and len(obj) <= 64:
        for key, item in obj.items():
            if type(key) in (str, int):
                _observe(item, ItemSource(source, key), config, state, depth - 1)
    else:
        _observe_array(obj, source, config, state)


def _observe_array(obj: object, source: Source, config: CaptureConfig, state: FrameState) -> None:
    for frontend in config.frontends:
        if type(obj) in frontend.array_types or frontend.accepts(type(obj)):
            with contextlib.suppress(Unsupported):
                state.seen[f"{source.expr()}.shape"] = frontend.describe(obj).shape
            return


# -- the limit ----------------------------------------------------------------------------------------
def over_limit(
    function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig, failure: Failure | None
) -> Plain | None:
    """Count a miss; past a limit, which is said once, the original runs for inputs that no entry serves."""
    code = function.__code__
    state = config.state_of(code)
    whole = config.state_of(config.function_of(code))
    if failure is not None:
        state.misses.append(failure)
    options = config.options
    if state.captures > options.recompile_limit:
        name, limit = "recompile_limit", options.recompile_limit
    elif not config.is_private and _hook.num_entries(code) >= options.accumulated_recompile_limit:
        name, limit = "accumulated_recompile_limit", options.accumulated_recompile_limit
    elif whole.pieces >= options.capture_limit:
        name, limit = "capture_limit", options.capture_limit
    else:
        return None
    if config.holder is not None:
        # plain Python that is not the original runs then: whoever calls knows what
        raise GraphBreakError(f"{code.co_qualname}: {limit} forms are compiled, the limit")
    if name == "capture_limit" and whole.limited:
        return Plain("", Until.AN_ENTRY_SERVES)  # it was said of another piece
    whole.limited = name == "capture_limit"
    text = _limit_text(state, name, limit)
    config.records.counters["limited"] += 1
    log.warning("%s at %s: %s", name_of_call(function, args), place_of_call(function, args), text)
    return Plain(text, Until.AN_ENTRY_SERVES)


_LIMIT = "recompilation limit ({limit}) reached, see options['{name}']: for other inputs the original runs"
_LIMITS = {
    "capture_limit": "{limit} pieces of the function are compiled, the limit: for other inputs, and where no "
    "compiled piece goes on, the original runs, see options['{name}']"
}


def _limit_text(state: FrameState, name: str, limit: int) -> str:
    lines = [_LIMITS.get(name, _LIMIT).format(name=name, limit=limit)]
    blamed = most_frequent(state.misses)
    if blamed is not None:
        times = f"{blamed.count} of {len(state.misses)} times"
        lines.append(f"    the guard that kept failing ({times}): {blamed.guard}")
        if blamed.guard.loc is not None:
            lines.append(f"    assumed at: {blamed.guard.loc}")
        lines.append(f"    the last two values: {' and then '.join(blamed.values)}")
        lines.append(f"    what to do: {advice(blamed.guard)}")
    return in_words("\n".join(lines))


def most_frequent(misses: list[Failure]) -> Attribution | None:
    """The guard that failed most often; guards are the same when they say the same kind of thing of the
    same place."""
    known = [m for m in misses if m.guard is not None]
    if not known:
        return None
    counts = Counter(_place(m.guard) for m in known)
    place, count = max(counts.items(), key=lambda item: item[1])
    own = [m for m in known if _place(m.guard) == place]
    newest = own[-1].guard
    assert newest is not None
    values = [m.found or "nothing" for m in own]
    return Attribution(newest, count, tuple(values[-2:]))


def _place(guard: Guard | None) -> tuple[str, str]:
    assert guard is not None
    return ("" if guard.source is None else guard.source.expr(), str(guard.kind))


_ADVICE = {
    Kind.EQUALS: "each value of {place} gets compiled code of its own: pass fewer different values, or read "
    "it outside of the compiled function",
    Kind.IS: "{place} is another object each time: make it once and use it again",
    Kind.CODE_IS: "{place} is another function each time: define it once, outside of the loop",
    Kind.LEN: "{place} has another length each time: pass an array instead",
    Kind.DICT_KEYS: "{place} has other keys each time: pass an array or fixed names instead",
    Kind.ARRAY: "{place} has another dtype, rank or shape each time: convert it before the call, or pass "
    "dynamic=True for shapes",
    Kind.TORCH_TENSOR: "{place} has another dtype, rank or shape each time: convert it before the call, or "
    "pass dynamic=True for shapes",
    Kind.TYPE_IS: "{place} is of another type each time: convert it before the call",
    Kind.NUMPY_SCALAR: "{place} is of another type each time: convert it before the call",
    Kind.SYM: "the program branches on sizes or integers: use the same branch for all, or split the function",
    Kind.NO_OVERLAP: "arguments share memory in some calls: pass copies",
    Kind.DISTINCT: "two of many objects are the same one in some calls: split the function",
    Kind.OVERLAP: "arguments share memory in some calls: pass copies",
    Kind.REGION: "calls come from regions that allow graph breaks and from others: take the breaks out",
}


_FIXED = (
    "the program uses {place} as a constant (the length of a list, an axis, a key): pass fewer different "
    "values, or use an array"
)


def advice(guard: Guard) -> str:
    """What a user can do about a guard that fails."""
    place = guard.source.expr() if guard.source is not None else ""
    if guard.kind is Kind.SYM and guard.expected.relation == "==" and len(guard.expected.bindings) == 1:
        fixed = guard.expected.bindings[0].expr()
        return f"{_FIXED.format(place=fixed)}. More compiled forms are kept with a higher limit."
    text = _ADVICE.get(guard.kind, "make what changes an argument of array type")
    return f"{text.format(place=place)}. More compiled forms are kept with a higher limit."
