"""The two halves of joint graphs: together they compute what the joint graph does."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.aot_autograd.functionalize import functionalize
from dyncomp.aot_autograd.joint import joint
from dyncomp.aot_autograd.partition import Halves, partition
from dyncomp.graph.interp import run
from dyncomp.graph.ir import verify
from dyncomp.prims.table import TABLE

from .test_joint import PROGRAMS, captured, many


def run_halves(halves: Halves, args, integers, cotangents):
    """What the forward graph gives, and the gradients."""
    inputs = [a.copy() for a in args]
    results = run(halves.forward, TABLE, *inputs, *integers)
    visible = iter(results)
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
    return found, run(halves.backward, TABLE, *saved, *cotangents, *more)


def check_halves(graph, made, halves, args, integers=()):
    """Compare with the joint graph."""
    verify(halves.forward, TABLE)
    verify(halves.backward, TABLE)
    rng = np.random.default_rng(1)
    count = len(graph.outputs)
    plain = run(graph, TABLE, *(a.copy() for a in args), *integers)
    visible = iter(plain)
    whole = [None if out.hidden else next(visible) for out in graph.outputs]
    shapes = [np.shape(whole[k]) for k in made.outputs]
    cotangents = [rng.random(shape) for shape in shapes]
    wanted = run(made.graph, TABLE, *(a.copy() for a in args), *cotangents, *integers)
    found, gradients = run_halves(halves, args, integers, cotangents)
    for one, other in zip(found[:count], whole):
        if other is not None:
            np.testing.assert_array_equal(one, other)
    for one, other in zip(gradients, wanted[len(plain) :], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_halves_compute_what_the_joint_graph_does(function):
    rng = np.random.default_rng(0)
    args = [rng.random((5, 4)), rng.random((4, 3))]
    graph = captured(function, *args)
    made = joint(graph, TABLE, [0, 1])
    check_halves(graph, made, partition(made, TABLE), args)


def test_written_inputs_are_saved_as_they_were():
    def f(x, y):
        z = np.sin(x) * y
        x[:] = 0.0
        return z.sum()

    args = [np.linspace(1, 2, 5), np.linspace(3, 4, 5)]
    graph = captured(f, *[a.copy() for a in args])
    made = joint(graph, TABLE, [1])
    halves = partition(made, TABLE)
    check_halves(graph, made, halves, args)
    assert [s.kind for s in halves.saved] == ["output"]


def test_sizes_are_those_of_saved_values_or_integers():
    def f(x, n):
        return (np.exp(x).reshape(-1, n) * np.arange(n)).mean()

    graph = captured(f, np.ones(12), 3, dynamic=True)
    kinds = {s.kind for s in graph.symbols}
    assert kinds == {"dim", "int"}
    made = joint(graph, TABLE, [0])
    halves = partition(made, TABLE)
    print(halves)
    check_halves(graph, made, halves, [np.random.default_rng(0).random(20)], [5])


def test_a_joint_graph_without_cotangents_is_refused():
    graph = captured(lambda x: np.sin(x).sum(), np.ones(3))
    with pytest.raises(ValueError, match="cotangents"):
        partition(joint(graph, TABLE, [0], ones=True), TABLE)
