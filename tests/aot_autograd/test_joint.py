"""Joint graphs of captured programs: gradients against central differences of the programs themselves."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.aot_autograd.functionalize import functionalize
from dyncomp.aot_autograd.joint import joint
from dyncomp.dtypes import float64
from dyncomp.errors import NotDifferentiableError
from dyncomp.graph.interp import run
from dyncomp.graph.ir import GraphBuilder, GraphOutput, array_type, verify
from dyncomp.prims.table import TABLE

STEP = 1e-6


def logistic(x, w):
    p = 1 / (1 + np.exp(-(x @ w)))
    return -np.log(p).mean() + 0.1 * (w * w).sum()


def softmax_cross_entropy(x, w):
    scores = x @ w
    scores = scores - scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -logs[np.arange(5), np.array([0, 1, 2, 0, 1])].mean()


def in_place(x, w):
    y = np.zeros((5, 3))
    y += x @ w
    y[1:] *= 2.0
    y[:, 0] = np.sin(y[:, 1])
    np.maximum(y, 0.1, out=y)
    return (y**2).sum()


def views(x, w):
    y = x.T[::2, 1:].reshape(-1)
    z = np.concatenate([y, w.ravel()[:3]])
    z = np.roll(z, 2)[::-1]
    return np.cumsum(z) @ z + np.sort(z)[:2].prod()


def layer_norm(x, w):
    centred = x - x.mean(axis=-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return np.tanh(normal @ w).sum()


def matrices(x, w):
    a = x.T @ x + np.eye(4)
    factor = np.linalg.cholesky(a)
    solved = np.linalg.solve(a, w)
    return np.log(np.diag(factor)).sum() + (solved * w).sum() + np.linalg.slogdet(a)[1]


def spectrum(x, w):
    found = np.fft.rfft(x, axis=0) * 0.5
    return (np.abs(found) ** 2).sum() + np.fft.irfft(np.fft.rfft(w[:, 0])).std()


def choices(x, w):
    chosen = np.where(x > 0.4, x * 2, np.exp(x))
    return np.clip(chosen, 0.2, 1.5).sum() + np.minimum(w, 0.3).max() + np.take(w, [0, 2, 2]).sum()


def stencil(x, w):
    """Slices that overlap, that do not, and that are read more than once."""
    y = x[1:-1, 1:] - 2 * x[2:, :-1] * x[:-2, 1:] + x[0, 0] * x[3, 2]
    z = x[0] * x[1] + x[0] ** 2 + np.diag(x) * x[::-1][0]
    return (y**2).sum() + z.sum() + (x * x[0]).sum() + w[::2].sum() * w[1::2].sum() + w.sum()


def several(x, w):
    hidden = np.tanh(x @ w)
    return hidden, hidden.sum(axis=0), np.argmax(hidden)


PROGRAMS = [
    *(
        logistic,
        softmax_cross_entropy,
        in_place,
        views,
        layer_norm,
        matrices,
        spectrum,
        choices,
        stencil,
        several,
    ),
]


def captured(function, *args, **options):
    (entry,) = [e for e in dyncomp.explain(function, **options)(*args).entries if e.graph is not None]
    return functionalize(entry.graph, TABLE)


def many(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(function):
    rng = np.random.default_rng(0)
    args = [rng.random((5, 4)), rng.random((4, 3))]
    graph = captured(function, *args)
    made = joint(graph, TABLE, [0, 1])
    verify(made.graph, TABLE)
    plain = many(function(*args))
    cotangents = [rng.random(np.shape(plain[k])) for k in made.outputs]
    found = run(made.graph, TABLE, *args, *cotangents)
    count = len(graph.outputs)
    for one, other in zip(found[:count], plain):
        np.testing.assert_allclose(one, other)
    for position, gradient in enumerate(found[count:]):
        direction = rng.random(args[position].shape)
        ends = []
        for sign in (1, -1):
            moved = [a + sign * STEP * direction if k == position else a for k, a in enumerate(args)]
            results = many(function(*moved))
            ends.append(sum((c * results[k]).sum() for c, k in zip(cotangents, made.outputs)))
        wanted = (ends[0] - ends[1]) / (2 * STEP)
        assert gradient.shape == args[position].shape
        np.testing.assert_allclose((gradient * direction).sum(), wanted, rtol=1e-6, atol=1e-8)


def test_what_nobody_asks_for_is_not_computed():
    def f(x, w):
        return (np.exp(x) * np.sin(w)).sum(), np.cos(w).sum()

    args = np.ones((3, 2)), np.ones((3, 2))
    graph = captured(f, *args)
    made = joint(graph, TABLE, [0], [0])
    behind = made.graph.nodes[made.nodes :]
    assert not {"cos", "sin"} & {node.op for node in behind}
    none = joint(graph, TABLE, [0], [1])
    gradient = run(none.graph, TABLE, *args, np.asarray(1.0))[-1]
    np.testing.assert_array_equal(gradient, np.zeros((3, 2)))


def test_nodes_of_the_backward_pass_have_the_programs_lines():
    def f(x):
        y = np.sin(x)
        return (y * y).sum()

    graph = captured(f, np.ones(3))
    made = joint(graph, TABLE, [0])
    first = f.__code__.co_firstlineno
    lines = {node.loc.line for node in made.graph.nodes[made.nodes :] if node.loc is not None}
    assert lines == {first + 1, first + 2}


def test_what_has_no_derivative_is_named_with_its_place():
    def f(x):
        return np.nextafter(x, 2.0).sum()

    graph = captured(f, np.ones(3))
    line = f.__code__.co_firstlineno + 1
    with pytest.raises(NotDifferentiableError, match=rf"nextafter at .*:{line} .*number format"):
        joint(graph, TABLE, [0])


def test_integers_are_refused():
    graph = captured(lambda x: (x * 2).sum(), np.arange(3))
    with pytest.raises(NotDifferentiableError, match="int64"):
        joint(graph, TABLE, [0])


def test_second_derivatives():
    def f(x):
        return (np.exp(x) * x**3).sum()

    x = np.array([0.3, -1.2, 2.0])
    graph = captured(f, x)
    first = joint(graph, TABLE, [0])
    second = joint(first.graph, TABLE, [0], [1])
    found = run(second.graph, TABLE, x, np.asarray(1.0), np.ones(3))[-1]
    np.testing.assert_allclose(found, np.exp(x) * (x**3 + 6 * x**2 + 6 * x))


def test_nothing_goes_through_stop_gradient():
    """Not even what is written through it: the array then has the derivative of the value written."""
    builder = GraphBuilder(TABLE)
    x = builder.add_input(array_type(float64, (3,)))
    y = builder.emit("multiply", x, x)
    stopped = builder.emit("stop_gradient", y)
    total = builder.emit("reduce_sum", builder.emit("multiply", stopped, x), axes=(0,))
    written = builder.emit("copy", x)
    builder.emit("copy_", builder.emit("stop_gradient", written), builder.emit("sin", x))
    changed = builder.emit("reduce_sum", written, axes=(0,))
    graph = functionalize(builder.finish((GraphOutput(total), GraphOutput(changed))), TABLE)
    made = joint(graph, TABLE, [0], [0, 1]).graph
    values = np.array([1.0, 2.0, -3.0])
    *_, first = run(made, TABLE, values, np.ones(()), np.zeros(()))
    *_, second = run(made, TABLE, values, np.zeros(()), np.ones(()))
    np.testing.assert_array_equal(first, values**2)
    np.testing.assert_array_equal(second, np.cos(values))


def test_cotangents_of_views_are_those_of_what_the_caller_sees():
    def f(x):
        y = np.sin(x)
        return y.T, y[1:, ::-1], y.reshape(2, -1), x[::2], y[:, :1], np.broadcast_to(y, (2, 4, 6))

    x = np.random.default_rng(0).random((4, 6))
    graph = captured(f, x)
    assert any(out.view is not None for out in graph.outputs)
    made = joint(graph, TABLE, [0], range(6))
    verify(made.graph, TABLE)
    cotangents = [np.random.default_rng(k).random(y.shape) for k, y in enumerate(f(x))]
    found = run(made.graph, TABLE, x, *cotangents)[-1]
    step = 1e-6
    for place in ((0, 0), (1, 2), (3, 5), (2, 0)):
        moved = [x.copy(), x.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        ends = [sum((c * y).sum() for c, y in zip(cotangents, f(m))) for m in moved]
        np.testing.assert_allclose(found[place], (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_windows_of_values_are_slices_where_they_can_be():
    def f(x):
        y = np.exp(x)
        return y.T, y[1:3, ::-2], y.reshape(3, 8)[1], y[2]

    graph = captured(f, np.ones((4, 6)))
    made = joint(graph, TABLE, [0], range(4))
    assert not {"as_strided", "index_put"} & {node.op for node in made.graph.nodes}


def test_a_view_of_an_input_shows_what_was_written():
    def f(x, w):
        x *= 2.0 * w
        return x[1:]

    graph = captured(f, np.ones(4), np.full(4, 3.0))
    made = joint(graph, TABLE, [1], [0])
    x = np.arange(4.0)
    found = run(made.graph, TABLE, x, np.full(4, 3.0), np.ones(3))[-1]
    np.testing.assert_array_equal(found, [0.0, 2.0, 4.0, 6.0])


def test_second_derivatives_of_solutions_and_factors():
    def f(a, b):
        matrix = a @ a.T + np.eye(4)
        x = np.linalg.solve(a + 4 * np.eye(4), b)
        return (x * np.linalg.solve(matrix, b)).sum() + np.log(np.diag(np.linalg.cholesky(matrix))).sum()

    rng = np.random.default_rng(0)
    args = [rng.random((4, 4)), rng.random(4)]
    directions = [rng.random((4, 4)), rng.random(4)]
    graph = captured(f, *args)
    first = joint(graph, TABLE, [0, 1], [0])
    assert {"solve_factored", "solve_triangular"} <= {node.op for node in first.graph.nodes}
    second = joint(first.graph, TABLE, [0, 1], [1, 2])
    one = np.array(1.0)
    found = run(second.graph, TABLE, *args, one, *directions)[3:]
    ends = []
    for sign in (1, -1):
        moved = [a + sign * STEP * d for a, d in zip(args, directions)]
        ends.append(run(first.graph, TABLE, *moved, one)[1:])
    for position in (0, 1):
        slope = (ends[0][position] - ends[1][position]) / (2 * STEP)
        np.testing.assert_allclose(found[position], slope, rtol=1e-5, atol=1e-6)


def test_cotangents_of_slices_are_written_into_one_array():
    def f(x):
        total = 0.0
        for k in range(10):
            total = total + np.sin(x[k]) * np.cos(x[k])
        return total.sum()

    graph = captured(f, np.ones((10, 30)), options={"unroll_limit": 16})
    made = joint(graph, TABLE, [0], [0])
    behind = made.graph.nodes[made.nodes :]
    whole = [node for node in behind if node.outputs[0].shape == (10, 30)]
    assert [node.op for node in whole] == ["empty", *["update_slice"] * 10, "copy"]


def test_small_parts_are_added_in_place():
    def f(x):
        return (x**2).sum() + x[3, 2:5].sum()

    graph = captured(f, np.ones((10, 30)))
    made = joint(graph, TABLE, [0], [0])
    whole = [n for n in made.graph.nodes[made.nodes :] if n.outputs[0].shape == (10, 30)]
    assert whole[-2].op == "update_slice" and "full" not in {n.op for n in whole}


def test_no_node_is_made_for_nothing():
    """Cotangents of operands that do not depend on the variable."""

    def f(x, w):
        return (np.exp(x * w) @ w / (w * w)).sum()

    graph = captured(f, np.ones((4, 4)), np.ones((4, 4)))
    made = joint(graph, TABLE, [0], [0])
    read = {v.name for node in made.graph.nodes for v in node.inputs}
    read |= {out.var.name for out in made.graph.outputs}
    for node in made.graph.nodes[made.nodes :]:
        assert any(v.name in read for v in node.outputs), node
