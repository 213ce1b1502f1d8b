"""The simplification rules (see :mod:`.simplify` for what a rule is and what exact means)."""

from __future__ import annotations

import math
from typing import Any

from ...dtypes import DType
from ...symbolic.integers import Dim, same
from ..ir import Graph, OpTable, Var, same_shape
from ..rewrite import are_apart, frozen_key
from .simplify import Call, Rewrite, RuleSet, permuted, rewrite_graph

RULES = RuleSet()
# Updates looked through in search of one.
UPDATE_LIMIT = 64
LAST_RULES = RuleSet()  # for what says something of derivatives only


def simplify(graph: Graph, table: OpTable, *, keeps_derivatives: bool = False) -> Graph:
    """Apply the rules of this module. ``keeps_derivatives``: the graph may be differentiated yet, and be cut
    into halves between which the program may write to its inputs."""
    graph = graph if keeps_derivatives else rewrite_graph(graph, table, LAST_RULES)
    return rewrite_graph(graph, table, RULES, keeps_derivatives)


# -- views ------------------------------------------------------------------------------------
@RULES.on("transpose")
def transpose_identity(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    if tuple(params["perm"]) == tuple(range(inputs[0].ndim)):
        return inputs[0]
    return None


@RULES.on("transpose")
def transpose_of_transpose(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    inner = rewrite.made_by(inputs[0], "transpose")
    if inner is None:
        return None
    return Call("transpose", inner.inputs, {**params, "perm": permuted(inner.kwargs["perm"], params["perm"])})


@RULES.on("reshape")
def reshape_identity(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    return inputs[0] if same_shape(tuple(params["shape"]), inputs[0].shape) else None


@RULES.on("reshape")
def reshape_of_reshape(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    inner = rewrite.made_by(inputs[0], "reshape")
    return None if inner is None else Call("reshape", inner.inputs, params)


@RULES.on("broadcast_in_dim")
def broadcast_identity(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    return inputs[0] if same_shape(tuple(params["shape"]), inputs[0].shape) else None


@RULES.on("broadcast_in_dim")
def broadcast_of_broadcast(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    inner = rewrite.made_by(inputs[0], "broadcast_in_dim")
    if inner is None:
        return None
    dims = permuted(params["dims"], inner.kwargs["dims"])
    return Call("broadcast_in_dim", inner.inputs, {**params, "dims": dims})


@RULES.on("strided_slice")
def slice_of_everything(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    whole = same_shape(tuple(params["sizes"]), inputs[0].shape)
    whole = whole and all(same(start, 0) for start in params["starts"])
    return inputs[0] if whole and all(same(step, 1) for step in params["steps"]) else None


@RULES.on("strided_slice")
def slice_of_slice(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    inner = rewrite.made_by(inputs[0], "strided_slice")
    if inner is None or any(same(size, 0) for size in params["sizes"]):
        return None
    first = inner.kwargs
    starts: list[Dim] = []
    steps: list[Dim] = []
    for start0, step0, start, step in zip(first["starts"], first["steps"], params["starts"], params["steps"]):
        starts.append(start0 + step0 * start)
        steps.append(step0 * step)
    merged = {**params, "starts": tuple(starts), "steps": tuple(steps)}
    return Call("strided_slice", inner.inputs, merged)


@RULES.on("strided_slice")
def slice_of_what_was_written(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    """A slice that was written as such, before other parts: what was written."""
    node = rewrite.builder.producer(inputs[0])
    for _ in range(UPDATE_LIMIT):
        if node is None or node.op != "update_slice":
            return None
        written = node.kwargs
        if frozen_key(written) == frozen_key(params):
            return node.inputs[1]
        if not are_apart(written, params):
            return None
        node = rewrite.builder.producer(node.inputs[0])
    return None


@RULES.on("update_slice", "update_diagonal", "update_strided")
def update_of_same_window(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    """The second of two writes to one window makes the first one void."""
    inner = rewrite.builder.producer(inputs[0])
    if inner is None or not inner.op.startswith("update_") or rewrite.uses.get(inputs[0].name) != 1:
        return None
    if frozen_key(inner.kwargs) != frozen_key(params):
        return None
    return Call(inner.op, (inner.inputs[0], inputs[1]), params)


@RULES.on("update_slice", "update_diagonal", "update_strided")
def update_of_nothing(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    return inputs[0] if any(same(size, 0) for size in inputs[1].shape) else None


@RULES.on("update_slice")
def update_of_everything(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    whole = same_shape(inputs[0].shape, inputs[1].shape) and all(same(step, 1) for step in params["steps"])
    return _keep(inputs[1]) if whole else None


@LAST_RULES.on("stop_gradient", "with_derivative_of")
def no_derivative_is_left(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    """Derivatives are in the graph before it is simplified."""
    return inputs[0]


# -- copies and conversions -------------------------------------------------------------------
@RULES.on("copy", "contiguous")
def copy_of_a_value(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    """Values are pure: a copy of the same layout is the value."""
    if rewrite.op == "copy" and rewrite.keeps_copies and rewrite.shows_input(inputs[0]):
        return None
    return inputs[0]


@RULES.on("convert")
def convert_to_own_dtype(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    if params["dtype"] != inputs[0].dtype:
        return None
    # a fresh array in K order: where the layout differs this is a copy
    return Call("copy", inputs, {})


@RULES.on("convert")
def convert_of_convert(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    """Through a wider type and on: directly (and nowhere, if it is back to the first type)."""
    inner = rewrite.made_by(inputs[0], "convert")
    if inner is None:
        return None
    source, middle, target = inner.inputs[0].dtype, inputs[0].dtype, params["dtype"]
    if not is_lossless(source, middle):
        return None
    back = source == target
    direct = middle.is_integer or target.is_inexact
    return Call("convert", inner.inputs, params) if back or direct else None


def is_lossless(source: DType, target: DType) -> bool:
    """Whether every value of ``source`` is one of ``target`` (NumPy's ``safe``, made strict for 64-bit
    integers, which floats do not hold)."""
    if source == target or source.is_bool:
        return True
    if source.kind == target.kind:
        if source.itemsize == target.itemsize:
            return False  # float16 and bfloat16
        return source.itemsize < target.itemsize
    if source.kind == "uint" and target.kind == "int":
        return source.itemsize < target.itemsize
    if source.is_integer and target.is_float:
        return source.bits <= _mantissa(target)
    if source.is_integer and target.is_complex:
        return source.bits <= _mantissa(target.real)
    return source.is_float and target.is_complex and is_lossless(source, target.real)


def _mantissa(dtype: DType) -> int:
    return {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}[dtype.name]


# -- arithmetic -------------------------------------------------------------------------------
def _is(value: object, number: float) -> bool:
    """Equal, where ``0.0`` and ``-0.0`` are told apart."""
    if value is None or isinstance(value, complex):
        return False
    return value == number and (number != 0 or math.copysign(1.0, value) == math.copysign(1.0, number))


def _keep(var: Var) -> Call:
    """``var`` as the fresh result that the op would have given (K order; gone if that is its own)."""
    return Call("copy", (var,), {})


@RULES.on("multiply")
def multiply_by_one(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    x, y = inputs
    if x.dtype.is_complex or x.dtype.is_bool:
        return None
    if _is(rewrite.constant(y), 1):
        return _keep(x)
    return _keep(y) if _is(rewrite.constant(x), 1) else None


@RULES.on("multiply")
def multiply_by_minus_one(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    x, y = inputs
    if not x.dtype.is_float:
        return None
    if _is(rewrite.constant(y), -1):
        return Call("negative", (x,), {})
    return Call("negative", (y,), {}) if _is(rewrite.constant(x), -1) else None


@RULES.on("add")
def add_negated(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    x, y = inputs
    if not x.dtype.is_float:
        return None
    second = rewrite.made_by(y, "negative")
    if second is not None:
        return Call("subtract", (x, second.inputs[0]), {})
    first = rewrite.made_by(x, "negative")
    return None if first is None else Call("subtract", (y, first.inputs[0]), {})


@RULES.on("multiply")
def multiply_negated(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    """Signs move out of products, where they cancel and what is left may be computed already: even functions
    of ``x`` and ``-x`` are one."""
    x, y = inputs
    if not (x.dtype.is_integer or x.dtype.is_float):
        return None
    first, second = rewrite.made_by(x, "negative"), rewrite.made_by(y, "negative")
    if first is None and second is None:
        return None
    product = (x if first is None else first.inputs[0], y if second is None else second.inputs[0])
    if first is not None and second is not None:
        return Call("multiply", product, {})
    return Call("negative", (rewrite.builder.emit("multiply", *product),), {})


@RULES.on("divide")
def divide_by_constant(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    """``x / 1`` is ``x``; dividing by a power of two is multiplying by its inverse, exactly."""
    x, y = inputs
    number = rewrite.constant(y)
    if not x.dtype.is_float or not isinstance(number, float):
        return None
    if number == 1.0:
        return _keep(x)
    if x.dtype.name not in ("float32", "float64") or number == 0 or not math.isfinite(number):
        return None
    mantissa, exponent = math.frexp(number)
    if abs(mantissa) != 0.5 or abs(exponent) > 100:
        return None
    return Call("multiply", (x, rewrite.full_like(y, 1.0 / number)), {})


@RULES.on("add")
def add_nothing(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    """``x + 0`` for integers, ``x + -0.0`` for floats (``-0.0 + 0.0`` is ``0.0``)."""
    x, y = inputs
    if not (x.dtype.is_integer or x.dtype.is_float):
        return None
    nothing = -0.0 if x.dtype.is_float else 0
    if _is(rewrite.constant(y), nothing):
        return _keep(x)
    return _keep(y) if _is(rewrite.constant(x), nothing) else None


@RULES.on("subtract")
def subtract_nothing(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    x, y = inputs
    if not (x.dtype.is_integer or x.dtype.is_float):
        return None
    return _keep(x) if _is(rewrite.constant(y), 0.0) else None


@RULES.on("power")
def power_by_constant(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    """Powers 1 and 2, which NumPy's own fast paths compute as a copy and a product."""
    x, y = inputs
    if not (x.dtype.is_integer or x.dtype.is_float):
        return None
    number = rewrite.constant(y)
    if _is(number, 1):
        return _keep(x)
    return Call("multiply", (x, x), {}) if _is(number, 2) else None


@RULES.on_all(lambda row: row.is_involution)
def involution_twice(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    inner = rewrite.made_by(inputs[0], rewrite.op)
    # logical_not only where its argument is bool already
    if inner is None or inner.inputs[0].dtype != inputs[0].dtype:
        return None
    return _keep(inner.inputs[0])


@RULES.on("abs")
def abs_of_negated(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    inner = rewrite.made_by(inputs[0], "negative")
    return None if inner is None or inputs[0].dtype.is_complex else Call("abs", inner.inputs, params)


@RULES.on("abs")
def abs_of_abs(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    inner = rewrite.made_by(inputs[0], "abs")
    return None if inner is None or inputs[0].dtype.is_complex else _keep(inputs[0])


@RULES.on("maximum", "minimum", "fmax", "fmin")
def extreme_of_itself(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    return _keep(inputs[0]) if inputs[0] == inputs[1] else None


@RULES.on("where")
def where_is_decided(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    condition, x, y = inputs
    if x == y:
        return _keep(x)
    value = rewrite.constant(condition)
    if value is None:
        return None
    return _keep(x if value else y)


@RULES.on("where")
def where_not(rewrite: Rewrite, inputs: tuple[Var, ...], params: dict[str, Any]) -> Any:
    condition, x, y = inputs
    inner = rewrite.made_by(condition, "logical_not")
    if inner is None or not inner.inputs[0].dtype.is_bool:
        return None
    return Call("where", (inner.inputs[0], y, x), params)
