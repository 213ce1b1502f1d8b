"""Compiled functions in forks, pools, greenlets and tasks, at exit, called from odd places, and changed."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import pathlib
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import dyncomp
from dyncomp.hook import _hook

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def vec(n=5):
    return np.arange(float(n))


def run(tmp_path, script, *switches):
    """A program of its own, as a file: pools import it again."""
    path = tmp_path / "program.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "ignore", *switches, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DYNCOMP_CACHE_DIR": str(tmp_path / "cache")},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr == ""
    return done.stdout


POOL = """
import multiprocessing, sys
import numpy as np
import dyncomp

@dyncomp.compile(backend=BACKEND)
def work(n):
    x = np.arange(float(n))
    for i in range(3):
        x = x * 2 + i
    return x.sum()

def plain(n):
    return work.__wrapped__(n)

if __name__ == "__main__":
    print(work(4))
    context = multiprocessing.get_context(METHOD)
    with context.Pool(2) as pool:
        found = pool.map(work, range(2, 12))
    assert found == [plain(n) for n in range(2, 12)], found
    print(work(5))
"""


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("method", ["spawn", pytest.param("fork", marks=FORKS)])
def test_pools(tmp_path, method, backend):
    script = POOL.replace("METHOD", repr(method)).replace("BACKEND", repr(backend))
    assert run(tmp_path, script).splitlines() == ["64.0", "100.0"]


FORK_IN_THREAD = """
import os, threading
import numpy as np
import dyncomp

def make(k):
    def f(x):
        return x * k + 1
    return f

stop = threading.Event()
many = {"accumulated_recompile_limit": 10**9}  # all are functions of one code
def compile_on():
    while not stop.is_set():
        assert dyncomp.compile(make(2), backend=BACKEND, options=many)(np.ones(3))[0] == 3

busy = [threading.Thread(target=compile_on) for _ in range(2)]
for thread in busy:
    thread.start()
g = dyncomp.compile(make(3), backend=BACKEND, options=many)
g(np.ones(4))
ends = []
def fork():
    for _ in range(4):
        child = os.fork()
        if child == 0:
            good = g(np.ones(4))[0] == 4 and g(np.ones((2, 2)))[0, 0] == 4
            good = good and dyncomp.compile(make(5), backend=BACKEND, options=many)(np.ones(7))[0] == 6
            os._exit(0 if good else 1)
        ends.append(os.waitpid(child, 0)[1])
forking = threading.Thread(target=fork)
forking.start()
forking.join()
stop.set()
for thread in busy:
    thread.join()
print(ends)
"""


@FORKS
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_fork_in_a_thread_while_others_compile(tmp_path, backend):
    assert run(tmp_path, FORK_IN_THREAD.replace("BACKEND", repr(backend))) == f"{[0] * 4}\n"


FORK_IN_A_STAGE = """
import faulthandler, os, threading
import numpy as np
import dyncomp
from dyncomp.staging import run as staged

@dyncomp.compile(backend="inductor")
def f(x):
    return (np.flatnonzero(x) * 2.5).sum()

inside, forked = threading.Event(), threading.Event()
compile_stage = staged.StagedGraph._compile
def slowly(self, *args):
    if not inside.is_set():
        inside.set()
        forked.wait()
    return compile_stage(self, *args)

staged.StagedGraph._compile = slowly
found = []
thread = threading.Thread(target=lambda: found.append(f(np.arange(3.0))))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(60, exit=True)
    os._exit(0 if f(np.arange(3.0)) == 7.5 and f(np.arange(4.0)) == 15.0 else 1)
print(os.waitpid(child, 0)[1])
forked.set()
thread.join()
print(found == [7.5], f(np.arange(4.0)) == 15.0)
"""


@FORKS
def test_fork_while_a_thread_compiles_a_stage(tmp_path):
    assert run(tmp_path, FORK_IN_A_STAGE).splitlines() == ["0", "True True"]


AT_EXIT = """
import atexit, threading
import numpy as np
import dyncomp

@dyncomp.compile(backend="eager")
def f(x):
    y = x + 1
    print(end="")
    return y * 2

class Leaver:
    def __init__(self):
        self.f = f
    def __del__(self, x=np.ones(2)):   # what NumPy has in Python may be gone
        print("del", self.f(x).tolist())

def compile_on():
    k = 0
    while True:
        k += 1
        options = {"accumulated_recompile_limit": 1 << 30}
        dyncomp.compile(lambda x: x * k + 1, backend="eager", options=options)(np.ones(k % 5 + 1))
        started.set()

started = threading.Event()
threading.Thread(target=compile_on, daemon=True).start()
started.wait()
keep = Leaver()
cycle = Leaver()
cycle.me = cycle
atexit.register(lambda: print("atexit", f(np.ones(3))))
f(np.ones(4))
"""


def test_at_exit(tmp_path):
    lines = run(tmp_path, AT_EXIT).splitlines()
    assert lines[0] == "atexit [4. 4. 4.]"
    assert lines[1:] == ["del [4.0, 4.0]"] * (len(lines) - 1)


def test_subinterpreters_do_not_get_it(tmp_path):
    pytest.importorskip("_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters")
    module = "_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters"
    script = f"""
import {module} as interpreters
import dyncomp, numpy as np
g = dyncomp.compile(lambda x: x + 1, backend="eager")
print(g(np.ones(1)))
other = interpreters.create()
code = '''
try:
    import dyncomp.hook._hook
except ImportError as error:
    print("refused")
'''
interpreters.run_string(other, code)
interpreters.destroy(other)
print(g(np.ones(1)))
"""
    assert run(tmp_path, script).splitlines() == ["[2.]", "refused", "[2.]"]


# -- re-entrance ------------------------------------------------------------------------------------------
def test_special_methods_that_call_compiled_functions():
    inner = dyncomp.compile(lambda x: x * 2, backend="eager")
    calls = []

    class Odd:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            calls.append("eq")
            return bool(inner(vec(3))[1] == 2.0)

        __hash__ = None

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            calls.append(name)
            return inner(vec(self.n))

        def __getitem__(self, index):
            return inner(vec(index))[0]

        def __len__(self):
            return int(inner(vec(3))[1])

        def __bool__(self):
            return bool(inner(vec(3))[1] > 0)

        def __iter__(self):
            yield inner(vec(2))

        def __array__(self, dtype=None, copy=None):
            return inner(vec(4))

    def f(x, odd):
        y = x + odd.field.sum()
        if odd == 3:
            y = y + odd[4] + len(odd)
        if odd:
            for part in odd:
                y = y + part.sum()
        return y, np.asarray(odd) + 1

    compiled = dyncomp.compile(f, backend="eager")
    for n in (3, 4, 3):
        calls.clear()
        expected = f(vec(), Odd(n))
        plain, calls[:] = list(calls), []
        found = compiled(vec(), Odd(n))
        assert all(map(np.array_equal, expected, found))
        assert calls == plain


def test_destructors_that_call_compiled_functions():
    inner = dyncomp.compile(lambda x: x * 2, backend="eager")
    seen = []

    class Falls:
        def __del__(self):
            seen.append(inner(vec(2))[1])

    def f(x, make):
        y = x + 1
        first = make()
        first = None
        second = make()
        return y * 2, second is first

    compiled = dyncomp.compile(f, backend="eager")
    for _ in range(3):
        assert np.array_equal(compiled(vec(), Falls)[0], (vec() + 1) * 2)
    assert seen == [2.0] * 6


def test_reset_from_inside():
    def f(x, n):
        y = x + n
        dyncomp.reset()
        return y * 2

    compiled = dyncomp.compile(f, backend="eager")
    for n in (1, 2, 3, 3):
        assert np.array_equal(compiled(vec(), n), (vec() + n) * 2)


# -- stacks that switch -------------------------------------------------------------------------------------
@pytest.mark.parametrize("kept", [dyncomp.disable, lambda f: f])
def test_greenlets(kept):
    greenlet = pytest.importorskip("greenlet").greenlet

    def program(x, switch, n):
        for i in range(n):
            x = x + i
            switch(i)
            x = x * 2
        return x

    expected = program(vec(), lambda i: None, 4)
    compiled = dyncomp.compile(program, backend="eager")
    results = {}

    def body(name):
        def switch(i):
            sys._getframe()  # not inlined
            hub.switch(i)

        results[name] = compiled(vec(), kept(switch), 4)

    hub = greenlet.getcurrent()
    for _ in range(3):
        lets = [greenlet(body) for _ in range(3)]
        for number, let in enumerate(lets):
            let.switch(number)
        while any(not let.dead for let in lets):
            for let in lets:
                if not let.dead:
                    let.switch(None)
        assert [np.array_equal(results[k], expected) for k in range(3)] == [True] * 3
    assert _hook.get_active() is None and not _hook.hook_installed()


def test_asyncio_tasks_keep_their_contexts():
    scale = contextvars.ContextVar("scale", default=1.0)

    def scaled(x):
        y = x + 1
        print(end="")
        return y * scale.get()

    compiled = dyncomp.compile(scaled, backend="eager")

    @dyncomp.compile(backend="eager")
    async def task(number):
        scale.set(float(number))
        total = 0.0
        for _ in range(4):
            total += compiled(vec()).sum()
            await asyncio.sleep(0)
        return total

    async def main():
        return await asyncio.gather(*(task(number) for number in range(1, 6)))

    for _ in range(2):
        assert asyncio.run(main()) == [60.0 * number for number in range(1, 6)]


# -- functions that change ----------------------------------------------------------------------------------
def base(x, n=1, *, k=2):
    return x * n + k


def other(x, n=1, *, k=2):
    return x - n * k


@pytest.mark.parametrize("through", ["function", "compiled"])
def test_changed_functions_are_noticed(through):
    namespace = {"c": 1.0}
    exec("def f(x, n=1, *, k=2):\n    return x * n + k + c", namespace)
    f = namespace["f"]
    compiled = dyncomp.compile(f, backend="eager")
    changed = f if through == "function" else compiled

    def same():
        for _ in range(2):
            assert np.array_equal(compiled(vec()), f(vec()))
            assert np.array_equal(compiled(vec(), 3, k=4), f(vec(), 3, k=4))

    same()
    changed.__defaults__ = (5,)
    assert f.__defaults__ == (5,)
    same()
    changed.__kwdefaults__ = {"k": 7}
    same()
    f.__kwdefaults__["k"] = 8
    same()
    changed.__code__ = other.__code__
    assert f.__code__ is other.__code__
    same()
    changed.__code__ = base.__code__
    same()
    changed.__defaults__ = None
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
        compiled(vec())


def test_changed_globals_and_cells_are_noticed():
    def make(a):
        def f(x):
            return x * a + b

        def change(value):
            nonlocal a
            a = value

        return f, change

    global b
    b = 1
    f, change = make(2)
    compiled = dyncomp.compile(f, backend="eager")
    for value in (2, 3.5, np.ones(5), 2):
        change(value)
        for b in (1, 2.5):  # noqa: B007
            for _ in range(2):
                assert np.array_equal(compiled(vec()), f(vec()))
    f.__closure__[0].cell_contents = 9
    assert np.array_equal(compiled(vec()), f(vec()))
    del f.__closure__[0].cell_contents
    with pytest.raises(NameError, match="free variable 'a'"):
        compiled(vec())


def test_code_objects_show_nothing():
    import copy
    import marshal
    import types

    def f(x):
        a = x + 1
        print(end="")
        return a * 2

    stack, described = f.__code__.co_stacksize, hash(f.__code__)
    compiled = dyncomp.compile(f, backend="eager")
    for _ in range(3):
        compiled(vec())
    assert marshal.loads(marshal.dumps(f.__code__)) == f.__code__
    assert f.__code__.co_stacksize == stack and hash(f.__code__) == described
    assert f.__code__.replace() == f.__code__ and copy.deepcopy(f.__code__) is f.__code__
    again = types.FunctionType(f.__code__.replace(co_name="g"), f.__globals__)
    assert np.array_equal(again(vec()), (vec() + 1) * 2)
    assert _hook.num_entries(again.__code__) == 0


def test_pickled_by_value():
    cloudpickle = pytest.importorskip("cloudpickle")

    def f(x):
        return x + 1

    dyncomp.compile(f, backend="eager")(vec())
    again = cloudpickle.loads(cloudpickle.dumps(f))
    assert np.array_equal(again(vec()), vec() + 1)


def test_threads_that_end_with_everything_let_go():
    class Big:
        pass

    def f(x, big):
        big.done = True
        y = x + 1
        print(end="")
        return y

    compiled = dyncomp.compile(f, backend="eager")
    references = []

    def work():
        big, x = Big(), vec()
        compiled(x, big)
        references.extend([weakref.ref(big), weakref.ref(x)])

    for _ in range(4):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    gc.collect()
    assert [reference() for reference in references] == [None] * 8
