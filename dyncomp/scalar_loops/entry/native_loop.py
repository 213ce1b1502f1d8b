"""A loop that may run as generated code: what the replacement code calls."""

from __future__ import annotations

import builtins
import ctypes
import struct
import time
import types
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ...python_code.instr import CanonicalCode
from ...python_code.loop_find import Loop
from ...python_code.loops import UNBOUND
from ...spans import span
from ..analysis.blocks import (
    MOST_OF_SMALL,
    MOST_STEPS,
    Known,
    Order,
    facts_of,
    known_limits,
    limit_names,
    makes_iterator,
)
from ..code.block import PAUSED
from ..code.render import Rendered, render
from ..code.walk import FIRST_TAG, TAG_UNBOUND, Assumption, HeldTooShort, Leave, Subject, TooLarge
from ..kinds.kinds import OPAQUE, Kind, Objects, is_plain_function
from ..kinds.lists import OTHER_ITEM
from .describe import CAN_ADVANCE, advance, describe, describe_iterator
from .references import References, referent

Build = Callable[[str, str], int]
"""Compiles a source text and gives the address of a symbol of it, which stays loaded as long as the object
that says it; an error is the caller's affair."""

_DECREF = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_DecRef", ctypes.pythonapi))
MOST_PROGRAMS = 8
MOST_REFUSALS = 4
_MANY_OTHERS = 3  # items of other types
_MOST_KNOWN = 2
"""For so many combinations of small numbers, that say how often inner loops run, is a loop compiled."""
_MOST_FUNCTIONS = 4
Key = tuple[int, tuple[Kind, ...], tuple[Kind, ...], Known, Order]


class Program:
    """One compiled function and how it is called."""

    def __init__(
        self, rendered: Rendered, stack: Sequence[Kind], address: int, known: Known = (), order: Order = ()
    ) -> None:
        self.known = dict(known)
        self.order = order
        self.rendered = rendered
        self.address = address
        self.stack_kinds = tuple(stack)
        self.assumptions = _distinct(rendered.assumptions)
        formats = "".join(kind.formats for kind in stack)
        formats += "".join(kind.formats for _, kind in rendered.inputs)
        self.pack = struct.Struct(f"={formats}").pack_into
        self.function = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(address)
        self.leave_formats = [
            struct.Struct("=" + "".join(kind.formats for kind in leave.stack)) for leave in rendered.leaves
        ]
        self.outputs = [_Output(slot, kinds) for slot, kinds in rendered.outputs]
        written = "".join(output.formats for output in self.outputs)
        self.read = struct.Struct(f"={written}")
        self.buffer_type = ctypes.c_int64 * (2 * rendered.words)

    def is_valid(self) -> bool:
        return all(map(_holds, self.assumptions))


class Run:
    """One call of a program: its input, and behind that what it writes (the number of the leave plus 1 first,
    so that it is known whether it ran even where a signal handler raised as it came back)."""

    def __init__(
        self,
        program: Program,
        buffer: Any,
        given: list[Any],
        local: list[Any],
        constants: Sequence[Any],
        is_fresh: bool = True,
        releases: bool = True,
    ) -> None:
        self.is_fresh = is_fresh
        self.program = program
        self.buffer = buffer
        self.releases = releases
        self.given = given
        self.local = local
        self.constants = tuple(constants)
        """They are referred to weakly elsewhere: a signal handler may let go of one during the run."""
        self.found: tuple[int, list[Any], list[Any]] | None = None

    def call(self) -> None:
        start = ctypes.addressof(self.buffer)
        self.program.function(start, start + 8 * self.program.rendered.words)

    @property
    def leave(self) -> Leave | None:
        """How it was left; None if it has not run."""
        rendered = self.program.rendered
        number = self.buffer[rendered.words] - 1
        return rendered.leaves[number] if number >= 0 else None

    def outcome(self, objects: Objects, place_of: dict[str, int]) -> tuple[int, list[Any], list[Any]]:
        """The place where it left off, the stack and the locals there; found once."""
        if self.found is None:
            self.found = self._find(objects, place_of)
            if self.releases:
                self._release()
        return self.found

    def _release(self) -> None:
        """Let go of the arrays that the loop made: what comes back are objects by now."""
        rendered = self.program.rendered
        start, count = rendered.owned
        for k in range(rendered.words + start, rendered.words + start + count):
            address, self.buffer[k] = self.buffer[k], 0
            if address:
                _DECREF(address)

    def _find(self, objects: Objects, place_of: dict[str, int]) -> tuple[int, list[Any], list[Any]]:
        program, buffer = self.program, self.buffer
        size = program.rendered.words
        leave = program.rendered.leaves[buffer[size] - 1]
        parts = program.leave_formats[buffer[size] - 1].unpack_from(buffer, 8 * (size + 1))
        found = program.read.unpack_from(buffer, 8 * (size + program.rendered.stack_words))
        local, at = list(self.local), 0
        for output in program.outputs:
            tag = found[at]
            if tag >= FIRST_TAG:
                kind, begin, end = output.places[tag - FIRST_TAG]
                local[place_of[output.slot]] = kind.box(found[at + begin : at + end], objects)
            elif tag == TAG_UNBOUND:
                local[place_of[output.slot]] = UNBOUND
            at += output.words
        stack = _boxed(leave.stack, parts, objects)
        for depth, kind in enumerate(leave.stack):
            if kind.family == "vector" and kind.detail.slot is not None:
                stack[depth] = local[place_of[kind.detail.slot]]
        self._advance(stack, parts)
        return leave.place, stack, local

    def _advance(self, stack: list[Any], parts: Sequence[Any]) -> None:
        """The iterator of the loop itself, which the program may hold, is left where the loop left it."""
        given: Any = self.given[0] if self.given else None
        if not self.program.stack_kinds:
            return
        current, end, step = self.buffer[0], self.buffer[1], self.buffer[2]
        if type(given) in (enumerate, zip) and not self.is_fresh:
            steps = parts[0] - current if stack else end - current
            deque(islice(given, steps), maxlen=0)
            if stack:
                stack[0] = given
            else:
                next(given, None)
        if type(given) not in CAN_ADVANCE:
            return
        if stack:
            advance(given, (parts[0] - current) // step)
            stack[0] = given
            return
        advance(given, max((end - current) // step, 0))
        next(given, None)


class _Output:
    """Where a local's tag and the parts of its kinds are in what a program writes."""

    def __init__(self, slot: str, kinds: Sequence[Kind]) -> None:
        self.slot = slot
        self.formats = "q" + "".join(kind.formats for kind in kinds)
        self.words = len(self.formats)
        self.places: list[tuple[Kind, int, int]] = []
        at = 1
        for kind in kinds:
            self.places.append((kind, at, at + len(kind.parts)))
            at += len(kind.parts)


class NativeLoop:
    """The loop of ``code`` with the header of ``loop``, as functions compiled for the types met.

    ``names`` are the locals that it is given and gives back; a run is ``prepare``, ``execute``, ``results``.
    A signal handler may raise an exception in ``execute``, and ``results`` is as good all the same.
    ``is_stale``: programs that were in use are no more. ``problem`` says why the last ``prepare`` gave
    nothing; ``is_hopeless``: it will never give anything.
    """

    def __init__(
        self,
        code: CanonicalCode,
        loop: Loop,
        names: tuple[str, ...],
        namespace: dict[str, Any],
        build: Build,
        record: Any = None,
    ) -> None:
        self.subject = Subject(code, loop, namespace)
        self.names = names
        self.build = build
        self.record = record
        self.problem = ""
        self.is_hopeless = False
        self.has_paused = False
        self._programs: dict[Key, list[Program]] = {}
        self._refusals: dict[Key, str] = {}
        self._all_known: list[Known] = []
        self._functions = References()
        self._orders: list[Order] = []
        self._all_small: list[frozenset[str]] = []
        self._other_items = 0
        self.is_stale = False
        read = set().union(*facts_of(code, loop.header).live.values())
        self.read = tuple(k for k, name in enumerate(names) if name in read)
        self._place_of = {name: k for k, name in enumerate(names)}
        self._limits = sorted(limit_names(code, loop.header) & read)
        self._kept = sorted(read & set(names) - facts_of(code, loop.header).stored)
        self._is_fresh = makes_iterator(code, loop.header, namespace)
        line = code.instructions[loop.header].loc.line
        self.where = f"{code.filename}:{line}"
        self.title = f"{code.qualname}, line {line} of {code.filename}"
        self._symbol = "".join(c if c.isascii() and c.isalnum() else "_" for c in code.name) + f"_{line}"

    def prepare(self, *values: object) -> Run | None:
        """Get ready for a run from the header. ``values``: the iterator, for a ``for`` loop, then the locals
        ``names`` (UNBOUND for those without a value). None where nothing is compiled for such values."""
        depth = self.subject.loop.kind == "for"
        stack, local = list(values[:depth]), list(values[depth:])
        program, words, given = self._program(self.subject.loop.header, stack, local)
        if program is None:
            return None
        buffer = program.buffer_type()
        program.pack(buffer, 0, *words)
        return Run(program, buffer, given, local, self.subject.constants, self._is_fresh)

    def made(self, program: Program, words: bytes, values: Sequence[Any]) -> Run:
        """The run that a plan has made: its ``words`` and what it was given. C releases what it owns."""
        depth = len(program.stack_kinds)
        local = list(values[depth:])
        given = [*values[:depth], *(local[k] for k in self.read)]
        buffer = program.buffer_type.from_buffer_copy(words)
        return Run(program, buffer, given, local, self.subject.constants, self._is_fresh, releases=False)

    def execute(self, run: Run) -> None:
        with span("loop", self.subject.code.qualname, self.where):
            run.call()

    def results(self, run: Run) -> tuple[Any, ...] | None:
        """(place, stack…, locals…): the canonical instruction at which plain Python is to go on, the values
        on the stack there from the loop's own iterator upwards, and the locals; None if nothing was run. The
        header of a loop as the place may mean that it only paused for the interpreter to look at signals and
        threads."""
        leave = run.leave
        if leave is None:
            return None
        self.has_paused = leave.reason == PAUSED
        if leave.reason and not self.has_paused and self.record is not None:
            self.record.bailed[leave.reason] += 1
        if leave.reason.startswith(OTHER_ITEM):
            self._met_other_item()
        place, stack, local = run.outcome(Objects(run.given, run.constants), self._place_of)
        return place, *stack, *local

    def _met_other_item(self) -> None:
        """Where lists are mixed, what was compiled for lists of one type is of no use."""
        self._other_items += 1
        if self._other_items == _MANY_OTHERS:
            self.subject.mixes = True
            self._programs.clear()
            self._refusals.clear()
            self.is_stale = True

    def _program(
        self, place: int, stack: list[Any], local: list[Any]
    ) -> tuple[Program | None, list[Any], list[Any]]:
        """The program for what the values are now, its input, and the objects that boxing may refer to."""
        given: list[Any] = []
        words: list[Any] = []
        kinds: tuple[list[Kind], list[Kind]] = ([], [])
        for group, values in zip(kinds, (stack, [local[k] for k in self.read])):
            for value in values:
                found = describe_iterator if group is kinds[0] else describe
                kind, parts = found(value, given)
                if kind == OPAQUE and self._is_known_function(value):
                    kind, parts = self.subject.constant(value), ()
                words += parts
                group.append(kind)
        known = self._known(local)
        key = (place, tuple(kinds[0]), tuple(kinds[1]), known, self._order(local, dict(known)))
        programs = self._programs.setdefault(key, [])
        for program in programs:
            if program.is_valid():
                return program, words, given
        made = self._compile(key)
        return made, words, given

    def _is_known_function(self, value: object) -> bool:
        """Whether it is one of the first functions that were given: the loop is compiled for each."""
        if not is_plain_function(value):
            return False
        if self._functions.number_of(value) is not None:
            return True
        if len(self._functions) < _MOST_FUNCTIONS:
            self._functions.append(value)
            return True
        return False

    def _known(self, local: list[Any]) -> Known:
        """The numbers that the loop is compiled for, and those that are positive and small."""
        numbers = self._known_numbers(local)
        small = self._small(local).difference(dict(numbers))
        return (*numbers, *((name, None) for name in self._kept if name in small))

    def _small(self, local: list[Any]) -> frozenset[str]:
        """Locals that the loop does not assign with numbers that are taken to be positive and small."""
        held = [(name, local[self._place_of[name]]) for name in self._kept]
        small = frozenset([name for name, v in held if type(v) is int and 0 < v <= MOST_OF_SMALL])
        for known in self._all_small:
            if known <= small:
                return known
        found = frozenset[str]()
        if len(self._all_small) < _MOST_KNOWN:
            found = small.intersection(*self._all_small)
        self._all_small.append(found)
        return found

    def _order(self, local: list[Any], known: dict[str, int | None]) -> Order:
        """Which small numbers are sizes of arrays, or less; no more than those that were so before."""
        if not known or (self._orders and not self._orders[-1]):
            return ()
        held = [(name, local[self._place_of[name]]) for name in self._kept]
        arrays = [(name, value.shape) for name, value in held if type(value) is np.ndarray]
        found = frozenset(
            (number, array, axis)
            for number, value in held
            if number in known
            for array, shape in arrays
            for axis, size in enumerate(shape)
            if value <= size
        )
        for order in self._orders:
            if found.issuperset(order):
                return order
        both = found.intersection(*self._orders) if len(self._orders) < _MOST_KNOWN else frozenset[Any]()
        self._orders.append(tuple(sorted(both)))
        return self._orders[-1]

    def _known_numbers(self, local: list[Any]) -> Known:
        if not self._limits:
            return ()
        held = [(name, local[self._place_of[name]]) for name in self._limits]
        small = tuple([(name, v) for name, v in held if type(v) is int and 0 < v <= MOST_STEPS])
        found = known_limits(self.subject.code, self.subject.loop.header, small) if small else ()
        if found and found not in self._all_known and len(self._all_known) < _MOST_KNOWN:
            self._all_known.append(found)
        return found if found in self._all_known else ()

    def _rendered(
        self, place: int, stack: tuple[Kind, ...], local: dict[str, Kind], known: Known, order: Order
    ) -> Rendered:
        while True:
            try:
                return render(self.subject, place, stack, local, self._symbol, self.title, known, order)
            except HeldTooShort:
                self.subject.makes_arrays = False
            except TooLarge:
                if not self.subject.unrolls:
                    raise
                self.subject.unrolls = False

    def _compile(self, key: Key) -> Program | None:
        kinds = key[2]
        programs = self._programs[key]
        if key in self._refusals or len(programs) >= MOST_PROGRAMS:
            self.problem = self._refusals.get(key, "functions and variables that it uses keep changing")
            return None
        local = {self.names[k]: kind for k, kind in zip(self.read, kinds)}
        with span("compile", f"loop of {self.subject.code.qualname}", self.where):
            return self._made(key, local)

    def _made(self, key: Key, local: dict[str, Kind]) -> Program | None:
        place, stack, _, known, order = key
        programs = self._programs[key]
        start = time.perf_counter()
        try:
            rendered = self._rendered(place, stack, local, known, order)
        except TooLarge:
            return self._refuse(key, "it has too many blocks")
        if not rendered.goes_round:
            reasons = [leave.reason for leave in rendered.leaves if leave.reason]
            return self._refuse(key, reasons[0] if reasons else "it does not go round")
        program = Program(rendered, stack, self.build(rendered.source, rendered.symbol), known, order)
        programs.append(program)
        if self.record is not None:
            self.record.versions += 1
            self.record.seconds += time.perf_counter() - start
            self.record.source = rendered.source
        return program

    def _refuse(self, key: Key, reason: str) -> Program | None:
        self.problem = self._refusals[key] = reason
        self.is_hopeless = not any(self._programs.values()) and len(self._refusals) >= MOST_REFUSALS
        return None


def _boxed(kinds: Sequence[Kind], parts: Sequence[Any], objects: Objects) -> list[Any]:
    found, at = [], 0
    for kind in kinds:
        found.append(kind.box(parts[at : at + len(kind.parts)], objects))
        at += len(kind.parts)
    return found


def _distinct(assumptions: Sequence[Assumption]) -> tuple[Assumption, ...]:
    return tuple({(id(referent(a.holder)), a.name): a for a in assumptions}.values())


def _holds(assumption: Assumption) -> bool:
    holder, name, found = referent(assumption.holder), assumption.name, referent(assumption.found)
    if holder is None or (found is None and assumption.found is not None):
        return False  # they are gone
    if isinstance(name, int):
        try:
            return holder.__closure__[name].cell_contents is found
        except ValueError:  # it is empty
            return False
    if type(holder) is types.FunctionType:
        return getattr(holder, name) is found
    members = holder if isinstance(holder, dict) else vars(holder)
    if name in members:
        return members[name] is found
    return isinstance(holder, dict) and vars(builtins).get(name) is found
