"""Dropout in its forms, as ``_dropout_impl`` of ATen/native/Dropout.cpp: the input times noise that is drawn
in a tensor like it, or one number for each channel. Eval mode gives the input itself."""

from __future__ import annotations

import math
from typing import Any

from ...errors import Unsupported
from ..base import ArrayRef, Rule, TraceContext
from ..numpy.operands import emit
from .operands import need_tensor, tensor, to_var, write
from .pointwise import add_var, divide_var, multiply_var
from .random import FLOATS, filled_like, seed
from .random_bits import is_fused, ones
from .torch_rules import RuleTable

TABLE = RuleTable()
_SELU = 1.7580993408473766  # its scale times its alpha (Klambauer et al., "Self-Normalizing Networks", 2017)


def dropped(
    tx: TraceContext,
    input: object,
    p: Any,
    training: object,
    inplace: object = False,
    channels: bool = False,
    alpha: bool = False,
) -> ArrayRef:
    """``channels``: whole ones are dropped; ``alpha``: to what SELU gives for large negative numbers."""
    x = need_tensor(input)
    if type(p) not in (int, float) or not isinstance(training, bool):
        raise Unsupported("dropout with a probability or mode that is no constant")
    if not 0 <= p <= 1 or (channels and x.ndim < 2):
        raise Unsupported("dropout that torch refuses")
    if not training or p == 0:
        return x
    if x.dtype not in FLOATS or any(size == 0 for size in x.shape):
        raise Unsupported("dropout of this tensor")
    if p == 1:
        none = tensor(to_var(tx, 0.0, x.dtype))
        return _result(tx, x, multiply_var(tx, x, none), inplace)
    noise = _noise(tx, _one_per_channel(tx, x) if channels else x, 1 - p)
    if not alpha:
        noise = tensor(divide_var(tx, noise, 1 - p, None))
        return _result(tx, x, multiply_var(tx, x, noise), inplace)
    scale = 1.0 / math.sqrt((_SELU * _SELU * p + 1) * (1 - p))
    shift = tensor(multiply_var(tx, tensor(add_var(tx, noise, -1)), _SELU * scale))
    shift = tensor(add_var(tx, shift, _SELU * scale * p))
    made = multiply_var(tx, x, tensor(multiply_var(tx, noise, scale)))
    return _result(tx, x, add_var(tx, tensor(made), shift), inplace)


def _noise(tx: TraceContext, like: ArrayRef, keep: float) -> ArrayRef:
    """Ones with this probability, else zeros."""
    if not is_fused(tx):
        return filled_like(tx, like, "bernoulli_", keep, may_raise=False)
    kept = ones(tx, keep, like.shape, lambda: seed(tx))
    return tensor(tx.builder.emit("convert", kept, dtype=like.dtype))


def _one_per_channel(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    shape = (*x.shape[:2], *(1 for _ in x.shape[2:]))
    return tensor(emit(tx, "full", shape=shape, value=0.0, dtype=x.dtype, device=x.type.device))


def _result(tx: TraceContext, x: ArrayRef, made: Any, inplace: object) -> ArrayRef:
    return write(tx, x, made) if inplace else tensor(made)


@TABLE.function("F.dropout")
def dropout(
    tx: TraceContext, input: object, p: Any = 0.5, training: object = True, inplace: object = False
) -> ArrayRef:
    return dropped(tx, input, p, training, inplace)


def _form(inplace: bool, channels: bool, alpha: bool) -> Rule:
    def rule(tx: TraceContext, input: object, p: Any, train: object) -> ArrayRef:
        return dropped(tx, input, p, train, inplace, channels, alpha)

    return rule


for _name, _channels, _alpha in (
    ("dropout", False, False),
    ("feature_dropout", True, False),
    ("alpha_dropout", False, True),
    ("feature_alpha_dropout", True, True),
):
    TABLE.function(_name)(_form(False, _channels, _alpha))
    TABLE.function(f"{_name}_")(_form(True, _channels, _alpha))
