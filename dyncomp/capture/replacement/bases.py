"""Continuations are made from the function of the program, not from one another.

A function that branches on data breaks again and again. Were each continuation made from the one before,
every path through the function would have its own: twice as many with each branch. A continuation
remembers of which code it is a copy and where its instructions come from: what goes on behind its next
break is looked up in that *base*, so that all paths which meet at a place share what follows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..bytecode.instr import CanonicalCode
from ..bytecode.loops import Loop, LoopBody
from ..bytecode.resume import Continuation, uses_bare_super
from ..frames import Frame, code_info


@dataclass(frozen=True)
class Base:
    """The code that a continuation is a part of; ``raw_code`` is its identity."""

    raw_code: Any
    code: CanonicalCode
    origins: tuple[int, ...] | None = None  # of the continuation's instructions; None: it is no continuation


def remember_base(config: Any, made: Continuation, base: Base) -> None:
    """``made`` is a continuation of ``base``."""
    known = Base(base.raw_code, base.code, made.origins)
    config.resume_functions[("base", id(made.code))] = (known, made.code)


def place_in_base(config: Any, frame: Frame, at: int, names: Collection[str]) -> tuple[Base, int]:
    """The code to make a continuation of ``frame`` at ``at`` from, which is given the locals ``names``, and
    its place there."""
    base = _base_of(config, frame, names)
    if base.origins is None or base.origins[at] < 0:
        return Base(frame.raw_code, frame.code), at
    return base, base.origins[at]


def _base_of(config: Any, frame: Frame, names: Collection[str]) -> Base:
    found = config.resume_functions.get(("base", id(frame.raw_code)))
    own = Base(frame.raw_code, frame.code)
    if found is None:
        return own
    base = found[0]
    assert isinstance(base, Base)
    # the argument that super() looks at has another place in a continuation
    return base if set(names) <= set(base.code.varnames) and not uses_bare_super(base.code) else own


@dataclass(frozen=True)
class SharedLoop:
    """A loop of a frame as it is in the base; ``places``: where the base's instructions are in the frame."""

    base: Base
    loop: Loop
    own: Loop
    places: dict[int, int] | None = None

    def placed(self, body: LoopBody) -> LoopBody:
        """The body of the base's loop as one of the frame's loop."""
        if self.places is None:
            return body
        exits = {number: self.places[target] for number, target in body.exits.items()}
        region = frozenset(self.places[index] for index in body.region)
        return dataclasses.replace(body, loop=self.own, exits=exits, region=region)


def loop_in_base(config: Any, frame: Frame, loop: Loop) -> SharedLoop:
    """The loop to make the body function from: that of the base where it is the same loop."""
    own = SharedLoop(Base(frame.raw_code, frame.code), loop, loop)
    base = _base_of(config, frame, frame.locals)
    if base.origins is None:
        return own
    header = base.origins[loop.header]
    shared = code_info(config, base.raw_code).loop_at(header) if header >= 0 else None
    if shared is None or shared.kind != loop.kind:
        return own
    if {base.origins[index] for index in loop.body} != set(shared.body):
        return own
    places = {origin: index for index, origin in enumerate(base.origins) if origin >= 0}
    return SharedLoop(base, shared, loop, places)
