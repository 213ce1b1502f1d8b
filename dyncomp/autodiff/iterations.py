"""Iterations of loops on the tape: each a compiled graph, and one node.

A loop that runs long enough has its body captured as one graph, whose inputs are tracked values (capture
knows them as what they hold, see ``CaptureConfig.holder``). Its forward half runs at each iteration, and the
tape keeps what the backward half needs. The time to compile it does not depend on the number of iterations.
Bodies that are no single graph run as plain Python, and their inner loops in turn by iterations.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import pipeline
from ..aot_autograd.expand import expand
from ..aot_autograd.functionalize import functionalize
from ..aot_autograd.pair import gradient_pair
from ..api import SESSION
from ..build.toolchain import Runner
from ..capture.entries.config import CaptureConfig
from ..errors import GraphBreakError, LoweringError, NotDifferentiableError, ToolchainError, Unsupported
from ..frontends.base import ArrayOwner, GradientPair, OutputView
from ..frontends.derivatives import PLAIN, Recorder
from ..graph.ir import Graph
from ..hook import _hook
from ..options import Options, make_options
from ..pipeline import Compiled
from ..python_code.branch_cut import CUT, cut_at_branch, is_idle
from ..python_code.loop_calls import with_loop_calls
from ..python_code.loops import LoopBody
from .operations import Layout, Operation
from .recording import lost, place, slot_of
from .runs import DifferentiableGraph, RunNode, size
from .tape import Array, CallNode, Kept, Slot, Tape
from .tracked import Tracked, before_write, fresh, number, view_of, write, wrote

# Seconds that the iterations of a loop take as plain Python before it is compiled: about what that takes.
PATIENCE = 0.1
# Calls of a backward graph before it is compiled: that of the last iteration is often another.
TRIALS = 8
_MOST_IDLE = 4
_MOST_STEPS, _MOST_OPS = 64, 2000  # of loops inside of a body, which are unrolled


class _Running(threading.local):
    """The tape of the iteration that runs in this thread, and whether a graph ran."""

    tape: Tape | None = None
    ran = False


_RUNNING = _Running()


class _Refused(NotDifferentiableError):
    """A body's graph cannot be differentiated as one."""


_BRANCH = "data-dependent-branch"

# bodies with stand-ins, and what they are without, by the identity of their code
_ORIGINALS: dict[int, tuple[types.CodeType, types.CodeType]] = {}


def with_iterations(code: types.CodeType, function: types.FunctionType) -> types.CodeType:
    """``code``, that of a function with stand-ins, its loops run by :class:`Iterations`."""
    _, original = _ORIGINALS.get(id(function.__code__), (None, function.__code__))
    bodies: list[LoopBody] = []
    with_loop_calls(original, bodies.append)
    rest = iter(bodies)
    return with_loop_calls(code, lambda body: Iterations(body, next(rest, body), function.__globals__))


class Iterations:
    """What runs the iterations of a loop, in place of its ``body``, which has stand-ins; ``original`` has
    none. Functions with cells are made by :meth:`bind` where the loop is entered."""

    def __init__(self, body: LoopBody, original: LoopBody, names: dict[str, Any]) -> None:
        self.codes = body.plain_code(), original.plain_code()
        _ORIGINALS[id(self.codes[0])] = self.codes
        self.names = names
        self.spent = 0.0
        self.compiled = 0
        self.worked = False  # a graph ran in one of the ``compiled`` iterations
        self.is_plain = (body.args, body.returns) != (original.args, original.returns)
        self.last: _Part | None = None if body.freevars else self._part(())  # that ran, or will

    def bind(self, cells: tuple[types.CellType, ...]) -> Callable[..., Any]:
        self.last = part = self._part(cells)
        return functools.partial(self._run, part)

    def _part(self, cells: tuple[types.CellType, ...]) -> _Part:
        plain, original = self.codes
        return _Part(plain, original, self.names, cells)

    def __call__(self, *args: Any) -> Any:
        assert self.last is not None
        return self._run(self.last, *args)

    def _run(self, part: _Part, *args: Any) -> Any:
        recorder = PLAIN.recorder
        if recorder is None:
            return part.whole(*args)
        tape: Tape = recorder.tape  # type: ignore[attr-defined]
        tape.loops[self] += 1
        if self.is_plain:
            return part.whole(*args)
        if self.spent < PATIENCE:
            start = time.perf_counter()
            try:
                return part.whole(*args)
            finally:
                self.spent += time.perf_counter() - start
        running = _RUNNING
        before, running.ran = running.ran, False
        try:
            result = part.run(args, recorder)
        finally:
            ran, running.ran = running.ran, before
        self.worked |= ran
        self.compiled += 1
        self.is_plain = not self.worked and self.compiled >= _MOST_IDLE
        return result

    def __str__(self) -> str:
        place = f"{self.codes[0].co_filename}:{self.codes[0].co_firstlineno}"
        text = f"a loop of {self.codes[0].co_name} at {place}"
        parts = self.last.parts() if self.last is not None else []
        if self.is_plain or self.spent < PATIENCE or all(part.is_plain for part in parts):
            how = f"{text}, call by call"
            return f"{how}: {parts[0].refusal}" if parts and parts[0].refusal else how
        refused = [part.refusal for part in parts if part.refusal]
        count = sum([not part.is_plain for part in parts])
        how = f"{text}, its body compiled" + (f" in {count} parts" if count > 1 else "")
        return f"{how}, {len(refused)} call by call: {refused[0]}" if refused else how


class _Part:
    """A body; where it branches on data, the part of one up to a branch, and what comes after (``rest``)."""

    def __init__(
        self, plain: types.CodeType, original: types.CodeType, names: dict[str, Any], cells: tuple[Any, ...]
    ) -> None:
        self.names = names
        self.cells = cells
        self.whole = self._function(plain)  # this part and the rest, as plain Python
        self.lock = threading.Lock()
        self.rest: _Part | None = None
        self.tested = 0  # which of the values for the rest the branch is on
        self.refusal = ""  # why it is not compiled
        self._set(original, self.whole)

    def _function(self, code: types.CodeType) -> types.FunctionType:
        return types.FunctionType(code, self.names, code.co_name, None, self.cells)

    def _set(self, code: types.CodeType, plain: types.FunctionType) -> None:
        self.code = code
        self.plain = plain
        self.is_plain = is_idle(code)
        self.compiled = _hook.Dispatcher(self._function(code), _config())

    def parts(self) -> list[_Part]:
        return [self, *(self.rest.parts() if self.rest is not None else ())]

    def run(self, args: tuple[Any, ...], recorder: Recorder) -> Any:
        part = self
        while True:
            result = part._run(args, recorder)
            rest = part.rest
            if rest is None or result[0] != CUT:
                return result
            tested = result[part.tested]
            if type(tested) is np.bool_ or type(tested) is Tracked:
                tested = bool(tested)  # a constant of what comes next
            args = (*result[1 : part.tested], tested, *result[part.tested + 1 :])
            part = rest

    def _run(self, args: tuple[Any, ...], recorder: Recorder) -> Any:
        while not self.is_plain:
            running = _RUNNING
            before, running.tape = running.tape, recorder.tape  # type: ignore[attr-defined]
            active = _hook.set_active(None)
            PLAIN.recorder = None
            code = self.code
            try:
                return self.compiled(*args)
            except (GraphBreakError, _Refused) as error:
                if not self._cut(code, error):
                    self.is_plain, self.refusal = True, str(error).partition("\n")[0]
            finally:
                running.tape = before
                PLAIN.recorder = recorder
                _hook.set_active(active)
        return self.plain(*args)

    def _cut(self, code: types.CodeType, error: GraphBreakError | _Refused) -> bool:
        """Whether the part with this code is another now, which ends where it could not be captured."""
        with self.lock:
            if self.code is not code:
                return True
            if not isinstance(error, GraphBreakError) or error.break_id != _BRANCH or self.cells:
                return False
            place = error.place
            if place is None or place[0] is not code:
                return False
            tested = self.tested
            try:
                first, rest, self.tested = cut_at_branch(code, place[1])
            except Unsupported:
                return False
            made = _Part(rest, rest, self.names, ())
            made.rest, made.tested, self.rest = self.rest, tested, made
            self._set(first, self._function(first))
            return True


@functools.cache
def _config() -> CaptureConfig:
    options = {"measure": False, "patience_us": 0, "unroll_limit": _MOST_STEPS, "unroll_ops": _MOST_OPS}
    config = SESSION.new_config(make_options(fullgraph=True, options=options))
    config.compile_graph = _compile
    config.holder = Tracked, "plain"
    config.pins_trip_counts = True
    config.make_native = None  # loops over numbers are no nodes
    return config


def _compile(
    graph: Graph, options: Options, examples: Sequence[Any], owner: ArrayOwner | None, on_status: object
) -> Compiled:
    """What capture calls with the graph of an iteration."""
    if owner is not None:
        raise _Refused("it works on arrays that are not NumPy's")
    table = pipeline.op_table()
    whole = expand(functionalize(graph, table), table)
    wrt = [k for k, given in enumerate(whole.inputs) if given.differentiated]
    halves: list[Compiled] = []

    def compile_half(half: Graph, is_forward: bool, runner: Runner | None) -> Callable[..., Any]:
        if not is_forward:
            return _Trial(half, options)
        halves.append(pipeline.run_pipeline(half, options, examples, None, None))
        return halves[0].call

    try:
        pair = (
            gradient_pair(whole, table, wrt, compile_half, kinds=("array", "scalar", "python"))
            if wrt
            else None
        )
        if pair is None:
            compiled = pipeline.run_pipeline(whole, options, examples, None, None)
            compiled.call = _Constant(compiled.call, whole)
            return compiled
        compiled = halves[0]
        compiled.call = _Piece(pair, whole)
    except (Unsupported, LoweringError, ToolchainError) as error:
        raise _Refused(str(error)) from error
    return compiled


class _Trial:
    """A backward graph, which is interpreted at first."""

    def __init__(self, graph: Graph, options: Options) -> None:
        self.graph = graph
        self.options = options
        self.calls = 0
        self.layout = Layout(graph)
        self.run = pipeline.run_pipeline(graph, make_options(backend="eager", dynamic=False)).call

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        if self.calls == TRIALS:
            with contextlib.suppress(Unsupported, LoweringError, ToolchainError):  # interpreted for good
                self.run = pipeline.run_pipeline(self.graph, self.options).call
        return self.run(*self.layout(args))


def _written(graph: Graph) -> tuple[int, ...]:
    return tuple(index for index, _ in graph.mutations)


class _Constant:
    """A graph without derivatives. Arrays that it makes may be written to by what has some."""

    def __init__(self, run: Callable[..., Any], graph: Graph) -> None:
        self.run = run
        self.written = _written(graph)

    def __call__(self, *inputs: Any) -> Any:
        _RUNNING.ran = True
        tape = _RUNNING.tape
        assert tape is not None
        for index in self.written:
            if type(inputs[index]) is Tracked:
                before_write(inputs[index])
        results = self.run(*[x.plain if type(x) is Tracked else x for x in inputs])
        for index in self.written:
            if type(inputs[index]) is Tracked:
                wrote(inputs[index], None)
        if isinstance(results, (tuple, list)):
            return tuple([_owned(tape, r) for r in results])
        return _owned(tape, results)


def _owned(tape: Tape, result: Any) -> Any:
    if type(result) is np.ndarray and result.flags.owndata:
        return fresh(tape, result, None)
    return result


class _Piece:
    """A graph with derivatives, which appends a node for each run."""

    def __init__(self, pair: GradientPair, graph: Graph) -> None:
        self.pair = pair
        self.targets = {index for index, _ in pair.written}
        self.silent = tuple(set(_written(graph)) - self.targets)
        self.needed = tuple(k for of_input, k in pair.saved if of_input)
        self.single = len(pair.returned) == 1
        self.operations: dict[tuple[int, ...], Operation] = {}
        visible = tuple(k for k in pair.differentiable if k < pair.count)
        self.graph = DifferentiableGraph(
            pair, functools.cache(pair.backward), visible, not self.silent, Layout(graph)
        )
        bases = [r.index for r in pair.returned if isinstance(r, OutputView) and r.of_input]
        if any(not graph.inputs[k].differentiated for k in bases):
            raise Unsupported("a view of an array without a derivative")

    def __call__(self, *inputs: Any) -> Any:
        running, pair = _RUNNING, self.pair
        running.ran = True
        tape = running.tape
        assert tape is not None
        slots = [slot_of(x) if type(x) is Tracked else None for x in inputs]
        plain = [x.plain if type(x) is Tracked else x for x in inputs]
        is_live = any(slot is not None for slot in slots)
        if is_live and any(type(inputs[index]) is not Tracked for index in self.targets):
            raise lost(tape, "a write to an array that the tape does not know")
        kept: list[Any] = [None] * len(inputs)
        if is_live:
            for k in range(len(inputs)) if tape.again or tape.budget is not None else self.needed:
                kept[k] = _kept(tape, inputs[k])
        written = [inputs[index] for index in self.silent if type(inputs[index]) is Tracked]
        for target in written:
            before_write(target)
        results = pair.forward(*plain)
        for target in written:
            wrote(target, None)
        outs: dict[int, Slot] = {}
        if is_live:
            for k in self.graph.visible:
                outs[k] = Slot(np.shape(results[k]), np.asarray(results[k]).dtype)
        made: list[Any] = [self._made(tape, results[k], outs.get(k)) for k in range(pair.count)]
        if outs and tape.again:
            wrt = tuple([k for k, slot in enumerate(slots) if slot is not None])
            given = [slot for slot in slots if slot is not None]
            tape.append(CallNode(self._operation(wrt), kept, given, list(outs.values()), place()))
        elif outs:
            saved = [
                kept[k] if of_input else _kept(tape, made[k]) if k < pair.count else results[k]
                for of_input, k in pair.saved
            ]
            symbols = pair.symbols(plain, results) if pair.symbols is not None else None
            node = RunNode(self.graph, slots, outs, saved, None if tape.budget is None else kept, symbols)
            tape.append(node)
            if tape.budget is not None:
                node.bytes = size(results)
                tape.budget.add(tape.nodes, node)
        for index, k in pair.written:
            self._write(inputs[index], made[k])
        returned = tuple(
            [made[r] if isinstance(r, int) else self._view(r, inputs, made, results) for r in pair.returned]
        )
        return returned[0] if self.single else returned

    def _operation(self, wrt: tuple[int, ...]) -> Operation:
        """For derivatives of any order and mode."""
        found = self.operations.get(wrt)
        if found is None:
            assert self.pair.source is not None
            graph = replace(self.pair.source.plain, mutations=())
            found = Operation.of_graph("a loop's iteration", graph, wrt, self.graph.visible, TRIALS)
            self.operations[wrt] = found
        return found

    def _made(self, tape: Tape, result: Any, slot: Slot | None) -> Any:
        if isinstance(result, np.ndarray):
            return fresh(tape, result, slot)
        return result if slot is None else number(tape, result, slot)

    def _write(self, target: Any, made: Any) -> None:
        if type(target) is Tracked:
            write(target, made)
        else:
            target[...] = made.plain

    def _view(
        self, view: OutputView, inputs: Sequence[Any], made: Sequence[Any], results: Sequence[Any]
    ) -> Any:
        base = inputs[view.index] if view.of_input else made[view.index]
        result = view_of(base.tape, base.storage.at(base.plain, *view.window(results)), [base])
        result.stopped |= view.stopped
        return result


def _kept(tape: Tape, x: Any) -> Array | Kept:
    if type(x) is Tracked:
        return x.plain if x.storage is None else x.storage.keep(x.plain)
    return tape.constant(x) if isinstance(x, np.ndarray) else x
