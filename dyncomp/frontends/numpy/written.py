"""Which functions and methods of NumPy write to an argument."""

from __future__ import annotations

from typing import Any

import numpy as np

_FIRST = (np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis)
_WRITTEN: dict[Any, int] = dict.fromkeys(_FIRST, 0)

WRITING_METHODS = frozenset(("sort", "partition", "fill", "put"))


def written_argument(function: Any) -> int | None:
    """The number of the argument that a function writes to."""
    return _WRITTEN.get(function)
