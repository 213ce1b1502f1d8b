"""The schedule: which kernels and library calls run, in which order, on which buffers, as plain data.

A :class:`Module` is what the renderer turns into one translation unit: one exported function per
:class:`Segment` (the steps between two Python calls) and, where sizes are symbolic, ``sizes``. Buffers are
numbered as in the launch plan (inputs, integers, fresh outputs, arena slots, constants).
"""

from __future__ import annotations

from typing import Any

from ..dataclass import dataclass
from ..dtypes import DType
from ..symbolic.integers import Dim
from .loops.loop_ir import Kernel
from .tuning.tilings import USUAL, Tiling

# Errors that kernels raise, by the value that the exported function returns (0: none). The renderer stores
# the offending index and the size of its dimension in the error details 0 and 1.
INDEX_ERROR = 1
MEMORY_ERROR = 2


@dataclass(frozen=True, slots=True)
class LaunchKernel:
    """Run ``kernel`` on plan buffers ``slots`` (one per entry of ``kernel.buffers``).

    ``point_ns``: estimated nanoseconds per point of the whole iteration space on one core; the renderer
    derives the grain of its parallel loop from it, so that small problems run serially whatever the sizes
    turn out to be. ``points``: number of points (may be symbolic). ``parallel``: false where iterations must
    run in order (scatter). ``raises``: the kernel may set the error flag; the exported function must return
    the error code right after it, before any later step.
    """

    kernel: Kernel
    slots: tuple[int, ...]
    points: Dim
    point_ns: float
    parallel: bool = True
    raises: bool = False


@dataclass(frozen=True, slots=True)
class Matrix:
    """An operand of a matrix product: plan buffer, element offset of its first entry, strides in elements
    of rows and columns (for BLAS one of them is 1, the other at least the extent) and of each batch axis."""

    slot: int
    offset: Dim
    row_stride: Dim
    col_stride: Dim
    batch_strides: tuple[Dim, ...] = ()


@dataclass(frozen=True, slots=True)
class SoftmaxRows:
    """The runtime makes ``softmax(factor * scores)`` of rows; ``empty_is_zero``: rows of -inf alone become 0
    (else NaN)."""

    factor: float
    empty_is_zero: bool


@dataclass(frozen=True, slots=True)
class TileKernel:
    """Run ``kernel``, which is over the numbers of a tile (``epilogue.TILE_NUMBERS``), on every finished tile
    of a product; its buffer number ``source`` is the tile, the others are the plan's ``slots``. In a
    chain a tile is whole rows, and buffer number ``sink`` is what is made of them; ``hidden_after``: it makes
    zeros of column ``row + hidden_after + 1`` and those behind it, so that tiles may have fewer columns.
    ``softmax``: the kernel makes scores in place of the product, and the runtime makes a softmax of these.
    ``held``: in a ``CallRows`` of so many ``matrices``, which buffers are which of them.
    ``work_ns``: estimated time for all tiles on one core."""

    kernel: Kernel
    slots: tuple[int, ...]
    source: int
    sink: int = -1
    hidden_after: int | None = None
    softmax: SoftmaxRows | None = None
    work_ns: float = 0.0
    held: tuple[tuple[int, int], ...] = ()
    matrices: int = 0


@dataclass(frozen=True, slots=True)
class Windows:
    """What a kernel sees of images: see ``Gemm`` in ``runtime/csrc/abi.h``; pairs are of rows and columns."""

    columns: Dim
    sizes: tuple[Dim, Dim]
    kernel: tuple[Dim, Dim]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    channel: Dim
    step: tuple[Dim, Dim]
    channels_last: bool = False
    depthwise: bool = False


@dataclass(frozen=True, slots=True)
class Fill:
    """An operand of a product that is made by ``tile`` as the product packs it (``Filling`` in
    ``runtime/csrc/abi.h``). ``tag``, ``bytes`` of the buffer of its matrix and ``sides`` (slots and bytes)
    say what a packed copy that is kept depends on."""

    tile: TileKernel
    tag: int = 0
    bytes: int = 0
    sides: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class CallBlas:
    """``c[b] = a[b] @ b[b]`` for every index of ``batch``; ``a`` is m×k, ``b`` k×n, ``c`` m×n with
    ``col_stride`` 1. ``k`` may be 0 (the result is zero); ``m`` and ``n`` too (nothing happens).

    By the runtime's own product where ``own`` (float32, of bfloat16 or by 8-bit integers too, float64, and
    int32 of 8-bit integers), else by
    ``cblas_?gemm`` of ``dtype`` (complex64 and complex128 too). ``epilogue`` (own products only) finishes
    the tiles; ``c`` is ``None``
    where only that reads them. ``windows`` (own products only): ``b`` (``a`` with channels last) is images,
    of which it is what the windows of a convolution's kernel see; its strides are those of the batch.
    ``source``: the dtype of ``a`` and ``b`` where it is not ``dtype`` (halves, 8-bit integers); ``source_b``:
    that of ``b`` where it is another one than that of ``a`` (8-bit integers). ``kept``: ``b``
    (``a`` where ``b`` is images) may be the same at every call, as weights are; the runtime keeps its packed
    copy as long as it is.
    ``fill_a``, ``fill_b`` (own products only): the operand is made as it is packed, its matrix says how it
    would lie in memory, and where that lies what it is mostly made of. ``tiling`` (own products only): how it
    is cut, where that was measured."""

    dtype: DType
    m: Dim
    n: Dim
    k: Dim
    a: Matrix
    b: Matrix
    c: Matrix | None
    batch: tuple[Dim, ...] = ()
    own: bool = False
    epilogue: TileKernel | None = None
    windows: Windows | None = None
    source: DType | None = None
    kept: bool = False
    fill_a: Fill | None = None
    fill_b: Fill | None = None
    tiling: Tiling = USUAL
    source_b: DType | None = None

    @property
    def a_dtype(self) -> DType:
        return self.source or self.dtype

    @property
    def b_dtype(self) -> DType:
        return self.source_b or self.a_dtype


@dataclass(frozen=True, slots=True)
class CallChain:
    """Two own products over the same rows and batches: what the epilogue of ``first`` makes of rows is the
    left operand of ``second`` (``second.a`` is not read)."""

    first: CallBlas
    second: CallBlas


@dataclass(frozen=True, slots=True)
class Alternatives:
    """On a GPU: steps as one kernel made from a template, or one after another (``plain``: these, and calls
    of library routines), whichever is faster. ``fused`` says what the template computes. ``private``: what
    only ``plain`` needs memory for, type and number of elements; their slots are -1, -2, …"""

    fused: Any
    plain: tuple[Any, ...]
    private: tuple[tuple[DType, Dim], ...] = ()


@dataclass(frozen=True, slots=True)
class RowCall:
    """A step of a :class:`CallRows`: a ``kernel`` on rows of matrices without memory, or a ``product``:
    ``kind`` ``"scores"`` makes rows of the matrix number ``matrix``, ``"out"`` multiplies them, ``"sum"``
    multiplies the transposed ones and sums over all rows; -1: the matrix is ``a``, in memory."""

    kind: str
    matrix: int
    product: CallBlas | None = None
    kernel: TileKernel | None = None


@dataclass(frozen=True, slots=True)
class CallRows:
    """Steps that run together for some rows of ``matrices`` matrices after the other."""

    dtype: DType
    steps: tuple[RowCall, ...]
    matrices: int


PlainStep = LaunchKernel | CallBlas | CallChain | CallRows | Alternatives


@dataclass(frozen=True, slots=True)
class RunBranches:
    """Steps of each branch, in order; branches run in any order and at the same time where there are
    threads."""

    branches: tuple[tuple[PlainStep, ...], ...]


Step = PlainStep | RunBranches


@dataclass(frozen=True, slots=True)
class Segment:
    """The exported function ``symbol``: its steps, in order."""

    symbol: str
    steps: tuple[Step, ...]

    @property
    def flat(self) -> list[PlainStep]:
        """The steps, those of branches one after the other."""
        found: list[PlainStep] = []
        for step in self.steps:
            if isinstance(step, RunBranches):
                found += [each for branch in step.branches for each in branch]
            else:
                found.append(step)
        return found


@dataclass(frozen=True, slots=True)
class Module:
    """One translation unit. ``symbols[k]`` is the name of ``syms[k]``; ``sizes[i]`` is the expression that
    the exported function ``sizes(syms, out)`` writes to ``out[i]`` (no such function where empty)."""

    name: str
    segments: tuple[Segment, ...]
    symbols: tuple[str, ...] = ()
    sizes: tuple[Dim, ...] = ()
