"""Compiled functions of scripts, local ones and lambdas, sent by all that sends functions to processes."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import dyncomp
from tests.pickled_programs import GRID, NETWORK

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Functions of all kinds, in a program of its own: name, compiled function, arguments, and what it gives.
PROGRAM = """
import functools, multiprocessing, pickle, sys, threading
import numpy as np
import dyncomp

K = np.array([3.0])
compiled = functools.partial(dyncomp.compile, backend="eager")

@dyncomp.compile(backend="eager", dynamic=True, options={"recompile_limit": 3})
def decorated(x, k=2.0, *, shift=1.0):
    "Scale."
    return x * k * K + shift

def plain(x):
    return helper(x) + 1

def helper(x):
    return x * K

renamed = compiled(plain)
anonymous = compiled(lambda x: x * K)

def make(k):
    def local(x, more=k + 1):
        return x * k + more + K
    return compiled(local)

@compiled
def factorial(x, n):
    return x if n == 0 else factorial(x, n - 1) * n

@compiled
def even(x, n):
    return x + 0.5 if n == 0 else odd(x, n - 1)

@compiled
def odd(x, n):
    return x - 0.5 if n == 0 else even(x * 2, n - 1)

def count(n):
    @compiled
    def down(x, n):
        return x if n == 0 else down(x + 1, n - 1)
    return down

def times(f):
    @functools.wraps(f)
    @compiled
    def wrapper(x):
        return f(x) * 2
    return wrapper

@times
def doubled(x):
    return x + 1

class Model:
    def __init__(self, w):
        self.w = w
    @compiled
    def method(self, x):
        return x * self.w
    @staticmethod
    @compiled
    def static(x):
        return x * K
    def __call__(self, x):
        return x + self.w

class Child(Model):
    @compiled
    def method(self, x):
        return super().method(x) + 1

@compiled
def late(x):
    return later(x) + 1

@compiled
def later(x):
    return x * K

x = np.arange(4.0)
closure = make(2.0)
CASES = {
    "decorated": (decorated, (x,), x * 6 + 1),
    "renamed": (renamed, (x,), x * 3 + 1),
    "lambda": (anonymous, (x,), x * 3),
    "closure": (closure, (x,), x * 2 + 6),
    "recursive": (factorial, (x, 4), x * 24),
    "mutual": (even, (x, 5), x * 4 - 0.5),
    "local recursion": (count(3), (x, 3), x + 3),
    "wraps": (doubled, (x,), (x + 1) * 2),
    "method": (Model(3.0).method, (x,), x * 3),
    "static": (Model.static, (x,), x * 3),
    "super": (Child(3.0).method, (x,), x * 3 + 1),
    "object": (compiled(Model(2.0)), (x,), x + 2),
    "bound": (compiled(Model(2.0).method), (x,), x * 2),
    "partial": (functools.partial(decorated, k=5.0, shift=0.0), (x,), x * 15),
    "calls another": (late, (x,), x * 3 + 1),
}

def inner(f):
    while isinstance(f, functools.partial):
        f = f.func
    return getattr(f, "__func__", f)

def is_compiled(f):
    return type(inner(f)).__name__ in ("Dispatcher", "CompiledObject")

def options(f):
    return (getattr(inner(f), "config", None) or inner(f)._config).options

def apply(f, args):
    return f(*args), is_compiled(f), options(f), dyncomp.stats()["internal_errors"]

def report(name, outcome):
    found, still, found_options, errors = outcome
    f, args, wanted = CASES[name]
    good = np.array_equal(found, wanted) and still and found_options == options(f) and not errors
    print(name, "ok" if good else outcome)

def attempt(name, send):
    try:
        report(name, send(apply, *CASES[name][:2]))
    except Exception as error:
        print(name, type(error).__name__, error)
"""

POOL = """
if __name__ == "__main__":
    context = multiprocessing.get_context(METHOD)
    with context.Pool(2) as pool:
        for name in NAMES:
            attempt(name, lambda apply, f, args: pool.apply(apply, (f, args)))
            if name in ("decorated", "closure", "lambda", "renamed"):
                f, args, wanted = CASES[name]
                assert all(np.array_equal(y, f(a)) for y, a in zip(pool.map(f, [x, x + 1]), [x, x + 1]))
"""
EXECUTOR = """
if __name__ == "__main__":
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(METHOD)) as pool:
        for name in NAMES:
            attempt(name, lambda apply, f, args: pool.submit(apply, f, args).result())
            f, args, wanted = CASES[name]
            if len(args) == 1:
                assert np.array_equal(list(pool.map(f, [args[0]] * 2)), [wanted] * 2), name
"""
JOBLIB = """
if __name__ == "__main__":
    import joblib
    with joblib.Parallel(2, backend=METHOD) as parallel:
        for name in NAMES:
            attempt(name, lambda apply, f, args: parallel([joblib.delayed(apply)(f, args)] * 2)[1])
            f, args, wanted = CASES[name]
            assert np.array_equal(parallel([joblib.delayed(f)(*args)] * 2), [wanted] * 2), name
"""
CLOUDPICKLE = """
import subprocess, cloudpickle
for name in NAMES:
    attempt(name, lambda apply, f, args: cloudpickle.loads(cloudpickle.dumps(apply))(
        cloudpickle.loads(cloudpickle.dumps(f)), args))
READ = "import pickle, sys; cases = pickle.load(sys.stdin.buffer); "
READ += "pickle.dump([f(*args) for f, args, _ in cases.values()], sys.stdout.buffer)"
done = subprocess.run([sys.executable, "-c", READ], input=cloudpickle.dumps(CASES), capture_output=True)
assert done.returncode == 0, done.stderr.decode()[-2000:]
for (name, (_, _, wanted)), found in zip(CASES.items(), pickle.loads(done.stdout)):
    assert np.array_equal(found, wanted), name
"""
DASK = """
if __name__ == "__main__":
    import dask
    asked = [dask.delayed(apply)(f, args) for f, args, _ in map(CASES.get, NAMES)]
    for name, outcome in zip(NAMES, dask.compute(*asked, scheduler=METHOD, num_workers=2)):
        report(name, outcome)
"""

NAMES = [
    "decorated",
    "renamed",
    "lambda",
    "closure",
    "recursive",
    "mutual",
    "local recursion",
    "wraps",
    "method",
]
NAMES += ["static", "super", "object", "bound", "partial", "calls another"]
TOOLS = [("multiprocessing", POOL, method) for method in ("fork", "spawn", "forkserver")]
TOOLS += [("concurrent.futures", EXECUTOR, method) for method in ("fork", "spawn", "forkserver")]
TOOLS += [("joblib", JOBLIB, method) for method in ("loky", "multiprocessing", "threading")]
TOOLS += [("cloudpickle", CLOUDPICKLE, ""), ("dask", DASK, "processes"), ("dask", DASK, "threads")]


def run(tmp_path, script, *, typed=False):
    path = tmp_path / "program.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *(["-c", script] if typed else [str(path)])],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DYNCOMP_CACHE_DIR": str(tmp_path / "cache")},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


QUICK = [
    ("multiprocessing", "fork"),
    ("concurrent.futures", "spawn"),
    ("joblib", "loky"),
    ("cloudpickle", ""),
]
TOOLS = [
    pytest.param(*t, marks=[] if t[::2] in QUICK else pytest.mark.slow, id=f"{t[0]}-{t[2]}") for t in TOOLS
]


@pytest.mark.parametrize(("tool", "script", "method"), TOOLS)
def test_all_kinds_of_functions(tmp_path, tool, script, method):
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed")
    text = PROGRAM + script.replace("METHOD", repr(method)).replace("NAMES", repr(NAMES))
    assert run(tmp_path, text).splitlines() == [f"{name} ok" for name in NAMES]


INTERACTIVE = """
import multiprocessing
import numpy as np
import dyncomp

K = 3.0
big = np.ones(1 << 20)
@dyncomp.compile(backend="eager")
def f(x):
    return x * K
@dyncomp.compile(backend="eager")
def large(x):
    return x * big[:3]
for method in ("spawn", "forkserver"):
    with multiprocessing.get_context(method).Pool(1) as pool:
        print(pool.apply(f, (np.ones(2),)))
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.apply(f, (np.ones(2),)), pool.apply(large, (np.ones(3),)))
"""


def test_program_without_a_file(tmp_path):
    """Typed at the prompt, or in a notebook: nothing can import it."""
    pytest.importorskip("cloudpickle")
    assert run(tmp_path, INTERACTIVE, typed=True).splitlines() == ["[3. 3.]"] * 2 + ["[3. 3.] [1. 1. 1.]"]


def test_grid_search(tmp_path):
    pytest.importorskip("sklearn")
    assert run(tmp_path, GRID).strip() == "{'ridge__alpha': 0.01}"


def test_networks(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("cloudpickle")
    assert run(tmp_path, NETWORK).strip() == "ok"


SHARED = """
import cloudpickle, pickle, threading, types
import numpy as np
import dyncomp
from dyncomp.hook import _hook
compiled = dyncomp.compile(backend="eager")
log = []

@compiled
def f(x):
    log.append(1)
    return g(x)
@compiled
def g(x):
    log.append(2)
    return x + len(log)
def plain(x):
    return f(x) + len(log)

# in one pickle, what functions share they share afterwards, plain functions too
f2, plain2, log2 = cloudpickle.loads(cloudpickle.dumps((f, plain, log)))
assert f2 is not f and plain2.__globals__["f"] is f2 and f2._function.__globals__ is plain2.__globals__
assert f2._function.__globals__["g"]._function.__globals__ is plain2.__globals__
assert plain2(np.zeros(2)).tolist() == [4.0, 4.0] and log2 == [1, 2] and log == []
# what is set on it, its name, annotations and signature arrive
f.note = {"a": 1}
f.__name__ = "renamed"
f2 = pickle.loads(cloudpickle.dumps(f))
assert f2.note == {"a": 1} and f2.__name__ == "renamed" and f2.__qualname__ == "f", f2.__name__
@compiled
def typed(x: "np.ndarray", *, k: float = 2.0) -> float:
    "Documented."
    return x * k
t2 = cloudpickle.loads(cloudpickle.dumps(typed))
assert t2.__doc__ == "Documented." and t2.__annotations__ == typed.__annotations__
import inspect
assert inspect.signature(t2) == inspect.signature(typed)
# closures that are shared, and not set yet
def pair():
    state = [0]
    @compiled
    def add(x):
        state[0] += 1
        return x + state[0]
    def read():
        return state[0]
    def early():
        return never
    if not state:
        never = 1
    return add, read, compiled(early)
add, read, early = pickle.loads(cloudpickle.dumps(pair()))
assert add(np.zeros(1))[0] == 1 and add(np.zeros(1))[0] == 2 and read() == 2
try:
    early()
except NameError as error:
    print(error)
# modules registered by value
import helper_module
assert cloudpickle.loads(cloudpickle.dumps(helper_module.f)) is helper_module.f
assert pickle.loads(pickle.dumps(helper_module.f)) is helper_module.f
cloudpickle.register_pickle_by_value(helper_module)
again = cloudpickle.loads(cloudpickle.dumps(helper_module.f))
assert again is not helper_module.f and isinstance(again, _hook.Dispatcher) and again(1) == 2
# what cannot be sent is named
lock = threading.Lock()
class Holder:
    def __init__(self):
        self.inner = [threading.Lock()]
holder = Holder()
def attempts():
    local, numbers = threading.Lock(), [1, 2]
    yield "closure variable 'local'", lambda x: (local, numbers, x)
    yield "global variable 'lock'", lambda x: (lock, x)
    yield "global variable 'holder'", lambda x: [holder for _ in x]
    yield "default of argument 'b'", lambda x, a=1, b=lock: x
    def keyword(x, *, key=lock): return x
    yield "default of argument 'key'", keyword
    def attribute(x): return x
    attribute.held = lock
    yield "attribute 'held'", attribute
def send(dumps, function):
    try:
        dumps(compiled(function))
    except pickle.PicklingError as error:
        return str(error)
for text, function in attempts():
    for dumps in (pickle.dumps, cloudpickle.dumps):
        assert text in send(dumps, function), (text, send(dumps, function))
# an attribute of that name is not the global variable
cloudpickle.dumps(compiled(lambda x: x.lock))
print("ok")
"""


def test_what_is_shared_named_and_refused(tmp_path):
    pytest.importorskip("cloudpickle")
    (tmp_path / "helper_module.py").write_text(
        "import dyncomp\n@dyncomp.compile(backend='eager')\ndef f(x):\n    return x + 1\n"
    )
    found = run(tmp_path, SHARED).splitlines()
    assert found[-1] == "ok" and "never" in found[0]


WITHOUT = """
import pickle, sys
import dyncomp
sys.modules["cloudpickle"] = None
try:
    pickle.dumps(dyncomp.compile(lambda x: x))
except pickle.PicklingError as error:
    print(error)
"""


def test_without_cloudpickle(tmp_path):
    assert "cloudpickle must be installed" in run(tmp_path, WITHOUT)


def test_wrapped_by_functools():
    """``functools.wraps`` sets ``__wrapped__``, and must not change what is compiled."""
    compiled = functools.partial(dyncomp.compile, backend="eager")

    def f(x):
        return x + 1

    @functools.wraps(f)
    @compiled
    def inner(x):
        return f(x) * 2

    assert inner(np.ones(2))[0] == 4
    assert compiled(lambda x: inner(x))(np.ones(2))[0] == 4
    again = compiled(inner)
    assert again(np.ones(2))[0] == 4 and again.__name__ == "f"
    assert dyncomp.disable(inner)(np.ones(2))[0] == 4
