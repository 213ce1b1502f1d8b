"""The NumPy frontend's small programs, compiled: every kind of op as programs really use it."""

from __future__ import annotations

from typing import Any

import pytest

from dyncomp.inductor.compile import compile_graph
from dyncomp.pipeline import run_passes
from dyncomp.prims.table import TABLE
from tests.frontends.numpy import harness, test_functions
from tests.frontends.numpy.programs import MUTATIONS, PROGRAMS, arguments, lines
from tests.inductor.harness import OPTIONS, Reference

_VALUES = test_functions._cases(PROGRAMS)
_MUTATIONS = lines(MUTATIONS)


class _Runner:
    """Stands in for the graph interpreter in the frontend's harness."""

    def __init__(self, graph: Any, table: Any) -> None:
        self.graph = run_passes(graph, TABLE, OPTIONS)

    def visible(self) -> list[Any]:
        return [out for out in self.graph.outputs if not out.hidden]


class ByReference(_Runner):
    def run(self, *args: Any) -> list[Any]:
        found = Reference(self.graph).run(*args)
        return [_of_kind(v, out.kind) for v, out in zip(found, self.visible())]


class ByCode(_Runner):
    def run(self, *args: Any) -> list[Any]:
        found = compile_graph(self.graph, OPTIONS).call(*args)
        return [found] if len(self.visible()) == 1 else list(found)


def _of_kind(value: Any, kind: str) -> Any:
    if kind == "array":
        return value
    return value[()] if kind == "scalar" else value.item()


def run_value(code: str) -> None:
    names = test_functions._names(code)
    values = arguments()
    harness.check(test_functions._program(f"    return {code}", names), *(values[n] for n in names))


def run_mutation(code: str) -> None:
    names = test_functions._names(code)
    values = arguments()
    body = "".join(f"    {statement.strip()}\n" for statement in code.split(";"))
    returned = [n for n in names if n not in ("s", "k")]
    program = test_functions._program(f"{body}    return ({', '.join(returned)},)", names)
    harness.check(program, *(values[n] for n in names))


@pytest.mark.parametrize("code", _VALUES[::5])
def test_value_by_reference(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "Interpreter", ByReference)
    run_value(code)


@pytest.mark.parametrize("code", _MUTATIONS)
def test_mutation_by_reference(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "Interpreter", ByReference)
    run_mutation(code)


@pytest.mark.parametrize("code", _MUTATIONS[::2])
def test_mutation_by_code(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "Interpreter", ByCode)
    run_mutation(code)


@pytest.mark.slow
@pytest.mark.parametrize("code", _VALUES)
def test_value_by_code(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "Interpreter", ByCode)
    run_value(code)
