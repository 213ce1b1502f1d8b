"""Floating-point errors in what is computed at capture: NumPy reports them in every call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager

import numpy as np


class _Noted(threading.local):
    """``errors``: NumPy's flags of what was computed in this thread since somebody reset it."""

    noting = False
    errors = 0


NOTED = _Noted()
_AS_IT_IS: AbstractContextManager[None] = contextlib.nullcontext()


def silently() -> AbstractContextManager[None]:
    """References of ops report no floating-point error, but where these are noted."""
    return _AS_IT_IS if NOTED.noting else np.errstate(all="ignore")


@contextlib.contextmanager
def noting() -> Iterator[None]:
    """Add what references report to ``NOTED.errors``."""
    before = NOTED.noting
    NOTED.noting = True
    try:
        with np.errstate(all="call", call=_note):
            yield
    finally:
        NOTED.noting = before


def _note(kind: str, flags: int) -> None:
    NOTED.errors |= flags
