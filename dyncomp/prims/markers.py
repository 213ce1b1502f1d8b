"""Markers: nodes that ask for a derivative of what is around them in the graph, or for it for a whole batch.

Capture emits them for ``dyncomp.grad`` and its like in captured code; ``aot_autograd/expand.py`` replaces
them before anything else looks at the graph. Variables are copies that the graph makes itself, so that a
derivative by them is one of what comes behind. What is made of elements of a batch is never computed: it says
what is to be computed for the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ..dtypes import ALL
from ..errors import NotBatchableError
from ..graph.ir import ArrayType, Ops, Var, array_type
from ..symbolic.integers import Dim
from .kit import Array
from .opdef import Extern, Marker, OpDef, Sample, Tolerance, View
from .shape_samples import copy_samples

# A derivative of values by variables, in reverse and in forward mode.
GRADIENT, TANGENT = "gradient", "tangent"
# The same in reverse mode, by what the variables hold where the marker is.
PRESENT = "present_gradient"
# The begin and the end of what is computed again where its derivative is, and what comes after a cotangent.
BEGIN = "checkpoint_begin"
END = "checkpoint_end"
AFTER = "after"
# The same as a view, which keeps kernels apart.
LATE = "late"
# The view through which no derivative goes, and the marker that derivatives go through in their own way.
STOP = "stop_gradient"
CUSTOM = "custom_gradient"
# The same, but derivatives of the gradients go through the marked values.
FUNCTION = "custom_function"
# An element of a batch, and values for the whole batch.
ELEMENT, BATCH = "element", "batch"

Types = tuple[ArrayType, ...]


def _plain(type: ArrayType) -> ArrayType:
    return array_type(type.dtype, type.shape, type.device)


def _check_like(given: Types, wanted: Types, what: str) -> None:
    for one, other in zip(given, wanted, strict=True):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            raise ValueError(f"a {what} of type {one} for a value of type {other}")


def gradient_meta(*types: ArrayType, outputs: int) -> Types:
    _check_like(types[outputs : 2 * outputs], types[:outputs], "cotangent")
    return tuple(map(_plain, types[2 * outputs :]))


def tangent_meta(*types: ArrayType, outputs: int) -> Types:
    rest = types[outputs:]
    _check_like(rest[: len(rest) // 2], rest[len(rest) // 2 :], "tangent")
    return tuple(map(_plain, types[:outputs]))


def custom_meta(*types: ArrayType, outputs: int) -> Types:
    _check_like(types[outputs : 2 * outputs], types[:outputs], "cotangent")
    rest = types[2 * outputs :]
    _check_like(rest[: len(rest) // 2], rest[len(rest) // 2 :], "gradient")
    return types[:outputs]


def function_meta(*types: ArrayType, outputs: int) -> Types:
    return types if len(types) == outputs else custom_meta(*types, outputs=outputs)


def element_meta(whole: ArrayType) -> ArrayType:
    if not whole.shape:
        raise ValueError("a batch needs a dimension")
    return ArrayType(whole.dtype, whole.shape[1:], whole.strides[1:], whole.device)


def batch_meta(*types: ArrayType, outputs: int, size: Dim) -> Types:
    return tuple(array_type(t.dtype, (size, *t.shape), t.device) for t in types[:outputs])


def end_meta(*types: ArrayType, number: int) -> Types:
    return types


def after_meta(x: ArrayType, y: ArrayType) -> ArrayType:
    return _plain(x)


def after_ref(x: Array, y: Array) -> Array:
    return np.array(x, order="C")


def after_vjp(
    ops: Ops, cts: Sequence[Var], inputs: Sequence[Var], outputs: Sequence[Var]
) -> tuple[Var | None, ...]:
    return cts[0], None


def after_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Sequence[Var], outputs: Sequence[Var]
) -> Var | None:
    return tangents[0]


def end_jvp(
    ops: Ops, tangents: Sequence[Var | None], inputs: Sequence[Var], outputs: Sequence[Var], *, number: int
) -> tuple[Var | None, ...]:
    return tuple(tangents)


def after_samples() -> Iterator[Sample]:
    for sample in copy_samples():
        yield Sample((*sample.args, np.zeros(2)), {}, sample.label)


def _is_no_value(*arrays: object, **params: Any) -> NoReturn:
    raise TypeError("a marker is replaced before a graph runs")


ROWS = (
    OpDef(
        GRADIENT,
        ("outputs",),
        gradient_meta,
        _is_no_value,
        lower=Marker(variables=lambda count, outputs: count - 2 * outputs),
        dtypes=ALL,
        no_derivative="it is replaced by what it asks for",
        doc="Of `outputs` values, as many cotangents, and variables: the gradients by the variables.",
    ),
    OpDef(
        PRESENT,
        ("outputs",),
        gradient_meta,
        _is_no_value,
        lower=Marker(),
        dtypes=ALL,
        no_derivative="it is replaced by what it asks for",
        doc="As `gradient`, by variables that may have been written to: by what they hold now. The values "
        "are not made of what they held before.",
    ),
    OpDef(
        TANGENT,
        ("outputs",),
        tangent_meta,
        _is_no_value,
        lower=Marker(variables=lambda count, outputs: (count - outputs) // 2),
        dtypes=ALL,
        no_derivative="it is replaced by what it asks for",
        doc="Of `outputs` values, a tangent for each variable, and the variables: the values' tangents.",
    ),
    OpDef(
        CUSTOM,
        ("outputs",),
        custom_meta,
        _is_no_value,
        lower=Marker(),
        dtypes=ALL,
        no_derivative="a function with a custom_vjp has none in forward mode",
        doc="Of `outputs` values, a stand-in for the cotangent of each, gradients made of the stand-ins, and "
        "what they are gradients by: the values, with these gradients.",
    ),
    OpDef(
        FUNCTION,
        ("outputs",),
        function_meta,
        _is_no_value,
        lower=Marker(),
        dtypes=ALL,
        no_derivative="a function with a backward of its own has none in forward mode",
        doc="As `custom_gradient`; what comes after the first stand-in sees, in the place of the values, "
        "those of the marker: a second derivative goes through it again. Of values alone: these values.",
    ),
    OpDef(
        ELEMENT,
        (),
        element_meta,
        _is_no_value,
        lower=Marker(),
        dtypes=ALL,
        no_derivative="it is replaced by what it asks for",
        doc="An element of a batch, which is axis 0 of the input: any one, in code that is to run for all.",
    ),
    OpDef(
        BATCH,
        ("outputs", "size"),
        batch_meta,
        _is_no_value,
        lower=Marker(
            lambda count, outputs, size: count - outputs,
            NotBatchableError,
            "a function under vmap writes into an argument that it is mapped over",
        ),
        dtypes=ALL,
        no_derivative="it is replaced by what it asks for",
        doc="Of `outputs` values, and elements of a batch of `size`: the values for each element, in axis 0.",
    ),
    OpDef(
        BEGIN,
        ("number",),
        lambda *types, number: (),
        _is_no_value,
        lower=Marker(),
        dtypes=ALL,
        no_derivative="it has no value",
        doc="What follows, up to the `checkpoint_end` of this number, is computed again for its derivative. "
        "Its inputs are inputs of the graph that are written there, and written again then.",
    ),
    OpDef(
        END,
        ("number",),
        end_meta,
        _is_no_value,
        lower=Marker(),
        jvp=end_jvp,
        dtypes=ALL,
        no_derivative="it is replaced by what it asks for",
        doc="Its inputs, which are results of what began at the `checkpoint_begin` of this number, and "
        "behind them what the inputs of that one hold then.",
    ),
    OpDef(
        AFTER,
        (),
        after_meta,
        after_ref,
        lower=Extern(),
        vjp=after_vjp,
        jvp=after_jvp,
        samples=after_samples,
        tolerance=Tolerance(eps=0.0),
        dtypes=ALL,
        doc="The first input, not before the second one is there: nor is what is made of it.",
    ),
    OpDef(
        LATE,
        (),
        lambda x, y: x,
        lambda x, y: x.view(),
        lower=View(lambda x, index: tuple(index), ""),
        vjp=after_vjp,
        jvp=after_jvp,
        samples=after_samples,
        tolerance=Tolerance(eps=0.0),
        dtypes=ALL,
        doc="The first input: what is made of it is made behind the kernels before this node.",
    ),
)
