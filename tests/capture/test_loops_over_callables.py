"""Loops over things that are called, such as the layers of a network, are followed further than others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyncomp


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        for _ in range(3):
            x = x * self.factor + 1.0
        return x


class Pipeline:
    def __init__(self, count: int) -> None:
        self.parts = {f"part {k}": Scale(0.5 + k / count) if k % 2 else np.tanh for k in range(count)}

    def __call__(self, x: Any) -> Any:
        for part in self.parts.values():
            x = part(x)
        return x


def run(pipeline: Any, x: Any) -> Any:
    return pipeline(x)


def through_all(functions: Any, x: Any) -> Any:
    for function in functions:
        x = function(x)
    return x


def test_parts_of_a_pipeline_are_one_graph() -> None:
    x = np.linspace(-1, 1, 12)
    for count in (3, 20, 60):
        pipeline = Pipeline(count)
        report = dyncomp.explain(run, backend="eager")(pipeline, x)
        assert not report.breaks
        assert len(report.graphs) == 1
        np.testing.assert_array_equal(dyncomp.compile(run, backend="eager")(pipeline, x), run(pipeline, x))


def test_functions_in_a_list() -> None:
    functions = [np.sin, np.cos, np.tanh, abs] * 5
    x = np.linspace(-1, 1, 12)
    compiled = dyncomp.compile(through_all, backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(functions, x), through_all(functions, x))
    functions[3] = np.exp
    np.testing.assert_array_equal(compiled(functions, x), through_all(functions, x))


def test_long_lists_are_not_unrolled() -> None:
    functions = [np.sin, np.cos] * 200
    x = np.linspace(-1, 1, 12)
    report = dyncomp.explain(through_all, backend="eager")(functions, x)
    assert [b.id for b in report.breaks] == ["loop"]
    compiled = dyncomp.compile(through_all, backend="eager")
    np.testing.assert_array_equal(compiled(functions, x), through_all(functions, x))


def with_names(pipeline: Any, x: Any) -> Any:
    found = [x]
    for name, part in pipeline.parts.items():
        found.append(part(sum(found)) if name else x)
    return found[-1]


def with_numbers(pipeline: Any, x: Any) -> Any:
    for number, part in enumerate(pipeline.parts.values()):
        x = part(x) + number
    return x


def in_pairs(pipeline: Any, x: Any) -> Any:
    for part, factor in zip(pipeline.parts.values(), range(100)):
        x = part(x) * (1 + factor / 100)
    return x


def nested(pipelines: Any, x: Any) -> Any:
    for pipeline in pipelines:
        x = with_names(pipeline, x)
    return x


@pytest.mark.parametrize("program", [with_names, with_numbers, in_pairs])
def test_parts_with_something_beside_them(program: Any) -> None:
    x = np.linspace(-1, 1, 12)
    pipeline = Pipeline(20)
    report = dyncomp.explain(program, backend="eager")(pipeline, x)
    assert not report.breaks
    np.testing.assert_array_equal(
        dyncomp.compile(program, backend="eager")(pipeline, x), program(pipeline, x)
    )


def test_pipelines_of_named_parts() -> None:
    x = np.linspace(-1, 1, 12)
    pipelines = [Pipeline(12), Pipeline(24), Pipeline(16)]
    report = dyncomp.explain(nested, backend="eager")(pipelines, x)
    assert not report.breaks
    compiled = dyncomp.compile(nested, backend="eager")
    np.testing.assert_array_equal(compiled(pipelines, x), nested(pipelines, x))
