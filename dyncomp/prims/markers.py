"""Markers: nodes that ask for a derivative of what is around them in the graph.

Capture emits them for ``dyncomp.grad`` and its like in captured code; ``aot_autograd/expand.py`` replaces
them before anything else looks at the graph. Variables are copies that the graph makes itself, so that a
derivative by them is one of what comes behind.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..dtypes import ALL
from ..graph.ir import ArrayType, array_type
from .opdef import Marker, OpDef

# The view through which no derivative goes, and the marker that derivatives go through in their own way.
STOP = "stop_gradient"
CUSTOM = "custom_gradient"

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


def _is_no_value(*arrays: object, **params: Any) -> NoReturn:
    raise TypeError("a marker is replaced before a graph runs")


ROWS = (
    OpDef(
        "gradient",
        ("outputs",),
        gradient_meta,
        _is_no_value,
        lower=Marker(variables=lambda count, outputs: count - 2 * outputs),
        dtypes=ALL,
        no_derivative="it is replaced by what it asks for",
        doc="Of `outputs` values, as many cotangents, and variables: the gradients by the variables.",
    ),
    OpDef(
        "tangent",
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
)
