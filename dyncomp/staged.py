"""Running a graph in which sizes depend on the data: stage by stage (``graph.stages``).

The first stage is compiled when the graph is captured; each later one when its sizes are first known, so
that it is compiled as any graph whose sizes are symbolic, with the values of that call as examples and guards
of its own. What was assumed of sizes at capture is checked as soon as they are known, before anything is
written.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .capture import _hook
from .errors import DyncompError
from .frontends.base import ArrayOwner
from .graph.interp import as_callable, check_guards, concrete, define_symbols, laid_out
from .graph.ir import Graph, Node, OpTable
from .graph.stages import Stage, split
from .symfacts import settled
from .symint import SymGuard

CompileStage = Callable[[Graph, Sequence[Any]], Callable[..., Any]]
MAX_VARIANTS = 8


class StagedGraph:
    """A functional graph with sizes that depend on the data, made callable like any compiled graph."""

    def __init__(
        self, graph: Graph, table: OpTable, owner: ArrayOwner | None, compile_stage: CompileStage
    ) -> None:
        self.graph = graph
        self.table = table
        self.owner = owner
        self.compile_stage = compile_stage
        self.stages = split(graph, table)
        self.lock = threading.Lock()
        self.compiling_in = 0  # the process that compiles a stage under the lock
        self.assumed: list[SymGuard] | None = None
        self.variants: list[list[_Variant]] = [[] for _ in self.stages]
        # the sizes of the first stage are those of the capture, whose guards hold for it
        first = self.stages[0]
        needed = first.graph.nodes or first.given or len(self.stages) == 1
        call = compile_stage(first.graph, ()) if needed else _nothing
        self.variants[0].append(_Variant([], call))

    def __call__(self, *args: Any) -> Any:
        count = len(self.graph.inputs)
        symbols = self._bind(args[:count], args[count:])
        values: dict[str, Any] = {}
        result: Any = None
        for number, stage in enumerate(self.stages):
            given = (*args[:count], *(values[name] for name in stage.taken))
            integers = [symbols[name] for name in stage.symbols]
            result = self._variant(number, stage, symbols, given)(*given, *integers)
            if number == len(self.stages) - 1:
                break
            values.update(zip(stage.given, (result,) if len(stage.given) == 1 else result))
            for node in stage.defining:
                self._define(node, args[:count], values, symbols)
        return result

    def _bind(self, inputs: Sequence[Any], integers: Sequence[int]) -> dict[str, int]:
        values: dict[str, int] = {}
        for symbol in self.graph.symbols:
            if symbol.kind == "int":
                values[symbol.name] = integers[symbol.index]
            elif symbol.kind == "dim":
                values[symbol.name] = inputs[symbol.index].shape[symbol.axis]
            elif symbol.kind == "stride":
                values[symbol.name] = self._stride(inputs[symbol.index], symbol.axis)
        return values

    def _stride(self, array: Any, axis: int) -> int:
        if self.owner is not None:
            return self.owner.describe(array)[2][axis]
        stride: int = array.strides[axis] // array.itemsize
        return stride

    def _define(self, node: Node, inputs: Sequence[Any], values: dict[str, Any], symbols: Any) -> None:
        """Run a node that gives symbols their values."""
        known = dict(zip((v.name for v in self.graph.input_vars), inputs))
        arrays = [self._to_numpy(values.get(v.name, known.get(v.name)), v) for v in node.inputs]
        row: Any = self.table[node.op]
        params = node.kwargs if row.defines else concrete(node.kwargs, symbols)
        made = row.ref(*arrays, **params)
        results = made if isinstance(made, tuple) else (made,)
        if row.defines:
            define_symbols(node, row, results, symbols)
            check_guards(self._assumptions(), symbols)
        for var, array in zip(node.outputs, results):
            if array.dtype != var.dtype.numpy:
                raise TypeError(f"{node.op} gives {array.dtype}, not {var.dtype}")
            ready = laid_out(array, var.type.strides, symbols)
            values[var.name] = ready if self.owner is None else self.owner.from_numpy(ready)

    def _assumptions(self) -> list[SymGuard]:
        """What was assumed of sizes at capture: read before the first stage behind them is compiled, while
        which the environment holds others."""
        if self.assumed is None:
            self.assumed = self.graph.env.unbacked_guards()
        return self.assumed

    def _to_numpy(self, value: Any, var: Any) -> Any:
        array = value if self.owner is None else self.owner.to_numpy(value)
        return np.asarray(array, var.dtype.numpy)

    def _variant(self, number: int, stage: Stage, symbols: dict[str, int], given: Sequence[Any]) -> Any:
        for variant in self.variants[number]:
            if number == 0 or variant.serves(symbols):
                return variant.call
        if self.compiling_in not in (0, os.getpid()):
            # forked while another thread compiled: nobody here will release the lock
            return self._interpreted(stage)
        with self.lock:
            self.compiling_in = os.getpid()
            try:
                made = self._compile(number, stage, symbols, given)
            finally:
                self.compiling_in = 0
            self.variants[number].append(made)
        return made.call

    def _compile(self, number: int, stage: Stage, symbols: dict[str, int], given: Sequence[Any]) -> _Variant:
        if len(self.variants[number]) >= MAX_VARIANTS:
            return _Variant([], self._interpreted(stage))
        known = {name: symbols[name] for name in stage.symbols}
        with settled(self.graph.env, known) as guards:
            # the program runs meanwhile: what the compiler calls is none of its functions
            active = _hook.set_active(None)
            try:
                call = self.compile_stage(stage.graph, given)
            except (DyncompError, ValueError, TypeError):
                return _Variant([], self._interpreted(stage))
            finally:
                _hook.set_active(active)
            return _Variant(list(guards), call)

    def _interpreted(self, stage: Stage) -> Callable[..., Any]:
        call = as_callable(stage.graph, self.table)
        owner = self.owner
        if owner is None:
            return call
        return lambda *args: _from_numpy(owner, call(*(owner.to_numpy(a) for a in args)))


def _nothing(*args: Any) -> tuple[()]:
    return ()


class _Variant:
    """A stage compiled for sizes for which ``guards`` hold."""

    def __init__(self, guards: list[SymGuard], call: Callable[..., Any]) -> None:
        self.guards = guards
        self.call = call

    def serves(self, symbols: dict[str, int]) -> bool:
        return all(guard.holds(symbols) for guard in self.guards)


def _from_numpy(owner: ArrayOwner, result: Any) -> Any:
    return tuple(map(owner.from_numpy, result)) if isinstance(result, tuple) else owner.from_numpy(result)
