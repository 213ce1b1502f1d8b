"""What capture relies upon of a class of the program: where its attributes are found, and their kinds.

Values of attributes are guarded where they are read. This says what no such guard sees: a special method, a
property or ``__getattr__`` that is added to or taken from the class or one of its bases, other bases, an
attribute found earlier in the resolution order, a plain attribute that becomes a descriptor.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from dyncomp.capture.objects.class_names import qualname_of
from dyncomp.dataclass import dataclass

_MRO = vars(type)["__mro__"]
_DICT = vars(type)["__dict__"]
_FLAGS = vars(type)["__flags__"]
_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_DESCRIBING = ("__get__", "__set__", "__delete__")
# descriptors of types written in C: the object itself matters
_OF_C_TYPES = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)
_BY_TYPE = frozenset({property, classmethod, staticmethod})
_PLAIN = frozenset({int, float, complex, str, bytes, bool, tuple, list, dict, set, frozenset, type})
# special names that say nothing of what objects do, some of which the interpreter stores when asked
_IDLE = frozenset(
    {
        "__annotate__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__qualname__",
        "__slotnames__",
        "__static_attributes__",
        "__weakref__",
    }
)


@dataclass(frozen=True, eq=False)
class ClassFacts:
    """A class by its resolution order and the places and kinds of its special and some other attributes.

    found: ``(name, ((position in the order, kind), …))`` for each attribute; the kind is the code of a
    function, the type of another descriptor, the object itself for one of a C type and for ``None``, and
    ``object`` for plain values.
    """

    cls: type
    names: frozenset[str]
    order: tuple[type, ...]
    found: dict[str, tuple[tuple[int, Any], ...]]

    @classmethod
    def of(cls, subject: type, names: Iterable[str]) -> ClassFacts:
        wanted = frozenset(names)
        return cls(subject, wanted, _order(subject), _attributes(subject, wanted))

    def hold(self) -> bool:
        """Whether the class still is like that. Runs no code of the program."""
        order = _order(self.cls)
        if len(order) != len(self.order) or any(a is not b for a, b in zip(order, self.order)):
            return False
        return _same(self.found, _attributes(self.cls, self.names))

    def __str__(self) -> str:
        return f"class {qualname_of(self.cls)} as it was"


def may_change(cls: type) -> bool:
    """Whether attributes of the class, or its bases, can be set."""
    return bool(_FLAGS.__get__(cls) & _HEAP_TYPE) and not _FLAGS.__get__(cls) & _IMMUTABLE_TYPE


def _order(cls: type) -> tuple[type, ...]:
    """The resolution order; a class that is being made has none yet."""
    return _MRO.__get__(cls) or ()


def _attributes(cls: type, names: frozenset[str]) -> dict[str, tuple[tuple[int, Any], ...]]:
    found: dict[str, tuple[tuple[int, Any], ...]] = {}
    for position, base in enumerate(_order(cls)):
        if not may_change(base):
            continue
        for name, raw in list(_DICT.__get__(base).items()):
            if type(name) is str and (name in names or (name.startswith("__") and _matters(name))):
                found[name] = (*found.get(name, ()), (position, kind_of(raw)))
    return found


def _matters(name: str) -> bool:
    return name.endswith("__") and name not in _IDLE


def kind_of(raw: Any) -> Any:
    """See :class:`ClassFacts`."""
    cls = type(raw)
    if cls is types.FunctionType:
        return raw.__code__
    if cls in _BY_TYPE:
        return cls
    if cls in _PLAIN:
        return object
    if raw is None or cls in _OF_C_TYPES:
        return raw
    return cls if _describes(cls) else object


def _describes(cls: type) -> bool:
    return any(name in _DICT.__get__(base) for base in _order(cls) for name in _DESCRIBING)


def _same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    if len(first) != len(second):
        return False
    for name, places in first.items():
        others = second.get(name)
        if others is None or len(others) != len(places):
            return False
        if any(a[0] != b[0] or a[1] is not b[1] for a, b in zip(places, others)):
            return False
    return True


def still_holds(unused: object, facts: ClassFacts) -> bool:
    """What the guard program calls where the class's version is another."""
    return facts.hold()
