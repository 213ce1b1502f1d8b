"""Exceptions that a handler of signals raised during capture or compilation: they are the program's."""

from __future__ import annotations

import functools
import signal
import traceback
import types


def is_from_handler(error: BaseException) -> bool:
    """Whether a handler of signals that is now installed raised ``error``, as those of time limits do. It may
    come at any instruction, also while dyncomp works for the program."""
    codes = {code for number in signal.valid_signals() if (code := _code_of(signal.getsignal(number)))}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def _code_of(handler: object) -> types.CodeType | None:
    while isinstance(handler, functools.partial):
        handler = handler.func
    if isinstance(handler, types.MethodType):
        handler = handler.__func__
    if not isinstance(handler, types.FunctionType):
        handler = vars(type(handler)).get("__call__")
    return handler.__code__ if isinstance(handler, types.FunctionType) else None
