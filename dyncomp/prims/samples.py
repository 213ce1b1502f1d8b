"""Deterministic test arrays for the rows' ``samples``: every dtype and the layouts that go wrong.

Nothing here runs at import; arrays are made when a test asks for samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, int64
from .opdef import Sample

Array = np.ndarray[Any, Any]

SPECIAL_FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    np.inf,
    -np.inf,
    np.nan,
    1e-40,
    3.7e4,
    -3.7e4,
)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def data(dtype: DType, shape: Sequence[int], seed: int = 0, low: float = -4.0, high: float = 4.0) -> Array:
    """Ordinary values: floats uniform in [low, high], integers in [-9, 9] (unsigned from 0)."""
    rng = generator(seed)
    size = tuple(shape)
    if dtype.is_bool:
        return rng.integers(0, 2, size).astype(bool)
    if dtype.is_integer:
        lowest = 0 if dtype.kind == "uint" else max(-9, int(np.ceil(low * 2)))
        return rng.integers(lowest, 10, size).astype(dtype.numpy)
    if dtype.is_complex:
        values = rng.uniform(low, high, size) + 1j * rng.uniform(low, high, size)
        return np.asarray(values).astype(dtype.numpy)
    return np.asarray(rng.uniform(low, high, size)).astype(dtype.numpy)


def special(dtype: DType) -> Array:
    """Extreme values of a dtype as a vector: NaN, infinities, signed zero, denormals; integer extremes."""
    if dtype.is_bool:
        return np.array([True, False, True, True, False])
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        values = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 5, 7]
        if info.min < 0:
            values += [-1, -2, -3, -7]
        return np.array(values, dtype.numpy)
    with np.errstate(all="ignore"):
        if dtype.is_complex:
            picks = (0.0, -0.0, 1.0, -1.0, 2.5, -0.5)
            return np.array([complex(a, b) for a in picks for b in picks], dtype.numpy)
        return np.array(SPECIAL_FLOATS, np.float64).astype(dtype.numpy)


def shuffled(x: Array, seed: int) -> Array:
    """The same values in another order: pairs the extremes of two operands with each other."""
    return x[generator(seed).permutation(x.size)]


def special_operands(dtype: DType, count: int) -> tuple[Array, ...]:
    """``count`` vectors in which every pair (of the first two) of special values meets."""
    values = special(dtype)
    if count == 1:
        return (values,)
    n = values.size
    first = np.repeat(values, n)
    second = np.tile(values, n)
    rest = tuple(shuffled(second, seed) for seed in range(2, count))
    return (first, second, *rest)


def layouts(dtype: DType, seed: int = 0, low: float = -4.0, high: float = 4.0) -> Iterator[tuple[str, Array]]:
    """(label, array) over memory layouts, all two- or three-dimensional except the small ones."""

    def make(*shape: int) -> Array:
        return data(dtype, shape, seed, low, high)

    yield "0-d", make()
    yield "one", make(1)
    yield "empty", make(0)
    yield "empty2", make(3, 0, 2)
    yield "vector", make(7)
    yield "reversed", make(9)[::-1]
    yield "strided", make(20)[3:17:3]
    yield "matrix", make(5, 6)
    yield "transposed", make(6, 5).T
    yield "sliced", make(8, 9)[1:7:2, 2:8]
    yield "negative", make(5, 6)[::-1, ::-2]
    yield "broadcast", np.broadcast_to(make(6), (5, 6))
    yield "broadcast-inner", np.broadcast_to(make(5, 1), (5, 6))
    yield "permuted", make(2, 3, 4).transpose(1, 2, 0)
    yield "unit", make(3, 1, 4)


def pointwise_samples(
    dtypes: Sequence[DType],
    count: int = 1,
    *,
    low: float = -4.0,
    high: float = 4.0,
    params: Mapping[str, Any] | None = None,
    extremes: bool = True,
    operand: Callable[[int, Array], Array] | None = None,
    keep: Callable[..., Any] | None = None,
) -> Callable[[], Iterator[Sample]]:
    """Samples of a pointwise op with ``count`` operands of one dtype.

    ``operand(position, array)`` adjusts an operand (exponents, divisors, shift counts); ``keep`` selects
    among the extreme operands by a mask (where NumPy's own answer is undefined).
    """
    fixed = dict(params or {})

    def adjust(arrays: Sequence[Array]) -> tuple[Array, ...]:
        if operand is None:
            return tuple(arrays)
        return tuple(operand(i, a) for i, a in enumerate(arrays))

    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            sources = [list(layouts(dtype, seed, low, high)) for seed in range(count)]
            for choices in zip(*sources):
                label = f"{dtype}-{choices[0][0]}"
                yield Sample(adjust([c[1] for c in choices]), fixed, label)
            if extremes:
                arrays = adjust(special_operands(dtype, count))
                if keep is not None:
                    with np.errstate(all="ignore"):
                        mask = keep(*arrays)
                    arrays = tuple(a[mask] for a in arrays)
                yield Sample(arrays, fixed, f"{dtype}-special")
        largest = dtypes[-1]
        big = [data(largest, (1000, 37), 10 + i, low, high) for i in range(count)]
        yield Sample(adjust(big), fixed, f"{largest}-large")
        if count > 1:
            yield from _mixed_layouts(dtypes[0], count, adjust, fixed, low, high)

    return samples


def _mixed_layouts(
    dtype: DType, count: int, adjust: Callable[..., Any], fixed: Mapping[str, Any], low: float, high: float
) -> Iterator[Sample]:
    """Operands whose layouts disagree."""
    whole = [data(dtype, (4, 5, 6), 20 + i, low, high) for i in range(count)]
    other = [data(dtype, (6, 5, 4), 30 + i, low, high).T for i in range(count)]
    spread = [np.broadcast_to(data(dtype, (5, 1), 40 + i, low, high), (4, 5, 6)) for i in range(count)]
    pool = [whole, other, spread]
    for first in range(3):
        arrays = [pool[(first + i) % 3][i] for i in range(count)]
        yield Sample(adjust(arrays), fixed, f"{dtype}-mixed{first}")


def indices(shape: Sequence[int], size: int, seed: int = 0, negative: bool = True) -> Array:
    """int64 positions valid for an axis of ``size`` elements, negative ones too."""
    lowest = -size if negative else 0
    return generator(seed).integers(lowest, size, tuple(shape)).astype(int64.numpy)
