"""``dyncomp.grad`` and ``dyncomp.value_and_grad``: values, arguments, errors."""

from __future__ import annotations

import functools
import math
import threading

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import NotDifferentiableError
from dyncomp.hook import _hook

STEP = 1e-6


def difference(f, args, position, direction):
    ends = [
        f(*(a + sign * STEP * direction if k == position else a for k, a in enumerate(args)))
        for sign in (1, -1)
    ]
    return (ends[0] - ends[1]) / (2 * STEP)


def logistic(w, x, y):
    p = 1 / (1 + np.exp(-(x @ w)))
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()


def network(first, second, x):
    hidden = np.maximum(x @ first, 0.0)
    scores = hidden @ second
    scores = scores - scores.max(axis=1, keepdims=True)
    return (np.log(np.exp(scores).sum(axis=1)) - scores[:, 0]).mean()


def in_steps(x, v, count):
    """A loop that is unrolled, with writes in place."""
    x, v = x.copy(), v.copy()
    for _ in range(count):
        v -= 0.1 * np.sin(x)
        x += 0.1 * v
    return (v**2).sum() / 2 - np.cos(x).sum()


def likelihood(mean, factor, data):
    """Of a normal distribution with a Cholesky factor."""
    covariance = factor @ factor.T + np.eye(3)
    solved = np.linalg.solve(covariance, (data - mean).T)
    return 0.5 * np.linalg.slogdet(covariance)[1] * len(data) + 0.5 * ((data - mean).T * solved).sum()


RNG = np.random.default_rng(0)
CASES = [
    (logistic, (RNG.random(4), RNG.random((20, 4)), np.round(RNG.random(20)))),
    (network, (RNG.standard_normal((4, 6)), RNG.standard_normal((6, 3)), RNG.standard_normal((8, 4)))),
    (in_steps, (RNG.random(5), RNG.random(5), 4)),
    (likelihood, (RNG.random(3), RNG.random((3, 3)), RNG.random((10, 3)))),
]


@pytest.mark.parametrize(("f", "args"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_gradients(f, args):
    plain = f(*args)
    made = dyncomp.value_and_grad(f, argnums=(0, 1))
    for _ in range(2):
        value, gradients = made(*args)
        np.testing.assert_allclose(value, plain, rtol=1e-12)
        for position, gradient in enumerate(gradients):
            assert gradient.shape == args[position].shape and gradient.dtype == args[position].dtype
            direction = RNG.standard_normal(args[position].shape)
            wanted = difference(f, args, position, direction)
            np.testing.assert_allclose((gradient * direction).sum(), wanted, rtol=1e-5, atol=1e-7)


def test_shapes_may_change_between_calls():
    made = dyncomp.grad(lambda x: (x**3).sum())
    for n in (3, 5, 5, 2, 8):
        x = np.linspace(-1.0, 1.0, n)
        np.testing.assert_allclose(made(x), 3 * x**2)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: (a @ a).sum(),
        lambda a: np.linalg.inv(a).sum(),
        lambda a: np.linalg.slogdet(a + a.T)[1] + np.trace(a),
        lambda a: np.linalg.eigh(a @ a.T)[0].sum() + a[0].sum(),
    ],
)
def test_sizes_of_square_matrices_may_change(f):
    for n in (2, 4, 3):
        a = RNG.standard_normal((n, n)) + 3 * np.eye(n)
        direction = RNG.standard_normal((n, n))
        found = (dyncomp.grad(f)(a) * direction).sum()
        np.testing.assert_allclose(found, difference(f, [a], 0, direction), rtol=1e-5)
        np.testing.assert_allclose(dyncomp.jvp(f, (a,), (direction,))[1], found, rtol=1e-9)


def test_floating_point_errors_are_no_reason_to_give_up():
    x = np.array([0.0, 1.0, -1.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(dyncomp.grad(lambda x: np.log(x).sum())(x), 1 / x)
        np.testing.assert_array_equal(dyncomp.grad(lambda x: np.exp(999 + x).sum())(x), np.exp(999 + x))
        value, _ = dyncomp.value_and_grad(lambda x: np.sqrt(x).sum())(x)
    assert np.isnan(value)


def test_impossible_events_in_logarithms():
    """``-inf`` is the logarithm of nothing; its differences are NaN, gradients are not."""

    def f(x):
        table = np.full((4, 3), -np.inf)
        table[0, 0] = 0.0
        for t in range(1, 4):
            moved = np.concatenate([[-np.inf], table[t - 1, :-1]])
            table[t] = np.logaddexp(table[t - 1], moved) + x[t]
        return np.logaddexp.reduce(table[-1])

    x = RNG.standard_normal((4, 3))
    direction = RNG.standard_normal((4, 3))
    found = (dyncomp.grad(f)(x) * direction).sum()
    np.testing.assert_allclose(found, difference(f, [x], 0, direction), rtol=1e-7)
    assert dyncomp.grad(lambda x: np.hypot(x, 0.0))(0.0) == 0.0


def test_time_loops():
    def f(x, steps):
        for _ in range(steps):
            x = x * 0.9 + np.sin(x) * 0.1
        return x.sum()

    x = np.linspace(0.0, 2.0, 7)
    direction = RNG.standard_normal(7)
    for steps in (1, 20, 100, 1000):
        gradient = dyncomp.grad(f)(x, steps)
        wanted = difference(lambda x, steps=steps: f(x, steps), [x], 0, direction)
        np.testing.assert_allclose((gradient * direction).sum(), wanted, rtol=1e-6)


def test_functions_of_single_numbers():
    def f(x):
        first, second, third = float(x[0]), x[1], float(x[2])
        total = math.sin(first) * second + math.atan2(first, second) + third**2
        total += math.hypot(first, second) + first / third + third % second + math.lgamma(third)
        return total + math.pow(first, second) + third // 0.8

    x = np.array([1.3, 0.6, 2.1])
    direction = np.array([0.3, -1.0, 0.7])
    wanted = difference(f, [x], 0, direction)
    np.testing.assert_allclose((dyncomp.grad(f)(x) * direction).sum(), wanted, rtol=1e-6)
    with pytest.raises(NotDifferentiableError, match="math.log at"):
        dyncomp.grad(lambda x: math.log(x[0], 2))(x)


def test_numbers_and_several_arguments():
    assert dyncomp.grad(lambda a, b: a * b**2, argnums=(0, 1))(2.0, 3.0) == (9.0, 12.0)
    assert type(dyncomp.grad(lambda a: a * a)(2.0)) is float
    x = np.array([1.0, 2.0])
    first, second = dyncomp.grad(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(x, x)
    np.testing.assert_array_equal(first, 2 * x * x)
    np.testing.assert_array_equal(second, x * x)


def test_an_argument_that_is_a_global_too():
    shared = np.array([1.0, 2.0])

    def f(x):
        return (x * shared).sum()

    made = dyncomp.grad(f)
    for x in (np.array([5.0, 6.0]), shared, np.array([5.0, 6.0])):
        np.testing.assert_array_equal(made(x), shared)
    fresh = dyncomp.grad(f)
    np.testing.assert_array_equal(fresh(shared), shared)


def test_copies_of_an_argument_stand_for_no_variable():
    given = np.array([1.0, -2.0, 3.0])

    def scaled(x):
        return (x * given.copy()).sum() + (x.copy() * given).sum() + (given.copy() * given).sum()

    np.testing.assert_allclose(dyncomp.grad(scaled)(given), 2 * given, rtol=1e-15)
    both = dyncomp.grad(lambda x, y: (x.copy() * y.copy() ** 2).sum(), argnums=(0, 1))(given, given)
    np.testing.assert_allclose(both, (given**2, 2 * given**2), rtol=1e-15)


def test_values_read_in_many_places_are_differentiated_once():
    def f(x):
        return sum(x[1] * np.sin(x[0]) * k for k in range(1, 8))

    report = dyncomp.explain(dyncomp.grad(f))(np.array([0.3, 0.7]))
    np.testing.assert_allclose(report.result, [0.7 * 28 * np.cos(0.3), 28 * np.sin(0.3)])
    # not seven sines, each with a way back to x
    assert report.entries[0].compiled.nodes["own"] < 30


def test_what_the_result_does_not_depend_on():
    x, y = np.ones(3), np.ones((2, 2))
    np.testing.assert_array_equal(dyncomp.grad(lambda x, y: x.sum(), argnums=1)(x, y), np.zeros((2, 2)))
    np.testing.assert_array_equal(dyncomp.grad(lambda x, y: (np.floor(x) * y.sum()).sum())(x, y), np.zeros(3))


def test_more_results():
    def f(x):
        squares = x * x
        return squares.sum(), squares

    (value, squares), gradient = dyncomp.value_and_grad(f, has_aux=True)(np.arange(3.0))
    assert value == 5.0
    np.testing.assert_array_equal(squares, [0.0, 1.0, 4.0])
    np.testing.assert_array_equal(gradient, [0.0, 2.0, 4.0])
    gradient, more = dyncomp.grad(f, has_aux=True)(np.arange(3.0))
    np.testing.assert_array_equal(more, [0.0, 1.0, 4.0])


def test_complex_arguments():
    z = np.array([1 + 2j, 3j])
    np.testing.assert_allclose(dyncomp.grad(lambda z: (np.abs(z) ** 2).sum())(z), 2 * z)


def test_single_precision_stays():
    gradient = dyncomp.grad(lambda x: np.tanh(x).sum())(np.ones(3, np.float32))
    assert gradient.dtype == np.float32


def test_arguments_are_not_changed():
    x = np.arange(3.0)

    def f(x):
        y = x.copy()
        y *= 2.0
        return (y * y).sum()

    np.testing.assert_array_equal(dyncomp.grad(f)(x), 8 * x)
    np.testing.assert_array_equal(x, np.arange(3.0))


def test_minimisation_with_scipy():
    optimize = pytest.importorskip("scipy.optimize")

    def rosenbrock(x):
        return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    found = optimize.minimize(dyncomp.value_and_grad(rosenbrock), np.zeros(5), jac=True)
    np.testing.assert_allclose(found.x, np.ones(5), atol=1e-4)


def test_threads():
    made = dyncomp.grad(lambda x: (np.sin(x) * x).sum())
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            x = rng.random(7)
            if not np.allclose(made(x), np.cos(x) * x + np.sin(x)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_gradients_in_compiled_code_and_of_compiled_functions():
    def f(x):
        return (np.sin(x) * x).sum()

    x = np.linspace(0.0, 1.0, 5)
    wanted = np.cos(x) * x + np.sin(x)
    by_f = dyncomp.grad(f)

    def descend(x, count):
        for _ in range(count):
            x = x - 0.1 * by_f(x)
        return x * 1.0

    for function in (dyncomp.compile(by_f), dyncomp.grad(dyncomp.compile(f)), by_f):
        for _ in range(3):
            np.testing.assert_allclose(function(x), wanted)
    compiled = dyncomp.compile(descend)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(x, 3), descend(x, 3))


def test_explain_shows_the_kernels_of_the_gradient():
    def f(x):
        return (np.sin(x) * x).sum()

    by_f = dyncomp.grad(f)
    x = np.linspace(0.0, 1.0, 5)
    report = dyncomp.explain(by_f)(x)
    (entry,) = report.entries
    np.testing.assert_allclose(report.result, np.cos(x) * x + np.sin(x))
    assert "cos" in report.details()
    assert {"sin", "cos"} <= {node.op for node in entry.compiled.graph_after.nodes}


# -- errors -----------------------------------------------------------------------------------
def test_arguments_that_have_no_derivative():
    for bad in (np.arange(3), 2, "x", [1, 2]):
        with pytest.raises(TypeError, match="argument 0 of"):
            dyncomp.grad(lambda x: x.sum())(bad)
    with pytest.raises(TypeError, match="argnums names argument 3"):
        dyncomp.grad(lambda x: x.sum(), argnums=3)(np.ones(2))
    for wrong in (-1, (), (0, -2), True, ("x",)):
        with pytest.raises(ValueError, match="argnums"):
            dyncomp.grad(lambda x: x.sum(), argnums=wrong)


def test_results_that_have_no_derivative():
    with pytest.raises(TypeError, match="real scalar"):
        dyncomp.grad(lambda x: x * 2)(np.ones(3))
    with pytest.raises(TypeError, match="real scalar"):
        dyncomp.grad(lambda x: (x * 1j).sum())(np.ones(3))
    with pytest.raises(TypeError, match="pair"):
        dyncomp.grad(lambda x: x.sum(), has_aux=True)(np.ones(3))


def test_what_is_not_one_graph_is_refused_where_it_loses_the_derivative():
    def leaves_for_c(x):
        y = np.frombuffer((x * 2).tobytes())
        return (y * x).sum()

    with pytest.raises(NotDifferentiableError, match=rf"{leaves_for_c.__code__.co_firstlineno + 1}"):
        dyncomp.grad(leaves_for_c)(np.ones(3))


def test_loops_over_numbers():
    def f(x):
        total = 0.0
        for i in range(1000):
            total += x[i % 3] * 0.5
        return total

    gradient = dyncomp.grad(f)(np.ones(3))
    np.testing.assert_allclose(gradient, [167.0, 166.5, 166.5])


def test_a_function_without_derivative_is_named_with_its_line():
    def f(x):
        return np.nextafter(x, 2.0).sum()

    with pytest.raises(NotDifferentiableError, match=rf"nextafter at .*:{f.__code__.co_firstlineno + 1} "):
        dyncomp.grad(f)(np.ones(3))


def test_exceptions_are_the_programs():
    def f(x):
        return x[np.array([5])].sum()

    with pytest.raises(IndexError):
        dyncomp.grad(f)(np.ones(3))


def test_writes_to_arguments_are_refused():
    def f(x):
        x *= 2.0
        return x.sum()

    with pytest.raises(NotDifferentiableError, match="writes into an argument"):
        dyncomp.grad(f)(np.ones(3))


def test_constants_and_identities():
    np.testing.assert_array_equal(dyncomp.grad(lambda x: 3.0)(np.ones(3)), np.zeros(3))
    assert dyncomp.grad(lambda x: x)(2.0) == 1.0
    assert dyncomp.value_and_grad(lambda x: x)(2.0) == (2.0, 1.0)


# -- products with the Jacobian, and all of it ------------------------------------------------------
def curve(x):
    return np.stack([x[0] * x[1], np.sin(x).sum(), x[2] ** 2, x[0]])


POINT = np.array([0.3, 1.2, -0.7])
JACOBIAN = np.array([[1.2, 0.3, 0.0], np.cos(POINT), [0.0, 0.0, -1.4], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_jacobian(mode):
    made = dyncomp.jacobian(curve, mode=mode)
    for _ in range(2):
        np.testing.assert_allclose(made(POINT), JACOBIAN, atol=1e-15)
    first, second = dyncomp.jacobian(lambda a, b: a[:, None] * b, argnums=(0, 1), mode=mode)(POINT, POINT[:2])
    assert first.shape == (3, 2, 3) and second.shape == (3, 2, 2)
    np.testing.assert_allclose(first, np.einsum("j,ik->ijk", POINT[:2], np.eye(3)))
    np.testing.assert_allclose(second, np.einsum("i,jk->ijk", POINT, np.eye(2)))


def test_a_pullback_is_of_the_arrays_as_they_were():
    def f(x, w):
        y = np.exp(x) * w
        return y[::2], y.T, y

    x, w = np.random.default_rng(0).random((2, 4, 3))
    given = [np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 3))]
    wanted = dyncomp.vjp(f, x, w)[1](tuple(given))
    moved = [x.copy(), w.copy()]
    results, pullback = dyncomp.vjp(f, *moved)
    for array in (*moved, *results):
        array[:] = 0.0
    for one, other in zip(pullback(tuple(given)), wanted):
        np.testing.assert_array_equal(one, other)
    rows = np.array([2.0, 1.0, 2.0, 1.0])[:, None] + 1
    np.testing.assert_allclose(wanted[1], rows * np.exp(x))


def test_pullbacks_of_a_result_that_is_given_twice():
    def f(x):
        y = np.sin(x)
        return y, y

    _, pullback = dyncomp.vjp(f, np.ones(3))
    np.testing.assert_allclose(pullback((np.ones(3), 2 * np.ones(3)))[0], 3 * np.cos(1.0))


def test_pullbacks_of_functions_of_any_size():
    def f(x):
        return (x.reshape(2, -1) ** 2 * x.shape[0]).sum(axis=0)

    for n in (6, 10, 14, 22, 6):
        x = np.arange(float(n))
        _, pullback = dyncomp.vjp(f, x)
        np.testing.assert_allclose(pullback(np.ones(n // 2))[0], 2 * x * n)


def test_jvp_and_vjp():
    direction, weights = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    value, tangent = dyncomp.jvp(curve, (POINT,), (direction,))
    np.testing.assert_allclose(value, curve(POINT))
    np.testing.assert_allclose(tangent, JACOBIAN @ direction)
    x = POINT.copy()
    value, pullback = dyncomp.vjp(curve, x)
    x[:] = 9.0  # what is written later does not count
    (gradient,) = pullback(weights)
    np.testing.assert_allclose(gradient, weights @ JACOBIAN)
    (product, total), pullback = dyncomp.vjp(lambda a, b: (a @ b, a.sum()), np.ones((2, 3)), np.ones((3, 2)))
    by_a, by_b = pullback((np.ones((2, 2)), 2.0))
    np.testing.assert_array_equal(by_a, np.full((2, 3), 4.0))
    np.testing.assert_array_equal(by_b, np.full((3, 2), 2.0))


def test_jvp_of_linear_algebra_and_loops():
    def f(a, b):
        for _ in range(3):
            a = np.linalg.inv(a + np.eye(3)) @ b
        return np.linalg.slogdet(a + 2 * np.eye(3))[1] + np.linalg.eigvalsh(a @ a.T).max()

    a, b = RNG.random((3, 3)), RNG.random((3, 3))
    ta, tb = RNG.random((3, 3)), RNG.random((3, 3))
    _, tangent = dyncomp.jvp(f, (a, b), (ta, tb))
    wanted = (f(a + STEP * ta, b + STEP * tb) - f(a - STEP * ta, b - STEP * tb)) / (2 * STEP)
    np.testing.assert_allclose(tangent, wanted, rtol=1e-6)
    by_a, by_b = dyncomp.grad(f, argnums=(0, 1))(a, b)
    np.testing.assert_allclose((by_a * ta).sum() + (by_b * tb).sum(), tangent, rtol=1e-9)


def test_hessian():
    def f(x):
        return (np.exp(x) * x**3).sum() + x[0] * x[1]

    x = POINT
    wanted = np.diag(np.exp(x) * (x**3 + 6 * x**2 + 6 * x)) + np.eye(3)[[1, 0, 2]] * [[1], [1], [0]]
    made = dyncomp.hessian(f)
    for _ in range(2):
        np.testing.assert_allclose(made(x), wanted, rtol=1e-12, atol=1e-12)


def test_wrapped_functions_have_derivatives_of_their_own():
    def f(x):
        return x * 2

    dyncomp.jacobian(f)(np.ones(2))

    @functools.wraps(f)
    def g(x):
        return f(x) * x

    np.testing.assert_allclose(dyncomp.jacobian(g)(np.ones(2)), np.eye(2) * 4)


def test_wrong_forms():
    with pytest.raises(ValueError, match="parts of the cotangent"):
        dyncomp.vjp(curve, POINT)[1]((np.ones(4), np.ones(4)))
    with pytest.raises(ValueError, match="cotangent of shape"):
        dyncomp.vjp(curve, POINT)[1](np.ones(3))
    with pytest.raises(ValueError, match="tangent of shape"):
        dyncomp.jvp(curve, (POINT,), (np.ones(2),))
    with pytest.raises(ValueError, match="1 arguments and 2 tangents"):
        dyncomp.jvp(curve, (POINT,), (POINT, POINT))
    with pytest.raises(TypeError, match="real scalar"):
        dyncomp.hessian(curve)(POINT)
    with pytest.raises(TypeError, match="jacobian needs"):
        dyncomp.jacobian(lambda x: (x * 2, x + 1))(POINT)
    with pytest.raises(ValueError, match="mode"):
        dyncomp.jacobian(curve, mode="both")


def test_a_size_worked_out_from_another_may_change():
    """``-1`` in the shape of a batch whose size has become a symbol."""

    def f(weights, images):
        return ((images.reshape(len(images), -1) @ weights) ** 2).sum()

    made = dyncomp.grad(f)
    weights = RNG.random((12, 2))
    for n in (5, 7, 3):
        images = RNG.random((n, 3, 4))
        flat = images.reshape(n, 12)
        np.testing.assert_allclose(made(weights, images), 2 * flat.T @ (flat @ weights), rtol=1e-12)


def test_any_number_of_functions_have_gradients(monkeypatch):
    """The functions around them are the same code: no limit of its entries may be reached."""
    monkeypatch.setattr(_hook, "num_entries", lambda code: 10**6)
    assert dyncomp.grad(lambda x: (x**3).sum())(np.array([2.0]))[0] == 12.0
