"""Where a captured value came from: small frozen paths that guards read again on every call.

A :class:`Source` is a path such as ``self.weights[0]`` rooted in an argument, a free variable, a global,
a builtin, a module or a pinned object. It prints as a Python expression. Reading a source never runs user
code: see ``csrc/access.c`` for the exact meaning of each kind.
"""

from __future__ import annotations

from typing import Any

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
    """A pinned object, kept alive by the guards. ``label`` is how it prints."""

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


@_hashed_once
@dataclass(frozen=True)
class PartSource(Source):
    """What a method of an array without strides gives: a part of it (``adj._indices()``). Replacements read
    it, guards do not."""

    base: Source
    method: str

    def expr(self) -> str:
        return f"{self.base.expr()}.{self.method}()"


@_hashed_once
@dataclass(frozen=True)
class MappingSource(Source):
    """The mapping behind a ``types.MappingProxyType``."""

    base: Source

    def expr(self) -> str:
        return f"gc.get_referents({self.base.expr()})[0]"
