"""Passes over the tape whose results can be differentiated in turn, and forward ones.

The derivative of a node is computed by operations of NumPy's and by graphs that are derivatives of its own.
Where what they work on is tracked, they are nodes on the same tape (``record``), so derivatives nest in any
order. Of every node there is ``_pull`` (from cotangents of its results to those of what it was done to) and
``_push`` (from tangents to tangents).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ..errors import NotDifferentiableError
from .operations import Operation, summed_to
from .recording import is_tracked, slot_of
from .tape import (
    Array,
    CallNode,
    CustomNode,
    Kept,
    Node,
    ReadNode,
    Slot,
    Storage,
    Tape,
    Window,
    WriteNode,
    array_of,
    in_memory,
    line_of,
)
from .tracked import fresh, view_of

Value = Any  # an array, or a tracked one


class Tangents(Protocol):
    """Tangents of slots."""

    def get(self, slot: Slot) -> Value: ...
    def __setitem__(self, slot: Slot, value: Value) -> None: ...


class OfSlots:
    """Tangents that go as soon as nobody can ask for them."""

    def get(self, slot: Slot) -> Value:
        return slot.tangent

    def __setitem__(self, slot: Slot, value: Value) -> None:
        slot.tangent = value


def inputs_of(node: Node) -> Iterator[Slot]:
    """The slots that a node reads."""
    if isinstance(node, ReadNode):
        yield node.parent
    elif isinstance(node, WriteNode):
        if node.parent is not None and node.window is not node.storage.whole:
            yield node.parent
        if node.value is not None:
            yield node.value
    else:
        assert isinstance(node, (CallNode, CustomNode))
        yield from (slot for slot in node.slots if slot is not None)


def outputs_of(node: Node) -> Sequence[Slot]:
    if isinstance(node, (ReadNode, WriteNode)):
        return [node.out]
    assert isinstance(node, (CallNode, CustomNode))
    return node.outs


class _Pass:
    def __init__(self, tape: Tape, record: bool) -> None:
        self.tape = tape
        self.record = record

    def run(
        self,
        node: CallNode,
        make: Callable[[tuple[int, ...]], Operation],
        given: Sequence[tuple[Array | Kept, Slot | None]],
    ) -> list[Value]:
        """The results of a derived operation, which is recorded."""
        wrt = tuple([k for k, (_, slot) in enumerate(given) if slot is not None]) if self.record else ()
        try:
            operation = make(wrt)
            results = operation.results([array_of(kept) for kept, _ in given])
        except NotDifferentiableError as error:
            raise refused(node, error) from error
        results = [np.asarray(r) for r in results]
        if not wrt:
            return results
        outs = [Slot(r.shape, r.dtype) for r in results]
        slots = [slot for _, slot in given if slot is not None]
        self.tape.append(CallNode(operation, [kept for kept, _ in given], slots, outs, node.place))
        return [fresh(self.tape, r, out) for r, out in zip(results, outs)]

    def opened(
        self, node: CallNode
    ) -> tuple[Operation, list[tuple[Array | Kept, Slot | None]], list[tuple[Array | Kept, Slot | None]]]:
        """The operation that has a graph, what the inputs of it were, and sizes."""
        operation, kept = node.operation, node.kept
        try:
            here = operation.at([array_of(k) for k in kept])
        except NotDifferentiableError as error:
            raise refused(node, error) from error
        slots = dict(zip(operation.wrt, node.slots))
        if not operation.source:
            count = len(here.order)
            sizes: list[tuple[Array | Kept, Slot | None]] = [(k, None) for k in kept[count:]]
            return here, [(k, slots.get(n)) for n, k in enumerate(kept[:count])], sizes
        inputs = [kept[n] for n in here.order]
        arrays = [k if type(k) is Kept else np.asarray(k) for k in inputs]
        return here, [(k, slots.get(n)) for n, k in zip(here.order, arrays)], []

    def given(self, value: Value, dtype: np.dtype[Any]) -> tuple[Array | Kept, Slot | None]:
        """A value as an operation takes it."""
        value = _converted(value, dtype)
        if not is_tracked(value):
            return np.asarray(value), None
        slot = slot_of(value) if self.record else None
        if value.storage is None:
            return np.asarray(value.plain), slot
        return value.storage.keep(value.plain), slot

    def memory(self, storage: Storage, value: Value | None) -> Value:
        """A new array that lies in memory as the storage does."""
        made = storage.empty()
        if self.record:
            made = fresh(self.tape, made, None)
        if value is not None:
            made[...] = value
        return made

    def part(self, window: Window, memory: Value) -> Value:
        if is_tracked(memory):
            return view_of(self.tape, window.of(memory.plain), [memory])
        return window.of(memory)


def refused(node: CallNode, error: NotDifferentiableError) -> NotDifferentiableError:
    text = f"{node.operation.name} at {line_of(node.place)} cannot be differentiated: {error}"
    return NotDifferentiableError(text)


def _converted(value: Value, dtype: np.dtype[Any]) -> Value:
    if value.dtype == dtype:
        return value
    if value.dtype.kind == "c" and dtype.kind != "c":
        value = value.real
    return value.astype(dtype)


# -- backward -----------------------------------------------------------------------------------------
class Backward(_Pass):
    """The backward pass over the nodes since number ``start``, to ``wanted``, from what :meth:`add` adds. It
    leaves the tape as it is, but for what it records."""

    def __init__(self, tape: Tape, start: int, wanted: Sequence[Slot]) -> None:
        super().__init__(tape, record=True)
        self.nodes = tape.nodes[start:]
        self.wanted = set(wanted)
        self.reached = set(wanted)
        for node in self.nodes:
            if any(slot in self.reached for slot in inputs_of(node)):
                self.reached.update(outputs_of(node))
        self.cotangents: dict[Slot, Value] = {}
        self.own: set[Slot] = set()  # of which the cotangent is an array that was made here, to be added to

    def add(self, slot: Slot | None, value: Value) -> None:
        if slot not in self.reached or slot is None:
            return
        if value.shape != slot.shape:
            value = summed_to(value, slot.shape)
        value = _converted(value, slot.dtype)
        known = self.cotangents.get(slot)
        self.cotangents[slot] = value if known is None else known + value
        self.own.discard(slot)

    def run_all(self) -> None:
        for node in reversed(self.nodes):
            outs = outputs_of(node)
            given = [None if out in self.wanted else self.cotangents.pop(out, None) for out in outs]
            if any(ct is not None for ct in given):
                _PULLS[type(node)](self, node, given)

    def read(self, node: ReadNode, given: Sequence[Value]) -> None:
        parent, window = node.parent, node.window
        if parent not in self.reached:
            return
        if parent not in self.own:
            self.cotangents[parent] = self.memory(node.storage, self.cotangents.get(parent))
            self.own.add(parent)
        memory = self.cotangents[parent]
        if not window.overlaps:
            view = self.part(window, memory)
            view += given[0]
            return
        parts = view_of(self.tape, in_memory(memory.plain).view(window.dtype), [memory])
        size = window.dtype.itemsize
        places = np.ndarray(
            window.shape, np.intp, np.arange(parts.size), window.offset // size * 8,
            tuple(s // size * 8 for s in window.strides),
        )  # fmt: skip
        np.add.at(parts, places.copy(), given[0])

    def write(self, node: WriteNode, given: Sequence[Value]) -> None:
        found = given[0]
        if node.window is node.storage.whole:
            self.add(node.value, found)
            return
        memory = self.memory(node.storage, found)
        part = self.part(node.window, memory)
        if node.value is not None and node.value in self.reached:
            self.add(node.value, part.copy())
        if node.parent is not None:
            part[...] = 0
            self.add(node.parent, memory)

    def call(self, node: CallNode, given: Sequence[Value]) -> None:
        operation, inputs, sizes = self.opened(node)
        wanted = tuple([k for k, (_, slot) in enumerate(inputs) if slot in self.reached])
        numbers = tuple([k for k, ct in enumerate(given) if ct is not None])
        cotangents = []
        for (shape, dtype), ct in zip(operation.types(numbers), [given[k] for k in numbers]):
            if shape is not None and ct.shape != shape:
                ct = summed_to(ct, shape)
            cotangents.append(self.given(ct, dtype))
        made = self.run(
            node,
            lambda wrt: operation.pulling(numbers, wanted, wrt),
            [*inputs, *cotangents, *sizes],
        )
        for k, found in zip(wanted, made):
            self.add(inputs[k][1], found)

    def custom(self, node: CustomNode, given: Sequence[Value]) -> None:
        filled = [np.zeros(out.shape, out.dtype) if ct is None else ct for out, ct in zip(node.outs, given)]
        for slot, found in zip(node.slots, node.pull(filled, True)):
            if found is not None:
                self.add(slot, found if is_tracked(found) else np.asarray(found))


_PULLS: dict[type, Callable[..., None]] = {
    ReadNode: Backward.read,
    WriteNode: Backward.write,
    CallNode: Backward.call,
    CustomNode: Backward.custom,
}


# -- forward ------------------------------------------------------------------------------------------
class Forward(_Pass):
    """Goes from tangents of what nodes were done to on to those of their results."""

    def __init__(self, tape: Tape, tangents: Tangents, record: bool) -> None:
        super().__init__(tape, record)
        self.tangents = tangents

    def through(self, node: Node) -> None:
        if any(self.tangents.get(slot) is not None for slot in inputs_of(node)):
            _PUSHES[type(node)](self, node)

    def tangent(self, value: Value, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Value:
        """That of a value, which is an array of its own."""
        found = None
        if is_tracked(value):
            slot = slot_of(value)
            found = None if slot is None else self.tangents.get(slot)
        return np.zeros(shape, dtype) if found is None else found

    def _set(self, slot: Slot, value: Value) -> None:
        value = _converted(value, slot.dtype)
        if value.shape != slot.shape:  # it was broadcast when it was written
            value = np.broadcast_to(value, slot.shape)
        self.tangents[slot] = value

    def read(self, node: ReadNode) -> None:
        found = self.tangents.get(node.parent)
        plain = found.plain if is_tracked(found) else found
        if plain.strides != node.storage.owner.strides or (self.record and not is_tracked(found)):
            found = self.memory(node.storage, found)
        self._set(node.out, self.part(node.window, found).copy())

    def write(self, node: WriteNode) -> None:
        value = None if node.value is None else self.tangents.get(node.value)
        if value is not None and value.dtype.kind == "c" and node.window.dtype.kind != "c":
            value = value.real
        before = None
        if node.window is not node.storage.whole and node.parent is not None:
            before = self.tangents.get(node.parent)
        memory = self.memory(node.storage, before)
        self.part(node.window, memory)[...] = 0 if value is None else value
        self._set(node.out, memory)

    def call(self, node: CallNode) -> None:
        operation, inputs, sizes = self.opened(node)
        graph = operation.graph
        assert graph is not None
        found = [None if slot is None else self.tangents.get(slot) for _, slot in inputs]
        chosen = tuple([k for k, t in enumerate(found) if t is not None])
        if not chosen:
            return
        tangents = [self.given(found[k], graph.inputs[k].var.dtype.numpy) for k in chosen]
        made = self.run(node, lambda wrt: operation.pushing(chosen, wrt), [*inputs, *tangents, *sizes])
        for out, t in zip(node.outs, made):
            self._set(out, t)

    def custom(self, node: CustomNode) -> None:
        if node.push is None:
            raise NotDifferentiableError(f"{node.name} has no derivative in forward mode")
        tangents = []
        for slot in node.slots:
            found = None if slot is None else self.tangents.get(slot)
            if found is None and slot is not None:
                found = np.zeros(slot.shape, slot.dtype)
            tangents.append(found)
        for out, t in zip(node.outs, node.push(tangents)):
            self._set(out, t if is_tracked(t) else np.asarray(t))


_PUSHES: dict[type, Callable[..., None]] = {
    ReadNode: Forward.read,
    WriteNode: Forward.write,
    CallNode: Forward.call,
    CustomNode: Forward.custom,
}
