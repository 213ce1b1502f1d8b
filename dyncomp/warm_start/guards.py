"""Guard programs on disk: the instructions as they are, with the objects that they compare with described.

A program is made again from instructions, without lowering guards. The guards themselves are read only where
somebody asks for them: to say which one failed, and in ``explain``.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

from ..capture.guards.class_facts import ClassFacts
from ..capture.guards.fact_kinds import CodeFacts
from ..capture.guards.guard import Guard, Kind, short
from ..capture.guards.module_facts import Absent, ModuleFacts
from ..capture.guards.program import OPS, Lowering, lower_all
from ..capture.guards.source import ConstSource, Source
from ..hook import _hook
from .descriptions import NotStorable, Stale, describe_facts, hash_of
from .plain import Packer, Unpacker

_CODE_IS = OPS["CODE_IS"]


def pack_program(packer: Packer, guards: Sequence[Guard], outputs: Sequence[Source] = ()) -> list[Any]:
    """The program of ``guards``, and of ``outputs`` to read."""
    low, _, registers = lower_all(guards, outputs)
    return [_pack_instructions(packer, low), len(low.registers), registers]


def _pack_instructions(packer: Packer, low: Lowering) -> list[list[Any]]:
    made = []
    for op, register, a, b, obj, number in low.instructions:
        if op == _CODE_IS:
            obj = (None, *obj[1:])  # the first function with that hash is kept
        made.append([op, register, a, b, packer.value(obj), number])
    return made


def unpack_program(unpacker: Unpacker, data: Sequence[Any], guards: Sequence[Guard]) -> _hook.GuardProgram:
    instructions, registers, outputs = data
    value = unpacker.value
    read = [(op, register, a, b, value(obj), number) for op, register, a, b, obj, number in instructions]
    return _hook.GuardProgram(read, registers, guards, outputs)


def places_of(guards: Iterable[Guard]) -> dict[int, tuple[Source, bool]]:
    """Where guards find the objects that they compare with, by the objects' ids: the source, and whether it
    is the type of what is there."""
    found: dict[int, tuple[Source, bool]] = {}
    for guard in guards:
        if guard.source is not None and guard.kind in (Kind.IS, Kind.TYPE_IS):
            found.setdefault(id(guard.expected), (guard.source, guard.kind is Kind.TYPE_IS))
    return found


class StoredGuards(Sequence[Guard]):
    """The guards of a program, read when they are first asked for."""

    def __init__(self, read: Callable[[], Sequence[Guard]], count: int) -> None:
        self._read = read
        self._count = count
        self._guards: Sequence[Guard] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Guard: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Guard]: ...
    def __getitem__(self, index: int | slice) -> Guard | Sequence[Guard]:
        return self._all()[index]

    def __iter__(self) -> Iterator[Guard]:
        return iter(self._all())

    def _all(self) -> Sequence[Guard]:
        if self._guards is None:
            self._guards = self._read()
        return self._guards


class Described:
    """Stands for an object of another process, where a guard is only put into words."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class WordsPacker(Packer):
    """Stores guards to be put into words: what has no name is described."""

    def __init__(self) -> None:
        in_words = {ClassFacts: _in_words, ModuleFacts: _in_words}
        super().__init__({**BY_TYPE, **in_words})

    def named(self, obj: Any) -> list[Any]:
        try:
            return super().named(obj)
        except NotStorable:
            return ["described", short(obj)]


# -- rows -------------------------------------------------------------------------------------
def pack_class_facts(packer: Packer, facts: ClassFacts) -> list[Any]:
    return ["class facts", packer.value(facts.cls), describe_facts(facts)]


def unpack_class_facts(unpacker: Unpacker, parts: list[Any]) -> ClassFacts:
    cls, description = unpacker.value(parts[0]), parts[1]
    facts = ClassFacts.of(cls, description[1])
    if describe_facts(facts) != description:
        raise Stale(f"the class {cls.__qualname__} is not as it was")
    return facts


def pack_module_facts(packer: Packer, facts: ModuleFacts) -> list[Any]:
    members = [[name, _describe_member(found)] for name, found in facts.members.items()]
    return ["module facts", packer.value(facts.module), members]


def unpack_module_facts(unpacker: Unpacker, parts: list[Any]) -> ModuleFacts:
    module, members = unpacker.value(parts[0]), parts[1]
    found = {name: vars(module).get(name, Absent) for name, _ in members}
    for name, description in members:
        if _describe_member(found[name]) != description:
            raise Stale(f"{module.__name__}.{name} is not what it was")
    return ModuleFacts(module, found)


def _in_words(packer: Packer, facts: object) -> list[Any]:
    return ["described", str(facts)]


def _describe_member(obj: Any) -> list[Any]:
    """What a library's module has under a name, so far as it can be told from a replacement."""
    kind = type(obj)
    if kind is types.FunctionType:
        return [kind.__qualname__, obj.__module__, obj.__qualname__, hash_of(obj.__code__)]
    named = kind is types.BuiltinFunctionType or issubclass(kind, type)
    return [f"{kind.__module__}.{kind.__qualname__}", obj.__qualname__ if named else None]


def pack_source(packer: Packer, source: ConstSource) -> list[Any]:
    return ["pinned", packer.value(source.obj), source.label]


def unpack_source(unpacker: Unpacker, parts: list[Any]) -> ConstSource:
    return ConstSource(unpacker.value(parts[0]), parts[1])


def pack_code_facts(packer: Packer, facts: CodeFacts) -> list[Any]:
    return ["code facts", facts.module, facts.qualname, facts.hash]


def pack_kind(packer: Packer, kind: Kind) -> list[Any]:
    return ["kind of guard", str(kind)]


BY_TYPE: dict[type, Callable[[Packer, Any], list[Any]]] = {
    ClassFacts: pack_class_facts,
    ModuleFacts: pack_module_facts,
    CodeFacts: pack_code_facts,
    ConstSource: pack_source,
    Kind: pack_kind,
}
MAKERS: dict[str, Callable[[Unpacker, list[Any]], Any]] = {
    "class facts": unpack_class_facts,
    "module facts": unpack_module_facts,
    "described": lambda u, p: Described(p[0]),
    "code facts": lambda u, p: CodeFacts(*p),
    "pinned": unpack_source,
    "kind of guard": lambda u, p: Kind(p[0]),
}
