"""The inductor: a functional graph of prims to a callable, as one readable list of passes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ..build.kernel_cache import open_cache
from ..build.library import Library, load_vector_math
from ..build.toolchain import Runner, Toolchain, find_toolchain
from ..comments import in_comment
from ..dataclass import dataclass, field
from ..device import CPU
from ..errors import LoweringError, RejectedCode, ToolchainError, VerifyError
from ..frontends.base import ArrayOwner
from ..graph.ir import Graph
from ..options import Options
from ..prims.table import table_with
from ..runtime import num_threads
from ..spans import span
from ..symbolic.integers import ShapeEnv, hint
from .fusion.branches import Branches, PlacedItem, find_branches, flat, touched_by
from .fusion.byte_operands import narrow_bytes
from .fusion.chain import fuse_chains
from .fusion.epilogue import Chained, FusedProduct, Item, Prepared, RowGroup, fuse_epilogues, touched
from .fusion.fuse import Cluster, LibraryCall, StepItem
from .fusion.half_operands import narrow_products
from .fusion.partition import partition_joins
from .fusion.prologue import fuse_prologues
from .fusion.row_groups import fuse_row_groups
from .fusion.transposed_convolutions import as_convolutions
from .halves import Halves, halves_of
from .launch import LaunchPlan, PyCallStep, build, choose_threads, tensor_owner
from .loops.loop_ir import Kernel
from .loops.loop_text import kernel_text
from .loops.loop_verify import verify_kernel
from .lowering.emit import ClusterEmitter, Emitted
from .lowering.kinds import Lowering
from .lowering.values import Table
from .memory import MemoryPlan, bytes_of, plan_memory
from .naming import suffix_of
from .parts import operands_of
from .planning import Planned, Planner, writes_input
from .render.cpp.unit import render_module
from .schedule import (
    Alternatives,
    CallBlas,
    CallChain,
    CallRows,
    LaunchKernel,
    Module,
    PlainStep,
    RunBranches,
)
from .tuning.autotune import Tuner
from .tuning.choices import Tuning, choices_in
from .tuning.forms import ALL, DEFAULT, NOTHING, TILES, Form, Made
from .tuning.tiers import Tier, first_build

T = TypeVar("T")
# Makes one step of several.
Join = Callable[[list[Emitted | LibraryCall], ShapeEnv], list[Item]]
# Below so much estimated work kernels of a form without threads run on the calling one.
SERIAL_NS = 1e15


@dataclass
class CompiledArtifact:
    """What :func:`compile_graph` makes.

    ``call(*inputs, *integers)``: the visible outputs (the bare value where there is one). ``kernels``: the
    distinct kernels. ``source``: the C++ translation unit. ``seconds``: by pass. ``tier``: which build runs,
    where one came first that was built quickly. ``built``: what builds the best one. ``form``: the one that
    was measured to be the fastest. ``lives``: of each temporary its bytes and the first and last step that
    touch it.
    """

    call: Callable[..., Any]
    graph: Graph
    kernels: tuple[Kernel, ...]
    module: Module
    plan: LaunchPlan
    source: str = ""
    arena_bytes: int = 0
    temp_bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    tier: Tier | None = None
    built: Toolchain | None = None
    form: Form = DEFAULT
    halves: Halves | None = None  # of a graph with gradients
    lives: tuple[tuple[int, int, int], ...] = ()

    def describe(self) -> str:
        """Steps, memory and kernels in words and as Python."""
        lines = [f"{self.graph.name}: {_count(self.module)}"]
        if self.temp_bytes:
            lines.append(f"temporaries: {self.temp_bytes:,} bytes in an arena of {self.arena_bytes:,}")
        if self.tier is not None:
            lines.append(self.tier.describe())
        if self.form != DEFAULT:
            lines.append(f"measured to be the fastest: {self.form.describe()}")
        if self.halves is not None:
            lines += self.halves.describe(most=1000)
        for segment in self.module.segments:
            lines.append(f"{segment.symbol}:")
            for step in segment.steps:
                if not isinstance(step, RunBranches):
                    lines.append(f"  {_describe_step(step)}")
                    continue
                lines.append(f"  {len(step.branches)} branches at the same time:")
                for number, branch in enumerate(step.branches):
                    lines.append(f"    branch {number}:")
                    lines += [f"      {_describe_step(each)}" for each in branch]
        lines += ["", *(kernel_text(k) for k in self.kernels)]
        return "\n".join(lines)


def _count(module: Module) -> str:
    steps: list[PlainStep | PyCallStep] = []
    for segment in module.segments:
        for step in segment.flat:
            steps += step.plain if isinstance(step, Alternatives) else (step,)
    kernels = sum(isinstance(s, LaunchKernel) for s in steps)
    called = [s for s in steps if not isinstance(s, PyCallStep)]
    products = len(called) - kernels + sum(isinstance(s, CallChain) for s in steps)
    for each in called:
        if isinstance(each, CallRows):
            products += sum(s.product is not None for s in each.steps) - 1
    return f"{kernels} kernels, {products} matrix products"


def _describe_step(step: PlainStep | PyCallStep) -> str:
    if isinstance(step, PyCallStep):
        return "a routine of the library"
    if isinstance(step, Alternatives):
        each = "; ".join(map(_describe_step, step.plain))
        return f"one kernel, or {each}" if len(step.plain) > 1 else each
    if isinstance(step, CallRows):
        names = [s.kernel.kernel.name if s.kernel is not None else s.kind for s in step.steps]
        return f"{step.dtype} products and kernels of rows together: {', '.join(names)}"
    if isinstance(step, CallChain):
        first, second = step.first, step.second
        assert first.epilogue is not None
        sizes = f"{first.m} x {first.k} x {first.n} x {second.n}"
        return f"{first.dtype} matrix products {sizes}, rows between them by {first.epilogue.kernel.name}"
    if isinstance(step, CallBlas):
        then = f", each tile finished by {step.epilogue.kernel.name}" if step.epilogue is not None else ""
        what = "matrix product" if step.windows is None else "convolution as a product"
        for side, fill in (("right", step.fill_b), ("left", step.fill_a)):
            then = (f", {side} operand made by {fill.tile.kernel.name}" if fill else "") + then
        plain = step.source is None and step.source_b is None
        summed = "" if plain else f"{operands_of(step)}, summed in "
        return f"{summed}{step.dtype} {what} {step.m} x {step.k} x {step.n}{then}"
    slots = ", ".join(map(str, step.slots))
    where = f"  # {in_comment(', '.join(step.kernel.origin))}" if step.kernel.origin else ""
    return f"{step.kernel.name}({slots}): {step.points} points{where}"


# -- passes -----------------------------------------------------------------------------------
class _Timer:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str, run: Callable[[], T]) -> T:
        start = time.perf_counter()
        try:
            with span("inductor", name):
                return run()
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def compile_graph(
    graph: Graph,
    options: Options,
    owner: ArrayOwner | None = None,
    examples: Sequence[Any] = (),
    edit: Callable[[str], str] | None = None,
    on_status: object = None,
    runner: Runner | None = None,
) -> CompiledArtifact:
    """Compile a functional graph of prims for the device that its arrays are on. ``owner`` (an ``ArrayOwner``
    of ``frontends.base``) says how arrays are read and made; ``None``: NumPy's. ``examples``: inputs to tune
    on under ``mode="max-autotune"``. ``edit``: gets the C++ or Triton code and returns what is to be built.
    ``on_status``: what is told of floating-point errors, on the CPU (``LaunchPlan``). ``runner``: what starts
    the C++ compiler.

    Raises ``LoweringError`` for what cannot be lowered and ``ToolchainError`` without a compiler.
    """
    timed = _Timer()
    if graph.device != CPU:
        return _compile_for_device(graph, options, owner, edit, timed)
    choose_threads(options.num_threads, owner)
    maker = Maker(graph, options, owner, timed, edit, on_status, runner)
    made = maker.make(DEFAULT)
    if options.mode == "max-autotune" and made.source:
        made = timed("autotune", lambda: maker.tuned(made, examples))
    elif made.first is not None:
        made.first.improve(made.call, made.planned.plan)
    artifact = _artifact(
        maker.graph, made.call, made.planned, made.memory, made.source, made.items, timed.seconds
    )
    artifact.tier = made.first.tier if made.first is not None else None
    artifact.built = made.first.toolchain if made.first is not None else None
    artifact.form = made.form
    artifact.halves = maker.halves
    return artifact


# From graph to graph, before it is lowered for the CPU.
GRAPH_STEPS: tuple[tuple[str, Callable[[Graph, Table], Graph]], ...] = (
    ("transposed", as_convolutions),
    ("narrow", narrow_products),
    ("bytes", narrow_bytes),
    ("partition", partition_joins),
)


class Maker:
    """Compiles a graph for the CPU, in one form or another."""

    def __init__(
        self,
        graph: Graph,
        options: Options,
        owner: ArrayOwner | None,
        timed: _Timer | None = None,
        edit: Callable[[str], str] | None = None,
        on_status: object = None,
        runner: Runner | None = None,
    ) -> None:
        timed = timed or _Timer()
        self.options = options
        self.runner = runner
        self.on_status = on_status
        self.owner = owner
        self.timed = timed
        self.edit = edit
        self.table = table_with(() if owner is None else (*owner.routines, *owner.own_routines))
        for name, transform in GRAPH_STEPS:
            graph = timed(name, partial(transform, graph, self.table))
        self.graph = graph
        self.cuts: dict[Any, tuple[list[PlacedItem], MemoryPlan, Planned]] = {}
        self.default_source = ""
        self.halves: Halves | None = None

    def make(self, form: Form) -> Made:
        """Compile ``form``. Raises as :func:`compile_graph`."""
        items, memory, planned = self._cut(form)
        if not planned.module.segments and not planned.module.sizes:
            return Made(form, flat(items), memory, planned, "", "", self._call(planned, None))
        toolchain = find_toolchain()
        vector_calls = toolchain.calls_vectors and load_vector_math() and not form.inlined
        serial_ns = SERIAL_NS if form.serial else self.options.serial_threshold_us * 1e3
        timed = self.timed
        generated = timed(
            "render", lambda: render_module(planned.module, serial_ns, vector_calls, form.knobs)
        )
        source = self._edited(form, generated)
        cache = open_cache(
            None if self.options.cache else {**os.environ, "DYNCOMP_FORCE_DISABLE_CACHES": "1"}
        )
        fast = self.options.tier == "fast-first" and self.options.mode != "max-autotune"
        chosen = toolchain.with_flags(form.flags) if form.flags else toolchain
        try:
            first = timed(
                "build", lambda: first_build(source, planned.module, chosen, cache, fast, self.runner)
            )
        except RejectedCode as error:
            if source == generated:
                raise
            raise ToolchainError(str(error)) from error  # edited by hand
        return Made(
            form, flat(items), memory, planned, source, generated, self._call(planned, first.library), first
        )

    def planned(self, form: Form) -> Planned:
        """The schedule and launch plan of a form, with nothing built."""
        return self._cut(form)[2]

    def tuned(self, default: Made, examples: Sequence[Any]) -> Made:
        """The fastest form on ``examples``."""
        toolchain = find_toolchain()
        cache = default.first.cache.directory if default.first is not None else None
        tuning = Tuning.of(self.options)
        choices = choices_in(cache)
        tuner = Tuner(
            self.graph,
            self.table,
            self.owner,
            self.make,
            self._alone,
            choices,
            toolchain.fingerprint,
            tuning,
        )
        return tuner.fastest(default, examples)

    def _alone(self, graph: Graph, form: Form) -> Made:
        return Maker(graph, self.options, self.owner).make(form)

    def _cut(self, form: Form) -> tuple[list[PlacedItem], MemoryPlan, Planned]:
        """The steps of a form and where their values lie."""
        key = (form.joined, form.library, form.tilings, form.serial)
        found = self.cuts.get(key)
        if found is None:
            lowering, items, memory = _lowered(
                self.graph,
                self.table,
                _JOINS[form.joined],
                self.options,
                self.timed,
                form.library,
                num_threads() if self.options.parallel_branches and not form.serial else 1,
            )
            self.halves = halves_of(lowering)
            owner, tilings = tensor_owner(self.owner), dict(form.tilings)
            planner = Planner(lowering, memory, owner, self.options.keep_packed, tilings, self.on_status)
            planned = self.timed("schedule", lambda: planner.run(items))
            found = self.cuts[key] = (items, memory, planned)
        return found

    def _edited(self, form: Form, generated: str) -> str:
        """What is to be built of generated code: the default form may be edited by hand."""
        if replace(form, flags=()) != DEFAULT or self.edit is None:
            return generated
        if not self.default_source:
            self.default_source = self.edit(generated)
        return self.default_source

    def _call(self, planned: Planned, library: Library | None) -> Callable[..., Any]:
        return self.timed("launch", lambda: build(planned.plan, library))


def _lowered(
    graph: Graph,
    table: Table,
    join: Join,
    options: Options,
    timed: _Timer,
    library: frozenset[str] = frozenset(),
    threads: int = 1,
) -> tuple[Lowering, list[PlacedItem], MemoryPlan]:
    """Loops and library calls in order, and where their values lie. ``library``: names of the products and
    convolutions that a library makes. ``threads``: for branches that run at the same time."""
    try:
        lowering = timed("lower", lambda: Lowering(graph, table, library).run())
        items: list[Item] = timed("emit", lambda: join(emit_steps(lowering), graph.env))
    except RecursionError as error:
        # expressions of up to a few dozen operations nest; the caller's own stack may leave too little
        raise LoweringError("the Python stack is too deep to compile here") from error
    if options.debug_verify:
        timed("verify", lambda: _verify(items))
    serial_ns = options.serial_threshold_us * 1e3
    placed = timed(
        "branches",
        lambda: find_branches(items, threads, serial_ns, lambda item: writes_input(item, lowering)),
    )
    return lowering, placed, timed("memory", lambda: _planned_memory(placed))


def _planned_memory(items: Sequence[PlacedItem]) -> MemoryPlan:
    branches = {
        number: [[touched(each) for each in branch] for branch in item.branches]
        for number, item in enumerate(items)
        if isinstance(item, Branches)
    }
    return plan_memory([touched_by(item) for item in items], branches)


def _compile_for_device(
    graph: Graph, options: Options, owner: ArrayOwner | None, edit: Callable[[str], str] | None, timed: _Timer
) -> CompiledArtifact:
    """The same for arrays on a GPU: Triton kernels, and library calls for products."""
    from .gpu import formats
    from .gpu.compile import build_for_device, check_devices
    from .gpu.gpu_plan import DevicePlanner
    from .gpu.join_kernels import join_steps
    from .gpu.narrow_products import narrow_products

    devices = check_devices(graph, owner)
    assert owner is not None
    table = table_with(devices.routines)
    narrow = timed("narrow", lambda: narrow_products(graph, table))
    graph = timed("formats", lambda: formats.lay_out(narrow, table))
    lowering, items, memory = _lowered(graph, table, join_steps, options, timed)
    tune = options.mode == "max-autotune"
    planned = timed("schedule", lambda: DevicePlanner(lowering, memory, tensor_owner(owner)).run(items))
    cache = open_cache().directory if options.cache else None
    replay = options.mode == "reduce-overhead"
    call, source = timed(
        "build",
        lambda: build_for_device(
            graph, planned, owner, devices, edit, Tuning.of(options) if tune else None, cache, replay
        ),
    )
    return _artifact(graph, call, planned, memory, source, flat(items), timed.seconds)


def _artifact(
    graph: Graph,
    call: Callable[..., Any],
    planned: Planned,
    memory: MemoryPlan,
    source: str,
    items: list[Item],
    seconds: dict[str, float],
) -> CompiledArtifact:
    kernels: dict[str, Kernel] = {}
    for item in items:
        if isinstance(item, Emitted):
            kernels[item.kernel.name] = item.kernel
            continue
        if isinstance(item, RowGroup):
            found = [m.item.kernel for m in item.members if isinstance(m.item, Emitted)]
            kernels.update((kernel.name, kernel) for kernel in found)
        tiled = item.tiled if isinstance(item, (FusedProduct, Chained, Prepared)) else None
        if tiled is not None:
            kernels[tiled.kernel.name] = tiled.kernel
        if isinstance(item, Prepared):
            kernels.update((fill.kernel.name, fill.kernel) for fill in item.fills)
    return CompiledArtifact(
        call,
        graph,
        tuple(kernels.values()),
        planned.module,
        planned.plan,
        source,
        hint(memory.size),
        memory.total,
        seconds,
        lives=tuple((hint(bytes_of(life.storage)), life.first, life.last) for life in memory.lives),
    )


def _fuse_products(items: list[Emitted | LibraryCall], env: ShapeEnv) -> list[Item]:
    """Products joined to the kernels that read them, chains first, which save the most memory; then to those
    that make their operands."""
    return fuse_prologues(fuse_epilogues(fuse_row_groups(fuse_chains(items, env), env), env), env)


def _finish_tiles(items: list[Emitted | LibraryCall], env: ShapeEnv) -> list[Item]:
    """Products joined to kernels tile by tile only."""
    return fuse_prologues(fuse_epilogues([*items], env), env)


def _leave_apart(items: list[Emitted | LibraryCall], env: ShapeEnv) -> list[Item]:
    return [*items]


_JOINS: dict[str, Join] = {ALL: _fuse_products, TILES: _finish_tiles, NOTHING: _leave_apart}


def emit_steps(lowering: Lowering) -> list[Emitted | LibraryCall]:
    """The steps with clusters as kernels; equal kernels share a name."""
    items: list[Emitted | LibraryCall] = []
    names: dict[Any, str] = {}
    for step in lowering.fuser.steps:
        item = _emit(step, lowering)
        if item is None:
            continue
        if isinstance(item, Emitted):
            item = _named(item, names)
        items.append(item)
    return items


def _emit(step: StepItem, lowering: Lowering) -> Emitted | LibraryCall | None:
    if isinstance(step, LibraryCall):
        return step
    emitted = ClusterEmitter(step, lowering.table).run("")
    if not emitted.kernel.body or _does_nothing(step):
        return None
    return emitted


def _does_nothing(cluster: Cluster) -> bool:
    """Whether no result has an element."""
    return any(isinstance(a.size, int) and a.size == 0 for a in cluster.parallel_axes)


def _named(item: Emitted, names: dict[Any, str]) -> Emitted:
    kernel = item.kernel
    key = kernel_text(Kernel("", kernel.axes, kernel.buffers, kernel.body))
    name = names.setdefault(key, f"k{len(names)}{suffix_of(kernel.origin)}")
    named = Kernel(name, kernel.axes, kernel.buffers, kernel.body, kernel.origin)
    return Emitted(named, item.storages, item.raises, item.ordered, item.points)


def _verify(items: list[Item]) -> None:
    for item in items:
        if isinstance(item, Emitted):
            try:
                verify_kernel(item.kernel)
            except VerifyError as error:
                error.add_note(kernel_text(item.kernel))
                raise


__all__ = ["CompiledArtifact", "LoweringError", "compile_graph", "emit_steps", "touched"]
