"""What users are told once per process: why their functions run as plain Python, or otherwise than they asked for,
and what to do about it.

It is logged, as a warning of the logger ``dyncomp`` (on standard error unless the program says otherwise), and not
raised by ``warnings``: the program may count or forbid those, and has to behave as it would in plain Python.
"""

from __future__ import annotations

import difflib
import logging
from collections import Counter
from collections.abc import Iterable, Mapping

from .errors import SetupError

log = logging.getLogger("dyncomp")

# how often each kind of thing happened since ``reset()``: ``stats()["notices"]``
COUNTS: Counter[str] = Counter()
_TOLD: set[tuple[str, str]] = set()

# variables that are no options, and families of names that tests and builds use
_VARIABLES = (
    *("DYNCOMP_CACHE_DIR", "DYNCOMP_CACHE_SIZE_MB", "DYNCOMP_FORCE_DISABLE_CACHES", "DYNCOMP_CXX"),
    *("DYNCOMP_MARCH", "DYNCOMP_LOGS", "DYNCOMP_OWN_THREADS", "DYNCOMP_PROFILE_ORIGINAL"),
)
_OF_DEVELOPERS = (
    *("DYNCOMP_TEST_", "DYNCOMP_RANDOM", "DYNCOMP_UPDATE_GOLDEN", "DYNCOMP_CROSS_CXX"),
    *("DYNCOMP_DEBUG", "DYNCOMP_SANITIZE"),
)


def warn_once(kind: str, message: str, about: str = "") -> None:
    """Count what happened under ``kind``; log ``message`` if there was none ``about`` the same (by default: that
    message) in this process."""
    COUNTS[kind] += 1
    key = (kind, about or message)
    if key not in _TOLD:
        _TOLD.add(key)
        log.warning("dyncomp: %s", message)


def setup_error(kind: str, problem: str, about: str = "") -> SetupError:
    """The exception for what keeps all code from being compiled on this computer; the user is told."""
    warn_once(kind, f"{problem}: functions run as plain Python", about)
    return SetupError(problem)


def check_variables(environ: Mapping[str, str], options: Iterable[str]) -> None:
    """Tell of ``DYNCOMP_*`` variables that nothing reads; ``options``: those that variables set."""
    known = [*_VARIABLES, *(f"DYNCOMP_{name.upper()}" for name in options)]
    for name in environ:
        if not name.startswith("DYNCOMP_") or name in known or name.startswith(_OF_DEVELOPERS):
            continue
        close = difflib.get_close_matches(name[8:], [other[8:] for other in known], 1)
        hint = f"did you mean DYNCOMP_{close[0]}?" if close else "docs/using.md lists those that there are"
        warn_once("variables", f"the environment variable {name} means nothing and is ignored ({hint})")
    size = environ.get("DYNCOMP_CACHE_SIZE_MB", "")
    if size and not size.isdigit():
        warn_once("variables", f"DYNCOMP_CACHE_SIZE_MB must be a number of megabytes, not {size!r}: it is ignored")
