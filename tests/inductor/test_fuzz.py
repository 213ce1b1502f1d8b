"""Random graphs: lowered and run by reference, and compiled, against the graph interpreter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dyncomp.errors import Unsupported
from dyncomp.graph.interp import bind_symbols
from dyncomp.graph.ir import Graph
from dyncomp.inductor.compile import compile_graph
from dyncomp.inductor.fusion import fuse
from dyncomp.inductor.lowering import contract as lower_contract
from dyncomp.inductor.lowering import state as lower_state
from tests.aot_autograd.programs import Layout, Seeded
from tests.inductor.fuzz import assert_same, make_graph
from tests.inductor.harness import OPTIONS, Reference, by_code, by_reference, copies, expected


def graph_of(
    seed: int, steps: int, symbolic: bool = False, zeros: bool = False
) -> tuple[Graph, list[Layout]]:
    """The seed's graph; skips what capture would refuse."""
    try:
        return make_graph(Seeded(seed), steps, symbolic, zeros)
    except Unsupported as error:
        pytest.skip(str(error))


def make_args(layouts: list[Layout]) -> list[Any]:
    return [layout.make(k) for k, layout in enumerate(layouts)]


def check(run: Any, graph: Graph, args: list[Any]) -> None:
    wanted, wanted_args = expected(graph, args)
    found, found_args = run(graph, args)
    assert_same(found, wanted)
    assert_same(found_args, wanted_args)


@pytest.fixture
def eager_to_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make decisions that otherwise only large or long programs see."""
    monkeypatch.setattr(fuse, "SMALL_POINTS", 0)
    monkeypatch.setattr(fuse, "FEW_PARALLEL", 3)
    monkeypatch.setattr(fuse, "MAX_WEIGHT", 8)
    monkeypatch.setattr(lower_state, "MAX_INLINE_WEIGHT", 5)
    monkeypatch.setattr(lower_state, "SHARE_COST", 3.0)
    monkeypatch.setattr(lower_contract, "SMALL_PRODUCT", 0)
    monkeypatch.setattr(lower_contract, "TINY", 0)


@pytest.mark.parametrize("seed", range(120))
def test_reference(seed: int) -> None:
    graph, layouts = graph_of(seed, 10 + seed % 20)
    check(by_reference, graph, make_args(layouts))


@pytest.mark.parametrize("seed", range(120))
def test_reference_splitting(seed: int, eager_to_split: None) -> None:
    graph, layouts = graph_of(1000 + seed, 10 + seed % 20)
    check(by_reference, graph, make_args(layouts))


def test_a_gather_behind_a_reshape(eager_to_split: None) -> None:
    """Its own address is not affine in the axes of what reads it."""
    graph, layouts = graph_of(30112, 13)
    check(by_reference, graph, make_args(layouts))


def grown(layouts: list[Layout]) -> list[Layout]:
    return [replace(x, shape=tuple(n + 2 * (n > 1) for n in x.shape)) for x in layouts]


def shrunk(layouts: list[Layout]) -> list[Layout]:
    """Sizes as small as symbols are: what is left of them may be nothing."""
    return [replace(x, shape=tuple(min(n, 2) for n in x.shape)) for x in layouts]


def guards_hold(graph: Graph, args: list[Any]) -> bool:
    values = bind_symbols(graph, args, [])
    infos = graph.env.symbols
    bounded = all(infos[k].low is None or v >= infos[k].low for k, v in values.items())
    return bounded and all(g.holds(values) for g in graph.env.guards)


@pytest.mark.parametrize("seed", range(120))
def test_reference_with_symbolic_sizes(seed: int) -> None:
    graph, layouts = graph_of(2000 + seed, 10 + seed % 12, symbolic=True)
    guards = len(graph.env.guards)
    reference = Reference(graph)
    assert len(graph.env.guards) == guards, "lowering asked what capture did not guard"
    for args in (make_args(layouts), make_args(grown(layouts)), make_args(shrunk(layouts))):
        if guards_hold(graph, args):
            own = copies(args)
            wanted, wanted_args = expected(graph, args)
            assert_same(reference.run(*own), wanted)
            assert_same(own, wanted_args)


@pytest.mark.parametrize("seed", range(25))
def test_code(seed: int) -> None:
    graph, layouts = graph_of(3000 + seed, 10 + seed % 20)
    check(by_code, graph, make_args(layouts))


@pytest.mark.parametrize("seed", range(150))
def test_reference_with_sizes_of_zero(seed: int) -> None:
    graph, layouts = graph_of(6000 + seed, 10 + seed % 20, zeros=True)
    check(by_reference, graph, make_args(layouts))


@pytest.mark.parametrize("seed", range(25))
def test_code_with_sizes_of_zero(seed: int) -> None:
    graph, layouts = graph_of(7000 + seed, 10 + seed % 20, zeros=True)
    check(by_code, graph, make_args(layouts))


@pytest.mark.parametrize("seed", range(15))
def test_code_with_symbolic_sizes(seed: int) -> None:
    graph, layouts = graph_of(4000 + seed, 10 + seed % 12, symbolic=True)
    call = compile_graph(graph, OPTIONS).call
    visible = sum(not o.hidden for o in graph.outputs)
    for args in (make_args(layouts), make_args(grown(layouts)), make_args(shrunk(layouts))):
        if guards_hold(graph, args):
            own = copies(args)
            wanted, wanted_args = expected(graph, args)
            found = call(*own)
            assert_same([found] if visible == 1 else found, wanted)
            assert_same(own, wanted_args)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(400))
def test_code_more(seed: int, eager_to_split: None) -> None:
    graph, layouts = graph_of(5000 + seed, 10 + seed % 25, symbolic=seed % 3 == 0)
    check(by_code, graph, make_args(layouts))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(400))
def test_code_with_more_sizes_of_zero(seed: int, eager_to_split: None) -> None:
    graph, layouts = graph_of(8000 + seed, 10 + seed % 25, zeros=True)
    check(by_code, graph, make_args(layouts))
