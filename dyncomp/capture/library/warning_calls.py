"""``warnings.warn``: the warning is given when the captured part ends, in the name of the line that gives it.

The graph breaks where a filter makes an exception of it, as the program does not go on there, and where
warnings are recorded (``catch_warnings(record=True)``) or shown by the program, which may look at them.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from ..breaks import Break
from ..effects import defer
from ..entries.config import is_own_code
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind
from ..guards.source import ConstSource
from ..values.base import Frame, Tracer, Value
from ..values.number import ConstValue
from .registry import NONE, builtin

_SHOWS = "_showwarnmsg_impl"  # a recording block puts another function in its place
# text, category, file, line, module
Warned = tuple[str, type[Warning], str, int, str]


def is_only_shown(module: Any, expected: Warned) -> bool:
    """The guard that a warning is written to the standard error stream, or not shown."""
    shows = module._showwarnmsg_impl
    if module.showwarning is not module._showwarning_orig or getattr(shows, "__name__", "") != _SHOWS:
        return False
    text, category, _, line, name = expected
    for action, message, kind, place, number in module.filters:
        fits = (message is None or message.match(text)) and issubclass(category, kind)
        if fits and (place is None or place.match(name)) and number in (0, line):
            return bool(action != "error")
    return bool(module.defaultaction != "error")


def give(text: str, category: type[Warning], file: str, line: int, name: str) -> None:
    """As ``warnings.warn`` at that line."""
    registry = vars(sys.modules[name]).setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, file, line, name, registry)


@builtin(warnings.warn, keywords=("message", "category", "stacklevel", "source"))
def _warn(
    tracer: Tracer,
    message: Value,
    category: Value = NONE,
    stacklevel: Value | None = None,
    source: Value = NONE,
    **rest: Value,
) -> Value:
    text = tracer.constant_of(message, "a warning")
    kind = tracer.constant_of(category, "a warning's category")
    level = 1 if stacklevel is None else tracer.constant_of(stacklevel, "stacklevel")
    kind = UserWarning if kind is None else kind
    usual = type(text) is str and isinstance(kind, type) and issubclass(kind, Warning) and source is NONE
    if not usual or rest or type(level) is not int or not 1 <= level <= _frames_seen(tracer):
        raise Break("unsupported-call", "a warning in the name of a frame around what is captured")
    warned = _in_the_name_of(tracer.frames[-level], text, kind)
    if tracer.filter_blocks or not is_only_shown(warnings, warned):
        raise Break("unsupported-call", "a warning that is raised or recorded")
    check = CustomCheck(is_only_shown, warned, f"warnings are only shown, {kind.__name__} too: {text:.40}")
    tracer.guard(ConstSource(warnings, "warnings"), Kind.CUSTOM_ARRAY, check)
    defer(tracer, give, [ConstValue(part) for part in warned], {})
    return NONE


def _frames_seen(tracer: Tracer) -> int:
    """How many of the captured frames, from the innermost out, plain Python has too."""
    own = (is_own_code(str(frame.globals[0].get("__name__"))) for frame in reversed(tracer.frames))
    return next((count for count, is_own in enumerate(own) if is_own), len(tracer.frames))


def _in_the_name_of(frame: Frame, text: str, kind: type[Warning]) -> Warned:
    names = frame.globals[0]
    name, line = names.get("__name__"), frame.code.instructions[frame.current].loc.line
    module = sys.modules.get(name) if type(name) is str else None
    if module is None or type(name) is not str or vars(module) is not names or line is None:
        raise Break("unsupported-call", "a warning given by code that belongs to no module")
    return text, kind, frame.raw_code.co_filename, line, name
