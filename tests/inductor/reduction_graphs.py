"""Random graphs of reductions over different axes of one grid that share values: statistics of the rows and
of the columns of one array, broadcast back, normalised, summed up again. Any size, type and layout.

``source_of`` is the C++ that would be built; ``syntax_errors`` has g++ read many of these at once.
"""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dyncomp import dtypes
from dyncomp.build.toolchain import FLAGS
from dyncomp.dtypes import DType
from dyncomp.graph.ir import ArrayType, Graph, GraphBuilder, GraphOutput, Var
from dyncomp.inductor.compile import Maker, _Timer
from dyncomp.inductor.fusion import fuse
from dyncomp.inductor.lowering import state as lower_state
from dyncomp.inductor.render.cpp.unit import render_module
from dyncomp.inductor.render.knobs import Knobs
from dyncomp.inductor.tuning.forms import DEFAULT
from dyncomp.options import Options
from dyncomp.pipeline import run_passes
from dyncomp.prims.table import TABLE
from dyncomp.symbolic.integers import Dim

FLOATS = (dtypes.float64, dtypes.float64, dtypes.float32, dtypes.float32, dtypes.float16)
OTHERS = (dtypes.int64, dtypes.int32, dtypes.uint8, dtypes.bool_, dtypes.complex128, dtypes.bfloat16)
# Sizes at which loops are written differently: unrolled, in tiles, in blocks, in lanes with a rest.
SMALL = (1, 2, 3, 5, 8, 16, 17, 24, 40, 0)
LARGE = (32, 64, 100, 300, 777, 2000, 4096, 70_000)
REAL = ("sum", "sum", "sum", "prod", "max", "max", "min", "argmax", "argmin")
STEPS = ("reduce", "reduce", "moments", "normalise", "unary", "binary", "binary", "scan", "where", "cast")
UNARY = ("negative", "abs", "square", "exp", "sqrt", "sin", "tanh", "log1p", "floor", "sign", "isnan")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "divide", "less", "arctan2", "power")


@dataclass(frozen=True)
class Value:
    """A value over some axes of the grid, in their order."""

    var: Var
    axes: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        return self.var.dtype


@dataclass(frozen=True)
class Input:
    """An argument: over which axes, of which type, and the order of its axes in memory."""

    axes: tuple[int, ...]
    dtype: DType
    order: tuple[int, ...]

    def make(self, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray[Any, Any]:
        shape = [sizes[self.axes[k]] for k in self.order]
        whole = np.asarray(
            rng.integers(1, 9, shape) / 8 if self.dtype.is_float else rng.integers(0, 3, shape)
        )
        return whole.astype(self.dtype.numpy).transpose(np.argsort(self.order))


@dataclass
class Program:
    """``sizes``: of the grid; ``symbolic``: these are symbols in the graph."""

    graph: Graph
    inputs: list[Input]
    sizes: tuple[int, ...]
    symbolic: bool


class _Writer:
    def __init__(self, rng: random.Random, most_points: int) -> None:
        self.rng = rng
        self.builder = GraphBuilder(TABLE)
        self.sizes = self._grid(most_points)
        self.symbolic = rng.random() < 0.25 and 0 not in self.sizes
        self.dims: list[Dim | None] = [None if self.symbolic and n > 1 else n for n in self.sizes]
        self.inputs: list[Input] = []
        self.pool: list[Value] = []

    def _grid(self, most_points: int) -> tuple[int, ...]:
        rng = self.rng
        while True:
            count = rng.choice([1, 2, 2, 2, 2, 3, 3, 4])
            most = -1 if rng.random() < 0.8 else None
            sizes = [rng.choice(SMALL[:most]) for _ in range(count)]
            for k in range(count):
                if rng.random() < 0.5:
                    sizes[k] = rng.choice(LARGE)
            if int(np.prod(sizes)) <= most_points:
                return tuple(sizes)

    def write(self) -> Program:
        everything = tuple(range(len(self.sizes)))
        self.add_input(everything)
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            self.add_input(tuple(a for a in everything if self.rng.random() < 0.6))
        for _ in range(self.rng.choice([4, 8, 8, 12, 16])):
            getattr(self, self.rng.choice(STEPS))()
        for _ in range(self.rng.randint(1, 3)):
            self.reduce()
        chosen = [self.pick() for _ in range(self.rng.randint(1, 5))] + self.pool[-2:]
        outputs = tuple(GraphOutput(v.var) for v in dict.fromkeys(chosen))
        graph = run_passes(self.builder.finish(outputs), TABLE, Options())
        return Program(graph, self.inputs, self.sizes, self.symbolic)

    def add_input(self, axes: tuple[int, ...]) -> None:
        dtype = self.rng.choice(FLOATS if self.rng.random() < 0.75 else OTHERS)
        order = tuple(range(len(axes)))
        if self.rng.random() < 0.25:
            order = tuple(self.rng.sample(order, len(order)))
        number = len(self.inputs)
        shape: list[Dim] = []
        for place, axis in enumerate(axes):
            if self.dims[axis] is None:
                symbol = self.builder.env.new_symbol(self.sizes[axis], low=2)
                self.builder.bind_symbol(symbol, "dim", number, place)
                self.dims[axis] = symbol
            size = self.dims[axis]
            assert size is not None
            shape.append(size)
        strides: list[Dim] = [1] * len(axes)
        step: Dim = 1
        for place in reversed(order):
            strides[place] = step
            step = step * shape[place] if not isinstance(shape[place], int) or shape[place] else step
        var = self.builder.add_input(ArrayType(dtype, tuple(shape), tuple(strides)))
        self.inputs.append(Input(axes, dtype, order))
        self.pool.append(Value(var, axes))

    # -- values -------------------------------------------------------------------------------
    def pick(self) -> Value:
        if self.rng.random() < 0.3:
            return self.pool[0]
        return self.pool[-1 - min(int(self.rng.expovariate(0.25)), len(self.pool) - 1)]

    def emit(self, op: str, over: tuple[int, ...], *args: Var, **params: Any) -> Value:
        value = Value(self.builder.emit(op, *args, **params), over)
        self.pool.append(value)
        return value

    def back(self, value: Value, axes: tuple[int, ...]) -> Var:
        """A value broadcast to more axes."""
        if value.axes == axes:
            return value.var
        shape = tuple(self.dims[a] for a in axes)
        var: Var = self.builder.emit(
            "broadcast_in_dim", value.var, shape=shape, dims=tuple(axes.index(a) for a in value.axes)
        )
        return var

    def as_type(self, value: Value, dtype: DType) -> Value:
        if value.dtype is dtype:
            return value
        return Value(self.builder.emit("convert", value.var, dtype=dtype), value.axes)

    def floating(self, value: Value) -> Value:
        return value if value.dtype.is_float else self.as_type(value, dtypes.float64)

    # -- steps --------------------------------------------------------------------------------
    def reduce(self) -> None:
        x = self.pick()
        axes = [k for k, a in enumerate(x.axes) if self.rng.random() < 0.5 or len(x.axes) == 1]
        if axes:
            self.reduced(x, axes, self.rng.choice(("any", "all") if x.dtype.is_bool else REAL))

    def reduced(self, x: Value, axes: list[int], how: str) -> Value | None:
        empty = any(self.sizes[x.axes[k]] == 0 for k in axes)
        if (empty and how not in ("sum", "prod", "any", "all")) or (x.dtype.is_complex and "arg" in how):
            return None
        kept = tuple(a for k, a in enumerate(x.axes) if k not in axes)
        if how.startswith("arg"):
            kept = tuple(a for k, a in enumerate(x.axes) if k != axes[0])
            return self.emit(how, kept, x.var, axis=axes[0])
        return self.emit(f"reduce_{how}", kept, x.var, axes=tuple(axes))

    def moments(self) -> None:
        """Centred powers of a value along an axis, summed up, as in skewness and kurtosis."""
        x = self.floating(self.pick())
        if not x.axes:
            return
        axes = [k for k in range(len(x.axes)) if self.rng.random() < 0.4] or [0]
        mean = self.reduced(x, axes, "sum")
        assert mean is not None
        centred = self.emit("subtract", x.axes, x.var, self.back(mean, x.axes))
        power = centred
        for _ in range(self.rng.randint(1, 3)):
            power = self.emit("multiply", x.axes, power.var, centred.var)
            self.reduced(power, axes if self.rng.random() < 0.8 else [0], "sum")

    def normalise(self) -> None:
        """A softmax, or a part of one."""
        x = self.floating(self.pick())
        if not x.axes:
            return
        axis = [self.rng.randrange(len(x.axes))]
        most = self.reduced(x, axis, "max")
        if most is not None:
            x = self.emit("subtract", x.axes, x.var, self.back(most, x.axes))
        powers = self.emit("exp", x.axes, x.var)
        total = self.reduced(powers, axis, "sum")
        assert total is not None
        self.emit("divide", x.axes, powers.var, self.back(total, x.axes))

    def unary(self) -> None:
        op = self.rng.choice(UNARY)
        x = self.pick()
        if x.dtype.is_bool or (x.dtype.is_complex and op in ("floor", "sign", "log1p", "isnan")):
            return
        self.emit(op, x.axes, (x if op in ("negative", "abs", "square") else self.floating(x)).var)

    def binary(self) -> None:
        x, y = self.pick(), self.pick()
        op = self.rng.choice(BINARY)
        plain = op in ("add", "multiply", "maximum", "minimum")
        if x.dtype is not y.dtype or not (plain or x.dtype.is_float):
            x, y = (self.as_type(self.floating(v), dtypes.float64) for v in (x, y))
        axes = tuple(sorted({*x.axes, *y.axes}))
        self.emit(op, axes, self.back(x, axes), self.back(y, axes))

    def where(self) -> None:
        x, y = self.floating(self.pick()), self.pick()
        if y.dtype.is_complex:
            return
        axes = tuple(sorted({*x.axes, *y.axes}))
        y = self.as_type(y, x.dtype)
        a, b = self.back(x, axes), self.back(y, axes)
        condition = self.emit("less", axes, a, b)
        self.emit("where", axes, condition.var, a, b)

    def scan(self) -> None:
        x = self.pick()
        if x.axes and not x.dtype.is_bool and self.rng.random() < 0.5:
            how = self.rng.choice(("cumsum", "cumprod", "cumsum", "cummax"))
            if not x.dtype.is_complex or how != "cummax":
                self.emit(how, x.axes, x.var, axis=self.rng.randrange(len(x.axes)))

    def cast(self) -> None:
        x = self.pick()
        if not x.dtype.is_complex:
            to = self.rng.choice(FLOATS)
            self.pool.append(self.as_type(x, to))


def make_program(seed: int, most_points: int = 1 << 40) -> Program:
    return _Writer(random.Random(seed), most_points).write()


@contextlib.contextmanager
def _other_limits(rng: random.Random) -> Iterator[None]:
    """Kernels cut as they are in long programs, at times."""
    places = ((fuse, "SMALL_POINTS", 0), (fuse, "MAX_WEIGHT", 8), (lower_state, "MAX_INLINE_WEIGHT", 5))
    before = [getattr(module, name) for module, name, _ in places]
    if rng.random() < 0.2:
        for module, name, value in places:
            setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(places, before):
            setattr(module, name, value)


def source_of(seed: int, program: Program) -> str:
    """The C++ of a program, with loops written in one way or another."""
    rng = random.Random(seed)
    knobs = Knobs(
        rng.choice([None, None, True, False]),
        None,
        0,
        rng.choice([0, 0, 8]),
        rng.choice([0, 0, 2, 4]),
        rng.choice([0, 0, 64]),
    )
    with _other_limits(rng):
        maker = Maker(program.graph, Options(), None, _Timer())
        _, _, planned = maker._cut(DEFAULT)
    if not planned.module.segments:
        return ""
    serial_ns, calls = rng.choice([0.0, 8000.0, 1e15]), rng.random() < 0.7
    return render_module(planned.module, serial_ns, calls, knobs if rng.random() < 0.4 else Knobs())


def _as_part(number: int, source: str) -> str:
    """A translation unit as a namespace of a larger one."""
    text = re.sub(r'extern "C" ', "", source)
    macros = re.findall(r"^#define (\w+)", text, re.M)
    ends = "".join(f"#undef {name}\n" for name in dict.fromkeys(macros))
    return f"namespace unit{number} {{\n{text}\n}}\n{ends}"


def syntax_errors(sources: dict[int, str], compiler: str = "g++") -> dict[int, str]:
    """What the compiler has to say of each source that it rejects, by number."""
    with tempfile.TemporaryDirectory(prefix="dyncomp-syntax-") as folder:
        path = Path(folder) / "many.cpp"
        path.write_text("".join(_as_part(n, text) for n, text in sources.items() if text))
        flags = [f for f in FLAGS if not f.startswith(("-O", "-shared", "-nostdlib", "-pipe"))]
        command = [compiler, *flags, "-fsyntax-only", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return {}
    if len(sources) == 1:
        return dict.fromkeys(sources, done.stderr[:2000])
    numbers = list(sources)
    half = len(numbers) // 2
    parts = ({n: sources[n] for n in numbers[:half]}, {n: sources[n] for n in numbers[half:]})
    return {**syntax_errors(parts[0], compiler), **syntax_errors(parts[1], compiler)}
