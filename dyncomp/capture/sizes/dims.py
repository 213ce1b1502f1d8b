"""Which sizes of an array are symbols, and which strides."""

from __future__ import annotations

import types

from ...device import Device
from ...errors import ConstraintError
from ...frontends.base import ArrayFacts as Facts
from ...graph.ir import contiguous_strides
from ...symbolic.dynamic_sizes import DynamicArguments
from ...symbolic.integers import Dim, SymGuard, SymInt
from ..guards.source import LocalSource, Source
from ..values.array import ArrayValue
from ..values.base import LazyValue, Tracer, Value
from ..values.number import SymIntValue
from .marks import MARKS, Marks, Range


def dlpack_device(device: Device) -> tuple[int, int]:
    """A device as DLPack's tables name it."""
    return {"cpu": 1, "cuda": 2}[device.kind], device.index


def has_exchange_table(pytype: type) -> bool:
    """Whether C reads arrays of this type through DLPack's exchange table, or through their attributes."""
    return hasattr(pytype, "__dlpack_c_exchange_api__") or hasattr(pytype, "__cuda_array_interface__")


def _dynamic_dims(tracer: Tracer, facts: Facts, source: Source, marks: Marks) -> set[int]:
    """Which dimensions are to be symbolic: those that an earlier capture saw with another size, and those
    that the user marked, but for those that were marked static."""
    dynamic = tracer.config.options.dynamic
    if isinstance(dynamic, DynamicArguments):
        dynamic = None
    state = tracer.config.state_of(tracer.code)
    key = f"{source.expr()}.shape"
    static = state.static_dims.setdefault(key, set())
    static |= marks.static
    static -= set(marks.dynamic)
    if dynamic is not None:
        return set(range(len(facts.shape))) - static if dynamic else set(marks.dynamic)
    chosen = state.dynamic_dims.setdefault(key, set())
    chosen |= set(marks.dynamic)
    seen = state.seen.get(key)
    if seen is not None and len(seen) == len(facts.shape):
        chosen |= {i for i, (a, b) in enumerate(zip(seen, facts.shape)) if a != b}
    state.seen[key] = facts.shape
    return chosen - static


def hand_on_sizes(tracer: Tracer, piece: types.CodeType, variables: dict[str, Value]) -> None:
    """Sizes that are symbolic where the capture ends are so in the continuation that goes on there."""
    state = tracer.config.state_of(piece)
    for name, variable in variables.items():
        value = variable
        if isinstance(variable, LazyValue) and variable.source is not None:
            value = tracer.by_source.get(variable.source, variable)
        is_symbol, axes = isinstance(value, SymIntValue), _symbolic_axes(value)
        if isinstance(value, LazyValue) and value.source is not None:
            is_symbol, axes = _known_of(tracer, value.source)
        if is_symbol:
            state.dynamic.add((name, int))
        if axes:
            state.dynamic_dims.setdefault(f"{name}.shape", set()).update(axes)


def _symbolic_axes(value: Value) -> set[int]:
    if not isinstance(value, ArrayValue) or value.ref.kind != "array":
        return set()
    return {axis for axis, size in enumerate(value.ref.shape) if isinstance(size, SymInt)}


def _known_of(tracer: Tracer, source: Source) -> tuple[bool, set[int]]:
    """What was seen to change of an object that this capture did not look at."""
    state, place = tracer.config.state_of(tracer.code), source.expr()
    return (place, int) in state.dynamic, state.dynamic_dims.get(f"{place}.shape", set())


def array_dims(
    tracer: Tracer, obj: object, facts: Facts, source: Source, index: int
) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """Sizes and strides of graph input number ``index``."""
    marks, names = _marks(tracer, obj, facts, source)
    wanted = _dynamic_dims(tracer, facts, source, marks)
    chosen = {i for i in wanted if i < len(facts.shape) and facts.shape[i] >= 2}
    if not chosen:
        return facts.shape, facts.strides
    shape: list[Dim] = list(facts.shape)
    for axis in sorted(chosen):
        symbol = _size_symbol(tracer, facts, source, index, axis, marks.dynamic.get(axis))
        shape[axis] = _common_size(tracer, names.get(axis, ""), symbol)
    strides = _symbolic_strides(tracer, facts, tuple(shape), index, source)
    return tuple(shape), strides


def _marks(tracer: Tracer, obj: object, facts: Facts, source: Source) -> tuple[Marks, dict[int, str]]:
    """What is said of the array, by itself and as an argument, and the names of sizes. Sizes outside of an
    argument's bounds are like any other."""
    marks = MARKS.of(obj)
    said = None
    if isinstance(source, LocalSource):
        said = tracer.config.described_argument(tracer.code, source.local)
    if said is None:
        return marks, {}
    axes = {n: a for n, a in said.of_rank(len(facts.shape)).items() if a.admits(facts.shape[n])}
    ranges = {number: Range(axis.low, axis.high) for number, axis in axes.items()}
    return Marks({**ranges, **marks.dynamic}, marks.static), {n: a.name for n, a in axes.items() if a.name}


def _common_size(tracer: Tracer, name: str, symbol: SymInt) -> SymInt:
    """The symbol of all sizes of that name, where this one is the same now; guarded."""
    if not name:
        return symbol
    common = tracer.named_sizes.setdefault(name, symbol)
    difference = symbol - common
    if not isinstance(difference, SymInt) or difference.hint:
        return symbol
    tracer.env.guards.append(SymGuard(difference, "=="))
    return common


def _size_symbol(
    tracer: Tracer, facts: Facts, source: Source, index: int, axis: int, marked: Range | None
) -> SymInt:
    # sizes 0 and 1 have rules of their own (broadcasting): they get entries of their own
    low = max(2, marked.low or 0) if marked is not None else 2
    high = marked.high if marked is not None else None
    symbol = tracer.env.new_symbol(facts.shape[axis], low=low, high=high)
    tracer.bind_dim(symbol, "dim", index, axis, source, 1, has_exchange_table(facts.pytype))
    for difference in (low - symbol, *([symbol - high] if high is not None else [])):
        assert isinstance(difference, SymInt)
        tracer.env.guards.append(SymGuard(difference, "<="))
    if marked is not None:
        tracer.marked[str(symbol)] = f"mark_dynamic or dynamic= of {source.expr()}, axis {axis}"
    return symbol


def refuse_fixed(tracer: Tracer) -> None:
    """Raise where the program fixes a size that the user marked as dynamic.

    Where it is equal to a size of another array that is not marked, that one is made symbolic too first.
    """
    for guard in tracer.env.guards:
        names = guard.expr.symbols()
        label = tracer.marked.get(next(iter(names), "")) if len(names) == 1 else None
        if label is None or not guard.fixes:
            continue
        size = tracer.env.hints[names.pop()]
        if _follow(tracer, size):
            raise tracer.restart
        where = tracer.env.origins.get(guard.key)
        raise ConstraintError(
            f"{label}: the program fixes this size to {size}"
            f" at {where or 'an unknown place'}. Do not use it as a constant there, or do not mark it."
        )


def _follow(tracer: Tracer, size: int) -> bool:
    """Have constant sizes of array inputs that are equal to ``size`` be symbolic; whether there were any."""
    state = tracer.config.state_of(tracer.code)
    found = False
    for value in tracer.inputs:
        if value.source is None or value.source.expr() + ".shape" not in state.static_dims:
            continue
        key = value.source.expr() + ".shape"
        shape = value.ref.shape if isinstance(value, ArrayValue) else ()
        axes = {a for a, d in enumerate(shape) if isinstance(d, int) and d == size}
        axes -= state.static_dims[key] | state.dynamic_dims.get(key, set())
        state.dynamic_dims.setdefault(key, set()).update(axes)
        found = found or bool(axes)
    return found


def _symbolic_strides(
    tracer: Tracer, facts: Facts, shape: tuple[Dim, ...], index: int, source: Source
) -> tuple[Dim, ...]:
    """Strides in terms of the symbolic sizes where the array is C-contiguous, else symbols of their own."""
    packed = contiguous_strides(shape)
    contiguous = all(
        n == 1 or s == (p.hint if isinstance(p, SymInt) else p)
        for n, s, p in zip(facts.shape, facts.strides, packed)
    )
    strides: list[Dim] = []
    for axis, (actual, expected) in enumerate(zip(facts.strides, packed)):
        if contiguous and not isinstance(expected, SymInt):
            strides.append(expected if facts.shape[axis] != 1 else actual)
            continue
        if not contiguous and abs(actual) <= 1:
            strides.append(actual)
            continue
        symbol = tracer.env.new_symbol(actual)
        by_table = has_exchange_table(facts.pytype)
        itemsize = 1 if by_table else facts.dtype.itemsize
        tracer.bind_dim(symbol, "stride", index, axis, source, itemsize, by_table)
        if contiguous:
            difference = symbol - expected
            assert isinstance(difference, SymInt)
            tracer.env.guards.append(SymGuard(difference, "=="))
            strides.append(expected)
        else:
            strides.append(symbol)
    return tuple(strides)
