"""Where an index leads along an axis of an array, a string or bytes."""

from __future__ import annotations

from ..code.arithmetic import bounds
from ..code.block import Block
from ..code.walk import Stop
from .kinds import INT, Value


def position(b: Block, value: Value, size: str, axis: int, index: Value) -> str:
    """A position along an axis of this size, counted from its start."""
    kind = index.kind
    if kind.family == "numpy" and kind.detail.kind in "iu" and kind.code != "u8":
        number = Value(INT, (b.temp("i64", index.text),), None, 0 if kind.detail.kind == "u" else None)
    elif kind == INT:
        number = index
    else:
        raise Stop(f"an index of type {kind}")
    if b.within_bounds(value, axis, number):
        return number.text
    text = number.text
    low, high = bounds(number)
    if low >= 0 and b.is_below(number, size):
        return text
    if high < 0:
        text = b.temp("i64", f"{text} + {size}")
    elif low < 0:
        text = b.temp("i64", f"{text} < 0 ? {text} + {size} : {text}")
    b.check(f"(u64){text} < (u64){size}", "an index out of range")
    if low >= 0:
        b.note_below(number, size, 0)
    return text
