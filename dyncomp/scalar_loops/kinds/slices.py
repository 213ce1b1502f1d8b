"""Views of arrays by slices in generated code: ``a[i, :]``, ``a[1:]``, ``a[i:j:2] = 0``, ``a[i].sum()``.

Bounds are adjusted as ``PySlice_AdjustIndices`` does, and sums are NumPy's pairwise summation
(``loops_utils.h.src``), so that they have its bits.
"""

from __future__ import annotations

from ..code import arithmetic
from ..code.arithmetic import is_number
from ..code.block import Block
from ..code.walk import Stop
from . import arrays
from .kinds import INT, NP_FLOAT, ArrayDetail, Value, array_kind, items_of, slice_kind


def build(b: Block, items: list[Value]) -> Value:
    """``slice(start, stop)``, with a step or without."""
    for item in items:
        if item.kind.family not in ("none", "int"):
            raise Stop(f"a slice from {item.kind}")
    step: int | None = 1
    if len(items) == 3 and items[2].kind == INT:
        step = items[2].constant
        if step is None:
            b.check(f"{items[2].text} > 0 && {items[2].text} < {2**31}LL", "a slice with a step below 1")
        elif not 0 < step < 2**20:
            raise Stop(f"a slice with the step {step}")
    kind = slice_kind([item.kind for item in items], step or 0)
    return Value(kind, tuple(part for item in items for part in item.parts))


def is_slice(index: Value) -> bool:
    """Whether an index is a slice, or a tuple with one in it."""
    items = items_of(index) if index.kind.family == "tuple" else [index]
    return any(_is_one(item) for item in items)


def _is_one(value: Value) -> bool:
    return value.kind.family == "slice" or _is_all(value)


def _is_all(value: Value) -> bool:
    """Whether it is ``:``."""
    kind = value.kind
    if kind.family == "constant":
        return type(kind.detail) is slice and kind.detail == slice(None)
    return kind.family == "slice" and all(k.family == "none" for k in kind.detail[0])


def view(b: Block, value: Value, index: Value) -> Value:
    """``value[index]``: an index or a slice of the first axis, and all of the others."""
    if value.kind.family != "array" or value.kind.detail.ndim < 1:
        raise Stop(f"a slice of {value.kind}")
    first, *others = items_of(index) if index.kind.family == "tuple" else [index]
    if not all(map(_is_all, others)) or len(others) >= value.kind.detail.ndim:
        raise Stop("a view of an array")
    if not _is_one(first):
        return arrays.element(b, value, [first])
    if first.kind.family != "slice":
        raise Stop("a slice that is a constant")
    return _cut(b, value, first)


def _bound(b: Block, item: Value, size: str, otherwise: str) -> str:
    if item.kind.family == "none":
        return otherwise
    low, high = arithmetic.bounds(item)
    text = item.text
    if low < 0:
        text = b.temp("i64", f"{text} < 0 ? {text} + {size} : {text}" if high >= 0 else f"{text} + {size}")
        text = b.temp("i64", f"{text} < 0 ? 0 : {text}")
    return b.temp("i64", f"{text} > {size} ? {size} : {text}")


def _cut(b: Block, value: Value, index: Value) -> Value:
    detail: ArrayDetail = value.kind.detail
    items, known = index.kind.detail
    found, at = [], 0
    for kind in items:
        found.append(Value(kind, index.parts[at : at + len(kind.parts)], None))
        at += len(kind.parts)
    step = f"{known}LL" if known else found[2].text
    parts = arrays.parts_of(value)
    size = parts.sizes[0]
    start = _bound(b, found[0], size, "0LL")
    stop = _bound(b, found[1], size, size)
    count = b.temp("i64", f"{stop} > {start} ? ({stop} - {start} + {step} - 1) / {step} : 0")
    data = b.temp("char*", f"{parts.data} + {start} * {parts.strides[0]}")
    end = b.temp("i64", f"{start} + {count} * {step}")
    dense = detail.dense and (detail.ndim > 1 or known == 1)
    last = detail.last if detail.ndim > 1 else 0
    kind = array_kind(detail.scalar.code, detail.ndim, detail.writeable, dense, detail.path + "s", last)
    strides = [b.temp("i64", f"{parts.strides[0]} * {step}"), *parts.strides[1:]]
    held = (data, count, *parts.sizes[1:], *strides[: detail.ndim - dense], parts.object, *parts.path)
    return Value(kind, (*held, start, end, step))


def store(b: Block, target: Value, index: Value, value: Value) -> None:
    """``target[index] = value`` for a number, or an array of one dimension with the same type."""
    if not target.kind.family == "array" or not target.kind.detail.writeable:
        raise Stop(f"a slice of {target.kind} is assigned")
    place = view(b, target, index)
    detail: ArrayDetail = place.kind.detail
    if detail.ndim != 1 or detail.scalar.family != "numpy":
        raise Stop("a part of an array is assigned")
    parts, scalar = arrays.parts_of(place), detail.scalar
    ctype = scalar.parts[0][1]
    if is_number(value):
        text = b.temp(ctype, arrays.cast(b, value, scalar))
        b.line(f"fill<{ctype}>({parts.data}, {parts.sizes[0]}, {parts.strides[0]}, {text});")
        return
    source = value.kind.detail
    if value.kind.family != "array" or source.ndim != 1 or source.scalar != scalar or not source.dense:
        raise Stop(f"{value.kind} is put into a part of an array")
    if not detail.dense:
        raise Stop("an array is put into a part of an array with gaps")
    other = arrays.parts_of(value)
    b.check(f"{parts.sizes[0]} == {other.sizes[0]}", "arrays of several lengths")
    b.line(f"__builtin_memmove({parts.data}, {other.data}, {parts.sizes[0]} * {scalar.detail.itemsize});")


def total(b: Block, value: Value) -> Value:
    """``value.sum()`` of doubles along the one dimension."""
    detail = value.kind.detail
    if value.kind.family != "array" or detail.ndim != 1 or detail.scalar != NP_FLOAT:
        raise Stop(f"the sum of {value.kind}")
    parts = arrays.parts_of(value)
    return b.new(NP_FLOAT, f"0.0 + pairwise_sum({parts.data}, {parts.sizes[0]}, {parts.strides[0]})")


PRELUDE = """\
template <typename T> static inline void fill(char* data, i64 size, i64 stride, T value) {
  if (stride == sizeof(T)) {
    for (i64 i = 0; i < size; i++) STORE(T, data + i * (i64)sizeof(T), value);
  } else {
    for (i64 i = 0; i < size; i++) STORE(T, data + i * stride, value);
  }
}
static double pairwise_sum(const char* data, i64 size, i64 stride) {
  if (size < 8) {
    double found = 0.0;
    for (i64 i = 0; i < size; i++) found += LOAD(double, data + i * stride);
    return found;
  }
  if (size <= 128) {
    double r[8];
    for (int k = 0; k < 8; k++) r[k] = LOAD(double, data + k * stride);
    i64 i = 8;
    for (; i < size - size % 8; i += 8)
      for (int k = 0; k < 8; k++) r[k] += LOAD(double, data + (i + k) * stride);
    double found = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < size; i++) found += LOAD(double, data + i * stride);
    return found;
  }
  i64 half = size / 2;
  half -= half % 8;
  return pairwise_sum(data, half, stride) + pairwise_sum(data + half * stride, size - half, stride);
}
"""
DEFINED = ("fill<", "pairwise_sum(")
