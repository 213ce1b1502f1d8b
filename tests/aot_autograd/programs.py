"""Random captured graphs: views, in-place writes and pointwise ops on one or two inputs.

Drawn through :class:`Choices`: by hypothesis, which makes a failing program small, or by a seeded
generator, which makes long programs quickly.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies as st

from dyncomp import dtypes
from dyncomp.graph.ir import ArrayType, Graph, GraphBuilder, GraphOutput, Var, same_shape
from dyncomp.graph.text import print_graph
from dyncomp.prims.table import TABLE
from dyncomp.symbolic.integers import Dim, hint

UNARY = ("negative", "abs", "square")
BINARY = ("add", "subtract", "multiply", "maximum")


class Choices(Protocol):
    def integer(self, low: int, high: int) -> int: ...

    def pick(self, values: Sequence[Any]) -> Any: ...

    def shuffled(self, count: int) -> tuple[int, ...]: ...


class Drawn:
    """Choices that hypothesis makes."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def pick(self, values: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(values))

    def shuffled(self, count: int) -> tuple[int, ...]:
        return tuple(self.draw(st.permutations(range(count))))


class Seeded:
    """Choices from a seeded generator."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def pick(self, values: Sequence[Any]) -> Any:
        return self.random.choice(values)

    def shuffled(self, count: int) -> tuple[int, ...]:
        return tuple(self.random.sample(range(count), count))


@dataclass
class Layout:
    """An input: how it lies in its memory. ``make`` gives arrays that lie so."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    steps: tuple[int, ...]

    def make(self, seed: int) -> np.ndarray[Any, Any]:
        rng = np.random.default_rng(seed)
        whole = rng.integers(-9, 10, [self.shape[a] * abs(self.steps[a]) for a in self.order]).astype(float)
        array = whole.transpose(np.argsort(self.order))
        return array[tuple(slice(None, None, step) for step in self.steps)]

    @property
    def type(self) -> ArrayType:
        array = self.make(0)
        strides = tuple(s // 8 for s in array.strides)
        return ArrayType(dtypes.float64, self.shape, strides)


def make_layout(choices: Choices, zeros: bool = False) -> Layout:
    """``zeros``: a third of the sizes are zero."""
    shape = tuple(choices.integer(1, 4) for _ in range(choices.integer(1, 3)))
    if zeros:
        shape = tuple(choices.pick([0, n, n]) for n in shape)
    steps = tuple(choices.pick([1, 1, 1, 2, -1]) for _ in shape)
    return Layout(shape, choices.shuffled(len(shape)), steps)


@dataclass
class Program:
    graph: Graph
    layouts: list[Layout]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What hypothesis shows of a failing program."""
        printer.text(f"{self.layouts}\n{print_graph(self.graph)}")

    def inputs(self) -> list[np.ndarray[Any, Any]]:
        return [layout.make(seed) for seed, layout in enumerate(self.layouts)]


class Writer:
    """Draws nodes one by one."""

    def __init__(self, choices: Choices, inputs: list[Layout], symbolic: bool) -> None:
        self.choices = choices
        self.builder = GraphBuilder(TABLE)
        self.pool: list[Var] = []
        for number, layout in enumerate(inputs):
            type = self.symbolic(layout.type, number) if symbolic else layout.type
            self.pool.append(self.builder.add_input(type))

    def symbolic(self, type: ArrayType, number: int) -> ArrayType:
        """``type`` with symbols for sizes and for strides other than 1."""
        builder = self.builder

        def symbol(kind: str, axis: int, value: int, low: int | None) -> Dim:
            made = builder.env.new_symbol(value, low=low)
            builder.bind_symbol(made, kind, number, axis)
            return made

        shape = tuple(symbol("dim", a, n, 2) if n > 1 else n for a, n in enumerate(type.shape))
        strides = tuple(symbol("stride", a, s, None) if s != 1 else s for a, s in enumerate(type.strides))
        return ArrayType(type.dtype, shape, strides)

    def pick(self) -> Var:
        # late values more often than early ones
        return self.pool[-1 - self.choices.integer(0, len(self.pool) - 1)]

    def add(self, op: str, *inputs: Var, **params: Any) -> Var:
        var: Var = self.builder.emit(op, *inputs, **params)
        self.pool.append(var)
        return var

    def like(self, x: Var) -> Var:
        """Some value of ``x``'s shape."""
        same = [v for v in self.pool if same_shape(v.shape, x.shape)]
        if self.choices.integer(0, 3):
            return self.choices.pick(same)
        number = float(self.choices.integer(-3, 3))
        return self.add("full", shape=x.shape, value=number, dtype=x.dtype, device=x.type.device)

    # -- one step each --------------------------------------------------------------------------
    def slice(self) -> None:
        x = self.pick()
        starts, sizes, steps = [], [], []
        for n in x.shape:
            # a run of elements, all or every other of them, forwards or backwards
            least = 0 if self.choices.integer(0, 15) == 0 else min(1, hint(n))
            drop = self.choices.integer(0, hint(n) - least)
            low = self.choices.integer(0, drop)
            run = n - drop
            if not isinstance(run, int):
                self.builder.env.decide(-run, "<=")
            step = self.choices.pick([1, 1, -1, 2, -2])
            starts.append(low + run - 1 if step < 0 and hint(run) else low)
            sizes.append((run + 1) // 2 if abs(step) == 2 else run)
            steps.append(step)
        self.add("strided_slice", x, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))

    def transpose(self) -> None:
        x = self.pick()
        self.add("transpose", x, perm=self.choices.shuffled(x.ndim))

    def reshape(self) -> None:
        x = self.pick()
        size = x.type.size
        shape = self.choices.pick([(size,), (1, size), (size, 1), tuple(reversed(x.shape))])
        if size % 2 == 0 and self.choices.integer(0, 1):
            shape = (2, size // 2)
        try:
            self.add("reshape", x, shape=shape)
        except (ValueError, TypeError, IndexError):
            self.add("reshape", self.add("contiguous", x), shape=shape)

    def diagonal(self) -> None:
        x = self.pick()
        if x.ndim >= 2:
            self.add("diagonal", x, offset=self.choices.integer(-1, 1), axis1=0, axis2=x.ndim - 1)

    def expand(self) -> None:
        x = self.pick()
        if x.ndim < 4:
            axis = self.choices.integer(0, x.ndim)
            dims = tuple(a + (a >= axis) for a in range(x.ndim))
            shape = (*x.shape[:axis], 1, *x.shape[axis:])
            self.add("broadcast_in_dim", x, shape=shape, dims=dims)

    def broadcast(self) -> None:
        x = self.pick()
        if x.ndim < 3:
            shape = (self.choices.integer(1, 3), *x.shape)
            self.add("broadcast_in_dim", x, shape=shape, dims=tuple(range(1, x.ndim + 1)))

    def windows(self) -> None:
        """A strided window over a C-contiguous value."""
        x = self.pick()
        if x.type.size >= 3 and x.type.is_contiguous:
            n = x.type.size
            shape, strides, offset = self.choices.pick(
                [
                    ((n - 1, 2), (1, 1), 0),
                    ((n // 2, 2), (2, 1), n % 2),
                    ((2, n // 2), (1, 2), 0),
                    ((2, n // 2), (-1, -2), n - 1),
                ]
            )
            self.add("as_strided", x, shape=shape, strides=strides, offset=offset)

    def unary(self) -> None:
        self.add(self.choices.pick(UNARY), self.pick())

    def binary(self) -> None:
        x = self.pick()
        self.add(self.choices.pick(BINARY), x, self.like(x))

    def fresh(self) -> None:
        shape = tuple(self.choices.integer(1, 4) for _ in range(self.choices.integer(0, 2)))
        self.add("full", shape=shape, value=0.0, dtype=dtypes.float64, device=self.pool[0].type.device)

    def copy(self) -> None:
        self.add(self.choices.pick(["copy", "contiguous"]), self.pick())

    def write(self) -> None:
        dst = self.pick()
        self.builder.emit("copy_", dst, self.like(dst))

    def update(self) -> None:
        """``x op= y`` through a view."""
        dst = self.pick()
        value = self.add(self.choices.pick(BINARY), dst, self.like(dst))
        self.builder.emit("copy_", dst, value)


VIEWS = ("slice", "slice", "transpose", "reshape", "diagonal", "expand", "broadcast", "windows")
STEPS = (*VIEWS, "unary", "binary", "fresh", "copy", "write", "write", "update", "update")


def make_program(choices: Choices, steps: int, symbolic: bool = False, zeros: bool = False) -> Program:
    inputs = [make_layout(choices, zeros) for _ in range(choices.integer(1, 2))]
    writer = Writer(choices, inputs, symbolic)
    for _ in range(steps):
        getattr(writer, choices.pick(STEPS))()
    outputs = []
    for _ in range(choices.integer(1, 4)):
        var = writer.pick()
        kinds = ["array", "scalar", "python"] if var.ndim == 0 else ["array"]
        outputs.append(GraphOutput(var, choices.pick(kinds)))
    return Program(writer.builder.finish(tuple(outputs)), inputs)


@st.composite
def programs(draw: st.DrawFn, max_steps: int = 14) -> Program:
    choices = Drawn(draw)
    return make_program(choices, choices.integer(1, max_steps), zeros=choices.integer(0, 4) == 0)
