"""The steps of compiled graphs: kernels and products, what they move and compute, and how long they take."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

from ...dataclass import dataclass, field
from ...device import CPU
from ...dtypes import DType
from ...frontends.base import ArrayOwner
from ...graph.ir import Graph
from ...inductor.compile import CompiledArtifact
from ...inductor.launch import PyCallStep
from ...inductor.loops.loop_ir import Kernel
from ...inductor.schedule import Alternatives, CallBlas, CallChain, CallRows, LaunchKernel, TileKernel
from ...inductor.tuning.stand_ins import laid_out, made_up
from ...inductor.tuning.step_clock import steps_of, with_clock
from ...options import Options
from ...prims.scalar import SCALARS
from ...symbolic.integers import Dim, hint
from ..rerun import for_library

AnyStep = LaunchKernel | CallBlas | CallChain | CallRows | Alternatives | PyCallStep

# Stand-in inputs of more bytes than this are not made.
MOST_INPUT_BYTES = 2 << 30
# Seconds that the steps of one graph are timed.
SECONDS = 0.4


@dataclass
class Work:
    """What one run of a step moves (``read``, ``written``: bytes) and computes (``flops``)."""

    read: float = 0.0
    written: float = 0.0
    flops: float = 0.0

    @property
    def moved(self) -> float:
        return self.read + self.written

    def __add__(self, other: Work) -> Work:
        return Work(self.read + other.read, self.written + other.written, self.flops + other.flops)


@dataclass
class StepFacts:
    """Equal steps of a graph (``count`` of them): their ``work`` and mean ``seconds``, where measured, of
    one; ``kernels``: names of the loop nests in it, ``origin``: the user's lines, ``source``: C++."""

    name: str
    kind: str
    count: int
    work: Work
    seconds: float | None
    kernels: list[str] = field(default_factory=list)
    origin: list[str] = field(default_factory=list)
    source: str = ""
    number: int = 0
    dtype: str = ""
    mark: int = 0  # its number on the page

    @property
    def total(self) -> float | None:
        return None if self.seconds is None else self.seconds * self.count

    @property
    def intensity(self) -> float | None:
        """Flops per byte."""
        return self.work.flops / self.work.moved if self.work.moved and self.work.flops else None


@dataclass
class GraphFacts:
    """One compiled graph: its steps, slowest first, and the bytes of temporaries alive in each step, in the
    order in which they run. ``seconds``: all steps together, or of a whole call where steps cannot be timed
    apart; ``how``: what was measured, or why nothing was."""

    name: str
    steps: list[StepFacts]
    memory: list[int]
    labels: list[str]
    arena: int
    temporaries: int
    seconds: float | None
    how: str


def graph_facts(
    artifact: CompiledArtifact, owner: ArrayOwner | None, options: Options, measure: bool
) -> GraphFacts:
    """What is known of the graph of ``artifact``, and (``measure``) how long its steps take now."""
    graph = artifact.graph
    steps: list[AnyStep] = [*steps_of(artifact.module, artifact.plan)] if graph.device == CPU else []
    times, whole, how = (
        _times(artifact, owner, options, len(steps)) if measure else (None, None, "not measured")
    )
    grouped: dict[tuple[str, str], StepFacts] = {}
    sums: dict[tuple[str, str], float] = {}
    sources = cut_by_function(artifact.source, [kernel.name for kernel in artifact.kernels])
    names = [describe(step) for step in steps]
    for number, (step, (name, kind)) in enumerate(zip(steps, names)):
        key = (name, kind)
        if key not in grouped:
            made = _kernels_of(step)
            origin = [*dict.fromkeys(text for kernel in made for text in kernel.origin)]
            text = "\n\n".join(_source_of(kernel, sources) for kernel in made).strip()
            kernels = [kernel.name for kernel in made]
            work = work_of_step(step, artifact)
            grouped[key] = StepFacts(name, kind, 0, work, None, kernels, origin, text, number, _dtype(step))
        grouped[key].count += 1
        if times is not None:
            sums[key] = sums.get(key, 0.0) + times[number]
    for key, total in sums.items():
        grouped[key].seconds = total / grouped[key].count
    found = sorted(grouped.values(), key=lambda facts: (-(facts.total or 0.0), facts.number))
    live = [0] * (max((last for _, _, last in artifact.lives), default=-1) + 1)
    for size, first, last in artifact.lives:
        for step_number in range(first, last + 1):
            live[step_number] += size
    live += [0] * (len(steps) - len(live))
    seconds = sum(times) if times is not None else whole
    labels = [name for name, _ in names]
    return GraphFacts(
        graph.name, found, live, labels, artifact.arena_bytes, artifact.temp_bytes, seconds, how
    )


# -- time -----------------------------------------------------------------------------------------
def _times(
    artifact: CompiledArtifact, owner: ArrayOwner | None, options: Options, count: int
) -> tuple[list[float] | None, float | None, str]:
    """Seconds of each step, else of a whole call, and what was measured."""
    graph = artifact.graph
    size = sum(hint(g.var.type.size) * g.var.dtype.itemsize for g in graph.inputs if g.kind == "array")
    if size > MOST_INPUT_BYTES:
        return None, None, f"not measured: the inputs take {size / 2**30:.1f} GiB"
    try:
        given = for_library(stand_ins(graph), graph, owner)
        if graph.device != CPU:
            return (
                None,
                _seconds_of_call(artifact, given),
                "a whole call on made-up inputs: kernels on a GPU are not timed apart",
            )
        clock = with_clock(
            artifact.module, artifact.plan, artifact.form, artifact.built, options.serial_threshold_us * 1e3
        )
        times = clock.seconds(given, SECONDS)
        return times, None, "each step apart, on made-up inputs, the best of several calls"
    except Exception as error:
        return None, None, f"not measured: {type(error).__name__}: {error}"


def _seconds_of_call(artifact: CompiledArtifact, given: Sequence[Any]) -> float:
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        results = artifact.call(*given)
        for result in results if isinstance(results, tuple) else (results,):
            for name in ("detach", "cpu", "get"):  # waits for the device
                result = getattr(result, name)() if hasattr(result, name) else result
        best = min(best, time.perf_counter() - start)
    return best


def stand_ins(graph: Graph) -> list[Any]:
    """Arguments that ``graph`` can be called with: numbers of its inputs' types and layouts."""
    made: list[Any] = []
    for given in graph.inputs:
        value = made_up(given.var.type)
        made.append(value.item() if given.kind != "array" else laid_out(value, given.var.type))
    integers = sorted((s for s in graph.symbols if s.kind == "int"), key=lambda s: s.index)
    return made + [graph.env.symbols[s.name].hint for s in integers]


# -- work -----------------------------------------------------------------------------------------
def work_of_kernel(kernel: Kernel, without: Sequence[int] = ()) -> Work:
    """Of one run: each buffer once (in place: twice), each statement once for every point of its axes.
    Buffers number ``without`` are no memory."""
    work = Work()
    for number, buffer in enumerate(kernel.buffers):
        if number not in without:
            size = hint(buffer.size) * buffer.dtype.itemsize
            work.read += size if buffer.mode != "out" else 0
            work.written += size if buffer.mode != "in" else 0
    sizes = {axis.name: hint(axis.size) for axis in kernel.axes}
    types = {stmt.out: stmt.dtype for stmt in kernel.body if stmt.out}
    for stmt in kernel.body:
        if stmt.op in ("reduce", "scan"):
            axes: Sequence[str] = next(s.axes for s in kernel.body if s.out == stmt.args[0])
        elif stmt.op in SCALARS:
            axes = stmt.axes
        else:
            continue
        kinds = [types[arg] for arg in stmt.args if arg in types]
        if any(_computes(dtype) for dtype in [stmt.dtype, *kinds]):
            work.flops += math.prod(sizes[axis] for axis in axes)
    return work


def _computes(dtype: DType) -> bool:
    return dtype.is_float or dtype.is_complex


def work_of_product(call: CallBlas) -> Work:
    m, n, k = hint(call.m), hint(call.n), hint(call.k)
    batch = math.prod(map(hint, call.batch))
    item = (call.source or call.dtype).itemsize
    flops = (8 if call.dtype.is_complex else 2) * batch * m * n * k
    read = 0.0
    for matrix, size in ((call.a, m * k), (call.b, k * n)):
        apart = [hint(n) for n, s in zip(call.batch, matrix.batch_strides) if hint(s)]
        read += size * item * math.prod(apart)
    if call.windows is not None and not call.windows.channels_last:
        sizes = call.windows.sizes
        read -= k * n * item * batch
        windows = hint(call.windows.kernel[0]) * hint(call.windows.kernel[1])
        read += item * batch * (k / max(windows, 1)) * hint(sizes[0]) * hint(sizes[1])
    written = batch * m * n * call.dtype.itemsize if call.c is not None else 0.0
    work = Work(read, written, float(flops))
    if call.epilogue is not None:
        work += _work_of_tile(call.epilogue, batch * m * n)
    for fill, points in ((call.fill_a, m * k), (call.fill_b, k * n)):
        if fill is not None:
            work.flops += _flops_of_tiles(fill.tile.kernel, batch * points)
    return work


def _work_of_tile(tile: TileKernel, points: float) -> Work:
    """What a kernel computes on the tiles of a product of ``points`` numbers."""
    kernel = tile.kernel
    work = Work(0.0, 0.0, _flops_of_tiles(kernel, points))
    for number, buffer in enumerate(kernel.buffers):
        if number not in (tile.source, tile.sink):
            work.read += hint(buffer.size) * buffer.dtype.itemsize if buffer.mode != "out" else 0
            work.written += points * buffer.dtype.itemsize if buffer.mode != "in" else 0
    return work


def _flops_of_tiles(kernel: Kernel, points: float) -> float:
    """Of a kernel whose axes are those of one tile."""
    size = math.prod(hint(axis.size) for axis in kernel.axes) or 1
    return work_of_kernel(kernel, range(len(kernel.buffers))).flops / size * points


def work_of_step(step: AnyStep, artifact: CompiledArtifact) -> Work:
    """What one run of a step moves and computes; library routines: their operands alone."""
    if isinstance(step, LaunchKernel):
        return work_of_kernel(step.kernel)
    if isinstance(step, CallBlas):
        return work_of_product(step)
    if isinstance(step, CallChain):
        return work_of_product(step.first) + work_of_product(step.second)
    if isinstance(step, CallRows):
        works = [work_of_product(call.product) for call in step.steps if call.product is not None]
        return sum(works, Work())
    if isinstance(step, Alternatives):
        return sum((work_of_step(s, artifact) for s in step.plain), Work())
    sizes = artifact.module.sizes

    def size(reference: Any) -> int:
        return int(reference) if isinstance(reference, int) else hint(sizes[reference.index])

    def total(refs: Sequence[Any]) -> float:
        return float(sum(math.prod(map(size, ref.shape)) * ref.dtype.itemsize for ref in refs))

    return Work(total(step.inputs), total(step.outputs))


# -- words ----------------------------------------------------------------------------------------
def describe(step: AnyStep) -> tuple[str, str]:
    """Name and kind; equal ones do the same on other data."""
    if isinstance(step, LaunchKernel):
        return step.kernel.name, "kernel"
    if isinstance(step, CallBlas):
        what = "product" if step.windows is None else "convolution"
        batch = f"{' × '.join(map(_size, step.batch))} × " if step.batch else ""
        sizes = f"{batch}{_size(step.m)} × {_size(step.k)} × {_size(step.n)}"
        joined = [t.kernel.name for t in _tiles(step)]
        return f"{step.dtype} {what} {sizes}" + "".join(f" + {name}" for name in joined), what
    if isinstance(step, CallChain):
        first, second = describe(step.first)[0], describe(step.second)[0]
        return f"{first}, then {second}", "chain of products"
    if isinstance(step, CallRows):
        names = [s.kernel.kernel.name if s.kernel is not None else s.kind for s in step.steps]
        return f"rows: {', '.join(names)}", "products and kernels by rows"
    if isinstance(step, Alternatives):
        return " or ".join(describe(s)[0] for s in step.plain), "alternatives"
    name = step.func if isinstance(step.func, str) else getattr(step.func, "__qualname__", "")
    return f"library routine {name or type(step.func).__name__}", "library"


def _size(dim: Dim) -> str:
    return str(dim)


def _dtype(step: AnyStep) -> str:
    if isinstance(step, LaunchKernel):
        found = [b.dtype for b in step.kernel.buffers if _computes(b.dtype)]
        return str(max(found, key=lambda dtype: dtype.itemsize)) if found else ""
    if isinstance(step, CallBlas):
        return str(step.dtype)
    if isinstance(step, CallChain):
        return str(step.first.dtype)
    return str(step.dtype) if isinstance(step, CallRows) else ""


def _tiles(step: CallBlas) -> Iterator[TileKernel]:
    if step.epilogue is not None:
        yield step.epilogue
    for fill in (step.fill_a, step.fill_b):
        if fill is not None:
            yield fill.tile


def _kernels_of(step: AnyStep) -> list[Kernel]:
    if isinstance(step, LaunchKernel):
        return [step.kernel]
    if isinstance(step, CallBlas):
        return [tile.kernel for tile in _tiles(step)]
    if isinstance(step, CallChain):
        return _kernels_of(step.first) + _kernels_of(step.second)
    if isinstance(step, CallRows):
        found = [s.kernel.kernel for s in step.steps if s.kernel is not None]
        return found + [k for s in step.steps if s.product is not None for k in _kernels_of(s.product)]
    return [k for s in step.plain for k in _kernels_of(s)] if isinstance(step, Alternatives) else []


def cut_by_function(source: str, names: Sequence[str]) -> dict[str, str]:
    """The C++ of each kernel of ``names``: from the comment that names it to the end of its function."""
    found: dict[str, str] = {}
    wanted = set(names)
    lines = source.splitlines()
    for first, line in enumerate(lines):
        name = line.removeprefix("// ").partition(",")[0] if line.startswith("// ") else ""
        if name in wanted:
            end = next((n for n in range(first, len(lines)) if lines[n] == "}"), len(lines) - 1)
            found.setdefault(name, "\n".join(lines[first : end + 1]))
    return found


def _source_of(kernel: Kernel, sources: dict[str, str]) -> str:
    return sources.get(kernel.name, "")
