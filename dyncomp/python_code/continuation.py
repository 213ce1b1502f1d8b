"""Continuations as capture uses them: a place in the middle of the original.

Capturing a continuation executes the original's own instructions, from where it goes on; all that is known of
the original's code (loops, handlers, liveness) serves its continuations too, and a continuation of a
continuation is one of the original. A function of its own, as :mod:`resume` makes it, is put together only
where a continuation is first to run as plain Python: C asks for it (``make_code`` of ``ResumeFunction``).
Until then a code object of the same signature stands in for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import CodeType
from typing import Any, Protocol

from dyncomp.errors import Unsupported
from dyncomp.python_code.instr import CO_VARARGS, CO_VARKEYWORDS, CanonicalCode
from dyncomp.python_code.resume import (
    BREAK_ID,
    argument_names,
    argument_order,
    check_plain,
    make_continuation,
)


def _never_run() -> None:
    raise AssertionError("a code object that stands in for one made later was run")


def stand_in(like: CanonicalCode, arguments: tuple[str, ...], freevars: tuple[str, ...]) -> CodeType:
    """A code object unlike any other with the signature of a function that is made only when it is to run."""
    return _never_run.__code__.replace(
        co_argcount=len(arguments),
        co_nlocals=len(arguments),
        co_varnames=arguments,
        co_freevars=freevars,
        co_flags=like.flags & ~(CO_VARARGS | CO_VARKEYWORDS),
        co_name=like.name,
        co_qualname=like.qualname,
        co_filename=like.filename,
        co_firstlineno=like.firstlineno,
        # code objects compare by value; this constant has none but itself
        co_consts=(*_never_run.__code__.co_consts, object()),
    )


class MadeLater(Protocol):
    """A function that is put together when it is first to run."""

    @property
    def code(self) -> CodeType:
        """Stands in for it."""

    @property
    def canonical(self) -> CanonicalCode:
        """What it is made from."""

    def plain_code(self) -> CodeType:
        """The function that plain Python runs."""


class PlaceToResume:
    """A continuation of ``origin`` at canonical instruction ``at``; ``code`` stands in for its function.

    See :class:`resume.Continuation` for ``args`` and ``freevars``. Slots of the stack that no argument is for
    hold the unbound mark.
    """

    def __init__(
        self,
        origin: CodeType,
        canonical: CanonicalCode,
        at: int,
        stack_depth: int,
        bound: Collection[str],
        unbound_slots: Collection[int],
    ) -> None:
        check_plain(canonical)
        if canonical.instructions[at].op == "MAKE_CELL":
            raise Unsupported("a break where a comprehension's cell is missing", break_id=BREAK_ID)
        self.origin = origin
        self.canonical = canonical
        self.at = at
        self.stack_depth = stack_depth
        self.args = argument_order(canonical, stack_depth, bound, unbound_slots, {})
        self.freevars = tuple(dict.fromkeys((*canonical.cellvars, *canonical.freevars)))
        self.code = stand_in(canonical, argument_names(canonical, self.args), self.freevars)
        self.bound = tuple(bound)
        self.unbound = tuple(unbound_slots)
        self._plain: CodeType | None = None

    def plain_code(self) -> CodeType:
        """The function that plain Python runs."""
        if self._plain is None:
            made = make_continuation(
                self.canonical,
                self.at,
                stack_depth=self.stack_depth,
                bound=self.bound,
                unbound_slots=self.unbound,
            )
            self._plain = made.code
        return self._plain


def place_of(config: Any, code: CodeType) -> PlaceToResume | None:
    """What ``code`` stands in for, if it does for a continuation."""
    found = config.stand_ins.get(id(code))
    return found if isinstance(found, PlaceToResume) else None


def made_later(config: Any, code: CodeType) -> Callable[[], CodeType] | None:
    """What makes the code that ``code`` stands in for; ``None`` where it stands for itself."""
    found = config.stand_ins.get(id(code))
    return None if found is None else found.plain_code
