"""The standard library's ``dataclass``, quicker to make.

``dataclasses`` compiles the text of five methods per class: with some two hundred classes that was almost
half of the time that ``import dyncomp`` and a first call take. Here methods come from templates, one per
number and kind of fields, with the names put in. Fields, ``fields``, ``replace`` and ``asdict`` are the
standard ones.
"""

from __future__ import annotations

import dataclasses
import functools
import reprlib
from collections.abc import Callable
from dataclasses import field as field
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, init=True, eq=True, frozen=False, slots=False):
        """As ``dataclasses.dataclass``, of which it takes only what is used here."""

        def make(cls: type) -> type:
            return _made(cls, init, eq, frozen, slots)

        return make if cls is None else make(cls)


# what may be read in the templates
_GLOBALS = {"set_": object.__setattr__, "made": dataclasses._HAS_DEFAULT_FACTORY}  # type: ignore[attr-defined]
_PLAIN, _MADE, _ALWAYS_MADE = "plain", "made", "always made"


def _made(cls: type, init: bool, eq: bool, frozen: bool, slots: bool) -> type:
    own = dict(vars(cls))
    # as dataclasses has it: a class with __eq__ of its own has None there
    has_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    fields = dataclasses.fields(cls)
    names = tuple([f.name for f in fields if f.compare])
    hashed = tuple([f.name for f in fields if (f.compare if f.hash is None else f.hash)])
    methods: dict[str, Any] = {"__repr__": _repr}
    if init:
        methods["__init__"] = _init(cls, frozen)
    if eq:
        methods["__eq__"] = _of_names(cls, "__eq__", _equal_template(len(names)), names)
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    if eq and not has_hash:
        made = _of_names(cls, "__hash__", _hash_template(len(hashed)), hashed) if frozen else None
        cls.__hash__ = made  # type: ignore[assignment, method-assign]
    if frozen:
        _freeze(cls, own, slots)
    return cls


def _freeze(cls: Any, own: dict[str, Any], slots: bool) -> None:
    for name in ("__setattr__", "__delattr__"):
        if name in own:
            raise TypeError(f"cannot overwrite attribute {name} in class {cls.__name__}")
    names = frozenset(known.name for known in dataclasses.fields(cls))

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__ = __setattr__
    cls.__delattr__ = __delattr__
    if slots and "__getstate__" not in own:
        cls.__getstate__ = _state
        cls.__setstate__ = _set_state


def _state(self: Any) -> list[Any]:
    return [getattr(self, known.name) for known in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for known, value in zip(dataclasses.fields(self), state):
        object.__setattr__(self, known.name, value)


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


# -- templates --------------------------------------------------------------------------------------
def _compiled(text: str) -> CodeType:
    namespace: dict[str, Any] = {}
    exec(text, _GLOBALS, namespace)
    code: CodeType = namespace["template"].__code__
    return code


@functools.cache
def _equal_template(count: int) -> CodeType:
    ours, theirs = ("".join(f"{who}._{k}_, " for k in range(count)) for who in ("self", "other"))
    return _compiled(
        "def template(self, other):\n"
        "    if other.__class__ is self.__class__:\n"
        f"        return ({ours}) == ({theirs})\n"
        "    return NotImplemented\n"
    )


@functools.cache
def _hash_template(count: int) -> CodeType:
    values = "".join(f"self._{k}_, " for k in range(count))
    return _compiled(f"def template(self):\n    return hash(({values}))\n")


@functools.cache
def _init_template(kinds: tuple[str, ...], frozen: bool, followed: bool) -> CodeType:
    """``__init__`` of fields ``_0_``, ``_1_``…; what makes their defaults are constants ``'=0'``…"""
    parameters = [f"_{k}_" for k, kind in enumerate(kinds) if kind != _ALWAYS_MADE]
    lines = [f"def template({', '.join(['self', *parameters])}):"]
    for k, kind in enumerate(kinds):
        value = f"_{k}_"
        if kind != _PLAIN:
            lines.append(f"    make = '={k}'")
        if kind == _ALWAYS_MADE:
            value = "make()"
        elif kind == _MADE:
            value = f"make() if _{k}_ is made else _{k}_"
        lines.append(f"    set_(self, '_{k}_', {value})" if frozen else f"    self._{k}_ = {value}")
    lines.append("    self.__post_init__()" if followed else "    return None")
    return _compiled("\n".join(lines))


def _init(cls: type, frozen: bool) -> FunctionType:
    kinds, names, constants, defaults = [], [], {}, []
    for known in dataclasses.fields(cls):
        if not known.init and known.default_factory is dataclasses.MISSING:
            continue  # the class has its default
        kinds.append(_kind(known))
        names.append(known.name)
        if known.default_factory is not dataclasses.MISSING:
            constants[f"={len(kinds) - 1}"] = known.default_factory
        if known.init and kinds[-1] == _MADE:
            defaults.append(_GLOBALS["made"])
        elif known.init and known.default is not dataclasses.MISSING:
            defaults.append(known.default)
    code = _init_template(tuple(kinds), frozen, hasattr(cls, "__post_init__"))
    return _of_names(cls, "__init__", code, tuple(names), constants, tuple(defaults))


def _kind(known: dataclasses.Field[Any]) -> str:
    if known.default_factory is dataclasses.MISSING:
        return _PLAIN
    return _MADE if known.init else _ALWAYS_MADE


def _of_names(
    cls: type,
    name: str,
    template: CodeType,
    names: tuple[str, ...],
    constants: dict[str, Callable[[], Any]] | None = None,
    defaults: tuple[Any, ...] = (),
) -> FunctionType:
    """The template with the names of fields in place of ``_0_``, ``_1_``…"""
    put: dict[Any, Any] = {f"_{k}_": field for k, field in enumerate(names)}

    def renamed(found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([put.get(text, text) for text in found])

    known = {**put, **(constants or {})}
    code = template.replace(
        co_names=renamed(template.co_names),
        co_varnames=renamed(template.co_varnames),
        co_consts=tuple([known.get(c, c) if type(c) is str else c for c in template.co_consts]),
        co_name=name,
        co_qualname=f"{cls.__qualname__}.{name}",
    )
    return FunctionType(code, _GLOBALS, name, defaults or None)
