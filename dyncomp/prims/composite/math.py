"""Pointwise composites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph.ir import Ops, Var
from ..kit import FLOAT, Array, widening
from ..opdef import OpDef
from ..samples import pointwise_samples
from .kit import composite

_NATIVE_FLOAT = tuple(d for d in FLOAT if d.name != "bfloat16")


def silu(ops: Ops, x: Var) -> Var:
    return ops.multiply(x, ops.sigmoid(x))


def rsqrt(ops: Ops, x: Var) -> Var:
    return ops.reciprocal(ops.sqrt(x))


@widening
def _rsqrt(x: Array) -> Array:
    return np.reciprocal(np.sqrt(x))


def _real(name: str, decomp: Callable[..., Any], ref: Callable[..., Any], doc: str, **ranges: Any) -> OpDef:
    samples = pointwise_samples(_NATIVE_FLOAT, 1, **ranges)
    return composite(name, (), decomp, ref, samples, doc, dtypes=_NATIVE_FLOAT)


ROWS: tuple[OpDef, ...] = (
    _real("silu", silu, widening(lambda x: x * (1 / (1 + np.exp(-x)))), "x*sigmoid(x).", extremes=False),
    _real("rsqrt", rsqrt, _rsqrt, "1/sqrt(x).", low=0.1),
)
