"""Arrays without strides (sparse tensors): functions that know them take the strided arrays that they are
made of, as inputs of the graph; to all others they are opaque."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...device import CPU
from ...errors import Unsupported
from ...frontends.base import ArrayParts, ArrayRef, Called, Frontend, Rule, TypedTuple
from ...graph.ir import ArrayType
from ..breaks import Break
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind
from ..guards.source import PartSource, Source
from .array import ArrayValue
from .base import NamedMethodValue, OpaqueValue, Tracer, Value

_MOST = 4  # kinds of parts at a place, each of which gets a graph of its own


class PartedValue(OpaqueValue):
    """An array from outside that ``parts`` tells of."""

    def __init__(self, obj: Any, source: Source, reason: str, frontend: Frontend, parts: ArrayParts) -> None:
        super().__init__(obj, source, reason)
        self.place = source
        self.frontend = frontend
        self.parts = parts
        self.is_guarded = False

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if self.frontend.rule_of_parts(Called("method", name)) is not None:
            return _Method(self, name)
        if name not in self.parts.constants:
            return super().getattr(tracer, name)
        self._guard(tracer)
        found = getattr(self.obj, name)
        return tracer.wrap_result(TypedTuple(type(found), (*found,)) if isinstance(found, tuple) else found)

    def in_graph(self, tracer: Tracer) -> ArrayParts:
        """With the parts as inputs of the graph."""
        if not self.parts.refs:
            if tracer.builder.device not in (None, CPU):
                raise Break("unsupported-call", f"{self.describe()} beside arrays on a device")
            self._guard(tracer)
            self.parts = replace(self.parts, refs=tuple(self._input(tracer, m) for m in self.parts.methods))
        return self.parts

    def _input(self, tracer: Tracer, method: str) -> ArrayRef:
        obj, source = getattr(self.obj, method)(), PartSource(self.place, method)
        try:
            facts = self.frontend.describe(obj)
        except Unsupported as error:
            raise Break("unsupported-call", error.reason) from None
        type_ = ArrayType(facts.dtype, facts.shape, facts.strides, facts.device)
        var = tracer.builder.add_input(type_, "array", source.expr(), False)
        ref = ArrayRef(var, "array", self.frontend.name)
        tracer.by_ref[ref] = value = ArrayValue(ref, facts.pytype, source)
        tracer.inputs.append(value)
        tracer.input_objects[var.name] = obj
        return ref

    def _guard(self, tracer: Tracer) -> None:
        if self.is_guarded:
            return
        check = self.parts.check
        seen = tracer.config.state_of(tracer.code).texts.setdefault(f"{self.place.expr()}: parts", set())
        seen.add(repr(check.expected))
        if len(seen) > _MOST:
            raise Break("unsupported-call", f"{self.describe()}, of other parts from call to call,")
        tracer.guard(self.place, Kind.CUSTOM_ARRAY, CustomCheck(check.check, check.expected, check.text))
        self.is_guarded = True


class _Method(NamedMethodValue):
    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        assert isinstance(self.owner, PartedValue)
        called, frontend = Called("method", self.name), self.owner.frontend
        rule = frontend.rule_of_parts(called)
        assert rule is not None
        return tracer.apply_rule(rule, [self.owner, *args], kwargs, self.describe(), frontend, called)


class _Parts(Value):
    """An argument taken apart."""

    def __init__(self, parts: ArrayParts) -> None:
        self.parts = parts

    def for_rule(self, tracer: Tracer) -> Any:
        return self.parts


def taken_apart(tracer: Tracer, called: Called, args: list[Value]) -> tuple[Rule, list[Value]] | None:
    """The rule of a function for arrays that are taken apart, and its arguments; ``None`` where there are no
    such arrays, or the function knows none."""
    known = [tracer.realize(arg) for arg in args]
    frontend = next((v.frontend for v in known if isinstance(v, PartedValue)), None)
    rule = None if frontend is None or tracer.tx.same_bits else frontend.rule_of_parts(called)
    if rule is None:
        return None
    return rule, [_Parts(v.in_graph(tracer)) if isinstance(v, PartedValue) else v for v in known]
