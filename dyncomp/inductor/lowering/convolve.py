"""Convolutions as products of the kernels with what their windows see of the image, which the runtime copies
panel by panel; those that are plain products, and those that are left to a library's routine. Where the
result has its channels innermost its places are the rows of the product, else its columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...device import CPU
from ...dtypes import bfloat16
from ...graph.ir import Node
from ...symbolic.integers import Dim, hint, product, same
from ..schedule import Windows
from .contract import OWN_DTYPES, Operand, Product, copied, flat_stride
from .state import State
from .values import Place, Value, place_of, storage_of

# Dimensions that the runtime's windows have.
MOST_DIMENSIONS = 2
# Kernels of a group from which on their columns fill vectors, where channels lie innermost.
LEAST_IN_GROUP = 16


def runs_own(node: Node) -> bool:
    """Whether the runtime does this convolution: over one or two dimensions."""
    x, params = node.inputs[0], node.kwargs
    if x.type.device != CPU:
        return False
    if x.dtype not in (*OWN_DTYPES, bfloat16) or len(params["stride"]) > MOST_DIMENSIONS:
        return False
    if any(low < 0 for low, _ in params["padding"]):
        return False
    return not params.get("channels_last") or _fills_vectors(node)


def _fills_vectors(node: Node) -> bool:
    """Whether each group has kernels enough, or is one channel."""
    w, groups = node.inputs[1], node.kwargs.get("groups", 1)
    kernels = w.shape[0] // groups
    return bool(groups == 1 or (same(kernels, 1) and same(w.shape[1], 1)) or hint(kernels) >= LEAST_IN_GROUP)


def lower_convolution(lowering: State, value: Value) -> None:
    """Add the step of a ``convolution``, or of one of bfloat16 (``wide_convolution``)."""
    x, w = value.inputs
    places = product(value.shape[2:])
    if same(places, 1) and value.params.get("groups", 1) == 1 and _is_product(value.params, w):
        _points(lowering, value)
    elif value.params.get("channels_last"):
        _channels_last(lowering, value)
    else:
        _channels_first(lowering, value)


def _channels_first(lowering: State, value: Value) -> None:
    x, w = value.inputs
    groups = value.params.get("groups", 1)
    images, channels = x.shape[0], w.shape[1]
    depthwise = _is_depthwise(value)
    kernels = w.shape[0] if depthwise else w.shape[0] // groups
    terms, places = product(w.shape[1:]), product(value.shape[2:])
    a = _kernels(lowering, w, terms, kernels)
    image, place = _image(lowering, x)
    batch_strides = (place.strides[0], channels * place.strides[1])
    steps = flat_stride(image, place, tuple(range(2, len(x.shape))))
    windows = None
    if steps is not None and not depthwise and _is_product(value.params, w):
        b = Operand(image, place, place.strides[1], steps, batch_strides)
    else:
        windows = _windows(value, place, False)
        b = Operand(image, place, places, 1, batch_strides)
    c = Operand(value, lowering.give_memory(value), places, 1, (value.shape[1] * places, kernels * places))
    batch = (images,) if depthwise else (images, groups)
    _add(lowering, value, Product(kernels, places, terms, a, b, c, batch, True, windows))


def _channels_last(lowering: State, value: Value) -> None:
    x, w = value.inputs
    groups = value.params.get("groups", 1)
    images, channels = x.shape[0], w.shape[1]
    depthwise = _is_depthwise(value)
    kernels = w.shape[0] if depthwise else w.shape[0] // groups
    terms, places = product(w.shape[1:]), product(value.shape[2:])
    b = _kernels_as_columns(lowering, w, terms, kernels)
    image, place = _image_of_rows(lowering, x)
    c = Operand(value, lowering.give_memory(value), value.shape[1], 1, (value.shape[1] * places, kernels))
    dims = tuple(range(2, len(x.shape)))
    if groups == 1 and not depthwise and _is_product(value.params, w):
        row, count = flat_stride(image, place, (0, *dims)), images * places
        batch: tuple[Dim, ...] = ()
        if row is None:
            row, count, batch = flat_stride(image, place, dims), places, (images,)
        if row is not None:
            a = Operand(image, place, row, 1, (place.strides[0],))
            _add(lowering, value, Product(count, kernels, terms, a, b, c, batch, True))
            return
    windows = _windows(value, place, True)
    a = Operand(image, place, 0, 1, (place.strides[0], channels))
    batch = (images,) if depthwise else (images, groups)
    _add(lowering, value, Product(places, kernels, terms, a, b, c, batch, True, windows))


def _add(lowering: State, value: Value, detail: Product) -> None:
    count = len(detail.batch)
    a, b, c = (
        replace(operand, batch_strides=operand.batch_strides[:count])
        for operand in (detail.a, detail.b, detail.c)
    )
    detail = replace(detail, a=a, b=b, c=c)
    call = lowering.fuser.add_call("blas", value, (detail.a.value, detail.b.value), (value,))
    call.detail = detail
    storage_of(value).writes.append(call.position)


def _points(lowering: State, value: Value) -> None:
    """Images of one point: a product of them with the kernels, each of which is a column."""
    x, w = value.inputs
    kernels = _kernels(lowering, w, product(w.shape[1:]), w.shape[0])
    image, place = _image(lowering, x)
    a = Operand(image, place, place.strides[0], place.strides[1], ())
    b = Operand(kernels.value, kernels.place, kernels.col_stride, kernels.row_stride, ())
    c = Operand(value, lowering.give_memory(value), w.shape[0], 1, ())
    _add(lowering, value, Product(x.shape[0], w.shape[0], w.shape[1], a, b, c, (), True))


def _kernels(lowering: State, w: Value, terms: Dim, kernels: Dim) -> Operand:
    """The kernels as a matrix, a row each."""
    lowering.need_memory(w)
    place = place_of(w)
    inner = tuple(range(1, len(w.shape)))
    step = flat_stride(w, place, inner)
    if step is None:
        copy = copied(lowering, w, (), (0,), inner, terms)
        return Operand(copy.value, copy.place, terms, 1, (0, kernels * terms))
    row = place.strides[0]
    return Operand(w, place, row, step, (0, kernels * row))


def _kernels_as_columns(lowering: State, w: Value, terms: Dim, kernels: Dim) -> Operand:
    """The kernels as a matrix, a column each, whose channels lie innermost."""
    lowering.need_memory(w)
    place = place_of(w)
    inner = (*range(2, len(w.shape)), 1)
    step = flat_stride(w, place, inner)
    if step is None:
        copy = copied(lowering, w, (), (0,), inner, terms)
        return Operand(copy.value, copy.place, 1, terms, (0, kernels * terms))
    column = place.strides[0]
    return Operand(w, place, step, column, (0, kernels * column))


def _image(lowering: State, x: Value) -> tuple[Value, Place]:
    """The image in memory with no stride negative, copied if need be."""
    lowering.need_memory(x)
    place = place_of(x)
    if all(hint(stride) >= 0 for stride in place.strides):
        return x, place
    copy = copied(lowering, x, (), (0, 1), tuple(range(2, len(x.shape))), product(x.shape[2:]))
    return copy.value, copy.place


def _image_of_rows(lowering: State, x: Value) -> tuple[Value, Place]:
    """The image in memory with its channels innermost and no stride negative, copied if need be."""
    lowering.need_memory(x)
    place = place_of(x)
    innermost = same(place.strides[1], 1) or same(x.shape[1], 1)
    if innermost and all(hint(stride) >= 0 for stride in place.strides):
        return x, place
    copy = copied(lowering, x, (), (0, *range(2, len(x.shape))), (1,), x.shape[1])
    return copy.value, copy.place


def _is_depthwise(value: Value) -> bool:
    """Whether each channel of the result is made of the same one of the image."""
    x, w = value.inputs
    return same(w.shape[1], 1) and same(w.shape[0], x.shape[1])


def _is_product(params: dict[str, Any], w: Value) -> bool:
    """Whether each place of the result sees one place of the image, in the same order."""
    return (
        all(same(d, 1) for d in w.shape[2:])
        and all(s == 1 for s in params["stride"])
        and all(pair == (0, 0) for pair in params["padding"])
    )


def _windows(value: Value, place: Place, channels_last: bool) -> Windows:
    x, w = value.inputs
    params = value.params
    low = tuple(pair[0] for pair in params["padding"])
    return Windows(
        columns=value.shape[-1],
        sizes=_pair(x.shape[2:], 1),
        kernel=_pair(w.shape[2:], 1),
        stride=_pair(params["stride"], 1),
        dilation=_pair(params["dilation"], 1),
        padding=_pair(low, 0),
        channel=place.strides[1],
        step=_pair(place.strides[2:], 0),
        channels_last=channels_last,
        depthwise=_is_depthwise(value),
    )


def _pair(given: Any, missing: int) -> tuple[Any, Any]:
    """A line is an image of one row."""
    return (missing, *given) if len(given) == 1 else tuple(given)
