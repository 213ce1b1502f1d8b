"""Quantization to 8-bit integers: of weights alone, and of weights and activations by calibration.

A product (a matrix product or a convolution) is quantized where one operand is a constant of floating-point
numbers. Weights get a scale for each output channel, ``w ≈ scale * integer``, integers from -127 to 127.
Activations get one scale: 0 to 255 where they are never negative, -127 to 127 elsewhere. Sums of products of
these integers are exact. Matrix products on CPUs are computed in int32: compiled, they multiply the 8-bit
integers themselves. Convolutions, and everything on GPUs, are computed in float32 where no sum can reach
2^24, which the weights show; else in int32, convolutions in float64.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..device import CPU
from ..dtypes import DType, float32, float64, int8, int32, uint8
from ..errors import GraphError
from ..graph.ir import Node, Var
from ..prims.contract import free_dims
from ..prims.opdef import Contract, Convolve
from ..tracing.edit import Editor
from ..tracing.function import GraphFunction
from ..tracing.views import GraphNode
from .observe import MinMax, Observer, Range

Array = np.ndarray[Any, Any]
_EXACT = {float32: 2**24, float64: 2**53, int32: 2**31}  # sums of integers below this are exact
_WEIGHT_LIMIT = 127


@dataclass(frozen=True, eq=False)
class Product:
    """A product with a weight. ``name``: of the constant; ``side``: which operand the weight is; ``weight``:
    its value as the product reads it; ``axes``: its axes that are output channels; ``places``: the axes of
    the result that these are; ``activation``: the other operand."""

    node: GraphNode
    name: str
    side: int
    weight: Array
    axes: tuple[int, ...]
    places: tuple[int, ...]
    activation: Var


def products(function: GraphFunction, leave_out: Sequence[str] = ()) -> list[Product]:
    """The products that can be quantized, but for those whose weights have names like one of ``leave_out``
    (``"layers.0.*"``, as for ``fnmatch``)."""
    found = []
    for node in function.nodes:
        product = _product(function, node)
        if product is None or any(fnmatch.fnmatch(product.name, pattern) for pattern in leave_out):
            continue
        found.append(product)
    return found


def quantize_weights(function: GraphFunction, leave_out: Sequence[str] = ()) -> GraphFunction:
    """A copy in which weights of products are kept as 8-bit integers, a quarter of the memory of float32.
    Products compute in the activations' dtype.

    ``leave_out``: patterns of names of weights that stay (``"head.*"``). Raises
    :class:`~dyncomp.errors.GraphError` where no product is left to quantize.
    """
    made = function.copy()
    chosen = _chosen(made, leave_out)
    known = _Stored()
    with made.edit() as e:
        for product in chosen:
            integers, scales = quantized_weight(product.weight, product.axes)
            stored = known.constant(e, product, integers)
            dtype = product.node.dtype
            weight = e.insert_before(product.node, "convert", stored, dtype=dtype)
            _compute(e, product, weight, product.activation, scales, dtype)
    return made


def calibrate(
    function: GraphFunction,
    batches: Iterable[Any],
    leave_out: Sequence[str] = (),
    observer: Callable[[], Observer] = MinMax,
) -> dict[str, Range]:
    """The ranges of the activations of products, by names of the weights: runs the graph on ``batches``, each
    a tuple of arguments or one argument. Raises ``ValueError`` for no batches."""
    chosen = _chosen(function, leave_out)
    names = list(dict.fromkeys(product.activation.name for product in chosen))
    observers = {name: observer() for name in names}
    tapped = function.tap(*names)
    owner = function.owner
    seen = False
    for batch in batches:
        seen = True
        values = tapped(*batch) if isinstance(batch, (tuple, list)) else tapped(batch)
        for name, value in zip(names, values):
            observers[name].see(value if owner is None else owner.to_numpy(value))
    if not seen:
        raise ValueError("calibration needs at least one batch")
    found: dict[str, Range] = {}
    for product in chosen:  # parts of one weight may meet different activations
        seen_range = observers[product.activation.name].range
        known = found.get(product.name, seen_range)
        found[product.name] = Range(min(known.low, seen_range.low), max(known.high, seen_range.high))
    return found


def quantize_static(
    function: GraphFunction,
    batches: Iterable[Any] = (),
    *,
    leave_out: Sequence[str] = (),
    observer: Callable[[], Observer] = MinMax,
    ranges: Mapping[str, Range] | None = None,
) -> GraphFunction:
    """A copy in which products are of 8-bit integers: weights with a scale for each output channel,
    activations with one scale, from the range that they have in ``batches`` (each a tuple of arguments, or
    one argument).

    ``leave_out``: patterns of names of weights whose products stay in floating point. ``observer``: what
    makes a range of what it sees (:class:`MinMax`, :class:`Percentile`). ``ranges``: known ranges by names of
    weights, instead of batches. Raises :class:`~dyncomp.errors.GraphError` where no product is left to
    quantize, or a range is not known or not finite.
    """
    if ranges is None:
        ranges = calibrate(function, batches, leave_out, observer)
    made = function.copy()
    chosen = _chosen(made, leave_out)
    stored_weights = _Stored()
    quantized: dict[tuple[str, Range, DType], Var] = {}
    with made.edit() as e:
        for product in chosen:
            known = _range_of(product, ranges)
            scale, low, high = activation_scale(known)
            integers, scales = quantized_weight(product.weight, product.axes)
            dtype = _arithmetic(product, integers, max(-low, high))
            stored = stored_weights.constant(e, product, integers)
            weight = e.insert_before(product.node, "convert", stored, dtype=dtype)
            key = (product.activation.name, known, dtype)
            if key not in quantized:
                quantized[key] = _quantized(e, product, scale, low, high, dtype)
            _compute(e, product, weight, quantized[key], scales * scale, dtype)
    return made


def activation_scale(known: Range) -> tuple[float, int, int]:
    """The scale of an activation, and the integers that it is clipped to."""
    if known.is_signed:
        largest, low, high = max(-known.low, known.high), -127, 127
    else:
        largest, low, high = known.high, 0, 255
    return (largest / high if largest > 0 else 1.0), low, high


def quantized_weight(weight: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """Integers of a weight, and the scales along ``axes`` (of the shape of these axes)."""
    others = tuple(axis for axis in range(weight.ndim) if axis not in axes)
    largest = np.abs(weight).max(axis=others, keepdims=True, initial=0)
    scales = np.where(largest > 0, largest / _WEIGHT_LIMIT, 1).astype(weight.dtype)
    integers = np.clip(np.rint(weight / scales), -_WEIGHT_LIMIT, _WEIGHT_LIMIT).astype(np.int8)
    return np.ascontiguousarray(integers), scales.reshape([weight.shape[axis] for axis in axes])


# -- parts ------------------------------------------------------------------------------------------------
def _chosen(function: GraphFunction, leave_out: Sequence[str]) -> list[Product]:
    chosen = products(function, leave_out)
    if not chosen:
        raise GraphError(f"{function.__name__}: no product with a constant weight is left to quantize")
    return chosen


class _Stored:
    """The integers of weights that several products may read."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[int, ...], bytes], Var] = {}

    def constant(self, e: Editor, product: Product, integers: Array) -> Var:
        key = (product.name, integers.shape, integers.tobytes())
        if key not in self._known:
            self._known[key] = e.constant(f"{product.name}.int8", integers)
        return self._known[key]


def _range_of(product: Product, ranges: Mapping[str, Range]) -> Range:
    known = ranges.get(product.name)
    if known is None:
        raise GraphError(f"{product.node.place}: the range of its activation is not known ({product.name})")
    if not np.isfinite([known.low, known.high]).all():
        raise GraphError(f"{product.node.place}: the range of its activation is {known.low} to {known.high}")
    return known


def _quantized(e: Editor, product: Product, scale: float, low: int, high: int, dtype: DType) -> Var:
    """The activation as integers of 8 bits, in the dtype that the product computes in."""
    scaled = e.insert_before(product.node, "divide", product.activation, scale)
    whole = e.insert_before(product.node, "rint", scaled)
    least = e.insert_before(product.node, "maximum", whole, low)
    clipped = e.insert_before(product.node, "minimum", least, high)
    small = e.insert_before(product.node, "convert", clipped, dtype=int8 if low < 0 else uint8)
    return e.insert_before(product.node, "convert", small, dtype=dtype)


def _compute(e: Editor, product: Product, weight: Var, activation: Var, scales: Array, dtype: DType) -> None:
    """The product of integers, times the scales, in the place of the product."""
    node = product.node
    operands = [activation, weight] if product.side else [weight, activation]
    made = e.insert_before(node, node.op, *operands, **node.params)
    if dtype is not node.dtype:
        made = e.insert_before(node, "convert", made, dtype=node.dtype)
    stored = e.constant(f"{product.name}.scale", scales.astype(node.dtype.numpy))
    wide = e.insert_before(node, "broadcast_in_dim", stored, shape=node.shape, dims=product.places)
    e.replace_uses(node, e.insert_before(node, "multiply", made, wide))
    e.erase(node)


def _arithmetic(product: Product, integers: Array, largest: int) -> DType:
    """The dtype in which all sums are exact, whatever the activations are."""
    others = tuple(axis for axis in range(integers.ndim) if axis not in product.axes)
    bound = int(np.abs(integers.astype(np.int64)).sum(axis=others).max(initial=0)) * largest
    row_is_convolution = "stride" in product.node.params
    multiplies_bytes = not row_is_convolution and product.activation.type.device == CPU
    if bound < _EXACT[float32] and not multiplies_bytes:
        return float32
    found = float64 if row_is_convolution else int32
    if bound >= _EXACT[found]:
        raise GraphError(f"{product.node.place}: sums of integers up to {bound}, beyond {found}")
    return found


def _product(function: GraphFunction, node: GraphNode) -> Product | None:
    row: Any = function.table[node.op]
    if not isinstance(row.lower, (Contract, Convolve)) or node.dtype not in (float32, float64):
        return None
    if isinstance(row.lower, Convolve) and "output_padding" in node.params:
        return None  # channels of transposed convolutions lie in groups
    inputs = node._node.inputs
    constants = [_constant_behind(function, var) for var in inputs]
    sides = [k for k, name in enumerate(constants) if name]
    if len(inputs) != 2 or len(sides) != 1:
        return None
    (side,) = sides
    if isinstance(row.lower, Convolve):
        if side != 1:
            return None
        axes: tuple[int, ...] = (0,)
        places: tuple[int, ...] = (1,)
    else:
        contract, batch = node.params["contract"], node.params["batch"]
        if batch[0]:
            return None
        axes = free_dims(inputs[side].ndim, contract[side], ())
        ahead = len(free_dims(inputs[0].ndim, contract[0], ())) if side else 0
        places = tuple(range(ahead, ahead + len(axes)))
    weight = _evaluated(function, inputs[side])
    return Product(node, constants[side], side, weight, axes, places, inputs[1 - side])


def _constant_behind(function: GraphFunction, var: Var) -> str:
    """The constant that a value is, or is a rearrangement of; empty if it is another value."""
    index = function.index
    while (node := index.producers.get(var.name)) is not None:
        if not function.table[node.op].is_view:
            return ""
        var = node.inputs[0]
    name = index.constants.get(var.name, "")
    return name if name and index.inputs[var.name].kind == "array" else ""


def _evaluated(function: GraphFunction, var: Var) -> Array:
    """The value of a rearranged constant."""
    index = function.index
    steps: list[Node] = []
    while (node := index.producers.get(var.name)) is not None:
        steps.append(node)
        var = node.inputs[0]
    array = function.constants[index.constants[var.name]]
    array = array if function.owner is None else function.owner.to_numpy(array)
    for node in reversed(steps):
        array = function.table[node.op].ref(array, **node.kwargs)
    return np.asarray(array)
