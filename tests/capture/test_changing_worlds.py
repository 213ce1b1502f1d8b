"""What capture took for granted is changed between two calls, in the ways that Python allows."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.guards.class_facts import ClassFacts
from dyncomp.capture.guards.guard import Guard, Kind, compile_guards
from dyncomp.capture.guards.module_facts import ModuleFacts
from tests.capture import comparing
from tests.capture.changing_worlds import WORLDS
from tests.capture.comparing import call, differences


@pytest.fixture(autouse=True)
def alike(monkeypatch):
    """Classes of the two worlds are compared by name."""

    def made_alike(a, b):
        return (a.__module__, a.__qualname__) == (b.__module__, b.__qualname__)

    monkeypatch.setattr(comparing, "_made_alike", made_alike)


def outcomes(parts, compiled, capture_plain):
    """What each call of ``f`` does, two after each change."""
    module = types.ModuleType("changing_world")
    sys.modules[module.__name__] = module
    names = vars(module)
    names["np"] = np
    exec(parts[0], names)
    function = names["f"]
    if compiled:
        function = dyncomp.compile(function, backend="eager", options={"capture_plain": capture_plain})
    found = []
    for change in ("", *parts[1:]):
        exec(change, names)
        found += [call(function, (np.arange(4.0),)) for _ in range(2)]
    return found


@pytest.mark.parametrize("name", WORLDS)
def test_changing_worlds(name):
    parts = WORLDS[name].split("\n---\n")
    plain = list(WORLDS).index(name) % 2 == 0
    try:
        expected = outcomes(parts, False, plain)
        found = outcomes(parts, True, plain)
    finally:
        sys.modules.pop("changing_world", None)
    for number, (first, second) in enumerate(zip(expected, found)):
        assert not differences(first, second), f"call {number}"


class Base:
    kept = 1


class Derived(Base):
    count = 0

    def method(self):
        return 1


def program_of(facts, kind):
    return compile_guards([Guard(None, kind, facts)])


def holds(program):
    return program.check((), {}, {})


def test_a_class_is_as_it_was():
    program = program_of(ClassFacts.of(Derived, ["count", "method", "absent"]), Kind.CLASS)
    assert holds(program)
    Derived.count += 1
    Derived.unrelated = 3
    assert holds(program) and holds(program)
    for name, value in [("absent", 1), ("__eq__", None), ("method", 2), ("count", property())]:
        before = vars(Derived).get(name)
        setattr(Derived, name, value)
        assert not holds(program) and not holds(program)
        delattr(Derived, name) if before is None else setattr(Derived, name, before)
        assert holds(program)
    Base.absent = 1
    assert not holds(program)
    del Base.absent
    Derived.__bases__ = (type("Other", (), {}),)
    assert not holds(program)
    Derived.__bases__ = (Base,)
    assert holds(program)


def test_members_of_a_module_are_as_they_were():
    module = types.ModuleType("some_module")
    module.member = found = object()
    program = program_of(ModuleFacts(module, {"member": found}), Kind.MODULE)
    assert holds(program)
    module.other = 1
    assert holds(program)
    module.member = object()
    assert not holds(program)
    del module.member
    assert not holds(program)
    module.member = found
    assert holds(program)


def test_classes_that_count_are_not_captured_again():
    class Counting:
        made = 0

        def __init__(self):
            type(self).made += 1

    def program(x):
        Counting()
        return x * 2

    compiled = dyncomp.compile(program, backend="eager")
    for _ in range(20):
        compiled(np.ones(3))
    assert Counting.made == 20
    assert len(compiled.config.records.entries) <= 3
