"""Ranges of numbers, and arrays that NumPy computes once, at capture."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...device import CPU
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import Dim, SymInt, same, sym_max
from ..base import ArrayRef, TraceContext
from . import promote
from .numpy_rules import RuleTable, resolve
from .operands import (
    LITERAL_LIMIT,
    array_of,
    as_ref,
    broadcast_shapes,
    broadcast_to,
    constant,
    convert,
    emit,
    integer,
    is_scalar_constant,
    literal,
    only_defaults,
    to_var,
    value_of,
)
from .promote import parse_dtype
from .traced import Traced
from .views import in_memory_as
from .windows import SYMBOLIC

TABLE = RuleTable()


@TABLE.function("arange")
def arange(
    tx: TraceContext,
    start: object = None,
    stop: object = None,
    step: object = None,
    dtype: object = None,
    *,
    device: object = None,
    like: object = None,
) -> ArrayRef:
    """``np.arange``. The length must be known at capture (it may be symbolic)."""
    only_defaults(device=device, like=like)
    if stop is None:
        start, stop = 0, start
    first = 0 if start is None else start
    stride = 1 if step is None else step
    values = (first, stop, stride)
    if any(isinstance(v, ArrayRef) for v in values):
        raise Unsupported("numpy.arange with bounds that are data", break_id="data-dependent-shape")
    if any(isinstance(v, int) and not -(2**63) <= v < 2**63 for v in values):
        raise Unsupported("numpy.arange of integers that are not of 64 bits: of floats or objects")
    wanted = promote.result_dtype(*values) if dtype is None else parse_dtype(dtype)
    if not any(isinstance(v, SymInt) for v in values):
        return array_of(_known_range(tx, first, stop, stride, wanted))
    low, high, by = (_whole(v) for v in values)
    return array_of(_symbolic_range(tx, low, high, by, wanted))


def _whole(value: object) -> Dim:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return int(value)
    if not isinstance(value, (int, np.integer, SymInt)):
        raise Unsupported("numpy.arange mixing fractions and symbolic integers")
    return integer(value)


def _symbolic_range(tx: TraceContext, start: Dim, stop: Dim, step: Dim, dtype: DType) -> Var:
    if step == 0:
        raise Unsupported("numpy.arange with step 0")
    span = stop - start if step > 0 else start - stop
    if tx.env.is_unbacked(span):
        span = sym_max(span, 0)
    count = (span + (abs(step) - 1)) // abs(step) if tx.env.known(span, "<") is False or span > 0 else 0
    return _affine_range(tx, count, start, step, dtypes.int64, dtype)


def _affine_range(
    tx: TraceContext, count: Dim, start: object, step: Any, computed: DType, dtype: DType
) -> Var:
    line = emit(tx, "iota", shape=(count,), axis=0, dtype=computed, device=CPU)
    if not same(step, 1):
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
        return literal(tx, np.arange(start, stop, step, dtype=dtype.numpy))
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
    start: object,
    stop: object,
    num: object = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: object = None,
    axis: object = 0,
    *,
    device: object = None,
) -> Any:
    """``np.linspace``; ``start`` and ``stop`` may be arrays, ``num`` must be known (or symbolic)."""
    only_defaults(device=device)
    count = integer(num, "a number of samples")
    if count < 0:
        raise Unsupported("Number of samples, num, must be non-negative.")
    if axis != 0:
        raise Unsupported("numpy.linspace with axis=")
    if is_scalar_constant(start) and is_scalar_constant(stop) and isinstance(count, int):
        return _known_linspace(tx, start, stop, count, endpoint, retstep, dtype)
    first = Traced(tx, start) * 1.0
    last = Traced(tx, stop) * 1.0
    computed = _inexact(promote.result_dtype(start, stop))
    result = _linspace(tx, first, last, count, endpoint, computed)
    wanted = computed if dtype is None else parse_dtype(dtype)
    if wanted.is_integer:
        result = result.call(np.floor)
    samples = array_of(_in_samples_order(tx, convert(tx, result.var, wanted), first, last))
    if not retstep:
        return samples
    div = count - 1 if endpoint else count
    if not div > 0:
        raise Unsupported("numpy.linspace(retstep=True) of fewer than two samples")
    return samples, (_difference(tx, first, last, computed) / _as_float(div)).ref


def _in_samples_order(tx: TraceContext, samples: Var, first: Traced, last: Traced) -> Var:
    """``samples`` with its axes in memory as NumPy has them: as those of positions times differences."""
    if samples.ndim < 3:
        return samples
    column = (samples.shape[0], *(1 for _ in samples.shape[1:]))
    line = emit(tx, "iota", shape=column, axis=0, dtype=samples.dtype, device=CPU)
    differences = (last - first).var
    return in_memory_as(tx, samples, *(broadcast_to(tx, x, samples.shape) for x in (line, differences)))


def _inexact(dtype: DType) -> DType:
    """What NumPy computes samples in whose ends have ``dtype`` as their common type."""
    return dtype if np.issubdtype(dtype.numpy, np.inexact) else dtypes.float64


def _difference(tx: TraceContext, first: Traced, last: Traced, dtype: DType) -> Traced:
    return Traced(tx, value_of(convert(tx, last.var, dtype))) - Traced(
        tx, value_of(convert(tx, first.var, dtype))
    )


def _as_float(count: Dim) -> Any:
    return count if isinstance(count, SymInt) else float(count)


def _linspace(
    tx: TraceContext, first: Traced, last: Traced, count: Dim, endpoint: bool, dtype: DType
) -> Traced:
    rest = broadcast_shapes(first.shape, last.shape)
    shape = (count, *rest)
    real = dtype.real
    line = Traced(tx, array_of(emit(tx, "iota", shape=shape, axis=0, dtype=real, device=CPU)))
    delta = _difference(tx, first, last, dtype)
    div = count - 1 if endpoint else count
    if not div > 0:
        return line * delta + first
    step = delta / _as_float(div)
    samples = line * step
    # a step that rounds to zero: NumPy has another formula
    fallback = line / _as_float(div) * delta
    zero = (step == 0).then(_spread, shape)
    samples = Traced(tx, array_of(emit(tx, "where", zero.var, fallback.var, samples.var)))
    samples = Traced(tx, array_of(convert(tx, (samples + first).var, dtype)))
    if not (endpoint and count > 1):
        return samples
    at_end = line == (count - 1)
    end = Traced(tx, array_of(broadcast_to(tx, convert(tx, last.var, dtype), shape)))
    return Traced(tx, array_of(emit(tx, "where", at_end.var, end.var, samples.var)))


def _spread(tx: TraceContext, ref: ArrayRef, shape: tuple[Dim, ...]) -> ArrayRef:
    return array_of(broadcast_to(tx, ref.var, shape))


def _known_linspace(
    tx: TraceContext, start: Any, stop: Any, count: int, endpoint: bool, retstep: bool, dtype: object
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


# -- computed by NumPy at capture, where their sizes are known ---------------------------------
_FOLDED = (
    "geomspace",
    "logspace",
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


def _folded_rule(function: Callable[..., Any]) -> Any:
    """The rule of a function whose arguments are constants: NumPy computes it once, at capture."""

    def rule(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        if any(isinstance(a, SymInt) for a in (*args, *kwargs.values())) and function in SYMBOLIC:
            return SYMBOLIC[function](tx, *args, **kwargs)
        concrete = [_pinned(a) for a in args]
        named = {name: _pinned(value) for name, value in kwargs.items()}
        result = function(*concrete, **named)
        if isinstance(result, tuple):
            made = {id(part): _fresh(tx, part) for part in result}  # ``diag_indices`` gives one array twice
            return tuple(made[id(part)] for part in result)
        return _fresh(tx, result)

    return rule


def _pinned(value: object) -> Any:
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
