"""Ops in ONNX: how a node of a graph is written with operators of the standard (opset 18).

:data:`TRANSLATIONS` has a function per op: it gets a :class:`Writer`, the node and the names of its inputs,
and gives the name of its output. What is not here has no operators of the same meaning there: complex
numbers, random numbers, routines of a library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..dtypes import DType, bool_, int64
from ..errors import Unsupported
from ..graph.interp import strided_window
from ..graph.ir import ArrayType, Node
from ..symbolic.integers import Dim, SymInt, same

Array = np.ndarray[Any, Any]


class Writer(Protocol):
    """Appends operators to a model."""

    def op(self, name: str, *inputs: str, **attributes: object) -> str:
        """The name of the only output of an operator."""

    def constant(self, value: Array) -> str:
        """The name of an array that is part of the model."""

    def sizes(self, dims: Sequence[Dim]) -> str:
        """The name of a vector of int64, whose entries may depend on sizes of the inputs."""

    def cast(self, value: str, dtype: DType) -> str:
        """``value`` as ``dtype``."""


Translation = Callable[[Writer, Node, Sequence[str]], str]
TRANSLATIONS: dict[str, Translation] = {}


def translates(*ops: str) -> Callable[[Translation], Translation]:
    def register(function: Translation) -> Translation:
        TRANSLATIONS.update(dict.fromkeys(ops, function))
        return function

    return register


def _fixed(value: Any) -> Any:
    """``value``, which must hold no symbolic integer."""
    if isinstance(value, SymInt):
        raise Unsupported(f"a size of the inputs ({value}) where ONNX wants a number")
    if isinstance(value, tuple):
        return tuple(map(_fixed, value))
    return value


# -- element by element ---------------------------------------------------------------------------
# Operators that mean the same for floating-point numbers; those of integers that mean the same, too.
_PLAIN = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "negative": "Neg", "abs": "Abs",
    "where": "Where", "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater",
    "greater_equal": "GreaterOrEqual", "logical_not": "Not", "logical_and": "And", "logical_or": "Or",
    "logical_xor": "Xor", "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor",
    "invert": "BitwiseNot", "contiguous": "Identity", "copy": "Identity", "stop_gradient": "Identity",
    "relu": "Relu",
}  # fmt: skip
_FLOATING = {
    "divide": "Div", "floor": "Floor", "ceil": "Ceil", "rint": "Round", "sqrt": "Sqrt", "exp": "Exp",
    "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan", "arcsin": "Asin", "arccos": "Acos",
    "arctan": "Atan", "sinh": "Sinh",
    "cosh": "Cosh", "tanh": "Tanh", "arcsinh": "Asinh", "arccosh": "Acosh", "arctanh": "Atanh", "erf": "Erf",
    "sigmoid": "Sigmoid", "reciprocal": "Reciprocal", "power": "Pow", "isnan": "IsNaN", "isinf": "IsInf",
}  # fmt: skip
_ON_BOOLS = {
    "bitwise_and": "And",
    "bitwise_or": "Or",
    "bitwise_xor": "Xor",
    "invert": "Not",
    "multiply": "And",
}
_ON_BOOLS |= {"add": "Or", "maximum": "Or", "minimum": "And", "not_equal": "Xor"}


def _plainly(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    of_bools = node.inputs[-1].dtype is bool_
    if of_bools and node.op in _ON_BOOLS:
        return writer.op(_ON_BOOLS[node.op], *inputs)
    if node.op in _FLOATING and not node.inputs[0].dtype.is_float:
        raise Unsupported(f"{node.op} of {node.inputs[0].dtype}")
    return writer.op(_PLAIN.get(node.op) or _FLOATING[node.op], *inputs)


for _op in (*_PLAIN, *_FLOATING):
    TRANSLATIONS[_op] = _plainly


@translates("not_equal")
def _not_equal(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    if node.inputs[0].dtype is bool_:
        return writer.op("Xor", *inputs)
    return writer.op("Not", writer.op("Equal", *inputs))


@translates("maximum", "minimum")
def _extreme(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    if node.inputs[0].dtype is bool_:
        return writer.op(_ON_BOOLS[node.op], *inputs)
    return _extreme_of(writer, node.op == "maximum", node.inputs[0].dtype, *inputs)


def _extreme_of(writer: Writer, largest: bool, dtype: DType, one: str, other: str) -> str:
    """The larger or smaller; NaN where either is, which operators may or may not give."""
    first = writer.op("GreaterOrEqual" if largest else "LessOrEqual", one, other)
    if dtype.is_float:
        first = writer.op("Or", first, writer.op("IsNaN", one))
    return writer.op("Where", first, one, other)


@translates("sign")
def _sign(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    """NaN of NaN, which operators may or may not give."""
    made = writer.op("Sign", inputs[0])
    if not node.inputs[0].dtype.is_float:
        return made
    return writer.op("Where", writer.op("IsNaN", inputs[0]), inputs[0], made)


@translates("square")
def _square(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.op("Mul", inputs[0], inputs[0])


def _number(writer: Writer, node: Node, value: float) -> str:
    return writer.constant(np.asarray(value, node.inputs[0].dtype.numpy))


@translates("log1p")
def _log1p(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.op("Log", writer.op("Add", inputs[0], _number(writer, node, 1.0)))


@translates("expm1")
def _expm1(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    """By way of tanh, which is exact near 0: 2 t / (1 - t) with t = tanh(x / 2)."""
    half = writer.op("Tanh", writer.op("Mul", inputs[0], _number(writer, node, 0.5)))
    one = _number(writer, node, 1.0)
    near = writer.op("Div", writer.op("Add", half, half), writer.op("Sub", one, half))
    far = writer.op("Sub", writer.op("Exp", inputs[0]), one)
    is_near = writer.op("Less", writer.op("Abs", inputs[0]), one)
    return writer.op("Where", is_near, near, far)


@translates("log2", "log10")
def _other_logarithm(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    base = math.log(2.0 if node.op == "log2" else 10.0)
    return writer.op("Div", writer.op("Log", inputs[0]), _number(writer, node, base))


@translates("exp2")
def _exp2(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.op("Pow", _number(writer, node, 2.0), inputs[0])


@translates("trunc")
def _trunc(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.op("Mul", writer.op("Sign", inputs[0]), writer.op("Floor", writer.op("Abs", inputs[0])))


@translates("isfinite")
def _isfinite(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    unusual = writer.op("Or", writer.op("IsNaN", inputs[0]), writer.op("IsInf", inputs[0]))
    return writer.op("Not", unusual)


@translates("erfc")
def _erfc(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.op("Sub", _number(writer, node, 1.0), writer.op("Erf", inputs[0]))


@translates("clip")
def _clip(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    """Bounds may be arrays."""
    dtype = node.inputs[0].dtype
    low = _extreme_of(writer, True, dtype, inputs[0], inputs[1])
    return _extreme_of(writer, False, dtype, low, inputs[2])


@translates("convert")
def _convert(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.cast(inputs[0], node.out.dtype)


@translates("tril", "triu")
def _triangle(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    k = writer.constant(np.asarray(_fixed(node.kwargs["k"]), np.int64))
    if node.inputs[0].dtype is bool_:
        kept = writer.op("Trilu", writer.cast(inputs[0], int64), k, upper=int(node.op == "triu"))
        return writer.cast(kept, bool_)
    return writer.op("Trilu", inputs[0], k, upper=int(node.op == "triu"))


# -- made from nothing ----------------------------------------------------------------------------
@translates("full", "empty")
def _full(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    dtype = node.out.dtype.numpy
    value = writer.constant(np.asarray(_fixed(node.kwargs.get("value", 0)), dtype))
    return writer.op("Expand", value, writer.sizes(node.out.shape)) if node.out.shape else value


@translates("iota")
def _iota(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    shape, axis = node.out.shape, node.kwargs["axis"]
    zero, one = (writer.constant(np.asarray(k, np.int64)) for k in (0, 1))
    count = writer.op("Squeeze", writer.sizes((shape[axis],)))
    line = writer.cast(writer.op("Range", zero, count, one), node.out.dtype)
    column = [1] * len(shape)
    column[axis] = -1
    line = writer.op("Reshape", line, writer.sizes(column))
    return writer.op("Expand", line, writer.sizes(shape))


@translates("constant")
def _constant(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.constant(node.kwargs["literal"].to_numpy())


@translates("symint")
def _symint(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.cast(writer.op("Squeeze", writer.sizes((node.kwargs["expr"],))), node.out.dtype)


# -- shapes -----------------------------------------------------------------------------------------
@translates("reshape")
def _reshape(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.op("Reshape", inputs[0], writer.sizes(node.out.shape), allowzero=1)


@translates("transpose")
def _transpose(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    perm = node.kwargs["perm"]
    return writer.op("Transpose", inputs[0], perm=list(perm)) if perm else inputs[0]


@translates("broadcast_in_dim")
def _broadcast(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    shape, dims = node.out.shape, node.kwargs["dims"]
    column: list[Dim] = [1] * len(shape)
    for axis, dim in enumerate(dims):
        column[dim] = node.inputs[0].shape[axis]
    value = inputs[0]
    if not _equal(tuple(column), node.inputs[0].shape):
        value = writer.op("Reshape", value, writer.sizes(column), allowzero=1)
    return value if _equal(tuple(column), shape) else writer.op("Expand", value, writer.sizes(shape))


def _equal(one: Sequence[Dim], other: Sequence[Dim]) -> bool:
    return len(one) == len(other) and all(map(same, one, other))


@translates("strided_slice")
def _slice(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    starts, sizes, steps = (node.kwargs[name] for name in ("starts", "sizes", "steps"))
    if not starts:
        return inputs[0]
    ends: list[Dim] = []
    for start, size, step in zip(starts, sizes, map(_fixed, steps)):
        end = start + size * step
        # a negative end would count from the back
        ends.append(-(2**62) if step < 0 and isinstance(end, int) and end < 0 else end)
    axes = writer.constant(np.arange(len(starts)))
    return writer.op("Slice", inputs[0], writer.sizes(starts), writer.sizes(ends), axes, writer.sizes(steps))


@translates("update_slice")
def _update_slice(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    """The window's places as positions of a scatter."""
    starts, sizes, steps = (_fixed(node.kwargs[name]) for name in ("starts", "sizes", "steps"))
    base = _fixed(node.out.shape)
    places = np.arange(int(np.prod(base))).reshape(base)
    window = tuple(
        slice(start, None if (end := start + size * step) < 0 else end, step)
        for start, size, step in zip(starts, sizes, steps)
    )
    return _scattered(writer, node, inputs, places[window])


@translates("update_strided")
def _update_strided(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return _scattered(writer, node, inputs, _window(node.inputs[0].type, node.kwargs))


def _scattered(writer: Writer, node: Node, inputs: Sequence[str], places: Array) -> str:
    flat = writer.op("Reshape", inputs[0], writer.sizes((-1,)))
    values = writer.op("Reshape", inputs[1], writer.sizes((-1,)))
    updated = writer.op("ScatterElements", flat, writer.constant(places.reshape(-1)), values, axis=0)
    return writer.op("Reshape", updated, writer.sizes(node.out.shape), allowzero=1)


@translates("as_strided")
def _as_strided(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return _gathered(writer, inputs[0], _window(node.inputs[0].type, node.kwargs))


def _window(type: ArrayType, params: Mapping[str, Any]) -> Array:
    """Which elements, in C order, a window of an array's memory shows."""
    shape, strides, offset = (_fixed(params[name]) for name in ("shape", "strides", "offset"))
    own = _fixed(type.shape), _fixed(type.strides)
    low, high = (f(*ends) for f, *ends in zip((min, max), _ends(*own, 0), _ends(shape, strides, offset)))
    memory = np.full(high - low + 1, -1, np.int64)
    seen = strided_window(memory, *own, -low)
    seen[...] = np.arange(seen.size).reshape(own[0])
    places = np.array(strided_window(memory, shape, strides, offset - low))
    if (places < 0).any():
        raise Unsupported("a window of memory beside the array")
    return places


def _ends(shape: Sequence[int], strides: Sequence[int], offset: int) -> tuple[int, int]:
    """The first and last place in memory of a window."""
    steps = [(n - 1) * s for n, s in zip(shape, strides)]
    return offset + sum(s for s in steps if s < 0), offset + sum(s for s in steps if s > 0)


def _gathered(writer: Writer, value: str, places: Array) -> str:
    flat = writer.op("Reshape", value, writer.sizes((-1,)))
    return writer.op("Gather", flat, writer.constant(places), axis=0)


@translates("diagonal")
def _diagonal(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    shape = _fixed(node.inputs[0].shape)
    places = np.arange(int(np.prod(shape))).reshape(shape)
    offset, first, second = (node.kwargs[name] for name in ("offset", "axis1", "axis2"))
    return _gathered(writer, inputs[0], np.diagonal(places, offset, first, second).copy())


@translates("concatenate")
def _concatenate(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.op("Concat", *inputs, axis=node.kwargs["axis"])


@translates("pad")
def _pad(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    widths = node.kwargs["widths"]
    if not widths:
        return inputs[0]
    pads = writer.sizes([*(low for low, _ in widths), *(high for _, high in widths)])
    value = writer.constant(np.asarray(_fixed(node.kwargs["value"]), node.out.dtype.numpy))
    return writer.op("Pad", inputs[0], pads, value)


# -- reductions, products ---------------------------------------------------------------------------
_REDUCTIONS = {"reduce_sum": "ReduceSum", "reduce_prod": "ReduceProd", "reduce_max": "ReduceMax"}
_REDUCTIONS |= {"reduce_min": "ReduceMin", "mean": "ReduceMean"}
_REDUCTIONS |= {"reduce_any": "ReduceMax", "reduce_all": "ReduceMin"}


@translates(*_REDUCTIONS)
def _reduction(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    value, dtype = inputs[0], node.inputs[0].dtype
    if dtype is bool_:
        value = writer.cast(value, int64)
    axes = writer.constant(np.asarray(node.kwargs["axes"], np.int64))
    made = writer.op(_REDUCTIONS[node.op], value, axes, keepdims=0, noop_with_empty_axes=1)
    if dtype.is_float and node.op in ("reduce_max", "reduce_min"):
        # NaN where there is one, which operators may or may not give
        there = writer.op("ReduceMax", writer.cast(writer.op("IsNaN", value), int64), axes, keepdims=0)
        nan = writer.constant(np.asarray(np.nan, dtype.numpy))
        made = writer.op("Where", writer.cast(there, bool_), nan, made)
    return writer.cast(made, node.out.dtype) if dtype is bool_ else made


@translates("argmax", "argmin")
def _position(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    name = "ArgMax" if node.op == "argmax" else "ArgMin"
    how: dict[str, object] = {"axis": node.kwargs["axis"], "keepdims": 0}
    value, dtype = inputs[0], node.inputs[0].dtype
    made = writer.op(name, writer.cast(value, int64) if dtype is bool_ else value, **how)
    if dtype.is_float:  # the first NaN, where there is one
        nan = writer.cast(writer.op("IsNaN", value), int64)
        axes = writer.constant(np.asarray([node.kwargs["axis"]], np.int64))
        there = writer.cast(writer.op("ReduceMax", nan, axes, keepdims=0), bool_)
        made = writer.op("Where", there, writer.op("ArgMax", nan, **how), made)
    return writer.cast(made, node.out.dtype)


@translates("cumsum")
def _cumsum(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    axis = writer.constant(np.asarray(node.kwargs["axis"], np.int64))
    return writer.op("CumSum", inputs[0], axis)


@translates("softmax", "log_softmax")
def _softmax(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    if len(node.kwargs["axes"]) != 1:
        raise Unsupported("a softmax over several axes")
    name = "Softmax" if node.op == "softmax" else "LogSoftmax"
    return writer.op(name, inputs[0], axis=node.kwargs["axes"][0])


@translates("dot_general")
def _dot(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    """By Einsum, or MatMul where that is its form."""
    left, right = node.inputs
    contract, batch = node.kwargs["contract"], node.kwargs["batch"]
    plain = (tuple(range(left.ndim - 2)),) * 2
    if left.ndim == right.ndim >= 2 and batch == plain and contract == ((left.ndim - 1,), (left.ndim - 2,)):
        return writer.op("MatMul", *inputs)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    first = [next(letters) for _ in range(left.ndim)]
    second = [next(letters) for _ in range(right.ndim)]
    for axes in (contract, batch):
        for a, b in zip(*axes):
            second[b] = first[a]
    free = [c for k, c in enumerate(first) if k not in (*contract[0], *batch[0])]
    free += [c for k, c in enumerate(second) if k not in (*contract[1], *batch[1])]
    result = [first[k] for k in batch[0]] + free
    return writer.op("Einsum", *inputs, equation=f"{''.join(first)},{''.join(second)}->{''.join(result)}")


@translates("convolution")
def _convolution(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    stride, padding, dilation = (_fixed(node.kwargs[name]) for name in ("stride", "padding", "dilation"))
    pads = [low for low, _ in padding] + [high for _, high in padding]
    return writer.op(
        "Conv",
        *inputs,
        strides=list(stride),
        pads=pads,
        dilations=list(dilation),
        group=node.kwargs.get("groups", 1),
    )


# -- positions ----------------------------------------------------------------------------------------
@translates("index")
def _index(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    dims, position = node.kwargs["dims"], node.kwargs["position"]
    if len(dims) != 1 or position != dims[0]:
        raise Unsupported("arrays of positions along several axes")
    return writer.op("Gather", inputs[0], writer.cast(inputs[1], int64), axis=dims[0])


@translates("take_along_axis")
def _take_along(writer: Writer, node: Node, inputs: Sequence[str]) -> str:
    return writer.op("GatherElements", inputs[0], writer.cast(inputs[1], int64), axis=node.kwargs["axis"])


# Composites with an operator of their own.
KEPT = frozenset(("concatenate", "pad", "softmax", "log_softmax", "mean"))
__all__ = ["KEPT", "TRANSLATIONS", "Writer"]
