"""Graphs print as Python that runs and parse back to the same graph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dyncomp import dtypes
from dyncomp.device import Device
from dyncomp.errors import VerifyError
from dyncomp.graph.interp import run
from dyncomp.graph.ir import (
    ArrayType,
    Graph,
    GraphBuilder,
    GraphInput,
    GraphOutput,
    Literal,
    Loc,
    Node,
    SymbolBinding,
    Var,
    ViewOf,
    array_type,
    contiguous_strides,
)
from dyncomp.graph.rewrite import frozen_key
from dyncomp.graph.text import parse, print_graph, print_value, to_function
from dyncomp.prims.table import TABLE
from dyncomp.symbolic.integers import ShapeEnv, sym_min


def sample_graph() -> Graph:
    b = GraphBuilder(TABLE, name="step")
    n = b.env.new_symbol(5, low=2, high=100)
    k = b.env.new_symbol(3)
    x = b.add_input(ArrayType(dtypes.float64, (n, 4), (8, 2)), label="self.x['a # b']")
    y = b.add_input(array_type(dtypes.float64, ()), "scalar", "y")
    b.bind_symbol(n, "dim", 0, 0)
    b.bind_symbol(k, "int", 0)
    b.loc = Loc("/home/me/a  file.py", 12, "Model.step")
    part = b.emit("strided_slice", x, starts=(k - 1, 0), sizes=(n - k, 4), steps=(1, 1))
    wide = b.emit("broadcast_in_dim", y, shape=(n - k, 4), dims=())
    total = b.emit("multiply", part, wide)
    b.loc = None
    table = Literal.of(np.array([0.1, -0.0, math.inf, math.nan]), dtypes.float64)
    row = b.emit("constant", literal=table)
    rows = b.emit("broadcast_in_dim", row, shape=(n - k, 4), dims=(1,))
    result = b.emit("add", total, rows)
    b.emit("copy_", part, result)
    size = b.emit("symint", expr=sym_min(n, k) // 2, dtype=dtypes.int64, device=Device())
    return b.finish((GraphOutput(result), GraphOutput(size, "python"), GraphOutput(part)))


def test_round_trip() -> None:
    graph = sample_graph()
    text = print_graph(graph)
    again = parse(text, TABLE)
    assert again == graph
    assert print_graph(again) == text
    assert again.env.symbols == graph.env.symbols


def test_text_is_readable() -> None:
    text = print_graph(sample_graph())
    lines = text.splitlines()
    assert lines[0] == "def step(in0, in1, s1):"
    assert "    s0 = in0.shape[0]  # dim, hint 5, low 2, high 100" in lines
    assert any(line.endswith("/home/me/a  file.py:12 Model.step") for line in lines)
    assert "a  file.py" not in print_graph(sample_graph(), locations=False)


def test_text_runs() -> None:
    graph = sample_graph()
    function = to_function(print_graph(graph), TABLE)
    whole = np.arange(80.0).reshape(5, 16)
    x1 = whole.copy()[:, ::2][:, :4]
    x2 = whole.copy()[:, ::2][:, :4]
    want = run(graph, TABLE, x1, 2.0, 3)
    got = function(x2, np.float64(2.0), 3)
    assert want[1] == got[1] == 1
    np.testing.assert_array_equal(want[0], got[0])
    np.testing.assert_array_equal(x1, x2)


def hand_made() -> Graph:
    """Everything a functionalized graph may hold."""
    x = Var("in0", ArrayType(dtypes.float32, (4, 6), (6, 1)))
    y = Var("v0", ArrayType(dtypes.float32, (4, 6), (6, 1)))
    node = Node("negative", (x,), (), (y,), Loc("f.py", 3, "<lambda>"))
    outputs = (
        GraphOutput(y),
        GraphOutput(x, view=ViewOf("input", 0, (2, 3), (12, -1), 5)),
        GraphOutput(y, view=ViewOf("output", 0, (4,), (6,), 0, stopped=True), readonly=True),
    )
    return Graph("f", (GraphInput(x, differentiated=True),), (), (node,), outputs, ((0, y),), True)


def test_functional_round_trip() -> None:
    graph = hand_made()
    text = print_graph(graph)
    assert "write_back((in0, v0))" in text
    assert parse(text, TABLE) == graph


def test_functional_text_runs() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    y, view, column = to_function(print_graph(hand_made()), TABLE)(x)
    np.testing.assert_array_equal(x, -np.arange(24).reshape(4, 6))
    np.testing.assert_array_equal(view, x[0:3:2, 5:2:-1])
    np.testing.assert_array_equal(column, y[:, 0])


numbers = st.one_of(st.integers(), st.floats(), st.booleans(), st.none())
texts = st.one_of(st.text(max_size=8), st.binary(max_size=4))
types = st.sampled_from(dtypes.ALL)


@st.composite
def literals(draw: st.DrawFn) -> Literal:
    dtype = draw(types)
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    count = int(np.prod(shape)) * dtype.itemsize
    data = draw(st.binary(min_size=count, max_size=count))
    if dtype.is_bool:
        data = bytes(byte & 1 for byte in data)
    return Literal(dtype, shape, data)


values = st.recursive(
    st.one_of(numbers, texts, st.complex_numbers(), types, literals(), st.just(Device("cuda", 1))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=2),
    ),
    max_leaves=6,
)


class _Meta:
    """A row whose outputs are whatever the node's parameter says."""

    is_view = False

    def meta(self, *inputs: ArrayType, like: int, **params: Any) -> ArrayType:
        return inputs[like]


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=200)
@given(st.lists(values, max_size=4), st.lists(types, min_size=1, max_size=3), st.booleans())
def test_any_parameter_round_trips(params: list[Any], inputs: list[Any], symbolic: bool) -> None:
    env = ShapeEnv()
    n = env.new_symbol(7)
    shape = (n, n // 2 + 1, 3) if symbolic else (2, 1, 3)
    symbols = (SymbolBinding("s0", "stride", 0, 1),) if symbolic else ()
    given_inputs = [GraphInput(Var(f"in{i}", array_type(d, shape))) for i, d in enumerate(inputs)]
    pairs = (("like", 0), *((f"p{i}", value) for i, value in enumerate(params)))
    out = Var("v0", given_inputs[0].var.type)
    node = Node("op", tuple(i.var for i in given_inputs), pairs, (out,))
    graph = Graph("g", tuple(given_inputs), symbols, (node,), (GraphOutput(out),), env=env)
    again = parse(print_graph(graph), {"op": _Meta()})  # type: ignore[dict-item]
    # NaNs differ from themselves: compare by contents
    assert frozen_key(again.nodes[0].params) == frozen_key(graph.nodes[0].params)
    assert again.inputs == graph.inputs
    assert again.outputs == graph.outputs


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        print_value(object())


@pytest.mark.parametrize(
    "text",
    [
        "def g(in0):\n    # in0: float64[2]  array\n    v0 = negative(v9)  # float64[2]\n    return v0,\n",
        "def g(in0):\n    # in0: float64[2]  array\n    v0 = negative(in0)  # float64[3]\n    return v0,\n",
        "def g(in0):\n    # in0: float64[2]  array\n    v0 = nothing(in0)  # float64[2]\n    return v0,\n",
        "def g(in0):\n    # in0: float64[2]  array\n    while True: pass\n    return in0,\n",
    ],
)
def test_wrong_text_is_refused(text: str) -> None:
    with pytest.raises(VerifyError):
        parse(text, TABLE)


def test_contiguous_strides_are_not_printed() -> None:
    assert str(ArrayType(dtypes.float64, (2, 3), contiguous_strides((2, 3)))) == "float64[2, 3]"
    assert str(ArrayType(dtypes.float64, (2, 3), (1, 2))) == "float64[2, 3]{1, 2}"
