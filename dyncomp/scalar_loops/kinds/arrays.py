"""Arrays in generated code: elements read and written, rows, sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dataclass import dataclass
from ..code import draws
from ..code.arithmetic import convert
from ..code.block import Block
from ..code.walk import Stop
from . import complexes, lists, texts
from .kinds import (
    BOOL,
    FLOAT,
    INT,
    LARGEST_AXIS,
    ArrayDetail,
    Kind,
    TupleValue,
    Value,
    array_kind,
    method_kind,
)
from .positions import position


@dataclass(frozen=True)
class Parts:
    """The C variables of an array by their meaning."""

    data: str
    sizes: tuple[str, ...]
    strides: tuple[str, ...]
    object: str
    path: tuple[str, ...]


def parts_of(array: Value) -> Parts:
    detail: ArrayDetail = array.kind.detail
    n = detail.ndim
    strides = array.parts[1 + n : 1 + 2 * n - detail.dense]
    if detail.dense:
        strides = (*strides, str(detail.scalar.detail.itemsize))
    place = 1 + 2 * n - detail.dense
    sizes = array.parts[1 : 1 + n]
    if detail.last:
        sizes = (*sizes[:-1], f"{detail.last}LL")
    return Parts(array.parts[0], sizes, strides, array.parts[place], array.parts[place + 1 :])


def sizes(array: Value) -> tuple[str, ...]:
    """The lengths of its axes in C."""
    return parts_of(array).sizes


def element(b: Block, value: Value, index: list[Value]) -> Value:
    """``value[index]``: a NumPy scalar, or a view of the axes that are left."""
    if value.kind.family == "list" and len(index) == 1:
        return lists.element(b, value, index[0])
    if value.kind.family in ("text", "bytes") and len(index) == 1:
        return texts.element(b, value, index[0])
    if value.kind.family != "array":
        raise Stop(f"an item of {value.kind}")
    detail: ArrayDetail = value.kind.detail
    parts, at, taken = _locate(b, value, index)
    if len(index) < detail.ndim:
        if len(index) != 1:
            raise Stop("a view of an array")
        return _row(b, value, parts, at, taken[0])
    return _loaded(b, detail.scalar, at)


def _loaded(b: Block, scalar: Kind, at: str) -> Value:
    if scalar.family == "complex":
        return complexes.load(b, at)
    return b.new(scalar, f"LOAD({scalar.parts[0][1]}, {at})")


def element_at(b: Block, value: Value, count: Value) -> Value:
    """The item at a position within bounds: a NumPy scalar or a row."""
    parts = parts_of(value)
    at = f"{parts.data} + {count.text} * {parts.strides[0]}"
    detail: ArrayDetail = value.kind.detail
    if detail.ndim > 1:
        return _row(b, value, parts, at, count.text)
    return _loaded(b, detail.scalar, at)


def _row(b: Block, value: Value, parts: Parts, at: str, index: str) -> Value:
    detail: ArrayDetail = value.kind.detail
    code, ndim = detail.scalar.code, detail.ndim - 1
    kind = array_kind(code, ndim, detail.writeable, detail.dense, detail.path + "i", detail.last)
    strides = parts.strides[1 : detail.ndim - detail.dense]
    held = (b.temp("char*", at), *parts.sizes[1:], *strides, parts.object, *parts.path, index)
    return Value(kind, held)


def _locate(b: Block, value: Value, index: list[Value]) -> tuple[Parts, str, list[str]]:
    """The address of an element, and its index with negative positions counted from the end."""
    parts = parts_of(value)
    if len(index) > value.kind.detail.ndim:
        raise Stop("too many indices")
    taken, terms = [], [parts.data]
    for axis, at in enumerate(index):
        text = position(b, value, parts.sizes[axis], axis, at)
        taken.append(text)
        terms.append(f"{text} * {parts.strides[axis]}")
    return parts, " + ".join(terms), taken


def is_place(target: Value, index: list[Value]) -> bool:
    """Whether an index leads to a number of an array."""
    numbers = all(i.kind.family in ("int", "numpy") for i in index)
    return target.kind.family == "array" and target.kind.detail.ndim == len(index) and numbers


def store(b: Block, target: Value, index: list[Value], value: Value) -> None:
    """``target[index] = value`` for one element."""
    if target.kind.family == "list" and len(index) == 1:
        lists.store(b, target, index[0], value)
        return
    if target.kind.family == "bytes" and len(index) == 1:
        texts.store(b, target, index[0], value)
        return
    if target.kind.family != "array":
        raise Stop(f"an item of {target.kind} is assigned")
    detail: ArrayDetail = target.kind.detail
    if not detail.writeable:
        raise Stop("the array is read-only")
    if len(index) < detail.ndim:
        raise Stop("a part of an array is assigned")
    _, at, _ = _locate(b, target, index)
    if detail.scalar.family == "complex":
        if b.scope.parent is not None:
            raise Stop("a function that writes complex numbers")
        complexes.store(b, at, value)
        return
    text = cast(b, value, detail.scalar)
    if b.scope.parent is not None:
        at = b.note_change(at, detail.scalar.detail.itemsize)
    b.line(f"STORE({detail.scalar.parts[0][1]}, {at}, {text});")


def cast(b: Block, value: Value, scalar: Kind) -> str:
    """A number as NumPy puts it into an array."""
    ctype, dtype, kind = scalar.parts[0][1], scalar.detail, value.kind
    if kind.family not in ("int", "float", "bool", "numpy"):
        raise Stop(f"{kind} is put into an array")
    is_float = kind == FLOAT or (kind.family == "numpy" and kind.detail.kind == "f")
    if kind.code == scalar.code:
        return value.text
    if ctype == "bool":
        return f"({value.text} != 0)"
    if ctype == "float" and is_float:
        fits = f"is_finite((double)(float){value.text}) || !is_finite({value.text})"
        b.check(fits, "a number too large for float32, of which NumPy warns")
        return f"(float){value.text}"
    if dtype.kind == "f":
        return (
            f"(float)(double){value.text}"
            if kind in (INT, BOOL) and ctype == "float"
            else f"({ctype}){value.text}"
        )
    if is_float:
        low, high = _float_limits(dtype.itemsize * 8, dtype.kind == "i")
        b.check(f"{value.text} > {low} && {value.text} < {high}", f"a number that is no {dtype}")
        return f"({ctype}){value.text}"
    if kind == INT:
        return convert(b, value, scalar)
    if kind.family == "numpy" and kind.detail.kind in "iu" and dtype.kind == "i":
        _check_fits(b, value, dtype)  # into unsigned numbers NumPy wraps its own
    return f"({ctype}){value.text}"


def _check_fits(b: Block, value: Value, dtype: Any) -> None:
    """Whether one of NumPy's integers is one of ``dtype``, which is signed."""
    found, wanted = np.iinfo(value.kind.detail), np.iinfo(dtype)
    if found.min < wanted.min:
        b.check(f"{value.text} >= {wanted.min}LL", f"a number too small for {dtype}")
    if found.max > wanted.max:
        b.check(
            f"{value.text} <= {wanted.max}{'ULL' if found.min == 0 else 'LL'}",
            f"a number too large for {dtype}",
        )


def _float_limits(bits: int, signed: bool) -> tuple[str, str]:
    """The doubles just beyond those that fit into an integer of so many bits when cut to whole numbers."""
    if not signed:
        return "-1.0", f"{float(2**bits)!r}"
    low = float(-(2 ** (bits - 1)))
    below = low - 1 if bits < 54 else low
    return f"{below!r}", f"{float(2 ** (bits - 1))!r}"


def attribute(b: Block, value: Value, name: str) -> Value:
    """``value.name``."""
    if value.kind.family in _WITH_METHODS:
        return _WITH_METHODS[value.kind.family].attribute(b, value, name)
    if value.kind == INT and name in ("bit_length", "bit_count"):
        return Value(method_kind(value.kind, name), value.parts, None, value.low, value.high)
    if value.kind.family == "vector" and name == "sum":
        return Value(method_kind(value.kind, name), value.parts)
    if value.kind.family != "array":
        raise Stop(f"the attribute {name} of {value.kind}")
    detail: ArrayDetail = value.kind.detail
    parts = parts_of(value)
    if name == "shape":
        return _sizes(parts.sizes)
    if name == "dtype":
        return b.walker.constant(detail.scalar.detail)
    if name == "ndim":
        return b.walker.constant(detail.ndim)
    if name == "size":
        return b.new(INT, " * ".join(parts.sizes) or "1", 0)
    if name in ("copy", "item") or name in ("sum", "min", "max"):
        return Value(method_kind(value.kind, name), value.parts)
    raise Stop(f"the attribute {name} of an array")


_WITH_METHODS: dict[str, Any] = {"list": lists, "generator": draws, "complex": complexes}
_WITH_LENGTHS: dict[str, Any] = {"list": lists, "text": texts, "bytes": texts}


def length(b: Block, value: Value) -> Value:
    """``len(value)``."""
    if value.kind.family in _WITH_LENGTHS:
        return _WITH_LENGTHS[value.kind.family].length(b, value)
    if value.kind.family == "vector":
        return b.walker.constant(len(value.parts))
    if value.kind.family == "char":
        return b.walker.constant(1)
    if value.kind.family == "array" and value.kind.detail.ndim:
        return _size(parts_of(value).sizes[0])
    if value.kind.family == "tuple":
        return b.walker.constant(len(value.kind.detail))
    raise Stop(f"the length of {value.kind}")


def _size(text: str) -> Value:
    return Value(INT, (text,), None, 0, LARGEST_AXIS)


def _sizes(sizes: tuple[str, ...]) -> Value:
    return TupleValue([_size(text) for text in sizes])
