"""What profiles call the steps of a schedule: names, the user's lines, bytes moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..graph.ir import Callee
from ..symbolic.integers import Dim
from .fusion.epilogue import Chained, FusedProduct, Item, Prepared, RowGroup
from .fusion.fuse import LibraryCall
from .launch import Part
from .loops.loop_ir import Kernel
from .naming import origin_of
from .schedule import Alternatives, CallBlas, CallChain, CallRows, LaunchKernel, PlainStep, TileKernel

_MOST_LINES = 6


def part_of(step: PlainStep, calls: Iterable[LibraryCall] = ()) -> Part:
    """Of a step that generated code runs; ``calls``: the products in it."""
    if isinstance(step, LaunchKernel):
        return Part(step.kernel.name, "kernel", step.kernel.origin[:_MOST_LINES], _moved(step.kernel))
    if isinstance(step, Alternatives):
        parts = [part_of(inner) for inner in step.plain]
        return Part(" + ".join(p.name for p in parts), "kernel", _lines(p.origin for p in parts))
    kernels = [tile.kernel for tile in _tiles(step)]
    name = _product_name(step)
    if kernels:
        name += " with " + ", ".join(dict.fromkeys(kernel.name for kernel in kernels))
    return Part(
        name,
        "product",
        _lines([*map(_origin, calls), *(kernel.origin for kernel in kernels)]),
        _operands(step),
    )


def routine_part(call: LibraryCall) -> Part:
    """Of a routine of the library."""
    assert call.value.row is not None
    moved: int | None = 0
    for value in (*call.operands, *call.results):
        moved = _added(moved, _size(value.shape), value.dtype.itemsize)
    callee = call.value.params.get("callee")
    name = callee.name if isinstance(callee, Callee) else call.value.row.name
    return Part(name, "library", _origin(call), moved)


def parts_at_once(parts: Sequence[Part]) -> Part:
    """Of steps in branches that run at the same time."""
    names = ", ".join(dict.fromkeys(part.name for part in parts))
    moved = [part.bytes for part in parts]
    total = None if None in moved else sum(size for size in moved if size is not None)
    return Part(f"at the same time: {names}", "branches", _lines(part.origin for part in parts), total)


def calls_of(item: Item) -> list[LibraryCall]:
    """The products of an item."""
    if isinstance(item, RowGroup):
        return [m.item for m in item.members if isinstance(m.item, LibraryCall)]
    if isinstance(item, Chained):
        return [item.first, item.second]
    if isinstance(item, (FusedProduct, Prepared)):
        return [item.call]
    return [item] if isinstance(item, LibraryCall) else []


def _origin(call: LibraryCall) -> tuple[str, ...]:
    node = call.value.node
    return () if node is None or node.loc is None else (origin_of(node.loc),)


def _lines(origins: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line for origin in origins for line in origin))[:_MOST_LINES]


def _moved(kernel: Kernel) -> int | None:
    """Bytes of a kernel's buffers, twice where it reads and writes."""
    total: int | None = 0
    for buffer in kernel.buffers:
        total = _added(total, buffer.size, buffer.dtype.itemsize * (2 if buffer.mode == "inout" else 1))
    return total


def _added(total: int | None, size: Dim | None, each: int) -> int | None:
    return total + size * each if total is not None and isinstance(size, int) else None


def _size(shape: Iterable[Dim]) -> int | None:
    size = 1
    for extent in shape:
        if not isinstance(extent, int):
            return None
        size *= extent
    return size


def _tiles(step: CallBlas | CallChain | CallRows) -> list[TileKernel]:
    if isinstance(step, CallRows):
        return [part.kernel for part in step.steps if part.kernel is not None]
    product = step.first if isinstance(step, CallChain) else step
    fills = [fill.tile for fill in (product.fill_a, product.fill_b) if fill is not None]
    return [*fills, *([product.epilogue] if product.epilogue is not None else [])]


def operands_of(step: CallBlas) -> str:
    """The dtypes of a product's operands."""
    return str(step.a_dtype) if step.b_dtype is step.a_dtype else f"{step.a_dtype} by {step.b_dtype}"


def _product_name(step: CallBlas | CallChain | CallRows) -> str:
    if isinstance(step, CallRows):
        return f"{step.dtype} products of rows"
    if isinstance(step, CallChain):
        first, second = step.first, step.second
        return f"{first.dtype} products {first.m}x{first.k}x{first.n}x{second.n}"
    what = "product" if step.windows is None else "convolution"
    batch = "".join(f"{extent}x" for extent in step.batch)
    return f"{operands_of(step)} {what} {batch}{step.m}x{step.k}x{step.n}"


def _operands(step: CallBlas | CallChain | CallRows) -> int | None:
    """Bytes of a product's operands and result."""
    if not isinstance(step, CallBlas) or step.windows is not None:
        return None
    batch = _size(step.batch)
    total: int | None = 0
    for rows, columns in ((step.m, step.k), (step.k, step.n), (step.m, step.n)):
        size = _size((rows, columns))
        total = _added(total, None if size is None or batch is None else size * batch, step.dtype.itemsize)
    return total
