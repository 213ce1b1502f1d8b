"""Lowering of guards to the instructions of ``_hook.GuardProgram``.

Every source becomes one load into a register, emitted right before the first guard that needs it; a guard
becomes one check. The result runs in C (``csrc/program.c``).
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dyncomp.capture.guards import source as src
from dyncomp.capture.guards.class_facts import ClassFacts, still_holds
from dyncomp.capture.guards.fact_kinds import (
    ArrayFacts,
    CodeFacts,
    CustomCheck,
    Distinct,
    Elements,
    NoOverlap,
    SymCondition,
    TensorFacts,
)
from dyncomp.capture.guards.module_facts import ModuleFacts, still_there
from dyncomp.capture.guards.serial import code_hash, is_constant
from dyncomp.capture.objects.class_kinds import SPECIAL_FORM
from dyncomp.hook import _hook

if TYPE_CHECKING:
    from .guard import Guard

OPS = _hook.OPS

# numpy's ndarray flags
_C_CONTIGUOUS = 0x0001
_F_CONTIGUOUS = 0x0002
_ALIGNED = 0x0100
_WRITEABLE = 0x0400

_WHAT = {"int": 0, "dim": 1, "stride": 2, "size": 3, "len": 4, "tdim": 5, "tstride": 6}
_CODES = [
    "const",
    "symbol",
    "add",
    "sub",
    "mul",
    "neg",
    "floordiv",
    "mod",
    "min",
    "max",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and",
    "or",
    "not",
]
_RELATIONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le"}
_SIZED = (list, tuple, dict, set, frozenset, str, bytes)

Instruction = tuple[int, int, int, int, Any, int]


class GuardRefused(ValueError):
    """A guard cannot be checked in C without running user code, or does not hold at capture."""


class Lowering:
    """Builds the instruction list; ``guard`` numbers the guard being lowered (-1: outputs)."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.registers: dict[src.Source, int] = {}
        self.symbols: dict[Any, int] = {}
        self.guard = -1

    # -- loads --------------------------------------------------------------------------------
    def read(self, source: src.Source) -> int:
        """The register that holds ``source``."""
        known = self.registers.get(source)
        if known is not None:
            return known
        lower = _LOADS.get(type(source))
        if lower is None:
            raise GuardRefused(f"{source.expr()}: unknown kind of source {type(source).__name__}")
        op, a, b, obj = lower(self, source)
        register = len(self.registers)
        self.instructions.append((OPS[op], register, a, b, obj, self.guard))
        self.registers[source] = register
        return register

    def check(self, op: str, register: int, obj: object = None, a: int = 0, b: int = 0) -> None:
        self.instructions.append((OPS[op], register, a, b, obj, self.guard))

    def symbol(self, binding: Any) -> int:
        """The number of the int64 symbol that ``binding`` reads."""
        key = (binding.source, binding.what, binding.axis)
        if key not in self.symbols:
            if len(self.symbols) >= 256:
                raise GuardRefused("more than 256 symbolic sizes")
            if binding.what not in _WHAT or not 0 <= binding.axis < 64:
                raise GuardRefused(f"{binding.expr()}: cannot be read as an integer")
            register = self.read(binding.source)
            number = self.symbols[key] = len(self.symbols)
            self.check("SYMBOL", register, a=number, b=_WHAT[binding.what] | binding.axis << 4)
        return self.symbols[key]


def _lower_item(low: Lowering, source: Any) -> tuple[str, int, int, Any]:
    key = source.key
    index = key if type(key) is int and 0 <= key < 2**31 else -1
    if not is_plain_key(key):
        raise GuardRefused(f"{source.expr()}: keys of type {type(key).__name__} run user code when compared")
    return "ITEM", low.read(source.base), index, key


# how members of enums are hashed and compared that do not say otherwise
_ENUM_HASHES = (enum.Enum.__hash__, int.__hash__, str.__hash__)
_ENUM_EQUALITIES = (object.__eq__, int.__eq__, str.__eq__)


# classes of constants of a library in C, each of which there is once
_SINGLETONS = frozenset({"dtype", "layout", "memory_format"})


def is_plain_key(key: object) -> bool:
    if type(key) is tuple:
        return all(map(is_plain_key, key))
    if type(key) is float and key != key:
        return False  # a NaN is found by its identity
    if issubclass(type(key), SPECIAL_FORM):
        return type(key).__hash__ is object.__hash__
    if isinstance(key, type):
        return type(key).__hash__ is type.__hash__ and type(key).__eq__ is type.__eq__
    if isinstance(type(key), enum.EnumMeta):
        return type(key).__hash__ in _ENUM_HASHES and type(key).__eq__ in _ENUM_EQUALITIES
    kind = type(key)
    if kind.__module__ == "torch" and kind.__name__ in _SINGLETONS:
        return kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__
    return kind in (
        str,
        int,
        float,
        bool,
        type(None),
        bytes,
        types.FunctionType,
        types.BuiltinFunctionType,
    )


def _module(name: str) -> types.ModuleType:
    module = sys.modules.get(name)
    if module is None:
        raise GuardRefused(f"module {name} is not imported")
    return module


def _step(op: str) -> Callable[[Lowering, Any], tuple[str, int, int, Any]]:
    return lambda low, s: (op, low.read(s.base), 0, None)


def _named(op: str) -> Callable[[Lowering, Any], tuple[str, int, int, Any]]:
    return lambda low, s: (op, low.read(s.base), 0, s.attr)


def _nth(op: str) -> Callable[[Lowering, Any], tuple[str, int, int, Any]]:
    return lambda low, s: (op, low.read(s.base), s.index, None)


_LOADS: dict[type[src.Source], Callable[[Lowering, Any], tuple[str, int, int, Any]]] = {
    src.LocalSource: lambda low, s: ("LOAD_ARG", s.index, 0, None),
    src.CellSource: lambda low, s: ("LOAD_CELL", s.index, 0, None),
    src.FreeCellSource: lambda low, s: ("LOAD_FREE_CELL", s.index, 0, None),
    src.GlobalSource: lambda low, s: ("LOAD_GLOBAL", 0, 0, s.key),
    src.BuiltinSource: lambda low, s: ("LOAD_BUILTIN", 0, 0, s.key),
    src.GlobalsSource: lambda low, s: ("LOAD_GLOBALS", 0, 0, None),
    src.ModuleSource: lambda low, s: ("LOAD_CONST", 0, 0, _module(s.module)),
    src.ModuleDictSource: lambda low, s: ("LOAD_CONST", 0, 0, vars(_module(s.module))),
    src.ConstSource: lambda low, s: ("LOAD_CONST", 0, 0, s.obj),
    src.AttrSource: _named("ATTR"),
    src.TypeAttrSource: _named("TYPE_ATTR"),
    src.InstanceDictSource: _named("INSTANCE_ATTR"),
    src.ItemSource: _lower_item,
    src.DictKeySource: _nth("DICT_KEY"),
    src.DictValueSource: _nth("DICT_VALUE"),
    src.TypeSource: _step("TYPE"),
    src.CellContentsSource: _step("CELL_CONTENTS"),
    src.ReferentSource: _step("REFERENT"),
    src.MappingSource: _step("MAPPING"),
}


# -- checks -----------------------------------------------------------------------------------
def _source(guard: Guard) -> src.Source:
    if not isinstance(guard.source, src.Source):
        raise GuardRefused(f"a guard of kind {guard.kind} needs a source")
    return guard.source


def _by_object(op: str) -> Callable[[Lowering, Any], None]:
    return lambda low, g: low.check(op, low.read(_source(g)), g.expected)


def _lower_type(low: Lowering, guard: Guard) -> None:
    if not isinstance(guard.expected, type):
        raise GuardRefused(f"{guard.kind} expects a type, not {guard.expected!r}")
    low.check("TYPE_IS", low.read(_source(guard)), guard.expected)


def _lower_equals(low: Lowering, guard: Guard) -> None:
    if not is_constant(guard.expected):
        raise GuardRefused(f"{guard.expected!r} is no constant that can be compared without user code")
    low.check("EQUALS", low.read(_source(guard)), guard.expected)


def _lower_bool(low: Lowering, guard: Guard) -> None:
    if not isinstance(guard.expected, bool):
        raise GuardRefused(f"BOOL expects a bool, not {guard.expected!r}")
    low.check("IS", low.read(_source(guard)), guard.expected)


def _has_c_length(kind: type) -> bool:
    if issubclass(kind, _SIZED):
        return getattr(kind, "__len__", None) in [base.__len__ for base in _SIZED]
    # a type written in C: its __len__ is a slot wrapper
    return isinstance(getattr(kind, "__len__", None), types.WrapperDescriptorType) and kind.__module__ in (
        "builtins",
        "collections",
    )


def _lower_len(low: Lowering, guard: Guard) -> None:
    kind, length = guard.expected
    if not isinstance(kind, type) or not _has_c_length(kind):
        raise GuardRefused(f"the length of {kind!r} is computed by user code")
    if not 0 <= length < 2**31:
        raise GuardRefused(f"length {length} out of range")
    low.check("LEN", low.read(_source(guard)), kind, a=length)


def _lower_key(op: str) -> Callable[[Lowering, Any], None]:
    def lower(low: Lowering, guard: Guard) -> None:
        if not is_plain_key(guard.expected):
            raise GuardRefused(f"keys of type {type(guard.expected).__name__} run user code when compared")
        low.check(op, low.read(_source(guard)), guard.expected)

    return lower


def _lower_attribute(op: str) -> Callable[[Lowering, Any], None]:
    def lower(low: Lowering, guard: Guard) -> None:
        if type(guard.expected) is not str:
            raise GuardRefused(f"{guard.kind} expects an attribute name")
        low.check(op, low.read(_source(guard)), guard.expected)

    return lower


def _lower_code(low: Lowering, guard: Guard) -> None:
    facts = guard.expected
    if not isinstance(facts, CodeFacts):
        raise GuardRefused("CODE_IS expects CodeFacts")
    low.check("CODE_IS", low.read(_source(guard)), (facts.code, code_hash, facts.hash))


def array_flags(facts: ArrayFacts) -> tuple[int, int]:
    """NumPy flag bits that must be set, and clear."""
    on = off = 0
    if facts.layout is not None:
        on |= {"C": _C_CONTIGUOUS, "F": _F_CONTIGUOUS}[facts.layout]
    for wanted, bit in ((facts.aligned, _ALIGNED), (facts.writeable, _WRITEABLE)):
        if wanted is not None:
            on |= bit if wanted else 0
            off |= 0 if wanted else bit
    return on, off


def _lower_array(low: Lowering, guard: Guard) -> None:
    facts = guard.expected
    if not isinstance(facts, ArrayFacts) or not issubclass(facts.type, np.ndarray):
        raise GuardRefused("ARRAY expects ArrayFacts of an ndarray type")
    spec = (facts.type, facts.dtype, facts.shape, facts.strides, *array_flags(facts))
    low.check("ARRAY", low.read(_source(guard)), spec)


def _lower_tensor(low: Lowering, guard: Guard) -> None:
    facts = guard.expected
    if not isinstance(facts, TensorFacts):
        raise GuardRefused("TORCH_TENSOR expects TensorFacts")
    spec = (facts.type, facts.dtype, tuple(facts.shape), facts.strides, facts.device)
    low.check("TENSOR", low.read(_source(guard)), spec)


def _lower_elements(low: Lowering, guard: Guard) -> None:
    if not isinstance(guard.expected, Elements):
        raise GuardRefused("ELEMENTS expects Elements")
    low.check("ELEMENTS", low.read(_source(guard)), guard.expected.data)


def _lower_condition(low: Lowering, guard: Guard) -> None:
    condition = guard.expected
    if not isinstance(condition, SymCondition) or condition.relation not in _RELATIONS:
        raise GuardRefused("SYM expects a SymCondition")
    numbers = {binding.symbol: low.symbol(binding) for binding in condition.bindings}
    flat: list[int] = []
    for item in condition.program:
        if isinstance(item, int):
            if not -(2**63) <= item < 2**63:
                raise GuardRefused(f"{condition}: constant {item} does not fit int64")
            flat += [_CODES.index("const"), item]
        elif item in numbers:
            flat += [_CODES.index("symbol"), numbers[item]]
        elif item in _CODES[2:]:
            flat += [_CODES.index(item), 0]
        else:
            raise GuardRefused(f"{condition}: symbol {item} has no binding")
    low.check("CONDITION", 0, tuple(flat), a=_CODES.index(_RELATIONS[condition.relation]))


def _lower_overlap(low: Lowering, guard: Guard) -> None:
    facts = guard.expected
    if not isinstance(facts, NoOverlap):
        raise GuardRefused("NO_OVERLAP expects NoOverlap")
    registers = tuple(low.read(source) for source in facts.arrays)
    wanted = str(guard.kind) == "NO_OVERLAP"
    low.check("DISJOINT", 0, (registers, tuple(facts.mutated)), a=int(wanted))


def _lower_distinct(low: Lowering, guard: Guard) -> None:
    facts = guard.expected
    if not isinstance(facts, Distinct):
        raise GuardRefused("DISTINCT expects Distinct")
    low.check("DISJOINT", 0, (tuple(low.read(source) for source in facts.objects), ()), a=2)


def _lower_region(low: Lowering, guard: Guard) -> None:
    errors, outside = guard.expected
    low.check("REGION", 0, a=int(errors), b=int(outside))


def _lower_same(op: str) -> Callable[[Lowering, Any], None]:
    def lower(low: Lowering, guard: Guard) -> None:
        if not isinstance(guard.expected, src.Source):
            raise GuardRefused(f"{guard.kind} expects a source")
        low.check(op, low.read(_source(guard)), a=low.read(guard.expected))

    return lower


def _lower_errstate(low: Lowering, guard: Guard) -> None:
    if _hook.errstate() is None:
        raise GuardRefused("NumPy's floating-point error state cannot be read")
    modes = [(guard.expected >> 3 * i) & 7 for i in range(4)]
    if any(mode in (3, 5) for mode in modes):
        raise GuardRefused("floating-point errors call user code (np.seterrcall)")
    low.check("ERRSTATE", 0, a=guard.expected)


def _lower_custom(low: Lowering, guard: Guard) -> None:
    check = guard.expected
    if not isinstance(check, CustomCheck):
        raise GuardRefused("CUSTOM_ARRAY expects a CustomCheck")
    low.check("PYCHECK", low.read(_source(guard)), (check.check, check.expected))


def _lower_class(low: Lowering, guard: Guard) -> None:
    facts = guard.expected
    if not isinstance(facts, ClassFacts):
        raise GuardRefused("CLASS expects ClassFacts")
    low.check("CLASS", 0, (still_holds, facts, facts.cls))


def _lower_module(low: Lowering, guard: Guard) -> None:
    facts = guard.expected
    if not isinstance(facts, ModuleFacts):
        raise GuardRefused("MODULE expects ModuleFacts")
    low.check("DICT", 0, (still_there, facts, facts.namespace))


def _lower_keys(low: Lowering, guard: Guard) -> None:
    low.check("DICT_KEYS", low.read(_source(guard)), tuple(guard.expected))


_CHECKS: dict[str, Callable[[Lowering, Any], None]] = {
    "TYPE_IS": _lower_type,
    "NUMPY_SCALAR": _lower_type,
    "IS": _by_object("IS"),
    "IS_NOT": _by_object("IS_NOT"),
    "EQUALS": _lower_equals,
    "BOOL": _lower_bool,
    "NONE": lambda low, g: low.check("IS", low.read(_source(g)), None),
    "NOT_NONE": lambda low, g: low.check("IS_NOT", low.read(_source(g)), None),
    "LEN": _lower_len,
    "DICT_KEYS": _lower_keys,
    "DICT_HAS": _lower_key("DICT_HAS"),
    "DICT_LACKS": _lower_key("DICT_LACKS"),
    "HASATTR": _lower_attribute("HASATTR"),
    "NOATTR": _lower_attribute("NOATTR"),
    "INSTANCE_HAS": _lower_attribute("INSTANCE_HAS"),
    "INSTANCE_LACKS": _lower_attribute("INSTANCE_LACKS"),
    "CODE_IS": _lower_code,
    "GLOBAL_MISSING": lambda low, g: low.check("GLOBAL_MISSING", 0, g.expected),
    "ARRAY": _lower_array,
    "PYINT_FITS_INT64": lambda low, g: low.check("INT64", low.read(_source(g))),
    "SYM": _lower_condition,
    "NO_OVERLAP": _lower_overlap,
    "OVERLAP": _lower_overlap,
    "DISTINCT": _lower_distinct,
    "REGION": _lower_region,
    "SAME_OBJECT": _lower_same("SAME"),
    "NOT_SAME_OBJECT": _lower_same("NOT_SAME"),
    "ERRSTATE": _lower_errstate,
    "CLASS": _lower_class,
    "MODULE": _lower_module,
    "CUSTOM_ARRAY": _lower_custom,
    "ELEMENTS": _lower_elements,
    "TORCH_TENSOR": _lower_tensor,
}


def lower_guards(guards: Iterable[Any], outputs: Sequence[src.Source]) -> _hook.GuardProgram:
    """The C program for ``guards`` (without equal repetitions) and ``outputs``."""
    low, kept, registers = lower_all(guards, outputs)
    try:
        return _hook.GuardProgram(low.instructions, len(low.registers), tuple(kept), registers)
    except (ValueError, TypeError) as error:
        raise GuardRefused(str(error)) from error


def lower_all(
    guards: Iterable[Any], outputs: Sequence[src.Source]
) -> tuple[Lowering, list[Guard], list[int]]:
    """The instructions, the guards without equal repetitions, and the registers of ``outputs``."""
    low = Lowering()
    kept: list[Any] = []
    seen: set[tuple[Any, ...]] = set()
    for guard in guards:
        low.guard = len(kept)
        before = len(low.instructions)
        lower = _CHECKS.get(str(guard.kind))
        if lower is None:
            raise GuardRefused(f"unknown kind of guard {guard.kind!r}")
        lower(low, guard)
        key = _identity(low.instructions[-1])
        if key in seen and len(low.instructions) == before + 1:
            low.instructions.pop()
            continue
        seen.add(key)
        kept.append(guard)
    low.guard = -1
    return low, kept, [low.read(source) for source in outputs]


def _identity(instruction: Instruction) -> tuple[Any, ...]:
    """Equal for instructions that check the same."""
    op, register, a, b, obj, _ = instruction
    return (op, register, a, b, _object_identity(obj))


def _object_identity(obj: object) -> Any:
    if type(obj) is tuple:
        return tuple(map(_object_identity, obj))
    if type(obj) in (int, str, bytes, bool):
        return (type(obj), obj)
    if isinstance(obj, np.dtype):
        return ("dtype", obj.str if obj.names is None else id(obj))
    return id(obj)
