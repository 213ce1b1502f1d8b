"""The Python function that runs a planned graph on a GPU: allocates, launches kernels, calls libraries.

It is generated, as one module with the kernels, so that it can be read, edited and run again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass, field
from ...device import Device
from ...dtypes import DType
from ...errors import LoweringError
from ...graph.ir import contiguous_strides
from ...symbolic.integers import Dim, same
from ..launch import (
    BufferRef,
    ConstantResult,
    InputResult,
    KernelStep,
    LaunchPlan,
    OutputResult,
    PyCallStep,
    Result,
    Size,
    SizeRef,
)
from ..render.triton.support import prelude
from ..render.triton.unit import NARROW, TritonKernel, TritonProgram, render_triton
from ..schedule import Alternatives, CallBlas, LaunchKernel, Matrix, Module
from .products import Processor
from .templates import Templates, pointers, templates_of


def stride_of(array: Any, axis: int) -> int:
    """A stride in elements: libraries have a method that gives it, or all of them in bytes."""
    method = getattr(array, "stride", None)
    stride: int = array.strides[axis] // array.itemsize if method is None else method(axis)
    return stride


@dataclass
class Wrapper:
    """Writes the module. ``kernels``: what it launches, by name; ``functions``: what it calls, by name;
    ``choices``: the templates that a step has, by name of the function that chooses (where ``tune`` says so,
    by measuring)."""

    module: Module
    plan: LaunchPlan
    device: Device
    processor: Processor = Processor()
    kernels: dict[str, TritonKernel] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    programs: dict[tuple[str, bool], TritonProgram] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    tune: bool = False
    choices: dict[str, Templates] = field(default_factory=dict)
    # temporaries that are arrays of their own; how memory of a step's own is made, by number; whether a
    # function of ``run`` is being written
    adopted: set[int] = field(default_factory=set)
    private: dict[int, str] = field(default_factory=dict)
    in_choice: bool = False

    # -- text ---------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def size(self, size: Size) -> str:
        return f"z{size.index}" if isinstance(size, SizeRef) else str(size)

    def shape(self, sizes: Sequence[Size]) -> str:
        return "(" + "".join(f"{self.size(s)}, " for s in sizes).rstrip(" ") + ")"

    def source(self) -> str:
        """The whole module: kernels, ``run`` that makes the fresh outputs, and ``call``."""
        arguments = ", ".join(f"in{k}" for k in range(len(self.plan.inputs)))
        self.lines.append(f"def run({arguments}):")
        self.body()
        self.lines += ["", "", f"def call({arguments}):"]
        self.symbols()
        fresh = "".join(f"{name}, " for name in self.fresh())
        self.line(f"{f'{fresh.rstrip()} = ' if fresh else ''}run({arguments})")
        self.results()
        kernels = [kernel.body for kernel in self.kernels.values()]
        text = "\n\n".join(kernels)
        wrapper = "\n".join(self.lines)
        return f"{prelude(text)}\n\n{text}\n\n{wrapper}\n" if kernels else f"{wrapper}\n"

    # -- the function -------------------------------------------------------------------------
    def body(self) -> None:
        self.symbols()
        self.line(f"previous = enter({self.device.index})")
        self.line("try:")
        self.depth += 1
        self.line(f"stream = stream_of({self.device.index})")
        self.buffers()
        segments = {s.symbol: s for s in self.module.segments}
        for step in self.plan.steps:
            if isinstance(step, KernelStep):
                for inner in segments[step.symbol].steps:
                    self.step(inner)
            else:
                self.call(step)
        self.line(f"return ({''.join(f'{name}, ' for name in self.fresh()).rstrip()})")
        self.depth -= 1
        self.line("finally:")
        self.line("    leave(previous)")

    def fresh(self) -> list[str]:
        """The arrays behind the fresh outputs."""
        first = len(self.plan.inputs)
        return [f"b{first + k}" for k in range(len(self.plan.outputs))]

    def symbols(self) -> None:
        if any(slot.kind == "stride" for slot in self.plan.symbols):
            self.functions["stride_of"] = stride_of
        for name, slot in zip(self.module.symbols, self.plan.symbols):
            sources = {
                "value": f"in{slot.input}",
                "shape": f"in{slot.input}.shape[{slot.dim}]",
                "stride": f"stride_of(in{slot.input}, {slot.dim})",
            }
            self.line(f"{name} = {sources[slot.kind]}")
        for number, dim in enumerate(self.module.sizes):
            self.line(f"z{number} = {dim}")

    def buffers(self) -> None:
        """The arrays behind the plan's buffers, ``b0``…, and their addresses, ``p0``…."""
        plan = self.plan
        number = 0
        for k, inp in enumerate(plan.inputs):
            if inp.kind == "array":
                self.line(f"b{number} = in{k}")
            elif inp.dtype is not None and inp.kind != "symint":
                self.line(f"b{number} = full(in{k}, {inp.dtype.name!r}, device)")
            else:
                self.line(f"b{number} = None")
            self.address(number, inp.kind not in ("symint", "object"))
            number += 1
        for out in plan.outputs:
            strides = self.strides(out.shape, out.strides)
            self.line(f"b{number} = fresh({self.shape(out.shape)}, {strides}, {out.dtype.name!r}, device)")
            self.address(number, True)
            number += 1
        if plan.arena:
            self.line(f"arena = scratch(max({self.size(plan.arena_bytes)}, 1), device)")
            self.line("at = pointer(arena)")
        for slot in plan.arena:
            self.line(f"b{number}, p{number} = arena, at + {self.size(slot.offset)}")
            number += 1
        for k, _ in enumerate(plan.constants):
            self.line(f"b{number} = constant{k}")
            self.address(number, True)
            number += 1

    def strides(self, shape: Sequence[Size], strides: Sequence[Size] | None) -> str:
        """Of a fresh array, in C order where none are given: libraries are faster told so."""
        if strides is not None:
            return self.shape(strides)
        sizes = [d for d in shape if isinstance(d, int)]
        if len(sizes) < len(shape):
            return "None"
        return self.dims(contiguous_strides(tuple(sizes)))

    def address(self, number: int, exists: bool) -> None:
        self.line(f"p{number} = pointer(b{number})" if exists else f"p{number} = 0")

    # -- steps --------------------------------------------------------------------------------
    def step(self, step: object) -> None:
        if isinstance(step, LaunchKernel):
            self.launch(step)
        elif isinstance(step, CallBlas):
            self.product(step)
        elif isinstance(step, Alternatives):
            self.alternatives(step)
        elif isinstance(step, PyCallStep):
            self.call(step)
        else:
            raise LoweringError("a chain of products on a GPU")

    def alternatives(self, step: Alternatives) -> None:
        """The steps one after another, as a function where a template may take their place."""
        templates = templates_of(step, self.processor, self.tune)
        if templates is None:
            self.one_by_one(step)
            return
        function = f"choice{len(self.choices)}"
        self.choices[function] = templates
        self.line("")
        self.line(f"def {function}_plain():")
        self.depth += 1
        self.in_choice = True
        self.one_by_one(step)
        self.in_choice = False
        self.depth -= 1
        self.line("")
        places = [f"p{slot}" if offset == "0" else f"p{slot} + {offset}" for slot, offset in pointers(step)]
        if not same(templates.space, 0):
            self.line(f"space = scratch(max({templates.space}, 1), device)")
            places.append("pointer(space)")
        places += templates.symbols
        chosen = f"{function}({function}_plain, stream, {', '.join(places)})"
        tests = [f"{extent} < {NARROW}" for extent in templates.extents]
        if not tests:
            self.line(chosen)
            return
        self.line(f"if {' and '.join(tests)}:")
        self.line(f"    {chosen}")
        self.line("else:")
        self.line(f"    {function}_plain()")

    def one_by_one(self, step: Alternatives) -> None:
        made = [_made_by_routine(inner) for inner in step.plain]
        for number, (dtype, size) in enumerate(step.private):
            self.private[number] = f"scratch(max(({size}) * {dtype.itemsize}, 1), device)"
            if number not in made:
                self.line(f"own{number} = {self.private[number]}")
                self.line(f"o{number} = pointer(own{number})")
        for inner in step.plain:
            self.step(inner)

    def launch(self, step: LaunchKernel) -> None:
        program = self.program(step, wide=None)
        tests = [f"{extent} < {NARROW}" for extent in program.extents]
        for number, space in enumerate(program.workspaces):
            size = f"max(({space.size}) * {space.dtype.itemsize}, 1)"
            self.line(f"space{number} = scratch({size}, device)")
            self.line(f"w{number} = pointer(space{number})")
        if not tests:
            self.kernels_of(step, program)
            return
        self.line(f"if {' and '.join(tests)}:")
        self.depth += 1
        self.kernels_of(step, program)
        self.depth -= 1
        self.line("else:")
        self.depth += 1
        self.kernels_of(step, self.program(step, wide=True))
        self.depth -= 1

    def program(self, step: LaunchKernel, wide: bool | None) -> TritonProgram:
        key = (step.kernel.name, bool(wide))
        program = self.programs.get(key)
        if program is None:
            program = render_triton(step.kernel, wide)
            self.programs[key] = program
            for kernel in program.kernels:
                self.kernels[kernel.name] = kernel
        return program

    def kernels_of(self, step: LaunchKernel, program: TritonProgram) -> None:
        for kernel in program.kernels:
            places = [self.place(step.slots[b]) if b >= 0 else f"w{-1 - b}" for b in kernel.buffers]
            programs = kernel.programs
            count = str(programs) if isinstance(programs, int) else f"max({programs}, 1)"
            arguments = ", ".join([count, "stream", *places, *kernel.symbols])
            self.line(f"launch = {kernel.name}_variants.get(not ({' | '.join(places) or '0'}) & 15)")
            self.line(f"launch({arguments})")

    def product(self, step: CallBlas) -> None:
        assert step.c is not None
        names = []
        for name, matrix, rows, columns in (
            ("a", step.a, step.m, step.k),
            ("b", step.b, step.k, step.n),
            ("c", step.c, step.m, step.n),
        ):
            self.line(f"{name} = {self.matrix(matrix, step, rows, columns)}")
            names.append(name)
        self.line(f"matmul({', '.join(names)})")

    def matrix(self, matrix: Matrix, step: CallBlas, rows: Dim, columns: Dim) -> str:
        shape = (*step.batch, rows, columns)
        strides = (*matrix.batch_strides, matrix.row_stride, matrix.col_stride)
        dtype = step.dtype if matrix is step.c else step.source or step.dtype
        if matrix.offset == 0 and self.is_whole(matrix.slot, shape, strides, dtype):
            return f"b{matrix.slot}"
        offset = f"({matrix.offset}) * {dtype.itemsize}"
        return self.window(matrix.slot, offset, self.dims(shape), self.dims(strides), dtype.name)

    def dims(self, dims: Sequence[Dim]) -> str:
        return "(" + "".join(f"{d}, " for d in dims).rstrip(" ") + ")"

    def window(self, slot: int, offset: str, shape: str, strides: str, dtype: str) -> str:
        first, last = self.arena_slots()
        if first <= slot < last and slot not in self.adopted:
            offset = f"{offset} + {self.size(self.plan.arena[slot - first].offset)}"
        base = f"b{slot}" if slot >= 0 else f"own{-1 - slot}"
        return f"window({base}, {offset}, {shape}, {strides}, {dtype!r})"

    def is_whole(self, slot: int, shape: Sequence[object], strides: Sequence[object], dtype: DType) -> bool:
        """Whether a window from the first element on is all of an argument, as it is."""
        if not 0 <= slot < len(self.plan.inputs):
            return False
        given = self.plan.inputs[slot]
        if given.kind != "array" or given.dtype is not dtype or given.shape is None or given.strides is None:
            return False
        return (tuple(shape), tuple(strides)) == (given.shape, given.strides)

    def place(self, slot: int) -> str:
        """The address behind a slot."""
        return f"p{slot}" if slot >= 0 else f"o{-1 - slot}"

    def arena_slots(self) -> tuple[int, int]:
        first = len(self.plan.inputs) + len(self.plan.outputs)
        return first, first + len(self.plan.arena)

    def reference(self, ref: BufferRef) -> str:
        if ref.strides is None:
            raise LoweringError("a buffer without strides")
        if ref.offset == 0 and self.is_whole(ref.buffer, ref.shape, ref.strides, ref.dtype):
            return f"without_gradient(b{ref.buffer})"
        offset = f"{self.size(ref.offset)} * {ref.dtype.itemsize}"
        return self.window(ref.buffer, offset, self.shape(ref.shape), self.shape(ref.strides), ref.dtype.name)

    def call(self, step: PyCallStep) -> None:
        name = f"routine{len(self.functions)}"
        self.functions[name] = step.func
        self.line(f"made = {name}({', '.join(self.reference(r) for r in step.inputs)})")
        if len(step.outputs) == 1 and step.outputs[0].buffer < 0:
            self.adopt(step.outputs[0])
            return
        if len(step.outputs) == 1 and self.fills(step.outputs[0]):
            self.adopt_for(step.outputs[0])
            return
        if len(step.outputs) == 1:
            self.hand_over(step.outputs[0])
            return
        for k, ref in enumerate(step.outputs):
            self.line(f"{self.reference(ref)}.copy_(made[{k}])")

    def adopt(self, ref: BufferRef) -> None:
        """Take a routine's result for memory of these steps' own, where it is laid out as that is."""
        assert ref.strides is not None
        number = -1 - ref.buffer
        self.line(f"own{number} = made")
        self.line(f"if made.stride() != {self.shape(ref.strides)}:")
        self.line(f"    own{number} = {self.private[number]}")
        self.line(f"    {self.reference(ref)}.copy_(made)")
        self.line(f"o{number} = pointer(own{number})")

    def fills(self, ref: BufferRef) -> bool:
        """Whether a routine's result is all of a temporary of ``run``."""
        first, last = self.arena_slots()
        if not first <= ref.buffer < last or ref.offset != 0 or self.in_choice:
            return False
        count = math.prod(d if isinstance(d, int) else 0 for d in ref.shape)
        return count > 0 and count == self.plan.arena[ref.buffer - first].elements

    def adopt_for(self, ref: BufferRef) -> None:
        """Take a routine's result in the place of a temporary, laid out as that is."""
        assert ref.strides is not None
        number, shape, strides = ref.buffer, self.shape(ref.shape), self.shape(ref.strides)
        self.line(f"b{number} = made")
        self.line(f"if made.stride() != {strides}:")
        self.line(f"    b{number} = empty({shape}, {strides}, {ref.dtype.name!r}, device)")
        self.line(f"    b{number}.copy_(made)")
        self.line(f"p{number} = pointer(b{number})")
        self.adopted.add(number)

    def hand_over(self, ref: BufferRef) -> None:
        """Take a routine's result for one of the graph, where it may be that; else copy it."""
        number, first = ref.buffer, len(self.plan.inputs)
        is_result = first <= number < first + len(self.plan.outputs) and ref.offset == 0
        if not is_result or ref.strides is None or self.in_choice:
            self.line(f"{self.reference(ref)}.copy_(made)")
            return
        out = self.plan.outputs[number - first]
        layout = f"{self.shape(out.shape)}, {self.strides(out.shape, out.strides)}, {out.dtype.name!r}"
        if (out.shape, out.dtype) != (ref.shape, ref.dtype) or "None" in layout:
            self.line(f"{self.reference(ref)}.copy_(made)")
            return
        self.line(f"taken = take(made, {layout})")
        self.line("if taken is None:")
        self.line(f"    {self.reference(ref)}.copy_(made)")
        self.line("else:")
        self.line(f"    b{number} = taken")
        self.line(f"    p{number} = pointer(taken)")

    # -- results ------------------------------------------------------------------------------
    def results(self) -> None:
        texts = [self.result(r) for r in self.plan.results]
        if self.plan.single:
            self.line(f"return {texts[0]}")
        else:
            self.line("return (" + "".join(f"{t}, " for t in texts).rstrip(" ") + ")")

    def result(self, result: Result) -> str:
        first = len(self.plan.inputs)
        if isinstance(result, OutputResult):
            hand_out = _HAND_OUT[self.plan.outputs[result.index].kind]
            return f"{hand_out}(b{first + result.index})" if hand_out else f"b{first + result.index}"
        if isinstance(result, InputResult):
            return f"in{result.index}"
        if isinstance(result, ConstantResult):
            raise LoweringError("a constant result on a GPU")
        base = f"in{result.index}" if result.base == "input" else f"b{first + result.index}"
        shape, strides = self.shape(result.shape), self.shape(result.strides)
        return f"as_strided({base}, {shape}, {strides}, {self.size(result.offset)}, {result.dtype.name!r})"


# How a fresh output is handed out, by its kind.
_HAND_OUT = {"array": "", "numpy_scalar": "item", "python_scalar": "item", "host": "to_host"}


def _made_by_routine(step: object) -> int | None:
    """The number of a step's own memory that a routine's one result may take the place of."""
    if not isinstance(step, PyCallStep) or len(step.outputs) != 1 or step.outputs[0].buffer >= 0:
        return None
    return -1 - step.outputs[0].buffer
