"""The Triton renderer: values by Triton's interpreter, validity by compiling ahead of time for two GPUs.

Interpreting and compiling cannot share a process, and both want a process of their own: each test sends a
batch of kernels to one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dyncomp.dtypes import BY_NAME, bool_, float16, float32, float64, int32, int64
from dyncomp.errors import LoweringError
from dyncomp.inductor.loopir import Axis, Buffer, Index, Kernel, Stmt
from dyncomp.inductor.render.triton import render_triton
from dyncomp.prims.scalar import SCALARS, result_dtype

from .render_util import pointwise, reference
from .test_render_cpp import centered, data, reduction, softmax

pytest.importorskip("triton")

INTERPRET = """
import importlib.util, json, sys
import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.language.extra import libdevice

class Memory:
    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype
    def data_ptr(self): return self.array.ctypes.data
    def size(self): return self.array.shape
    def stride(self): return tuple(s // self.array.itemsize for s in self.array.strides)
    def storage_offset(self): return 0
    def _self(self, *args, **kwargs): return self
    untyped_storage = cpu = new_empty = set_ = copy_ = contiguous = clone = _self

def _library(function):
    def call(*args, _semantic=None, _builder=None, **kwargs):
        with np.errstate(all="ignore"):
            values = function(*(a.handle.data for a in args))
        values = np.asarray(values).astype(args[0].handle.data.dtype)
        return tl.core.tensor(interpreter.TensorHandle(values, args[0].dtype.scalar), args[0].type)
    return call

NAMES = dict(asin="arcsin", acos="arccos", atan="arctan", asinh="arcsinh", acosh="arccosh", atanh="arctanh",
             atan2="arctan2", pow="power")
for name in ("expm1 log1p log10 cbrt tan sinh cosh tanh asin acos atan asinh acosh atanh atan2 pow fmod "
             "trunc rint copysign hypot").split():
    setattr(libdevice, name, _library(getattr(np, NAMES.get(name, name))))

folder = sys.argv[1]
for k, job in enumerate(json.load(open(folder + "/jobs.json"))):
    spec = importlib.util.spec_from_file_location(f"job{k}", f"{folder}/job{k}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with np.load(f"{folder}/job{k}.npz") as stored:
        arrays = [stored[n].copy() for n in sorted(stored.files)]
    views = [Memory(a.view(np.int8) if a.dtype == bool else a, t) for a, t in zip(arrays, job["dtypes"])]
    with np.errstate(all="ignore"):
        getattr(module, job["name"])[(job["grid"],)](*views, *job["symbols"], **job["blocks"])
    np.savez(f"{folder}/done{k}.npz", **{f"a{n:02}": a for n, a in enumerate(arrays)})
"""

COMPILE = """
import importlib.util, json, sys
import triton
from triton.compiler import ASTSource
from triton.backends.compiler import GPUTarget

folder = sys.argv[1]
report = []
for k, job in enumerate(json.load(open(folder + "/jobs.json"))):
    spec = importlib.util.spec_from_file_location(f"job{k}", f"{folder}/job{k}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for arch in (80, 90):
        function = getattr(module, job["name"])
        source = ASTSource(function, signature=job["signature"], constexprs=job["constexprs"])
        options = dict(num_warps=job["warps"], enable_fp_fusion=False)
        compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
        report.append([job["name"], arch, len(compiled.asm["cubin"])])
json.dump(report, open(folder + "/report.json", "w"))
"""


def write(folder: Path, kernels, arrays=None, values=None):
    jobs = []
    for k, kernel in enumerate(kernels):
        made = render_triton(kernel)
        (folder / f"job{k}.py").write_text(made.source)
        symbols = [(values or {})[s] for s in made.symbols]
        dtypes = ["int8" if b.dtype.is_bool else b.dtype.name for b in kernel.buffers]
        names = list(made.signature)
        jobs.append(
            {
                "name": made.name,
                "dtypes": dtypes,
                "grid": made.grid(values),
                "symbols": symbols,
                "blocks": made.blocks,
                "signature": made.signature,
                "constexprs": {n: made.blocks[n] for n in names if n in made.blocks},
                "warps": made.num_warps,
            }
        )
        if arrays is not None:
            np.savez(folder / f"job{k}.npz", **{f"a{n:02}": a for n, a in enumerate(arrays[k])})
    (folder / "jobs.json").write_text(json.dumps(jobs))


def run_script(folder: Path, script: str, **environment: str):
    path = folder / "script.py"
    path.write_text(script)
    env = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, str(path), str(folder)], env=env, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3000:]


def interpret(folder: Path, kernels, arrays, values=None):
    """Each kernel's buffers after running it in the interpreter."""
    write(folder, kernels, arrays, values)
    run_script(folder, INTERPRET, TRITON_INTERPRET="1")
    results = []
    for k in range(len(kernels)):
        with np.load(folder / f"done{k}.npz") as stored:
            results.append([stored[n] for n in sorted(stored.files)])
    return results


def compare(kernels, arrays, results, values=None, rtol=2e-6, atol=1e-6):
    for kernel, before, after in zip(kernels, arrays, results):
        want = reference(kernel, before, values)
        for buffer, w, g in zip(kernel.buffers, want, after):
            message = f"{kernel.name} {buffer.name}\n{render_triton(kernel).source}"
            half = buffer.dtype.itemsize == 2 and buffer.dtype.is_float
            if g.dtype.kind in "biu":
                np.testing.assert_array_equal(g, w, err_msg=message)
            else:
                np.testing.assert_allclose(
                    g, w, 2e-3 if half else rtol, 1e-3 if half else atol, err_msg=message
                )


# exp2 and the like without a NumPy counterpart in the interpreter's own ops
SKIPPED = {"erf", "erfc", "lgamma", "nextafter", "ldexp"}
N = 300


def scalar_cases(dtype):
    kernels, arrays = [], []
    for op, row in SCALARS.items():
        if dtype.kind not in row.kind_names or op in SKIPPED or op == "complex":
            continue
        args = [
            np.abs(data((N,), dtype, k)) if dtype.is_inexact else data((N,), dtype, k)
            for k in range(row.arity)
        ]
        if op == "where":
            args[0] = data((N,), bool_)
        kinds = [bool_ if a.dtype == bool else dtype for a in args]
        kernel = pointwise(op, kinds, result_dtype(op, kinds), N)
        try:
            render_triton(kernel)
        except LoweringError:
            continue
        kernels.append(kernel)
        arrays.append([*args, np.zeros(N, result_dtype(op, kinds).numpy)])
    return kernels, arrays


@pytest.mark.parametrize("name", ["bool", "int32", "int64", "uint8", "float16", "float32", "float64"])
def test_scalar_rows_interpreted(name, tmp_path):
    kernels, arrays = scalar_cases(BY_NAME[name])
    assert len(kernels) > 12
    with np.errstate(all="ignore"):
        compare(kernels, arrays, interpret(tmp_path, kernels, arrays))


def reductions():
    """Kernels with their arrays: persistent and looped rows, columns, whole arrays."""
    cases = []
    for combiner in ("sum", "max", "min", "argmax", "argmin"):
        for shape, axes, dtype in [((5, 70), "j", float32), ((70, 5), "i", float64), ((3, 40), "j", int32)]:
            kernel, (total, result) = reduction(shape, axes, combiner, dtype)
            x = data(shape, dtype)
            if dtype is float32:
                x[2, 33] = np.nan
            cases.append((kernel, [x, np.zeros(total, result.numpy)]))
    kernel, (total, result) = reduction((4, 50), "j", "any", bool_)
    cases.append((kernel, [data((4, 50), bool_) & data((4, 1), bool_, 1), np.zeros(total, bool)]))
    kernel, _ = reduction((2, 9000), "j", "sum", float32)
    cases.append((kernel, [data((2, 9000), float32), np.zeros(2, np.float32)]))
    kernel, _ = reduction((3, 100), "j", "sum", float16)
    cases.append((kernel, [data((3, 100), float16), np.zeros(3, np.float16)]))
    cases.append((softmax(6, 100), [data((6, 100), float32), np.zeros((6, 100), np.float32)]))
    cases.append((softmax(2, 10_000), [data((2, 10_000), float32), np.zeros((2, 10_000), np.float32)]))
    cases.append((softmax(40, 6, along="i"), [data((40, 6), float32), np.zeros((40, 6), np.float32)]))
    cases.append((centered(500), [data((500,), float64), np.zeros(500), np.zeros(1)]))
    return cases


def test_reductions_interpreted(tmp_path):
    kernels, arrays = zip(*reductions())
    compare(kernels, arrays, interpret(tmp_path, kernels, arrays), rtol=1e-4, atol=1e-4)


def transposed():
    names = ("i", "j")
    body = (
        Stmt("a0", "load", (), names, ("a", Index((("i", 1), ("j", 30)))), float32),
        Stmt("b0", "load", (), ("j",), ("b", Index((("j", 1),))), float32),
        Stmt("c0", "add", ("a0", "b0"), names, None, float32),
        Stmt("p", "axis", (), ("i",), "i", int64),
        Stmt("q", "cast", ("p",), ("i",), None, float32),
        Stmt("d0", "multiply", ("c0", "q"), names, None, float32),
        Stmt("", "store", ("d0",), names, ("c", Index((("i", 20), ("j", 1)))), float32),
    )
    buffers = (
        Buffer("a", float32, 600, "in"),
        Buffer("b", float32, 20, "in"),
        Buffer("c", float32, 600, "out"),
    )
    return Kernel("transposed", (Axis("i", 30), Axis("j", 20)), buffers, body, ("f at a.py:1",))


def test_several_axes_interpreted(tmp_path):
    arrays = [[data((600,), float32), data((20,), float32), np.zeros(600, np.float32)]]
    compare([transposed()], arrays, interpret(tmp_path, [transposed()], arrays))


def test_symbolic_size_interpreted(tmp_path):
    from dyncomp.symint import ShapeEnv

    size = ShapeEnv().new_symbol(100, low=0)
    kernel = pointwise("exp", [float32], float32, size)
    arrays = [[data((333,), float32), np.zeros(333, np.float32)]]
    values = {str(size): 333}
    compare([kernel], arrays, interpret(tmp_path, [kernel], arrays, values), values)


def test_compiles_for_two_gpus(tmp_path):
    kernels = [
        transposed(),
        softmax(64, 1000),
        softmax(8, 20_000),
        reduction((5, 70), "j", "argmax", float32)[0],
    ]
    kernels.append(reduction((5, 70), "j", "prod", float32)[0])
    for op in ("tanh", "power", "remainder", "arctan2", "rint", "divide", "sqrt", "maximum"):
        dtype = int32 if op == "remainder" else float32
        arity = SCALARS[op].arity
        kernels.append(pointwise(op, [dtype] * arity, dtype, 1000))
    write(tmp_path, kernels)
    run_script(tmp_path, COMPILE)
    report = json.loads((tmp_path / "report.json").read_text())
    assert len(report) == 2 * len(kernels)
    assert all(size > 500 for _, _, size in report)


def test_what_triton_cannot_do_is_refused():
    with pytest.raises(LoweringError, match="complex"):
        render_triton(pointwise("add", [BY_NAME["complex64"]] * 2, BY_NAME["complex64"], 10))
