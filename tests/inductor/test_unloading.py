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
from dyncomp.inductor.background import builder
from dyncomp.inductor.codecache import KernelCache
from dyncomp.inductor.launch import Library

MAPS = Path("/proc/self/maps")
pytestmark = pytest.mark.skipif(not MAPS.exists(), reason="no /proc")
NUMBERS = itertools.count(2)


def mapped(folder="/v1/"):
    """The libraries of kernels that are mapped."""
    lines = MAPS.read_text().splitlines()
    return {line.split()[-1] for line in lines if folder in line and ".so" in line}


@pytest.fixture(autouse=True)
def _nothing_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path / "cache"))
    dyncomp.reset()
    gc.collect()
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
    gc.collect()
    assert len(mine(tmp_path)) < len(loaded)
    made.clear()
    gc.collect()
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
    gc.collect()
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
        gc.collect()
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
        gc.collect()
        thread.join()
        np.testing.assert_array_equal(results[0], expected)
    gc.collect()
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
            gc.collect()

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
        gc.collect()
        os._exit(0 if good and not mine(tmp_path) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(compiled(x), expected)


NO_MAPPINGS = """
import ctypes, gc, logging, mmap, sys
import numpy as np
import dyncomp
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
warnings = []
class Handler(logging.Handler):
    def emit(self, record):
        warnings.append(record.getMessage())
logging.getLogger("dyncomp").addHandler(Handler())

def fill():
    '''Mappings until there is room for one.'''
    pages = 140000
    room = libc.mmap(None, ctypes.c_size_t(pages * 4096), 0, 0x4022, -1, ctypes.c_long(0))
    for page in range(0, pages, 2):
        if libc.mprotect(ctypes.c_void_p(room + page * 4096), ctypes.c_size_t(4096), 1):
            break
    else:
        sys.exit("skip")
    while libc.mmap(None, ctypes.c_size_t(4096), page // 2 % 2, 0x22, -1, ctypes.c_long(0)) != 2**64 - 1:
        page += 2
        assert page < 2 * pages
    def give(count):
        libc.mprotect(ctypes.c_void_p(room), ctypes.c_size_t(4096 * 2 * count), 0)
    return give, lambda: libc.munmap(ctypes.c_void_p(room), ctypes.c_size_t(pages * 4096))

def first(x):
    return np.sin(x) * 2 + 1

def second(x):
    return np.cos(x) * 3 + 1

def third(x):
    return np.tanh(x) * 4 + 1

def garbage(x):
    return np.exp(x) * 5 + 1

x = np.linspace(0, 1, 50)
functions = [first, second, third]
expected = [f(x) for f in functions]
garbage_value = garbage(x)
for f in functions:  # into the cache, and out of memory
    assert np.allclose(dyncomp.compile(f)(x), f(x))
dyncomp.reset()
gc.collect()
files = sorted(map(str, Path(sys.argv[1]).rglob("*.so")))
assert len(files) == 3, files
gc.disable()
ring = [dyncomp.compile(garbage)]
ring.append(ring)
assert np.allclose(ring[0](x), garbage_value)
compiled = [dyncomp.compile(f) for f in functions]
dyncomp.compile(lambda x: x + 1)(x)
give, free = fill()
give(3)
dyncomp_loaded = lambda: sum("/v1/" in line for line in open("/proc/self/maps"))
del ring
assert np.allclose(compiled[0](x), expected[0])
results = [compiled[1](x), compiled[2](x), compiled[1](x)]
free()
for result, wanted in zip(results, [expected[1], expected[2], expected[1]]):
    assert np.allclose(result, wanted)
assert set(files) <= set(map(str, Path(sys.argv[1]).rglob("*.so")))
told = [w for w in warnings if "no memory, mappings" in w]
assert len(told) == 1, warnings
assert not [w for w in warnings if "damaged" in w or "rebuilding" in w], warnings
dyncomp.reset()
assert np.allclose(dyncomp.compile(second)(x), expected[1])
assert dyncomp_loaded() == 2, dyncomp_loaded()
print("good")
"""


def test_no_mappings_left(tmp_path):
    cache = tmp_path / "cache"
    environment = {**os.environ, "DYNCOMP_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", NO_MAPPINGS, str(cache)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    if "skip" in done.stderr:
        pytest.skip("vm.max_map_count is large here")
    assert done.stdout.strip() == "good", done.stderr + done.stdout
