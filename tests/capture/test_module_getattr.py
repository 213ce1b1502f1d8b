"""Modules with a ``__getattr__`` of the program: it is asked as often as in plain Python."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import dyncomp

NAME = "tests_module_that_answers"
module = None


def make_module(log, package):
    made = types.ModuleType(NAME)
    made.known = 2.0
    if package:
        made.__path__ = []

    def answer(name):
        log.append(name)
        if name == "loaded":
            made.loaded = 4.0
            return 4.0
        if name == "lazy" and len(log) < 6:
            return 3.0
        raise AttributeError(name)

    made.__getattr__ = answer
    return made


def imports(x):
    from tests_module_that_answers import known, lazy

    return x * known * lazy


def imports_what_is_loaded(x):
    from tests_module_that_answers import known, loaded

    return x * known * loaded


def reads(x):
    return x * module.known * module.lazy


def reads_what_is_loaded(x):
    return x * module.known * module.loaded


def asks(x):
    y = x * 2.0
    return y, hasattr(module, "lazy"), getattr(module, "none", 3.0)


def catches(x):
    y = x * 2.0
    try:
        return y * module.none
    except AttributeError as error:
        return y, str(error)


PROGRAMS = [imports, imports_what_is_loaded, reads, reads_what_is_loaded, asks, catches]


def outcomes(function, package, monkeypatch):
    log, found = [], []
    made = make_module(log, package)
    monkeypatch.setitem(sys.modules, NAME, made)
    monkeypatch.setitem(globals(), "module", made)
    for _ in range(4):
        try:
            result = repr(function(np.arange(3.0)))
        except (AttributeError, ImportError) as error:
            result = type(error)
        found.append((result, list(log)))
    return found


@pytest.mark.parametrize("package", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_asked_as_in_plain_python(program, package, monkeypatch):
    compiled = dyncomp.compile(program, backend="eager")
    expected = outcomes(program, package, monkeypatch)
    assert outcomes(compiled, package, monkeypatch) == expected


def test_what_is_loaded_is_captured_by_the_next_call(monkeypatch):
    compiled = dyncomp.compile(reads_what_is_loaded, backend="eager")
    outcomes(compiled, False, monkeypatch)
    assert not dyncomp.explain(reads_what_is_loaded)(np.arange(3.0)).breaks


def test_absence_is_guarded(monkeypatch):
    made = types.ModuleType(NAME)
    monkeypatch.setitem(globals(), "module", made)

    def f(x):
        return x + (1.0 if hasattr(module, "late") else 2.0)

    compiled = dyncomp.compile(f, backend="eager")
    assert compiled(np.zeros(1))[0] == 2.0
    made.late = None
    assert compiled(np.zeros(1))[0] == 1.0
