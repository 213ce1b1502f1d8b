"""``print`` and logging.

What is printed to the interpreter's own standard output is written when the captured part ends: nobody in the
process reads that. A stream that the program put there may be read, so that writing to it breaks the graph.
"""

from __future__ import annotations

import builtins
import io
import logging
import sys
from typing import Any

from ..breaks import Break
from ..calls.texts import as_it_is_now, text_of
from ..effects import defer
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind
from ..guards.source import ConstSource
from ..values.array import ArrayValue
from ..values.base import Tracer, Value
from ..values.number import ConstValue, TextValue
from ..values.obj import InstanceValue
from .registry import NONE, builtin


@builtin(builtins.print)
def _print(tracer: Tracer, *args: Value, **kwargs: Value) -> Value:
    if not set(kwargs) <= {"sep", "end"} or not writes_unseen(sys, None):
        raise Break("print", "a call of print")
    texts = [_printed(tracer, arg) for arg in args]
    between = {name: _separator(tracer, value) for name, value in kwargs.items()}
    check = CustomCheck(writes_unseen, None, "sys.stdout is the interpreter's own")
    tracer.guard(ConstSource(sys, "sys"), Kind.CUSTOM_ARRAY, check)
    defer(tracer, builtins.print, texts, between)
    return NONE


def writes_unseen(module: Any, expected: None) -> bool:
    """The guard of the stream that is printed to."""
    stream = module.stdout
    if stream is not module.__stdout__ or type(stream) is not io.TextIOWrapper:
        return False
    return not stream.closed and stream.encoding.lower() in ("utf-8", "utf8")


def _separator(tracer: Tracer, value: Value) -> Value:
    text = tracer.constant_of(value, "a separator of print")
    if text is not None and type(text) is not str:
        raise Break("print", "print with a separator that is no string")
    return ConstValue(_encodable(text))


def _printed(tracer: Tracer, value: Value) -> Value:
    """What ``print`` is to be given later: the text, or an array as it is now."""
    value = tracer.realize(value)
    if isinstance(value, ArrayValue):
        if value.ref.frontend != "numpy" or value.ref.kind == "masked":
            raise Break("print", f"{value.describe()} is printed")
        return as_it_is_now(tracer, value)
    try:
        text = text_of(tracer, str, value)
    except Break as problem:
        raise Break("print", f"a call of print: {problem.reason}") from None
    _encodable(text.hint if isinstance(text, TextValue) else tracer.constant_of(text, "what is printed"))
    return text


def _encodable(text: Any) -> Any:
    try:
        b"" if text is None else text.encode()
    except UnicodeEncodeError:
        raise Break("print", "a call of print with a text that cannot be encoded") from None
    return text


# -- logging --------------------------------------------------------------------------------------------
def is_enabled(logger: Any, expected: tuple[int, bool]) -> bool:
    """The guard of whether a logger passes a level on."""
    level, enabled = expected
    return bool(logger.isEnabledFor(level)) is enabled


def _enabled_for(tracer: Tracer, logger: Value, level: Any) -> bool:
    if not isinstance(logger, InstanceValue) or logger.source is None or logger.mutated:
        raise Break("print", f"a logging call of {logger.describe()}")
    asked: Any = logger.cls
    if asked.isEnabledFor is not logging.Logger.isEnabledFor or type(level) is not int:
        raise Break("print", f"a logging call of {logger.describe()}")
    enabled = bool(logger.obj.isEnabledFor(level))
    words = "passes" if enabled else "drops"
    check = CustomCheck(is_enabled, (level, enabled), f"the logger {words} {logging.getLevelName(level)}")
    tracer.guard(logger.source, Kind.CUSTOM_ARRAY, check)
    return enabled


def _log(tracer: Tracer, logger: Value, level: int) -> Value:
    """A message that the logger drops has no effect, whatever it says."""
    if _enabled_for(tracer, logger, level):
        raise Break("print", f"a message is logged at level {logging.getLevelName(level)}")
    return NONE


def _logging_method(level: int) -> Any:
    def method(tracer: Tracer, logger: Value, *args: Value, **kwargs: Value) -> Value:
        return _log(tracer, logger, level)

    return method


_LEVELS = {
    logging.Logger.debug: logging.DEBUG,
    logging.Logger.info: logging.INFO,
    logging.Logger.warning: logging.WARNING,
    logging.Logger.error: logging.ERROR,
    logging.Logger.critical: logging.CRITICAL,
}
for _method, _level in _LEVELS.items():
    builtin(_method)(_logging_method(_level))


@builtin(logging.Logger.log)
def _log_at(tracer: Tracer, logger: Value, level: Value, *args: Value, **kwargs: Value) -> Value:
    return _log(tracer, logger, tracer.constant_of(level, "a logging level"))


@builtin(logging.Logger.isEnabledFor)
def _is_enabled_for(tracer: Tracer, logger: Value, level: Value) -> Value:
    return ConstValue(_enabled_for(tracer, logger, tracer.constant_of(level, "a logging level")))
