"""What changes becomes symbolic wherever it is found: few entries, not one for each value."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import dyncomp

VALUES = (3, 5, 7, 9, -2)
FACTOR = 3


def compiled_entries(function: Any, calls: list[tuple[Any, ...]]) -> int:
    compiled = dyncomp.compile(function, backend="eager")
    for args in calls:
        np.testing.assert_allclose(compiled(*args), function(*args))
    return len(compiled.config.records.entries)


X = np.arange(4.0)
PLACES = {
    "argument": (lambda x, k: x * k, lambda k: (X, k)),
    "float": (lambda x, k: x * k, lambda k: (X, k / 2)),
    "attribute": (lambda x, o: x * o.k + o.f, lambda k: (X, types.SimpleNamespace(k=k, f=k / 2))),
    "dict": (lambda x, d: x * d["k"] + d["f"], lambda k: (X, {"k": k, "f": k / 2})),
    "list": (lambda x, values: x * values[0] + values[1], lambda k: (X, [k, k / 2])),
    "tuple": (lambda x, values: x * values[0], lambda k: (X, (k,))),
    "size_in_list": (lambda x, values: x.sum() + values[0].sum(), lambda k: (X, [np.ones(abs(k))])),
    "size_in_dict": (lambda x, values: x.sum() + values["a"].sum(), lambda k: (X, {"a": np.ones(abs(k))})),
    "two_sizes": (lambda a, b: a[:, None] + b, lambda k: (np.ones(abs(k)), np.ones(abs(k) + 1))),
    "beyond_int64": (lambda x, k: x * (k * k), lambda k: (X, k * 10**15)),
}


@pytest.mark.parametrize("name", PLACES)
def test_two_entries(name):
    function, make = PLACES[name]
    calls = [make(k) for k in VALUES]
    assert compiled_entries(function, calls) <= 2 + (name == "attribute") * 3


def test_globals(monkeypatch):
    compiled = dyncomp.compile(lambda x: x * FACTOR, backend="eager")
    for value in VALUES:
        monkeypatch.setitem(globals(), "FACTOR", value)
        np.testing.assert_array_equal(compiled(X), X * value)
    assert len(compiled.config.records.entries) == 2


def test_cells():
    factor = 0

    def scaled(x):
        return x * factor

    compiled = dyncomp.compile(scaled, backend="eager")
    for factor in VALUES:
        np.testing.assert_array_equal(compiled(X), X * factor)
    assert len(compiled.config.records.entries) == 2


def test_defaults():
    def scaled(x, k=3):
        return x * k

    compiled = dyncomp.compile(scaled, backend="eager")
    for value in VALUES:
        scaled.__defaults__ = (value,)
        np.testing.assert_array_equal(compiled(X), X * value)
    assert len(compiled.config.records.entries) == 2


def test_another_type_is_another_entry():
    compiled = dyncomp.compile(lambda x: x * 2, backend="eager")
    for dtype in ("f8", "f4"):
        for shape in ((3,), (5,), (6,), (3, 3), (5, 3), (6, 4)):
            assert compiled(np.ones(shape, dtype)).dtype == dtype
    assert len(compiled.config.records.entries) <= 8


def test_broadcasting_of_one_has_an_entry_of_its_own():
    compiled = dyncomp.compile(lambda a, b: a + b, backend="eager")
    for n, m in ((3, 3), (5, 5), (5, 1), (1, 5), (7, 7), (9, 1), (1, 1), (0, 0), (0, 1)):
        a, b = np.arange(n * 4.0).reshape(n, 4), np.arange(m * 4.0).reshape(m, 4)
        np.testing.assert_array_equal(compiled(a, b), a + b)
    with pytest.raises(ValueError, match="could not be broadcast"):
        compiled(np.ones((4, 4)), np.ones((6, 4)))
    assert len(compiled.config.records.entries) <= 9
