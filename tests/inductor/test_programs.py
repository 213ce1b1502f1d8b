"""Whole programs: how many kernels they take, and their values by reference and by compiled code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from dyncomp import dtypes
from dyncomp.errors import LoweringError
from dyncomp.graph.ir import Graph, GraphBuilder, GraphOutput, Literal, Ops, Var, array_type, verify
from dyncomp.inductor.compile import compile_graph
from dyncomp.prims.table import TABLE
from tests.inductor.fuzz import assert_same
from tests.inductor.harness import OPTIONS, by_code, by_reference, expected, plan_of

F64 = dtypes.float64
RNG = np.random.default_rng(0)
Build = Callable[[Ops], tuple[tuple[Var, ...], dict[int, Var]]]


def make(build: Build) -> Graph:
    """A functional graph from a function that adds its inputs and returns outputs and mutations."""
    builder = GraphBuilder(TABLE)
    outputs, mutations = build(Ops(builder))
    graph = builder.finish(tuple(GraphOutput(v) for v in outputs))
    graph = Graph(**{**_fields(graph), "mutations": tuple(mutations.items()), "functional": True})
    return verify(graph, TABLE)


def _fields(graph: Graph) -> dict[str, Any]:
    return {name: getattr(graph, name) for name in graph.__dataclass_fields__}


def source(ops: Ops, *shape: int, dtype: Any = F64) -> Var:
    return ops.builder.add_input(array_type(dtype, shape))


def spread(ops: Ops, x: Var, shape: tuple[int, ...], *dims: int) -> Var:
    return ops.broadcast_in_dim(x, shape=shape, dims=dims)


def number(ops: Ops, value: float, like: Var) -> Var:
    return ops.full(shape=like.shape, value=value, dtype=like.dtype)


def steps(graph: Graph) -> int:
    return sum(len(s.steps) for s in plan_of(graph).module.segments)


def check(graph: Graph, args: list[Any], count: int) -> None:
    wanted, wanted_args = expected(graph, args)
    for run in (by_reference, by_code):
        found, found_args = run(graph, args)
        assert_same(found, wanted)
        assert_same(found_args, wanted_args)
    assert steps(graph) == count, compile_graph(graph, OPTIONS).describe()


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape)


def softmax(ops: Ops, x: Var) -> Var:
    n, m = x.shape
    e = ops.exp(ops.subtract(x, spread(ops, ops.reduce_max(x, axes=(1,)), (n, m), 0)))
    return ops.divide(e, spread(ops, ops.reduce_sum(e, axes=(1,)), (n, m), 0))


def test_softmax_is_one_kernel() -> None:
    check(make(lambda o: ((softmax(o, source(o, 70, 133)),), {})), [normal(70, 133)], 1)


def test_softmax_in_place_is_one_kernel() -> None:
    def build(o: Ops) -> Any:
        return (), {0: softmax(o, source(o, 70, 133))}

    check(make(build), [normal(70, 133)], 1)


def mean(ops: Ops, x: Var, axis: int) -> Var:
    total = ops.reduce_sum(x, axes=(axis,))
    return ops.divide(total, number(ops, float(x.shape[axis]), total))


@pytest.mark.parametrize("axis", [0, 1])
def test_layer_norm_is_one_kernel(axis: int) -> None:
    def build(o: Ops) -> Any:
        x = source(o, 90, 65)
        centred = o.subtract(x, spread(o, mean(o, x, axis), x.shape, 1 - axis))
        variance = mean(o, o.square(centred), axis)
        scale = o.sqrt(o.add(variance, number(o, 1e-5, variance)))
        return (o.divide(centred, spread(o, scale, x.shape, 1 - axis)),), {}

    check(make(build), [normal(90, 65)], 1)


def heat(o: Ops, u: Var) -> Var:
    n, m = u.shape

    def at(i: int, j: int) -> Var:
        return o.strided_slice(u, starts=(i, j), sizes=(n - 2, m - 2), steps=(1, 1))

    near = o.add(o.add(at(0, 1), at(2, 1)), o.add(at(1, 0), at(1, 2)))
    new = o.add(
        at(1, 1),
        o.multiply(number(o, 0.1, near), o.subtract(near, o.multiply(number(o, 4.0, near), at(1, 1)))),
    )
    return o.update_slice(u, new, starts=(1, 1), sizes=(n - 2, m - 2), steps=(1, 1))


def test_stencil_in_place_is_a_temporary_and_a_copy() -> None:
    def build(o: Ops) -> Any:
        return (), {0: heat(o, source(o, 60, 83))}

    check(make(build), [normal(60, 83)], 2)


def test_region_update_at_the_same_place_is_one_kernel() -> None:
    def build(o: Ops) -> Any:
        u = source(o, 60, 83)
        window = {"starts": (1, 2), "sizes": (20, 30), "steps": (1, 1)}
        old = o.strided_slice(u, **window)
        return (), {0: o.update_slice(u, o.multiply(old, number(o, 2.0, old)), **window)}

    check(make(build), [normal(60, 83)], 1)


def test_in_place_arithmetic_is_one_kernel() -> None:
    def build(o: Ops) -> Any:
        x, y = source(o, 1000), source(o, 1000)
        return (), {0: o.add(x, o.exp(y))}

    check(make(build), [normal(1000), normal(1000)], 1)


def test_swap() -> None:
    def build(o: Ops) -> Any:
        x, y = source(o, 50), source(o, 50)
        return (), {0: o.copy(y), 1: o.copy(x)}

    graph = make(build)
    check(graph, [normal(50), normal(50)], steps(graph))


def test_statistics_of_a_large_array_are_one_kernel() -> None:
    def build(o: Ops) -> Any:
        x = source(o, 300, 1001)
        return tuple(getattr(o, f"reduce_{r}")(x, axes=(0, 1)) for r in ("sum", "max", "min")), {}

    check(make(build), [normal(300, 1001)], 1)


def test_centring_a_large_array_is_two_kernels() -> None:
    def build(o: Ops) -> Any:
        x = source(o, 100_003)
        total = o.reduce_sum(x, axes=(0,))
        average = o.divide(total, number(o, 100_003.0, total))
        return (o.subtract(x, spread(o, average, x.shape)),), {}

    check(make(build), [normal(100_003)], 2)


def test_linear_layer_is_a_product_and_a_kernel() -> None:
    def build(o: Ops) -> Any:
        x, w, b = source(o, 40, 30), source(o, 50, 30), source(o, 50)
        y = o.dot_general(x, o.transpose(w, perm=(1, 0)), contract=((1,), (0,)), batch=((), ()))
        return (o.maximum(o.add(y, spread(o, b, y.shape, 1)), number(o, 0.0, y)),), {}

    check(make(build), [normal(40, 30), normal(50, 30), normal(50)], 2)


def test_batched_product_of_views() -> None:
    def build(o: Ops) -> Any:
        q, k = source(o, 3, 20, 4, 16), source(o, 3, 20, 4, 16)
        return (o.dot_general(q, k, contract=((3,), (3,)), batch=((0, 2), (0, 2))),), {}

    graph = make(build)
    check(graph, [normal(3, 20, 4, 16), normal(3, 20, 4, 16)], steps(graph))


def test_distances_and_nearest_are_one_kernel_each() -> None:
    def build(o: Ops) -> Any:
        x, c = source(o, 200, 3), source(o, 7, 3)
        shape = (200, 7, 3)
        difference = o.subtract(spread(o, x, shape, 0, 2), spread(o, c, shape, 1, 2))
        distance = o.reduce_sum(o.square(difference), axes=(2,))
        return (o.argmin(distance, axis=1),), {}

    check(make(build), [normal(200, 3), normal(7, 3)], 2)


def test_concatenation_writes_each_part_once() -> None:
    def build(o: Ops) -> Any:
        x, y = source(o, 30, 5), source(o, 20, 5)
        whole = o.empty(shape=(50, 5), dtype=F64)
        whole = o.update_slice(whole, o.exp(x), starts=(0, 0), sizes=(30, 5), steps=(1, 1))
        whole = o.update_slice(whole, o.negative(y), starts=(30, 0), sizes=(20, 5), steps=(1, 1))
        return (whole,), {}

    check(make(build), [normal(30, 5), normal(20, 5)], 2)


def test_parts_of_equal_shape_are_one_kernel() -> None:
    def build(o: Ops) -> Any:
        x = source(o, 300)
        whole = o.empty(shape=(300, 3), dtype=F64)
        for k, part in enumerate((o.exp(x), o.negative(x), o.square(o.exp(x)))):
            column = o.broadcast_in_dim(part, shape=(300, 1), dims=(0,))
            whole = o.update_slice(whole, column, starts=(0, k), sizes=(300, 1), steps=(1, 1))
        return (whole,), {}

    check(make(build), [normal(300)], 1)


def test_overlapping_parts_are_written_in_order() -> None:
    def build(o: Ops) -> Any:
        x = source(o, 300)
        whole = o.update_slice(o.square(x), o.negative(x), starts=(0,), sizes=(300,), steps=(1,))
        part = o.strided_slice(x, starts=(0,), sizes=(200,), steps=(1,))
        for start in (0, 50, 100):
            whole = o.update_slice(whole, o.exp(part), starts=(start,), sizes=(200,), steps=(1,))
        return (whole,), {}

    graph = make(build)
    check(graph, [normal(300)], steps(graph))


def test_nothing_is_written_when_an_index_is_out_of_bounds() -> None:
    def build(o: Ops) -> Any:
        x, y = source(o, 10), source(o, 10)
        at = source(o, 10, dtype=dtypes.int64)
        return (), {0: o.add(x, number(o, 1.0, x)), 1: o.add(y, o.index(x, at, dims=(0,), position=0))}

    graph = make(build)
    args = [normal(10), normal(10), RNG.integers(-10, 10, 10)]
    wanted, wanted_args = expected(graph, args)
    for run in (by_reference, by_code):
        assert_same(run(graph, args)[1], wanted_args)
    args[2][7] = 10
    before = [a.copy() for a in args]
    call = compile_graph(graph, OPTIONS).call
    with pytest.raises(IndexError, match="index 10 is out of bounds for axis with size 10|out of bounds"):
        call(*args)
    assert_same(args, before)


def test_value_read_at_two_shifts_is_computed_once() -> None:
    def build(o: Ops) -> Any:
        x = source(o, 100_000)
        e = o.exp(x)
        right = o.strided_slice(e, starts=(1,), sizes=(99_999,), steps=(1,))
        left = o.strided_slice(e, starts=(0,), sizes=(99_999,), steps=(1,))
        return (o.subtract(right, left),), {}

    check(make(build), [normal(100_000)], 2)


def test_reshape_of_computed_values_needs_no_copy() -> None:
    def build(o: Ops) -> Any:
        x = source(o, 12, 10)
        flat = o.reshape(o.exp(x), shape=(120,))
        return (o.add(flat, o.iota(shape=(120,), axis=0, dtype=F64)),), {}

    check(make(build), [normal(12, 10)], 1)


def pointwise_program(count: int) -> Graph:
    def build(o: Ops) -> Any:
        values = [source(o, 500), source(o, 500)]
        rng = np.random.default_rng(1)
        for _ in range(count):
            i, j = rng.integers(max(0, len(values) - 12), len(values), 2)
            op = ("add", "subtract", "maximum")[rng.integers(3)]
            values.append(getattr(o, op)(values[i], values[j]))
        return (values[-1], values[-2]), {}

    return make(build)


def calls_of(run: Callable[[], object]) -> int:
    """How many functions are called, those in C included."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return calls


def test_lowering_is_linear() -> None:
    """Four times the nodes take about four times as many calls."""
    plan_of(pointwise_program(50))  # imports, and tables that are made once
    few, many = (pointwise_program(count) for count in (250, 1000))
    assert calls_of(lambda: plan_of(many)) < 5 * calls_of(lambda: plan_of(few))


def test_a_thousand_nodes() -> None:
    graph = pointwise_program(1000)
    args = [normal(500), normal(500)]
    wanted, _ = expected(graph, args)
    assert_same(by_code(graph, args)[0], wanted)


def test_equal_kernels_share_code() -> None:
    def build(o: Ops) -> Any:
        x = source(o, 64, 64)
        for _ in range(4):
            x = o.dot_general(softmax(o, x), x, contract=((1,), (0,)), batch=((), ()))
        return (x,), {}

    graph = make(build)
    artifact = compile_graph(graph, OPTIONS)
    assert len(artifact.kernels) == 1
    check(graph, [normal(64, 64)], 8)


def test_a_long_chain_of_views() -> None:
    def build(o: Ops) -> Any:
        x = source(o, 20, 20)
        for _ in range(1500):
            x = o.transpose(x, perm=(1, 0))
        return (o.negative(x),), {}

    check(make(build), [normal(20, 20)], 1)


def test_positions_along_an_axis_need_no_check() -> None:
    """``x[np.arange(n), labels]``: only the labels are checked."""

    def build(o: Ops) -> Any:
        x, labels = source(o, 30, 5), source(o, 30, dtype=dtypes.int64)
        rows = o.iota(shape=(30,), axis=0, dtype=dtypes.int64)
        return (o.index(x, rows, labels, dims=(0, 1), position=0),), {}

    graph = make(build)
    check(graph, [normal(30, 5), RNG.integers(-5, 5, 30)], 1)
    (step,) = plan_of(graph).module.segments[0].steps
    (gather,) = [s for s in step.kernel.body if s.op == "gather"]
    assert len(gather.args) == 1


def test_compiling_deep_in_the_stack_is_refused_cleanly() -> None:
    def build(o: Ops) -> Any:
        x = source(o, 500)
        for _ in range(60):
            x = o.sin(x)
        return (x,), {}

    graph = make(build)
    check(graph, [normal(500)], 1)

    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            compile_graph(graph, OPTIONS)

    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    with pytest.raises(LoweringError, match="too deep"):
        deep(sys.getrecursionlimit() - depth - 60)


def test_constant_array() -> None:
    def build(o: Ops) -> Any:
        x = source(o, 5)
        return (o.multiply(x, o.constant(literal=Literal.of(np.arange(5.0), F64))),), {}

    check(make(build), [normal(5)], 1)
