"""Generators made in the frame, run by capture itself one ``yield`` at a time."""

from __future__ import annotations

import types
from typing import Any

from ...python_code.gen_resume import Reviver, finished, make_suspended
from ...python_code.resume import needed_locals
from ..breaks import Break
from .base import Codegen, Frame, NamedMethodValue, Tracer, UnboundValue, Value
from .iterator import IteratorValue
from .number import ConstValue

_METHODS = ("send", "throw", "close", "__next__", "__iter__")


class GeneratorValue(IteratorValue):
    """A generator whose frame is executed symbolically.

    Where compiled code needs it, a generator that was not started is made by calling its function again, one
    that is half-way as ``python_code/gen_resume.py`` says.
    """

    def __init__(self, function: Value, args: list[Value], kwargs: dict[str, Value], frame: Frame) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.frame = frame
        self.started = False

    @property
    def pytype(self) -> type:
        return types.GeneratorType

    def describe(self) -> str:
        return f"a generator of {self.function.describe()}"

    def children(self) -> tuple[Value, ...]:
        if not self.started:
            return (self.function, *self.args, *self.kwargs.values())
        return (*self.frame.stack, *self.frame.locals.values(), *self.frame.cells.values())

    @property
    def is_finished(self) -> bool:
        return self.frame.result is not None

    @property
    def is_suspended(self) -> bool:
        """Whether it stands at a ``yield``."""
        frame = self.frame
        waits = self.started and not self.is_finished
        return waits and frame.code.instructions[frame.current].op == "YIELD_VALUE"

    @property
    def is_protected(self) -> bool:
        """Whether closing it runs code of its own: a handler or ``finally`` around where it stands."""
        if not self.is_suspended:
            return False
        inner = self.delegate
        if inner is not None and (not isinstance(inner, GeneratorValue) or inner.is_protected):
            return not isinstance(inner, IteratorValue) or isinstance(inner, GeneratorValue)
        found: bool = self.frame.info.in_try[self.frame.current]
        return found

    @property
    def delegate(self) -> Value | None:
        """What a suspended generator is stepping by ``yield from``."""
        if not self.is_suspended:
            return None
        after = self.frame.code.instructions[self.frame.current + 1]
        return self.frame.stack[-1] if after.op == "RESUME" and after.arg & 3 == 2 else None

    def finish(self, value: Value) -> None:
        self.frame.stack.clear()
        self.frame.result = value

    def open_ended(self, tracer: Tracer) -> bool:
        return True

    # -- running ------------------------------------------------------------------------------
    def next(self, tracer: Tracer) -> Value | None:
        return self.resume(tracer, None)

    def resume(self, tracer: Tracer, sent: Value | None) -> Value | None:
        """Run to the next ``yield``, which evaluates to ``sent`` first; ``None`` when it returns: then
        :attr:`returned` is its value."""
        tracer.check_generator(self)
        if self.is_finished:
            self.frame.result = ConstValue(None)  # its value is given only once
            return None
        tracer.steps += 1
        if self.started:
            self.frame.push(sent if sent is not None else ConstValue(None))
        self.started = True
        found: Value | None = tracer.run_generator(self.frame)
        return found

    @property
    def returned(self) -> Value:
        found = self.frame.result
        assert found is not None
        return found

    def items(self, tracer: Tracer) -> list[Value]:
        found: list[Value] = []
        limit = tracer.config.options.unroll_ops
        while (item := self.next(tracer)) is not None:
            found.append(item)
            if len(found) > limit:
                raise Break("generator", f"{self.describe()} yields more than {limit} values")
        return found

    # -- attributes -----------------------------------------------------------------------------
    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in _METHODS:
            return GeneratorMethod(self, name)
        if name in ("__name__", "__qualname__"):
            return tracer.wrap_result(self._names(tracer)[name == "__qualname__"])
        return super().getattr(tracer, name)

    def _names(self, tracer: Tracer) -> tuple[str, str]:
        function = getattr(self.function, "function", None)
        if function is None:
            code = self.frame.raw_code
            return code.co_name, code.co_qualname
        return function.__name__, function.__qualname__

    # -- rebuilding ---------------------------------------------------------------------------------
    def reconstruct(self, cg: Codegen) -> str:
        if self.is_finished:
            name, qualname = self._names(cg.tracer)
            return f"{cg.constant(finished)}({name!r}, {qualname!r})"
        if self.started:
            return self._reconstruct_suspended(cg)
        parts = [cg.value(a) for a in self.args] + [f"{k}={cg.value(v)}" for k, v in self.kwargs.items()]
        return f"{cg.value(self.function)}({', '.join(parts)})"

    def _reconstruct_suspended(self, cg: Codegen) -> str:
        frame = self.frame
        if frame.info.in_handler[frame.current]:
            # the exception being handled is part of a generator's state: only a real one has it
            cg.tracer.run_generator_plain(frame.raw_code, "it is suspended while it handles an exception")
        stack = [*frame.stack, ConstValue(None)]
        unbound = tuple(slot for slot, value in enumerate(stack) if isinstance(value, UnboundValue))
        bound = needed_locals(frame.code, frame.current, set(frame.locals), frame.start)
        made = _suspended_code(cg, frame, len(stack), bound, unbound)
        args = []
        for arg in made.args:
            if arg.kind == "stack":
                args.append(stack[arg.key])
            elif arg.kind == "cell":
                args.append(frame.cells[arg.key].contents)
            else:
                args.append(frame.locals[arg.key])
        cells = "".join(f"{cg.value(frame.cells[name])}, " for name in made.freevars)
        revive = _reviver(cg, frame, made)
        name, qualname = self._names(cg.tracer)
        texts = [f"({cells})", repr(name), repr(qualname), *(cg.value(a) for a in args)]
        return f"{cg.constant(revive)}({', '.join(texts)})"


def _suspended_code(
    cg: Codegen, frame: Frame, depth: int, bound: tuple[str, ...], unbound: tuple[int, ...]
) -> Any:
    cache = cg.tracer.config.resume_functions
    key = ("suspended", id(frame.raw_code), frame.current, depth, bound, unbound)
    if key not in cache:
        made = make_suspended(
            frame.code, frame.current, stack_depth=depth, bound=bound, unbound_slots=unbound
        )
        cache[key] = (made, frame.raw_code)
    return cache[key][0]


def _reviver(cg: Codegen, frame: Frame, made: Any) -> Reviver:
    cache = cg.tracer.config.resume_functions
    namespace = frame.globals[0]
    key = ("reviver", id(made.code), id(namespace))
    if key not in cache:
        cache[key] = Reviver(made, namespace)
    found: Reviver = cache[key]
    return found


class GeneratorMethod(NamedMethodValue):
    """``send``, ``throw``, ``close`` … of a traced generator, bound and not yet called."""

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        assert isinstance(self.owner, GeneratorValue)
        return tracer.call_generator_method(self.owner, self.name, args, kwargs)
