"""The scalar table: dtype rules, and decompositions against the rows' definitions."""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp.dtypes import bool_, complex64, complex128, float16, float32, float64, int32, int64
from dyncomp.prims.scalar import REDUCERS, SCALARS, NumpyBuilder, evaluate, result_dtype

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("name", sorted(n for n, row in SCALARS.items() if row.decomp is not None))
@pytest.mark.parametrize("dtype", [float64, complex128, int32, bool_], ids=str)
def test_decomposition_is_the_definition(name, dtype):
    row = SCALARS[name]
    if dtype.kind not in row.kind_names:
        pytest.skip(f"{name} does not take {dtype}")
    args = []
    for _ in range(row.arity):
        x = RNG.standard_normal(200) * 3
        if dtype.is_complex:
            x = x + 1j * RNG.standard_normal(200)
        x = x.astype(dtype.numpy)
        if dtype.is_float:
            x[:5] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
        args.append(RNG.permutation(x))
    with np.errstate(all="ignore"):
        got = row.decomp(NumpyBuilder(), *args)
    want = evaluate(name, args, result_dtype(name, [dtype] * row.arity))
    assert np.asarray(got).dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)


def test_dtype_rules():
    assert result_dtype("add", [int32, int32]) is int32
    assert result_dtype("less", [float32, float32]) is bool_
    assert result_dtype("abs", [complex64]) is float32
    assert result_dtype("complex", [float32, float32]) is complex64
    assert result_dtype("complex", [float64, float64]) is complex128
    assert result_dtype("where", [bool_, float16, float16]) is float16
    assert result_dtype("ldexp", [float32, int64]) is float32


@pytest.mark.parametrize(
    "name,args",
    [
        ("add", [int32, int64]),
        ("sin", [int32]),
        ("where", [int32, float32, float32]),
        ("invert", [float32]),
        ("negative", [bool_]),
        ("add", [float32]),
        ("divide", [int32, int32]),
    ],
)
def test_ill_typed_calls_are_refused(name, args):
    with pytest.raises(TypeError):
        result_dtype(name, args)


def test_builder_refuses_unknown_names():
    with pytest.raises(AttributeError, match="no scalar op"):
        NumpyBuilder().sine(1.0)


@pytest.mark.parametrize("name", sorted(REDUCERS))
def test_identities_change_nothing(name):
    reducer = REDUCERS[name]
    if reducer.position:
        pytest.skip("positions have no combining row")
    for dtype in (bool_,) if name in ("any", "all") else (int32, float32, complex64):
        x = (RNG.standard_normal(50) * 9).astype(dtype.numpy)
        identity = np.full(50, reducer.identity(dtype), dtype.numpy)
        np.testing.assert_array_equal(evaluate(reducer.combine, [identity, x], dtype), x)


def test_integer_power_wraps_and_truncates():
    x = np.array([2, -1, 1, 0, 3, -1, 2**40], np.int64)
    y = np.array([-3, -3, -7, 0, 41, -2, 2], np.int64)
    wrapped = pow(3, 41, 2**64)
    wrapped -= 2**64 * (wrapped >= 2**63)
    assert evaluate("power", [x, y], int64).tolist() == [0, -1, 1, 1, wrapped, 1, 0]
