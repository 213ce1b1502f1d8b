"""Fresh arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...device import CPU
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import is_c_contiguous, is_f_contiguous, sorted_axes
from ...symint import Dim, SymInt
from ..base import ArrayRef, TraceContext
from . import promote
from .operands import (
    LITERAL_LIMIT,
    array_of,
    as_ref,
    broadcast_shapes,
    broadcast_to,
    constant,
    convert,
    emit,
    exact_value,
    fill,
    from_nested,
    integer,
    is_scalar_constant,
    literal,
    operand,
    to_var,
    value_of,
)
from .promote import parse_dtype
from .rules import RuleTable, resolve
from .shape import parse_shape, reshape_var
from .traced import Traced
from .views import reversed_axes, transpose_var

TABLE = RuleTable()


def in_memory_order(tx: TraceContext, shape: Sequence[Dim], order: str, make: Any) -> Var:
    """A fresh array made by ``make(shape)`` in C order, laid out as ``order`` says."""
    if order in ("C", "A", "K"):
        return make(tuple(shape))
    if order != "F":
        raise Unsupported(f"order={order!r}")
    return reversed_axes(tx, make(tuple(shape)[::-1]))


def _filled(value: Any) -> Any:
    def rule(
        tx: TraceContext,
        shape: Any,
        dtype: Any = None,
        order: str = "C",
        *,
        device: Any = None,
        like: Any = None,
    ) -> ArrayRef:
        _only_defaults(device=device, like=like)
        wanted = parse_dtype(dtype)

        def make(dims: tuple[Dim, ...]) -> Var:
            if value is None:
                from_pool = emit(tx, "empty", shape=dims, dtype=wanted, device=CPU)
                return from_pool
            return fill(tx, dims, exact_value(value, wanted), wanted)

        return array_of(in_memory_order(tx, _sizes(shape), order, make))

    return rule



def _sizes(shape: Any) -> tuple[Dim, ...]:
    dims = parse_shape(shape)
    if any(d < 0 for d in dims):
        raise Unsupported("negative dimensions are not allowed")
    return dims


def _only_defaults(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None and value != "cpu":
            raise Unsupported(f"{name}={value!r}")


TABLE.function("zeros")(_filled(0))
TABLE.function("ones")(_filled(1))
TABLE.function("empty")(_filled(None))


@TABLE.function("full")
def full(
    tx: TraceContext,
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> ArrayRef:
    _only_defaults(device=device, like=like)
    dims = _sizes(shape)
    return _full(tx, dims, fill_value, None if dtype is None else parse_dtype(dtype), order)


def _full(tx: TraceContext, dims: tuple[Dim, ...], value: Any, dtype: DType | None, order: str) -> ArrayRef:
    if is_scalar_constant(value):
        wanted = dtype or promote.from_np(promote.default_dtype(promote.operand_type(value)))
        exact = exact_value(value, wanted)
        return array_of(in_memory_order(tx, dims, order, lambda shape: fill(tx, shape, exact, wanted)))
    ref = as_ref(tx, value)
    var = convert(tx, ref.var, dtype or ref.dtype)

    def make(shape: tuple[Dim, ...]) -> Var:
        spread = broadcast_to(tx, var, dims)
        if order == "F":
            spread = reversed_axes(tx, spread)
        return emit(tx, "contiguous", spread)

    return array_of(in_memory_order(tx, dims, order, make))


def _like_rule(value: Any) -> Any:
    def rule(
        tx: TraceContext,
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> ArrayRef:
        return _like(tx, a, value, dtype, order, shape, device)

    return rule


def _like(tx: TraceContext, a: Any, value: Any, dtype: Any, order: str, shape: Any, device: Any) -> ArrayRef:
    _only_defaults(device=device)
    x = as_ref(tx, a)
    wanted = x.dtype if dtype is None else parse_dtype(dtype)
    dims = x.shape if shape is None else _sizes(shape)
    perm = _like_order(x, order, len(dims))

    def make(permuted: tuple[Dim, ...]) -> Var:
        if value is None:
            return emit(tx, "empty", shape=permuted, dtype=wanted, device=CPU)
        if is_scalar_constant(value):
            return fill(tx, permuted, exact_value(value, wanted), wanted)
        if tuple(perm) != tuple(range(len(dims))):
            raise Unsupported("full_like with an array value and an order that is not C")
        return emit(tx, "contiguous", broadcast_to(tx, to_var(tx, operand(tx, value), wanted), permuted))

    fresh = make(tuple(dims[axis] for axis in perm))
    if list(perm) == list(range(len(dims))):
        return array_of(fresh)
    return array_of(transpose_var(tx, fresh, np.argsort(perm).tolist()))


def _like_order(x: ArrayRef, order: str, ndim: int) -> list[int]:
    """Axes from outermost to innermost of a new array like ``x``."""
    natural = list(range(ndim))
    strides = x.var.type.strides
    if order == "K" and ndim == x.ndim:
        return sorted_axes(x.shape, strides)
    fortran = is_f_contiguous(x.shape, strides) and not is_c_contiguous(x.shape, strides)
    if order == "F" or (order == "A" and fortran):
        return natural[::-1]
    return natural


TABLE.function("zeros_like")(_like_rule(0))
TABLE.function("ones_like")(_like_rule(1))
TABLE.function("empty_like")(_like_rule(None))


@TABLE.function("full_like")
def full_like(
    tx: TraceContext,
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> ArrayRef:
    return _like(tx, a, fill_value, dtype, order, shape, device)


@TABLE.function("eye")
def eye(
    tx: TraceContext,
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> ArrayRef:
    _only_defaults(device=device, like=like)
    rows = integer(N, "a size")
    shape = (rows, rows if M is None else integer(M, "a size"))
    row = emit(tx, "iota", shape=shape, axis=0, dtype=dtypes.int64, device=CPU)
    column = emit(tx, "iota", shape=shape, axis=1, dtype=dtypes.int64, device=CPU)
    shift = broadcast_to(tx, to_var(tx, integer(k), dtypes.int64), shape)
    on_diagonal = emit(tx, "equal", emit(tx, "subtract", column, row), shift)
    result = convert(tx, on_diagonal, parse_dtype(dtype))
    if order == "F":
        result = reversed_axes(tx, emit(tx, "contiguous", reversed_axes(tx, result)))
    return array_of(result)


@TABLE.function("identity")
def identity(tx: TraceContext, n: Any, dtype: Any = None, *, like: Any = None) -> ArrayRef:
    _only_defaults(like=like)
    return eye(tx, n, dtype=dtype)


# -- ranges -----------------------------------------------------------------------------------
@TABLE.function("arange")
def arange(
    tx: TraceContext,
    start: Any = None,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    like: Any = None,
) -> ArrayRef:
    """``np.arange``. The length must be known at capture (it may be symbolic)."""
    _only_defaults(device=device, like=like)
    if stop is None:
        start, stop = 0, start
    first = 0 if start is None else start
    stride = 1 if step is None else step
    values = (first, stop, stride)
    if any(isinstance(v, ArrayRef) for v in values):
        raise Unsupported("numpy.arange with bounds that are data", break_id="data-dependent-shape")
    wanted = promote.result_dtype(*values) if dtype is None else parse_dtype(dtype)
    if not any(isinstance(v, SymInt) for v in values):
        return array_of(_known_range(tx, first, stop, stride, wanted))
    if not all(isinstance(v, (int, np.integer, SymInt)) for v in values):
        raise Unsupported("numpy.arange mixing floats and symbolic integers")
    return array_of(_symbolic_range(tx, *map(integer, values), dtype=wanted))


def _symbolic_range(tx: TraceContext, start: Dim, stop: Dim, step: Dim, dtype: DType) -> Var:
    stride = int(step)
    if stride == 0:
        raise Unsupported("numpy.arange with step 0")
    span = stop - start if stride > 0 else start - stop
    count = (span + (abs(stride) - 1)) // abs(stride) if span > 0 else 0
    return _affine_range(tx, count, start, stride, dtypes.int64, dtype)


def _affine_range(tx: TraceContext, count: Dim, start: Any, step: Any, computed: DType, dtype: DType) -> Var:
    line = emit(tx, "iota", shape=(count,), axis=0, dtype=computed, device=CPU)
    if step != 1:
        line = emit(tx, "multiply", line, broadcast_to(tx, to_var(tx, step, computed), (count,)))
    if not (isinstance(start, (int, float)) and start == 0):
        line = emit(tx, "add", line, broadcast_to(tx, to_var(tx, start, computed), (count,)))
    return convert(tx, line, dtype)


def _known_range(tx: TraceContext, start: Any, stop: Any, step: Any, dtype: DType) -> Var:
    if dtype.is_complex or dtype.is_bool:
        raise Unsupported(f"numpy.arange of {dtype}")
    try:
        count = max(0, math.ceil((stop - start) / step))
        # NumPy fills from the first two elements
        ends = np.array([start, start + step]).astype(dtype.numpy)
    except (ArithmeticError, ValueError, OverflowError) as error:
        raise Unsupported(f"numpy.arange: {error}") from error
    if count <= 16:
        return literal(tx, np.arange(start, stop, step, dtype.numpy))
    if dtype.is_integer and not all(isinstance(v, (int, np.integer)) for v in (start, step)):
        raise Unsupported("numpy.arange of integers with float bounds")
    first = ends[0].item()
    if dtype.is_integer:
        wide = dtypes.int64 if dtype.kind == "int" else dtypes.uint64
        return _affine_range(tx, count, first, int(step), wide if step > 0 else dtypes.int64, dtype)
    delta = (ends[1] - ends[0]).item()
    computed = dtypes.float32 if dtype == dtypes.float16 else dtype
    return _affine_range(tx, count, first, delta, computed, dtype)


@TABLE.function("linspace")
def linspace(
    tx: TraceContext,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    """``np.linspace``; ``start`` and ``stop`` may be arrays, ``num`` must be known (or symbolic)."""
    _only_defaults(device=device)
    count = integer(num, "a number of samples")
    if count < 0:
        raise Unsupported("Number of samples, num, must be non-negative.")
    if axis != 0:
        raise Unsupported("numpy.linspace with axis=")
    if is_scalar_constant(start) and is_scalar_constant(stop) and isinstance(count, int):
        return _known_linspace(tx, start, stop, count, endpoint, retstep, dtype)
    first = Traced(tx, start) * 1.0
    last = Traced(tx, stop) * 1.0
    computed = promote.from_np(np.result_type(first.dtype.numpy, last.dtype.numpy, np.float64))
    result = _linspace(tx, first, last, count, endpoint, computed)
    wanted = computed if dtype is None else parse_dtype(dtype)
    if wanted.is_integer:
        result = result.call(np.floor)
    samples = array_of(convert(tx, result.var, wanted))
    if not retstep:
        return samples
    div = count - 1 if endpoint else count
    if not div > 0:
        raise Unsupported("numpy.linspace(retstep=True) of fewer than two samples")
    return samples, ((last - first) / _as_float(div)).ref


def _as_float(count: Dim) -> Any:
    return count if isinstance(count, SymInt) else float(count)


def _linspace(
    tx: TraceContext, first: Traced, last: Traced, count: Dim, endpoint: bool, dtype: DType
) -> Traced:
    rest = broadcast_shapes(first.shape, last.shape)
    shape = (count, *rest)
    real = dtype.real
    line = Traced(tx, array_of(emit(tx, "iota", shape=shape, axis=0, dtype=real, device=CPU)))
    delta = Traced(tx, value_of(convert(tx, (last - first).var, dtype)))
    div = count - 1 if endpoint else count
    if not div > 0:
        return line * delta + first
    step = delta / _as_float(div)
    samples = line * step
    # a step that rounds to zero: NumPy has another formula
    fallback = line / _as_float(div) * delta
    zero = (step == 0).then(_spread, shape)
    samples = Traced(tx, array_of(emit(tx, "where", zero.var, fallback.var, samples.var)))
    samples = samples + first
    if not (endpoint and count > 1):
        return samples
    at_end = line == (count - 1)
    end = Traced(tx, array_of(broadcast_to(tx, convert(tx, last.var, dtype), shape)))
    return Traced(tx, array_of(emit(tx, "where", at_end.var, end.var, samples.var)))


def _spread(tx: TraceContext, ref: ArrayRef, shape: tuple[Dim, ...]) -> ArrayRef:
    return array_of(broadcast_to(tx, ref.var, shape))


def _known_linspace(
    tx: TraceContext, start: Any, stop: Any, count: int, endpoint: bool, retstep: bool, dtype: Any
) -> Any:
    """Constant ends: small results are literals, long ones a formula over positions."""
    wanted = None if dtype is None else parse_dtype(dtype).numpy
    probe, step = np.linspace(start, stop, count, endpoint, retstep=True, dtype=wanted)
    if count <= 256 or step == 0 or probe.dtype != np.float64:
        samples = array_of(literal(tx, probe))
    else:
        line = emit(tx, "iota", shape=(count,), axis=0, dtype=dtypes.float64, device=CPU)
        scaled = emit(tx, "multiply", line, broadcast_to(tx, constant(tx, step, dtypes.float64), (count,)))
        first = broadcast_to(tx, constant(tx, start, dtypes.float64), (count,))
        filled = emit(tx, "add", scaled, first)
        if endpoint:
            last = broadcast_to(tx, constant(tx, count - 1, dtypes.float64), (count,))
            end = broadcast_to(tx, constant(tx, stop, dtypes.float64), (count,))
            filled = emit(tx, "where", emit(tx, "equal", line, last), end, filled)
        samples = array_of(filled)
    return (samples, step) if retstep else samples


# -- from other arrays ------------------------------------------------------------------------
@TABLE.function("array")
def array(
    tx: TraceContext,
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> ArrayRef:
    _only_defaults(like=like)
    if copy is False:
        raise Unsupported("numpy.array(copy=False)")
    made = as_array(tx, object, dtype, order or "K", bool(copy))
    if made.ndim < ndmin:
        shape = (1,) * (ndmin - made.ndim) + made.shape
        made = array_of(emit(tx, "reshape", made.var, shape=shape))
    return made


def as_array(tx: TraceContext, value: Any, dtype: Any, order: str, copy: bool) -> ArrayRef:
    """``np.asarray`` or ``np.array``: the same object where nothing changes and ``copy`` is false."""
    wanted = None if dtype is None else parse_dtype(dtype)
    if isinstance(value, (list, tuple)):
        return _ordered(tx, from_nested(tx, value, wanted), order)
    if is_scalar_constant(value) and wanted is not None:
        return array_of(constant(tx, value, wanted))
    ref = as_ref(tx, value)
    if isinstance(value, np.ndarray):
        return _ordered(tx, convert(tx, ref.var, wanted or ref.dtype), order)
    var = convert(tx, ref.var, wanted or ref.dtype)
    if var is ref.var and ref.kind == "array" and not copy:
        ordered = _ordered(tx, var, order)
        return ref if ordered.var is var else ordered
    if var is ref.var:
        var = emit(tx, "copy", var)
    return _ordered(tx, var, order)


def _ordered(tx: TraceContext, var: Var, order: str) -> ArrayRef:
    strides = var.type.strides
    if order == "C" and not is_c_contiguous(var.shape, strides):
        return array_of(emit(tx, "contiguous", var))
    if order == "F" and not is_f_contiguous(var.shape, strides):
        return array_of(reversed_axes(tx, emit(tx, "contiguous", reversed_axes(tx, var))))
    if order not in ("C", "F", "K", "A"):
        raise Unsupported(f"order={order!r}")
    return array_of(var)


@TABLE.function("asarray", "asanyarray")
def asarray(
    tx: TraceContext,
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> ArrayRef:
    _only_defaults(device=device, like=like)
    if copy is False:
        raise Unsupported("numpy.asarray(copy=False)")
    return as_array(tx, a, dtype, order or "K", bool(copy))


@TABLE.function("ascontiguousarray")
def ascontiguousarray(tx: TraceContext, a: Any, dtype: Any = None, *, like: Any = None) -> ArrayRef:
    _only_defaults(like=like)
    return _at_least_1d(tx, as_array(tx, a, dtype, "C", False))


@TABLE.function("asfortranarray")
def asfortranarray(tx: TraceContext, a: Any, dtype: Any = None, *, like: Any = None) -> ArrayRef:
    _only_defaults(like=like)
    return _at_least_1d(tx, as_array(tx, a, dtype, "F", False))


def _at_least_1d(tx: TraceContext, ref: ArrayRef) -> ArrayRef:
    return ref if ref.ndim else array_of(emit(tx, "reshape", ref.var, shape=(1,)))


@TABLE.function("copy")
def copy(tx: TraceContext, a: Any, order: str = "K", subok: bool = False) -> ArrayRef:
    return as_array(tx, a, None, order, True)


@TABLE.method("copy", "__copy__")
def copy_method(tx: TraceContext, x: ArrayRef, order: str = "C") -> ArrayRef:
    """``x.copy()``: C order unless asked otherwise; scalars stay scalars."""
    if x.kind != "array":
        return value_of(emit(tx, "copy", x.var))
    return as_array(tx, x, None, order, True)


@TABLE.method("__deepcopy__")
def deepcopy_method(tx: TraceContext, x: ArrayRef, memo: Any = None) -> ArrayRef:
    return copy_method(tx, x, "K")


# -- grids ------------------------------------------------------------------------------------
@TABLE.function("meshgrid")
def meshgrid(
    tx: TraceContext, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[ArrayRef, ...]:
    refs = [as_ref(tx, x) for x in xi]
    ndim = len(refs)
    if indexing not in ("xy", "ij"):
        raise Unsupported("Valid values for `indexing` are 'xy' and 'ij'.")
    places = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        places[:2] = [1, 0]
    lines = []
    for place, ref in zip(places, refs):
        flat = reshape_var(tx, ref.var, (ref.var.type.size,))
        shape = tuple(flat.shape[0] if i == place else 1 for i in range(ndim))
        lines.append(emit(tx, "reshape", flat, shape=shape))
    if sparse:
        return tuple(array_of(emit(tx, "contiguous", x) if copy else x) for x in lines)
    full_shape = broadcast_shapes(*(x.shape for x in lines))
    grids = [broadcast_to(tx, x, full_shape) for x in lines]
    if not copy:
        return tuple(array_of(g, readonly=True) for g in grids)
    return tuple(array_of(emit(tx, "contiguous", g)) for g in grids)


@TABLE.function("indices")
def indices(tx: TraceContext, dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape = _sizes(tuple(dimensions))
    wanted = parse_dtype(dtype)
    if sparse:
        lines = []
        for axis, size in enumerate(shape):
            line = tuple(size if i == axis else 1 for i in range(len(shape)))
            lines.append(array_of(emit(tx, "iota", shape=line, axis=axis, dtype=wanted, device=CPU)))
        return tuple(lines)
    if not shape:
        raise Unsupported("numpy.indices of no dimensions")
    rows = []
    for axis in range(len(shape)):
        grid = emit(tx, "iota", shape=shape, axis=axis, dtype=wanted, device=CPU)
        rows.append(emit(tx, "reshape", grid, shape=(1, *shape)))
    return array_of(emit(tx, "concatenate", *rows, axis=0))


@TABLE.function("vander")
def vander(tx: TraceContext, x: Any, N: Any = None, increasing: bool = False) -> ArrayRef:
    ref = as_ref(tx, x)
    count = int(ref.shape[0] if N is None else integer(N))
    if ref.ndim != 1 or count < 1 or count > 64:
        raise Unsupported("numpy.vander of this shape")
    wanted = promote.from_np(np.promote_types(ref.dtype.numpy, np.int64))
    value = Traced(tx, value_of(convert(tx, ref.var, wanted)))
    column = Traced(tx, array_of(broadcast_to(tx, constant(tx, 1, wanted), ref.shape)))
    columns = [column]
    for _ in range(count - 1):
        columns.append(columns[-1] * value)
    ordered = columns if increasing else columns[::-1]
    parts = [emit(tx, "reshape", emit(tx, "contiguous", c.var), shape=(*ref.shape, 1)) for c in ordered]
    return array_of(emit(tx, "concatenate", *parts, axis=1))


# -- computed by NumPy at capture -------------------------------------------------------------
_FOLDED = (
    "geomspace",
    "hanning",
    "hamming",
    "blackman",
    "bartlett",
    "kaiser",
    "tril_indices",
    "triu_indices",
    "diag_indices",
    "fft.fftfreq",
    "fft.rfftfreq",
)


def _folded_rule(function: Any) -> Any:
    """The rule of a function whose arguments are constants: NumPy computes it once, at capture."""

    def rule(tx: TraceContext, *args: Any, **kwargs: Any) -> Any:
        concrete = [_pinned(a) for a in args]
        named = {name: _pinned(value) for name, value in kwargs.items()}
        result = function(*concrete, **named)
        if isinstance(result, tuple):
            return tuple(_fresh(tx, part) for part in result)
        return _fresh(tx, result)

    return rule


def _pinned(value: Any) -> Any:
    if isinstance(value, ArrayRef):
        raise Unsupported("an argument that is data")
    return int(value) if isinstance(value, SymInt) else value


def _fresh(tx: TraceContext, value: Any) -> ArrayRef:
    if value.size > LITERAL_LIMIT:
        raise Unsupported("a constant array too large to hold in a graph")
    return array_of(literal(tx, value)) if isinstance(value, np.ndarray) else as_ref(tx, value)


for _path in _FOLDED:
    _function = resolve(_path)
    if _function is not None:
        TABLE.functions[_function] = _folded_rule(_function)
