"""The pass list, stop-after, verification, and the backends."""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dyncomp import dtypes
from dyncomp.errors import LoweringError, Unsupported, VerifyError
from dyncomp.graph.interp import as_callable
from dyncomp.graph.ir import Graph, GraphBuilder, GraphOutput, array_type
from dyncomp.options import Options
from dyncomp.pipeline import PASSES, check_options, list_backends, op_table, run_pipeline

from .aot_autograd.programs import Seeded, make_program
from .aot_autograd.test_functionalize import compare_calls

F8 = dtypes.float64


def small_graph() -> Graph:
    """``x[1:] = softmax(x)[1:]; return x[1:] * 1, sum(x)``."""
    b = GraphBuilder(op_table())
    x = b.add_input(array_type(F8, (6,)), label="x")
    soft = b.emit("softmax", x, axes=(0,))
    window = {"starts": (1,), "sizes": (5,), "steps": (1,)}
    part = b.emit("strided_slice", x, **window)
    b.emit("copy_", part, b.emit("strided_slice", soft, **window))
    one = b.emit("full", shape=(5,), value=1.0, dtype=F8, device=x.type.device)
    total = b.emit("reduce_sum", x, axes=(0,))
    return b.finish((GraphOutput(b.emit("multiply", part, one)), GraphOutput(total, "scalar")))


def expected(x: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    e = np.exp(x - x.max())
    x[1:] = (e / e.sum())[1:]
    return x[1:] * 1, x.sum()


def check(call: Any) -> None:
    x = np.linspace(-1, 1, 6)
    y = x.copy()
    want = expected(x)
    got = call(y)
    assert isinstance(got, tuple)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
        assert type(a) is type(b)
    np.testing.assert_allclose(x, y, rtol=1e-14)


def test_eager_backend() -> None:
    compiled = run_pipeline(small_graph(), Options(backend="eager", debug_verify=True))
    check(compiled.call)
    assert compiled.backend == "eager"
    assert compiled.graph_after.functional
    assert not compiled.graph_before.functional


@pytest.mark.parametrize("name", [step.name for step in PASSES])
def test_stop_after_every_pass(name: str) -> None:
    compiled = run_pipeline(small_graph(), Options(stop_after=name, debug_verify=True))
    check(compiled.call)
    assert list(compiled.seconds)[-1] == name
    assert name in compiled.describe()


def test_inductor_backend() -> None:
    compiled = run_pipeline(small_graph(), Options(debug_verify=True))
    check(compiled.call)
    assert list(compiled.seconds)[-1] == "inductor"


def test_symbol_that_nothing_defines() -> None:
    """A selection is given up where the graph breaks, and made by the replacement; its size was asked for."""
    b = GraphBuilder(op_table())
    number = b.add_input(array_type(F8, ()), "scalar", label="t")
    x = b.add_input(array_type(F8, (6,)), label="x")
    b.bind_symbol(b.env.new_unbacked(), "node", 0)
    graph = b.finish((GraphOutput(b.emit("add", x, x)), GraphOutput(number, "python")))
    doubled, same = run_pipeline(graph, Options(debug_verify=True)).call(2.5, np.arange(6.0))
    assert (doubled == 2 * np.arange(6.0)).all()
    assert same == 2.5


def check_compiled(seeds: range, steps: int, symbolic: bool) -> int:
    """Random programs with views and writes, compiled: how many of them."""
    compiled = 0
    for seed in seeds:
        program = make_program(Seeded(seed), steps, symbolic)
        try:
            call = run_pipeline(program.graph, Options(debug_verify=True)).call
        except Unsupported:
            continue
        compiled += 1
        try:
            compare_calls(as_callable(program.graph, op_table()), call, program.inputs(), program.inputs())
        except Exception as error:
            error.add_note(f"make_program(Seeded({seed}), {steps}, {symbolic})")
            raise
    return compiled


@pytest.fixture
def own_cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path))


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("symbolic", [False, True])
def test_random_programs_compiled(symbolic: bool) -> None:
    assert check_compiled(range(200, 212), 14, symbolic) > 6


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("symbolic", [False, True])
def test_many_random_programs_compiled(symbolic: bool) -> None:
    assert check_compiled(range(1000, 1300), 16, symbolic) > 150


def test_callable_backend_gets_the_captured_graph() -> None:
    seen: list[Any] = []

    def mine(graph: Graph, example_inputs: list[Any]) -> Any:
        seen.append((graph, example_inputs))
        return as_callable(graph, op_table())

    graph = small_graph()
    x = np.zeros(6)
    compiled = run_pipeline(graph, Options(backend=mine), [x])
    check(compiled.call)
    assert seen[0][0] is graph and seen[0][1][0] is x
    assert compiled.backend == "mine"


def test_callable_backend_must_return_a_callable() -> None:
    with pytest.raises(LoweringError, match="not a callable"):
        run_pipeline(small_graph(), Options(backend=lambda graph, inputs: 3))


def test_callable_backend_with_a_wrong_number_of_outputs() -> None:
    compiled = run_pipeline(small_graph(), Options(backend=lambda graph, inputs: lambda *args: [1]))
    with pytest.raises(TypeError, match="1 outputs, not 2"):
        compiled.call(np.zeros(6))


def test_bad_graphs_are_found_under_debug_verify() -> None:
    graph = small_graph()
    broken = replace(graph, nodes=graph.nodes[1:])
    with pytest.raises(VerifyError) as caught:
        run_pipeline(broken, Options(backend="eager", debug_verify=True))
    assert any("after the pass 'capture'" in note for note in caught.value.__notes__)


def test_unknown_names_are_told() -> None:
    with pytest.raises(ValueError, match="eager, inductor"):
        check_options(Options(backend="nothing"))
    with pytest.raises(ValueError, match="functionalize"):
        check_options(Options(stop_after="nothing"))
    assert list_backends() == ["eager", "inductor"]


def test_pass_names_are_unique() -> None:
    names = [step.name for step in PASSES]
    assert len(set(names)) == len(names)
