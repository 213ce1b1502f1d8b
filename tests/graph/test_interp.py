"""The interpreter: view semantics, symbols, output kinds, memory, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dyncomp import dtypes
from dyncomp.device import CPU
from dyncomp.graph.interp import Interpreter, as_callable, run, strided_window
from dyncomp.graph.ir import ArrayType, Graph, GraphBuilder, GraphOutput, Node, array_type
from dyncomp.prims.table import TABLE

F8 = dtypes.float64


def test_views_alias_and_copies_write() -> None:
    b = GraphBuilder(TABLE)
    x = b.add_input(array_type(F8, (3, 4)))
    turned = b.emit("transpose", x, perm=(1, 0))
    row = b.emit("strided_slice", turned, starts=(1, 0), sizes=(1, 3), steps=(1, 1))
    b.emit("copy_", row, b.emit("full", shape=(1, 3), value=7.0, dtype=F8, device=CPU))
    graph = b.finish((GraphOutput(turned),))
    a = np.zeros((3, 4))
    (out,) = run(graph, TABLE, a)
    assert np.shares_memory(out, a)
    assert (a[:, 1] == 7).all() and a.sum() == 21


def test_overlapping_copy_is_as_in_numpy() -> None:
    b = GraphBuilder(TABLE)
    x = b.add_input(array_type(F8, (5,)))
    left = b.emit("strided_slice", x, starts=(0,), sizes=(4,), steps=(1,))
    right = b.emit("strided_slice", x, starts=(1,), sizes=(4,), steps=(1,))
    b.emit("copy_", right, left)
    a = np.arange(5.0)
    assert run(b.finish(()), TABLE, a) == []
    np.testing.assert_array_equal(a, [0, 0, 1, 2, 3])


def test_symbols_of_every_kind() -> None:
    b = GraphBuilder(TABLE)
    n, step, k = (b.env.new_symbol(hint) for hint in (4, 2, 1))
    x = b.add_input(ArrayType(F8, (n,), (step,)))
    b.bind_symbol(n, "dim", 0, 0)
    b.bind_symbol(step, "stride", 0, 0)
    b.bind_symbol(k, "int", 0)
    part = b.emit("strided_slice", x, starts=(k,), sizes=(n - k,), steps=(1,))
    number = b.emit("symint", expr=n * 10 + step, dtype=dtypes.int64, device=CPU)
    graph = b.finish((GraphOutput(part), GraphOutput(number, "python")))
    out, value = run(graph, TABLE, np.arange(30.0)[::3], 4)
    np.testing.assert_array_equal(out, [12, 15, 18, 21, 24, 27])
    assert value == 103 and type(value) is int


def test_scalar_inputs_get_their_dtype() -> None:
    b = GraphBuilder(TABLE)
    x = b.add_input(array_type(dtypes.float32, ()), "scalar")
    y = b.emit("multiply", x, x)
    graph = b.finish((GraphOutput(y, "scalar"), GraphOutput(y, "python")))
    scalar, python = run(graph, TABLE, 3)
    assert type(scalar) is np.float32 and type(python) is float and python == 9.0


def test_fresh_results_do_not_alias_inputs() -> None:
    b = GraphBuilder(TABLE)
    x = b.add_input(array_type(F8, (3,)))
    same = b.emit("contiguous", x)
    b.emit("copy_", same, b.emit("full", shape=(3,), value=1.0, dtype=F8, device=CPU))
    a = np.zeros(3)
    (out,) = run(b.finish((GraphOutput(same),)), TABLE, a)
    assert not a.any() and out.all()


def test_results_lie_as_their_types_say() -> None:
    b = GraphBuilder(TABLE)
    x = b.add_input(ArrayType(F8, (3, 4), (1, 3)))
    y = b.emit("negative", x)
    (out,) = run(b.finish((GraphOutput(y),)), TABLE, np.zeros((4, 3)).T)
    assert tuple(s // 8 for s in out.strides) == y.type.strides


def test_values_are_freed_after_their_last_use() -> None:
    b = GraphBuilder(TABLE)
    value = b.add_input(array_type(F8, (2,)))
    for _ in range(5):
        value = b.emit("negative", value)
    graph = b.finish((GraphOutput(value),))

    class Watch(Interpreter):
        alive = 0

        def _run_step(self, step: Any, values: Any, symbols: Any) -> None:
            super()._run_step(step, values, symbols)
            self.alive = max(self.alive, len(values))

    watch = Watch(graph, TABLE)
    watch.run(np.zeros(2))
    assert watch.alive == 2


def test_run_node_can_be_overridden() -> None:
    b = GraphBuilder(TABLE)
    x = b.add_input(array_type(F8, (2,)))
    graph = b.finish((GraphOutput(b.emit("negative", b.emit("square", x))),))
    seen = []

    class Doubling(Interpreter):
        def run_node(self, node: Node, inputs: list[Any], params: dict[str, Any]) -> Any:
            seen.append(node.op)
            return 2 * super().run_node(node, inputs, params)

    (out,) = Doubling(graph, TABLE).run(np.array([1.0, 2.0]))
    assert seen == ["square", "negative"]
    np.testing.assert_array_equal(out, [-4, -16])


def test_multiple_outputs_of_one_node() -> None:
    rows = [row for row in ("qr", "slogdet", "eigh") if row in TABLE]
    assert rows
    b = GraphBuilder(TABLE)
    x = b.add_input(array_type(F8, (2, 2)))
    values, vectors = b.emit("eigh", x)
    outs = run(b.finish((GraphOutput(values), GraphOutput(vectors))), TABLE, np.diag([2.0, 1.0]))
    np.testing.assert_allclose(outs[0], [1, 2])


def test_read_only_inputs_are_not_written_partly() -> None:
    b = GraphBuilder(TABLE)
    x, y = (b.add_input(array_type(F8, (2,))) for _ in range(2))
    v, w = b.emit("negative", x), b.emit("negative", y)
    captured = b.finish(())
    graph = Graph("g", captured.inputs, (), captured.nodes, (), ((0, v), (1, w)), True)
    a, c = np.ones(2), np.ones(2)
    c.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        run(graph, TABLE, a, c)
    np.testing.assert_array_equal(a, [1, 1])


def test_mutations_read_before_any_is_written() -> None:
    b = GraphBuilder(TABLE)
    x, y = (b.add_input(array_type(F8, (2,))) for _ in range(2))
    captured = b.finish(())
    graph = Graph("swap", captured.inputs, (), (), (), ((0, y), (1, x)), True)
    a, c = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    run(graph, TABLE, a, c)
    assert a.tolist() == [3, 4] and c.tolist() == [1, 2]


def test_outputs_of_a_functional_graph_are_fresh() -> None:
    b = GraphBuilder(TABLE)
    x = b.add_input(array_type(F8, (2, 3)))
    turned = b.emit("transpose", x, perm=(1, 0))
    captured = b.finish((GraphOutput(turned), GraphOutput(x), GraphOutput(x)))
    graph = Graph("g", captured.inputs, (), captured.nodes, captured.outputs, (), True)
    a = np.arange(6.0).reshape(2, 3)
    arrays = [a, *run(graph, TABLE, a)]
    for i, one in enumerate(arrays):
        assert not any(np.shares_memory(one, other) for other in arrays[:i])


def test_wrong_number_of_inputs() -> None:
    b = GraphBuilder(TABLE)
    b.add_input(array_type(F8, (2,)))
    with pytest.raises(TypeError, match="takes 1 inputs"):
        run(b.finish(()), TABLE)


def test_as_callable_returns_what_python_would() -> None:
    b = GraphBuilder(TABLE)
    x = b.add_input(array_type(F8, (2,)))
    y = b.emit("negative", x)
    one = as_callable(b.finish((GraphOutput(y),)), TABLE)
    two = as_callable(b.finish((GraphOutput(y), GraphOutput(x))), TABLE)
    none = as_callable(b.finish(()), TABLE)
    a = np.ones(2)
    assert isinstance(one(a), np.ndarray)
    assert isinstance(two(a), tuple) and two(a)[1] is a
    assert none(a) == ()


def test_strided_window_may_start_before_its_base() -> None:
    a = np.arange(6.0)
    flipped = a[::-1]
    window = strided_window(flipped, (3,), (2,), -5)
    np.testing.assert_array_equal(window, a[::2])
    window[:] = 0
    assert a.tolist() == [0, 1, 0, 3, 0, 5]
    a.flags.writeable = False
    assert not strided_window(a, (2,), (1,), 0).flags.writeable
    del flipped
    assert window.sum() == 0
