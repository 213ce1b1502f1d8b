"""Wrong derivatives: plain Python's are made by the same rules, so these are compared with differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..aot_autograd.expand import without_markers
from ..aot_autograd.functionalize import functionalize
from ..aot_autograd.joint import joint
from ..errors import DyncompError
from ..graph.interp import Interpreter
from .case import Array, Case, values_of
from .shrink import Budget, retyped, shrink, single, with_fixed_sizes

_DIRECTIONS = 3
_STEPS = (1e-6, 4e-6)
_RELATIVE = 1e-4
_REFUSED = (DyncompError, ValueError, TypeError, IndexError, KeyError, AssertionError, NotImplementedError)


def prepared(case: Case) -> Case:
    """The functional graph of a case, without what asks for derivatives, on 64-bit numbers."""
    graph = without_markers(functionalize(case.graph, case.table))
    made = replace(case, graph=graph)
    for change in (with_fixed_sizes, lambda c: retyped(c, "float32", "float64")):
        try:
            made = change(made)
        except _REFUSED:
            continue
    return made


def gradient_fault(case: Case) -> str:
    """How the derivative of the graph's outputs by its inputs differs from differences of its values, in
    words; empty where it does not, or cannot be told."""
    try:
        with np.errstate(all="ignore"):
            return _gradient_fault(prepared(case))
    except _REFUSED:
        return ""


def shrink_gradient(case: Case, budget: Budget) -> Case:
    """The smallest graph found whose derivative is wrong."""
    return shrink(prepared(case), lambda candidate: bool(gradient_fault(candidate)), budget)


def single_operations(case: Case) -> Iterator[Case]:
    """Every operation of the graph alone, on the values that it has there; one for each op and shape."""
    whole = prepared(case)
    values = {**values_of(whole), **{inp.var.name: v for inp, v in zip(whole.graph.inputs, whole.inputs)}}
    seen = set()
    for node in whole.graph.nodes:
        key = (node.op, tuple([str(var.type) for var in node.inputs]), repr(node.params))
        if key in seen or not node.inputs:
            continue
        seen.add(key)
        try:
            yield single(whole, node, values)
        except _REFUSED:
            continue


def _gradient_fault(case: Case) -> str:
    graph = case.graph
    wrt = [
        k
        for k, inp in enumerate(graph.inputs)
        if inp.var.dtype.name == "float64" and isinstance(case.inputs[k], np.ndarray)
    ]
    if not wrt:
        return ""
    made = joint(graph, case.table, wrt)
    rng = np.random.default_rng(0)
    cotangents = [rng.normal(size=graph.outputs[k].var.shape) for k in made.outputs]
    arguments = case.arguments()
    count = len(graph.inputs)
    results = Interpreter(made.graph, case.table).run(*arguments[:count], *cotangents, *arguments[count:])
    gradients = [np.asarray(g) for g in results[len(results) - len(wrt) :]]

    def value(inputs: list[Any]) -> float:
        outputs = Interpreter(graph, case.table).run(*inputs, *arguments[count:])
        picked = [np.asarray(outputs[k]) for k in made.outputs]
        return float(sum((np.real(p * c)).sum() for p, c in zip(picked, cotangents)))

    for number, gradient in zip(wrt, gradients):
        text = _compare(case, number, gradient, value, rng)
        if text:
            return text
    return ""


def _compare(
    case: Case, number: int, gradient: Array, value: Callable[[list[Any]], float], rng: np.random.Generator
) -> str:
    """One input's gradient along a few directions."""
    x = case.inputs[number]
    for _ in range(_DIRECTIONS):
        direction = rng.normal(size=x.shape)
        slopes = []
        for step in _STEPS:
            ends = []
            for sign in (1.0, -1.0):
                inputs = case.arguments()[: len(case.inputs)]
                inputs[number] = x + sign * step * direction
                ends.append(value(inputs))
            slopes.append((ends[0] - ends[1]) / (2 * step))
        found = float((gradient * direction).sum())
        doubt = abs(slopes[0] - slopes[1])
        scale = float(np.abs(gradient * direction).sum()) + abs(slopes[0])
        if not np.isfinite([found, *slopes]).all() or doubt > _RELATIVE * scale:
            continue  # a kink, or nothing to be told
        if abs(found - slopes[0]) > 10 * _RELATIVE * scale:
            label = case.graph.inputs[number].label or case.graph.inputs[number].var.name
            return (
                f"the derivative by {label} along a direction is {found:.6g}, differences say {slopes[0]:.6g}"
            )
    return ""
