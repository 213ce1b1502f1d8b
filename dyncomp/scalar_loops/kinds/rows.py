"""Arithmetic on short rows of arrays in generated code: ``d = x[i] - x[j]``, ``v[i] += d * f``.

A row's length is part of its kind (``ArrayDetail.last``). What an operation makes is a *vector*, an array
whose elements are in variables of their own. No two names lead to one vector, so that it can be changed in
place: of what a local holds the kind says which local (``VectorDetail.slot``), and it is put into no other.
"""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np

from ..code import arithmetic
from ..code.arithmetic import is_number
from ..code.block import Block
from ..code.walk import Stop
from . import arrays
from .kinds import INT, NP_FLOAT, NUMPY, ArrayDetail, Kind, Value, VectorDetail, vector_kind

_IN_TURN = 200


def is_row(value: Value) -> bool:
    """Whether it is a vector, or an array of one dimension that is known to be as short."""
    detail = value.kind.detail
    if value.kind.family == "array":
        return bool(detail.ndim == 1 and detail.last and detail.scalar.family == "numpy")
    return value.kind.family == "vector"


def _scalar(value: Value) -> Kind:
    found: Kind = value.kind.detail.scalar
    return found


def elements(b: Block, value: Value) -> list[Value]:
    """The numbers of a row."""
    scalar = _scalar(value)
    if value.kind.family == "vector":
        return [Value(scalar, (part,)) for part in value.parts]
    detail: ArrayDetail = value.kind.detail
    parts = arrays.parts_of(value)
    ctype = scalar.parts[0][1]
    places = [f"{parts.data} + {k} * {parts.strides[0]}" for k in range(detail.last)]
    return [b.new(scalar, f"LOAD({ctype}, {at})") for at in places]


def _made(values: list[Value]) -> Value:
    """A new vector."""
    kinds = {value.kind for value in values}
    scalar = values[0].kind
    if len(kinds) > 1 or scalar.family != "numpy":
        raise Stop("a vector of numbers of several types")
    return Value(vector_kind(VectorDetail(scalar, len(values))), tuple(value.text for value in values))


# -- operators ----------------------------------------------------------------------------------------------
def binary(b: Block, op: str, left: Value, right: Value) -> Value:
    """``left op right`` where one of them is a row and the other a row or a number."""
    if op.endswith("=") and is_row(left):
        return _in_place(b, op[:-1], left, right)
    return _made(_combined(b, op.removesuffix("="), left, right))


def _combined(b: Block, op: str, left: Value, right: Value) -> list[Value]:
    if op not in ("+", "-", "*", "/"):
        raise Stop(f"{left.kind} {op} {right.kind}")
    sides = []
    for value in (left, right):
        if not is_row(value) and not is_number(value):
            raise Stop(f"{left.kind} {op} {right.kind}")
        sides.append(elements(b, value) if is_row(value) else [value])
    size = max(map(len, sides))
    if any(len(side) != size for side, value in zip(sides, (left, right)) if is_row(value)):
        raise Stop("rows of several lengths")
    x, y = (side if len(side) == size else side * size for side in sides)
    return [arithmetic.binary(b, op, first, second) for first, second in zip(x, y)]


def _in_place(b: Block, op: str, left: Value, right: Value) -> Value:
    """``left op= right``: the row itself, with other numbers in it."""
    if b.scope.parent is not None:
        raise Stop("a function that writes to arrays")
    values = _combined(b, op, left, right)
    if len(values) != len(elements(b, left)) or any(value.kind != _scalar(left) for value in values):
        raise Stop("a row that is changed into one of another type")
    return _written(b, left, [value.text for value in values])


def _written(b: Block, row: Value, texts: list[str]) -> Value:
    """Put numbers of its own type into a row."""
    if row.kind.family == "vector":
        return _change(b, row, texts)
    _check_writeable(row)
    parts, ctype = arrays.parts_of(row), _scalar(row).parts[0][1]
    for k, text in enumerate(texts):
        b.line(f"STORE({ctype}, {parts.data} + {k} * {parts.strides[0]}, {text});")
    return row


def _check_writeable(row: Value) -> None:
    if not row.kind.detail.writeable:
        raise Stop("the array is read-only")


def _change(b: Block, vector: Value, texts: list[str]) -> Value:
    """Other numbers for a vector: for the local that holds it, too."""
    slot = vector.kind.detail.slot
    if slot is None:
        return Value(vector.kind, tuple(texts))
    if slot not in b.env or b.env[slot].kind != vector.kind or is_on_stack(b, slot):
        raise Stop("a vector with several names")
    for name, text in zip(b.walker.slot_value(slot, vector.kind).parts, texts):
        b.line(f"{name} = {text};")
    found = Value(vector.kind, tuple(texts))
    b.env[slot] = found
    return found


def is_on_stack(b: Block, slot: str) -> bool:
    """Whether a vector of this local is on the stack."""
    return any(v.kind.family == "vector" and v.kind.detail.slot == slot for v in b.stack)


def unary(b: Block, op: str, value: Value) -> Value:
    """A sign."""
    if op != "UNARY_NEGATIVE":
        raise Stop(f"{op} of {value.kind}")
    return _made([arithmetic.unary(b, op, item) for item in elements(b, value)])


# -- locals -------------------------------------------------------------------------------------------------
def to_store(b: Block, slot: str, value: Value) -> Value:
    """A vector as the local ``slot`` holds it."""
    detail: VectorDetail = value.kind.detail
    if is_on_stack(b, slot) or (detail.slot is not None and detail.slot != slot):
        raise Stop("a second name for a vector")
    return Value(vector_kind(detail._replace(slot=slot)), value.parts)


def returned(b: Block, value: Value) -> Value:
    """A vector that leaves an inlined function: no local of that holds it any more."""
    slot = value.kind.detail.slot
    if slot is not None and slot.endswith(f"@{b.scope.number}"):
        return Value(vector_kind(value.kind.detail._replace(slot=None)), value.parts)
    return value


# -- elements -----------------------------------------------------------------------------------------------
def _place(value: Value, index: list[Value]) -> int:
    size = value.kind.detail.size
    at = index[0].constant if len(index) == 1 and index[0].kind == INT else None
    if at is None or not -size <= at < size:
        raise Stop("an element of a vector at a place that is not known")
    return at % size


def element(b: Block, value: Value, index: list[Value]) -> Value:
    """``vector[index]`` for a constant."""
    return Value(_scalar(value), (value.parts[_place(value, index)],))


def is_row_of(array: Value, index: Value) -> bool:
    """Whether one index leads to a row."""
    detail = array.kind.detail
    two = array.kind.family == "array" and detail.ndim == 2 and detail.last and index.kind.family != "tuple"
    return bool(two and detail.scalar.family == "numpy")


def store(b: Block, target: Value, index: list[Value], value: Value) -> None:
    """``vector[index] = value`` for a constant, ``array[index] = value`` for a row, a vector or a number."""
    if target.kind.family == "array":
        _store_row(b, arrays.element(b, target, index), value)
        return
    texts = list(target.parts)
    scalar = _scalar(target)
    texts[_place(target, index)] = b.temp(scalar.parts[0][1], arrays.cast(b, value, scalar))
    if target.kind.detail.slot is None:
        return  # nobody sees it
    _change(b, target, texts)


def _store_row(b: Block, row: Value, value: Value) -> None:
    scalar, size = _scalar(row), row.kind.detail.last
    values = elements(b, value) if is_row(value) else [value] * size
    if len(values) != size or (not is_row(value) and not is_number(value)):
        raise Stop(f"{value.kind} is put into a row")
    _check_writeable(row)
    ctype = scalar.parts[0][1]
    _written(b, row, [b.temp(ctype, arrays.cast(b, item, scalar)) for item in values])


# -- functions ----------------------------------------------------------------------------------------------
@functools.cache
def _dot_is_fused(size: int) -> bool | None:
    """Whether the BLAS that NumPy calls adds products of so few numbers in turn, and whether each is rounded
    first; None: neither."""
    rng = np.random.default_rng(size)
    pairs = rng.normal(size=(_IN_TURN, 2, size)) * 10.0 ** rng.integers(-3, 3, (_IN_TURN, 2, size))
    plain = fused = True
    for x, y in pairs:
        found = float(np.dot(x, y))
        total, joined = 0.0, 0.0
        for a, c in zip(x.tolist(), y.tolist()):
            total += a * c
            joined = _fused(a, c, joined)
        plain = plain and found == total
        fused = fused and found == joined
    return fused if plain != fused else None


def _fused(x: float, y: float, z: float) -> float:
    """``x * y + z`` rounded once."""
    return float(Fraction(x) * Fraction(y) + Fraction(z))


def dot(b: Block, x: Value, y: Value) -> Value:
    """``np.dot`` of two rows of doubles."""
    for value in (x, y):
        if not is_row(value) or _scalar(value) != NP_FLOAT:
            raise Stop(f"dot of {value.kind}")
        if value.kind.family == "array" and not value.kind.detail.dense:
            raise Stop("dot of a row with gaps")
    first, second = elements(b, x), elements(b, y)
    fused = _dot_is_fused(len(first))
    if len(first) != len(second) or (fused is None and len(first) > 1):
        raise Stop("dot of rows")
    total = "0.0"
    for a, c in zip(first, second):
        both = (
            f"__builtin_fma({a.text}, {c.text}, {total})"
            if fused
            else f"{total} + PRODUCT({a.text}, {c.text})"
        )
        total = b.temp("double", both)
    return Value(NP_FLOAT, (total,))


def norm(b: Block, x: Value) -> Value:
    """``np.linalg.norm`` of a row of doubles."""
    return b.new(NP_FLOAT, f"__builtin_sqrt({dot(b, x, x).text})")


def total(b: Block, x: Value) -> Value:
    """``x.sum()`` of a row of doubles: less than eight are added in turn."""
    if _scalar(x) != NP_FLOAT:
        raise Stop(f"the sum of {x.kind}")
    found = "0.0"
    for item in elements(b, x):
        found = b.temp("double", f"{found} + {item.text}")
    return Value(NP_FLOAT, (found,))


def zeros(b: Block, args: list[Value]) -> Value:
    """``np.zeros(n)`` of a few."""
    size = args[0].constant if len(args) == 1 and args[0].kind == INT else None
    if size is None or not 0 < size <= 4:
        raise Stop("a call of zeros")
    return _made([Value(NUMPY["f8"], ("0.0",))] * size)
