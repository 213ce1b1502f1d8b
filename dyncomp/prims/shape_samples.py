"""Samples of the view, update and copy rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..dtypes import ALL, bool_, complex64, float32, float64, int8, int64
from .opdef import Sample
from .samples import Array, data, layouts

_FEW = (float64, int8, bool_, complex64)
Params = Mapping[str, Any]


def _over_layouts(params_of: Callable[[Array], Iterator[Params]]) -> Iterator[Sample]:
    for dtype in _FEW:
        for label, x in layouts(dtype):
            for number, params in enumerate(params_of(x)):
                yield Sample((x,), params, f"{dtype}-{label}-{number}")
    big = data(float32, (1000, 37))
    for number, params in enumerate(params_of(big)):
        yield Sample((big,), params, f"large-{number}")


def _window(shape: tuple[int, ...], start: int, step: int) -> Params:
    starts: list[int] = []
    sizes: list[int] = []
    for dim in shape:
        first = min(start, max(dim - 1, 0)) if step > 0 else max(dim - 1 - start, 0)
        room = (dim - first if step > 0 else first + 1) if dim else 0
        starts.append(first if dim else 0)
        sizes.append(-(-room // abs(step)))
    return {"starts": tuple(starts), "sizes": tuple(sizes), "steps": (step,) * len(shape)}


def _slice_params(x: Array) -> Iterator[Params]:
    yield _window(x.shape, 0, 1)
    yield _window(x.shape, 1, 1)
    yield _window(x.shape, 0, 2)
    yield _window(x.shape, 0, -1)
    yield _window(x.shape, 1, -2)
    if x.ndim:
        yield {"starts": (0,) * x.ndim, "sizes": (0,) * x.ndim, "steps": (1,) * x.ndim}


def slice_samples() -> Iterator[Sample]:
    yield from _over_layouts(_slice_params)


def _perms(x: Array) -> Iterator[Params]:
    natural = tuple(range(x.ndim))
    yield {"perm": natural}
    yield {"perm": natural[::-1]}
    if x.ndim > 2:
        yield {"perm": natural[1:] + natural[:1]}


def transpose_samples() -> Iterator[Sample]:
    yield from _over_layouts(_perms)


def _reshapes(x: Array) -> Iterator[Params]:
    candidates: list[tuple[int, ...]] = [x.shape, (x.size,), (1, x.size, 1), (*x.shape, 1)]
    if x.ndim == 2 and x.shape[1] % 2 == 0 and x.size:
        candidates.append((x.shape[0], 2, x.shape[1] // 2))
        candidates.append((2, x.size // 2))
    for shape in candidates:
        try:
            np.reshape(x, shape, copy=False)
        except ValueError:
            continue  # NumPy would copy: the op is not defined there
        yield {"shape": shape}


def reshape_samples() -> Iterator[Sample]:
    yield from _over_layouts(_reshapes)


def _broadcasts(x: Array) -> Iterator[Params]:
    natural = tuple(range(x.ndim))
    yield {"shape": x.shape, "dims": natural}
    yield {"shape": (2, *x.shape), "dims": tuple(d + 1 for d in natural)}
    yield {"shape": (*x.shape, 3), "dims": natural}
    stretched = tuple(4 if d == 1 else d for d in x.shape)
    yield {"shape": (2, *stretched), "dims": tuple(d + 1 for d in natural)}
    if x.ndim:
        yield {"shape": (x.shape[0], 2, *x.shape[1:]), "dims": (0, *(d + 1 for d in natural[1:]))}


def broadcast_samples() -> Iterator[Sample]:
    yield from _over_layouts(_broadcasts)


def _diagonals(x: Array) -> Iterator[Params]:
    if x.ndim < 2:
        return
    for offset in (0, 1, -2, 9):
        yield {"offset": offset, "axis1": 0, "axis2": 1}
    yield {"offset": 1, "axis1": x.ndim - 1, "axis2": 0}


def diagonal_samples() -> Iterator[Sample]:
    yield from _over_layouts(_diagonals)


def _strided(x: Array) -> Iterator[Params]:
    if x.size == 0:
        return
    own = tuple(s // x.itemsize for s in x.strides)
    yield {"shape": x.shape, "strides": own, "offset": 0}
    if x.ndim:
        last = sum((d - 1) * s for d, s in zip(x.shape, own))
        yield {"shape": (1,), "strides": (1,), "offset": last}
        yield {"shape": x.shape, "strides": tuple(-s for s in own), "offset": last}


def as_strided_samples() -> Iterator[Sample]:
    yield from _over_layouts(_strided)
    x = np.arange(10.0)
    yield Sample((x,), {"shape": (7, 4), "strides": (1, 1), "offset": 0}, "sliding")


# -- updates ----------------------------------------------------------------------------------
def _updates(
    params_of: Callable[[Array], Iterator[Params]], shape_of: Callable[..., tuple[int, ...]]
) -> Iterator[Sample]:
    for dtype in _FEW:
        for label, x in layouts(dtype):
            if "broadcast" in label:
                continue  # a broadcast array is not writable
            for number, params in enumerate(params_of(x)):
                value = data(dtype, shape_of(x, params), 50 + number)
                yield Sample((x, value), params, f"{dtype}-{label}-{number}")
    big = data(float32, (1000, 37))
    for number, params in enumerate(params_of(big)):
        yield Sample((big, data(float32, shape_of(big, params), 60)), params, f"large-{number}")


def update_slice_samples() -> Iterator[Sample]:
    yield from _updates(_slice_params, lambda x, p: p["sizes"])
    x = data(float64, (4, 6))
    window = {"starts": (1, 0), "sizes": (2, 3), "steps": (1, 2)}
    yield Sample((x, np.broadcast_to(data(float64, (3,)), (2, 3))), window, "broadcast value")
    yield Sample((x, data(float64, (3, 2)).T), window, "transposed value")


def update_diagonal_samples() -> Iterator[Sample]:
    def shape_of(x: Array, p: Params) -> tuple[int, ...]:
        return x.diagonal(p["offset"], p["axis1"], p["axis2"]).shape

    yield from _updates(_diagonals, shape_of)


def update_strided_samples() -> Iterator[Sample]:
    yield from _updates(_strided, lambda x, p: p["shape"])


# -- copies -----------------------------------------------------------------------------------
def copy_samples() -> Iterator[Sample]:
    for dtype in ALL:
        for label, x in layouts(dtype):
            yield Sample((x,), {}, f"{dtype}-{label}")
    yield Sample((data(float32, (1000, 37)).T,), {}, "large")


def triangle_samples() -> Iterator[Sample]:
    for dtype in (*_FEW, int64):
        for label, x in layouts(dtype):
            if x.ndim < 2:
                continue
            for k in (0, 1, -1, 20):
                yield Sample((x,), {"k": k}, f"{dtype}-{label}-{k}")
