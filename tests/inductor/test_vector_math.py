"""Elementary functions in the runtime: bits as inlined, calls with vectors, and when they are called."""

from __future__ import annotations

import ctypes
import dataclasses
import re

import numpy as np
import pytest

import dyncomp
import dyncomp.inductor.compile as inductor
from dyncomp.build.library import load_vector_math
from dyncomp.build.toolchain import find_toolchain
from dyncomp.dtypes import float16, float32, float64, int8
from dyncomp.inductor.loops.loop_ir import Axis, Buffer, Index, Kernel, Stmt
from dyncomp.inductor.render.cpp import kernel as cpp_kernel
from dyncomp.inductor.render.cpp.sections import vector_declaration, vector_functions
from dyncomp.prims.scalar import SCALARS

from .render_util import compile_kernels, pointwise

pytestmark = pytest.mark.skipif(
    not (load_vector_math() and find_toolchain().calls_vectors),
    reason="this compiler or processor does not call functions on vectors",
)

IN_RUNTIME = [
    (op, dtype)
    for op in SCALARS
    for dtype in (float32, float64)
    if dtype.kind in SCALARS[op].kind_names and cpp_kernel.is_in_runtime(op, dtype)
]


def test_every_function_is_there():
    variants = [name for name in vector_functions() if "_beside_one_" in name]
    assert len(IN_RUNTIME) + len(variants) == len(vector_functions())
    for name, arity in vector_functions().items():
        lanes = ("4", "8", "8", "16") if name.endswith("f32") else ("2", "4", "4", "8")
        forms = [f"_ZGV{abi}N{n}{'v' * arity}_{name}" for abi, n in zip("bcde", lanes)]
        for symbol in (name, *forms):
            assert hasattr(ctypes.CDLL(None), symbol)


def arguments(dtype, count: int) -> list[np.ndarray]:
    """Numbers of all sizes, with what is special about them."""
    rng = np.random.default_rng(7)
    made = []
    for _ in range(count):
        x = rng.standard_normal(1501) * np.exp2(rng.integers(-12, 12, 1501))
        far = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1e30, -1e18, 3e5, 1e-40, 1e-310])
        made.append(np.concatenate([x, rng.permutation(far)]).astype(dtype.numpy))
    return made


@pytest.mark.parametrize("dtype", (float32, float64), ids=str)
def test_same_bits_as_inlined(dtype):
    ops = [op for op, of in IN_RUNTIME if of is dtype]
    count = len(arguments(dtype, 1)[0])
    kernels = [pointwise(op, [dtype] * SCALARS[op].arity, dtype, count) for op in ops]
    inlined = compile_kernels(kernels)
    called = compile_kernels(kernels, point_ns=0.0, vector_calls=True)
    assert "dcv_" in called.source
    for number, op in enumerate(ops):
        x = arguments(dtype, SCALARS[op].arity)
        one, other, split = (np.empty_like(x[0]) for _ in range(3))
        inlined.run([*x, one], f"run_{number}", split=False)
        called.run([*x, other], f"run_{number}", split=False)
        called.run([*x, split], f"run_{number}")
        assert one.tobytes() == other.tobytes() == split.tobytes(), op


# -- where digits are lost in a sum -----------------------------------------------------------
def beside_one(x):
    return 1.0 + np.tanh(x), np.tanh(x * 0.5) - 2.0 * x


def test_tanh_beside_one(monkeypatch):
    sources = []
    render = inductor.render_module
    monkeypatch.setattr(inductor, "render_module", lambda *a: sources.append(render(*a)) or sources[-1])
    x = np.concatenate([np.linspace(-12, 12, 100_001), arguments(float32, 1)[0]]).astype(np.float32)
    found, apart = dyncomp.compile(beside_one)(x)
    assert len(re.findall(r"tanh_beside_one_f32\(v_", sources[0])) == 1
    assert len(re.findall(r"tanh_f32\(v_", sources[0])) == 1
    exact = 1.0 + np.tanh(x.astype(np.float64))
    error = np.abs(found - exact)[~np.isnan(x)]
    assert (error <= 1.6 * 2.0**-23).all()
    assert (found[x < -9.1] == 0).all()
    assert (found[x > 9.1] == 2).all()
    assert np.isnan(found[np.isnan(x)]).all()
    np.testing.assert_allclose(apart, beside_one(x)[1], rtol=1e-6)


@pytest.mark.parametrize("size", (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33))
def test_tails(size):
    kernels = [pointwise(op, [dtype], dtype, size) for op, dtype in (("sin", float32), ("exp", float64))]
    called = compile_kernels(kernels, point_ns=0.0, vector_calls=True)
    for number, dtype in enumerate((float32, float64)):
        x = arguments(dtype, 1)[0]
        whole = np.empty_like(x)
        name = ("sin", "exp")[number]
        compile_kernels([pointwise(name, [dtype], dtype, len(x))]).run([x, whole])
        for start in range(0, len(x) - size, 211):
            part = np.empty(size + 1, dtype.numpy)
            part[size] = 17
            called.run([x[start : start + size].copy(), part], f"run_{number}")
            assert part[:size].tobytes() == whole[start : start + size].tobytes()
            assert part[size] == 17


def selecting() -> Kernel:
    """``where(a > 0, sin(b), b)`` with a of int8 and a half-precision copy of the result."""
    here = Index((("i", 1),))
    body = (
        Stmt("a", "load", (), ("i",), ("a", here), int8),
        Stmt("b", "load", (), ("i",), ("b", here), float64),
        Stmt("z", "const", (), (), 0, int8),
        Stmt("c", "greater", ("a", "z"), ("i",), None, dyncomp.dtypes.bool_),
        Stmt("s", "sin", ("b",), ("i",), None, float64),
        Stmt("w", "where", ("c", "s", "b"), ("i",), None, float64),
        Stmt("h", "cast", ("w",), ("i",), None, float32),
        Stmt("", "store", ("w",), ("i",), ("out", here), float64),
        Stmt("", "store", ("h",), ("i",), ("low", here), float32),
    )
    sides = (("a", int8, "in"), ("b", float64, "in"), ("out", float64, "out"), ("low", float32, "out"))
    buffers = tuple(Buffer(name, dtype, 1003, mode) for name, dtype, mode in sides)
    return Kernel("selecting", (Axis("i", 1003),), buffers, body)


def test_loops_with_selections_call_vectors():
    made = compile_kernels([selecting()], point_ns=0.0, vector_calls=True)
    assert re.search(rb"N[48]v_dcv_sin_f64", made.library.path.read_bytes())
    a = np.resize(np.array([1, -1, 0], np.int8), 1003)
    b = arguments(float64, 1)[0][:1003]
    out, low = np.empty(1003), np.empty(1003, np.float32)
    made.run([a, b, out, low])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out, np.where(a > 0, np.sin(b), b), rtol=1e-15)
        assert low.tobytes() == out.astype(np.float32).tobytes()


def program(x):
    for _ in range(3):
        x = np.exp(np.sin(x))
    return x.sum(axis=0)


def test_programs_agree(monkeypatch):
    x = np.linspace(-30.0, 30.0, 5 * 1001).reshape(5, 1001)
    expected = program(x)
    results = []
    for available in (True, False):
        monkeypatch.setattr(inductor, "load_vector_math", lambda available=available: available)
        results.append(dyncomp.compile(program, fullgraph=True)(x))
    np.testing.assert_allclose(results[0], expected, rtol=1e-13)
    assert results[0].tobytes() == results[1].tobytes()


def inlines(ops, points: int, monkeypatch) -> bool:
    """Whether a program of ``ops`` on so many points has its functions inlined."""
    sources = []
    render = inductor.render_module
    monkeypatch.setattr(inductor, "render_module", lambda *a: sources.append(render(*a)) or sources[-1])

    def composed(x):
        for op in ops:
            x = op(x)
        return x

    dyncomp.compile(composed, options={"unroll_limit": 50})(np.ones(points))
    monkeypatch.undo()
    return not re.search(r"\bdcv_(?!stream_)", sources[0])  # stores past the caches are no functions


def test_few_functions_of_large_arrays_are_inlined(monkeypatch):
    assert not inlines([np.exp], 100, monkeypatch)
    assert inlines([np.exp, np.tanh], 5_000_000, monkeypatch)
    assert not inlines([np.exp, np.tanh, np.log], 5_000_000, monkeypatch)
    assert not inlines([np.sin, np.cos], 5_000_000, monkeypatch)


def test_code_grows_by_a_line_for_each_operation(monkeypatch):
    sources = []
    render = inductor.render_module
    monkeypatch.setattr(inductor, "render_module", lambda *a: sources.append(render(*a)) or sources[-1])

    def chain(x, steps):
        for k in range(steps):
            x = np.sin(x) * 0.5 + (k + 0.25)  # no two kernels are equal
        return x

    lines = []
    for steps in (100, 200):
        dyncomp.compile(chain, options={"unroll_limit": 500, "unroll_ops": 5000})(np.ones(50), steps)
        assert sources[-1].count("= dcv_sin_f64(") == steps
        lines.append(sources[-1].count("\n"))
    kernels = len(re.findall(r"i64 kernel_\w+\(.*\{", sources[-1]))
    assert lines[1] - lines[0] <= 100 * 3 + 15 * kernels


def test_other_compilers_inline():
    gcc = find_toolchain()
    assert gcc.calls_vectors
    assert not dataclasses.replace(gcc, compiler="/usr/bin/clang++").calls_vectors


def test_declarations():
    assert "const)) float dcv_pow_f32(float, float) noexcept" in vector_declaration("dcv_pow_f32")


def test_half_types_use_single_precision():
    made = compile_kernels([pointwise("exp", [float16], float16, 100)], point_ns=0.0, vector_calls=True)
    x = np.linspace(-5, 5, 100).astype(np.float16)
    y = np.empty_like(x)
    made.run([x, y])
    np.testing.assert_allclose(y, np.exp(x), rtol=2e-3)
