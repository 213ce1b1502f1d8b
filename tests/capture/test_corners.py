"""Programs of ``corner_programs``: compiled equals plain Python, wherever the graph breaks."""

from __future__ import annotations

import abc

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check
from tests.capture.corner_programs import PROGRAMS

NAMES = [p.name for p in PROGRAMS]


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_same_as_plain_python(program):
    records = check(program.function, *program.makers)
    assert records.counters["internal_errors"] == 0


class Model:
    factor = 2

    def __init__(self, x):
        self.x = x

    def run(self):
        return self.x * self.factor

    @property
    def shifted(self):
        return self.x + 1


def uses_model(x):
    model = Model(x)
    return model.run() + model.shifted


def uses_a_model(model):
    return model.run() + model.shifted + getattr(model, "extra", 1)


PATCHES = {
    "factor": 5,
    "run": lambda self: self.x * 100,
    "__init__": lambda self, x: setattr(self, "x", x * 3),
    "shifted": property(lambda self: self.x - 7),
    "extra": 9,
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_class_that_is_changed_between_calls(monkeypatch, name):
    outside = dyncomp.compile(uses_a_model, backend="eager")
    inside = dyncomp.compile(uses_model, backend="eager")
    for _ in range(2):
        np.testing.assert_array_equal(inside(np.ones(3)), uses_model(np.ones(3)))
        np.testing.assert_array_equal(outside(Model(np.ones(3))), uses_a_model(Model(np.ones(3))))
        monkeypatch.setattr(Model, name, PATCHES[name], raising=False)
    monkeypatch.undo()
    np.testing.assert_array_equal(inside(np.ones(3)), uses_model(np.ones(3)))
    np.testing.assert_array_equal(outside(Model(np.ones(3))), uses_a_model(Model(np.ones(3))))


def test_a_class_that_is_registered_between_calls():
    class Kind(abc.ABC):  # noqa: B024
        pass

    class Other:
        pass

    def pick(x, v):
        return x + 1 if isinstance(v, Kind) else x - 1

    compiled = dyncomp.compile(pick, backend="eager")
    assert compiled(np.ones(1), Other())[0] == 0
    Kind.register(Other)
    assert compiled(np.ones(1), Other())[0] == 2


def test_a_class_made_at_each_call_does_not_fill_the_cache():
    def run(x):
        class Local:
            k = 3

            def go(self, v):
                return v * self.k

        return Local().go(x) * 2 + Local.k

    records = check(run, lambda: (np.ones(2),), repeats=20)
    assert len(records.entries) < 10
    assert any("made anew" in str(skip) for skip in records.skipped)


CPP = [p for p in PROGRAMS if p.name in ("inheritance_corners", "dataclass_corners", "slots_and_copies")]


@pytest.mark.parametrize("program", CPP, ids=[p.name for p in CPP])
def test_same_in_cpp(program):
    check(program.function, *program.makers, backend="inductor")


def nan_as_key(x, key, value):
    table = dict.fromkeys([key, 6], value)
    table.clear()
    print(len(table))
    table[key] = 1
    return key in table, float("nan") in table, x + len(table)


def float_as_slice_bound(x, bound):
    try:
        return [1, 2, 3][bound:], x * 2
    except TypeError as error:
        return str(error), x + 1


def test_a_nan_is_a_key_by_its_identity():
    check(nan_as_key, lambda: (np.ones(2), float("nan"), 2.0), repeats=3)


def test_floats_are_no_slice_bounds():
    check(
        float_as_slice_bound, lambda: (np.ones(2), -0.0), lambda: (np.ones(2), 1), lambda: (np.ones(2), 1.5)
    )


def taken_into_floats(x, positions):
    room = np.zeros(len(positions))
    try:
        np.take(x, positions, out=room)
    except TypeError:
        return "refused", room
    return room * 2, x


def test_take_into_another_dtype():
    for dtype in (np.int64, np.float64, np.float32):
        check(taken_into_floats, lambda dtype=dtype: (np.arange(5).astype(dtype), np.array([1, 1, 4])))
