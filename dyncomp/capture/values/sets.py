"""Sets and frozensets of constants, and sets of objects that are told by identity.

The order in which a set gives its elements depends on how it was filled. A set made in the frame is
mirrored by a real one that goes through the same operations, so that its order is the program's own. One
from outside is guarded with its order; what is derived from it or done to it leaves an order that is not
*certain*, and iterating over that breaks the graph.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..breaks import Break, Skip
from ..guards.fact_kinds import CustomCheck
from ..guards.guard import Kind, short
from ..guards.source import Source
from ..objects.class_names import class_dict
from ..objects.identity import DistinctObjects, identical
from .array import ArrayValue
from .base import Codegen, Tracer, Value
from .iterator import IteratorValue, advance
from .number import ConstValue, SymIntValue
from .obj import InstanceValue
from .seq import TupleValue, refuse_large

LARGEST_OUTSIDE = 256  # elements of a set from outside that guards compare
_FEW_OBJECTS = 16  # in a set: which they are is asked of each two
_PLAIN = (type(None), bool, int, float, str, bytes)


def has_elements_in_order(found: Any, elements: tuple[Any, ...]) -> bool:
    """The guard of a set from outside: its elements by type and value, in the order that it gives them."""
    if len(found) != len(elements):
        return False
    if all(map(operator.is_, found, elements)):
        return True
    return all(type(a) is type(b) and a == b for a, b in zip(found, elements))


class SetValue(Value):
    """A set or frozenset (``frozen``); ``log`` is what was done to one from outside."""

    def __init__(
        self,
        tracer: Tracer,
        mirror: Any,
        *,
        frozen: bool = False,
        certain: bool = True,
        source: Source | None = None,
        obj: Any = None,
        symbolic: Sequence[Value] = (),
    ) -> None:
        self._mirror = mirror
        self.frozen = frozen
        self.certain = certain
        self.source = source
        self._obj = obj
        self._order: list[Any] | None = None  # as long as one from outside is as it came
        self.log: list[tuple[str, tuple[Any, ...]]] = []
        self._seed = tuple(mirror) if mirror is not None else ()
        self.mutated = False
        self._symbolic = tuple(symbolic)  # what it was filled with, as long as only their number was asked
        self._distinct: DistinctObjects | None = None  # those from outside, where there are many
        self._objects: list[Value] = []  # in a set that nothing else was put into; they are told by identity
        self.place = (tracer.frames[-1].raw_code, tracer.frames[-1].current) if tracer.frames else None

    @property
    def pytype(self) -> type:
        return frozenset if self.frozen else set

    def elements(self, tracer: Tracer) -> Any:
        """A real set with the elements."""
        if self._objects:
            raise Break("unsupported-operation", "what a set of objects does but take and find them")
        if self._symbolic:
            self._fill([self.element_of(tracer, item) for item in self._symbolic])
        if self._mirror is None:
            assert self.source is not None
            refuse_large(tracer, len(self._obj), self.pytype.__name__)
            order = tuple(self._obj)
            for element in order:
                tracer.check_key(element)
                _refuse_nan(element)
            check = CustomCheck(has_elements_in_order, order, f"the elements {short(order):.80}")
            tracer.guard(self.source, Kind.CUSTOM_ARRAY, check)
            self._mirror = self.pytype(self._obj)  # operators give the type of their left operand
            self._order = list(order)
        return self._mirror

    def _fill(self, elements: list[Any]) -> None:
        self._symbolic = ()
        self._mirror = self.pytype(elements)
        self._seed = tuple(self._mirror)

    def ordered(self, tracer: Tracer) -> list[Any]:
        """The elements in the order of iteration; breaks where that is not certain."""
        elements = self.elements(tracer)
        if self._order is not None:
            return self._order
        if not self.certain and len(elements) > 1:
            raise Break("unsupported-operation", f"the order of a {self.pytype.__name__} from outside")
        return list(elements)

    # -- operations -----------------------------------------------------------------------------
    def contains(self, tracer: Tracer, item: Value) -> Value:
        if self._objects:
            return ConstValue(self._has_object(tracer, item))
        if self._is_empty_here() and is_told_by_identity(tracer, item):
            return ConstValue(False)
        return ConstValue(self.element_of(tracer, item) in self.elements(tracer))

    def element_of(self, tracer: Tracer, item: Value) -> Any:
        if isinstance(item, SetValue):
            raise Break("unsupported-operation", "a set as an element of a set")
        if not item.is_const and item.pytype.__hash__ is None:
            tracer.raise_exception(TypeError, f"unhashable type: '{item.pytype.__name__}'")
        element = tracer.fold(_hashable, tracer.key_constant(item, "a set item"))
        _refuse_nan(element)
        return element

    def truth(self, tracer: Tracer) -> bool:
        return bool(self._symbolic or self._objects) or bool(self.elements(tracer))

    def length(self, tracer: Tracer) -> Value:
        if self._objects:
            return ConstValue(len(self._objects))
        if self._symbolic:
            distinct: list[Value] = []
            for item in self._symbolic:
                if not any(tracer.same_or_equal(item, other) for other in distinct):
                    distinct.append(item)
            return ConstValue(len(distinct))
        return ConstValue(len(self.elements(tracer)))

    def items(self, tracer: Tracer) -> list[Value]:
        return [ConstValue(e) for e in self.ordered(tracer)]

    def iterate(self, tracer: Tracer) -> Value:
        return SetIterator(tracer, self)

    def add(self, tracer: Tracer, item: Value) -> None:
        if (self._objects or self._is_empty_here()) and is_told_by_identity(tracer, item):
            self._add_object(tracer, item)
            return
        if self._stays_symbolic(item):
            tracer.note_mutation(self)
            self._symbolic += (item,)
            return
        self.change(tracer, "add", (self.element_of(tracer, item),))

    def _is_empty_here(self) -> bool:
        """Whether it was made here and nothing was put into it so far."""
        return self.source is None and not (self.log or self._symbolic or self._mirror)

    def _has_object(self, tracer: Tracer, item: Value) -> bool:
        if item.is_const and type(item.const) in _PLAIN:
            return False
        if not is_told_by_identity(tracer, item):
            raise Break("unsupported-operation", f"{item.describe()} in a set of objects")
        if self._distinct is None and (len(self._objects) < _FEW_OBJECTS or item.source is None):
            return any(identical(tracer, item, known) for known in self._objects)
        if self._distinct is None:
            self._distinct = DistinctObjects()
            tracer.distinct.append(self._distinct)
            for known in self._objects:
                self._note_distinct(known)
        if item.source is None:
            return any(identical(tracer, item, known) for known in self._objects if known.source is None)
        return self._distinct.contains(tracer, item)

    def _add_object(self, tracer: Tracer, item: Value) -> None:
        if not self._has_object(tracer, item):
            tracer.note_mutation(self)
            self._objects.append(item)
            self._note_distinct(item)

    def _note_distinct(self, item: Value) -> None:
        if self._distinct is not None and item.source is not None:
            self._distinct.add(item)

    def _stays_symbolic(self, item: Value) -> bool:
        """Whether a set made here holds nothing but sizes so far: how many there are (whether shapes agree)
        can be told without fixing them."""
        if self.source is not None or self.log or not (self._symbolic or not self._mirror):
            return False
        return _of_sizes(item) and (bool(self._symbolic) or has_symbols(item))

    def change(self, tracer: Tracer, name: str, args: tuple[Any, ...]) -> Any:
        """Do a method that changes the set; its result."""
        mirror = self.elements(tracer)
        tracer.note_mutation(self)
        self.mutated = True
        if self.source is not None:
            self._order = None
            self.certain = False
        self.log.append((name, tuple(a.copy() if isinstance(a, (set, dict)) else a for a in args)))
        return getattr(mirror, name)(*args)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.container_method(self, name)

    # -- rebuilding -----------------------------------------------------------------------------
    def children(self) -> tuple[Value, ...]:
        return tuple(self._objects)

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        if self._objects:
            return f"{cg.constant(set)}(({cg.items(self._objects)},))"
        if self._symbolic:
            self._fill([cg.tracer.constant_of(item, "a set item") for item in self._symbolic])
        order = list(self._mirror)
        if len(order) < 2 or (self.certain and list(set(order)) == order):
            return self._filled_with(cg, order)
        if not self.certain or self._done_again() != order:
            self._begin_again(cg)
        name = cg.temporary(self._filled_with(cg, self._seed))
        for line in self._replayed(cg, name):
            cg.line(line)
        return name

    def _filled_with(self, cg: Codegen, elements: Sequence[Any]) -> str:
        inner = cg.items([ConstValue(element) for element in elements])
        return f"{cg.constant(self.pytype)}(({inner}{',' if inner else ''}))"

    def _done_again(self) -> list[Any]:
        """The order of a set that goes through the same operations."""
        again = set(self._seed)
        for name, args in self.log:
            getattr(again, name)(*args)
        return list(again)

    def _replayed(self, cg: Codegen, target: str) -> list[str]:
        return [f"{target}.{name}({', '.join(cg.constant(a) for a in args)})" for name, args in self.log]

    def _begin_again(self, cg: Codegen) -> None:
        """Capture anew without following the instruction that made a set whose order cannot be given back."""
        tracer = cg.tracer
        reason = f"a {self.pytype.__name__} whose order cannot be given back"
        assert self.place is not None
        tracer.decisions.breaks[self.place] = Break("unsupported-operation", reason)
        raise tracer.restart

    def replay(self, cg: Codegen) -> list[str]:
        """Statements that do to the outside set what the program did."""
        return self._replayed(cg, cg.value(self))


def is_told_by_identity(tracer: Tracer, item: Value) -> bool:
    """Whether an object is equal to itself alone, and its hash says no more than which it is."""
    if isinstance(item, ArrayValue):
        return item.ref.kind == "array" and bool(getattr(tracer.frontend(item.ref), "hashes_identity", False))
    if not isinstance(item, InstanceValue) or any(id(c) in tracer.states for c in item.pytype.__mro__):
        return False
    tracer.rely_on(item.pytype, "__hash__")
    tracer.rely_on(item.pytype, "__eq__")
    return all(_is_of_object(item.pytype, name) for name in ("__hash__", "__eq__"))


def _is_of_object(cls: type, name: str) -> bool:
    return next(home for home in cls.__mro__ if name in class_dict(home)) is object


def _of_sizes(item: Value) -> bool:
    if isinstance(item, TupleValue) and item.cls is tuple:
        return all(map(_of_sizes, item.children()))
    return isinstance(item, SymIntValue) or (item.is_const and type(item.const) is int)


def has_symbols(item: Value) -> bool:
    """Whether an int, or a tuple of ints, has symbolic parts."""
    if isinstance(item, TupleValue):
        return any(map(has_symbols, item.children()))
    return isinstance(item, SymIntValue)


def _refuse_nan(element: object) -> None:
    """What is not equal to itself is hashed by its identity."""
    parts = element if type(element) is tuple else ()
    for part in parts:
        _refuse_nan(part)
    if element != element:
        raise Break("unsupported-operation", "a set of what is not a number")


def _hashable(value: object) -> Any:
    hash(value)
    return value


class SetIterator(IteratorValue):
    """Iterator over a set."""

    def __init__(self, tracer: Tracer, owner: SetValue) -> None:
        self.owner = owner
        self.order = owner.ordered(tracer)
        self.position = 0
        self.done = False

    @property
    def pytype(self) -> type:
        return type(iter(set()))

    def describe(self) -> str:
        return f"an iterator over {self.owner.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def remaining(self, tracer: Tracer) -> int | None:
        return 0 if self.done else len(self.order) - self.position

    def next(self, tracer: Tracer) -> Value | None:
        if self.done:
            return None
        if len(self.owner.elements(tracer)) != len(self.order):
            tracer.raise_exception(RuntimeError, "Set changed size during iteration")
        if self.owner.elements(tracer) != set(self.order):
            raise Break("unsupported-operation", "a set whose elements change while it is iterated over")
        if self.position == len(self.order):
            self.done = True
            return None
        self.position += 1
        tracer.steps += 1
        return ConstValue(self.order[self.position - 1])

    def reconstruct(self, cg: Codegen) -> str:
        if self.done:
            return f"{cg.constant(iter)}({cg.constant(set)}())"
        now = self.owner.elements(cg.tracer)
        if len(now) != len(self.order):
            return f"{cg.constant(outdated_iterator)}({len(self.order)}, {self.position})"
        if now != set(self.order):
            raise Skip("a set whose elements change while it is iterated over")
        cg.replay(self.owner)
        text = f"{cg.constant(iter)}({cg.value(self.owner)})"
        return f"{cg.constant(advance)}({text}, {self.position})" if self.position else text


def outdated_iterator(size: int, position: int) -> Any:
    """An iterator of a set of ``size`` elements that got another one since."""
    elements = set(range(size))
    iterator = advance(iter(elements), position)
    elements.add(size)
    return iterator
