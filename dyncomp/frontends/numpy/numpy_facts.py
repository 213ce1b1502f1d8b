"""What guards check of a NumPy array or scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ..base import ArrayFacts

SCALAR_TYPES: tuple[type, ...] = (
    np.bool_,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
)
# np.longlong is a type of its own beside np.int64, known by name only: its arrays are left to NumPy
ARRAY_TYPES: tuple[type, ...] = (np.ndarray, *dict.fromkeys((*SCALAR_TYPES, np.longlong, np.ulonglong)))


def describe(obj: Any) -> ArrayFacts:
    """:class:`ArrayFacts` of an exact ``np.ndarray`` or a NumPy scalar; see ``Frontend.describe``."""
    if type(obj) is np.ndarray:
        return _describe_array(obj)
    if type(obj) in ARRAY_TYPES:
        return ArrayFacts("scalar", type(obj), supported_dtype(obj.dtype), (), ())
    if isinstance(obj, np.ndarray):
        raise Unsupported(f"{type(obj).__name__} is a subclass of numpy.ndarray", break_id="array-subclass")
    raise Unsupported(f"{type(obj).__name__} is not a NumPy array or scalar", break_id="array-type")


def supported_dtype(dtype: np.dtype[Any]) -> DType:
    """The element type of a NumPy dtype; raises ``Unsupported`` naming what is the matter with it."""
    found = dtypes.from_numpy(dtype)
    if found is not None:
        return found
    what = "structured arrays" if dtype.fields is not None else f"arrays of dtype {_name(dtype)}"
    raise Unsupported(f"{what} are not compiled", break_id="array-dtype")


def _name(dtype: np.dtype[Any]) -> str:
    if dtype.hasobject:
        return "object"
    if dtype.char in "qQ":
        return "longlong" if dtype.char == "q" else "ulonglong"
    if not dtype.isnative:
        return f"{dtype.name} in foreign byte order"
    return dtype.name


def _describe_array(array: np.ndarray[Any, Any]) -> ArrayFacts:
    dtype = supported_dtype(array.dtype)
    flags = array.flags
    return ArrayFacts(
        "array",
        np.ndarray,
        dtype,
        array.shape,
        _element_strides(array),
        aligned=flags.aligned,
        writeable=flags.writeable,
    )


def _element_strides(array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    itemsize = array.itemsize
    strides = []
    for stride in array.strides:
        if stride % itemsize:
            raise Unsupported(
                f"an array with strides {array.strides} bytes, not multiples of its {itemsize}-byte elements",
                break_id="array-strides",
            )
        strides.append(stride // itemsize)
    return tuple(strides)
