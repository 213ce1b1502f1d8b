"""torch itself: the one place where it is imported. All of this package is imported only once the program
has imported torch."""

from __future__ import annotations

from typing import Any


def _load() -> Any:
    import torch

    return torch


torch = _load()
