"""What values given at entry are in generated code: their kinds and the values of their parts."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...hook._hook import text_of
from ...python_code.loops import UNBOUND
from ..code.draws import kind_of_generator
from ..kinds.kinds import (
    BYTES,
    COMPLEX,
    KIND_OF_TYPE,
    LARGEST,
    LARGEST_AXIS,
    MOST_AXES,
    NP_COMPLEX,
    NUMPY,
    OPAQUE,
    SHORT,
    TEXTS,
    UNBOUND_KIND,
    IterDetail,
    Kind,
    array_kind,
    given_tuple_kind,
    iter_kind,
    list_kind,
    progress,
    range_kind,
    source_kind,
    tuple_kind,
)

Described = tuple[Kind, tuple[Any, ...]]
RANGE_ITERATOR = type(iter(range(0)))
_MOST_ITEMS = 16


def describe(value: object, given: list[Any]) -> Described:
    """Kind and parts of ``value``, which becomes the next of the objects ``given``."""
    number = len(given)
    given.append(value)
    found = _DESCRIBE.get(type(value))
    return found(value, number) if found is not None else (OPAQUE, (number,))


def describe_iterator(value: object, given: list[Any]) -> Described:
    """The same for an iterator; what it iterates over becomes one of the objects, too."""
    if type(value) not in (*_OF_SEQUENCE, enumerate, zip):
        return describe(value, given)
    number = len(given)
    given.append(value)
    return _iterator(value, number, given)


def _number(kind: Kind) -> Callable[[Any, int], Described]:
    def found(value: object, number: int) -> Described:
        return kind, (value,)

    return found


def _int(value: Any, number: int) -> Described:
    if -(2**63) <= value < 2**63:
        return KIND_OF_TYPE[int], (value,)
    return OPAQUE, (number,)


def _truth(value: object, number: int) -> Described:
    return KIND_OF_TYPE[np.bool_], (bool(value),)


def _complex(kind: Kind) -> Callable[[Any, int], Described]:
    def found(value: Any, number: int) -> Described:
        return kind, (float(value.real), float(value.imag))

    return found


def _none(value: object, number: int) -> Described:
    return KIND_OF_TYPE[type(None)], ()


def _unbound(value: object, number: int) -> Described:
    return UNBOUND_KIND, ()


def _array(value: Any, number: int) -> Described:
    code = _code_of(value.dtype)
    if code is None:
        return OPAQUE, (number,)
    shape, strides = value.shape, value.strides
    ndim = len(shape)
    if ndim > MOST_AXES or (shape and max(shape) > LARGEST_AXIS):
        return OPAQUE, (number,)
    dense = ndim > 0 and strides[-1] == value.itemsize
    last = shape[-1] if ndim and 0 < shape[-1] <= SHORT else 0
    kind = _array_kind(code, ndim, value.flags.writeable, dense, "", last)
    return kind, (
        value.__array_interface__["data"][0],
        *shape,
        *(strides[:-1] if dense else strides),
        id(value),
    )


_array_kind = functools.cache(array_kind)


@functools.cache
def _code_of(dtype: np.dtype[Any]) -> str | None:
    code = dtype.str[1:]
    return code if dtype.isnative and code in NUMPY and dtype.type is NUMPY[code].detail.type else None


_range_kind = functools.cache(range_kind)
_iter_kind = functools.cache(iter_kind)


def _range(value: Any, number: int) -> Described:
    start, stop, step = value.start, value.stop, value.step
    if max(abs(start), abs(stop), abs(step)) >= 2**62:
        return OPAQUE, (number,)
    return _range_kind(progress(step, start)), (start, stop, step, number)


def _range_iterator(value: Any, number: int) -> Described:
    _, (rest,), position = value.__reduce__()
    if position:
        rest = rest[position:]
    start, step = rest.start, rest.step
    stop = start + len(rest) * step
    if max(abs(start), abs(stop), abs(step)) >= LARGEST:
        return OPAQUE, (number,)
    return _iter_kind(progress(step, start)), (start, stop, step)


_SEQUENCES: tuple[Any, ...] = (np.zeros(1), (), [], "a", "\u0100", b"")
_OF_SEQUENCE: tuple[Any, ...] = tuple(type(iter(sequence)) for sequence in _SEQUENCES)


def _iterator(value: object, number: int, given: list[Any]) -> Described:
    found = _source(value, given)
    if found is None:
        return OPAQUE, (number,)
    kind, parts, position, end = found
    detail = IterDetail(1, 1, True, None, kind)
    return _iter_kind(detail), (position, end, 1, *parts)


def _source(value: object, given: list[Any]) -> tuple[Kind, tuple[Any, ...], int, int] | None:
    """Source, parts, how many items it gave and how many it has; None where it is another's, or not known."""
    if type(value) in _OF_SEQUENCE:
        return _source_of_sequence(value, given)
    if type(value) is enumerate:
        reduced: Any = value.__reduce__()
        inner, count = reduced[1]
        if sys.getrefcount(inner) != _UNSHARED or type(count) is not int or abs(count) >= LARGEST:
            return None
        found = _source(inner, given)
        if found is None:
            return None
        kind, parts, position, end = found
        first = count - position
        what = "enumerate" if first else "enumerate0"
        return source_kind(what, kind), (first, *parts), position, end
    if type(value) is zip:
        return _source_of_zip(value, given)
    return None


def _source_of_zip(value: object, given: list[Any]) -> tuple[Kind, tuple[Any, ...], int, int] | None:
    reduced: Any = value.__reduce__()
    iterators = reduced[1]
    if len(reduced) != 2 or not iterators:
        return None  # a strict one
    found = []
    for k in range(len(iterators)):
        if sys.getrefcount(iterators[k]) != _UNSHARED_IN_ZIP:
            return None
        found.append(_source(iterators[k], given))
    sources = [source for source in found if source is not None]
    if len(sources) < len(found) or len({position for _, _, position, _ in sources}) > 1:
        return None
    kind = source_kind("zip", *(kind for kind, _, _, _ in sources))
    parts = tuple(part for _, parts, _, _ in sources for part in parts)
    return kind, parts, sources[0][2], min(end for _, _, _, end in sources)


def _source_of_sequence(value: Any, given: list[Any]) -> tuple[Kind, tuple[Any, ...], int, int] | None:
    reduced = value.__reduce__()
    if len(reduced) != 3:
        return None
    _, (sequence,), position = reduced
    kind, parts = describe(sequence, given)
    if kind.family == "array" and kind.detail.ndim:
        return source_kind("array", kind), parts, position, len(sequence)
    if kind.family in ("text", "bytes"):
        return source_kind(kind.family, kind), parts, position, len(sequence)
    if kind.family == "list" and kind.detail.item is not None:
        return source_kind("list", kind), parts, position, len(sequence)
    if kind.family == "tuple" and len(set(kind.detail)) == 1:
        return source_kind("items", kind), parts, position, len(sequence)
    return None


def _unshared() -> int:
    value = enumerate(iter(()))
    reduced: Any = value.__reduce__()
    _, (inner, count) = reduced
    return int(sys.getrefcount(inner) + count)


_UNSHARED = _unshared()
"""References to an iterator, as they are counted above, that only an ``enumerate`` object holds."""


def _unshared_in_zip() -> int:
    value: Any = zip(())
    iterators = value.__reduce__()[1]
    return sys.getrefcount(iterators[0])


_UNSHARED_IN_ZIP = _unshared_in_zip()


def advance(iterator: Any, steps: int) -> None:
    """Take ``steps`` items off an iterator over a range or a sequence."""
    position = iterator.__reduce__()[2] or 0
    iterator.__setstate__(position + steps)


CAN_ADVANCE = (RANGE_ITERATOR, *_OF_SEQUENCE)


_NOT_ITEMS = (np.bool_, np.complex128, type(None))
_ITEMS = {found: kind for found, kind in KIND_OF_TYPE.items() if found not in _NOT_ITEMS}
_DEEPEST = 3


@functools.cache
def _list_kind(item: Kind | None) -> Kind:
    return list_kind(item)


def _kind_of_list(value: list[Any], depth: int) -> Kind | None:
    if not value:
        return _list_kind(None)
    last = value[-1]
    if type(last) is list:
        item = _kind_of_list(last, depth + 1) if depth < _DEEPEST else None
    elif type(last) is tuple:
        item = _kind_of_tuple(last)
    else:
        item = _ITEMS.get(type(last))
    return None if item is None else _list_kind(item)


def _kind_of_tuple(value: tuple[Any, ...]) -> Kind | None:
    kinds = [_ITEMS.get(type(item)) for item in value[: _MOST_ITEMS + 1]]
    known = [kind for kind in kinds if kind is not None]
    return tuple_kind(known) if 0 < len(known) == len(value) else None


def _list(value: Any, number: int) -> Described:
    kind = _kind_of_list(value, 0)
    return (OPAQUE, (number,)) if kind is None else (kind, (id(value), id(value)))


def _tuple(value: Any, number: int) -> Described:
    if len(value) > _MOST_ITEMS:
        return OPAQUE, (number,)
    items = [describe(item, []) for item in value]
    if any(kind.family not in ("int", "float", "bool", "complex", "none", "numpy") for kind, _ in items):
        return OPAQUE, (number,)
    parts = (part for _, parts in items for part in parts)
    return given_tuple_kind([kind for kind, _ in items]), (*parts, number)


def _text(value: Any, number: int) -> Described:
    width, data, length = text_of(value)
    return TEXTS[width], (data, length, number)


def _bytes(value: Any, number: int) -> Described:
    width, data, length = text_of(value)
    return BYTES[width < 0], (data, length, number)


_DESCRIBE: dict[type, Callable[[Any, int], Described]] = {
    **{kind_type: _number(kind) for kind_type, kind in KIND_OF_TYPE.items()},
    int: _int,
    np.bool_: _truth,
    complex: _complex(COMPLEX),
    np.complex128: _complex(NP_COMPLEX),
    type(None): _none,
    type(UNBOUND): _unbound,
    np.ndarray: _array,
    range: _range,
    RANGE_ITERATOR: _range_iterator,
    tuple: _tuple,
    list: _list,
    str: _text,
    bytes: _bytes,
    bytearray: _bytes,
    np.random.Generator: kind_of_generator,
    np.random.RandomState: kind_of_generator,
}
