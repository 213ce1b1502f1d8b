"""What a library for C takes and gives: arguments, what sizes are made of, results."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...capture.guards.fact_kinds import ArrayFacts, NoOverlap, SymBinding, SymCondition, TensorFacts
from ...capture.guards.guard import Guard, Kind
from ...capture.guards.source import Source
from ...dataclass import dataclass, field
from ...dtypes import DType, from_numpy, int64
from ...errors import ExportError
from ...inductor.launch import (
    InputResult,
    InputSlot,
    KernelStep,
    LaunchPlan,
    OutputResult,
    ViewOutput,
    parts_of,
)
from ...inductor.schedule import Module
from ...symbolic.assumptions import renamed
from ..captured import WholeFunction
from .expressions import condition_text

_C_TYPES = {"bool": "uint8_t", "float32": "float", "float64": "double"}
_C_TYPES |= {"float16": "uint16_t", "bfloat16": "uint16_t"}
# of C and C++; what is reserved in Python is never an argument's name
_RESERVED = """auto bool break case catch char class const continue default delete do double else enum
explicit export extern float for friend goto if inline int long main mutable namespace new operator private
protected public register restrict return short signed sizeof static struct switch template this throw try
typedef typename union unsigned using virtual void volatile wchar_t while"""
RESERVED = frozenset(_RESERVED.split())


@dataclass(frozen=True, eq=False)
class ArrayArgument:
    """An array that callers give. ``place``: its number among the graph's inputs, ``None`` where only its
    shape is asked for. ``fixed``: the sizes that it was exported for, ``None`` where they are free.
    ``strides``: in elements, ``None`` for C order along this axis."""

    name: str
    text: str
    dtype: DType
    fixed: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    place: int | None = None
    written: bool = False

    @property
    def rank(self) -> int:
        return len(self.fixed)


@dataclass(frozen=True, eq=False)
class NumberArgument:
    """A number that callers give. ``sizes``: it may be part of sizes, which bounds it."""

    name: str
    text: str
    dtype: DType
    place: int | None = None
    sizes: bool = False


Argument = ArrayArgument | NumberArgument


@dataclass(frozen=True, eq=False)
class OutputArgument:
    """A result: ``result`` says what of the graph it is."""

    name: str
    dtype: DType
    rank: int
    result: OutputResult | InputResult | ViewOutput


@dataclass(frozen=True, eq=False)
class Condition:
    """What sizes must satisfy: an expression of C, and words (none where C order implies it)."""

    test: str
    words: str


@dataclass(eq=False)
class Interface:
    """All of it. ``symbols``: the text in C of each symbol of the kernels; ``called``: what people call it.
    ``notes``: arguments that are fixed, and results that are no arrays."""

    name: str
    plan: LaunchPlan
    module: Module
    whole: WholeFunction
    arguments: list[Argument] = field(default_factory=list)
    outputs: list[OutputArgument] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    symbols: dict[str, str] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    weights: dict[int, Any] = field(default_factory=dict)

    def at(self, place: int) -> Argument | None:
        """The argument that is the graph's input number ``place``."""
        return next((a for a in self.arguments if a.place == place), None)

    def called_size(self, argument: ArrayArgument, axis: int) -> str:
        """A size of an argument, for people."""
        size = argument.fixed[axis]
        if size is not None:
            return str(size)
        return self.whole.size_names.get((argument.text, axis), f"{argument.name}_shape[{axis}]")


def c_type(dtype: DType, prefix: str) -> str:
    """The type of an element in C."""
    if dtype.is_complex:
        return f"{prefix}_{dtype.name}"
    return _C_TYPES.get(dtype.name, f"{dtype.name}_t")


def alignment_of(dtype: DType) -> int:
    return dtype.real.itemsize


def interface_of(name: str, whole: WholeFunction) -> Interface:
    """Raises :class:`ExportError` for what cannot run without Python."""
    artifact: Any = whole.record.compiled.artifact
    plan = artifact.plan
    if not isinstance(plan, LaunchPlan):
        raise ExportError(f"{whole.name}: arrays on a GPU, or sizes that depend on the data")
    refuse_calls(whole, plan)
    made = _Maker(Interface(name, plan, artifact.module, whole))
    return made.interface()


def refuse_calls(whole: WholeFunction, plan: LaunchPlan) -> None:
    """Raises :class:`ExportError` that names what the graph calls in Python, and where."""
    calls = []
    for step in plan.steps:
        if not isinstance(step, KernelStep):
            (part,) = parts_of(step)
            where = f" ({'; '.join(part.origin)})" if part.origin else ""
            calls.append(f"{part.name}{where}")
    if calls:
        text = ", ".join(dict.fromkeys(calls))
        raise ExportError(f"{whole.name} calls routines of Python's libraries, which C has not: {text}")


class _Maker:
    def __init__(self, made: Interface) -> None:
        self.made = made
        self.whole = made.whole
        self.taken: set[str] = set()
        self.by_source: dict[str, Argument] = {}
        self.guards = self.whole.guards_of_arguments()
        self.facts: dict[str, ArrayFacts | TensorFacts] = {}
        for guard in self.guards:
            if guard.source is not None and guard.kind in (Kind.ARRAY, Kind.TORCH_TENSOR):
                self.facts[guard.source.expr()] = guard.expected

    def interface(self) -> Interface:
        made, plan = self.made, self.made.plan
        inputs = list(zip(self.whole.signature.inputs, plan.inputs, strict=True))
        for place, (source, slot) in enumerate(inputs):
            if self.whole.is_given(source):
                self.give(source, slot, place)
            elif slot.kind == "array":
                if slot.writable:
                    raise ExportError(f"{self.whole.name} writes to {source.expr()}, which is no argument")
                made.weights[place] = self.whole.read(source)
            elif slot.kind != "object":
                raise ExportError(f"{source.expr()} is a number that the graph reads: make it an argument")
        for name, symbol in zip(made.module.symbols, plan.symbols, strict=True):
            self.name_symbol(name, symbol.kind, symbol.input, symbol.dim)
        for guard in self.guards:
            self.take_guard(guard)
        self.note_the_rest()
        self.take_result(self.whole.signature.result, "result")
        self.check_results()
        return made

    # -- arguments --------------------------------------------------------------------------------
    def unique(self, text: str) -> str:
        """An identifier of C for an expression of Python."""
        word = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "value"
        if word[0].isdigit():
            word = f"_{word}"
        if word in RESERVED or keyword.iskeyword(word):
            word += "_"
        name, k = word, 1
        while {name, f"{name}_shape", f"{name}_size"} & self.taken:
            name, k = f"{word}_{k}", k + 1
        self.taken |= {name, f"{name}_shape", f"{name}_size"}
        return name

    def give(self, source: Source, slot: InputSlot, place: int) -> None:
        text = source.expr()
        if slot.kind == "object":
            return
        if slot.kind == "array":
            assert slot.dtype is not None
            if text in self.by_source:
                raise ExportError(f"{self.whole.name} takes {text} twice")
            self.add(self.array(source, slot, place))
            return
        dtype = int64 if slot.kind == "symint" else slot.dtype
        assert dtype is not None
        self.add(NumberArgument(self.unique(text), text, dtype, place, slot.kind == "symint"))

    def add(self, argument: Argument) -> None:
        self.by_source[argument.text] = argument
        self.made.arguments.append(argument)

    def array(self, source: Source, slot: InputSlot, place: int) -> ArrayArgument:
        text = source.expr()
        _, shape, strides = memory_of(self.whole, self.whole.read(source))
        known: Sequence[int | None] = slot.shape or (None,) * slot.ndim
        facts = self.facts.get(text)
        checked: Sequence[int | None] = known if facts is None else facts.shape
        fixed = tuple(a if a is not None else b for a, b in zip(known, checked))
        required = _strides(text, shape, strides, fixed, slot)
        assert slot.dtype is not None
        return ArrayArgument(self.unique(text), text, slot.dtype, fixed, required, place, slot.writable)

    def shape_only(self, source: Source) -> ArrayArgument:
        """An array of which only sizes are asked."""
        text = source.expr()
        found = self.by_source.get(text)
        if found is None:
            facts = self.facts.get(text)
            if not isinstance(facts, ArrayFacts | TensorFacts):
                raise ExportError(f"{self.whole.name} asks for the size of {text}, which is no array")
            dtype = from_numpy(facts.dtype) if isinstance(facts, ArrayFacts) else None
            found = ArrayArgument(
                self.unique(text), text, dtype or int64, facts.shape, (None,) * len(facts.shape)
            )
            self.add(found)
        if not isinstance(found, ArrayArgument):
            raise ExportError(f"{self.whole.name} takes {text} as a number and as an array")
        return found

    # -- sizes ------------------------------------------------------------------------------------
    def name_symbol(self, name: str, kind: str, place: int, axis: int) -> None:
        argument = self.made.at(place)
        if argument is None:
            _, shape, strides = memory_of(self.whole, self.made.weights[place])
            value = shape[axis] if kind == "shape" else strides[axis]
            self.made.symbols[name] = self.made.called[name] = str(value)
        elif isinstance(argument, NumberArgument):
            self.made.symbols[name], self.made.called[name] = f"in->{argument.name}", argument.name
        elif kind == "shape":
            self.made.symbols[name] = f"in->{argument.name}_shape[{axis}]"
            self.made.called[name] = self.made.called_size(argument, axis)
        else:
            self.made.symbols[name] = stride_text(argument, axis)
            self.made.called[name] = f"stride {axis} of {argument.name}"

    def take_guard(self, guard: Guard) -> None:
        facts = guard.expected
        if guard.kind is Kind.OVERLAP:
            names = ", ".join(source.expr() for source in facts.arrays)
            raise ExportError(f"{self.whole.name} was exported with arrays that share memory: {names}")
        if isinstance(facts, SymCondition):
            bound = {binding.symbol: self.bound(binding) for binding in facts.bindings}
            words = str(facts)
            for binding in facts.bindings:
                argument = self.by_source.get(binding.source.expr())
                if isinstance(argument, ArrayArgument) and binding.what in ("dim", "tdim"):
                    called = self.made.called_size(argument, binding.axis)
                    words = words.replace(binding.expr(), called)
            if any(binding.what.endswith("stride") for binding in facts.bindings):
                words = ""  # C order, which is asked for anyway
            test = condition_text(facts.program, facts.relation, bound)
            self.made.conditions.append(Condition(test, words))
        elif guard.kind in (Kind.EQUALS, Kind.BOOL, Kind.NONE) and guard.source is not None:
            value = None if guard.kind is Kind.NONE else facts
            self.made.notes.append(f"{guard.source.expr()} is fixed: {value!r}")
        else:
            assert not isinstance(facts, NoOverlap) or guard.kind is Kind.NO_OVERLAP  # checked of all

    def note_the_rest(self) -> None:
        """Arguments that C does not give."""
        same = {
            g.source.expr(): g.expected.expr()
            for g in self.guards
            if g.kind is Kind.SAME_OBJECT and g.source is not None
        }
        given = {expr for pair in same.items() for expr in pair} & self.by_source.keys()
        for one, other in same.items():
            if {one, other} & given:
                self.made.notes.append(f"{one} is the same array as {other}")
        spoken = {g.source.root().expr() for g in self.guards if g.source is not None}
        spoken |= {source.root().expr() for source in self.whole.signature.inputs}
        unused = [parameter.name for parameter in self.whole.parameters() if parameter.name not in spoken]
        unused += [text for text in self.facts if text not in self.by_source.keys() | same.keys()]
        self.made.notes += [f"{text} is not used" for text in unused if text not in same.values()]

    def bound(self, binding: SymBinding) -> str:
        """The text in C of a number that conditions speak of."""
        text = binding.source.expr()
        if binding.what == "len":
            return str(len(self.whole.read(binding.source)))
        if binding.what == "int":
            found = self.by_source.get(text)
            if found is None:
                found = NumberArgument(self.unique(text), text, int64, None, True)
                self.add(found)
            return f"in->{found.name}"
        argument = self.shape_only(binding.source)
        if binding.what in ("dim", "tdim"):
            return f"in->{argument.name}_shape[{binding.axis}]"
        if binding.what == "size":
            return count_text(argument)
        scale = argument.dtype.itemsize if binding.what == "stride" else 1
        return f"({stride_text(argument, binding.axis)} * {scale})"

    # -- results ----------------------------------------------------------------------------------
    def take_result(self, tree: list[Any], name: str) -> None:
        kind, *parts = tree
        if kind == "constant":
            self.made.notes.append(f"{name} is always {parts[0]!r}" if name != "result" else "no result")
        elif kind == "mapping":
            for key, item in parts[1:]:
                self.take_result(item, f"{name}_{key}")
        elif kind in ("tuple", "list"):
            for k, item in enumerate(parts):
                self.take_result(item, f"{name}_{k}")
        else:
            result = InputResult(parts[0]) if kind == "input" else self.made.plan.results[parts[0]]
            self.add_output(name, result)

    def add_output(self, name: str, result: Any) -> None:
        if isinstance(result, InputResult):
            argument = self.made.at(result.index)
            if argument is None or isinstance(argument, NumberArgument):
                raise ExportError(f"{name} is what the function was given, which it does not compute with")
            made = OutputArgument(self.unique(name), argument.dtype, argument.rank, result)
        elif isinstance(result, OutputResult):
            slot = self.made.plan.outputs[result.index]
            made = OutputArgument(self.unique(name), slot.dtype, len(slot.shape), result)
        elif isinstance(result, ViewOutput):
            made = OutputArgument(self.unique(name), result.dtype, len(result.shape), result)
        else:
            self.made.notes.append(f"{name} is always {result.value!r}")
            return
        self.made.outputs.append(made)

    def check_results(self) -> None:
        written = any(isinstance(a, ArrayArgument) and a.written for a in self.made.arguments)
        if not self.made.outputs and not written:
            raise ExportError(f"{self.whole.name} gives no array")


def stride_text(argument: ArrayArgument, axis: int) -> str:
    """A stride in elements."""
    stride = argument.strides[axis]
    if stride is not None:
        return str(stride)
    sizes = [f"(wide)in->{argument.name}_shape[{k}]" for k in range(axis + 1, argument.rank)]
    return " * ".join(sizes) or "1"


def count_text(argument: ArrayArgument) -> str:
    """The number of elements."""
    sizes = [f"(wide)in->{argument.name}_shape[{k}]" for k in range(argument.rank)]
    return f"({' * '.join(sizes) or '1'})"


def _strides(
    text: str,
    shape: Sequence[int],
    strides: Sequence[int],
    fixed: Sequence[int | None],
    slot: InputSlot,
) -> tuple[int | None, ...]:
    """What strides callers' arrays must have."""
    step, c_order = 1, True
    for size, stride in reversed([*zip(shape, strides)]):
        c_order &= size <= 1 or stride == step
        step *= size
    if c_order or 0 in shape:
        return (None,) * len(shape)
    if any(size is None for size in fixed):
        raise ExportError(
            f"{text} is not C-contiguous and has free sizes: export with a contiguous array, "
            f"such as np.ascontiguousarray({text})"
        )
    known = slot.strides or (None,) * len(shape)
    return tuple(stride if k is None else k for stride, k in zip(strides, known))


def memory_of(whole: WholeFunction, value: Any) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Address, shape, and strides in elements, of an array of either library."""
    owner = whole.record.compiled.owner
    if isinstance(value, np.ndarray):
        strides = tuple(s // value.dtype.itemsize for s in value.strides)
        return value.ctypes.data, value.shape, strides
    if owner is None:
        raise ExportError(f"{whole.name} takes a {type(value).__name__} where an array is expected")
    address, shape, strides, _ = owner.describe(value)
    return address, tuple(shape), tuple(strides)


def called_shape(made: Interface, shape: Sequence[Any], sizes: Mapping[int, Any]) -> str:
    """A shape for people; ``sizes``: the expressions of the sizes that are known at the call."""
    texts = [str(d) if isinstance(d, int) else renamed(sizes[d.index], made.called) for d in shape]
    return f"[{', '.join(texts)}]"
