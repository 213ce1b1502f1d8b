"""Steps that one kernel can do on a GPU: a product and the kernel that reads it, attention, a convolution.

What is found is a :class:`Joined` step, which keeps the steps that it stands for: they run where they are
faster, or the template does not compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...dataclass import dataclass
from ...symbolic.integers import ShapeEnv
from ..fusion.chain import find_chain
from ..fusion.epilogue import Chained, FusedProduct, Item, RowGroup, Steps, find_epilogue
from ..fusion.fuse import LibraryCall
from ..fusion.row_groups import fuse_row_groups
from ..fusion.softmax import is_softmax
from ..lowering.contract import Operand, Product
from ..lowering.emit import Emitted
from ..lowering.values import Storage, place_of
from ..schedule import CallBlas, CallRows, Matrix, RowCall, TileKernel
from .convolution import detail_of, is_convolution
from .rows import merged_of


@dataclass(eq=False)
class JoinedProduct(FusedProduct):
    """A product with the kernel that finishes its tiles. ``whole``: that kernel over the whole product."""

    whole: Emitted


@dataclass(eq=False)
class JoinedChain(Chained):
    """Two products with a softmax of rows between them. ``whole``: that kernel over all rows."""

    whole: Emitted


@dataclass(eq=False)
class JoinedConvolution(JoinedProduct):
    """A convolution with the kernel that finishes its tiles."""


def join_steps(items: Sequence[Emitted | LibraryCall], env: ShapeEnv) -> list[Item]:
    """The steps with those that can be one kernel joined: chains first, which save the most memory."""
    steps = Steps(items)
    for at, item in enumerate(items):
        if steps[at] is item and _is_product(item):
            assert isinstance(item, LibraryCall)
            _join_chain(steps, at, item, env)
    grouped = fuse_row_groups(steps.left(), env, _is_product, _is_rows)
    steps = Steps(grouped)
    for at, still in enumerate(grouped):
        if steps[at] is still and _is_product(still):
            assert isinstance(still, LibraryCall)
            _join_epilogue(steps, at, still, env)
        elif steps[at] is still and isinstance(still, LibraryCall) and is_convolution(still):
            _join_epilogue(steps, at, still, env)
    return steps.left()


def _is_product(item: Item | None) -> bool:
    return isinstance(item, LibraryCall) and item.kind == "blas"


# -- groups of rows ---------------------------------------------------------------------------
def _is_rows(group: RowGroup) -> bool:
    """Whether there is a template for a group."""
    return merged_of(rows_of(group, id)) is not None


def rows_of(group: RowGroup, number: Callable[[Storage], int]) -> CallRows:
    """A group as a step; ``number`` gives the slots of storages."""
    steps = []
    for member in group.members:
        item = member.item
        if isinstance(item, LibraryCall):
            steps.append(
                RowCall(member.kind, member.matrix, _product(member.kind, member.matrix, item, number))
            )
            continue
        held = {k for k, _ in member.held}
        slots = tuple(0 if k in held else number(s) for k, s in enumerate(item.storages))
        tile = TileKernel(item.kernel, slots, -1, held=member.held, matrices=len(group.matrices))
        steps.append(RowCall("kernel", -1, None, tile))
    dtype = next(s.product.dtype for s in steps if s.product is not None)
    return CallRows(dtype, tuple(steps), len(group.matrices))


def _product(kind: str, matrix: int, call: LibraryCall, number: Callable[[Storage], int]) -> CallBlas:
    detail: Product = call.detail

    def place(operand: Operand) -> Matrix:
        at = place_of(operand.value)
        steps = (operand.row_stride, operand.col_stride, operand.batch_strides)
        return Matrix(number(at.storage), at.offset, *steps)

    a = detail.a
    held = matrix >= 0 and kind != "scores"
    left = Matrix(0, 0, a.row_stride, a.col_stride, a.batch_strides) if held else place(a)
    target = None if kind == "scores" else place(detail.c)
    dtype, source = call.value.dtype, detail.b.value.dtype
    made = CallBlas(dtype, detail.m, detail.n, detail.k, left, place(detail.b), target, detail.batch)
    return made if source is dtype else replace(made, source=source)


def _join_chain(steps: Steps, at: int, first: LibraryCall, env: ShapeEnv) -> None:
    found = find_chain(steps, at, first, env, _is_product)
    if found is None or not is_softmax(found.tiled):
        return
    whole, second = steps[found.kernel], steps[found.second]
    assert isinstance(whole, Emitted)
    assert isinstance(second, LibraryCall)
    steps[at] = steps[found.kernel] = None
    steps[found.second] = JoinedChain(first, found.tiled, second, whole)


def _join_epilogue(steps: Steps, at: int, call: LibraryCall, env: ShapeEnv) -> None:
    is_product = call.kind == "blas"
    found = find_epilogue(steps, at, call, call.detail if is_product else detail_of(call), env)
    if found is None:
        return
    reader, tiled = found
    whole = steps[reader]
    assert isinstance(whole, Emitted)
    joined = JoinedProduct if is_product else JoinedConvolution
    steps[at], steps[reader] = None, joined(call, tiled, whole)
