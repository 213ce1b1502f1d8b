"""Data attributes of arrays and scalars."""

from __future__ import annotations

from typing import Any

from ...errors import Unsupported
from ...symint import Dim, product
from ..base import ArrayRef, TraceContext
from .math_functions import imag_part, real_part
from .rules import RuleTable
from .shape import matrix_transpose, transpose

TABLE = RuleTable()


def _needs_array(x: ArrayRef, name: str) -> None:
    if x.kind == "python" and name not in ("real", "imag"):
        raise Unsupported(f"a Python number has no attribute {name!r}")


@TABLE.attribute("shape")
def shape(tx: TraceContext, x: ArrayRef) -> tuple[Dim, ...]:
    _needs_array(x, "shape")
    return x.shape


@TABLE.attribute("ndim")
def ndim(tx: TraceContext, x: ArrayRef) -> int:
    _needs_array(x, "ndim")
    return x.ndim


@TABLE.attribute("size")
def size(tx: TraceContext, x: ArrayRef) -> Dim:
    _needs_array(x, "size")
    return product(x.shape)


@TABLE.attribute("dtype")
def dtype(tx: TraceContext, x: ArrayRef) -> Any:
    _needs_array(x, "dtype")
    return x.dtype.numpy


@TABLE.attribute("itemsize")
def itemsize(tx: TraceContext, x: ArrayRef) -> int:
    _needs_array(x, "itemsize")
    return x.dtype.itemsize


@TABLE.attribute("nbytes")
def nbytes(tx: TraceContext, x: ArrayRef) -> Dim:
    _needs_array(x, "nbytes")
    return product(x.shape) * x.dtype.itemsize


@TABLE.attribute("strides")
def strides(tx: TraceContext, x: ArrayRef) -> tuple[Dim, ...]:
    """In bytes, as NumPy's."""
    _needs_array(x, "strides")
    return tuple(s * x.dtype.itemsize for s in x.strides)


@TABLE.attribute("T")
def transposed(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    _needs_array(x, "T")
    return transpose(tx, x)


@TABLE.attribute("mT")
def matrix_transposed(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    _needs_array(x, "mT")
    return matrix_transpose(tx, x)


@TABLE.attribute("real")
def real(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    return real_part(tx, x)


@TABLE.attribute("imag")
def imag(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    return imag_part(tx, x)
