"""What a loop's variables hold is told by identity: no ``==`` or ``hash`` of the program runs."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp


class Asked:
    """Counts how often it is compared or hashed."""

    def __init__(self) -> None:
        self.asked = 0

    def __eq__(self, other: object) -> bool:
        self.asked += 1
        raise ValueError("compared")

    def __hash__(self) -> int:
        self.asked += 1
        raise TypeError("hashed")


def stepped(items, n, x):
    total = 0.0
    kept = []
    for item in iter(items):
        kept.append(item)
        for k in range(n):
            total += k * 0.5
    return x + total, kept


def listed(items, n, x):
    total = 0.0
    held = list(items)
    for k in range(n):
        total += k * 0.5
    return x + total, held


@pytest.mark.parametrize("function", [stepped, listed])
@pytest.mark.parametrize(
    "make", [lambda: [{"a": 1}, {"a": 2}], lambda: [Asked(), Asked()], lambda: [np.ones(()), np.ones(())]]
)
def test_objects_are_neither_compared_nor_hashed(function, make):
    dyncomp.reset()
    items, x = make(), np.ones(2)
    fast = dyncomp.compile(function)
    for n in (300, 300, 400):
        found, _ = fast(items, n, x)
        np.testing.assert_array_equal(found, function(items, n, x)[0])
    assert dyncomp.stats()["internal_errors"] == 0
    assert all(getattr(item, "asked", 0) == 0 for item in items)
