"""Elementwise kernels write over what they read for the last time: the result takes the memory of an operand.

The memory of an array that ends at a step and that of one that begins there would both be alive in it. Where
every read of the one and every write of the other are at one index, the kernel gets one buffer for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .fusion.epilogue import Item, touched
from .loops.loop_ir import Buffer, Kernel, Stmt
from .lowering.emit import Emitted
from .lowering.values import Storage
from .memory import lifetimes


def write_in_place(items: Sequence[Item]) -> tuple[list[Item], list[tuple[Storage, Storage]]]:
    """The steps, and pairs of temporaries: the second is where the first, which ends, has been."""
    lives = {id(life.storage): life for life in lifetimes([touched(item) for item in items])}
    made: list[Item] = []
    pairs: list[tuple[Storage, Storage]] = []
    for step, item in enumerate(items):
        if isinstance(item, Emitted) and _is_elementwise(item):
            ends = [k for k, s in enumerate(item.storages) if id(s) in lives and lives[id(s)].last == step]
            begins = [k for k, s in enumerate(item.storages) if id(s) in lives and lives[id(s)].first == step]
            item, found = _joined(item, ends, begins)
            pairs += found
        made.append(item)
    return made, pairs


def _is_elementwise(item: Emitted) -> bool:
    """Whether a kernel goes over its elements once: nothing that it does with each of them waits for a
    reduction of them."""
    if item.ordered or len(set(map(id, item.storages))) < len(item.storages):
        return False
    reduced = {axis.name for axis in item.kernel.axes if axis.kind == "reduce"}
    waiting: set[str] = set()
    for stmt in item.kernel.body:
        if stmt.op == "scan":
            return False
        if stmt.op == "reduce" or not waiting.isdisjoint(stmt.args):
            if stmt.op != "reduce" and not reduced.isdisjoint(stmt.axes):
                return False
            waiting.add(stmt.out)
    return True


def _joined(
    item: Emitted, ends: Sequence[int], begins: Sequence[int]
) -> tuple[Emitted, list[tuple[Storage, Storage]]]:
    found: list[tuple[Storage, Storage]] = []
    kernel, storages = item.kernel, item.storages
    over: dict[str, str] = {}
    for begin in begins:
        later = kernel.buffers[begin]
        for end in ends:
            earlier = kernel.buffers[end]
            if earlier.name not in over.values() and _may_join(kernel, earlier, later):
                over[later.name] = earlier.name
                found.append((storages[end], storages[begin]))
                break
    if not over:
        return item, found
    numbers = {buffer.name: k for k, buffer in enumerate(kernel.buffers)}
    name = "_".join([kernel.name, *(f"{numbers[b]}over{numbers[a]}" for b, a in over.items())])
    kept = [k for k, buffer in enumerate(kernel.buffers) if buffer.name not in over]
    buffers = [kernel.buffers[k] for k in kept]
    buffers = [replace(b, mode="inout") if b.name in over.values() else b for b in buffers]
    body = [_renamed(stmt, over) for stmt in kernel.body]
    made = replace(kernel, name=name, buffers=tuple(buffers), body=tuple(body))
    return replace(item, kernel=made, storages=tuple(storages[k] for k in kept)), found


def _may_join(kernel: Kernel, earlier: Buffer, later: Buffer) -> bool:
    same = (earlier.dtype, earlier.size) == (later.dtype, later.size) and isinstance(earlier.size, int)
    if not same or (earlier.mode, later.mode) != ("in", "out") or earlier.aliases or later.aliases:
        return False
    uses = [stmt for stmt in kernel.body if _buffer_of(stmt) in (earlier.name, later.name)]
    if any(stmt.op not in ("load", "store") for stmt in uses):
        return False
    places = {stmt.arg[1] for stmt in uses}
    return len(places) == 1 and sum(stmt.op == "store" for stmt in uses) == 1 and _reads_first(uses)


def _reads_first(uses: Sequence[Stmt]) -> bool:
    return all(stmt.op == "load" for stmt in uses[:-1])


def _buffer_of(stmt: Stmt) -> str | None:
    arg = stmt.arg
    return arg[0] if isinstance(arg, tuple) and arg and isinstance(arg[0], str) else None


def _renamed(stmt: Stmt, over: dict[str, str]) -> Stmt:
    name = _buffer_of(stmt)
    if name not in over or stmt.op != "store":
        return stmt
    return replace(stmt, arg=(over[name], *stmt.arg[1:]))
