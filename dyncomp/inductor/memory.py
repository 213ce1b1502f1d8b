"""Memory planning: where in one arena each temporary lives.

Static sizes are packed by lifetime, best fit first (the largest first would fragment less but break the
order of steps, which a single pass over them keeps simple). Symbolic sizes reuse a slot of the same size.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dataclass import dataclass, field
from ..symbolic.integers import Dim, SymInt, hint
from .lowering.values import Storage

ALIGNMENT = 64


@dataclass(frozen=True)
class Lifetime:
    """A temporary and the first and last step (inclusive) that touch it."""

    storage: Storage
    first: int
    last: int


@dataclass
class MemoryPlan:
    """Byte offsets of temporaries, by identity of their storages, and the size of the arena in bytes."""

    offsets: dict[int, Dim] = field(default_factory=dict)
    order: list[Storage] = field(default_factory=list)
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


def plan_memory(touched: Sequence[Sequence[Storage]]) -> MemoryPlan:
    """Assign offsets so that temporaries alive at the same step do not overlap."""
    plan = MemoryPlan()
    lives = lifetimes(touched)
    static = [x for x in lives if isinstance(x.storage.size, int)]
    _pack(plan, static)
    _reuse(plan, [x for x in lives if not isinstance(x.storage.size, int)])
    plan.order = [x.storage for x in lives]
    plan.total = sum(hint(bytes_of(x.storage)) for x in lives)
    return plan


def _pack(plan: MemoryPlan, lives: Sequence[Lifetime]) -> None:
    """Best fit into the gaps between the temporaries that are alive."""
    active: list[tuple[int, int, int]] = []  # (offset, end, last step)
    top = 0
    for life in lives:
        size = hint(bytes_of(life.storage))
        active = [block for block in active if block[2] >= life.first]
        offset = _gap(active, size)
        plan.offsets[id(life.storage)] = offset
        active.append((offset, offset + size, life.last))
        active.sort()
        top = max(top, offset + size)
    plan.size = top


def _gap(active: Sequence[tuple[int, int, int]], size: int) -> int:
    best: int | None = None
    best_size = 0
    end = 0
    for start, stop, _ in active:
        gap = start - end
        if gap >= size and (best is None or gap < best_size):
            best, best_size = end, gap
        end = max(end, stop)
    return end if best is None else best


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
