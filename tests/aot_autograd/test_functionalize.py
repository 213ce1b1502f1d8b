"""Functionalized graphs do what the captured ones do: values, mutations, layout and aliasing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from dyncomp import dtypes
from dyncomp.aot_autograd.functionalize import functionalize, may_self_overlap
from dyncomp.errors import Unsupported
from dyncomp.graph.interp import as_callable, run
from dyncomp.graph.ir import ArrayType, Graph, GraphBuilder, GraphOutput, Literal, Var, array_type, verify
from dyncomp.graph.text import parse, print_graph
from dyncomp.options import Options
from dyncomp.pipeline import PASSES, run_passes
from dyncomp.prims.table import TABLE

from .programs import Program, Seeded, make_program, programs

Array = np.ndarray[Any, Any]


def aliasing(arrays: list[Any]) -> list[list[bool]]:
    return [[np.shares_memory(a, b) for b in arrays] for a in arrays]


def assert_same(want: Any, got: Any) -> None:
    assert type(want) is type(got)
    np.testing.assert_array_equal(want, got)
    if isinstance(want, np.ndarray):
        assert want.dtype == got.dtype
        assert want.shape == got.shape
        if want.size:
            shown = [(n, s) for n, s in zip(want.shape, want.strides) if n > 1]
            assert shown == [(n, s) for n, s in zip(got.shape, got.strides) if n > 1]


def compare_calls(one: Any, other: Any, inputs: list[Array], again: list[Array]) -> None:
    """Both callables on equal inputs: equal outputs, equal inputs afterwards, equal sharing of memory."""
    want, got = one(*inputs), other(*again)
    assert isinstance(want, tuple) == isinstance(got, tuple)
    if not isinstance(want, tuple):
        want, got = (want,), (got,)
    assert len(want) == len(got)
    for a, b in zip(want, got):
        assert_same(a, b)
    for a, b in zip(inputs, again):
        np.testing.assert_array_equal(a, b)
    arrays = [i for i, value in enumerate(want) if isinstance(value, np.ndarray)]
    before = aliasing([*inputs, *(want[i] for i in arrays)])
    assert before == aliasing([*again, *(got[i] for i in arrays)])


def compare(captured: Graph, other: Graph, inputs: list[Array], again: list[Array]) -> None:
    compare_calls(as_callable(captured, TABLE), as_callable(other, TABLE), inputs, again)


def functional_of(program: Program) -> Graph:
    try:
        return functionalize(program.graph, TABLE)
    except Unsupported:
        assume(False)
        raise


SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=250)


@SETTINGS
@given(programs())
def test_random_programs(program: Program) -> None:
    verify(program.graph, TABLE)
    functional = functional_of(program)
    verify(functional, TABLE)
    assert all(node.op != "copy_" for node in functional.nodes)
    compare(program.graph, functional, program.inputs(), program.inputs())


@SETTINGS
@given(programs())
def test_random_programs_through_every_pass(program: Program) -> None:
    assume(functional_of(program))
    stages: list[Graph] = []
    run_passes(program.graph, TABLE, Options(debug_verify=True), lambda name, g, s: stages.append(g))
    assert len(stages) == len(PASSES)
    for stage in stages:
        compare(program.graph, stage, program.inputs(), program.inputs())


@SETTINGS
@given(programs())
def test_random_programs_round_trip_as_text(program: Program) -> None:
    for graph in (program.graph, functional_of(program)):
        assert parse(print_graph(graph), TABLE) == graph


def check_seeds(seeds: range, steps: int, symbolic: bool = False) -> int:
    """Check programs of ``steps`` steps; how many of them could be functionalized."""
    supported = 0
    for seed in seeds:
        program = make_program(Seeded(seed), steps, symbolic)
        try:
            functional = functionalize(program.graph, TABLE)
        except Unsupported:
            continue
        supported += 1
        final = run_passes(program.graph, TABLE, Options(debug_verify=True))
        for graph in (functional, final):
            try:
                compare(program.graph, graph, program.inputs(), program.inputs())
            except Exception as error:
                error.add_note(f"make_program(Seeded({seed}), {steps}, {symbolic})")
                raise
    return supported


def test_long_programs() -> None:
    assert check_seeds(range(150), 25) > 75


def test_long_programs_of_symbolic_sizes() -> None:
    assert check_seeds(range(150), 20, symbolic=True) > 75


@pytest.mark.slow
@pytest.mark.parametrize("symbolic", [False, True])
def test_many_long_programs(symbolic: bool) -> None:
    assert check_seeds(range(1000, 5000), 20, symbolic) > 2000


# -- single cases -----------------------------------------------------------------------------
F8 = dtypes.float64


class Case:
    """A small builder: ``c.slice(x, (1, 5))``."""

    def __init__(self, *shapes: tuple[int, ...]) -> None:
        self.b = GraphBuilder(TABLE)
        self.inputs = [self.b.add_input(array_type(F8, shape)) for shape in shapes]

    def slice(self, x: Var, *ranges: tuple[int, int], steps: tuple[int, ...] | None = None) -> Var:
        starts = tuple(start for start, _ in ranges)
        sizes = tuple(stop - start for start, stop in ranges)
        made: Var = self.b.emit(
            "strided_slice", x, starts=starts, sizes=sizes, steps=steps or (1,) * len(ranges)
        )
        return made

    def zeros(self, *shape: int) -> Var:
        made: Var = self.b.emit("full", shape=shape, value=0.0, dtype=F8, device=self.inputs[0].type.device)
        return made

    def finish(self, *outputs: Var) -> Graph:
        return self.b.finish(tuple(GraphOutput(v) for v in outputs))


def check(case: Case, *outputs: Var) -> Graph:
    graph = case.finish(*outputs)
    functional = verify(functionalize(graph, TABLE), TABLE)
    shapes = [inp.var.shape for inp in graph.inputs]
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape) for shape in shapes]
    compare(graph, functional, inputs, [a.copy() for a in inputs])
    return functional


def test_fresh_array_filled_by_slices_becomes_pure() -> None:
    c = Case((6,))
    (x,) = c.inputs
    out = c.zeros(6)
    c.b.emit("copy_", c.slice(out, (1, 6)), c.slice(x, (0, 5)))
    functional = check(c, out)
    assert not functional.mutations
    assert functional.outputs[0].view is None
    assert [n.op for n in functional.nodes] == ["full", "strided_slice", "update_slice"]


def test_overlapping_regions_of_one_base() -> None:
    c = Case((6,))
    (x,) = c.inputs
    c.b.emit("copy_", c.slice(x, (1, 6)), c.slice(x, (0, 5)))
    functional = check(c, x)
    assert [index for index, _ in functional.mutations] == [0]
    view = functional.outputs[0].view
    assert view is not None
    assert (view.kind, view.index, view.offset) == ("input", 0, 0)


def test_swapped_inputs() -> None:
    c = Case((4,), (4,))
    x, y = c.inputs
    old = c.b.emit("copy", x)
    c.b.emit("copy_", x, y)
    c.b.emit("copy_", y, old)
    functional = check(c)
    assert len(functional.mutations) == 2


def test_heat_step_in_place() -> None:
    c = Case((8,))
    (u,) = c.inputs
    for _ in range(3):
        middle = c.slice(u, (1, 7))
        neighbours = c.b.emit("add", c.slice(u, (0, 6)), c.slice(u, (2, 8)))
        c.b.emit("copy_", middle, neighbours)
    functional = check(c, u)
    assert sum(n.op == "update_slice" for n in functional.nodes) == 3


def test_two_outputs_share_a_fresh_base() -> None:
    c = Case((6,))
    y = c.b.emit("negative", c.inputs[0])
    functional = check(c, c.slice(y, (0, 4)), c.slice(y, (2, 6)))
    assert [out.hidden for out in functional.outputs] == [False, False, True]
    found = [(v.kind, v.index, v.offset) for out in functional.outputs if (v := out.view) is not None]
    assert found == [("output", 2, 0), ("output", 2, 2)]


def test_an_output_is_the_base_of_another() -> None:
    c = Case((2, 3))
    y = c.b.emit("negative", c.inputs[0])
    functional = check(c, c.b.emit("transpose", y, perm=(1, 0)), y)
    assert functional.outputs[1].view is None
    view = functional.outputs[0].view
    assert view is not None and (view.kind, view.index) == ("output", 1)


def test_one_value_returned_twice_is_one_array() -> None:
    c = Case((3,))
    y = c.b.emit("negative", c.inputs[0])
    functional = check(c, y, y)
    assert functional.outputs[0].view is None
    assert functional.outputs[1].view is not None


def test_flipped_view_of_an_input() -> None:
    c = Case((5,))
    flipped = c.b.emit("strided_slice", c.inputs[0], starts=(4,), sizes=(5,), steps=(-1,))
    back = c.b.emit("strided_slice", flipped, starts=(4,), sizes=(5,), steps=(-1,))
    functional = check(c, flipped, back)
    first, second = (out.view for out in functional.outputs)
    assert first is not None and (first.offset, first.strides) == (4, (-1,))
    assert second is not None and (second.offset, second.strides) == (0, (1,))


def test_read_between_two_writes_sees_the_first() -> None:
    c = Case((4,))
    (x,) = c.inputs
    view = c.slice(x, (0, 2))
    one = c.b.emit("negative", view)
    c.b.emit("copy_", view, one)
    two = c.b.emit("multiply", view, view)
    c.b.emit("copy_", c.slice(x, (1, 3)), two)
    check(c, two, view, c.b.emit("copy", view))


def test_write_through_reshape_and_transpose() -> None:
    c = Case((2, 3))
    (x,) = c.inputs
    flat = c.b.emit("reshape", x, shape=(6,))
    c.b.emit("copy_", c.slice(flat, (1, 3)), c.slice(flat, (3, 5)))
    turned = c.b.emit("transpose", x, perm=(1, 0))
    c.b.emit("copy_", c.slice(turned, (0, 1), (0, 2)), c.slice(turned, (2, 3), (0, 2)))
    check(c, flat)


def test_write_to_diagonal() -> None:
    c = Case((3, 3), (3,))
    x, y = c.inputs
    c.b.emit("copy_", c.b.emit("diagonal", x, offset=0, axis1=0, axis2=1), y)
    functional = check(c, x)
    assert [n.op for n in functional.nodes] == ["update_diagonal"]


def test_layout_of_a_replaced_base_is_kept() -> None:
    """``out = zeros((2, 3)); out[...] = x.T`` is C-contiguous although ``x.T`` is not."""
    c = Case((3, 2))
    out = c.zeros(2, 3)
    c.b.emit("copy_", out, c.b.emit("transpose", c.inputs[0], perm=(1, 0)))
    check(c, out, c.b.emit("reshape", out, shape=(6,)))


def test_scalar_outputs() -> None:
    c = Case((3,))
    total = c.b.emit("reduce_sum", c.inputs[0], axes=(0,))
    graph = c.b.finish((GraphOutput(total, "scalar"), GraphOutput(total, "python"), GraphOutput(total)))
    functional = verify(functionalize(graph, TABLE), TABLE)
    scalar, python, array = run(functional, TABLE, np.arange(3.0))
    assert type(scalar) is np.float64 and scalar == 3
    assert type(python) is float and python == 3
    assert isinstance(array, np.ndarray) and array.shape == ()


def test_readonly_output() -> None:
    c = Case((3,))
    graph = c.b.finish((GraphOutput(c.inputs[0], readonly=True),))
    x = np.arange(3.0)
    (y,) = run(functionalize(graph, TABLE), TABLE, x)
    assert np.shares_memory(x, y)
    assert not y.flags.writeable
    assert x.flags.writeable


def test_inputs_are_untouched_when_the_graph_raises() -> None:
    c = Case((3,), (3,))
    x, y = c.inputs
    c.b.emit("copy_", x, c.b.emit("negative", x))
    far = c.b.emit("constant", literal=Literal.of(np.array([7]), dtypes.int64))
    picked = c.b.emit("index", y, far, dims=(0,), position=0)
    functional = functionalize(c.finish(picked), TABLE)
    a = np.arange(3.0)
    with pytest.raises(IndexError):
        run(functional, TABLE, a, a.copy())
    np.testing.assert_array_equal(a, np.arange(3.0))


def test_write_to_broadcast_is_unsupported() -> None:
    c = Case((3,))
    wide = c.b.emit("broadcast_in_dim", c.inputs[0], shape=(2, 3), dims=(1,))
    c.b.emit("copy_", wide, c.zeros(2, 3))
    with pytest.raises(Unsupported):
        functionalize(c.finish(), TABLE)


def test_write_to_self_overlapping_input_is_unsupported() -> None:
    b = GraphBuilder(TABLE)
    x = b.add_input(ArrayType(F8, (3, 2), (1, 1)))
    b.emit("copy_", x, b.emit("negative", x))
    with pytest.raises(Unsupported):
        functionalize(b.finish(()), TABLE)


@pytest.mark.parametrize(
    ("shape", "strides", "overlaps"),
    [
        ((3, 4), (4, 1), False),
        ((3, 4), (1, 3), False),
        ((3, 4), (-4, -1), False),
        ((3, 4), (3, 1), True),
        ((3, 4), (0, 1), True),
        ((1, 4), (0, 1), False),
        ((0, 4), (0, 0), False),
        ((3, 2), (1, 1), True),
        ((), (), False),
    ],
)
def test_self_overlap(shape: tuple[int, ...], strides: tuple[int, ...], overlaps: bool) -> None:
    assert may_self_overlap(ArrayType(F8, shape, strides)) is overlaps


def symbolic_graph() -> tuple[Graph, Var]:
    """``x[1:n] = x[:n-1] + 1; return x[1:], x[:k].copy()`` with ``n`` the length and ``k`` an argument."""
    b = GraphBuilder(TABLE)
    n = b.env.new_symbol(6, low=2)
    k = b.env.new_symbol(3, low=0)
    x = b.add_input(ArrayType(F8, (n,), (1,)), label="x")
    b.bind_symbol(n, "dim", 0, 0)
    b.bind_symbol(k, "int", 0)
    left = b.emit("strided_slice", x, starts=(0,), sizes=(n - 1,), steps=(1,))
    right = b.emit("strided_slice", x, starts=(1,), sizes=(n - 1,), steps=(1,))
    one = b.emit("full", shape=(n - 1,), value=1.0, dtype=F8, device=x.type.device)
    b.emit("copy_", right, b.emit("add", left, one))
    part = b.emit("strided_slice", x, starts=(0,), sizes=(k,), steps=(1,))
    return b.finish((GraphOutput(right), GraphOutput(b.emit("copy", part)))), x


@pytest.mark.parametrize(("n", "k"), [(6, 3), (9, 0), (2, 2)])
def test_symbolic_sizes(n: int, k: int) -> None:
    graph, _ = symbolic_graph()
    final = run_passes(graph, TABLE, Options(debug_verify=True))
    x = np.arange(float(n))
    y = x.copy()
    want = run(graph, TABLE, x, k)
    got = run(final, TABLE, y, k)
    for a, b in zip(want, got):
        assert_same(a, b)
    np.testing.assert_array_equal(x, y)
    assert np.shares_memory(got[0], y)
    assert parse(print_graph(final), TABLE) == final
    assert not graph.env.guards


def test_functional_graphs_are_left_alone() -> None:
    graph, _ = symbolic_graph()
    functional = functionalize(graph, TABLE)
    assert functionalize(functional, TABLE) is functional


def test_long_chains_of_views() -> None:
    c = Case((3000,))
    (x,) = c.inputs
    view = x
    for start in range(2000):
        view = c.slice(view, (1, 2999 - start))
    c.b.emit("copy_", c.slice(x, (0, 1)), c.slice(view, (0, 1)))
    functional = check(c, view)
    final = run_passes(functional, TABLE, Options())
    assert sum(node.op == "strided_slice" for node in final.nodes) <= 2


def test_scalar_input_returned_as_an_array() -> None:
    b = GraphBuilder(TABLE)
    x = b.add_input(array_type(F8, ()), "scalar")
    graph = b.finish((GraphOutput(x), GraphOutput(x)))
    functional = verify(functionalize(graph, TABLE), TABLE)
    assert [out.view is None for out in functional.outputs] == [True, False]
    one, two = run(functional, TABLE, 3.0)
    assert one.shape == () and np.shares_memory(one, two)
