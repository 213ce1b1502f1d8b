"""Derivatives in captured code: nesting, trees of arguments, functions with gradients of their own."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import NotDifferentiableError

X = np.array([0.3, -1.2, 2.0])


def f(x):
    return (np.sin(x) * x**2).sum()


def first(x):
    return np.cos(x) * x**2 + 2 * x * np.sin(x)


def second(x):
    return -np.sin(x) * x**2 + 4 * x * np.cos(x) + 2 * np.sin(x)


def third(x):
    return -np.cos(x) * x**2 - 6 * x * np.sin(x) + 6 * np.cos(x)


# -- nesting ----------------------------------------------------------------------------------
def test_derivatives_of_derivatives():
    by_f = dyncomp.grad(f)
    twice = dyncomp.grad(lambda x: by_f(x).sum())
    thrice = dyncomp.grad(lambda x: twice(x).sum())
    for _ in range(2):
        np.testing.assert_allclose(twice(X), second(X), rtol=1e-12)
        np.testing.assert_allclose(thrice(X), third(X), rtol=1e-12)


def test_grad_is_called_in_captured_code():
    """With a function that captured code makes, too."""

    def penalised(x, scale):
        def inner(y):
            return (y**3).sum() * scale

        return (dyncomp.grad(inner)(x) ** 2).sum() + dyncomp.value_and_grad(f)(x)[0]

    gradient = dyncomp.grad(penalised)(X, 2.0)
    np.testing.assert_allclose(gradient, 4 * 9 * 4 * X**3 + first(X), rtol=1e-12)
    compiled = dyncomp.compile(penalised, fullgraph=True)
    np.testing.assert_allclose(compiled(X, 2.0), penalised(X, 2.0), rtol=1e-12)


def test_products_with_the_hessian():
    """Forward over reverse, reverse over forward, reverse over reverse."""
    by_f = dyncomp.grad(f)
    v = np.array([1.0, 2.0, -0.5])
    wanted = second(X) * v
    _, product = dyncomp.jvp(by_f, (X,), (v,))
    np.testing.assert_allclose(product, wanted, rtol=1e-12)
    np.testing.assert_allclose(dyncomp.grad(lambda x: dyncomp.jvp(f, (x,), (v,))[1])(X), wanted, rtol=1e-12)
    np.testing.assert_allclose(dyncomp.grad(lambda x: by_f(x) @ v)(X), wanted, rtol=1e-12)


def test_vjp_in_captured_code():
    def g(x):
        value, pullback = dyncomp.vjp(lambda a, b: a * np.exp(b), x, x)
        by_a, by_b = pullback(np.ones(3))
        return (value + by_a * by_b).sum()

    assert dyncomp.compile(g, fullgraph=True)(X) == pytest.approx(g(X))
    wanted = np.exp(X) * (1 + X) + np.exp(2 * X) * (1 + 2 * X)
    np.testing.assert_allclose(dyncomp.grad(g)(X), wanted, rtol=1e-12)


def test_an_update_step_is_one_graph():
    by_f = dyncomp.grad(f)

    def descend(x):
        for _ in range(3):
            x = x - 0.1 * by_f(x)
        return x

    wanted = X
    for _ in range(3):
        wanted = wanted - 0.1 * first(wanted)
    report = dyncomp.explain(descend, fullgraph=True)(X)
    np.testing.assert_allclose(report.result, wanted, rtol=1e-12)
    assert len(report.entries) == 1


def test_the_graph_breaks_around_what_cannot_be_captured_whole():
    """Then the derivative runs by itself, and says what is wrong if it cannot either."""
    seen = []

    def noisy(x):
        seen.append(1)
        return (x * x).sum()

    by_noisy = dyncomp.grad(noisy)

    @dyncomp.compile
    def step(x):
        y = x * 2.0
        try:
            g = by_noisy(y)
        except NotDifferentiableError:
            g = y
        return g + 1.0

    for _ in range(3):
        np.testing.assert_array_equal(step(X), 4.0 * X + 1.0)
    assert len(seen) == 3


def test_writes_in_place_between_derivatives():
    def g(x):
        y = np.zeros(3)
        y += dyncomp.grad(f)(x)
        y[1:] *= 2.0
        x = x.copy()
        x[0] = y[2]
        return (y * dyncomp.grad(f)(x)).sum()

    step = 1e-6
    wanted = [(g(X + step * e) - g(X - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(dyncomp.grad(g)(X), wanted, rtol=1e-6)


# -- trees ------------------------------------------------------------------------------------
@dataclasses.dataclass
class Layer:
    weights: np.ndarray
    bias: np.ndarray


Pair = collections.namedtuple("Pair", ["left", "right"])


class Box:
    def __init__(self, held, name):
        self.held = held
        self.name = name


dyncomp.register_tree(Box, lambda box: [box.held], lambda box, held: Box(held[0], box.name))


def test_trees_of_arguments():
    tree = {
        "layers": [Layer(np.ones((2, 3)), np.zeros(3)), Layer(np.full((3, 1), 0.5), np.zeros(1))],
        "pair": Pair(2.0, (np.float32(3.0), "name")),
        "box": Box(np.ones(2), "kept"),
        "none": None,
        "count": 3,
    }

    def loss(tree, x):
        for layer in tree["layers"]:
            x = np.tanh(x @ layer.weights + layer.bias)
        pair = tree["pair"]
        return x.sum() * pair.left + pair.right[0] * 2 + tree["count"] * tree["box"].held.sum()

    x = np.ones((4, 2))
    for _ in range(2):
        value, found = dyncomp.value_and_grad(loss)(tree, x)
    assert value == pytest.approx(loss(tree, x))
    assert list(found) == list(tree)
    assert type(found["layers"]) is list and type(found["layers"][0]) is Layer
    assert found["layers"][0].weights.shape == (2, 3)
    assert type(found["pair"]) is Pair and type(found["pair"].left) is float
    assert type(found["pair"].right[0]) is np.float32 and found["pair"].right == (2.0, None)
    assert found["box"].name == "kept" and found["none"] is None and found["count"] is None
    np.testing.assert_array_equal(found["box"].held, [3.0, 3.0])
    step = 1e-6
    for place in np.ndindex(2, 3):
        ends = []
        for sign in (1, -1):
            tree["layers"][0].weights[place] += sign * step
            ends.append(loss(tree, x))
            tree["layers"][0].weights[place] -= sign * step
        wanted = (ends[0] - ends[1]) / (2 * step)
        assert found["layers"][0].weights[place] == pytest.approx(wanted, rel=1e-5, abs=1e-8)


def test_trees_of_results_and_tangents():
    def g(p):
        return {"a": p["x"] ** 2, "b": (p["x"].sum() * p["y"],)}

    point, direction = {"x": X, "y": 2.0}, {"x": np.ones(3), "y": 1.0}
    value, tangent = dyncomp.jvp(g, (point,), (direction,))
    np.testing.assert_allclose(tangent["a"], 2 * X)
    np.testing.assert_allclose(tangent["b"][0], 3 * 2.0 + X.sum())
    np.testing.assert_allclose(value["a"], X**2)


# -- gradients of one's own -----------------------------------------------------------------------
def test_custom_vjp_in_a_backward():
    """What one function's backward makes of cotangents goes through another with its own."""
    inner = dyncomp.custom_vjp(np.sin)
    inner.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (ct * 5.0,))
    outer = dyncomp.custom_vjp(lambda x: x * 2.0)
    outer.defvjp(lambda x: (x * 2.0, x), lambda x, ct: (inner(ct) * x,))
    x = np.linspace(0.1, 0.5, 5)
    found = dyncomp.grad(lambda x: np.sum(outer(x) * 3.0))(x)
    np.testing.assert_allclose(found, np.sin(3.0) * x)


def test_custom_vjp():
    @dyncomp.custom_vjp
    def clipped(x, limit):
        return np.sin(x)

    def forward(x, limit):
        return np.sin(x), (np.cos(x), limit)

    def backward(residuals, cotangent):
        slope, limit = residuals
        return np.clip(cotangent * slope, -limit, limit), None

    clipped.defvjp(forward, backward)
    np.testing.assert_array_equal(clipped(X, 0.5), np.sin(X))
    gradient = dyncomp.grad(lambda x: (clipped(x * 2.0, 0.5) * 3.0).sum())(X)
    np.testing.assert_allclose(gradient, 2 * np.clip(3 * np.cos(2 * X), -0.5, 0.5), rtol=1e-12)
    by_x = dyncomp.grad(lambda x: dyncomp.grad(lambda y: clipped(y, 9.0).sum())(x).sum())
    np.testing.assert_allclose(by_x(X), -np.sin(X), rtol=1e-12)
    np.testing.assert_allclose(dyncomp.compile(lambda x: clipped(x, 0.5) + 1)(X), np.sin(X) + 1)
    with pytest.raises(NotDifferentiableError, match="forward mode"):
        dyncomp.jvp(lambda x: clipped(x, 0.5), (X,), (X,))


def test_wrong_gradients_of_one_s_own():
    def made(backward):
        function = dyncomp.custom_vjp(lambda x, y: x * y)
        function.defvjp(lambda x, y: (x * y, None), backward)
        return dyncomp.grad(lambda x: function(x, x).sum())

    with pytest.raises(TypeError, match="tuple of 2 gradients"):
        made(lambda res, ct: ct)(X)
    with pytest.raises(ValueError, match="gradient of shape"):
        made(lambda res, ct: (ct[:2], ct))(X)


def test_stop_gradient():
    gradient = dyncomp.grad(lambda x: (dyncomp.stop_gradient(x**2) * x).sum())(X)
    np.testing.assert_allclose(gradient, X**2)
    assert dyncomp.stop_gradient(X) is X and dyncomp.stop_gradient("text") == "text"
    _, tangent = dyncomp.jvp(lambda x: x * dyncomp.stop_gradient(x), (X,), (np.ones(3),))
    np.testing.assert_allclose(tangent, X)


# -- what is computed again ---------------------------------------------------------------------
def test_checkpoint():
    """Gradients by arguments and by what the function reads from around it; nothing of it is kept."""

    def step(x, w):
        return np.tanh(x * w) * np.exp(x)

    def run(x, w, step):
        v = w * 2.0

        def with_outer(x):
            return step(x, v) + v

        for _ in range(3):
            x = step(x, w)
        if step is not plain_step:
            with_outer = dyncomp.checkpoint(with_outer)
        return with_outer(x).sum()

    plain_step = step
    again = dyncomp.checkpoint(step)
    w = np.array([0.1, 0.5, -0.4])
    wanted = dyncomp.grad(run, argnums=(0, 1))(X, w, step)
    made = dyncomp.grad(run, argnums=(0, 1))
    for _ in range(2):
        for found, expected in zip(made(X, w, again), wanted, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(again(X, w), step(X, w))
    second = dyncomp.grad(lambda x: dyncomp.grad(lambda x: run(x, w, again))(x).sum())(X)
    expected = dyncomp.grad(lambda x: dyncomp.grad(lambda x: run(x, w, step))(x).sum())(X)
    np.testing.assert_allclose(second, expected, rtol=1e-10)
    _, tangent = dyncomp.jvp(lambda x: run(x, w, again), (X,), (w,))
    np.testing.assert_allclose(tangent, wanted[0] @ w, rtol=1e-12)


def test_checkpoint_takes_less_memory():
    def deep(x, step):
        for _ in range(12):
            x = step(x)
        return x.sum()

    def step(x):
        for _ in range(4):
            x = np.sin(x)[::-1].copy() @ np.full((256, 256), 1 / 256)
        return x

    x = np.linspace(0.0, 1.0, 256 * 256).reshape(256, 256)

    def arena(step):
        report = dyncomp.explain(dyncomp.value_and_grad(lambda x: deep(x, step)))(x)
        (entry,) = report.entries
        return entry.compiled.artifact.plan.arena_bytes, report.result

    plain, (value, gradient) = arena(step)
    less, (again, second) = arena(dyncomp.checkpoint(step))
    assert less < 0.6 * plain
    np.testing.assert_allclose(again, value)
    np.testing.assert_allclose(second, gradient)


# -- places -----------------------------------------------------------------------------------
class Model:
    def __init__(self):
        self.layers = [Layer(np.ones((3, 2)), np.zeros(2)), Layer(np.full((2, 1), 0.5), np.ones(1))]
        self.scale = {"all": 2.0}


def test_gradients_by_what_is_in_objects():
    def loss(model, x, *, extra):
        for layer in model.layers:
            x = np.tanh(x @ layer.weights + layer.bias)
        return (x * model.scale["all"]).sum() + (extra * extra).sum()

    model, x = Model(), np.ones((4, 3)) * 0.1
    before = model.layers[0].weights
    names = ("model.layers[0].weights", "model.scale['all']", "x", "extra")
    made = dyncomp.value_and_grad(loss, wrt=names)
    for _ in range(2):
        value, (by_weights, by_scale, by_x, by_extra) = made(model, x, extra=np.ones(2))
    assert value == pytest.approx(loss(model, x, extra=np.ones(2)))
    assert model.layers[0].weights is before and model.scale == {"all": 2.0}
    assert by_scale == pytest.approx((value - 2.0) / 2.0) and type(by_scale) is float
    np.testing.assert_array_equal(by_extra, [2.0, 2.0])

    def functional(weights, x):
        other = Model()
        other.layers[0].weights = weights
        return loss(other, x, extra=np.ones(2))

    for found, wanted in zip((by_weights, by_x), dyncomp.grad(functional, argnums=(0, 1))(before, x)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    single = dyncomp.grad(loss, wrt="model.layers[0]")(model, x, extra=np.ones(2))
    np.testing.assert_allclose(single.weights, by_weights)


def test_wrong_places():
    def loss(model, x):
        return x.sum()

    for wrong in ("other.weights", "", "model.", "model[", "model..x", "x + 1", ()):
        with pytest.raises(ValueError, match="wrt="):
            dyncomp.grad(loss, wrt=wrong)
    with pytest.raises(AttributeError):
        dyncomp.grad(loss, wrt="model.absent")(Model(), np.ones(3))
    with pytest.raises(TypeError, match="model.layers is"):
        dyncomp.grad(loss, wrt="model.layers")(type("Empty", (), {"layers": "text"})(), np.ones(3))
