"""Every row of the scalar table in C++ against its NumPy definition, on every dtype it takes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dyncomp import dtypes
from dyncomp.errors import LoweringError
from dyncomp.inductor.loops.loop_ir import Kernel, Stmt
from dyncomp.prims.scalar import SCALARS, evaluate, result_dtype

from .render_util import compile_kernels, pointwise

N = 1037
# Differences from NumPy, in units of the result's epsilon relative to its size, that are both's rounding.
LOOSE = {"power": 8, "tan": 4, "exp": 6, "lgamma": 40, "log": 8, "cbrt": 4, "i0": 32, "i1": 32, "ndtri": 32}
SLACK = 6
# Results near a zero of the function lose relative accuracy in both; they are held to an absolute one.
CANCELS = {"lgamma", "logaddexp", "logaddexp2", "digamma", "ndtri"}


def values(dtype: dtypes.DType, seed: int, op: str) -> np.ndarray:
    """Ordinary values, then special ones."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.integers(0, 2, N).astype(bool)
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        small = rng.integers(max(-9, info.min), 10, N).astype(dtype.numpy)
        wide = rng.integers(info.min, info.max, N, dtype=dtype.numpy, endpoint=True)
        out = np.where(rng.random(N) < 0.5, small, wide)
        out[:4] = [info.min, info.max, 0, 1]
        return out
    if dtype.is_complex:
        part = rng.standard_normal((2, N)) * 2
        return (part[0] + 1j * part[1]).astype(dtype.numpy)
    out = (rng.standard_normal(N) * rng.choice([0.1, 1.0, 10.0], N)).astype(dtype.numpy)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5], np.float64)
    grid = np.repeat(special, 10) if seed % 2 else np.tile(special, 10)
    out[-100:] = grid.astype(dtype.numpy)
    return out


def arguments(op: str, dtype: dtypes.DType) -> list[np.ndarray]:
    row = SCALARS[op]
    args = [values(dtype, seed, op) for seed in range(row.arity)]
    if op == "where":
        args[0] = values(dtypes.bool_, 5, op)
    if op == "ldexp":
        args[1] = np.random.default_rng(3).integers(-40, 40, N)
    if op == "power" and dtype.is_integer:
        args[1] = np.random.default_rng(3).integers(0, 9, N).astype(dtype.numpy)
    if op in ("left_shift", "right_shift"):
        args[1] = np.random.default_rng(3).integers(0, 2 * dtype.bits, N).astype(dtype.numpy)
    return args


def dtype_of(array: np.ndarray) -> dtypes.DType:
    found = dtypes.from_numpy(array.dtype)
    return dtypes.bfloat16 if found is None else found


# complex functions that C++ has no spelling of: a graph with one falls back
NOT_COMPLEX = {"expm1", "log1p", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"}


def close(op: str, got: np.ndarray, want: np.ndarray, dtype: dtypes.DType) -> np.ndarray:
    if got.dtype.kind in "biu":
        return got == want
    if dtype.name == "bfloat16":
        got, want, eps = got.astype(np.float32), want.astype(np.float32), 2.0**-7
    else:
        eps = float(np.finfo(got.dtype).eps)
    if dtype.itemsize == 2:
        slack = 1.01  # one rounding of a result that is accurate in float32
    else:
        slack = LOOSE.get(op, SLACK) * (4 if dtype.is_complex else 1)
    got, want = got.astype(np.complex128), want.astype(np.complex128)
    same_nan = np.isnan(got) & np.isnan(want)
    floor = {"bfloat16": 2e-38, "float16": 6e-8}.get(dtype.name, 1e-30)
    if op in CANCELS:
        floor = slack * eps
    with np.errstate(all="ignore"):
        near = np.abs(got - want) <= slack * eps * np.abs(want) + floor
    return same_nan | near | (got == want)


# Every function is compiled for these by default, and each third for every other dtype.
WHOLE = (dtypes.bool_, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.complex128)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_rows_against_numpy(dtype):
    check_rows(dtype, list(SCALARS) if dtype in WHOLE else list(SCALARS)[dtypes.ALL.index(dtype) % 3 :: 3])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d not in WHOLE], ids=str)
def test_every_row_against_numpy(dtype):
    check_rows(dtype, list(SCALARS))


def check_rows(dtype, ops):
    kernels, cases = [], []
    for op in ops:
        row = SCALARS[op]
        if dtype.kind not in row.kind_names:
            continue
        if dtype.is_complex and op in NOT_COMPLEX:
            continue
        if op == "complex" and dtype.itemsize < 4:
            continue
        args = arguments(op, dtype)
        result = result_dtype(op, [dtype_of(a) for a in args])
        kernels.append(pointwise(op, [dtype_of(a) for a in args], result, N))
        cases.append((op, args, result))
    compiled = compile_kernels(kernels)
    wrong = []
    for k, (op, args, result) in enumerate(cases):
        out = np.zeros(N, result.numpy)
        assert compiled.run([*args, out], f"run_{k}" if len(cases) > 1 else "run")[0] == 0
        want = evaluate(op, args, result)
        good = close(op, out, want, result if not dtype.is_complex else dtype)
        if not good.all():
            bad = np.flatnonzero(~good)[:3]
            wrong.append((op, [[a[i] for a in args] + [out[i], want[i]] for i in bad], int((~good).sum())))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("op", sorted(NOT_COMPLEX))
def test_functions_without_spelling_are_refused(op):
    with pytest.raises(LoweringError, match="C\\+\\+"):
        compile_kernels([pointwise(op, [dtypes.complex128], dtypes.complex128, 8)])


@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
def test_casts_against_numpy(source):
    targets = dtypes.ALL
    kernels = [pointwise("cast", [source], target, N) for target in targets]
    compiled = compile_kernels(kernels)
    data = values(source, 0, "cast")
    for k, target in enumerate(targets):
        x = data
        if not (source.is_integer or source.is_bool) and not target.is_inexact and not target.is_bool:
            # out of range is undefined in C; NumPy's own answer depends on its build
            real = np.nan_to_num(x.real.astype(np.float64), nan=0.0, posinf=9.0, neginf=-9.0)
            low = -128.0 if target.kind == "int" else 0.0
            x = np.clip(real, low, 127.0).astype(source.numpy)
        out = np.zeros(N, target.numpy)
        compiled.run([x, out], f"run_{k}")
        want = evaluate("cast", [x], target)
        if target.name == "bfloat16":
            out, want = out.astype(np.float32), want.astype(np.float32)
        np.testing.assert_array_equal(out, want, err_msg=str(target))


@pytest.mark.parametrize("exponent", [1, 2, 3, 4, -1, -2, -3, 0.5, -0.5, 1.5, -1.5, 2.5, 0])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.int32, dtypes.complex128], ids=str)
def test_power_with_constant_exponent(dtype, exponent):
    if dtype.is_integer and (exponent < 0 or exponent != int(exponent)):
        pytest.skip("NumPy refuses it or makes it floating")
    base = pointwise("power", [dtype, dtype], dtype, N)
    const = Stmt("x1", "const", (), (), exponent, dtype)
    body = tuple(const if s.out == "x1" else s for s in base.body)
    kernel = Kernel("power", base.axes, base.buffers[:1] + base.buffers[2:], body)
    x = values(dtype, 0, "power")
    out = np.zeros(N, dtype.numpy)
    compile_kernels([kernel]).run([x, out])
    want = evaluate("power", [x, np.full(N, exponent, dtype.numpy)], dtype)
    if exponent == 0.5:
        want = evaluate("sqrt", [x], dtype) if dtype.is_float else want
    assert close("power", out, want, dtype).all()


# -- integer division by constants ------------------------------------------------------------
DIVISORS = (1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 16, 25, 60, 100, 125, 127)
WIDE = (
    641,
    1000,
    6700417,
    2**31 - 1,
    2**31,
    2**31 + 1,
    10**9 + 7,
    2**32 - 1,
    2**32 + 1,
    10**18,
    2**62,
    2**62 + 1,
)


def divisors(dtype: dtypes.DType) -> list[int]:
    info = np.iinfo(dtype.numpy)
    rng = np.random.default_rng(1)
    found = {0, *DIVISORS, *WIDE, info.max, info.max - 1, info.max // 2 + 1, info.max // 3}
    found |= {int(v) for v in rng.integers(2, info.max, 6, dtype=dtype.numpy)}
    found |= {-v for v in found} | {info.min, info.min + 1}
    return sorted(v for v in found if info.min <= v <= info.max)


def numerators(dtype: dtypes.DType, divisor: int) -> np.ndarray:
    """Ends of the range, neighbours of multiples, and random numbers of every size."""
    info = np.iinfo(dtype.numpy)
    rng = np.random.default_rng(2)
    size = max(abs(divisor), 1)
    multiples = [
        size * int(k) for k in rng.integers(0, max(info.max // size, 1), 60, dtype=np.uint64, endpoint=True)
    ]
    multiples += [info.max // size * size, info.max, 0]
    near = [m + d for m in multiples for d in (-1, 0, 1)]
    bits = [int(v) >> int(k) for v, k in zip(rng.integers(0, 2**63, 300), rng.integers(0, 63, 300))]
    values = [v for n in (*near, *bits) for v in (n, -n - 1, -n) if info.min <= v <= info.max]
    return np.array([*values, info.min, info.max], dtype.numpy)


DIVISIONS = ["floor_divide", "remainder", "fmod"]
INTEGERS = [d for d in dtypes.ALL if d.is_integer]


@pytest.mark.parametrize("op", DIVISIONS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_by_constants_is_exact(op, dtype):
    """By each divisor in one of the three ways; by those with code of their own in all."""
    every, info = divisors(dtype), np.iinfo(dtype.numpy)
    special = {0, 1, -1, 2, -2, 3, info.min, info.max}
    check_division(op, dtype, sorted({*every[DIVISIONS.index(op) :: 3], *(special & {*every})}))


@pytest.mark.slow
@pytest.mark.parametrize("op", DIVISIONS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_by_every_constant_is_exact(op, dtype):
    check_division(op, dtype, divisors(dtype))


def check_division(op, dtype, chosen):
    kernels, cases = [], []
    for divisor in chosen:
        x = numerators(dtype, divisor)
        base = pointwise(op, [dtype, dtype], dtype, x.size)
        const = Stmt("x1", "const", (), (), divisor, dtype)
        body = tuple(const if s.out == "x1" else s for s in base.body)
        kernels.append(Kernel(op, base.axes, base.buffers[:1] + base.buffers[2:], body))
        cases.append((divisor, x))
    compiled = compile_kernels(kernels)
    for k, (divisor, x) in enumerate(cases):
        out = np.zeros_like(x)
        compiled.run([x, out], f"run_{k}")
        with np.errstate(all="ignore"):
            want = getattr(np, op)(x, dtype.numpy.type(divisor))
        np.testing.assert_array_equal(out, want, err_msg=str(divisor))


@pytest.mark.parametrize("op", ["floor_divide", "remainder", "fmod"])
@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=str)
def test_division_of_bytes_is_exact(op, dtype):
    every = np.arange(256).astype(np.uint8).view(dtype.numpy)
    x, y = np.repeat(every, 256), np.tile(every, 256)
    out = np.zeros_like(x)
    compile_kernels([pointwise(op, [dtype, dtype], dtype, x.size)]).run([x, y, out])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, getattr(np, op)(x, y))


# -- complex numbers --------------------------------------------------------------------------
def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c, rounded once."""
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(a.tolist(), b.tolist(), c.tolist())]
    return np.array([float(v) for v in exact])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 129])
def test_complex_product_has_the_same_bits_everywhere(size):
    rng = np.random.default_rng(size)
    a, b = rng.standard_normal((2, size)) + 1j * rng.standard_normal((2, size))
    out = np.zeros_like(a)
    kind = dtypes.complex128
    compile_kernels([pointwise("multiply", [kind, kind], kind, size)]).run([a, b, out])
    np.testing.assert_array_equal(out.real, fused(a.real, b.real, -(a.imag * b.imag)))
    np.testing.assert_array_equal(out.imag, fused(a.real, b.imag, a.imag * b.real))


@pytest.mark.parametrize("op", ["multiply", "divide", "add"])
@pytest.mark.parametrize("dtype", [dtypes.complex64, dtypes.complex128], ids=str)
def test_complex_special_values(op, dtype):
    parts = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan])
    z = np.empty(parts.size**2, dtype.numpy)
    z.real, z.imag = np.repeat(parts, parts.size), np.tile(parts, parts.size)
    a, b = np.repeat(z, z.size), np.tile(z, z.size)
    out = np.zeros_like(a)
    compile_kernels([pointwise(op, [dtype, dtype], dtype, a.size)]).run([a, b, out])
    with np.errstate(all="ignore"):
        want = getattr(np, op)(a, b)
    for got, expected in ((out.real, want.real), (out.imag, want.imag)):
        np.testing.assert_array_equal(got, expected)
        if op != "multiply":  # the sign of a zero difference of products depends on NumPy's build
            number = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))
