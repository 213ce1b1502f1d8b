"""Running traced generators: when not to, their methods, and what happens to one that is given up."""

from __future__ import annotations

import types
from typing import Any

from ...python_code.versions.tables import CLOSE_RETURNS, THROW_WARNS
from ..breaks import Break, Skip
from ..frames import why_not_inlined
from ..values.base import Codegen, Frame, Tracer, Value
from ..values.exception import ExceptionValue, TracebackValue
from ..values.generator import GeneratorValue
from ..values.iterator import IteratorValue
from ..values.number import ConstValue
from . import exceptions

_NONE = ConstValue(None)


def check(tracer: Tracer, generator: GeneratorValue) -> None:
    """Break where an earlier attempt found that capture cannot step the generator here."""
    decisions = tracer.decisions
    reason = decisions.plain_generators.get(generator.frame.raw_code)
    if reason is not None:
        raise Break("generator", f"{generator.describe()} runs as plain Python: {reason}")
    why = why_not_inlined(tracer, generator.frame)
    if why is not None:
        name = generator.frame.code.qualname
        raise Break("generator", f"a break inside {name} cannot be resumed in its consumer: {why}")


def run_plain(tracer: Tracer, code: types.CodeType, reason: str) -> None:
    """Begin again, and leave the generators of ``code`` to plain Python from their creation on."""
    tracer.decisions.plain_generators[code] = reason
    raise tracer.restart


# -- generators that nobody holds any more ----------------------------------------------------------------
def dropped(tracer: Tracer, generator: GeneratorValue) -> None:
    """The program lets go of a generator: if nobody else holds it, it is closed at once."""
    if not generator.is_protected or holders(tracer, generator):
        return
    frame = tracer.frames[-1]
    origin = (frame.raw_code, -1 - frame.current)  # no instruction: the drop cannot be left to plain Python
    given_up = _given_up(generator)
    if origin in tracer.decisions.breaks:
        raise Skip(given_up.reason)
    value = _exit(origin, given_up)
    tracer.steps += 1
    try:
        _closed(tracer, generator, value)
    except (Break, exceptions.Raised):
        raise Skip(given_up.reason) from None


def _given_up(generator: GeneratorValue) -> Break:
    return Break("generator", f"{generator.describe()} is given up inside of try or with")


def _exit(origin: tuple[types.CodeType, int], problem: Break) -> ExceptionValue:
    """The ``GeneratorExit`` of a generator that nobody holds any more."""
    value = ExceptionValue(GeneratorExit, [])
    value.initialize([])
    value.origin, value.problem = origin, problem
    return value


def dropped_at_return(tracer: Tracer, frame: Frame) -> None:
    """The frame's locals go when it returns what is on top of its stack."""
    # asked of this frame's only: there may be as many others as the program made so far
    held = [value for value in frame.locals.values() if isinstance(value, GeneratorValue)]
    if not any(generator.is_protected for generator in held):
        return
    for name in frame.code.varnames:
        value = frame.locals.get(name)
        if isinstance(value, GeneratorValue):
            del frame.locals[name]
            dropped(tracer, value)


def holders(tracer: Tracer, wanted: Value) -> int:
    """How many places in frames, or in objects that frames and changed objects lead to, hold a value."""
    work: list[Value] = [*tracer.mutated]
    for frame in tracer.frames:
        work += [*frame.stack, *frame.locals.values(), *frame.cells.values()]
    work += [value for _, _, value in tracer.global_writes.values() if value is not None]
    seen: set[int] = set()
    count = 0
    while work:
        value = work.pop()
        count += value is wanted
        if id(value) not in seen:
            seen.add(id(value))
            work.extend(value.children())
    return count


def check_abandoned(tracer: Tracer, cg: Codegen) -> None:
    """A generator that is given up inside of ``try`` or ``with`` is closed at once, and its handlers run.
    Where capture has not done that, and one could see it, plain Python is to have the whole function:
    compiled code may hold a generator for longer."""
    for generator in tracer.generators:
        if generator.is_protected and not cg.is_built(generator) and not _closes_unseen(tracer, generator):
            raise Skip(_given_up(generator).reason)


def _closes_unseen(tracer: Tracer, generator: GeneratorValue) -> bool:
    """Whether closing a generator changes nothing: no handler around it is for ``GeneratorExit``."""
    value = _exit((tracer.code, -1), _given_up(generator))
    before = _changes(tracer)
    try:
        _closed(tracer, generator, value)
    except (Break, Skip, exceptions.Raised):
        return False
    return before == _changes(tracer)


def _changes(tracer: Tracer) -> tuple[int, ...]:
    """Counts of all that a piece of the program can do to others."""
    lists = (tracer.mutated, tracer.global_writes, tracer.deferred, tracer.builder.nodes)
    return (tracer.steps, tracer.outside_changes, *map(len, lists))


# -- methods ----------------------------------------------------------------------------------------
def call_method(
    tracer: Tracer, generator: GeneratorValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``generator.name(*args, **kwargs)``."""
    if name == "throw" and len(args) == 3 and not THROW_WARNS and _is_whole(*args):
        args = [args[1]]
    if kwargs or len(args) != (name in ("send", "throw")):
        raise Break("unsupported-call", f"{name}() of a generator with {len(args)} arguments")
    if name == "__iter__":
        return generator
    return _METHODS[name](tracer, generator, *args)


def _is_whole(kind: Value, value: Value, traceback: Value) -> bool:
    """Whether the three arguments that ``__exit__`` gets are those of one exception."""
    if not (isinstance(value, ExceptionValue) and kind.is_const and kind.const is value.cls):
        return False
    return isinstance(traceback, TracebackValue) and traceback.exception is value


def _next(tracer: Tracer, generator: GeneratorValue) -> Value:
    return _answer(tracer, generator, generator.next(tracer))


def _send(tracer: Tracer, generator: GeneratorValue, value: Value) -> Value:
    if not generator.started and not (value.is_const and value.const is None):
        tracer.raise_exception(TypeError, "can't send non-None value to a just-started generator")
    return _answer(tracer, generator, generator.resume(tracer, value))


def _answer(tracer: Tracer, generator: GeneratorValue, item: Value | None) -> Value:
    if item is None:
        raise tracer.raise_stop_iteration(generator)
    return item


def _throw(tracer: Tracer, generator: GeneratorValue, error: Value) -> Value:
    check(tracer, generator)
    value = exceptions.instance_of(tracer, error)
    problem = Break("generator", f"throw() into {generator.describe()}")
    if not (exceptions.is_caught(tracer) or generator.is_protected):
        raise problem
    exceptions.mark_origin(tracer, value, problem)
    return _answer(tracer, generator, _thrown_into(tracer, generator, value))


def _thrown_into(tracer: Tracer, generator: GeneratorValue, value: ExceptionValue) -> Value | None:
    """Raise ``value`` where the generator stands, and run it to its next ``yield``; ``None``: it returned."""
    if not generator.started and issubclass(value.cls, StopIteration):
        raise Break("generator", f"StopIteration is thrown into {generator.describe()}, which has not begun")
    tracer.steps += 1
    if generator.is_finished or not generator.started:
        generator.started = True
        generator.finish(_NONE)
        raise exceptions.Raised(value)
    inner = generator.delegate
    if isinstance(inner, GeneratorValue):
        try:
            item = _thrown_into(tracer, inner, value)
        except exceptions.Raised as raised:
            return _raise_at_yield(tracer, generator, raised.value)
        return item if item is not None else _go_on_behind_delegate(tracer, generator, inner)
    if inner is not None and not isinstance(inner, IteratorValue):
        raise Break("generator", f"throw() into {inner.describe()}")
    return _raise_at_yield(tracer, generator, value)


def _raise_at_yield(tracer: Tracer, generator: GeneratorValue, value: ExceptionValue) -> Value | None:
    generator.frame.push(_NONE)  # what the yield would have evaluated to
    found: Value | None = tracer.run_generator(generator.frame, value)
    return found


def _go_on_behind_delegate(tracer: Tracer, generator: GeneratorValue, inner: GeneratorValue) -> Value | None:
    """The generator that ``yield from`` steps has returned: its value is that of the expression."""
    frame = generator.frame
    frame.push(inner.returned)
    repeat = frame.code.instructions[frame.current + 2]  # the jump back to SEND, whose target is behind
    frame.jump(frame.code.instructions[repeat.arg].arg)
    found: Value | None = tracer.run_generator(frame)
    return found


def _close(tracer: Tracer, generator: GeneratorValue) -> Value:
    check(tracer, generator)
    tracer.steps += 1
    if generator.is_finished or not generator.started:
        generator.started = True
        generator.finish(_NONE)
        return _NONE
    value = ExceptionValue(GeneratorExit, [])
    value.initialize([])
    exceptions.mark_origin(tracer, value, Break("generator", f"close() of {generator.describe()}"))
    return _closed(tracer, generator, value)


def _closed(tracer: Tracer, generator: GeneratorValue, value: ExceptionValue) -> Value:
    """Close a suspended generator and what it delegates to; ``value`` is the GeneratorExit."""
    inner = generator.delegate
    thrown = value
    if isinstance(inner, GeneratorValue):
        try:
            _closed(tracer, inner, value)
        except exceptions.Raised as raised:
            thrown = raised.value
    elif inner is not None and not isinstance(inner, IteratorValue):
        raise Break("generator", f"close() of {inner.describe()}")
    try:
        item = _raise_at_yield(tracer, generator, thrown)
    except exceptions.Raised as raised:
        if issubclass(raised.value.cls, (GeneratorExit, StopIteration)):
            return _NONE
        raise
    if item is not None:
        tracer.raise_exception(RuntimeError, "generator ignored GeneratorExit")
    return generator.returned if CLOSE_RETURNS else _NONE


_METHODS: dict[str, Any] = {"__next__": _next, "send": _send, "throw": _throw, "close": _close}
