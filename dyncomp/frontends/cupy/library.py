"""cupy itself: the one place where it is imported. All of this package is imported only once the program
has imported cupy."""

from __future__ import annotations

from typing import Any


def _load() -> Any:
    import cupy

    return cupy


cupy = _load()
