"""Data attributes of arrays and scalars."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import Unsupported
from ...symbolic.integers import Dim, product
from ..base import ArrayRef, TraceContext, part_shown
from .math_functions import imag_part, real_part
from .numpy_rules import RuleTable
from .operands import IN_MEMORY
from .shape import matrix_transpose, transpose

TABLE = RuleTable()


@TABLE.attribute("shape")
def shape(tx: TraceContext, x: ArrayRef) -> tuple[Dim, ...]:
    return x.shape


@TABLE.attribute("ndim")
def ndim(tx: TraceContext, x: ArrayRef) -> int:
    return x.ndim


@TABLE.attribute("size")
def size(tx: TraceContext, x: ArrayRef) -> Dim:
    return product(x.shape)


@TABLE.attribute("dtype")
def dtype(tx: TraceContext, x: ArrayRef) -> Any:
    return x.dtype.numpy


if hasattr(np.ndarray, "device"):  # from NumPy 2.1

    @TABLE.attribute("device")
    def device(tx: TraceContext, x: object) -> str:
        return "cpu"


@TABLE.attribute("itemsize")
def itemsize(tx: TraceContext, x: ArrayRef) -> int:
    return x.dtype.itemsize


@TABLE.attribute("nbytes")
def nbytes(tx: TraceContext, x: ArrayRef) -> Dim:
    return product(x.shape) * x.dtype.itemsize


@TABLE.attribute("strides")
def strides(tx: TraceContext, x: ArrayRef) -> tuple[Dim, ...]:
    """In bytes, as NumPy's."""
    if part_shown(tx.builder, x.var) is not None:
        raise Unsupported(IN_MEMORY)
    return tuple(s * x.dtype.itemsize for s in x.strides)


@TABLE.attribute("T")
def transposed(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    return transpose(tx, x)


@TABLE.attribute("mT")
def matrix_transposed(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    return matrix_transpose(tx, x)


@TABLE.attribute("real")
def real(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    return real_part(tx, x)


@TABLE.attribute("imag")
def imag(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    return imag_part(tx, x)
