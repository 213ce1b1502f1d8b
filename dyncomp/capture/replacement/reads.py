"""What compiled code reads of the objects that it was called with, many values at once.

A model's graph gets hundreds of parameters. Read one by one, by Python code, they take longer than a small
model; a program of the kind that checks guards reads them in C, quickly where nothing has changed since the
last call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..guards.guard import compile_guards
from ..guards.program import GuardRefused
from ..guards.source import InstanceDictSource, ItemSource, LocalSource, Source
from .codegen import Codegen

_FEWEST = 12  # statements that go
_NAME = re.compile(r"__in\d+")


def read_at_once(cg: Codegen, code: Iterable[str]) -> None:
    """Have one call read what statements of ``cg.prelude`` read of arguments, for those and ``code``."""
    sources = {name: source for source, name in cg.loads.items() if _is_read_in_c(source)}
    if len(sources) < _FEWEST:
        return
    others = [line for line in cg.prelude if line.partition(" = ")[0] not in sources]
    used = {name for line in (*others, *code) for name in _NAME.findall(line)}
    wanted = {name: source for name, source in sources.items() if name in used}
    if not wanted:
        return
    try:
        program = compile_guards((), list(wanted.values()))
    except GuardRefused:
        return
    cg.reads = (program, list(wanted.values()))
    call = f"{cg.constant(program)}({', '.join(cg.parameters)})"
    cg.replace_reads(sources, f"({', '.join(wanted)},) = {call}")


def _is_read_in_c(source: Source) -> bool:
    """Whether it is found from an argument by instance attributes and items, of whatever kind of object."""
    while isinstance(source, (InstanceDictSource, ItemSource)):
        if source.parent is None:
            return False
        source = source.parent
        if isinstance(source, LocalSource):
            return True
    return False
