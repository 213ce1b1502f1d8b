"""Graphs in stages on disk: the whole graph as text in the entry, its compiled stages beside it.

A stage is compiled when its sizes are first known, in whatever process; it is then kept as a part of the
entry.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from ..capture.entries.floating import Watch
from ..frontends.base import ArrayOwner
from ..graph.ir import Graph
from ..graph.text import parse_size
from ..inductor.launch import choose_threads
from ..pipeline import Compiled, Stages, op_table, report_writes, stage_compiler
from ..staging.run import MAX_VARIANTS, StagedGraph
from ..symbolic.integers import SymGuard, SymInt
from . import launches
from .context import Context, Parts
from .descriptions import NotStorable
from .graphs import pack_graph_text, unpack_graph_text
from .owners import owner_name, owner_named
from .plain import Packer, Unpacker

log = logging.getLogger("dyncomp.warm_start")


# -- storing ----------------------------------------------------------------------------------
def pack_staged(packer: Packer, compiled: Compiled) -> list[Any]:
    """The row of a graph in stages. Raises :class:`NotStorable`."""
    name = None if compiled.owner is None else owner_name(compiled.owner)
    text, watch = pack_graph_text(compiled.graph_after), packer.value(compiled.on_status)
    return ["staged", text, name, watch, list(compiled.heard), compiled.num_threads]


def keep_stages(compiled: Compiled, parts: Parts) -> None:
    """Have the compiled stages of a graph kept in ``parts``, those that there are and those to come."""
    stages = compiled.artifact
    assert isinstance(stages, Stages) and stages.graph is not None
    graph = stages.graph
    graph.keep_in(StageFiles(parts, stages, graph.graph, compiled.owner, compiled.num_threads))


class StageFiles:
    """The stages of one graph among the parts of its entry
    (:class:`~dyncomp.staging.run.StoredStages`)."""

    def __init__(
        self, parts: Parts, stages: Stages, graph: Graph, owner: ArrayOwner | None, num_threads: int
    ) -> None:
        self._parts = parts
        self._stages = stages
        self._graph = graph
        self._owner = owner
        self._num_threads = num_threads
        self._counts: dict[int, int] = {}

    def read(self, number: int) -> Sequence[tuple[Sequence[SymGuard], Callable[..., Any]]]:
        found = []
        for count in range(MAX_VARIANTS):
            text = self._parts.read(_name(number, count))
            if text is None:
                break
            self._counts[number] = count + 1
            try:
                found.append(self._unpack(text))
            except (ValueError, LookupError, TypeError) as error:
                log.info("a stage on disk is not used: %s", error)
        return found

    def keep(self, number: int, guards: Sequence[SymGuard], call: Callable[..., Any]) -> None:
        artifact = next((made for made in self._stages.artifacts if made.call is call), None)
        if artifact is None:
            return  # it is interpreted
        count = self._counts.get(number, 0)
        self._counts[number] = count + 1
        try:
            packer = Packer(by_type=launches.BY_TYPE)
            row = launches.pack_artifact(packer, artifact, self._owner, (), self._num_threads)
            conditions = [[str(guard.expr), guard.relation] for guard in guards]
            data = {"call": packer.row(row), "guards": conditions, "rows": packer.rows}
            self._parts.write(_name(number, count), json.dumps(data, separators=(",", ":")))
        except NotStorable as error:
            log.info("a stage is not kept on disk: %s", error)

    def _unpack(self, text: str) -> tuple[Sequence[SymGuard], Callable[..., Any]]:
        data = json.loads(text)
        guards = []
        for expr, relation in data["guards"]:
            size = parse_size(expr, self._graph.env)
            assert isinstance(size, SymInt)
            guards.append(SymGuard(size, relation))
        return guards, Unpacker(data["rows"], launches.MAKERS).value(data["call"])


def _name(number: int, count: int) -> str:
    return f"stage-{number}-{count}"


# -- reading ----------------------------------------------------------------------------------
def makers(context: Context) -> dict[str, Any]:
    return {"staged": lambda u, p: _unpack_staged(u, p, context)}


def _unpack_staged(unpacker: Unpacker, parts: list[Any], context: Context) -> Callable[..., Any]:
    data, name, watch, heard, num_threads = parts
    owner = None if name is None else owner_named(name)
    table, options = op_table(owner), context.config.options
    graph = unpack_graph_text(data, table)
    on_status = unpacker.value(watch)
    if isinstance(on_status, Watch):
        on_status.armed = True
    choose_threads(num_threads, owner)
    context.assumed = graph.env
    stages = Stages()
    compile_stage = stage_compiler(stages, table, options, owner, on_status)
    files = StageFiles(context.parts, stages, graph, owner, num_threads)
    stages.graph = StagedGraph(graph, table, owner, compile_stage, (), options.strict, files)
    return report_writes(stages.graph, owner, tuple(heard))
