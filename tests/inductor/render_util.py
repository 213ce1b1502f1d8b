"""Compile hand-written kernels; run them with a stand-in for the thread pool that splits every loop."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyncomp.build.kernel_cache import open_cache
from dyncomp.build.library import load_math_libraries
from dyncomp.build.toolchain import find_toolchain
from dyncomp.dtypes import DType
from dyncomp.inductor.loops.loop_ir import Axis, Buffer, Index, Kernel, Stmt
from dyncomp.inductor.loops.loop_reference import Memory, run_kernel
from dyncomp.inductor.render.cpp.unit import render_module
from dyncomp.inductor.schedule import LaunchKernel, Module, Segment

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong, ctypes.c_int)
_PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong)


class _Runtime(ctypes.Structure):
    _fields_ = [("parallel_for", _PARALLEL), ("num_threads", ctypes.c_int), ("blas", ctypes.c_void_p * 16)]


def _split(body: int, ctx: int, n: int, grain: int) -> None:
    """Chunks out of order, as threads would take them, on the ABI's terms."""
    run = _BODY(body)
    starts = list(range(0, n, grain))
    chunk = max(len(starts) // 4, 1)
    bounds = [(starts[k], min(starts[k] + chunk * grain, n)) for k in range(0, len(starts), chunk)]
    for lo, hi in reversed(bounds):
        run(ctx, lo, hi, 0)


def _whole(body: int, ctx: int, n: int, grain: int) -> None:
    _BODY(body)(ctx, 0, n, 0)


@dataclass
class Compiled:
    """A loaded translation unit."""

    library: Any
    source: str

    def run(
        self, arrays: Sequence[np.ndarray], symbol: str = "run", syms: Sequence[int] = (), split: bool = True
    ) -> tuple[int, list[int]]:
        """Run one exported function on buffers in order; (return code, error details)."""
        callback = _PARALLEL(_split if split else _whole)
        runtime = _Runtime(callback, 4)
        buffers = (ctypes.c_void_p * max(len(arrays), 1))(*[a.ctypes.data for a in arrays])
        error = (ctypes.c_longlong * 4)()
        values = (ctypes.c_longlong * max(len(syms), 1))(*syms)
        function = ctypes.CDLL(str(self.library.path))[symbol]
        function.restype = ctypes.c_longlong
        code = function(buffers, values, ctypes.byref(runtime), error)
        return code, list(error)


def compile_kernels(
    kernels: Sequence[Kernel],
    symbols: Sequence[str] = (),
    point_ns: float = 1.0,
    serial_ns: float = 0.0,
    vector_calls: bool = False,
) -> Compiled:
    """One unit that exports kernel k as ``run_k``, and ``run`` for the first."""
    segments = []
    for k, kernel in enumerate(kernels):
        step = LaunchKernel(kernel, tuple(range(len(kernel.buffers))), 1, point_ns)
        segments.append(Segment(f"run_{k}" if len(kernels) > 1 else "run", (step,)))
    module = Module("test", tuple(segments), tuple(symbols))
    return load_source(render_module(module, serial_ns, vector_calls))


def load_source(source: str) -> Compiled:
    """Build and load one translation unit."""
    load_math_libraries()
    return Compiled(open_cache().load(source, find_toolchain()), source)


def reference(
    kernel: Kernel, arrays: Sequence[np.ndarray], symbols: dict[str, int] | None = None
) -> list[np.ndarray]:
    """What the loop IR's executable definition makes of copies of ``arrays``."""
    copies = [a.copy() for a in arrays]
    run_kernel(kernel, {b.name: Memory(a.reshape(-1)) for b, a in zip(kernel.buffers, copies)}, symbols)
    return copies


def pointwise(op: str, inputs: Sequence[DType], result: DType, size: Any, arg: Any = None) -> Kernel:
    """``out[i] = op(in0[i], …)`` over one axis."""
    here = Index((("i", 1),))
    body = [Stmt(f"x{k}", "load", (), ("i",), (f"in{k}", here), d) for k, d in enumerate(inputs)]
    names = tuple(f"x{k}" for k in range(len(inputs)))
    body.append(Stmt("y", op, names, ("i",), arg, result))
    body.append(Stmt("", "store", ("y",), ("i",), ("out", here), result))
    buffers = [Buffer(f"in{k}", d, size, "in") for k, d in enumerate(inputs)]
    buffers.append(Buffer("out", result, size, "out"))
    return Kernel(op, (Axis("i", size),), tuple(buffers), tuple(body), (f"test of {op}",))
