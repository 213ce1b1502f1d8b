"""``options={"random": "fused"}``: uniform numbers that kernels make from one seed for each call of a graph.

The seed is drawn from torch's default generator where the first of these numbers is asked for, before the
graph; so ``manual_seed`` repeats a run. The element ``i`` in C order of the ``n``-th array of a graph is made
of 64 bits: Philox4x32-10 with the seed as key and the counter ``i + n * 2**48``. Its upper 24 bits are a
float32 in [0, 1), the upper 53 a float64. Nothing of that is saved for a backward pass, which makes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...device import CPU
from ...dtypes import DType, float32, int32, int64, uint64
from ...graph.ir import Var
from ...symbolic.integers import Dim
from ..base import ArrayRef, TraceContext

_PLACES = 48  # bits of a counter that are the place in an array
_SIGNIFICANT = 24

DrawSeed = Callable[[], ArrayRef]  # an int64


def is_fused(tx: TraceContext) -> bool:
    return tx.fused_random and tx.draw is not None and tx.builder.device in (None, CPU)


def ones(tx: TraceContext, probability: float, shape: Sequence[Dim], seed: DrawSeed) -> Var:
    """Ones, each with this probability (to 2**-24), else zeros, in int32: the sign of a difference. With a
    comparison C++ compilers do not vectorise the loop."""
    bits = _upper(tx, _SIGNIFICANT, int32, shape, seed)
    emit = tx.builder.emit
    beyond = emit("subtract", bits, _full(tx, round(probability * (1 << _SIGNIFICANT)), bits))
    made: Var = emit("negative", emit("right_shift", beyond, _full(tx, 31, bits)))
    return made


def uniform(tx: TraceContext, dtype: DType, shape: Sequence[Dim], seed: DrawSeed) -> Var:
    """Uniform numbers of [0, 1) in float32 or float64."""
    count, whole = (_SIGNIFICANT, int32) if dtype is float32 else (53, int64)
    bits = tx.builder.emit("convert", _upper(tx, count, whole, shape, seed), dtype=dtype)
    made: Var = tx.builder.emit("multiply", bits, _full(tx, 2.0**-count, bits))
    return made


def _upper(tx: TraceContext, count: int, dtype: DType, shape: Sequence[Dim], seed: DrawSeed) -> Var:
    bits = _bits(tx, tuple(shape), seed)
    upper = tx.builder.emit("right_shift", bits, _full(tx, 64 - count, bits))
    made: Var = tx.builder.emit("convert", upper, dtype=dtype)
    return made


def _bits(tx: TraceContext, shape: tuple[Dim, ...], seed: DrawSeed) -> Var:
    key, number = tx.memo.get("random bits", (None, 0))
    if key is None or all(given.var is not key for given in tx.builder.inputs):
        key, number = seed().var, 0
    tx.memo["random bits"] = key, number + 1
    emit = tx.builder.emit
    total: Any = 1
    for size in shape:
        total = total * size
    counter = emit("reshape", emit("iota", shape=(total,), axis=0, dtype=uint64, device=CPU), shape=shape)
    if number:
        counter = emit("add", counter, _full(tx, number << _PLACES, counter))
    keys = emit("broadcast_in_dim", emit("convert", key, dtype=uint64), shape=shape, dims=())
    made: Var = emit("philox", keys, counter)
    return made


def _full(tx: TraceContext, value: float, like: Var) -> Var:
    made: Var = tx.builder.emit("full", shape=like.shape, value=value, dtype=like.dtype, device=CPU)
    return made
