"""Functions without array work are left as they are after a few captures, and captured where arrays come."""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np
import pytest

import dyncomp

TEXTS = ("kab", "kb", "kcd", "kdef", "ke", "kf", "kg", "kh", "ki", "kj")


def compiled(function: Any, **options: Any) -> Any:
    return dyncomp.compile(function, backend="eager", options=options)


def counted(function: Any, *calls: tuple[Any, ...]) -> dict[str, int]:
    """By how much the calls moved the counters of ``stats()``."""
    before = dyncomp.stats()
    for args in calls:
        function(*args)
    after = dyncomp.stats()
    return {key: after[key] - before[key] for key in ("frames_captured", "frames_skipped", "graphs")}


measure = types.SimpleNamespace(size=len)


def by_text(kind: str, x: Any) -> Any:
    if kind.startswith("k"):
        return (measure.size(kind), x)
    return x * 2


def test_captures_end_where_they_find_nothing(caplog: pytest.LogCaptureFixture) -> None:
    function = compiled(by_text)
    caplog.set_level("INFO", logger="dyncomp.capture")
    moved = counted(function, *((text, 1) for text in TEXTS))
    assert moved == {"frames_captured": 4, "frames_skipped": 1, "graphs": 0}
    assert [function(text, 1) for text in TEXTS] == [by_text(text, 1) for text in TEXTS]
    assert "by_text" in caplog.text and "no array operation in 3 forms of it" in caplog.text


def test_other_types_are_captured() -> None:
    function = compiled(by_text)
    counted(function, *((text, 1) for text in TEXTS))
    assert counted(function, ("a", 2.5))["frames_skipped"] == 1
    assert function("a", 2.5) == 5.0


def test_arrays_are_captured() -> None:
    function = compiled(by_text)
    counted(function, *((text, 1) for text in TEXTS))
    assert counted(function, ("a", np.ones(3)))["graphs"] == 1
    assert function("a", np.ones(3)).tolist() == [2.0, 2.0, 2.0]


class Holder:
    def __init__(self, data: Any) -> None:
        self.parts = {"data": data}

    def scaled(self, how: str) -> Any:
        if how.startswith("k"):
            return how
        return self.parts["data"] * 2


def test_arrays_inside_of_arguments_are_captured() -> None:
    holder = Holder(np.ones(2))
    function = compiled(Holder.scaled)
    counted(function, *((holder, text) for text in TEXTS[:6]))
    assert counted(function, (holder, "a"))["graphs"] == 1


def test_functions_with_a_graph_are_captured_to_the_limit() -> None:
    function = compiled(by_text)
    function("a", np.ones(3))
    moved = counted(function, *((text, 1) for text in TEXTS[:6]))
    assert moved["frames_captured"] >= 6


def rest(kind: str, *args: Any, **kwargs: Any) -> Any:
    return kind.upper() if kind.startswith("k") else sum(args)


def test_the_types_of_the_rest_count() -> None:
    function = compiled(rest)
    counted(function, *((text, 1) for text in TEXTS))
    assert function("kz", 1, 2) == "KZ"
    assert function("a", 1, 2.5) == 3.5
    assert counted(function, ("a", np.ones(2)))["graphs"] == 1


def helper(x: Any) -> Any:
    return np.sqrt(x) + 1.0


def driver(kind: str, steps: list[Any]) -> Any:
    if kind.startswith("k"):
        return [helper_alone(step) for step in steps[:1]]
    return None


def helper_alone(x: Any) -> Any:
    dyncomp.graph_break()
    return 0.0 if isinstance(x, str) else float(helper(np.full(4, x)).sum())


def test_what_it_calls_is_captured_as_before() -> None:
    function = compiled(driver)
    for text in TEXTS:
        assert function(text, ["a"]) == [0.0]
    assert function("kz", [4.0]) == driver("kz", [4.0])


def test_capture_plain_captures_to_the_limit() -> None:
    function = compiled(by_text, capture_plain=True)
    moved = counted(function, *((text, 1) for text in TEXTS[:6]))
    assert moved["frames_captured"] == 6


class Guarded:
    """Reading its attributes runs the program's code."""

    read: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        Guarded.read.append(name)
        return object.__getattribute__(self, name)

    @property
    def __dict__(self) -> Any:
        Guarded.read.append("dict")
        return {}


def test_looking_for_arrays_runs_no_code_of_the_program() -> None:
    function = compiled(by_text)
    guarded = Guarded()
    Guarded.read.clear()
    for text in TEXTS:
        function(text, guarded)
    assert Guarded.read == []


def by_sign(x: float) -> float:
    return math.sqrt(x) if x > 0 else -x


def with_an_import(x: float) -> Any:
    import numpy

    return numpy.full(3, x) * 2 if x > 0 else -x


def test_functions_of_numbers_are_captured_once() -> None:
    """As `np.vectorize` calls them: with a scalar of NumPy first, then with Python's."""
    function = compiled(by_sign)
    assert function(np.float64(4.0)) == 2.0
    moved = counted(function, *((number,) for number in (1.0, -2.0, 4.0, -0.5, 2.25)))
    assert moved == {"frames_captured": 0, "frames_skipped": 1, "graphs": 0}
    values = np.array([-1.0, 4.0, 0.0, 9.0])
    assert np.vectorize(function)(values).tolist() == np.vectorize(by_sign)(values).tolist()
    assert function(np.float64(9.0)) == 3.0


def test_functions_of_numbers_that_make_arrays_are_captured() -> None:
    function = compiled(with_an_import)
    assert function(-1.0) == 1.0
    assert counted(function, (1.0,), (2.0,))["graphs"] >= 1
    assert function(2.0).tolist() == [4.0, 4.0, 4.0]
