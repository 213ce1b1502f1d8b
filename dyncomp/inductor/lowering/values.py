"""What lowering knows of each graph value: how it is defined, where it lives, who reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ...dataclass import dataclass, field
from ...dtypes import DType
from ...errors import LoweringError
from ...graph.ir import ArrayType, Node, Var
from ...prims.opdef import OpDef, View
from ...symbolic.integers import Dim, hint, product, same
from ..loops.index import AxisVar, Expr, Index, axis_vars, canonical, linear, reshape_index

Table = Mapping[str, OpDef]


@dataclass(eq=False)
class Storage:
    """A piece of memory. ``role``: ``"input"``, ``"output"``, ``"temp"`` or ``"constant"``; ``number``: which
    input, output or constant. ``reads``: (step, address) pairs, the address ``None`` where it is not affine;
    ``writes``: steps."""

    dtype: DType
    size: Dim
    role: str
    number: int = 0
    reads: list[tuple[int, Expr | None]] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Place:
    """A strided window on a storage: strides and offset in elements from the storage's first element."""

    storage: Storage
    strides: tuple[Dim, ...]
    offset: Dim = 0

    def address(self, index: Index) -> Expr:
        return linear(index, self.strides, self.offset)


@dataclass(frozen=True)
class Use:
    """A computation that reads a value: its position in the graph, its number of iterations (by the
    hints), whether the value's axes are not the outermost of its loops (``repeats``), and whether it may
    leave elements out (``partial``)."""

    position: int
    points: int
    repeats: bool = False
    partial: bool = False


class Home(Protocol):
    """The cluster (see ``fuse``) that computes a value."""

    position: int
    buffers: set[int]


@dataclass(eq=False)
class Value:
    """One graph value.

    ``kind``: ``"memory"`` (an input, constant or library result), ``"view"``, ``"point"``, ``"gather"``,
    ``"reduce"``, ``"scan"``, ``"contract"``, ``"convolve"`` or ``"update"`` (memory written by regions).
    ``place``: set once the value is (to be) in memory. ``home`` and ``canon``: the cluster that computes it
    and its index there; a point or gather value without a home is computed wherever it is read. ``rank``:
    how many reductions of its own cluster it waits for. ``cost``, ``loads`` and ``weight`` (scalar
    operations, memory reads, statements) include what it computes of values without a home; ``leaves`` are
    those with one. ``widest``: the most elements of what is computed of it element by element.
    ``borrowed``: the place is a window of other memory that the value was written to anyway; it holds the
    value until something else is written there. ``since``: of a view, the step before which nothing may read
    through it.
    """

    var: Var
    node: Node | None
    position: int
    kind: str
    row: OpDef | None = None
    inputs: tuple[Value, ...] = ()
    place: Place | None = None
    home: Home | None = None
    canon: Index = ()
    rank: int = 0
    forced: bool = False
    output: int | None = None
    uses: list[Use] = field(default_factory=list)
    cost: float = 0.0
    loads: int = 0
    weight: int = 0
    widest: int = 0
    raises: bool = False
    leaves: frozenset[Value] = frozenset()
    borrowed: bool = False
    since: int = 0

    @property
    def type(self) -> ArrayType:
        return self.var.type

    @property
    def dtype(self) -> DType:
        return self.var.type.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.var.type.shape

    @property
    def points(self) -> int:
        """Number of elements at the hints."""
        return hint(product(self.shape))

    @property
    def inline(self) -> bool:
        """Whether readers compute the value themselves."""
        return self.kind in ("point", "gather") and self.home is None and self.place is None

    @property
    def params(self) -> dict[str, Any]:
        return self.node.kwargs if self.node is not None else {}

    @property
    def root(self) -> Value:
        """The value that this one views (itself, if it is no view)."""
        value = self
        while value.kind == "view":
            value = value.inputs[0]
        return value

    @property
    def axes(self) -> tuple[AxisVar, ...]:
        return axis_vars(self.shape)


def map_index(view: Value, index: Index) -> Index:
    """The index into a view's source of the view's element ``index``."""
    assert view.row is not None and isinstance(view.row.lower, View)
    source = view.inputs[0]
    index_map = view.row.lower.index_map
    if index_map is None:
        if view.row.name != "reshape":
            raise NotAffine(view)
        return reshape_index(index, view.shape, source.shape)
    mapped = index_map(source.type, index, **view.params)
    return tuple(e if isinstance(e, Expr) else Expr({}, e) for e in mapped)


class NotAffine(LoweringError):
    """An index is not affine in the loop axes: the value read must be put into memory first."""

    def __init__(self, value: Value) -> None:
        super().__init__(f"{value.var.name}: the index is not affine")
        self.value = value


def type_place(value: Value, storage: Storage) -> Place:
    return Place(storage, value.type.strides, 0)


_NOWHERE = Storage(DType("none", "int", 1), 0, "temp")


def place_of(value: Value) -> Place:
    """Where a value is in memory; for a computed value not (yet) in memory: the strides that it would
    have there, in a storage of its own (compare :func:`is_stored`)."""
    chain: list[Value] = []
    while value.place is None and value.kind == "view":
        chain.append(value)
        value = value.inputs[0]
    place = value.place if value.place is not None else Place(_NOWHERE, value.type.strides, 0)
    for view in reversed(chain):
        place = view_place(view, place)
    return place


def storage_of(value: Value) -> Storage:
    """The storage of :func:`place_of`."""
    while value.place is None and value.kind == "view":
        value = value.inputs[0]
    return value.place.storage if value.place is not None else _NOWHERE


def is_stored(value: Value) -> bool:
    return value.root.place is not None


def view_place(view: Value, source: Place) -> Place:
    """The window that a view is, given its source's."""
    if view.row is not None and view.row.name == "as_strided":
        params = view.params
        return Place(source.storage, tuple(params["strides"]), source.offset + params["offset"])
    axes = view.axes
    address = source.address(map_index(view, canonical(axes)))
    if address.is_affine:
        strides = [address.terms.get(a, 0) for a in axes]
        return Place(source.storage, tuple(strides), address.constant)
    if _same_layout(view.inputs[0], source.strides):
        return Place(source.storage, view.type.strides, source.offset)
    raise NotAffine(view)


def _same_layout(value: Value, strides: tuple[Dim, ...]) -> bool:
    """Whether strides are the value's own, where they matter."""
    triples = zip(value.shape, value.type.strides, strides)
    return all(same(a, b) or same(size, 1) for size, a, b in triples)


def span(shape: tuple[Dim, ...], strides: tuple[Dim, ...]) -> Dim:
    """Elements from the lowest to the highest address of an array (for shapes without zeros)."""
    total: Dim = 1
    for size, stride in zip(shape, strides):
        step = -stride if hint(stride) < 0 else stride
        total = total + (size - 1) * step
    return total
