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
from .symfacts import newly_known, settled, test_of
from .symint import SymGuard, SymInt

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
        self.definitions: list[list[_Definition]] | None = None
        self.variants: list[list[_Variant]] = [[] for _ in self.stages]
        # the sizes of the first stage are those of the capture, whose guards hold for it
        first = self.stages[0]
        needed = first.graph.nodes or first.given or len(self.stages) == 1
        call = compile_stage(first.graph, ()) if needed else _nothing
        self.variants[0].append(_Variant([], call))

    def __call__(self, *args: Any) -> Any:
        count = len(self.graph.inputs)
        inputs = args[:count]
        symbols = self._bind(inputs, args[count:])
        values: dict[str, Any] = {}
        last = len(self.stages) - 1
        for number, stage in enumerate(self.stages):
            given = (*inputs, *[values[name] for name in stage.taken])
            integers = [symbols[name] for name in stage.symbols]
            result = self._variant(number, stage, symbols, given)(*given, *integers)
            if number == last:
                break
            values.update(zip(stage.given, (result,) if len(stage.given) == 1 else result))
            for definition in self._definitions()[number]:
                definition.run(inputs, values, symbols)
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

    def _definitions(self) -> list[list[_Definition]]:
        """What runs between the stages; made at the first call, before the first stage behind is compiled,
        while which the environment holds other guards."""
        if self.definitions is None:
            assumed = self.graph.env.unbacked_guards()
            known = {symbol.name for symbol in self.graph.symbols if symbol.kind != "node"}
            self.definitions = []
            for stage in self.stages:
                made = [_Definition(node, self, assumed, known) for node in stage.defining]
                self.definitions.append(made)
        return self.definitions

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


class _Definition:
    """A node that runs between two stages: it gives symbols their values, or wants to be told them."""

    def __init__(self, node: Node, whole: StagedGraph, assumed: Sequence[SymGuard], known: set[str]) -> None:
        """``known``: the symbols that have values before; those that the node defines are added."""
        self.node = node
        self.row: Any = whole.table[node.op]
        self.owner = whole.owner
        self.params = node.kwargs
        positions = {var.name: k for k, var in enumerate(whole.graph.input_vars)}
        self.reads = [(var.name, positions.get(var.name), var.dtype.numpy) for var in node.inputs]
        new = _symbols_defined(node, self.row) - known
        self.lines = _lengths_defined(node, self.row, known)
        self.checked = newly_known(assumed, known, new)
        self.holds = test_of(self.checked)
        known |= new

    def run(self, inputs: Sequence[Any], values: dict[str, Any], symbols: dict[str, int]) -> None:
        arrays = [self._array(name, position, dtype, inputs, values) for name, position, dtype in self.reads]
        params = self.params if self.row.defines else concrete(self.params, symbols)
        made = self.row.ref(*arrays, **params)
        results = made if isinstance(made, tuple) else (made,)
        if self.row.defines:
            self._define(results, symbols)
            if not self.holds(symbols):
                check_guards(self.checked, symbols)
        for var, array in zip(self.node.outputs, results):
            if array.dtype != var.dtype.numpy:
                raise TypeError(f"{self.node.op} gives {array.dtype}, not {var.dtype}")
            if not (var.type.is_contiguous and array.flags.c_contiguous):
                array = laid_out(array, var.type.strides, symbols)
            values[var.name] = array if self.owner is None else self.owner.from_numpy(array)

    def _define(self, results: Sequence[Any], symbols: dict[str, int]) -> None:
        """What ``define_symbols`` does, with what is known beforehand."""
        if self.lines is None:
            define_symbols(self.node, self.row, results, symbols)
            return
        for name, array in zip(self.lines, results):
            (symbols[name],) = array.shape

    def _array(
        self, name: str, position: int | None, dtype: Any, inputs: Sequence[Any], values: dict[str, Any]
    ) -> Any:
        value = values[name] if position is None or name in values else inputs[position]
        return np.asarray(value if self.owner is None else self.owner.to_numpy(value), dtype)


def _lengths_defined(node: Node, row: Any, known: set[str]) -> list[str] | None:
    """The symbols that are the lengths of the results, one each and not known before; ``None`` where it is
    not as simple."""
    names = [str(var.shape[0]) for var in node.outputs if len(var.shape) == 1]
    new = _symbols_defined(node, row) - known
    simple = row.defines == "sizes" and len(names) == len(node.outputs) == len(new) == len({*names} & new)
    return names if simple else None


def _symbols_defined(node: Node, row: Any) -> set[str]:
    if row.defines == "value":
        return {str(node.kwargs["value"])}
    sizes = [dim for var in node.outputs for dim in var.shape if isinstance(dim, SymInt)]
    return {str(dim) for dim in sizes if str(dim) in dim.symbols()} if row.defines else set()


class _Variant:
    """A stage compiled for sizes for which ``guards`` hold."""

    def __init__(self, guards: list[SymGuard], call: Callable[..., Any]) -> None:
        self.serves = test_of(guards)
        self.call = call


def _from_numpy(owner: ArrayOwner, result: Any) -> Any:
    return tuple(map(owner.from_numpy, result)) if isinstance(result, tuple) else owner.from_numpy(result)
