"""Creation ops: they have no array inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..device import CPU, Device
from ..dtypes import ALL, DType, bool_, complex128, float32, float64, int32, int64
from ..graph.ir import ArrayType, Literal, array_type
from ..symbolic.integers import Dim, SymInt
from .kit import Array, check_axis
from .opdef import NEVER, ONCE, Constant, OpDef, Pointwise, Sample, Tolerance
from .scalar import ScalarBuilder

Shape = tuple[Dim, ...]


def _scalar(s: ScalarBuilder, value: object, dtype: DType) -> Any:
    if isinstance(value, SymInt):
        return s.cast(s.emit("symbol", (), int64, value), dtype)
    return s.const(value, dtype)


def full_meta(*, shape: Shape, value: object, dtype: DType, device: Device = CPU) -> ArrayType:
    return array_type(dtype, tuple(shape), device)


def full_ref(*, shape: Shape, value: object, dtype: DType, device: Device = CPU) -> Array:
    return np.full(shape, np.asarray(value).astype(dtype.numpy), dtype.numpy)


def _full(s: ScalarBuilder, *, shape: Shape, value: object, dtype: DType, device: Device = CPU) -> Any:
    return _scalar(s, value, dtype)


def iota_meta(*, shape: Shape, axis: int, dtype: DType, device: Device = CPU) -> ArrayType:
    check_axis(axis, len(shape), "iota")
    return array_type(dtype, tuple(shape), device)


def iota_ref(*, shape: Shape, axis: int, dtype: DType, device: Device = CPU) -> Array:
    line = np.arange(shape[axis]).astype(dtype.numpy)  # type: ignore[arg-type]
    column = line.reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return np.broadcast_to(column, shape).copy(order="C")  # type: ignore[arg-type]


def _iota(s: ScalarBuilder, *, shape: Shape, axis: int, dtype: DType, device: Device = CPU) -> Any:
    return s.cast(s.index(axis), dtype)


def empty_meta(*, shape: Shape, dtype: DType, device: Device = CPU) -> ArrayType:
    return array_type(dtype, tuple(shape), device)


def empty_ref(*, shape: Shape, dtype: DType, device: Device = CPU) -> Array:
    return np.zeros(shape, dtype.numpy)


def _empty(s: ScalarBuilder, *, shape: Shape, dtype: DType, device: Device = CPU) -> Any:
    return s.const(0, dtype)


def constant_meta(*, literal: Literal, device: Device = CPU) -> ArrayType:
    return array_type(literal.dtype, literal.shape, device)


def constant_ref(*, literal: Literal, device: Device = CPU) -> Array:
    return literal.to_numpy()


def symint_meta(*, expr: Dim, dtype: DType, device: Device = CPU) -> ArrayType:
    return array_type(dtype, (), device)


def symint_ref(*, expr: Dim, dtype: DType, device: Device = CPU) -> Array:
    return np.asarray(expr).astype(dtype.numpy)


def _symint(s: ScalarBuilder, *, expr: Dim, dtype: DType, device: Device = CPU) -> Any:
    return _scalar(s, expr, dtype)


# -- samples ----------------------------------------------------------------------------------
_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (0,), (7,), (3, 4), (2, 0, 3), (1000, 37))


def full_samples() -> Iterator[Sample]:
    for dtype in ALL:
        for shape in _SHAPES[:5]:
            value: Any = True if dtype.is_bool else 3 if not dtype.is_inexact else 2.5
            yield Sample((), {"shape": shape, "value": value, "dtype": dtype}, f"{dtype}-{shape}")
    for value in (np.inf, -np.inf, np.nan, -0.0):
        yield Sample((), {"shape": (3,), "value": value, "dtype": float64}, f"float64-{value}")
    yield Sample((), {"shape": (2,), "value": 1 + 2j, "dtype": complex128}, "complex128-complex")
    yield Sample((), {"shape": (2,), "value": -(2**63), "dtype": int64}, "int64-least")


def iota_samples() -> Iterator[Sample]:
    for dtype in ALL:
        if dtype is bool_:
            continue
        for shape in _SHAPES[1:]:
            for axis in range(len(shape)):
                if shape[axis] < 100:
                    yield Sample(
                        (), {"shape": shape, "axis": axis, "dtype": dtype}, f"{dtype}-{shape}-{axis}"
                    )
    yield Sample((), {"shape": (1000, 37), "axis": 0, "dtype": float32}, "large")


def empty_samples() -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample((), {"shape": shape, "dtype": float64}, f"{shape}")


def constant_samples() -> Iterator[Sample]:
    for dtype in ALL:
        for shape in ((), (3,), (0,), (2, 3)):
            values = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype.numpy)
            yield Sample((), {"literal": Literal.of(values, dtype)}, f"{dtype}-{shape}")
    special = np.array([np.nan, -0.0, np.inf, 5e-324])
    yield Sample((), {"literal": Literal.of(special, float64)}, "special")


def symint_samples() -> Iterator[Sample]:
    for dtype in (int64, int32, float64, float32):
        yield Sample((), {"expr": 12345, "dtype": dtype}, f"{dtype}")


ROWS: tuple[OpDef, ...] = (
    OpDef(
        "full",
        ("shape", "value", "dtype", "device"),
        full_meta,
        full_ref,
        lower=Pointwise(_full),
        samples=full_samples,
        tolerance=Tolerance(0.0),
        doc="Every element is the Python scalar `value` (which may be a symbolic integer).",
        free=True,
        rounds={"fc": NEVER},
    ),
    OpDef(
        "iota",
        ("shape", "axis", "dtype", "device"),
        iota_meta,
        iota_ref,
        lower=Pointwise(_iota),
        samples=iota_samples,
        tolerance=Tolerance(0.0),
        doc="Every element is its own position along `axis`.",
        free=True,
        rounds={"f": ONCE},
    ),
    OpDef(
        "empty",
        ("shape", "dtype", "device"),
        empty_meta,
        empty_ref,
        lower=Pointwise(_empty),
        samples=empty_samples,
        doc="Contents unspecified: only for values that are written before they are read "
        "(the reference gives zeros).",
        free=True,
        rounds={"fc": NEVER},
    ),
    OpDef(
        "constant",
        ("literal", "device"),
        constant_meta,
        constant_ref,
        lower=Constant(),
        samples=constant_samples,
        tolerance=Tolerance(0.0),
        doc="The array that `literal` holds.",
        free=True,
        rounds={"fc": NEVER},
    ),
    OpDef(
        "symint",
        ("expr", "dtype", "device"),
        symint_meta,
        symint_ref,
        lower=Pointwise(_symint),
        samples=symint_samples,
        tolerance=Tolerance(0.0),
        doc="The value of a symbolic integer as a 0-d array.",
        free=True,
        rounds={"fc": NEVER},
    ),
)
