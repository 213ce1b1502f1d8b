"""Graphs as Python source."""

from __future__ import annotations

from ..errors import GraphError
from ..graph.ir import Graph
from ..graph.text import callees_of, print_graph

_FIRST = "from dyncomp.tracing.references import *\n\n\n"


def python_code(graph: Graph, name: str) -> str:
    """A module with one function of the graph's inputs, which returns a tuple of its outputs."""
    callees = callees_of(graph)
    if callees:
        raise GraphError(f"{name} calls the Python function {callees[0].name}, which has no source here")
    return _FIRST + print_graph(graph)
