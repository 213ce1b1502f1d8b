"""Rules of kinds whose rows differ in a parameter only, of views and updates, indexing and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dtypes import int64
from ...graph.ir import ArrayType, Var
from ...graph.rewrite import with_strides
from ...symbolic.integers import same
from ..composite.kit import moved
from .operands import Operands, Rule, behind, reshaped, to_front


# -- kinds ------------------------------------------------------------------------------------
def elementwise(name: str) -> Rule:
    """Of rows that give each element of the result from those at its place, or count axes from the last."""

    def batch(given: Operands, **params: object) -> Any:
        return getattr(given.ops, name)(*given.all(), **params)

    return batch


def unchanged(name: str) -> Rule:
    """Of rows for any number of dimensions, each output of which is batched where the input of its number
    is."""

    def batch(given: Operands, **params: object) -> Any:
        return getattr(given.ops, name)(*given.values, **params)

    return batch


def along_axes(name: str) -> Rule:
    """Of rows of one array that work along the parameter ``axis`` or ``axes``."""

    def batch(given: Operands, **params: Any) -> Any:
        for key in params.keys() & {"axis", "axes"}:
            params[key] = params[key] + 1 if key == "axis" else behind(params[key])
        return getattr(given.ops, name)(*given.all(), **params)

    return batch


def contraction(name: str) -> Rule:
    """The batch is a batch dimension of the product where both have it, else a free one."""

    def batch(given: Operands, *, contract: Any, batch: Any) -> Var:
        op = getattr(given.ops, name)
        x, y = given.values
        contract = tuple(behind(c) if given.has(k) else tuple(c) for k, c in enumerate(contract))
        batch = tuple(behind(b) if given.has(k) else tuple(b) for k, b in enumerate(batch))
        if given.has(0) and given.has(1):
            made: Var = op(x, y, contract=contract, batch=((0, *batch[0]), (0, *batch[1])))
            return made
        if given.has(1) and given.types[1].ndim == len(contract[1]) + len(batch[1]):
            # what is left of y is the batch alone, which comes first the other way round
            turned = op(y, x, contract=contract[::-1], batch=batch[::-1])
            return to_front(given.ops, turned, len(batch[0]))
        place = len(batch[0]) if given.has(0) else x.ndim - len(contract[0])
        return to_front(given.ops, op(x, y, contract=contract, batch=batch), place)

    return batch


# -- views ------------------------------------------------------------------------------------
def slice_rule(given: Operands, *, starts: Any, sizes: Any, steps: Any) -> Var:
    (x,) = given.values
    return given.ops.strided_slice(x, starts=(0, *starts), sizes=(given.size, *sizes), steps=(1, *steps))  # type: ignore[no-any-return]


def transpose_rule(given: Operands, *, perm: Any) -> Var:
    found: Var = given.ops.transpose(given.values[0], perm=(0, *behind(perm)))
    return found


def reshape_rule(given: Operands, *, shape: Any) -> Var:
    return reshaped(given.ops, given.values[0], (given.size, *shape))


def broadcast_rule(given: Operands, *, shape: Any, dims: Any) -> Var:
    (x,) = given.values
    found: Var = given.ops.broadcast_in_dim(x, shape=(given.size, *shape), dims=(0, *behind(dims)))
    return found


def diagonal_rule(given: Operands, *, offset: Any, axis1: int, axis2: int) -> Var:
    (x,) = given.values
    found: Var = given.ops.diagonal(x, offset=offset, axis1=axis1 + 1, axis2=axis2 + 1)
    return found


def _laid_out(given: Operands, x: Var, type: ArrayType) -> Var:
    """``x`` with each element of the batch in memory as ``type`` says."""
    if all(same(a, b) for a, b in zip(x.type.strides[1:], type.strides)):
        return x
    return with_strides(given.ops.builder, x, (type.size, *type.strides))


def as_strided_rule(given: Operands, *, shape: Any, strides: Any, offset: Any) -> Var:
    x = _laid_out(given, given.values[0], given.types[0])
    apart = x.type.strides[0]
    found: Var = given.ops.as_strided(x, shape=(given.size, *shape), strides=(apart, *strides), offset=offset)
    return found


# -- updates ----------------------------------------------------------------------------------
def update_slice_rule(given: Operands, *, starts: Any, sizes: Any, steps: Any) -> Var:
    window = {"starts": (0, *starts), "sizes": (given.size, *sizes), "steps": (1, *steps)}
    found: Var = given.ops.update_slice(given.base(), given.batched(1), **window)
    return found


def update_diagonal_rule(given: Operands, *, offset: Any, axis1: int, axis2: int) -> Var:
    diagonal = {"offset": offset, "axis1": axis1 + 1, "axis2": axis2 + 1}
    found: Var = given.ops.update_diagonal(given.base(), given.batched(1), **diagonal)
    return found


def update_strided_rule(given: Operands, *, shape: Any, strides: Any, offset: Any) -> Var:
    base = _laid_out(given, given.base(), given.types[0])
    value = given.batched(1)
    params = {"shape": (given.size, *shape), "strides": (base.type.strides[0], *strides), "offset": offset}
    found: Var = given.ops.update_strided(base, value, **params)
    return found


# -- indexing ---------------------------------------------------------------------------------
def _batch_numbers(given: Operands, like: Var) -> Var:
    """For each place of batched index arrays the number of its element of the batch."""
    found: Var = given.ops.iota(shape=like.shape, axis=0, dtype=int64, device=like.type.device)
    return found


def _index_arrays(given: Operands, first: int) -> tuple[list[Var], bool]:
    """The index arrays, of one shape, and whether they are batched."""
    numbers = range(first, len(given.values))
    if any(given.has(k) for k in numbers):
        return [given.batched(k) for k in numbers], True
    return [given.values[k] for k in numbers], False


def index_rule(given: Operands, *, dims: Any, position: int) -> Var:
    ops, x = given.ops, given.values[0]
    index, is_batched = _index_arrays(given, 1)
    if not is_batched:
        found: Var = ops.index(x, *index, dims=behind(dims), position=position + 1)
        return found
    if given.has(0):
        index, dims = [_batch_numbers(given, index[0]), *index], (0, *behind(dims))
    return to_front(ops, ops.index(x, *index, dims=dims, position=position), position)


def take_along_axis_rule(given: Operands, *, axis: int) -> Var:
    found: Var = given.ops.take_along_axis(*given.all(), axis=axis + 1)
    return found


def index_put_rule(given: Operands, *, dims: Any, position: int, combine: str) -> Var:
    """Values are put in their order within each element of the batch, as without it."""
    ops = given.ops
    base, value = given.base(), given.batched(1)
    index, is_batched = _index_arrays(given, 2)
    if is_batched:
        index, dims = [_batch_numbers(given, index[0]), *index], (0, *behind(dims))
        value = value if position == 0 else moved(ops, value, 0, position)
    else:
        dims, position = behind(dims), position + 1
    found: Var = ops.index_put(base, value, *index, dims=dims, position=position, combine=combine)
    return found


RULES: dict[str, Callable[..., Any]] = {
    "strided_slice": slice_rule,
    "transpose": transpose_rule,
    "reshape": reshape_rule,
    "broadcast_in_dim": broadcast_rule,
    "diagonal": diagonal_rule,
    "as_strided": as_strided_rule,
    "update_slice": update_slice_rule,
    "update_diagonal": update_diagonal_rule,
    "update_strided": update_strided_rule,
    "index": index_rule,
    "take_along_axis": take_along_axis_rule,
    "index_put": index_put_rule,
}
