"""Guards of classes go by CPython's version numbers: they cost nothing while nothing is set on a class."""

from __future__ import annotations

import numpy as np

import dyncomp
from dyncomp.capture.guards import class_facts, program


def test_classes_are_read_anew_only_when_they_changed(monkeypatch):
    asked = []

    def counted(unused, facts):
        asked.append(facts.cls)
        return class_facts.still_holds(unused, facts)

    monkeypatch.setattr(program, "still_holds", counted)

    class Scale:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x):
            return x * self.factor

    compiled = dyncomp.compile(lambda scale, x: scale(x) + 1, backend="eager")
    scale, x = Scale(2.0), np.ones(3)
    for _ in range(30):
        assert compiled(scale, x).tolist() == [3.0] * 3
    assert asked.count(Scale) <= 2
    Scale.other = 1
    for _ in range(30):
        assert compiled(scale, x).tolist() == [3.0] * 3
    assert asked.count(Scale) <= 4
    Scale.__call__ = lambda self, x: x - self.factor
    assert compiled(scale, x).tolist() == [0.0] * 3
