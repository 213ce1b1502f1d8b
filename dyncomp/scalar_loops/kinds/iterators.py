"""What ``for`` goes over: ranges, arrays, tuples, ``enumerate`` and ``zip``.

All of them are counters; a *source* says what the item for a count is. Of a plain range it is the number
itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..code.block import Block
from ..code.walk import Stop
from . import arrays, lists, texts
from .kinds import (
    INT,
    LARGEST,
    IterDetail,
    TupleValue,
    Value,
    items_of,
    iter_kind,
    source_kind,
)

UP = IterDetail(1, 1, True, None)


def held_iterator(b: Block, value: Value) -> Value:
    """The iterator over ``value``, in the variables of the stack's next slot."""
    if value.kind.family == "range":
        detail, texts = _range(b, value)
    else:
        source = source_of(b, value)
        detail = UP._replace(source=source.kind)
        texts = ["0LL", length(b, source), "1LL", *source.parts]
    detail = _unrolled(b, detail, texts)
    held = b.walker.stack_value(len(b.stack), Value(iter_kind(detail), ()))
    # the parts of the source may be variables of a slot that is written here
    copies = (
        [b.temp(ctype, text) for text, (_, ctype) in zip(texts, held.kind.parts)] if detail.source else texts
    )
    for name, text in zip(held.parts, copies):
        b.line(f"{name} = {text};")
    return held


def _range(b: Block, value: Value) -> tuple[IterDetail, list[str]]:
    detail: IterDetail = value.kind.detail
    start, stop, step = value.parts[:3]
    _check_small(b, (start, stop, step))
    end = stop if detail.step == 1 else f"range_end({start}, {stop}, {detail.step or step})"
    return detail, [start, end, step]


def _unrolled(b: Block, detail: IterDetail, texts: Sequence[str]) -> IterDetail:
    """Where the loop is to be unrolled its first number and its end are part of the state."""
    start, end = map(_number, texts[:2])
    if b.index + 1 not in b.scope.facts.unrolled or not detail.step or start is None or end is None:
        return detail
    count = len(range(start, end, detail.step))
    return detail._replace(known=(start, start + count * detail.step))


def _number(text: str) -> int | None:
    """What a literal says."""
    digits = text.removesuffix("LL")
    return int(digits) if digits != text and digits.lstrip("-").isdecimal() else None


def _check_small(b: Block, texts: Sequence[str]) -> None:
    unknown = [text for text in texts if not text.endswith("LL")]
    if unknown:
        bound = " && ".join(f"{text} > -{LARGEST}LL && {text} < {LARGEST}LL" for text in unknown)
        b.check(bound, "a range of large numbers")


# -- sources ------------------------------------------------------------------------------------------------
def source_of(b: Block, value: Value) -> Value:
    """What gives the items of ``value``."""
    family = value.kind.family
    if family == "source":
        return value
    if family == "array" and value.kind.detail.ndim:
        return Value(source_kind("array", value.kind), value.parts)
    if family in ("text", "bytes"):
        return Value(source_kind(family, value.kind), value.parts)
    if family == "list" and value.kind.detail.item is not None:
        return Value(source_kind("list", value.kind), value.parts)
    if family == "tuple" and len(set(value.kind.detail)) == 1:
        return Value(source_kind("items", value.kind), value.parts)
    if family == "range":
        _check_small(b, value.parts[:3])
        return Value(source_kind("range", value.kind), value.parts)
    raise Stop(f"iteration over {value.kind}")


def enumerated(b: Block, value: Value, start: Value) -> Value:
    _check_small(b, [start.text])
    source = source_of(b, value)
    zero = start.constant == 0
    kind = source_kind("enumerate0" if zero else "enumerate", source.kind)
    return Value(kind, (start.text, *source.parts))


def zipped(b: Block, values: Sequence[Value]) -> Value:
    sources = [source_of(b, value) for value in values]
    kind = source_kind("zip", *(source.kind for source in sources))
    return Value(kind, tuple(part for source in sources for part in source.parts))


def length(b: Block, source: Value) -> str:
    """How many items there are."""
    what, inner = source.kind.detail
    if what in ("array", "text", "bytes"):
        return source.parts[1]
    if what == "list":
        return b.temp("i64", f"LIST({source.parts[0]})->size")
    if what == "items":
        return f"{len(inner[0].detail)}LL"
    if what == "range":
        start, stop, step = source.parts[:3]
        return b.temp("i64", f"(range_end({start}, {stop}, {step}) - {start}) / {step}")
    lengths = [length(b, value) for value in _children(source)]
    shortest = lengths[0]
    for other in lengths[1:]:
        shortest = b.temp("i64", f"{other} < {shortest} ? {other} : {shortest}")
    return shortest


def _children(source: Value) -> list[Value]:
    what, inner = source.kind.detail
    at = int(what.startswith("enumerate"))
    found = []
    for kind in inner:
        found.append(Value(kind, source.parts[at : at + len(kind.parts)]))
        at += len(kind.parts)
    return found


def item(b: Block, source: Value, count: Value) -> Value:
    """The item number ``count``, which is within bounds."""
    what, inner = source.kind.detail
    if what == "array":
        return arrays.element_at(b, Value(inner[0], source.parts), count)
    if what in ("text", "bytes"):
        return texts.item_at(b, Value(inner[0], source.parts), count.text)
    if what == "list":
        return lists.item_at(b, Value(inner[0], source.parts), count.text)
    if what == "items":
        return _select(b, items_of(Value(inner[0], source.parts)), count)
    if what == "range":
        start, _, step = source.parts[:3]
        return b.new(INT, f"{start} + {count.text} * {step}", -LARGEST, LARGEST)
    items = [item(b, value, count) for value in _children(source)]
    if what == "enumerate0":
        items.insert(0, count)
    elif what == "enumerate":
        items.insert(0, b.new(INT, f"{source.parts[0]} + {count.text}", -LARGEST, 2 * LARGEST))
    return TupleValue(items)


def _select(b: Block, items: list[Value], count: Value) -> Value:
    """One of several values of a kind."""
    parts = []
    for k, (_, ctype) in enumerate(items[0].kind.parts):
        chosen = items[-1].parts[k]
        for number in range(len(items) - 2, -1, -1):
            chosen = f"{count.text} == {number} ? {items[number].parts[k]} : {chosen}"
        parts.append(b.temp(ctype, chosen))
    found = Value(items[0].kind, tuple(parts))
    if found.kind == INT:
        constants = [value.constant for value in items]
        known = [c for c in constants if c is not None]
        if len(known) == len(items):
            found.low, found.high = min(known), max(known)
    return found
