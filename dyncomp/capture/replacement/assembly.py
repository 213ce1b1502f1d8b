"""From the statements of a replacement to its canonical code.

Without anything that may fail before the graph is through the code is just the statements. Else it is

    try: loads, conditions and the call of the graph
    except Exception: the original, from the start
    else: the rest
"""

from __future__ import annotations

import dataclasses
import types

from ...python_code.instr import (
    CO_NEWLOCALS,
    CO_OPTIMIZED,
    CO_VARARGS,
    CO_VARKEYWORDS,
    JUMPS,
    NO_FALLTHROUGH,
    CanonicalCode,
    ExceptionRange,
    Instr,
    Loc,
    make_instr,
)
from ...python_code.transfers import line_loc
from .codegen import Codegen
from .templates import Statement, Variables, instantiate, statement

_FLAGS = CO_OPTIMIZED | CO_NEWLOCALS


def assemble_function(
    cg: Codegen, guarded: list[str], original: list[str], code: types.CodeType
) -> CanonicalCode:
    """The function of the ``guarded`` statements, those of ``cg`` and those that run the original."""
    first = line_loc(code.co_firstlineno)
    first_part = [statement([text], [first]) for text in guarded]
    second_part = _statements(cg.body)
    last_part = [statement([text], [first]) for text in original]
    local = dict(zip(cg.parameters, code.co_varnames))
    for found in (*first_part, *second_part):
        for number in found.template.written:
            local.setdefault(found.tokens[number], found.tokens[number])
    by_text = {text: obj for (_, text), obj in cg.originals.items()}
    variables = Variables(local, code.co_freevars, cg.constants, by_text)
    made = [make_instr(("RESUME", 0, first, 0))]
    _append(made, first_part, variables)
    end = len(made)
    _append(made, second_part, variables)
    emit = _Emitter(made, first)
    exceptions: tuple[ExceptionRange, ...] = ()
    comes_to_end = _comes_to_end(made, [*first_part, *second_part][-1])
    if guarded:
        if comes_to_end:
            emit("JUMP", len(made) + 1 + _HANDLER_LENGTH)
        exceptions = _handler(emit, end)
        _append(made, last_part, variables)
    elif comes_to_end:
        emit("LOAD_CONST", None)
        emit("RETURN_VALUE")
    return _function(made, exceptions, tuple(dict.fromkeys(local.values())), code)


def _comes_to_end(made: list[Instr], last: Statement) -> bool:
    """Whether control may come behind the last instruction; no statement but the ``last`` jumps there."""
    jumps = (instr.arg for instr in made[-len(last.template.instructions) :] if instr.op in JUMPS)
    return made[-1].op not in NO_FALLTHROUGH or len(made) in jumps


def _append(made: list[Instr], statements: list[Statement], variables: Variables) -> None:
    for found in statements:
        instantiate(made, found, variables)


def _statements(body: list[tuple[str, Loc]]) -> list[Statement]:
    """The lines of ``body``, those that belong together as one statement."""
    groups: list[tuple[list[str], list[Loc]]] = []
    for text, place in body:
        if groups and (text.startswith(" ") or text == "else:"):
            groups[-1][0].append(text)
            groups[-1][1].append(place)
        else:
            groups.append(([text], [place]))
    return [statement(lines, places) for lines, places in groups]


_HANDLER_LENGTH = 11


def _handler(emit: _Emitter, end: int) -> tuple[ExceptionRange, ...]:
    """Append what handles an ``Exception`` of the instructions before ``end``: it goes on behind itself."""
    start = len(emit.made)
    emit("PUSH_EXC_INFO")
    emit("LOAD_CONST", Exception)
    emit("CHECK_EXC_MATCH")
    emit("POP_JUMP_IF_FALSE", start + 7)
    emit("POP_TOP")
    emit("POP_EXCEPT")
    emit("JUMP", start + _HANDLER_LENGTH)
    emit("RERAISE", 0)
    emit("COPY", 3)
    emit("POP_EXCEPT")
    emit("RERAISE", 1)
    return (
        ExceptionRange(1, end, start, 0, False),
        ExceptionRange(start, start + 5, start + 8, 1, True),
        ExceptionRange(start + 7, start + 8, start + 8, 1, True),
    )


class _Emitter:
    """Appends instructions of one place."""

    def __init__(self, made: list[Instr], loc: Loc) -> None:
        self.made = made
        self.loc = loc

    def __call__(self, op: str, arg: object = None) -> None:
        self.made.append(make_instr((op, arg, self.loc, len(self.made))))


def _function(
    made: list[Instr], exceptions: tuple[ExceptionRange, ...], varnames: tuple[str, ...], code: types.CodeType
) -> CanonicalCode:
    return dataclasses.replace(without_body(code, varnames), instructions=tuple(made), exceptions=exceptions)


def without_body(code: types.CodeType, varnames: tuple[str, ...]) -> CanonicalCode:
    """A function with the signature, free variables and identity of ``code``, and nothing in it."""
    return CanonicalCode(
        instructions=(),
        exceptions=(),
        argcount=code.co_argcount,
        posonlyargcount=code.co_posonlyargcount,
        kwonlyargcount=code.co_kwonlyargcount,
        flags=_FLAGS | code.co_flags & (CO_VARARGS | CO_VARKEYWORDS),
        varnames=varnames,
        cellvars=(),
        freevars=code.co_freevars,
        name=code.co_name,
        qualname=code.co_qualname,
        filename=code.co_filename,
        firstlineno=code.co_firstlineno,
    )
