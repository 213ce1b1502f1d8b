"""Subscripts: from what stands between the brackets to one item per indexed dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dataclass import dataclass
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import Dim, ShapeEnv, SymInt, is_unbacked, same, sym_max, sym_min
from ..base import ArrayRef, TraceContext
from .operands import emit, from_nested, literal


@dataclass(frozen=True)
class IntItem:
    """An integer: selects one position and drops the dimension."""

    position: Dim


@dataclass(frozen=True)
class SliceItem:
    """A slice with known parts."""

    slice: slice


@dataclass(frozen=True)
class NewAxis:
    """``None``: a new dimension of size one."""


@dataclass(frozen=True)
class ArrayItem:
    """An integer array (a scalar whose value is not known included)."""

    var: Var
    kind: str


@dataclass(frozen=True)
class MaskItem:
    """A boolean array of one or more dimensions."""

    var: Var


Item = IntItem | SliceItem | NewAxis | ArrayItem | MaskItem


@dataclass(frozen=True)
class Subscript:
    """A subscript for an array of known ndim: items in order, the Ellipsis replaced by full slices.

    ``fancy``: positions of the items that are advanced indices. ``ellipsis``: one was written, so that
    the result is an array even with no dimensions.
    """

    items: tuple[Item, ...]
    ellipsis: bool

    @property
    def fancy(self) -> tuple[int, ...]:
        return tuple(i for i, item in enumerate(self.items) if isinstance(item, (ArrayItem, MaskItem)))

    @property
    def masks(self) -> tuple[int, ...]:
        return tuple(i for i, item in enumerate(self.items) if isinstance(item, MaskItem))

    @property
    def all_integers(self) -> bool:
        return not self.ellipsis and all(isinstance(item, IntItem) for item in self.items)


FULL = SliceItem(slice(None))


def parse(tx: TraceContext, key: object, ndim: int) -> Subscript:
    """The subscript ``key`` of an array of ``ndim`` dimensions."""
    entries = key if isinstance(key, tuple) else (key,)
    found: list[Item | None] = []
    for entry in entries:
        found += _items(tx, entry)
    if sum(item is None for item in found) > 1:
        raise Unsupported("an index can only have a single ellipsis ('...')")
    consumed = sum(_consumes(item) for item in found)
    if consumed > ndim:
        raise Unsupported(f"too many indices: array is {ndim}-dimensional, but {consumed} were indexed")
    rest = [FULL] * (ndim - consumed)
    ellipsis = None in found
    if not ellipsis:
        return Subscript((*found, *rest), False)  # type: ignore[arg-type]
    place = found.index(None)
    return Subscript((*found[:place], *rest, *found[place + 1 :]), True)  # type: ignore[arg-type]


def _consumes(item: Item | None) -> int:
    if item is None or isinstance(item, NewAxis):
        return 0
    return item.var.ndim if isinstance(item, MaskItem) else 1


def _items(tx: TraceContext, entry: object) -> list[Item | None]:
    if entry is None:
        return [NewAxis()]
    if entry is Ellipsis:
        return [None]
    if isinstance(entry, slice):
        return [SliceItem(_known_slice(entry))]
    if isinstance(entry, (bool, np.bool_)):
        raise Unsupported("a boolean scalar as an index")
    if isinstance(entry, (int, np.integer)):
        return [IntItem(int(entry))]
    if isinstance(entry, SymInt):
        return [IntItem(entry)]
    if isinstance(entry, ArrayRef):
        return [_array_item(entry)]
    if isinstance(entry, (list, tuple, np.ndarray)):
        return list(_constant_items(tx, entry))
    raise Unsupported(f"a {type(entry).__name__} as an index")


def _known_slice(entry: slice) -> slice:
    parts: list[Dim | None] = []
    for part in (entry.start, entry.stop, entry.step):
        if part is None or isinstance(part, SymInt):
            parts.append(part)
        elif isinstance(part, (int, np.integer)):
            parts.append(int(part))
        else:
            raise Unsupported(
                "a slice whose bounds are known at run time only", break_id="data-dependent-shape"
            )
    return slice(*parts)


def _array_item(ref: ArrayRef) -> Item:
    if ref.dtype.is_bool:
        if ref.ndim == 0:
            raise Unsupported("a boolean scalar as an index")
        return MaskItem(ref.var)
    if not ref.dtype.is_integer:
        raise Unsupported("arrays used as indices must be of integer (or boolean) type")
    return ArrayItem(ref.var, ref.kind)


def _constant_items(tx: TraceContext, entry: object) -> list[Item]:
    if not isinstance(entry, np.ndarray) and _holds_values(entry):
        return [_array_item(ArrayRef(from_nested(tx, entry, None)))]
    array = np.asarray(entry)
    if array.size == 0 and not isinstance(entry, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype == np.bool_:
        # a mask that is known selects known positions
        return [ArrayItem(literal(tx, part), "array") for part in np.nonzero(array)]
    if array.dtype.kind not in "iu":
        raise Unsupported("arrays used as indices must be of integer (or boolean) type")
    return [ArrayItem(literal(tx, array), "array")]


def _holds_values(entry: object) -> bool:
    if isinstance(entry, (list, tuple)):
        return any(_holds_values(item) for item in entry)
    return isinstance(entry, (ArrayRef, SymInt))


# -- basic indexing ---------------------------------------------------------------------------
def slice_extent(part: slice, size: Dim) -> tuple[Dim, Dim, Dim]:
    """``(start, number of elements, step)`` of a slice over ``size`` elements, as ``slice.indices``.

    Comparisons of symbolic integers become guards.
    """
    step = _step_of(part)
    if step == 0:
        raise Unsupported("slice step cannot be zero")
    if any(map(is_unbacked, (part.start, part.stop, size))):
        return _unbacked_extent(part, size, step)
    if step > 0:
        start = _clamp(part.start, size, 0, size, 0)
        stop = _clamp(part.stop, size, 0, size, size)
        if same(start, 0) and same(stop, size):
            return start, _ceil_div(stop, step), step
        if stop <= start:
            return 0, 0, step
        return start, _ceil_div(stop - start, step), step
    start = _clamp(part.start, size, -1, size - 1, size - 1)
    stop = _clamp(part.stop, size, -1, size - 1, -1)
    if start <= stop:
        return 0, 0, step
    return start, _ceil_div(start - stop, -step), step


def _step_of(part: slice) -> Dim:
    if part.step is None:
        return 1
    if isinstance(part.step, SymInt) and not is_unbacked(part.step):
        return part.step
    return int(part.step)


def _unbacked_extent(part: slice, size: Dim, step: Dim) -> tuple[Dim, Dim, Dim]:
    """Where a bound or the size depends on the data: without a question, but for bounds that are data being
    taken not to be negative."""
    if step < 0:
        if part.start is not None or part.stop is not None:
            raise Unsupported("a slice from back to front with bounds", break_id="data-dependent-shape")
        return size - 1, _ceil_div(size, -step), step
    start = 0 if part.start is None else _bound_of(part.start, size)
    stop = size if part.stop is None else _bound_of(part.stop, size)
    if not same(stop, size):
        stop = sym_min(stop, size)
    return start, _ceil_div(sym_max(stop - start, 0), step), step


def _bound_of(bound: Dim, size: Dim) -> Dim:
    """A bound of a slice counted from the front."""
    if is_unbacked(bound):
        assert isinstance(bound, SymInt)
        bound.env.assume(-bound, "<=")
        return bound
    return sym_max(bound + size, 0) if bound < 0 else bound


def _ceil_div(number: Dim, step: Dim) -> Dim:
    return number if same(step, 1) else (number + (step - 1)) // step


def _clamp(bound: Dim | None, size: Dim, low: Dim, high: Dim, default: Dim) -> Dim:
    if bound is None:
        return default
    if bound < 0:
        bound = bound + size
        return low if bound < low else bound
    if same(bound, high):
        return high
    return high if bound > high else bound


def int_position(position: Dim, size: Dim) -> Dim:
    """An integer index as a position; raises ``Unsupported`` where NumPy raises ``IndexError``."""
    if is_unbacked(position) or is_unbacked(size):
        return _unbacked_position(position, size)
    if position < 0:
        if position < -size:
            raise Unsupported(f"index {position} is out of bounds for axis with size {size}")
        return position + size
    if not position < size:
        raise Unsupported(f"index {position} is out of bounds for axis with size {size}")
    return position


def _unbacked_position(position: Dim, size: Dim) -> Dim:
    """Taken to be in range, and not negative where it depends on the data."""
    if not is_unbacked(position) and position < 0:
        position = position + size
    for bound, relation in ((-position, "<="), (position - size, "<")):
        env = _env_of(bound)
        if env is not None:
            env.assume(bound, relation)
        elif bound > 0 or (relation == "<" and bound == 0):
            raise Unsupported(f"index {position} is out of bounds for axis with size {size}")
    return position


def _env_of(value: Dim) -> ShapeEnv | None:
    return value.env if isinstance(value, SymInt) else None


@dataclass(frozen=True)
class Basic:
    """The basic part of a subscript applied: a view, and for every item the dimension of the view at
    which it stands (an integer's: the dimension before which it stood)."""

    var: Var
    dims: tuple[int, ...]


def apply_basic(tx: TraceContext, x: Var, items: Sequence[Item], keeps_step: bool = False) -> Basic:
    """Apply integers, slices and new axes; dimensions of arrays and masks are kept whole. ``keeps_step``:
    empty slices multiply strides by their step (torch's do, NumPy's take it as 1)."""
    starts: list[Dim] = []
    sizes: list[Dim] = []
    steps: list[Dim] = []
    shape: list[Dim] = []
    dims: list[int] = []
    axis = 0
    for item in items:
        dims.append(len(shape))
        if isinstance(item, NewAxis):
            shape.append(1)
            continue
        for _ in range(_consumes(item)):
            start, size, step = _extent(item, x.shape[axis])
            starts.append(start)
            sizes.append(size)
            steps.append(1 if same(size, 0) and not keeps_step else step)
            if not isinstance(item, IntItem):
                shape.append(size)
            axis += 1
    view = emit(tx, "strided_slice", x, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))
    if len(shape) != len(sizes) or any(isinstance(item, (NewAxis, IntItem)) for item in items):
        view = emit(tx, "reshape", view, shape=tuple(shape))
    return Basic(view, tuple(dims))


def _extent(item: Item, size: Dim) -> tuple[Dim, Dim, Dim]:
    if isinstance(item, IntItem):
        return int_position(item.position, size), 1, 1
    if isinstance(item, SliceItem):
        start, length, step = slice_extent(item.slice, size)
        if isinstance(step, int) and abs(step) >= 2**31:
            raise Unsupported("a slice whose strides may not be of 64 bits")
        return start, length, step
    return 0, size, 1
