"""Faults of dyncomp itself: the program goes on without compiled code, and each is counted and told.

What catches an error so that the program may go on asks :func:`is_fault`, and hands faults to :func:`note`.
"""

from __future__ import annotations

import traceback
from collections import Counter

from .errors import LoweringFault, RejectedCode, VerifyError
from .notices import warn_once

# The numbers behind ``stats()``, among them ``internal_errors``.
counters: Counter[str] = Counter()
_BUGS = (RejectedCode, LoweringFault, VerifyError, AssertionError, NameError)


def is_fault(error: BaseException) -> bool:
    """Whether ``error`` can only be dyncomp's own fault: no limit, nothing that the machine lacks."""
    return isinstance(error, _BUGS)


def note(place: str, error: BaseException, strict: bool) -> str:
    """Count a fault and tell of it once for each ``place``, which says what runs without compiled code; its
    traceback. Raises ``error`` where options are ``strict``."""
    text = "".join(traceback.format_exception(error))
    counters["internal_errors"] += 1
    if strict:
        raise error
    warn_once("fault", _message(place, error), place)
    return text


def _message(place: str, error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if "error:" in line), lines[0] if lines else "")
    return (
        f"there is a fault in dyncomp, and {place}. Results are right, but slow. Please report "
        f"this, with the program: {type(error).__name__}: {said[:300]}"
    )
