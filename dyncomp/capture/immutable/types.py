"""The types of the standard library whose objects never change, and what of them only reads."""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import re
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dataclass import dataclass


@dataclass(frozen=True)
class FrozenType:
    """``methods`` and ``attributes`` depend on nothing but the object and the arguments. ``parts``: a
    function and arguments that make an equal object. ``operators``: whether arithmetic and comparisons are
    those of values. Objects from outside are guarded by ``look`` or else ``parts``, or by identity.
    """

    methods: frozenset[str]
    attributes: frozenset[str] = frozenset()
    parts: Callable[[Any], tuple[Any, ...]] | None = None
    operators: bool = False
    look: Callable[[Any], tuple[Any, ...]] | None = None

    @property
    def guarded_by(self) -> Callable[[Any], tuple[Any, ...]] | None:
        return self.look or self.parts


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _reduced(obj: Any) -> tuple[Any, ...]:
    function, args = obj.__reduce_ex__(4)[:2]  # older protocols leave out which of two equal times it is
    return function, *args


def _zone_parts(obj: datetime.timezone) -> tuple[Any, ...]:
    given: Any = obj
    return datetime.timezone, *given.__getinitargs__()


def _moment_look(obj: Any) -> tuple[Any, ...]:
    zone = obj.tzinfo
    return *_reduced(obj), *(_zone_parts(zone) if zone is not None else ())  # zones of two names may be equal


def _uuid_parts(obj: uuid.UUID) -> tuple[Any, ...]:
    return uuid.UUID, str(obj)


def _fraction_parts(obj: fractions.Fraction) -> tuple[Any, ...]:
    return fractions.Fraction, obj.numerator, obj.denominator


def _path_parts(obj: pathlib.PurePath) -> tuple[Any, ...]:
    return type(obj), str(obj)


def _match_look(obj: re.Match[Any]) -> tuple[Any, ...]:
    return obj.re, obj.string, obj.regs, obj.pos, obj.endpos


def _numpy_time_parts(obj: Any) -> tuple[Any, ...]:
    unit, count = np.datetime_data(obj.dtype)
    return type(obj), int(obj.view(np.int64)), f"{count}{unit}"


def is_known(obj: Any) -> bool:
    """Whether what is known of the type holds for the object: its time zone and the like are such, too."""
    if type(obj) is re.Match:
        return type(obj.string) in (str, bytes)
    if type(obj) in (datetime.datetime, datetime.time):
        return type(obj.tzinfo) in (type(None), datetime.timezone)
    if type(obj) in NUMPY_TIMES:
        return np.datetime_data(obj.dtype)[0] != "generic"
    if type(obj) is decimal.Decimal:
        return not obj.is_nan()  # hashed by its identity, and a signalling one raises where it is compared
    return type(obj) is not uuid.UUID or obj.is_safe is uuid.SafeUUID.unknown


_DATE = "weekday isoweekday toordinal isoformat replace ctime"
_TIME = "isoformat replace utcoffset dst tzname"
_NUMBER = "__floor__ __ceil__ __trunc__ conjugate as_integer_ratio"
_PATH = (
    "joinpath with_name with_suffix with_stem as_posix is_absolute relative_to is_relative_to match"
    " __fspath__"
)
_PATH_ATTRIBUTES = "parts drive root anchor name suffix suffixes stem parent"
_DECIMAL = (
    f"{_NUMBER} as_tuple adjusted is_finite is_infinite is_nan is_signed is_zero is_normal quantize sqrt ln"
    " log10 exp normalize to_integral_value to_integral copy_abs copy_negate copy_sign max min compare scaleb"
    " same_quantum"
)

NUMPY_TIMES = (np.datetime64, np.timedelta64)
KNOWN: dict[type, FrozenType] = {
    re.Match: FrozenType(
        _names("group groups groupdict start end span expand __getitem__"),
        _names("string pos endpos lastindex lastgroup re regs"),
        look=_match_look,
    ),
    re.Pattern: FrozenType(
        _names("match search fullmatch findall split sub subn"), _names("pattern flags groups")
    ),
    datetime.date: FrozenType(_names(_DATE), _names("year month day"), _reduced, True),
    datetime.datetime: FrozenType(
        _names(f"{_DATE} {_TIME} date time timetz"),
        _names("year month day hour minute second microsecond fold tzinfo"),
        _reduced,
        True,
        _moment_look,
    ),
    datetime.time: FrozenType(
        _names(_TIME), _names("hour minute second microsecond fold tzinfo"), _reduced, True, _moment_look
    ),
    datetime.timedelta: FrozenType(
        _names("total_seconds"), _names("days seconds microseconds"), _reduced, True
    ),
    datetime.timezone: FrozenType(_names("utcoffset tzname dst"), frozenset(), _zone_parts, True),
    decimal.Decimal: FrozenType(_names(_DECIMAL), _names("real imag"), _reduced, True),
    fractions.Fraction: FrozenType(
        _names(f"{_NUMBER} limit_denominator is_integer"),
        _names("numerator denominator real imag"),
        _fraction_parts,
        True,
    ),
    uuid.UUID: FrozenType(
        frozenset(),
        _names("int hex bytes bytes_le fields urn version variant time node clock_seq time_low time_mid"),
        _uuid_parts,
        True,
    ),
    **{
        cls: FrozenType(_names(_PATH), _names(_PATH_ATTRIBUTES), _path_parts, True)
        for cls in (pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path()))
    },
    **{cls: FrozenType(_names("item"), frozenset(), _numpy_time_parts, True) for cls in NUMPY_TIMES},
}
