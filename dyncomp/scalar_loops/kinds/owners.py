"""Who holds arrays and lists in generated code.

The local that one is assigned to owns a reference, as does each other local that holds one meanwhile: what is
let go of goes at once. What is left over at the end is written behind the results (``render``), and released
when these have been made into objects.
"""

from __future__ import annotations

from ..code.block import Block
from ..code.walk import Walker, clean
from . import lists
from .kinds import Kind, Unowned, Value

_MARK = "@own"


def note_store(b: Block, slot: str, value: Value | None) -> None:
    """A local of the loop's function is given ``value``, or nothing."""
    if b.scope.parent is not None:
        return
    if b.walker.subject.makes_lists:
        b.age += lists.GONE
    owned = "0"
    address = None if value is None else _address(value)
    if value is not None and address is not None:
        is_new = isinstance(value, Unowned)
        owned = f"(char*)({address})" if is_new else f"kept({address})"
        if is_new:  # from now on it has a name
            b.env[slot] = Value(value.kind, value.parts, value.fact, value.low, value.high)
        b.walker.array_slots[slot] = None
    elif value is not None and _has_object(value.kind):
        b.walker.holds_parts = True
    shared = any(_has_object(held.kind) for held in b.stack)
    b.line(f"{_MARK} {slot} {shared:d} {owned}")


def drop(b: Block, value: Value) -> None:
    """No local gets ``value`` after all."""
    if isinstance(value, Unowned):
        b.line(f"Py_DecRef((char*)({_address(value)}));")


def _address(value: Value) -> str | None:
    """What is to be kept while a local holds ``value``: it, or what it is a part of."""
    if value.kind.family == "array":
        return value.parts[[suffix for suffix, _ in value.kind.parts].index("_id")]
    if value.kind.family == "list":
        return f"(i64){value.parts[0]}" if not value.kind.detail.depth else value.parts[1]
    if value.kind.family == "tuple" and value.kind.code[0] == "P":
        return value.parts[-1 - int(value.kind.code[1])]
    return None


def _has_object(kind: Kind) -> bool:
    """Whether a value of this kind reads an array or a list that it does not keep."""
    if kind.family == "tuple":
        return kind.code[0] == "P" or any(map(_has_object, kind.detail))
    if kind.family == "iter":
        return kind.detail.source is not None and _has_object(kind.detail.source)
    if kind.family == "source":
        return any(map(_has_object, kind.detail[1]))
    return kind.family in ("array", "list", "method")


def own_name(slot: str) -> str:
    """The variable with the reference that a local owns."""
    return f"{clean(slot)}_$own"


def resolved(walker: Walker, lines: list[str]) -> list[str]:
    """Lines as they are in C; the owners are known now."""
    found = []
    for line in lines:
        if not line.startswith(_MARK):
            found.append(line)
            continue
        _, slot, _, owned = line.split(" ", 3)
        if walker.makes_arrays and slot in walker.array_slots:
            found.append(f"own(&{own_name(slot)}, {owned});")
    return found


def lets_go_too_early(walker: Walker) -> bool:
    """Whether a local lets go of an array or a list while something on the stack, or a tuple, reads one."""
    if walker.makes_arrays and walker.holds_parts:
        return True
    lines = (line for version in walker.versions.values() for line in version.lines)
    marks = (line.split(" ", 3) for line in lines if line.startswith(_MARK))
    return walker.makes_arrays and any(
        slot in walker.array_slots and shared == "1" for _, slot, shared, _ in marks
    )
