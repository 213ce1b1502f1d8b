"""Loops on the tape, an iteration a compiled graph: the same gradients as call by call, and as unrolled."""

import linecache
import random
import tracemalloc

import numpy as np
import pytest

import dyncomp
from dyncomp.autodiff import api, iterations

# what a body may do: with arrays a, b, c (4), a matrix m (4, 4) written in place, numbers s, t and a list
STATEMENTS = (
    "a = np.sin(a) + 0.3 * b",
    "b = b * a[::-1] - s * 0.1",
    "c = a @ m + b",
    "s = s + float(k) * 0.01 * a[0]",
    "s = 0.9 * s + np.tanh(b).sum()",
    "t = t * 0.5 + k / 7",
    "m[k % 4] = a * 0.5",
    "m[:, k % 4] += 0.1 * b",
    "m *= 0.9",
    "c[1:3] = b[:2]",
    "c = m[k % 4]",
    "seen.append(a * t)",
    "seen.append(s)",
    "held['last'] = b + c",
    "b = 0.5 * held.get('last', a) + b",
    "a = np.where(a > 0.2, a, 0.5 * b)",
    "a, b = 0.7 * b, 0.8 * a",
    "b = np.concatenate([a[:2], b[2:]])",
    "fresh = np.zeros(4); fresh[: 1 + k % 3] = a[k % 4]; c = c * 0.5 + fresh",
    "c = np.zeros(4)",
    "table[k % 3] += a.sum() * 0.1",
    "a = a * table[(k + 1) % 3]",
    "view = m[1:]; view += 0.05",
    "a = model.step(a, k)",
    "model.count += 1",
    "model.state = model.state * 0.5 + b",
    "b = b + 0.1 * model.state",
    "np.multiply(a, 0.9, out=a)",
    "for j in range(2): b = b * 0.9 + 0.01 * a * j",
    "if k % 3 == 1: a = a + 0.1",
    "if k == 7: break",
    "if k % 5 == 4: continue",
    "if s > 3.0: s = s * 0.5",
    "import math; s = s + math.sin(t)",
    "s = s + math.cos(s)",
    "c = np.cumsum(a) * 0.2",
    "c = np.sort(b)",
    "a = a + 0.1 * outer(b)",
    "last = b",
)

TEMPLATE = """
import math
import numpy as np

class Model:
    def __init__(self):
        self.count = 0
        self.state = np.linspace(0.0, 0.3, 4)
        self.weights = np.linspace(0.5, 0.9, 4)

    def step(self, x, k):
        return x * self.weights + 0.01 * k


def program(x, w):
    a, b = x * 1.0, x[::-1] * 0.5
    c = np.ones(4)
    m = np.eye(4) * 0.5
    m[0] = x
    s, t = 0.5 * x[1], 1.0
    seen, held, model, last = [], {{}}, Model(), x
    table = np.ones(3)
    table[1] = w
    scale = 0.1

    def outer(v):
        return v * scale * w

    for k in range(11):
{body}
    total = (a * b).sum() + (c ** 2).sum() + m.sum() + s * w + table.sum() + t * a[1] + last.sum()
    for place, found in enumerate(seen):
        total = total + 0.1 * place * np.sum(found)
    if 'last' in held:
        total = total + held['last'].sum()
    return total + model.state.sum() + model.count
"""


def made(seed):
    rng = random.Random(seed)
    lines = rng.sample(STATEMENTS, rng.randint(2, 7))
    text = TEMPLATE.format(body="\n".join("        " + line for line in lines))
    file = f"<iterations {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {}
    exec(compile(text, f"/tmp/iterations_{seed}.py", "exec"), space)
    return space["program"], text


def outcome(program, x, w, budget):
    try:
        value, gradient = dyncomp.value_and_grad(program, argnums=(0, 1), memory_budget=budget)(x, w)
    except Exception as error:  # noqa: BLE001 - all are compared
        return type(error).__name__, None
    return float(value), np.append(gradient[0], gradient[1])


def check(seed, monkeypatch):
    x, w = np.array([0.3, -0.2, 0.7, 0.1]), 0.8
    results = {}
    for name, patience, ops, budget in (
        ("calls", 1e9, 0, None),
        ("iterations", 0.0, 0, None),
        ("budget", 0.0, 0, 1000 + 100 * (seed % 7)),
        ("unrolled", 0.0, 20_000, None),
    ):
        program, text = made(seed)
        monkeypatch.setattr(iterations, "PATIENCE", patience)
        monkeypatch.setattr(iterations, "TRIALS", 3 + seed % 3)
        monkeypatch.setattr(api, "FEW_OPS", ops)
        results[name] = outcome(program, x, w, budget)
        results[name + " again"] = outcome(program, x * 1.1, w, budget)
    for suffix in ("", " again"):
        value, gradient = results["calls" + suffix]
        for name in ("iterations", "budget", "unrolled"):
            found, by = results[name + suffix]
            if isinstance(value, str) or isinstance(found, str):
                assert found == value, f"{name}: {found} instead of {value} of\n{text}"
                continue
            np.testing.assert_allclose(found, value, rtol=1e-9, err_msg=f"{name}:\n{text}")
            np.testing.assert_allclose(by, gradient, rtol=1e-8, atol=1e-11, err_msg=f"{name}:\n{text}")


@pytest.mark.parametrize("seed", range(24))
def test_random_bodies(seed, monkeypatch):
    check(seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_more_random_bodies(block, monkeypatch):
    for seed in range(1000 + 50 * block, 1050 + 50 * block):
        check(seed, monkeypatch)


def heat(c, n):
    u = np.sin(np.linspace(0, np.pi, 2000))
    for _ in range(n):
        v = u.copy()
        v[1:-1] = u[1:-1] + c * (u[2:] - 2 * u[1:-1] + u[:-2]) * (1 + 0.1 * np.tanh(u[1:-1]))
        u = v
    return (u**2).sum()


def heat_in_place(c, n):
    u = np.sin(np.linspace(0, np.pi, 2000))
    for _ in range(n):
        u[1:-1] += c * (u[2:] - 2 * u[1:-1] + u[:-2]) * (1 + 0.1 * np.tanh(u[1:-1]))
    return (u**2).sum()


@pytest.mark.parametrize("program", [heat, heat_in_place])
def test_memory_budget(program, monkeypatch):
    monkeypatch.setattr(iterations, "PATIENCE", 0.0)
    expected = dyncomp.grad(program)(0.3, 400)
    peaks = {}
    for budget in (10**8, 10**6):
        gradient = dyncomp.grad(program, memory_budget=budget)
        gradient(0.3, 40)
        tracemalloc.start()
        try:
            assert gradient(0.3, 400) == expected  # the same kernels on the same inputs
            peaks[budget] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peaks[10**6] < 2.5e6 < 6e6 < peaks[10**8]
    with pytest.raises(ValueError, match="bytes"):
        dyncomp.grad(program, memory_budget=0.5)


def test_compile_time_does_not_grow_with_steps(monkeypatch):
    def steps(c, n):
        u = np.linspace(0, 1, 20)
        for _ in range(n):
            u = u + c * np.sin(u) / n
        return u.sum()

    monkeypatch.setattr(iterations, "PATIENCE", 0.0)
    graphs = []
    compiled = iterations._compile
    monkeypatch.setattr(iterations, "_compile", lambda *args: graphs.append(1) or compiled(*args))
    iterations._config.cache_clear()
    try:
        gradient = dyncomp.grad(steps)
        gradient(0.3, 300)
        assert 1 <= len(graphs) <= 2
        gradient(0.3, 3000)  # another number of steps: an input of the graph from now on
        assert len(graphs) <= 4
        known = len(graphs)
        gradient(0.3, 5000)
        assert len(graphs) == known
    finally:
        iterations._config.cache_clear()


def test_lines_of_errors_and_exceptions():
    def f(x):
        for k in range(300):
            x = x * 1.0
            if k == 200:
                raise KeyError("mine")
        return x.sum()

    with pytest.raises(KeyError, match="mine") as caught:
        dyncomp.grad(f)(np.ones(3))
    assert caught.traceback[-1].lineno == f.__code__.co_firstlineno + 3
