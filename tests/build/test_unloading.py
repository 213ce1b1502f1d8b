"""Compiled code is unloaded when nothing can run it any more, and not before."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import dyncomp
from dyncomp.build.background import builder
from dyncomp.build.kernel_cache import KernelCache
from dyncomp.build.library import Library

MAPS = Path("/proc/self/maps")
pytestmark = pytest.mark.skipif(not MAPS.exists(), reason="no /proc")
NUMBERS = itertools.count(2)


def collect():
    for _ in range(3):  # code holds more, and the collector does not look into it
        gc.collect()


def mapped(folder="/v1/"):
    """The libraries of kernels that are mapped."""
    lines = MAPS.read_text().splitlines()
    return {line.split()[-1] for line in lines if folder in line and ".so" in line}


@pytest.fixture(autouse=True)
def _nothing_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path / "cache"))
    dyncomp.reset()
    collect()
    yield
    dyncomp.reset()


def mine(tmp_path):
    return mapped(str(tmp_path))


def function(body, number):
    space = {"np": np}
    exec(f"def f(x, n=3):\n{body.replace('K', str(number))}", space)
    return space["f"]


ARRAYS = "    return x * K.25 + np.sin(x) * K\n"
LOOP = "    t = 0\n    for i in range(n):\n        t = (t * K + i) % 1000003\n    return t\n"
BROKEN = "    y = x * K\n    print(end='')\n    return np.cos(y) + K\n"
STAGED = "    return np.sort(x[x > K]) * np.float64(K)\n"
BODIES = {"arrays": ARRAYS, "loop": LOOP, "broken": BROKEN, "staged": STAGED}


def called(compiled, body):
    if body is LOOP:
        return compiled(None, 2_000_000)
    return compiled(np.arange(40.0))


@pytest.mark.parametrize("options", [{}, {"tier": "fast-first"}, {"mode": "max-autotune"}], ids=str)
@pytest.mark.parametrize("body", BODIES)
def test_what_is_dropped_is_unloaded(tmp_path, body, options):
    text = BODIES[body]
    if options and text is not ARRAYS:
        pytest.skip("compiled as without")
    made = [dyncomp.compile(function(text, next(NUMBERS)), **compile_options(options)) for _ in range(3)]
    for compiled in made:
        called(compiled, text)
    assert builder().wait(120)
    loaded = mine(tmp_path)
    assert len(loaded) >= len(made)
    del compiled
    made.pop()
    collect()
    assert len(mine(tmp_path)) < len(loaded)
    made.clear()
    collect()
    assert not mine(tmp_path)


def compile_options(options):
    if "mode" in options:
        return options
    return {"options": options} if options else {}


@pytest.mark.parametrize("body", BODIES)
def test_reset_unloads(tmp_path, body):
    made = [dyncomp.compile(function(BODIES[body], next(NUMBERS))) for _ in range(3)]
    results = [called(compiled, BODIES[body]) for compiled in made]
    assert mine(tmp_path)
    dyncomp.reset()
    collect()
    assert not mine(tmp_path)
    for compiled, result in zip(made, results):
        np.testing.assert_array_equal(called(compiled, BODIES[body]), result)


def test_the_first_build_goes_when_the_optimised_one_takes_its_place(tmp_path):
    def several(x, y):
        a = np.exp(x) + y
        b = (a * y).sum(axis=0)
        return np.tanh(a - b), np.sort(b), a.max(axis=1)

    compiled = dyncomp.compile(several, options={"tier": "fast-first"})
    x = np.random.default_rng(0).random((40, 30))
    compiled(x, x)
    assert builder().wait(120)
    np.testing.assert_allclose(compiled(x, x)[0], several(x, x)[0])
    assert len(mine(tmp_path)) == 1
    assert len([*(tmp_path / "cache").rglob("*.so")]) >= 1


def test_many_libraries(tmp_path):
    cache = KernelCache(tmp_path / "one")
    cache.load('extern "C" int answer() { return 5; }\n')
    built = next((tmp_path / "one").rglob("*.so"))
    before = len(MAPS.read_text().splitlines())
    for _ in range(3):
        held = []
        for k in range(500):
            path = tmp_path / f"{k}.so"
            if not path.exists():
                shutil.copy(built, path)
            held.append(Library(path))
        each = (len(MAPS.read_text().splitlines()) - before) / len(held)
        assert each < 2.2  # code and data
        held.clear()
        assert abs(len(MAPS.read_text().splitlines()) - before) < 20


@pytest.mark.slow
def test_many_functions():
    before = len(MAPS.read_text().splitlines())
    x = np.arange(50.0)
    for _ in range(2):
        made = []
        for k in range(500):
            made.append(dyncomp.compile(function(ARRAYS, k + 2)))
            np.testing.assert_allclose(made[-1](x), x * (k + 2.25) + np.sin(x) * (k + 2))
        made.clear()
        dyncomp.reset()
        collect()
        # what the interpreter and the allocators took meanwhile
        assert len(MAPS.read_text().splitlines()) - before < 300


def test_a_call_in_another_thread_keeps_its_code(tmp_path):
    """The interpreter is released in the kernel, and the function dropped, replaced and reset meanwhile."""
    x = np.random.default_rng(0).random(3_000_000)
    body = "    return np.sin(np.exp(np.cos(np.exp(x * K))) ** K)\n"
    for _ in range(4):
        plain = function(body, next(NUMBERS))
        compiled = dyncomp.compile(plain)
        expected = compiled(x)
        results, began = [], threading.Event()

        def work(run=compiled, results=results, began=began):
            began.set()
            results.append(run(x))

        thread = threading.Thread(target=work)
        thread.start()
        began.wait()
        time.sleep(0.005)
        del compiled, work
        dyncomp.reset()
        collect()
        thread.join()
        np.testing.assert_array_equal(results[0], expected)
    collect()
    assert len(mine(tmp_path)) <= 1  # of the variable ``plain``'s entry, if any


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_loop_whose_signal_handler_resets(tmp_path):
    plain = function(LOOP, next(NUMBERS))
    compiled = dyncomp.compile(plain)
    compiled(None, 3_000_000)
    assert mine(tmp_path)
    calls = []

    def handler(number, frame):
        calls.append(number)
        if len(calls) % 4 == 1:  # not while it is handled
            dyncomp.reset()
            collect()

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.3)
    try:
        found = [compiled(None, 3_000_000) for _ in range(6)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert calls
    assert found == [plain(None, 3_000_000)] * 6


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_unloads_for_itself(tmp_path):
    compiled = dyncomp.compile(function(ARRAYS, next(NUMBERS)))
    x = np.arange(40.0)
    expected = compiled(x)
    child = os.fork()
    if child == 0:
        good = np.array_equal(compiled(x), expected) and bool(mine(tmp_path))
        del compiled
        dyncomp.reset()
        collect()
        os._exit(0 if good and not mine(tmp_path) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(compiled(x), expected)


NO_MAPPINGS = """
import ctypes, gc, logging, sys
import numpy as np
import dyncomp
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.malloc.restype = ctypes.c_void_p
FAILED = 2**64 - 1
warnings = []

class Handler(logging.Handler):
    def emit(self, record):
        warnings.append(record.getMessage())

logging.getLogger("dyncomp").addHandler(Handler())

def arrange_memory():  # what Python needs from now on is in one piece of the heap
    for option, value in ((-1, 1 << 30), (-3, 32 << 20), (-2, 64 << 20), (-8, 1)):
        libc.mallopt(option, value)
    libc.free(ctypes.c_void_p(libc.malloc(ctypes.c_size_t(24 << 20))))

class Mappings:  # nearly all that a process may have: single pages, each unlike the one before
    def __init__(self, pages=160000):
        self.size, self.at = pages * 4096, 0
        self.room = libc.mmap(None, ctypes.c_size_t(self.size), 0, 0x4022, -1, ctypes.c_long(0))

    def fill(self):  # until one more can be made, but not the two of a library
        while not libc.mprotect(ctypes.c_void_p(self.room + self.at), ctypes.c_size_t(4096), 1):
            self.at += 8192
            if self.at >= self.size:
                sys.exit("skip")
        last = FAILED
        while (page := libc.mmap(None, ctypes.c_size_t(4096), 3, 0x21, -1, ctypes.c_long(0))) != FAILED:
            last = page
        libc.munmap(ctypes.c_void_p(last), ctypes.c_size_t(4096))

    def free(self):
        libc.munmap(ctypes.c_void_p(self.room), ctypes.c_size_t(self.size))

def first(x):
    return np.sin(x) * 2 + 1

def second(x):
    return np.cos(x) * 3 + 1

def third(x):
    return np.tanh(x) * 4 + 1

def fourth(x):
    return np.exp(x) * 5 + 1

x = np.linspace(0, 1, 50)
functions = [first, second, third, fourth]
expected = [f(x) for f in functions]
for f, wanted in zip(functions, expected):  # into the cache, and out of memory
    assert np.allclose(dyncomp.compile(f)(x), wanted)
dyncomp.reset()
for _ in range(3):
    gc.collect()
files = {str(path) for path in Path(sys.argv[1]).rglob("*.so")}
assert len(files) == 4, files
loaded = lambda: len({line.split()[-1] for line in open("/proc/self/maps") if "/v1/" in line})
assert loaded() == 0
gc.disable()
ring = [dyncomp.compile(fourth)]
ring.append(ring)
assert np.allclose(ring[0](x), expected[3])
compiled = [dyncomp.compile(f) for f in functions]
arrange_memory()
mappings = Mappings()
mappings.fill()
del ring
results = [compiled[0](x)]
freed = loaded()
mappings.fill()
results += [compiled[1](x), compiled[2](x), compiled[0](x)]
still = loaded()
mappings.free()
assert freed == still == 1, (freed, still)
for result, k in zip(results, (0, 1, 2, 0)):
    assert np.allclose(result, expected[k])
assert files == {str(path) for path in Path(sys.argv[1]).rglob("*.so")}
told = [w for w in warnings if "no memory, mappings" in w]
assert len(told) == 1, warnings
assert not [w for w in warnings if "damaged" in w or "rebuilding" in w], warnings
assert np.allclose(dyncomp.compile(fourth)(x), expected[3])
assert loaded() == 2, loaded()
print("good")
"""


def test_no_mappings_left(tmp_path):
    """What nobody uses is unloaded first; then functions run as they are, told once. No file is deleted."""
    cache = tmp_path / "cache"
    environment = {**os.environ, "DYNCOMP_CACHE_DIR": str(cache), "PYTHONMALLOC": "malloc"}
    command = [sys.executable, "-c", NO_MAPPINGS, str(cache)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    if "skip" in done.stderr:
        pytest.skip("vm.max_map_count is large here")
    assert done.stdout.strip() == "good", done.stderr + done.stdout
