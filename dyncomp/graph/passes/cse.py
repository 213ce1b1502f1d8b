"""Common subexpression elimination."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ..ir import Graph, Node, OpTable, Var
from ..rewrite import frozen_key, substitute


def eliminate_common_subexpressions(
    graph: Graph, table: OpTable, apart: Collection[str] = frozenset()
) -> Graph:
    """Compute equal expressions once (every op is pure in a functional graph). ``apart``: names of values
    that stand for nothing but themselves."""
    if not graph.functional:
        return graph
    seen: dict[Any, Node] = {}
    replacement: dict[str, Var] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        if apart and any(v.name in apart for v in node.outputs):
            kept.append(node)
            continue
        inputs = tuple(replacement.get(v.name, v) for v in node.inputs)
        key = (node.op, tuple(v.name for v in inputs), frozen_key(node.params))
        first = seen.setdefault(key, node)
        if first is node:
            kept.append(node)
        else:
            replacement.update({old.name: new for old, new in zip(node.outputs, first.outputs)})
    if not replacement:
        return graph
    return substitute(replace(graph, nodes=tuple(kept)), replacement)
