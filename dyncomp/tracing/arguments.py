"""Arrays that are given to a graph: checked, and laid out as it expects them."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..device import CPU
from ..frontends.base import ArrayOwner
from ..graph.interp import bind_symbols, concrete, laid_out
from ..graph.ir import ArrayType, Graph, GraphInput
from ..graph.rewrite import strides_agree
from ..symbolic.integers import SymInt


class Plan:
    """How the inputs of a graph are found in a call: ``constants`` by input, the others are given."""

    def __init__(
        self, graph: Graph, constants: Mapping[str, Any], owner: ArrayOwner | None, name: str
    ) -> None:
        self.graph = graph
        self.owner = owner
        self.name = name
        self._values = [constants.get(inp.var.name) for inp in graph.inputs]
        self._given = [
            (k, inp.var.name, _Expected(inp.var.type, owner) if inp.kind == "array" else None)
            for k, inp in enumerate(graph.inputs)
            if inp.var.name not in constants
        ]

    def ordered(self, given: Mapping[str, Any], integers: Sequence[int]) -> list[Any]:
        """The graph's inputs in order. Raises ``TypeError`` for an array of another type, naming it."""
        values = list(self._values)
        fits = not self.graph.mutations
        for k, name, expected in self._given:
            value = values[k] = given[name]
            fits = fits and (expected is None or expected.is_like(value))
        return values if fits else checked(self.graph, values, integers, self.owner, self.name)


class _Expected:
    """The type of an input without symbols, to see quickly that an array is as expected."""

    __slots__ = ("type", "of", "dtype", "shape", "strides", "describe")

    def __init__(self, type: ArrayType, owner: ArrayOwner | None) -> None:
        self.type = type
        self.of: Any = np.ndarray if owner is None else owner.type
        self.dtype: Any = type.dtype.numpy if owner is None else type.dtype.name
        known = not has_symbols_in(type) and type.device == CPU
        self.shape = type.shape if known else None
        size = type.dtype.itemsize if owner is None else 1
        self.strides = tuple(step * size for step in type.strides) if known else None
        self.describe = None if owner is None else owner.describe

    def is_like(self, value: Any) -> bool:
        """``False`` where a closer look is needed."""
        if value.__class__ is not self.of:
            return False
        if self.describe is not None:
            _, shape, strides, dtype = self.describe(value)
            same = dtype == self.dtype and shape == self.shape and strides == self.strides
            return same and value.device.type == "cpu"
        same = value.dtype == self.dtype and value.shape == self.shape and value.strides == self.strides
        return same and bool(value.flags.aligned)


def checked(
    graph: Graph, values: Sequence[Any], integers: Sequence[int], owner: ArrayOwner | None, name: str
) -> list[Any]:
    """``values`` as the graph's inputs. Raises ``TypeError`` for an array of another type, naming it."""
    written = {index for index, _ in graph.mutations}
    for inp, value in zip(graph.inputs, values):
        if inp.kind == "array":
            _check_kind(inp, value, owner, name)
    symbols: Mapping[str, int] = {}
    if graph.symbols:
        on_numpy = [value if owner is None else owner.to_numpy(value) for value in values]
        symbols = bind_symbols(graph, on_numpy, integers)
    made = []
    for number, (inp, value) in enumerate(zip(graph.inputs, values)):
        if inp.kind == "array":
            value = _array(inp, value, owner, symbols, number in written, name)
        made.append(value)
    if written:
        _check_overlap(graph, made, written, owner, name)
    return made


def describe(value: object, owner: ArrayOwner | None) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if owner is not None and isinstance(value, owner.type):
        _, shape, _, dtype = owner.describe(value)
        return f"{dtype}{list(shape)}"
    return f"of type {type(value).__name__}"


def _check_kind(inp: GraphInput, value: object, owner: ArrayOwner | None, name: str) -> None:
    fits = type(value) is np.ndarray if owner is None else isinstance(value, owner.type)
    if not fits:
        raise TypeError(_wrong(inp, describe(value, owner), name))


def _array(
    inp: GraphInput,
    value: Any,
    owner: ArrayOwner | None,
    symbols: Mapping[str, int],
    written: bool,
    name: str,
) -> Any:
    wanted = inp.var.type
    shape = concrete(wanted.shape, symbols)
    if owner is None:
        same = value.dtype == wanted.dtype.numpy
        found = tuple(value.shape)
        strides = tuple(s // value.itemsize if value.itemsize else s for s in value.strides)
        plain = bool(value.flags.aligned) and not any(s % value.itemsize for s in value.strides)
        plain = plain and (not written or bool(value.flags.writeable))
    else:
        _, found, strides, dtype = owner.describe(value)
        same, plain = dtype == wanted.dtype.name, True
    if not same or tuple(found) != tuple(shape) or not _is_there(value, owner, wanted):
        raise TypeError(_wrong(inp, describe(value, owner), name))
    fits = strides_agree(ArrayType(wanted.dtype, found, strides), concrete(wanted.strides, symbols))
    if fits and plain:
        return value
    if written:
        raise TypeError(f"{name} writes to {_named(inp)}, which has another layout than it was traced with")
    on_numpy = value if owner is None else owner.to_numpy(value)
    moved = laid_out(np.array(on_numpy, order="C"), wanted.strides, symbols)
    return moved if owner is None else owner.from_numpy(moved)


def _is_there(value: Any, owner: ArrayOwner | None, wanted: ArrayType) -> bool:
    """Whether the array is on the device that the graph works on."""
    if owner is None:
        return True
    device = getattr(value, "device", None)
    return str(getattr(device, "type", "cpu")) == wanted.device.kind


def _check_overlap(
    graph: Graph, values: Sequence[Any], written: set[int], owner: ArrayOwner | None, name: str
) -> None:
    arrays = {
        k: values[k] if owner is None else owner.to_numpy(values[k])
        for k, inp in enumerate(graph.inputs)
        if inp.kind == "array"
    }
    for target in written:
        for number, array in arrays.items():
            if number != target and np.may_share_memory(arrays[target], array):
                pair = f"{_named(graph.inputs[target])} and {_named(graph.inputs[number])}"
                raise TypeError(f"{name} writes to an array that overlaps another: {pair}")


def _named(inp: GraphInput) -> str:
    return inp.label or inp.var.name


def _wrong(inp: GraphInput, found: str, name: str) -> str:
    return f"{name} was traced for {_named(inp)}: {inp.var.type}, and got one {found}"


def is_number(value: object) -> bool:
    return isinstance(value, (numbers.Number, np.generic))


def type_of(value: Any, owner: ArrayOwner | None) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """Name of the dtype, shape, and strides in elements."""
    if owner is not None and isinstance(value, owner.type):
        _, shape, strides, dtype = owner.describe(value)
        return dtype, tuple(shape), tuple(strides)
    size = value.itemsize or 1
    return value.dtype.name, tuple(value.shape), tuple(s // size for s in value.strides)


def has_symbols_in(type: ArrayType) -> bool:
    return any(isinstance(dim, SymInt) for dim in (*type.shape, *type.strides))
