"""Pointwise composites."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...dtypes import DType, float32, float64
from ...graph.ir import Ops, Var
from ...graph.noted import silently
from ..kit import COMPLEX, FLOAT, INTEGER, REAL, Array, widening
from ..opdef import OpDef, Sample
from ..samples import pointwise_samples, special_operands
from .kit import composite, filled

_NATIVE_FLOAT = tuple(d for d in FLOAT if d.name != "bfloat16")


def _scaled(factor: float) -> Callable[..., Var]:
    def decomp(ops: Ops, x: Var) -> Var:
        return ops.multiply(x, filled(ops, x, factor))

    return decomp


def sinc(ops: Ops, x: Var) -> Var:
    """sin(pi x)/(pi x), with x = 0 replaced by a tiny value as NumPy does."""
    zero = ops.equal(x, filled(ops, x, 0))
    tiny = float(np.finfo(x.dtype.real.numpy).eps)
    y = ops.multiply(filled(ops, x, math.pi), ops.where(zero, filled(ops, x, tiny), x))
    return ops.divide(ops.sin(y), y)


def silu(ops: Ops, x: Var) -> Var:
    return ops.multiply(x, ops.sigmoid(x))


def softplus(ops: Ops, x: Var) -> Var:
    return ops.logaddexp(x, filled(ops, x, 0))


def logit(ops: Ops, x: Var) -> Var:
    return ops.log(ops.divide(x, ops.subtract(filled(ops, x, 1), x)))


def rsqrt(ops: Ops, x: Var) -> Var:
    return ops.reciprocal(ops.sqrt(x))


def xlogy(ops: Ops, x: Var, y: Var) -> Var:
    """x*log(y), 0 where x is 0 and y is not NaN."""
    zero = filled(ops, x, 0)
    none = ops.logical_and(ops.equal(x, zero), ops.logical_not(ops.isnan(y)))
    return ops.where(none, zero, ops.multiply(x, ops.log(y)))


def _infinite(sign: str) -> Callable[..., Var]:
    def decomp(ops: Ops, x: Var) -> Var:
        return ops.logical_and(ops.isinf(x), sign_of(ops, x))

    def sign_of(ops: Ops, x: Var) -> Var:
        zero = filled(ops, x, 0)
        return ops.greater(x, zero) if sign == "+" else ops.less(x, zero)

    return decomp


def nan_to_num(ops: Ops, x: Var, *, nan: float, posinf: float | None, neginf: float | None) -> Var:
    if x.dtype.is_complex:
        parts = [
            nan_to_num(ops, p, nan=nan, posinf=posinf, neginf=neginf) for p in (ops.real(x), ops.imag(x))
        ]
        return ops.complex(*parts)
    limits = np.finfo(x.dtype.numpy)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    out = ops.where(ops.isnan(x), filled(ops, x, nan), x)
    out = ops.where(ops.isposinf(x), filled(ops, x, high), out)
    return ops.where(ops.isneginf(x), filled(ops, x, low), out)


def isclose(ops: Ops, x: Var, y: Var, *, rtol: float, atol: float, equal_nan: bool) -> Var:
    """abs(x - y) <= atol + rtol*abs(y) where y is finite, x == y elsewhere."""
    bound = ops.abs(y)
    bound = ops.add(filled(ops, bound, atol), ops.multiply(filled(ops, bound, rtol), bound))
    near = ops.less_equal(ops.abs(ops.subtract(x, y)), bound)
    close = ops.logical_or(ops.logical_and(near, ops.isfinite(y)), ops.equal(x, y))
    if not equal_nan:
        return close
    return ops.logical_or(close, ops.logical_and(ops.isnan(x), ops.isnan(y)))


def divmod_(ops: Ops, x: Var, y: Var) -> tuple[Var, Var]:
    return ops.floor_divide(x, y), ops.remainder(x, y)


def modf(ops: Ops, x: Var) -> tuple[Var, Var]:
    """Fractional and integral parts, both with the sign of x."""
    whole = ops.trunc(x)
    rest = ops.where(ops.isinf(x), filled(ops, x, 0), ops.subtract(x, whole))
    return ops.copysign(rest, x), whole


def lerp(ops: Ops, x: Var, y: Var, w: Var) -> Var:
    return ops.add(x, ops.multiply(w, ops.subtract(y, x)))


# -- references -------------------------------------------------------------------------------
@widening
def _rsqrt(x: Array) -> Array:
    return np.reciprocal(np.sqrt(x))


def _xlogy(x: Array, y: Array) -> Array:
    with silently():
        return np.where((x == 0) & ~np.isnan(y), x.dtype.type(0), x * np.log(y))


def _pairwise(fn: Callable[..., Any]) -> Callable[..., tuple[Array, ...]]:
    def ref(*args: Array) -> tuple[Array, ...]:
        with silently():
            return tuple(np.asarray(r) for r in fn(*args))

    return ref


def _isclose(x: Array, y: Array, *, rtol: float, atol: float, equal_nan: bool) -> Array:
    return np.asarray(np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan))


def _nan_to_num(x: Array, *, nan: float, posinf: float | None, neginf: float | None) -> Array:
    return np.asarray(np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf))


# -- samples ----------------------------------------------------------------------------------
def _isclose_samples() -> Iterator[Sample]:
    for equal_nan in (False, True):
        params = {"rtol": 1e-5, "atol": 1e-8, "equal_nan": equal_nan}
        for dtype in (float32, float64):
            x, y = special_operands(dtype, 2)
            yield Sample((x, y), params, f"{dtype}-special-{equal_nan}")
            yield Sample((x, x * dtype.numpy.type(1.000001)), params, f"{dtype}-near-{equal_nan}")


def _nan_samples() -> Iterator[Sample]:
    for dtype in (*_NATIVE_FLOAT, *COMPLEX):
        for params in (
            {"nan": 0.0, "posinf": None, "neginf": None},
            {"nan": 2.0, "posinf": 5.0, "neginf": -5.0},
        ):
            (x,) = special_operands(dtype, 1)
            yield Sample((x,), params, f"{dtype}-special-{params['nan']}")
            if dtype.is_complex:
                bad = np.array([complex(np.nan, 1), complex(np.inf, -np.inf)], dtype.numpy)
                yield Sample((bad,), params, f"{dtype}-bad-{params['nan']}")


def _real(name: str, decomp: Callable[..., Any], ref: Callable[..., Any], doc: str, **kw: Any) -> OpDef:
    dtypes: tuple[DType, ...] = kw.pop("dtypes", _NATIVE_FLOAT)
    count = kw.pop("count", 1)
    ranges = {k: kw.pop(k) for k in ("low", "high", "extremes") if k in kw}
    return composite(
        name, (), decomp, ref, pointwise_samples(dtypes, count, **ranges), doc, dtypes=dtypes, **kw
    )


ROWS: tuple[OpDef, ...] = (
    _real("deg2rad", _scaled(math.pi / 180.0), widening(np.deg2rad), "Degrees to radians."),
    _real("rad2deg", _scaled(180.0 / math.pi), widening(np.rad2deg), "Radians to degrees."),
    _real("sinc", sinc, widening(np.sinc), "sin(pi x)/(pi x), 1 at 0.", extremes=False, absolute=32.0),
    _real("silu", silu, widening(lambda x: x * (1 / (1 + np.exp(-x)))), "x*sigmoid(x).", extremes=False),
    _real(
        "softplus",
        softplus,
        widening(lambda x: np.logaddexp(x, x.dtype.type(0))),
        "log(1 + exp(x)) without overflow.",
    ),
    _real(
        "logit",
        logit,
        widening(lambda x: np.log(x / (1 - x))),
        "log(x/(1 - x)).",
        low=0.05,
        high=0.95,
        absolute=16.0,
    ),
    _real("rsqrt", rsqrt, _rsqrt, "1/sqrt(x).", low=0.1),
    _real("xlogy", xlogy, _xlogy, "x*log(y), 0 where x is 0.", count=2, low=0.0),
    _real("isposinf", _infinite("+"), widening(np.isposinf), "Whether positive infinity."),
    _real("isneginf", _infinite("-"), widening(np.isneginf), "Whether negative infinity."),
    _real(
        "divmod",
        divmod_,
        _pairwise(np.divmod),
        "floor_divide and remainder.",
        count=2,
        dtypes=(*INTEGER, *_NATIVE_FLOAT),
    ),
    _real("modf", modf, _pairwise(np.modf), "Fractional and integral parts.", absolute=2.0),
    _real(
        "lerp",
        lerp,
        widening(lambda x, y, w: x + w * (y - x)),
        "x + w*(y - x).",
        count=3,
        extremes=False,
        absolute=64.0,
    ),
    composite(
        "nan_to_num",
        ("nan", "posinf", "neginf"),
        nan_to_num,
        _nan_to_num,
        _nan_samples,
        "NaN and infinities replaced by numbers (`None`: the largest finite ones).",
        dtypes=(*_NATIVE_FLOAT, *COMPLEX),
        eps=0.5,
    ),
    composite(
        "isclose",
        ("rtol", "atol", "equal_nan"),
        isclose,
        _isclose,
        _isclose_samples,
        "Whether abs(x - y) <= atol + rtol*abs(y), as `np.isclose` on one dtype.",
        dtypes=REAL,
    ),
)
