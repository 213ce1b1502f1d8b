"""Runs lowered graphs two ways: by the loop IR's NumPy reference, and compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyncomp.graph.interp import Interpreter, strided_window
from dyncomp.graph.ir import ArrayType, Graph, GraphBuilder, GraphOutput, array_type, verify
from dyncomp.inductor.compile import compile_graph, emit_steps, touched
from dyncomp.inductor.loops.loop_text import kernel_text, parse_kernel
from dyncomp.inductor.loops.loop_verify import verify_kernel
from dyncomp.inductor.lowering.kinds import Lowering
from dyncomp.inductor.memory import plan_memory
from dyncomp.inductor.planning import Planned, Planner
from dyncomp.inductor.reference import PlanReference, flat_memory
from dyncomp.options import Options
from dyncomp.prims.kit import type_of
from dyncomp.prims.table import TABLE

OPTIONS = Options(debug_verify=True)


def graph_of(op: str, types: Sequence[ArrayType], params: dict[str, Any]) -> Graph:
    """A graph of one node."""
    builder = GraphBuilder(TABLE)
    inputs = [builder.add_input(t) for t in types]
    out = builder.emit(op, *inputs, **params)
    several = out if isinstance(out, tuple) else (out,)
    # the functional form never returns views without saying so
    outputs = tuple(GraphOutput(v) for v in several)
    return verify(builder.finish(outputs), TABLE)


def plan_of(graph: Graph) -> Planned:
    lowering = Lowering(graph, TABLE).run()
    items = emit_steps(lowering)
    for item in items:
        kernel = getattr(item, "kernel", None)
        if kernel is not None:
            verify_kernel(kernel)
            text = kernel_text(kernel)
            assert kernel_text(parse_kernel(text, graph.env)) == text
    return Planner(lowering, plan_memory([touched(i) for i in items])).run(items)


class Reference(PlanReference):
    """A planned graph run on NumPy memory by ``loop_ref``. ``run`` returns the fresh outputs in order."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, plan_of(graph))


def copies(args: Sequence[Any]) -> list[Any]:
    """Copies of arrays that keep their strides."""
    return [copy_strided(a) if isinstance(a, np.ndarray) else a for a in args]


def copy_strided(array: Any) -> Any:
    """A copy in memory of its own with the same strides."""
    if array.size == 0:
        return array.copy()
    memory = flat_memory(array)
    data = np.array(memory.data)
    strides = tuple(s // array.itemsize for s in array.strides)
    return strided_window(data, array.shape, strides, memory.origin)


def expected(graph: Graph, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Outputs, and arguments afterwards, by the graph interpreter."""
    own = copies(args)
    return Interpreter(graph, TABLE).run(*own), own


def by_reference(graph: Graph, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    own = copies(args)
    return Reference(graph).run(*own), own


def by_code(graph: Graph, args: Sequence[Any], options: Options = OPTIONS) -> tuple[list[Any], list[Any]]:
    own = copies(args)
    artifact = compile_graph(graph, options)
    out = artifact.call(*own)
    visible = sum(not o.hidden for o in graph.outputs)
    return [out] if visible == 1 else list(out), own


__all__ = [
    "Lowering",
    "array_type",
    "by_code",
    "by_reference",
    "emit_steps",
    "expected",
    "graph_of",
    "kernel_text",
    "type_of",
]
