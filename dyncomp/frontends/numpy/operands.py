"""From operands of the user's program to graph values: constants, conversion, broadcasting, writing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...device import CPU
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Literal, Var, same_shape
from ...prims.layout import is_fortran, is_zero, k_order_axes, sorted_axes, view_offset
from ...symbolic.integers import Dim, SymInt, same
from ..base import ArrayRef, TraceContext, memory_of
from ..extents import check_extent
from . import promote

NO: Any = np._NoValue  # the default of NumPy's own signatures
LITERAL_LIMIT = 1 << 16  # elements of a constant array that a graph holds


def given(value: object) -> bool:
    """Whether an optional argument was given (neither ``None`` nor NumPy's "no value" object)."""
    return value is not None and value is not NO


def only_defaults(**arguments: object) -> None:
    """Refuse arguments (``device=``, ``like=``) that say more than their default."""
    for name, value in arguments.items():
        if value is not None and value != "cpu":
            raise Unsupported(f"{name}={value!r}")


# -- results ----------------------------------------------------------------------------------
def value_of(var: Var) -> ArrayRef:
    """A computed result: a NumPy scalar where it has no dimensions, else an array."""
    return ArrayRef(var, "array" if var.shape else "scalar")


def array_of(var: Var, readonly: bool = False) -> ArrayRef:
    return ArrayRef(var, "array", readonly=readonly)


def view_of(source: ArrayRef, var: Var) -> ArrayRef:
    """A view of ``source``: an array, read-only where the source is."""
    return ArrayRef(var, "array", readonly=source.readonly or source.kind != "array")


# -- emitting ---------------------------------------------------------------------------------
def emit(tx: TraceContext, op: str, *inputs: Var, **params: Any) -> Any:
    """Append a node; what ``meta`` rejects, or an op without a row, is ``Unsupported``."""
    if op not in tx.builder.table:
        raise Unsupported(f"there is no op named {op!r}")
    try:
        made = tx.builder.emit(op, *inputs, **params)
    except (TypeError, ValueError, IndexError) as error:
        raise Unsupported(f"{op}: {error}") from error
    for var in (*inputs, made) if isinstance(made, Var) else inputs:
        check_extent(tx, op if var is made else "", var.type)
    return made


def convert(tx: TraceContext, var: Var, dtype: DType) -> Var:
    """An operand as a function takes it; the same value where the dtype is already right. NumPy converts in
    the function's own loop: axes that repeat stay where they are, unlike in what ``astype`` makes."""
    made = converted(tx, var, dtype)
    if made is var or not any(is_zero(s) for s in var.type.strides):
        return made
    return in_memory_by(tx, made, k_order_axes(var.shape, [var.type.strides]))


def in_memory_by(tx: TraceContext, x: Var, axes: list[int]) -> Var:
    """``x`` with its axes in this order in memory, from outermost to innermost."""
    if sorted_axes(x.shape, x.type.strides) == axes:
        return x
    fresh = emit(tx, "contiguous", emit(tx, "transpose", x, perm=tuple(axes)))
    back = sorted(range(x.ndim), key=axes.__getitem__)
    return emit(tx, "copy", emit(tx, "transpose", fresh, perm=tuple(back)))


def converted(tx: TraceContext, var: Var, dtype: DType) -> Var:
    """``astype`` without further checks; the same value where the dtype is already right."""
    if var.dtype == dtype:
        return var
    if var.dtype.is_inexact:
        tx.assume("numpy-errstate")
    if var.dtype.is_complex and not (dtype.is_complex or dtype.is_bool):
        raise Unsupported("converting complex to real numbers warns (numpy.exceptions.ComplexWarning)")
    return emit(tx, "convert", var, dtype=dtype)


def fill(tx: TraceContext, shape: Sequence[Dim], value: object, dtype: DType) -> Var:
    """A fresh C-ordered array of one value that ``dtype`` represents exactly."""
    return emit(tx, "full", shape=tuple(shape), value=value, dtype=dtype, device=CPU)


def constant(tx: TraceContext, value: object, dtype: DType) -> Var:
    """A zero-dimensional value of a Python or NumPy scalar, checked as NumPy checks weak scalars."""
    return fill(tx, (), exact_value(value, dtype), dtype)


def exact_value(value: object, dtype: DType) -> Any:
    """``value`` rounded to ``dtype``, as a Python scalar. Raises ``Unsupported`` where NumPy would raise
    or warn: integers out of range, NaN to integer, overflow to infinity."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex) and not (dtype.is_complex or dtype.is_bool):
        raise Unsupported("a complex number does not fit a real dtype")
    if dtype.is_integer:
        return _exact_integer(value, dtype)
    if dtype.is_bool:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise Unsupported(f"the integer {value} does not fit {dtype}")
        return bool(value)
    with np.errstate(all="ignore"):
        try:
            rounded = np.array(value).astype(dtype.numpy).item()
        except (OverflowError, TypeError, ValueError) as error:
            raise Unsupported(f"{value!r} does not fit {dtype}") from error
    if _is_finite(value) and not _is_finite(rounded):
        raise Unsupported(f"{value!r} overflows {dtype}")
    return rounded


def _is_finite(value: Any) -> bool:
    if isinstance(value, complex):
        return math.isfinite(value.real) and math.isfinite(value.imag)
    return isinstance(value, int) or math.isfinite(value)


def _exact_integer(value: Any, dtype: DType) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise Unsupported(f"{value} does not fit {dtype}")
    number = int(value)
    info = np.iinfo(dtype.numpy)
    if not info.min <= number <= info.max:
        raise Unsupported(f"the integer {number} does not fit {dtype}")
    return number


def literal(tx: TraceContext, array: np.ndarray[Any, Any]) -> Var:
    """A constant array as a node."""
    dtype = promote.from_np(array.dtype)
    if array.size > LITERAL_LIMIT:
        raise Unsupported(f"a constant array of {array.size} elements is too large to hold in a graph")
    return emit(tx, "constant", literal=Literal.of(array, dtype))


_LARGE = 2**62


def symbolic(tx: TraceContext, value: SymInt, dtype: DType) -> Var:
    """A zero-dimensional value of a symbolic integer."""
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        # guards compute with 64 bits: what is compared must leave room for the value itself
        if not (value <= min(int(info.max), _LARGE) and value >= max(int(info.min), -_LARGE)):
            raise Unsupported(f"the integer {value} does not fit {dtype}")
        return emit(tx, "symint", expr=value, dtype=dtype, device=CPU)
    var = emit(tx, "symint", expr=value, dtype=dtypes.int64, device=CPU)
    return convert(tx, var, dtype)


# -- operands ---------------------------------------------------------------------------------
def is_scalar_constant(value: object) -> bool:
    """Python and NumPy scalars known at capture (symbolic integers not included)."""
    return isinstance(value, (bool, int, float, complex, np.generic))


def to_var(tx: TraceContext, value: object, dtype: DType) -> Var:
    """An operand (ArrayRef, scalar, SymInt) as a value of ``dtype``, in its own shape."""
    if isinstance(value, ArrayRef):
        if value.kind == "python" and value.dtype == dtypes.int64:
            _check_weak_integer(dtype)
        if value.kind == "python" and value.dtype.is_float and dtype.is_integer:
            raise Unsupported(f"a Python float known at run time only may not fit {dtype}")
        return convert(tx, value.var, dtype)
    if isinstance(value, SymInt):
        return symbolic(tx, value, dtype)
    if is_scalar_constant(value):
        return constant(tx, value, dtype)
    raise Unsupported(f"a {type(value).__name__} as operand of an array operation")


def _check_weak_integer(dtype: DType) -> None:
    if dtype.is_integer and dtype != dtypes.int64:
        raise Unsupported(f"a Python integer known at run time only may not fit {dtype}")


def as_ref(tx: TraceContext, value: object) -> ArrayRef:
    """``np.asarray`` of an operand; Python and NumPy scalars stay scalars (weak ones get their default
    dtype), nested lists become arrays."""
    if isinstance(value, ArrayRef):
        return value
    if isinstance(value, SymInt):
        return ArrayRef(symbolic(tx, value, dtypes.int64), "scalar")
    if is_scalar_constant(value):
        dtype = promote.from_np(promote.default_dtype(promote.operand_type(value)))
        return ArrayRef(constant(tx, value, dtype), "scalar")
    if isinstance(value, np.ndarray):
        return array_of(literal(tx, value))
    if isinstance(value, (list, tuple)):
        return array_of(from_nested(tx, value, None))
    if isinstance(value, range):
        return array_of(literal(tx, np.array(value, dtype=np.int64)))
    raise Unsupported(f"a {type(value).__name__} as an array")


def array_operand(value: object) -> ArrayRef:
    """The operand of a function that reads attributes of arrays from it and raises for all else."""
    if not isinstance(value, ArrayRef) or value.kind == "python":
        raise Unsupported(f"'{type(value).__name__}' object has no attribute 'ndim'")
    return value


def operand(tx: TraceContext, value: object) -> Any:
    """An operand of a ufunc: scalars and SymInts as they are (weak), lists as arrays."""
    if isinstance(value, (ArrayRef, SymInt)) or is_scalar_constant(value):
        return value
    return as_ref(tx, value)


def from_nested(tx: TraceContext, value: object, dtype: DType | None) -> Var:
    """``np.array`` of nested lists and tuples of scalars and arrays (fresh memory, C order)."""
    if not _mentions_ref(value):
        return _constant_nested(tx, value, dtype)
    leaves: list[Any] = []
    shape = _nested_shape(value, leaves)
    if dtype is None:
        kinds = [promote.default_dtype(promote.operand_type(leaf)) for leaf in leaves]
        dtype = promote.from_np(np.result_type(*kinds))
    element = leaves[0].shape if isinstance(leaves[0], ArrayRef) else ()
    rows = [_row(tx, leaf, element, dtype) for leaf in leaves]
    joined = emit(tx, "concatenate", *rows, axis=0)
    if not joined.type.is_contiguous:  # concatenation goes by the order of the parts
        joined = emit(tx, "contiguous", joined)
    return emit(tx, "reshape", joined, shape=(*shape, *element))


def _row(tx: TraceContext, leaf: object, element: tuple[Dim, ...], dtype: DType) -> Var:
    shape = leaf.shape if isinstance(leaf, ArrayRef) else ()
    if len(shape) != len(element) or not all(a == b for a, b in zip(shape, element)):
        raise Unsupported("setting an array element with a sequence of another shape")
    var = to_var(tx, leaf, dtype)
    return broadcast_to(tx, var, (1, *element))


def _mentions_ref(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_mentions_ref(item) for item in value)
    return isinstance(value, (ArrayRef, SymInt))


def _constant_nested(tx: TraceContext, value: object, dtype: DType | None) -> Var:
    try:
        array = np.array(value, dtype=None if dtype is None else dtype.numpy)
    except (ValueError, TypeError, OverflowError) as error:
        raise Unsupported(f"numpy.array of {type(value).__name__}: {error}") from error
    return literal(tx, array)


def _nested_shape(value: object, leaves: list[Any]) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        leaves.append(value)
        return ()
    if not value:
        raise Unsupported("an empty list among arrays")
    inner = [_nested_shape(item, leaves) for item in value]
    if any(shape != inner[0] for shape in inner):
        raise Unsupported("an inhomogeneous nested list")
    return (len(value), *inner[0])


# -- broadcasting -----------------------------------------------------------------------------
def shape_of(value: object) -> tuple[Dim, ...]:
    return value.shape if isinstance(value, (ArrayRef, Var)) else ()


IN_MEMORY = "how a part of a complex array, which is a copy in the graph, lies in memory"


def told_order(x: Var, order: object) -> str:
    """:func:`memory_order` of what is made of ``x``: ``"A"`` is Fortran's where it is in no other, else C."""
    order = memory_order(order)
    return ("F" if is_fortran(x.shape, x.type.strides) else "C") if order == "A" else order


def memory_order(order: object) -> str:
    """An ``order=`` argument, which NumPy takes in small letters too."""
    if not isinstance(order, str) or order.upper() not in ("C", "F", "A", "K"):
        raise Unsupported(f"order={order!r}")
    return order.upper()


def broadcast_shapes(*shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The common shape by NumPy's rules; questions about symbolic sizes become guards."""
    shapes = tuple(filter(None, shapes))  # the others say nothing
    if not shapes:
        return ()
    if len(shapes) == 1 or all(same_shape(shape, shapes[0]) for shape in shapes[1:]):
        return tuple(shapes[0])
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_common_dim(dims) for dims in zip(*padded))


def _common_dim(dims: tuple[Dim, ...]) -> Dim:
    common = dims[0]
    for dim in dims[1:]:
        if same(common, dim) or same(dim, 1):
            continue
        if same(common, 1):
            common = dim
        elif common == dim:
            common = dim if isinstance(dim, int) else common
        elif common == 1:
            common = dim
        elif dim != 1:
            raise Unsupported("operands could not be broadcast together")
    return common


def broadcast_to(tx: TraceContext, var: Var, shape: Sequence[Dim]) -> Var:
    """``var`` as a (read-only) view of ``shape``; itself where the shape is the same."""
    shape = tuple(shape)
    if var.shape is shape:
        return var
    extra = len(shape) - var.ndim
    if extra < 0:
        raise Unsupported(f"an array of shape {var.shape} cannot be broadcast to {shape}")
    if extra == 0 and all(same(a, b) for a, b in zip(var.shape, shape)):
        return var
    for dim, wanted in zip(var.shape, shape[extra:]):
        if not (same(dim, wanted) or same(dim, 1) or dim == wanted or dim == 1):
            raise Unsupported(f"an array of shape {var.shape} cannot be broadcast to {shape}")
    return emit(tx, "broadcast_in_dim", var, shape=shape, dims=tuple(range(extra, len(shape))))


# -- writing ----------------------------------------------------------------------------------
def write(tx: TraceContext, target: ArrayRef, var: Var) -> ArrayRef:
    """Write ``var`` (already of the target's dtype) into the target's memory and return the target."""
    if target.kind != "array":
        raise Unsupported("writing into a scalar")
    if target.readonly:
        raise Unsupported("assignment destination is read-only")
    _check_part_views(tx, target.var)
    _refuse_own_elements(tx, target.var, var)
    tx.builder.emit("copy_", target.var, broadcast_to(tx, var, target.shape))
    return target


def _refuse_own_elements(tx: TraceContext, target: Var, value: Var) -> None:
    """NumPy copies what it assigns to overlapping memory first, but for vectors whose steps have one sign:
    these it goes through from one end, so that it may read elements that it has written."""
    if target.ndim != 1 or value.ndim != 1 or memory_of(tx.builder, value) != memory_of(tx.builder, target):
        return
    to, start, step = target.type.strides[0], _place(tx, target), value.type.strides[0]
    if same(to, step):
        return
    first = _place(tx, value)
    known = all(type(n) is int for n in (to, start, step, first, target.shape[0]))
    if not known or _reads_what_it_wrote(start, to, first, step, target.shape[0]):  # type: ignore[arg-type]
        raise Unsupported("an assignment of a vector to one that overlaps it with other steps")


def _place(tx: TraceContext, var: Var) -> Dim | None:
    """The first element of a view, counted in elements from that of the memory that it is a view of."""
    total: Dim = 0
    node = tx.builder.producer(var)
    while node is not None and getattr(tx.builder.table[node.op], "is_view", False):
        (parent,) = node.inputs
        found = view_offset(node, parent.type)
        if found is None:
            return None
        total = total + found
        node = tx.builder.producer(parent)
    return total


def _reads_what_it_wrote(start: int, to: int, first: int, step: int, count: int) -> bool:
    if to * step <= 0:
        return False
    steps = np.arange(count)
    written, read = start + steps * to, first + steps * step
    # backwards where the value begins before the target and reaches into it
    order = steps[::-1] if first < start < first + count * step else steps
    when = dict(zip(written[order].tolist(), range(count)))
    return any(when.get(place, count) < now for now, place in enumerate(read[order].tolist()))


def _check_part_views(tx: TraceContext, target: Var) -> None:
    """``.real`` and ``.imag`` of a complex array are views in NumPy and copies in the graph: a write to
    the array afterwards would be missed."""
    copies = tx.builder.seen_as_views
    if not target.dtype.is_complex and not copies:
        return
    roots: dict[str, str] = {}
    taken: set[str] = set()
    for node in tx.builder.nodes:
        row: Any = tx.builder.table.get(node.op)
        if row is not None and row.is_view:
            source = node.inputs[0].name
            roots[node.out.name] = roots.get(source, source)
        elif node.outputs and node.outputs[0].name in copies:
            source = copies[node.outputs[0].name]
            taken.add(roots.get(source, source))
        elif node.op in ("real", "imag") and node.inputs[0].dtype.is_complex:
            source = node.inputs[0].name
            taken.add(roots.get(source, source))
    if roots.get(target.name, target.name) in taken:
        raise Unsupported("writing into an array after a part of it was taken, such as its .real")


def integer(value: object, what: str = "an integer") -> Dim:
    """An integer argument: ``int``, ``SymInt`` or a NumPy integer; most functions refuse booleans."""
    if isinstance(value, SymInt):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    found = "a value known at run time only" if isinstance(value, ArrayRef) else f"a {type(value).__name__}"
    raise Unsupported(f"{found} where {what} known at capture is needed")


def normalize_axis(axis: object, ndim: int) -> int:
    """An axis in ``range(ndim)``; raises ``Unsupported`` where it is out of bounds."""
    number = int(integer(axis, "an axis"))
    if not -ndim <= number < ndim:
        raise Unsupported(f"axis {number} is out of bounds for array of dimension {ndim}")
    return number % ndim


def normalize_axes(axis: object, ndim: int) -> tuple[int, ...]:
    """Axes of a reduction, in order; ``None`` is all of them."""
    if axis is None or axis is NO:
        return tuple(range(ndim))
    if isinstance(axis, (tuple, list)):
        axes = tuple(normalize_axis(a, ndim) for a in axis)
    else:
        axes = (normalize_axis(axis, ndim),)
    if len(set(axes)) != len(axes):
        raise Unsupported("duplicate value in 'axis'")
    return tuple(sorted(axes))
