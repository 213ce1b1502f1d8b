"""Graphs on disk as text, with the Python functions that their nodes call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..graph.ir import Graph, OpTable
from ..graph.text import callees_of, parse, print_graph
from . import launches
from .plain import Packer, Unpacker


def pack_graph_text(graph: Graph) -> dict[str, Any]:
    packer = Packer(launches.BY_TYPE)
    callees = packer.values(callees_of(graph))
    return {"text": print_graph(graph), "rows": packer.rows, "callees": callees}


def unpack_graph_text(data: Mapping[str, Any], table: OpTable) -> Graph:
    unpacker = Unpacker(data["rows"], launches.MAKERS)
    return parse(data["text"], table, unpacker.values(data["callees"]))
