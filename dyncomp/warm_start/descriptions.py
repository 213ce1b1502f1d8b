"""Names of objects that every process has anew, and what a name has to lead to.

A module-level object is named by its module and path. What is found there in another process is the same if
its description is: a class's bases, a function's code, defaults and closure. Attributes of classes are
described by the guards that rely on them (:class:`~dyncomp.capture.guards.class_facts.ClassFacts`).
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Sequence
from typing import Any

from ..capture.entries.config import TRUSTED
from ..capture.guards.class_facts import ClassFacts
from ..capture.guards.serial import code_hash, is_constant, pack_constant
from ..capture.lifetimes.by_identity import WeakIdentityDict

_OWN = __name__.partition(".")[0]
_MOST_WRAPPED = 6


class NotStorable(ValueError):
    """An entry holds something that another process cannot find again."""


class Stale(ValueError):
    """What was stored does not fit this process."""


def top_package(module: str) -> str:
    return module.partition(".")[0]


def is_own(module: str) -> bool:
    return top_package(module) == _OWN


def is_library(module: str) -> bool:
    """Whether the module is known by its version: nobody edits it between two processes."""
    top = top_package(module)
    return top in TRUSTED or top in (_OWN, "scipy") or top in sys.stdlib_module_names


# -- names ------------------------------------------------------------------------------------
def module_named(name: str) -> types.ModuleType:
    """A module that the program has imported, or one of ours. Raises :class:`Stale`."""
    if is_own(name):
        return importlib.import_module(name)
    found = sys.modules.get(name)
    if not isinstance(found, types.ModuleType):
        raise Stale(f"the module {name} is not imported")
    return found


def find(module: str, path: str) -> Any:
    """What a module has under a dotted path, found in dictionaries alone; behind ``@`` each ``w`` stands for
    what is wrapped there. Raises :class:`Stale`."""
    path, _, wrapped = path.partition("@")
    found: Any = module_named(module)
    for part in path.split("."):
        found = _member(found, part)
        if found is _ABSENT:
            raise Stale(f"{module} has no {path}")
    found = found.__func__ if type(found) in (staticmethod, classmethod) else found
    for _ in wrapped:
        found = _wrapped_by(found)
    return found


def _wrapped_by(function: Any) -> Any:
    """What a function says that it wraps, or a function of NumPy's that dispatches."""
    if type(function) is types.FunctionType:
        return vars(function).get("__wrapped__")
    return getattr(function, "_implementation", None) if is_library(type(function).__module__) else None


class _Absent:
    pass


_ABSENT = _Absent()
_DICT = vars(type)["__dict__"]
_MRO = vars(type)["__mro__"]


def _member(owner: Any, name: str) -> Any:
    if isinstance(owner, types.ModuleType):
        return vars(owner).get(name, _ABSENT)
    if not issubclass(type(owner), type):
        return _ABSENT
    return next((_DICT.__get__(c)[name] for c in _MRO.__get__(owner) if name in _DICT.__get__(c)), _ABSENT)


def name_of(obj: Any) -> tuple[str, str]:
    """A module and a path under which every process finds ``obj``. Raises :class:`NotStorable`."""
    kind = type(obj)
    if kind is types.FunctionType or issubclass(kind, type):
        module, path = obj.__module__, obj.__qualname__
        if type(module) is str and type(path) is str:
            for _ in range(_MOST_WRAPPED):
                if leads_to(module, path, obj):
                    return module, path
                path += "w" if "@" in path else "@w"
            found = _in_subclass(module, obj.__qualname__, obj)
            if found is not None:
                return found
        if type(module) is not str or not is_library(module):
            raise NotStorable(f"{module}.{obj.__qualname__}, which is not found by its name")
    if kind is types.CodeType:
        raise NotStorable(f"the code of {obj.co_qualname}")
    for module, path in _candidates(obj):
        if leads_to(module, path, obj):
            return module, path
    found = _library_names().get(id(obj)) or _library_names(len(sys.modules)).get(id(obj))
    if found is None:
        name = getattr(obj, "__qualname__", "") if is_library(kind.__module__) else ""
        raise NotStorable(f"a {kind.__module__}.{kind.__qualname__} {name} that no library has by name")
    return found


def _in_subclass(module: str, path: str, obj: object) -> tuple[str, str] | None:
    """The name of a method that a class derived from its own has under the same name (as optimizers have
    ``step``, when it was wrapped)."""
    outer, _, name = path.rpartition(".")
    try:
        waiting = [find(module, outer)] if outer else []
    except Stale:
        return None
    while waiting:
        cls = waiting.pop()
        if not issubclass(type(cls), type):
            return None
        if _DICT.__get__(cls).get(name) is obj and leads_to(
            cls.__module__, f"{cls.__qualname__}.{name}", obj
        ):
            return cls.__module__, f"{cls.__qualname__}.{name}"
        waiting += type.__subclasses__(cls)
    return None


def leads_to(module: str, path: str, obj: object) -> bool:
    try:
        return find(module, path) is obj
    except Stale:
        return False


def _candidates(obj: Any) -> list[tuple[str, str]]:
    """Names that builtin functions, ufuncs and their like have by themselves."""
    kind = type(obj)
    known = is_library(kind.__module__) or kind.__module__.startswith("_cython_")  # methods of np.random
    if not known or any("__getattr__" in vars(c) for c in kind.__mro__):
        return []
    if kind.__module__ == "torch" and kind.__name__ in ("dtype", "layout", "memory_format"):
        return [("torch", str(obj).removeprefix("torch."))]
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    short = getattr(obj, "__name__", None)
    return [(m, n) for m in (module, kind.__module__) for n in (name, short) if type(m) is type(n) is str]


@functools.lru_cache(maxsize=2)
def _library_names(count: int = 0) -> dict[int, tuple[str, str]]:
    """The names of the members of the libraries' modules, by id, public names first."""
    found: dict[int, tuple[str, str]] = {}
    modules = [
        m for m in list(sys.modules.items()) if is_library(m[0]) and isinstance(m[1], types.ModuleType)
    ]
    for name, module in sorted(modules, key=lambda pair: ("._" in pair[0], pair[0].count("."))):
        for key, obj in list(vars(module).items()):
            if type(key) is str and type(obj) not in (dict, list, set):
                found.setdefault(id(obj), (name, key))
    return found


def path_to(wanted: types.CodeType, code: types.CodeType) -> list[int] | None:
    """Where among the constants of ``code``, and of theirs, another code object is."""
    if code is wanted:
        return []
    for number, constant in enumerate(code.co_consts):
        path = path_to(wanted, constant) if isinstance(constant, types.CodeType) else None
        if path is not None:
            return [number, *path]
    return None


def inside(code: types.CodeType, path: Sequence[int]) -> types.CodeType:
    """The code object at such a place. Raises :class:`Stale`."""
    for number in path:
        code = code.co_consts[number]
        if not isinstance(code, types.CodeType):
            raise Stale("a constant that is no code object")
    return code


# -- descriptions -----------------------------------------------------------------------------
_hashes: WeakIdentityDict[str] = WeakIdentityDict()


def hash_of(code: types.CodeType) -> str:
    """:func:`code_hash`, worked out once."""
    known = _hashes.get(code)
    if known is None:
        known = _hashes[code] = code_hash(code)
    return known


def describe_class(cls: type) -> list[Any]:
    """The names of its bases, in order, and of its own class."""
    order = [f"{base.__module__}.{base.__qualname__}" for base in _MRO.__get__(cls)]
    return [*order, type(cls).__qualname__]


def describe_function(function: types.FunctionType) -> list[Any]:
    """Its code, and what is bound to it."""
    text = hash_of(function.__code__)
    if is_library(function.__module__):
        return [text]
    keywords = function.__kwdefaults__ or {}
    bound = [*(function.__defaults__ or ()), *keywords.values()]
    bound += [_contents(cell) for cell in function.__closure__ or ()]
    return [text, *keywords, *map(_describe_value, bound)]


def describe_found(obj: Any) -> list[Any] | None:
    """Of an object without a name; ``None`` for what cannot be told from others of its type."""
    if type(obj) is types.CodeType:
        return ["code", obj.co_filename, obj.co_firstlineno, hash_of(obj)]
    if type(obj) is types.FunctionType:
        return ["function", obj.__module__, obj.__qualname__, *describe_function(obj)]
    if issubclass(type(obj), type):
        return ["class", *describe_class(obj)]
    return None


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


def _describe_value(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    if is_constant(value):
        return repr(pack_constant(value))
    module, path = name_of(value)
    if type(value) is types.FunctionType and value.__closure__ is None:
        return f"{module}.{path} {describe_function(value)}"
    if issubclass(type(value), type) or is_library(module):
        return f"{module}.{path}"
    raise NotStorable(f"{module}.{path} in a closure or a default")


def describe_facts(facts: ClassFacts) -> list[Any]:
    """What :class:`ClassFacts` says, without objects of this process."""
    places = [[name, *map(_describe_place, found)] for name, found in sorted(facts.found.items())]
    return [describe_class(facts.cls), sorted(facts.names), places]


def _describe_place(place: tuple[int, Any]) -> list[Any]:
    position, kind = place
    if type(kind) is types.CodeType:
        return [position, hash_of(kind)]
    if issubclass(type(kind), type):
        return [position, f"{kind.__module__}.{kind.__qualname__}"]
    return [position, "None" if kind is None else f"{type(kind).__name__} {kind.__qualname__}"]
