"""The tape: derivatives of programs that are no single graph.

What a program does to arrays that carry a derivative becomes nodes, in the order of execution. A value is a
:class:`Slot`, where the backward pass gathers its cotangent. Memory is a :class:`Storage`: what it holds now
is one slot, a view of it is a window, and a write through a view gives it another slot. So views and writes
in place are differentiated as what they mean, as in a functionalized graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any, Protocol

import numpy as np

from ..errors import NotDifferentiableError
from .operations import Operation, summed_to

Array = Any  # an ndarray, a NumPy scalar or a Python number
SMALL = 2048  # bytes up to which a copy costs no more than to keep track of an array
MOST_KEPT = 64  # arrays of one storage that wait for a write


class Slot:
    """A value with a derivative. ``tangent``: that of the outermost derivative, where it is a forward one."""

    __slots__ = ("shape", "dtype", "cotangent", "tangent")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.cotangent: Array = None
        self.tangent: Array = None

    def add(self, found: Array, own: bool) -> None:
        """Add a cotangent; ``own``: nobody else has this array."""
        found = np.asarray(found)
        if found.shape != self.shape:
            found = summed_to(found, self.shape)
        if found.dtype != self.dtype:
            if found.dtype.kind == "c" and self.dtype.kind != "c":
                found = found.real
            found, own = found.astype(self.dtype), True
        if self.cotangent is not None:
            self.cotangent += found
        else:
            self.cotangent = found if own and found.flags.writeable else found.copy()


class Window:
    """Where a view lies in the memory of a storage: ``offset`` and ``strides`` in bytes."""

    __slots__ = ("offset", "shape", "strides", "dtype", "low", "high", "overlaps")

    def __init__(self, offset: int, view: Array) -> None:
        self.offset = offset
        self.shape: tuple[int, ...] = view.shape
        self.strides: tuple[int, ...] = view.strides
        self.dtype: np.dtype[Any] = view.dtype
        low = high = offset
        extent = view.itemsize
        self.overlaps = False
        for stride, count in sorted((abs(s), n) for s, n in zip(self.strides, self.shape) if n > 1):
            self.overlaps |= stride < extent
            extent = max(extent, stride * (count - 1) + extent)
        for stride, count in zip(self.strides, self.shape):
            if stride < 0:
                low += stride * (count - 1)
            else:
                high += stride * (count - 1)
        self.low, self.high = low, high + view.itemsize

    def of(self, array: Array) -> Array:
        """The window in an array that lies in memory as the storage's does."""
        return np.ndarray(self.shape, self.dtype, in_memory(array), self.offset, self.strides)


class Kept:
    """An array as it was when the backward pass was seen to need it."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


def array_of(kept: Array | Kept) -> Array:
    return kept.array if type(kept) is Kept else kept


def settle(held: Iterable[Array | Kept | None]) -> None:
    """Copy what is kept and the program may write to from now on."""
    for kept in held:
        if type(kept) is Kept:
            kept.array = kept.array.copy()


class Storage:
    """The memory of arrays that the tape knows. ``owner`` is all of it, without gaps."""

    __slots__ = ("owner", "address", "slot", "version", "kept", "exposed", "_whole")

    kept: dict[object, tuple[int, int, Kept]]

    def __init__(self, owner: Array, slot: Slot | None = None) -> None:
        self.owner = owner
        self.address: int = owner.__array_interface__["data"][0]
        self.slot = slot
        self.version = 0
        self.kept = {}  # by where they lie
        self._whole: Window | None = None
        self.exposed = False  # code that the tape does not follow may hold it

    @property
    def whole(self) -> Window:
        found = self._whole
        if found is None:
            found = self._whole = Window(0, self.owner)
        return found

    def keep(self, array: Array) -> Array | Kept:
        """What holds an array of this memory until the backward pass."""
        if array.nbytes <= SMALL:
            return array.copy()
        offset = array.__array_interface__["data"][0] - self.address
        key = offset, array.shape, array.strides, array.dtype
        known = self.kept.get(key)
        if known is not None:
            return known[2]
        if len(self.kept) >= MOST_KEPT:
            self.release(0, self.owner.nbytes)
        window = Window(offset, array)
        made = Kept(array)
        self.kept[key] = window.low, window.high, made
        return made

    def release(self, low: int, high: int) -> None:
        """Before a write to these bytes: copy what is kept of them."""
        for key, entry in list(self.kept.items()):
            if entry[0] < high and low < entry[1]:
                entry[2].array = entry[2].array.copy()
                del self.kept[key]

    def at(self, array: Array, shape: Sequence[int], strides: Sequence[int], offset: int) -> Array:
        """A view that begins ``offset`` elements after the first of an array of this memory, of its dtype;
        strides in elements."""
        size = array.itemsize
        start = array.__array_interface__["data"][0] - self.address + offset * size
        return np.ndarray(shape, array.dtype, in_memory(self.owner), start, [n * size for n in strides])

    def in_place(self, cotangent: Array) -> Array:
        """A cotangent of all of it, in memory as the owner is."""
        if cotangent.strides == self.owner.strides:
            return cotangent
        made = self.empty()
        made[...] = cotangent
        return made

    def empty(self) -> Array:
        made = np.zeros(self.owner.size, self.owner.dtype)
        return np.ndarray(self.owner.shape, self.owner.dtype, made, 0, self.owner.strides)


def in_memory(array: Array) -> Array:
    """A view of all elements of a dense array, in the order in which they lie in memory."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    strides = array.strides
    return array.transpose(sorted(range(array.ndim), key=lambda k: -strides[k])).reshape(-1)


def is_dense(array: Array) -> bool:
    """Whether elements lie side by side, in any order of the dimensions."""
    flags = array.flags
    if flags.c_contiguous or flags.f_contiguous:
        return bool(array.size)
    expected = array.itemsize
    for stride, count in sorted((s, n) for s, n in zip(array.strides, array.shape) if n != 1):
        if stride != expected:
            return False
        expected *= count
    return bool(array.size)


class Node(Protocol):
    """What was done to values with a derivative."""

    def backward(self) -> None:
        """Take the cotangents of its results, and add to those of what it was done to."""
        ...

    def settle(self) -> None:
        """Copy what the backward pass needs and the program may write to from now on."""
        ...


class Budget(Protocol):
    """What keeps a tape within a limit of memory."""

    def add(self, nodes: list[Node], node: Any) -> None:
        """A run of a graph was appended to ``nodes``."""
        ...

    def describe(self, nodes: list[Node]) -> str: ...


class ReadNode:
    """A view is read."""

    __slots__ = ("storage", "parent", "window", "out")

    def __init__(self, storage: Storage, parent: Slot, window: Window, out: Slot) -> None:
        self.storage = storage
        self.parent = parent
        self.window = window
        self.out = out

    def settle(self) -> None:
        pass

    def backward(self) -> None:
        found, self.out.cotangent = self.out.cotangent, None
        if found is None:
            return
        parent = self.parent
        if parent.cotangent is None:
            parent.cotangent = self.storage.empty()
        else:
            parent.cotangent = self.storage.in_place(parent.cotangent)
        window = self.window
        if not window.overlaps:
            into = window.of(parent.cotangent)
            into += found
            return
        parts = in_memory(parent.cotangent).view(window.dtype)
        places = np.ndarray(
            window.shape, np.intp, np.arange(parts.size), window.offset // window.dtype.itemsize * 8,
            tuple(s // window.dtype.itemsize * 8 for s in window.strides),
        )  # fmt: skip
        np.add.at(parts, places, found)


class WriteNode:
    """A value is written to a window (``None``: to all)."""

    __slots__ = ("storage", "parent", "window", "value", "out")

    def __init__(
        self, storage: Storage, parent: Slot | None, window: Window, value: Slot | None, out: Slot
    ) -> None:
        self.storage = storage
        self.parent = parent
        self.window = window
        self.value = value
        self.out = out

    def settle(self) -> None:
        pass

    def backward(self) -> None:
        found, self.out.cotangent = self.out.cotangent, None
        if found is None:
            return
        if self.window is self.storage.whole:
            if self.value is not None:
                self.value.add(found, own=True)
            return
        found = self.storage.in_place(found)
        written = self.window.of(found)
        if self.value is not None:
            self.value.add(written, own=False)
        if self.parent is not None:
            written[...] = 0
            self.parent.add(found, own=True)


class CallNode:
    """A call of NumPy's: what it was called with, and the slots of that and of its results."""

    __slots__ = ("operation", "kept", "slots", "outs", "place")

    def __init__(
        self,
        operation: Operation,
        kept: list[Array | Kept],
        slots: list[Slot],
        outs: list[Slot],
        place: tuple[CodeType, int],
    ) -> None:
        self.operation = operation
        self.kept = kept
        self.slots = slots
        self.outs = outs
        self.place = place

    def settle(self) -> None:
        settle(self.kept)

    def backward(self) -> None:
        numbers = []
        cotangents = []
        for k, out in enumerate(self.outs):
            if out.cotangent is not None:
                numbers.append(k)
                cotangents.append(out.cotangent)
                out.cotangent = None
        if not numbers:
            return
        inputs = list(map(array_of, self.kept))
        try:
            found = self.operation.pull(inputs, tuple(numbers), cotangents)
        except NotDifferentiableError as error:
            text = f"{self.operation.name} at {line_of(self.place)} cannot be differentiated: {error}"
            raise NotDifferentiableError(text) from error
        for slot, cotangent in zip(self.slots, found):
            slot.add(cotangent, own=True)


class CustomNode:
    """What says itself how it is differentiated: ``pull(cotangents, record)`` gives one for each of
    ``slots``, tracked if it is to be recorded; ``push(tangents)``, if there is one, a tangent for each of
    ``outs``."""

    __slots__ = ("pull", "push", "slots", "outs", "name")

    def __init__(
        self,
        pull: Callable[[list[Array], bool], list[Array]],
        push: Callable[[list[Array]], list[Array]] | None,
        slots: list[Slot | None],
        outs: list[Slot],
        name: str,
    ) -> None:
        self.pull = pull
        self.push = push
        self.slots = slots
        self.outs = outs
        self.name = name

    def settle(self) -> None:
        pass

    def backward(self) -> None:
        if all(out.cotangent is None for out in self.outs):
            return
        given = []
        for out in self.outs:
            given.append(np.zeros(out.shape, out.dtype) if out.cotangent is None else out.cotangent)
            out.cotangent = None
        for slot, found in zip(self.slots, self.pull(given, False)):
            if slot is not None and found is not None:
                slot.add(found, own=False)


def line_of(place: tuple[CodeType, int]) -> str:
    code, last = place
    line = next((n for start, end, n in code.co_lines() if start <= last < end), code.co_firstlineno)
    return f"{code.co_filename}:{line}"


class Tape:
    """What was recorded, while the function runs that is differentiated; :meth:`close` forgets it."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.nodes: list[Node] = []
        self.budget = budget
        self.loops: Counter[object] = Counter()  # iterations of each
        self.notes: list[str] | None = None  # for explain(), where it asks
        self.closed = False
        # Derivatives within the outermost one that are under way. While there is one, what is recorded can be
        # differentiated again, and forward.
        self.levels = 0
        self.always_again = False
        self.on_append: Callable[[Node], None] | None = None  # of a derivative in forward mode
        self.lost: NotDifferentiableError | None = None  # what was raised in the program
        self.copies: dict[int, tuple[Array, Array]] = {}  # of constants, by the id of what they are of

    @property
    def again(self) -> bool:
        """Whether what is recorded may be differentiated more than once, or forward."""
        return self.levels > 0 or self.always_again

    def append(self, node: Node) -> None:
        if self.on_append is not None:
            try:
                self.on_append(node)
            except NotDifferentiableError as error:  # the program may catch it
                self.lost = self.lost or error
                raise
            if not self.levels:
                return
        self.nodes.append(node)

    def close(self) -> None:
        """Forget it all; what is left of tracked values acts as plain arrays."""
        self.closed = True
        self.nodes.clear()
        self.copies.clear()

    def constant(self, array: Array) -> Array:
        """What holds an array from outside, which the program may write to, until the backward pass."""
        if array.nbytes <= SMALL:
            return array.copy()
        known = self.copies.get(id(array))
        if known is not None and _same(known[1], array):
            return known[1]
        made = array.copy()
        self.copies[id(array)] = (array, made)
        return made

    def settle(self) -> None:
        """Copy what the backward pass needs and the program may write to from now on."""
        for node in self.nodes:
            node.settle()

    def describe(self) -> list[str]:
        """What was recorded, a line each."""
        lines = [f"{len(self.nodes)} nodes on the tape"]
        lines += [f"{count} iterations of {loop}" for loop, count in self.loops.items()]
        if self.budget is not None:
            lines.append(self.budget.describe(self.nodes))
        return lines

    def pull(
        self, slots: Sequence[tuple[Slot, Array]], wanted: Sequence[Slot], keep: bool = False
    ) -> list[Array]:
        """The backward pass from cotangents of these slots. What was recorded is gone then, unless it is to
        be kept."""
        for slot, cotangent in slots:
            made = np.empty(slot.shape, slot.dtype)
            made[...] = cotangent
            slot.add(made, own=True)
        nodes = self.nodes.copy() if keep else self.nodes
        if self.notes is not None:
            self.notes += self.describe()
        while nodes:
            nodes.pop().backward()
        found = []
        for slot in wanted:
            made = slot.cotangent
            found.append(np.zeros(slot.shape, slot.dtype) if made is None else np.ascontiguousarray(made))
            slot.cotangent = None
        return [f.reshape(s.shape) for f, s in zip(found, wanted)]


def _same(a: Array, b: Array) -> bool:
    """Whether two arrays are equal, bit by bit."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.flags.c_contiguous and b.flags.c_contiguous and not a.dtype.hasobject:
        return bool(np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)))
    return a.tobytes() == b.tobytes()
