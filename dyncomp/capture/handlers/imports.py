"""Imports in the frame: those that only look a loaded module up are followed, others break the graph."""

from __future__ import annotations

import builtins
import importlib.util
import sys
import types

from ..breaks import Break
from ..guards.guard import Kind
from ..guards.source import AttrSource, BuiltinSource, ItemSource, ModuleSource, Source
from ..values.base import Frame, Tracer
from ..values.obj import ModuleValue
from .registry import handles

_IMPORT = builtins.__import__


@handles("IMPORT_NAME")
def import_name(tracer: Tracer, frame: Frame, name: str) -> None:
    level, fromlist = frame.popn(2)
    tracer.guard(BuiltinSource("__import__"), Kind.IS, _IMPORT)
    full = _absolute_name(tracer, frame, name, tracer.constant_of(level, "an import's level"))
    module = loaded(tracer, full)
    wanted = fromlist.const
    module_name = full
    if wanted:
        if _asks_for_path(tracer, module):
            raise Break("import", f"the import asks {full} for its __path__")
        for entry in wanted:
            if entry == "*" or not _has(module, entry) or _may_import(module, entry):
                raise Break("import", f"{entry} is imported from {full}")
    elif not name.partition(".")[2]:
        pass
    else:
        module_name = full.partition(".")[0]
        module = loaded(tracer, module_name)
    frame.push(tracer.child_or_constant(module, _source_of(tracer, module_name)))


def _absolute_name(tracer: Tracer, frame: Frame, name: str, level: int) -> str:
    if not level:
        return name
    namespace = frame.globals[0]
    package = namespace.get("__package__")
    if not isinstance(package, str) or not package:
        raise Break("import", f"relative import of {name or '.'}")
    absolute: str = tracer.fold(importlib.util.resolve_name, "." * level + name, package)
    return absolute


def loaded(tracer: Tracer, name: str) -> types.ModuleType:
    """The module, if it is loaded completely."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if type(module) is not types.ModuleType or getattr(spec, "_initializing", False):
        raise Break("import", f"import of {name}")
    source = _source_of(tracer, name)
    if source is not None:
        tracer.guard(source, Kind.IS, module)
    return module


def _source_of(tracer: Tracer, name: str) -> Source | None:
    """Where a module is found again, so that its members are guarded; not those of array libraries."""
    if tracer.config.is_trusted(name):
        return None
    return ItemSource(AttrSource(ModuleSource("sys"), "modules"), name)


def _has(module: types.ModuleType, name: str) -> bool:
    return name in vars(module) or "__getattr__" in vars(module)


def _asks_for_path(tracer: Tracer, module: types.ModuleType) -> bool:
    """Whether ``from`` runs code of the program to learn that a module is no package."""
    namespace = vars(module)
    is_trusted = tracer.config.is_trusted(namespace.get("__name__", ""))
    return "__getattr__" in namespace and "__path__" not in namespace and not is_trusted


def _may_import(module: types.ModuleType, name: str) -> bool:
    """Whether the name is no member yet: the import asks a package's ``__getattr__``, and imports a submodule
    where that has none."""
    return name not in vars(module) and "__path__" in vars(module)


@handles("IMPORT_FROM")
def import_from(tracer: Tracer, frame: Frame, name: str) -> None:
    module = frame.stack[-1]
    if not isinstance(module, ModuleValue) or not _has(module.module, name):
        raise Break("import", f"{name} is imported from {module.describe()}")
    frame.push(module.getattr(tracer, name))
