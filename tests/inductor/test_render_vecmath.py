"""Accuracy of generated elementary functions, in units in the last place of the true value."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dyncomp.build.toolchain import find_toolchain
from dyncomp.dtypes import bool_, complex64, complex128, float32, float64, int8, int32, int64
from dyncomp.inductor.loops.loop_ir import Axis, Buffer, Index, Kernel, Stmt
from dyncomp.inductor.render.cpp.unit import render_module
from dyncomp.inductor.schedule import LaunchKernel, Module, Segment

from .render_util import compile_kernels, pointwise

mpmath = pytest.importorskip("mpmath")

# function, range of arguments (None: all finite numbers), logarithmic spread
RANGES = {
    "exp": (-104, 89),
    "exp2": (-149, 128),
    "expm1": (-30, 88),
    "log": (0, None),
    "log2": (0, None),
    "log10": (0, None),
    "log1p": (-0.999999, 1e30),
    "sin": (-60000, 60000),
    "cos": (-60000, 60000),
    "tan": (-6000, 6000),
    "arcsin": (-1, 1),
    "arccos": (-1, 1),
    "arctan": (-1e6, 1e6),
    "sinh": (-80, 80),
    "cosh": (-80, 80),
    "tanh": (-20, 20),
    "arcsinh": (-1e12, 1e12),
    "arccosh": (1, 1e12),
    "arctanh": (-0.9999999, 0.9999999),
    "erf": (-6, 6),
    "erfc": (-6, 27.2),
    "cbrt": (None, None),
    "sigmoid": (-100, 80),
}
EXACT = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "log2": lambda x: mpmath.log(x, 2),
    "log10": lambda x: mpmath.log(x, 10),
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
}
LIMIT = {"tan": 2.5}


def arguments(name, dtype, count):
    low, high = RANGES[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    info = np.finfo(dtype.numpy)
    if high is None:
        exponent = rng.uniform(np.log2(info.tiny) - 10, info.maxexp - 1, count)
        x = np.exp2(exponent)
        x[: count // 2] = np.exp(rng.uniform(-2, 2, count // 2))
        x = x if low == 0 else x * rng.choice([-1, 1], count)
    else:
        if dtype is float64 and name in ("exp", "exp2", "expm1", "sinh", "cosh"):
            low, high = low * 7.0, high * 7.0
        x = rng.uniform(low, high, count)
        near = rng.choice([-1, 1], count) * np.exp2(rng.uniform(-30, 1, count))
        third = count // 3
        x[:third] = np.clip(near[:third], low, high)
        # near multiples of pi/2, where reductions are hardest
        if name in ("sin", "cos", "tan"):
            n = rng.integers(-1000, 1000, third)
            x[third : 2 * third] = n * (np.pi / 2)
    return x.astype(dtype.numpy)


def exact(name, x):
    function = EXACT.get(name, name)
    function = function if callable(function) else getattr(mpmath, function)
    return [function(mpmath.mpf(float(v))) for v in x]


def worst(name, dtype, count):
    x = arguments(name, dtype, count)
    out = np.zeros_like(x)
    compile_kernels([pointwise(name, [dtype], dtype, count)]).run([x, out])
    with mpmath.workdps(40):
        true = exact(name, x)
        rounded = np.array([float(t) for t in true]).astype(dtype.numpy)
        unit = np.spacing(np.abs(rounded))
        errors = np.array([abs(float(mpmath.mpf(float(o)) - t)) for o, t in zip(out, true)]) / unit.astype(
            np.float64
        )
    finite = np.isfinite(rounded)
    assert (out[~finite] == rounded[~finite]).all()
    place = int(np.nanargmax(np.where(finite, errors, 0)))
    assert np.isfinite(errors[finite]).all(), x[finite][~np.isfinite(errors[finite])][:5]
    return float(errors[place]), x[place]


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("name", sorted(RANGES))
def test_accuracy(name, dtype):
    check_accuracy(name, dtype, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("name", sorted(RANGES))
def test_accuracy_of_more(name, dtype):
    check_accuracy(name, dtype, 20_000)


def check_accuracy(name, dtype, count):
    error, where = worst(name, dtype, count)
    assert error <= LIMIT.get(name, 2.0), f"{name}({where!r}) is off by {error:.2f} ulp"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RANGES))
def test_accuracy_float32_millions(name):
    """float32 against NumPy's float64 functions."""
    if name in ("erf", "erfc"):
        pytest.skip("NumPy has none")
    count = 4_000_000
    x = arguments(name, float32, count)
    out = np.zeros_like(x)
    compile_kernels([pointwise(name, [float32], float32, count)]).run([x, out])
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        true = 1 / (1 + np.exp(-wide)) if name == "sigmoid" else getattr(np, name)(wide)
        rounded = true.astype(np.float32)
        errors = np.abs(out - true) / np.spacing(np.abs(rounded))
    finite = np.isfinite(rounded)
    assert errors[finite].max() <= 2.0


def run_binary(name, dtype, x, y):
    x, y = np.ascontiguousarray(x, dtype.numpy), np.ascontiguousarray(y, dtype.numpy)
    out = np.zeros_like(x)
    compile_kernels([pointwise(name, [dtype, dtype], dtype, x.size)]).run([x, y, out])
    return out


def run_constant(dtype, x, exponent):
    """x to the power of a constant."""
    base = pointwise("power", [dtype, dtype], dtype, x.size)
    const = Stmt("x1", "const", (), (), exponent, dtype)
    body = tuple(const if s.out == "x1" else s for s in base.body)
    kernel = Kernel("power", base.axes, base.buffers[:1] + base.buffers[2:], body)
    x = np.ascontiguousarray(x, dtype.numpy)
    out = np.zeros_like(x)
    compile_kernels([kernel]).run([x, out])
    return out


def ulps(out, true):
    """Largest distance of ``out`` from numbers of mpmath; overflow must be infinity."""
    worst = 0.0
    with np.errstate(over="ignore"):
        rounded = np.array([float(t) for t in true]).astype(out.dtype)
    assert (out[np.isinf(rounded)] == rounded[np.isinf(rounded)]).all()
    for o, t, r in zip(out, true, rounded):
        if np.isfinite(r):
            worst = max(worst, abs(float((mpmath.mpf(float(o)) - t) / float(np.spacing(abs(r))))))
    return worst


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_power_accuracy(dtype):
    """All magnitudes of the result, overflow and denormals included; bases near 1 with huge exponents."""
    count = 4000
    rng = np.random.default_rng(0)
    top = np.log(np.finfo(dtype.numpy).max)
    x = np.exp(rng.uniform(-top, top, count))
    x[:1000] = np.exp(rng.uniform(-1, 1, 1000))
    x[1000:1500] = 1 + rng.uniform(-1e-3, 1e-3, 500)
    x[1500:1600] = np.finfo(dtype.numpy).smallest_subnormal * rng.integers(1, 9, 100)
    x = x.astype(dtype.numpy)
    y = (rng.uniform(-1.07, 1.03, count) * top / np.log(x.astype(np.float64))).astype(dtype.numpy)
    out = run_binary("power", dtype, x, y)
    with mpmath.workdps(50):
        true = [mpmath.mpf(float(a)) ** mpmath.mpf(float(b)) for a, b in zip(x, y)]
        assert ulps(out, true) <= 2.0


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("exponent", [2.2, -1.7, 7.0, -3.0, 1e-3, 0.0, np.inf, -np.inf, np.nan])
def test_power_by_a_constant_has_the_same_bits(dtype, exponent):
    x = np.random.default_rng(0).uniform(0.01, 30, 67)
    x[:9] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, -2.5, -3]
    if exponent == -3.0:
        x[8] = 3  # by products and a quotient there
        x = np.abs(x)
        np.testing.assert_allclose(
            run_constant(dtype, x, exponent), run_binary("power", dtype, x, np.full(67, exponent)), rtol=1e-6
        )
        return
    one = run_constant(dtype, x, exponent)
    other = run_binary("power", dtype, x, np.full(67, exponent))
    assert np.array_equal(one, other, equal_nan=True)
    assert (np.signbit(one) == np.signbit(other))[~np.isnan(one)].all()


def c_power(x, y):
    """The C library's pow, the definition of special values."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.pow.restype = ctypes.c_double
    library.pow.argtypes = [ctypes.c_double, ctypes.c_double]
    return np.array([library.pow(float(a), float(b)) for a, b in zip(x, y)])


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_power_of_special_values(dtype):
    info = np.finfo(dtype.numpy)
    special = [
        0.0,
        1.0,
        np.inf,
        np.nan,
        0.5,
        2.0,
        3.0,
        2.5,
        1e-30,
        1e30,
        9007199254740991.0,
        2.0**53,
        2.0**60,
    ]
    special += [float(info.max), float(info.tiny), float(info.smallest_subnormal), 1.0 + float(info.eps)]
    values = np.array([*special, *[-v for v in special]]).astype(dtype.numpy)
    x = np.repeat(values, values.size)
    y = np.tile(values, values.size)
    out = run_binary("power", dtype, x, y)
    with np.errstate(over="ignore"):
        want = c_power(x, y).astype(dtype.numpy)
    signs = np.signbit(out) == np.signbit(want)
    same = (out == want) & signs | (np.isnan(out) & np.isnan(want))
    with np.errstate(all="ignore"):
        near = np.abs(out - want) <= 2 * np.spacing(np.abs(want))
    ordinary = np.isfinite(x) & (x != 0) & np.isfinite(y)
    good = same | near & signs & ordinary
    assert good.all(), [(x[k], y[k], out[k], want[k]) for k in np.flatnonzero(~good)[:5]]


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_hypot_accuracy(dtype):
    count = 4000
    rng = np.random.default_rng(0)
    top = np.log(np.finfo(dtype.numpy).max)
    x = np.exp(rng.uniform(-top * 1.05, top, count)).astype(dtype.numpy)
    near = x.astype(np.float64) * np.exp(rng.uniform(-4, 4, count))
    y = np.clip(near, 0, np.finfo(dtype.numpy).max).astype(dtype.numpy)
    out = run_binary("hypot", dtype, x, -y)
    with mpmath.workdps(50):
        true = [mpmath.sqrt(mpmath.mpf(float(a)) ** 2 + mpmath.mpf(float(b)) ** 2) for a, b in zip(x, y)]
        assert ulps(out, true) <= 1.5


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_hypot_and_modulus_of_special_values(dtype):
    info = np.finfo(dtype.numpy)
    small = [float(info.tiny), float(info.smallest_subnormal)]
    parts = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, float(info.max) / 2, *small], dtype.numpy)
    x, y = np.repeat(parts, parts.size), np.tile(parts, parts.size)
    with np.errstate(all="ignore"):
        want = np.hypot(x, y)
    np.testing.assert_array_equal(run_binary("hypot", dtype, x, y), want)
    kind = complex64 if dtype is float32 else complex128
    z = np.empty(x.size, kind.numpy)
    z.real, z.imag = x, y
    out = np.zeros_like(x)
    compile_kernels([pointwise("abs", [kind], dtype, x.size)]).run([z, out])
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("name", sorted({*RANGES} - {"erf", "erfc", "sigmoid"}))
def test_special_values(name, dtype):
    """NaN, infinities, signed zeros and denormals as NumPy's."""
    info = np.finfo(dtype.numpy)
    least = float(info.smallest_subnormal)
    x = np.array([0.0, np.inf, np.nan, least, 3 * least, 1.0, 1.5, float(info.max)], dtype.numpy)
    x = np.concatenate([x, -x])
    out = np.zeros_like(x)
    compile_kernels([pointwise(name, [dtype], dtype, x.size)]).run([x, out])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x)
    exact = ~np.isfinite(want) | (want == 0)
    np.testing.assert_array_equal(out[exact], want[exact])
    assert (np.signbit(out) == np.signbit(want))[exact & ~np.isnan(want)].all()
    np.testing.assert_allclose(out[~exact], want[~exact], rtol=8 * float(info.eps), atol=least)


def test_special_values_of_erfc():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 30.0, -30.0, 26.6, 27.0])
    out = np.zeros_like(x)
    compile_kernels([pointwise("erfc", [float64], float64, x.size)]).run([x, out])
    np.testing.assert_allclose(out, [math.erfc(v) for v in x], rtol=1e-15, atol=1e-323)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_arguments(name, dtype):
    """One huge argument sends its strip to the complete form; neighbours keep their bits."""
    x = np.linspace(-50, 50, 9000).astype(dtype.numpy)
    compiled = compile_kernels([pointwise(name, [dtype], dtype, 9000)])
    before = np.zeros_like(x)
    compiled.run([x, before])
    huge = np.array([1e5, 3e7, 1e22, 3.4e38, np.inf, np.nan] + [1e300] * (dtype is float64)).astype(
        dtype.numpy
    )
    y = x.copy()
    y[100 : 100 + len(huge)] = huge
    after = np.zeros_like(x)
    compiled.run([y, after])
    kept = np.ones(9000, bool)
    kept[100 : 100 + len(huge)] = False
    assert before[kept].tobytes() == after[kept].tobytes()
    with np.errstate(all="ignore"):
        want = getattr(np, name)(huge.astype(np.float64))
    np.testing.assert_allclose(after[~kept], want, rtol=1e-6 if dtype is float32 else 1e-15)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize(
    "name",
    ["exp", "log", "sin", "tanh", "erf", "erfc", "arctan", "cbrt", "log1p", "sinh", "cosh", "power", "hypot"],
)
def test_results_do_not_depend_on_position(name, dtype):
    binary = name in ("power", "hypot")
    args = [np.random.default_rng(k).uniform(0.1, 9, 67).astype(dtype.numpy) for k in range(1 + binary)]
    compiled = compile_kernels([pointwise(name, [dtype] * len(args), dtype, 67)])
    whole = np.zeros_like(args[0])
    compiled.run([*args, whole])
    for shift in (1, 5, 16):
        moved = np.zeros_like(whole)
        compiled.run([*(np.roll(x, shift) for x in args), moved])
        assert np.roll(moved, -shift).tobytes() == whole.tobytes()


@pytest.mark.parametrize(
    "name, low, high", [("exp", -105, -87), ("exp2", -151, -126), ("sigmoid", -105, -87)]
)
def test_denormal_results(name, low, high):
    """Within 1.5 units, down to zero; what is far below is zero, too."""
    x = np.append(np.linspace(low, high, 999), [-176.0, -254.0, -1e9, -np.inf]).astype(np.float32)
    out = np.full_like(x, 9)
    compile_kernels([pointwise(name, [float32], float32, x.size)]).run([x, out])
    power = np.exp2 if name == "exp2" else np.exp
    true = power(x.astype(np.float64)) / (1 + (power(x.astype(np.float64)) if name == "sigmoid" else 0))
    assert np.abs(out - true).max() <= 1.5 * np.finfo(np.float32).smallest_subnormal
    assert not out[-4:].any()


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("name", ["expm1", "tanh", "log1p", "sin"])
def test_tiny_arguments_are_their_own_results(name, dtype):
    info = np.finfo(dtype.numpy)
    x = np.concatenate([np.arange(1, 40) * info.smallest_subnormal, info.tiny * np.arange(1, 40)])
    x = np.concatenate([x, -x]).astype(dtype.numpy)
    out = np.zeros_like(x)
    compile_kernels([pointwise(name, [dtype], dtype, x.size)]).run([x, out])
    np.testing.assert_array_equal(out, x)


def test_log1p_of_huge_arguments():
    x = np.array([2.0**k * m for k in (60, 125, 126, 127) for m in (1, 1.3, 1.4143, 1.99)], np.float32)
    out = np.zeros_like(x)
    compile_kernels([pointwise("log1p", [float32], float32, x.size)]).run([x, out])
    np.testing.assert_allclose(out, np.log1p(x.astype(np.float64)), rtol=1e-7)


# Rows that are worth nothing if the compiler does not vectorise them.
VECTORS = {
    "one": (
        *("exp", "exp2", "log", "log2", "log1p", "expm1", "tanh", "sinh", "cosh", "cbrt"),
        *("erf", "erfc", "arctan", "sigmoid"),
    ),
    "two": ("power", "hypot", "arctan2", "fmod"),
}


def test_gcc_vectorises_every_helper(tmp_path):
    toolchain = find_toolchain()
    if (
        "Free Software Foundation"
        not in subprocess.run(
            [toolchain.compiler, "--version"], capture_output=True, text=True, check=True
        ).stdout
    ):
        pytest.skip("another compiler")
    kernels = {}
    for dtype in (float32, float64):
        for arity, names in enumerate(VECTORS.values(), 1):
            for name in names:
                kernels[name, dtype.name] = pointwise(name, [dtype] * arity, dtype, 4096)
    kernels["floor_divide", "int64"] = constant_divisor(7)
    kernels["floor_divide", "-int64"] = constant_divisor(-10)
    kernels["abs", "complex128"] = pointwise("abs", [complex128], float64, 4096)
    for name in ("add", "multiply", "divide", "maximum"):
        kernels[name, "complex128"] = pointwise(name, [complex128] * 2, complex128, 4096)
    kernels["where", "complex128"] = complex_choice()
    kernels["cast", "bool"] = counted()
    for dtype in (float32, float64, int32, int64):
        kernels["where", dtype.name] = chosen_by_flag(dtype)
    source = tmp_path / "vectors.cpp"
    for key, kernel in kernels.items():
        step = LaunchKernel(kernel, tuple(range(len(kernel.buffers))), 1, 1.0)
        module = Module("test", (Segment("run", (step,)),), ())
        source.write_text(render_module(module, 0.0))
        command = [toolchain.compiler, *toolchain.flags, "-fopt-info-vec-optimized", "-c", str(source)]
        done = subprocess.run(
            [*command, "-o", str(tmp_path / "out.o")], capture_output=True, text=True, check=True
        )
        assert "loop vectorized" in done.stderr, key


def counted():
    """Whether x == y, as a number."""
    base = pointwise("equal", [float64, float64], bool_, 4096)
    *body, store = base.body
    axes = store.axes
    body.append(Stmt("number", "cast", (body[-1].out,), axes, None, float64))
    body.append(Stmt("", "store", ("number",), axes, store.arg, float64))
    buffers = (*base.buffers[:-1], replace(base.buffers[-1], dtype=float64))
    return Kernel("counted", base.axes, buffers, tuple(body))


def chosen_by_flag(dtype, flags=1, rows=16, columns=1024):
    """x + x, or x * x, as one flag says or one for each row."""
    whole, axes = Index((("i", columns), ("j", 1))), ("i", "j")
    place, over = (Index(), ()) if flags == 1 else (Index((("i", 1),)), ("i",))
    body = (
        Stmt("c", "load", (), over, ("in0", place), bool_),
        Stmt("x", "load", (), axes, ("in1", whole), dtype),
        Stmt("twice", "add", ("x", "x"), axes, None, dtype),
        Stmt("square", "multiply", ("x", "x"), axes, None, dtype),
        Stmt("y", "where", ("c", "twice", "square"), axes, None, dtype),
        Stmt("", "store", ("y",), axes, ("out", whole), dtype),
    )
    sizes = (
        ("in0", bool_, flags, "in"),
        ("in1", dtype, rows * columns, "in"),
        ("out", dtype, rows * columns, "out"),
    )
    buffers = tuple(Buffer(*size) for size in sizes)
    return Kernel("where", (Axis("i", rows), Axis("j", columns)), buffers, body)


@pytest.mark.parametrize("dtype", [int8, int32, float32, float64, complex128], ids=str)
@pytest.mark.parametrize("chosen", [[True], [False], [False, True, True, False] * 4], ids=str)
def test_selection_by_conditions_from_outside_the_loop(dtype, chosen):
    flags = np.array(chosen)
    x = np.arange(16 * 1024).reshape(16, 1024).astype(dtype.numpy)
    out = np.zeros_like(x)
    compile_kernels([chosen_by_flag(dtype, flags.size)]).run([flags, x, out])
    np.testing.assert_array_equal(out, np.where(flags[:, None], x + x, x * x))


def complex_choice():
    """Where |x * x + y| > 2 a constant, else x * x + y."""
    base = pointwise("add", [complex128, complex128], complex128, 4096)
    load_x, load_y, _, store = base.body
    axes = load_x.axes
    body = (
        load_x,
        load_y,
        Stmt("square", "multiply", (load_x.out, load_x.out), axes, None, complex128),
        Stmt("sum", "add", ("square", load_y.out), axes, None, complex128),
        Stmt("size", "abs", ("sum",), axes, None, float64),
        Stmt("two", "const", (), (), 2.0, float64),
        Stmt("far", "greater", ("size", "two"), axes, None, bool_),
        Stmt("limit", "const", (), (), 2.0, complex128),
        Stmt("chosen", "where", ("far", "limit", "sum"), axes, None, complex128),
        Stmt("", "store", ("chosen",), axes, store.arg, complex128),
    )
    return Kernel("where", base.axes, base.buffers, body)


def constant_divisor(divisor):
    base = pointwise("floor_divide", [int64, int64], int64, 4096)
    const = Stmt("x1", "const", (), (), divisor, int64)
    body = tuple(const if s.out == "x1" else s for s in base.body)
    return Kernel("floor_divide", base.axes, base.buffers[:1] + base.buffers[2:], body)


def test_polynomials_are_as_fitted():
    tool = Path(__file__).parents[2] / "tools" / "fit_math.py"
    done = subprocess.run([sys.executable, str(tool)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
