"""The raw layer: lossless disassembly and assembly of the running version's own bytecode."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from dyncomp.errors import VerifyError
from dyncomp.hook import _hook
from dyncomp.python_code.instr import Loc, make_loc
from dyncomp.python_code.versions import tables
from dyncomp.python_code.versions.lines import encode_exceptions, parse_exceptions


class RawInstr(NamedTuple):
    """One real instruction: caches and EXTENDED_ARG folded in, jump targets as instruction indices.

    ``target`` is -1 for what does not jump; ``arg`` of a jump is recomputed by :func:`assemble`.
    ``extended`` is the least number of EXTENDED_ARG prefixes (CPython sometimes leaves a redundant one).
    """

    op: str
    arg: int
    target: int
    loc: Loc
    extended: int


_make_raw: Callable[[tuple[str, int, int, Loc, int]], RawInstr] = functools.partial(tuple.__new__, RawInstr)


class RawException(NamedTuple):
    """Instructions ``start <= i < end`` are handled at ``target``."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


class Assembled(NamedTuple):
    """What :func:`assemble` makes; ``addresses[i]`` is the code unit of instruction i past its prefixes."""

    code: bytes
    linetable: bytes
    exceptiontable: bytes
    addresses: list[int]


def disassemble(code: CodeType) -> tuple[list[RawInstr], list[RawException]]:
    """The raw instructions and exception table of ``code``."""
    data = code.co_code
    opname, caches, jump_sign = tables.OPNAME, tables.CACHES, tables.JUMP_SIGN
    extended_arg = tables.EXTENDED_ARG
    locations = list(code.co_positions())
    total = len(data) // 2
    index_of = [-1] * (total + 1)
    instructions: list[RawInstr] = []
    jumps: list[int] = []
    locs: dict[tuple[int | None, ...], Loc] = {}
    unit = 0
    start = 0
    arg = 0
    while unit < total:
        opcode = data[2 * unit]
        arg = (arg << 8) | data[2 * unit + 1]
        unit += 1
        if opcode == extended_arg:
            continue
        index_of[start] = len(instructions)
        place = locations[unit - 1]
        loc = locs.get(place)
        if loc is None:
            loc = locs[place] = make_loc(place)
        prefixes = unit - 1 - start
        unit += caches[opcode]
        sign = jump_sign[opcode]
        target = -1
        if sign:
            target = unit + sign * arg
            jumps.append(len(instructions))
        instructions.append(_make_raw((opname[opcode], arg, target, loc, prefixes)))
        start = unit
        arg = 0
    index_of[total] = len(instructions)
    for index in jumps:
        item = instructions[index]
        instructions[index] = item._replace(target=index_of[item.target])
    exceptions = [
        RawException(index_of[a], index_of[b], index_of[target], depth, lasti)
        for a, b, target, depth, lasti in parse_exceptions(code.co_exceptiontable)
    ]
    return instructions, exceptions


_TABLES = (
    tables.OPMAP,
    bytes(1 + count for count in tables.CACHES[:256]),
    bytes(sign % 3 for sign in tables.JUMP_SIGN[:256]),
    tables.EXTENDED_ARG,
)
"""By opcode: code units without prefixes, and 1 for what jumps forward, 2 for what jumps backward."""


def assemble(
    instructions: list[Any],
    exceptions: Sequence[RawException],
    firstlineno: int,
    merge: bool = tables.MERGES_EQUAL_LOCATIONS,
    places: dict[int, int] | None = None,
) -> Assembled:
    """Bytes of the code, of the location table and of the exception table. ``merge``: instructions of one
    place share an entry of the location table. ``places``: targets are its keys (and ``None`` where nothing
    jumps), not indices.

    Raises VerifyError when a jump points the wrong way for its opcode.
    """
    made = _hook.assemble(instructions, places, firstlineno, merge, _TABLES)
    if isinstance(made, int):
        raise VerifyError(f"{instructions[made][0]} at {made} jumps the wrong way")
    code, linetable, (starts, addresses) = made
    table = encode_exceptions(
        (starts[entry.start], starts[entry.end], starts[entry.target], entry.depth, entry.lasti)
        for entry in exceptions
    )
    return Assembled(code, linetable, table, addresses)
