"""Faults of dyncomp itself: the program goes on without compiled code, and each is counted and told.

What catches an error so that the program may go on asks :func:`is_fault`, and hands faults to :func:`note`.
"""

from __future__ import annotations

import logging
import traceback
import warnings
from collections import Counter

from .errors import LoweringFault, RejectedCode, VerifyError

log = logging.getLogger("dyncomp")

# The numbers behind ``stats()``, among them ``internal_errors``.
counters: Counter[str] = Counter()
_BUGS = (RejectedCode, LoweringFault, VerifyError, AssertionError, NameError)
_told: set[str] = set()
_MOST_TOLD = 1000


def is_fault(error: BaseException) -> bool:
    """Whether ``error`` can only be dyncomp's own fault: no limit, nothing that the machine lacks."""
    return isinstance(error, _BUGS)


def note(place: str, error: BaseException, strict: bool) -> str:
    """Count a fault and warn of it once for each ``place``, which says what runs without compiled code; its
    traceback. Raises ``error`` where options are ``strict``."""
    text = "".join(traceback.format_exception(error))
    counters["internal_errors"] += 1
    if strict:
        raise error
    if place not in _told and len(_told) < _MOST_TOLD:
        _told.add(place)
        try:
            warnings.warn(_message(place, error), RuntimeWarning, stacklevel=2)
        except RuntimeWarning as warning:  # by the program's filters; what is wrong is not the program
            log.warning("%s", warning)
    return text


def forget() -> None:
    """Tell of everything again."""
    _told.clear()


def _message(place: str, error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if "error:" in line), lines[0] if lines else "")
    return (
        f"dyncomp has a fault and {place}. Results are right, but slow. Please report "
        f"this, with the program: {type(error).__name__}: {said[:300]}"
    )
