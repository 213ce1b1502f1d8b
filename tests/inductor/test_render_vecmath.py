"""Accuracy of generated elementary functions, in units in the last place of the true value."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from dyncomp.dtypes import float32, float64

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
    error, where = worst(name, dtype, 3000)
    assert error <= LIMIT.get(name, 2.0), f"{name}({where!r}) is off by {error:.2f} ulp"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RANGES))
def test_accuracy_float32_millions(name):
    """float32 against NumPy's float64 functions."""
    if name in ("erf",):
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


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_power_accuracy(dtype):
    count = 3000
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(-5, 5, count)).astype(dtype.numpy)
    y = rng.uniform(-17, 17, count).astype(dtype.numpy)
    x[:500] = 1 + rng.uniform(-1e-3, 1e-3, 500)
    y[:500] = rng.uniform(-5e4, 5e4, 500)
    out = np.zeros_like(x)
    compile_kernels([pointwise("power", [dtype, dtype], dtype, count)]).run([x, y, out])
    with mpmath.workdps(50):
        true = [mpmath.mpf(float(a)) ** mpmath.mpf(float(b)) for a, b in zip(x, y)]
        rounded = np.array([float(t) for t in true]).astype(dtype.numpy)
        errors = [
            abs(float((mpmath.mpf(float(o)) - t) / float(np.spacing(r))))
            for o, t, r in zip(out, true, rounded)
            if np.isfinite(r)
        ]
    assert max(errors) <= 2.0


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
@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "erf", "arctan", "cbrt", "log1p"])
def test_results_do_not_depend_on_position(name, dtype):
    x = np.random.default_rng(0).uniform(0.1, 9, 67).astype(dtype.numpy)
    compiled = compile_kernels([pointwise(name, [dtype], dtype, 67)])
    whole = np.zeros_like(x)
    compiled.run([x, whole])
    for shift in (1, 5, 16):
        moved = np.zeros_like(x)
        compiled.run([np.roll(x, shift), moved])
        assert np.roll(moved, -shift).tobytes() == whole.tobytes()
