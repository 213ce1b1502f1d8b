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
from ..errors import LoweringError, NotDifferentiableError, ToolchainError, Unsupported
from ..graph.ir import Graph
from ..options import Options, make_options
from .record import Piece, Recorded

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
        self.piece: Piece | None = None
        self.order: list[int] = []  # which array each input of the graph is
        self.numbers: list[int | None] = []  # which output of the graph each result is
        self.runs: dict[tuple[int, ...], Callable[..., Sequence[Any]]] = {}
        self.uses = 0
        # arrays that are no inputs: the graph can be of their values
        self.fixed: list[tuple[int, bytes]] = []
        self.others: dict[tuple[bytes, ...], Operation] = {}  # by these values
        self.lock = threading.RLock()

    def pull(
        self, arrays: Sequence[Array], numbers: tuple[int, ...], cotangents: Sequence[Array]
    ) -> list[Array]:
        """Gradients by the arrays ``wrt``, from cotangents of the results ``numbers``."""
        if self.fixed:
            values = tuple([np.asarray(arrays[k]).tobytes() for k, _ in self.fixed])
            if values != tuple([value for _, value in self.fixed]):
                return self._other(values).pull(arrays, numbers, cotangents)
        run = self.runs.get(numbers)
        self.uses += 1
        if self.uses == HOT:  # a loop: worth a compiler
            self.runs.clear()
            run = None
        if run is None:
            run = self._made(arrays, numbers)
        return list(run(arrays, cotangents))

    def _other(self, values: tuple[bytes, ...]) -> Operation:
        found = self.others.get(values)
        if found is None:
            if len(self.others) >= _MOST_OTHERS:
                self.others.clear()
            found = self.others[values] = Operation(self.name, self.source, self.names, self.wrt)
        return found

    def _made(self, arrays: Sequence[Array], numbers: tuple[int, ...]) -> Callable[..., Sequence[Any]]:
        with self.lock:
            if self.piece is None and self.problem is None:
                self._capture(arrays)
            if self.problem is not None:
                raise NotDifferentiableError(self.problem)
            if numbers not in self.runs:
                self.runs[numbers] = self._backward(numbers)
            return self.runs[numbers]

    def _capture(self, arrays: Sequence[Array]) -> None:
        given = [_plain(a).view() for a in arrays]
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
        self.piece = run.piece

    def _backward(self, numbers: tuple[int, ...]) -> Callable[..., Sequence[Any]]:
        piece = self.piece
        assert piece is not None
        outputs = [self.numbers[k] for k in numbers]
        if None in outputs:
            raise NotDifferentiableError("a result was made outside of the captured graph")
        order = self.order
        places = {order.index(k): k for k in self.wrt if k in order}
        table = pipeline.op_table()
        chosen = sorted(set(outputs))  # type: ignore[type-var]
        if len(chosen) != len(outputs):
            raise NotDifferentiableError("two results are one output of the captured graph")
        variables = [piece.graph.outputs[k].var for k in outputs]  # type: ignore[index]
        types = [(tuple(map(int, v.shape)), v.dtype.numpy) for v in variables]
        sequence = [outputs.index(k) for k in chosen]
        made = joint(piece.graph, table, tuple(places), chosen).graph  # type: ignore[arg-type]
        made = replace(made, outputs=made.outputs[len(piece.graph.outputs) :])
        compiled = _compiled(made, self.uses >= HOT)
        positions = {k: n for n, k in enumerate(places.values())}
        wanted = self.wrt

        def run(arrays: Sequence[Array], cotangents: Sequence[Array]) -> Sequence[Array]:
            given = [_plain(arrays[k]) for k in order]
            results = compiled(*given, *[_fitting(cotangents[k], *types[k]) for k in sequence])
            if not isinstance(results, (tuple, list)):
                results = (results,)
            return [
                results[positions[k]] if k in positions else np.zeros(np.shape(arrays[k])) for k in wanted
            ]

        return run


def _plain(value: Array) -> Array:
    """A contiguous array."""
    array = np.asarray(value)
    return array if array.flags.c_contiguous else array.copy()


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


def _fitting(cotangent: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A cotangent of a result that was broadcast or converted when it was written."""
    if cotangent.shape != shape:
        cotangent = summed_to(cotangent, shape)
    if cotangent.dtype != dtype:
        cotangent = cotangent.astype(dtype)
    return _plain(cotangent)


def _compiled(graph: Graph, hot: bool) -> Callable[..., Any]:
    if hot:
        with contextlib.suppress(Unsupported, LoweringError, ToolchainError):
            return pipeline.run_pipeline(graph, _options("inductor")).call
    return pipeline.run_pipeline(graph, _options("eager")).call


@functools.cache
def _options(backend: str) -> Options:
    options = {"measure": False, "patience_us": 0}
    return make_options(fullgraph=True, backend=backend, dynamic=False, options=options)
