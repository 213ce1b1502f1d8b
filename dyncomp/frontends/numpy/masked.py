"""Arrays selected by a boolean mask, ``x[m]``, kept at full size.

How many elements a mask selects is known only at run time. A *masked* value (``ArrayRef.kind ==
"masked"``) stands for ``full[mask]`` without selecting: elementwise work is done on the whole of ``full``,
a reduction ignores what the mask leaves out, and ``x[m] = value`` chooses between ``value`` and ``x``.
Python sees an array of shape ``(count, *rest)`` where ``full`` has shape ``(*mask.shape, *rest)``.

``full`` and ``mask`` are values of their own (copies, which cost nothing once the graph is functional), so
that later writes to ``x`` or ``m`` do not reach what was read. Two masked values combine where they have
one mask: where the two masks were computed by the same expression from the same memory contents.
"""

from __future__ import annotations

from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import SymInt
from ..base import ArrayRef, TraceContext
from ..meaning import Meaning
from .index_parse import IntItem, MaskItem, SliceItem, Subscript, apply_basic
from .operands import emit


def is_masked(value: object) -> bool:
    return isinstance(value, ArrayRef) and value.kind == "masked"


def mentions_masked(value: object) -> bool:
    """Whether a rule's argument is, or holds, a masked value."""
    if isinstance(value, ArrayRef):
        return value.kind == "masked"
    if isinstance(value, (list, tuple)):
        return any(map(mentions_masked, value))
    if isinstance(value, dict):
        return bool(value) and any(map(mentions_masked, value.values()))
    if isinstance(value, slice):
        return any(mentions_masked(part) for part in (value.start, value.stop, value.step))
    return False


def refused(what: str) -> Unsupported:
    return Unsupported(
        f"{what} elements selected by a boolean mask, and how many there are depends on the data",
        break_id="data-dependent-shape",
    )


# -- parts of a masked value ------------------------------------------------------------------
def mask_of(ref: ArrayRef) -> Var:
    assert ref.mask is not None
    return ref.mask


def rest_ndim(ref: ArrayRef) -> int:
    """How many dimensions come after the selected one."""
    return ref.ndim - mask_of(ref).ndim


def whole(ref: ArrayRef) -> ArrayRef:
    """All of ``full``, as an ordinary array."""
    return ArrayRef(ref.var, "array", ref.frontend)


def masked(var: Var, mask: Var) -> ArrayRef:
    """The elements of ``var`` that ``mask`` selects; ``var`` must be in C order and nobody else's."""
    if var.ndim < mask.ndim or not all(a == b for a, b in zip(var.shape, mask.shape)):
        raise refused("a result of another shape from")
    if not var.type.is_contiguous:
        raise refused("a result of another memory order from")
    return ArrayRef(var, "masked", mask=mask)


def spread_mask(tx: TraceContext, mask: Var, like: Var, first: int = 0) -> Var:
    """The mask broadcast to the shape of ``like``, whose dimensions from ``first`` on it covers."""
    if mask.ndim == like.ndim:
        return mask
    dims = tuple(range(first, first + mask.ndim))
    return emit(tx, "broadcast_in_dim", mask, shape=like.shape, dims=dims)


# -- reading ----------------------------------------------------------------------------------
def read(tx: TraceContext, x: ArrayRef, subscript: Subscript) -> ArrayRef:
    """``x[subscript]`` where the subscript begins with a mask; after it come integers and slices."""
    first, *others = subscript.items
    if not isinstance(first, MaskItem) or not all(isinstance(i, (IntItem, SliceItem)) for i in others):
        raise refused("a subscript of this form gives")
    view = apply_basic(tx, x.var, subscript.items).var
    mask = first.var
    if not all(a == b for a, b in zip(mask.shape, view.shape)):
        raise Unsupported("boolean index did not match the shape of the indexed array")
    if not _selects_in_order(view, mask.ndim):
        raise refused("a subscript that gives another memory order of")
    return masked(_fresh(tx, view), owned_mask(tx, mask))


def _selects_in_order(view: Var, covered: int) -> bool:
    """Whether NumPy gives the selected elements in C order: where what follows the mask is in that order."""
    if view.type.is_contiguous:
        return True
    rest = [(d, s) for d, s in zip(view.shape[covered:], view.type.strides[covered:])]
    if any(isinstance(part, SymInt) for pair in rest for part in pair):
        return len(rest) <= 1
    steps = [abs(int(s)) for d, s in rest if d != 1]
    return steps == sorted(steps, reverse=True)


def read_again(tx: TraceContext, x: ArrayRef, key: ArrayRef) -> ArrayRef:
    """``t[k]`` of a masked ``t`` and a masked boolean ``k`` of the same mask."""
    mask = joint_mask(tx, x, key)
    return masked(_fresh(tx, x.var), mask)


def _fresh(tx: TraceContext, var: Var) -> Var:
    return emit(tx, "copy" if var.type.is_contiguous else "contiguous", var)


# -- which masks are the same -----------------------------------------------------------------
def owned_mask(tx: TraceContext, mask: Var) -> Var:
    """A copy of the mask as it is now: the same value for masks that are certainly equal."""
    key = ("mask", Meaning(tx).of(mask))
    return _remembered(tx, key) or _remember(tx, key, _fresh(tx, mask))


def joint_mask(tx: TraceContext, x: ArrayRef, key: ArrayRef) -> Var:
    """The mask that selects by ``key`` among what the mask of ``x`` selects."""
    if not key.dtype.is_bool or key.mask != x.mask or rest_ndim(key):
        raise refused("subscript of")
    place = ("joint mask", mask_of(x).name, Meaning(tx).of(key.var))
    known = _remembered(tx, place)
    return known or _remember(tx, place, emit(tx, "logical_and", mask_of(x), key.var))


def _remember(tx: TraceContext, key: object, var: Var) -> Var:
    tx.memo[key] = (len(tx.builder.nodes) - 1, var)
    return var


def _remembered(tx: TraceContext, key: object) -> Var | None:
    position, var = tx.memo.get(key, (0, None))
    nodes = tx.builder.nodes
    # the node may have been rolled back
    return var if position < len(nodes) and nodes[position].outputs[:1] == (var,) else None
