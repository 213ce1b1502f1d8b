"""Loops on the tape, an iteration a compiled graph: the same gradients as call by call, and as unrolled."""

import linecache
import random
import threading
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


# where time is a Python number, and steps depend on arrays
CLOCKED = (
    "h = min(0.2, end - clock)",
    "h = max(0.05, h * min(1.5, 0.1 / (1e-3 + abs(float(s)))))",
    "if float(np.abs(a).max()) > 0.9: a = a * 0.5; h = 0.5 * h",
    "h = h * (0.9 if a[0] > b[0] else 1.1)",
    "a = a + h * np.sin(b)",
    "b = b - h * a * clock",
    "t = t + h * 0.1",
    "s = s + h * t",
    "if not (a > 0).any(): break",
    "x = x if s < 1.0 or a[1] > 0.3 else x * 1.01",
    "seen.append(h * a)",
    "clock = clock + h * float(a[2]) * 0.1",
)


def made(seed, clocked=False):
    rng = random.Random(seed)
    lines = rng.sample(STATEMENTS, rng.randint(2, 7))
    template = TEMPLATE
    if clocked:
        lines = rng.sample(CLOCKED, rng.randint(3, 7)) + lines[:3]
        rng.shuffle(lines)
        # one that goes on at once has had its time
        lines = ["k += 1", "clock += h", *sorted(lines, key=lambda line: "continue" in line)]
        template = template.replace(
            "    for k in range(11):",
            "    clock, h, end, k = 0.0, 0.12, 1.0 + 0.1 * x[0], -1\n    while clock < end and k < 30:",
        )
    text = template.format(body="\n".join("        " + line for line in lines))
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


def check(seed, monkeypatch, clocked=False):
    x, w = np.array([0.3, -0.2, 0.7, 0.1]), 0.8
    results = {}
    for name, patience, ops, budget in (
        ("calls", 1e9, 0, None),
        ("iterations", 0.0, 0, None),
        ("budget", 0.0, 0, 1000 + 100 * (seed % 7)),
        ("unrolled", 0.0, 20_000, None),
    ):
        program, text = made(seed, clocked)
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


@pytest.mark.parametrize("seed", [*range(22), 1194, 1281])
def test_random_bodies(seed, monkeypatch):
    check(seed, monkeypatch)


@pytest.mark.parametrize("seed", range(12))
def test_random_steps_of_time(seed, monkeypatch):
    check(seed, monkeypatch, clocked=True)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_more_random_steps_of_time(block, monkeypatch):
    for seed in range(3000 + 50 * block, 3050 + 50 * block):
        check(seed, monkeypatch, clocked=True)


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


# -- programs ---------------------------------------------------------------------------------------------
def tri(x):
    s = 0.0
    for k in range(30):
        acc = np.zeros(3)
        for j in range(k):
            acc[j % 3] += x[j % 3] * 0.1 * x[(j + k) % 3]
        s = s + acc.sum()
    return s


def zips(x):
    Ws = [x * (i + 1) for i in range(40)]
    bs = [x[::-1] * 0.1 for i in range(40)]
    h = x
    for _i, (W, b) in enumerate(zip(Ws, bs)):
        h = np.tanh(W * h + b)
    return h.sum()


def growing(x):
    out = np.zeros(0)
    for k in range(20):
        out = np.concatenate([out, x * k])
    return (out**2).sum()


def strings(x):
    d = {"a": x, "b": x * 2}
    s = 0
    for name in ["a", "b"] * 20:
        s = s + d[name].sum() ** 2
        d[name] = d[name] * 0.9
    return s


def exc(x):
    s = 0
    for k in range(20):
        try:
            if k % 4 == 3:
                raise ValueError
            s = s + x[k % 3] ** 2
        except ValueError:
            s = s * 0.5
    return s


def whileloop(x):
    k = 0
    s = x * 1.0
    while k < 50:
        s = s + np.sin(s) * 0.01
        k += 1
    return s.sum()


def gen(x):
    def g():
        y = x
        for _k in range(30):
            y = y * 0.99
            yield y

    s = 0
    for v in g():
        s = s + (v**2).sum()
    return s


def comp(x):
    return sum([(x * k).sum() ** 2 for k in range(40)])


class C:
    def __init__(s, x):
        s.u = x * 1.0
        s.hist = []

    def step(s, k):
        s.u[1:] += 0.1 * s.u[:-1]
        s.hist.append(s.u.copy())
        return s


def cls(x):
    c = C(x)
    for k in range(30):
        c.step(k)
    return (c.hist[3] ** 2).sum() + c.u.sum()


def rng(x):
    r = np.random.default_rng(0)
    s = 0.0
    for _k in range(30):
        s = s + (x * r.normal(size=3)).sum() ** 2
    return s


def cplx(x):
    z = x + 1j * x[::-1]
    for _k in range(30):
        z = z * np.exp(1j * 0.1) + 0.01 * z**2
    return (np.abs(z) ** 2).sum()


def f32(x):
    y = x.astype(np.float32)
    for _k in range(30):
        y = y * np.float32(0.99) + np.sin(y)
    return y.sum()


def nestedfor(x):
    s = x * 1.0
    for i in range(10):
        for j in range(10):
            s = s + 0.01 * np.cos(s) * i * j
            if s[0] > 3:
                s = s * 0.5
    return s.sum()


def inner_fn(x):
    def cell(h, k):
        return np.tanh(h * x + k * 0.01)

    h = x
    for k in range(30):
        h = cell(h, k)
    return h.sum()


def wt(x):
    t = 0.0
    s = x * 1.0
    while t < 1.0:
        s = s + np.sin(s) * 0.01
        t += 0.02
    return s.sum()


def wbreak(x):
    k = 0
    s = x * 1.0
    while True:
        s = s + np.sin(s) * 0.01
        k += 1
        if k >= 40:
            break
    else:
        s = s * 0
    return s.sum()


def wdata(x):
    s = x * 1.0
    while s.sum() < 10:
        s = s * 1.1
    return s.sum()


def wcont(x):
    k = 0
    s = x * 1.0
    while k < 60:
        k += 1
        if k % 3 == 0:
            continue
        s = s + np.sin(s) * 0.01
    return s.sum()


def adaptive(x):
    t, h, s = 0.0, 0.01, x * 1.0
    while t < 0.5:
        h = min(h, 0.5 - t) if t + h > 0.5 else h
        first = np.sin(s) * s
        second = np.sin(s + h * first) * (s + h * first)
        error = float(np.abs(h * (second - first) / 2).max())
        if error < 1e-4:
            s = s + h * (first + second) / 2
            t += h
        h *= min(2.0, max(0.3, 0.9 * (1e-4 / (error + 1e-12)) ** 0.5))
    return s.sum()


def clock_of_arrays(x):
    t, s, h = 0.0, x * 1.0, float(x[0]) * 0.05
    while t < 1.0:
        s = s + np.sin(s) * h
        t += h
    return s.sum() * t


@pytest.mark.parametrize(
    "program",
    [
        adaptive,
        clock_of_arrays,
        tri,
        zips,
        growing,
        strings,
        exc,
        whileloop,
        gen,
        comp,
        cls,
        rng,
        cplx,
        f32,
        nestedfor,
        inner_fn,
        wt,
        wbreak,
        wdata,
        wcont,
    ],
)
def test_programs(program, monkeypatch):
    monkeypatch.setattr(iterations, "PATIENCE", 0.0)
    monkeypatch.setattr(api, "FEW_OPS", 0)
    x, step = np.array([0.3, 0.5, 0.7]), 1e-6
    gradient = dyncomp.grad(program)
    for _ in range(2):
        found = gradient(x)
        for k, unit in enumerate(np.eye(3)):
            slope = (program(x + step * unit) - program(x - step * unit)) / (2 * step)
            tolerance = 1e-2 if program is f32 else 1e-5
            np.testing.assert_allclose(found[k], slope, rtol=tolerance, atol=tolerance)
    report = str(dyncomp.explain(gradient)(x))
    assert "its body compiled" in report, report


def test_loops_over_a_clock_are_compiled_in_parts(monkeypatch):
    monkeypatch.setattr(iterations, "PATIENCE", 0.0)
    gradient = dyncomp.grad(adaptive)
    gradient(np.array([0.3, 0.5, 0.7]))
    report = str(dyncomp.explain(gradient)(np.array([0.3, 0.5, 0.7])))
    assert "its body compiled in 3 parts" in report and "call by call" not in report, report


@pytest.mark.parametrize("size", [5, 37])
def test_what_is_compared_with_its_maximum_is_the_same_in_both_passes(size, monkeypatch):
    """The maximum is of compiled code's numbers, which NumPy's are not to the last bit."""

    def largest(x, n):
        for _ in range(n):
            x = x * (1.0 - 0.01 * np.abs(np.sin(np.sin(x) * np.exp(x)) / 3).max())
        return x.sum()

    monkeypatch.setattr(iterations, "PATIENCE", 0.0)
    monkeypatch.setattr(iterations, "TRIALS", 10**9)
    x = np.linspace(0.1, 1.0, size)
    found = dyncomp.grad(largest)(x, 300)
    monkeypatch.setattr(iterations, "PATIENCE", 1e9)
    np.testing.assert_allclose(found, dyncomp.grad(largest)(x, 300), rtol=1e-7)


def test_threads(monkeypatch):
    monkeypatch.setattr(iterations, "PATIENCE", 0.0)
    monkeypatch.setattr(api, "FEW_OPS", 0)
    x = np.array([0.3, 0.5, 0.7])
    found = []
    workers = [threading.Thread(target=lambda: found.append(dyncomp.grad(inner_fn)(x))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4 and all(np.array_equal(g, found[0]) for g in found)
