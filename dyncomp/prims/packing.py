"""Where elements of padded sequences are among those of packed ones, which follow step by step."""

from __future__ import annotations

import numpy as np

from .kit import Array


def packed(lengths: Array) -> tuple[Array, Array, Array]:
    """Of sequences, longest first: how many of them there are at each step, and the step and the sequence of
    each packed element."""
    if not len(lengths) or lengths[-1] < 1 or (np.diff(lengths) > 0).any():
        raise ValueError("lengths of packed sequences fall, and are at least 1")
    counts = _more_than(lengths, int(lengths[0]))
    steps = np.repeat(np.arange(len(counts)), counts)
    return counts, steps, np.arange(len(steps)) - np.repeat(np.cumsum(counts) - counts, counts)


def unpacked(counts: Array) -> tuple[Array, Array]:
    """The inverse: the length of each sequence, and the first packed element of each step."""
    if not len(counts) or counts[-1] < 0 or (np.diff(counts) > 0).any():
        raise ValueError("there are fewer and fewer packed sequences")
    return _more_than(counts, int(counts[0])), np.cumsum(counts) - counts


def _more_than(falling: Array, limit: int) -> Array:
    """How many of the numbers are more than 0, 1, ... up to ``limit``."""
    found: Array = len(falling) - np.searchsorted(falling[::-1], np.arange(limit), side="right")
    return found
