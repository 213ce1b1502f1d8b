"""What computing a value reads: the memory and the values of other loops, with their indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ... import dtypes
from ...dataclass import dataclass
from ...dtypes import DType
from ...errors import LoweringFault
from ...prims.opdef import Gather, Scatter
from ...prims.scalar import ScalarBuilder
from ..lowering.values import NotAffine, Value, map_index, place_of
from .index import Expr, Index, linear


@dataclass(frozen=True, eq=False)
class Read:
    """``root``: the value read (in memory, or computed by a cluster), at ``index``; ``address``: where that
    is in the root's memory, ``None`` for a gather; ``since``: the first step that may read it so."""

    root: Value
    index: Index | None
    address: Expr | None
    since: int = 0


class Materialiser(Protocol):
    """Puts a value that its readers would compute, or that lies within another, into memory of its own."""

    def materialise(self, value: Value) -> None: ...

    def return_borrowed(self, value: Value) -> None: ...


class _Positions(ScalarBuilder):
    """A scalar builder that computes nothing: for walking an address function."""

    def emit(self, op: str, args: tuple[Any, ...], dtype: DType, arg: object = None) -> Any:
        return dtype

    def dtype(self, value: Any) -> DType:
        return value if isinstance(value, DType) else dtypes.int64


class ReadWalker:
    """Collects the reads of values at indices, through views and values without a home."""

    def __init__(self, materialiser: Materialiser) -> None:
        self.materialiser = materialiser
        self.reads: list[Read] = []
        self.since = 0
        self._seen: set[tuple[int, Index, int]] = set()

    def walk(self, value: Value, index: Index) -> None:
        outer, self.since = self.since, max(self.since, _since(value))
        try:
            self._walk(value, index)
        finally:
            self.since = outer

    def _walk(self, value: Value, index: Index) -> None:
        key = (id(value), index, self.since)
        if key in self._seen:
            return
        self._seen.add(key)
        root, inner, reshaped = descend(value, index)
        if not root.inline:
            self.reads.append(_leaf(value, index, root, inner, self.since))
            return
        if inner is None:
            self._spill(value, index, root)
            return
        mark = len(self.reads)
        try:
            self.walk_inputs(root, inner)
        except NotAffine:
            if not reshaped:
                raise
            del self.reads[mark:]
            self._spill(value, index, root)

    def _spill(self, value: Value, index: Index, root: Value) -> None:
        self.materialiser.materialise(root)
        self.reads.append(_leaf(value, index, *descend(value, index)[:2], self.since))

    def walk_inputs(self, value: Value, index: Index) -> None:
        """The reads of a point or gather value's operands, for its element ``index``."""
        if value.kind == "gather":
            self._gather(value, index)
            return
        for source in value.inputs:
            self.walk(source, index)

    def _gather(self, value: Value, index: Index) -> None:
        base = value.inputs[0]
        self.reads.append(Read(base.root, None, None, max(self.since, _since(base))))
        entries = walk_address(value, positions_of(value), index, self.walk)
        known = [e if isinstance(e, Expr) else Expr({}, 0) for e in entries]
        strides = base.type.strides if base.root.place is None else place_of(base).strides
        if not linear(known, strides, 0).is_affine:
            raise NotAffine(value)


def walk_address(
    value: Value, indices: Sequence[Value], index: Index, visit: Callable[..., Any]
) -> list[Any]:
    """Call a gather's or scatter's address function; ``visit(index array, its index)`` for every load."""
    assert value.row is not None and isinstance(value.row.lower, Gather | Scatter)

    def load(k: int, at: Sequence[Any]) -> Any:
        exprs = tuple(e if isinstance(e, Expr) else Expr({}, e) for e in at)
        visit(indices[k], exprs)
        return dtypes.int64

    types = tuple(v.type for v in value.inputs)
    return list(value.row.lower.address(_Positions(), load, index, types, **address_params(value)))


def positions_of(value: Value) -> tuple[Value, ...]:
    """The index arrays of a gather or scatter."""
    assert value.row is not None
    return value.inputs[2:] if isinstance(value.row.lower, Scatter) else value.inputs[1:]


def address_params(value: Value) -> dict[str, Any]:
    """The parameters that an address function takes: not how values are combined."""
    return {name: p for name, p in value.params.items() if name != "combine"}


def descend(value: Value, index: Index) -> tuple[Value, Index | None, bool]:
    """The root of a chain of views, the index there (``None`` where views do not tell), and whether the
    chain holds a view that changes the linear order (a reshape)."""
    reshaped = False
    inner: Index | None = index
    while value.kind == "view":
        assert value.row is not None
        reshaped = reshaped or value.row.lower.index_map is None  # type: ignore[union-attr]
        try:
            inner = map_index(value, inner) if inner is not None else None
        except NotAffine:
            inner = None
        value = value.inputs[0]
    return value, inner, reshaped


def _since(value: Value) -> int:
    """The first step that may read through these views."""
    since = 0
    while value.kind == "view":
        since = max(since, value.since)
        value = value.inputs[0]
    return since


def _leaf(value: Value, index: Index, root: Value, inner: Index | None, since: int) -> Read:
    address = address_of(value, index, root, inner)
    if not address.is_affine:
        raise NotAffine(value)
    return Read(root, inner, address, since)


def address_of(value: Value, index: Index, root: Value, inner: Index | None) -> Expr:
    """Where the element ``index`` of a value is in its root's memory; ``inner``: the element of the root."""
    if not root.borrowed:
        return place_of(value).address(index)
    assert root.place is not None
    if inner is None:
        raise NotAffine(value)
    return root.place.address(inner)


def read_all(materialiser: Materialiser, visit: Callable[[ReadWalker], None]) -> list[Read]:
    """The reads that ``visit`` walks. A value that can only be read through memory is put there."""
    for _ in range(64):
        walker = ReadWalker(materialiser)
        try:
            visit(walker)
            return walker.reads
        except NotAffine as error:
            root = error.value.root
            if root.borrowed:
                materialiser.return_borrowed(root)
            elif root.inline:
                materialiser.materialise(root)
            else:
                raise
    raise LoweringFault("an index does not become affine")


def reads_at(materialiser: Materialiser, *pairs: tuple[Value, Index]) -> list[Read]:
    """The reads of computing several values at their indices."""

    def visit(walker: ReadWalker) -> None:
        for value, index in pairs:
            walker.walk(value, index)

    return read_all(materialiser, visit)


def reads_inside(materialiser: Materialiser, value: Value, index: Index) -> list[Read]:
    """The reads of computing a point or gather value itself."""
    return read_all(materialiser, lambda walker: walker.walk_inputs(value, index))
