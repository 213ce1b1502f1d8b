"""Functions and modules of another compiler among those of this one, nested either way.

Each program runs in a process of its own with a limit of time: what went wrong here were calls that spin for
ever.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}

HEAD = """
import faulthandler, signal, sys, threading, time
faulthandler.dump_traceback_later(LIMIT, exit=True)
import numpy as np
import torch
import dyncomp
from dyncomp.hook import _hook

KIND = "eager"
OTHER = lambda f, **options: torch.compile(f, backend=KIND, **options)
OURS = lambda f, **options: dyncomp.compile(f, **options)
PLAIN = lambda f, **options: f
X = torch.arange(4.0)

def same(a, b):
    if isinstance(a, torch.Tensor):
        assert torch.allclose(a, b), (a, b)
    else:
        assert a == b, (a, b)

def settled():
    assert dyncomp.stats()["internal_errors"] == 0, dyncomp.stats()
    assert not _hook.hook_installed()
"""


def run(program, limit=90, kind="eager", **options):
    pytest.importorskip("torch")
    text = HEAD.replace("LIMIT", str(limit)).replace('"eager"', repr(kind)) + textwrap.dedent(program)
    text += '\nsettled()\nprint("done")\n'
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        capture_output=True,
        text=True,
        timeout=limit + 30,
        env=ENVIRONMENT,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "done"


PROGRAMS = """
def helper(x):
    print(end="")
    return x + 1

def linear():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())

def one(A, B):
    inner = A(lambda x: x.sin() + 1)
    return B(lambda x: inner(x * 2) * 3)

def same_function(A, B):
    return B(A(lambda x: x * 2))

def three(A, B):
    a = A(lambda x: x.sin() + 1)
    b = B(lambda x: a(x) + a(x * 2))
    return A(lambda x: b(x * 2) * 3)

def breaks(A, B):
    a = A(lambda x: helper(x.sin()) + 1)
    def f(x):
        y = helper(x) * 2
        y = a(y)
        time.time()
        return helper(y) - 1
    return B(f)

def in_a_loop(A, B):
    a = A(lambda x: x * 2 - 1)
    def f(x):
        for i in range(7):
            x = a(x) + i
            helper(x)
        return x
    return B(f)

def side_by_side(A, B):
    a, b = A(lambda x: x.sin() + 1), B(lambda x: x.cos() + 1)
    return lambda x: a(b(x)) + b(a(x))

def in_a_generator(A, B):
    a = A(lambda x: x * 2 - 1)
    def numbers(x):
        for i in range(3):
            yield a(x + i)
    return B(lambda x: sum(numbers(x)))


def recursive(A, B):
    def down(x, n):
        return x if n == 0 else b(x + 1, n - 1)
    def over(x, n):
        return x if n == 0 else a(x * 2, n - 1)
    a, b = A(down), B(over)
    return lambda x: a(x, 3) + b(x, 3)

def methods(A, B):
    class Scaled:
        by = 3
        @A
        def method(self, x):
            return x * self.by
        @classmethod
        @A
        def of_class(cls, x):
            return x + cls.by
        @staticmethod
        @A
        def static(x):
            return x - 1
        @property
        @A
        def double(self):
            return self.by * 2
    s = Scaled()
    def f(x):
        bound = s.method
        return s.method(x) + Scaled.method(s, x) + s.of_class(x) + s.static(x) + bound(x) * s.double
    return B(f)

def module_with_compiled_method(A, B):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4) * 2)
        @A
        def scaled(self, x):
            return x * self.weight
        def forward(self, x):
            return (self.scaled(x) + self.scaled(x * 2)).detach()
    return B(Scaled())

def reset_inside(A, B):
    a = A(lambda x: x * 2 + 1)
    def f(x):
        y = a(x)
        dyncomp.reset()
        return a(y) + helper(y)
    return B(f)

def module(A, B):
    m = A(linear())
    return B(lambda x: m(x) * 2)

def module_in_module(A, B):
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = A(linear())
        def forward(self, x):
            return self.inner(x) + x
    return B(Outer())

def module_twice(A, B):
    return B(A(linear()))

def left_alone(A, B):
    a = A(lambda x: helper(x) * 2)
    b = dyncomp.disable(lambda x: a(x) + 1)
    c = torch.compiler.disable(lambda x: b(x) + a(x))
    return B(lambda x: c(x) * 2 + b(x))

def gradients(A, B):
    a = A(lambda x: x.sin() * x)
    def f(x):
        x = x.detach().requires_grad_()
        y = (a(x) * 2).sum()
        y.backward()
        return x.grad
    return B(f)

def raises(A, B):
    def inner(x):
        if x.sum() > 1:
            raise ValueError("too large")
        return x
    a = A(inner)
    def f(x):
        try:
            return a(x * 2)
        except ValueError as error:
            return len(str(error))
    return B(f)
ALL = [f for f in list(globals().values()) if getattr(f, "__code__", None) and
       f.__code__.co_varnames[:2] == ("A", "B")]
assert len(ALL) >= 14
"""

NESTINGS = (
    PROGRAMS
    + """
for make in ALL:
    for A, B in ((OTHER, OURS), (OURS, OTHER), (OURS, OURS)):
        try:
            plain, compiled = make(PLAIN, PLAIN), make(A, B)
            for x in (X, X, torch.ones(6, 4), X + 1, torch.zeros(4), X):
                same(plain(x), compiled(x))
        except BaseException:
            print(make.__name__, A is OTHER, file=sys.stderr)
            raise
    torch._dynamo.reset()
    dyncomp.reset()
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["eager", "inductor"])
def test_both_nestings(kind):
    run(NESTINGS, kind=kind, limit=180 if kind == "eager" else 500)


def test_alternation_and_resets():
    run(
        PROGRAMS
        + """
pairs = [(make(PLAIN, PLAIN), make(A, B)) for make in (one, breaks, side_by_side)
         for A, B in ((OTHER, OURS), (OURS, OTHER))]
for i in range(500):
    for plain, compiled in pairs:
        if i % 100 == 0:
            same(plain(X + i), compiled(X + i))
        else:
            compiled(X)
    if i in (150, 300):
        dyncomp.reset()
    if i in (200, 300):
        torch._dynamo.reset()
"""
    )


def test_threads():
    run(
        PROGRAMS
        + """
failed = []
def work(A, B):
    try:
        for make in (one, breaks, side_by_side, three):
            plain, compiled = make(PLAIN, PLAIN), make(A, B)
            for i in range(60):
                same(plain(X + i % 3), compiled(X + i % 3))
    except BaseException as error:
        failed.append(error)
sys.setswitchinterval(1e-4)
one(PLAIN, OTHER)(X)  # its first compilation is for one thread only
# the other compiler is not made to be called first in several threads
turns = [(OTHER, PLAIN), (OURS, PLAIN), (PLAIN, OURS), (OURS, OURS)]
threads = [threading.Thread(target=work, args=pair) for pair in turns]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failed, failed
threads = [threading.Thread(target=work, args=pair) for pair in ((OTHER, OURS), (OURS, PLAIN), (PLAIN, OURS))]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failed, failed
threads = [threading.Thread(target=work, args=pair) for pair in ((OURS, OTHER), (OURS, PLAIN), (PLAIN, OURS))]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failed, failed
"""
    )


@pytest.mark.parametrize("order", ["(OTHER, OURS)", "(OURS, OTHER)"])
def test_interrupt(order):
    run(
        PROGRAMS
        + f"""
A, B = {order}
stop = False
def waits(x):
    y = x + 1
    while stop:
        time.sleep(0.001)
    return y
waits = dyncomp.disable(waits)
a = A(lambda x: waits(x.sin()) + 1)
b = B(lambda x: a(x * 2) * 3)
b(X)
for _ in range(2):
    stop = True
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    try:
        b(X)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("not interrupted")
    stop = False
    same(b(X), (waits((X * 2).sin()) + 1) * 3)
"""
    )


DDP = """
import os, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[3])
rank, world = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", rank=rank, world_size=world)

def steps(A, B, C):
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    model = C(DistributedDataParallel(A(layers)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.linspace(-1, 1, 24).view(6, 4) + rank
    def step(x):
        loss = (model(x) ** 2).mean()
        loss.backward()
        return loss.detach()
    step = B(step)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        losses.append(step(x))
        optimizer.step()
    return torch.stack(losses)

expected = steps(PLAIN, PLAIN, PLAIN)
# what dyncomp.compile gives for a module is no torch.nn.Module, and so not a part of one
for made in ((PLAIN, PLAIN, OURS), (PLAIN, PLAIN, OTHER), (OTHER, OURS, PLAIN), (PLAIN, OURS, OTHER),
             (PLAIN, OTHER, OURS), (OTHER, PLAIN, OURS)):
    same(expected, steps(*made))
inner = OTHER(lambda x: x * 2)
same(OURS(lambda x: inner(x) + 1)(X), X * 2 + 1)
same(expected, steps(PLAIN, PLAIN, OURS))
dist.destroy_process_group()
"""


@pytest.mark.parametrize("world", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_distributed(world, unused_port):
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("torch without distributed")
    text = HEAD.replace("LIMIT", "150") + DDP + '\nsettled()\nprint("done")\n'
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", text, str(rank), str(world), str(unused_port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        for rank in range(world)
    ]
    for process in processes:
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, err[-4000:]
        assert out.splitlines()[-1] == "done"


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
