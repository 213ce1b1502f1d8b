"""Strides of results: which memory order NumPy gives to fresh arrays, and which reshapes are views.

Dimensions and strides may be symbolic. The common layouts (everything C-contiguous) are recognised by
structure and record no guard; others compare strides, which may.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DType
from ..graph.ir import ArrayType, Node, contiguous_strides
from ..symbolic.assumptions import if_several
from ..symbolic.integers import Dim, SymInt, product, same

Dims = tuple[Dim, ...]


def is_one(dim: Dim) -> bool:
    """Known to be 1 (records no guard; a symbolic size that may be anything counts as not 1)."""
    if isinstance(dim, SymInt):
        return dim.env.known(dim - 1, "==") is True
    return dim == 1


def is_zero(dim: Dim) -> bool:
    """Known to be 0 (records no guard)."""
    if isinstance(dim, SymInt):
        return dim.env.known(dim, "==") is True
    return dim == 0


def dims_equal(a: Dim, b: Dim) -> bool:
    """Equal by structure, or else by value, recording a guard where symbols are involved."""
    return same(a, b) or bool(a == b)


def shapes_equal(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Equal shapes; records guards only where structure does not tell."""
    return len(a) == len(b) and all(dims_equal(x, y) for x, y in zip(a, b))


def fortran_strides(shape: Sequence[Dim]) -> Dims:
    """Column-major strides in elements (dimensions of size 0 count as 1)."""
    return tuple(reversed(contiguous_strides(tuple(reversed(shape)))))


def strides_in_order(shape: Sequence[Dim], order: Sequence[int]) -> Dims:
    """Dense strides of ``shape`` where ``order`` lists the axes from outermost to innermost; C order without
    elements (NumPy's strides are all 0 then, which asks for C order in what is made of it)."""
    if any(is_zero(size) for size in shape):
        order = range(len(shape))
    strides: list[Dim] = [1] * len(shape)
    step: Dim = 1
    for axis in reversed(order):
        strides[axis] = step
        step = step * (1 if is_zero(shape[axis]) else shape[axis])
    return tuple(strides)


def _is_dense(shape: Sequence[Dim], strides: Sequence[Dim], wanted: Sequence[Dim]) -> bool:
    """Whether ``strides`` are ``wanted`` on every axis where it matters (sizes other than 1)."""
    return all(same(s, w) or is_one(d) for d, s, w in zip(shape, strides, wanted))


def is_c_contiguous(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """C-contiguous by structure; records no guard."""
    return _is_dense(shape, strides, contiguous_strides(tuple(shape)))


def is_f_contiguous(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """Fortran-contiguous by structure; records no guard."""
    return _is_dense(shape, strides, fortran_strides(shape))


def has_c_order(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """NumPy's flag ``c_contiguous``: as :func:`is_c_contiguous`, but where structure does not tell, sizes
    that may be 0 or 1 and strides that may be others are asked, which records guards."""
    return is_c_contiguous(shape, strides) or _is_packed(shape, strides)


def has_f_order(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """NumPy's flag ``f_contiguous``, as :func:`has_c_order`."""
    return is_f_contiguous(shape, strides) or _is_packed(shape[::-1], strides[::-1])


def is_fortran(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """NumPy's ``flags.fnc``, as :func:`has_c_order`."""
    return not has_c_order(shape, strides) and has_f_order(shape, strides)


def _is_packed(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    if any(bool(d == 0) for d in shape):
        return True
    expected: Dim = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if not same(stride, expected) and not bool(size == 1) and not dims_equal(stride, expected):
            return False
        expected = expected * size
    return True


def _magnitude(stride: Dim) -> Dim:
    return abs(stride)


def _compare(inner: Dim, outer: Dim) -> bool:
    """``abs(outer) <= abs(inner)`` as the iterator asks it."""
    if same(inner, outer):
        return True
    difference = _magnitude(outer) - _magnitude(inner)
    known = if_several(difference)
    return bool(difference <= 0) if known is None else known


def iteration_order(shape: Sequence[Dim], operands: Sequence[Sequence[Dim]]) -> list[int]:
    """Axes from outermost to innermost as NumPy's iterator arranges them with order ``'K'``.

    ``operands``: the strides of every input, already broadcast to ``shape``. The stable insertion sort of
    ``npyiter_find_best_axis_ordering``: broadcast axes are ambiguous and C order wins conflicts.
    """
    views = [[0 if is_one(d) else s for d, s in zip(shape, strides)] for strides in operands]
    inner_first: list[int] = []
    for axis in reversed(range(len(shape))):
        place = len(inner_first)
        for position in reversed(range(len(inner_first))):
            verdict = _swap(views, axis, inner_first[position])
            if verdict is None:
                continue
            if not verdict:
                break
            place = position
        inner_first.insert(place, axis)
    return inner_first[::-1]


def _swap(views: Sequence[Sequence[Dim]], axis: int, other: int) -> bool | None:
    """Whether ``axis`` belongs inside ``other``; ``None`` where no operand tells."""
    verdict: bool | None = None
    for strides in views:
        if is_zero(strides[axis]) or is_zero(strides[other]):
            continue
        if _compare(strides[axis], strides[other]):
            verdict = False
        elif verdict is None:
            verdict = True
    return verdict


def k_order_axes(shape: Sequence[Dim], operands: Sequence[Sequence[Dim]]) -> list[int]:
    """:func:`iteration_order` behind the shortcuts for contiguous operands."""
    natural = list(range(len(shape)))
    if len(shape) < 2 or not operands:
        return natural
    if all(is_c_contiguous(shape, s) or _is_uniform(shape, s) for s in operands):
        return natural
    if all(is_f_contiguous(shape, s) or _is_uniform(shape, s) for s in operands):
        return natural[::-1]
    return iteration_order(shape, operands)


def _is_uniform(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """A scalar broadcast to ``shape``: it has no say in the order."""
    return all(is_zero(s) or is_one(d) for d, s in zip(shape, strides))


def k_order_strides(shape: Sequence[Dim], operands: Sequence[Sequence[Dim]]) -> Dims:
    """Strides of an output that NumPy's iterator allocates for operands of one shape (ufuncs, where)."""
    return strides_in_order(shape, k_order_axes(shape, operands))


def sorted_axes(shape: Sequence[Dim], strides: Sequence[Dim]) -> list[int]:
    """Axes from outermost to innermost by decreasing absolute stride (``np.empty_like``, ``copy``)."""
    natural = list(range(len(shape)))
    if len(shape) < 2 or is_c_contiguous(shape, strides):
        return natural
    if is_f_contiguous(shape, strides):
        return natural[::-1]
    order: list[int] = []
    for axis in natural:
        place = len(order)
        while place and not _at_least(strides[order[place - 1]], strides[axis]):
            place -= 1
        order.insert(place, axis)
    return order


def _at_least(a: Dim, b: Dim) -> bool:
    return same(a, b) or bool(_magnitude(a) >= _magnitude(b))


def like_strides(shape: Sequence[Dim], strides: Sequence[Dim]) -> Dims:
    """Strides of ``np.empty_like`` (order ``'K'``): ``copy`` and ``astype``."""
    return strides_in_order(shape, sorted_axes(shape, strides))


def like(x: ArrayType, dtype: DType | None = None) -> ArrayType:
    """The type of a fresh array like ``x``."""
    return ArrayType(dtype or x.dtype, x.shape, like_strides(x.shape, x.strides), x.device)


def multi_sorted_axes(types: Sequence[ArrayType]) -> list[int]:
    """Axis order of ``np.concatenate``'s result (``PyArray_CreateMultiSortedStridePerm``)."""
    ndim = types[0].ndim
    if all(is_c_contiguous(t.shape, t.strides) for t in types):
        return list(range(ndim))
    order = list(range(ndim))
    for i in range(1, ndim):
        axis = order[i]
        place = i
        for j in reversed(range(i)):
            verdict = _concatenate_swap(types, order[j], axis)
            if verdict is None:
                continue
            if not verdict:
                break
            place = j
        del order[i]
        order.insert(place, axis)
    return order


def _concatenate_swap(types: Sequence[ArrayType], outer: int, axis: int) -> bool | None:
    verdict: bool | None = None
    for t in types:
        if bool(t.shape[outer] == 1) or bool(t.shape[axis] == 1):
            continue
        if _at_least(t.strides[outer], t.strides[axis]):
            verdict = False
        elif verdict is None:
            verdict = True
    return verdict


# -- reshape ----------------------------------------------------------------------------------
def reshape_strides(shape: Sequence[Dim], strides: Sequence[Dim], new_shape: Sequence[Dim]) -> Dims | None:
    """Strides of the view that reshapes in C order, or ``None`` where NumPy would copy.

    NumPy's ``_attempt_nocopy_reshape``: groups of axes with equal products are matched, and every old
    group must be one evenly strided run. Raises ``ValueError`` where the sizes differ.
    """
    if not dims_equal(product(shape), product(new_shape)):
        raise ValueError(f"cannot reshape array of shape {tuple(shape)} into shape {tuple(new_shape)}")
    if is_c_contiguous(shape, strides) or any(bool(d == 0) for d in shape):
        return contiguous_strides(tuple(new_shape))
    old = [(d, s) for d, s in zip(shape, strides) if not bool(d == 1)]
    result: list[Dim] = []
    done_old = 0
    done_new = 0
    while done_new < len(new_shape) and done_old < len(old):
        end_old, end_new = _match_group(old, done_old, new_shape, done_new)
        if not _is_run(old[done_old:end_old]):
            return None
        group = list(new_shape[done_new:end_new])
        inner = old[end_old - 1][1]
        result += [inner * s for s in contiguous_strides(tuple(group))]
        done_old, done_new = end_old, end_new
    last: Dim = result[-1] if result else 1
    result += [last] * (len(new_shape) - len(result))
    return tuple(result)


def _match_group(
    old: Sequence[tuple[Dim, Dim]], start_old: int, new: Sequence[Dim], start_new: int
) -> tuple[int, int]:
    """Ends of the next pair of axis groups with equal numbers of elements."""
    end_old = start_old + 1
    end_new = start_new + 1
    size_old = old[start_old][0]
    size_new = new[start_new]
    while not dims_equal(size_old, size_new):
        if size_new < size_old:
            size_new = size_new * new[end_new]
            end_new += 1
        else:
            size_old = size_old * old[end_old][0]
            end_old += 1
    return end_old, end_new


def _is_run(group: Sequence[tuple[Dim, Dim]]) -> bool:
    return all(dims_equal(outer[1], inner[0] * inner[1]) for outer, inner in zip(group, group[1:]))


def view_offset(node: Node, parent: ArrayType) -> Dim | None:
    """Elements of memory between the first of ``parent`` and the first of a view of it; ``None`` where that
    is not known."""
    params = node.kwargs
    if node.op == "strided_slice":
        total: Dim = 0
        for start, stride in zip(params["starts"], parent.strides):
            total = total + start * stride
        return total
    if node.op == "diagonal":
        offset: Dim = params["offset"]
        return (
            offset * parent.strides[params["axis2"]]
            if offset >= 0
            else -offset * parent.strides[params["axis1"]]
        )
    if node.op == "as_strided":
        given: Dim = params["offset"]
        return given
    return 0 if node.op in ("transpose", "reshape", "broadcast_in_dim") else None
