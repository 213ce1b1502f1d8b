"""Gathers and scatters: advanced indexing with int64 arrays.

Index arrays of one op have one common shape S. Negative indices wrap once; an index out of bounds is an
``IndexError`` of the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import ALL, bool_, complex64, float32, float64, int8, int64
from ..graph.ir import ArrayType
from ..symbolic.integers import Dim
from .kit import Array, axes_tuple, check_axis, drop, require, require_same_shape
from .layout import k_order_axes, like, shapes_equal, sorted_axes, strides_in_order
from .opdef import Gather, OpDef, Sample, Scatter, Tolerance
from .samples import data, indices
from .scalar import ScalarBuilder

Dims = tuple[int, ...]
COMBINERS = ("set", "add", "multiply", "max", "min")


# -- index ------------------------------------------------------------------------------------
def _check_indices(x: ArrayType, index: Sequence[ArrayType], dims: Dims, position: int) -> None:
    axes_tuple(dims, x.ndim, "index")
    if not index or len(index) != len(dims):
        raise ValueError("index needs one index array for each of dims")
    require(index, (int64,), "index arrays")
    require_same_shape(index, "index")
    if list(dims) != sorted(dims) or not 0 <= position <= x.ndim - len(dims):
        raise ValueError(f"index: bad dims {dims} or position {position}")


def index_shape(x: ArrayType, index: Sequence[ArrayType], dims: Dims, position: int) -> tuple[Dim, ...]:
    other = drop(x.shape, dims)
    return (*other[:position], *index[0].shape, *other[position:])


def index_meta(x: ArrayType, *index: ArrayType, dims: Dims, position: int) -> ArrayType:
    _check_indices(x, index, dims, position)
    shape = index_shape(x, index, dims, position)
    count = index[0].ndim
    other = [a for a in range(x.ndim) if a not in dims]
    if other:
        # NumPy copies whole sub-arrays: index dimensions are outermost, whatever the position
        sub = sorted_axes([x.shape[a] for a in other], [x.strides[a] for a in other])
        order = [position + i for i in range(count)]
        order += [a if a < position else a + count for a in sub]
    else:
        order = k_order_axes(shape, [i.strides for i in index])
    return ArrayType(x.dtype, shape, strides_in_order(shape, order), x.device)


def _natural_position(dims: Dims) -> int:
    consecutive = dims[-1] - dims[0] == len(dims) - 1
    return dims[0] if consecutive else 0


def _key(ndim: int, index: Sequence[Array], dims: Dims) -> tuple[Any, ...]:
    by_dim = dict(zip(dims, index))
    return tuple(by_dim.get(axis, slice(None)) for axis in range(ndim))


def index_ref(x: Array, *index: Array, dims: Dims, position: int) -> Array:
    out = np.asarray(x[_key(x.ndim, index, dims)])
    return _move(out, _natural_position(dims), position, index[0].ndim)


def _move(out: Array, source: int, target: int, count: int) -> Array:
    """The block of ``count`` axes moved from ``source`` to ``target``."""
    if source == target:
        return out
    return np.moveaxis(out, [source + i for i in range(count)], [target + i for i in range(count)])


def index_address(
    s: ScalarBuilder,
    load: Callable[..., Any],
    out_index: Sequence[Any],
    types: Sequence[ArrayType],
    *,
    dims: Dims,
    position: int,
) -> tuple[Any, ...]:
    count = types[-1].ndim
    where = tuple(out_index[position : position + count])
    other = iter([*out_index[:position], *out_index[position + count :]])
    by_dim = {axis: k for k, axis in enumerate(dims)}
    return tuple(load(by_dim[a], where) if a in by_dim else next(other) for a in range(types[0].ndim))


# -- take_along_axis --------------------------------------------------------------------------
def along_meta(x: ArrayType, index: ArrayType, *, axis: int) -> ArrayType:
    require([index], (int64,), "take_along_axis indices")
    check_axis(axis, x.ndim, "take_along_axis")
    if not shapes_equal(drop(x.shape, (axis,)), drop(index.shape, (axis,))) or x.ndim != index.ndim:
        raise ValueError(f"take_along_axis: shapes {x.shape} and {index.shape} differ besides axis {axis}")
    order = k_order_axes(index.shape, [index.strides])
    return ArrayType(x.dtype, index.shape, strides_in_order(index.shape, order), x.device)


def along_address(
    s: ScalarBuilder,
    load: Callable[..., Any],
    out_index: Sequence[Any],
    types: Sequence[ArrayType],
    *,
    axis: int,
) -> tuple[Any, ...]:
    return (*out_index[:axis], load(0, tuple(out_index)), *out_index[axis + 1 :])


# -- index_put --------------------------------------------------------------------------------
def put_meta(
    base: ArrayType, value: ArrayType, *index: ArrayType, dims: Dims, position: int, combine: str
) -> ArrayType:
    _check_indices(base, index, dims, position)
    if combine not in COMBINERS:
        raise ValueError(f"index_put: combine is one of {COMBINERS}, not {combine!r}")
    if value.dtype is not base.dtype:
        raise TypeError(f"index_put of {value.dtype} into {base.dtype}")
    wanted = index_shape(base, index, dims, position)
    if not shapes_equal(value.shape, wanted):
        raise ValueError(f"index_put of shape {value.shape} where {wanted} is indexed")
    return like(base)


_AT: Mapping[str, np.ufunc] = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}


def put_ref(base: Array, value: Array, *index: Array, dims: Dims, position: int, combine: str) -> Array:
    out = base.copy(order="K")
    key = _key(base.ndim, index, dims)
    source = _move(value, position, _natural_position(dims), index[0].ndim)
    with np.errstate(all="ignore"):
        if combine == "set":
            out[key] = source
        else:
            _AT[combine].at(out, key, source)
    return out


# -- samples ----------------------------------------------------------------------------------
_FEW = (float64, int8, bool_, complex64)


def _index_cases(x: Array) -> Iterator[tuple[tuple[Array, ...], Dims]]:
    """(index arrays, dims) for an array without empty dimensions."""
    for axis in range(x.ndim):
        yield (indices((5,), x.shape[axis], axis),), (axis,)
    yield (indices((2, 3), x.shape[0], 4),), (0,)
    yield (indices((3, 2), x.shape[-1], 5).T,), (x.ndim - 1,)
    yield (indices((), x.shape[0], 6),), (0,)
    yield (indices((0,), x.shape[0], 7),), (0,)
    if x.ndim >= 2:
        pair = (indices((4,), x.shape[0], 8), indices((4,), x.shape[1], 9))
        yield pair, (0, 1)
        spread = (
            np.broadcast_to(indices((3, 1), x.shape[0], 1), (3, 2)),
            np.broadcast_to(indices((2,), x.shape[1], 2), (3, 2)),
        )
        yield spread, (0, 1)
    if x.ndim >= 3:
        yield (indices((4,), x.shape[0], 8), indices((4,), x.shape[2], 9)), (0, 2)
        yield (indices((2, 2), x.shape[1], 8), indices((2, 2), x.shape[2], 9)), (1, 2)
        yield tuple(indices((3, 2), d, 3).T for d in x.shape), (0, 1, 2)


def _bases(dtype: Any) -> Iterator[tuple[str, Array]]:
    yield "vector", data(dtype, (9,))
    yield "reversed", data(dtype, (9,))[::-1]
    yield "matrix", data(dtype, (5, 6))
    yield "transposed", data(dtype, (6, 5)).T
    yield "cube", data(dtype, (3, 4, 5))
    yield "permuted", data(dtype, (5, 3, 4)).transpose(2, 0, 1)[::-1]


def index_samples() -> Iterator[Sample]:
    for dtype in _FEW:
        for label, x in _bases(dtype):
            for number, (index, dims) in enumerate(_index_cases(x)):
                params = {"dims": dims, "position": _natural_position(dims)}
                yield Sample((x, *index), params, f"{dtype}-{label}-{number}")
    for dtype in ALL:
        yield Sample((data(dtype, (9,)), indices((4,), 9)), {"dims": (0,), "position": 0}, f"{dtype}")
    table = data(float32, (100, 37))
    yield Sample((table, indices((1000,), 100)), {"dims": (0,), "position": 0}, "large")
    x = data(float64, (4, 5, 6))
    pair = (indices((3,), 4), indices((3,), 5))
    # a scalar index between arrays leaves the block in front although dims are consecutive
    yield Sample((x, *pair), {"dims": (0, 1), "position": 0}, "front")


def along_samples() -> Iterator[Sample]:
    for dtype in _FEW:
        for label, x in _bases(dtype):
            for axis in range(x.ndim):
                for count in (0, 1, x.shape[axis], 8):
                    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
                    params = {"axis": axis}
                    yield Sample(
                        (x, indices(shape, x.shape[axis], count)), params, f"{dtype}-{label}-{axis}-{count}"
                    )
    x = data(float64, (5, 6))
    yield Sample((x, indices((6, 5), 5).T), {"axis": 0}, "transposed indices")


def put_samples() -> Iterator[Sample]:
    for dtype in _FEW:
        combiners = COMBINERS if dtype is not bool_ else ("set",)
        for label, x in _bases(dtype):
            for number, (index, dims) in enumerate(_index_cases(x)):
                position = _natural_position(dims)
                value = data(dtype, x[_key(x.ndim, index, dims)].shape, 70 + number)
                combine = combiners[number % len(combiners)]
                params = {"dims": dims, "position": position, "combine": combine}
                yield Sample((x, value, *index), params, f"{dtype}-{label}-{number}-{combine}")
    histogram = indices((1000,), 10, negative=False)
    params = {"dims": (0,), "position": 0, "combine": "add"}
    yield Sample((np.zeros(10, np.int64), np.ones(1000, np.int64), histogram), params, "histogram")


_EXACT = Tolerance(0.0)

ROWS: tuple[OpDef, ...] = (
    OpDef(
        "index",
        ("dims", "position"),
        index_meta,
        index_ref,
        lower=Gather(index_address),
        samples=index_samples,
        tolerance=_EXACT,
        doc="NumPy's advanced indexing: int64 arrays of one shape S index the dimensions `dims` "
        "(ascending); S replaces them, placed before dimension `position` of the others.",
    ),
    OpDef(
        "take_along_axis",
        ("axis",),
        along_meta,
        np.take_along_axis,
        lower=Gather(along_address),
        samples=along_samples,
        tolerance=_EXACT,
        doc="x with position `axis` of the index replaced by indices[index]; other dimensions are equal.",
    ),
    OpDef(
        "index_put",
        ("dims", "position", "combine"),
        put_meta,
        put_ref,
        lower=Scatter("", index_address),
        samples=put_samples,
        tolerance=Tolerance(8.0),
        doc="The base with value combined at what `index` would read, in C order of value: "
        "`combine` is set, add, multiply, max or min; repeated indices combine repeatedly.",
    ),
)
