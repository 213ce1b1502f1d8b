"""Opcode facts of the running CPython that ``dis`` does not offer in one form for all versions."""

from __future__ import annotations

import opcode
import sys

VERSION: tuple[int, int] = sys.version_info[:2]
"""The running CPython, as (3, minor)."""

INTS_HAVE_TAGS = VERSION >= (3, 12)
"""How an int's sign and number of digits lie in memory: as flags and a number, or as a signed number."""

BREAK_ID = "bytecode"
"""Break id of bytecode that is not understood."""

SUPPORTED = ((3, 11), (3, 12), (3, 13))

OPNAME: list[str] = list(opcode.opname)
OPMAP: dict[str, int] = {name: code for name, code in opcode.opmap.items() if code < 256}

EXTENDED_ARG: int = OPMAP["EXTENDED_ARG"]
CACHE: int = OPMAP["CACHE"]


def _caches() -> list[int]:
    """Inline cache entries after each opcode."""
    entries = opcode._inline_cache_entries  # type: ignore[attr-defined]
    if isinstance(entries, dict):
        return [entries.get(name, 0) for name in OPNAME]
    return list(entries)


CACHES: list[int] = _caches()

_BACKWARD = (
    "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
    "POP_JUMP_BACKWARD_IF_FALSE",
    "POP_JUMP_BACKWARD_IF_TRUE",
    "POP_JUMP_BACKWARD_IF_NONE",
    "POP_JUMP_BACKWARD_IF_NOT_NONE",
)
_RELATIVE = frozenset(OPNAME[code] for code in opcode.hasjrel if code < 256)

JUMP_SIGN: list[int] = [0 if name not in _RELATIVE else (-1 if name in _BACKWARD else 1) for name in OPNAME]
"""By opcode: 1 jumps forward by its argument, -1 backward, 0 is no jump. All jumps are relative."""

MERGES_EQUAL_LOCATIONS = VERSION >= (3, 12)
"""Instructions of one place that follow each other share an entry of the location table, from 3.12 on."""

THROW_WARNS = VERSION >= (3, 12)
"""``throw(type, value, traceback)`` of a generator is deprecated, from 3.12 on."""

CLOSE_RETURNS = VERSION >= (3, 13)
"""``close()`` of a generator gives what the generator returns, from 3.13 on."""

SLICE_BOUNDS_LAST = VERSION >= (3, 13)
"""An assignment to a slice of a list works out its bounds when it has the new items, from 3.13 on."""

NULL_BELOW = VERSION < (3, 13)
"""Before 3.13 the NULL of a call lies under the callable, from 3.13 above it."""

FUNCTION_FLAGS = ((1, "defaults"), (2, "kwdefaults"), (4, "annotations"), (8, "closure"))
CONVERSIONS = ("", "s", "r", "a")
INTRINSICS_1 = (
    "INVALID",
    "PRINT",
    "IMPORT_STAR",
    "STOPITERATION_ERROR",
    "ASYNC_GEN_WRAP",
    "UNARY_POSITIVE",
    "LIST_TO_TUPLE",
    "TYPEVAR",
    "PARAMSPEC",
    "TYPEVARTUPLE",
    "SUBSCRIPT_GENERIC",
    "TYPEALIAS",
)
INTRINSICS_2 = (
    "INVALID",
    "PREP_RERAISE_STAR",
    "TYPEVAR_WITH_BOUND",
    "TYPEVAR_WITH_CONSTRAINTS",
    "SET_FUNCTION_TYPE_PARAMS",
    "SET_TYPEPARAM_DEFAULT",
)
INTRINSIC_OPS = ("IMPORT_STAR", "UNARY_POSITIVE", "LIST_TO_TUPLE", "PREP_RERAISE_STAR")
"""Intrinsics that are canonical ops of their own."""

TESTS_TRUTH = ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT")
"""Opcodes of 3.13 that want a bool, so that a TO_BOOL or a COMPARE_OP with the bool flag precedes them."""
