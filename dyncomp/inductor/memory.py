"""Memory planning: where in one arena each temporary lives.

Static sizes are packed by lifetime, best fit first (the largest first would fragment less but break the
order of steps, which a single pass over them keeps simple). Symbolic sizes reuse a slot of the same size.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Mapping, Sequence

from ..dataclass import dataclass, field
from ..dtypes import uint8
from ..symbolic.integers import Dim, SymInt, hint
from .lowering.values import Storage

ALIGNMENT = 64
# What each of some steps touches.
Touched = Sequence[Sequence[Storage]]


@dataclass(frozen=True)
class Lifetime:
    """A temporary and the first and last step (inclusive) that touch it."""

    storage: Storage
    first: int
    last: int


@dataclass
class MemoryPlan:
    """Byte offsets of temporaries, by identity of their storages, and the size of the arena in bytes.
    ``lives``: the temporaries, in the order of ``order``."""

    offsets: dict[int, Dim] = field(default_factory=dict)
    order: list[Storage] = field(default_factory=list)
    lives: list[Lifetime] = field(default_factory=list)
    size: Dim = 0
    total: int = 0

    def offset(self, storage: Storage) -> Dim:
        return self.offsets[id(storage)]


def lifetimes(touched: Sequence[Sequence[Storage]]) -> list[Lifetime]:
    """Lifetimes of the temporaries among the storages that each step touches, by first use."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    storages: dict[int, Storage] = {}
    for step, used in enumerate(touched):
        for storage in used:
            if storage.role == "temp":
                storages[id(storage)] = storage
                first.setdefault(id(storage), step)
                last[id(storage)] = step
    return [Lifetime(storages[key], first[key], last[key]) for key in storages]


def bytes_of(storage: Storage) -> Dim:
    """Size in bytes, rounded up to the alignment."""
    size = storage.size * storage.dtype.itemsize
    if isinstance(size, SymInt):
        return (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def plan_memory(
    touched: Sequence[Sequence[Storage]], branches: Mapping[int, Sequence[Touched]] | None = None
) -> MemoryPlan:
    """Assign offsets so that temporaries alive at the same step do not overlap. ``branches``: by number,
    which steps are branches that run at the same time, and what each step of each branch touches."""
    plan = MemoryPlan()
    lives = lifetimes(touched)
    static = [x for x in lives if isinstance(x.storage.size, int)]
    _pack_with_branches(plan, static, branches or {})
    _reuse(plan, [x for x in lives if not isinstance(x.storage.size, int)])
    plan.order = [x.storage for x in lives]
    plan.lives = lives
    plan.total = sum(hint(bytes_of(x.storage)) for x in lives)
    return plan


def _pack_with_branches(
    plan: MemoryPlan, lives: Sequence[Lifetime], branches: Mapping[int, Sequence[Touched]]
) -> None:
    """What a single branch uses is packed by itself into a block that lives as long as the branches."""
    blocks: list[tuple[Storage, MemoryPlan]] = []
    packed: set[int] = set()
    added: list[Lifetime] = []
    for step, rows in branches.items():
        users: dict[int, int] = {}
        for row in rows:
            for key in {id(s) for used in row for s in used}:
                users[key] = users.get(key, 0) + 1
        own = {id(x.storage) for x in lives if x.first == x.last == step and users.get(id(x.storage)) == 1}
        for row in rows:
            inner = MemoryPlan()
            private = [x for x in lifetimes(row) if id(x.storage) in own]
            if not private:
                continue
            _pack(inner, private)
            packed.update(inner.offsets)
            block = Storage(uint8, inner.size, "temp")
            blocks.append((block, inner))
            added.append(Lifetime(block, step, step))
    left = [x for x in lives if id(x.storage) not in packed]
    _pack(plan, sorted([*left, *added], key=lambda x: x.first))
    for block, inner in blocks:
        start = plan.offsets.pop(id(block))
        plan.offsets.update((key, start + offset) for key, offset in inner.offsets.items())


def _pack(plan: MemoryPlan, lives: Sequence[Lifetime]) -> None:
    """Best fit into the gaps between the temporaries that are alive."""
    ends: list[tuple[int, int, int]] = []  # a heap of (last step, start, end)
    gaps = _Gaps()
    for life in lives:
        while ends and ends[0][0] < life.first:
            _, start, end = heapq.heappop(ends)
            gaps.give_back(start, end)
        size = hint(bytes_of(life.storage))
        offset = gaps.take(size)
        plan.offsets[id(life.storage)] = offset
        if size:
            heapq.heappush(ends, (life.last, offset, offset + size))
    plan.size = gaps.most


class _Gaps:
    """Free memory: gaps between blocks in use, and all that is behind the last of these, from ``tail`` on.
    ``most``: how far it was ever used."""

    def __init__(self) -> None:
        self.tail = self.most = 0
        self.by_size: list[tuple[int, int]] = []  # (size, start), sorted
        self.end_of: dict[int, int] = {}
        self.start_of: dict[int, int] = {}

    def take(self, size: int) -> int:
        """The smallest gap that is large enough, the first of equal ones: where it starts."""
        place = bisect.bisect_left(self.by_size, (size, 0))
        if place == len(self.by_size):
            start, self.tail = self.tail, self.tail + size
            self.most = max(self.most, self.tail)
            return start
        found, start = self.by_size[place]
        self._drop(start, start + found)
        if found > size:
            self._add(start + size, start + found)
        return start

    def give_back(self, start: int, end: int) -> None:
        if end in self.end_of:
            after = self.end_of[end]
            self._drop(end, after)
            end = after
        if start in self.start_of:
            before = self.start_of[start]
            self._drop(before, start)
            start = before
        if end == self.tail:
            self.tail = start
        else:
            self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        bisect.insort(self.by_size, (end - start, start))
        self.end_of[start], self.start_of[end] = end, start

    def _drop(self, start: int, end: int) -> None:
        del self.by_size[bisect.bisect_left(self.by_size, (end - start, start))]
        del self.end_of[start], self.start_of[end]


def _reuse(plan: MemoryPlan, lives: Sequence[Lifetime]) -> None:
    free: dict[object, list[tuple[int, Dim]]] = {}
    for life in lives:
        size = bytes_of(life.storage)
        key = size.key if isinstance(size, SymInt) else size
        slots = free.setdefault(key, [])
        found = next((s for s in slots if s[0] < life.first), None)
        if found is not None:
            slots.remove(found)
            offset = found[1]
        else:
            offset = plan.size
            plan.size = plan.size + size
        plan.offsets[id(life.storage)] = offset
        slots.append((life.last, offset))
