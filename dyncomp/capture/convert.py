"""From a call that no cache entry serves to a new entry: capture, compile, write the replacement."""

from __future__ import annotations

import dataclasses
import time
import types
from functools import partial
from typing import Any

from ..collector import few_collections
from ..errors import (
    ConstraintError,
    GraphBreakError,
    NotBatchableError,
    NotDifferentiableError,
)
from ..frontends.base import memory_of
from ..graph.ir import COPY, Graph, GraphOutput
from ..hook import _hook
from ..hook.errstate import raises_floating_point_errors
from ..spans import span
from . import handlers, machine
from .arrays.overlaps import refuse_overlaps
from .breaks import Break, BreakRecord, Skip
from .calls.folding import guards_of_unknown_results
from .control import generators
from .decisions import Decisions, Restart
from .entries.call_names import name_of_call, place_of_call
from .entries.config import CaptureConfig
from .entries.floating import Watch
from .entries.records import EntryRecord
from .entries.stored import Captured
from .environment import frame_readers
from .frames import root_frame
from .guards.class_facts import ClassFacts, may_change
from .guards.fact_kinds import NoOverlap, SymBinding, SymCondition
from .guards.guard import CustomCheck, Guard, GuardRefused, Kind, compile_guards
from .guards.module_facts import ModuleFacts
from .guards.source import ConstSource, PartSource
from .loops.scalar_loop_gates import gated_original
from .objects.class_names import module_of, shares_namespace
from .policy.captured import calls_python, is_worth_compiling, refuse_idle
from .policy.decide import after_error, decide, note_found, note_kept, note_left
from .policy.decision import RANK_BROKEN, RANK_COMPLETE, RANK_ORIGINAL, Plain, Until
from .policy.fallback import Fallback
from .policy.recompilation import builtins_of
from .policy.trial import trial_of
from .replacement.codegen import Codegen, is_of_numpy
from .replacement.endings import emit_end
from .replacement.loop_driver import known_body
from .replacement.raising import raising_entry
from .replacement.replace_source import build_function
from .replacement.signature import signature_of
from .sizes.dims import refuse_fixed
from .sizes.unbacked import definition
from .terminators import BreakEnd, End, LoopEnd, ReturnEnd, demand
from .tracer import Tracer, state_assumption
from .values.array import ArrayValue
from .values.deque import DequeValue
from .values.mapping import DictValue
from .values.number import is_late
from .values.obj import InstanceValue
from .values.seq import ListValue
from .values.sets import SetValue

MAX_ATTEMPTS = 60
_MUTABLE = (ListValue, DictValue, SetValue, DequeValue, InstanceValue)
# errors that the user asked for, which end the call
_THE_USERS = (GraphBreakError, ConstraintError, NotDifferentiableError, NotBatchableError)
assert handlers.data, "importing the package registers the handlers"


class _Attempt:
    """The newest tracer of a capture, so that its guards outlive a refusal."""

    tracer: Tracer | None = None


def on_miss(function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig) -> _hook.Entry | None:
    """What C calls when no entry's guards hold: a new entry, or ``None`` to run the original this once."""
    try:
        with (
            few_collections(),
            span("compile", name_of_call(function, args), str(place_of_call(function, args))),
        ):
            return _new_entry(function, args, config)
    except BaseException as error:
        entry = raising_entry(function, error, config)
        if entry is None:
            raise
        return entry


def _new_entry(
    function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig
) -> _hook.Entry | None:
    code = function.__code__
    config.records.counters["misses"] += 1
    decision = decide(function, args, config)
    if isinstance(decision, Plain):
        return _left_plain(function, args, config, decision)
    if config.stored is not None and code not in config.not_from_disk:
        name = name_of_call(function, args)
        with span("disk", f"look for {name} on disk", str(place_of_call(function, args))) as looking:
            found = config.stored.find(function, args, config)
            if found is not None:
                looking.name = f"load {name} from disk"
        if found is not None:
            return _use(found, code, config, decision.missed)
    attempt = _Attempt()
    try:
        return _try_to_capture(function, args, config, attempt, decision.missed)
    except (KeyboardInterrupt, SystemExit, GeneratorExit, *_THE_USERS):
        config.count_capture(code, -1)  # cut off, or refused: nothing is kept that would count
        raise
    finally:
        if attempt.tracer is not None:
            attempt.tracer.close()


def _use(
    found: tuple[_hook.Entry, EntryRecord], code: types.CodeType, config: CaptureConfig, missed: str
) -> _hook.Entry:
    """An entry from disk, as if it had been captured."""
    entry, record = found
    record.missed, record.from_disk = missed, True
    note_found(code, config, entry, record)
    config.records.add_entry(record)
    config.records.counters["from_disk"] += 1
    return entry


def _try_to_capture(
    function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig, attempt: _Attempt, missed: str
) -> _hook.Entry | None:
    code = function.__code__
    start = time.perf_counter()
    try:
        captured = _capture(function, args, config, attempt)
    except _THE_USERS:
        raise
    except Exception as error:
        plain = after_error(error, code, config)
        if plain.until is Until.OTHER_INPUTS:
            return _original_for_inputs(function, args, config, attempt, plain)
        if plain.until is Until.FOREVER:
            _hook.clear(code, config)
        return _left_plain(function, args, config, plain)
    entry, record = captured.entry, captured.record
    record.missed = missed
    record.seconds = time.perf_counter() - start
    note_kept(code, config, entry, record)
    config.records.add_entry(record)
    if config.stored is not None and attempt.tracer is not None and attempt.tracer.may_be_stored:
        with span("disk", f"keep {record.name} on disk", str(record.loc)):
            config.stored.keep(captured, config)
    return entry


def _left_plain(
    function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig, plain: Plain
) -> _hook.Entry | None:
    """Have the original run as was decided."""
    code = function.__code__
    if plain.reason:
        config.records.add_skip(name_of_call(function, args), place_of_call(function, args), plain.reason)
    if plain.until is Until.FOREVER:
        _hook.mark(code, "skip", config)
    elif plain.until is Until.AN_ENTRY_SERVES:
        _hook.mark(code, "frozen", config)
    return plain.entry


def _original_for_inputs(
    function: types.FunctionType,
    args: tuple[Any, ...],
    config: CaptureConfig,
    attempt: _Attempt,
    plain: Plain,
) -> _hook.Entry | None:
    """An entry that runs the original for arguments like these, whatever kept them from being captured."""
    reason = plain.reason
    code = function.__code__
    name, loc = name_of_call(function, args), place_of_call(function, args)
    if attempt.tracer is not None and attempt.tracer.breaks_are_errors:
        raise GraphBreakError(f"{demand(attempt.tracer)}, but {name} at {loc} cannot be captured: {reason}")
    config.records.add_skip(name, loc, reason)
    note_left(code, config)
    if attempt.tracer is not None:
        _guard_region(attempt.tracer)
        try:
            gated = gated_original(config, function)
            program = _guard_program(attempt.tracer, function, args)
            return _hook.Entry(program, gated, needs_hook=plain.calls, rank=RANK_ORIGINAL)
        except GuardRefused:
            pass
    _hook.mark(code, "skip", config)
    return None


def _capture(
    function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig, attempt: _Attempt
) -> Captured:
    decisions = Decisions(breaks=dict(config.failed_checks))
    code = function.__code__
    executed = 0
    for restarts in range(MAX_ATTEMPTS):
        if attempt.tracer is not None:
            attempt.tracer.close()
        tracer = attempt.tracer = Tracer(config, decisions, code)
        try:
            frame = root_frame(tracer, code, args, function)
            if config.function_of(code) is code and not config.is_loop_body(code):
                frame_readers.refuse_root(tracer, function, args)
            with span("capture", name_of_call(function, args), str(place_of_call(function, args))):
                end = machine.run_root(tracer, frame)
            captured = _finish(tracer, end, function, args)
            captured.record.restarts = restarts
            captured.record.executed = executed + tracer.instructions
            return captured
        except Restart:
            executed += tracer.instructions
    raise Skip(f"capture did not settle after {MAX_ATTEMPTS} attempts")


def _finish(tracer: Tracer, end: End, function: types.FunctionType, args: tuple[Any, ...]) -> Captured:
    code = function.__code__
    changed = [v.ref.var.name for v in tracer.mutated if isinstance(v, ArrayValue)]
    mutated = _mutated_inputs(tracer).union(changed)
    refuse_overlaps(tracer, mutated)
    _guard_aliasing(tracer, mutated)
    _refuse_error_modes(tracer)
    useful = bool(tracer.builder.nodes)
    refuse_idle(tracer, end, function, args)
    cg = Codegen(tracer, code)
    emit_end(cg, end)
    for value in tracer.may_raise:
        cg.graph_output(value)
    for number in tracer.may_raise_before:
        if not is_late(tracer, number):
            cg.number(number)
    generators.check_abandoned(tracer, cg)
    runs_plain = not is_worth_compiling(tracer, end, cg) and isinstance(end, ReturnEnd)
    name = name_of_call(function, args)
    graph, compiled = (None, None) if runs_plain else _compile_graph(tracer, cg, useful, name)
    refuse_fixed(tracer)
    if not isinstance(end, ReturnEnd):
        _guard_region(tracer)
    try:
        program = _guard_program(tracer, function, args)
    except GuardRefused:
        _break_at_refused(tracer, function, args)
        raise
    breaks = _break_records(tracer, end)
    loc = place_of_call(function, args)
    if graph is None and isinstance(end, ReturnEnd) and not tracer.config.options.capture_plain:
        tracer.config.note_plain_body(code)
        record = EntryRecord(
            name,
            loc,
            None,
            None,
            tuple(tracer.guards),
            "",
            breaks,
            instructions=tracer.instructions,
        )
        return Captured(function, args, _hook.Entry(program, payload=record), record)
    rank = RANK_COMPLETE if isinstance(end, ReturnEnd) else RANK_BROKEN
    fallback = Fallback(tracer.config, code, tracer.breaks_are_errors, tuple(tracer.presumed))
    replacement, text = build_function(cg, compiled, code, fallback)
    record = EntryRecord(
        name,
        loc,
        graph,
        compiled,
        tuple(tracer.guards),
        text,
        breaks,
        instructions=tracer.instructions,
        fallback=fallback,
    )
    needs_hook = calls_python(end)
    broken = not isinstance(end, ReturnEnd)
    trial = trial_of(tracer.config, code, broken, tracer.builder.nodes)
    entry = _hook.Entry(
        program,
        replacement,
        needs_hook=needs_hook,
        payload=record,
        rank=rank,
        moves=broken,
        trial=trial,
    )
    kind = "" if trial is None else type(trial).__name__
    signature = partial(signature_of, tracer, cg, end)
    return Captured(function, args, entry, record, cg.own, cg.plain, cg.reads, broken, kind, signature)


def _refuse_error_modes(tracer: Tracer) -> None:
    """Graphs raise and warn about no floating-point error: under modes that ask for more than a warning
    the original runs."""
    if "numpy-errstate" not in tracer.tx.assumptions:
        return
    if raises_floating_point_errors():
        raise Skip("np.errstate asks for exceptions or calls on floating-point errors")


# -- the graph ------------------------------------------------------------------------------------
def _mutated_inputs(tracer: Tracer) -> set[str]:
    """Names of graph inputs whose memory the graph writes."""
    root = {i.var.name: i.var.name for i in tracer.builder.inputs}
    written: set[str] = set()
    table = tracer.config.table
    for node in tracer.builder.nodes:
        if node.op == COPY:
            base = root.get(node.inputs[0].name)
            if base is not None:
                written.add(base)
        elif table[node.op].is_view:
            base = root.get(node.inputs[0].name)
            if base is not None:
                root[node.outputs[0].name] = base
    return written


def _compile_graph(tracer: Tracer, cg: Codegen, useful: bool, name: str) -> tuple[Graph | None, Any]:
    if not useful and not cg.outputs:
        return None, None
    mutates = bool(_mutated_inputs(tracer))
    if not cg.outputs and not mutates:
        _check_sizes(tracer, cg)
    outputs = tuple([_output(tracer, value, cg.outputs) for value in cg.outputs])
    _refuse_shared_on_host(tracer, cg)
    if not outputs and not mutates:
        return None, None
    graph = dataclasses.replace(tracer.builder.finish(outputs), name=_graph_name(name))
    owner = cg.owner()
    examples = tuple(
        owner.from_numpy(example) if owner is not None and is_of_numpy(value) else example
        for value, example in zip(tracer.inputs, _example_inputs(tracer), strict=True)
    )
    watch = (
        Watch.of(graph, tracer.config.table, "numpy-warnings" in tracer.tx.assumptions)
        if owner is None and tracer.config.warns
        else None
    )
    compiled = tracer.config.compile_graph(graph, tracer.config.options, examples, owner, watch)
    if watch is not None:
        watch.armed = True
    return graph, compiled


def _check_sizes(tracer: Tracer, cg: Codegen) -> None:
    """Have a graph of which nothing is used check what capture assumed of sizes that depend on the data."""
    for guard in tracer.env.unbacked_guards():
        for name in sorted(guard.expr.symbols()):
            if tracer.env.symbols[name].unbacked:
                cg.graph_output(definition(tracer, name)[0])


def _output(tracer: Tracer, value: ArrayValue, outputs: list[ArrayValue]) -> GraphOutput:
    ref = value.ref
    kind = "host" if ref.host else ref.kind
    readonly = ref.readonly and not ref.writeable_outside
    if not tracer.frontend(ref).is_spent(tracer.tx, ref):
        return GraphOutput(ref.var, kind, readonly=readonly)
    builder = tracer.builder
    sharing = sum(memory_of(builder, other.ref.var) == ref.var.name for other in outputs)
    stopped = tracer.tx.ops.stop_gradient(ref.var)
    if sharing == 1 and builder.producer(ref.var) is not None:
        stopped = tracer.tx.ops.copy(stopped)  # no view
    return GraphOutput(stopped, kind, readonly=readonly, spent=kind == "array")


def _refuse_shared_on_host(tracer: Tracer, cg: Codegen) -> None:
    """Results on the CPU of a graph on a device are copies: they must be memory of their own."""
    host = [v.ref.var for v in cg.outputs if v.ref.host]
    if not host:
        return
    roots = [memory_of(tracer.builder, var) for var in host]
    inputs = {inp.var.name for inp in tracer.builder.inputs}
    if len(set(roots)) < len(roots) or inputs.intersection(roots):
        raise Skip("tensors on the CPU that share memory beside tensors on a GPU")


def _graph_name(qualified: str) -> str:
    name = qualified.rpartition(".")[2]
    return name if name.isidentifier() else "graph"


def _example_inputs(tracer: Tracer) -> tuple[Any, ...]:
    examples: list[Any] = []
    for value in tracer.inputs:
        found = tracer.input_objects.get(value.ref.var.name) if isinstance(value, ArrayValue) else None
        examples.append(found if found is not None else getattr(value, "hint", None))
    return tuple(examples)


# -- guards -----------------------------------------------------------------------------------------
def _guard_aliasing(tracer: Tracer, mutated: set[str]) -> None:
    """Guard what was assumed of identity and overlap: only where something is written does it matter."""
    arrays = [
        v
        for v in tracer.inputs
        if isinstance(v, ArrayValue) and v.source is not None and v.ref.kind == "array"
    ]
    if mutated and any(isinstance(v.source, PartSource) for v in arrays):
        tracer.decisions.whole = True  # guards do not read parts
        raise tracer.restart
    if mutated and len(arrays) > 1:
        sources = tuple(v.memory_at for v in arrays)
        written = tuple(i for i, v in enumerate(arrays) if v.ref.var.name in mutated)
        tracer.guard(None, Kind.NO_OVERLAP, NoOverlap(sources, written))  # type: ignore[arg-type]
    changed = [v for v in tracer.mutated if isinstance(v, _MUTABLE)]
    others = [v for v, _ in tracer.by_id.values() if isinstance(v, _MUTABLE)]
    for value in changed:
        for other in others:
            if other is not value and other.pytype is value.pytype and other.source is not None:
                tracer.guard(value.source, Kind.NOT_SAME_OBJECT, other.source)
    objects = [v for v in others if isinstance(v, InstanceValue)]
    for value in changed:
        for other in objects:
            if isinstance(value, InstanceValue) and shares_namespace(other.cls, value.cls):
                if other.namespace is not value.namespace:
                    theirs = other.namespace.dict_source()
                    tracer.guard(value.namespace.dict_source(), Kind.NOT_SAME_OBJECT, theirs)


def _guard_program(tracer: Tracer, function: types.FunctionType, args: tuple[Any, ...]) -> Any:
    guards = list(tracer.guards)
    bindings = {
        name: SymBinding(name, place.source, f"t{place.what}" if place.tensor else place.what, place.axis)
        for name, place in tracer.places.items()
        if place.source is not None
    }
    scale = {name: place.itemsize for name, place in tracer.places.items() if place.what == "stride"}
    for recorded in tracer.env.guards:
        if tracer.is_computed(recorded.expr):
            continue  # checked by the replacement itself
        condition = SymCondition.of(recorded, bindings)
        where = tracer.env.origins.get(recorded.key)
        guards.append(Guard(None, Kind.SYM, _strides_in_elements(condition, scale), where))
    guards += [guard for objects in tracer.distinct for guard in objects.guards()]
    guards += guards_of_unknown_results(tracer)
    if "numpy-errstate" in tracer.tx.assumptions:
        mask = _hook.errstate()
        if mask is not None:
            guards.append(Guard(None, Kind.ERRSTATE, mask))
    tracer.guards = _state_guards(tracer) + guards + _guards_of_definitions(tracer)
    env = (args, function.__globals__, builtins_of(function), function.__closure__)
    return compile_guards(tracer.guards, env=env)


def _break_at_refused(tracer: Tracer, function: types.FunctionType, args: tuple[Any, ...]) -> None:
    """Begin again, and break the graph where the guard that C cannot check was asked for."""
    env = (args, function.__globals__, builtins_of(function), function.__closure__)
    for guard in tracer.guards:
        try:
            compile_guards([guard], env=env)
        except GuardRefused as problem:
            _, code, index = tracer.guard_places.get(id(guard), (guard, None, 0))
            if code is None or (code, index) in tracer.decisions.breaks:
                return
            tracer.decisions.breaks[code, index] = Break("unsupported-attribute", f"a guard {problem}")
            raise tracer.restart from None


def _guard_region(tracer: Tracer) -> None:
    """Graph breaks were allowed here: where they are not, the capture has to say so."""
    expected = (tracer.error_regions[0], tracer.config.options.fullgraph)
    tracer.guard(None, Kind.REGION, expected)


def _state_guards(tracer: Tracer) -> list[Guard]:
    """Guards of the libraries' global state."""
    states = dict(tracer.tx.states)
    for frontend in tracer.config.frontends:
        state = frontend.state_guard() if state_assumption(frontend) in tracer.tx.assumptions else None
        if state is not None:
            states[frontend.name] = state
    return [
        Guard(
            ConstSource(None, name), Kind.CUSTOM_ARRAY, CustomCheck(state.check, state.expected, state.text)
        )
        for name, state in states.items()
    ]


def _guards_of_definitions(tracer: Tracer) -> list[Guard]:
    """Guards of the classes of the program that capture asked for attributes, and of members of libraries."""
    modules = [Guard(None, Kind.MODULE, ModuleFacts(*found)) for found in tracer.relied_members.values()]
    return modules + [
        Guard(None, Kind.CLASS, ClassFacts.of(cls, names))
        for cls, names in tracer.relied.values()
        if may_change(cls) and not tracer.config.is_trusted(module_of(cls))
    ]


def _strides_in_elements(condition: SymCondition, scale: dict[str, int]) -> SymCondition:
    """C reads strides of NumPy arrays in bytes; conditions speak of elements."""
    if not any(b.what == "stride" for b in condition.bindings):
        return condition
    program: list[int | str] = []
    for item in condition.program:
        program.append(item)
        if isinstance(item, str) and item in scale:
            program += [scale[item], "floordiv"]
    return dataclasses.replace(condition, program=tuple(program))


# -- records ------------------------------------------------------------------------------------------
def _break_records(tracer: Tracer, end: End) -> tuple[BreakRecord, ...]:
    if isinstance(end, ReturnEnd):
        return ()
    stack = tuple(frame.loc for frame in end.frames)
    if isinstance(end, BreakEnd):
        return (BreakRecord(end.problem.break_id, end.problem.reason, stack[-1], stack),)
    if isinstance(end, LoopEnd):
        body = known_body(tracer.config, end.frames[-1], end.loop)
        plain = body is not None and tracer.config.is_plain_body(body.code)
        how = "left to plain Python: too little array work in it" if plain else "that is not unrolled"
        how += f" (the break inside: {end.inside})" if end.inside and not plain else ""
        if end.is_native:
            how = "over single numbers, compiled as a whole when it runs for long"
        return (BreakRecord("loop", f"a {end.loop.kind} loop {how}", stack[-1], stack),)
    return (BreakRecord("loop-not-extracted", end.reason, stack[-1], stack),)
