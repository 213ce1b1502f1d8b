"""Promotion of every ufunc over all pairs of dtypes and over Python scalars, against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dyncomp import dtypes
from dyncomp.errors import Unsupported
from dyncomp.frontends.base import ArrayRef, TraceContext
from dyncomp.frontends.numpy.frontend import NumpyFrontend
from dyncomp.frontends.numpy.ufuncs import elementwise_ufuncs
from dyncomp.graph.ir import GraphBuilder, array_type
from dyncomp.prims.table import TABLE

from .harness import check

FRONTEND = NumpyFrontend()
DTYPES = [d for d in dtypes.ALL if d.name != "bfloat16"]
UFUNCS = sorted(elementwise_ufuncs(), key=lambda u: u.__name__)
SCALARS = (True, 3, 2.5, 1j, np.float32(1.5), np.int64(2), np.uint8(1))

# where integers to a power are refused because a negative exponent is an error of the data
VALUE_DEPENDENT = {"power", "pow"}


def _context() -> TraceContext:
    return TraceContext(GraphBuilder(TABLE))


def _input(tx: TraceContext, dtype: dtypes.DType) -> ArrayRef:
    return ArrayRef(tx.builder.add_input(array_type(dtype, (2,))))


def _traced(ufunc: np.ufunc, *operands: Any) -> Any:
    tx = _context()
    ready = [_input(tx, o) if isinstance(o, dtypes.DType) else o for o in operands]
    rule = FRONTEND.find_function(ufunc)
    assert rule is not None
    result = rule(tx, *ready)
    return [r.dtype.numpy for r in (result if isinstance(result, tuple) else (result,))]


def _expected(ufunc: np.ufunc, *operands: Any) -> Any:
    ready = [np.ones(2, o.numpy) if isinstance(o, dtypes.DType) else o for o in operands]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = ufunc(*ready)
        except (TypeError, ValueError, OverflowError) as error:
            return error
    return [r.dtype for r in (result if isinstance(result, tuple) else (result,))]


def _agree(ufunc: np.ufunc, *operands: Any) -> None:
    wanted = _expected(ufunc, *operands)
    try:
        found = _traced(ufunc, *operands)
    except Unsupported as reason:
        assert isinstance(wanted, Exception) or _may_refuse(ufunc, operands, wanted), f"{operands}: {reason}"
        return
    assert found == wanted, (ufunc.__name__, operands, found, wanted)


def _may_refuse(ufunc: np.ufunc, operands: tuple[Any, ...], wanted: Any) -> bool:
    name = ufunc.__name__
    if any(d.char in "gGO" for d in wanted):
        return True
    if name in VALUE_DEPENDENT:
        return all(d.kind in "ib" for d in wanted)
    if name == "spacing":
        return wanted[0] == np.float16
    # ordering of complex numbers, and complex functions without a row
    return any(isinstance(o, dtypes.DType) and o.is_complex or isinstance(o, complex) for o in operands)


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_dtypes(ufunc: np.ufunc) -> None:
    for first in DTYPES:
        if ufunc.nin == 1:
            _agree(ufunc, first)
            continue
        for second in DTYPES:
            _agree(ufunc, first, second)
        for scalar in SCALARS:
            _agree(ufunc, first, scalar)
            _agree(ufunc, scalar, first)


_VALUES = {
    "bool": [True, False],
    "int": [0, 1, -1, 5, -7, 100],
    "uint": [0, 1, 2, 5, 7, 200],
    "float": [0.0, -0.0, 1.5, -2.5, np.nan, np.inf, -np.inf, 3.0],
    "complex": [0j, 1 + 2j, -1.5 + 0.5j, 3 - 1j],
}

# integer division and remainders by zero are NumPy's zeros; shifts and powers need small counts
_REAL_BINARY = [
    u
    for u in UFUNCS
    if u.nin == 2
    and u.nout == 1
    and u.__name__ not in ("power", "float_power", "ldexp", "left_shift", "right_shift")
]


@pytest.mark.parametrize("ufunc", _REAL_BINARY, ids=lambda u: u.__name__)
@pytest.mark.parametrize(
    "pair",
    [
        ("float64", "float64"),
        ("int32", "int16"),
        ("uint8", "int8"),
        ("bool", "bool"),
        ("float32", "int64"),
        ("int64", "uint64"),
        ("complex128", "float32"),
    ],
    ids="-".join,
)
def test_values(ufunc: np.ufunc, pair: tuple[str, str]) -> None:
    first, second = (dtypes.BY_NAME[name] for name in pair)
    x = np.array(_VALUES[first.kind]).astype(first.numpy)[:, None]
    y = np.array(_VALUES[second.kind]).astype(second.numpy)
    name = ufunc.__name__
    if isinstance(_expected(ufunc, first, second), Exception):
        with pytest.raises(Unsupported):
            check(lambda np, x, y: getattr(np, name)(x, y), x, y)
        return
    try:
        check(lambda np, x, y: getattr(np, name)(x, y), x, y, rtol=1e-10)
    except Unsupported as reason:
        assert first.is_complex, reason


def test_python_integers_that_do_not_fit() -> None:
    u = np.arange(4, dtype=np.uint8)
    for program in (lambda np, u: u + 256, lambda np, u: u - 300, lambda np, u: np.maximum(u, -1)):
        with pytest.raises(Unsupported, match="does not fit"):
            check(program, u)
    check(lambda np, u: (u < -1, u >= -1, u == 1000, u != 1000, u < 256, u > -5), u)


def test_negative_integer_powers() -> None:
    n = np.arange(1, 4)
    for program in (lambda np, n: n**-1, lambda np, n: n**n):
        with pytest.raises(Unsupported):
            check(program, n)
    check(lambda np, n: n.astype("u8") ** n.astype("u8"), n)


def test_minus_infinity_to_the_half() -> None:
    x = np.array([-np.inf, 4.0, -0.0])
    check(lambda np, x: (x**0.5, np.power(x, 0.5), x**-1, x**2, x**1), x)


def test_casting_of_out() -> None:
    n = np.arange(4)
    x = np.ones(4)
    with pytest.raises(Unsupported, match="[Cc]annot cast"):
        check(lambda np, n, x: np.add(n, x, out=n), n, x)
    with pytest.raises(Unsupported):
        check(lambda np, n, x: n.__itruediv__(2), n, x)
    check(lambda np, n, x: np.add(n, x, out=n, casting="unsafe"), n, x)
