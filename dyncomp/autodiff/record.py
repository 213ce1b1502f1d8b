"""Functions whose calls say which graph they ran.

A part of a program that is not in the graph would have no derivative: where the graph breaks, where the
original runs, or where more than one graph runs, the call raises ``NotDifferentiableError``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import pipeline
from ..aot_autograd.expand import expand
from ..aot_autograd.functionalize import functionalize
from ..api import SESSION, compile_with
from ..capture.entries.config import CaptureConfig
from ..dataclass import dataclass
from ..errors import GraphBreakError, NotDifferentiableError
from ..frontends.base import ArrayOwner
from ..graph.ir import Graph
from ..options import Options, make_options
from ..pipeline import Compiled

# Loops with known trip counts are unrolled up to these numbers of steps and operations, and up to that number
# of operations where a tape could run them instead: more take longer than a second to compile.
MOST_STEPS = 256
MOST_OPS = 20_000
FEW_OPS = 400


class Piece:
    """A captured graph, the numbers of its inputs that are differentiated by, and what was compiled of it."""

    def __init__(
        self, graph: Graph, wrt: tuple[int, ...], options: Options, examples: tuple[Any, ...]
    ) -> None:
        self.graph = graph
        self.wrt = wrt
        self.options = options
        self.examples = examples
        self.halved: Any = None  # a forward and a backward graph (``pullback.py``)

    def compile(self, graph: Graph) -> Compiled:
        return pipeline.run_pipeline(graph, self.options, self.examples, None, None)


@dataclass(frozen=True)
class Run:
    """A run of a piece: its inputs (sizes behind arrays), its outputs, and what came with them."""

    piece: Piece
    inputs: Sequence[Any]
    outputs: Sequence[object]
    more: Sequence[Any]

    def number_of(self, result: object) -> int | None:
        """Which output an object is."""
        return next((k for k, output in enumerate(self.outputs) if output is result), None)


class _Call(threading.local):
    """The call that this thread is in."""

    wanted: Sequence[object] = ()  # the arguments that are differentiated by
    runs: list[Run] | None = None


def new_config(chosen: Options | None = None, most_ops: int | None = None) -> CaptureConfig:
    """Of functions that are captured whole, and whose every call runs the graph: no comparison with the
    original, no waiting, and loops are in it."""
    options = {"measure": False, "patience_us": 0, "unroll_limit": MOST_STEPS, "unroll_ops": MOST_OPS}
    config = SESSION.new_config(chosen or make_options(fullgraph=True, options=options))
    config.warns = False
    config.pins_trip_counts = True
    config.is_private = True
    config.most_unrolled = most_ops
    config.make_native = None  # loops over numbers are no nodes
    return config


Extend = Callable[[Piece], Graph]


def graph_of(piece: Piece) -> Graph:
    return piece.graph


class Recorded:
    """``function``, compiled. ``extend(piece)`` gives the graph that a call runs: the captured one, and
    behind its outputs what is to come with them."""

    def __init__(
        self,
        function: Callable[..., Any],
        argnums: tuple[int, ...],
        extend: Callable[[Piece], Graph] = lambda piece: piece.graph,
        options: Options | None = None,
        wrt: tuple[int, ...] | None = None,
    ) -> None:
        self.function = function
        self.name = getattr(function, "__qualname__", repr(function))
        self.argnums = argnums
        self.extend = extend
        self.state = _Call()
        self.wrt = wrt  # of argnums, those that it is differentiated by
        self.config = new_config(options)
        self.config.compile_graph = self._compile
        self.compiled = compile_with(function, self.config)

    def call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Run, list[Any]]:
        """The value, the run, and the arguments as the run had them."""
        given = list(args)
        for k in self.argnums:
            given[k] = self._argument(args, k)
        wanted = [given[k] for k in self.argnums]
        runs: list[Run] = []
        before = self.state.wanted, self.state.runs
        self.state.wanted, self.state.runs = wanted, runs
        try:
            value = self.compiled(*given, **kwargs)
        except GraphBreakError as error:
            raise NotDifferentiableError(f"{self.name} is not one graph: {error}") from error
        finally:
            self.state.wanted, self.state.runs = before
        if len(runs) != 1:
            raise NotDifferentiableError(
                f"{self.name} ran as {len(runs)} graphs, and a derivative is of what one graph computes "
                f"(dyncomp.explain says more; under a debugger the original runs)"
            )
        return value, runs[0], wanted

    def _argument(self, args: Sequence[Any], number: int) -> Any:
        try:
            given = args[number]
        except IndexError:
            raise TypeError(
                f"argnums names argument {number} of {self.name}, which was called with {len(args)}"
            ) from None
        array = np.asarray(given)
        if array.dtype.kind not in "fc" and (self.wrt is None or number in self.wrt):
            raise TypeError(
                f"{self.name} is differentiated by floating-point numbers: argument {number} is "
                f"{described(given)}"
            )
        # an object of its own: the same array may be another argument, too, or a global of the function
        return array.view()

    def _compile(
        self,
        graph: Graph,
        options: Options,
        examples: tuple[Any, ...],
        owner: ArrayOwner | None,
        on_status: object,
    ) -> Compiled:
        """What capture calls with the graph of a call."""
        if owner is not None:
            raise NotDifferentiableError(f"{self.name} works on arrays that are not NumPy's")
        table = pipeline.op_table()
        whole = expand(functionalize(graph, table), table)
        wanted = self.state.wanted if self.wrt is None else [self.state.wanted[k] for k in self.wrt]
        wrt = tuple(k for k, e in enumerate(examples) if any(e is a for a in wanted))
        if {index for index, _ in whole.mutations} & set(wrt):
            raise NotDifferentiableError(f"{self.name} writes into an argument that it is differentiated by")
        piece = Piece(whole, wrt, options, examples)
        compiled = piece.compile(self.extend(piece))
        piece.examples = ()
        count = sum(not out.hidden for out in whole.outputs)
        run = compiled.call
        state = self.state

        def recording(*inputs: Any) -> Any:
            results = run(*inputs)
            results = results if isinstance(results, (tuple, list)) else (results,)
            outputs = results[:count]
            if state.runs is not None:
                state.runs.append(Run(piece, inputs, outputs, results[count:]))
            return outputs if count != 1 else outputs[0]

        compiled.call = recording
        return compiled


def described(value: object) -> str:
    """A few words on an argument or result."""
    if isinstance(value, (np.ndarray, np.generic)):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"of type {type(value).__name__}"
