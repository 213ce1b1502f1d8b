"""Convolutions as products of the kernels with what their windows see of the image, which the runtime copies
panel by panel; those that are plain products, and those that are left to a library's routine."""

from __future__ import annotations

from typing import Any

from ..device import CPU
from ..graph.ir import Node
from ..symint import Dim, hint, product, same
from .lower_contract import OWN_DTYPES, Operand, Product, copied, flat_stride
from .lower_state import State
from .lower_values import Place, Value, place_of
from .schedule import Windows

# Dimensions that the runtime's windows have.
MOST_DIMENSIONS = 2


def runs_own(node: Node) -> bool:
    """Whether the runtime does this convolution: over one or two dimensions, the result in C order."""
    x, params = node.inputs[0], node.kwargs
    if x.type.device != CPU:
        return False
    if x.dtype not in OWN_DTYPES or len(params["stride"]) > MOST_DIMENSIONS:
        return False
    return not params.get("channels_last") and all(low >= 0 for low, _ in params["padding"])


def lower_convolution(lowering: State, value: Value) -> None:
    """Add the step of a ``convolution``."""
    x, w = value.inputs
    groups = value.params.get("groups", 1)
    images, channels = x.shape[0], w.shape[1]
    kernels = w.shape[0] // groups
    terms, places = product(w.shape[1:]), product(value.shape[2:])
    a = _kernels(lowering, w, terms, kernels)
    image, place = _image(lowering, x)
    if same(places, 1) and groups == 1 and _is_product(value.params, w):
        _points(lowering, value, a, Operand(image, place, place.strides[0], place.strides[1], ()))
        return
    batch_strides = (place.strides[0], channels * place.strides[1])
    steps = flat_stride(image, place, tuple(range(2, len(x.shape))))
    windows = None
    if steps is not None and _is_product(value.params, w):
        b = Operand(image, place, place.strides[1], steps, batch_strides)
    else:
        windows = _windows(value, place)
        b = Operand(image, place, places, 1, batch_strides)
    target = lowering.give_memory(value)
    c = Operand(value, target, places, 1, (value.shape[1] * places, kernels * places))
    call = lowering.fuser.add_call("blas", value, (a.value, b.value), (value,))
    call.detail = Product(kernels, places, terms, a, b, c, (images, groups), True, windows)
    target.storage.writes.append(call.position)


def _points(lowering: State, value: Value, kernels: Operand, images: Operand) -> None:
    """Images of one point: a product of them with the kernels, each of which is a column."""
    x, w = value.inputs
    target = lowering.give_memory(value)
    c = Operand(value, target, w.shape[0], 1, ())
    b = Operand(kernels.value, kernels.place, kernels.col_stride, kernels.row_stride, ())
    call = lowering.fuser.add_call("blas", value, (images.value, b.value), (value,))
    call.detail = Product(x.shape[0], w.shape[0], w.shape[1], images, b, c, (), True)
    target.storage.writes.append(call.position)


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


def _image(lowering: State, x: Value) -> tuple[Value, Place]:
    """The image in memory with no stride negative, copied if need be."""
    lowering.need_memory(x)
    place = place_of(x)
    if all(hint(stride) >= 0 for stride in place.strides):
        return x, place
    copy = copied(lowering, x, (), (0, 1), tuple(range(2, len(x.shape))), product(x.shape[2:]))
    return copy.value, copy.place


def _is_product(params: dict[str, Any], w: Value) -> bool:
    """Whether each place of the result sees one place of the image, in the same order."""
    return (
        all(same(d, 1) for d in w.shape[2:])
        and all(s == 1 for s in params["stride"])
        and all(pair == (0, 0) for pair in params["padding"])
    )


def _windows(value: Value, place: Place) -> Windows:
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
    )


def _pair(given: Any, missing: int) -> tuple[Any, Any]:
    """A line is an image of one row."""
    return (missing, *given) if len(given) == 1 else tuple(given)
