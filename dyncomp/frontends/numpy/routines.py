"""NumPy's own routines as nodes of the graph, where the sizes of their results follow from those of the
arguments. What they refuse they refuse when the graph runs: then the original does."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.numpy_routines import ROUTINES
from ...signals import is_from_handler
from ...symbolic.integers import Dim, SymInt
from ..base import ArrayRef, TraceContext
from . import promote
from .data_dependent import Output, call
from .indexing import as_index
from .numpy_rules import RuleTable
from .operands import (
    NO,
    array_of,
    as_ref,
    broadcast_shapes,
    broadcast_to,
    convert,
    emit,
    given,
    integer,
    normalize_axes,
    normalize_axis,
    value_of,
)
from .views import flatten_view

TABLE = RuleTable()


def known_sizes(value: object, what: str) -> tuple[int, ...]:
    """Sizes as constants (of symbols: for these values only)."""
    sizes = value if isinstance(value, (tuple, list)) else (value,)
    return tuple(int(integer(size, what)) for size in sizes)


def _c_order(tx: TraceContext, ref: ArrayRef, name: str) -> Var:
    """An operand of a routine whose results are in the order of their operands."""
    if not ref.var.type.is_contiguous:
        raise Unsupported(f"numpy.{name} of an array that is not in C order")
    return ref.var


def in_order(
    tx: TraceContext, name: str, inputs: list[ArrayRef], shapes: list[tuple[Dim, ...]], **options: object
) -> list[Var]:
    """The results of a routine that lays them out by rules of its own, as it does for small arrays."""
    small = [_small(ref) for ref in inputs]
    try:
        made = ROUTINES[name](*small, **options)
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Unsupported(f"{name}: {error}") from None
    results = [np.asarray(a) for a in (made if isinstance(made, tuple) else (made,))]
    orders = [_order(array) for array in results]
    outputs: list[Output] = []
    for array, order, shape in zip(results, orders, shapes, strict=True):
        outputs.append((promote.from_np(array.dtype), tuple(shape[axis] for axis in order)))
    variables = [ref.var for ref in inputs]
    if all(order == tuple(range(len(order))) for order in orders):
        found = call(tx, name, variables, outputs, **options)
    else:
        found = call(tx, "in_order", variables, outputs, routine=name, orders=tuple(orders), **options)
    several = found if isinstance(found, tuple) else (found,)
    return [_transposed_back(tx, var, order) for var, order in zip(several, orders)]


def _small(ref: ArrayRef) -> np.ndarray[Any, Any]:
    """A small array of the same type, laid out in the same order."""
    order = sorted(range(ref.ndim), key=lambda axis: -abs(int(_hint(ref.strides[axis]))))
    shape = tuple(3 if _hint(ref.shape[axis]) > 1 else 1 for axis in order)
    flat = np.random.default_rng(0).permutation(int(np.prod(shape))).astype(ref.dtype.numpy)
    return flat.reshape(shape).transpose(np.argsort(order)) if order else flat.reshape(())


def _hint(size: Dim) -> int:
    if isinstance(size, SymInt):
        raise Unsupported("a routine's layout of arrays of symbolic sizes")
    return size


def _order(array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    return tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))


def _transposed_back(tx: TraceContext, var: Var, order: tuple[int, ...]) -> Var:
    if order == tuple(range(len(order))):
        return var
    inverse = tuple(sorted(range(len(order)), key=order.__getitem__))
    found: Var = emit(tx, "transpose", var, perm=inverse)
    return found


# -- positions --------------------------------------------------------------------------------
def unravelled(tx: TraceContext, indices: ArrayRef, shape: object, order: object) -> tuple[ArrayRef, ...]:
    """``np.unravel_index``: columns of one array with a row for each position."""
    if order not in ("C", "F") or not indices.ndim or not indices.dtype.is_integer:
        raise Unsupported("numpy.unravel_index of a number that may be out of range")
    sizes = known_sizes(shape, "a size")
    index = convert(tx, _c_order(tx, indices, "unravel_index"), dtypes.int64)
    outputs: list[Output] = [(dtypes.int64, (*indices.shape, len(sizes)))]
    rows = call(tx, "unravel", [index], outputs, shape=sizes, order=order)
    return tuple(array_of(_part(tx, rows, place)) for place in range(len(sizes)))


def _part(tx: TraceContext, rows: Var, place: int) -> Var:
    sizes = (*rows.shape[:-1], 1)
    starts = (*[0] * (rows.ndim - 1), place)
    cut = emit(tx, "strided_slice", rows, starts=starts, sizes=sizes, steps=(1,) * rows.ndim)
    found: Var = emit(tx, "reshape", cut, shape=rows.shape[:-1])
    return found


@TABLE.function("ravel_multi_index")
def ravel_multi_index(
    tx: TraceContext, multi_index: Any, dims: object, mode: object = "raise", order: object = "C"
) -> ArrayRef:
    if isinstance(multi_index, ArrayRef):
        raise Unsupported("numpy.ravel_multi_index of one array")
    modes = tuple(mode) if isinstance(mode, (tuple, list)) else mode
    refs = [as_index(tx, part) for part in multi_index]
    shape = broadcast_shapes(*(ref.shape for ref in refs))
    if len(shape) > 1 and not all(ref.ndim == 0 or ref.var.type.is_contiguous for ref in refs):
        raise Unsupported("numpy.ravel_multi_index of arrays that are not in C order")
    parts = [broadcast_to(tx, ref.var, shape) for ref in refs]
    sizes = known_sizes(dims, "a size")
    return value_of(call(tx, "ravel", parts, [(dtypes.int64, shape)], dims=sizes, mode=modes, order=order))


def chosen(tx: TraceContext, index: ArrayRef, choices: list[ArrayRef]) -> ArrayRef:
    """``np.choose`` that raises where a number is out of range."""
    if not choices or not index.dtype.is_integer or index.dtype is dtypes.uint64:
        raise Unsupported("numpy.choose by numbers that are no integers")
    dtype = promote.from_np(np.result_type(*(ref.dtype.numpy for ref in choices)))
    shape = broadcast_shapes(index.shape, *(ref.shape for ref in choices))
    parts = [convert(tx, ref.var, dtype) for ref in choices]
    place = convert(tx, index.var, dtypes.int64)
    return value_of(call(tx, "choose", [place, *parts], [(dtype, shape)], mode="raise"))


# -- sets -------------------------------------------------------------------------------------
@TABLE.function("isin")
def isin(
    tx: TraceContext,
    element: object,
    test_elements: object,
    assume_unique: object = False,
    invert: object = False,
    *,
    kind: object = None,
) -> ArrayRef:
    x, among = as_ref(tx, element), as_ref(tx, test_elements)
    if kind is not None:
        raise Unsupported("numpy.isin with kind=")
    flags = {"assume_unique": bool(assume_unique), "invert": bool(invert)}
    var = _c_order(tx, x, "isin")
    return array_of(call(tx, "isin", [var, among.var], [(dtypes.bool_, x.shape)], **flags))


# -- bits -------------------------------------------------------------------------------------
def _bits(tx: TraceContext, a: object, axis: object, name: str, bitorder: object) -> tuple[Var, int | None]:
    ref = as_ref(tx, a)
    if bitorder not in ("big", "little") or not ref.ndim:
        raise Unsupported(f"numpy.{name} with these arguments")
    var = _c_order(tx, ref, name)
    if axis is None:
        return flatten_view(tx, var), None
    return var, normalize_axis(axis, ref.ndim)


def _resized(shape: tuple[Dim, ...], axis: int, size: Dim) -> tuple[Dim, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


@TABLE.function("packbits")
def packbits(tx: TraceContext, a: object, /, axis: object = None, bitorder: object = "big") -> ArrayRef:
    var, along = _bits(tx, a, axis, "packbits", bitorder)
    if not (var.dtype.is_bool or var.dtype.is_integer):
        raise Unsupported("numpy.packbits of numbers that are no integers")
    place = along or 0
    shape = _resized(var.shape, place, (var.shape[place] + 7) // 8)
    return array_of(call(tx, "packbits", [var], [(dtypes.uint8, shape)], axis=place, bitorder=bitorder))


@TABLE.function("unpackbits")
def unpackbits(
    tx: TraceContext, a: object, /, axis: object = None, count: object = None, bitorder: object = "big"
) -> ArrayRef:
    var, along = _bits(tx, a, axis, "unpackbits", bitorder)
    if var.dtype != dtypes.uint8:
        raise Unsupported("numpy.unpackbits of other numbers than uint8")
    place = along or 0
    size = var.shape[place] * 8
    if count is not None:
        number = int(integer(count, "a count"))
        size = number if number >= 0 else size + number
    shape = _resized(var.shape, place, size)
    options = {"axis": place, "count": None if count is None else number, "bitorder": bitorder}
    return array_of(call(tx, "unpackbits", [var], [(dtypes.uint8, shape)], **options))


# -- methods of ufuncs ------------------------------------------------------------------------
def reduced(tx: TraceContext, ufunc: np.ufunc, var: Var, axes: tuple[int, ...]) -> Var:
    """``ufunc.reduce`` of a function that has no reduction of its own."""
    if not axes or getattr(np, ufunc.__name__, None) is not ufunc:
        raise Unsupported(f"numpy.{ufunc.__name__}.reduce has no rule")
    shape = tuple(size for axis, size in enumerate(var.shape) if axis not in axes)
    options = {"ufunc": ufunc.__name__, "axis": axes if len(axes) > 1 else axes[0], "keepdims": False}
    (found,) = in_order(tx, "reduced", [array_of(var)], [shape], **options)
    return found


def accumulated(tx: TraceContext, ufunc: np.ufunc, var: Var, axis: int) -> Var:
    """``ufunc.accumulate`` of a function that has no scan of its own."""
    if getattr(np, ufunc.__name__, None) is not ufunc:
        raise Unsupported(f"numpy.{ufunc.__name__}.accumulate has no rule")
    options = {"ufunc": ufunc.__name__, "axis": axis}
    (found,) = in_order(tx, "accumulated", [array_of(var)], [var.shape], **options)
    return found


def reduce_at(
    tx: TraceContext,
    ufunc: np.ufunc,
    array: object,
    indices: object,
    axis: object = 0,
    dtype: object = None,
    out: object = None,
) -> ArrayRef:
    """``ufunc.reduceat(array, indices, axis)``."""
    x, index = as_ref(tx, array), as_index(tx, indices)
    if dtype is not None or given(out) or not x.ndim or index.ndim != 1:
        raise Unsupported(f"numpy.{ufunc.__name__}.reduceat with these arguments")
    computed, result = promote.resolve_reduction(ufunc, x.dtype.numpy, None, None)
    if computed.is_inexact:
        tx.assume("numpy-errstate")
    along = normalize_axis(axis, x.ndim)
    shape = _resized(x.shape, along, index.shape[0])
    var = _c_order(tx, x, "reduceat")
    options = {"ufunc": ufunc.__name__, "axis": along}
    return array_of(call(tx, "reduced_at", [var, index.var], [(result, shape)], **options))


# -- statistics -------------------------------------------------------------------------------
def _nan_statistic(
    tx: TraceContext,
    function: str,
    a: object,
    axis: object,
    keepdims: object,
    leading: tuple[Dim, ...],
    **options: object,
) -> ArrayRef:
    x = as_ref(tx, a)
    if not x.ndim or x.dtype.is_complex or x.dtype.is_bool or x.dtype in (dtypes.float16, dtypes.bfloat16):
        raise Unsupported(f"numpy.{function} of these types")
    if keepdims is not NO and type(keepdims) is not bool:
        raise Unsupported(f"numpy.{function} with keepdims={keepdims!r}")
    tx.assume("numpy-errstate")
    axes = normalize_axes(axis, x.ndim)
    kept = keepdims is not NO and keepdims
    rest = tuple(1 if i in axes else n for i, n in enumerate(x.shape) if kept or i not in axes)
    options.update({"keepdims": True} if kept else {})
    along: Any = axes if len(axes) > 1 else axes[0]
    if axis is None:
        along = None
    named = {"statistic": function, "axis": along, **options}
    (found,) = _statistic_in_order(tx, x, [(*leading, *rest)], named)
    return value_of(found)


def _statistic_in_order(
    tx: TraceContext, x: ArrayRef, shapes: list[tuple[Dim, ...]], options: dict[str, Any]
) -> list[Var]:
    return in_order(tx, "nan_statistic", [x], shapes, **options)


@TABLE.function("nanmedian")
def nanmedian(
    tx: TraceContext,
    a: object,
    axis: object = None,
    out: object = None,
    overwrite_input: object = False,
    keepdims: object = NO,
) -> ArrayRef:
    if given(out) or overwrite_input:
        raise Unsupported("numpy.nanmedian with out= or overwrite_input")
    return _nan_statistic(tx, "nanmedian", a, axis, keepdims, ())


def _nan_quantile_rule(function: str) -> Any:
    def rule(
        tx: TraceContext,
        a: object,
        q: object,
        axis: object = None,
        out: object = None,
        overwrite_input: object = False,
        method: object = "linear",
        keepdims: object = NO,
        *,
        weights: object = None,
    ) -> ArrayRef:
        if given(out) or overwrite_input or weights is not None or type(method) is not str:
            raise Unsupported(f"numpy.{function} with out=, weights or overwrite_input")
        places = _fractions(q)
        leading: tuple[Dim, ...] = (len(places),) if isinstance(places, tuple) else ()
        return _nan_statistic(tx, function, a, axis, keepdims, leading, q=places, method=method)

    return rule


def _fractions(q: object) -> Any:
    if type(q) in (int, float):
        return q
    if isinstance(q, (list, tuple)) and all(type(place) in (int, float) for place in q):
        return tuple(q)
    raise Unsupported("quantiles at positions that are data")


TABLE.function("nanquantile")(_nan_quantile_rule("nanquantile"))
TABLE.function("nanpercentile")(_nan_quantile_rule("nanpercentile"))


@TABLE.function("histogram2d")
def histogram2d(
    tx: TraceContext,
    x: object,
    y: object,
    bins: object = 10,
    range: object = None,
    density: object = None,
    weights: object = None,
) -> tuple[ArrayRef, ...]:
    """With numbers of bins that are known."""
    numbers = tuple(bins) if isinstance(bins, (list, tuple)) else (bins, bins)
    inputs = [as_ref(tx, part) for part in (x, y, weights) if part is not None]
    plain = all(ref.ndim == 1 and ref.dtype in (dtypes.float64, dtypes.int64) for ref in inputs)
    if len(numbers) != 2 or not all(type(number) is int and number > 0 for number in numbers) or not plain:
        raise Unsupported("numpy.histogram2d with these bins")
    limits = _limits(range)
    # without density NumPy gives the inner part of an array with a border
    border = 0 if density else 2
    counts = tuple(number + border for number in numbers)
    outputs: list[Output] = [(dtypes.float64, counts)]
    outputs += [(dtypes.float64, (number + 1,)) for number in numbers]
    options = {"bins": numbers, "range": limits, "density": bool(density)}
    first, *edges = call(tx, "histogram2d", [ref.var for ref in inputs], outputs, **options)
    if border:
        first = emit(tx, "strided_slice", first, starts=(1, 1), sizes=numbers, steps=(1, 1))
    return array_of(first), *map(array_of, edges)


def _limits(given_range: Any) -> Any:
    if given_range is None:
        return None
    pairs = [tuple(pair) if isinstance(pair, (list, tuple)) else () for pair in given_range]
    if not all(type(end) in (int, float) for pair in pairs for end in pair):
        raise Unsupported("numpy.histogram2d within limits that are data")
    return tuple(pairs)


# -- least squares ----------------------------------------------------------------------------
@TABLE.function("linalg.lstsq")
def lstsq(tx: TraceContext, a: object, b: object, rcond: object = None) -> Any:
    """The residuals are taken to be there where the system is overdetermined: its rank is full."""
    x, y = as_ref(tx, a), as_ref(tx, b)
    if x.ndim != 2 or y.ndim not in (1, 2) or not (rcond is None or type(rcond) in (int, float)):
        raise Unsupported("numpy.linalg.lstsq with these arguments")
    for ref in (x, y):
        if ref.dtype in (dtypes.float16, dtypes.bfloat16):
            raise Unsupported(f"array type {ref.dtype} is unsupported in linalg")
    kinds = [r.dtype.numpy if r.dtype.is_inexact else np.dtype(np.float64) for r in (x, y)]
    dtype: DType = promote.from_np(np.result_type(*kinds))
    rows, columns = x.shape
    real = promote.from_np(np.empty(0, dtype.numpy).real.dtype)
    left: tuple[Dim, ...] = y.shape[1:] if y.ndim == 2 else (1,)
    outputs: list[Output] = [
        (dtype, (columns, *y.shape[1:])),
        (real, left if rows > columns else (0,)),
        (dtypes.int32, ()),
        (real, (rows if rows < columns else columns,)),
    ]
    operands = [convert(tx, ref.var, dtype) for ref in (x, y)]
    made = call(tx, "lstsq", operands, outputs, rcond=rcond)
    solution, residuals, rank, values = made
    return array_of(solution), array_of(residuals), value_of(rank), array_of(values)
