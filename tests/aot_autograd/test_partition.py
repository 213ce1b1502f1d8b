"""The two halves of joint graphs: they compute what the joint graph does; what is saved between them."""

from __future__ import annotations

import linecache
import math
from dataclasses import replace

import numpy as np
import pytest

import dyncomp
from dyncomp import dtypes, pipeline
from dyncomp.aot_autograd.joint import joint
from dyncomp.aot_autograd.partition import Halves, partition
from dyncomp.aot_autograd.parts import in_parts
from dyncomp.aot_autograd.saving import Choice, take_apart
from dyncomp.graph.interp import run
from dyncomp.graph.ir import GraphBuilder, GraphOutput, array_type, verify
from dyncomp.options import make_options
from dyncomp.prims.table import TABLE

from ..prims.framework import type_of
from ..prims.test_derivatives import suitable
from .random_gradients import program
from .test_joint import PROGRAMS, captured


def halves_of(graph, budget=None, outputs=None):
    wrt = [k for k, inp in enumerate(graph.inputs) if inp.var.dtype.is_inexact]
    made = joint(graph, TABLE, wrt, outputs)
    halves = partition(made, TABLE, memory_budget=budget)
    verify(halves.forward, TABLE)
    verify(halves.backward, TABLE)
    return made, halves


def run_halves(
    halves: Halves, args, integers, cotangents, call=lambda graph: lambda *a: run(graph, TABLE, *a)
):
    """What the forward graph gives, and the gradients."""
    inputs = [np.array(a, order="K") for a in args]
    visible = iter(call(halves.forward)(*inputs, *integers))
    found = [None if out.hidden else next(visible) for out in halves.forward.outputs]
    places = {"input": inputs, "output": found}
    saved = [places[s.kind][s.index] for s in halves.saved]
    sources = {
        "int": lambda b: integers[b.index],
        "dim": lambda b: inputs[b.index].shape[b.axis],
        "stride": lambda b: inputs[b.index].strides[b.axis] // inputs[b.index].itemsize,
        "output": lambda b: found[b.index],
    }
    more = [sources[b.kind](b) for b in halves.integers]
    return found, call(halves.backward)(*saved, *cotangents, *more)


def check(graph, args, integers=(), budget=None, call=None, rtol=0.0):
    """The halves of a graph against the joint graph."""
    made, halves = halves_of(graph, budget)
    rng = np.random.default_rng(1)
    visible = iter(run(graph, TABLE, *(a.copy() for a in args), *integers))
    plain = [None if out.hidden else next(visible) for out in graph.outputs]
    cotangents = [np.array(rng.random(np.shape(plain[k])), plain[k].dtype) for k in made.outputs]
    wanted = run(made.graph, TABLE, *(a.copy() for a in args), *cotangents, *integers)
    wanted = wanted[len(wanted) - len(made.wrt) :]
    more = {} if call is None else {"call": call}
    found, gradients = run_halves(halves, args, integers, cotangents, **more)
    for one, other in zip(found, plain):
        if other is not None:
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    for one, other in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    return halves


def compiled(graph):
    call = pipeline.run_pipeline(graph, make_options()).call

    def many(*args):
        results = call(*args)
        return results if isinstance(results, tuple) else (results,)

    return many


def in_pieces(graph):
    """The backward graph as parts that run one after the other, each for one gradient."""
    if not graph.name.endswith("_backward"):
        return lambda *args: run(graph, TABLE, *args)
    parts = in_parts(graph, TABLE, [1])
    if all(binding.kind != "node" for binding in graph.symbols):
        assert len(parts) == len(graph.outputs)
    for part in parts:
        verify(part.graph, TABLE)
    assert sorted(k for part in parts for k in part.gradients) == list(range(len(graph.outputs)))

    def call(*args):
        values, integers = list(args[: len(graph.inputs)]), args[len(graph.inputs) :]
        sources = {
            "int": lambda b: integers[b.index],
            "dim": lambda b: values[b.index].shape[b.axis],
            "stride": lambda b: values[b.index].strides[b.axis] // values[b.index].itemsize,
        }
        sizes = [sources[b.kind](b) for b in graph.symbols]
        gradients = {}
        for part in parts:
            found = run(part.graph, TABLE, *[values[k] for k in part.reads], *sizes)
            gradients.update(zip(part.gradients, found))
            values.extend(found[len(part.gradients) :])
        return [gradients[k] for k in range(len(graph.outputs))]

    return call


def kernels(graph):
    artifact = pipeline.run_pipeline(graph, make_options()).artifact
    return [type(step).__name__ for segment in artifact.module.segments for step in segment.steps]


def case(function, *args, **options):
    """The graph of a call, and its inputs."""
    graph = captured(function, *args, **options)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    named = dict(zip(names, args))
    return graph, [named[inp.label] for inp in graph.inputs]


def random_program(seed):
    text, n = program(seed)
    name = f"<halves {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, object] = {"np": np}
    exec(compile(text, name, "exec"), space)
    rng = np.random.default_rng(seed)
    return case(space["f"], *rng.standard_normal((2, n, n)))


ARGS = np.random.default_rng(0).random((5, 4)), np.random.default_rng(1).random((4, 3))


# -- values -----------------------------------------------------------------------------------
@pytest.mark.parametrize("budget", [None, 0.5, 0])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_halves_compute_what_the_joint_graph_does(function, budget):
    check(captured(function, *ARGS), ARGS, budget=budget, rtol=1e-13)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled_halves(function):
    check(captured(function, *ARGS), ARGS, call=compiled, rtol=1e-12)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_parts(function):
    check(captured(function, *ARGS), ARGS, call=in_pieces, rtol=1e-13)
    check(*case(function, *ARGS, dynamic=True), call=in_pieces, rtol=1e-13)


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed):
    graph, args = random_program(seed)
    check(graph, args, call=in_pieces, rtol=1e-12)
    for budget in (None, 0.5, 100, 0):
        check(graph, args, budget=budget, rtol=1e-12)


# no derivative by all of their arguments, or by a library's own means
PARTLY = ("zeta", "betainc", "routine_call", "ufunc_call")


@pytest.mark.parametrize("name", [n for n, r in TABLE.items() if r.vjp is not None and n not in PARTLY])
def test_rows(name):
    """A row between two elementwise functions."""
    row = TABLE[name]
    sample = next(iter(suitable(row)), None)
    if sample is None:
        pytest.skip("no sample in double precision")
    builder = GraphBuilder(TABLE)
    inputs = [builder.add_input(type_of(np.asarray(a))) for a in sample.args]
    read = [builder.emit("negative", v) if v.dtype.is_inexact else v for v in inputs]
    results = builder.emit(row.name, *read, **sample.params)
    results = results if isinstance(results, tuple) else (results,)
    inexact = [builder.emit("square", v) if v.dtype.is_inexact else v for v in results]
    graph = functional(builder, *inexact)
    if not any(v.dtype.is_inexact for v in results):
        pytest.skip("no floating-point result")
    args = [np.asarray(-a if np.asarray(a).dtype.kind in "fc" else a) for a in sample.args]
    for budget in (None, 0):
        check(graph, args, budget=budget)


def functional(builder, *outputs):
    return replace(builder.finish(tuple(map(GraphOutput, outputs))), functional=True)


# -- inputs, outputs and sizes ----------------------------------------------------------------
def test_written_inputs_are_saved_as_they_were():
    def f(x, y):
        z = np.sin(x) * y
        x[:] = 0.0
        return z.sum()

    args = [np.linspace(1, 2, 5), np.linspace(3, 4, 5)]
    graph = captured(f, *[a.copy() for a in args])
    made = joint(graph, TABLE, [1])
    halves = partition(made, TABLE)
    assert [s.kind for s in halves.saved] == ["output"]
    assert len(halves.more) == 1
    _, (gradient,) = run_halves(halves, args, (), [np.array(1.0)])
    np.testing.assert_array_equal(gradient, np.sin(args[0]))


def test_sizes_are_those_of_saved_values_or_integers():
    def f(x, n):
        return (np.exp(x).reshape(-1, n) * np.arange(n)).mean()

    graph = captured(f, np.ones(12), 3, dynamic=True)
    assert {s.kind for s in graph.symbols} == {"dim", "int"}
    halves = check(graph, [np.random.default_rng(0).random(20)], [5])
    assert [b.kind for b in halves.integers] == ["int"]


def test_a_size_that_no_saved_value_has():
    def f(x, y):
        return (y * x.shape[0]).sum()

    graph = captured(f, np.ones(12), np.ones(7), dynamic=True)
    made = joint(graph, TABLE, [[inp.label for inp in graph.inputs].index("y")])
    halves = partition(made, TABLE)
    assert {b.kind for b in halves.integers} == {"dim"}
    inputs = [{"x": np.ones(20), "y": np.ones(4)}[inp.label] for inp in graph.inputs]
    _, (gradient,) = run_halves(halves, inputs, (), [np.array(1.0)])
    np.testing.assert_array_equal(gradient, np.full(4, 20.0))


def test_outputs_are_not_saved_a_second_time():
    def f(x, w):
        h = np.tanh(x @ w)
        return h, h.sum()

    halves = check(captured(f, *ARGS), ARGS)
    assert not halves.more
    assert len(halves.forward.outputs) == 2


def test_a_joint_graph_without_cotangents_is_refused():
    graph = captured(lambda x: np.sin(x).sum(), np.ones(3))
    with pytest.raises(ValueError, match="cotangents"):
        partition(joint(graph, TABLE, [0], ones=True), TABLE)


# -- what is saved ----------------------------------------------------------------------------
def saved_ops(halves):
    makers = {v.name: node.op for node in halves.forward.nodes for v in node.outputs}
    return sorted(makers[v.name] for v in halves.more)


def test_of_a_layer_the_products_result_is_saved():
    def gelu(x, w, b, v):
        p = x @ w + b
        return (0.5 * p * (1 + np.tanh(0.8 * (p + 0.04 * p * p * p)))) @ v

    rng = np.random.default_rng(0)
    args = [rng.random(shape) for shape in ((128, 64), (64, 256), (256,), (256, 32))]
    graph = captured(gelu, *args)
    halves = check(graph, args, rtol=1e-12)
    assert [v.shape for v in halves.more] == [(128, 256)]
    assert saved_ops(halves) == ["add"]
    again = {node.op for node in halves.recomputed}
    assert "tanh" in again and "dot_general" not in again
    text = halves.describe()
    assert f"{128 * 256 * 8:,}" in text and "test_partition.py:" in text


def test_a_broadcast_is_saved_as_what_it_was_made_of():
    def f(x, w):
        scale = np.cumsum(w) * 1.5
        return np.sin(x * scale).sum()

    rng = np.random.default_rng(0)
    halves = check(*case(f, rng.random((200, 30)), rng.random(30)), rtol=1e-12)
    assert {v.shape for v in halves.more} == {(30,)}


def test_reductions_are_saved_and_what_nothing_needs_is_not():
    def f(x, w):
        total = np.exp(x).sum(axis=1, keepdims=True)
        return (np.exp(x) / total * w).sum() + (x @ x.T).sum()

    rng = np.random.default_rng(0)
    halves = check(*case(f, rng.random((50, 40)), rng.random((50, 40))), rtol=1e-12)
    assert saved_ops(halves) == ["reduce_sum"]


def test_of_a_buffer_written_in_a_loop_not_every_state_is_saved():
    def f(x, w):
        hidden = np.zeros((13, 8, 6))
        for t in range(12):
            hidden[t + 1] = hidden[t] @ w
            hidden[t + 1] += x[t]
            hidden[t + 1] *= hidden[t]
        return hidden[-1].sum()

    rng = np.random.default_rng(0)
    args = rng.random((12, 8, 6)), rng.random((6, 6))
    halves = check(*case(f, *args, options={"unroll_limit": 16}), rtol=1e-12)
    assert halves.saved_bytes < 3 * 13 * 8 * 6 * 8


def test_what_may_change_is_never_run_twice():
    calls = []

    @dyncomp.allow_in_graph
    def noise(x):
        calls.append(1)
        return x * len(calls)

    def f(x, y):
        return (np.sin(x) * noise(y)).sum()

    graph, args = case(f, np.full(4, 0.5), np.ones(4))
    calls.clear()
    made = joint(graph, TABLE, [[inp.label for inp in graph.inputs].index("x")])
    halves = partition(made, TABLE, memory_budget=0)
    assert saved_ops(halves) == ["python_call"]
    _, (gradient,) = run_halves(halves, args, (), [np.array(1.0)])
    np.testing.assert_array_equal(gradient, np.cos(np.full(4, 0.5)))
    assert len(calls) == 1


# -- budgets ----------------------------------------------------------------------------------
def deep(x, w, count=8):
    for _ in range(count):
        x = np.tanh(x @ w)
    return x.sum()


def deep_case():
    rng = np.random.default_rng(0)
    return case(deep, rng.random((40, 20)), rng.random((20, 20)) * 0.3)


def test_budgets_hold_and_more_room_saves_more():
    graph, args = deep_case()
    found = []
    for share in (None, 1.0, 0.75, 0.5, 0.25, 0.1, 0.0):
        halves = check(graph, args, budget=share, rtol=1e-12)
        found.append(halves.saved_bytes)
        if share is not None:
            assert found[-1] <= share * found[0]
    assert found == sorted(found, reverse=True)
    assert found[0] == found[1] and found[3] > 0 and found[-1] == 0
    one = 40 * 20 * 8
    assert partition(joint(graph, TABLE, [0]), TABLE, memory_budget=2 * one).saved_bytes == 2 * one


def test_what_is_computed_again_comes_late():
    """Not all of it at the beginning, where it would take as much memory as if it were saved."""
    graph, args = deep_case()
    made = joint(graph, TABLE, range(len(args)))
    nodes = partition(made, TABLE, memory_budget=0).backward.nodes
    again = [k for k, node in enumerate(nodes) if node.op == "tanh"]
    assert len(again) == 8
    assert any(node.op == "dot_general" and k > max(again) for k, node in enumerate(nodes))


# -- golden -----------------------------------------------------------------------------------
LABELS = np.random.default_rng(0).integers(0, 30, 64)


def cross_entropy(scores):
    scores = scores - scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -logs[np.arange(64), LABELS].mean()


def layer_norm(x, scale, shift):
    centred = x - x.mean(axis=-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return normal * scale + shift


def attention(x, wq, wk, wv, wo):
    count, width = x.shape
    heads = [(x @ w).reshape(count, 4, width // 4).transpose(1, 0, 2) for w in (wq, wk, wv)]
    scores = heads[0] @ heads[1].transpose(0, 2, 1) / np.sqrt(width // 4)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    return (weights @ heads[2]).transpose(1, 0, 2).reshape(count, width) @ wo


def test_cross_entropy_has_a_backward_pass_of_one_kernel():
    graph = captured(cross_entropy, np.random.default_rng(0).random((64, 30)))
    _, halves = halves_of(graph)
    assert kernels(halves.backward) == ["LaunchKernel"]


def test_layer_norm_has_a_backward_pass_of_two_kernels():
    rng = np.random.default_rng(0)
    graph = captured(layer_norm, rng.random((64, 128)), rng.random(128), rng.random(128))
    _, halves = halves_of(graph)
    assert kernels(halves.backward) == ["LaunchKernel"] * 2


def test_attention_keeps_its_groups_of_rows():
    rng = np.random.default_rng(0)
    args = [rng.random((128, 64)), *(rng.random((64, 64)) for _ in range(4))]
    graph = captured(attention, *args)
    _, halves = halves_of(graph)
    assert "CallRows" in kernels(halves.backward)
    assert "CallRows" in kernels(halves_of(graph, 0.5)[1].backward)


# -- how the work grows -----------------------------------------------------------------------
def chain(emit, x, y, blocks):
    for k in range(blocks * 6):
        x = emit(("sin", "exp", "tanh")[k % 3], x)
    return x


def wide(emit, x, y, blocks):
    total = x
    for _ in range(blocks):
        product = emit("dot_general", x, y, contract=((1,), (0,)), batch=((), ()))
        total = emit("add", total, emit("sin", emit("multiply", product, emit("exp", product))))
    return total


def layers(emit, x, y, blocks):
    for _ in range(blocks):
        product = emit("dot_general", x, y, contract=((1,), (0,)), batch=((), ()))
        gate = emit("tanh", emit("multiply", product, product))
        x = emit("add", x, emit("multiply", gate, product))
    return x


@pytest.mark.parametrize("shape", [chain, wide, layers], ids=lambda f: f.__name__)
def test_work_grows_nearly_as_the_graph(shape):
    work, sizes = [], []
    for blocks in (60, 240, 960):
        builder = GraphBuilder(TABLE)
        x, y = (builder.add_input(array_type(dtypes.float64, (32, 32))) for _ in range(2))
        graph = functional(builder, shape(builder.emit, x, y, blocks))
        made = joint(graph, TABLE, [0, 1])
        original = frozenset(v.name for node in graph.nodes for v in node.outputs)
        choice = Choice(take_apart(made.graph, TABLE, 1, 2, original), TABLE)
        choice.saved(0)
        work.append(choice.steps)
        sizes.append(len(made.graph.nodes))
    assert math.log(work[-1] / work[0]) / math.log(sizes[-1] / sizes[0]) < 1.25, (sizes, work)
