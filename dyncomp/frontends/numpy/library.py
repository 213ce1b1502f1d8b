"""NumPy's own routines as nodes of the graph, where the sizes of what they give are known; rules that find at
capture which elements a routine takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.dynamic import FUNCTIONS
from ...signals import is_from_handler
from ...symbolic.integers import Dim
from ..base import ArrayRef, TraceContext
from ..meaning import size_of
from . import promote
from .data_dependent import Output, call
from .index_functions import take
from .join import concatenate
from .numpy_rules import RuleTable
from .operands import array_of, as_ref, broadcast_to, normalize_axis, operand, to_var
from .views import flatten_view

TABLE = RuleTable()
_PLAIN = (int, float, bool, str, type(None))


def _known(value: Any) -> bool:
    """Whether an argument is of plain numbers all through, known at capture."""
    if type(value) in (list, tuple):
        return all(map(_known, value))
    return type(value) in _PLAIN or (type(value) is slice and _known((value.start, value.stop, value.step)))


def _size(x: Var, axis: int) -> int:
    size = x.shape[axis]
    if type(size) is not int:
        raise Unsupported("positions along a size that is symbolic")
    return size


def _chosen(function: Callable[..., Any], *args: Any) -> Any:
    """What NumPy gives for positions that are known; where it raises, so does the program."""
    try:
        return function(*args)
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Unsupported(f"{function.__name__}: {error}") from None


def _along(x: ArrayRef, axis: object, name: str) -> int | None:
    if x.ndim == 0 or not (x.ndim == 1 or x.var.type.is_contiguous):
        raise Unsupported(f"{name} of an array without dimensions, or not in C order")
    return None if axis is None else normalize_axis(axis, x.ndim)


@TABLE.function("delete")
def delete(tx: TraceContext, arr: object, obj: object, axis: object = None) -> ArrayRef:
    """``np.delete``: for positions that are known it takes the others."""
    if isinstance(obj, ArrayRef) or not _known(obj):
        return _deleted_by_data(tx, arr, obj, axis)
    x = as_ref(tx, arr)
    along = _along(x, axis, "numpy.delete")
    source = flatten_view(tx, x.var) if along is None else x.var
    along = along or 0
    size = _size(source, along)
    small = np.zeros([size if k == along else 2 for k in range(source.ndim)])
    if not _chosen(np.delete, small, obj, along).flags.c_contiguous:
        raise Unsupported("numpy.delete of several columns, which gives an array of another order")
    return take(tx, array_of(source), _chosen(np.delete, np.arange(size), obj), along)


def _deleted_by_data(tx: TraceContext, arr: object, obj: object, axis: object) -> ArrayRef:
    x = as_ref(tx, arr)
    if not isinstance(obj, ArrayRef) or not obj.ndim:
        raise Unsupported("numpy.delete of these arguments")
    along = _along(x, axis, "numpy.delete")
    if along:
        raise Unsupported("numpy.delete of columns, which gives an array of another order")
    shape: tuple[Dim, ...] = (size_of(tx, "delete", obj.var, sizes=x.shape, along=along),)
    if along is not None:
        shape = (*x.shape[:along], *shape, *x.shape[along + 1 :])
    return array_of(call(tx, "delete", [x.var, obj.var], [(x.dtype, shape)], axis=along))


@TABLE.function("insert")
def insert(tx: TraceContext, arr: object, obj: object, values: object, axis: object = None) -> ArrayRef:
    """``np.insert`` at positions that are known, of one value or (into one dimension) several."""
    x = as_ref(tx, arr)
    if not _known(obj):
        raise Unsupported("numpy.insert at positions that are data")
    along = _along(x, axis, "numpy.insert")
    source = flatten_view(tx, x.var) if along is None else x.var
    along = along or 0
    given = to_var(tx, operand(tx, values), x.dtype)
    if given.ndim > 1 or (given.ndim and source.ndim > 1):
        raise Unsupported("numpy.insert of values with several dimensions")
    size = _size(source, along)
    count = _size(given, 0) if given.ndim else None
    new = np.zeros(count if count is not None else (), np.int64)
    marked = _chosen(np.insert, np.zeros(size, np.int64), obj, new + 1)
    added = int(marked.sum())
    order = _chosen(np.insert, np.arange(size), obj, size + (np.arange(added) if count is not None else new))
    if count is None and added != 1:
        order = _chosen(np.insert, np.arange(size), obj, size + np.arange(added))
    shape = tuple(added if k == along else n for k, n in enumerate(source.shape))
    column = broadcast_to(tx, given, shape)
    return take(tx, concatenate(tx, (array_of(source), array_of(column)), along), order, along)


# -- library calls ------------------------------------------------------------------------------------------
def _like(name: str, inputs: list[ArrayRef], **options: object) -> list[np.ndarray]:
    """What the routine gives for small arrays of these types: what its results are like."""
    small = [np.arange(4).reshape((4,) + (1,) * (ref.ndim - 1)).astype(ref.dtype.numpy) for ref in inputs]
    made = _chosen(lambda: FUNCTIONS[name](*small, **options))
    return list(made) if isinstance(made, tuple) else [made]


def _called(
    tx: TraceContext, name: str, inputs: list[ArrayRef], shapes: list[tuple[Dim, ...]], **options: object
) -> list[ArrayRef]:
    if any(ref.dtype.is_complex or ref.dtype.is_bool or not ref.ndim for ref in inputs):
        raise Unsupported(f"numpy.{name} of these types")
    like = _like(name, inputs, **options)
    outputs: list[Output] = [(promote.from_np(a.dtype), shape) for a, shape in zip(like, shapes)]
    made = call(tx, name, [ref.var for ref in inputs], outputs, **options)
    return [array_of(var) for var in (made if isinstance(made, tuple) else (made,))]


@TABLE.function("histogram")
def histogram(
    tx: TraceContext, a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, ...]:
    own = isinstance(bins, ArrayRef)
    if isinstance(bins, str) or not (own or _known(bins)) or not _known(range) or not _known(density):
        raise Unsupported("numpy.histogram with these bins")
    inputs = [as_ref(tx, a)]
    options = {"range": tuple(range) if range is not None else None, "density": density}
    if weights is not None:
        inputs.append(as_ref(tx, weights))
        if inputs[1].ndim != inputs[0].ndim:
            raise Unsupported("weights should have the same shape as a.")
    if own:
        if bins.ndim != 1:
            raise Unsupported("numpy.histogram with bins of several dimensions")
        counts, _ = _called(
            tx,
            "histogram",
            [*inputs, bins],
            [(bins.shape[0] - 1,), bins.shape],
            bins=None,
            weighted=weights is not None,
            **options,
        )
        return counts, bins
    fixed = tuple(bins) if isinstance(bins, (list, tuple)) else bins
    number = len(fixed) - 1 if isinstance(fixed, tuple) else fixed
    shapes: list[tuple[Dim, ...]] = [(number,), (number + 1,)]
    return tuple(
        _called(tx, "histogram", inputs, shapes, bins=fixed, weighted=weights is not None, **options)
    )


@TABLE.function("lexsort")
def lexsort(tx: TraceContext, keys: object, axis: object = -1) -> ArrayRef:
    if not isinstance(keys, (list, tuple)) or not keys or type(axis) is not int:
        raise Unsupported("numpy.lexsort of these keys")
    inputs = [as_ref(tx, key) for key in keys]
    if any(ref.ndim != 1 for ref in inputs):
        raise Unsupported("numpy.lexsort of keys with several dimensions")
    return _called(tx, "lexsort", inputs, [inputs[0].shape], axis=axis)[0]


@TABLE.function("polyfit")
def polyfit(
    tx: TraceContext,
    x: object,
    y: object,
    deg: object,
    rcond: object = None,
    full: object = False,
    w: object = None,
    cov: object = False,
) -> ArrayRef:
    """Coefficients of one polynomial."""
    inputs = [as_ref(tx, x), as_ref(tx, y)]
    if type(deg) is not int or not 0 <= deg < 3 or rcond is not None or full or w is not None or cov:
        raise Unsupported("numpy.polyfit with these arguments")
    if any(ref.ndim != 1 for ref in inputs):
        raise Unsupported("numpy.polyfit of several polynomials")
    return _called(tx, "polyfit", inputs, [(deg + 1,)], deg=deg)[0]


def digitize_by_data(tx: TraceContext, x: object, bins: ArrayRef, right: object) -> ArrayRef:
    """``np.digitize`` with bins that are data: NumPy raises where they are not monotonic."""
    values = as_ref(tx, x)
    if bins.ndim != 1:
        raise Unsupported("numpy.digitize with bins of several dimensions")
    return _called(tx, "digitize", [values, bins], [values.shape], right=bool(right))[0]
