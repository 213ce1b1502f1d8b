"""Steps that do not depend on each other as branches that run at the same time.

A step has a barrier at its end, and one that is too small for all threads leaves some of them idle. Where a
graph has long chains of such steps beside each other (recurrent layers, ensembles), each chain can have its
own threads instead.

The steps between two library calls are cut in three: what comes first, branches, and the rest, which is cut
again. What comes first is all that can be done by some time on unlimited threads; then steps join the branch
of what they depend on, and a step that would join two long branches waits for the rest, with all that depends
on it. Of several such cuts the one is taken that a model of the time says is best, if it says that it pays.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...dataclass import dataclass as quick_dataclass
from ...graph.ir import Callee
from ...symbolic.integers import hint
from ..lowering.contract import Product
from ..lowering.emit import Emitted, work_of
from ..lowering.values import Storage, storage_of
from .epilogue import Chained, FusedProduct, Item, Prepared, RowGroup, Tiled, is_own_product, touched
from .fuse import LibraryCall
from .prologue import written_by

# A branch is at least so much work (on one core), and a cut saves at least so much and such a part of the
# time.
LEAST_BRANCH_NS = 40_000.0
# What a library call beside others takes at least: a thread of the interpreter costs about 30 us.
LEAST_CALL_NS = 300_000.0
LEAST_SAVED_NS = 20_000.0
LEAST_SAVED = 0.07
# The runtime has no more groups of threads (kMostBranches in runtime/csrc/pool.cpp).
MOST_BRANCHES = 16
# A multiply and add of a product; what a thread takes of a step at once; what the end of a step costs that
# several threads run, and branches.
TERM_NS = 0.02
PIECE_NS = 9_000.0
BARRIER_NS = 4_000.0
BRANCHES_NS = 15_000.0
# What comes first, by its part of the longest path.
FIRST = (0.0, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85)
# Longer lists are left as they are: looking at them takes time.
MOST_STEPS = 6000


@quick_dataclass(eq=False)
class Branches:
    """Steps of each branch, in order; no branch touches what another one writes. ``are_calls``: each is a
    single call of a library's function, in a thread of its own."""

    branches: tuple[tuple[Item, ...], ...]
    are_calls: bool = False

    @property
    def items(self) -> list[Item]:
        """The steps of one branch after the other's."""
        return [item for branch in self.branches for item in branch]

    @property
    def storages(self) -> list[Storage]:
        """What the steps read or write."""
        found = {id(s): s for item in self.items for s in touched(item)}
        return [*found.values()]


PlacedItem = Item | Branches


def touched_by(item: PlacedItem) -> Sequence[Storage]:
    """The storages that a step, or a step of a branch, reads or writes."""
    return item.storages if isinstance(item, Branches) else touched(item)


def flat(items: Sequence[PlacedItem]) -> list[Item]:
    """The steps, those of branches one after the other."""
    found: list[Item] = []
    for item in items:
        found += item.items if isinstance(item, Branches) else [item]
    return found


def find_branches(
    items: Sequence[Item], threads: int, serial_ns: float, stays: Callable[[Item], bool]
) -> list[PlacedItem]:
    """The steps, with branches where that pays on so many threads. Steps of less than ``serial_ns`` run on
    one. ``stays``: nothing moves from one side of such a step to the other."""
    if threads < 2 or len(items) < 2:
        return [*items]
    found: list[PlacedItem] = []
    for window in _windows(_calls_together(items, stays), stays):
        if isinstance(window, Branches):
            found.append(window)
        elif len(window) < 4 or len(window) > MOST_STEPS:
            found += window
        else:
            found += _Cutter(window, threads, serial_ns).run()
    return found


def _windows(items: Sequence[PlacedItem], stays: Callable[[Item], bool]) -> Iterator[list[Item] | Branches]:
    window: list[Item] = []
    for item in items:
        if isinstance(item, Branches):
            yield window
            yield item
            window = []
        elif stays(item) or not _can_run_in_branches(item):
            yield window
            yield [item]
            window = []
        else:
            window.append(item)
    yield window


def _can_run_in_branches(item: Item) -> bool:
    """Not library calls: those between the interpreter's functions end a segment, and a BLAS has its own
    threads."""
    return not isinstance(item, LibraryCall) or is_own_product(item)


# -- calls ------------------------------------------------------------------------------------
def _calls_together(items: Sequence[Item], stays: Callable[[Item], bool]) -> list[PlacedItem]:
    """The steps, with long library calls that do not depend on each other side by side: first what needs no
    such call, then those that need only that, then what needs these, and so on."""
    if sum(_work_of_call(item) >= LEAST_CALL_NS for item in items) < 2 or any(map(stays, items)):
        return [*items]
    before = dependences(items)
    levels: list[tuple[int, bool]] = []
    for number, item in enumerate(items):
        level = max((levels[p][0] + levels[p][1] for p in before[number]), default=0)
        levels.append((level, _work_of_call(item) >= LEAST_CALL_NS))
    made: list[PlacedItem] = []
    order = sorted(range(len(items)), key=lambda k: levels[k])
    for (_, is_call), group in itertools.groupby(order, key=lambda k: levels[k]):
        members = [items[k] for k in group]
        if is_call and len(members) > 1:
            made.append(Branches(tuple((item,) for item in members), are_calls=True))
        else:
            made += members
    return made


def _work_of_call(item: Item) -> float:
    """Nanoseconds on one core of a library call that may run at the same time as others; else 0."""
    if not isinstance(item, LibraryCall) or item.kind == "blas":
        return 0.0
    callee = item.value.params.get("callee")
    return callee.work_ns if isinstance(callee, Callee) else 0.0


def _written(item: Item) -> Sequence[Storage]:
    if isinstance(item, LibraryCall) and item.kind != "blas":
        return [storage_of(v) for v in item.results]  # such calls are pure
    return written_by(item)


def dependences(items: Sequence[Item]) -> list[set[int]]:
    """Of each step the earlier ones that it must follow, by numbers; not those that follow from these."""
    writers: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    found: list[set[int]] = []
    others: list[int] = []
    for number, item in enumerate(items):
        written = {id(s) for s in _written(item)}
        before: set[int] = set()
        for storage in {id(s) for s in touched(item)} | written:
            if storage in writers:
                before.add(writers[storage])
            if storage in written:
                before.update(readers.pop(storage, ()))
                writers[storage] = number
            else:
                readers.setdefault(storage, []).append(number)
        if isinstance(item, LibraryCall) and item.kind != "blas" and not _work_of_call(item):
            # it may draw random numbers: among themselves such calls keep their order
            before.update(others)
            others = [number]
        before.discard(number)
        found.append(before)
    return found


# -- work -------------------------------------------------------------------------------------
def estimate(item: Item) -> float:
    """Nanoseconds of a step on one core."""
    if isinstance(item, Emitted):
        return work_of(item.kernel) * hint(item.points)
    if isinstance(item, RowGroup):
        return sum(estimate(member.item) for member in item.members)
    if isinstance(item, Chained):
        return _product(item.first) + _tiles(item.tiled, item.first) + _product(item.second)
    if isinstance(item, FusedProduct):
        return _product(item.call) + _tiles(item.tiled, item.call)
    if isinstance(item, Prepared):
        product = item.call.detail
        sides = (item.fill_a, product.m * product.k), (item.fill_b, product.k * product.n)
        return estimate(item.item) + sum(
            work_of(fill.kernel) * hint(elements) for fill, elements in sides if fill is not None
        )
    return _product(item) if item.kind == "blas" else 0.0


def _product(call: LibraryCall) -> float:
    product = call.detail
    assert isinstance(product, Product)
    return TERM_NS * _results(product) * hint(product.k)


def _tiles(tiled: Tiled, call: LibraryCall) -> float:
    return work_of(tiled.kernel) * _results(call.detail)


def _results(product: Product) -> float:
    return math.prod(
        (float(hint(product.m)), float(hint(product.n)), *(float(hint(b)) for b in product.batch))
    )


# -- cuts -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Cut:
    """Numbers of steps, each list in order. ``saved``: how much time, in nanoseconds."""

    first: list[int]
    branches: list[list[int]]
    rest: list[int]
    saved: float


class _Cutter:
    """Steps that may move past each other where they do not depend on each other."""

    def __init__(self, items: Sequence[Item], threads: int, serial_ns: float) -> None:
        self.items = items
        self.threads = threads
        self.serial_ns = serial_ns
        self.work = [estimate(item) for item in items]
        self.spread = [self.time(work, threads) for work in self.work]
        self.before: list[set[int]] = []

    def time(self, work: float, threads: int) -> float:
        """Of a step on so many threads."""
        if threads <= 1 or work <= self.serial_ns:
            return work
        pieces = max(int(work / PIECE_NS), 1)
        # beyond a few pieces for each thread they grow instead
        pieces = min(pieces, 8 * threads)
        return math.ceil(pieces / threads) * work / pieces + BARRIER_NS

    def run(self) -> list[PlacedItem]:
        everything = [*range(len(self.items))]
        if not self._may_pay(everything):
            return [*self.items]
        self.before = dependences(self.items)
        return self._placed(everything)

    def _placed(self, numbers: Sequence[int]) -> list[PlacedItem]:
        cut = self._best(numbers)
        if cut is None:
            return [self.items[k] for k in numbers]
        branches = tuple(tuple(self.items[k] for k in branch) for branch in cut.branches)
        return [*self._placed(cut.first), Branches(branches), *self._placed(cut.rest)]

    def _may_pay(self, numbers: Sequence[int]) -> bool:
        """Whether steps one after the other leave threads idle."""
        work = sum(self.work[k] for k in numbers)
        spare = sum(self.spread[k] for k in numbers) - work / self.threads
        return spare > LEAST_SAVED_NS and work >= 2 * LEAST_BRANCH_NS

    def _best(self, numbers: Sequence[int]) -> _Cut | None:
        """The cut that saves the most."""
        if len(numbers) < 4 or not self._may_pay(numbers):
            return None
        finish: dict[int, float] = {}
        for k in numbers:
            start = max((finish[p] for p in self.before[k] if p in finish), default=0.0)
            finish[k] = start + self.work[k]
        longest = max(finish.values())
        if sum(self.work[k] for k in numbers) < (1 + LEAST_SAVED) * longest:
            return None
        best: _Cut | None = None
        for part in FIRST:
            cut = self._cut(numbers, finish, part * longest)
            if cut is not None and (best is None or cut.saved > best.saved):
                best = cut
        return best

    def _cut(self, numbers: Sequence[int], finish: dict[int, float], by: float) -> _Cut | None:
        """With what can end ``by`` some time first; ``None`` if it does not pay."""
        first = [k for k in numbers if finish[k] <= by]
        parents: dict[int, int] = {}
        work: dict[int, float] = {}
        rest: set[int] = set()

        def root_of(k: int) -> int:
            while parents[k] != k:
                parents[k] = k = parents[parents[k]]
            return k

        for k in numbers:
            if finish[k] <= by:
                continue
            if not rest.isdisjoint(self.before[k]):
                rest.add(k)
                continue
            roots = {root_of(p) for p in self.before[k] if p in parents}
            if sum(work[r] >= LEAST_BRANCH_NS for r in roots) > 1:
                rest.add(k)
                continue
            parents[k] = k
            work[k] = self.work[k]
            for r in roots:
                parents[r] = k
                work[k] += work.pop(r)
        members: dict[int, list[int]] = {}
        for k in parents:
            members.setdefault(root_of(k), []).append(k)
        branches = self._branches([*members.values()])
        if branches is None:
            return None
        now = sum(self.spread[k] for branch in branches for k in branch)
        saved = now - self._together(branches)
        if saved < max(LEAST_SAVED_NS, LEAST_SAVED * now):
            return None
        return _Cut(first, branches, [k for k in numbers if k in rest], saved)

    def _branches(self, parts: list[list[int]]) -> list[list[int]] | None:
        """Parts that do not depend on each other as a few branches of about the same work."""
        sized = sorted(((sum(self.work[k] for k in part), part) for part in parts), key=lambda p: -p[0])
        count = min(sum(size >= LEAST_BRANCH_NS for size, _ in sized), MOST_BRANCHES)
        if count < 2:
            return None
        heap: list[tuple[float, int]] = [(0.0, k) for k in range(count)]
        branches: list[list[int]] = [[] for _ in range(count)]
        for size, part in sized:
            load, k = heapq.heappop(heap)
            branches[k] += part
            heapq.heappush(heap, (load + size, k))
        return [sorted(branch) for branch in branches]

    def _together(self, branches: Sequence[Sequence[int]]) -> float:
        """The time of branches that run at the same time."""
        each = max(self.threads // len(branches), 1)
        times = [sum(self.time(self.work[k], each) for k in branch) for branch in branches]
        ends = [0.0] * min(self.threads, len(branches))
        for time in times:  # a thread takes the next that nobody has begun
            heapq.heapreplace(ends, ends[0] + time)
        return max(ends) + BRANCHES_NS
