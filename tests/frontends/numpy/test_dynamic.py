"""Symbolic sizes: the graph made for one size holds for others wherever its guards hold."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dyncomp.errors import Unsupported
from dyncomp.graph.interp import Interpreter
from dyncomp.prims.table import TABLE
from dyncomp.symbolic.integers import SymInt

from .harness import _compare, _fill, check, trace

PROGRAMS: dict[str, Any] = {
    "slices": lambda np, x: (x[1:], x[:-1], x[1:-1, ::2], x[::-1], x[-3:]),
    "stencil": lambda np, x: x[2:, 1:-1] + x[:-2, 1:-1] - 2 * x[1:-1, 1:-1],
    "arithmetic": lambda np, x: (x * 2 + x[0], x - x.mean(0), x / x.sum()),
    "shape": lambda np, x: x.reshape(-1).sum() / x.size + x.shape[0],
    "reshape": lambda np, x: (x.reshape(-1), x.T.reshape(-1), x[:, None].reshape(x.shape[0], -1)),
    "creation": lambda np, x: (np.zeros(x.shape), np.arange(x.shape[0]), np.ones_like(x), np.eye(x.shape[0])),
    "ranges": lambda np, x: np.arange(0, x.shape[0], 2) + np.linspace(0, 1, (x.shape[0] + 1) // 2),
    "matmul": lambda np, x: (x @ x.T, np.dot(x.T, x), np.outer(x[0], x[:, 0])),
    "reductions": lambda np, x: (x.sum(), x.max(1), x.argmax(0), x.std(), np.median(x, 1), np.cumsum(x)),
    "joins": lambda np, x: (np.concatenate([x, x]), np.stack([x, x]), np.vstack([x, x[0]])),
    "repetition": lambda np, x: (np.tile(x, (2, 1)), np.repeat(x, 2, 0), np.roll(x, 1, 0), np.pad(x, 1)),
    "splits": lambda np, x: np.split(x, [1, 2]),
    "advanced": lambda np, x: (x[[0, 1]], np.take(x, [0, -1], axis=1), np.where(x > 1, x, 0)),
    "calculus": lambda np, x: (np.diff(x), np.gradient(x, axis=0), np.trapezoid(x)),
    "views": lambda np, x: (x.T, np.flip(x), np.diagonal(x), x[None], np.squeeze(x[:, None])),
    "tri": lambda np, x: (np.tril(x), np.trace(x), np.diag(x[0])),
    "einsum": lambda np, x: np.einsum("ij,ij->i", x, x),
    "meshgrid": lambda np, x: np.meshgrid(x[0], x[:, 0]),
    "fft": lambda np, x: np.fft.rfft(x),
}


def _mutating(np: Any, x: Any) -> Any:
    x[1:-1] = (x[2:] + x[:-2]) / 2
    x[0] = 0
    x[:, -1] += x[:, 0]
    x[x > 1] = 1
    return x


PROGRAMS["mutation"] = _mutating


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_size(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(5, 7))
    check(PROGRAMS[name], x, dynamic=True, rtol=1e-10)


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_sizes(name: str) -> None:
    """Run the graph traced at (5, 7) on other sizes that satisfy its guards."""
    rng = np.random.default_rng(0)
    graph, template, tracer = trace(PROGRAMS[name], rng.normal(size=(5, 7)), dynamic=True)
    ran = 0
    for shape in ((5, 7), (6, 9), (12, 31), (8, 8), (5, 6), (9, 4)):
        x = rng.normal(size=shape)
        values = dict(zip(("s0", "s1"), shape))
        if not all(guard.holds(values) for guard in tracer.builder.env.guards):
            continue
        ran += 1
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            reference = x.copy()
            expected = PROGRAMS[name](np, reference)
            mine = x.copy()
            outputs = Interpreter(graph, TABLE).run(mine)
        _compare(_concrete(_fill(template, outputs), values), expected, 1e-10, False)
        np.testing.assert_allclose(mine, reference)
    assert ran >= 2


def _concrete(value: Any, values: dict[str, int]) -> Any:
    if isinstance(value, SymInt):
        return value.evaluate(values)
    if isinstance(value, (tuple, list)):
        return type(value)(_concrete(v, values) for v in value)
    return value


@pytest.mark.parametrize(
    "name", ["slices", "stencil", "arithmetic", "reductions", "mutation", "creation", "calculus"]
)
def test_few_guards(name: str) -> None:
    """Sizes stay free: no guard pins one (a median asks for the parity)."""
    _, _, tracer = trace(PROGRAMS[name], np.ones((5, 7)), dynamic=True)
    pinned = [g for g in tracer.builder.env.guards if g.relation == "==" and "%" not in str(g.expr)]
    assert not pinned


def test_symbolic_index() -> None:
    """An integer argument kept symbolic, as a loop counter is."""
    from dyncomp.dtypes import float64
    from dyncomp.frontends.base import ArrayRef, TraceContext
    from dyncomp.frontends.numpy.frontend import NumpyFrontend
    from dyncomp.graph.ir import GraphBuilder, GraphOutput, array_type

    frontend = NumpyFrontend()
    builder = GraphBuilder(TABLE)
    tx = TraceContext(builder)
    x = ArrayRef(builder.add_input(array_type(float64, (10, 3))))
    i = builder.env.new_symbol(2, low=0, high=1 << 40)
    builder.bind_symbol(i, "int", 0)
    getitem = frontend.find_operator("getitem")
    setitem = frontend.find_operator("setitem")
    add = frontend.find_operator("add")
    assert getitem and setitem and add
    row = getitem(tx, x, (slice(i, i + 2), slice(None)))
    setitem(tx, x, i + 3, add(tx, getitem(tx, x, i), i))
    graph = builder.finish((GraphOutput(row.var),))
    for value in (2, 0, 6):
        assert all(guard.holds({"s0": value}) for guard in builder.env.guards)
        data = np.arange(30.0).reshape(10, 3)
        expected = data.copy()
        expected[value + 3] = expected[value] + value
        (window,) = Interpreter(graph, TABLE).run(data, value)
        np.testing.assert_array_equal(data, expected)
        assert np.shares_memory(window, data)
    assert not all(guard.holds({"s0": 9}) for guard in builder.env.guards)


def test_bounds_that_are_data_are_refused() -> None:
    x = np.arange(6.0)
    for program in (lambda np, x, k: x[:k], lambda np, x, k: np.arange(k), lambda np, x, k: np.zeros(k)):
        with pytest.raises(Unsupported):
            check(program, x, np.int64(3))
