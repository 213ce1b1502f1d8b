"""What a captured function takes and gives, for graphs that run without it (:mod:`dyncomp.archives`)."""

from __future__ import annotations

import types
from typing import Any

from ...dataclass import dataclass
from ...errors import ExportError
from ...python_code.instr import CO_VARARGS, CO_VARKEYWORDS
from ..guards.program import lower_guards
from ..guards.source import LocalSource, Source
from ..terminators import End, ReturnEnd
from ..tracer import Tracer
from ..values.array import ArrayValue
from ..values.base import Value
from ..values.derived import DerivedValue
from ..values.mapping import DictValue
from ..values.number import ConstValue
from ..values.obj import InstanceValue
from ..values.seq import ListValue, TupleValue
from .codegen import Codegen

Environment = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Signature:
    """``inputs``: where the graph's inputs are found, and then its integers. ``result``: nested lists,
    ``["output", number]``, ``["input", number]``, ``["constant", object]``, ``["tuple", …]``,
    ``["list", …]``, ``["mapping", class, [key, result], …]``."""

    inputs: tuple[Source, ...]
    result: list[Any]

    def read(self, source: Source, env: Environment) -> Any:
        """The object that is found at ``source`` now."""
        values = lower_guards((), [source]).read(*env)
        if values is None:
            raise ExportError(f"{source.expr()} cannot be read")
        return values[0]


def signature_of(tracer: Tracer, cg: Codegen, end: End) -> Signature:
    """Raises :class:`ExportError` for what a graph alone cannot do."""
    if not isinstance(end, ReturnEnd):
        raise ExportError("the function is no single graph")
    _refuse_effects(tracer)
    inputs: list[Source] = []
    for value in (*tracer.inputs, *tracer.integers):
        source = value if isinstance(value, Source) else value.source
        if source is None:
            raise ExportError("a number or an array that Python computes, or draws, beside the graph")
        inputs.append(source)
    return Signature(tuple(inputs), _result(tracer, cg, end.value))


def _refuse_effects(tracer: Tracer) -> None:
    changed = [v for v in tracer.mutated if not isinstance(v, ArrayValue) and not _is_as_before(v)]
    keywords = _keyword_arguments(tracer.code)  # a dict that is made for the call
    changed = [v for v in changed if v.source is None or v.source != keywords]
    if changed:
        raise ExportError(f"the function changes an object from outside ({changed[0].describe()})")
    if tracer.global_writes:
        raise ExportError(f"the function assigns the global {next(iter(tracer.global_writes.values()))[1]}")
    if tracer.deferred:
        raise ExportError(f"the function calls {tracer.deferred[0].function!r}, which has effects")
    if tracer.draws:
        raise ExportError("the function draws random numbers outside of the graph")
    if tracer.modes_set:
        raise ExportError(f"the function sets a mode for good: {', '.join(tracer.modes_set)}")


def _keyword_arguments(code: types.CodeType) -> Source | None:
    """Where ``**kwargs`` is, the last of the arguments."""
    if not code.co_flags & CO_VARKEYWORDS:
        return None
    last = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & CO_VARARGS)
    return LocalSource(code.co_varnames[last], last)


def _is_as_before(value: Value) -> bool:
    """Whether an object's attributes were set to what they are (state that a library sets for a call)."""
    if not isinstance(value, InstanceValue) or value.obj is None or value.slots:
        return False
    now = value.namespace.obj_dict()
    return all(
        isinstance(new, ConstValue) and name in now and now[name] is new.const
        for name, new in value.written.items()
    )


def _result(tracer: Tracer, cg: Codegen, value: Value) -> list[Any]:
    value = tracer.realize(value)
    if isinstance(value, ArrayValue):
        number = next((k for k, output in enumerate(cg.outputs) if output is value), None)
        if number is not None:
            return ["output", number]
        given = next((k for k, known in enumerate(tracer.inputs) if known is value), None)
        if given is not None:
            return ["input", given]
    elif isinstance(value, ConstValue):
        return ["constant", value.const]
    elif type(value) is TupleValue and value.cls is tuple:
        return ["tuple", *[_result(tracer, cg, item) for item in value.contents(tracer)]]
    elif type(value) is ListValue:
        return ["list", *[_result(tracer, cg, item) for item in value.contents(tracer)]]
    elif isinstance(value, DictValue):
        return _mapping(tracer, cg, value.cls, value)
    elif isinstance(value, DerivedValue) and isinstance(value.part, DictValue):
        return _mapping(tracer, cg, value.cls, value.part)
    raise ExportError(
        f"the function returns {value.describe()}: return arrays, numbers, tuples, lists or dicts"
    )


def _mapping(tracer: Tracer, cg: Codegen, cls: type, part: DictValue) -> list[Any]:
    return ["mapping", cls, *[[key, _result(tracer, cg, v)] for key, v in part.contents(tracer).items()]]
