"""Conversion between dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...dtypes import ALL, DType, float64
from ...graph.ir import ArrayType
from ...graph.noted import silently
from ..kit import (
    Array,
    require,
)
from ..layout import like
from ..opdef import WHERE_LOSSY, OpDef, Pointwise, Sample, Tolerance
from ..samples import layouts, special
from ..scalar import ScalarBuilder


def convert_meta(x: ArrayType, *, dtype: DType) -> ArrayType:
    require([x], ALL, "convert")
    return like(x, dtype)


def convert_ref(x: Array, *, dtype: DType) -> Array:
    with silently():
        if x.dtype.kind == "c" and not dtype.is_complex and not dtype.is_bool:
            x = x.real
        return x.astype(dtype.numpy)


def _convert(s: ScalarBuilder, x: object, *, dtype: DType) -> Any:
    return s.cast(x, dtype)


def convert_samples() -> Iterator[Sample]:
    """Every pair of dtypes on ordinary values, layouts on one pair, extremes where they are defined."""
    for source in ALL:
        for target in ALL:
            for label, array in layouts(source):
                if label in ("matrix", "0-d"):
                    yield Sample((array,), {"dtype": target}, f"{source}-{target}-{label}")
            if source.is_integer or source.is_bool or target.is_inexact or target.is_bool:
                yield Sample((special(source),), {"dtype": target}, f"{source}-{target}-special")
    for label, array in layouts(float64):
        yield Sample((array,), {"dtype": ALL[11]}, f"float64-{label}")


CONVERT = OpDef(
    "convert",
    ("dtype",),
    convert_meta,
    convert_ref,
    lower=Pointwise(_convert),
    samples=convert_samples,
    tolerance=Tolerance(0.0),
    doc="Elements converted to `dtype` as `ndarray.astype` does: a C cast (float to integer truncates; "
    "what does not fit is undefined as in NumPy), to bool by comparison with zero, complex to real drops "
    "the imaginary part.",
    exact=True,
    rounds={"fc": WHERE_LOSSY},
)


ROWS: tuple[OpDef, ...] = (CONVERT,)
