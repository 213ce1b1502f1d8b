"""Composites of neural networks: activations, normalizations, embedding look-up, attention.

float16 and bfloat16 are computed in float32 and rounded once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...device import CPU
from ...dtypes import DType, float16, float32, float64, int64
from ...graph.ir import Ops, Var
from ...symbolic.integers import SymInt
from ..kit import Array, widening
from ..layout import is_c_contiguous
from ..opdef import NEVER, OpDef, Sample
from ..samples import data, indices, layouts, pointwise_samples
from .kit import composite, filled, spread

_FLOAT = (float16, float32, float64)
_ALPHA = math.sqrt(2.0 / math.pi)
_CUBIC = 0.044715


def _wide(ops: Ops, x: Var) -> Var:
    """Half precision as float32, all else as it is."""
    return ops.convert(x, dtype=float32) if x.dtype.itemsize == 2 else x


def _back(ops: Ops, y: Var, dtype: DType) -> Var:
    return y if y.dtype == dtype else ops.convert(y, dtype=dtype)


def _times(ops: Ops, x: Var, factor: float) -> Var:
    return ops.multiply(x, filled(ops, x, factor))


# -- activations ------------------------------------------------------------------------------
def gelu(ops: Ops, x: Var) -> Var:
    """x*Phi(x) with the normal distribution function Phi by ``erf``."""
    w = _wide(ops, x)
    inner = ops.erf(_times(ops, w, math.sqrt(0.5)))
    return _back(ops, ops.multiply(_times(ops, w, 0.5), ops.add(filled(ops, w, 1), inner)), x.dtype)


def gelu_tanh(ops: Ops, x: Var) -> Var:
    """The approximation by tanh (Hendrycks and Gimpel, arXiv:1606.08415)."""
    w = _wide(ops, x)
    cube = ops.multiply(ops.multiply(w, w), w)
    inner = _times(ops, ops.add(w, _times(ops, cube, _CUBIC)), _ALPHA)
    out = ops.multiply(_times(ops, w, 0.5), ops.add(filled(ops, w, 1), ops.tanh(inner)))
    return _back(ops, out, x.dtype)


# -- normalization ----------------------------------------------------------------------------
def _affine(ops: Ops, y: Var, x: Var, rest: tuple[Var, ...], axes: tuple[int, ...], weight: bool) -> Var:
    """Multiply by the first and add the last of ``rest``, which have the shape of x along ``axes``; in C
    order."""
    for position, factor in enumerate(rest):
        full = ops.broadcast_in_dim(_wide(ops, factor), shape=x.shape, dims=axes)
        y = ops.multiply(y, full) if weight and position == 0 else ops.add(y, full)
    return y if is_c_contiguous(y.shape, y.type.strides) else ops.contiguous(y)


def layer_norm(
    ops: Ops, x: Var, *rest: Var, axes: tuple[int, ...], eps: float, weight: bool, bias: bool
) -> Var:
    """(x - mean)/sqrt(var + eps) over ``axes``, times ``weight``, plus ``bias`` (those that are given)."""
    w = _wide(ops, x)
    deviation = ops.subtract(w, spread(ops, ops.mean(w, axes=axes), w, axes))
    variance = ops.mean(ops.square(deviation), axes=axes)
    scale = ops.rsqrt(ops.add(variance, filled(ops, variance, eps)))
    y = ops.multiply(deviation, spread(ops, scale, w, axes))
    return _back(ops, _affine(ops, y, x, rest, axes, weight), x.dtype)


def rms_norm(ops: Ops, x: Var, *rest: Var, axes: tuple[int, ...], eps: float, weight: bool) -> Var:
    """x/sqrt(mean(x**2) + eps) over ``axes``, times ``weight`` where it is given."""
    w = _wide(ops, x)
    square = ops.mean(ops.square(w), axes=axes)
    scale = ops.rsqrt(ops.add(square, filled(ops, square, eps)))
    y = ops.multiply(w, spread(ops, scale, w, axes))
    return _back(ops, _affine(ops, y, x, rest, axes, weight), x.dtype)


# -- embedding --------------------------------------------------------------------------------
def embedding(ops: Ops, table: Var, positions: Var) -> Var:
    """Rows of ``table`` at int64 ``positions``; negative ones are out of bounds (``IndexError``)."""
    return ops.index(table, _not_negative(ops, positions, table.shape[0]), dims=(0,), position=0)


def _not_negative(ops: Ops, positions: Var, size: Any) -> Var:
    """``positions`` along an axis of ``size`` elements with negative ones moved behind its end."""
    outside = filled(ops, positions, size if isinstance(size, SymInt) else int(size))
    return ops.where(ops.less(positions, filled(ops, positions, 0)), outside, positions)


# -- likelihoods ------------------------------------------------------------------------------
def log_softmax_at(ops: Ops, x: Var, positions: Var, *, axis: int) -> Var:
    """``log_softmax`` of ``x`` along ``axis`` at int64 ``positions``, which have the shape of ``x`` without
    it; negative ones are out of bounds (``IndexError``). The other elements are not made."""
    kept = tuple(a for a in range(x.ndim) if a != axis)
    column = tuple(1 if a == axis else d for a, d in enumerate(x.shape))
    checked = _not_negative(ops, positions, x.shape[axis])
    at = ops.broadcast_in_dim(checked, shape=column, dims=kept)
    picked = ops.reshape(ops.take_along_axis(x, at, axis=axis), shape=positions.shape)
    top = ops.reduce_max(x, axes=(axis,))
    total = ops.reduce_sum(ops.exp(ops.subtract(x, spread(ops, top, x, (axis,)))), axes=(axis,))
    return ops.subtract(ops.subtract(picked, top), ops.log(total))


def _log_softmax_at_vjp(
    ops: Ops, cotangents: Any, inputs: Any, outputs: object, *, axis: int
) -> tuple[Var | None, ...]:
    """What is at the position less ``softmax``, without writing at positions."""
    x, positions = inputs
    here = ops.equal(ops.iota(shape=x.shape, axis=axis, dtype=int64), spread(ops, positions, x, (axis,)))
    slope = ops.subtract(ops.convert(here, dtype=x.dtype), ops.softmax(x, axes=(axis,)))
    return ops.multiply(spread(ops, cotangents[0], x, (axis,)), slope), None


# -- attention --------------------------------------------------------------------------------
def attention(
    ops: Ops,
    q: Var,
    k: Var,
    v: Var,
    *mask: Var,
    scale: float,
    causal: bool,
    stop: Callable[[Var, Var], Var] | None = None,
    drop: Callable[[Var], Var] | None = None,
) -> Var:
    """``softmax(q k^T * scale + mask) v`` over the last two dimensions; all before them are equal.

    q: (..., L, E); k: (..., S, E); v: (..., S, F); mask, added: (..., L, S). ``causal``: position i sees
    positions up to i only. A row that sees nothing (all scores -inf) is 0. A GPU multiplies halves by halves:
    weights are rounded to them there, as its library's own attention does. ``stop(scores, none)`` gives
    scores through which no cotangent passes where ``none`` is true: there the softmax has no derivative.
    ``drop(weights)``: what dropout leaves of them.
    """
    n = q.ndim - 2
    batch = (tuple(range(n)), tuple(range(n)))
    kind = q.dtype
    left, right, values = (_wide(ops, x) for x in (q, k, v))
    contract = ((n + 1,), (n + 1,))
    if q.type.device == CPU:
        scores = ops.dot_general(_times(ops, left, scale), right, contract=contract, batch=batch)
    else:
        scores = _times(ops, ops.dot_general(left, right, contract=contract, batch=batch), scale)
    lowest = filled(ops, scores, float("-inf"))
    if causal:
        seen = ops.tril(filled(ops, scores, 1.0), k=0)
        scores = ops.where(ops.equal(seen, filled(ops, scores, 1.0)), scores, lowest)
    for added in mask:
        scores = ops.add(scores, _wide(ops, added))
    if not causal and not mask:
        weights = ops.softmax(scores, axes=(n + 1,))
    else:
        rows = ops.equal(ops.reduce_max(scores, axes=(n + 1,)), filled_rows(ops, scores))
        none = spread(ops, rows, scores, (n + 1,))
        weights = ops.softmax(scores if stop is None else stop(scores, none), axes=(n + 1,))
        weights = ops.where(none, filled(ops, scores, 0.0), weights)
    if q.type.device != CPU:
        weights = _wide(ops, _back(ops, weights, kind))
    if drop is not None:
        weights = drop(weights)
    out = ops.dot_general(weights, values, contract=((n + 1,), (n,)), batch=batch)
    return _back(ops, out, kind)


def filled_rows(ops: Ops, scores: Var) -> Var:
    """-inf for each row of scores."""
    rows = ops.full(shape=(), value=float("-inf"), dtype=scores.dtype, device=scores.type.device)
    return ops.broadcast_in_dim(rows, shape=scores.shape[:-1], dims=())


# -- references -------------------------------------------------------------------------------
def _rounded(wide: Array, dtype: np.dtype[Any]) -> Array:
    return np.asarray(wide).astype(dtype)


def _double(x: Array) -> Array:
    return x * np.float64(1)


_erf = np.frompyfunc(math.erf, 1, 1)


def _gelu_ref(x: Array) -> Array:
    w = _double(x)
    phi = np.asarray(_erf(w * math.sqrt(0.5))).astype(np.float64)
    return _rounded(0.5 * w * (1 + phi), x.dtype)


def _gelu_tanh_ref(x: Array) -> Array:
    w = _double(x)
    return _rounded(0.5 * w * (1 + np.tanh(_ALPHA * (w + _CUBIC * w**3))), x.dtype)


def _affine_ref(y: Array, x: Array, rest: tuple[Array, ...], axes: tuple[int, ...], weight: bool) -> Array:
    for position, factor in enumerate(rest):
        shape = [d if a in axes else 1 for a, d in enumerate(x.shape)]
        full = _double(factor).reshape(shape)
        y = y * full if weight and position == 0 else y + full
    return np.asarray(y.astype(x.dtype), order="C")


def _layer_norm_ref(
    x: Array, *rest: Array, axes: tuple[int, ...], eps: float, weight: bool, bias: bool
) -> Array:
    w = _double(x)
    center = w - w.mean(axis=axes, keepdims=True)
    y = center / np.sqrt((center**2).mean(axis=axes, keepdims=True) + eps)
    return _affine_ref(y, x, rest, axes, weight)


def _rms_norm_ref(x: Array, *rest: Array, axes: tuple[int, ...], eps: float, weight: bool) -> Array:
    w = _double(x)
    return _affine_ref(w / np.sqrt((w**2).mean(axis=axes, keepdims=True) + eps), x, rest, axes, weight)


def _embedding_ref(table: Array, positions: Array) -> Array:
    if positions.size and positions.min() < 0:
        raise IndexError("index out of range")
    return table[positions]


def _log_softmax_at_ref(x: Array, positions: Array, *, axis: int) -> Array:
    if positions.size and positions.min() < 0:
        raise IndexError("index out of range")
    with np.errstate(all="ignore"):
        shifted = x - x.max(axis=axis, keepdims=True)
        values = shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return np.take_along_axis(values, np.expand_dims(positions, axis), axis).squeeze(axis)


def _attention_ref(q: Array, k: Array, v: Array, *mask: Array, scale: float, causal: bool) -> Array:
    scores = _double(q) @ np.swapaxes(_double(k), -1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:]).astype(bool), scores, -np.inf)
    for added in mask:
        scores = scores + added
    top = scores.max(axis=-1, keepdims=True)
    terms = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = terms.sum(axis=-1, keepdims=True)
    return _rounded(terms / np.where(total == 0, 1, total) @ _double(v), q.dtype)


# -- samples ----------------------------------------------------------------------------------
def _activation_samples() -> Iterator[Sample]:
    yield from pointwise_samples((float32, float64), extremes=False)()
    yield Sample((data(float16, (4, 9), 5),), {}, "float16")


def _norm_samples(extra: dict[str, Any], flags: tuple[tuple[bool, ...], ...]) -> Any:
    names = ("weight", "bias")

    def samples() -> Iterator[Sample]:
        for dtype in _FLOAT:
            for label, x in layouts(dtype, 4):
                for count in (1, 2):
                    if x.ndim < count or not x.size:
                        continue
                    axes = tuple(range(x.ndim - count, x.ndim))
                    for given in flags:
                        rest = [data(dtype, x.shape[-count:], 7 + i) for i, g in enumerate(given) if g]
                        params = {"axes": axes, **extra, **dict(zip(names, given))}
                        yield Sample((x, *rest), params, f"{dtype}-{label}-{count}-{given}")

    return samples


def _embedding_samples() -> Iterator[Sample]:
    for dtype in _FLOAT:
        table = data(dtype, (7, 5))
        for shape in ((), (4,), (2, 3), (0,)):
            yield Sample((table, indices(shape, 7, 1, negative=False)), {}, f"{dtype}-{shape}")
        yield Sample((table.T, indices((3, 2), 5, 2, negative=False)), {}, f"{dtype}-transposed")


def _log_softmax_at_samples() -> Iterator[Sample]:
    for dtype in (float32, float64):
        for label, x in layouts(dtype, 5):
            for axis in range(x.ndim):
                if x.shape[axis]:
                    rest = x.shape[:axis] + x.shape[axis + 1 :]
                    places = indices(rest, x.shape[axis], axis, negative=False)
                    yield Sample((x, places), {"axis": axis}, f"{dtype}-{label}-{axis}")


def _attention_samples() -> Iterator[Sample]:
    for dtype in _FLOAT:
        for lead in ((), (3,), (2, 3)):
            q, k, v = (data(dtype, (*lead, *s), i) for i, s in enumerate(((4, 8), (5, 8), (5, 6))))
            for causal in (False, True):
                params = {"scale": 0.35, "causal": causal}
                yield Sample((q, k, v), params, f"{dtype}-{lead}-{causal}")
            mask = data(dtype, (*lead, 4, 5), 9)
            mask[..., 1, :] = -np.inf
            yield Sample((q, k, v, mask), {"scale": 0.35, "causal": False}, f"{dtype}-{lead}-mask")


_BOTH = ((True, True), (True, False), (False, True), (False, False))

ROWS: tuple[OpDef, ...] = (
    composite(
        "gelu",
        (),
        gelu,
        widening(_gelu_ref),
        _activation_samples,
        "x times the normal distribution function of x.",
        dtypes=_FLOAT,
        absolute=16.0,
    ),
    composite(
        "gelu_tanh",
        (),
        gelu_tanh,
        widening(_gelu_tanh_ref),
        _activation_samples,
        "`gelu` with the distribution function approximated by tanh.",
        dtypes=_FLOAT,
        absolute=16.0,
    ),
    composite(
        "layer_norm",
        ("axes", "eps", "weight", "bias"),
        layer_norm,
        _layer_norm_ref,
        _norm_samples({"eps": 1e-5}, _BOTH),
        "(x - mean)/sqrt(var + eps) over `axes`; then times and plus arrays of the shape of x along them.",
        dtypes=_FLOAT,
        eps=64.0,
        absolute=64.0,
    ),
    composite(
        "rms_norm",
        ("axes", "eps", "weight"),
        rms_norm,
        _rms_norm_ref,
        _norm_samples({"eps": 1e-6}, ((True,), (False,))),
        "x/sqrt(mean(x**2) + eps) over `axes`; then times an array of the shape of x along them.",
        dtypes=_FLOAT,
        eps=64.0,
        absolute=64.0,
    ),
    composite(
        "embedding",
        (),
        embedding,
        _embedding_ref,
        _embedding_samples,
        "Rows of a matrix at int64 positions; `IndexError` for those outside, negative ones included.",
        dtypes=(*_FLOAT, int64),
        eps=0.0,
        rounds={"fc": NEVER},
    ),
    replace(
        composite(
            "log_softmax_at",
            ("axis",),
            log_softmax_at,
            _log_softmax_at_ref,
            _log_softmax_at_samples,
            "`log_softmax` along `axis` at one int64 position each; `IndexError` for those outside, negative "
            "ones included.",
            dtypes=(float32, float64, int64),
            eps=64.0,
            absolute=256.0,
        ),
        vjp=_log_softmax_at_vjp,
    ),
    composite(
        "attention",
        ("scale", "causal"),
        attention,
        _attention_ref,
        _attention_samples,
        "softmax(q k^T scale + mask) v over the last two dimensions; rows that see nothing are 0.",
        dtypes=_FLOAT,
        eps=64.0,
        absolute=64.0,
    ),
)
