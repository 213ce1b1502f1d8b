"""An entry as two texts: what every process that uses it reads, and what explains it."""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Callable, Sequence
from typing import Any

from ..capture.entries.call_names import place_of_call
from ..capture.entries.config import CaptureConfig, FrameState
from ..capture.entries.records import EntryRecord
from ..capture.entries.stored import Captured
from ..capture.guards.guard import Guard
from ..capture.guards.serial import is_constant
from ..capture.policy.fallback import Fallback
from ..capture.policy.recompilation import builtins_of
from ..capture.policy.trial import BodyTrial, Trial
from ..graph.ir import Loc, OpTable
from ..hook import _hook
from ..symbolic.integers import ShapeEnv
from . import codes, guards, launches, pairs, staged
from .context import Context, Parts
from .descriptions import NotStorable
from .graphs import pack_graph_text, unpack_graph_text
from .pieces import PiecePacker, Places
from .plain import Packer, Unpacker
from .sources import check_sources, sources_of

_TRIALS: dict[str, type[Trial]] = {"Trial": Trial, "BodyTrial": BodyTrial}


class StoredRecord(EntryRecord):
    """The record of an entry from disk: what only ``explain`` looks at is read when it is asked for."""

    stored_assumptions: ShapeEnv

    def __init__(self, name: str, loc: Loc, has_graph: bool, details: Callable[[], dict[str, Any]]) -> None:
        self._has_graph = has_graph
        self._details = details
        self.name = name
        self.loc = loc
        self.compiled = None

    def __getattr__(self, name: str) -> Any:
        if name not in ("graph", "source", "guards"):
            raise AttributeError(name)
        vars(self).update(self._details())
        return vars(self)[name]

    @property
    def has_graph(self) -> bool:
        return self._has_graph

    @property
    def assumed(self) -> ShapeEnv | None:
        return self.stored_assumptions if self._has_graph else None


# -- storing ----------------------------------------------------------------------------------
def pack(captured: Captured, config: CaptureConfig) -> tuple[str, str]:
    """The texts of an entry. Raises :class:`NotStorable`."""
    record, entry = captured.record, captured.entry
    packer = Packer(by_type=_packers(captured, config))
    packer.places = guards.places_of(record.guards)
    packer.own = {id(obj): obj for obj in captured.own}
    if record.compiled is not None:
        packer.note(record.compiled.call, pairs.pack_graph(packer, record.compiled))
    program = guards.pack_program(packer, record.guards)
    code = None if entry.code is None else packer.row(codes.pack_code(packer, entry.code))
    packer.modules.add(captured.function.__module__ or "")
    main = {
        "rows": packer.rows,
        "guards": program,
        "count": len(record.guards),
        "code": code,
        "rank": entry.rank,
        "needs_hook": entry.needs_hook,
        "moves": captured.moves,
        "trial": captured.trial,
        "name": record.name,
        "has_graph": record.has_graph,
        "breaks": packer.value(record.breaks),
        "instructions": record.instructions,
        "seen": _pack_seen(packer, config.state_of(captured.function.__code__)),
        "sources": sources_of(packer.modules),
    }
    return json.dumps(main, separators=(",", ":")), json.dumps(_pack_details(record), separators=(",", ":"))


def _pack_seen(packer: Packer, state: FrameState) -> list[Any]:
    """What was seen of the inputs, from which later captures know what changes from call to call."""
    seen = [
        packer.values((key, value))
        for key, value in state.seen.items()
        if type(value) in (int, float, tuple) and is_constant(value)
    ]
    dims = [[key, sorted(axes)] for key, axes in state.dynamic_dims.items()]
    return [seen, packer.values(state.dynamic), dims]


def _learn(unpacker: Unpacker, data: list[Any], state: FrameState) -> None:
    """What :func:`_pack_seen` stored, where nothing is known yet."""
    seen, dynamic, dims = data
    for pair in seen:
        key, value = unpacker.values(pair)
        state.seen.setdefault(key, value)
    state.dynamic.update(unpacker.values(dynamic))
    for key, axes in dims:
        state.dynamic_dims.setdefault(key, set()).update(axes)


def _packers(captured: Captured, config: CaptureConfig) -> dict[type, Any]:
    found: dict[type, Any] = {
        **guards.BY_TYPE,
        **launches.BY_TYPE,
        Fallback: codes.pack_fallback,
        **PiecePacker(config, captured.function, captured.plain).by_type(),
    }
    if captured.reads is not None:
        program, outputs = captured.reads
        found[_hook.GuardProgram] = lambda packer, obj: _pack_reads(packer, obj is program, outputs)
    return found


def _pack_reads(packer: Packer, is_known: bool, outputs: Sequence[Any]) -> list[Any]:
    if not is_known:
        raise NotStorable("a program that reads")
    return ["reads", *guards.pack_program(packer, (), outputs)]


def _pack_details(record: EntryRecord) -> dict[str, Any]:
    packer = guards.WordsPacker()
    values = packer.values(record.guards)
    graph = None if record.graph is None else pack_graph_text(record.graph)
    pair = getattr(record.compiled, "gradients", None)
    return {
        "rows": packer.rows,
        "guards": values,
        "graph": graph,
        "source": record.source,
        "pair": None if pair is None else pairs.pack_source(pair),
    }


# -- reading ----------------------------------------------------------------------------------
def unpack(
    texts: tuple[str, str],
    function: types.FunctionType,
    args: tuple[Any, ...],
    config: CaptureConfig,
    parts: Parts,
) -> tuple[_hook.Entry, StoredRecord]:
    """The entry of these texts for ``function``, called with ``args``. ``parts``: what is kept beside it.
    Raises whatever there is to raise where they do not fit."""
    main, details = texts
    data = json.loads(main)
    check_sources(data["sources"])
    context = Context(function.__code__, config, parts, details)
    env = (args, function.__globals__, builtins_of(function), function.__closure__)
    of_this = {**codes.makers(context), **Places(config, function).makers(), **pairs.makers(context)}
    of_this.update(staged.makers(context))
    unpacker = Unpacker(data["rows"], {**_MAKERS, **of_this}, env)
    read = functools.partial(_read_details, details, config.table)
    stored = guards.StoredGuards(lambda: read()["guards"], data["count"])
    program = guards.unpack_program(unpacker, data["guards"], stored)
    code = function.__code__
    record = StoredRecord(data["name"], place_of_call(function, args), data["has_graph"], read)
    record.breaks = unpacker.value(data["breaks"])
    record.instructions = data["instructions"]
    record.bytes = 4 * len(main) + len(details)
    trial = _TRIALS[data["trial"]](config, code) if data["trial"] else None
    replacement = None if data["code"] is None else unpacker.value(data["code"])
    record.fallback = context.made
    record.stored_assumptions = context.assumed
    _learn(unpacker, data["seen"], config.state_of(code))
    entry = _hook.Entry(
        program,
        replacement,
        needs_hook=data["needs_hook"],
        payload=record,
        rank=data["rank"],
        moves=data["moves"],
        trial=trial,
    )
    return entry, record


_MAKERS = {
    **guards.MAKERS,
    **launches.MAKERS,
    "reads": lambda u, p: guards.unpack_program(u, p, ()),
}


def _read_details(details: str, table: OpTable) -> dict[str, Any]:
    data = json.loads(details)
    unpacker = Unpacker(data["rows"], guards.MAKERS)
    stored = data["graph"]
    graph = None if stored is None else unpack_graph_text(stored, table)
    kept: tuple[Guard, ...] = tuple(unpacker.values(data["guards"]))
    return {"guards": kept, "graph": graph, "source": data["source"]}
