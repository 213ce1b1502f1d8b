"""A planned graph run on NumPy memory, its kernels by the loop IR's reference: what generated code does."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import Unsupported
from ..graph.interp import bind_symbols, strided_window
from ..graph.ir import Graph
from ..symbolic.integers import SymInt
from .launch import BufferRef, KernelStep, OutputResult, SizeRef
from .loops.loop_reference import Memory, run_kernel
from .planning import Planned
from .schedule import CallBlas, LaunchKernel, Matrix, Windows

Array = np.ndarray[Any, Any]
_GARBAGE = 0xA5  # what memory holds before it is written


class PlanReference:
    """Runs ``planned``, the plan of ``graph`` with products and kernels apart. ``apart``: temporaries have
    memory of their own, whatever the memory plan says. Raises ``Unsupported`` for steps of other kinds."""

    def __init__(self, graph: Graph, planned: Planned, apart: bool = False) -> None:
        self.graph = graph
        self.planned = planned
        self.apart = apart

    def run(self, *args: Any) -> list[Any]:
        """The fresh outputs, in order; inputs are written."""
        plan = self.planned.plan
        count = len(self.graph.inputs)
        inputs = [np.asarray(a) for a in args[:count]]
        self.symbols = bind_symbols(self.graph, inputs, args[count:])
        self.sizes = [self.dim(d) for d in self.planned.module.sizes]
        self.memory = [flat_memory(a) for a in inputs]
        self.memory += [Memory(np.array([i], np.int64)) for i in args[count:]]
        outputs = [self._fresh(slot) for slot in plan.outputs]
        self.memory += [Memory(flat) for flat, _ in outputs]
        arena = np.full(self.size(plan.arena_bytes) + 64, _GARBAGE, np.uint8)
        temporaries = [arena[self.size(s.offset) :] for s in plan.arena]
        self.memory += [Memory(part.copy() if self.apart else part) for part in temporaries]
        self.memory += [flat_memory(np.asarray(c)) for c in plan.constants]
        segments = {s.symbol: s for s in self.planned.module.segments}
        for step in plan.steps:
            if isinstance(step, KernelStep):
                for inner in segments[step.symbol].flat:
                    if isinstance(inner, CallBlas):
                        self._blas(inner)
                    elif isinstance(inner, LaunchKernel):
                        self._launch(inner)
                    else:
                        raise Unsupported(f"the reference has no {type(inner).__name__}")
            else:
                self._call(step)
        return [self._result(r, inputs, outputs) for r in plan.results]

    def dim(self, value: Any) -> int:
        return value.evaluate(self.symbols) if isinstance(value, SymInt) else value

    def size(self, value: Any) -> int:
        return self.sizes[value.index] if isinstance(value, SizeRef) else value

    def _fresh(self, slot: Any) -> tuple[Any, Any]:
        shape = tuple(map(self.size, slot.shape))
        count = int(np.prod(shape))
        flat = np.full(count * slot.dtype.itemsize, _GARBAGE, np.uint8).view(slot.dtype.numpy)
        strides = None if slot.strides is None else tuple(map(self.size, slot.strides))
        if count == 0 or strides is None:
            return flat, flat.reshape(shape)
        return flat, strided_window(flat, shape, strides, 0)

    def _typed(self, number: int, dtype: Any) -> Memory:
        memory = self.memory[number]
        if memory.data.dtype == dtype.numpy:
            return memory
        usable = memory.data.size // dtype.itemsize * dtype.itemsize
        return Memory(memory.data[:usable].view(dtype.numpy), memory.origin)

    def _launch(self, step: LaunchKernel) -> None:
        buffers = zip(step.kernel.buffers, step.slots)
        run_kernel(step.kernel, {b.name: self._typed(slot, b.dtype) for b, slot in buffers}, self.symbols)

    def _matrix(self, m: Matrix, dtype: Any, rows: int, cols: int, batch: tuple[int, ...]) -> Any:
        memory = self._typed(m.slot, dtype)
        strides = (*map(self.dim, m.batch_strides), self.dim(m.row_stride), self.dim(m.col_stride))
        shape = (*batch, rows, cols)
        if 0 in shape:
            return np.zeros(shape, dtype.numpy)
        return strided_window(memory.data, shape, strides, memory.origin + self.dim(m.offset))

    def _blas(self, step: CallBlas) -> None:
        m, n, k = (self.dim(d) for d in (step.m, step.n, step.k))
        batch = tuple(map(self.dim, step.batch))
        seen = step.windows
        if seen is not None and seen.channels_last:
            b = self._matrix(step.b, step.source or step.dtype, k, n, batch).astype(step.dtype.numpy)
            found = self._places(step, seen, k, n, m, batch, b)
        elif seen is not None and seen.depthwise:
            a = self._matrix(step.a, step.dtype, m, k, batch)
            found = np.stack(
                [a[..., [i], :] @ self._seen(step, step.b, seen, k, n, batch, i) for i in range(m)], -3
            )
            found = found[..., 0, :]
        else:
            a = self._matrix(step.a, step.a_dtype, m, k, batch).astype(step.dtype.numpy)
            if seen is None:
                b = self._matrix(step.b, step.b_dtype, k, n, batch).astype(step.dtype.numpy)
            else:
                b = self._seen(step, step.b, seen, k, n, batch)
            found = a @ b
        if step.c is None:
            raise Unsupported("a product whose result lies in no memory")
        self._matrix(step.c, step.dtype, m, n, batch)[...] = found

    def _places(
        self, step: CallBlas, windows: Windows, k: int, n: int, m: int, batch: tuple[int, ...], b: Any
    ) -> Any:
        """A convolution with channels last: rows are places, and terms have their channels innermost."""
        taps = self.dim(windows.kernel[0]) * self.dim(windows.kernel[1])
        if windows.depthwise:
            columns = [
                self._seen(step, step.a, windows, k, m, batch, i).swapaxes(-1, -2) @ b[..., [i]]
                for i in range(n)
            ]
            return np.concatenate(columns, -1)
        seen = self._seen(step, step.a, windows, k, m, batch)
        split = seen.reshape(*batch, k // taps, taps, m).swapaxes(-2, -3)
        return split.reshape(*batch, k, m).swapaxes(-1, -2) @ b

    def _seen(
        self,
        step: CallBlas,
        image: Matrix,
        windows: Windows,
        k: int,
        n: int,
        batch: tuple[int, ...],
        first: int = 0,
    ) -> Any:
        """What the windows of a kernel see, as a matrix; from channel ``first`` on."""
        pairs = (
            windows.sizes,
            windows.kernel,
            windows.stride,
            windows.dilation,
            windows.padding,
            windows.step,
        )
        sizes, kernel, stride, dilation, padding, step_of = (tuple(map(self.dim, p)) for p in pairs)
        columns, channel = self.dim(windows.columns), self.dim(windows.channel)
        memory = self._typed(image.slot, step.source or step.dtype)
        found = np.zeros((*batch, k, n), step.dtype.numpy)
        strides = tuple(map(self.dim, image.batch_strides))
        for row, col in np.ndindex(k, n):
            places = (col // columns, col % columns)
            inner = (row // kernel[1] % kernel[0], row % kernel[1])
            y, x = (places[a] * stride[a] + inner[a] * dilation[a] - padding[a] for a in range(2))
            if not (0 <= y < sizes[0] and 0 <= x < sizes[1]):
                continue
            start = (first + row // (kernel[0] * kernel[1])) * channel + y * step_of[0] + x * step_of[1]
            for at in np.ndindex(*batch):
                offset = start + sum(i * s for i, s in zip(at, strides))
                found[(*at, row, col)] = memory.data[memory.origin + self.dim(image.offset) + offset]
        return found

    def _window(self, ref: BufferRef) -> Any:
        memory = self._typed(ref.buffer, ref.dtype)
        shape = tuple(map(self.size, ref.shape))
        if 0 in shape:
            return np.zeros(shape, ref.dtype.numpy)
        assert ref.strides is not None
        strides = tuple(map(self.size, ref.strides))
        return strided_window(memory.data, shape, strides, memory.origin + self.size(ref.offset))

    def _call(self, step: Any) -> None:
        found = step.func(*[self._window(r) for r in step.inputs])
        several = found if isinstance(found, (tuple, list)) else (found,)
        for ref, value in zip(step.outputs, several, strict=True):
            self._window(ref)[...] = value

    def _result(self, result: Any, inputs: list[Any], outputs: list[Any]) -> Any:
        if isinstance(result, OutputResult):
            return outputs[result.index][1]
        base = inputs[result.index] if result.base == "input" else outputs[result.index][1]
        shape = tuple(map(self.size, result.shape))
        assert result.strides is not None
        return strided_window(base, shape, tuple(map(self.size, result.strides)), self.size(result.offset))


def flat_memory(array: Any) -> Memory:
    """An array's memory as one line, writing through."""
    if array.size == 0:
        return Memory(np.zeros(0, array.dtype))
    steps = [(n - 1) * s // array.itemsize for n, s in zip(array.shape, array.strides)]
    low = sum(s for s in steps if s < 0)
    high = sum(s for s in steps if s > 0)
    return Memory(strided_window(array, (high - low + 1,), (1,), low), -low)
