"""Element types, independent of any array library.

A :class:`DType` is interned: compare with ``is`` or ``==``. Names are NumPy's, plus ``bfloat16``.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .dataclass import dataclass


@dataclass(eq=False, frozen=True, slots=True)
class DType:
    """An element type: ``name``, ``kind`` (one of ``"bool"``, ``"int"``, ``"uint"``, ``"float"``,
    ``"complex"``) and ``itemsize`` in bytes. Compared by identity."""

    name: str
    kind: str
    itemsize: int

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"dtypes.{self.name}" if self.name != "bool" else "dtypes.bool_"

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name, (self.name,)

    @property
    def bits(self) -> int:
        return self.itemsize * 8

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned integer (not bool)."""
        return self.kind in ("int", "uint")

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_inexact(self) -> bool:
        return self.kind in ("float", "complex")

    @property
    def real(self) -> DType:
        """The type of the real part of a complex type; itself for the others."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype (native byte order)."""
        return _numpy_dtype(self.name)


@functools.cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


bool_ = DType("bool", "bool", 1)
int8 = DType("int8", "int", 1)
int16 = DType("int16", "int", 2)
int32 = DType("int32", "int", 4)
int64 = DType("int64", "int", 8)
uint8 = DType("uint8", "uint", 1)
uint16 = DType("uint16", "uint", 2)
uint32 = DType("uint32", "uint", 4)
uint64 = DType("uint64", "uint", 8)
float16 = DType("float16", "float", 2)
bfloat16 = DType("bfloat16", "float", 2)
float32 = DType("float32", "float", 4)
float64 = DType("float64", "float", 8)
complex64 = DType("complex64", "complex", 8)
complex128 = DType("complex128", "complex", 16)

ALL: tuple[DType, ...] = (
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
INTEGERS = tuple(d for d in ALL if d.is_integer)
FLOATS = tuple(d for d in ALL if d.is_float)
BY_NAME: dict[str, DType] = {d.name: d for d in ALL}


def by_name(name: str) -> DType:
    """The element type of that name; ``KeyError`` if there is none."""
    return BY_NAME[name]


def from_numpy(dtype: Any) -> DType | None:
    """The :class:`DType` of a NumPy dtype, or ``None`` where dyncomp has none (object, structured,
    string, datetime, longdouble, longlong beside long, or a byte order that is not the machine's)."""
    dtype = np.dtype(dtype)
    if not dtype.isnative or dtype.fields is not None or dtype.subdtype is not None:
        return None
    found = BY_NAME.get(dtype.name)
    # of long and long long, distinct NumPy types of one width and name, only NumPy's default one
    return found if found is None or dtype.num == found.numpy.num else None
