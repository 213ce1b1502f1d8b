"""Running traced generators: when not to, their methods, and what happens to one that is given up."""

from __future__ import annotations

import types
from typing import Any

from .breaks import Break
from .values.base import Codegen, Tracer, Value
from .values.generator import GeneratorValue
from .values.number import ConstValue

_NONE = ConstValue(None)


def check(tracer: Tracer, generator: GeneratorValue) -> None:
    """Break where an earlier attempt found that capture cannot step the generator here."""
    decisions = tracer.decisions
    reason = decisions.plain_generators.get(generator.frame.raw_code)
    if reason is not None:
        raise Break("generator", f"{generator.describe()} runs as plain Python: {reason}")
    if tracer.frames and decisions.no_inline:
        caller = tracer.frames[-1]
        if (caller.raw_code, caller.current) in decisions.no_inline:
            name = generator.frame.code.qualname
            raise Break("generator", f"a break inside {name} cannot be resumed in its consumer")


def run_plain(tracer: Tracer, code: types.CodeType, reason: str) -> None:
    """Begin again, and leave the generators of ``code`` to plain Python from their creation on."""
    tracer.decisions.plain_generators[code] = reason
    raise tracer.restart


def check_abandoned(tracer: Tracer, cg: Codegen) -> None:
    """A generator that is given up inside of ``try`` or ``with`` is closed at once, and its handlers run:
    where capture has not done that, plain Python is to have the generator."""
    for generator in tracer.generators:
        if generator.is_protected and not cg.is_built(generator):
            run_plain(tracer, generator.frame.raw_code, "it is given up inside of try or with")


# -- methods ----------------------------------------------------------------------------------------
def call_method(
    tracer: Tracer, generator: GeneratorValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``generator.name(*args, **kwargs)``."""
    if kwargs or len(args) != (name in ("send", "throw")):
        raise Break("unsupported-call", f"{name}() of a generator with {len(args)} arguments")
    if name == "__iter__":
        return generator
    return _METHODS[name](tracer, generator, *args)


def _next(tracer: Tracer, generator: GeneratorValue) -> Value:
    return _answer(tracer, generator, generator.next(tracer))


def _send(tracer: Tracer, generator: GeneratorValue, value: Value) -> Value:
    if not generator.started and not (value.is_const and value.const is None):
        raise Break("would-raise", "can't send non-None value to a just-started generator")
    return _answer(tracer, generator, generator.resume(tracer, value))


def _answer(tracer: Tracer, generator: GeneratorValue, item: Value | None) -> Value:
    if item is None:
        raise tracer.raise_stop_iteration(generator)
    return item


def _close(tracer: Tracer, generator: GeneratorValue) -> Value:
    check(tracer, generator)
    if generator.started and not generator.is_finished and generator.is_protected:
        raise Break("generator", f"close() of {generator.describe()} inside of try or with")
    tracer.steps += 1
    generator.started = True
    generator.finish(_NONE)
    return _NONE


def _throw(tracer: Tracer, generator: GeneratorValue, error: Value) -> Value:
    raise Break("generator", f"throw() into {generator.describe()}")


_METHODS: dict[str, Any] = {"__next__": _next, "send": _send, "throw": _throw, "close": _close}
