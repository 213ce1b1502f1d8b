"""Normalization by running statistics, and over groups of channels."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import product
from ..base import ArrayRef, TraceContext
from ..numpy.operands import emit
from .formats import in_suggested_format
from .functional import real_tensor
from .operands import contiguous, convert, need_tensor, pointwise, tensor, to_var, write
from .reductions import widened
from .torch_rules import RuleTable

TABLE = RuleTable()


def per_channel(tx: TraceContext, values: Var, ndim: int) -> Var:
    """One value for each channel (dimension 1) in a shape that broadcasts against ``ndim`` dimensions."""
    if values.ndim == 0 or ndim < 2:
        return values
    found: Var = emit(tx, "reshape", values, shape=(values.shape[0], *(1,) * (ndim - 2)))
    return found


def _channels(x: ArrayRef, *parameters: object) -> list[Any]:
    """The parameters as tensors of one value a channel."""
    found = [None if p is None else need_tensor(p) for p in parameters]
    for ref in found:
        if ref is not None and (ref.ndim != 1 or not ref.dtype.is_float):
            raise Unsupported("normalization with parameters of another shape")
    return found


def _statistics(tx: TraceContext, x: ArrayRef) -> tuple[ArrayRef, ArrayRef]:
    """Mean and variance of each channel of the input itself."""
    axes = (0, *range(2, x.ndim))
    count = product(x.shape[axis] for axis in axes)
    if count < 2:
        raise Unsupported("batch_norm of one value per channel")
    wide = widened(tx, x.var)
    number = to_var(tx, count, wide.dtype)
    mean = pointwise(tx, "divide", emit(tx, "reduce_sum", wide, axes=axes), number)
    centred = pointwise(tx, "subtract", wide, per_channel(tx, mean, x.ndim))
    squares = emit(tx, "reduce_sum", pointwise(tx, "multiply", centred, centred), axes=axes)
    return tensor(mean), tensor(pointwise(tx, "divide", squares, number))


def _move(
    tx: TraceContext,
    x: ArrayRef,
    running: tuple[object, object],
    new: tuple[ArrayRef, ArrayRef],
    momentum: object,
) -> None:
    """Write ``(1 - momentum) running + momentum new``, with the unbiased variance."""
    if isinstance(momentum, ArrayRef) and momentum.kind == "python":
        given = convert(tx, momentum.var, dtypes.float64)  # of a running average, the reciprocal of a count
    elif isinstance(momentum, (int, float)):
        given = to_var(tx, float(momentum), dtypes.float64)
    else:
        raise Unsupported("batch_norm with a momentum that is no number")
    kept = pointwise(tx, "subtract", to_var(tx, 1.0, dtypes.float64), given)
    count = product(x.shape[axis] for axis in (0, *range(2, x.ndim)))
    many, less = (to_var(tx, n, dtypes.float64) for n in (count, count - 1))
    unbiased = pointwise(tx, "multiply", given, pointwise(tx, "divide", many, less))
    for target, value, factor in zip(_channels(x, *running), new, (given, unbiased)):
        step = pointwise(tx, "multiply", value.var, convert(tx, factor, value.dtype))
        rest = pointwise(tx, "multiply", widened(tx, target.var), convert(tx, kept, value.dtype))
        # the statistics are no function of the input to autograd
        write(tx, target, tx.ops.stop_gradient(pointwise(tx, "add", rest, step)))


@TABLE.function("F.batch_norm")
def batch_norm(
    tx: TraceContext,
    input: object,
    running_mean: object,
    running_var: object,
    weight: object = None,
    bias: object = None,
    training: object = False,
    momentum: object = 0.1,
    eps: object = 1e-5,
) -> ArrayRef:
    """By the running statistics, or by those of the input; in training mode these move the running ones."""
    x = real_tensor(input)
    if training and (running_mean is None) != (running_var is None):
        raise Unsupported("batch_norm with one of the running statistics")
    if x.ndim < 2 or (isinstance(eps, (int, float)) and eps < 0):
        raise Unsupported("batch_norm of this input")
    if not training and running_mean is None:
        raise Unsupported("Expected running_mean and running_var to be defined when training=False")
    if training:
        statistics = _statistics(tx, x)
        if running_mean is not None:
            _move(tx, x, (running_mean, running_var), statistics, momentum)
        running_mean, running_var = statistics
    mean, variance, scale, shift = _channels(x, running_mean, running_var, weight, bias)
    spread = widened(tx, variance.var)
    factor = pointwise(tx, "rsqrt", pointwise(tx, "add", spread, to_var(tx, eps, spread.dtype)))
    if scale is not None:
        factor = pointwise(tx, "multiply", factor, widened(tx, scale.var))
    offset = pointwise(tx, "negative", pointwise(tx, "multiply", widened(tx, mean.var), factor))
    if shift is not None:
        offset = pointwise(tx, "add", offset, widened(tx, shift.var))
    out = pointwise(tx, "multiply", widened(tx, x.var), per_channel(tx, factor, x.ndim))
    out = pointwise(tx, "add", out, per_channel(tx, offset, x.ndim))
    return tensor(in_suggested_format(tx, x.var, convert(tx, out, x.dtype)))


@TABLE.function("F.instance_norm")
def instance_norm(
    tx: TraceContext,
    input: object,
    running_mean: object = None,
    running_var: object = None,
    weight: object = None,
    bias: object = None,
    use_input_stats: object = True,
    momentum: object = 0.1,
    eps: object = 1e-5,
) -> ArrayRef:
    """Each channel of each sample by itself: the normalization of as many groups as there are channels."""
    x = real_tensor(input)
    if not use_input_stats:
        return batch_norm(tx, x, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is not None or running_var is not None:
        raise Unsupported("instance_norm that moves running statistics")
    if x.ndim < 3 or product(x.shape[2:]) < 2:
        raise Unsupported("instance_norm of one value per channel")
    return group_norm(tx, x, int(x.shape[1]), weight, bias, eps)


@TABLE.function("F.group_norm")
def group_norm(
    tx: TraceContext,
    input: object,
    num_groups: object,
    weight: object = None,
    bias: object = None,
    eps: object = 1e-5,
) -> ArrayRef:
    """Mean and variance of each group of channels of each sample."""
    x = real_tensor(input)
    if x.ndim < 2 or not isinstance(num_groups, int) or num_groups <= 0 or int(x.shape[1]) % num_groups:
        raise Unsupported("group_norm: channels that the groups do not divide")
    if not isinstance(eps, (int, float)) or any(d == 0 for d in x.shape):
        raise Unsupported("group_norm of this input")
    scale, shift = _channels(x, weight, bias)
    batch, channels = x.shape[0], x.shape[1]
    size = product((int(channels) // num_groups, *x.shape[2:]))
    wide = widened(tx, contiguous(tx, x.var))
    rows = emit(tx, "reshape", wide, shape=(batch, num_groups, size))
    normal = emit(tx, "layer_norm", rows, axes=(2,), eps=float(eps), weight=False, bias=False)
    out = emit(tx, "reshape", contiguous(tx, normal), shape=x.shape)
    if scale is not None:
        out = pointwise(tx, "multiply", out, per_channel(tx, widened(tx, scale.var), x.ndim))
    if shift is not None:
        out = pointwise(tx, "add", out, per_channel(tx, widened(tx, shift.var), x.ndim))
    return tensor(in_suggested_format(tx, x.var, convert(tx, out, x.dtype)))
