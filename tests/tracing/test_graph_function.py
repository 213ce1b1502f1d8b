"""Graphs as objects: calling, printing, reading, constants, and what backends do with them."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import ExportError, GraphBreakError, VerifyError
from dyncomp.graph.text import parse

RNG = np.random.default_rng(0)
W = RNG.standard_normal((4, 3)).astype(np.float32)
B = RNG.standard_normal(3).astype(np.float32)
X = RNG.standard_normal((5, 4)).astype(np.float32)


def layer(x):
    h = np.maximum(x @ W + B, 0)
    return {"h": h, "parts": (h.sum(axis=1), [h.T]), "mean": h.mean(), "x": x, "n": 3}


def test_a_call_gives_what_the_function_gives():
    g = dyncomp.symbolic_trace(layer, (X,))
    got, expected = g(X * 2), layer(X * 2)
    assert got.keys() == expected.keys()
    assert isinstance(got["parts"], tuple) and isinstance(got["parts"][1], list)
    assert isinstance(got["mean"], np.float32)
    assert got["n"] == 3
    for key in ("h", "mean", "x"):
        np.testing.assert_allclose(got[key], expected[key], 1e-5)
    np.testing.assert_allclose(got["parts"][1][0], expected["parts"][1][0], 1e-5)


def test_arguments_in_containers_and_by_keyword():
    def f(pair, *, named=None, scale=2.0):
        return pair[0] * scale + named["a"]

    g = dyncomp.symbolic_trace(f, ((X, 1),), {"named": {"a": X.copy()}})
    np.testing.assert_array_equal(g((X, 1), named={"a": X * 3}), X * 2 + X * 3)
    assert [value.label for value in g.inputs] == ["pair[0]", "named['a']"]
    with pytest.raises(TypeError, match="'a' in named"):
        g((X, 1), named={"b": X})
    with pytest.raises(TypeError, match="missing a required argument: 'pair'"):
        g()
    with pytest.raises(TypeError, match="expected scale == 2.0"):
        g((X, 1), named={"a": X}, scale=3.0)


def test_arrays_of_other_types_are_refused_by_name():
    g = dyncomp.symbolic_trace(layer, (X,))
    with pytest.raises(
        TypeError, match=r"layer was traced for x: float32\[5, 4\], and got one float64\[5, 4\]"
    ):
        g(X.astype(np.float64))
    with pytest.raises(TypeError, match=r"got one float32\[3, 4\]"):
        g(X[:3])
    with pytest.raises(TypeError, match="of type list"):
        g([1.0])


@pytest.mark.parametrize("other", [np.asfortranarray(X), X[::-1], np.repeat(X, 2, axis=1)[:, ::2]])
def test_arrays_of_other_layouts_are_taken(other):
    g = dyncomp.symbolic_trace(layer, (X,))
    np.testing.assert_allclose(g(other)["h"], layer(other)["h"], 1e-5)


def test_the_same_array_twice_is_no_assumption():
    g = dyncomp.symbolic_trace(lambda a, b: a * b, (X, X))
    np.testing.assert_array_equal(g(X, X + 1), X * (X + 1))


def test_sizes_and_numbers_can_be_free():
    def f(x, rate):
        return x * rate

    g = dyncomp.symbolic_trace(f, (X, 0.5), dynamic={"x": 0, "rate": True})
    np.testing.assert_array_equal(g(X[:3], 0.25), X[:3] * np.float32(0.25))


def test_methods_and_objects_name_their_arrays():
    class Model:
        def __init__(self):
            self.w = W
            self.layers = [{"scale": np.float32([1, 2, 3])}]

        def __call__(self, x):
            return x @ self.w * self.layers[0]["scale"]

    model = Model()
    g = dyncomp.symbolic_trace(model, (X,))
    assert list(g.constants) == ["w", "layers.0.scale"]
    np.testing.assert_allclose(g(X), model(X), 1e-5)


def test_a_ufunc_is_a_function():
    np.testing.assert_allclose(dyncomp.symbolic_trace(np.exp, (X,))(X), np.exp(X), 1e-6)


def test_a_function_that_writes_to_its_argument_does():
    def f(x, y):
        x += y
        return x[1:]

    g = dyncomp.symbolic_trace(f, (np.ones((3, 4)), np.arange(4.0)))
    a = np.ones((3, 4))
    result = g(a, np.arange(4.0))
    np.testing.assert_array_equal(a, 1 + np.broadcast_to(np.arange(4.0), (3, 4)))
    np.testing.assert_array_equal(result, a[1:])
    assert not np.may_share_memory(result, a)
    with pytest.raises(TypeError, match="overlaps"):
        g(a, a[0])


def test_tracing_computes_and_changes_nothing():
    def f(x):
        x += 1
        return x

    a = np.ones((3, 4))
    dyncomp.symbolic_trace(f, (a,))
    assert a.sum() == 12


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda a: 3, ExportError, "works on no array"),
        (lambda a: print("hi", flush=True) or a + 1, GraphBreakError, "print"),
        (lambda a: np.random.rand(4) + a, ExportError, "random numbers"),
        (lambda a: a + len(input()), GraphBreakError, "input"),
    ],
)
def test_what_is_no_graph_says_why(function, error, message):
    with pytest.raises(error, match=message):
        dyncomp.symbolic_trace(function, (X,))


def test_what_is_no_function():
    with pytest.raises(TypeError, match="takes a callable"):
        dyncomp.symbolic_trace(3)


def test_text_and_code():
    g = dyncomp.symbolic_trace(layer, (X,))
    assert "maximum(" in str(g) and f"{__file__}:" in str(g)
    assert str(parse(str(g), g.table)) == str(g.graph)
    names: dict = {}
    exec(g.code, names)
    results = names["layer"](X, W, B)
    np.testing.assert_allclose(results[0], layer(X)["h"], 1e-5)
    with pytest.raises(VerifyError):
        parse(str(g).replace("maximum(v2, v4)", "maximum(v2, v9)"), g.table)


def test_nodes_have_producers_users_and_lines():
    g = dyncomp.symbolic_trace(layer, (X,))
    (node,) = g.nodes.find("maximum")
    assert [n.op for n in node.producers] == ["add", "broadcast_in_dim"]
    assert {n.op for n in node.users} == {"reduce_sum", "transpose"}
    assert node.file == __file__ and node.function == "layer"
    assert node.line == layer.__code__.co_firstlineno + 1
    assert node.shape == (5, 3) and node.dtype.name == "float32"
    assert g.nodes[node.name] == node and node in list(g.nodes)
    assert [value.name for value in g.inputs] == ["x"]
    dot = g.nodes[0]
    assert dot.inputs[0].is_input and dot.inputs[1].constant == "W"
    assert node.output.is_returned


def test_constants_are_read_and_replaced():
    g = dyncomp.symbolic_trace(layer, (X,))
    assert list(g.constants) == ["W", "B"] and g.constants["W"] is W
    g.constants["W"] = W * 2
    np.testing.assert_allclose(g(X)["h"], np.maximum(X @ (W * 2) + B, 0), 1e-5)
    with pytest.raises(TypeError, match=r"W: float32\[4, 3\]"):
        g.constants["W"] = W.T.copy()
    with pytest.raises(KeyError, match="there are: W, B"):
        g.constants["V"]
    with pytest.raises(TypeError, match="lift"):
        del g.constants["W"]


def test_constants_become_arguments_and_back():
    g = dyncomp.symbolic_trace(layer, (X,))
    assert g.lift("W", "weight") == "weight"
    assert list(g.__signature__.parameters) == ["x", "weight"]
    np.testing.assert_allclose(g(X, weight=W * 2)["h"], np.maximum(X @ (W * 2) + B, 0), 1e-5)
    with pytest.raises(TypeError, match="weight"):
        g(X)
    with pytest.raises(TypeError, match=r"float32\[4, 3\]"):
        g.bind("weight", X)
    assert g.bind("weight", W * 3) == "W"
    np.testing.assert_allclose(g(X)["h"], np.maximum(X @ (W * 3) + B, 0), 1e-5)
    with pytest.raises(KeyError, match="nothing"):
        g.bind("nothing", W)


def test_a_copy_is_another():
    g = dyncomp.symbolic_trace(layer, (X,))
    other = g.copy()
    other.constants["W"] = W * 2
    other.lift("B")
    np.testing.assert_allclose(g(X)["h"], layer(X)["h"], 1e-5)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_how_it_runs_can_be_said(backend):
    g = dyncomp.symbolic_trace(layer, (X,)).compile(backend=backend)
    np.testing.assert_allclose(g(X)["h"], layer(X)["h"], 1e-5)


def test_a_backend_can_change_the_graph():
    seen = []

    def backend(graph, example_inputs):
        g = dyncomp.wrap_graph(graph)
        seen.append(g.replace_pattern(lambda a: np.maximum(a, 0), lambda a: np.minimum(a, 0)))
        return g

    f = dyncomp.compile(lambda x: (np.maximum(x @ W, 0), x[1:]), backend=backend)
    first, second = f(X)
    np.testing.assert_allclose(first, np.minimum(X @ W, 0), 1e-5, 1e-6)
    assert seen == [1]
    assert np.may_share_memory(second, X)  # as without the backend
    with pytest.raises(TypeError, match="wrap_graph takes the graph"):
        dyncomp.wrap_graph(3)


def test_values_inside_can_be_tapped():
    g = dyncomp.symbolic_trace(layer, (X,))
    (product,) = g.nodes.find("dot_general")
    tapped = g.tap(product, "x")
    got = tapped(X)
    np.testing.assert_allclose(got[0], X @ W, 1e-5, 1e-6)
    assert len(tapped.nodes) == 1
    with pytest.raises(dyncomp.GraphError, match="no value nothing"):
        g.tap("nothing")


def test_it_is_called_from_compiled_code():
    g = dyncomp.symbolic_trace(lambda x: x + 1, (X,))
    np.testing.assert_array_equal(dyncomp.compile(lambda x: g(x * 2) * 3)(X), (X * 2 + 1) * 3)


def test_arguments_that_are_missing_are_asked_for():
    with pytest.raises(TypeError) as caught:
        dyncomp.symbolic_trace(lambda x: x + 1)
    assert caught.value.__notes__ == ["Give examples of its arguments: symbolic_trace(f, (x,))."]
