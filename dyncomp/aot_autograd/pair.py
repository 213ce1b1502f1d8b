"""A graph and its gradients as compiled graphs, for a library with a reverse mode of its own.

The forward graph gives the results and what is saved. For each pattern of cotangents that are there and
gradients that are wanted there is a backward graph, which starts from the values saved; it is made when that
pattern first occurs. Saved values count as results, too: a second derivative has cotangents for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..build.background import Ahead
from ..build.toolchain import Runner
from ..dtypes import int64
from ..errors import NotDifferentiableError, Unsupported
from ..frontends.base import (
    BackwardPart,
    BackwardParts,
    GradientPair,
    NumberResult,
    OutputView,
    PairBackward,
    PairSource,
    Size,
)
from ..graph.ir import Graph, GraphOutput, Node, SymbolBinding, Var
from ..graph.passes.decompose import decompose
from ..graph.rewrite import Rebuilder
from ..prims.markers import STOP
from ..symbolic.integers import SymInt
from .joint import Joint, Table, joint, on_the_way
from .partition import Halves, Saved, partition
from .parts import Part
from .parts import in_parts as cut_in_parts

# Makes a graph runnable; of the forward graph there are examples of the inputs. The runner starts compilers.
Compile = Callable[[Graph, bool, Runner | None], Callable[..., Any]]


def gradient_pair(
    graph: Graph,
    table: Table,
    wrt: Sequence[int],
    compile: Compile,
    memory_budget: float | None = None,
    kinds: Collection[str] = ("array",),
    ahead: bool = False,
) -> GradientPair | None:
    """The pair of a functional graph for gradients by the inputs ``wrt``; ``None`` where the library need not
    know of any. ``kinds``: those of outputs with derivatives. ``ahead``: the backward graph of all gradients
    is begun while a compiler works on the forward graph. Raises ``Unsupported`` for what has none."""
    graph = decompose(graph, table)
    reached = _depending(graph, wrt)
    results, places = _results(graph)
    kept, written = [], []
    makers = {node.outputs[0].name: node for node in graph.nodes if node.op == "with_derivative_of"}
    for index, value in graph.mutations:
        if (value.name in reached or index in wrt) and not _is_behind(graph, index, value, makers):
            written.append((index, len(results)))
            results.append(GraphOutput(value))
        else:
            kept.append((index, value))
    views = [place for place in places if isinstance(place, OutputView)]
    seen = {p for p in places if not isinstance(p, OutputView)} | {result for _, result in written}
    seen.update(view.index for view in views if not view.of_input and not view.stopped)
    differentiable = tuple(
        k for k, out in enumerate(results) if k in seen and out.kind in kinds and _is_reached(out, reached)
    )
    if not differentiable and not written and not any(v.of_input and v.index in wrt for v in views):
        return None
    graph, places = _with_sizes(graph, table, places, results)
    plain = replace(graph, outputs=tuple(results), mutations=tuple(kept))
    source = PairSource(plain, tuple(wrt), differentiable, tuple(k for k, _ in written), memory_budget)
    try:
        pair = Pair(source, table, compile)
    except NotDifferentiableError as error:
        raise Unsupported(str(error)) from error
    return pair.compiled(places, tuple(written), ahead)


def _depending(graph: Graph, wrt: Sequence[int], also: Iterable[str] = ()) -> frozenset[str]:
    """The values that depend on these inputs, and the values ``also``, in a way that derivatives go."""
    found = {graph.inputs[k].var.name for k in wrt}.union(also)
    for node in graph.nodes:
        if node.op != STOP and any(v.name in found for v in node.inputs):
            found.update(v.name for v in node.outputs if v.dtype.is_inexact)
    return frozenset(found)


def _connected(graph: Graph, wrt: Sequence[int], outputs: Sequence[int]) -> tuple[int, ...]:
    """The inputs that some of these outputs depend on: the others have no gradient, not even zero."""
    values = [graph.outputs[k].var for k in outputs]
    found = on_the_way(graph.nodes, [graph.inputs[k].var for k in wrt], values)
    return tuple(k for k in wrt if graph.inputs[k].var.name in found)


def _is_reached(out: GraphOutput, reached: frozenset[str]) -> bool:
    return out.var.dtype.is_inexact and out.var.name in reached


def _is_behind(graph: Graph, index: int, value: Var, makers: Mapping[str, Node]) -> bool:
    """Whether an input was only written where derivatives are not recorded: its new contents have the
    derivative of the old ones."""
    while value.name in makers:
        value = makers[value.name].inputs[1]
    return value == graph.inputs[index].var


def _results(graph: Graph) -> tuple[list[GraphOutput], tuple[int | OutputView, ...]]:
    """Outputs that are values of their own, those hidden behind views included, and where each visible output
    is: one of these, or a view."""
    numbers: dict[int, int] = {}
    results: list[GraphOutput] = []
    for number, out in enumerate(graph.outputs):
        if out.view is None:
            numbers[number] = len(results)
            results.append(replace(out, hidden=False))
    places: list[int | OutputView] = []
    for number, out in enumerate(graph.outputs):
        view = out.view
        if out.hidden:
            continue
        if view is None:
            places.append(numbers[number])
            continue
        of_input = view.kind == "input"
        index = view.index if of_input else numbers[view.index]
        places.append(OutputView(of_input, index, view.shape, view.strides, view.offset, view.stopped))
    return results, tuple(places)


def _with_sizes(
    graph: Graph, table: Table, places: Sequence[int | OutputView], results: list[GraphOutput]
) -> tuple[Graph, tuple[int | OutputView, ...]]:
    """Have the symbolic sizes of views computed by the graph; they are appended to ``results``."""
    if not any(isinstance(place, OutputView) for place in places):
        return graph, tuple(places)
    builder = Rebuilder(graph, table)
    for node in graph.nodes:
        builder.keep(node)
    known: dict[str, NumberResult] = {}

    def computed(size: Size) -> Size:
        if not isinstance(size, SymInt):
            return size
        if str(size) not in known:
            known[str(size)] = NumberResult(len(results))
            number: Var = builder.emit("symint", expr=size, dtype=int64)
            results.append(GraphOutput(number, "python"))
        return known[str(size)]

    found: list[int | OutputView] = []
    for place in places:
        if isinstance(place, OutputView):
            shape, strides = tuple(map(computed, place.shape)), tuple(map(computed, place.strides))
            place = replace(place, shape=shape, strides=strides, offset=computed(place.offset))
        found.append(place)
    return replace(graph, nodes=tuple(builder.nodes)), tuple(found)


class Pair:
    """The halves of a graph whose outputs are the results."""

    def __init__(self, source: PairSource, table: Table, compile: Compile) -> None:
        self.source = source
        self.compile = compile
        self.listeners: list[Callable[[Sequence[bool], Sequence[bool], PairBackward], None]] = []
        plain, wrt, differentiable = source.plain, source.wrt, source.differentiable
        written, memory_budget = source.written, source.memory_budget
        self.table = table
        self.wrt = wrt
        self.lock = threading.Lock()
        self.begun: Ahead[Callable[..., Any]] | None = None
        self.memory_budget = memory_budget
        self.primary = _connected(plain, wrt, differentiable)
        whole = joint(plain, table, self.primary, differentiable)
        self.halves = partition(whole, table, memory_budget=memory_budget, seen=True, written=written)
        self.count = len(plain.outputs)
        known = {v.name for v in plain.values()}
        reached = _depending(self.halves.forward, wrt, _depending(plain, wrt))
        # what is saved besides the results: with derivatives of its own, where it is a value of the graph
        more = range(self.count, len(self.halves.forward.outputs))
        outputs = self.halves.forward.outputs
        hidden = [k for k in more if outputs[k].kind == "array" and _is_reached(outputs[k], reached)]
        self.differentiable = (*differentiable, *hidden)
        self.unknown = any(outputs[k].var.name not in known for k in self.differentiable)
        self.places = {k: k for k in range(self.count)}  # outputs of the forward graph among those of `plain`
        extra = [k for k in more if outputs[k].var.name in known]
        self.places.update({k: self.count + place for place, k in enumerate(extra)})
        self.plain = replace(plain, outputs=(*plain.outputs, *(outputs[k] for k in extra)))

    def compiled(
        self,
        places: tuple[int | OutputView, ...],
        written: tuple[tuple[int, int], ...],
        ahead: bool,
    ) -> GradientPair:
        forward = self.halves.forward
        # what is asked of symbols while compiling adds guards to those of the forward graph
        ahead = ahead and not self.halves.backward.symbols and not forward.symbols
        symbols = Symbols(forward.symbols, self.halves.integers, len(forward.inputs))
        return GradientPair(
            forward=giving_several(
                self.compile(forward, True, Runner(on_start=self._begin) if ahead else None),
                is_single(forward),
            ),
            backward=self.backward,
            count=self.count,
            differentiable=self.differentiable,
            saved=tuple((place.kind == "input", place.index) for place in self.halves.saved),
            rewritten=self.halves.rewritten,
            returned=places,
            written=written,
            symbols=symbols if symbols.bindings else None,
            describe=self.halves.describe,
            in_parts=self.in_parts,
            source=self.source,
            listeners=self.listeners,
        )

    def backward(self, given: Sequence[bool], wanted: Sequence[bool]) -> PairBackward | None:
        """The backward graph for cotangents of these outputs of the forward graph and gradients by these of
        its inputs; ``None`` where there is nothing to compute."""
        outputs = tuple(k for k in self.differentiable if given[k])
        if any(k not in self.places for k in outputs):
            raise NotDifferentiableError("a second derivative through a value that is only saved")
        wrt = _connected(self.plain, self.wrt, [self.places[k] for k in outputs])
        wrt = tuple(k for k in wrt if wanted[k])
        if not wrt:
            return None
        with self.lock:
            halves, saved = self._cut(outputs, wrt)
            graph = halves.backward
            run = self._taken() if halves is self.halves else None
            run = run or self.compile(graph, False, None)
        made = PairBackward(
            run=giving_several(run, is_single(graph)),
            consume=giving_several(consuming(run), is_single(graph)),
            saved=saved,
            rewritten=halves.rewritten,
            given=outputs,
            wrt=wrt,
            integers=tuple(binding.name for binding in halves.integers),
            again=_Again(self, graph),
            call=run,
        )
        for listener in self.listeners:
            listener(given, wanted, made)
        return made

    def in_parts(self, limits: Sequence[int]) -> BackwardParts | None:
        graph = self.halves.backward
        parts = [] if graph.mutations else cut_in_parts(graph, self.table, limits)
        if len(parts) < 2:
            return None
        bindings = graph.symbols
        of_inputs = Symbols(bindings, (), len(graph.inputs))
        passed = [binding.name for binding in self.halves.integers]

        def integers(values: Sequence[Any], symbols: dict[str, int]) -> tuple[int, ...]:
            found = of_inputs((*values, *(symbols[name] for name in passed)), ())
            return tuple(found[binding.name] for binding in bindings)

        return BackwardParts(
            parts=tuple(map(self._part, parts)),
            given=tuple(k for k in self.differentiable if k < self.count),
            integers=integers,
        )

    def _part(self, part: Part) -> BackwardPart:
        made: list[Callable[..., Sequence[Any]]] = []

        def run(*args: Any) -> Sequence[Any]:
            if not made:
                with self.lock:
                    call = self.compile(part.graph, False, None)
                    made.append(giving_several(call, is_single(part.graph)))
            return made[0](*args)

        return BackwardPart(run, part.reads, tuple(self.primary[k] for k in part.gradients))

    def _begin(self) -> None:
        """Begin to compile the backward graph of all gradients, which is asked for next as a rule."""
        graph = self.halves.backward
        self.begun = Ahead(lambda runner: self.compile(graph, False, runner))

    def _taken(self) -> Callable[..., Any] | None:
        begun, self.begun = self.begun, None
        return None if begun is None else begun.take()

    def _cut(self, outputs: tuple[int, ...], wrt: tuple[int, ...]) -> tuple[Halves, tuple[int, ...]]:
        """The halves for these outputs and inputs, and which saved values their backward graph takes."""
        if wrt == self.primary and outputs == tuple(k for k in self.differentiable if k < self.count):
            return self.halves, tuple(range(len(self.halves.saved)))
        whole = joint(self.plain, self.table, wrt, [self.places[k] for k in outputs])
        numbers = {
            place if place.kind == "input" else Saved("output", self.places[place.index]): number
            for number, place in enumerate(self.halves.saved)
            if place.kind == "input" or place.index in self.places
        }
        try:
            halves = partition(whole, self.table, saved=tuple(numbers))
        except NotDifferentiableError:
            sizes = [b for b in self.halves.backward.symbols if b.kind in ("dim", "stride")]
            if any(k >= self.count for k in outputs) or any(b.index >= len(self.halves.saved) for b in sizes):
                raise  # from cotangents that are there or not
            return self._with_zeros(whole), tuple(range(len(self.halves.saved)))
        # an output may be an input as it is: then either place stands for both
        named = {self._name(place): number for place, number in numbers.items()}
        return halves, tuple(named[self._name(place)] for place in halves.saved)

    def _with_zeros(self, wanted: Joint) -> Halves:
        """The first halves, for fewer outputs and inputs: what others would start from was not saved."""
        graph = self.halves.backward
        all_outputs = [k for k in self.differentiable if k < self.count]
        first, ends = len(self.halves.saved), len(graph.inputs) - len(self.halves.rewritten)
        inputs, zeros = list(graph.inputs[:first]), []
        for k, cotangent in zip(all_outputs, graph.inputs[first:ends], strict=True):
            if k in wanted.outputs:
                inputs.append(cotangent)
                continue
            var = cotangent.var
            params = {"shape": var.shape, "value": 0.0, "dtype": var.dtype, "device": var.type.device}
            zeros.append(Node("full", (), tuple(params.items()), (var,)))
        gradients = tuple(out for k, out in zip(self.primary, graph.outputs, strict=True) if k in wanted.wrt)
        writes = zip(self.halves.rewritten, graph.mutations, strict=True)
        mutations = tuple(
            (place, value)
            for place, (k, (_, value)) in enumerate(writes, len(inputs))
            if k in wanted.rewritten
        )
        inputs += graph.inputs[ends:]
        nodes = (*zeros, *graph.nodes)
        made = replace(graph, inputs=tuple(inputs), nodes=nodes, outputs=gradients, mutations=mutations)
        return replace(self.halves, backward=made)

    def _name(self, place: Saved) -> str:
        values = self.plain.inputs if place.kind == "input" else self.plain.outputs
        return values[place.index].var.name


class _Again:
    """The pair of a backward graph, made when a second derivative is first asked for."""

    def __init__(self, pair: Pair, graph: Graph) -> None:
        self.pair = pair
        self.graph = graph
        self.made: GradientPair | None = None

    def __call__(self) -> GradientPair | None:
        pair = self.pair
        if pair.unknown:
            raise NotDifferentiableError("a second derivative through a value that is only saved")
        if self.graph.mutations:
            raise NotDifferentiableError(
                "a second derivative through a function under torch.utils.checkpoint that writes to a tensor "
                "that it did not make (the running statistics of a batch normalization)"
            )
        with pair.lock:
            if self.made is None:
                wrt = [k for k, inp in enumerate(self.graph.inputs) if inp.var.dtype.is_inexact]
                try:
                    self.made = gradient_pair(self.graph, pair.table, wrt, pair.compile, pair.memory_budget)
                except Unsupported as error:
                    raise NotDifferentiableError(f"a second derivative: {error}") from error
        return self.made


def is_single(graph: Graph) -> bool:
    """Whether a call of the compiled graph gives its one result as it is."""
    return sum(not out.hidden for out in graph.outputs) == 1


def giving_several(call: Callable[..., Any], is_single: bool) -> Callable[..., Sequence[Any]]:
    """``call`` of a compiled graph, whose results come as a sequence also where there is one."""
    if not is_single:
        return call
    return lambda *args: (call(*args),)


def consuming(call: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """``call`` with its arguments in a list, which it empties if it can."""
    consume: Callable[[list[Any]], Any] | None = getattr(call, "consume", None)
    return consume or (lambda values: call(*values))


class Symbols:
    """The values of a graph's symbols, by name: ``symbols(arguments, results)``."""

    def __init__(
        self, bindings: Sequence[SymbolBinding], integers: Sequence[SymbolBinding], inputs: int
    ) -> None:
        outputs = [binding for binding in integers if binding.kind == "output"]
        self.bindings = [binding for binding in bindings if binding.kind != "node"] + outputs
        self.inputs = inputs

    @staticmethod
    def of(bindings: Sequence[SymbolBinding], inputs: int) -> Symbols:
        """Those of ``bindings``, whichever they are."""
        made = Symbols((), (), inputs)
        made.bindings = list(bindings)
        return made

    def __call__(self, args: Sequence[Any], results: Sequence[Any]) -> dict[str, int]:
        return {binding.name: self._value(binding, args, results) for binding in self.bindings}

    def _value(self, binding: SymbolBinding, args: Sequence[Any], results: Sequence[Any]) -> int:
        found: int
        if binding.kind == "int":
            found = args[self.inputs + binding.index]
        elif binding.kind == "output":
            found = results[binding.index]
        elif binding.kind == "dim":
            found = args[binding.index].shape[binding.axis]
        else:
            array = args[binding.index]
            found = (
                array.strides[binding.axis] // array.itemsize
                if isinstance(array, np.ndarray)
                else array.stride(binding.axis)
            )
        return found
