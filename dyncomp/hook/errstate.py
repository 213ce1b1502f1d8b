"""NumPy's floating-point error state (``np.errstate``) as one integer."""

from __future__ import annotations

import numpy as np

from . import _hook

_MODES = ("ignore", "warn", "raise", "call", "print", "log")
_WARN = _MODES.index("warn")
_ERRORS = ("divide", "over", "under", "invalid")


def read_errstate() -> int:
    """NumPy's floating-point error modes as one integer (three bits each: divide, over, under, invalid)."""
    modes: dict[str, str] = dict(np.geterr())  # type: ignore[arg-type]
    mask = 0
    for position, error in enumerate(_ERRORS):
        mask |= _MODES.index(modes[error]) << (3 * position)
    return mask


def raises_floating_point_errors() -> bool:
    """Whether NumPy's error modes ask for more than warnings, or cannot be read."""
    mask = _hook.errstate()
    return mask is None or any((mask >> 3 * i) & 7 > _WARN for i in range(len(_ERRORS)))


def errstate_name(mask: int) -> str:
    """In words, as ``np.errstate``'s arguments."""
    return ", ".join(f"{e}={_MODES[(mask >> 3 * i) & 7]!r}" for i, e in enumerate(_ERRORS))
