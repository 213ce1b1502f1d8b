"""Delta debugging of a failing graph: fewer operations, fewer outputs, smaller and simpler inputs.

The algorithm is ddmin (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002), on
the list of nodes. Any subset of nodes is a graph: what they read from nodes that are gone becomes an input
that holds the value it had.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from ..dataclass import dataclass, field
from ..errors import DyncompError, VerifyError
from ..graph.interp import bind_symbols, concrete
from ..graph.ir import COPY, ArrayType, GraphBuilder, GraphInput, GraphOutput, Node, Var, verify
from ..wording import counted
from .case import Array, Case, values_of

_REFUSED = (DyncompError, ValueError, TypeError, IndexError, KeyError, AssertionError, NotImplementedError)


@dataclass
class Budget:
    """``seconds``: how long to go on; ``tell``: is given what is going on after each try."""

    seconds: float = 120.0
    tell: Callable[[str], None] | None = None
    start: float = field(default_factory=time.monotonic)
    tries: int = 0
    stopped: bool = False  # by an interrupt

    @property
    def left(self) -> float:
        return 0.0 if self.stopped else self.seconds - (time.monotonic() - self.start)


T = TypeVar("T")
Fails = Callable[[Case], bool]


class Search(Generic[T]):
    """The smallest thing found so far that ``fails``; ``size`` says how many operations it has."""

    def __init__(
        self, first: T, fails: Callable[[T], bool], size: Callable[[T], int], budget: Budget
    ) -> None:
        self.best = first
        self.fails = fails
        self.size = size
        self.budget = budget

    def accept(self, candidate: T | None) -> bool:
        """Whether ``candidate`` fails, too; it is the best from then on."""
        if candidate is None or self.budget.left <= 0:
            return False
        self.budget.tries += 1
        failed = self.fails(candidate)
        if failed:
            self.best = candidate
        if self.budget.tell is not None:
            self.budget.tell(
                f"{counted(self.size(self.best), 'operation')} left after {self.budget.tries:,} tries"
            )
        return failed

    def search(self) -> T:
        """:meth:`run`, which an interrupt ends; the best."""
        try:
            self.run()
        except KeyboardInterrupt:
            self.budget.stopped = True
        return self.best

    def run(self) -> None:
        """Try candidates until none is accepted."""
        raise NotImplementedError


def shrink(case: Case, fails: Fails, budget: Budget) -> Case:
    """The smallest case found for which ``fails`` says ``True``, as it does for ``case``. An interrupt ends
    the search, not the program."""
    return _GraphSearch(case, fails, lambda found: len(found.graph.nodes), budget).search()


class _GraphSearch(Search[Case]):
    def run(self) -> None:
        self.accept(_attempt(lambda: with_fixed_sizes(self.best)))
        self.nodes()
        self.accept(_attempt(lambda: without_unused_inputs(self.best)))
        before = None
        while before is not self.best and self.budget.left > 0:
            before = self.best
            self.outputs()
            self.bypasses()
            self.sizes()
            self.values()
            self.dtypes()
            self.nodes()
            self.accept(_attempt(lambda: without_unused_inputs(self.best)))
        self.settings()

    def nodes(self) -> None:
        """ddmin over the nodes."""
        parts = 2
        while len(self.best.graph.nodes) > 1 and self.budget.left > 0:
            count = len(self.best.graph.nodes)
            parts = min(parts, count)
            for kept in _subsets(count, parts):
                if self.accept(_attempt(lambda kept=kept: only_nodes(self.best, kept))):  # type: ignore[misc]
                    parts = 2 if len(kept) * 2 <= count else max(parts - 1, 2)
                    break
                if self.budget.left <= 0:
                    return
            else:
                if parts >= count:
                    return
                parts = min(2 * parts, count)

    def outputs(self) -> None:
        for number in reversed(range(len(self.best.graph.outputs))):
            if len(self.best.graph.outputs) > 1 and number < len(self.best.graph.outputs):
                self.accept(_attempt(lambda number=number: without_output(self.best, number)))  # type: ignore[misc]

    def bypasses(self) -> None:
        """Nodes whose value is replaced by one of their inputs."""
        number = len(self.best.graph.nodes) - 1
        while number >= 0 and self.budget.left > 0:
            if number < len(self.best.graph.nodes):
                for at in range(len(self.best.graph.nodes[number].inputs)):
                    if self.accept(_attempt(lambda at=at: bypassed(self.best, number, at))):  # type: ignore[misc] # noqa: B023
                        break
            number -= 1

    def sizes(self) -> None:
        """Every size that occurs in the inputs, made smaller everywhere."""
        found = {n for inp in self.best.graph.inputs for n in inp.var.shape if isinstance(n, int) and n > 1}
        for size in sorted(found, reverse=True):
            for smaller in dict.fromkeys((1, 2, 3, 4, 5, 8, size // 4, size // 2, size - 1)):
                if 0 < smaller < size:
                    if self.accept(_attempt(lambda to=smaller, size=size: resized(self.best, size, to))):  # type: ignore[misc]
                        break

    def values(self) -> None:
        for number, value in enumerate(self.best.inputs):
            if not isinstance(value, np.ndarray) or not value.size:
                continue
            for simple in simpler(value):
                if np.array_equal(simple, value, equal_nan=value.dtype.kind in "fc"):
                    break
                inputs = (*self.best.inputs[:number], simple, *self.best.inputs[number + 1 :])
                if self.accept(replace(self.best, inputs=inputs)):
                    break

    def dtypes(self) -> None:
        """All inputs of one dtype made another, more usual one."""
        for old, new in (("float16", "float32"), ("float32", "float64"), ("complex64", "float64")):
            if any(inp.var.dtype.name == old for inp in self.best.graph.inputs):
                self.accept(_attempt(lambda old=old, new=new: retyped(self.best, old, new)))  # type: ignore[misc]

    def settings(self) -> None:
        """Options that play no part."""
        options = dict(self.best.settings.get("options", {}))
        for name in list(options):
            rest = {key: value for key, value in options.items() if key != name}
            if self.accept(replace(self.best, settings={**self.best.settings, "options": rest})):
                options = rest
        if self.best.settings.get("mode", "default") != "default":
            self.accept(
                replace(self.best, settings={k: v for k, v in self.best.settings.items() if k != "mode"})
            )


def _attempt(make: Callable[[], Case]) -> Case | None:
    """A case, or ``None`` where there is none of the kind."""
    try:
        with np.errstate(all="ignore"):
            return make()
    except _REFUSED:
        return None


def _subsets(count: int, parts: int) -> Iterator[list[int]]:
    """The parts of ``range(count)``, the last first, and then what is left without each."""
    bounds = [count * k // parts for k in range(parts + 1)]
    chunks = [list(range(low, high)) for low, high in zip(bounds, bounds[1:]) if high > low]
    yield from reversed(chunks)
    if parts > 2:
        for chunk in chunks:
            gone = set(chunk)
            yield [k for k in range(count) if k not in gone]


def simpler(value: Array) -> Iterator[Array]:
    """Simpler contents, the simplest first."""
    kind = value.dtype.kind
    if kind == "b":
        yield np.zeros_like(value)
        yield np.ones_like(value)
        return
    if kind not in "iufc":
        return
    yield np.zeros_like(value)
    yield np.ones_like(value)
    with np.errstate(all="ignore"):
        count = (np.arange(value.size) % 7 + 1).reshape(value.shape)
        yield _like(value, count.astype(value.dtype))
        if kind in "fc":
            for digits in (0, 1, 3):
                rounded = np.round(value.astype(np.complex128 if kind == "c" else np.float64), digits)
                yield _like(value, rounded.astype(value.dtype))


def _like(value: Array, contents: Array) -> Array:
    made = np.empty_like(value)
    made[...] = contents
    return made


# -- other graphs -----------------------------------------------------------------------------------
class _Rebuild:
    """Makes a graph of other inputs, or of some of the nodes of another, inferring all types anew."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.builder = GraphBuilder(case.table, case.graph.env, case.graph.name)
        self.builder.symbols = list(case.graph.symbols)
        self.vars: dict[str, Var] = {}
        self.inputs: list[Any] = []

    def input(self, var: Var, type: ArrayType, value: object, kind: str = "array", label: str = "") -> None:
        self.vars[var.name] = self.builder.add_input(type, kind, label)
        self.inputs.append(value)

    def node(self, node: Node, params: dict[str, Any] | None = None) -> None:
        inputs = [self.vars[var.name] for var in node.inputs]
        made = self.builder.emit(
            node.op, *inputs, loc=node.loc, **(node.kwargs if params is None else params)
        )
        several = made if isinstance(made, tuple) else () if made is None else (made,)
        for old, new in zip(node.outputs, several, strict=True):
            self.vars[old.name] = new

    def finish(
        self, outputs: Sequence[GraphOutput], mutations: Sequence[tuple[int, Var]], integers: tuple[int, ...]
    ) -> Case:
        graph = self.case.graph
        made = replace(
            self.builder.finish(tuple(outputs)), mutations=tuple(mutations), functional=graph.functional
        )
        verify(made, self.case.table)
        return replace(self.case, graph=made, inputs=tuple(self.inputs), integers=integers)

    def outputs(self) -> list[GraphOutput]:
        """Those of the old graph whose values are there; views of them are values of their own."""
        found = []
        for out in self.case.graph.outputs:
            if out.var.name in self.vars and not out.hidden and out.view is None:
                found.append(GraphOutput(self.vars[out.var.name]))
        return found

    def mutations(self) -> list[tuple[int, Var]]:
        return [(k, self.vars[v.name]) for k, v in self.case.graph.mutations if v.name in self.vars]


def only_nodes(case: Case, kept: Sequence[int]) -> Case:
    """The graph of some of the nodes."""
    graph = case.graph
    values = values_of(case)
    build = _Rebuild(case)
    for inp, value in zip(graph.inputs, case.inputs):
        build.input(inp.var, inp.var.type, value, inp.kind, inp.label)
    nodes = [graph.nodes[k] for k in sorted(kept)]
    for node in nodes:
        for var in node.inputs:
            if var.name not in build.vars:
                build.input(var, var.type, values[var.name])
        build.node(node)
    outputs = build.outputs()
    read = {var.name for node in nodes for var in node.inputs}
    taken = {out.var.name for out in outputs}
    for node in nodes:
        for var in node.outputs:
            if var.name not in read and build.vars[var.name].name not in taken:
                outputs.append(GraphOutput(build.vars[var.name]))
    mutations = [(k, v) for k, v in build.mutations() if v.name != build.builder.inputs[k].var.name]
    if not outputs and not mutations and not any(node.op == COPY for node in nodes):
        raise VerifyError("nothing is left")
    return build.finish(outputs, mutations, case.integers)


def single(case: Case, node: Node, values: Mapping[str, Any]) -> Case:
    """The graph of one node, on the ``values`` of what it reads."""
    build = _Rebuild(case)
    for var in dict.fromkeys(node.inputs):
        build.input(var, var.type, values[var.name])
    build.node(node)
    return build.finish([GraphOutput(build.vars[var.name]) for var in node.outputs], (), case.integers)


def without_output(case: Case, number: int) -> Case:
    """The graph without an output and what only that needs."""
    graph = case.graph
    if any(out.view is not None or out.hidden for out in graph.outputs):
        raise VerifyError("an output is a view of another")
    outputs = [out for k, out in enumerate(graph.outputs) if k != number]
    needed = {out.var.name for out in outputs} | {var.name for _, var in graph.mutations}
    kept = []
    for node in reversed(graph.nodes):
        if node.op == COPY or any(var.name in needed for var in node.outputs):
            kept.append(node)
            needed.update(var.name for var in node.inputs)
    made = replace(graph, nodes=tuple(reversed(kept)), outputs=tuple(outputs))
    return replace(case, graph=verify(made, case.table))


def bypassed(case: Case, number: int, at: int) -> Case:
    """The graph in which an input of a node is used in place of its value."""
    graph = case.graph
    node = graph.nodes[number]
    if len(node.outputs) != 1 or node.inputs[at].type != node.out.type:
        raise VerifyError("not of one type")
    rest = [n for k, n in enumerate(graph.nodes) if k != number]

    def new(var: Var) -> Var:
        return node.inputs[at] if var.name == node.out.name else var

    nodes = [replace(n, inputs=tuple(map(new, n.inputs))) for n in rest]
    outputs = [replace(out, var=new(out.var)) for out in graph.outputs]
    names = {inp.var.name for inp in graph.inputs}
    if any(out.var.name in names and out.view is None for out in outputs):
        raise VerifyError("an output would be an input")
    mutations = [(k, new(v)) for k, v in graph.mutations]
    made = replace(graph, nodes=tuple(nodes), outputs=tuple(outputs), mutations=tuple(mutations))
    return replace(case, graph=verify(made, case.table))


def without_unused_inputs(case: Case) -> Case:
    """The graph of only those inputs that it needs."""
    graph = case.graph
    used = {var.name for node in graph.nodes for var in node.inputs}
    used |= {out.var.name for out in graph.outputs} | {v.name for _, v in graph.mutations}
    used |= {graph.inputs[k].var.name for k, _ in graph.mutations}
    used |= {graph.inputs[s.index].var.name for s in graph.symbols if s.kind in ("dim", "stride")}
    if any(out.view is not None for out in graph.outputs):
        raise VerifyError("an output is a view")
    kept = [k for k, inp in enumerate(graph.inputs) if inp.var.name in used]
    if len(kept) == len(graph.inputs):
        raise VerifyError("all inputs are used")
    place = {old: new for new, old in enumerate(kept)}
    symbols = [replace(s, index=place[s.index]) if s.kind in ("dim", "stride") else s for s in graph.symbols]
    mutations = [(place[k], v) for k, v in graph.mutations]
    made = replace(
        graph,
        inputs=tuple([graph.inputs[k] for k in kept]),
        symbols=tuple(symbols),
        mutations=tuple(mutations),
    )
    inputs = tuple([case.inputs[k] for k in kept])
    return replace(case, graph=verify(made, case.table), inputs=inputs)


def with_fixed_sizes(case: Case) -> Case:
    """The graph for the sizes of this call alone, its outputs as values of their own."""
    graph = case.graph
    symbols = bind_symbols(graph, case.inputs, case.integers)
    if any(s.kind == "node" for s in graph.symbols):
        raise VerifyError("sizes depend on the data")
    build = _Rebuild(case)
    build.builder.symbols = []
    for inp, value in zip(graph.inputs, case.inputs):
        build.input(inp.var, _concrete(inp.var.type, symbols), value, inp.kind, inp.label)
    for node in graph.nodes:
        build.node(node, concrete(node.kwargs, symbols))
    outputs = build.outputs()
    return build.finish(outputs, build.mutations(), ())


def _concrete(type: ArrayType, symbols: dict[str, int]) -> ArrayType:
    shape, strides = concrete((type.shape, type.strides), symbols)
    return replace(type, shape=shape, strides=strides)


def resized(case: Case, size: int, to: int) -> Case:
    """The graph with another size in place of ``size``, wherever that occurs."""
    if case.graph.symbols:
        raise VerifyError("sizes are symbolic")

    def new(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(new, value))
        return to if type(value) is int and value == size else value

    def inputs(inp: GraphInput, value: Any) -> tuple[ArrayType, Any]:
        if not isinstance(value, np.ndarray):
            return inp.var.type, value
        cut = value[tuple(slice(0, new(n)) for n in value.shape)]
        made = np.empty(cut.shape, cut.dtype)
        made[...] = cut
        strides = tuple(s // made.itemsize for s in made.strides)
        return replace(inp.var.type, shape=made.shape, strides=strides), made

    return _changed(case, inputs, lambda node: {key: new(value) for key, value in node.params})


def retyped(case: Case, old: str, new: str) -> Case:
    """The graph with inputs of another dtype."""
    from .. import dtypes

    def changed(value: Any) -> Any:
        return dtypes.BY_NAME[new] if getattr(value, "name", None) == old else value

    def inputs(inp: GraphInput, value: Any) -> tuple[ArrayType, Any]:
        if inp.var.dtype.name != old:
            return inp.var.type, value
        dtype = dtypes.BY_NAME[new]
        return replace(inp.var.type, dtype=dtype), np.asarray(value).astype(dtype.numpy)

    return _changed(case, inputs, lambda node: {key: changed(value) for key, value in node.params})


def _changed(
    case: Case,
    inputs: Callable[[GraphInput, Any], tuple[ArrayType, Any]],
    params: Callable[[Node], dict[str, Any]],
) -> Case:
    build = _Rebuild(case)
    for inp, value in zip(case.graph.inputs, case.inputs):
        type, changed = inputs(inp, value)
        build.input(inp.var, type, changed, inp.kind, inp.label)
    for node in case.graph.nodes:
        build.node(node, params(node))
    if any(out.view is not None for out in case.graph.outputs):
        raise VerifyError("an output is a view")
    return build.finish(build.outputs(), build.mutations(), case.integers)
