"""The loop IR: kernels as frozen lists of statements over named loop axes.

A :class:`Kernel` is a perfect nest of axes; each statement says on which of them its value depends
(``axes``), so that the loop structure follows from the list: a statement over ``(i, j)`` is inside both
loops, the result of a reduction over ``j`` depends on ``(i,)`` only. A value used on both sides of a
reduction over its own axes is computed again in each pass unless it is stored (``stage`` decides).

What lowering guarantees and renderers may rely upon (``loop_verify`` checks it):

- A value's ``axes`` are in the kernel's order. A ``store`` or ``scatter`` is over all axes of the kernel, or
  over exactly its parallel axes.
- All reductions and scans of a kernel are over the same set of axes, those of kind ``"reduce"``. A kernel
  with a scan has one reduce axis and no other reduction.
- A buffer that is both read and written (``mode`` ``"inout"``) is read at the very index that it is written
  at, and every read comes before the write in the list; a ``scatter`` into it is the one exception (it
  combines in place). Several stores to one buffer write different elements of it (parts of a
  concatenation). Nothing is written twice, except by ``scatter``.
- ``argmax``/``argmin`` reduce one axis; the result is the position along it (int64).
- A kernel without axes computes one point. Sizes may be 0 where they are symbolic.
"""

from __future__ import annotations

from typing import Any

from ...dataclass import dataclass
from ...dtypes import DType
from ...symbolic.integers import Dim


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop axis. ``kind``: ``"parallel"`` (iterations are independent) or ``"reduce"``. ``most``: a bound
    of a size that is known only when running (0: none is known)."""

    name: str
    size: Dim
    kind: str = "parallel"
    most: int = 0


@dataclass(frozen=True, slots=True)
class Index:
    """An affine position in a buffer, in elements: ``offset + sum(coefficient * axis)``."""

    terms: tuple[tuple[str, Dim], ...] = ()
    offset: Dim = 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory a kernel reads or writes. ``size`` in elements from the lowest to the highest address
    used; ``mode``: ``"in"``, ``"out"`` or ``"inout"``. Buffers of one kernel with different names never
    overlap unless ``aliases`` names the other one (an in-place update)."""

    name: str
    dtype: DType
    size: Dim
    mode: str
    aliases: str = ""


@dataclass(frozen=True, slots=True)
class Stmt:
    """``out = op(*args)``, one value per point of ``axes``.

    ``op`` is a scalar-table name (arguments all of one dtype unless the row says otherwise), or

    ========== ===================================== ==========================================
    op         arg                                   meaning
    ========== ===================================== ==========================================
    const      Python scalar                         a constant of ``dtype``
    symbol     Dim                                   a symbolic integer's value (int64)
    axis       axis name                             the position along an axis (int64)
    load       (buffer, Index)                       a value from memory
    gather     (buffer, Index, strides, sizes, wrap) ``args`` are int64 positions, one per gathered
                                                     dimension, added to Index with ``strides``;
                                                     negative ones wrap by ``sizes`` where ``wrap``;
                                                     out of bounds sets the error flag and reads 0
    cast       -                                     conversion of ``args[0]`` to ``dtype``
    reduce     (combiner, reduced axes)              over the axes that ``args[0]`` has and ``out``
                                                     has not
    scan       (combiner, axis)                      inclusive scan along an axis, in order
    check      (sizes, wrap)                         sets the error flag where a position ``args[k]`` is out
                                                     of bounds for ``sizes[k]`` (``out`` is "")
    store      (buffer, Index)                       ``args[0]`` to memory (``out`` is "")
    scatter    (buffer, Index, strides, sizes, wrap, ``args[0]`` to memory at positions
               combiner)                             ``args[1:]``, in order, combined by
                                                     ``set add multiply max min``
    ========== ===================================== ==========================================
    """

    out: str
    op: str
    args: tuple[str, ...]
    axes: tuple[str, ...]
    arg: Any
    dtype: DType


@dataclass(frozen=True)
class Kernel:
    """One loop nest. ``axes`` from outermost to innermost as written; the renderer may reorder and
    tile parallel axes. ``origin``: names of the user's functions and lines that it computes."""

    name: str
    axes: tuple[Axis, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    origin: tuple[str, ...] = ()
