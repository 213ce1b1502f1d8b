"""Where a captured value came from: small frozen paths that guards read again on every call.

A :class:`Source` is a path such as ``self.weights[0]`` rooted in an argument, a free variable, a global,
a builtin, a module or a pinned object. It prints as a Python expression and turns into plain tuples
and back (:func:`source_to_tuple`, :func:`source_from_tuple`), so that guards can be stored. Reading a
source never runs user code: see ``csrc/access.c`` for the exact meaning of each kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dyncomp.capture.guards.serial import pack_constant, unpack_constant
from dyncomp.dataclass import dataclass


def _hashed_once(cls: type[Any]) -> Any:
    """A path's hash goes over all of its length, and paths are keys everywhere: it is kept."""
    of_fields: Any = cls.__hash__

    def __hash__(self: Any) -> int:
        try:
            found: int = self._hash
        except AttributeError:
            found = of_fields(self)
            object.__setattr__(self, "_hash", found)
        return found

    cls.__hash__ = __hash__  # type: ignore[assignment]
    return cls


@dataclass(frozen=True)
class Source:
    """Base class. ``expr()`` is a Python expression; ``name()`` a short name for generated variables."""

    def expr(self) -> str:
        raise NotImplementedError

    def name(self) -> str:
        text = "".join(c if c.isalnum() else "_" for c in self.expr())
        return text.strip("_") or "value"

    @property
    def parent(self) -> Source | None:
        """The source this one is read from, ``None`` for roots."""
        return getattr(self, "base", None)

    def root(self) -> Source:
        source: Source = self
        while source.parent is not None:
            source = source.parent
        return source

    def __str__(self) -> str:
        return self.expr()


# -- roots ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LocalSource(Source):
    """Bound argument ``name``; ``index`` into the array of bound arguments, which is in the order of
    ``co_varnames``: positional, keyword-only, the ``*args`` tuple, the ``**kwargs`` dict."""

    local: str
    index: int

    def expr(self) -> str:
        return self.local


@dataclass(frozen=True)
class CellSource(Source):
    """Contents of free variable number ``index`` of the function (order of ``co_freevars``)."""

    local: str
    index: int

    def expr(self) -> str:
        return self.local


@dataclass(frozen=True)
class FreeCellSource(Source):
    """The cell object itself of free variable number ``index`` of the function."""

    local: str
    index: int

    def expr(self) -> str:
        return f"__closure__[{self.index}]"

    def name(self) -> str:
        return f"cell_{self.local}"


@dataclass(frozen=True)
class GlobalSource(Source):
    """Entry ``key`` of the called function's own globals (builtins are not consulted)."""

    key: str

    def expr(self) -> str:
        return self.key


@dataclass(frozen=True)
class BuiltinSource(Source):
    """Entry ``key`` of the called function's builtins."""

    key: str

    def expr(self) -> str:
        return self.key


@dataclass(frozen=True)
class GlobalsSource(Source):
    """The globals dict itself of the called function."""

    def expr(self) -> str:
        return "globals()"


@dataclass(frozen=True)
class ModuleSource(Source):
    """The module ``sys.modules[module]``, pinned when guards are compiled."""

    module: str

    def expr(self) -> str:
        return self.module


@dataclass(frozen=True)
class ModuleDictSource(Source):
    """The namespace of ``sys.modules[module]``: globals of an inlined function of another module."""

    module: str

    def expr(self) -> str:
        return f"vars({self.module})"


class _ByIdentity:
    """Holds any object; equal and hashed by the object's identity (never runs its ``__eq__``)."""

    __slots__ = ("obj",)

    def __init__(self, obj: object) -> None:
        self.obj = obj

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.obj is self.obj

    def __hash__(self) -> int:
        return id(self.obj)

    def __repr__(self) -> str:
        return f"<{type(self.obj).__name__} at {id(self.obj):#x}>"


@dataclass(frozen=True, init=False)
class ConstSource(Source):
    """A pinned object, kept alive by the guards. ``label`` is how it prints. Not serializable."""

    holder: _ByIdentity
    label: str

    def __init__(self, obj: object, label: str) -> None:
        object.__setattr__(self, "holder", _ByIdentity(obj))
        object.__setattr__(self, "label", label)

    @property
    def obj(self) -> Any:
        return self.holder.obj

    def expr(self) -> str:
        return self.label


# -- steps ------------------------------------------------------------------------------------
@_hashed_once
@dataclass(frozen=True)
class AttrSource(Source):
    """``base.attr`` as Python would read it where that runs no Python code: instance dict, slots, module
    and class attributes, C-level getsets (``ndarray.flags``), and functions' and methods' own fields
    (``__code__ __defaults__ __kwdefaults__ __closure__ __globals__ __self__ __func__``). Attributes that
    need a property, ``__getattr__``, ``__getattribute__`` or binding of a function always miss: ask
    ``_hook.attr_kind`` first and use :class:`TypeAttrSource` for methods."""

    base: Source
    attr: str

    def expr(self) -> str:
        return f"{self.base.expr()}.{self.attr}"


@_hashed_once
@dataclass(frozen=True)
class TypeAttrSource(Source):
    """The raw entry ``attr`` found along the method resolution order of the type that ``base`` yields,
    without binding: a function, property, descriptor or plain class attribute."""

    base: Source
    attr: str

    def expr(self) -> str:
        return f"inspect.getattr_static({self.base.expr()}, {self.attr!r})"

    def name(self) -> str:
        return f"{self.base.name()}_{self.attr}"


@_hashed_once
@dataclass(frozen=True)
class InstanceDictSource(Source):
    """Entry ``attr`` of the object's own ``__dict__``, whatever its type defines."""

    base: Source
    attr: str

    def expr(self) -> str:
        return f"vars({self.base.expr()})[{self.attr!r}]"

    def name(self) -> str:
        return f"{self.base.name()}_{self.attr}"


@_hashed_once
@dataclass(frozen=True)
class ItemSource(Source):
    """Stored item: ``key`` is an int for lists and tuples (subclasses too; negative not allowed), or a
    constant key of a dict (subclasses read the dict's own storage). Keys of a dict: exact ``str int float
    bool None bytes``, tuples of these, types and functions (by identity)."""

    base: Source
    key: Any

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and True are different keys in print and in meaning for guards
        if not isinstance(other, ItemSource) or self.base != other.base:
            return False
        return type(self.key) is type(other.key) and self.key == other.key

    def __hash__(self) -> int:
        return hash((self.base, type(self.key), self.key))

    def expr(self) -> str:
        return f"{self.base.expr()}[{self.key!r}]"


@_hashed_once
@dataclass(frozen=True)
class DictKeySource(Source):
    """Key number ``index`` of a dict in insertion order."""

    base: Source
    index: int

    def expr(self) -> str:
        return f"list({self.base.expr()})[{self.index}]"


@_hashed_once
@dataclass(frozen=True)
class DictValueSource(Source):
    """Value number ``index`` of a dict in insertion order."""

    base: Source
    index: int

    def expr(self) -> str:
        return f"list({self.base.expr()}.values())[{self.index}]"


@_hashed_once
@dataclass(frozen=True)
class TypeSource(Source):
    """``type(base)``."""

    base: Source

    def expr(self) -> str:
        return f"type({self.base.expr()})"


@_hashed_once
@dataclass(frozen=True)
class CellContentsSource(Source):
    """``base.cell_contents`` of a cell object (an empty cell misses)."""

    base: Source

    def expr(self) -> str:
        return f"{self.base.expr()}.cell_contents"


@_hashed_once
@dataclass(frozen=True)
class ReferentSource(Source):
    """``base()`` of a weak reference (``None`` of one whose object is gone)."""

    base: Source

    def expr(self) -> str:
        return f"{self.base.expr()}()"


_KINDS: dict[str, type[Source]] = {
    "local": LocalSource,
    "cell": CellSource,
    "freecell": FreeCellSource,
    "global": GlobalSource,
    "builtin": BuiltinSource,
    "globals": GlobalsSource,
    "module": ModuleSource,
    "moduledict": ModuleDictSource,
    "attr": AttrSource,
    "typeattr": TypeAttrSource,
    "instance": InstanceDictSource,
    "item": ItemSource,
    "dictkey": DictKeySource,
    "dictvalue": DictValueSource,
    "type": TypeSource,
    "cellcontents": CellContentsSource,
    "referent": ReferentSource,
}
_NAMES: dict[type[Source], str] = {kind: name for name, kind in _KINDS.items()}


def source_to_tuple(source: Source) -> tuple[Any, ...]:
    """Plain nested tuples of strings, ints and packed constants. Raises ``ValueError`` for pinned objects
    and for dict keys that are not constants."""
    kind = _NAMES.get(type(source))
    if kind is None:
        raise ValueError(f"source {source.expr()} cannot be stored: it pins an object of this process")
    fields: list[Any] = []
    for field in source.__dataclass_fields__:
        value = getattr(source, field)
        if isinstance(value, Source):
            fields.append(source_to_tuple(value))
        elif field == "key" and kind == "item":
            fields.append(pack_constant(value))
        else:
            fields.append(value)
    return (kind, *fields)


def source_from_tuple(data: tuple[Any, ...]) -> Source:
    """Inverse of :func:`source_to_tuple`. Raises ``ValueError`` for data that is no source."""
    if not data or data[0] not in _KINDS:
        raise ValueError(f"not a source: {data!r}")
    kind = _KINDS[data[0]]
    fields = list(data[1:])
    names = list(kind.__dataclass_fields__)
    if len(fields) != len(names):
        raise ValueError(f"source {data[0]!r} takes {len(names)} fields, got {len(fields)}")
    for position, name in enumerate(names):
        if name == "base":
            fields[position] = source_from_tuple(tuple(fields[position]))
        elif name == "key" and data[0] == "item":
            fields[position] = unpack_constant(fields[position])
        elif not isinstance(fields[position], int if name == "index" else str):
            raise ValueError(f"source {data[0]!r}: field {name} is {fields[position]!r}")
    build: Callable[..., Source] = kind
    return build(*fields)
