"""Rules of rows that libraries' routines compute: on stacks where a routine takes them, else once for each
element of the batch."""

from __future__ import annotations

from typing import Any

from ...dtypes import int64
from ...graph.interp import concrete, symbols_in
from ...graph.ir import Callee, Var, array_type
from ...symbolic.integers import product, sym_max
from ..convolution import DTYPES as CONVOLVED
from ..derivatives.structure import flipped
from ..opdef import OpDef
from ..pointwise.partials import scalar, zeros
from ..python_call import ForEach
from .operands import Operands, Rule, reshaped, to_front


# -- once for each element of the batch ---------------------------------------------------------
def looped(row: OpDef) -> Rule:
    """Its reference, called for each element of the batch: of rows whose routine takes no stacks."""

    def batch(given: Operands, **params: Any) -> Any:
        env = given.ops.builder.env
        symbols = symbols_in(params)
        if any(env.symbols[name].unbacked for name in symbols):
            raise TypeError("the sizes of its results would depend on the batched data")
        # int() has the graph be for these sizes only
        fixed = concrete(params, {name: int(env.symbol(name)) for name in symbols})
        flags = tuple(given.has(k) for k in range(len(given.values)))
        called = params.get("callee")
        name = row.name if called is None else called.path or called.name
        callee = Callee(ForEach(row.meta, row.ref, fixed, flags), name, (), ())
        return given.ops.for_each(*given.values, callee=callee)

    return batch


# -- linear algebra ----------------------------------------------------------------------------
def solve_rule(given: Operands) -> Var:
    """One matrix for the whole batch is factorized once: the batch makes more columns."""
    ops = given.ops
    a, b = given.values
    is_vector = given.types[1].ndim == 1
    if given.has(0):
        b = given.batched(1)
        if is_vector:
            return reshaped(ops, ops.solve(a, reshaped(ops, b, (*b.shape, 1))), b.shape)
        found: Var = ops.solve(a, b)
        return found
    if is_vector:
        columns = ops.transpose(b, perm=(1, 0))
        turned: Var = ops.transpose(ops.solve(a, columns), perm=(1, 0))
        return turned
    # (batch, *stack, n, k) as (*stack, n, batch * k)
    stack = tuple(range(1, b.ndim - 2))
    rows, batch, columns_of = b.ndim - 2, 0, b.ndim - 1
    side_by_side = ops.transpose(b, perm=(*stack, rows, batch, columns_of))
    *outer, size, count = side_by_side.shape
    solved = ops.solve(a, reshaped(ops, side_by_side, (*outer, size * count)))
    apart = reshaped(ops, solved, side_by_side.shape)
    last = apart.ndim - 1
    back: Var = ops.transpose(apart, perm=(last - 1, *range(last - 1), last))
    return back


def factor_rule(given: Operands) -> tuple[Var, Var]:
    """Nothing: of a batch of matrices :func:`solve_factored_rule` reads no factors."""
    (a,) = given.values
    batch, n, _ = a.shape
    pivots = given.ops.full(shape=(batch, n), value=1, dtype=int64, device=a.type.device)
    return zeros(given.ops, a), pivots


def solve_factored_rule(given: Operands, *, transposed: bool) -> Var:
    """The batch makes more columns for one matrix; a batch of matrices is solved with as a stack."""
    ops = given.ops
    a, factors, pivots, b = given.values
    if given.has(0):
        matrix = ops.transpose(a, perm=(0, 2, 1)) if transposed else a
        return solve_rule(Operands(ops, given.size, (matrix, b), (given.types[0], given.types[3])))
    order = (1, 0) if given.types[3].ndim == 1 else (1, 0, 2)
    columns = ops.transpose(b, perm=order)
    size, *rest = columns.shape
    columns = reshaped(ops, columns, (size, product(rest)))
    solved = ops.solve_factored(a, factors, pivots, columns, transposed=transposed)
    found: Var = ops.transpose(reshaped(ops, solved, (size, *rest)), perm=order)
    return found


# -- searching ---------------------------------------------------------------------------------
def searchsorted_rule(row: OpDef) -> Rule:
    for_each = looped(row)

    def batch(given: Operands, *, side: str) -> Var:
        found: Var = (
            for_each(given, side=side) if given.has(0) else given.ops.searchsorted(*given.values, side=side)
        )
        return found

    return batch


def interp_rule(search: Rule) -> Rule:
    """As NumPy's loop computes it where the points are not the same for the whole batch, in differentiable
    operations."""

    def batch(given: Operands) -> Var:
        ops = given.ops
        if not given.has(1) and not given.has(2):
            found: Var = ops.interp(*given.values)
            return found
        x, xp, fp = given.all()
        points = Operands(ops, given.size, (given.values[1], x), (given.types[1], given.types[0]))
        place = reshaped(ops, search(points, side="right"), (given.size, given.types[0].size))
        shape, x = x.shape, reshaped(ops, x, place.shape)
        last = xp.shape[1] - 1
        place = ops.subtract(place, scalar(ops, place, 1))
        end = scalar(ops, place, last)
        low = ops.minimum(ops.maximum(place, scalar(ops, place, 0)), scalar(ops, place, sym_max(last - 1, 0)))
        high = ops.minimum(ops.add(low, scalar(ops, low, 1)), end)
        x0, x1, f0, f1 = (ops.take_along_axis(p, i, axis=1) for p in (xp, fp) for i in (low, high))
        width = ops.subtract(x1, x0)
        # beyond the ends it is not used, and a derivative must not be lost in 0/0
        width = ops.where(ops.equal(width, zeros(ops, width)), scalar(ops, width, 1.0), width)
        slope = ops.divide(ops.subtract(f1, f0), width)
        inside = ops.add(ops.multiply(slope, ops.subtract(x, x0)), f0)
        from_above = ops.add(ops.multiply(slope, ops.subtract(x, x1)), f1)
        inside = ops.where(ops.not_equal(inside, inside), from_above, inside)
        level = ops.logical_and(ops.not_equal(inside, inside), ops.equal(f0, f1))
        before = ops.less(place, scalar(ops, place, 0))
        at_low = ops.logical_or(ops.logical_or(level, before), ops.equal(x, x0))
        inside = ops.where(ops.greater_equal(place, end), f1, ops.where(at_low, f0, inside))
        return reshaped(ops, ops.where(ops.not_equal(x, x), x, inside), shape)

    return batch


# -- convolutions ------------------------------------------------------------------------------
def convolution_rule(name: str) -> Rule:
    """The batch joins the stack of images, the kernels, or, where both have it, the groups."""
    is_transposed = name == "convolution_transpose"

    def batch(given: Operands, *, groups: int, channels_last: bool = False, **params: Any) -> Var:
        ops, size = given.ops, given.size
        x, w = given.values
        params["channels_last"] = channels_last
        count, *sizes = given.types[0].shape
        op = getattr(ops, name)
        if not given.has(1):
            images = reshaped(ops, x, (size * count, *sizes))
            made = op(images, w, groups=groups, **params)
            return reshaped(ops, made, (size, count, *made.shape[1:]))
        return _grouped(given, op, groups, params, is_transposed)

    return batch


def _grouped(given: Operands, op: Rule, groups: int, params: dict[str, Any], is_transposed: bool) -> Var:
    """With kernels of the batch side by side: ``groups`` and the batch become dimensions of the channels."""
    ops, size = given.ops, given.size
    x, w = given.values
    count, channels, *sizes = given.types[0].shape
    first, second, *kernel = given.types[1].shape
    rest = range(4, 4 + len(kernel))
    if given.has(0):
        # every element of the batch is so many groups more, whose number is a constant
        known = int(size)
        x = reshaped(ops, ops.transpose(x, perm=(1, 0, *range(2, x.ndim))), (count, known * channels, *sizes))
        made = op(x, reshaped(ops, w, (known * first, second, *kernel)), groups=known * groups, **params)
        split = reshaped(ops, made, (count, size, made.shape[1] // known, *made.shape[2:]))
        return to_front(ops, split, 1)
    if is_transposed:
        # (batch, in, out) as (in, batch * out)
        w = ops.transpose(w, perm=(1, 0, 2, *range(3, w.ndim)))
        w = reshaped(ops, w, (first, size * second, *kernel))
        each = second
    else:
        # (batch, groups, out, in) as (groups * batch * out, in)
        each = first // groups
        w = ops.transpose(reshaped(ops, w, (size, groups, each, second, *kernel)), perm=(1, 0, 2, 3, *rest))
        w = reshaped(ops, w, (groups * size * each, second, *kernel))
    made = op(x, w, groups=groups, **params)
    # channels come out as (groups, batch, out)
    split = reshaped(ops, made, (count, groups, size, each, *made.shape[2:]))
    turned = ops.transpose(split, perm=(2, 0, 1, 3, *range(4, split.ndim)))
    return reshaped(ops, turned, (size, count, groups * each, *made.shape[2:]))


def window_rule(row: OpDef) -> Rule:
    """Of ``convolve`` and ``correlate``: as a convolution of images with one row and one channel, where there
    is one for the dtype."""
    for_each = looped(row)
    of_images = convolution_rule("convolution")
    is_convolve = row.name == "convolve"

    def batch(given: Operands, *, mode: str) -> Var:
        a, v = given.types
        if a.dtype not in CONVOLVED or symbols_in((a.shape, v.shape)):
            found: Var = for_each(given, mode=mode)
            return found
        ops = given.ops
        order = (0, 1) if a.shape[0] >= v.shape[0] else (1, 0)
        values = [given.values[k] for k in order]
        types = [given.types[k] for k in order]
        size = types[1].shape[0]
        if is_convolve:
            values[1] = flipped(ops, values[1], values[1].ndim - 1)
        left = {"valid": 0, "same": size // 2, "full": size - 1}[mode]
        right = size - 1 - left if mode == "same" else left
        images = [reshaped(ops, value, (*value.shape[:-1], 1, 1, value.shape[-1])) for value in values]
        shapes = tuple(array_type(t.dtype, (1, 1, *t.shape), t.device) for t in types)
        params = {"stride": (1,), "padding": ((left, right),), "dilation": (1,), "groups": 1}
        made = of_images(Operands(ops, given.size, tuple(images), shapes), **params)
        made = reshaped(ops, made, (given.size, made.shape[-1]))
        # NumPy turns the result round where it swapped the operands
        return flipped(ops, made, 1) if order == (1, 0) and not is_convolve else made

    return batch
