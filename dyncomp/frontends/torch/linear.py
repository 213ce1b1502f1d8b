"""Matrix products and attention."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ... import dtypes
from ...device import CPU
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.composite.nn import attention
from ...prims.layout import dims_equal, is_one
from ...symbolic.integers import SymInt, same
from ..base import ArrayRef, StateGuard, TraceContext
from ..numpy.operands import broadcast_shapes, emit
from ..numpy.operands import broadcast_to as spread_to
from .dropout import dropout
from .formats import has_eager_strides
from .gradients import is_differentiated, where_true, with_gradient
from .library import torch
from .operands import contiguous, convert, in_order, need_tensor, only_defaults, pointwise, tensor, to_var
from .reductions import widened
from .shape import axes_in_memory
from .torch_rules import RuleTable

TABLE = RuleTable()

_NONE: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


def _same_dtype(*refs: ArrayRef) -> None:
    if any(r.dtype != refs[0].dtype for r in refs):
        raise Unsupported("expected tensors of the same dtype")
    if refs[0].dtype.is_bool:
        raise Unsupported("products of bool matrices")


def product(tx: TraceContext, a: Var, b: Var, contract: object, batch: object = _NONE) -> Var:
    """``dot_general``; half precision is summed in float32."""
    found = emit(tx, "dot_general", widened(tx, a), widened(tx, b), contract=contract, batch=batch)
    return convert(tx, found, a.dtype)


def matmul_var(tx: TraceContext, a: ArrayRef, b: ArrayRef) -> Var:
    _same_dtype(a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise Unsupported("both arguments to matmul need to be at least 1D")
    if not dims_equal(a.shape[-1], b.shape[max(0, b.ndim - 2)]):
        raise Unsupported("matmul: inner dimensions differ")
    wide = emit(tx, "matmul", widened(tx, a.var), widened(tx, b.var))
    return contiguous(tx, convert(tx, wide, a.dtype))


@TABLE.operator("matmul")
def matmul_operator(tx: TraceContext, a: object, b: object) -> ArrayRef:
    return tensor(matmul_var(tx, need_tensor(a), need_tensor(b)))


@TABLE.both("matmul")
def matmul(tx: TraceContext, input: object, other: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    return matmul_operator(tx, input, other)


def _of_rank(rank: int, *values: object) -> list[ArrayRef]:
    refs = [need_tensor(v) for v in values]
    if any(r.ndim != rank for r in refs):
        raise Unsupported(f"expected tensors of {rank} dimensions")
    return refs


@TABLE.both("mm")
def mm(tx: TraceContext, input: object, mat2: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    a, b = _of_rank(2, input, mat2)
    return tensor(matmul_var(tx, a, b))


@TABLE.both("mv")
def mv(tx: TraceContext, input: object, vec: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    (a,), (v,) = _of_rank(2, input), _of_rank(1, vec)
    return tensor(matmul_var(tx, a, v))


@TABLE.both("dot")
def dot(tx: TraceContext, input: object, tensor: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    a, b = _of_rank(1, input, tensor)
    return ArrayRef(matmul_var(tx, a, b), "array", "torch")


@TABLE.both("bmm")
def bmm(tx: TraceContext, input: object, mat2: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    a, b = _of_rank(3, input, mat2)
    if not dims_equal(a.shape[0], b.shape[0]):
        raise Unsupported("bmm: batch sizes differ")
    return tensor(matmul_var(tx, a, b))


@TABLE.both("addmm")
def addmm(
    tx: TraceContext, input: object, mat1: object, mat2: object, *, out: object = None, **factors: object
) -> ArrayRef:
    only_defaults(out=out)
    a, b = _of_rank(2, mat1, mat2)
    return _added(tx, need_tensor(input), a, b, **factors)


@TABLE.both("baddbmm")
def baddbmm(
    tx: TraceContext, input: object, batch1: object, batch2: object, *, out: object = None, **factors: object
) -> ArrayRef:
    only_defaults(out=out)
    a, b = _of_rank(3, batch1, batch2)
    if not dims_equal(a.shape[0], b.shape[0]):
        raise Unsupported("baddbmm: batch sizes differ")
    return _added(tx, need_tensor(input), a, b, **factors)


def _added(
    tx: TraceContext, bias: ArrayRef, a: ArrayRef, b: ArrayRef, *, beta: object = 1, alpha: object = 1
) -> ArrayRef:
    """``beta * bias + alpha * (a @ b)``; half precision is rounded once."""
    _same_dtype(bias, a, b)
    factors = [f for f in (alpha, beta) if type(f) is not int or f != 1]
    if factors and not (a.dtype.is_float and all(type(f) in (int, float) for f in factors)):
        raise Unsupported("alpha or beta of integers, or that are known at run time only")
    if beta == 0:
        raise Unsupported("beta is 0: the input is not looked at")
    found = emit(tx, "matmul", widened(tx, a.var), widened(tx, b.var))
    rest = spread_to(tx, widened(tx, bias.var), found.shape)
    found, rest = (
        v if type(f) is int and f == 1 else pointwise(tx, "multiply", v, to_var(tx, f, v.dtype))
        for v, f in ((found, alpha), (rest, beta))
    )
    return tensor(convert(tx, pointwise(tx, "add", found, rest), a.dtype))


@TABLE.function("F.linear")
def linear(tx: TraceContext, input: object, weight: object, bias: object = None) -> ArrayRef:
    """``input @ weight.T + bias``; half precision is rounded once."""
    x, w = need_tensor(input), need_tensor(weight)
    _same_dtype(x, w)
    if w.ndim != 2 or x.ndim == 0 or not dims_equal(x.shape[-1], w.shape[1]):
        raise Unsupported("linear: the shapes of input and weight do not fit")
    out = emit(
        tx, "dot_general", widened(tx, x.var), widened(tx, w.var), contract=((x.ndim - 1,), (1,)), batch=_NONE
    )
    if bias is not None:
        b = need_tensor(bias)
        _same_dtype(x, b)
        if b.ndim != 1 or not dims_equal(b.shape[0], w.shape[0]):
            raise Unsupported("linear: the shape of the bias does not fit")
        out = pointwise(tx, "add", out, widened(tx, b.var))
    return tensor(convert(tx, out, x.dtype))


# -- attention --------------------------------------------------------------------------------
@TABLE.function("F.scaled_dot_product_attention")
def scaled_dot_product_attention(
    tx: TraceContext,
    query: object,
    key: object,
    value: object,
    attn_mask: object = None,
    dropout_p: object = 0.0,
    is_causal: object = False,
    scale: object = None,
    enable_gqa: object = False,
) -> ArrayRef:
    if is_causal and attn_mask is not None:
        raise Unsupported("attention with a mask and is_causal")
    refs = [need_tensor(v) for v in (query, key, value)]
    _same_dtype(*refs)
    if any(r.ndim < 2 or not r.dtype.is_float for r in refs):
        raise Unsupported("attention of tensors with less than two dimensions or of integers")
    drop = partial(_dropped, tx, dropout_p) if dropout_p != 0.0 else None
    natural = list(range(refs[0].ndim))
    order = attention_order(tx, refs, attn_mask, bool(enable_gqa)) if drop is None else natural
    if enable_gqa:
        refs[1:] = [_for_each_query_head(tx, r, refs[0]) for r in refs[1:]]
    stack = broadcast_shapes(*(r.shape[:-2] for r in refs))
    q, k, v = (spread_to(tx, r.var, (*stack, *r.shape[-2:])) for r in refs)
    factor = _scale(q, scale)
    masks = []
    if attn_mask is not None:
        shape = (*stack, q.shape[-2], k.shape[-2])
        masks.append(spread_to(tx, _added_mask(tx, need_tensor(attn_mask), q.dtype), shape))
    stop = partial(_without_rows, tx) if masks and is_differentiated(tx, q, k, v, *masks) else None
    if stop is not None or drop is not None:
        out = attention(tx.ops, q, k, v, *masks, scale=factor, causal=bool(is_causal), stop=stop, drop=drop)
    else:
        out = emit(tx, "attention", q, k, v, *masks, scale=factor, causal=bool(is_causal))
    return tensor(in_order(tx, out, order))


def _dropped(tx: TraceContext, p: object, weights: Var) -> Var:
    """torch leaves its fused routine then, and draws as ``F.dropout`` of the weights does
    (``_scaled_dot_product_attention_math`` of ATen/native/transformers/attention.cpp)."""
    return dropout(tx, tensor(weights), p).var


def _without_rows(tx: TraceContext, scores: Var, none: Var) -> Var:
    """Scores of attention, with no gradient through rows that see nothing."""
    return with_gradient(tx, scores, (scores, where_true(tx, emit(tx, "logical_not", none))))


def attention_order(tx: TraceContext, refs: list[ArrayRef], mask: object, grouped: bool) -> list[int]:
    """The axes of the result in memory, from outermost to innermost. torch's fused routine on the CPU lays
    it out as the queries (``flash_attention_kernel`` of ATen/native/cpu/FlashAttentionKernel.cpp), where
    it takes the operands (``use_flash_attention_cpp`` of ATen/native/transformers/sdp_utils_cpp.cpp);
    else C order."""
    query = refs[0]
    natural = list(range(query.ndim))
    if query.type.device != CPU or query.ndim != 4:
        return natural
    order = axes_in_memory(query.var)
    if order == natural:
        return natural
    state = torch.backends.cuda.flash_sdp_enabled()
    tx.states["torch-flash"] = StateGuard(flash_is, state, f"torch's fused attention is {state}")
    if not state or (mask is not None and need_tensor(mask).ndim not in (2, 4)):
        return natural
    if any(any(d == 0 for d in r.shape) for r in refs):
        raise Unsupported("attention of tensors without elements")
    if any(is_one(r.shape[-1]) and not has_eager_strides(tx.builder, r.var) for r in refs):
        raise Unsupported("attention of tensors of width one, whose strides are not known")
    batch, _, _, width = query.shape
    same_sizes = all(r.ndim == 4 and r.shape[0] == batch and r.shape[3] == width for r in refs)
    heads = grouped or all(r.shape[1] == query.shape[1] for r in refs)
    return order if same_sizes and heads and all(same(r.strides[3], 1) for r in refs) else natural


def flash_is(_: object, expected: bool) -> bool:
    return bool(torch.backends.cuda.flash_sdp_enabled()) is expected


def _for_each_query_head(tx: TraceContext, ref: ArrayRef, query: ArrayRef) -> ArrayRef:
    """Keys or values of grouped heads (Ainslie et al., "GQA", 2023): each for every query head."""
    if ref.ndim < 3 or query.ndim < 3:
        raise Unsupported("grouped heads in tensors with less than three dimensions")
    *lead, heads, length, width = ref.shape
    group, rest = divmod(int(query.shape[-3]), int(heads))
    if rest:
        raise Unsupported("grouped heads: the number of query heads is not a multiple")
    if group == 1:
        return ref
    dims = (*range(len(lead) + 1), len(lead) + 2, len(lead) + 3)
    spread = emit(tx, "broadcast_in_dim", ref.var, shape=(*lead, heads, group, length, width), dims=dims)
    spread = contiguous(tx, spread)
    return tensor(emit(tx, "reshape", spread, shape=(*lead, heads * group, length, width)))


def _scale(q: Var, scale: object) -> float:
    if scale is not None:
        if not isinstance(scale, (int, float)):
            raise Unsupported("attention with a scale that is not a number")
        return float(scale)
    width = q.shape[-1]
    return 1.0 / math.sqrt(int(width) if isinstance(width, SymInt) else width)


def _added_mask(tx: TraceContext, mask: ArrayRef, dtype: Any) -> Var:
    if mask.dtype.is_bool:
        zero, lowest = to_var(tx, 0.0, dtype), to_var(tx, float("-inf"), dtype)
        return pointwise(tx, "where", mask.var, zero, lowest)
    if mask.dtype != dtype and mask.dtype != dtypes.float32:
        raise Unsupported("a mask of another dtype than the query")
    return convert(tx, mask.var, dtype)
