"""``vmap``: a function of one element of a batch, run for the whole batch at once.

In captured code the function runs on one element that stands for all (``frontends/batching.py``), and what it
gives is asked for for all of them. Where the same code runs as plain Python (under a debugger, or where the
graph raised), it is the loop that ``vmap`` means.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..capture.environment.regions import for_batches, is_compiling
from ..errors import NotBatchableError
from ..frontends.batching import batch, element
from .api import derived, name_of
from .traced import described
from .trees import mapped_along

Function = Callable[..., Any]


def vmap(f: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
    """A function that gives ``np.stack([f(x[0]), f(x[1]), ...])`` for arrays ``x`` with one more dimension,
    computed for all elements of the batch at once.

    ``in_axes``: which axis of an argument is the batch; ``None``: the argument is the same for all elements;
    a tuple: for each positional argument. An argument may be a tree of arrays (see :func:`grad`); an axis is
    that of all its arrays, and a tree of axes says it for each. Arguments given by keyword are mapped over
    axis 0. ``out_axes``: where the batch is in each array of the result, which is an array, a number or a
    tree of such; ``None``: the result is the same for all elements. Axes may be negative.

    ``f`` is called with arrays, or with NumPy's scalars where an argument has one dimension. It runs once for
    the whole batch, so it must not depend on which element it works on in any way but by its arrays: it may
    write in place into arrays that it makes itself, branch on what is the same for all elements, and call
    ``grad``, ``vmap`` and their like. Raises :class:`~dyncomp.errors.NotBatchableError` with the program's
    line where it branches on the batch, makes sizes or Python values of it, draws random numbers, writes into
    what it is mapped over, or stores it outside; ``ValueError`` for axes that arguments do not have and sizes
    that differ; ``TypeError`` for results that are no arrays. Floating-point warnings are not given.
    """
    _check_axes(in_axes, "in_axes", (tuple, list))
    _check_axes(out_axes, "out_axes", (tuple, list, dict))
    made = mapped_over(f, in_axes, out_axes, name_of(f))
    return derived(f, ("vmap", repr(in_axes), repr(out_axes)), made, NotBatchableError)


def _check_axes(axes: Any, what: str, containers: tuple[type, ...]) -> None:
    if axes is None or isinstance(axes, (int, *containers)):
        return
    raise TypeError(f"{what} is an integer, None, or a tree of these, not {axes!r}")


class Batch:
    """The arrays of a call that have the batch in front, and its size."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.size = -1  # until the first one is known
        self.elements: list[Any] = []

    def whole(self, leaf: Any, axis: int, what: str) -> Any:
        """An array with the batch in front."""
        if not isinstance(leaf, np.ndarray):
            raise ValueError(f"vmap: {what} of {self.name} is {described(leaf)}: it has no axis {axis}")
        if not -leaf.ndim <= axis < leaf.ndim:
            raise ValueError(f"vmap: {what} of {self.name} has {leaf.ndim} dimensions: it has no axis {axis}")
        size = leaf.shape[axis]
        if self.size == -1:
            self.size = size
        elif self.size != size:
            raise ValueError(
                f"vmap: batches of sizes {self.size} and {size} among the arguments of {self.name}"
            )
        return leaf if axis in (0, -leaf.ndim) else np.moveaxis(leaf, axis, 0)

    def opened(self, tree: Any, axes: Any, what: str, take: Function) -> Any:
        """The tree with ``take(array)`` for each array that has an axis."""

        def open(leaf: Any, axis: Any) -> Any:
            if axis is None or leaf is None:
                return leaf
            return take(self.whole(leaf, axis, what))

        return mapped_along(open, tree, axes)

    def arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], in_axes: Any, take: Function
    ) -> tuple[list[Any], dict[str, Any]]:
        if isinstance(in_axes, (tuple, list)):
            if len(in_axes) != len(args):
                raise ValueError(
                    f"vmap: in_axes has {len(in_axes)} parts for {len(args)} arguments of {self.name}"
                )
            axes = list(in_axes)
        else:
            axes = [in_axes] * len(args)
        given = [
            self.opened(arg, axis, f"argument {k}", take) for k, (arg, axis) in enumerate(zip(args, axes))
        ]
        named = {key: self.opened(arg, 0, f"argument {key!r}", take) for key, arg in kwargs.items()}
        if self.size == -1:
            raise ValueError(f"vmap needs an axis of at least one array among the arguments of {self.name}")
        return given, named

    def element(self, whole: Any) -> Any:
        made = element(whole)
        self.elements.append(made)
        return made

    def all(self, values: Sequence[Any]) -> Sequence[Any]:
        """The values for the whole batch."""
        return batch(values, self.elements, self.size) if values else ()


def is_result(leaf: Any) -> bool:
    return isinstance(leaf, (np.ndarray, np.generic, bool, int, float, complex))


def placed(value: Any, out_axes: Any, name: str, wholes: Callable[[list[Any]], Sequence[Any]]) -> Any:
    """The tree of a result with arrays for the whole batch, which ``wholes`` gives for a list of leaves."""
    chosen: list[Any] = []

    def choose(leaf: Any, axis: Any) -> None:
        if leaf is None or axis is None:
            return
        if not is_result(leaf):
            raise TypeError(f"vmap: a result of {name} is {described(leaf)}")
        chosen.append(leaf)

    mapped_along(choose, value, out_axes)
    found = iter(wholes(chosen))

    def place(leaf: Any, axis: Any) -> Any:
        if leaf is None or axis is None:
            return leaf
        whole = next(found)
        if not -whole.ndim <= axis < whole.ndim:
            raise ValueError(
                f"vmap: out_axes has {axis} for an array of {whole.ndim} dimensions, a result of {name}"
            )
        return whole if axis in (0, -whole.ndim) else np.moveaxis(whole, 0, axis)

    return mapped_along(place, value, out_axes)


@for_batches
def mapped_over(f: Function, in_axes: Any, out_axes: Any, name: str) -> Function:
    def for_all(*args: Any, **kwargs: Any) -> Any:
        if not is_compiling():
            return one_by_one(f, in_axes, out_axes, name, args, kwargs)
        whole = Batch(name)
        given, named = whole.arguments(args, kwargs, in_axes, whole.element)
        return placed(f(*given, **named), out_axes, name, whole.all)

    return for_all


def one_by_one(
    f: Function, in_axes: Any, out_axes: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The loop. Of an empty batch the function is called once, for the shapes of its results."""
    whole = Batch(name)
    whole.arguments(args, kwargs, in_axes, lambda array: array)
    size = whole.size
    found: list[Any] = []
    parts: list[list[Any]] = []

    def note(values: list[Any]) -> list[Any]:
        parts.append(values)
        return [np.asarray(value)[None] for value in values]

    for i in range(max(size, 1)):
        take = functools.partial(_taken, i if size else None)
        given, named = whole.arguments(args, kwargs, in_axes, take)
        found.append(f(*given, **named))
        placed(found[i], out_axes, name, note)
    if any(len(values) != len(parts[0]) for values in parts):
        raise ValueError(f"vmap: results of {name} of different forms")
    return placed(found[0], out_axes, name, lambda values: [np.stack(p)[:size] for p in zip(*parts)])


def _taken(number: int | None, array: Any) -> Any:
    return np.zeros(array.shape[1:], array.dtype)[()] if number is None else array[number]
