"""How values enter a compiled loop and come back from it in C (``csrc/loop_plan.c``).

A plan says of each value that the loop's function is given of which kind it must be, and how what comes back
is made into objects. Kinds that C does not know have no plan, or are made into objects by Python
(``LoopEntry.finish``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...hook._hook import LoopPlan
from ...python_code.loops import UNBOUND
from ..analysis.blocks import MOST_OF_SMALL
from ..code.block import PAUSED
from ..code.walk import Leave
from ..kinds.kinds import (
    BOOL,
    BYTES,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    NP_COMPLEX,
    UNBOUND_KIND,
    ConstantKind,
    Kind,
)

if TYPE_CHECKING:
    from .native_loop import NativeLoop, Program

AT_END, WITH_ITERATOR, OTHERWISE = 0, 1, 2
_PLAIN = {INT: "i", FLOAT: "f", BOOL: "b", NONE: "n"}
Input = tuple[int, str, Any, int, int, int, int]
Box = tuple[str, int, int]


def make_plan(
    native: NativeLoop, program: Program, ways: Mapping[int, int], changed: Sequence[str]
) -> LoopPlan | None:
    """The plan of a program of ``native``. ``ways``: numbers of the places where it is left; ``changed``: the
    locals that come back. ``None`` where it takes values that C does not know."""
    depth = len(program.stack_kinds)
    places = [*range(depth), *(depth + k for k in native.read)]
    kinds = [*program.stack_kinds, *(kind for _, kind in program.rendered.inputs)]
    inputs = [_input(place, kind, place < depth) for place, kind in zip(places, kinds)]
    for place, (slot, _) in enumerate(program.rendered.inputs, depth):
        if slot in program.known:
            number = program.known[slot]
            first, last = (1, MOST_OF_SMALL) if number is None else (number, number)
            inputs[place] = (places[place], "k", None, first, last, 0, 0)
    for less, array, axis in program.order:
        at = [depth + native.names.index(name) for name in (less, array)]
        inputs.append((at[0], "q", None, at[1], axis, 0, 0))
    known = tuple([found for found in inputs if found is not None])
    if len(known) < len(inputs):
        return None
    assumptions = tuple((a.holder, a.name, a.found) for a in program.assumptions)
    if any(isinstance(kind, ConstantKind) for output in program.outputs for kind, _, _ in output.places):
        return None  # a signal handler may let go of the object before it is put into the local
    outputs = tuple([_output(native, program, name, depth) for name in changed])
    header = native.subject.loop.header
    forms = [(leave, _form(leave, kinds, header)) for leave in program.rendered.leaves]
    leaves = tuple([(ways.get(leave.place, -1), form) for leave, form in forms])
    words = program.rendered.words
    owned = program.rendered.owned
    return LoopPlan(program, program.address, words, UNBOUND, known, assumptions, outputs, leaves, *owned)


def _input(place: int, kind: Kind, on_stack: bool) -> Input | None:
    """``None`` for what C does not know; of iterators it knows that of the loop itself, the first on the
    stack, which it moves on."""
    if kind in _PLAIN:
        return place, _PLAIN[kind], None, 0, 0, 0, 0
    if isinstance(kind, ConstantKind):
        return place, "u", kind.reference, 0, 0, 0, 0
    if kind == UNBOUND_KIND:
        return place, "u", UNBOUND, 0, 0, 0, 0
    detail = kind.detail
    if kind.family == "complex":
        is_numpy = kind == NP_COMPLEX
        return place, "z", detail.type if is_numpy else complex, int(is_numpy), 0, 0, 0
    if kind.family == "numpy":
        return place, "s", detail.type, detail.num, 0, 0, 0
    if kind.family == "array" and not detail.path:
        length = (detail.last + 1) << 1 if detail.last else 0
        return (
            place,
            "a",
            None,
            detail.scalar.detail.num,
            detail.ndim,
            detail.writeable,
            length | detail.dense,
        )
    if kind.family == "iter" and detail.source is None and detail.facts is None and on_stack and place == 0:
        return place, "r", None, detail.step, detail.sign, detail.nonnegative, 0
    if kind.family == "generator":
        return place, "p", detail, 0, 0, 0, 0
    if kind.family in ("text", "bytes"):
        return place, "t", None, -1 if kind == BYTES[True] else kind.detail, 0, 0, 0
    if kind.family == "list" and not detail.depth:
        return place, "l", _levels(kind), 0, 0, 0, 0
    return None


def _levels(kind: Kind) -> str:
    """Of what a list is: see ``is_list_of``."""
    item = kind.detail.item
    if item is None:
        return "le"
    if item.family == "tuple":
        return f"l({''.join(map(_level, item.detail))})"
    return "l" + (_levels(item) if item.family == "list" else _level(item))


def _level(kind: Kind) -> str:
    """A number; of NumPy's by its type's number, from A."""
    if kind.family == "numpy":
        return chr(ord("A") + kind.detail.num)
    return "z" if kind == COMPLEX else _PLAIN[kind]


def _output(native: NativeLoop, program: Program, name: str, depth: int) -> tuple[int, int, tuple[Box, ...]]:
    place = depth + native.names.index(name)
    at = program.rendered.stack_words
    for output in program.outputs:
        if output.slot == name:
            return place, at, tuple([_box(kind, at + begin) for kind, begin, _ in output.places])
        at += output.words
    return place, -1, ()


def _box(kind: Kind, at: int) -> Box:
    if kind in _PLAIN:
        return _PLAIN[kind], at, 0
    if kind.family == "numpy":
        return "s", at, kind.detail.num
    if kind.family == "array" and not kind.detail.path:
        return "a", at + [suffix for suffix, _ in kind.parts].index("_id"), 0
    if kind.family == "list":
        return "a", at, 0
    if kind.family == "complex":
        return "z", at, int(kind == NP_COMPLEX)
    if kind.family == "char":
        return "c", at, 0
    if kind.family in ("opaque", "text", "bytes", "generator"):
        suffixes = [suffix for suffix, _ in kind.parts]
        return "g", at + suffixes.index("_id"), 0
    return "?", at, 0


def _form(leave: Leave, kinds: Sequence[Kind], header: int) -> int:
    if leave.reason and (leave.reason != PAUSED or leave.place != header):
        return OTHERWISE
    if not leave.stack:
        return AT_END
    own = bool(kinds) and kinds[0].family == "iter" and kinds[0].detail.source is None
    alone = len(leave.stack) == 1 and leave.stack[0].family == "iter"
    return WITH_ITERATOR if own and alone else OTHERWISE
