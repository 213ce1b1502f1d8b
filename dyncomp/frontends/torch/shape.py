"""Views and rearrangements: they share memory exactly where torch's do."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import has_c_order, is_c_contiguous
from ...prims.markers import STOP
from ...symbolic.integers import Dim, SymInt, product, same
from ..base import ArrayRef, TraceContext, part_shown
from ..numpy.operands import broadcast_shapes, emit
from ..numpy.views import reshape_var, reshapes_in_place, slice_axis, transpose_var
from .formats import is_channels_last, is_channels_last_3d
from .gradients import detached, is_on, requires
from .library import torch
from .operands import (
    as_own,
    axis_of,
    contiguous,
    convert,
    in_order,
    integer,
    iteration_order,
    need_tensor,
    only_defaults,
    tensor,
)
from .promote import promote_types
from .torch_rules import RuleTable

TABLE = RuleTable()

PIECES_LIMIT = 256


def sizes_of(args: Sequence[Any]) -> tuple[Dim, ...]:
    """Sizes given one by one or as one sequence."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = args[0]
    return tuple(integer(a) for a in args)


def inferred(tx: TraceContext, x: Var, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """``shape`` with the one -1 replaced."""
    unknown = [i for i, d in enumerate(shape) if not isinstance(d, SymInt) and d == -1]
    if any(not isinstance(d, SymInt) and d < -1 for d in shape) or len(unknown) > 1:
        raise Unsupported(f"invalid shape {shape}")
    if not unknown:
        return shape
    known = product(d for i, d in enumerate(shape) if i != unknown[0])
    total = product(x.shape)
    if known == 0 or not tx.env.expect(total % known):
        raise Unsupported(f"shape {shape} is invalid for input of size {total}")
    return tuple(total // known if i == unknown[0] else d for i, d in enumerate(shape))


def view_var(tx: TraceContext, x: Var, shape: tuple[Dim, ...]) -> Var:
    """A reshape that shares memory, or ``Unsupported``."""
    wanted = inferred(tx, x, shape)
    if not reshapes_in_place(x, wanted):
        raise Unsupported("view size is not compatible with input tensor's size and stride")
    return emit(tx, "reshape", x, shape=wanted)


@TABLE.method("view")
def view(tx: TraceContext, self: object, *size: object) -> ArrayRef:
    if len(size) == 1 and not isinstance(size[0], (int, SymInt, tuple, list)):
        raise Unsupported("view with a dtype")
    return tensor(view_var(tx, need_tensor(self).var, sizes_of(size)))


@TABLE.method("view_as")
def view_as(tx: TraceContext, self: object, other: object) -> ArrayRef:
    return view(tx, self, need_tensor(other).shape)


@TABLE.method("reshape")
def reshape_method(tx: TraceContext, self: object, *sizes: object, shape: object = None) -> ArrayRef:
    x = need_tensor(self).var
    wanted = sizes if shape is None else (shape,)
    return tensor(reshape_var(tx, x, inferred(tx, x, sizes_of(wanted))))


@TABLE.function("reshape")
def reshape(tx: TraceContext, input: object, shape: object) -> ArrayRef:
    return reshape_method(tx, input, shape)


@TABLE.method("reshape_as")
def reshape_as(tx: TraceContext, self: object, other: object) -> ArrayRef:
    return reshape_method(tx, self, need_tensor(other).shape)


@TABLE.both("flatten")
def flatten(tx: TraceContext, input: object, start_dim: object = 0, end_dim: object = -1) -> ArrayRef:
    x = need_tensor(input)
    first, last = axis_of(start_dim, x.ndim), axis_of(end_dim, x.ndim)
    if first > last:
        raise Unsupported("flatten() has invalid args: start_dim cannot come after end_dim")
    if x.ndim == 0:
        return tensor(emit(tx, "reshape", x.var, shape=(1,)))
    if first == last:
        return x
    middle = product(x.shape[first : last + 1])
    return tensor(reshape_var(tx, x.var, (*x.shape[:first], middle, *x.shape[last + 1 :])))


@TABLE.both("unflatten")
def unflatten(tx: TraceContext, input: object, dim: object, sizes: Any) -> ArrayRef:
    x = need_tensor(input)
    axis = axis_of(dim, x.ndim)
    part = tuple(integer(s) for s in sizes)
    if any(not isinstance(s, SymInt) and s == -1 for s in part):
        known = product(s for s in part if isinstance(s, SymInt) or s != -1)
        part = tuple(x.shape[axis] // known if not isinstance(s, SymInt) and s == -1 else s for s in part)
    return tensor(view_var(tx, x.var, (*x.shape[:axis], *part, *x.shape[axis + 1 :])))


@TABLE.both("transpose", "swapaxes", "swapdims")
def transpose(tx: TraceContext, input: object, dim0: object, dim1: object) -> ArrayRef:
    x = need_tensor(input)
    a, b = axis_of(dim0, x.ndim), axis_of(dim1, x.ndim)
    perm = list(range(x.ndim))
    if x.ndim:
        perm[a], perm[b] = perm[b], perm[a]
    return tensor(transpose_var(tx, x.var, perm))


def _permuted(tx: TraceContext, x: ArrayRef, dims: Sequence[Any]) -> ArrayRef:
    perm = [axis_of(d, x.ndim) for d in dims]
    if sorted(perm) != list(range(x.ndim)):
        raise Unsupported("permute(dims): repeated or missing dim")
    return tensor(transpose_var(tx, x.var, perm))


@TABLE.method("permute")
def permute_method(tx: TraceContext, self: object, *dims: object) -> ArrayRef:
    return _permuted(tx, need_tensor(self), sizes_of(dims))  # type: ignore[arg-type]


@TABLE.function("permute")
def permute(tx: TraceContext, input: Any, dims: Any) -> ArrayRef:
    return _permuted(tx, need_tensor(input), dims)


@TABLE.function("meshgrid")
def meshgrid(tx: TraceContext, *tensors: Any, indexing: object = None) -> tuple[ArrayRef, ...]:
    """Views of the tensors, spread over the grid."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    refs = [need_tensor(t) for t in given]
    if indexing not in ("ij", "xy"):
        raise Unsupported("meshgrid without indexing= warns")
    if not refs or any(r.ndim > 1 for r in refs) or len({(r.dtype, r.type.device) for r in refs}) > 1:
        raise Unsupported("meshgrid of these tensors")
    axes = list(range(len(refs)))
    if indexing == "xy" and len(refs) > 1:
        axes[:2] = 1, 0
    sizes = [product(r.shape) for r in refs]
    grid = tuple(sizes[axes.index(axis)] for axis in range(len(refs)))
    made = []
    for ref, size, axis in zip(refs, sizes, axes):
        line = tuple(size if k == axis else 1 for k in range(len(refs)))
        made.append(expand(tx, tensor(emit(tx, "reshape", ref.var, shape=line)), grid))
    return tuple(made)


@TABLE.function("einsum")
def einsum(tx: TraceContext, equation: object, *operands: Any) -> ArrayRef:
    """Other axes of one tensor are a view of it; the rest are calls of torch's routine."""
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    if not isinstance(equation, str) or len(given) != 1:
        raise Unsupported("einsum of several tensors")
    before, arrow, after = equation.replace(" ", "").partition("->")
    if not arrow or not before.isalpha() or sorted(before) != sorted(set(after)) or len(before) != len(after):
        raise Unsupported("einsum that is no permutation")
    x = need_tensor(given[0])
    if x.ndim != len(before):
        raise Unsupported("einsum with subscripts for another number of dimensions")
    return permute(tx, x, tuple(map(before.index, after)))


@TABLE.both("movedim", "moveaxis")
def movedim(tx: TraceContext, input: object, source: object, destination: object) -> ArrayRef:
    x = need_tensor(input)
    sources = source if isinstance(source, (tuple, list)) else (source,)
    targets = destination if isinstance(destination, (tuple, list)) else (destination,)
    places = {axis_of(t, x.ndim): axis_of(s, x.ndim) for s, t in zip(sources, targets)}
    if len(places) != len(sources) or len(sources) != len(targets):
        raise Unsupported("movedim with repeated dimensions")
    rest = iter(a for a in range(x.ndim) if a not in places.values())
    return _permuted(tx, x, [places[a] if a in places else next(rest) for a in range(x.ndim)])


@TABLE.both("t")
def t(tx: TraceContext, input: object) -> ArrayRef:
    x = need_tensor(input)
    if x.ndim > 2:
        raise Unsupported("t() expects a tensor with <= 2 dimensions")
    return _permuted(tx, x, range(x.ndim)[::-1])


@TABLE.attribute("T")
def t_attribute(tx: TraceContext, self: object) -> ArrayRef:
    if need_tensor(self).ndim != 2:
        raise Unsupported("the use of `x.T` on tensors of dimension other than 2 is deprecated")
    return t(tx, self)


@TABLE.attribute("mT")
def matrix_transpose(tx: TraceContext, self: object) -> ArrayRef:
    return transpose(tx, self, -2, -1)


@TABLE.both("unsqueeze")
def unsqueeze(tx: TraceContext, input: object, dim: object) -> ArrayRef:
    x = need_tensor(input)
    axis = axis_of(dim, x.ndim + 1)
    return tensor(emit(tx, "reshape", x.var, shape=(*x.shape[:axis], 1, *x.shape[axis:])))


@TABLE.both("squeeze")
def squeeze(tx: TraceContext, input: object, dim: object = None) -> ArrayRef:
    x = need_tensor(input)
    if dim is None:
        chosen = set(range(x.ndim))
    else:
        chosen = {axis_of(d, x.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    shape = tuple(d for a, d in enumerate(x.shape) if not (a in chosen and d == 1))
    return tensor(emit(tx, "reshape", x.var, shape=shape))


def expand_var(tx: TraceContext, x: Var, shape: tuple[Dim, ...]) -> Var:
    extra = len(shape) - x.ndim
    if extra < 0:
        raise Unsupported("expand to fewer dimensions")
    full: list[Dim] = []
    for axis, size in enumerate(shape):
        own = x.shape[axis - extra] if axis >= extra else None
        keep = not isinstance(size, SymInt) and size == -1
        if keep and own is None:
            raise Unsupported("expand with -1 in a new dimension")
        full.append(own if keep and own is not None else size)
    return emit(tx, "broadcast_in_dim", x, shape=tuple(full), dims=tuple(range(extra, len(full))))


@TABLE.method("expand")
def expand(tx: TraceContext, self: object, *size: object, implicit: object = False) -> ArrayRef:
    return tensor(expand_var(tx, need_tensor(self).var, sizes_of(size)))


@TABLE.method("expand_as")
def expand_as(tx: TraceContext, self: object, other: object) -> ArrayRef:
    return tensor(expand_var(tx, need_tensor(self).var, need_tensor(other).shape))


@TABLE.function("broadcast_to")
@TABLE.method("broadcast_to")
def broadcast_to(tx: TraceContext, input: object, size: object) -> ArrayRef:
    return expand(tx, input, size)


@TABLE.function("broadcast_tensors")
def broadcast_tensors(tx: TraceContext, *tensors: object) -> tuple[ArrayRef, ...]:
    refs = [need_tensor(t) for t in (tensors[0] if isinstance(tensors[0], (tuple, list)) else tensors)]
    shape = broadcast_shapes(*(r.shape for r in refs))
    # one that has the shape already is given back itself, as by torch
    return tuple(r if r.shape == shape else expand(tx, r, shape) for r in refs)


@TABLE.both("split_with_sizes")
def split_with_sizes(tx: TraceContext, input: Any, split_sizes: Any, dim: Any = 0) -> Any:
    return split(tx, input, list(split_sizes), dim)


@TABLE.both("ravel")
def ravel(tx: TraceContext, input: object) -> ArrayRef:
    """``contiguous().view(-1)``: not a view of a vector with gaps, as ``flatten`` gives."""
    x = need_tensor(input)
    return reshape_method(tx, tensor(contiguous(tx, x.var)), -1)


@TABLE.both("diagonal")
def diagonal(
    tx: TraceContext, input: object, offset: object = 0, dim1: object = 0, dim2: object = 1
) -> ArrayRef:
    x = need_tensor(input)
    first, second = axis_of(dim1, x.ndim), axis_of(dim2, x.ndim)
    if first == second or x.ndim < 2:
        raise Unsupported("diagonal dimensions cannot be identical")
    return tensor(emit(tx, "diagonal", x.var, offset=int(integer(offset)), axis1=first, axis2=second))


@TABLE.method("contiguous")
def contiguous_method(tx: TraceContext, self: object, memory_format: object = None) -> ArrayRef:
    only_defaults(memory_format=memory_format)
    x = need_tensor(self)
    if _has_gaps(tx, x):
        return tensor(emit(tx, "copy", contiguous(tx, x.var)))
    return x if has_c_order(x.shape, x.strides) else tensor(emit(tx, "contiguous", x.var))


def _has_gaps(tx: TraceContext, x: ArrayRef) -> bool:
    """Whether the tensor is of real or imaginary parts, which are not contiguous unless they are too few."""
    shown = part_shown(tx.builder, x.var)
    if shown is None or not any(
        shown in node.outputs for node in tx.builder.nodes if node.op in ("real", "imag")
    ):
        return False
    if not any(isinstance(d, int) and d > 1 for d in x.shape):
        raise Unsupported("contiguous() of the one real part")
    return True


@TABLE.method("is_contiguous")
def is_contiguous(tx: TraceContext, self: object, memory_format: object = None) -> bool:
    only_defaults(memory_format=memory_format)
    x = need_tensor(self)
    if part_shown(tx.builder, x.var) is not None:
        raise Unsupported("is_contiguous() of a view that is a copy in the graph")
    return has_c_order(x.shape, x.strides)


# -- pieces -----------------------------------------------------------------------------------
def piece(tx: TraceContext, x: Var, axis: int, start: Dim, size: Dim) -> ArrayRef:
    return tensor(slice_axis(tx, x, axis, start, size))


@TABLE.both("narrow")
def narrow(tx: TraceContext, input: object, dim: object, start: object, length: object) -> ArrayRef:
    x = need_tensor(input)
    axis = axis_of(dim, x.ndim)
    first, size = integer(start), integer(length)
    if first < 0:
        first = first + x.shape[axis]
    if first < 0 or size < 0 or first + size > x.shape[axis]:
        raise Unsupported("narrow out of range")
    return piece(tx, x.var, axis, first, size)


def _overlapping(tx: TraceContext, x: ArrayRef, shape: tuple[Dim, ...], strides: tuple[Dim, ...]) -> ArrayRef:
    """A view some of whose elements may be the same; it is not written to in captured code."""
    view = emit(tx, "as_strided", x.var, shape=shape, strides=strides, offset=0)
    return ArrayRef(view, "array", "torch", readonly=True, writeable_outside=True)


@TABLE.method("unfold")
def unfold(tx: TraceContext, self: object, dimension: object, size: object, step: object) -> ArrayRef:
    """All windows along a dimension; places in the window come last."""
    x = need_tensor(self)
    if not x.ndim:
        raise Unsupported("unfold of a tensor without dimensions")
    axis, length, stride = axis_of(dimension, x.ndim), int(integer(size)), int(integer(step))
    if length < 1 or stride < 1 or length > x.shape[axis]:
        raise Unsupported("unfold: windows of this size or step")
    count = (x.shape[axis] - length) // stride + 1
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], length)
    strides = (*x.strides[:axis], x.strides[axis] * stride, *x.strides[axis + 1 :], x.strides[axis])
    return _overlapping(tx, x, shape, strides)


@TABLE.both("as_strided")
def as_strided(
    tx: TraceContext, input: object, size: Any, stride: Any, storage_offset: object = None
) -> ArrayRef:
    """Within the memory of the tensor itself."""
    x = need_tensor(input)
    shape, strides = tuple(map(integer, size)), tuple(map(integer, stride))
    if storage_offset is not None or len(shape) != len(strides):
        raise Unsupported("as_strided from a given place, or of other strides than dimensions")
    if (
        any(n < 1 for n in (*shape, *x.shape))
        or any(n < 0 for n in (*strides, *x.strides))
        or _reach(shape, strides) > _reach(x.shape, x.strides)
    ):
        raise Unsupported("as_strided that reaches outside of the tensor")
    if not is_dense(x.var):
        raise Unsupported("as_strided of a tensor with gaps")
    return _overlapping(tx, x, shape, strides)


def _reach(shape: Sequence[Any], strides: Sequence[Any]) -> Any:
    """How far behind its first element the last one of a tensor lies."""
    return sum((n - 1) * step for n, step in zip(shape, strides))


@TABLE.both("select")
def select(tx: TraceContext, input: object, dim: object, index: object) -> ArrayRef:
    x = need_tensor(input)
    axis = axis_of(dim, x.ndim)
    place = integer(index)
    size = x.shape[axis]
    if place < -size or place >= size:
        raise Unsupported("select(): index out of range")
    start = place + size if place < 0 else place
    cut = slice_axis(tx, x.var, axis, start, 1)
    return tensor(emit(tx, "reshape", cut, shape=(*x.shape[:axis], *x.shape[axis + 1 :])))


def _pieces(tx: TraceContext, x: ArrayRef, axis: int, sizes: Sequence[Dim]) -> tuple[ArrayRef, ...]:
    if len(sizes) > PIECES_LIMIT:
        raise Unsupported(f"a split into {len(sizes)} pieces")
    out: list[ArrayRef] = []
    start: Dim = 0
    for size in sizes:
        out.append(piece(tx, x.var, axis, start, size))
        start = start + size
    return tuple(out)


def _equal_sizes(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)] or [0]


@TABLE.function("split")
def split(tx: TraceContext, tensor: object, split_size_or_sections: object, dim: object = 0) -> Any:
    x = need_tensor(tensor)
    axis = axis_of(dim, x.ndim)
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = [integer(s) for s in split_size_or_sections]
        if sum(sizes) != x.shape[axis] or any(s < 0 for s in sizes):
            raise Unsupported("split_with_sizes expects split_sizes to sum exactly to the dimension")
        return _pieces(tx, x, axis, sizes)
    size = int(integer(split_size_or_sections))
    if size <= 0:
        raise Unsupported("split expects split_size to be positive")
    return _pieces(tx, x, axis, _equal_sizes(int(x.shape[axis]), size))


@TABLE.method("split")
def split_method(tx: TraceContext, self: object, split_size: object, dim: object = 0) -> Any:
    return split(tx, self, split_size, dim)


@TABLE.both("chunk")
def chunk(tx: TraceContext, input: object, chunks: object, dim: object = 0) -> Any:
    x = need_tensor(input)
    axis = axis_of(dim, x.ndim)
    count, total = int(integer(chunks)), int(x.shape[axis])
    if count <= 0 or total == 0:
        raise Unsupported("chunk of no elements")
    return _pieces(tx, x, axis, _equal_sizes(total, -(-total // count)))


@TABLE.both("unbind")
def unbind(tx: TraceContext, input: object, dim: object = 0) -> Any:
    x = need_tensor(input)
    axis = axis_of(dim, x.ndim)
    if x.ndim == 0 or int(x.shape[axis]) > PIECES_LIMIT:
        raise Unsupported("unbind of a 0-d or long tensor")
    return tuple(select(tx, x, axis, i) for i in range(int(x.shape[axis])))


# -- joining and copies -----------------------------------------------------------------------
def _sequence(tensors: object) -> list[ArrayRef]:
    if not isinstance(tensors, (tuple, list)) or not tensors:
        raise Unsupported("expected a non-empty list of tensors")
    return [need_tensor(x) for x in tensors]


def _is_empty_vector(x: ArrayRef) -> bool:
    """Such vectors join tensors of any shape."""
    return x.ndim == 1 and same(x.shape[0], 0)


def _joined(tx: TraceContext, refs: list[ArrayRef], axis: int) -> ArrayRef:
    """``refs`` one behind the other, in the dtype that all have together."""
    dtype = functools.reduce(promote_types, (r.dtype for r in refs))
    return tensor(
        contiguous(tx, emit(tx, "concatenate", *(convert(tx, r.var, dtype) for r in refs), axis=axis))
    )


@TABLE.function("cat", "concat", "concatenate")
def cat(
    tx: TraceContext, tensors: object, dim: object = 0, *, out: object = None, axis: object = None
) -> ArrayRef:
    only_defaults(out=out)
    refs = _sequence(tensors)
    if any(r.ndim == 0 for r in refs):
        raise Unsupported("zero-dimensional tensor cannot be concatenated")
    first = next((r for r in refs if not _is_empty_vector(r)), refs[0])
    along = axis_of(dim if axis is None else axis, first.ndim)
    none = tuple(0 if i == along else size for i, size in enumerate(first.shape))
    shaped = [
        tensor(emit(tx, "reshape", r.var, shape=none)) if r.ndim < first.ndim and _is_empty_vector(r) else r
        for r in refs
    ]
    found = _joined(tx, shaped, along)
    if all(is_channels_last(r.var) for r in refs):
        return tensor(in_order(tx, found.var, (0, 2, 3, 1)))
    if all(is_channels_last_3d(r.var) for r in refs):
        return tensor(in_order(tx, found.var, (0, 2, 3, 4, 1)))
    return found


@TABLE.function("stack")
def stack(tx: TraceContext, tensors: object, dim: object = 0, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    refs = _sequence(tensors)
    first = refs[0].shape
    if any(r.ndim != len(first) or not all(m == n for m, n in zip(r.shape, first)) for r in refs):
        raise Unsupported("stack expects each tensor to be equal size")
    axis = axis_of(dim, len(first) + 1)
    if axis == len(first) or not all(is_channels_last(r.var) for r in refs):
        return _joined(tx, [unsqueeze(tx, r, axis) for r in refs], axis)
    split = (*first[:axis], len(refs), *first[axis:])
    joined = cat(tx, refs, axis).var  # channels last as well
    return tensor(as_own(tx, emit(tx, "reshape", joined, shape=split)))


@TABLE.both("flip")
def flip(tx: TraceContext, input: object, *dims: object, **kwargs: object) -> ArrayRef:
    x = need_tensor(input)
    axes = {axis_of(d, x.ndim) for d in sizes_of((*dims, *kwargs.values()))}
    starts = tuple(x.shape[a] - 1 if a in axes else 0 for a in range(x.ndim))
    steps = tuple(-1 if a in axes else 1 for a in range(x.ndim))
    if any(x.shape[a] == 0 for a in axes) or not is_c_contiguous(x.shape, x.strides):
        raise Unsupported("flip of an empty or non-contiguous tensor")
    return tensor(
        emit(tx, "contiguous", emit(tx, "strided_slice", x.var, starts=starts, sizes=x.shape, steps=steps))
    )


@TABLE.both("roll")
def roll(tx: TraceContext, input: object, shifts: object, dims: object = ()) -> ArrayRef:
    """Along each dimension what lies behind the cut, then what lies before it."""
    x = need_tensor(input)
    steps, axes = (tuple(a) if isinstance(a, (tuple, list)) else (a,) for a in (shifts, dims))
    if any(isinstance(d, SymInt) or d == 0 for d in x.shape):
        raise Unsupported("roll of an empty tensor, or one of symbolic size")
    if not axes and len(steps) == 1:
        flat = tensor(emit(tx, "reshape", contiguous(tx, x.var), shape=(product(x.shape),)))
        return tensor(emit(tx, "reshape", _rolled(tx, flat, steps[0], 0).var, shape=x.shape))
    if len(steps) != len(axes):
        raise Unsupported("shifts and dimensions must align")
    for step, axis in zip(steps, axes):
        x = _rolled(tx, x, step, axis_of(axis, x.ndim))
    return x


def _rolled(tx: TraceContext, x: ArrayRef, step: object, axis: int) -> ArrayRef:
    size = x.shape[axis]
    cut = (size - int(integer(step))) % size
    parts = (piece(tx, x.var, axis, cut, size - cut), piece(tx, x.var, axis, 0, cut))
    joined = [part for part in parts if part.shape[axis] != 0]
    if len(joined) == 1:  # nothing is never channels last
        return tensor(contiguous(tx, emit(tx, "copy", x.var)))
    return cat(tx, joined, axis)


def _triangle(op: str) -> Any:
    def rule(tx: TraceContext, input: object, diagonal: object = 0, *, out: object = None) -> ArrayRef:
        only_defaults(out=out)
        x = need_tensor(input)
        if x.ndim < 2:
            raise Unsupported(f"{op} needs at least two dimensions")
        return tensor(contiguous(tx, emit(tx, op, x.var, k=int(integer(diagonal)))))

    return rule


TABLE.both("tril")(_triangle("tril"))
TABLE.both("triu")(_triangle("triu"))


@TABLE.both("clone")
def clone(tx: TraceContext, input: object, *, memory_format: object = None) -> ArrayRef:
    """Keeps the order of the axes in memory."""
    x = need_tensor(input)
    if memory_format is torch.contiguous_format:
        return tensor(contiguous(tx, emit(tx, "copy", x.var)))
    if memory_format is not torch.preserve_format:
        only_defaults(memory_format=memory_format)
    return tensor(dense_copy(tx, x.var))


def dense_copy(tx: TraceContext, x: Var) -> Var:
    """A copy without holes, as ``empty_like`` lies."""
    return in_order(tx, emit(tx, "copy", x), axes_in_memory(x))


def axes_in_memory(x: Var) -> list[int]:
    """The axes of ``empty_like(x)`` from outermost to innermost. Where ``x`` has holes they are ordered as
    TensorIterator orders them (``infer_dense_strides`` of ATen/ExpandUtils.cpp)."""
    if is_c_contiguous(x.shape, x.type.strides):
        return list(range(x.ndim))
    if is_dense(x):
        return sorted(range(x.ndim), key=lambda axis: x.type.strides[axis], reverse=True)
    return iteration_order(x.shape, [x.type.strides])


def is_dense(x: Var) -> bool:
    """Non-overlapping and dense: torch's ``preserve_format`` keeps the strides of such."""
    if is_c_contiguous(x.shape, x.type.strides):
        return True
    step: Dim = 1
    for size, stride in sorted(
        ((d, s) for d, s in zip(x.shape, x.type.strides) if d != 1), key=lambda p: p[1]
    ):
        if stride != step:
            return False
        step = step * size
    return True


@TABLE.attribute("data")
def data(tx: TraceContext, self: object) -> ArrayRef:
    """Like ``detach()``, but autograd does not hear of what is written through it. In grad mode it is taken
    in plain Python where that needs it."""
    x = need_tensor(self)
    view = detach(tx, x)
    tx.builder.unheard_views.add(view.var.name)
    if not is_on(tx) or x.dtype.is_integer or x.dtype.is_bool:
        return view if view.part is None else replace(view, part=(x, "data"))
    tx.builder.seen_as_views[view.var.name] = x.var.name
    return replace(view, part=(x, "data"))


@TABLE.method("data=")
def set_data(tx: TraceContext, self: object, value: object) -> None:
    """``x.data *= y`` puts back what was written to: memory of the tensor's own."""
    x, var = need_tensor(self).var, need_tensor(value).var
    alike = var.ndim == x.ndim and all(map(same, var.shape, x.shape))
    while var.name != x.name:
        node = tx.builder.producer(var)
        if not alike or node is None or node.op not in ("reshape", STOP) or node.inputs[0].ndim != x.ndim:
            raise Unsupported("other memory for a tensor")
        var = node.inputs[0]
        alike = all(map(same, var.shape, x.shape))


@TABLE.both("detach")
def detach(tx: TraceContext, input: object) -> ArrayRef:
    x = need_tensor(input)
    if requires(tx, x.var):
        return detached(tx, x)
    if may_require(tx, x):
        return replace(detached(tx, x), part=(x, "detach()"))  # plain code does it
    return tensor(emit(tx, "reshape", x.var, shape=x.shape))


def may_require(tx: TraceContext, x: ArrayRef) -> bool:
    """Without grad mode nobody asks whether a tensor from outside requires a gradient."""
    given = tx.builder.producer(tx.builder.root(x.var)) is None
    return given and x.dtype.is_inexact and not tx.recorded and not torch.is_grad_enabled()


def variable(tx: TraceContext, data: object, requires_grad: object = False) -> ArrayRef:
    """``torch.autograd.Variable``: the tensor, detached."""
    if requires_grad is not False:
        raise Unsupported("a Variable that requires a gradient")
    return detach(tx, data)


TABLE.functions[torch.autograd.Variable] = variable


@TABLE.method("repeat")
def repeat(tx: TraceContext, self: object, *sizes: object) -> ArrayRef:
    x = need_tensor(self)
    reps = sizes_of(sizes)
    if len(reps) < x.ndim:
        raise Unsupported("repeat with fewer counts than dimensions")
    grown = emit(tx, "reshape", x.var, shape=(*[1] * (len(reps) - x.ndim), *x.shape))
    return tensor(contiguous(tx, emit(tx, "tile", grown, reps=reps)))
