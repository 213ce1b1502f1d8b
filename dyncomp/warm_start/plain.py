"""Objects as plain data, and back: numbers, texts, and rows that name what a process has anyway.

A value is ``None``, a bool, an int or a text as it is, anything else ``[n]``: row ``n`` of a table. A row is
a list, the kind first. Modules, classes, functions and members are named, with a description of what the name
led to (:mod:`.descriptions`); records are of a closed list of our own classes. Nothing is unpickled, and no
code of the program runs: modules are not imported, attributes are found in dictionaries.

What cannot be described raises :class:`NotStorable` when it is stored; whatever does not fit when it is read
raises :class:`Stale`.
"""

from __future__ import annotations

import base64
import enum
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import dtypes
from ..capture.guards.program import lower_guards
from ..capture.guards.serial import is_numpy_number
from ..capture.guards.source import Source
from ..hook._hook import Dispatcher
from .descriptions import (
    NotStorable,
    Stale,
    describe_class,
    describe_found,
    describe_function,
    find,
    inside,
    is_own,
    leads_to,
    module_named,
    name_of,
    path_to,
)
from .records import class_named, fields_of, is_made_at_capture, record_name

_MOST_BYTES = 1 << 20  # of an array that is stored with an entry
_SINGLETONS: dict[str, object] = {"...": ..., "NotImplemented": NotImplemented}
_DESCRIPTORS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
)

Recipe = Callable[["Packer"], list[Any]]
Environment = tuple[tuple[Any, ...], dict[str, Any], dict[str, Any], "tuple[Any, ...] | None"]


class Packer:
    """Writes values. ``by_type`` and ``recipes`` (by the id of an object): how further rows are made, which
    an :class:`Unpacker` reads by its ``makers``. Mutable containers are stored where they are among ``own``,
    by their ids: others are the program's."""

    def __init__(self, by_type: Mapping[type, Callable[[Packer, Any], list[Any]]]) -> None:
        self.rows: list[list[Any]] = []
        self.by_type = by_type
        self.recipes: dict[int, Recipe] = {}
        # where guards find objects, by their ids, and whether it is the type of what is there
        self.places: dict[int, tuple[Source, bool]] = {}
        self.own: dict[int, object] = {}
        self.modules: set[str] = set()  # that what was named is of
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []
        self._under_way: set[int] = set()

    def value(self, obj: Any) -> Any:
        kind = type(obj)
        if obj is None or kind is bool or kind is str or (kind is int and -(2**63) <= obj < 2**63):
            return obj
        number = self._numbers.get(id(obj))
        if number is None:
            if id(obj) in self._under_way:
                raise NotStorable(f"a {kind.__name__} that contains itself")
            self._under_way.add(id(obj))
            row = self._row(obj)
            self._under_way.discard(id(obj))
            number = self._numbers[id(obj)] = len(self.rows)
            self.rows.append(row)
            self._kept.append(obj)
        return [number]

    def values(self, objects: Any) -> list[Any]:
        return [self.value(obj) for obj in objects]

    def note(self, obj: object, row: list[Any]) -> None:
        """Have ``obj`` stored as ``row``."""
        self.recipes[id(obj)] = lambda packer: row

    def row(self, row: list[Any]) -> list[int]:
        """The value of a row that was made for no object."""
        self.rows.append(row)
        return [len(self.rows) - 1]

    def _row(self, obj: Any) -> list[Any]:
        recipe = self.recipes.get(id(obj))
        if recipe is not None:
            return recipe(self)
        kind = type(obj)
        if type(kind) is type:  # others may have a ``__hash__`` of the program's
            maker = self.by_type.get(kind) or _PACKERS.get(kind)
            if maker is not None:
                return maker(self, obj)
            name = record_name(kind)
            if name is not None:
                return self._record(obj, name)
        if isinstance(obj, np.dtype):
            return self._dtype(obj)
        if is_numpy_number(obj):
            return ["array scalar", obj.dtype.str, _text(obj.tobytes())]
        if isinstance(kind, enum.EnumMeta):
            return ["member of enum", self.value(kind), obj._name_]
        return self.named(obj)

    def _record(self, obj: Any, name: str) -> list[Any]:
        fields = [getattr(obj, field) for field in fields_of(name)]
        if is_made_at_capture(name):
            self.own.update((id(part), part) for part in fields if type(part) in (list, dict))
        return ["record", name, *self.values(fields)]

    def _container(self, obj: Any) -> list[Any]:
        if id(obj) not in self.own:
            for name, module in list(sys.modules.items()):
                if isinstance(module, types.ModuleType) and vars(module) is obj:
                    self.modules.add(name)
                    return ["namespace", name]
            raise NotStorable(f"a {type(obj).__name__} of the program")
        if type(obj) is dict:
            return ["dict", *self._pairs(obj)]
        return [type(obj).__name__, *self.values(obj)]

    def _pairs(self, obj: Mapping[Any, Any]) -> list[Any]:
        return [self.values(pair) for pair in obj.items()]

    def _dtype(self, obj: np.dtype[Any]) -> list[Any]:
        if obj.names is not None or obj.metadata or np.dtype(obj.str) != obj:
            if obj != dtypes.bfloat16.numpy:
                raise NotStorable(f"the dtype {obj}")
            return ["element type of NumPy", "bfloat16"]
        return ["dtype", obj.str]

    def _array(self, obj: np.ndarray[Any, Any]) -> list[Any]:
        if obj.nbytes > _MOST_BYTES or id(obj) not in self.own:
            raise NotStorable("an array of the program, or a large one")
        order = "C" if obj.flags.c_contiguous else "F"
        if obj.dtype.kind not in "biufc" or not (obj.flags.c_contiguous or obj.flags.f_contiguous):
            raise NotStorable(f"a constant array of {obj.dtype}")
        writeable = bool(obj.flags.writeable)
        return ["array", obj.dtype.str, list(obj.shape), order, writeable, _text(obj.tobytes(order="A"))]

    def named(self, obj: Any) -> list[Any]:
        """The row of an object that every process has under the same name, or finds where guards look."""
        try:
            return self._by_name(obj)
        except NotStorable:
            if id(obj) not in self.places:
                raise
        source, is_type = self.places[id(obj)]
        return ["found", self.value(source), is_type, self._description(obj)]

    def _description(self, obj: Any) -> list[Any]:
        if issubclass(type(obj), type) or type(obj) is types.FunctionType:
            self._uses(obj)
        found = describe_found(obj)
        if found is None:
            raise NotStorable(f"an object of type {type(obj).__qualname__}")
        return found

    def _by_name(self, obj: Any) -> list[Any]:
        if isinstance(obj, types.ModuleType):
            if sys.modules.get(obj.__name__) is not obj:
                raise NotStorable(f"the module {obj.__name__}, which is not in sys.modules")
            self.modules.add(obj.__name__)
            return ["module", obj.__name__]
        if issubclass(type(obj), type):
            self._uses(obj)
            return ["class", *name_of(obj), describe_class(obj)]
        if type(obj) is types.FunctionType:
            if is_own(obj.__module__) and obj.__closure__:
                return self._own_closure(obj)
            self._uses(obj)
            return ["function", *name_of(obj), describe_function(obj)]
        if type(obj) in _DESCRIPTORS:
            home, name = obj.__objclass__, obj.__name__
            if vars(home).get(name) is not obj:
                raise NotStorable(f"the descriptor {obj.__qualname__}")
            return ["descriptor", self.value(home), name]
        if type(obj) is Dispatcher or type(obj) is functools._lru_cache_wrapper:
            return self._wrapping(obj)
        receiver = getattr(obj, "__self__", None) if type(obj) is types.BuiltinFunctionType else None
        if issubclass(type(receiver), type):
            return ["method of class", self.value(receiver), obj.__name__]
        if type(receiver) in (str, bytes, int, float, tuple, frozenset):
            return ["method of constant", self.value(receiver), obj.__name__]
        module, path = name_of(obj)
        self.modules.add(module)
        return ["object", module, path, type(obj).__name__]

    def _own_closure(self, function: types.FunctionType) -> list[Any]:
        """A function of dyncomp's own that was made by another."""
        outer = function.__qualname__.partition(".<locals>.")[0]
        path = path_to(function.__code__, find(function.__module__, outer).__code__)
        if path is None:
            raise NotStorable(f"the function {function.__qualname__}")
        contents = [cell.cell_contents for cell in function.__closure__ or ()]
        return ["own closure", function.__module__, outer, path, self.values(contents)]

    def _wrapping(self, obj: Any) -> list[Any]:
        """Of a compiled or cached function of the program."""
        inner = obj._function if type(obj) is Dispatcher else obj.__wrapped__
        module, path = inner.__module__, inner.__qualname__
        if type(inner) is not types.FunctionType or not leads_to(module, path, obj):
            raise NotStorable(f"{module}.{path}, which is not found by its name")
        self.modules.add(module)
        return ["wrapping", module, path, type(obj).__name__, describe_function(inner)]

    def _uses(self, obj: Any) -> None:
        """The program's modules that a class or function is of."""
        for one in obj.__mro__ if issubclass(type(obj), type) else (obj,):
            if type(one.__module__) is str:
                self.modules.add(one.__module__)


# how objects of builtin types, and of some of ours, are stored
_PACKERS: dict[type, Callable[[Packer, Any], list[Any]]] = {
    int: lambda p, x: ["int", str(x)],
    float: lambda p, x: ["float", x.hex()],
    complex: lambda p, x: ["complex", x.real.hex(), x.imag.hex()],
    bytes: lambda p, x: ["bytes", _text(x)],
    type(...): lambda p, x: ["singleton", "..."],
    type(NotImplemented): lambda p, x: ["singleton", "NotImplemented"],
    slice: lambda p, x: ["slice", *p.values((x.start, x.stop, x.step))],
    range: lambda p, x: ["range", *p.values((x.start, x.stop, x.step))],
    tuple: lambda p, x: ["tuple", *p.values(x)],
    frozenset: lambda p, x: ["frozenset", *p.values(sorted(x, key=repr))],
    list: Packer._container,
    dict: Packer._container,
    set: Packer._container,
    dtypes.DType: lambda p, x: ["element type", x.name],
    np.ndarray: Packer._array,
    functools.partial: lambda p, x: ["partial", *p.values((x.func, x.args)), p._pairs(x.keywords)],
}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


Maker = Callable[["Unpacker", list[Any]], Any]


class Unpacker:
    """Reads what a :class:`Packer` wrote. ``makers``: what makes the objects of further kinds of rows.
    ``env``: arguments, globals, builtins and closure, in which objects are found that have no names."""

    def __init__(
        self, rows: list[list[Any]], makers: Mapping[str, Maker], env: Environment | None = None
    ) -> None:
        self.rows = rows
        self.makers = makers
        self.env = env
        self._objects: list[Any] = [_NOT_MADE] * len(rows)

    def value(self, data: Any) -> Any:
        if type(data) is not list:
            return data
        (number,) = data
        found = self._objects[number]
        if found is _NOT_MADE:
            found = self._objects[number] = self._of_row(self.rows[number])
        return found

    def values(self, data: list[Any]) -> list[Any]:
        return [self.value(one) for one in data]

    def _of_row(self, row: list[Any]) -> Any:
        kind, *parts = row
        maker = _MAKERS.get(kind) or self.makers.get(kind)
        if maker is None:
            raise Stale(f"a row of the unknown kind {kind!r}")
        return maker(self, parts)

    def pairs(self, data: list[Any]) -> dict[Any, Any]:
        return {self.value(key): self.value(value) for key, value in data}


class _NotMade:
    pass


_NOT_MADE = _NotMade()


def _class(unpacker: Unpacker, parts: list[Any]) -> Any:
    module, path, description = parts
    found = find(module, path)
    if not issubclass(type(found), type) or describe_class(found) != description:
        raise Stale(f"{module}.{path} is another class")
    return found


def _function(unpacker: Unpacker, parts: list[Any]) -> Any:
    module, path, description = parts
    found = find(module, path)
    if type(found) is not types.FunctionType or describe_function(found) != description:
        raise Stale(f"{module}.{path} is another function")
    return found


def _object(unpacker: Unpacker, parts: list[Any]) -> Any:
    module, path, kind = parts
    found = find(module, path)
    if type(found).__name__ != kind:
        raise Stale(f"{module}.{path} is a {type(found).__name__}")
    return found


def _record(unpacker: Unpacker, parts: list[Any]) -> Any:
    name, *values = parts
    return class_named(name)(*unpacker.values(values))


def _descriptor(unpacker: Unpacker, parts: list[Any]) -> Any:
    home, name = unpacker.value(parts[0]), parts[1]
    found = vars(home).get(name)
    if type(found) not in _DESCRIPTORS:
        raise Stale(f"{home.__qualname__}.{name} is no descriptor of a type written in C")
    return found


def _array(unpacker: Unpacker, parts: list[Any]) -> Any:
    dtype, shape, order, writeable, data = parts
    made = np.frombuffer(_bytes(data), dtype=np.dtype(dtype)).reshape(shape, order=order)
    made = made.copy(order=order)
    made.flags.writeable = writeable
    return made


def _own_closure(unpacker: Unpacker, parts: list[Any]) -> Any:
    module, outer, path, contents = parts
    if not is_own(module):
        raise Stale(f"a closure of {module}")
    maker = find(module, outer)
    code = inside(maker.__code__, path)
    cells = tuple(map(types.CellType, unpacker.values(contents)))
    made = types.FunctionType(code, maker.__globals__, code.co_name, None, cells)
    made.__qualname__ = code.co_qualname
    return made


def _found(unpacker: Unpacker, parts: list[Any]) -> Any:
    source, is_type, description = parts
    env = unpacker.env
    values = None if env is None else lower_guards((), [unpacker.value(source)]).read(*env)
    if values is None:
        raise Stale("an object that is not where it was")
    found = type(values[0]) if is_type else values[0]
    if describe_found(found) != description:
        raise Stale(f"another object of type {type(found).__qualname__}")
    return found


def _wrapping(unpacker: Unpacker, parts: list[Any]) -> Any:
    module, path, kind, description = parts
    found = find(module, path)
    inner = getattr(found, "_function" if kind == "Dispatcher" else "__wrapped__", None)
    if type(found).__name__ != kind or not inner or describe_function(inner) != description:
        raise Stale(f"{module}.{path} is another function")
    return found


_MAKERS: dict[str, Maker] = {
    "int": lambda u, p: int(p[0]),
    "float": lambda u, p: float.fromhex(p[0]),
    "complex": lambda u, p: complex(float.fromhex(p[0]), float.fromhex(p[1])),
    "bytes": lambda u, p: _bytes(p[0]),
    "singleton": lambda u, p: _SINGLETONS[p[0]],
    "tuple": lambda u, p: tuple(u.values(p)),
    "list": lambda u, p: u.values(p),
    "frozenset": lambda u, p: frozenset(u.values(p)),
    "set": lambda u, p: set(u.values(p)),
    "dict": lambda u, p: u.pairs(p),
    "slice": lambda u, p: slice(*u.values(p)),
    "range": lambda u, p: range(*u.values(p)),
    "element type": lambda u, p: dtypes.by_name(p[0]),
    "element type of NumPy": lambda u, p: dtypes.by_name(p[0]).numpy,
    "dtype": lambda u, p: np.dtype(p[0]),
    "array scalar": lambda u, p: np.frombuffer(_bytes(p[1]), dtype=np.dtype(p[0]))[0],
    "array": _array,
    "partial": lambda u, p: functools.partial(u.value(p[0]), *u.value(p[1]), **u.pairs(p[2])),
    "member of enum": lambda u, p: u.value(p[0])._member_map_[p[1]],
    "module": lambda u, p: module_named(p[0]),
    "namespace": lambda u, p: vars(module_named(p[0])),
    "class": _class,
    "function": _function,
    "object": _object,
    "descriptor": _descriptor,
    "record": _record,
    "wrapping": _wrapping,
    "found": _found,
    "own closure": _own_closure,
    "method of class": lambda u, p: getattr(u.value(p[0]), p[1]),
    "method of constant": lambda u, p: getattr(u.value(p[0]), p[1]),
}
