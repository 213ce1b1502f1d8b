"""Operations on joins (concatenations, rolls, pads, stacks) are done part by part, with plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp import dtypes
from dyncomp.graph.interp import as_callable
from dyncomp.graph.ir import Graph, GraphBuilder, GraphOutput, Var, array_type, verify
from dyncomp.inductor.fusion import partition_joins as limits
from dyncomp.inductor.fusion import partition_windows
from dyncomp.inductor.fusion.partition import partition_joins
from dyncomp.options import Options
from dyncomp.pipeline import run_passes
from dyncomp.prims.table import TABLE
from tests.aot_autograd.programs import Seeded
from tests.capture.comparing import call, differences
from tests.inductor.harness import Reference

OPTIONS = Options(debug_verify=True)
DTYPES = (dtypes.float64, dtypes.float32, dtypes.int8, dtypes.bool_)


# -- random graphs ----------------------------------------------------------------------------
class Programs:
    """Writes random graphs over a few inputs: joins of windows, views of them, and operations on both."""

    def __init__(self, seed: int) -> None:
        self.choices = Seeded(seed)
        self.builder = GraphBuilder(TABLE)
        self.dtype = self.choices.pick(DTYPES)
        shape = tuple(self.choices.integer(1, 6) for _ in range(self.choices.integer(1, 3)))
        if seed % 8 == 7:
            shape = tuple(self.choices.pick([0, n]) for n in shape)
        self.values = [self.builder.add_input(self._type(shape)) for _ in range(3)]

    def _type(self, shape: tuple[int, ...]) -> Any:
        type = array_type(self.dtype, shape)
        if self.choices.integer(0, 3) or len(shape) < 2:
            return type
        return TABLE["transpose"].meta(
            array_type(self.dtype, shape[::-1]), perm=tuple(range(len(shape)))[::-1]
        )

    def emit(self, op: str, *inputs: Var, **params: Any) -> None:
        self.values.append(self.builder.emit(op, *inputs, **params))

    def pick(self) -> Var:
        recent = self.values[-5:] if self.choices.integer(0, 2) else self.values
        return self.choices.pick(recent)

    def window(self, x: Var) -> Var:
        """Some of an array, backwards along some axes."""
        params: dict[str, list[int]] = {"starts": [], "sizes": [], "steps": []}
        for dim in x.shape:
            size = self.choices.integer(min(1, dim), dim)
            low = self.choices.integer(0, dim - size)
            back = self.choices.integer(0, 4) == 0
            params["starts"].append(low + size - 1 if back else low)
            params["sizes"].append(size)
            params["steps"].append(-1 if back else 1)
        return self.builder.emit("strided_slice", x, **{k: tuple(v) for k, v in params.items()})

    def look(self) -> None:
        self.values.append(self.window(self.pick()))

    def turn(self) -> None:
        x = self.pick()
        self.emit("transpose", x, perm=tuple(self.choices.shuffled(x.ndim)))

    def grow(self) -> None:
        x = self.pick()
        if x.ndim < 3:
            self.emit("reshape", x, shape=(*x.shape, 1))

    def concatenate(self) -> None:
        x = self.pick()
        axis = self.choices.integer(0, x.ndim - 1)
        parts = [x]
        for _ in range(self.choices.integer(1, 3)):
            size = self.choices.integer(0, x.shape[axis])
            sizes = tuple(size if k == axis else d for k, d in enumerate(x.shape))
            ones = (1,) * x.ndim
            parts.append(self.builder.emit("strided_slice", x, starts=(0,) * x.ndim, sizes=sizes, steps=ones))
        self.emit("concatenate", *parts, axis=axis)

    def stack(self) -> None:
        x = self.pick()
        if x.ndim < 3:
            axis = self.choices.integer(0, x.ndim)
            dims = tuple(k for k in range(x.ndim + 1) if k != axis)
            parts = self._alike(x)
            shape = (*x.shape[:axis], 1, *x.shape[axis:])
            raised = [self.builder.emit("broadcast_in_dim", v, shape=shape, dims=dims) for v in parts]
            self.emit("concatenate", *raised, axis=axis)

    def _alike(self, x: Var) -> list[Var]:
        return [x, *(v for v in self.values if v.shape == x.shape and v is not x)][:3]

    def roll(self) -> None:
        x = self.pick()
        axes = self.choices.shuffled(x.ndim)[: self.choices.integer(1, x.ndim)]
        self.emit("roll", x, shifts=tuple(self.choices.integer(-3, 3) for _ in axes), axes=tuple(axes))

    def pad(self) -> None:
        x = self.pick()
        widths = tuple((self.choices.integer(0, 2), self.choices.integer(0, 2)) for _ in x.shape)
        self.emit("pad", x, widths=widths, value=1)

    def assign(self) -> None:
        """Two regions of a fresh array, which may overlap."""
        x = self.pick()
        out = self.builder.emit("full", shape=x.shape, value=0, dtype=x.dtype, device=x.type.device)
        for _ in range(2):
            part = self.window(x)
            starts = tuple(self.choices.integer(0, d - n) for d, n in zip(x.shape, part.shape))
            ones = (1,) * x.ndim
            out = self.builder.emit("update_slice", out, part, starts=starts, sizes=part.shape, steps=ones)
        self.values.append(out)

    def point(self) -> None:
        x = self.pick()
        other = self.choices.pick(self._alike(x))
        self.emit(self.choices.pick(["maximum", "minimum", "maximum"]), x, other)

    def unary(self) -> None:
        x = self.pick()
        self.emit("logical_not" if x.dtype.is_bool else "negative", x)

    def reduce(self) -> None:
        x = self.pick()
        if x.ndim > 1:
            axis = self.choices.integer(0, x.ndim - 1)
            self.emit("reduce_max" if x.shape[axis] else "reduce_sum", x, axes=(axis,))

    def run(self, steps: int) -> Graph:
        kinds: list[Callable[[], None]] = [
            self.look, self.turn, self.grow, self.concatenate, self.stack, self.roll, self.pad, self.assign,
            self.point, self.point, self.unary, self.unary, self.reduce,
        ]  # fmt: skip
        for _ in range(steps):
            self.choices.pick(kinds)()
        self.point()
        self.unary()
        returned = [self.values[-1], *(self.pick() for _ in range(self.choices.integer(0, 1)))]
        graph = self.builder.finish(tuple(GraphOutput(self.builder.emit("copy", v)) for v in returned))
        return run_passes(graph, TABLE, OPTIONS)


def arguments(graph: Graph) -> list[Any]:
    rng = np.random.default_rng(len(graph.nodes))
    found = []
    for inp in graph.inputs:
        order = "C" if inp.var.type.is_contiguous else "F"
        values = rng.integers(-100, 100, inp.var.shape).astype(inp.var.dtype.numpy)
        found.append(np.array(values, order=order))
    return found


def run_both(graph: Graph, changed: Graph) -> None:
    values = arguments(graph)
    for before, after in zip(_results(graph, values), _results(changed, values), strict=True):
        np.testing.assert_array_equal(after, before)
        assert after.dtype == before.dtype


def _results(graph: Graph, values: list[Any]) -> list[Any]:
    found = as_callable(graph, TABLE)(*(v.copy(order="K") for v in values))
    return [found] if len(graph.outputs) == 1 else list(found)


@pytest.fixture
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are partitioned, too."""
    monkeypatch.setattr(limits, "LEAST_POINTS", 0)
    monkeypatch.setattr(limits, "FEW_POINTS", 0)


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("seed", range(150))
def test_random_graphs(seed: int) -> None:
    graph = Programs(seed).run(4 + seed % 10)
    changed = partition_joins(graph, TABLE)
    verify(changed, TABLE)
    run_both(graph, changed)


@pytest.mark.usefixtures("unlimited")
def test_random_graphs_are_changed() -> None:
    changed = 0
    for seed in range(150):
        graph = Programs(seed).run(4 + seed % 10)
        changed += partition_joins(graph, TABLE) is not graph
    assert changed > 30


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("seed", range(150, 210))
def test_random_kernels(seed: int) -> None:
    graph = Programs(seed).run(4 + seed % 10)
    changed = partition_joins(graph, TABLE)
    values = arguments(graph)
    wanted = _results(graph, values)
    found = Reference(changed).run(*(v.copy(order="K") for v in values))
    for before, after in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(after, before)


# -- programs ---------------------------------------------------------------------------------
def life(x):
    n = sum(np.roll(np.roll(x, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((n == 3) | ((x == 1) & (n == 2))).astype(x.dtype)


def waves(u, v):
    around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
    return 2 * u - v + 0.1 * (around - 4 * u)


def positive_join(x, y):
    return np.maximum(np.concatenate([x, y], 1), 0.0)


def turned_halves(x, c, s):
    half = x.shape[-1] // 2
    return x * c + np.concatenate([-x[..., half:], x[..., :half]], -1) * s


def halves_assigned(x, y):
    out = np.empty((x.shape[0], x.shape[1] + y.shape[1]))
    out[:, : x.shape[1]] = x
    out[:, x.shape[1] :] = y
    return out * 2 + 1


def padded_neighbours(x):
    p = np.pad(x, 1)
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x


def flipped_join(x, y):
    return np.concatenate([x, y])[::-1] + 1


def stacked_norm(x, y):
    s = np.stack([x, y])
    return s * s


def unlike_joins(x, y):
    return np.concatenate([np.sqrt(np.abs(x)), y]) + np.concatenate([y, x])


def join_and_sum(x, y):
    joined = np.concatenate([x, y], 1) * 2
    return joined, joined.max(1), joined.max(), np.stack([x, x + 1]).sum(0)


def bordered(x):
    p = np.pad(x, 2, mode="reflect")
    return p[1:-3, 2:-2] + p[3:-1, 2:-2] + np.pad(x, 1, mode="edge")[2:, 2:] + np.pad(x, 1, "wrap")[:-2, :-2]


def tall(n, m):
    return np.random.default_rng(n * m).standard_normal((n, m))


PROGRAMS = [
    (life, ((tall(20, 30) > 0).astype(np.uint8),), 0),
    (waves, (tall(20, 30), tall(30, 20).T), 0),
    (positive_join, (tall(20, 7), tall(20, 9)), 0),
    (turned_halves, (tall(6, 32), tall(1, 32), tall(2, 32)[1:]), 0),
    (halves_assigned, (tall(12, 7), tall(12, 5)), 0),
    (padded_neighbours, (tall(20, 30),), 0),
    (flipped_join, (tall(20, 7), tall(3, 7)), 0),
    (unlike_joins, (tall(20, 7), tall(5, 7)), 0),
    (join_and_sum, (tall(20, 7), tall(20, 7)), 0),
    (bordered, (tall(40, 60),), 0),
    (stacked_norm, (tall(20, 7), tall(20, 7)), 0),
]  # fmt: skip


@pytest.mark.parametrize(("program", "values", "temporaries"), PROGRAMS)
def test_programs(artifacts: list, program: Any, values: tuple[Any, ...], temporaries: int) -> None:
    """``temporaries``: bytes of memory that joins and what they are made of take."""
    compiled = dyncomp.compile(program)
    assert differences(call(program, values), call(compiled, values)) == []
    assert artifacts[-1].temp_bytes == temporaries


# -- ends of rows -----------------------------------------------------------------------------
def neighbours(x):
    return x[:, :-2] + x[:, 2:], x[:, 1:-1] > x[:, :-2]


def changed_rows(x):
    x[:, 1:-1] += 3
    x[:, :-2] = x[:, 2:] * x[:, 2:]
    return x


@pytest.mark.parametrize("dtype", ["uint8", "int16", "bool"])
@pytest.mark.parametrize("columns", [36, 67, 68, 131])
@pytest.mark.parametrize("program", [neighbours, changed_rows])
def test_ends_of_rows_of_narrow_elements(program: Any, columns: int, dtype: str) -> None:
    """The last vector of a row lies over the one before it, where that makes no difference."""
    if dtype == "bool" and program is changed_rows:
        pytest.skip("numpy cannot add an int to bool in place")
    values = np.random.default_rng(columns).integers(0, 100, (9, columns)).astype(dtype)
    with_steps = np.ascontiguousarray(np.repeat(values, 2, 1))[:, ::2]
    for x in (values, with_steps):
        given = x.copy()
        wanted = call(program, (x.copy(),))
        assert differences(wanted, call(dyncomp.compile(program, dynamic=False), (given,))) == []


def test_short_rows_of_expensive_functions_stay_whole(artifacts: list) -> None:
    narrow = tall(5000, 3).astype(np.float32)
    dyncomp.compile(lambda x, y: np.exp(np.concatenate([x, y], 1)))(narrow, narrow)
    assert artifacts[-1].temp_bytes == 2 * narrow.nbytes


# -- limits -----------------------------------------------------------------------------------
class Sketch:
    """A graph of float64 arrays that is written by hand."""

    def __init__(self) -> None:
        self.builder = GraphBuilder(TABLE)

    def input(self, *shape: int) -> Var:
        return self.builder.add_input(array_type(dtypes.float64, shape))

    def emit(self, op: str, *inputs: Var, **params: Any) -> Var:
        made: Var = self.builder.emit(op, *inputs, **params)
        return made

    def square(self, x: Var) -> Var:
        return self.emit("multiply", x, x)

    def part(self, x: Var, starts: tuple[int, ...], sizes: tuple[int, ...]) -> Var:
        return self.emit("strided_slice", x, starts=starts, sizes=sizes, steps=(1,) * x.ndim)

    def finish(self, *outputs: Var) -> Graph:
        graph = self.builder.finish(tuple(GraphOutput(self.emit("copy", v)) for v in outputs))
        return run_passes(graph, TABLE, OPTIONS)


def of_many_parts(count: int) -> Graph:
    """The squares of a join of so many rows."""
    sketch = Sketch()
    rows = [sketch.input(1, 400) for _ in range(count)]
    return sketch.finish(sketch.square(sketch.emit("concatenate", *rows, axis=0)))


def of_deep_joins(count: int) -> Graph:
    """A roll of a roll of a roll..., with an operation on all of them."""
    sketch = Sketch()
    x = sketch.input(3, 400)
    for _ in range(count):
        x = sketch.emit("roll", x, shifts=(1,), axes=(0,))
        ends = sketch.part(x, (1, 0), (2, 400)), sketch.part(x, (0, 0), (1, 400))
        x = sketch.emit("concatenate", *ends, axis=0)
    return sketch.finish(sketch.square(x))


def of_padded_steps(count: int, rows: int = 20, columns: int = 20) -> Graph:
    """So many steps, each of padded neighbours of the one before."""
    sketch = Sketch()
    x = sketch.input(rows, columns)
    for _ in range(count):
        padded = sketch.emit("pad", x, widths=((1, 1), (1, 1)), value=1)
        above = sketch.part(padded, (0, 1), (rows, columns))
        below = sketch.part(padded, (2, 1), (rows, columns))
        left = sketch.part(padded, (1, 0), (rows, columns))
        x = sketch.emit("maximum", sketch.emit("add", above, below), left)
    return sketch.finish(x)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of cuts that were put in order, and of looks at nodes."""
    done = [0]
    merged, top = limits.merged, limits.Joins._top

    def counted(size: Any, *lists: Any) -> Any:
        offered = [tuple(cuts) for cuts in lists]
        done[0] += 1 + sum(map(len, offered))
        return merged(size, *offered)

    def seen(self: Any, var: Var) -> Any:
        done[0] += 1
        return top(self, var)

    monkeypatch.setattr(limits, "merged", counted)
    monkeypatch.setattr(limits.Joins, "_top", seen)
    return done


def test_joins_of_many_parts_stay_whole() -> None:
    most = partition_windows.MOST_BOXES
    few, many = of_many_parts(most), of_many_parts(most + 1)
    assert partition_joins(few, TABLE) is not few
    assert partition_joins(many, TABLE) is many


@pytest.mark.parametrize("make", [of_many_parts, of_deep_joins, of_padded_steps])
def test_work_is_linear(make: Callable[[int], Graph], work: list[int]) -> None:
    small, large = make(50), make(200)
    found = []
    for graph in (small, large):
        work[0] = 0
        verify(partition_joins(graph, TABLE), TABLE)
        found.append(work[0] / len(graph.nodes))
    assert found[1] < 1.5 * found[0] + 5


def test_deep_joins_have_values_of_numpy() -> None:
    graph = of_deep_joins(40)
    run_both(graph, partition_joins(graph, TABLE))


def test_more_cuts_than_boxes_are_not_merged() -> None:
    most = partition_windows.MOST_BOXES
    assert partition_windows.merged(100, range(most), [3, 0, 100]) == tuple(range(1, most))
    with pytest.raises(partition_windows.Undecided):
        partition_windows.merged(100, range(most), [most])
    with pytest.raises(partition_windows.Undecided):
        partition_windows.merged(5, [6])


def boxes_made(graph: Graph) -> int:
    """How many more results of the operation are computed than before."""
    changed = partition_joins(graph, TABLE)
    return sum(n.op == "maximum" for n in changed.nodes) - sum(n.op == "maximum" for n in graph.nodes)


@pytest.mark.parametrize(
    ("steps", "rows", "columns", "is_done"),
    [
        (1, 10, 10, False),
        (1, 60, 80, True),
        (20, 60, 80, False),
        (20, 300, 400, True),
        (400, 300, 400, False),
    ],
)
def test_small_arrays_of_many_boxes_stay_whole(steps: int, rows: int, columns: int, is_done: bool) -> None:
    assert (boxes_made(of_padded_steps(steps, rows, columns)) > 0) == is_done


@pytest.mark.parametrize(("op", "rows", "is_done"), [("reduce_sum", 40, False), ("reduce_max", 40, True)])
def test_rows_of_few_floats_are_summed_in_order(op: str, rows: int, is_done: bool) -> None:
    sketch = Sketch()
    joined = sketch.emit("concatenate", sketch.input(rows, 400), sketch.input(rows, 300), axis=1)
    graph = sketch.finish(sketch.emit(op, joined, axes=(1,)))
    assert (partition_joins(graph, TABLE) is not graph) == is_done


def generation(board):
    """One step of the game of life."""
    around = sum(
        np.roll(np.roll(board, i, 0), j, 1).astype(np.uint8)
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if i != 0 or j != 0
    )
    return (around == 3) | (board & (around == 2))


@pytest.mark.parametrize("size", [21, 24, 40])
def test_bools_in_the_ends_of_rows(size):
    """gcc 12's vectors of straight-line code took a wrong bool for the first of six peeled elements."""
    board = np.random.default_rng(size).random((size, size)) < 0.3
    assert np.array_equal(dyncomp.compile(generation, dynamic=False)(board), generation(board))
