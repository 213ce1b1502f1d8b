"""Results whose size depends on the data, by NumPy's own routines, and numbers that become sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import numpy as np

from ..dtypes import DType, int64
from ..graph.ir import ArrayType, array_type
from ..runtime._launch import select
from ..symbolic.integers import Dim
from .kit import Array
from .numpy_routines import ROUTINES
from .opdef import NEVER, Extern, OpDef, Sample, Tolerance
from .packing import packed, unpacked
from .samples import data

_EXACT = Tolerance(0.0)
Shape = tuple[Dim, ...]


def _argwhere(x: Array) -> Array:
    """The transpose of ``np.argwhere``: a row for each dimension."""
    return np.array(np.nonzero(x))


def _positions(x: Array) -> Array:
    """A row of indices for each element that is not zero."""
    return np.ascontiguousarray(_argwhere(x).T)


def _histogram(x: Array, *rest: Array, bins: Any, weighted: bool, **options: Any) -> Any:
    weights = rest[0] if weighted else None
    edges = bins if bins is not None else rest[-1]
    return np.histogram(x, bins=edges, weights=weights, **options)


def _lexsort(*keys: Array, axis: int) -> Array:
    return np.lexsort(keys, axis=axis)


# name -> the function of arrays (and constant keywords) that gives an array or several
FUNCTIONS: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {
        **ROUTINES,
        "argwhere": _argwhere,
        "bincount": np.bincount,
        "compress": np.compress,
        "delete": np.delete,
        "digitize": np.digitize,
        "extract": np.extract,
        "flatnonzero": np.flatnonzero,
        "histogram": _histogram,
        "intersect1d": np.intersect1d,
        "lexsort": _lexsort,
        "nonzero": np.nonzero,
        "packed": packed,
        "polyfit": np.polyfit,
        "positions": _positions,
        "repeat": np.repeat,
        "select": select,
        "setdiff1d": np.setdiff1d,
        "setxor1d": np.setxor1d,
        "union1d": np.union1d,
        "unique": np.unique,
        "unpacked": unpacked,
    }
)


def library_call_meta(
    *inputs: ArrayType,
    function: str,
    options: tuple[tuple[str, Any], ...],
    dtypes: tuple[DType, ...],
    shapes: tuple[Shape, ...],
) -> Any:
    device = inputs[0].device
    types = tuple(array_type(dtype, shape, device) for dtype, shape in zip(dtypes, shapes, strict=True))
    return types if len(types) > 1 else types[0]


def library_call_ref(
    *inputs: Array,
    function: str,
    options: tuple[tuple[str, Any], ...],
    dtypes: tuple[DType, ...],
    shapes: tuple[Shape, ...],
) -> Any:
    """The call; results of other types than were found at capture raise."""
    result = FUNCTIONS[function](*inputs, **dict(options))
    parts = tuple(np.asarray(a, order="C") for a in (result if isinstance(result, tuple) else (result,)))
    for array, dtype in zip(parts, dtypes, strict=True):
        if array.dtype != dtype.numpy:
            raise TypeError(f"{function} returned {array.dtype}, not {dtype}")
    return parts if len(parts) > 1 else parts[0]


def library_call_samples() -> Iterator[Sample]:
    x = data(int64, (12,))
    mask = np.arange(12) % 3 == 0
    params: dict[str, Any] = {"options": (), "dtypes": (int64,), "shapes": ((4,),)}
    yield Sample((x, mask), {"function": "select", **params}, "select")
    yield Sample((mask,), {"function": "flatnonzero", **params}, "flatnonzero")


def item_meta(x: ArrayType, *, value: Dim) -> ArrayType:
    if x.dtype != int64 or x.ndim:
        raise TypeError(f"item of {x}: an int64 value without dimensions is needed")
    return array_type(int64, (), x.device)


def item_ref(x: Array, *, value: Dim) -> Array:
    return np.array(x)


def item_samples() -> Iterator[Sample]:
    yield Sample((np.array(7),), {"value": 7})


ROWS: tuple[OpDef, ...] = (
    OpDef(
        "library_call",
        ("function", "options", "dtypes", "shapes"),
        library_call_meta,
        library_call_ref,
        lower=Extern(),
        samples=library_call_samples,
        dtypes=(int64,),
        tolerance=_EXACT,
        doc="A NumPy function. Sizes of its results that depend on the data are symbols in `shapes`, which "
        "the call defines.",
        defines="sizes",
        rounds={"fc": NEVER},
    ),
    OpDef(
        "item",
        ("value",),
        item_meta,
        item_ref,
        lower=Extern(),
        samples=item_samples,
        dtypes=(int64,),
        tolerance=_EXACT,
        doc="A number of the data as a symbol (`value`) that sizes and indices can be made of.",
        defines="value",
        rounds={"fc": NEVER},
    ),
)
