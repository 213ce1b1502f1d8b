"""What users are told once (until ``reset()``): why functions run as plain Python, or otherwise than
they were asked to, and what to do about it.

It is logged, as a warning of the logger ``dyncomp`` (on standard error unless the program says otherwise),
not raised by ``warnings``: the program may count or forbid those, and behaves as it does in plain Python.
"""

from __future__ import annotations

import difflib
import logging
from collections import Counter
from collections.abc import Iterable, Mapping

from .errors import SetupError, ToolchainError

log = logging.getLogger("dyncomp")

# how often each kind of thing happened since ``reset()``: ``stats()["notices"]``
COUNTS: Counter[str] = Counter()
_TOLD: set[tuple[str, str]] = set()
_MOST_TOLD = 1000

# variables that are no options, and families of names that tests and builds use
_VARIABLES = (
    *("DYNCOMP_CACHE_DIR", "DYNCOMP_CACHE_SIZE_MB", "DYNCOMP_FORCE_DISABLE_CACHES", "DYNCOMP_CXX"),
    *("DYNCOMP_REPRO", "DYNCOMP_REPRO_DIR"),
    *("DYNCOMP_MARCH", "DYNCOMP_LOGS", "DYNCOMP_OWN_THREADS", "DYNCOMP_PROFILE_ORIGINAL"),
)
_PREFIX = "DYNCOMP_"
_OF_DEVELOPERS = ("TEST_", "RANDOM", "UPDATE_GOLDEN", "CROSS_CXX", "DEBUG", "SANITIZE")


def warn_once(kind: str, message: str, about: str = "") -> None:
    """Count what happened under ``kind``; log ``message`` if there was none ``about`` the same (by default:
    that message) in this process."""
    COUNTS[kind] += 1
    key = (kind, about or message)
    if key not in _TOLD and len(_TOLD) < _MOST_TOLD:
        _TOLD.add(key)
        log.warning("dyncomp: %s", message)


def forget() -> None:
    """Count anew, and tell of everything again."""
    COUNTS.clear()
    _TOLD.clear()


def setup_error(kind: str, problem: str, about: str = "") -> SetupError:
    """The exception for what keeps all code from being compiled on this computer; the user is told."""
    warn_once(kind, f"{problem}: functions run as plain Python", about)
    return SetupError(problem)


def tell_of(error: ToolchainError) -> None:
    """The user is told of what kept code from being compiled, if not before: the disk is full, the compiler
    ran out of memory or took for ever."""
    if not isinstance(error, SetupError):
        first = str(error).strip().partition("\n")[0]
        warn_once("compiler", f"{first[:300]}: functions run as plain Python", "one build")


def check_variables(environ: Mapping[str, str], options: Iterable[str]) -> None:
    """Tell of ``DYNCOMP_*`` variables that nothing reads; ``options``: those that variables set."""
    known = [*(name.removeprefix(_PREFIX) for name in _VARIABLES), *map(str.upper, options)]
    for variable in environ:
        name = variable.removeprefix(_PREFIX)
        if name == variable or name in known or name.startswith(_OF_DEVELOPERS):
            continue
        close = difflib.get_close_matches(name, known, 1)
        listed = "docs/using.md and docs/advanced.md list those that there are"
        hint = f"did you mean {_PREFIX}{close[0]}?" if close else listed
        warn_once("variables", f"the environment variable {variable} means nothing and is ignored ({hint})")
    size = environ.get("DYNCOMP_CACHE_SIZE_MB", "")
    if size and not size.isdigit():
        warn_once(
            "variables", f"DYNCOMP_CACHE_SIZE_MB must be a number of megabytes, not {size!r}: it is ignored"
        )
