"""Single calls of NumPy, differentiated: each is captured once, as a function of its own.

So a call on the tape has the same rules as in a captured graph. Graphs of single calls are interpreted.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import pipeline
from ..aot_autograd.joint import joint
from ..aot_autograd.pushforward import pushforward
from ..errors import LoweringError, NotDifferentiableError, ToolchainError, Unsupported
from ..graph.ir import Graph
from ..options import Options, make_options
from .record import Recorded

Array = np.ndarray[Any, Any]
_MOST_OTHERS = 256
_MOST_NUMBERS = 64  # in an array that is a constant of the graph
HOT = 256  # uses after which a backward graph is compiled


class Operation:
    """``source``: a function ``run`` of arrays ``a0``, ``a1``, ..., ``names``: its globals, ``wrt``: the
    numbers of the arrays that it is differentiated by."""

    def __init__(self, name: str, source: str, names: dict[str, object], wrt: tuple[int, ...]) -> None:
        self.name = name
        self.source = source
        self.names = names
        self.wrt = wrt
        self.problem: str | None = None
        self.graph: Graph | None = None
        self.order: Sequence[int] = ()  # which array each input of the graph is
        self.numbers: Sequence[int | None] = ()  # which output of the graph each result is
        self.run: Callable[..., Sequence[Any]] | None = None
        self.layout: Layout | None = None
        self.pulls: dict[tuple[int, ...], Callable[..., list[Array]]] = {}
        self.graphs: dict[object, Graph] = {}  # of derivatives
        self.derived: dict[object, Operation] = {}
        self.uses = 0
        self.hot = HOT
        # arrays that are no inputs: the graph can be of their values
        self.fixed: list[tuple[int, bytes]] = []
        self.others: dict[tuple[bytes, ...], Operation] = {}  # by these values
        self.lock = threading.RLock()

    @staticmethod
    def of_graph(
        name: str, graph: Graph, wrt: tuple[int, ...], numbers: Sequence[int], hot: int
    ) -> Operation:
        """That of a graph, whose arrays are its inputs and the sizes behind them. ``numbers``: the outputs
        that are its results."""
        made = Operation(name, "", {}, wrt)
        made.graph, made.numbers, made.hot = graph, numbers, hot
        made.order = range(len(graph.inputs))
        return made

    def pull(
        self, arrays: Sequence[Array], numbers: tuple[int, ...], cotangents: Sequence[Array]
    ) -> list[Array]:
        """Gradients by the arrays ``wrt``, from cotangents of the results ``numbers``."""
        here = self.at(arrays)
        return here._pulled(numbers)(arrays, cotangents)

    def at(self, arrays: Sequence[Array]) -> Operation:
        """The operation with a graph for arrays like these. Raises ``NotDifferentiableError``."""
        if self.fixed:
            values = tuple([np.asarray(arrays[k]).tobytes() for k, _ in self.fixed])
            if values != tuple([value for _, value in self.fixed]):
                return self._other(values).at(arrays)
        if self.graph is None:
            with self.lock:
                if self.graph is None and self.problem is None:
                    self._capture(arrays)
                if self.problem is not None:
                    raise NotDifferentiableError(self.problem)
        return self

    def results(self, arrays: Sequence[Array]) -> list[Array]:
        """Those of the graph."""
        self.uses += 1
        if self.run is None or self.layout is None or self.uses == self.hot:
            assert self.graph is not None
            self.layout = Layout(self.graph)
            self.run = _compiled(self.graph, self.uses >= self.hot)
        results: Any = self.run(*self.layout(arrays))
        return list(results) if isinstance(results, (tuple, list)) else [results]

    # -- operations that are its derivatives -------------------------------------------------------
    # of a graph that ``at`` gave; they have its name, their arrays are the graph's inputs, cotangents or
    # tangents, and sizes
    def pulling(self, numbers: tuple[int, ...], wanted: tuple[int, ...], wrt: tuple[int, ...]) -> Operation:
        """Of the inputs of the graph and cotangents of the results ``numbers``: gradients by the inputs
        ``wanted``, differentiated by ``wrt`` in turn."""
        return self._derived(("pull", numbers, wanted), wrt, lambda: self._backward(numbers, wanted))

    def pushing(self, given: tuple[int, ...], wrt: tuple[int, ...]) -> Operation:
        """Of the inputs of the graph and tangents of the inputs ``given``: tangents of all results."""
        return self._derived(("push", given), wrt, lambda: self._forward(given))

    def _derived(self, key: tuple[object, ...], wrt: tuple[int, ...], make: Callable[[], Graph]) -> Operation:
        with self.lock:
            found = self.derived.get((key, wrt))
            if found is None:
                graph = self.graphs.get(key)
                if graph is None:
                    graph = self.graphs[key] = make()
                count = len(graph.outputs)
                found = Operation.of_graph(self.name, graph, wrt, range(count), self.hot)
                self.derived[key, wrt] = found
        return found

    def _outputs(self, numbers: Sequence[int]) -> list[int]:
        outputs = [self.numbers[k] for k in numbers]
        found = [k for k in outputs if k is not None]
        if len(found) != len(outputs):
            raise NotDifferentiableError("a result was made outside of the captured graph")
        return found

    def _backward(self, numbers: Sequence[int], wanted: tuple[int, ...]) -> Graph:
        assert self.graph is not None
        outputs = self._outputs(numbers)
        if len(set(outputs)) != len(outputs):
            raise NotDifferentiableError("two results are one output of the captured graph")
        made = joint(self.graph, pipeline.op_table(), wanted, outputs).graph
        return replace(made, outputs=made.outputs[len(self.graph.outputs) :])

    def _forward(self, given: tuple[int, ...]) -> Graph:
        assert self.graph is not None
        outputs = tuple([self.graph.outputs[k] for k in self._outputs(range(len(self.numbers)))])
        made = pushforward(replace(self.graph, outputs=outputs), pipeline.op_table(), given)
        return replace(made, outputs=made.outputs[len(outputs) :])

    def _other(self, values: tuple[bytes, ...]) -> Operation:
        found = self.others.get(values)
        if found is None:
            if len(self.others) >= _MOST_OTHERS:
                self.others.clear()
            found = self.others[values] = Operation(self.name, self.source, self.names, self.wrt)
        return found

    def _pulled(self, numbers: tuple[int, ...]) -> Callable[..., list[Array]]:
        """What is asked for again and again, with as little around it as can be."""
        known = self.pulls.get(numbers)
        if known is not None:
            return known
        order, wanted = list(self.order), self.wrt
        places = {order.index(k): k for k in wanted if k in order}
        operation = self.pulling(numbers, tuple(places), ())
        types = self.types(numbers)
        positions = {k: n for n, k in enumerate(places.values())}

        def run(arrays: Sequence[Array], cotangents: Sequence[Array]) -> list[Array]:
            fitted = [fitting(ct, *form) for ct, form in zip(cotangents, types)]
            if self.source:
                given = [np.asarray(arrays[k]) for k in order]
                results = operation.results([*given, *fitted])
            else:
                results = operation.results([*arrays[: len(order)], *fitted, *arrays[len(order) :]])
            return [
                results[positions[k]] if k in positions else np.zeros(np.shape(arrays[k])) for k in wanted
            ]

        self.pulls[numbers] = run
        return run

    def types(self, numbers: Sequence[int]) -> list[tuple[tuple[int, ...] | None, np.dtype[Any]]]:
        """Shapes (``None``: not known before) and dtypes of these results."""
        assert self.graph is not None
        found = []
        for k in self._outputs(numbers):
            var = self.graph.outputs[k].var
            is_known = all(isinstance(n, int) for n in var.shape)
            found.append((tuple(map(int, var.shape)) if is_known else None, var.dtype.numpy))
        return found

    def _capture(self, arrays: Sequence[Array]) -> None:
        given = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in arrays]
        try:
            self._attempt(self.source, given)
        except NotDifferentiableError as error:
            problem = str(error)
        else:
            return
        # sizes, counts and the like are data in arrays, and numbers otherwise
        head, _, body = self.source.partition("\n")
        lines = [
            f"    a{k} = {a.tolist()!r}"
            for k, a in enumerate(given)
            if k not in self.wrt and a.dtype.kind in "iub" and a.size <= _MOST_NUMBERS
        ]
        if lines:
            with contextlib.suppress(NotDifferentiableError):
                self._attempt("\n".join([head, *lines, body]), given)
                return
        self.problem = problem

    def _attempt(self, source: str, given: list[Array]) -> None:
        file = f"<tape: {self.name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        space: dict[str, Any] = {"np": np, **self.names}
        exec(compile(source, file, "exec"), space)
        recorded = Recorded(space["run"], tuple(range(len(given))), options=_options("eager"), wrt=self.wrt)
        with np.errstate(all="ignore"):
            value, run, wanted = recorded.call(given, {})
        by_id = {id(a): k for k, a in enumerate(wanted)}
        if any(id(i) not in by_id for i in run.inputs):
            raise NotDifferentiableError("its graph has other inputs than its arrays")
        if run.piece.graph.mutations:
            raise NotDifferentiableError("it writes into its arguments")
        if any(not isinstance(n, int) for out in run.piece.graph.outputs for n in out.var.shape):
            raise NotDifferentiableError("the size of its result depends on the data")
        self.order = [by_id[id(i)] for i in run.inputs]
        self.fixed = [(k, a.tobytes()) for k, a in enumerate(given) if k not in self.order]
        results = value if isinstance(value, (tuple, list)) else (value,)
        self.numbers = [run.number_of(r) for r in results]
        self.graph = run.piece.graph


class Layout:
    """Gives arrays the strides that a graph's inputs have: copies that the tape keeps may have others."""

    def __init__(self, graph: Graph) -> None:
        self.contiguous: list[int] = []
        self.others: list[tuple[int, tuple[int, ...]]] = []  # strides in bytes
        for k, given in enumerate(graph.inputs):
            type_ = given.var.type
            if given.kind == "array" and type_.is_contiguous:
                self.contiguous.append(k)
            elif given.kind == "array" and all(isinstance(n, int) for n in type_.strides):
                self.others.append((k, tuple([int(n) * type_.dtype.itemsize for n in type_.strides])))

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        changed = {k: arrays[k].copy() for k in self.contiguous if not arrays[k].flags.c_contiguous}
        changed.update({k: _strided(arrays[k], s) for k, s in self.others if arrays[k].strides != s})
        return [changed.get(k, a) for k, a in enumerate(arrays)] if changed else arrays


def _strided(array: Array, strides: tuple[int, ...]) -> Array:
    """A copy with these strides."""
    ends = [stride * (count - 1) for stride, count in zip(strides, array.shape)]
    low, high = sum([min(end, 0) for end in ends]), sum([max(end, 0) for end in ends])
    memory = np.zeros(high - low + array.itemsize, np.uint8)
    made: Array = np.ndarray(array.shape, array.dtype, memory, -low, strides)
    made[...] = array
    return made


def summed_to(cotangent: Array, shape: tuple[int, ...]) -> Array:
    """Of a value that was broadcast from this shape."""
    extra = cotangent.ndim - len(shape)
    if extra > 0:
        cotangent = cotangent.sum(axis=tuple(range(extra)))
    axes = tuple(k for k, n in enumerate(shape) if n == 1 and cotangent.shape[k] != 1)
    if axes:
        cotangent = cotangent.sum(axis=axes, keepdims=True)
    # a value assigned to fewer dimensions than it has: those in front are ones
    return cotangent.reshape(shape)


def fitting(cotangent: Array, shape: tuple[int, ...] | None, dtype: np.dtype[Any]) -> Array:
    """A cotangent of a result that was broadcast or converted when it was written."""
    if shape is not None and cotangent.shape != shape:
        cotangent = summed_to(cotangent, shape)
    if cotangent.dtype != dtype:
        cotangent = cotangent.astype(dtype)
    return cotangent


def _compiled(graph: Graph, hot: bool) -> Callable[..., Any]:
    if hot:
        with contextlib.suppress(Unsupported, LoweringError, ToolchainError):
            return pipeline.run_pipeline(graph, _options("inductor")).call
    return pipeline.run_pipeline(graph, _options("eager")).call


@functools.cache
def _options(backend: str) -> Options:
    options = {"measure": False, "patience_us": 0}
    return make_options(fullgraph=True, backend=backend, dynamic=False, options=options)
