"""Generators that stand half-way: a real generator made anew from what capture knows of its frame.

The code of such a generator is the original behind a prologue which puts the stack together as it was before
a ``YIELD_VALUE`` and jumps to that very instruction. One step then leaves the generator suspended where the
original would be: ``send``, ``throw``, ``close`` and ``gi_yieldfrom`` find the same instruction, handlers and
line.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterator
from typing import Any

from dyncomp.errors import Unsupported
from dyncomp.hook import _hook
from dyncomp.python_code.cells import unsure_cells
from dyncomp.python_code.edit import Assembly, places_and_catches
from dyncomp.python_code.instr import CO_COROUTINE, CO_ITERABLE_COROUTINE, CanonicalCode
from dyncomp.python_code.resume import (
    BREAK_ID,
    NO_VALUE,
    Continuation,
    argument_names,
    argument_order,
    emit_prologue,
    finish_function,
)
from dyncomp.python_code.versions import encode


def make_suspended(
    canonical: CanonicalCode,
    at: int,
    *,
    stack_depth: int,
    bound: Collection[str],
    unbound_slots: Collection[int] = (),
) -> Continuation:
    """The generator function whose generators, stepped once, stand at the ``YIELD_VALUE`` ``at``.

    ``stack_depth`` counts what lies on the stack before that instruction, the yielded value included.
    """
    if canonical.instructions[at].op != "YIELD_VALUE" or canonical.flags & (
        CO_COROUTINE | CO_ITERABLE_COROUTINE
    ):
        raise Unsupported("only a generator at a yield can be made anew", break_id=BREAK_ID)
    given = argument_order(canonical, stack_depth, bound, unbound_slots, {})
    assembly = Assembly(unsure_cells(canonical))
    places, catches = places_and_catches(canonical)
    assembly.loc = canonical.instructions[0].loc
    assembly.emit("RETURN_GENERATOR")
    assembly.emit("POP_TOP")
    emit_prologue(assembly, canonical, at, places, stack_depth, given, {})
    for instr in canonical.instructions:
        assembly.emit_copy(instr, places, catches)
    assembly.mark(places[-1])
    names = argument_names(canonical, given)
    made = finish_function(assembly, canonical, names, (NO_VALUE,) if unbound_slots else ())
    return Continuation(encode(made), made, at, given, made.freevars, canonical.cellvars)


class Reviver:
    """Makes suspended generators of one place: ``revive(cells, name, qualname, *args)``."""

    def __init__(self, made: Continuation, namespace: dict[str, Any]) -> None:
        _hook.mark(made.code, "skip")
        self.made = made
        self.namespace = namespace
        self.__name__ = f"suspended_{made.code.co_name}"

    def __call__(
        self, cells: tuple[types.CellType, ...], name: str, qualname: str, *args: object
    ) -> types.GeneratorType[Any, Any, Any]:
        function = types.FunctionType(self.made.code, self.namespace, name, None, cells)
        function.__qualname__ = qualname
        generator: types.GeneratorType[Any, Any, Any] = function(*args)
        next(generator)
        return generator


def exhausted() -> Iterator[None]:
    """A generator function whose generators are closed before they are given away."""
    yield


def finished(name: str, qualname: str) -> types.GeneratorType[Any, Any, Any]:
    """A generator that has run to its end."""
    function = types.FunctionType(exhausted.__code__, {}, name)
    function.__qualname__ = qualname
    generator: types.GeneratorType[Any, Any, Any] = function()
    generator.close()
    return generator
