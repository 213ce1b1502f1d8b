"""A Python function as one node of a graph: ``dyncomp.allow_in_graph``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..dtypes import float64
from ..graph.ir import ArrayType, Callee, array_type
from .opdef import Extern, OpDef, Sample
from .samples import data


def call_meta(*types: ArrayType, callee: Callee) -> Any:
    return callee.results if len(callee.results) > 1 else callee.results[0]


def call_ref(*arrays: Any, callee: Callee) -> Any:
    """The call. What is unlike the call at capture raises, so that the original program runs instead."""
    found = callee.function(*arrays)
    results: Any = found if callee.structure is not None else (found,)
    if callee.structure is not None and type(found) is not callee.structure:
        raise TypeError(f"{callee.name} returned a {type(found).__name__}, not a {callee.structure.__name__}")
    if len(results) != len(callee.results):
        raise TypeError(f"{callee.name} returned {len(results)} values, not {len(callee.results)}")
    for result, kind, expected in zip(results, callee.kinds, callee.results):
        _check(callee, result, kind, expected)
        if isinstance(result, np.ndarray) and any(np.may_share_memory(result, a) for a in arrays):
            raise TypeError(f"{callee.name} returned memory of its arguments")
    arrays = tuple(np.asarray(r) for r in results)
    return arrays if len(arrays) > 1 else arrays[0]


def _check(callee: Callee, result: Any, kind: Any, expected: ArrayType) -> None:
    if type(result) is not kind:
        raise TypeError(f"{callee.name} returned a {type(result).__name__}, not a {kind.__name__}")
    strides = tuple(s // result.itemsize for s in result.strides)
    layout = all(n <= 1 or s == e for n, s, e in zip(result.shape, strides, expected.strides))
    if result.dtype != expected.dtype.numpy or result.shape != expected.shape or not layout:
        raise TypeError(f"{callee.name} returned {result.dtype}{result.shape}, not {expected}")


def call_samples() -> Iterator[Sample]:
    x = data(float64, (3, 4))
    single = Callee(np.negative, "negative", (array_type(float64, (3, 4)),), (np.ndarray,))
    yield Sample((x,), {"callee": single}, "array")
    results = (array_type(float64, (3, 4)), array_type(float64, ()))
    several = Callee(_pair, "pair", results, (np.ndarray, np.float64), tuple)
    yield Sample((x, x[::-1].copy()), {"callee": several}, "array and scalar")


def _pair(x: Any, y: Any) -> Any:
    return x + y, x.sum()


ROWS: tuple[OpDef, ...] = (
    OpDef(
        "python_call",
        ("callee",),
        call_meta,
        call_ref,
        lower=Extern(),
        samples=call_samples,
        doc="A Python function that the program allows in graphs, on arrays as it is given them.",
    ),
)
