"""Constructors of the library's immutable objects: dates, fractions, decimals, paths, UUIDs."""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import re
import uuid
from typing import Any

import numpy as np

from ..breaks import Break
from ..immutable.values import call_pure
from ..values.base import Tracer, Value
from .registry import HANDLERS

_D, _DT = datetime.date, datetime.datetime
_MADE_BY: tuple[Any, ...] = (
    *(_D, _DT, datetime.time, datetime.timedelta, datetime.timezone),
    *(_D.fromisoformat, _D.fromordinal, _DT.fromisoformat, _DT.fromordinal, _DT.combine),
    *(datetime.time.fromisoformat, decimal.Decimal, fractions.Fraction, decimal.Decimal.from_float),
    *(fractions.Fraction.from_float, fractions.Fraction.from_decimal, uuid.UUID),
    *(pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.Path, type(pathlib.Path())),
)


def _maker(function: Any) -> Any:
    def handler(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return call_pure(tracer, function, [], args, kwargs)

    return handler


for _function in _MADE_BY:
    HANDLERS[_function] = _maker(_function)


def _numpy_time(cls: type) -> Any:
    make = _maker(cls)

    def handler(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        first = args[0] if args else None
        if first is not None and first.is_const and isinstance(first.const, str):
            # "now" and "today" are read from the clock, and a time zone makes a warning
            if not _PLAIN_TIME.fullmatch(first.const):
                raise Break("unsupported-call", f"numpy.{cls.__name__}({first.const!r:.40})")
        found: Value = make(tracer, args, kwargs)
        return found

    return handler


_PLAIN_TIME = re.compile(r"NaT|[-+]?\d+(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d+)?)?)?)?)?)?", re.ASCII)
for _time in (np.datetime64, np.timedelta64):
    HANDLERS[_time] = _numpy_time(_time)
