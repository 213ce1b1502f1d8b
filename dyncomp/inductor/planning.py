"""From lowered steps to the schedule (for the renderer) and the launch plan (for the runtime)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..dataclass import dataclass, field
from ..errors import LoweringError
from ..graph.interp import has_symbols
from ..graph.ir import Graph, GraphInput, GraphOutput, SymbolBinding, contiguous_strides, same_shape
from ..symbolic.integers import Dim, SymInt, hint
from .fusion.branches import Branches, PlacedItem, touched_by
from .fusion.epilogue import (
    Chained,
    Filled,
    FusedProduct,
    Item,
    Prepared,
    RowGroup,
    RowMember,
    Tiled,
)
from .fusion.fuse import LibraryCall
from .fusion.prologue import written_by
from .launch import (
    ArenaSlot,
    BufferRef,
    InputSlot,
    KernelStep,
    LaunchPlan,
    OutputResult,
    OutputSlot,
    Part,
    PyCallStep,
    Result,
    Size,
    SizeRef,
    SymbolSlot,
    TensorOwner,
    ViewOutput,
)
from .launch import Step as PlanStep
from .lowering.contract import Operand, Product
from .lowering.emit import Emitted, work_of
from .lowering.fourier_routines import fourier_routine
from .lowering.kinds import Lowering, output_strides
from .lowering.matrix_routines import matrix_routine
from .lowering.values import Storage, Value, place_of, storage_of
from .memory import MemoryPlan
from .parts import calls_of, part_of, parts_at_once, routine_part
from .schedule import (
    CallBlas,
    CallChain,
    CallRows,
    Fill,
    LaunchKernel,
    Matrix,
    Module,
    RowCall,
    RunBranches,
    Segment,
    Step,
    TileKernel,
)
from .tuning.tilings import USUAL, Tiling

# Above this much estimated work a call lets other Python threads run.
RELEASE_GIL_NS = 50_000.0
# Inputs that nothing needs afterwards are given back so many bytes at once, in about so many steps.
SPARED_BYTES = 256 << 10
SPARED_STEPS = 32
ERRORS = (
    (IndexError, "index {0} is out of bounds for axis with size {1}"),
    (MemoryError, "no memory for the copies that a matrix product makes of its operands"),
)


class Sizes:
    """Sizes for the plan: integers, or references to what the library's ``sizes`` function computes."""

    def __init__(self) -> None:
        self.dims: list[Dim] = []
        self._index: dict[object, int] = {}

    def __call__(self, dim: Dim) -> Size:
        if not isinstance(dim, SymInt):
            return dim
        index = self._index.get(dim.key)
        if index is None:
            index = len(self.dims)
            self._index[dim.key] = index
            self.dims.append(dim)
        return SizeRef(index)

    def all(self, dims: Sequence[Dim]) -> tuple[Size, ...]:
        return tuple(self(d) for d in dims)


@dataclass
class Planned:
    """The two halves: ``module`` for the renderer, ``plan`` for the launcher; ``work_ns``: estimated time
    of the kernels on one core."""

    module: Module
    plan: LaunchPlan
    work_ns: float


@dataclass
class Planner:
    """Numbers buffers and splits the steps at library calls."""

    lowering: Lowering
    memory: MemoryPlan
    owner: TensorOwner | None = None
    keep_packed: bool = True
    tilings: Mapping[str, Tiling] = field(default_factory=dict)
    on_status: Any = None
    sizes: Sizes = field(default_factory=Sizes)
    segments: list[Segment] = field(default_factory=list)
    steps: list[PlanStep] = field(default_factory=list)
    current: list[Step] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)  # of them
    work_ns: float = 0.0
    first_write: int | None = None
    spared: list[int] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        return self.lowering.graph

    def run(self, items: Sequence[PlacedItem]) -> Planned:
        self._number_buffers()
        spared = self._spared_after(items)
        for number, item in enumerate(items):
            if isinstance(item, Branches):
                self._branches(item)
            else:
                self._item(item)
            if number in spared:
                self.spared += spared[number]
                self._close_segment()
        self._close_segment()
        plan = self._plan()
        names = tuple(s.name for s in self.graph.symbols)
        module = Module(self.graph.name, tuple(self.segments), names, tuple(self.sizes.dims))
        return Planned(module, plan, self.work_ns)

    def _spared_after(self, items: Sequence[PlacedItem]) -> dict[int, list[int]]:
        """After which items inputs are given back that may be, so much at once that it is worth a step."""
        last: dict[int, int] = {}
        for number, item in enumerate(items):
            last.update((s.number, number) for s in touched_by(item) if s.role == "input")
        mutated = self.lowering.mutated
        viewed = {out.view.index for out in self.graph.outputs if out.view and out.view.kind == "input"}
        sizes = {
            k: hint(inp.var.type.size) * inp.var.dtype.itemsize
            for k, inp in enumerate(self.graph.inputs)
            if inp.spare and inp.kind == "array" and k in last and k not in mutated and k not in viewed
        }
        enough = max(SPARED_BYTES, sum(sizes.values()) // SPARED_STEPS)
        found: dict[int, list[int]] = {}
        waiting: list[int] = []
        total = 0
        for k in sorted(sizes, key=last.__getitem__):
            waiting.append(k)
            total += sizes[k]
            if total >= enough:
                found.setdefault(last[k], []).extend(waiting)
                waiting, total = [], 0
        return found

    def _item(self, item: Item) -> None:
        if self.on_status is not None and self.first_write is None and self._writes_input(item):
            # what came before is looked at before it
            self._close_segment()
            self.first_write = len(self.steps)
        if isinstance(item, LibraryCall) and item.kind != "blas":
            self._extern(item)
            return
        if isinstance(item, Emitted):
            self._launch(item)
        elif isinstance(item, FusedProduct):
            self.current.append(self._blas(item.call, item.tiled))
        elif isinstance(item, Prepared):
            self.current.append(self._prepared(item))
        elif isinstance(item, RowGroup):
            self.current.append(self._row_group(item))
        elif isinstance(item, Chained):
            self.current.append(self._chain(item))
        else:
            self.current.append(self._blas(item))
        made = self.current[-1]
        assert not isinstance(made, RunBranches)
        self.parts.append(part_of(made, calls_of(item)))

    def _branches(self, item: Branches) -> None:
        if item.are_calls:
            self._close_segment()
            calls = [self._routine(call) for call in item.items if isinstance(call, LibraryCall)]
            self.steps += [replace(calls[0], together=len(calls)), *calls[1:]]
            return
        before, parts, branches = self.current, self.parts, []
        self.parts = []
        for branch in item.branches:
            self.current = []
            for each in branch:
                self._item(each)
            branches.append(tuple(step for step in self.current if not isinstance(step, RunBranches)))
        self.current = [*before, RunBranches(tuple(branches))]
        self.parts = [*parts, parts_at_once(self.parts)]

    def _writes_input(self, item: Item) -> bool:
        return writes_input(item, self.lowering)

    # -- buffers ------------------------------------------------------------------------------
    def _number_buffers(self) -> None:
        self.integers = _integer_count(self.graph.symbols)
        self.fresh = [k for k, out in enumerate(self.graph.outputs) if out.view is None]
        first_output = len(self.graph.inputs) + self.integers
        first_arena = first_output + len(self.fresh)
        self.output_slot = {k: slot for slot, k in enumerate(self.fresh)}
        self.output_number = {k: first_output + slot for slot, k in enumerate(self.fresh)}
        self.arena_number = {id(s): first_arena + k for k, s in enumerate(self.memory.order)}
        self.first_constant = first_arena + len(self.memory.order)

    def number(self, storage: Storage) -> int:
        """The plan's number of a storage's buffer."""
        if storage.role == "input":
            return storage.number
        if storage.role == "output":
            return self.output_number[storage.number]
        if storage.role == "constant":
            return self.first_constant + storage.number
        return self.arena_number[id(storage)]

    # -- steps --------------------------------------------------------------------------------
    def _launch(self, item: Emitted) -> None:
        self.current.append(self._kernel(item))

    def _kernel(self, item: Emitted) -> LaunchKernel:
        slots = tuple(self.number(s) for s in item.storages)
        point_ns = work_of(item.kernel)
        self.work_ns += point_ns * hint(item.points)
        return LaunchKernel(item.kernel, slots, item.points, point_ns, not item.ordered, item.raises)

    def _blas(self, call: LibraryCall, tiled: Tiled | None = None) -> CallBlas:
        product = call.detail
        assert isinstance(product, Product)
        return self._multiply(call, product, tiled)

    def _prepared(self, item: Prepared) -> CallBlas:
        product = item.call.detail
        assert isinstance(product, Product)
        made = self._multiply(item.call, product, item.tiled, item.fill_a, item.fill_b)
        left = self._fill(item.fill_a, product.m * product.k)
        return replace(made, fill_a=left, fill_b=self._fill(item.fill_b, product.k * product.n))

    def _fill(self, filled: Filled | None, elements: Dim) -> Fill | None:
        if filled is None:
            return None
        slots = [0 if k == filled.target else self.number(s) for k, s in enumerate(filled.storages)]
        work_ns = work_of(filled.kernel) * hint(elements)
        self.work_ns += work_ns
        tile = TileKernel(filled.kernel, tuple(slots), filled.target, work_ns=work_ns)
        if filled.main < 0:
            return Fill(tile)
        sizes = [hint(s.size) * s.dtype.itemsize for s in filled.storages]
        beside = [k for k in range(len(slots)) if k not in (filled.target, filled.main)]
        return Fill(tile, filled.tag, sizes[filled.main], tuple((slots[k], sizes[k]) for k in beside))

    def _multiply(
        self,
        call: LibraryCall,
        product: Product,
        tiled: Tiled | None,
        fill_a: Filled | None = None,
        fill_b: Filled | None = None,
    ) -> CallBlas:
        self.work_ns += 0.02 * hint(product.m * product.n) * hint(product.k)
        dtype = call.value.dtype
        a, b = self._matrix(product.a, fill_a), self._matrix(product.b, fill_b)
        c = None if tiled is not None and tiled.private else self._matrix(product.c)
        sizes = (product.m, product.n, product.k)
        kernel = self._tile_kernel(tiled, product)
        source = product.a.value.dtype
        return CallBlas(
            dtype,
            *sizes,
            a,
            b,
            c,
            product.batch,
            product.own,
            kernel,
            product.windows,
            None if source is dtype else source,
            product.own and self._has_weights(product, fill_b),
            tiling=self.tilings.get(call.value.var.name, USUAL) if product.own else USUAL,
            source_b=None if product.b.value.dtype is source else product.b.value.dtype,
        )

    def _has_weights(self, product: Product, fill_b: Filled | None) -> bool:
        """Whether the operand of which the runtime may keep a copy may be the same at every call."""
        if product.windows is not None and not product.windows.channels_last:
            return self._may_be_kept(product.a, None)
        return self._may_be_kept(product.b, fill_b)

    def _may_be_kept(self, operand: Operand, filled: Filled | None) -> bool:
        """Whether an operand may be the same at every call."""
        if filled is None:
            return self._may_stay(storage_of(operand.value))
        return filled.main >= 0 and all(map(self._may_stay, filled.sources))

    def _may_stay(self, storage: Storage) -> bool:
        """Whether it comes from outside and is not written to here."""
        if storage.role == "input":
            return self.keep_packed and storage.number not in self.lowering.mutated
        return self.keep_packed and storage.role == "constant"

    def _tile_kernel(self, tiled: Tiled | None, product: Product) -> TileKernel | None:
        if tiled is None:
            return None
        held = (tiled.source, tiled.sink)
        slots = [0 if k in held else self.number(s) for k, s in enumerate(tiled.storages)]
        points = hint(product.m * product.n)
        for extent in product.batch:
            points *= hint(extent)
        work_ns = work_of(tiled.kernel) * points
        return TileKernel(
            tiled.kernel,
            tuple(slots),
            tiled.source,
            tiled.sink,
            tiled.hidden_after,
            tiled.softmax,
            work_ns,
        )

    def _chain(self, item: Chained) -> CallChain:
        first = replace(self._blas(item.first, item.tiled), tiling=USUAL)
        product = item.second.detail
        assert isinstance(product, Product)
        self.work_ns += 0.02 * hint(product.m * product.n) * hint(product.k)
        sizes = (product.m, product.n, product.k)
        rows = Matrix(0, 0, product.a.row_stride, product.a.col_stride, product.a.batch_strides)
        b, c = self._matrix(product.b), self._matrix(product.c)
        dtype, source = item.second.value.dtype, product.b.value.dtype
        second = CallBlas(dtype, *sizes, rows, b, c, product.batch, True)
        return CallChain(first, second if source is dtype else replace(second, source=source))

    def _row_group(self, group: RowGroup) -> CallRows:
        dtype = next(m.item.value.dtype for m in group.members if isinstance(m.item, LibraryCall))
        steps = []
        for member in group.members:
            if isinstance(member.item, Emitted):
                kernel = self._row_kernel(member.item, member.held, len(group.matrices))
                steps.append(RowCall("kernel", -1, None, kernel))
            else:
                steps.append(RowCall(member.kind, member.matrix, self._row_product(member, member.item)))
        return CallRows(dtype, tuple(steps), len(group.matrices))

    def _row_kernel(self, item: Emitted, held: tuple[tuple[int, int], ...], matrices: int) -> TileKernel:
        without = {k for k, _ in held}
        slots = tuple(0 if k in without else self.number(s) for k, s in enumerate(item.storages))
        work_ns = work_of(item.kernel) * hint(item.points)
        self.work_ns += work_ns
        return TileKernel(item.kernel, slots, -1, work_ns=work_ns, held=held, matrices=matrices)

    def _row_product(self, member: RowMember, call: LibraryCall) -> CallBlas:
        product: Product = call.detail
        self.work_ns += 0.02 * hint(product.m * product.n) * hint(product.k)
        held = member.matrix >= 0 and member.kind != "scores"
        steps = (product.a.row_stride, product.a.col_stride, product.a.batch_strides)
        a = Matrix(0, 0, *steps) if held else self._matrix(product.a)
        c = None if member.kind == "scores" else self._matrix(product.c)
        sizes = (product.m, product.n, product.k)
        return CallBlas(call.value.dtype, *sizes, a, self._matrix(product.b), c, product.batch, True)

    def _matrix(self, operand: Operand, filled: Filled | None = None) -> Matrix:
        place = place_of(operand.value)
        if filled is None:
            number, offset = self.number(place.storage), place.offset
        else:
            main = filled.storages[filled.main] if filled.main >= 0 else None
            number, offset = 0 if main is None else self.number(main), 0
        return Matrix(
            number,
            offset,
            operand.row_stride,
            operand.col_stride,
            operand.batch_strides,
        )

    def _extern(self, call: LibraryCall) -> None:
        self._close_segment()
        self.steps.append(self._routine(call))

    def _routine(self, call: LibraryCall) -> PyCallStep:
        value = call.value
        assert value.row is not None
        if has_symbols(tuple(value.params.values())):
            raise LoweringError(f"{value.row.name} with symbolic parameters")
        function = matrix_routine(value.row, value.params, call.operands)
        if function is None:
            function = fourier_routine(value.row, value.params, call.operands)
        if function is None:
            function = functools.partial(value.row.ref, **value.params)
        inputs = tuple(self._reference(v) for v in call.operands)
        outputs = tuple(self._reference(v) for v in call.results)
        part = routine_part(call)
        return PyCallStep(function, inputs, outputs, part)

    def _reference(self, value: Value) -> BufferRef:
        place = place_of(value)
        strides = self.sizes.all(place.strides)
        shape = self.sizes.all(value.shape)
        return BufferRef(self.number(place.storage), value.dtype, shape, strides, self.sizes(place.offset))

    def _close_segment(self) -> None:
        if not self.current:
            return
        symbol = "run" if not self.segments else f"run{len(self.segments)}"
        self.segments.append(Segment(symbol, tuple(self.current)))
        self.steps.append(KernelStep(symbol, tuple(self.spared), tuple(self.parts)))
        self.spared = []
        self.current = []
        self.parts = []

    # -- the launch plan ----------------------------------------------------------------------
    def _plan(self) -> LaunchPlan:
        outputs = tuple(self._output(self.graph.outputs[k]) for k in self.fresh)
        results = tuple(self._result(k, out) for k, out in enumerate(self.graph.outputs) if not out.hidden)
        arena = tuple(
            ArenaSlot(self.sizes(self.memory.offset(s)), s.size if isinstance(s.size, int) else None)
            for s in self.memory.order
        )
        arena_bytes = self.sizes(self.memory.size)
        return LaunchPlan(
            inputs=self._inputs(),
            outputs=outputs,
            results=results,
            steps=tuple(self.steps),
            symbols=tuple(self._symbol(s) for s in self.graph.symbols),
            size_count=len(self.sizes.dims),
            arena=arena,
            arena_bytes=arena_bytes,
            constants=tuple(self.lowering.constants),
            errors=ERRORS,
            single=len(results) == 1,
            release_gil=self.work_ns > RELEASE_GIL_NS,
            owner=self.owner,
            on_status=self.on_status,
            first_write=len(self.steps) if self.first_write is None else self.first_write,
            name=self.graph.name,
        )

    def _inputs(self) -> tuple[InputSlot, ...]:
        mutated = self.lowering.mutated
        slots = [_input_slot(inp, k in mutated) for k, inp in enumerate(self.graph.inputs)]
        return (*slots, *[InputSlot("symint")] * self.integers)

    def _output(self, out: GraphOutput) -> OutputSlot:
        type = out.var.type
        layout = output_strides(self.lowering.values[out.var.name])
        dense = same_shape(layout, contiguous_strides(type.shape))
        strides = None if dense else self.sizes.all(layout)
        return OutputSlot(type.dtype, self.sizes.all(type.shape), strides, _OUTPUT_KINDS[out.kind])

    def _result(self, number: int, out: GraphOutput) -> Result:
        if out.view is None:
            return OutputResult(self.output_slot[number])
        view = out.view
        index = view.index if view.kind == "input" else self.output_slot[view.index]
        return ViewOutput(
            "input" if view.kind == "input" else "output",
            index,
            out.var.dtype,
            self.sizes.all(view.shape),
            self.sizes.all(view.strides),
            self.sizes(view.offset),
        )

    def _symbol(self, symbol: SymbolBinding) -> SymbolSlot:
        if symbol.kind == "int":
            return SymbolSlot("value", len(self.graph.inputs) + symbol.index)
        return SymbolSlot("shape" if symbol.kind == "dim" else "stride", symbol.index, symbol.axis)


_OUTPUT_KINDS: dict[str, Any] = {
    "array": "array",
    "scalar": "numpy_scalar",
    "python": "python_scalar",
    "host": "host",
}
_SCALAR_KINDS: dict[str, Any] = {
    "bool": "bool",
    "int": "int",
    "uint": "int",
    "float": "float",
    "complex": "complex",
}


def writes_input(item: Item, lowering: Lowering) -> bool:
    """Whether a step changes what the caller sees before the graph ends."""
    return any(s.role == "input" and s.number in lowering.mutated for s in written_by(item))


def _integer_count(symbols: Sequence[SymbolBinding]) -> int:
    return max((s.index + 1 for s in symbols if s.kind == "int"), default=0)


def _input_slot(inp: GraphInput, mutated: bool) -> InputSlot:
    type = inp.var.type
    if inp.kind != "array":
        return InputSlot(_SCALAR_KINDS[type.dtype.kind], type.dtype)
    shape = tuple(d if isinstance(d, int) else None for d in type.shape)
    empty = any(isinstance(d, int) and d == 0 for d in type.shape)
    strides = tuple(
        None if empty or not isinstance(s, int) or (isinstance(d, int) and d == 1) else s
        for s, d in zip(type.strides, type.shape)
    )
    return InputSlot("array", type.dtype, type.ndim, mutated, shape, strides)
