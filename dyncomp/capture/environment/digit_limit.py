"""How many digits numbers may have that become text, or are made of it: a setting of the interpreter."""

from __future__ import annotations

import sys
from typing import Any

from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind
from ..guards.source import ConstSource
from ..values.base import Tracer

_FREE = sys.int_info.str_digits_check_threshold  # up to here no setting matters
_FREE_BITS = (10**_FREE).bit_length()


def check_limit(tracer: Tracer, outcome: object) -> None:
    """Guard the setting where what was computed at capture may be due to it."""
    if not _may_depend(outcome):
        return
    limit = sys.get_int_max_str_digits()
    check = CustomCheck(is_limit, limit, f"at most {limit} digits of integers as text")
    tracer.guard(ConstSource(sys, "sys"), Kind.CUSTOM_ARRAY, check)


def _may_depend(outcome: Any) -> bool:
    if type(outcome) in (str, bytes):
        return len(outcome) > _FREE
    if type(outcome) is int:
        return outcome.bit_length() >= _FREE_BITS
    if type(outcome) in (tuple, list):
        return any(map(_may_depend, outcome))
    return type(outcome) is ValueError and str(outcome).startswith("Exceeds the limit")


def is_limit(module: object, expected: int) -> bool:
    """The guard of the setting."""
    return sys.get_int_max_str_digits() == expected
