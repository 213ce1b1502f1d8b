"""Strings and bytes in generated code: single characters and bytes of them, read in place."""

from __future__ import annotations

from ..code.block import Block
from ..code.walk import Stop
from .kinds import BOOL, CHAR, INT, LARGEST_AXIS, Value
from .positions import position

_CTYPE = {1: "u8", 2: "u16", 4: "u32"}
_LARGEST = 0x10FFFF


def is_text(value: Value) -> bool:
    """Whether it is a string, or one character."""
    kind = value.kind
    return kind.family in ("char", "text") or (kind.family == "constant" and type(kind.detail) is str)


def length(b: Block, value: Value) -> Value:
    return Value(INT, (value.parts[1],), None, 0, LARGEST_AXIS)


def element(b: Block, value: Value, index: Value) -> Value:
    """``value[index]``."""
    return item_at(b, value, position(b, value, value.parts[1], 0, index))


def item_at(b: Block, value: Value, at: str) -> Value:
    """The item at a position within bounds: a character, or an int of a byte."""
    data = value.parts[0]
    if value.kind.family == "bytes":
        return b.new(INT, f"((u8*){data})[{at}]", 0, 255)
    return b.new(CHAR, f"((const {_CTYPE[value.kind.detail]}*){data})[{at}]", 0, _LARGEST)


def compare(b: Block, op: str, left: Value, right: Value) -> Value:
    """Two characters by their numbers; whether a string is a character."""
    x, y = _code(left), _code(right)
    if x is not None and y is not None:
        return b.new(BOOL, f"{x} {op} {y}", 0, 1)
    if op not in ("==", "!="):
        raise Stop("an order of strings")
    if x is None:
        x, y, left, right = y, x, right, left
    if x is None:
        raise Stop("a comparison of strings")
    if right.kind.family == "constant":
        return b.walker.constant(op == "!=")  # of no character, or of several
    data, size = right.parts[:2]
    same = f"{size} == 1 && *(const {_CTYPE[right.kind.detail]}*){data} == {x}"
    return b.new(BOOL, same if op == "==" else f"!({same})", 0, 1)


def binary(b: Block, op: str, left: Value, right: Value) -> Value:
    raise Stop(f"{op} of strings")


def _code(value: Value) -> str | None:
    """The number of a character in C; None of other strings."""
    if value.kind.family == "char":
        return value.text
    if value.kind.family == "constant" and len(value.kind.detail) == 1:
        return f"{ord(value.kind.detail)}LL"
    return None


def contains(b: Block, container: Value, value: Value, negated: bool) -> Value:
    """``value in container`` for a character and a string that is known."""
    x = _code(value)
    if x is None or container.kind.family != "constant":
        raise Stop("a search in a string")
    found = " || ".join(f"{x} == {ord(char)}" for char in dict.fromkeys(container.kind.detail)) or "false"
    return b.new(BOOL, f"!({found})" if negated else found, 0, 1)


def number(b: Block, value: Value) -> Value:
    """``ord(value)``."""
    x = _code(value)
    if x is None:
        raise Stop("ord of a string")
    return b.new(INT, x, 0, _LARGEST)


def character(b: Block, value: Value) -> Value:
    """``chr(value)``."""
    if value.kind != INT:
        raise Stop(f"chr of {value.kind}")
    b.check(f"(u64){value.text} <= {_LARGEST}", "no character")
    return b.new(CHAR, value.text, 0, _LARGEST)


def store(b: Block, target: Value, index: Value, value: Value) -> None:
    """``target[index] = value`` in a bytearray."""
    if not target.kind.detail or value.kind not in (INT, BOOL):
        raise Stop(f"{value.kind} is put into {target.kind}")
    at = position(b, target, target.parts[1], 0, index)
    b.check(f"(u64){value.text} < 256", "a number that is no byte")
    b.line(f"((u8*){target.parts[0]})[{at}] = (u8){value.text};")
