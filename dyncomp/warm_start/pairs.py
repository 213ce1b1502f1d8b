"""Graphs with gradients on disk: the forward graph in the entry, each backward graph beside it.

A backward graph is compiled when the pattern of its cotangents and gradients first occurs, in whatever
process; it is then kept as a part of the entry. Where a pattern is not on disk, the pair is made again from
its functional graph, which the entry's details have as text.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from ..aot_autograd.pair import Pair, Symbols, consuming, giving_several, is_single
from ..frontends.base import BackwardParts, GradientPair, PairBackward, PairSource
from ..pipeline import Compiled, Stages, half_compiler, op_table
from . import launches
from .context import Context, Parts, read_part
from .descriptions import NotStorable, Stale
from .graphs import pack_graph_text, unpack_graph_text
from .owners import owner_name, owner_named
from .plain import Packer, Unpacker
from .staged import pack_staged

log = logging.getLogger("dyncomp.warm_start")

Listener = Callable[[Sequence[bool], Sequence[bool], PairBackward], None]


# -- storing ----------------------------------------------------------------------------------
def pack_graph(packer: Packer, compiled: Compiled) -> list[Any]:
    """The row of ``compiled.call``."""
    pair = compiled.gradients
    if pair is None:
        return launches.with_spent(packer, compiled, _pack_call(packer, compiled))
    if compiled.owner is None:
        raise NotStorable("gradients of a library without a reverse mode")
    symbols = pair.symbols
    bindings = None
    if isinstance(symbols, Symbols):
        bindings = packer.values((tuple(symbols.bindings), symbols.inputs))
    row = [
        "pair",
        packer.row(_pack_call(packer, compiled)),
        is_single(compiled.graph_after),
        packer.value(
            (pair.count, pair.differentiable, pair.saved, pair.rewritten, pair.returned, pair.written)
        ),
        bindings,
        owner_name(compiled.owner),
    ]
    return launches.with_spent(packer, compiled, row)


def _pack_call(packer: Packer, compiled: Compiled) -> list[Any]:
    staged = isinstance(compiled.artifact, Stages)
    return pack_staged(packer, compiled) if staged else launches.pack_launch(packer, compiled)


def pack_source(pair: GradientPair) -> dict[str, Any]:
    """What a pair is made from, as text. Raises :class:`NotStorable`."""
    source = pair.source
    if source is None:
        raise NotStorable("a graph from disk")
    return {
        "plain": pack_graph_text(source.plain),
        "given": [list(source.wrt), list(source.differentiable), list(source.written), source.memory_budget],
        "says": pair.describe(),
    }


def part_name(given: Sequence[bool], wanted: Sequence[bool]) -> str:
    """The name of the backward graph of a pattern."""
    bits = ["".join("01"[bool(flag)] for flag in flags) for flags in (given, wanted)]
    return hashlib.sha256("-".join(bits).encode()).hexdigest()[:16]


def keep_backwards(compiled: Compiled, parts: Parts) -> None:
    """Have backward graphs kept in ``parts`` when they are compiled."""
    assert compiled.gradients is not None
    compiled.gradients.listeners.append(_keeper(compiled.halves, parts))


def _keeper(halves: dict[int, Compiled], parts: Parts) -> Listener:
    """What keeps the backward graphs that are among ``halves`` in ``parts``."""

    def keep(given: Sequence[bool], wanted: Sequence[bool], made: PairBackward) -> None:
        half = halves.pop(id(made.call), None)
        if half is None:
            return
        try:
            parts.write(part_name(given, wanted), pack_backward(half, made))
        except NotStorable as error:
            log.info("a backward graph is not kept on disk: %s", error)

    return keep


def pack_backward(half: Compiled, made: PairBackward) -> str:
    packer = Packer(by_type=launches.BY_TYPE)
    launch = packer.row(_pack_call(packer, half))
    facts = packer.value((made.saved, made.rewritten, made.given, made.wrt, made.integers))
    data = {"rows": packer.rows, "call": launch, "single": is_single(half.graph_after), "facts": facts}
    return json.dumps(data, separators=(",", ":"))


# -- reading ----------------------------------------------------------------------------------
class StoredPair:
    """The backward graphs of a pair from disk."""

    def __init__(self, context: Context, owner: str) -> None:
        # no configuration: replacement code holds this, into whose constants the collector does not look
        self._options = context.config.options
        self._parts = context.parts
        self._details = context.details
        self._owner = owner
        self._pair: Pair | None = None

    def backward(self, given: Sequence[bool], wanted: Sequence[bool]) -> PairBackward | None:
        text = self._parts.read(part_name(given, wanted))
        if text is not None:
            try:
                return self._unpack(text, given, wanted)
            except (ValueError, LookupError, TypeError) as error:
                log.info("a backward graph on disk is not used: %s", error)
        return self.made_again().backward(given, wanted)

    def _unpack(self, text: str, given: Sequence[bool], wanted: Sequence[bool]) -> PairBackward:
        data = json.loads(text)
        unpacker = Unpacker(data["rows"], launches.MAKERS)
        call = unpacker.value(data["call"])
        saved, rewritten, outputs, wrt, integers = unpacker.value(data["facts"])
        return PairBackward(
            run=giving_several(call, data["single"]),
            consume=giving_several(consuming(call), data["single"]),
            saved=saved,
            rewritten=rewritten,
            given=outputs,
            wrt=wrt,
            integers=integers,
            again=lambda: self._again(given, wanted),
            call=call,
        )

    def _again(self, given: Sequence[bool], wanted: Sequence[bool]) -> GradientPair | None:
        made = self.made_again().backward(given, wanted)
        return None if made is None else made.again()

    def in_parts(self, limits: Sequence[int]) -> BackwardParts | None:
        return self.made_again().in_parts(limits)

    def describe(self) -> str:
        says = read_part(self._details, "pair")["says"]
        assert isinstance(says, str)
        return says

    def made_again(self) -> Pair:
        """The pair, made from its functional graph. Backward graphs that it compiles are kept."""
        if self._pair is None:
            owner = owner_named(self._owner)
            table, options = op_table(owner), self._options
            halves: dict[int, Compiled] = {}
            data = read_part(self._details, "pair")
            wrt, differentiable, written, budget = data["given"]
            plain = unpack_graph_text(data["plain"], table)
            source = PairSource(plain, tuple(wrt), tuple(differentiable), tuple(written), budget)
            made = Pair(source, table, half_compiler(table, options, owner, halves))
            made.listeners.append(_keeper(halves, self._parts))
            self._pair = made
        return self._pair


def makers(context: Context) -> dict[str, Any]:
    return {"pair": lambda u, p: _unpack_pair(u, p, context)}


def _unpack_pair(unpacker: Unpacker, parts: list[Any], context: Context) -> Any:
    forward, single, facts, bindings, name = parts
    count, differentiable, saved, rewritten, returned, written = unpacker.value(facts)
    autograd = owner_named(name).autograd
    if autograd is None:
        raise Stale(f"{name} without a reverse mode")
    stored = StoredPair(context, name)
    symbols = None
    if bindings is not None:
        known, inputs = unpacker.values(bindings)
        symbols = Symbols.of(known, inputs)
    pair = GradientPair(
        forward=giving_several(unpacker.value(forward), single),
        backward=stored.backward,
        count=count,
        differentiable=differentiable,
        saved=saved,
        rewritten=rewritten,
        returned=returned,
        written=written,
        symbols=symbols,
        describe=stored.describe,
        in_parts=stored.in_parts,
        source=None,
    )
    return autograd.function(pair)
