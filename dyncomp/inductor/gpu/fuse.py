"""Steps that one kernel can do on a GPU: a product and the kernel that reads it, attention, a convolution.

What is found is a :class:`Joined` step, which keeps the steps that it stands for: they run where they are
faster, or the template does not compile.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dataclass import dataclass
from ...symint import ShapeEnv
from ..chain import find_chain
from ..epilogue import Chained, FusedProduct, Item, find_epilogue
from ..fuse import LibraryCall
from ..lower_emit import Emitted
from ..softmax import is_softmax
from .convolution import detail_of, is_convolution


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
    left: list[Item | None] = list(items)
    for at, item in enumerate(items):
        if left[at] is item and _is_product(item):
            assert isinstance(item, LibraryCall)
            _join_chain(left, at, item, env)
    for at, still in enumerate(items):
        if left[at] is still and _is_product(still):
            assert isinstance(still, LibraryCall)
            _join_epilogue(left, at, still, env)
        elif left[at] is still and isinstance(still, LibraryCall) and is_convolution(still):
            _join_epilogue(left, at, still, env)
    return [item for item in left if item is not None]


def _is_product(item: Item | None) -> bool:
    return isinstance(item, LibraryCall) and item.kind == "blas"


def _join_chain(left: list[Item | None], at: int, first: LibraryCall, env: ShapeEnv) -> None:
    found = find_chain(left, at, first, env, _is_product)
    if found is None or not is_softmax(found.tiled):
        return
    whole, second = left[found.kernel], left[found.second]
    assert isinstance(whole, Emitted)
    assert isinstance(second, LibraryCall)
    left[at] = left[found.kernel] = None
    left[found.second] = JoinedChain(first, found.tiled, second, whole)


def _join_epilogue(left: list[Item | None], at: int, call: LibraryCall, env: ShapeEnv) -> None:
    is_product = call.kind == "blas"
    found = find_epilogue(left, at, call, call.detail if is_product else detail_of(call), env)
    if found is None:
        return
    reader, tiled = found
    whole = left[reader]
    assert isinstance(whole, Emitted)
    joined = JoinedProduct if is_product else JoinedConvolution
    left[at], left[reader] = None, joined(call, tiled, whole)
