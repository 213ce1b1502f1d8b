"""Derivatives of derivatives, forward mode and Jacobians of programs that are no single graph."""

import dataclasses
import inspect
import math
import tracemalloc

import numpy as np
import pytest

import dyncomp
from dyncomp.autodiff import api, iterations, record
from dyncomp.errors import NotDifferentiableError

from .test_iterations import made

X, W = np.array([0.3, -0.2, 0.7, 0.1]), 0.8
V = np.array([0.5, -1.0, 0.25, 2.0])
STEP = 1e-6


def second_derivatives(program):
    """Ways to the product of the Hessian by x with V, all of which have to agree."""
    by_x = dyncomp.grad(program)

    def along(x):
        return dyncomp.jvp(lambda y: program(y, W), (x,), (V,))[1]

    def pulled(x):
        value, pullback = dyncomp.vjp(lambda y: by_x(y, W), x)
        return pullback(V)[0]

    return {
        "forward over reverse": lambda x: dyncomp.jvp(lambda y: by_x(y, W), (x,), (V,))[1],
        "reverse over forward": lambda x: dyncomp.grad(along)(x),
        "reverse over reverse": lambda x: dyncomp.grad(lambda y: by_x(y, W) @ V)(x),
        "hessian": lambda x: dyncomp.hessian(program)(x, W) @ V,
        "jacobian": lambda x: dyncomp.jacobian(lambda y: by_x(y, W), mode="forward")(x) @ V,
        "pullback": pulled,
        "forward over forward": lambda x: [
            dyncomp.jvp(lambda y: dyncomp.jvp(lambda z: program(z, W), (y,), (V,))[1], (x,), (unit,))[1]
            for unit in np.eye(4)
        ],
    }


def outcome(run, x):
    try:
        return np.asarray(run(x))
    except Exception as error:  # noqa: BLE001 - all are compared
        return type(error).__name__


def difference(gradient, step):
    ends = [gradient(X + s * step * V, W) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * step)


def compare(program, text, ways=None):
    gradient = outcome(lambda x: dyncomp.grad(program)(x, W), X)
    if isinstance(gradient, str):
        expected = gradient
    else:
        value, slope = dyncomp.jvp(lambda x: program(x, W), (X,), (V,))
        np.testing.assert_allclose(slope, gradient @ V, rtol=1e-8, atol=1e-11, err_msg=text)
        np.testing.assert_allclose(value, program(X, W), rtol=1e-9, err_msg=text)
        expected, other = (difference(dyncomp.grad(program), step) for step in (STEP, STEP / 7))
        if not np.allclose(expected, other, rtol=1e-3, atol=1e-3):  # at a kink
            expected = second_derivatives(program)["hessian"](X)
    for name, run in second_derivatives(program).items():
        if ways is not None and name not in ways:
            continue
        found = outcome(run, X)
        if isinstance(found, str) or isinstance(expected, str):
            assert isinstance(found, str) and found == expected, f"{name}: {found} of\n{text}"
            continue
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=f"{name}:\n{text}")


def check(seed, monkeypatch):
    monkeypatch.setattr(api, "FEW_OPS", 0)
    monkeypatch.setattr(record, "MOST_OPS", 1)
    monkeypatch.setattr(iterations, "TRIALS", 3 + seed % 3)
    for patience in (0.0, 1e9):
        monkeypatch.setattr(iterations, "PATIENCE", patience)
        compare(*made(seed))


@pytest.mark.parametrize("seed", range(6))
def test_random_bodies(seed, monkeypatch):
    check(seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_more_random_bodies(block, monkeypatch):
    for seed in range(2000 + 20 * block, 2020 + 20 * block):
        check(seed, monkeypatch)


# -- programs -----------------------------------------------------------------------------------------
def views(x):
    m = np.outer(x, np.cos(x))
    v = m.T[::-1]
    v[1] *= x
    m[:, 0] += v[2]
    return (m * m[::-1]).sum() + (np.diagonal(m) ** 3).sum()


def complex_parts(x):
    z = x + 1j * x[::-1] ** 2
    z.imag *= x
    z.real[1:] += 0.5
    w = np.zeros(4, complex)
    w[::2] = z[:2] * z[2:]
    w[1] = 1j * z[0]
    for _ in range(5):
        w = w * np.exp(1j * z * 0.1)
        if abs(w[0]) > 10:
            w = w * 0.5
    return (np.abs(w) ** 2).sum() + w.real.sum()


def index_arrays(x):
    y = np.zeros(6)
    i = np.array([0, 2, 2, 5])
    y[i] = x
    np.add.at(y, i, x**2)
    chosen = y > 0.1
    y[chosen] *= y[chosen]
    y[[1, 3]] = x[[0, 0]] * y[2]
    return (y**2).sum() + np.take(y, [1, 1, 2]).prod() + y[chosen][0]


def out_arguments(x):
    y = np.empty(4)
    np.sin(x, out=y)
    np.multiply(y, x, out=y)
    np.add(y, 1, out=y, where=x > 0.2)
    np.cumsum(y * y, out=y)
    np.copyto(y, x**2, where=x < 0)
    np.put(y, [1], x[2] ** 3)
    return (y**2).sum()


def broadcast_views(x):
    b = np.broadcast_to(x, (3, 4))
    s = np.lib.stride_tricks.sliding_window_view(x * x, 2)
    return (b * b[0]).sum() + (s[:, 0] * s[:, 1] ** 2).sum() + (s**2).sum()


def linear_algebra(x):
    a = np.outer(x, x) + np.eye(4) * 3
    u = np.linalg.solve(a, x)
    return u @ x + np.log(np.linalg.det(a)) + np.einsum("ij,jk->", a, a)


def numbers(x):
    s = 0.0
    for k in range(4):
        s = s + float(x[k]) * math.sin(float(x[(k + 1) % 4])) * s + x[k].item() ** 3
    t = x.tolist()
    return s * s + t[0] * t[1] * t[2] + math.exp(t[3]) * s


@dataclasses.dataclass
class Pair:
    a: object
    b: object


def objects(x):
    p = Pair(x * 2, [x**2, {"k": x}])
    p.a = p.a * p.b[0]
    p.b[1]["k"] = p.a[::-1] * x
    seen = [p.a]
    seen.append(seen[-1] * p.b[1]["k"])
    return sum((s**2).sum() for s in seen)


def stopped(x):
    y = x.copy()
    y[0] = x[1] ** 2
    return (y * x * x).sum() + (dyncomp.checkpoint(np.sin)(y) * dyncomp.vmap(lambda a: a * a)(x)).sum()


def inner_gradient(x):
    def h(y):
        s = (y**2).sum()
        if s > 0.5:
            s = s * y[0] * x[1]
        return s * np.sin(s)

    value, g = dyncomp.value_and_grad(h)(x * x + 0.3)
    return (g * g).sum() * value + (dyncomp.grad(lambda y: (y**3 * x).sum())(x * x) * x).sum()


def inner_forward(x):
    def h(y):
        if y[0] > -100:
            y = y * x * y
        return np.sin(y)

    value, slope = dyncomp.jvp(h, (x,), (x**2,))
    return (value * slope).sum()


def inner_pullback(x):
    def h(y, z):
        if y[0] > -100:
            y = y * x * z
        return np.sin(y), (y * z).sum()

    (a, b), pull = dyncomp.vjp(h, x, x**2)
    u, v = pull((a, b))
    again, _ = pull((x, 1.0))
    return (u * v * a).sum() + (again * v).sum() * b


def inner_jacobians(x):
    def h(y):
        if y[0] > -100:
            y = y * y * x
        return y[:3] * y[1:]

    first = dyncomp.jacobian(h)(x) @ x
    second = dyncomp.hessian(lambda y: h(y).sum() if y[0] > -9 else 0.0)(x) @ x
    return first.sum() + second.sum() + (dyncomp.jacobian(h, mode="forward")(x * 2) ** 2).sum()


def one_direction_is_not_the_other(x):
    return (x * dyncomp.grad(lambda y: (x * y).sum() if y[0] > -9 else 0.0)(np.ones(4))).sum()


def inner_by_numbers(x):
    c = x[0] * x[1]

    def f(t):
        return t * t * c if t > -9 else t

    return dyncomp.grad(f)(x[2]) * c + dyncomp.grad(f)(float(x[3]))


def inner_trees(x):
    def h(p):
        scale = p["b"][1] if p["a"][0] > -9 else 0.0
        return (p["a"] ** 2 * p["b"][0]).sum() * scale

    def k(p):
        scale = 1.0 if p.a[0] > -9 else 0.0
        return (p.a**2 * p.b[0]).sum() * scale, p.a

    g = dyncomp.grad(h)({"a": x, "b": (x**2, x[1])})
    by_a, more = dyncomp.grad(k, wrt="p.a", has_aux=True)(Pair(x * 2, [x**2]))
    return (g["a"] * g["b"][0]).sum() * g["b"][1] + (by_a * more).sum()


def other_dtypes(x):
    y, z = x.astype(np.float32), np.zeros(4, np.float32)
    z[:2] = x[2:]
    return (y.astype(float) ** 2).sum() * x[0] + (x[:0].sum() + np.argmax(x) * z.astype(float)[1]) * x[1]


def ordered(x):
    y, i = np.sort(x * x), np.argsort(x)
    return (y * x[i]).sum() + np.max(x) * np.min(y) + np.median(x) * x[0]


def flat(x):
    m = np.outer(x, x)
    m.flat[3:5] = x[:2] ** 2
    s = 0
    for v in m.flat:
        s = s + v * v
    m.shape = (2, 8)
    return s + (m[0] * m[1]).sum()


def newton(x):
    s = np.abs(x) + 0.5
    while np.abs(s * s - 1 - x * x).max() > 1e-12:
        s = 0.5 * (s + (1 + x * x) / s)
    return (s * x).sum()


def third_derivatives(x):
    def g(z):
        return dyncomp.grad(lambda y: (y**4 * z).sum() if y[0] > -9 else 0.0)(z)

    return (dyncomp.grad(lambda z: (g(z) * z).sum() if z[0] > -9 else 0.0)(x) * x).sum()


PROGRAMS = [
    views,
    complex_parts,
    index_arrays,
    out_arguments,
    broadcast_views,
    linear_algebra,
    numbers,
    objects,
    stopped,
    inner_gradient,
    inner_forward,
    inner_pullback,
    inner_jacobians,
    one_direction_is_not_the_other,
    inner_by_numbers,
    inner_trees,
    other_dtypes,
    ordered,
    flat,
    newton,
    third_derivatives,
]


def broken(program):
    def run(x, w):
        dyncomp.graph_break()
        return program(x) * w

    return run, inspect.getsource(program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program):
    step = 1e-6
    slopes = [(program(X + step * u) - program(X - step * u)) / (2 * step) for u in np.eye(4)]
    tolerance = 0.1 if program is other_dtypes else 1e-5
    run, text = broken(program)
    found = dyncomp.grad(run)(X, 1.0)
    np.testing.assert_allclose(found, slopes, rtol=1e-4, atol=tolerance, err_msg=text)
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(dyncomp.jacobian(run, mode=mode)(X, 1.0), found, rtol=1e-7, atol=1e-9)
    if program is not other_dtypes:
        compare(run, text, ("forward over reverse", "reverse over forward", "hessian"))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_in_all_ways(program):
    if program is not other_dtypes:
        compare(*broken(program))


def test_functions_with_gradients_of_their_own():
    twice = dyncomp.custom_vjp(lambda x: x**2)
    twice.defvjp(lambda x: (x**2, x), lambda kept, ct: (ct * kept * 3.0,))  # not 2: seen to be used

    def f(x):
        dyncomp.graph_break()
        return (twice(x) * x).sum()

    # x**2 and 3*x*x
    np.testing.assert_allclose(dyncomp.grad(f)(X), 4 * X**2)
    # by the rule of x**2 once more, and of what the gradient is made of
    np.testing.assert_allclose(np.diag(dyncomp.hessian(f)(X)), 3 * X + 6 * X)
    for forward in (lambda: dyncomp.jvp(f, (X,), (V,)), lambda: dyncomp.jvp(dyncomp.grad(f), (X,), (V,))):
        with pytest.raises(NotDifferentiableError, match="forward mode"):
            forward()

    def closes_over(x):
        dyncomp.graph_break()
        inner = dyncomp.custom_vjp(lambda y: y * x)
        inner.defvjp(lambda y: (y * x, None), lambda kept, ct: (ct,))
        return inner(x).sum()

    with pytest.raises(NotDifferentiableError, match="other variables"):
        dyncomp.hessian(closes_over)(X)


def test_what_leaves_has_no_forward_derivative_either():
    def f(x):
        dyncomp.graph_break()
        return (np.frombuffer(x.tobytes()) * x).sum()

    with pytest.raises(NotDifferentiableError, match=r"test_nested_tapes.py:\d+"):
        dyncomp.jvp(f, (X,), (V,))
    with pytest.raises(NotDifferentiableError, match=r"test_nested_tapes.py:\d+"):
        dyncomp.hessian(f)(X)

    def writes(x):
        dyncomp.graph_break()
        x[0] = 1.0
        return x.sum()

    with pytest.raises(NotDifferentiableError, match="writes into an argument"):
        dyncomp.jvp(writes, (X.copy(),), (V,))


def test_forward_mode_keeps_nothing(monkeypatch):
    """The memory of a forward derivative of a loop does not grow with the number of steps."""
    monkeypatch.setattr(iterations, "PATIENCE", 0.0)

    def heat(c, n):
        u = np.sin(np.linspace(0, np.pi, 1000))
        for _ in range(n):
            u[1:-1] += c * (u[2:] - 2 * u[1:-1] + u[:-2]) * (1 + 0.1 * np.tanh(u[1:-1]))
        return (u**2).sum()

    def slope(n):
        return dyncomp.jvp(lambda c: heat(c, n), (0.3,), (1.0,))[1]

    slope(300)
    tracemalloc.start()
    try:
        found = slope(900)
        assert tracemalloc.get_traced_memory()[1] < 2e6  # of 7 MB of arrays
    finally:
        tracemalloc.stop()
    assert found == pytest.approx(dyncomp.grad(heat)(0.3, 900), rel=1e-9)
