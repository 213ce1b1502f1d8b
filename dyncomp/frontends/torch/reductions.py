"""Sums, means, extremes, softmax, scans. Results are in C order, as torch gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import product
from ..base import ArrayRef, TraceContext, TypedTuple
from ..numpy.operands import broadcast_shapes, broadcast_to, emit
from .calls import called
from .gradients import is_differentiated, where_true, with_gradient
from .library import torch
from .operands import (
    axes_of,
    axis_of,
    contiguous,
    convert,
    need_tensor,
    only_defaults,
    pointwise,
    tensor,
    to_var,
)
from .promote import parse_dtype
from .torch_rules import RuleTable

TABLE = RuleTable()


def reduced(tx: TraceContext, op: str, x: Var, axes: Sequence[int], keepdim: object, **params: object) -> Var:
    """A reduction that drops or keeps ``axes``, in C order."""
    out = contiguous(tx, emit(tx, op, x, axes=tuple(axes), **params)) if axes or x.ndim == 0 else x
    if axes == () and x.ndim:
        raise Unsupported("a reduction over no dimensions")
    return kept(tx, out, x, axes) if keepdim else out


def kept(tx: TraceContext, out: Var, x: Var, axes: Sequence[int]) -> Var:
    """The reduced dimensions put back with size one."""
    shape = tuple(1 if a in axes else d for a, d in enumerate(x.shape))
    return emit(tx, "reshape", out, shape=shape)


def _accumulated(tx: TraceContext, x: Var, dtype: object) -> tuple[Var, DType]:
    """The input as it is summed (half precision in float32) and the result's dtype."""
    if dtype is not None:
        wanted = parse_dtype(dtype)
    else:
        wanted = x.dtype if x.dtype.is_float else dtypes.int64
    cast = convert(tx, x, wanted)
    return widened(tx, cast), wanted


def widened(tx: TraceContext, x: Var) -> Var:
    """Half precision as float32."""
    half = x.dtype.is_float and x.dtype.itemsize == 2
    return convert(tx, x, dtypes.float32) if half else x


def _total(op: str) -> Callable[..., ArrayRef]:
    def rule(
        tx: TraceContext,
        input: object,
        dim: object = None,
        keepdim: object = False,
        *,
        dtype: object = None,
        **rest: object,
    ) -> ArrayRef:
        dim, keepdim = _numpy_names(dim, keepdim, rest)
        x = need_tensor(input)
        wide, wanted = _accumulated(tx, x.var, dtype)
        axes = axes_of(dim, x.ndim)
        return tensor(convert(tx, reduced(tx, op, wide, axes, keepdim), wanted))

    return rule


def _numpy_names(dim: object, keepdim: object, rest: dict[str, Any]) -> tuple[Any, Any]:
    """torch also takes NumPy's ``axis=`` and ``keepdims=``."""
    only_defaults(out=rest.pop("out", None))
    dim = rest.pop("axis", dim)
    keepdim = rest.pop("keepdims", keepdim)
    if rest:
        raise Unsupported(f"unexpected keyword {next(iter(rest))!r}")
    return dim, bool(keepdim)


TABLE.both("sum")(_total("reduce_sum"))


@TABLE.both("prod")
def prod(
    tx: TraceContext, input: object, dim: object = None, keepdim: object = False, *, dtype: object = None
) -> ArrayRef:
    if isinstance(dim, (tuple, list)):
        raise Unsupported("prod over several dimensions")
    result: ArrayRef = _total("reduce_prod")(tx, input, dim, keepdim, dtype=dtype)
    return result


@TABLE.both("mean")
def mean(
    tx: TraceContext,
    input: object,
    dim: object = None,
    keepdim: object = False,
    *,
    dtype: object = None,
    **rest: object,
) -> ArrayRef:
    dim, keepdim = _numpy_names(dim, keepdim, rest)
    x = need_tensor(input)
    wanted = parse_dtype(dtype) if dtype is not None else x.dtype
    if not wanted.is_float:
        raise Unsupported("mean(): could not infer output dtype")
    wide = widened(tx, convert(tx, x.var, wanted))
    return tensor(convert(tx, reduced(tx, "mean", wide, axes_of(dim, x.ndim), keepdim), wanted))


def _spread(op: str) -> Callable[..., ArrayRef]:
    def rule(
        tx: TraceContext,
        input: object,
        dim: object = None,
        unbiased: object = None,
        keepdim: object = False,
        *,
        correction: object = None,
        **rest: object,
    ) -> ArrayRef:
        if isinstance(dim, bool):
            # torch.var(x, unbiased)
            dim, unbiased = None, dim
        dim, keepdim = _numpy_names(dim, keepdim, rest)
        x = need_tensor(input)
        if not x.dtype.is_float:
            raise Unsupported("var and std only support floating point dtypes")
        ddof = _correction(unbiased, correction)
        axes = axes_of(dim, x.ndim)
        wide = widened(tx, x.var)
        if product(x.shape[a] for a in axes) <= ddof:
            raise Unsupported("var(): degrees of freedom is <= 0")
        return tensor(convert(tx, reduced(tx, op, wide, axes, keepdim, ddof=ddof), x.dtype))

    return rule


def _correction(unbiased: object, correction: object) -> Any:
    if correction is not None:
        return correction
    return 0 if unbiased is False else 1


TABLE.both("var")(_spread("var"))
TABLE.both("std")(_spread("std"))


# -- extremes ---------------------------------------------------------------------------------
def _not_empty(x: ArrayRef, axes: Sequence[int]) -> None:
    if any(x.shape[a] == 0 for a in axes):
        raise Unsupported("an extreme of no elements")


def extreme_var(tx: TraceContext, op: str, x: ArrayRef, dim: object, keepdim: object) -> Var:
    axes = axes_of(dim, x.ndim)
    _not_empty(x, axes)
    return reduced(tx, op, x.var, axes, keepdim)


def _over_dims(op: str) -> Callable[..., ArrayRef]:
    def rule(
        tx: TraceContext, input: object, dim: object = (), keepdim: object = False, *, out: object = None
    ) -> ArrayRef:
        only_defaults(out=out)
        return tensor(extreme_var(tx, op, need_tensor(input), dim, keepdim))

    return rule


def _full_extreme(op: str, pairwise: str) -> Callable[..., ArrayRef | TypedTuple]:
    def rule(tx: TraceContext, input: object, *args: object, **kwargs: object) -> ArrayRef | TypedTuple:
        other = kwargs.get("other", args[0] if len(args) == 1 else None)
        if isinstance(other, ArrayRef):
            a, b = need_tensor(input), need_tensor(other)
            if a.dtype != b.dtype or a.dtype.is_bool:
                raise Unsupported("maximum of tensors of unlike dtypes")
            return tensor(pointwise(tx, pairwise, a.var, b.var))
        if args or kwargs:
            return _with_indices(tx, op, input, *args, **kwargs)
        return tensor(extreme_var(tx, op, need_tensor(input), None, False))

    return rule


def _with_indices(
    tx: TraceContext, op: str, input: object, dim: object = None, keepdim: object = False, **rest: object
) -> TypedTuple:
    """The extremes along a dimension and where the first of each is."""
    dim, keepdim = _numpy_names(dim, keepdim, rest)
    x = need_tensor(input)
    if dim is None or x.dtype.is_bool:
        raise Unsupported("an extreme of all elements with keepdim, or of bools, together with its index")
    axis = axis_of(dim, x.ndim)
    name = op.removeprefix("reduce_")
    values = tensor(extreme_var(tx, op, x, axis, keepdim))
    indices = _arg_extreme(f"arg{name}")(tx, x, axis, keepdim)
    if is_differentiated(tx, x.var):
        values = tensor(with_gradient(tx, values.var, (x.var, _at(tx, x.var, axis, indices.var))))
    return TypedTuple(getattr(torch.return_types, name), (values, indices))


def _at(tx: TraceContext, x: Var, axis: int, indices: Var) -> Callable[[Var], Var]:
    """The gradient of the elements at ``indices`` along an axis."""

    def spread(values: Var) -> Var:
        if values.ndim == x.ndim:
            return emit(tx, "broadcast_in_dim", values, shape=x.shape, dims=tuple(range(x.ndim)))
        dims = tuple(a for a in range(x.ndim) if a != axis)
        return emit(tx, "broadcast_in_dim", values, shape=x.shape, dims=dims)

    def gradient(cotangent: Var) -> Var:
        place = emit(tx, "iota", shape=x.shape, axis=axis, dtype=indices.dtype, device=x.type.device)
        return where_true(tx, pointwise(tx, "equal", place, spread(indices)))(spread(cotangent))

    return gradient


TABLE.both("amax")(_over_dims("reduce_max"))
TABLE.both("amin")(_over_dims("reduce_min"))
TABLE.both("max")(_full_extreme("reduce_max", "maximum"))
TABLE.both("min")(_full_extreme("reduce_min", "minimum"))


def _arg_extreme(op: str) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, input: object, dim: object = None, keepdim: object = False) -> ArrayRef:
        x = need_tensor(input)
        if x.ndim == 0 or x.dtype.is_bool:
            raise Unsupported(f"{op} of a 0-d or bool tensor")
        _not_empty(x, range(x.ndim))
        if dim is None:
            if keepdim:
                raise Unsupported(f"{op} of all elements with keepdim")
            flat = emit(tx, "reshape", contiguous(tx, x.var), shape=(product(x.shape),))
            return tensor(emit(tx, op, flat, axis=0))
        axis = axis_of(dim, x.ndim)
        out = contiguous(tx, emit(tx, op, x.var, axis=axis))
        return tensor(kept(tx, out, x.var, (axis,)) if keepdim else out)

    return rule


argmax = TABLE.both("argmax")(_arg_extreme("argmax"))
TABLE.both("argmin")(_arg_extreme("argmin"))


def _truth(op: str) -> Callable[..., ArrayRef]:
    def rule(
        tx: TraceContext, input: object, dim: object = None, keepdim: object = False, **rest: object
    ) -> ArrayRef:
        dim, keepdim = _numpy_names(dim, keepdim, rest)
        x = need_tensor(input)
        if x.dtype.kind == "uint":
            raise Unsupported("any and all of uint8 give uint8")
        truth = convert(tx, x.var, dtypes.bool_)
        return tensor(reduced(tx, op, truth, axes_of(dim, x.ndim), keepdim))

    return rule


TABLE.both("any")(_truth("reduce_any"))
TABLE.both("all")(_truth("reduce_all"))


def _of_truths(op: str) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, input: object) -> ArrayRef:
        x = need_tensor(input)
        if not x.dtype.is_bool:
            raise Unsupported("the truth of numbers")
        return tensor(emit(tx, op, x.var, axes=tuple(range(x.ndim))))

    return rule


TABLE.both("_is_all_true")(_of_truths("reduce_all"))  # how torch.distributions checks arguments
TABLE.function("_is_any_true")(_of_truths("reduce_any"))


@TABLE.both("equal")
def equal(tx: TraceContext, input: object, other: object) -> ArrayRef | bool:
    """A Python bool: of one shape, and all elements equal."""
    a, b = need_tensor(input), need_tensor(other)
    if a.dtype != b.dtype:
        raise Unsupported("torch.equal of tensors of different dtypes")
    if a.ndim != b.ndim or not all(m == n for m, n in zip(a.shape, b.shape)):
        return False
    alike = pointwise(tx, "equal", a.var, b.var)
    return ArrayRef(emit(tx, "reduce_all", alike, axes=tuple(range(a.ndim))), "python", "torch")


@TABLE.both("allclose")
def allclose(
    tx: TraceContext,
    input: object,
    other: object,
    rtol: object = 1e-05,
    atol: object = 1e-08,
    equal_nan: object = False,
) -> ArrayRef:
    """A Python bool: ``isclose`` of all elements."""
    a, b = need_tensor(input), need_tensor(other)
    (near,) = called(tx, torch.isclose, (a, b, rtol, atol, equal_nan), {})[1]
    return ArrayRef(emit(tx, "reduce_all", near.var, axes=tuple(range(near.ndim))), "python", "torch")


@TABLE.function("cosine_similarity")
def cosine_similarity(
    tx: TraceContext, x1: object, x2: object, dim: object = 1, eps: object = 1e-8
) -> ArrayRef:
    """The sum of products of both, each divided by its norm, which is at least ``eps``."""
    a, b = need_tensor(x1), need_tensor(x2)
    if a.dtype != b.dtype or a.dtype not in (dtypes.float32, dtypes.float64):
        raise Unsupported("cosine_similarity of unlike dtypes, or not of float32 or float64")
    shape = broadcast_shapes(a.shape, b.shape)
    axis = axis_of(dim, len(shape))
    if not shape or shape[axis] == 0:
        raise Unsupported("cosine_similarity without elements")
    least = to_var(tx, eps, a.dtype)
    parts = []
    for ref in (a, b):
        x = broadcast_to(tx, ref.var, shape)
        squares = reduced(tx, "reduce_sum", pointwise(tx, "multiply", x, x), (axis,), True)
        norm = pointwise(tx, "maximum", pointwise(tx, "sqrt", squares), least)
        parts.append(pointwise(tx, "divide", x, norm))
    return tensor(reduced(tx, "reduce_sum", pointwise(tx, "multiply", *parts), (axis,), False))


@TABLE.both("logsumexp")
def logsumexp(
    tx: TraceContext, input: object, dim: object, keepdim: object = False, *, out: object = None
) -> ArrayRef:
    only_defaults(out=out)
    x = need_tensor(input)
    if not x.dtype.is_float:
        raise Unsupported("logsumexp of integers")
    axes = axes_of(dim, x.ndim)
    _not_empty(x, axes)
    return tensor(convert(tx, reduced(tx, "logsumexp", widened(tx, x.var), axes, keepdim), x.dtype))


# -- along one dimension ----------------------------------------------------------------------
def _normalizing(op: str) -> Callable[..., ArrayRef]:
    def rule(
        tx: TraceContext,
        input: object,
        dim: object = None,
        *rest: object,
        dtype: object = None,
        _stacklevel: object = 3,
    ) -> ArrayRef:
        # F.softmax(input, dim, _stacklevel, dtype); torch.softmax(input, dim, dtype)
        if rest:
            raise Unsupported("softmax with positional dtype")
        x = need_tensor(input)
        if dim is None:
            raise Unsupported("softmax without dim")
        wanted = parse_dtype(dtype) if dtype is not None else x.dtype
        if not wanted.is_float:
            raise Unsupported("softmax of integers")
        axis = axis_of(dim, x.ndim)
        if x.ndim == 0:
            raise Unsupported("softmax of a 0-d tensor")
        wide = widened(tx, convert(tx, x.var, wanted))
        if x.shape[axis] == 0:
            raise Unsupported("softmax over no elements")
        return tensor(contiguous(tx, convert(tx, emit(tx, op, wide, axes=(axis,)), wanted)))

    return rule


_softmax, _log_softmax = _normalizing("softmax"), _normalizing("log_softmax")
TABLE.both("softmax")(_softmax)
TABLE.function("F.softmax", "special.softmax")(_softmax)
TABLE.both("log_softmax")(_log_softmax)
TABLE.function("F.log_softmax", "special.log_softmax")(_log_softmax)


@TABLE.both("cumsum")
def cumsum(
    tx: TraceContext, input: object, dim: object, *, dtype: object = None, out: object = None
) -> ArrayRef:
    only_defaults(out=out)
    x = need_tensor(input)
    if x.ndim == 0:
        raise Unsupported("cumsum of a 0-d tensor")
    wide, wanted = _accumulated(tx, x.var, dtype)
    scanned = emit(tx, "cumsum", wide, axis=axis_of(dim, x.ndim))
    return tensor(contiguous(tx, convert(tx, scanned, wanted)))


@TABLE.function("F.mse_loss")
def mse_loss(
    tx: TraceContext,
    input: object,
    target: object,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
    weight: object = None,
) -> ArrayRef:
    only_defaults(size_average=size_average, reduce=reduce, weight=weight)
    x, y = need_tensor(input), need_tensor(target)
    if x.dtype != y.dtype or not x.dtype.is_float or x.ndim != y.ndim or x.dtype.itemsize == 2:
        raise Unsupported("mse_loss of unlike tensors")
    if not all(m == n for m, n in zip(x.shape, y.shape)):
        raise Unsupported("mse_loss of tensors of two shapes, of which torch warns")
    gap = pointwise(tx, "subtract", x.var, y.var)
    square = pointwise(tx, "multiply", gap, gap)
    if reduction == "none":
        return tensor(square)
    if reduction not in ("mean", "sum"):
        raise Unsupported(f"reduction={reduction!r}")
    op = "mean" if reduction == "mean" else "reduce_sum"
    return tensor(emit(tx, op, square, axes=tuple(range(square.ndim))))
