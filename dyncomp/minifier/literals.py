"""Arguments as expressions for scripts."""

from __future__ import annotations

import base64
import io
import zlib
from typing import Any

import numpy as np

from ..errors import DyncompError
from .case import Array

_SPELLED_OUT = 64  # elements of arrays that are written as numbers


class CannotWrite(DyncompError):
    """What fails cannot be written down as a file of its own; the text says why."""


def literal(value: object) -> str:
    """A value as an expression."""
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({_item(value.item())})"
    if isinstance(value, (float, complex)):
        return _item(value)
    if isinstance(value, (int, str, bool, type(None), bytes, slice)):
        return repr(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        inner = ", ".join(map(literal, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if type(value) is dict:
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    raise CannotWrite(f"an argument of type {type(value).__qualname__} cannot be written as an expression")


def _item(value: Any) -> str:
    text = repr(value)
    return (
        text
        if "nan" not in text and "inf" not in text
        else f"complex({text!r})"
        if "j" in text
        else f"float({text!r})"
    )


def _array(value: Array) -> str:
    name = value.dtype.name
    dtype = f'"{name}"' if name != "bfloat16" else "ml_dtypes.bfloat16"
    if value.dtype.kind not in "biufc":
        raise CannotWrite(f"an array of dtype {value.dtype} cannot be written as an expression")
    flat = np.array(value, order="C")
    if value.size and (flat == flat.reshape(-1)[0]).all() and value.size > 1:
        made = f"np.full({value.shape!r}, {_item(flat.reshape(-1)[0].item())}, {dtype})"
    elif value.size <= _SPELLED_OUT:
        items = _nested(flat)
        made = f"np.array({items}, {dtype})"
        if 0 in value.shape:
            made = f"np.empty({value.shape!r}, {dtype})"
    else:
        made = f"unpacked({_packed(flat)!r})"
    strides = tuple(value.strides)
    if value.size > 1 and strides != flat.strides:
        made = f"laid_out({made}, {strides!r})"
    return made


def _nested(value: Array) -> str:
    if value.ndim == 0:
        return _item(value.item())
    return "[" + ", ".join(_nested(np.asarray(part)) for part in value) + "]"


def _packed(value: Array) -> str:
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    return base64.b85encode(zlib.compress(file.getvalue(), 9)).decode()
