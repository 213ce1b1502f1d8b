"""Activations, normalization, embedding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...device import CPU
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import dims_equal
from ..base import ArrayRef, TraceContext
from ..numpy.operands import emit
from .calls import routine
from .formats import in_suggested_format
from .gradients import is_differentiated, where_true, with_gradient
from .operands import (
    contiguous,
    convert,
    need_tensor,
    only_defaults,
    ordered,
    pointwise,
    tensor,
    to_var,
    write,
)
from .reductions import widened
from .torch_rules import RuleTable, resolve

TABLE = RuleTable()


def real_tensor(value: object) -> ArrayRef:
    ref = need_tensor(value)
    if not ref.dtype.is_float:
        raise Unsupported("an activation of integers")
    return ref


def _result(tx: TraceContext, x: object, out: Var, inplace: object) -> ArrayRef:
    return write(tx, x, out) if inplace else tensor(out)


def _half_aware(tx: TraceContext, x: ArrayRef, var_of: Callable[[Var], Var]) -> Var:
    """Compute half precision in float32 and round once."""
    return convert(tx, var_of(widened(tx, x.var)), x.dtype)


# -- activations ------------------------------------------------------------------------------
def relu_var(tx: TraceContext, x: ArrayRef) -> Var:
    if x.dtype.is_bool:
        raise Unsupported("relu of bools")
    out = pointwise(tx, "relu" if x.dtype.is_float else "maximum", *_relu_operands(tx, x))
    if not is_differentiated(tx, x.var):
        return out
    return with_gradient(tx, out, (x.var, where_true(tx, _above(tx, x.var, 0.0))))


def _above(tx: TraceContext, x: Var, number: float) -> Var:
    return pointwise(tx, "greater", x, to_var(tx, number, x.dtype))


def _relu_operands(tx: TraceContext, x: ArrayRef) -> tuple[Var, ...]:
    return (x.var,) if x.dtype.is_float else (x.var, to_var(tx, 0, x.dtype))


@TABLE.function("F.relu")
def functional_relu(tx: TraceContext, input: object, inplace: object = False) -> ArrayRef:
    return _result(tx, input, relu_var(tx, need_tensor(input)), inplace)


@TABLE.both("relu")
def relu(tx: TraceContext, input: object) -> ArrayRef:
    return tensor(relu_var(tx, need_tensor(input)))


@TABLE.function("F.gelu")
def gelu(tx: TraceContext, input: object, approximate: str = "none") -> ArrayRef:
    x = real_tensor(input)
    op = {"none": "gelu", "tanh": "gelu_tanh"}.get(approximate)
    if op is None:
        raise Unsupported(f"approximate={approximate!r}")
    return tensor(ordered(tx, emit(tx, op, x.var), [x.var]))


@TABLE.function("F.silu")
def silu(tx: TraceContext, input: object, inplace: object = False) -> ArrayRef:
    x = real_tensor(input)
    return _result(tx, input, _half_aware(tx, x, lambda w: pointwise(tx, "silu", w)), inplace)


@TABLE.function("F.sigmoid")
def sigmoid(tx: TraceContext, input: object) -> ArrayRef:
    return tensor(pointwise(tx, "sigmoid", real_tensor(input).var))


@TABLE.function("F.tanh")
def tanh(tx: TraceContext, input: object) -> ArrayRef:
    return tensor(pointwise(tx, "tanh", real_tensor(input).var))


@TABLE.function("F.leaky_relu")
def leaky_relu(
    tx: TraceContext, input: object, negative_slope: object = 0.01, inplace: object = False
) -> ArrayRef:
    x = real_tensor(input)

    def compute(w: Var) -> Var:
        below = pointwise(tx, "multiply", w, to_var(tx, negative_slope, w.dtype))
        return pointwise(tx, "where", pointwise(tx, "greater", w, to_var(tx, 0.0, w.dtype)), w, below)

    return _result(tx, input, _half_aware(tx, x, compute), inplace)


@TABLE.function("rrelu", "F.rrelu")
def rrelu(
    tx: TraceContext,
    input: object,
    lower: Any = 1.0 / 8,
    upper: Any = 1.0 / 3,
    training: object = False,
    inplace: object = False,
) -> ArrayRef:
    """In training mode as many slopes are drawn as elements are negative: torch does that."""
    if training is not False:
        raise Unsupported("rrelu in training mode")
    return leaky_relu(tx, input, (lower + upper) / 2, inplace)


@TABLE.function("F.elu")
def elu(tx: TraceContext, input: object, alpha: object = 1.0, inplace: object = False) -> ArrayRef:
    x = real_tensor(input)

    def compute(w: Var) -> Var:
        below = pointwise(tx, "multiply", pointwise(tx, "expm1", w), to_var(tx, alpha, w.dtype))
        return pointwise(tx, "where", pointwise(tx, "less", w, to_var(tx, 0.0, w.dtype)), below, w)

    return _result(tx, input, _half_aware(tx, x, compute), inplace)


@TABLE.function("F.softplus")
def softplus(tx: TraceContext, input: object, beta: object = 1, threshold: Any = 20) -> ArrayRef:
    x = real_tensor(input)
    if not isinstance(beta, (int, float)) or beta <= 0:
        raise Unsupported("softplus with a beta that is not a positive number")

    def compute(w: Var) -> Var:
        factor = to_var(tx, float(beta), w.dtype)
        scaled = pointwise(tx, "multiply", w, factor)
        soft = pointwise(tx, "divide", pointwise(tx, "log1p", pointwise(tx, "exp", scaled)), factor)
        large = pointwise(tx, "greater", scaled, to_var(tx, float(threshold), w.dtype))
        return pointwise(tx, "where", large, w, soft)

    return tensor(_half_aware(tx, x, compute))


# -- normalization ----------------------------------------------------------------------------
def _normalized(x: ArrayRef, normalized_shape: object) -> tuple[int, ...]:
    sizes = normalized_shape if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    start = x.ndim - len(sizes)
    if not sizes or start < 0 or not all(dims_equal(a, b) for a, b in zip(x.shape[start:], sizes)):
        raise Unsupported(f"normalized_shape={normalized_shape} does not fit the input")
    if any(d == 0 for d in x.shape):
        raise Unsupported("normalization of no elements")
    return tuple(range(start, x.ndim))


def _parameters(x: ArrayRef, axes: tuple[int, ...], *values: object) -> list[Var]:
    found = [need_tensor(v) for v in values if v is not None]
    for ref in found:
        if ref.dtype != x.dtype or ref.ndim != len(axes):
            raise Unsupported("normalization with parameters of another dtype or shape")
    return [ref.var for ref in found]


@TABLE.function("F.layer_norm")
def layer_norm(
    tx: TraceContext,
    input: object,
    normalized_shape: object,
    weight: object = None,
    bias: object = None,
    eps: float = 1e-5,
) -> ArrayRef:
    x = real_tensor(input)
    axes = _normalized(x, normalized_shape)
    flags = {"weight": weight is not None, "bias": bias is not None}
    wide = x
    if _has_wide_parameters(x, weight, bias):
        wide = tensor(convert(tx, x.var, dtypes.float32))
    rest = _parameters(wide, axes, weight, bias)
    out = convert(tx, emit(tx, "layer_norm", wide.var, *rest, axes=axes, eps=float(eps), **flags), x.dtype)
    return tensor(contiguous(tx, out))


def _has_wide_parameters(x: ArrayRef, *values: object) -> bool:
    """Halves with parameters in float32, which torch takes on a CPU."""
    if x.type.device != CPU or x.dtype not in (dtypes.float16, dtypes.bfloat16):
        return False
    return any(v is not None and need_tensor(v).dtype == dtypes.float32 for v in values)


@TABLE.function("F.rms_norm")
def rms_norm(
    tx: TraceContext, input: object, normalized_shape: object, weight: Any = None, eps: Any = None
) -> ArrayRef:
    x = real_tensor(input)
    axes = _normalized(x, normalized_shape)
    if eps is None:
        # finfo of the dtype in which it is computed
        eps = 2.220446049250313e-16 if x.dtype == dtypes.float64 else 1.1920928955078125e-07
    rest = _parameters(x, axes, weight)
    out = emit(tx, "rms_norm", x.var, *rest, axes=axes, eps=float(eps), weight=weight is not None)
    return tensor(in_suggested_format(tx, x.var, out))


# -- embedding ------------------------------------------------------------------------------
@TABLE.function("F.embedding")
def embedding(
    tx: TraceContext,
    input: object,
    weight: object,
    padding_idx: Any = None,
    max_norm: object = None,
    norm_type: object = 2.0,
    scale_grad_by_freq: object = False,
    sparse: object = False,
) -> ArrayRef:
    """``padding_idx``, whose row gets no gradient, ``scale_grad_by_freq`` and ``sparse`` matter to gradients
    only."""
    only_defaults(max_norm=max_norm)
    positions, table = need_tensor(input), need_tensor(weight)
    differentiated = is_differentiated(tx, table.var)
    if differentiated:
        only_defaults(scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    if positions.dtype not in (dtypes.int64, dtypes.int32) or table.ndim != 2:
        raise Unsupported("embedding of these dtypes or shapes")
    index = convert(tx, positions.var, dtypes.int64)
    rows = contiguous(tx, emit(tx, "embedding", table.var, index))
    if padding_idx is None or not differentiated:
        return tensor(rows)
    padding = padding_idx + table.shape[0] if padding_idx < 0 else padding_idx
    counts = pointwise(tx, "not_equal", index, to_var(tx, padding, dtypes.int64))
    counts = emit(tx, "broadcast_in_dim", counts, shape=rows.shape, dims=tuple(range(positions.ndim)))
    return tensor(with_gradient(tx, rows, (rows, where_true(tx, counts))))


@TABLE.function("F.embedding_bag")
def embedding_bag(
    tx: TraceContext,
    input: object,
    weight: object,
    offsets: object = None,
    max_norm: object = None,
    norm_type: object = 2.0,
    scale_grad_by_freq: object = False,
    mode: object = "mean",
    sparse: object = False,
    *settings: object,
    **keywords: object,
) -> Any:
    """torch's routine: one of Python's, as that of C++ says a wrong shape of a result that nobody uses."""
    only_defaults(max_norm=max_norm)
    if is_differentiated(tx, need_tensor(weight).var):
        only_defaults(sparse=sparse)
    given = (weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse, *settings)
    return _bag_routine(tx, input, *given, **keywords)


_bag_routine = routine(resolve("F.embedding_bag"))
