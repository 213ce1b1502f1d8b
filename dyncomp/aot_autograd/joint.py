"""The joint graph: a functional graph followed by the derivatives of its outputs.

Cotangents of outputs become inputs at the end; gradients of the inputs asked for become outputs at the end.
Only what lies on a way from such an input to such an output is differentiated, and what gets no cotangent
is zero and computed nowhere. Nodes of the backward pass have the places of the nodes that they come from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..dataclass import dataclass
from ..errors import NotDifferentiableError
from ..graph.ir import Graph, GraphOutput, Node, Ops, Var, contiguous_strides
from ..graph.passes.decompose import decompose
from ..graph.rewrite import Rebuilder, emit_window
from ..prims.markers import BEGIN, CUSTOM, END, FUNCTION, STOP
from ..prims.opdef import OpDef
from ..prims.pointwise.partials import Unknown, in_sizes_of, scalar, zeros
from ..prims.table import TABLE
from ..symbolic.integers import hint
from .windows import Windows

Table = Mapping[str, OpDef]


@dataclass(frozen=True)
class Joint:
    """A graph with its backward pass.

    ``graph``: inputs of the original and a cotangent for each of ``outputs`` (unless they are ones); outputs
    of the original and a gradient for each of ``wrt`` (of an input that no output depends on: zeros).
    ``nodes``: how many of its nodes are the original's, the values of outputs that are views among them.
    ``rewritten``: inputs that the backward pass writes to, as what it computes again does. Behind the
    cotangents there is an input for what each of these holds by then, behind the gradients what it gets.
    """

    graph: Graph
    outputs: tuple[int, ...]
    wrt: tuple[int, ...]
    nodes: int
    rewritten: tuple[int, ...] = ()


def joint(
    graph: Graph,
    table: Table,
    wrt: Sequence[int],
    outputs: Sequence[int] | None = None,
    *,
    ones: bool = False,
) -> Joint:
    """The joint graph of a functional graph for gradients by the inputs ``wrt`` of the outputs ``outputs``
    (numbers; all outputs of inexact dtypes if ``None``). ``ones``: cotangents are ones, not inputs.

    Raises :class:`NotDifferentiableError` with the program's place for a node on the way that has no
    derivative, and for an input or output that is not inexact.
    """
    graph = decompose(graph, table)
    numbers = range(len(graph.outputs)) if outputs is None else outputs
    chosen = tuple(k for k in numbers if outputs is not None or graph.outputs[k].var.dtype.is_inexact)
    for k in wrt:
        _check_inexact(graph.inputs[k].var, f"input {k}")
    for k in chosen:
        _check_inexact(graph.outputs[k].var, f"output {k}")
    builder = Rebuilder(graph, table)
    for node in graph.nodes:
        builder.keep(node)
    differentiated = [seen(builder, graph, graph.outputs[k]) for k in chosen]
    nodes = tuple(builder.nodes)
    reverse = Reverse(builder, table, nodes, [graph.inputs[k].var for k in wrt], differentiated)
    if not ones:
        reverse.rewritten = {}
    for k, var in zip(chosen, differentiated):
        reverse.add(var, scalar(reverse.ops, var, 1.0) if ones else _cotangent(builder, var, k))
    reverse.run()
    gradients = [reverse.gradient(graph.inputs[k].var) for k in wrt]
    contents = reverse.rewritten or {}
    made = builder.finish((*graph.outputs, *map(GraphOutput, (*gradients, *contents.values()))))
    made = replace(made, name=graph.name, mutations=graph.mutations, functional=True)
    places = {inp.var.name: k for k, inp in enumerate(graph.inputs)}
    return Joint(made, chosen, tuple(wrt), len(nodes), tuple(places[name] for name in contents))


def seen(builder: Rebuilder, graph: Graph, out: GraphOutput) -> Var:
    """An output as the caller sees it: the value of a view is in no graph."""
    if out.view is None:
        return out.var
    written = dict(graph.mutations) if out.view.kind == "input" else {}
    return emit_window(builder, written.get(out.view.index, out.var), out.view)


def _cotangent(builder: Rebuilder, var: Var, number: int) -> Var:
    plain = replace(var.type, strides=contiguous_strides(var.shape))
    return builder.add_input(plain, label=f"cotangent of output {number}")


def _check_inexact(var: Var, what: str) -> None:
    if not var.dtype.is_inexact:
        raise NotDifferentiableError(
            f"{what} has dtype {var.dtype}: derivatives are of floating-point numbers"
        )


class Reverse:
    """The reverse pass over nodes of a builder, from ``outputs`` to ``wrt``: :meth:`add` cotangents of
    outputs, then :meth:`run`, then ask for gradients. ``rewritten``: the new contents of inputs that are
    written again, by name; ``None`` where nothing may be."""

    def __init__(
        self,
        builder: Rebuilder,
        table: Table,
        nodes: Sequence[Node],
        wrt: Sequence[Var],
        outputs: Sequence[Var],
    ) -> None:
        self.table = table
        self.nodes = nodes
        self.ops = Ops(builder)
        self.builder = builder
        self.on_the_way = on_the_way(nodes, wrt, outputs)
        self.cotangents: dict[str, Var] = {}
        self.rewritten: dict[str, Var] | None = None
        self.windows = Windows(self.ops, table)

    def add(self, var: Var, cotangent: Var) -> None:
        if var.name in self.on_the_way:
            cotangent = in_sizes_of(self.ops, cotangent, var)
            known = self.cotangents.get(var.name)
            self.cotangents[var.name] = cotangent if known is None else self.ops.add(known, cotangent)

    def cotangent(self, var: Var) -> Var | None:
        """What was added for a value so far; ``None`` for nothing."""
        found = self.windows.put_together(var, self.cotangents.get(var.name))
        if found is not None:
            self.cotangents[var.name] = found
        return found

    def run(self) -> None:
        loc = self.builder.loc
        for node in reversed(self.nodes):
            if any(v.name in self.on_the_way for v in node.outputs):
                self._through(node)
        self.builder.loc = loc

    def _through(self, node: Node) -> None:
        """From the cotangents of a node's outputs to those of its inputs."""
        cotangents = tuple(map(self.cotangent, node.outputs))
        if all(ct is None for ct in cotangents):
            return
        own = _OWN_WAYS.get(node.op)
        if own is not None:
            given = [zeros(self.ops, v) if ct is None else ct for v, ct in zip(node.outputs, cotangents)]
            own(self, node, given)
            return
        row, params = row_of(node, self.table)
        if row.vjp is None:
            raise refusal(node, row.no_derivative or "it has no derivative")
        check_inputs(node, row, [v.name in self.on_the_way for v in node.inputs])
        self.builder.loc = None if node.loc is None else node.loc.of_gradient()
        if (
            cotangents[0] is not None
            and row is self.table[node.op]
            and self.windows.take(node, cotangents[0])
        ):
            return
        start = len(self.builder.nodes)
        try:
            found = row.vjp(self.ops, cotangents, node.inputs, node.outputs, **params)
        except TypeError as error:
            raise refusal(node, str(error)) from error
        pairs: list[tuple[Var, Var]] = []
        for var, cotangent in zip(node.inputs, found, strict=True):
            if cotangent is None or var.name not in self.on_the_way:
                continue
            if isinstance(cotangent, Unknown):
                raise refusal(node, cotangent.reason)
            pairs.append((var, cotangent))
        self._keep_what_is_needed(start, [cotangent for _, cotangent in pairs])
        for var, cotangent in pairs:
            self.add(var, cotangent)

    def _keep_what_is_needed(self, start: int, values: Sequence[Var]) -> None:
        """Of the nodes emitted since ``start`` those that make these values: all passes go over the rest."""
        needed = {v.name for v in values}
        kept = []
        for node in reversed(self.builder.nodes[start:]):
            if any(v.name in needed for v in node.outputs):
                kept.append(node)
                needed.update(v.name for v in node.inputs)
        self.builder.nodes[start:] = reversed(kept)

    def _custom(self, node: Node, given: Sequence[Var]) -> None:
        """Through a marker that has gradients of stand-ins for its cotangents: what depends on the stand-ins
        is emitted once more, of the cotangents."""
        count = len(node.outputs)
        if len(node.inputs) == count:
            raise refusal(node, "its value was computed again, without its backward")
        stand_ins = {v.name for v in node.inputs[count : 2 * count]}
        end = next(k for k, made in enumerate(self.nodes) if made is node)
        begin = next(k for k, made in enumerate(self.nodes) if stand_ins & {v.name for v in made.outputs})
        found = dict(zip((v.name for v in node.inputs[count : 2 * count]), given))
        if node.op == FUNCTION:
            found.update(zip((v.name for v in node.inputs[:count]), node.outputs))
        for made in self.nodes[begin:end]:
            if any(v.name in found for v in made.inputs):
                self._emit_again(made, found)
        rest = node.inputs[2 * count :]
        for gradient, var in zip(rest[: len(rest) // 2], rest[len(rest) // 2 :]):
            self.add(var, found.get(gradient.name, gradient))

    def _again(self, node: Node, given: Sequence[Var]) -> None:
        """Through what is computed once more here, from the values that it reads: after the cotangents."""
        position = next(k for k, made in enumerate(self.nodes) if made is node)
        begin = position - 1
        while (self.nodes[begin].op, self.nodes[begin].params) != (BEGIN, node.params):
            begin -= 1
        region = self.nodes[begin + 1 : position]
        buffers = self.nodes[begin].inputs
        count = len(node.inputs) - len(buffers)
        made_inside = {v.name for made in region for v in made.outputs}
        needed = {v.name for v in node.inputs}
        for made in reversed(region):
            if any(v.name in needed for v in made.outputs):
                needed.update(v.name for v in made.inputs)
        start = len(self.builder.nodes)
        found: dict[str, Var] = {}
        outside: dict[str, Var] = {}
        there = next(ct for v, ct in zip(node.outputs, given) if self.cotangent(v) is not None)
        for buffer in buffers:
            found[buffer.name] = self._contents_then(node, buffer)
        late = set(found)  # what cannot be there before the cotangent
        for made in region:
            if made.op != BEGIN and not any(v.name in needed for v in made.outputs):
                continue
            outside.update({v.name: v for v in made.inputs if v.name not in made_inside})
            if made.inputs and not self.table[made.op].is_view and not late & {v.name for v in made.inputs}:
                # one value is enough, and the smallest costs least: weights stay as they are
                least = min(made.inputs, key=lambda v: hint(v.type.size) * v.dtype.itemsize)
                found[least.name] = self.ops.after(found.get(least.name, least), there)
                late.add(least.name)
            if late & {v.name for v in made.inputs}:
                late.update(v.name for v in made.outputs)
            self._emit_again(made, found)
        read = [var for name, var in outside.items() if name in self.on_the_way]
        for buffer, new in zip(buffers, node.inputs[count:]):
            assert self.rewritten is not None
            self.rewritten[buffer.name] = found.get(new.name, new)
        nodes = tuple(self.builder.nodes[start:])
        values = [found.get(v.name, v) for v in node.inputs[:count]]
        inner = Reverse(self.builder, self.table, nodes, read, values)
        for value, cotangent in zip(values, given):
            if value.name in made_inside or value.name in inner.on_the_way:
                inner.add(value, cotangent)
            else:  # a value that was there before
                self.add(value, cotangent)
        inner.run()
        for var in read:
            found_for = inner.cotangent(var)
            if found_for is not None:
                self.add(var, found_for)

    def _contents_then(self, node: Node, buffer: Var) -> Var:
        """What an input that is written again holds when the backward pass runs."""
        if self.rewritten is None:
            raise refusal(node, "what it computes again writes to a tensor that it did not make")
        return self.builder.add_input(buffer.type, label=f"contents of {buffer.name}")

    def _emit_again(self, node: Node, found: dict[str, Var]) -> None:
        """A node of what stands for its inputs."""
        inputs = (found.get(v.name, v) for v in node.inputs)
        again = self.builder.emit(node.op, *inputs, loc=node.loc, **node.kwargs)
        outputs = again if isinstance(again, tuple) else (again,)
        found.update(zip((v.name for v in node.outputs), outputs))

    def gradient(self, var: Var) -> Var:
        found = self.cotangent(var)
        if found is None:
            return zeros(self.ops, var)
        # a cotangent that is an input, or is given twice, goes out as a value of its own
        around, producer = self.builder.loc, self.builder.producer(found)
        self.builder.loc = around if producer is None else producer.loc
        made: Var = self.ops.copy(found)
        self.builder.loc = around
        return made


_OWN_WAYS: Mapping[str, Callable[[Reverse, Node, Sequence[Var]], None]] = {
    CUSTOM: Reverse._custom,
    FUNCTION: Reverse._custom,
    END: Reverse._again,
}


def on_the_way(nodes: Sequence[Node], wrt: Sequence[Var], outputs: Sequence[Var]) -> frozenset[str]:
    """Values that depend on ``wrt`` and that ``outputs`` depend on, by values of inexact dtypes."""
    reached = {v.name for v in wrt}
    for node in nodes:
        if node.op != STOP and any(v.name in reached for v in node.inputs):
            reached.update(v.name for v in node.outputs if v.dtype.is_inexact)
    needed = {v.name for v in outputs}
    for node in reversed(nodes):
        # what decides where something goes, a comparison or a position, passes no derivative on
        if node.op != STOP and any(v.name in needed and v.dtype.is_inexact for v in node.outputs):
            needed.update(v.name for v in node.inputs)
    return frozenset(reached & needed)


def row_of(node: Node, table: Table) -> tuple[OpDef, dict[str, Any]]:
    """The row that says a node's derivatives, and their parameters: that of ``sin`` for ``math.sin``."""
    callee = node.kwargs.get("callee")
    named = _by_path().get(callee.path) if callee is not None and callee.path else None
    if named is None or named.scalar is None or named.scalar.arity != len(node.inputs):
        return table[node.op], node.kwargs
    return named, {}


def check_inputs(node: Node, row: OpDef, varies: Sequence[bool]) -> None:
    """Raise :class:`NotDifferentiableError` if there is no derivative by an input that varies."""
    for position, reason in row.no_derivative_by.items():
        if varies[position]:
            raise refusal(node, f"by argument {position}: {reason}")


@functools.cache
def _by_path() -> Mapping[str, OpDef]:
    return {path: row for row in TABLE.values() for path in row.names}


def refusal(node: Node, reason: str) -> NotDifferentiableError:
    """What says that a node has no derivative."""
    return NotDifferentiableError(f"{described(node)} cannot be differentiated: {reason}")


def described(node: Node) -> str:
    """What a node calls, and where in the program."""
    place = "" if node.loc is None else f" at {node.loc}"
    callee = node.kwargs.get("callee")
    name = node.op if callee is None else callee.path or callee.name
    return f"{name}{place}"
