"""``python -m tests.minifier.program_with_fault NAME``: an ordinary program, and a fault in dyncomp."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import faults

getattr(faults, sys.argv[1])()

import dyncomp  # noqa: E402


@dyncomp.compile
def f(x: Any, y: Any) -> Any:
    z = np.arctan(x) * y + 1.0
    return z.sum(axis=0), z


for _ in range(2):
    x, y = faults.arrays()
    assert np.allclose(f(x, y)[1], np.arctan(x) * y + 1.0)
print("right")
