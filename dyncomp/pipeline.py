"""The journey of a captured graph, as one list of named passes (DESIGN §2), and the backends.

``options.stop_after`` names a pass after which the rest is left out; the graph reached so far is then
interpreted, which is how the bisector finds the pass that breaks a program.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from .aot_autograd.again import expand_in_time
from .aot_autograd.expand import expand, has_markers, with_gradients
from .aot_autograd.functionalize import functionalize
from .aot_autograd.pair import consuming, gradient_pair
from .build.toolchain import Runner
from .collector import few_collections
from .dataclass import dataclass, field
from .device import CPU
from .errors import LoweringError, NotDifferentiableError, ToolchainError, Unsupported
from .frontends.base import ArrayOwner, GradientPair
from .graph.interp import as_callable
from .graph.ir import ArrayType, Graph, OpTable, verify
from .graph.noted import NOTED
from .graph.passes.cse import eliminate_common_subexpressions
from .graph.passes.dce import eliminate_dead_code
from .graph.passes.decompose import decompose
from .graph.passes.factors import share_factors
from .graph.passes.fold import fold_constants
from .graph.passes.order import delay_updates
from .graph.passes.outputs import own_outputs
from .graph.passes.rewrite_rules import simplify
from .options import Options
from .prims.opdef import OpDef
from .report.dump import Dump
from .runtime import _launch
from .signals import is_from_handler
from .spans import span
from .staging.cut import has_stages
from .staging.run import CompileStage, StagedGraph

log = logging.getLogger("dyncomp.pipeline")


def _run_together(functions: list[Callable[[], None]]) -> None:
    """Library calls of a compiled graph, which may run at the same time."""
    from .tasks.pool import POOL

    POOL.run_together(functions)


_launch.set_task_runner(_run_together)


@dataclass(frozen=True)
class Pass:
    """A named step from graph to graph."""

    name: str
    run: Callable[[Graph, OpTable], Graph]
    doc: str


PASSES: tuple[Pass, ...] = (
    Pass("functionalize", functionalize, "views and in-place writes become pure values and mutations"),
    Pass("expand", expand_in_time, "markers of derivatives become the derivatives"),
    Pass("decompose", decompose, "composites become prims"),
    Pass("fold", fold_constants, "nodes of constants are computed"),
    Pass("simplify", simplify, "rules that are exact in IEEE arithmetic"),
    Pass("cse", eliminate_common_subexpressions, "equal expressions are computed once"),
    Pass("factors", share_factors, "a matrix that is solved with repeatedly is factored once"),
    Pass("dce", eliminate_dead_code, "values that nothing uses are not computed"),
    Pass("order", delay_updates, "writes to inputs come after what may raise"),
    Pass("own", own_outputs, "every output and mutation gets a value of its own"),
)

# After the graph passes; its own passes are listed in inductor.compile.
BACKEND_PASS = "inductor"


@dataclass
class Compiled:
    """A graph made runnable.

    ``call(*inputs, *integers)`` returns the visible outputs: the bare value where there is one, else a
    tuple (``()`` for none). ``graph_before`` is as captured, ``graph_after`` as the backend got it.
    ``artifact``: what the backend returned (for the inductor: kernels, source, plan). ``seconds`` and
    ``nodes``: the time of each pass and how many nodes there were after it. ``owner``: of the arrays;
    ``heard``: the inputs of which it is told that they were written. ``halves``: of a graph with gradients,
    its compiled graphs (:func:`half_compiler`).
    """

    call: Callable[..., Any]
    graph_before: Graph
    graph_after: Graph
    backend: str
    artifact: Any = None
    seconds: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    examples: Sequence[Any] = ()  # inputs to tune on, while compiling only
    on_status: Any = None
    runner: Runner | None = None
    gradients: GradientPair | None = None
    owner: ArrayOwner | None = None
    heard: tuple[int, ...] = ()
    num_threads: int = 0
    halves: dict[int, Compiled] = field(default_factory=dict)

    def describe(self) -> str:
        """Passes with node counts and milliseconds, one line each."""
        lines = [f"{'captured':<14}{len(self.graph_before.nodes):>6} nodes"]
        for name, seconds in self.seconds.items():
            count = f"{self.nodes[name]:>6} nodes" if name in self.nodes else " " * 12
            lines.append(f"{name:<14}{count}{seconds * 1e3:>10.2f} ms")
        return "\n".join(lines)


def op_table(owner: ArrayOwner | None = None) -> Mapping[str, OpDef]:
    """The table of all ops (imported at first use), with the routines of the arrays' library."""
    from .prims.table import TABLE, table_with

    return TABLE if owner is None else table_with(owner.routines)


def run_passes(
    graph: Graph,
    table: OpTable,
    options: Options,
    on_pass: Callable[[str, Graph, float], None] | None = None,
) -> Graph:
    """Run :data:`PASSES` up to ``options.stop_after``, each verified under ``options.debug_verify``."""
    NOTED.errors = 0
    for step in PASSES:
        start = time.perf_counter()
        with span("pass", step.name):
            graph = step.run(graph, table)
        if options.debug_verify:
            _verify_after(step.name, graph, table)
        if on_pass is not None:
            on_pass(step.name, graph, time.perf_counter() - start)
        if options.stop_after == step.name:
            break
    return graph


def _verify_after(name: str, graph: Graph, table: OpTable) -> None:
    try:
        verify(graph, table)
    except Exception as error:
        error.add_note(f"after the pass {name!r}")
        raise


# -- backends ---------------------------------------------------------------------------------
Backend = Callable[[Graph, OpTable, Options, "ArrayOwner | None", Compiled], None]


def _eager(
    graph: Graph, table: OpTable, options: Options, owner: ArrayOwner | None, compiled: Compiled
) -> None:
    """Interpret the functional graph with NumPy, without decomposing anything."""
    compiled.graph_after = _timed(
        compiled, "functionalize", lambda: expand(functionalize(graph, table), table)
    )
    Dump(options.dump, graph).graph("functionalize", compiled.graph_after)
    if options.debug_verify:
        _verify_after("functionalize", compiled.graph_after, table)
    compiled.call = _on_numpy(as_callable(compiled.graph_after, table), owner)


def _inductor(
    graph: Graph, table: OpTable, options: Options, owner: ArrayOwner | None, compiled: Compiled
) -> None:
    """All passes, then C++ (or Triton) code."""
    dump = Dump(options.dump, graph)

    def note(name: str, reached: Graph, seconds: float) -> None:
        compiled.graph_after = reached
        compiled.seconds[name] = seconds
        compiled.nodes[name] = len(reached.nodes)
        dump.graph(name, reached)

    if has_stages(graph, table):
        _staged(graph, table, options, owner, compiled)
        return
    # what would have defined the others was not used
    graph = replace(graph, symbols=tuple(symbol for symbol in graph.symbols if symbol.kind != "node"))
    final = run_passes(graph, table, options, note)
    if options.stop_after in {step.name for step in PASSES}:
        compiled.call = _on_numpy(as_callable(final, table), owner)
        return
    from .inductor.compile import compile_graph

    examples = compiled.examples
    on_status = _telling(compiled.on_status)
    compiled.artifact = _timed(
        compiled,
        BACKEND_PASS,
        lambda: compile_graph(final, options, owner, examples, dump.source, on_status, compiled.runner),
    )
    dump.artifact(compiled.artifact, options, owner, examples)
    compiled.call = compiled.artifact.call


def _telling(on_status: Any) -> Any:
    """What is told of floating-point errors, once it knows of those in the constants of a graph."""
    if on_status is not None:
        on_status.always = NOTED.errors
    return on_status


def _staged(
    graph: Graph, table: OpTable, options: Options, owner: ArrayOwner | None, compiled: Compiled
) -> None:
    """A graph in which sizes depend on the data: in several launches behind one call."""
    parts = Stages()
    whole = expand(functionalize(graph, table), table)
    for tidy in (simplify, eliminate_common_subexpressions, eliminate_dead_code):
        # before the cut, which makes values of all that later stages read
        whole = tidy(whole, table)
    compiled.graph_after = whole
    compiled.artifact = parts
    compile_stage = stage_compiler(parts, table, options, owner, compiled.on_status)
    examples, strict = compiled.examples, options.strict
    compiled.call = parts.graph = _timed(
        compiled, BACKEND_PASS, lambda: StagedGraph(whole, table, owner, compile_stage, examples, strict)
    )


def stage_compiler(
    parts: Stages, table: OpTable, options: Options, owner: ArrayOwner | None, on_status: Any
) -> CompileStage:
    """What compiles the stages of a graph, and notes in ``parts`` what it made of them."""

    def compile_stage(stage: Graph, examples: Sequence[Any]) -> Callable[..., Any]:
        from .inductor.compile import compile_graph

        dump = Dump(options.dump, stage)
        final = run_passes(stage, table, options, lambda name, reached, _: dump.graph(name, reached))
        if options.stop_after in {step.name for step in PASSES}:
            return _on_numpy(as_callable(final, table), owner)
        artifact = compile_graph(final, options, owner, examples, dump.source, _telling(on_status))
        dump.artifact(artifact, options, owner, examples)
        parts.artifacts.append(artifact)
        return artifact.call

    return compile_stage


@dataclass
class Stages:
    """What the backend made of the stages that were compiled so far."""

    artifacts: list[Any] = field(default_factory=list)
    graph: StagedGraph | None = None

    @property
    def kernels(self) -> list[Any]:
        return [kernel for artifact in self.artifacts for kernel in artifact.kernels]

    def describe(self) -> str:
        return "\n".join(artifact.describe() for artifact in self.artifacts)


def _timed(compiled: Compiled, name: str, run: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    with span("pass", name):
        result = run()
    compiled.seconds[name] = time.perf_counter() - start
    return result


# Cores from which the backward graph is compiled beside the forward graph: with fewer, the first forward call
# would take up to twice as long.
AHEAD_CORES = 4

_BACKENDS: MappingProxyType[str, Backend] = MappingProxyType({"eager": _eager, "inductor": _inductor})


def list_backends() -> list[str]:
    """Names that ``dyncomp.compile(backend=...)`` accepts besides a callable."""
    return sorted(_BACKENDS)


def run_pipeline(
    graph: Graph,
    options: Options,
    example_inputs: Sequence[Any] = (),
    owner: ArrayOwner | None = None,
    on_status: object = None,
) -> Compiled:
    """Make a captured graph runnable with ``options.backend``.

    ``owner``: how arrays are read and made where they are not NumPy's. ``on_status``: what the launcher
    tells of floating-point errors (``LaunchPlan``).

    A callable backend gets ``(captured graph, example inputs)`` and returns a callable of the graph's
    inputs and integers that returns the list of outputs, as ``graph.interp.Interpreter(graph, table).run``
    does. Raises ``Unsupported``, ``LoweringError`` or ``ToolchainError`` where the graph cannot be
    compiled: the caller then runs the original function. ``ValueError`` for an unknown backend or pass.
    """
    check_options(options)
    table = op_table(owner)
    if options.debug_verify:
        _verify_after("capture", graph, table)
    wrt = [k for k, inp in enumerate(graph.inputs) if inp.differentiated]
    if wrt and options.numerics == "strict":
        raise Unsupported("derivatives are the library's own under numerics='strict'")
    if wrt and owner is not None and owner.autograd is not None:
        compiled = _with_gradients(graph, table, options, example_inputs, owner, wrt)
        if compiled is None:
            compiled = _compile(graph, table, options, example_inputs, owner, on_status)
        spent = [k for k, out in enumerate(graph.outputs) if out.spent]
        if spent:
            compiled.call = owner.autograd.spent(compiled.call, spent, len(graph.outputs))
        return compiled
    return _compile(graph, table, options, example_inputs, owner, on_status)


def _with_gradients(
    graph: Graph,
    table: Mapping[str, OpDef],
    options: Options,
    example_inputs: Sequence[Any],
    owner: ArrayOwner,
    wrt: Sequence[int],
) -> Compiled | None:
    """The graph as a function with derivatives that the arrays' library knows of; ``None`` if none is due."""
    halves: dict[int, Compiled] = {}
    # derivatives go through the markers of the functional graph
    spare = len(os.sched_getaffinity(0)) >= AHEAD_CORES
    ahead = spare and graph.device == CPU and options.mode == "default" and not options.dump
    try:
        asked = with_gradients(functionalize(graph, table), table)
    except NotDifferentiableError as error:
        raise Unsupported(str(error)) from error
    compile_half = half_compiler(table, options, owner, halves, example_inputs)
    pair = gradient_pair(asked, table, wrt, compile_half, ahead=ahead)
    if pair is None:
        return None
    if pair.written and any(out.spent for out in graph.outputs):
        raise Unsupported("backward() beside a write to an input that gives it a history")
    assert owner.autograd is not None
    compiled = halves[0]
    compiled.graph_before, compiled.halves = graph, halves
    compiled.call = owner.autograd.function(pair)
    compiled.gradients = pair
    return compiled


def half_compiler(
    table: Mapping[str, OpDef],
    options: Options,
    owner: ArrayOwner,
    halves: dict[int, Compiled],
    examples: Sequence[Any] = (),
) -> Callable[[Graph, bool, Runner | None], Callable[..., Any]]:
    """What compiles the graphs of a pair, and puts them into ``halves`` by the ids of their calls, the first
    forward graph also as 0. ``examples``: inputs of the forward graph."""

    def compile_half(half: Graph, is_forward: bool, runner: Runner | None) -> Callable[..., Any]:
        made = _compile(half, table, options, examples if is_forward else (), owner, None, runner)
        if is_forward:
            halves.setdefault(0, made)
        if options.warm_start:
            halves[id(made.call)] = made
        return made.call

    return compile_half


def _compile(
    graph: Graph,
    table: Mapping[str, OpDef],
    options: Options,
    example_inputs: Sequence[Any],
    owner: ArrayOwner | None,
    on_status: object,
    runner: Runner | None = None,
) -> Compiled:
    compiled = Compiled(_not_compiled, graph, graph, _backend_name(options))
    if callable(options.backend):
        if has_markers(graph, table):
            graph = expand(functionalize(graph, table), table)
        examples = example_inputs if owner is None else [owner.to_numpy(x) for x in example_inputs]
        _run_custom(options.backend, graph, examples, compiled)
        compiled.owner = owner
        compiled.call = report_writes(_on_numpy(compiled.call, owner), owner, _written(graph, table))
        return compiled
    compiled.examples = example_inputs
    compiled.on_status = on_status
    compiled.runner = runner
    try:
        with few_collections():
            _BACKENDS[options.backend](graph, table, options, owner, compiled)
    except (LoweringError, ToolchainError) as error:
        error.add_note(f"while compiling {graph.name} with {options.backend!r}: the original runs instead")
        raise
    finally:
        compiled.examples = ()
        compiled.runner = None
    compiled.owner, compiled.heard = owner, _heard(compiled.graph_after)
    compiled.num_threads = options.num_threads
    compiled.call = report_writes(compiled.call, owner, compiled.heard)
    return compiled


def _check_device(graph: Graph, table: OpTable, options: Options) -> None:
    """Arrays on a GPU are for the inductor as a whole; what runs graphs with NumPy cannot take them."""
    if graph.device == CPU:
        return
    if options.backend != "inductor" or options.stop_after not in ("", BACKEND_PASS):
        raise LoweringError(f"arrays on {graph.device} with the backend {_backend_name(options)}")
    if has_stages(graph, table):
        raise LoweringError(f"sizes that depend on the data of arrays on {graph.device}")


def _on_numpy(call: Callable[..., Any], owner: ArrayOwner | None) -> Callable[..., Any]:
    """``call``, which takes and returns NumPy arrays, for the owner's arrays (memory is shared)."""
    if owner is None:
        return call

    def converting(*args: object) -> Any:
        results = call(*(owner.to_numpy(a) for a in args))
        if isinstance(results, (tuple, list)):
            return tuple(owner.from_numpy(r) for r in results)
        return owner.from_numpy(results)

    return converting


def _written(graph: Graph, table: OpTable) -> tuple[int, ...]:
    return _heard(functionalize(graph, table))


def _heard(graph: Graph) -> tuple[int, ...]:
    """The inputs that the library's derivatives are told that they are written."""
    return tuple(index for index, _ in graph.mutations if not graph.inputs[index].unheard)


def report_writes(
    call: Callable[..., Any], owner: ArrayOwner | None, written: tuple[int, ...]
) -> Callable[..., Any]:
    """``call``, telling the owner which of its arrays were written."""
    if owner is None or not written:
        return call
    return _Reporting(call, consuming(call), owner.wrote, written)


class _Reporting:
    def __init__(
        self,
        call: Callable[..., Any],
        consume: Callable[[list[Any]], Any],
        wrote: Callable[[Any], None],
        written: tuple[int, ...],
    ) -> None:
        self._call = call
        self._consume = consume
        self._wrote = wrote
        self._written = written

    def __call__(self, *args: object) -> Any:
        results = self._call(*args)
        self._wrote([args[index] for index in self._written])
        return results

    def consume(self, values: list[Any]) -> Any:
        arrays = [values[index] for index in self._written]
        results = self._consume(values)
        self._wrote(arrays)
        return results


def check_options(options: Options) -> None:
    """Raise ``ValueError`` for a backend or a pass name that does not exist."""
    if isinstance(options.backend, str) and options.backend not in _BACKENDS:
        raise ValueError(f"unknown backend {options.backend!r}; known: {', '.join(list_backends())}")
    names = [step.name for step in PASSES] + [BACKEND_PASS]
    if options.stop_after and options.stop_after not in names:
        raise ValueError(f"unknown pass {options.stop_after!r} in stop_after; known: {', '.join(names)}")


def _backend_name(options: Options) -> str:
    if isinstance(options.backend, str):
        return options.backend
    return getattr(options.backend, "__name__", type(options.backend).__name__)


def _not_compiled(*args: object) -> Any:
    raise LoweringError("this graph was not compiled")


def _run_custom(
    backend: Callable[..., Any], graph: Graph, example_inputs: Sequence[Any], compiled: Compiled
) -> None:
    name = compiled.backend
    try:
        run = _timed(compiled, name, lambda: backend(graph, list(example_inputs)))
    except (LoweringError, ToolchainError, Unsupported, MemoryError):
        raise
    except Exception as error:
        if is_from_handler(error):
            raise
        log.warning("the backend %s raised for %s: the original runs", name, graph.name, exc_info=error)
        raise LoweringError(f"the backend {name} raised {type(error).__name__}: {error}") from error
    if not callable(run):
        log.warning("the backend %s returned %s, not a callable: the original runs", name, type(run).__name__)
        raise LoweringError(f"the backend {name} returned {type(run).__name__}, not a callable")
    compiled.artifact = run
    expected = [out.var.type for out in graph.outputs if not out.hidden]
    told: list[str] = []

    def call(*args: object) -> Any:
        results = run(*args)
        given = results if isinstance(results, (tuple, list)) else (results,)
        problem = _wrong_results(given, expected)
        if problem:
            if not told:
                told.append(problem)
                log.warning("the backend %s, %s: %s; the original runs", name, graph.name, problem)
            raise TypeError(f"the backend {name}: {problem}")
        return given[0] if len(expected) == 1 else tuple(given)

    compiled.call = call


def _wrong_results(given: Sequence[Any], expected: list[ArrayType]) -> str:
    """What is wrong with what a user's backend computed; empty where nothing can be told to be."""
    if len(given) != len(expected):
        return f"it gave {len(given)} outputs, not {len(expected)}"
    for number, (result, wanted) in enumerate(zip(given, expected)):
        shape = getattr(result, "shape", () if isinstance(result, (int, float, complex)) else None)
        if shape is None:
            return f"output {number} is a {type(result).__name__}, not an array"
        known = len(shape) == len(wanted.shape)
        if not known or any(isinstance(w, int) and n != w for n, w in zip(shape, wanted.shape)):
            return f"output {number} has shape {tuple(shape)}, not {wanted.shape}"
        dtype = getattr(result, "dtype", None)
        if isinstance(dtype, np.dtype) and wanted.dtype.name != "bfloat16" and dtype != wanted.dtype.numpy:
            return f"output {number} has dtype {dtype}, not {wanted.dtype.name}"
    return ""
