"""Frames of the symbolic machine, and what is known of their code."""

from __future__ import annotations

import types
from functools import cached_property
from typing import Any

from ..dataclass import dataclass, field
from ..errors import Unsupported
from ..graph.ir import Loc
from ..hook import _hook
from ..python_code.continuation import PlaceToResume, place_of
from ..python_code.flow import handlers_of, handling, looks_at_frame, program_handler, remembered, uses_tools
from ..python_code.instr import CO_OPTIMIZED, CanonicalCode, ExceptionRange
from ..python_code.loops import Loop, find_loops, make_loop_body
from ..python_code.versions import decode
from .breaks import Break, Skip
from .entries.config import CaptureConfig
from .guards.source import CellSource, FreeCellSource, LocalSource, Source
from .lifetimes.by_identity import WeakIdentityDict
from .values.base import LazyValue, Tracer, UnboundValue, Value
from .values.exception import ExceptionValue
from .values.func import CellValue

LOOKS = "it looks at its own frame (locals(), eval, sys._getframe)"
TOOLS = "it sets a debugger, profiler or monitoring tool on itself"


@dataclass(eq=False)
class CodeInfo:
    """What is derived from a code object once."""

    code: CanonicalCode
    handlers: list[ExceptionRange | None]
    looks_at_frame: bool
    uses_tools: bool
    problems: dict[tuple[Any, ...], str | None] = field(default_factory=dict)
    locs: dict[int | None, Loc] = field(default_factory=dict)

    @cached_property
    def loops(self) -> list[Loop]:
        return find_loops(self.code)

    @cached_property
    def in_try(self) -> list[bool]:
        """For every instruction whether a handler of the program's own covers it."""
        indices = range(len(self.handlers))
        return [program_handler(self.code, self.handlers, index) is not None for index in indices]

    @cached_property
    def in_handler(self) -> list[bool]:
        return handling(self.code)

    def loc_of(self, line: int | None) -> Loc:
        """The place of a line, for what is recorded."""
        found = self.locs.get(line)
        if found is None:
            code = self.code
            found = self.locs[line] = Loc(code.filename, line or code.firstlineno, code.qualname)
        return found

    def outermost_loop(self, index: int) -> Loop | None:
        """The largest loop that contains instruction ``index``."""
        around = [loop for loop in self.loops if index in loop.body]
        return max(around, key=lambda loop: len(loop.body)) if around else None

    def loop_problem(self, loop: Loop, given: tuple[str, ...], start: int) -> str | None:
        """Why the loop's body cannot be made a function of its own in a frame that began with the locals
        ``given`` at ``start``; ``None`` where it can."""
        key = (loop.header, given, start)
        if key not in self.problems:
            try:
                make_loop_body(self.code, loop, given, start)
                self.problems[key] = None
            except Unsupported as error:
                self.problems[key] = error.reason
        return self.problems[key]

    def loop_at(self, header: int) -> Loop | None:
        for loop in self.loops:
            if loop.header == header:
                return loop
        return None


# Of the program's code objects, for all configurations.
_known_code: WeakIdentityDict[CodeInfo] = WeakIdentityDict()


def code_info(config: CaptureConfig | None, raw: types.CodeType) -> CodeInfo:
    """The :class:`CodeInfo` of a code object. Of code made later it is that of what it is made from."""
    made = config.stand_ins.get(id(raw)) if config is not None else None
    if made is not None:
        return info_of(made.canonical)
    known = _known_code.get(raw)
    if known is None:
        known = _known_code[raw] = info_of(decode(raw))
    return known


@remembered
def info_of(code: CanonicalCode) -> CodeInfo:
    return CodeInfo(code, handlers_of(code), looks_at_frame(code), uses_tools(code))


@dataclass(eq=False)
class Resumption:
    """How a caller goes on after a callee that broke: with the callee's result, or with ``value``."""

    frame: Frame
    value: Value | None = None


@dataclass(eq=False)
class Steps:
    """A loop of ``count`` iterations that may be unrolled by what the first ones do: the nodes of the graph
    and the calls of objects there were before; which objects the first iteration calls, and whether all
    iterations like it are few nodes."""

    count: int
    nodes: int
    called: int
    first: set[int] = field(default_factory=set)
    short: bool = False


@dataclass(eq=False)
class Frame:
    """One Python frame being executed symbolically. ``resumption`` is set where a break inside can be
    resumed in the caller; ``globals`` is ``(dict, source of the function or None for the root)``."""

    raw_code: types.CodeType
    info: CodeInfo
    globals: tuple[dict[str, Any], Source | None]
    locals: dict[str, Value]
    cells: dict[str, CellValue]
    resumption: Resumption | None
    given: tuple[str, ...]  # the locals bound at the start
    stack: list[Value] = field(default_factory=list)
    start: int = 0  # the first instruction; of a continuation where it goes on
    ip: int = 0
    current: int = 0
    trips: dict[int, int] = field(default_factory=dict)
    unrolled: set[int] = field(default_factory=set)  # headers of loops that are unrolled beyond the limit
    layers: set[int] = field(default_factory=set)  # headers of loops over things that are called
    parameters: set[int] = field(default_factory=set)  # those of them that are over tensors from outside
    steps: dict[int, Steps] = field(default_factory=dict)  # by headers of loops that work on tensors
    idle: dict[int, int] = field(default_factory=dict)  # of loops that may be idle: nodes of the graph before
    result: Value | None = None
    yielded: Value | None = None
    handling: ExceptionValue | None = None  # what a handler of this frame is handling
    arguments: tuple[Value, ...] = ()  # as they were when the frame was entered

    @staticmethod
    def make(
        tracer: Tracer,
        raw: types.CodeType,
        globals_of: tuple[dict[str, Any], Source | None],
        bound: dict[str, Value],
        closure: list[CellValue],
        direct: Frame | Resumption | None,
    ) -> Frame:
        """A frame at its first instruction. ``direct``: the calling frame, or a :class:`Resumption`, where
        a break inside can be resumed."""
        info = code_info(tracer.config, raw)
        arguments = tuple(bound.values())
        cells = dict(zip(info.code.freevars, closure))
        for name in info.code.cellvars:
            cells[name] = CellValue(name, bound.pop(name, None))
        resumption = Resumption(direct) if isinstance(direct, Frame) else direct
        given = info.code.arg_names
        return Frame(raw, info, globals_of, bound, cells, resumption, given, arguments=arguments)

    @property
    def code(self) -> CanonicalCode:
        return self.info.code

    # -- the stack ----------------------------------------------------------------------------
    def push(self, value: Value) -> None:
        self.stack.append(value)

    def pop(self) -> Value:
        return self.stack.pop()

    def popn(self, count: int) -> list[Value]:
        if not count:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def jump(self, target: int) -> None:
        self.ip = target

    def loop_problem(self, loop: Loop) -> str | None:
        """See :meth:`CodeInfo.loop_problem`."""
        return self.info.loop_problem(loop, self.given, self.start)

    # -- places ---------------------------------------------------------------------------------
    @property
    def loc(self) -> Loc:
        return self.info.loc_of(self.code.instructions[self.current].loc.line)

    def first_argument(self, tracer: Tracer) -> Value:
        """What ``super()`` without arguments binds to."""
        if not self.code.argcount:
            raise Break("would-raise", "super(): no arguments")
        name = self.code.varnames[0]
        found = self.cells[name].contents if name in self.cells else self.locals.get(name)
        if found is None:
            raise Break("would-raise", "super(): arg[0] deleted")
        return tracer.realize(found)


def why_not_inlined(tracer: Tracer, callee: Frame) -> str | None:
    """What an earlier attempt, or an earlier capture, found against running ``callee`` where the innermost
    frame is."""
    if not tracer.frames:
        return None
    caller = tracer.frames[-1]
    if tracer.decisions.no_inline:
        why: str | None = tracer.decisions.no_inline.get((caller.raw_code, caller.current))
        if why is not None:
            return why
    if tracer.breaks_are_errors:
        return None
    found: str | None = tracer.config.refused_calls.reason(
        caller.raw_code, caller.current, tracer.frames[0].start, callee.raw_code, callee.arguments
    )
    return found


def root_frame(
    tracer: Tracer, raw: types.CodeType, args: tuple[Any, ...], function: types.FunctionType
) -> Frame:
    """The frame of the function being captured, with its arguments not yet looked at."""
    place = place_of(tracer.config, raw)
    if place is not None:
        return _resumed_frame(tracer, place, args, function)
    info = code_info(tracer.config, raw)
    if info.uses_tools:
        _hook.mark(raw, "alone")
        raise Skip(TOOLS)
    if info.looks_at_frame:
        raise Skip(LOOKS, calls=True)
    if not info.code.flags & CO_OPTIMIZED:
        raise Skip("the body of a class or module")
    if type(function.__globals__) is not dict:
        raise Skip("its globals are a mapping of its own kind")
    names = info.code.arg_names
    bound: dict[str, Value] = {}
    for index, (name, obj) in enumerate(zip(names, args)):
        bound[name] = LazyValue(obj, LocalSource(name, index))
    closure = _root_cells(tracer, info.code.freevars, function)
    tracer.root_globals = function.__globals__
    return Frame.make(tracer, raw, (function.__globals__, None), bound, closure, None)


def _resumed_frame(
    tracer: Tracer, place: PlaceToResume, args: tuple[Any, ...], function: types.FunctionType
) -> Frame:
    """The frame of the original as it was where a continuation goes on."""
    info = code_info(tracer.config, place.origin)
    cells = dict(zip(place.freevars, _root_cells(tracer, place.freevars, function)))
    tracer.root_globals = function.__globals__
    given = tuple(arg.key for arg in place.args if arg.kind == "local")
    frame = Frame(place.origin, info, (function.__globals__, None), {}, cells, None, given)
    frame.start = frame.ip = frame.current = place.at
    tracer.loc = frame.loc
    frame.stack = [UnboundValue() for _ in range(place.stack_depth)]
    for index, (arg, obj) in enumerate(zip(place.args, args)):
        lazy = LazyValue(obj, LocalSource(place.code.co_varnames[index], index))
        if arg.kind == "stack":
            frame.stack[arg.key] = tracer.realize_loaded(lazy)
        elif arg.kind == "local":
            frame.locals[arg.key] = lazy
    return frame


def _root_cells(tracer: Tracer, names: tuple[str, ...], function: types.FunctionType) -> list[CellValue]:
    return [
        _root_cell(tracer, cell, name, index, FreeCellSource(name, index))
        for index, (name, cell) in enumerate(zip(names, function.__closure__ or ()))
    ]


def _root_cell(tracer: Tracer, cell: types.CellType, name: str, index: int, source: Source) -> CellValue:
    try:
        contents: Value | None = LazyValue(cell.cell_contents, CellSource(name, index))
    except ValueError:
        contents = None
    value = CellValue(name, contents, source)
    tracer.by_id[id(cell)] = (value, cell)
    return value
