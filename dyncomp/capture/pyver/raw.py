"""The raw layer: lossless disassembly and assembly of the running version's own bytecode."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from types import CodeType
from typing import NamedTuple

from dyncomp.capture.bytecode.instr import Loc, make_loc
from dyncomp.capture.pyver import tables
from dyncomp.capture.pyver.lines import encode_exceptions, encode_locations, parse_exceptions
from dyncomp.errors import VerifyError


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


RawTuple = tuple[str, int, int, Loc, int]
"""The fields of a :class:`RawInstr`, which is one."""
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


def _prefixes_for(arg: int) -> int:
    if arg < 0x100:
        return 0
    if arg < 0x10000:
        return 1
    return 2 if arg < 0x1000000 else 3


_SIZES = [1 + count for count in tables.CACHES]
"""Code units of each opcode without its prefixes."""


def _layout(instructions: Sequence[RawTuple], opcodes: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Start unit, prefixes and argument of every instruction; grows jumps until all arguments fit."""
    jump_sign = tables.JUMP_SIGN
    prefixes, args, jumps = [], [], []
    for index, (_, arg, target, _, extended) in enumerate(instructions):
        args.append(arg)
        if target >= 0:
            jumps.append((index, target))
        elif arg >= 0x100:
            extended = max(extended, _prefixes_for(arg))
        prefixes.append(extended)
    sizes = [_SIZES[opcode] for opcode in opcodes]
    while True:
        starts = list(itertools.accumulate(map(operator.add, sizes, prefixes), initial=0))
        grown = False
        for index, target in jumps:
            distance = jump_sign[opcodes[index]] * (starts[target] - starts[index + 1])
            if distance < 0:
                raise VerifyError(f"{instructions[index][0]} at {index} jumps the wrong way")
            args[index] = distance
            needed = _prefixes_for(distance)
            if needed > prefixes[index]:
                prefixes[index] = needed
                grown = True
        if not grown:
            return starts, prefixes, args


def _emit_prefixes(out: bytearray, addresses: list[int], prefixes: list[int], args: list[int]) -> None:
    """Write the EXTENDED_ARG of all instructions and move their ``addresses`` behind them."""
    for index, prefix in enumerate(prefixes):
        for k in range(prefix, 0, -1):
            start = 2 * addresses[index]
            out[start] = tables.EXTENDED_ARG
            out[start + 1] = (args[index] >> (8 * k)) & 0xFF
            addresses[index] += 1


def assemble(
    instructions: Sequence[RawTuple],
    exceptions: Sequence[RawException],
    firstlineno: int,
    merge: bool = tables.MERGES_EQUAL_LOCATIONS,
) -> Assembled:
    """Bytes of the code, of the location table and of the exception table. ``merge``: instructions of one
    place share an entry of the location table.

    Raises VerifyError when a jump points the wrong way for its opcode.
    """
    opmap = tables.OPMAP
    opcodes = [opmap[item[0]] for item in instructions]
    starts, prefixes, args = _layout(instructions, opcodes)
    out = bytearray(2 * starts[-1])  # of zeros, which caches are
    addresses = starts[:-1]
    if any(prefixes):
        _emit_prefixes(out, addresses, prefixes, args)
    for start, opcode, arg in zip(addresses, opcodes, args):
        start += start
        out[start] = opcode
        out[start + 1] = arg & 0xFF
    runs = [(item[3], end - start) for item, start, end in zip(instructions, starts, starts[1:])]
    table = encode_exceptions(
        (starts[entry.start], starts[entry.end], starts[entry.target], entry.depth, entry.lasti)
        for entry in exceptions
    )
    return Assembled(bytes(out), encode_locations(runs, firstlineno, merge), table, addresses)
