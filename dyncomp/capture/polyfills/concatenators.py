"""``np.r_[…]`` and ``np.c_[…]`` without what looks at the frame (matrices given as text)."""

from __future__ import annotations

from typing import Any

import numpy as np


def concatenated(self: Any, key: object, /) -> Any:
    parts = key if isinstance(key, tuple) else (key,)
    found: list[Any] = []
    kinds: list[Any] = []
    for item in parts:
        if isinstance(item, str):
            raise TypeError("a text among what is joined")
        if isinstance(item, slice):
            made = _of_slice(self, item)
        elif type(item) in np.ScalarType:
            made = item
        else:
            made = _of_array(self, item)
        found.append(made)
        kinds.append(item if made is item and type(item) in np.ScalarType else made.dtype)
    if kinds:
        dtype = np.result_type(*kinds)
        found = [np.array(part, copy=None, subok=True, ndmin=self.ndmin, dtype=dtype) for part in found]
    return self.concatenate(tuple(found), axis=self.axis)


def _of_slice(self: Any, item: slice) -> Any:
    start = 0 if item.start is None else item.start
    step = 1 if item.step is None else item.step
    if isinstance(step, complex):
        made = np.linspace(start, item.stop, num=int(abs(step)))
    else:
        made = np.arange(start, item.stop, step)
    if self.ndmin > 1:
        made = np.array(made, copy=None, ndmin=self.ndmin)
        if self.trans1d != -1:
            made = made.swapaxes(-1, self.trans1d)
    return made


def _of_array(self: Any, item: Any) -> Any:
    given = np.ndim(item)
    made = np.array(item, copy=None, subok=True, ndmin=self.ndmin)
    if self.trans1d != -1 and given < self.ndmin:
        added = self.ndmin - given
        place = self.trans1d + added + 1 if self.trans1d < 0 else self.trans1d
        axes = list(range(self.ndmin))
        made = made.transpose(axes[:place] + axes[added:] + axes[place:added])
    return made
