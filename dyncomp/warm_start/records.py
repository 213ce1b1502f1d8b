"""Our own classes whose objects are stored by their fields, and their names in files."""

from __future__ import annotations

import dataclasses
import importlib
from functools import cache

from ..capture.breaks import BreakRecord
from ..capture.guards import fact_kinds, guard, source
from ..device import Device
from ..frontends.base import NumberResult, OutputView
from ..graph.ir import ArrayType, Callee, Literal, Loc, SymbolBinding
from ..inductor import launch

_CLASSES: tuple[type, ...] = (
    *(BreakRecord, Loc, guard.Guard),
    *(fact_kinds.ArrayFacts, fact_kinds.CustomCheck, fact_kinds.Distinct, fact_kinds.Elements),
    fact_kinds.NoOverlap,
    *(fact_kinds.SymBinding, fact_kinds.SymCondition, fact_kinds.TensorFacts),
    *(
        source.LocalSource,
        source.CellSource,
        source.FreeCellSource,
        source.GlobalSource,
        source.BuiltinSource,
    ),
    *(source.GlobalsSource, source.ModuleSource, source.ModuleDictSource, source.AttrSource),
    *(source.TypeAttrSource, source.InstanceDictSource, source.ItemSource, source.DictKeySource),
    *(source.DictValueSource, source.TypeSource, source.CellContentsSource, source.ReferentSource),
    *(source.MappingSource, source.PartSource),
    *(launch.LaunchPlan, launch.SizeRef, launch.InputSlot, launch.SymbolSlot, launch.OutputSlot),
    *(
        launch.ArenaSlot,
        launch.KernelStep,
        launch.Part,
        launch.BufferRef,
        launch.PyCallStep,
        launch.OutputResult,
    ),
    *(ArrayType, Callee, Device, Literal, NumberResult, OutputView, SymbolBinding),
    *(launch.InputResult, launch.ViewOutput, launch.ConstantResult),
)
_BY_NAME: dict[str, type] = {f"{cls.__module__}.{cls.__name__}": cls for cls in _CLASSES}
# those of modules that are imported with their libraries only, and their fields where these are no dataclass
_LATER: dict[str, tuple[str, ...]] = {
    "dyncomp.capture.calls.float_calls._OnNumbers": ("function", "kind"),
    "dyncomp.prims.python_call.ForEach": (),
    "dyncomp.prims.scipy_routines.Routine": (),
    "dyncomp.frontends.torch.calls._Call": (),
    "dyncomp.frontends.caller.Caller": ("loc", "module"),
    "dyncomp.frontends.torch.calls._Open": (),
    "dyncomp.frontends.torch.sparse._PutTogether": (),
}


_known: dict[type, str | None] = {}


def record_name(cls: type) -> str | None:
    """The name of a class whose objects are stored by their fields."""
    if cls not in _known:
        name = f"{cls.__module__}.{cls.__name__}"
        if name not in _LATER and _BY_NAME.get(name) is not cls:
            return None
        _known[cls] = name
    return _known[cls]


def is_made_at_capture(name: str) -> bool:
    """Whether lists and dicts in such a record are capture's own."""
    return name in _LATER


def class_named(name: str) -> type:
    """The class that :func:`record_name` named. ``KeyError`` for other names."""
    if name not in _LATER:
        return _BY_NAME[name]
    module, _, short = name.rpartition(".")
    found = getattr(importlib.import_module(module), short)
    assert isinstance(found, type)
    return found


@cache
def fields_of(name: str) -> tuple[str, ...]:
    """The fields of the class of that name, in the order in which it takes them."""
    given = _LATER.get(name)
    return given or tuple([field.name for field in dataclasses.fields(class_named(name))])
