"""Random functional graphs: views, writes, pointwise, reductions, scans, gathers and contractions."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyncomp import dtypes
from dyncomp.graph.ir import Graph, GraphOutput, Literal, Var
from dyncomp.options import Options
from dyncomp.pipeline import run_passes
from dyncomp.prims.table import TABLE
from dyncomp.symbolic.integers import same
from tests.aot_autograd import programs
from tests.aot_autograd.programs import Choices, Layout, Seeded, Writer, make_layout


class LoopWriter(Writer):
    """Adds the kinds that views and writes alone do not have."""

    def reduce(self) -> None:
        x = self.pick()
        if x.ndim:
            count = self.choices.integer(1, x.ndim)
            axes = tuple(sorted(self.choices.shuffled(x.ndim)[:count]))
            empty = any(same(x.shape[axis], 0) for axis in axes)
            ops = ["reduce_sum"] if empty else ["reduce_sum", "reduce_max", "reduce_min"]
            self.add(self.choices.pick(ops), x, axes=axes)

    def normalise(self) -> None:
        """A reduction broadcast back over its own axes, as in softmax."""
        x = self.pick()
        if x.ndim:
            axis = self.choices.integer(0, x.ndim - 1)
            ops = ["reduce_sum"] if same(x.shape[axis], 0) else ["reduce_sum", "reduce_max"]
            total = self.add(self.choices.pick(ops), x, axes=(axis,))
            kept = tuple(k for k in range(x.ndim) if k != axis)
            back = self.add("broadcast_in_dim", total, shape=x.shape, dims=kept)
            self.add(self.choices.pick(["subtract", "maximum"]), x, back)

    def outer(self) -> None:
        """Broadcasting along an inner axis."""
        x = self.pick()
        if x.ndim < 3:
            size = self.choices.integer(0 if 0 in x.shape else 1, 4)
            back = self.add("broadcast_in_dim", x, shape=(*x.shape, size), dims=tuple(range(x.ndim)))
            self.add("negative", back)

    def position(self) -> None:
        x = self.pick()
        if x.ndim:
            axis = self.choices.integer(0, x.ndim - 1)
            where = self.add("iota", shape=x.shape, axis=axis, dtype=dtypes.float64, device=x.type.device)
            self.add("add", x, where)

    def scan(self) -> None:
        x = self.pick()
        if x.ndim:
            self.add("cumsum", x, axis=self.choices.integer(0, x.ndim - 1))

    def gather(self) -> None:
        x = self.pick()
        if x.ndim:
            axis = self.choices.integer(0, x.ndim - 1)
            n = x.shape[axis]
            # in an array without elements positions are not looked at: their graphs are interpreted
            count = 0 if 0 in x.shape else self.choices.integer(1, 4)
            rows = np.array([self.choices.integer(-n, n - 1) for _ in range(count)], np.int64)
            at = self.builder.emit("constant", literal=Literal.of(rows, dtypes.int64), device=x.type.device)
            self.add("index", x, at, dims=(axis,), position=axis)

    def scatter(self) -> None:
        x = self.pick()
        if x.ndim:
            n = x.shape[0]
            count = 0 if 0 in x.shape else 2
            rows = np.array([self.choices.integer(-n, n - 1) for _ in range(count)], np.int64)
            at = self.builder.emit("constant", literal=Literal.of(rows, dtypes.int64), device=x.type.device)
            shape = (count, *x.shape[1:])
            value = self.add("full", shape=shape, value=2.0, dtype=x.dtype, device=x.type.device)
            combine = self.choices.pick(["set", "add", "max"])
            self.add("index_put", x, value, at, dims=(0,), position=0, combine=combine)

    def product(self) -> None:
        x = self.pick()
        if x.ndim == 2:
            y = self.add("transpose", self.like(x), perm=(1, 0))
            self.add("dot_general", x, y, contract=((1,), (0,)), batch=((), ()))

    def call(self) -> None:
        x = self.pick()
        if x.ndim:
            self.add("sort", x, axis=x.ndim - 1)


NEEDS = {
    "scan": "cumsum",
    "gather": "index",
    "scatter": "index_put",
    "product": "dot_general",
    "call": "sort",
}
LOOPS = ("reduce", "reduce", "normalise", "normalise", "outer", "position", *NEEDS)


def steps_available() -> list[str]:
    """Step names whose ops are in the table."""
    loops = [s for s in LOOPS if NEEDS.get(s, "add") in TABLE]
    return [*programs.STEPS, *loops]


def make_graph(
    choices: Choices, steps: int, symbolic: bool = False, zeros: bool = False
) -> tuple[Graph, list[Layout]]:
    """A random functional graph of prims and how its inputs lie in memory. ``zeros``: some sizes are zero."""
    layouts = [make_layout(choices, zeros) for _ in range(choices.integer(1, 2))]
    writer = LoopWriter(choices, layouts, symbolic)
    available = steps_available()
    for _ in range(steps):
        getattr(writer, choices.pick(available))()
    outputs: list[GraphOutput] = []
    for _ in range(choices.integer(1, 4)):
        var: Var = writer.pick()
        kinds = ["array", "scalar", "python"] if var.ndim == 0 else ["array"]
        outputs.append(GraphOutput(var, choices.pick(kinds)))
    captured = writer.builder.finish(tuple(outputs))
    return run_passes(captured, TABLE, Options()), layouts


def seeded_graph(
    seed: int, steps: int = 14, symbolic: bool = False
) -> tuple[Graph, list[np.ndarray[Any, Any]]]:
    graph, layouts = make_graph(Seeded(seed), steps, symbolic)
    return graph, [layout.make(k) for k, layout in enumerate(layouts)]


def assert_same(found: Any, wanted: Any) -> None:
    """Outputs (or inputs afterwards) agree up to rounding, types exactly."""
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        x, y = np.asarray(a), np.asarray(b)
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-9)
