"""Lists of numbers, and lists of such lists, in generated code: CPython's own objects, read and
written in place.

Of which type the items are is guessed from the first one; where an item is of another, generated code leaves.
"""

from __future__ import annotations

from .arithmetic import bounds
from .block import Block
from .kinds import BOOL, COMPLEX, FLOAT, INT, LARGEST_AXIS, ListDetail, Value, list_kind, method_kind
from .walk import Stop

_MADE = {
    INT: "PyLong_FromLongLong", FLOAT: "PyFloat_FromDouble", BOOL: "PyBool_FromLong",
    COMPLEX: "PyComplex_FromDoubles",
}  # fmt: skip


def length(b: Block, value: Value) -> Value:
    return b.new(INT, f"LIST({value.parts[0]})->size", 0, LARGEST_AXIS)


def element(b: Block, value: Value, index: Value) -> Value:
    """``value[index]``."""
    return item_at(b, value, _position(b, value, index))


def item_at(b: Block, value: Value, position: str) -> Value:
    """The item at a position within bounds."""
    detail: ListDetail = value.kind.detail
    if detail.item is None:
        raise Stop("an item of a list that was empty")
    item = b.temp("char*", f"LIST({value.parts[0]})->items[{position}]")
    kind = detail.item
    if kind.family == "list":
        b.check(f"TYPE({item}) == &PyList_Type", "an item of another type")
        inner = list_kind(kind.detail.item, detail.depth + 1)
        return Value(inner, (item, *value.parts[1:], position))
    names = tuple(b.walker.temp(ctype) for _, ctype in kind.parts)
    places = ", ".join(f"&{name}" for name in names)
    b.check(f"item_{kind.family}({item}, {places})", "an item of another type")
    return Value(kind, names)


def _position(b: Block, value: Value, index: Value) -> str:
    if index.kind.family == "numpy" and index.kind.detail.kind in "iu" and index.kind.code != "u8":
        index = b.new(INT, f"(i64){index.text}")
    if index.kind != INT:
        raise Stop(f"an index of type {index.kind}")
    text, low = index.text, bounds(index)[0]
    size = b.temp("i64", f"LIST({value.parts[0]})->size")
    if low < 0:
        text = b.temp("i64", f"{text} < 0 ? {text} + {size} : {text}")
    b.check(f"(u64){text} < (u64){size}", "an index out of range")
    return text


def store(b: Block, target: Value, index: Value, value: Value) -> None:
    """``target[index] = value`` where what was there is a number, too."""
    if value.kind not in _MADE:
        raise Stop(f"{value.kind} is put into a list")
    position = _position(b, target, index)
    old = b.temp("char*", f"LIST({target.parts[0]})->items[{position}]")
    b.check(f"is_plain_number({old})", "an item of another type is replaced")
    made = b.temp("char*", f"{_MADE[value.kind]}({', '.join(value.parts)})")
    b.check(f"{made} != 0", "no memory")
    b.line(f"LIST({target.parts[0]})->items[{position}] = {made};")
    b.line(f"Py_DecRef({old});")


def attribute(b: Block, value: Value, name: str) -> Value:
    if name != "append":
        raise Stop(f"the attribute {name} of a list")
    return Value(method_kind(value.kind, name), value.parts)


def append(b: Block, target: Value, value: Value) -> None:
    """``target.append(value)``. No loop goes over a list meanwhile."""
    if value.kind not in _MADE or b.scope.parent is not None:
        raise Stop(f"{value.kind} is appended to a list")
    for held in b.stack:
        if held.kind.family == "iter" and held.kind.detail.source is not None and "list" in held.kind.code:
            raise Stop("a list grows in a loop over a list")
    made = b.temp("char*", f"{_MADE[value.kind]}({', '.join(value.parts)})")
    b.check(f"{made} != 0", "no memory")
    b.line(f"if (unlikely(PyList_Append({target.parts[0]}, {made}))) {{ PyErr_Clear(); Py_DecRef({made});")
    b.line(f"goto {b.leave_label('no memory')}; }}")
    b.line(f"Py_DecRef({made});")
