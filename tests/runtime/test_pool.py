"""The thread pool: coverage, determinism, nesting, several callers, fork, environment, busy cores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dyncomp.dtypes import float64, int64
from dyncomp.inductor.launch import (
    InputSlot,
    KernelStep,
    LaunchPlan,
    OutputResult,
    OutputSlot,
    SizeRef,
    SymbolSlot,
    build,
)
from dyncomp.runtime import _launch
from tests.runtime.kernels import library, run

ROOT = Path(__file__).parents[2]

SQUARES = """
struct Squares { const double* x; double* o; };
static void squares(void* raw, i64 lo, i64 hi, int) {
  Squares* c = (Squares*)raw;
  for (i64 i = lo; i < hi; ++i) c->o[i] = c->x[i] * c->x[i];
}
"""
# Counts visits of each element and checks the promises about lo, hi and tid.
VISITS = """
struct Visits { int* count; i64 n; i64 grain; int threads; int* bad; };
static void visit(void* raw, i64 lo, i64 hi, int tid) {
  Visits* v = (Visits*)raw;
  if (lo >= hi || tid < 0 || tid >= v->threads) __atomic_fetch_add(v->bad, 1, 0);
  if (lo % v->grain || (hi % v->grain && hi != v->n)) __atomic_fetch_add(v->bad, 1, 0);
  for (i64 i = lo; i < hi; ++i) __atomic_fetch_add(&v->count[i], 1, 0);
}
struct Outer { const Runtime* rt; i64 total; };
static void inner(void* raw, i64 lo, i64 hi, int) { __atomic_fetch_add((i64*)raw, hi - lo, 0); }
static void outer(void* raw, i64 lo, i64 hi, int) {
  Outer* o = (Outer*)raw;
  for (i64 i = lo; i < hi; ++i) o->rt->parallel_for(inner, &o->total, 100, 1);
}
"""


@pytest.fixture(scope="module")
def kernels():
    return library(
        SQUARES,
        VISITS,
        'extern "C" void sizes(const i64* s, i64* out) { out[0] = s[0]; }\n',
        run("Squares c={(double*)b[0],(double*)b[1]}; rt->parallel_for(squares,&c,s[0],64);", "square"),
        run(
            "int bad=0; int* o=(int*)b[2]; for (i64 i=0;i<s[0];++i) o[i]=0;"
            "Visits v={o, s[0], s[1] < 1 ? 1 : s[1], rt->num_threads, &bad};"
            "rt->parallel_for(visit,&v,s[0],s[1]); if (bad) return 1;",
            "visits",
        ),
        run("Outer o={rt,0}; rt->parallel_for(outer,&o,50,1); *(i64*)b[0]=o.total;", "nested"),
    )


@pytest.fixture(autouse=True)
def restore_threads():
    before = _launch.num_threads()
    yield
    _launch.set_num_threads(before)


@pytest.fixture(scope="module")
def square(kernels):
    return build(
        LaunchPlan(
            (InputSlot("array", float64, 1),),
            (OutputSlot(float64, (SizeRef(0),)),),
            (OutputResult(0),),
            (KernelStep("square"),),
            symbols=(SymbolSlot("shape", 0),),
            size_count=1,
            release_gil=True,
        ),
        kernels,
    )


@pytest.fixture(scope="module")
def visits(kernels):
    from dyncomp.dtypes import int32

    return build(
        LaunchPlan(
            (InputSlot("symint"), InputSlot("symint")),
            (OutputSlot(int32, (SizeRef(0),)),),
            (OutputResult(0),),
            (KernelStep("visits"),),
            symbols=(SymbolSlot("value", 0), SymbolSlot("value", 1)),
            size_count=1,
            errors=((AssertionError, "a promise of parallel_for is broken"),),
        ),
        kernels,
    )


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_element_once(visits, threads):
    _launch.set_num_threads(threads)
    for n in (1, 2, 3, 10, 63, 64, 65, 1000, 4097):
        for grain in (-1, 1, 2, 7, 64, 10_000):
            np.testing.assert_array_equal(visits(n, grain), 1)


def test_many_small_jobs(visits):
    _launch.set_num_threads(4)
    for k in range(3000):
        assert visits(1 + k % 50, 1).sum() == 1 + k % 50


def test_jobs_after_sleep(visits):
    _launch.set_num_threads(3)
    for _ in range(20):
        time.sleep(0.002)
        np.testing.assert_array_equal(visits(500, 1), 1)


def test_nested_calls_run_serially(kernels):
    _launch.set_num_threads(4)
    plan = LaunchPlan(
        (), (OutputSlot(int64, (), kind="python_scalar"),), (OutputResult(0),), (KernelStep("nested"),)
    )
    graph = build(plan, kernels)
    for _ in range(50):
        assert graph() == 5000


def test_several_python_threads(square):
    _launch.set_num_threads(3)
    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(20_000)
        for _ in range(100):
            if not np.array_equal(square(x), x * x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_workers_do_take_part():
    """A machine busy with other tests may keep the worker from a whole job, but not from fifty."""
    _launch.set_num_threads(2)
    names = set()

    def body(lo, hi, tid):
        names.add((tid, threading.get_ident()))
        time.sleep(0.005)

    for _ in range(50):
        _launch.parallel_for(body, 16, 1)
        if len(names) > 1:
            break
    assert len(names) == 2


def test_body_errors_are_raised():
    with pytest.raises(ZeroDivisionError):
        _launch.parallel_for(lambda lo, hi, tid: 1 / 0, 10, 1)


def test_set_num_threads_bounds():
    for bad in (0, -1, 257):
        with pytest.raises(ValueError, match="number of threads"):
            _launch.set_num_threads(bad)
    with pytest.raises(TypeError):
        _launch.set_num_threads("2")


def in_child(work) -> int:
    """Exit status of a fork that runs ``work``; killed after 20 s."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_gives_the_child_its_own_workers(visits):
    _launch.set_num_threads(3)
    visits(1000, 1)

    def work():
        names = set()
        _launch.parallel_for(lambda lo, hi, tid: (names.add(tid), time.sleep(0.002)), 12, 1)
        return len(names) > 1 and (visits(1000, 1) == 1).all() and in_child(lambda: visits(9, 1).all()) == 0

    assert in_child(work) == 0
    np.testing.assert_array_equal(visits(1000, 1), 1)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_another_thread_is_in_a_kernel(square):
    _launch.set_num_threads(2)
    x = np.arange(300_000.0)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            square(x)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(10):
            assert in_child(lambda: np.array_equal(square(x), x * x)) == 0
    finally:
        stop.set()
        thread.join()


def default_threads(affinity=None, **environ) -> int:
    # without what the packages around it import
    program = """
import sys, types
for name in ("dyncomp", "dyncomp.runtime"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [name.replace(".", "/")]
from dyncomp.runtime import _launch
print(_launch.default_num_threads(), _launch.num_threads())
"""
    clean = {k: v for k, v in os.environ.items() if k not in ("DYNCOMP_NUM_THREADS", "OMP_NUM_THREADS")}
    command = [sys.executable, "-c", program]
    if affinity is not None:
        command = ["taskset", "-c", affinity, *command]
    done = subprocess.run(
        command, cwd=ROOT, env={**clean, **environ}, capture_output=True, text=True, check=True
    )
    first, second = done.stdout.split()
    assert first == second
    return int(first)


def test_default_number_of_threads():
    available = len(os.sched_getaffinity(0))
    assert 1 <= default_threads() <= available
    assert default_threads(OMP_NUM_THREADS="1") == 1
    assert default_threads(OMP_NUM_THREADS="1,4") == 1
    assert default_threads(OMP_NUM_THREADS="nonsense") == default_threads()
    assert default_threads(OMP_NUM_THREADS="1", DYNCOMP_NUM_THREADS="5") == 5
    assert default_threads(DYNCOMP_NUM_THREADS="-3") == default_threads()
    core = str(min(os.sched_getaffinity(0)))
    assert default_threads(affinity=core) == 1


@pytest.mark.slow  # it takes times
def test_a_busy_core_does_not_cost_milliseconds(square):
    """Another process on every core: a job may wait for a descheduled worker, but rarely."""
    _launch.set_num_threads(2)
    x = np.arange(20_000.0)
    hogs = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(len(os.sched_getaffinity(0)))
    ]
    try:
        time.sleep(0.3)
        times = []
        for _ in range(300):
            start = time.perf_counter()
            square(x)
            times.append(time.perf_counter() - start)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert np.median(times) < 1e-3


def test_blas_table_is_callable():
    if not _launch.blas_available():
        pytest.skip("NumPy has no OpenBLAS with 64-bit integers here")
    gemm = library(
        "typedef void (*Dgemm)(int, int, int, i64, i64, i64, double, const double*, i64, const double*, i64,"
        "double, double*, i64);",
        run(
            "((Dgemm)rt->blas[1])(101,111,111,2,2,3,1.0,(double*)b[0],3,(double*)b[1],2,0.0,(double*)b[2],2);"
        ),
    )
    slot = InputSlot("array", float64, 2)
    plan = LaunchPlan((slot, slot), (OutputSlot(float64, (2, 2)),), (OutputResult(0),), (KernelStep(),))
    a, b = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2) + 1
    np.testing.assert_array_equal(build(plan, gemm)(a, b), a @ b)
