"""What a batching rule is given, and what rules share.

A *batched* value has the batch as its axis 0: ``x[i]`` is the value that the node has for element ``i`` of
the batch. A rule gives the outputs of a node of which at least one input is batched; those that are the same
for the whole batch may be left so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import dataclass
from ...graph.ir import ArrayType, Ops, Var
from ...graph.rewrite import emit_reshape
from ...symbolic.integers import Dim
from ..composite.kit import moved

Rule = Callable[..., Any]


@dataclass(frozen=True)
class Operands:
    """The inputs of a node: ``values``, batched or not, and ``types``, those for one element of the batch."""

    ops: Ops
    size: Dim
    values: tuple[Var, ...]
    types: tuple[ArrayType, ...]

    def has(self, number: int) -> bool:
        """Whether an input is batched."""
        return self.values[number].ndim > self.types[number].ndim

    def batched(self, number: int) -> Var:
        """An input, repeated along the batch where it is the same for all of it."""
        value = self.values[number]
        return value if self.has(number) else repeated(self.ops, value, self.size)

    def base(self) -> Var:
        """The first input, batched, whose layout the result takes on: in C order where it is repeated."""
        return self.values[0] if self.has(0) else self.ops.contiguous(self.batched(0))

    def all(self) -> list[Var]:
        """All inputs, batched."""
        return [self.batched(k) for k in range(len(self.values))]


def repeated(ops: Ops, x: Var, size: Dim) -> Var:
    """``x`` for each element of a batch: a view."""
    found: Var = ops.broadcast_in_dim(x, shape=(size, *x.shape), dims=tuple(range(1, x.ndim + 1)))
    return found


def reshaped(ops: Ops, x: Var, shape: Sequence[Dim]) -> Var:
    """``x`` in another shape, in C order: a copy where no view has it."""
    return emit_reshape(ops.builder, x, tuple(shape))


def to_front(ops: Ops, x: Var, axis: int) -> Var:
    """The batch moved from ``axis`` to the front."""
    return x if axis == 0 else moved(ops, x, axis, 0)


def behind(axes: Sequence[int]) -> tuple[int, ...]:
    """Axes of an element of the batch, as axes of the batched value."""
    return tuple(axis + 1 for axis in axes)
