"""Transformers of ``nn``: the fused functions of ``nn.MultiheadAttention`` and ``nn.TransformerEncoderLayer``
in eval mode, as what they compute; and what of their Python is followed in another form."""

from __future__ import annotations

import math
import sys
from typing import Any

from ...dataclass import dataclass
from ...dtypes import float32, float64
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import shapes_equal
from ..base import ArrayRef, TraceContext
from ..numpy.operands import emit
from .functional import gelu, layer_norm, relu
from .library import torch
from .linear import linear, matmul_var, scaled_dot_product_attention
from .operands import contiguous, need_tensor, pointwise, tensor, to_var
from .shape import piece
from .torch_rules import RuleTable

TABLE = RuleTable()
_refuse = TABLE.refusal("a transformer that takes nested tensors of any mask")


def _heads(tx: TraceContext, x: ArrayRef, heads: int) -> ArrayRef:
    """(batch, length, width) as (batch, heads, length, width of a head)."""
    batch, length, width = x.shape
    split = emit(tx, "reshape", contiguous(tx, x.var), shape=(batch, length, heads, width // heads))
    return tensor(emit(tx, "transpose", split, perm=(0, 2, 1, 3)))


def _joined(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    batch, heads, length, width = x.shape
    swapped = contiguous(tx, emit(tx, "transpose", x.var, perm=(0, 2, 1, 3)))
    return tensor(emit(tx, "reshape", swapped, shape=(batch, length, heads * width)))


def _projected(
    tx: TraceContext, inputs: tuple[Any, ...], heads: int, weight: object, bias: object
) -> list[ArrayRef]:
    """Queries, keys and values, by heads."""
    weights, shifts = need_tensor(weight), need_tensor(bias)
    width = weights.shape[1]
    if any(need_tensor(x).ndim != 3 for x in inputs) or weights.ndim != 2 or type(width) is not int:
        raise Unsupported("attention of inputs without batches, or of unknown width")
    if type(heads) is not int or heads < 1 or width % heads or weights.shape[0] != 3 * width:
        raise Unsupported("attention with these heads")
    found = []
    for number, x in enumerate(inputs):
        own = [piece(tx, p.var, 0, number * width, width) for p in (weights, shifts)]
        row = linear(tx, x, *own)
        found.append(_heads(tx, row, heads))
    return found


@dataclass(frozen=True)
class _Masked:
    """A mask as these functions take it: what is not zero hides a key. ``kind``: of queries and keys (0), of
    the keys of each batch (1), of all four axes (2)."""

    mask: Any
    kind: Any

    def hide(self, tx: TraceContext, scores: Var) -> Var:
        """Scores of (batch, head, query, key), -inf where they are hidden, whatever they are."""
        if self.mask is None:
            return scores
        mask = need_tensor(self.mask)
        batch, heads, length, keys = scores.type.shape
        shapes = {0: (length, keys), 1: (batch, keys), 2: (batch, heads, length, keys)}
        shape = shapes.get(self.kind) if type(self.kind) is int else None
        if shape is None or not shapes_equal(mask.shape, shape):
            raise Unsupported("attention with a mask of this shape")
        hides = mask.var
        if not mask.dtype.is_bool:
            hides = pointwise(tx, "not_equal", hides, to_var(tx, 0, mask.dtype))
        dims = (0, 3) if self.kind == 1 else tuple(range(4 - mask.ndim, 4))
        spread = emit(tx, "broadcast_in_dim", hides, shape=(batch, heads, length, keys), dims=dims)
        return pointwise(tx, "where", spread, to_var(tx, float("-inf"), scores.dtype), scores)


def _attended(
    tx: TraceContext,
    inputs: tuple[Any, ...],
    masked: _Masked,
    heads: int,
    weight: object,
    bias: object,
    *out: object,
) -> ArrayRef:
    projected = _projected(tx, inputs, heads, weight, bias)
    if masked.mask is not None:
        return _attended_with_weights(tx, projected, masked, True, *out)[0]
    return linear(tx, _joined(tx, scaled_dot_product_attention(tx, *projected)), *out)


def _attended_with_weights(
    tx: TraceContext, projected: list[ArrayRef], masked: _Masked, averaged: bool, *out: object
) -> tuple[ArrayRef, ArrayRef]:
    """The result, and how much of each value is in it: of each head, or their mean."""
    query, key, value = projected
    turned = tensor(emit(tx, "transpose", key.var, perm=(0, 1, 3, 2)))
    factor = to_var(tx, 1.0 / math.sqrt(int(query.shape[-1])), query.dtype)
    scaled = tensor(pointwise(tx, "multiply", query.var, factor))
    scores = masked.hide(tx, contiguous(tx, matmul_var(tx, scaled, turned)))
    weights = emit(tx, "softmax", scores, axes=(3,))
    result = linear(tx, _joined(tx, tensor(matmul_var(tx, tensor(weights), value))), *out)
    if not averaged:
        return result, tensor(contiguous(tx, weights))
    heads = to_var(tx, float(query.shape[1]), query.dtype)
    mean = pointwise(tx, "divide", emit(tx, "reduce_sum", weights, axes=(1,)), heads)
    return result, tensor(contiguous(tx, mean))


@TABLE.function("_native_multi_head_attention")
def multi_head_attention(
    tx: TraceContext,
    query: object,
    key: object,
    value: object,
    embed_dim: object,
    num_head: Any,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: object,
    proj_bias: object,
    mask: object = None,
    need_weights: object = True,
    average_attn_weights: object = True,
    mask_type: object = None,
) -> tuple[Any, ...]:
    """What a query that sees no key gives is NaN."""
    if need_tensor(query).dtype not in (float32, float64):
        raise Unsupported("multi-head attention of halves")
    inputs, masked = (query, key, value), _Masked(mask, mask_type)
    out = (proj_weight, proj_bias)
    if need_weights:
        projected = _projected(tx, inputs, num_head, qkv_weight, qkv_bias)
        return _attended_with_weights(tx, projected, masked, bool(average_attn_weights), *out)
    return _attended(tx, inputs, masked, num_head, qkv_weight, qkv_bias, *out), None


@TABLE.function("_transformer_encoder_layer_fwd")
def encoder_layer(
    tx: TraceContext,
    src: Any,
    embed_dim: Any,
    num_heads: Any,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: Any,
    norm_first: Any,
    eps: Any,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: Any = None,
) -> ArrayRef:
    """Attention and two linear layers, each added to what it is given, with norms before or behind."""
    x = need_tensor(src)
    first, second = (norm_weight_1, norm_bias_1, eps), (norm_weight_2, norm_bias_2, eps)
    shape, masked = (x.shape[-1],), _Masked(mask, mask_type)

    def attended(y: ArrayRef) -> ArrayRef:
        return _attended(tx, (y, y, y), masked, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)

    def fed_forward(y: ArrayRef) -> ArrayRef:
        hidden = linear(tx, y, ffn_weight_1, ffn_bias_1)
        return linear(tx, gelu(tx, hidden) if use_gelu else relu(tx, hidden), ffn_weight_2, ffn_bias_2)

    def added(a: ArrayRef, b: ArrayRef) -> ArrayRef:
        return tensor(pointwise(tx, "add", a.var, b.var))

    if norm_first:
        x = added(x, attended(layer_norm(tx, x, shape, *first)))
        return added(x, fed_forward(layer_norm(tx, x, shape, *second)))
    x = layer_norm(tx, added(x, attended(x)), shape, *first)
    return layer_norm(tx, added(x, fed_forward(x)), shape, *second)


# -- Python in another form ----------------------------------------------------------------------------------
_library = sys.modules[torch.nn.TransformerEncoder.__module__]


def _is_said_to_be_causal(mask: Any, is_causal: Any = None, size: Any = None) -> bool:
    """In place of a look at the mask: a hint by which the library picks among routines of one result."""
    return is_causal is True


def _encoder(
    self: Any, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None
) -> Any:
    """``nn.TransformerEncoder.forward``. Where the library makes nested tensors of sequences padded on the
    right, it gives zeros for the padding. It leaves that form when it is told of a compiler; here the zeros
    are put in."""
    padding = _library.F._canonical_mask(
        mask=src_key_padding_mask,
        mask_name="src_key_padding_mask",
        other_type=_library.F._none_or_dtype(mask),
        other_name="mask",
        target_type=src.dtype,
    )
    mask = _library.F._canonical_mask(
        mask=mask, mask_name="mask", other_type=None, other_name="", target_type=src.dtype, check_other=False
    )
    output = src
    for layer in self.layers:
        output = layer(output, src_mask=mask, is_causal=is_causal is True, src_key_padding_mask=padding)
    if padding is not None and mask is None and _nests(self, src):
        seen = padding.logical_not()
        is_to_the_left = (seen[:, 1:] <= seen[:, :-1]).all()
        output = torch.where((is_to_the_left & ~seen).unsqueeze(-1), 0.0, output)
    return output if self.norm is None else self.norm(output)


def _nests(encoder: Any, src: Any) -> bool:
    """Whether the library makes nested tensors if the mask lets it."""
    first = encoder.layers[0]
    if not getattr(encoder, "use_nested_tensor", False) or first.training or src.dim() != 3:
        return False
    if not torch.backends.mha.get_fastpath_enabled() or torch.is_autocast_enabled():
        return False
    if not getattr(encoder, "mask_check", True):
        _refuse()
    return not (
        torch.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in first.parameters()))
    )


STAND_INS = {
    _library._detect_is_causal_mask: _is_said_to_be_causal,
    torch.nn.TransformerEncoder.forward: _encoder,
}
