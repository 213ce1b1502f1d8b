"""Contractions: ``dot_general`` as a BLAS call on strided operands, or as a loop nest."""

from __future__ import annotations

from ...dataclass import dataclass
from ...device import CPU
from ...dtypes import DType, bfloat16, complex64, complex128, float16, float32, float64
from ...graph.ir import ArrayType, Var, array_type
from ...prims.contract import BYTES
from ...symbolic.integers import Dim, hint, product, same
from ..fusion.fuse import Root
from ..loops.dependences import reads_at
from ..loops.index import AxisVar, Expr, Index, at_most, axis_expr, canonical
from ..schedule import Windows
from .state import State
from .values import NotAffine, Place, Value, is_stored, place_of

BLAS_DTYPES = (float32, float64, complex64, complex128)
# Those that the runtime multiplies itself.
OWN_DTYPES = (float32, float64)
# Those that a GPU's own library multiplies.
DEVICE_DTYPES = (float16, bfloat16, float32, float64)
# A product with fewer multiplications, with a vector, or with a tiny result is a loop nest that fuses.
SMALL_PRODUCT = 4096
TINY = 4
# Bytes of a matrix, and of its rows, from which on a vector times it is worth a routine (``vector.h``).
LONG_MATRIX = 64 << 10
LONG_ROW = 1 << 10
# What ``Gemm`` of the runtime has room for.
MAX_BATCH_AXES = 8


@dataclass(frozen=True)
class Dims:
    """The parts of a contraction: positions of the batch, free and contracted dimensions of x and y."""

    x_batch: tuple[int, ...]
    y_batch: tuple[int, ...]
    x_free: tuple[int, ...]
    y_free: tuple[int, ...]
    x_contract: tuple[int, ...]
    y_contract: tuple[int, ...]


def dims_of(value: Value) -> Dims:
    x, y = value.inputs
    (xc, yc), (xb, yb) = value.params["contract"], value.params["batch"]
    x_free = tuple(k for k in range(len(x.shape)) if k not in xc and k not in xb)
    y_free = tuple(k for k in range(len(y.shape)) if k not in yc and k not in yb)
    return Dims(tuple(xb), tuple(yb), x_free, y_free, tuple(xc), tuple(yc))


def lower_contract(lowering: State, value: Value) -> None:
    """Add the steps of a ``dot_general``."""
    dims = dims_of(value)
    if any(lowering.is_static(v) and v.points == 0 for v in value.inputs):
        lowering.constant(value, 0)
        return
    if _wants_blas(value, dims):
        _call_blas(lowering, value, dims)
    else:
        _loops(lowering, value, dims)


def _is_of_bytes(value: Value) -> bool:
    """Whether this is a product by 8-bit integers that are widened on the way (``fusion.byte_operands``)."""
    right = value.inputs[1].dtype
    return right in BYTES and value.dtype is not right


def _wants_blas(value: Value, dims: Dims) -> bool:
    if _is_of_bytes(value):
        return True
    if value.dtype not in (BLAS_DTYPES if value.type.device == CPU else DEVICE_DTYPES):
        return False
    x, y = value.inputs
    if x.dtype is not value.dtype and x.dtype is not bfloat16 and value.type.device == CPU:
        return False
    m = product(x.shape[k] for k in dims.x_free)
    n = product(y.shape[k] for k in dims.y_free)
    k = product(x.shape[k] for k in dims.x_contract)
    return is_large(m, n, k) or _is_long_vector(value, dims, m, n, k)


def _is_long_vector(value: Value, dims: Dims, m: Dim, n: Dim, k: Dim) -> bool:
    """Whether a large matrix in memory is multiplied from the left, by one vector, along its contiguous rows:
    the routine reads several rows at once. A matrix that is made on the way is made in the loop nest. Of
    bfloat16: along its contiguous columns, whose elements are multiplied in pairs."""
    x, y = value.inputs
    if hint(m) != 1 or value.dtype not in OWN_DTYPES or value.type.device != CPU:
        return False
    if x.dtype is bfloat16:
        return is_long_matrix(n, k, x.dtype) and _is_contiguous(y, dims.y_contract)
    if y.kind != "memory":
        return False
    if not is_long_matrix(n, k, value.dtype) or hint(n) * value.dtype.itemsize < LONG_ROW:
        return False
    assert y.place is not None
    return same(flat_stride(y, y.place, dims.y_free) or 0, 1)


def _is_contiguous(value: Value, dims: tuple[int, ...]) -> bool:
    """Whether a value is in memory, some of its dimensions innermost."""
    if not is_stored(value):
        return False
    try:
        return same(flat_stride(value, place_of(value), dims) or 0, 1)
    except NotAffine:
        return False


def is_long_matrix(n: Dim, k: Dim, dtype: DType) -> bool:
    """Whether a matrix is so large that a vector times it may be worth a routine."""
    return hint(n) * hint(k) * dtype.itemsize >= LONG_MATRIX


def is_large(m: Dim, n: Dim, k: Dim) -> bool:
    """Whether a product of these sizes is worth a routine."""
    m, n, k = hint(m), hint(n), hint(k)
    return min(m, n) > 1 and k > 1 and max(m, n) > TINY and m * n * k >= SMALL_PRODUCT


# -- loops ------------------------------------------------------------------------------------
def loop_axes(value: Value, dims: Dims) -> tuple[tuple[AxisVar, ...], Index, Index, frozenset[str]]:
    """Axes (batch, x free, y free, contracted), the indices into x and y, the contracted axes' names."""
    x, y = value.inputs
    sizes = [x.shape[k] for k in dims.x_batch + dims.x_free]
    sizes += [y.shape[k] for k in dims.y_free]
    kept = len(sizes)
    sizes += [x.shape[k] for k in dims.x_contract]
    axes = tuple(AxisVar(f"d{k}", size) for k, size in enumerate(sizes))
    exprs = [axis_expr(a) for a in axes]
    batch, x_free = len(dims.x_batch), len(dims.x_free)
    x_index: list[Expr] = [Expr({})] * len(x.shape)
    y_index: list[Expr] = [Expr({})] * len(y.shape)
    for rank, (i, j) in enumerate(zip(dims.x_batch, dims.y_batch)):
        x_index[i] = y_index[j] = exprs[rank]
    for rank, i in enumerate(dims.x_free):
        x_index[i] = exprs[batch + rank]
    for rank, j in enumerate(dims.y_free):
        y_index[j] = exprs[batch + x_free + rank]
    for rank, (i, j) in enumerate(zip(dims.x_contract, dims.y_contract)):
        x_index[i] = y_index[j] = exprs[kept + rank]
    return axes, tuple(x_index), tuple(y_index), frozenset(a.name for a in axes[kept:])


def _loops(lowering: State, value: Value, dims: Dims) -> None:
    axes, x_index, y_index, contracted = loop_axes(value, dims)
    x, y = (_cheap(lowering, v, value) for v in value.inputs)
    value.inputs = (x, y)
    reads = reads_at(lowering, (x, x_index), (y, y_index))
    weight = 2 + sum(v.root.weight for v in (x, y) if v.root.inline)
    raises = any(v.root.raises for v in (x, y) if v.root.inline)
    root = Root("compute", value, axes, reads, contracted, weight=weight, cost=2.0, raises=raises)
    kept = tuple(a for a in axes if a.name not in contracted)
    lowering.enter(root, value, canonical(kept))


def _cheap(lowering: State, operand: Value, value: Value) -> Value:
    """An operand whose elements are each read many times is computed once."""
    root = operand.root
    if root.inline and root.cost > 1 and value.points > operand.points:
        lowering.materialise(root)
    return operand


# -- BLAS -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Operand:
    """A matrix operand: the value, and the strides of its flattened rows, columns and batch axes."""

    value: Value
    place: Place
    row_stride: Dim
    col_stride: Dim
    batch_strides: tuple[Dim, ...]


@dataclass(frozen=True)
class Product:
    """The detail of a ``"blas"`` step; ``c`` is row-major. ``own``: the runtime's product is taken, which
    reads operands of any strides. ``windows``: it is a convolution, ``b`` the images."""

    m: Dim
    n: Dim
    k: Dim
    a: Operand
    b: Operand
    c: Operand
    batch: tuple[Dim, ...]
    own: bool
    windows: Windows | None = None


def _call_blas(lowering: State, value: Value, dims: Dims) -> None:
    x, y = value.inputs
    m = product(x.shape[k] for k in dims.x_free)
    n = product(y.shape[k] for k in dims.y_free)
    k = product(x.shape[k] for k in dims.x_contract)
    multiplied = value.dtype in OWN_DTYPES or _is_of_bytes(value)
    own = value.type.device == CPU and multiplied and len(dims.x_batch) <= MAX_BATCH_AXES
    own = own and value.var.name not in lowering.library
    a = _operand(lowering, x, dims.x_batch, dims.x_free, dims.x_contract, m, k, own)
    b = _operand(lowering, y, dims.y_batch, dims.y_contract, dims.y_free, k, n, own)
    place = lowering.give_memory(value)
    batch = tuple(x.shape[i] for i in dims.x_batch)
    c = Operand(value, place, n, 1, _batch_strides(batch, m * n))
    call = lowering.fuser.add_call("blas", value, (a.value, b.value), (value,))
    call.detail = Product(m, n, k, a, b, c, batch, own)
    place.storage.writes.append(call.position)


def _batch_strides(batch: tuple[Dim, ...], size: Dim) -> tuple[Dim, ...]:
    strides: list[Dim] = []
    step = size
    for extent in reversed(batch):
        strides.append(step)
        step = step * extent
    return tuple(reversed(strides))


def _operand(
    lowering: State,
    value: Value,
    batch: tuple[int, ...],
    rows: tuple[int, ...],
    cols: tuple[int, ...],
    row_count: Dim,
    col_count: Dim,
    own: bool,
) -> Operand:
    """The value in memory in a layout that the product takes, copied if need be."""
    lowering.need_memory(value)
    place = place_of(value)
    row = flat_stride(value, place, rows)
    col = flat_stride(value, place, cols)
    if row is not None and col is not None and own:
        return Operand(value, place, row, col, tuple(place.strides[k] for k in batch))
    if row is not None and col is not None and _blas_layout(row, col, row_count, col_count):
        row, col = _normal(row, col, row_count, col_count)
        return Operand(value, place, row, col, tuple(place.strides[k] for k in batch))
    return copied(lowering, value, batch, rows, cols, col_count)


def flat_stride(value: Value, place: Place, dims: tuple[int, ...]) -> Dim | None:
    """The stride of several dimensions seen as one, where they are nested contiguously."""
    kept = [k for k in dims if not same(value.shape[k], 1)]
    if not kept:
        return 0
    for outer, inner in zip(kept, kept[1:]):
        if not same(place.strides[outer], place.strides[inner] * value.shape[inner]):
            return None
    return place.strides[kept[-1]]


def _blas_layout(row: Dim, col: Dim, row_count: Dim, col_count: Dim) -> bool:
    if _unit(col, col_count) and (_one(row_count) or at_most(col_count, row)):
        return True
    return _unit(row, row_count) and (_one(col_count) or at_most(row_count, col))


def _unit(stride: Dim, count: Dim) -> bool:
    return same(stride, 1) or _one(count)


def _one(count: Dim) -> bool:
    return isinstance(count, int) and count == 1


def _normal(row: Dim, col: Dim, row_count: Dim, col_count: Dim) -> tuple[Dim, Dim]:
    """Strides with a legal leading dimension also where an extent is 1."""
    if _unit(col, col_count) and (_one(row_count) or at_most(col_count, row)):
        return (col_count if _one(row_count) else row), 1
    return 1, (row_count if _one(col_count) else col)


def copied(
    lowering: State,
    value: Value,
    batch: tuple[int, ...],
    rows: tuple[int, ...],
    cols: tuple[int, ...],
    col_count: Dim,
) -> Operand:
    """A copy with dimensions in the order batch, rows, columns, contiguous in the order of its own
    dimensions' meaning."""
    order = batch + rows + cols
    shape = tuple(value.shape[k] for k in order)
    dense = array_type(value.dtype, shape)
    strides: list[Dim] = [0] * len(order)
    for position, k in enumerate(order):
        strides[k] = dense.strides[position]
    type = type_with(value, tuple(strides))
    copy = Value(
        Var(f"{value.var.name}_packed{len(lowering.fuser.steps)}", type), None, value.position, "point"
    )
    copy.inputs = (value,)
    copy.forced = True
    lowering.point(copy)
    place = place_of(copy)
    return Operand(copy, place, col_count, 1, tuple(place.strides[k] for k in batch))


def type_with(value: Value, strides: tuple[Dim, ...]) -> ArrayType:
    return ArrayType(value.dtype, value.shape, strides, value.type.device)
