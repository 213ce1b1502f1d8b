"""``jacobian`` and ``hessian``: products with all unit vectors, as a batch in one graph (several runs of it
where that would be large)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..capture.environment.regions import captured_whole, is_compiling
from ..frontends.batching import batch, element
from ..frontends.derivatives import columns as columns_of
from ..frontends.derivatives import gradient, is_variable, rows, tangent
from .api import Loops, argument_numbers, derived, name_of
from .traced import Variables, check_real_scalar, described, with_variables
from .trees import leaves, mapped

Function = Callable[..., Any]

# Elements of the unit vectors of one run.
LARGEST = 1 << 24
_LOOPS = Loops(None, again=True)


@captured_whole
def jacobian(f: Function, argnums: int | Sequence[int] = 0, mode: str = "auto") -> Function:
    """The derivatives of all elements of ``f``'s result, an array, by all elements of an argument (a tuple of
    such for several ``argnums``): an array of the result's shape followed by the argument's; of an argument
    that is a tree, a tree of such.

    ``mode``: ``"forward"`` (a product with the Jacobian for each element of the arguments), ``"reverse"``
    (for each of the result), or ``"auto"``: whichever are fewer. The products are computed together. Real
    numbers only. Raises as :func:`grad` does.
    """
    if mode not in ("auto", "forward", "reverse"):
        raise ValueError(f"mode is 'auto', 'forward' or 'reverse', not {mode!r}")
    numbers, single = argument_numbers(argnums), isinstance(argnums, int)
    part = derived(
        f, ("jacobian", numbers, mode), part_of_jacobian(f, numbers, mode, name_of(f)), loops=_LOOPS
    )

    def found(*args: Any, **kwargs: Any) -> Any:
        made = joined(part, args, kwargs)
        rest = iter(apart(made, [leaf for k in numbers for leaf in leaves(args[k]) if is_variable(leaf)]))
        trees = [mapped(lambda leaf: next(rest) if is_variable(leaf) else None, args[k]) for k in numbers]
        return trees[0] if single else tuple(trees)

    return functools.wraps(f, updated=())(found)


@captured_whole
def hessian(f: Function, argnum: int = 0) -> Function:
    """The second derivatives of ``f``, a function with a real scalar result, by one argument, an array: an
    array of its shape twice. Raises as :func:`grad` does."""
    numbers = argument_numbers(argnum)
    part = derived(f, ("hessian", numbers), part_of_hessian(f, numbers, name_of(f)), loops=_LOOPS)

    def found(*args: Any, **kwargs: Any) -> Any:
        (made,) = apart(joined(part, args, kwargs), [args[numbers[0]]])
        return made

    return functools.wraps(f, updated=())(found)


def part_of_jacobian(f: Function, numbers: tuple[int, ...], mode: str, name: str) -> Function:
    def part(start: int, *args: Any, **kwargs: Any) -> Any:
        variables = Variables()
        result = f(*with_variables(variables, numbers, args, name), **kwargs)
        check_real(result, variables.all, name)
        columns = sum([v.size for v in variables.all])
        if mode == "forward" or (mode == "auto" and columns < np.size(result)):
            return columns, np.shape(result), True, forward(result, variables.all, start, columns)
        return np.size(result), np.shape(result), False, reverse(result, variables.all, start, columns)

    return part


def part_of_hessian(f: Function, numbers: tuple[int, ...], name: str) -> Function:
    def part(start: int, *args: Any, **kwargs: Any) -> Any:
        variables = Variables()
        result = f(*with_variables(variables, numbers, args, name), **kwargs)
        check_real_scalar(result, name)
        if len(variables.all) != 1 or variables.all[0].dtype.kind != "f":
            raise TypeError(f"hessian is by one real array: argument {numbers[0]} of {name} is no such")
        (first,) = gradient((result,), (1.0,), variables.all)
        return first.size, first.shape, False, reverse(first, variables.all, start, first.size)

    return part


def units(start: int, count: int, total: int, dtype: Any) -> Any:
    """Unit vectors from number ``start`` on (zeros behind the last one), one in each row."""
    return (np.arange(start, start + count)[:, None] == np.arange(total)).astype(dtype)


def reverse(result: Any, variables: Sequence[Any], start: int, columns: int) -> list[Any]:
    """For each variable the products of unit vectors of the result, in the first axis."""
    if not is_compiling():
        return rows(result, variables)
    size = np.size(result)
    count = min(size, max(LARGEST // max(size, columns, 1), 1))
    dtype = result.dtype if isinstance(result, (np.ndarray, np.generic)) else np.float64
    one = element(units(start, count, size, dtype).reshape((count, *np.shape(result))))
    found = gradient((result,), (one,), variables)
    return list(batch(found, (one,), count))


def forward(result: Any, variables: Sequence[Any], start: int, columns: int) -> list[Any]:
    """The products with unit vectors of the variables, in the last axis."""
    if not is_compiling():
        return [columns_of(result, variables)]
    count = min(columns, max(LARGEST // max(np.size(result), columns, 1), 1))
    each = []
    first = 0
    for v in variables:
        some = units(start, count, columns, v.dtype)[:, first : first + v.size]
        each.append(element(some.reshape((count, *v.shape))))
        first += v.size
    (found,) = batch(tangent((result,), each, variables), each, count)
    return [np.ascontiguousarray(np.moveaxis(found, 0, -1))]


def check_real(result: Any, variables: Sequence[Any], name: str) -> None:
    is_array = isinstance(result, (np.ndarray, np.generic))
    is_real = result.dtype.kind == "f" if is_array else isinstance(result, float)
    if not is_real or any(v.dtype.kind != "f" for v in variables):
        raise TypeError(
            f"jacobian needs a function of real arrays with one as its result: {name} gives "
            f"{described(result)}"
        )


def joined(part: Function, args: Any, kwargs: Any) -> tuple[Any, bool, list[Any]]:
    """The shape of the result, whether products are in the last axis, and all of them."""
    total, shape, is_last, found = part(0, *args, **kwargs)
    axis = -1 if is_last else 0
    count = found[0].shape[axis]
    if count < total:
        parts = [found]
        for start in range(count, total, count):
            parts.append(part(start, *args, **kwargs)[3])
        found = [np.concatenate(pieces, axis=axis) for pieces in zip(*parts)]
        found = [whole[..., :total] if is_last else whole[:total] for whole in found]
    return shape, is_last, found


def apart(made: tuple[Any, bool, list[Any]], variables: Sequence[Any]) -> list[Any]:
    """The derivatives by each variable."""
    shape, is_last, found = made
    if not is_last:
        return [whole.reshape(shape + np.shape(v)) for whole, v in zip(found, variables)]
    each = []
    first = 0
    for v in variables:
        columns = found[0][..., first : first + np.size(v)]
        each.append(columns.reshape(shape + np.shape(v)))
        first += np.size(v)
    return each
