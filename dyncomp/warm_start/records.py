"""Our own classes whose objects are stored by their fields, and their names in files."""

from __future__ import annotations

import dataclasses
from functools import cache

from ..capture.breaks import BreakRecord
from ..capture.guards import fact_kinds, guard, source
from ..device import Device
from ..frontends.base import OutputView
from ..graph.ir import ArrayType, Callee, Literal, Loc, SymbolBinding
from ..inductor import launch

_CLASSES: tuple[type, ...] = (
    *(BreakRecord, Loc, guard.Guard),
    *(fact_kinds.ArrayFacts, fact_kinds.CustomCheck, fact_kinds.NoOverlap),
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
    *(launch.LaunchPlan, launch.SizeRef, launch.InputSlot, launch.SymbolSlot, launch.OutputSlot),
    *(launch.ArenaSlot, launch.KernelStep, launch.BufferRef, launch.PyCallStep, launch.OutputResult),
    *(ArrayType, Callee, Device, Literal, OutputView, SymbolBinding),
    *(launch.InputResult, launch.ViewOutput, launch.ConstantResult),
)
RECORDS: dict[str, type] = {cls.__name__: cls for cls in _CLASSES}
_NAMES = {cls: name for name, cls in RECORDS.items()}


def record_name(cls: type) -> str | None:
    return _NAMES.get(cls)


@cache
def fields_of(name: str) -> tuple[str, ...]:
    """The fields of the class of that name, in order."""
    return tuple([field.name for field in dataclasses.fields(RECORDS[name])])
