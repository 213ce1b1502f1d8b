"""The Triton renderer: values by Triton's interpreter, validity by compiling ahead of time for two GPUs.

Interpreting and compiling cannot share a process, and both want a process of their own: each test sends a
batch of kernels to one.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dyncomp.dtypes import BY_NAME, bool_, float16, float32, float64, int32, int64
from dyncomp.errors import LoweringError
from dyncomp.inductor.loops.loop_ir import Axis, Buffer, Index, Kernel, Stmt
from dyncomp.inductor.render.triton.unit import render_triton
from dyncomp.prims.scalar import SCALARS, result_dtype

from .render_util import pointwise, reference
from .test_render_cpp import (
    affine,
    axes_of,
    centered,
    contiguous,
    data,
    gather_kernel,
    reduction,
    softmax,
    standardised,
)

pytest.importorskip("triton")

INTERPRET = """
import importlib.util, json, sys
import numpy as np
from tests.inductor.gpu_simulator import Memory, install

install()
folder = sys.argv[1]
for k, job in enumerate(json.load(open(folder + "/jobs.json"))):
    with np.load(f"{folder}/job{k}.npz") as stored:
        arrays = [stored[n].copy() for n in sorted(stored.files)]
    flat = [a.reshape(-1) for a in arrays]
    flat = [f[o:] for f, o in zip(flat, job["origins"] or [0] * len(flat))]
    flat = [f.view(f.real.dtype) if f.dtype.kind == "c" else f for f in flat]
    flat = [f.view(np.int8) if f.dtype == bool else f for f in flat]
    views = [Memory(f, t) for f, t in zip(flat, job["dtypes"])]
    spaces = [Memory(np.full(n, 77, np.dtype(t)), t) for t, n in job["workspaces"]]
    for step, part in enumerate(job["kernels"]):
        spec = importlib.util.spec_from_file_location(f"job{k}_{step}", f"{folder}/job{k}_{step}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        pointers = [views[b] if b >= 0 else spaces[-1 - b] for b in part["buffers"]]
        try:
            with np.errstate(all="ignore"):
                getattr(module, part["name"])[(part["grid"],)](*pointers, *part["symbols"], **part["blocks"])
        except Exception as error:
            raise RuntimeError(open(f"{folder}/job{k}_{step}.py").read()) from error
    np.savez(f"{folder}/done{k}.npz", **{f"a{n:02}": a for n, a in enumerate(arrays)})
"""

COMPILE = """
import json, pickle, re, subprocess, sys
from pathlib import Path
import triton
from triton.backends.compiler import GPUTarget
from dyncomp.inductor.gpu.launch import compile_kernel, load_module

folder = Path(sys.argv[1])
tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"

def resources(binary):
    path = folder / "kernel.cubin"
    path.write_bytes(binary)
    command = [str(tools / "cuobjdump"), "-res-usage", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: int(re.search(name + r":(\\d+)", text)[1]) for name in ("REG", "STACK")}

report = []
targets = [GPUTarget(*t) for t in json.loads((folder / "targets.json").read_text())]
for kernel in pickle.loads((folder / "kernels.pickle").read_bytes()):
    module = load_module(kernel.name, kernel.source)
    for target in targets:
        compiled = compile_kernel(getattr(module, kernel.name), kernel, True, target)
        cuda = target.backend == "cuda"
        binary = compiled.asm["cubin" if cuda else "hsaco"]
        used = resources(binary) if cuda else {}
        report.append([kernel.name, str(target.arch), len(binary), compiled.metadata.shared, used])
(folder / "report.json").write_text(json.dumps(report))
"""


def write(folder: Path, kernels, arrays=None, values=None, origins=None):
    jobs = []
    rendered = []
    for k, kernel in enumerate(kernels):
        made = render_triton(kernel)
        rendered += made.kernels
        parts = []
        for step, part in enumerate(made.kernels):
            (folder / f"job{k}_{step}.py").write_text(part.source)
            parts.append(
                {
                    "name": part.name,
                    "grid": part.grid(values),
                    "buffers": part.buffers,
                    "symbols": [(values or {})[s] for s in part.symbols],
                    "blocks": part.blocks,
                }
            )
        spaces = []
        for space in made.workspaces:
            size = space.size if isinstance(space.size, int) else space.size.evaluate(values)
            spaces.append([space.dtype.name, size])
        dtypes = ["int8" if b.dtype.is_bool else b.dtype.real.name for b in kernel.buffers]
        jobs.append(
            {"kernels": parts, "workspaces": spaces, "dtypes": dtypes, "origins": origins and origins[k]}
        )
        if arrays is not None:
            np.savez(folder / f"job{k}.npz", **{f"a{n:02}": a for n, a in enumerate(arrays[k])})
    (folder / "jobs.json").write_text(json.dumps(jobs))
    (folder / "kernels.pickle").write_bytes(pickle.dumps(rendered))
    (folder / "targets.json").write_text(json.dumps(TARGETS))


TARGETS = [("cuda", 80, 32), ("cuda", 90, 32), ("hip", "gfx942", 64)]


def run_script(folder: Path, script: str, seconds: float = 280, **environment: str):
    path = folder / "script.py"
    path.write_text(script)
    root = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": root, **environment}
    done = subprocess.run(
        [sys.executable, str(path), str(folder)], env=env, capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stderr[-3000:]


def interpret(folder: Path, kernels, arrays, values=None, origins=None):
    """Each kernel's buffers after running it in the interpreter."""
    write(folder, kernels, arrays, values, origins)
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
            message = f"{kernel.name} {buffer.name}\n{render_triton(kernel).kernels[0].source}"
            half = buffer.dtype.itemsize == 2 and buffer.dtype.is_float
            if g.dtype.kind in "biu":
                np.testing.assert_array_equal(g, w, err_msg=message)
            else:
                np.testing.assert_allclose(
                    g, w, 2e-3 if half else rtol, 1e-3 if half else atol, err_msg=message
                )


# exp2 and the like without a NumPy counterpart in the interpreter's own ops; philox is of uint64 alone
SKIPPED = {"erf", "erfc", "lgamma", "nextafter", "ldexp", "ndtri", "philox"}
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
    from dyncomp.symbolic.integers import ShapeEnv

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
    kernels += [long_reductions()[0][0], scan("sum", (3, 9000), "j", float32), gather_kernel(10, 33, 200)]
    kernels += [scatter("add", float32), standardised(300, 200), complex_cases()[0][2]]
    write(tmp_path, kernels)
    run_script(tmp_path, COMPILE)
    report = json.loads((tmp_path / "report.json").read_text())
    assert len(report) >= 3 * len(kernels)
    for name, target, size, shared, used in report:
        assert size > 500
        assert shared <= 65536
        assert not used.get("STACK"), f"{name} spills registers on {target}"


def test_what_triton_cannot_do_is_refused():
    with pytest.raises(LoweringError, match="complex"):
        render_triton(pointwise("log", [BY_NAME["complex64"]], BY_NAME["complex64"], 10))


def complex_cases():
    kind, real = BY_NAME["complex64"], float32
    kernels, arrays = [], []
    two = ["add", "subtract", "multiply", "divide", "equal", "not_equal"]
    two += ["less", "less_equal", "greater", "greater_equal"]
    one = ["negative", "conj", "abs", "real", "imag", "exp", "isnan", "isinf", "isfinite", "square"]
    for op in (*two, *one):
        count = 2 if op in two else 1
        inputs = [data((N,), kind, k) for k in range(count)]
        inputs[0][3] = complex(np.nan, 1)
        inputs[0][4] = complex(np.inf, -1)
        if count == 2:
            inputs[1][5:9] = inputs[0][5:9]
        result = result_dtype(op, [kind] * count)
        kernels.append(pointwise(op, [kind] * count, result, N))
        arrays.append([*inputs, np.zeros(N, result.numpy)])
    kernels.append(pointwise("complex", [real, real], kind, N))
    arrays.append([data((N,), real), data((N,), real, 1), np.zeros(N, np.complex64)])
    for shape, axes in [((5, 70), "j"), ((70, 5), "i"), ((1, 40_000), "j")]:
        kernel, (total, _) = reduction(shape, axes, "sum", kind)
        kernels.append(kernel)
        arrays.append([data(shape, kind), np.zeros(total, np.complex64)])
    return kernels, arrays


def test_complex_numbers_interpreted(tmp_path):
    kernels, arrays = complex_cases()
    with np.errstate(all="ignore"):
        compare(kernels, arrays, interpret(tmp_path, kernels, arrays), rtol=1e-5, atol=1e-3)


def scan(combiner, shape, axis, dtype):
    names = tuple("ij"[: len(shape)])
    at = affine(contiguous(shape))
    total = int(np.prod(shape))
    body = (
        Stmt("x0", "load", (), names, ("x", at), dtype),
        Stmt("c", "scan", ("x0",), names, (combiner, axis), dtype),
        Stmt("", "store", ("c",), names, ("y", at), dtype),
    )
    buffers = (Buffer("x", dtype, total, "in"), Buffer("y", dtype, total, "out"))
    return Kernel("scan", axes_of(shape, axis), buffers, body)


def scan_cases():
    kernels, arrays = [], []
    cases = [("sum", (3, 9000), "j"), ("sum", (40, 20), "i"), ("prod", (70,), "i"), ("max", (2, 40), "j")]
    for dtype in (float32, int64):
        for combiner, shape, axis in (*cases, ("min", (30, 3), "i")):
            x = data(shape, dtype)
            if combiner == "prod":
                x = np.sign(x) * 1 if dtype is float32 else np.sign(x)
                x = x.astype(dtype.numpy)
            if combiner in ("max", "min") and dtype is float32:
                x.reshape(-1)[x.size // 2] = np.nan
            kernels.append(scan(combiner, shape, axis, dtype))
            arrays.append([x, np.zeros(shape, dtype.numpy)])
    return kernels, arrays


def test_scans_interpreted(tmp_path):
    kernels, arrays = scan_cases()
    compare(kernels, arrays, interpret(tmp_path, kernels, arrays), rtol=1e-4, atol=1e-3)


def scatter(combiner, dtype):
    at = Index((("i", 1),))
    body = (
        Stmt("k", "load", (), ("i",), ("index", at), int64),
        Stmt("v", "load", (), ("i",), ("value", at), dtype),
        Stmt("", "scatter", ("v", "k"), ("i",), ("y", Index(), (1,), (30,), (True,), combiner), dtype),
    )
    buffers = (
        Buffer("index", int64, 100, "in"),
        Buffer("value", dtype, 100, "in"),
        Buffer("y", dtype, 30, "inout"),
    )
    return Kernel("scatter", (Axis("i", 100),), buffers, body)


def gather_and_scatter_cases():
    index = np.random.default_rng(0).integers(-10, 10, 200)
    kernels = [gather_kernel(10, 33, 200)]
    arrays = [[index, data((10, 33), float32), np.zeros((200, 33), np.float32)]]
    index = np.random.default_rng(0).integers(-30, 30, 100)
    for combiner, dtype in [("add", float32), ("add", int32), ("max", int64), ("min", int32)]:
        kernels.append(scatter(combiner, dtype))
        arrays.append([index, data((100,), dtype), data((30,), dtype, 1)])
    once = np.concatenate([np.random.default_rng(0).permutation(30), np.full(70, 3)])
    last = data((100,), float32)
    last[once == 3] = 7.0
    kernels.append(scatter("set", float32))
    arrays.append([once, last, data((30,), float32, 1)])
    return kernels, arrays


def test_gathers_and_scatters_interpreted(tmp_path):
    kernels, arrays = gather_and_scatter_cases()
    compare(kernels, arrays, interpret(tmp_path, kernels, arrays))


def test_positions_are_checked_on_the_device():
    (part,) = render_triton(gather_kernel(10, 33, 200)).kernels
    assert part.asserts
    assert '"index out of bounds for axis with size 10"' in part.source
    assert "device_assert" not in render_triton(transposed()).kernels[0].source


def long_reductions():
    """Reductions that several programs share, over one axis and two, with bystanders."""
    kernels, arrays = [], []
    for combiner, dtype in [("sum", float32), ("max", float32), ("prod", float32), ("sum", float16)]:
        kernel, (total, _) = reduction((2, 40_000), "j", combiner, dtype)
        x = data((2, 40_000), dtype)
        if combiner == "prod":
            x = np.sign(x)
        if combiner == "sum" and dtype is float16:
            x = np.abs(x) / 64
        kernels.append(kernel)
        arrays.append([x, np.zeros(total, dtype.numpy)])
    kernel, (total, _) = reduction((40_000, 3), "i", "sum", float32)
    kernels.append(kernel)
    arrays.append([data((40_000, 3), float32), np.zeros(3, np.float32)])
    kernel, (total, _) = reduction((200, 3, 300), "ik", "sum", float32)
    kernels.append(kernel)
    arrays.append([data((200, 3, 300), float32), np.zeros(3, np.float32)])
    return kernels, arrays


def test_long_reductions_interpreted(tmp_path):
    kernels, arrays = long_reductions()
    assert all(len(render_triton(kernel).kernels) == 2 for kernel in kernels)
    compare(kernels, arrays, interpret(tmp_path, kernels, arrays), rtol=1e-3, atol=2e-2)


def test_several_reduced_axes_interpreted(tmp_path):
    kernels, arrays = [], []
    for shape, axes in [((6, 5, 7), "ik"), ((6, 5, 7), "j"), ((3, 4, 50, 60), "ik"), ((5, 6), "ij")]:
        for combiner in ("sum", "max"):
            kernel, (total, _) = reduction(shape, axes, combiner, float32)
            kernels.append(kernel)
            arrays.append([data(shape, float32), np.zeros(total, np.float32)])
    compare(kernels, arrays, interpret(tmp_path, kernels, arrays), rtol=1e-4, atol=1e-4)


def test_large_sizes_use_wide_positions():
    kernel = pointwise("exp", [float32], float32, 2**31)
    (part,) = render_triton(kernel).kernels
    assert "tl.program_id(0).to(tl.int64)" in part.source
    (part,) = render_triton(pointwise("exp", [float32], float32, 2**20)).kernels
    assert "int64" not in part.source


def test_functions_are_named_after_kernels():
    (part,) = render_triton(transposed()).kernels
    assert part.name == "transposed"
