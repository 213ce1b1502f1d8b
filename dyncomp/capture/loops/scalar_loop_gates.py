"""Which loops of a captured frame are compiled whole, and the gates before loops of plain code."""

from __future__ import annotations

import types
from typing import Any

from ...errors import Unsupported
from ...graph.ir import Loc
from ...python_code.continuation import PlaceToResume, place_of
from ...python_code.flow import reachable
from ...python_code.gates import Gate, LoopFacts, gateable_loops, gated_continuation, gated_function
from ...python_code.instr import CO_OPTIMIZED, CanonicalCode
from ...python_code.loop_find import Loop
from ...python_code.versions import encode
from ...scalar_loops.analysis.look import (
    NUMBER,
    UNKNOWN,
    Kind,
    array_kind,
    is_scalar_loop,
    kind_of,
    of_items,
)
from ...scalar_loops.entry.policy import LoopEntry
from ...scalar_loops.entry.record import NativeLoopRecord
from ...signals import is_from_handler
from ..entries.config import CaptureConfig
from ..frames import code_info
from ..random.draws import MadeGeneratorValue
from ..values.array import ArrayValue
from ..values.base import Frame, LazyValue, OpaqueValue, Tracer, Value
from ..values.iterator import RangeIterator, SequenceIterator
from ..values.number import ConstValue, NumberValue, SymIntValue
from ..values.seq import ListValue, TupleValue


def is_native_loop(tracer: Tracer, frame: Frame, loop: Loop) -> bool:
    """Whether the loop, at whose header ``frame`` stands, works on single numbers and can have a gate."""
    if not is_enabled(tracer.config) or not can_have_gate(frame.code, loop):
        return False
    if (id(frame.code), loop.header) in tracer.config.not_native:
        return False
    known = [name for name in frame.locals if name in loop.read]
    local = {name: _kind(frame.locals[name]) for name in known}
    full = {name: cell.contents for name, cell in frame.cells.items() if cell.contents is not None}
    local.update({name: _kind(contents) for name, contents in full.items()})
    stack = [_kind(value) for value in frame.stack]
    return is_scalar_loop(frame.code, loop, local, stack, frame.globals[0])


def is_enabled(config: CaptureConfig) -> bool:
    return config.make_native is not None and bool(config.options.native_loops)


def can_have_gate(code: CanonicalCode, loop: Loop) -> bool:
    return any(facts.loop.header == loop.header for facts in gateable_loops(code))


def gates_of(
    config: CaptureConfig, raw: types.CodeType, code: CanonicalCode, namespace: dict[str, Any]
) -> tuple[Gate, ...]:
    """The gates before the loops of ``code``, a function of the program (or one iteration of its loops); the
    same ones each time. ``raw``: the code object that is known by."""
    if not is_enabled(config) or not gateable_loops(code):
        return ()
    key = ("gates", id(raw), id(namespace))
    found = config.resume_functions.get(key)
    if found is None:
        found = config.resume_functions[key] = (_make_gates(config, code, namespace), raw, namespace)
    gates: tuple[Gate, ...] = found[0]
    return gates


def gated_original(config: CaptureConfig, function: types.FunctionType) -> types.CodeType | None:
    """The code of a function that is left to plain Python, or of a piece of one, with gates before its loops;
    ``None`` where it has no loops that can have them."""
    if not is_enabled(config):
        return None
    try:
        return _gated(config, function)
    except Exception as error:  # a bug in dyncomp must never change what the program does
        if is_from_handler(error):
            raise
        config.note_fault(f"loops of {function.__qualname__} run as plain Python", error)
        return None


def _gated(config: CaptureConfig, function: types.FunctionType) -> types.CodeType | None:
    raw = function.__code__
    try:
        info = code_info(config, raw)
    except Unsupported:  # code that cannot be read, such as what was to be made later when reset() came
        return None
    code = info.code
    if info.looks_at_frame or info.uses_tools or not code.flags & CO_OPTIMIZED:
        return None
    place = place_of(config, raw)
    origin = raw if place is None else place.origin
    gates = gates_of(config, origin, code, function.__globals__)
    if not gates:
        return None
    try:
        return encode(gated_function(code, gates)) if place is None else _gated_piece(place, gates)
    except Unsupported:
        return None


def _gated_piece(place: PlaceToResume, gates: tuple[Gate, ...]) -> types.CodeType | None:
    reached = reachable(place.canonical, place.at)
    if not any(gate.facts.loop.header in reached for gate in gates):
        return None
    made = gated_continuation(
        place.canonical,
        place.at,
        gates,
        stack_depth=place.stack_depth,
        bound=place.bound,
        unbound_slots=place.unbound,
    )
    return made.code


def note_owner(gates: tuple[Gate, ...], header: int, owner: types.CodeType) -> None:
    """A capture of ``owner`` ends at the loop with this header."""
    for gate in gates:
        if gate.facts.loop.header == header and not any(known is owner for known in gate.entry.owners):
            gate.entry.owners.append(owner)


def _make_gates(config: CaptureConfig, code: CanonicalCode, namespace: dict[str, Any]) -> tuple[Gate, ...]:
    entries: list[LoopEntry] = []
    for facts in gateable_loops(code):
        around = [entry for entry in entries if facts.loop.header in entry.facts.loop.body]
        record = NativeLoopRecord(code.qualname, _place(code, facts), facts.loop.kind)
        config.records.native_loops.append(record)
        outer = around[-1] if around else None  # outer loops come first
        entries.append(LoopEntry(config, code, facts, namespace, record, outer))
    return tuple([Gate(entry.facts, entry.ticks, entry) for entry in entries])


def _place(code: CanonicalCode, facts: LoopFacts) -> Loc:
    line = code.instructions[facts.loop.header].loc.line
    return Loc(code.filename, line or code.firstlineno, code.qualname)


def _kind(value: Value) -> Kind:
    if isinstance(value, (NumberValue, SymIntValue)):
        return NUMBER
    if isinstance(value, ArrayValue):
        return _array_kind(value)
    if isinstance(value, ConstValue):
        return kind_of(value.const)
    if isinstance(value, (LazyValue, OpaqueValue)):
        return kind_of(value.obj)
    if isinstance(value, MadeGeneratorValue):
        return kind_of(value.like)
    if isinstance(value, RangeIterator):
        return ("items", NUMBER)
    if isinstance(value, TupleValue):
        return ("tuple", *map(_kind, value.children()))
    if isinstance(value, ListValue) and value.obj is None:
        return of_items([_kind(item) for item in value.children()] or [NUMBER])
    if isinstance(value, (ListValue, SequenceIterator)):
        obj = getattr(value, "obj", None)
        if obj is not None:
            return kind_of(obj)
        return of_items([_kind(item) for item in getattr(value, "sequence", ())])
    obj = getattr(value, "obj", None)
    return UNKNOWN if obj is None else kind_of(obj)


def _array_kind(value: ArrayValue) -> Kind:
    if value.ref.frontend == "torch" or value.ref.kind == "masked":
        return UNKNOWN
    if value.ref.kind != "array":
        return NUMBER
    return array_kind(value.ref.shape) if value.ref.ndim else UNKNOWN
