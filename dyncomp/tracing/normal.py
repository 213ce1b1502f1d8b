"""The form that graphs have as objects of the user: pure nodes, named inputs, outputs that are values."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..aot_autograd.expand import expand
from ..aot_autograd.functionalize import functionalize
from ..dtypes import ALL
from ..graph.ir import Graph, GraphInput, GraphOutput, Node, OpTable, Var
from ..graph.passes.dce import eliminate_dead_code
from ..graph.rewrite import Rebuilder, emit_window

_GENERATED = re.compile(r"v\d+$")


def normal_form(graph: Graph, table: OpTable, keep_views: bool) -> Graph:
    """``graph`` without writes and markers. Unless ``keep_views``, outputs that share memory with inputs or
    with one another become values of their own."""
    graph = expand(functionalize(graph, table), table)
    if not keep_views:
        graph = _without_views(graph, table)
    return eliminate_dead_code(graph, table)


def _without_views(graph: Graph, table: OpTable) -> Graph:
    if not any(out.view is not None or out.hidden for out in graph.outputs):
        return graph
    builder = Rebuilder(graph, table)
    for node in graph.nodes:
        builder.keep(node)
    written = dict(graph.mutations)
    made: list[GraphOutput] = []
    for out in graph.outputs:
        if out.hidden:
            continue
        if out.view is not None:
            base = written.get(out.view.index, out.var) if out.view.kind == "input" else out.var
            producer = builder.producer(base)
            builder.loc = None if producer is None else producer.loc
            out = replace(out, var=emit_window(builder, base, out.view), view=None)
        made.append(out)
    return builder.rebuilt(made, graph.mutations)


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """``graph`` with other names for some values."""

    def new(var: Var) -> Var:
        return Var(names[var.name], var.type) if var.name in names else var

    nodes = tuple(
        replace(node, inputs=tuple(map(new, node.inputs)), outputs=tuple(map(new, node.outputs)))
        for node in graph.nodes
    )
    return replace(
        graph,
        inputs=tuple(replace(inp, var=new(inp.var)) for inp in graph.inputs),
        nodes=nodes,
        outputs=tuple(replace(out, var=new(out.var)) for out in graph.outputs),
        mutations=tuple((index, new(var)) for index, var in graph.mutations),
    )


def identifier(text: str, taken: Iterable[str], table: OpTable) -> str:
    """A name for a value of a graph, near to ``text`` and different from ``taken``."""
    name = re.sub(r"\W+", "_", text).strip("_") or "value"
    name = f"_{name}" if name[0].isdigit() else name
    taken = set(taken)
    if keyword.iskeyword(name) or name in table or name in _RESERVED or _GENERATED.match(name):
        name += "_"
    count, found = 1, name
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found


# names that the text of a graph gives a meaning to (see ``graph/text.py``)
_CALLS = "device literal complex slice nan inf min max stride copy_ write_back view view_of scalar python"
_RESERVED = frozenset((*_CALLS.split(), "readonly", "stopped", "hidden", *(d.name for d in ALL), "bool_"))


def with_input(graph: Graph, inp: GraphInput) -> Graph:
    return replace(graph, inputs=(*graph.inputs, inp))


def without_inputs(graph: Graph, names: set[str]) -> Graph:
    """``graph`` without inputs that nothing reads."""
    if not names:
        return graph
    number: dict[int, int] = {}
    kept: list[GraphInput] = []
    for index, inp in enumerate(graph.inputs):
        if inp.var.name not in names:
            number[index] = len(kept)
            kept.append(inp)
    outputs = []
    for out in graph.outputs:
        if out.view is not None and out.view.kind == "input":
            out = replace(out, view=replace(out.view, index=number[out.view.index]))
        outputs.append(out)
    symbols = tuple(
        replace(symbol, index=number[symbol.index]) if symbol.kind in ("dim", "stride") else symbol
        for symbol in graph.symbols
    )
    mutations = tuple((number[index], var) for index, var in graph.mutations)
    return replace(graph, inputs=tuple(kept), outputs=tuple(outputs), symbols=symbols, mutations=mutations)


def unused_inputs(graph: Graph) -> set[str]:
    """Inputs that no node and no output reads, that are not written and that no symbol comes from."""
    uses = graph.uses()
    needed = {index for index, _ in graph.mutations}
    needed |= {symbol.index for symbol in graph.symbols if symbol.kind in ("dim", "stride")}
    return {
        inp.var.name
        for index, inp in enumerate(graph.inputs)
        if not uses[inp.var.name] and index not in needed
    }


def place_of(node: Node) -> str:
    """``relu (v3) at net.py:7 in forward``: a node as error messages name it."""
    values = ", ".join(v.name for v in node.outputs)
    text = f"{node.op} ({values})" if values else node.op
    if node.loc is None:
        return text
    return f"{text} at {node.loc}" + (f" in {node.loc.function}" if node.loc.function else "")
