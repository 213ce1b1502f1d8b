"""Changing graphs: the editor, patterns, splitting."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import GraphError
from dyncomp.graph.ir import verify

RNG = np.random.default_rng(1)
W = RNG.standard_normal((4, 3)).astype(np.float32)
B = RNG.standard_normal(3).astype(np.float32)
X = RNG.standard_normal((5, 4)).astype(np.float32)


def layer(x):
    h = np.maximum(x @ W + B, 0)
    return h, np.exp(h)


@pytest.fixture
def g():
    return dyncomp.symbolic_trace(layer, (X,))


# -- the editor --------------------------------------------------------------------------------------
def test_insert_between(g):
    with g.edit() as e:
        e.insert_between(e.nodes.find("maximum")[0], "tanh")
    h = np.tanh(layer(X)[0])
    got = g(X)
    np.testing.assert_allclose(got[0], h, 1e-5)
    np.testing.assert_allclose(got[1], np.exp(h), 1e-5)
    verify(g.graph, g.table)


def test_numbers_arrays_and_broadcasts_are_operands(g):
    with g.edit() as e:
        new = e.insert_after("v2", "multiply", "v2", np.float32([1, 2, 3]))
        e.replace_uses("v2", e.insert_after(new, "add", new, 1))
    np.testing.assert_allclose(g(X)[0], np.maximum((X @ W + B) * [1, 2, 3] + 1, 0), 1e-5)
    assert list(g.constants) == ["W", "B", "constant"]


def test_functions_are_inserted(g):
    with g.edit() as e:
        e.replace(e.nodes.find("exp")[0], lambda v, base=2: np.power(np.float32(base), v))
    np.testing.assert_allclose(g(X)[1], 2 ** layer(X)[0], 1e-5)
    with g.edit() as e:
        e.insert_between("v0", np.clip, -1, 1)
    np.testing.assert_allclose(g(X)[0], np.maximum(np.clip(X @ W, -1, 1) + B, 0), 1e-5)


def test_types_are_inferred_anew(g):
    with g.edit() as e:
        (node,) = e.nodes.find("exp")
        e.set_inputs(node, e.insert_before(node, "convert", dtype=dyncomp.dtypes.float64))
    assert g(X)[1].dtype == np.float64
    assert g.nodes.find("exp")[0].dtype.name == "float64"


def test_results_and_params_are_set(g):
    with g.edit() as e:
        e.set_result(0, "v0")
        total = e.insert_after("v0", "reduce_sum", axes=(0,))
        e.set_params(total, axes=(1,))
        e.set_result(1, total)
    got = g(X)
    np.testing.assert_allclose(got[0], X @ W, 1e-5, 1e-6)
    np.testing.assert_allclose(got[1], (X @ W).sum(1), 1e-4, 1e-5)
    assert list(g.constants) == ["W"]  # nothing reads the other any more
    assert [node.op for node in g.nodes] == ["dot_general", "reduce_sum"]


def test_only_some_uses_are_replaced(g):
    with g.edit() as e:
        (exp,) = e.nodes.find("exp")
        e.replace_uses("v5", e.insert_after("v5", "negative"), by=[exp])
    got, h = g(X), layer(X)[0]
    np.testing.assert_allclose(got[0], h, 1e-5)
    np.testing.assert_allclose(got[1], np.exp(-h), 1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.erase("v2"), r"add \(v2\) at .*test_changes.py:\d+ in layer cannot be erased: maximum"),
        (lambda e: e.erase(e.nodes.find("exp")[0]), "the function returns it"),
        (lambda e: e.erase("x"), "x is an input"),
        (lambda e: e.insert_after("v2", "nope"), r"cannot insert nope at .*test_changes.py:\d+: there is no"),
        (lambda e: e.insert_after("v77", "exp"), "layer has no value v77"),
        (lambda e: e.insert_after("v2", "add", "x", "W"), "cannot insert add .*broadcast"),
        (lambda e: e.insert_after("v2", "add", "v2", object()), "is no value of layer"),
        (lambda e: e.insert_after("v2", print), "cannot insert print"),
        (lambda e: e.replace("v0", lambda a, b: (a @ b)[:, :2]), r"add \(v2\) at .* cannot read"),
        (lambda e: e.replace("v0", lambda a, b: (a @ b).astype(float)), "operands of one dtype"),
        (lambda e: e.set_inputs("v2", "v5", "v1"), r"add \(v2\) .*would read its own result"),
        (lambda e: e.set_params("v0", foo=1), "no parameter 'foo'; it has contract, batch"),
        (lambda e: e.set_params("v1", shape=(5, 4)), "cannot broadcast"),
        (lambda e: e.set_result(2, "v0"), "returns 2 arrays"),
    ],
)
def test_what_cannot_be_done_is_said_in_terms_of_the_program(g, change, message):
    before = str(g)
    with pytest.raises(GraphError, match=message), g.edit() as e:
        change(e)
    assert str(g) == before
    np.testing.assert_allclose(g(X)[0], layer(X)[0], 1e-5, 1e-6)


def test_an_error_in_the_block_changes_nothing(g):
    before = str(g)
    with pytest.raises(ZeroDivisionError), g.edit() as e:
        e.insert_between("v0", "tanh")
        raise ZeroDivisionError
    assert str(g) == before


# -- patterns ----------------------------------------------------------------------------------------
def test_a_pattern_is_replaced_at_every_place():
    def f(x):
        h = np.maximum(x @ W + B, 0)
        return np.maximum(h @ W.T + 1, 0)

    g = dyncomp.symbolic_trace(f, (X,))
    count = g.replace_pattern(
        lambda a, w, b: np.maximum(a @ w + b, 0), lambda a, w, b: np.minimum(a @ w + b, 0)
    )
    assert count == 2
    np.testing.assert_allclose(g(X), np.minimum(np.minimum(X @ W + B, 0) @ W.T + 1, 0), 1e-4, 1e-5)
    assert "maximum" not in str(g)


def test_operands_that_may_change_places():
    g = dyncomp.symbolic_trace(lambda x: 1 + np.exp(x), (X,))
    assert g.replace_pattern(lambda a: np.exp(a) + 1, lambda a: a * 2) == 1
    np.testing.assert_array_equal(g(X), X * 2)
    g = dyncomp.symbolic_trace(lambda x: 1 - np.exp(x), (X,))
    assert g.replace_pattern(lambda a: np.exp(a) - 1, lambda a: a * 2) == 0


def test_what_others_read_is_not_matched_away():
    g = dyncomp.symbolic_trace(lambda x: (np.exp(x), np.tanh(np.exp(x))), (X,))
    assert g.replace_pattern(lambda a: np.tanh(np.exp(a)), lambda a: a) == 1  # exp is computed twice

    def shared(x):
        e = np.exp(x)
        return e, np.tanh(e)

    g = dyncomp.symbolic_trace(shared, (X,))
    assert g.replace_pattern(lambda a: np.tanh(np.exp(a)), lambda a: a) == 0
    np.testing.assert_allclose(g(X)[1], shared(X)[1], 1e-5)


def test_one_parameter_is_one_value():
    g = dyncomp.symbolic_trace(lambda x, y: (x * np.tanh(x), x * np.tanh(y)), (X, X.copy()))
    assert [m.result.name for m in g.find_pattern(lambda a: a * np.tanh(a))] == [g.outputs[0].name]


def test_numbers_must_be_equal():
    g = dyncomp.symbolic_trace(lambda x: np.maximum(x, 1), (X,))
    assert g.replace_pattern(lambda a: np.maximum(a, 0), lambda a: a) == 0
    assert g.replace_pattern(lambda a, b: np.maximum(a, b), lambda a, b: a + b) == 1
    np.testing.assert_array_equal(g(X), X + 1)


def test_arrays_of_the_pattern_must_be_equal():
    other = W.copy()
    g = dyncomp.symbolic_trace(lambda x: x @ W, (X,))
    assert g.find_pattern(lambda a: a @ (other + 1), examples=(X,)) == []
    assert len(g.find_pattern(lambda a: a @ other, examples=(X,))) == 1


def test_matches_do_not_overlap_and_can_be_chosen():
    g = dyncomp.symbolic_trace(lambda x: np.tanh(np.tanh(np.tanh(np.tanh(np.tanh(x))))), (X,))
    assert len(g.find_pattern(lambda a: np.tanh(np.tanh(a)))) == 2
    copy = g.copy()
    assert copy.replace_pattern(lambda a: np.tanh(np.tanh(a)), lambda a: a) == 2
    np.testing.assert_allclose(copy(X), np.tanh(X), 1e-5)
    seen = []
    assert g.replace_pattern(np.tanh, lambda a: a, where=lambda m: seen.append(m.place) or False) == 0
    assert len(seen) == 5 and "test_changes.py" in seen[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), ()])
def test_patterns_are_of_no_shape_and_dtype(dtype, shape):
    x = np.asarray(RNG.standard_normal(shape), dtype)
    g = dyncomp.symbolic_trace(lambda a, b: np.sqrt(a * a + b * 2), (x, x.copy()))
    assert g.replace_pattern(lambda a, b: np.sqrt(a * a + b * 2), lambda a, b: a + b) == 1
    np.testing.assert_array_equal(g(x, x), x + x)


def test_patterns_and_replacements_that_cannot_be():
    g = dyncomp.symbolic_trace(lambda x: np.exp(x), (X,))
    with pytest.raises(GraphError, match="gives float64"):
        g.replace_pattern(lambda a: np.exp(a), lambda a: a.astype(np.float64))
    with pytest.raises(GraphError, match="the replacement of exp .*cannot be traced"):
        g.replace_pattern(lambda a: np.exp(a), lambda a: a.no_such_method())
    with pytest.raises(GraphError, match="examples="):
        g.replace_pattern(lambda a: a + "text", lambda a: a)
    with pytest.raises(GraphError, match="returns 2 values"):
        g.replace_pattern(lambda a: np.exp(a), lambda a: (a, a))
    np.testing.assert_allclose(g(X), np.exp(X), 1e-5)


# -- parts -------------------------------------------------------------------------------------------
def test_two_parts_are_the_whole(g):
    first, second = g.split(g.nodes.find("maximum")[0])
    for got, expected in zip(second(*first(X)), layer(X)):
        np.testing.assert_allclose(got, expected, 1e-5)
    assert "W" in first.constants and "W" not in second.constants


def test_many_parts_are_the_whole():
    def f(x):
        for _ in range(3):
            x = np.tanh(x @ W) @ W.T + x
        return {"x": x, "w": W.sum()}

    g = dyncomp.symbolic_trace(f, (X,))
    parts = g.split(lambda node: node.op == "tanh")
    assert len(parts) == 4
    got = functools.reduce(lambda values, part: part(*values), parts, (X,))
    np.testing.assert_allclose(got["x"], f(X)["x"], 1e-4, 1e-5)
    assert got.keys() == {"x", "w"}


def test_parts_keep_arguments_that_later_ones_return():
    g = dyncomp.symbolic_trace(lambda x, y: (np.exp(np.tanh(x)), y), (X, B))
    first, second = g.split("v0")
    a, b = second(*first(X, B))
    np.testing.assert_allclose(a, np.exp(np.tanh(X)), 1e-5)
    assert b is B


def test_what_cannot_be_split():
    g = dyncomp.symbolic_trace(lambda x: np.exp(x) + 1, (X,))
    with pytest.raises(GraphError, match="no node nothing"):
        g.split("nothing")
    with pytest.raises(GraphError, match="nothing says where"):
        g.split(lambda node: False)
    with pytest.raises(GraphError, match="nothing is left"):
        g.split(g.nodes[len(g.nodes) - 1])
    free = dyncomp.symbolic_trace(lambda x: np.exp(x) + 1, (X,), dynamic=True)
    with pytest.raises(GraphError, match="symbolic sizes"):
        free.split("v0")
