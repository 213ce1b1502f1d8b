"""Running a graph in which sizes depend on the data: stage by stage (``staging.cut``).

The first stage is compiled when the graph is captured; each later one when its sizes are first known, so
that it is compiled as any graph whose sizes are symbolic, with the values of that call as examples and guards
of its own. What was assumed of sizes at capture is checked as soon as they are known, before anything is
written.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from .. import faults
from ..errors import DyncompError
from ..frontends.base import ArrayOwner
from ..graph.interp import as_callable, check_guards, concrete, define_symbols, laid_out
from ..graph.ir import Graph, Node, OpTable, SymbolBinding, Var
from ..hook import _hook
from ..symbolic.assumptions import newly_known, settled, test_of
from ..symbolic.integers import SymGuard, SymInt
from .cut import Stage, split
from .source import Writer, condition, sequence

CompileStage = Callable[[Graph, Sequence[Any]], Callable[..., Any]]
MAX_VARIANTS = 8


class StoredStages(Protocol):
    """Compiled forms of stages that an earlier process left on disk, and where new ones are kept."""

    def read(self, number: int) -> Sequence[tuple[Sequence[SymGuard], Callable[..., Any]]]:
        """Forms of stage ``number``, and what must hold of the sizes."""
        ...

    def keep(self, number: int, guards: Sequence[SymGuard], call: Callable[..., Any]) -> None: ...


class StagedGraph:
    """A functional graph with sizes that depend on the data, made callable like any compiled graph."""

    def __init__(
        self,
        graph: Graph,
        table: OpTable,
        owner: ArrayOwner | None,
        compile_stage: CompileStage,
        examples: Sequence[Any] = (),
        strict: bool = False,
        stored: StoredStages | None = None,
    ) -> None:
        """``examples``: inputs for the first stage, where it is tuned. ``strict``: see ``Options``.
        ``stored``: the graph is one from disk."""
        self.strict = strict
        self.graph = graph
        self.table = table
        self.owner = owner
        self.compile_stage = compile_stage
        self.stages = split(graph, table)
        self.lock = threading.Lock()
        self.compiling_in = 0  # the process that compiles a stage under the lock
        self.definitions: list[list[_Definition]] | None = None
        self.variants: list[list[_Variant]] = [[] for _ in self.stages]
        self.run: Callable[..., Any] | None = None  # written anew when there is another variant
        self.stored = stored
        self._have_read: set[int] = set()  # the stages whose stored forms are among the variants
        # the sizes of the first stage are those of the capture, whose guards hold for it
        first = self.stages[0]
        needed = first.graph.nodes or first.given or len(self.stages) == 1
        self._read(0)
        if not self.variants[0]:
            call = compile_stage(first.graph, examples) if needed else _nothing
            self.variants[0].append(_Variant((), call))

    def keep_in(self, stored: StoredStages) -> None:
        """Have the compiled forms kept on disk, those that there are and those to come. What lies there is
        not this graph's."""
        self.stored = stored
        self._have_read.update(range(len(self.stages)))
        for number, variants in enumerate(self.variants):
            for variant in variants:
                stored.keep(number, variant.guards, variant.call)

    def _read(self, number: int) -> None:
        """Take the stored forms of a stage, once."""
        if self.stored is not None and number not in self._have_read:
            self._have_read.add(number)
            self.run = None
            found = self.stored.read(number)[: MAX_VARIANTS - len(self.variants[number])]
            self.variants[number] += [_Variant(tuple(guards), call) for guards, call in found]

    def __call__(self, *args: object) -> Any:
        run = self.run
        if run is None:
            run = self.run = self._written()
        return run(*args)

    def _written(self) -> Callable[..., Any]:
        """A function that runs all of it, with the variants that there are so far."""
        writer = Writer(self.graph)
        for symbol in self.graph.symbols:
            if symbol.kind != "node":
                writer.symbol(symbol.name, self._symbol(writer, symbol))
        definitions = self._definitions()
        for number in range(len(self.stages)):
            self._write_stage(writer, number)
            for definition in definitions[number]:
                definition.write(writer)
        writer.line("return result")
        return writer.function()

    def _symbol(self, writer: Writer, symbol: SymbolBinding) -> str:
        """The value of a symbol that is known at the call."""
        if symbol.kind == "int":
            return f"integer{symbol.index}"
        array = writer.inputs[symbol.index]
        if symbol.kind == "dim":
            return f"{array}.shape[{symbol.axis}]"
        return f"{writer.bind('stride', self._stride)}({array}, {symbol.axis})"

    def _write_stage(self, writer: Writer, number: int) -> None:
        """Call the variant of a stage that serves these sizes; compile another where none does."""
        stage = self.stages[number]
        last = number == len(self.stages) - 1
        if not (last or stage.graph.nodes or stage.given):
            return
        targets = ["result"] if last else [writer.variable(name) for name in stage.given]
        given = [*writer.inputs, *map(writer.variable, stage.taken)]
        arguments = ", ".join([*given, *stage.symbols])
        cases: list[tuple[str, str]] = []
        for k, variant in enumerate(self.variants[number]):
            call = writer.bind(f"call{number}_{k}", variant.call)
            cases.append((condition(variant.guards), f"{call}({arguments})"))
            if not variant.guards:
                break
        else:
            compiling = writer.bind("variant", self._variant)
            found = f"{compiling}({number}, {writer.known()}, {sequence(given)})"
            cases.append(("", f"{found}({arguments})"))
        writer.choose(targets, cases)

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

    def _variant(self, number: int, symbols: dict[str, int], given: Sequence[Any]) -> Any:
        """A call of a stage for sizes that no variant serves as far as was known when ``run`` was written."""
        stage = self.stages[number]
        if self.compiling_in not in (0, os.getpid()):
            # forked while another thread compiled: nobody here will release the lock
            return self._interpreted(stage)
        with self.lock:
            self._read(number)
            for variant in self.variants[number]:
                if variant.serves(symbols):
                    return variant.call
            self.compiling_in = os.getpid()
            try:
                made = self._compile(number, stage, symbols, given)
            finally:
                self.compiling_in = 0
            self.variants[number].append(made)
            self.run = None
        if self.stored is not None:
            self.stored.keep(number, made.guards, made.call)
        return made.call

    def _compile(self, number: int, stage: Stage, symbols: dict[str, int], given: Sequence[Any]) -> _Variant:
        if len(self.variants[number]) >= MAX_VARIANTS:
            return _Variant((), self._interpreted(stage))
        known = {name: symbols[name] for name in stage.symbols}
        with settled(self.graph.env, known) as guards:
            # the program runs meanwhile: what the compiler calls is none of its functions
            active = _hook.set_active(None)
            try:
                call = self.compile_stage(stage.graph, given)
            except (DyncompError, ValueError, TypeError) as error:
                if faults.is_fault(error):
                    what = f"a part of {self.graph.name} is interpreted"
                    faults.note(what, error, self.strict)
                return _Variant((), self._interpreted(stage))
            finally:
                _hook.set_active(active)
            return _Variant(tuple(guards), call)

    def _interpreted(self, stage: Stage) -> Callable[..., Any]:
        call = as_callable(stage.graph, self.table)
        owner = self.owner
        if owner is None:
            return call
        return lambda *args: _from_numpy(owner, call(*(owner.to_numpy(a) for a in args)))


def _nothing(*args: object) -> tuple[()]:
    return ()


class _Definition:
    """A node that runs between two stages: it gives symbols their values, or wants to be told them."""

    def __init__(self, node: Node, whole: StagedGraph, assumed: Sequence[SymGuard], known: set[str]) -> None:
        """``known``: the symbols that have values before; those that the node defines are added."""
        self.node = node
        self.row: Any = whole.table[node.op]
        self.owner = whole.owner
        self.params = node.kwargs
        self.as_they_are = {var.name for var in node.inputs} - {
            inp.var.name for inp in whole.graph.inputs if inp.kind != "array"
        }
        new = _symbols_defined(node, self.row) - known
        self.new = sorted(new)
        self.checked = newly_known(assumed, known, new)
        taken = {name for stage in whole.stages for name in stage.taken}
        self.is_taken = any(var.name in taken for var in node.outputs)
        known |= new

    # -- the text ------------------------------------------------------------------------------
    def write(self, writer: Writer) -> None:
        """Statements that run it, and check what was assumed of the sizes that are known now."""
        if self.row.defines == "value" and not self.is_taken and len(self.new) == 1:
            (var,) = self.node.inputs
            writer.symbol(self.new[0], f"int({self._read(writer, var)})")
        elif self.row.defines == "sizes" and all(var.type.is_contiguous for var in self.node.outputs):
            self._write_call(writer)
        else:
            targets = [writer.variable(var.name) for var in self.node.outputs] + self.new
            writer.line(f"{', '.join(targets)}, = {self._call(writer, self.run, [writer.known()])}")
            writer.symbols += self.new
        test = condition(self.checked)
        if test:
            check = writer.bind(f"check{len(writer.lines)}", functools.partial(check_guards, self.checked))
            writer.line(f"if not ({test}): {check}({writer.known()})")

    def _write_call(self, writer: Writer) -> None:
        """A call that gives contiguous arrays, sizes of which are symbols."""
        targets = [writer.variable(var.name) for var in self.node.outputs]
        writer.assign(targets, self._call(writer, functools.partial(self.row.ref, **self.params), []))
        for var, array in zip(self.node.outputs, targets):
            dtype = writer.bind(f"dtype_{var.dtype.name}", var.dtype.numpy)
            wrong = writer.bind(f"wrong{len(writer.lines)}", functools.partial(_check_type, var))
            test = f"{array}.dtype is not {dtype} or {array}.ndim != {len(var.shape)}"
            writer.line(f"if {test}: {wrong}({array})")
            for axis, dim in enumerate(var.shape):
                size = f"{array}.shape[{axis}]"
                if str(dim) in self.new and str(dim) not in writer.symbols:
                    writer.symbol(str(dim), size)
                else:
                    writer.line(f"if {size} != {dim}: {writer.bind('wrong', _check_size)}({size}, {dim})")
            if self.owner is not None:
                writer.line(f"{array} = {writer.bind('from_numpy', self.owner.from_numpy)}({array})")

    def _call(self, writer: Writer, function: Callable[..., Any], first: list[str]) -> str:
        name = writer.bind(f"define{len(writer.lines)}", function)
        return f"{name}({', '.join([*first, *(self._read(writer, var) for var in self.node.inputs)])})"

    def _read(self, writer: Writer, var: Var) -> str:
        """A value as a NumPy array, or as a number that is one."""
        text = writer.variable(var.name)
        if self.owner is not None:
            text = f"{writer.bind('to_numpy', self.owner.to_numpy)}({text})"
        elif var.name in self.as_they_are:
            return text
        dtype = writer.bind(f"dtype_{var.dtype.name}", var.dtype.numpy)
        return f"{writer.bind('asarray', np.asarray)}({text}, {dtype})"

    # -- what is not written out -----------------------------------------------------------------
    def run(self, symbols: dict[str, int], *arrays: object) -> tuple[Any, ...]:
        """The results, then the values of the symbols that are new."""
        params = self.params if self.row.defines else concrete(self.params, symbols)
        made = self.row.ref(*map(np.asarray, arrays), **params)
        results = made if isinstance(made, tuple) else (made,)
        if self.row.defines:
            define_symbols(self.node, self.row, results, symbols)
        given: list[Any] = []
        for var, array in zip(self.node.outputs, results, strict=True):
            _check_dtype(var, array)
            if not (var.type.is_contiguous and array.flags.c_contiguous):
                array = laid_out(array, var.type.strides, symbols)
            given.append(array if self.owner is None else self.owner.from_numpy(array))
        return (*given, *(symbols[name] for name in self.new))


def _check_dtype(var: Var, array: Any) -> None:
    """``TypeError`` if an array is not of the dtype that the graph says."""
    if array.dtype != var.dtype.numpy:
        raise TypeError(f"a library's routine gives {array.dtype}, not {var.dtype}")


def _check_type(var: Var, array: Any) -> None:
    _check_dtype(var, array)
    if array.ndim != len(var.shape):
        raise ValueError(f"a library's routine gives {array.ndim} dimensions, not {len(var.shape)}")


def _check_size(size: int, expected: int) -> None:
    if size != expected:
        raise ValueError(f"a library's routine gives the size {size}, not {expected}")


def _symbols_defined(node: Node, row: Any) -> set[str]:
    if row.defines == "value":
        return {str(node.kwargs["value"])}
    sizes = [dim for var in node.outputs for dim in var.shape if isinstance(dim, SymInt)]
    return {str(dim) for dim in sizes if str(dim) in dim.symbols()} if row.defines else set()


class _Variant:
    """A stage compiled for sizes for which ``guards`` hold."""

    def __init__(self, guards: Sequence[SymGuard], call: Callable[..., Any]) -> None:
        self.guards = guards
        self.serves = test_of(guards)
        self.call = call


def _from_numpy(owner: ArrayOwner, result: object) -> Any:
    return tuple(map(owner.from_numpy, result)) if isinstance(result, tuple) else owner.from_numpy(result)
