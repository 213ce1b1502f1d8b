"""Floats that no integer of the type is equal to, converted in compiled programs as NumPy does it."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp

SPECIAL = [np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, 1e19, -1e19, 70000.0, -1.5, -0.3, -0.0, 0.5]
# float to uint32 out of range: NumPy's own answer depends on an element's place in the array
TARGETS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint64"]


def there_and_back(x, target):
    whole = x.astype(target)
    return whole.astype(x.dtype), whole, whole.astype(np.float64) + 1, whole == x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_there_and_back(source, target, backend):
    compiled = dyncomp.compile(there_and_back, backend=backend)
    for size in (1, 15, 40):
        x = np.resize(np.array(SPECIAL).astype(source), size)
        for expected, found in zip(there_and_back(x, target), compiled(x, target)):
            assert expected.dtype == found.dtype
            assert expected.tobytes() == found.tobytes(), (size, expected, found)
