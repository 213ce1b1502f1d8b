"""CompiledGraph: arenas, library calls, errors, bad plans, memory, leaks."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc

import numpy as np
import pytest

from dyncomp.dtypes import float64, int64
from dyncomp.inductor.launch import (
    ArenaSlot,
    BufferRef,
    ConstantResult,
    InputResult,
    InputSlot,
    KernelStep,
    LaunchPlan,
    OutputResult,
    OutputSlot,
    PyCallStep,
    SizeRef,
    SymbolSlot,
    ViewOutput,
    build,
)
from dyncomp.runtime import _launch
from tests.runtime.launch_plans import VECTOR, add_plan, launch_kernels, simple


@pytest.fixture(scope="module")
def kernels():
    return launch_kernels()


def arena_plan(**more):
    return simple(
        (VECTOR,),
        (OutputSlot(float64, (4,)),),
        (OutputResult(0),),
        (KernelStep("to_arena"), KernelStep("from_arena")),
        arena=(ArenaSlot(64),),
        arena_bytes=128,
        **more,
    )


def test_arena_and_two_kernels(kernels):
    graph = build(arena_plan(), kernels)
    for k in range(3):
        assert graph(np.full(4, float(k))).tolist() == [10 * k + 1] * 4
    assert _launch.release_memory() >= 128


def test_arena_between_threads(kernels):
    graph = build(arena_plan(release_gil=True), kernels)
    wrong = []

    def work(k):
        x = np.full(4, float(k))
        for _ in range(2000):
            if graph(x)[3] != 10 * k + 1:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def pycall_plan(func, **more):
    arena = BufferRef(2, float64, (2, 2))
    return simple(
        (VECTOR,),
        (OutputSlot(float64, (4,)),),
        (OutputResult(0),),
        (
            KernelStep("to_arena"),
            PyCallStep(func, (arena,), (BufferRef(2, float64, (2, 2)),)),
            KernelStep("from_arena"),
        ),
        arena=(ArenaSlot(0),),
        arena_bytes=64,
        **more,
    )


def test_pycall_between_kernels(kernels):
    graph = build(pycall_plan(np.linalg.inv), kernels)
    x = np.array([1.0, 2.0, 3.0, 5.0])
    np.testing.assert_allclose(graph(x).reshape(2, 2), np.linalg.inv(10 * x.reshape(2, 2)) + 1)


def test_pycall_by_name(kernels):
    graph = build(pycall_plan("numpy:linalg.inv"), kernels)
    assert graph(np.array([1.0, 0, 0, 1])).tolist() == pytest.approx([1.1, 1, 1, 1.1])


def test_pycall_that_keeps_its_argument(kernels):
    kept = []

    def keep(array):
        kept.append(array)
        return array

    graph = build(pycall_plan(keep), kernels)
    for k in range(3):
        graph(np.full(4, float(k)))
    assert [array[0, 0] for array in kept] == [0, 10, 20]


@pytest.mark.parametrize(
    "func",
    [
        np.array,
        np.asarray,
        np.asfortranarray,
        lambda a: a.T.copy().T,
        lambda a: a[::-1][::-1],
        lambda a: a.astype(np.float32),
        lambda a: a.astype(">f8"),
        lambda a: np.broadcast_to(a, (1, 2, 2))[0],
        lambda a: np.frombuffer(b" " + a.tobytes(), np.uint8)[1:].view(np.float64).reshape(2, 2),
        lambda a: np.ma.array(a),
    ],
)
def test_pycall_results_of_any_layout(kernels, func):
    graph = build(pycall_plan(func), kernels)
    for x in (np.array([1.0, 2.0, 3.0, 5.0]), np.array([0.0, -0.0, np.inf, 7.0])):
        assert graph(x).tolist() == (10 * x + 1).tolist()


@pytest.mark.parametrize(
    ("func", "error"),
    [
        (lambda a: 1 / 0, ZeroDivisionError),
        (lambda a: np.linalg.inv(a * 0), np.linalg.LinAlgError),
        (lambda a: a[0], ValueError),
        (lambda a: (a, a), ValueError),
        (lambda a: a.astype(complex), TypeError),
        (lambda a: "text", (TypeError, ValueError)),
        (lambda a: None, (TypeError, ValueError)),
        (lambda: None, TypeError),
    ],
)
def test_pycall_errors(kernels, func, error):
    graph = build(pycall_plan(func), kernels)
    for _ in range(3):
        with pytest.raises(error):
            graph(np.ones(4))


@pytest.mark.parametrize(("length", "is_cached"), [(4, False), (1 << 15, True)])
def test_memory_of_pycalls_of_known_sizes(length, is_cached):
    """Large arrays that a function makes come from the cache if its results are large."""
    idle = []

    def make(array):
        made = np.full(1 << 18, 2.0)
        before = _launch.cached_bytes()
        del made
        idle.append(_launch.cached_bytes() - before)
        return np.full(length, array[0])

    large = BufferRef(1, float64, (length,))
    plan = simple(
        (VECTOR,),
        (OutputSlot(float64, (length,)),),
        (OutputResult(0),),
        (PyCallStep(make, (BufferRef(0, float64, (4,)),), (large,)),),
    )
    assert build(plan)(np.full(4, 3.0)).tolist() == [3.0] * length
    assert idle == [8 << 18 if is_cached else 0]


def test_pycall_several_results():
    refs = (BufferRef(1, float64, (2,)), BufferRef(2, int64, (2,)))
    plan = simple(
        (VECTOR,),
        (OutputSlot(float64, (2,)), OutputSlot(int64, (2,))),
        (OutputResult(0), OutputResult(1)),
        (PyCallStep(lambda a: [a * 2, np.argsort(a)], (BufferRef(0, float64, (2,), (-1,), 1),), refs),),
        single=False,
    )
    doubled, order = build(plan)(np.array([3.0, 4.0]))
    assert doubled.tolist() == [8, 6]
    assert order.tolist() == [1, 0]


def test_pycall_sees_a_read_only_input_as_read_only():
    def write(array):
        array[0] = 1
        return array

    plan = simple(
        (VECTOR,),
        (OutputSlot(float64, (2,)),),
        (OutputResult(0),),
        (PyCallStep(write, (BufferRef(0, float64, (2,)),), (BufferRef(1, float64, (2,)),)),),
    )
    x = np.zeros(2)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        build(plan)(x)


def test_kernel_errors(kernels):
    errors = ((IndexError, "index {0} is out of bounds for axis {1}"),)
    plan = simple((VECTOR,), (), (InputResult(0),), (KernelStep("check"),), errors=errors)
    graph = build(plan, kernels)
    graph(np.ones(1))
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 3"):
        graph(-np.ones(1))
    plan = simple((), (), (ConstantResult(1),), (KernelStep("unknown_error"),), name="broken")
    with pytest.raises(RuntimeError, match="broken.*99"):
        build(plan, kernels)()


def test_constants_are_kept(kernels):
    plan = simple(
        (),
        (OutputSlot(float64, (), kind="python_scalar"),),
        (OutputResult(0),),
        (KernelStep("constant_item"),),
        constants=(np.array([0.0, 1.0, 2.5]),),
    )
    graph = build(plan, kernels)
    del plan
    gc.collect()
    assert graph() == 2.5


def test_many_inputs_use_the_heap_frame(kernels):
    slots = (InputSlot("float", float64),) * 400
    graph = build(simple(slots, (), (InputResult(399),), (KernelStep("nothing"),)), kernels)
    assert graph(*map(float, range(400))) == 399.0


BAD_PLANS = {
    "result of no output": {"results": (OutputResult(1),)},
    "result of no input": {"results": (InputResult(2),)},
    "view of nothing": {"results": (ViewOutput("output", 3, float64, (1,), (1,)),)},
    "single with two": {"results": (OutputResult(0), OutputResult(0))},
    "symbol of no input": {"symbols": (SymbolSlot("shape", 5, 0),)},
    "symbol of no dim": {"symbols": (SymbolSlot("shape", 0, 1),)},
    "value of an array": {"symbols": (SymbolSlot("value", 0),)},
    "dynamic without sizes": {"outputs": (OutputSlot(float64, (SizeRef(0),)),)},
    "negative dim": {"outputs": (OutputSlot(float64, (-1,)),)},
    "huge": {"outputs": (OutputSlot(float64, (2**40, 2**40)),)},
    "strides of another length": {"outputs": (OutputSlot(float64, (4,), (1, 1)),)},
    "scalar with dims": {"outputs": (OutputSlot(float64, (4,), kind="numpy_scalar"),)},
    "arena out of bounds": {"arena": (ArenaSlot(64),), "arena_bytes": 32},
    "arena unaligned": {"arena": (ArenaSlot(8),), "arena_bytes": 32},
    "no dtype": {"inputs": (InputSlot("array"), VECTOR)},
    "bad ndim": {"inputs": (InputSlot("array", float64, 65), VECTOR)},
    "errors of another form": {"errors": ((int, "x"),)},
    "buffer out of range": {
        "steps": (PyCallStep(abs, (BufferRef(9, float64, (1,)),), ()),),
    },
    "buffer past the arena": {
        "arena": (ArenaSlot(0),),
        "arena_bytes": 64,
        "steps": (PyCallStep(abs, (BufferRef(3, float64, (9,)),), ()),),
    },
}


@pytest.mark.parametrize("name", BAD_PLANS)
def test_bad_plans(kernels, name):
    fields = {
        "inputs": (VECTOR, VECTOR),
        "outputs": (OutputSlot(float64, (4,)),),
        "results": (OutputResult(0),),
        "steps": (KernelStep("add4"),),
        **BAD_PLANS[name],
    }
    with pytest.raises(ValueError, match="launch plan|negative dimension|too large"):
        build(LaunchPlan(**fields), kernels)


def test_missing_symbol(kernels):
    with pytest.raises(LookupError, match="absent"):
        build(simple((), (), (ConstantResult(1),), (KernelStep("absent"),)), kernels)
    with pytest.raises(ValueError, match="no library"):
        build(add_plan())


@pytest.mark.parametrize("spec", [(), (1,) * 15, ("n",) + ((),) * 14, ("n",) + (None,) * 14])
def test_malformed_specs_do_not_crash(spec):
    with pytest.raises((ValueError, TypeError)):
        _launch.CompiledGraph(spec)


def test_large_outputs_own_their_memory_and_reuse_it(kernels):
    shape = (1 << 20,)
    plan = simple((), (OutputSlot(float64, shape),), (OutputResult(0),), (KernelStep("ones_large"),))
    graph = build(plan, kernels)
    first = graph()
    assert first.flags.owndata
    assert first.base is None
    assert first.sum() == 1 << 20
    address = first.ctypes.data
    assert address % 4096 == 0
    del first
    assert _launch.cached_bytes() >= 8 << 20
    second = graph()
    assert second.ctypes.data == address
    second.resize((2 << 20,), refcheck=False)
    assert second[: 1 << 20].sum() == 1 << 20
    assert second[1 << 20 :].sum() == 0
    second.resize((10,), refcheck=False)
    assert second.sum() == 10
    del second
    _launch.release_memory()
    assert _launch.cached_bytes() == 0


def test_cache_limit(kernels):
    plan = simple((), (OutputSlot(float64, (1 << 18,)),), (OutputResult(0),), ())
    graph = build(plan)
    arrays = [graph() for _ in range(6)]
    try:
        _launch.set_cache_limit(5 << 20)
        del arrays
        assert 0 < _launch.cached_bytes() <= 5 << 20
        _launch.set_cache_limit(0)
        assert _launch.cached_bytes() == 0
        graph()
        assert _launch.cached_bytes() == 0
    finally:
        _launch.set_cache_limit(256 << 20)


def test_large_arrays_are_seen_by_tracemalloc():
    graph = build(simple((), (OutputSlot(float64, (1 << 20,)),), (OutputResult(0),), ()))
    tracemalloc.start()
    try:
        array = graph()
        assert tracemalloc.get_traced_memory()[0] > 8 << 20
        del array
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


def exercise(kernels):
    """One call of everything, errors included."""
    # (not np.ones: NumPy 2.4's leaks a reference to the dtype)
    x = np.arange(4.0) * 0 + 1
    add = build(add_plan(), kernels)
    inverse = build(pycall_plan(np.linalg.inv), kernels)
    views = simple(
        (VECTOR, InputSlot("object")),
        (OutputSlot(float64, (1 << 18,)), OutputSlot(float64, (), kind="numpy_scalar")),
        (
            ViewOutput("input", 0, float64, (2,), (2,)),
            ViewOutput("output", 0, float64, (8,), (1,)),
            OutputResult(1),
            InputResult(1),
            ConstantResult(x),
        ),
        (),
        single=False,
        errors=((ValueError, "x"),),
        constants=(x,),
    )
    several = build(views)
    for _ in range(20):
        add(x, x)
        several(x, object())
        with pytest.raises(np.linalg.LinAlgError):
            inverse(x)
        with pytest.raises(TypeError):
            add(x, None)
    with pytest.raises(ValueError):
        build(add_plan(symbols=(SymbolSlot("shape", 9),)), kernels)


def test_no_leaks(kernels):
    descr = np.dtype(np.float64)
    exercise(kernels)
    gc.collect()
    references = sys.getrefcount(descr)
    tracemalloc.start()
    try:
        exercise(kernels)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10):
            exercise(kernels)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 4000
    assert abs(sys.getrefcount(descr) - references) < 5


def test_graph_freed_while_running():
    holder = {}
    plan = simple(
        (),
        (OutputSlot(float64, (2,)),),
        (OutputResult(0),),
        (PyCallStep(lambda: holder.clear() or np.ones(2), (), (BufferRef(0, float64, (2,)),)),),
    )
    holder["graph"] = build(plan)
    assert holder["graph"]().tolist() == [1, 1]
    assert holder == {}


def test_reference_cycle_is_collected():
    class Marker:
        pass

    import weakref

    marker = Marker()
    gone = weakref.ref(marker)
    marker.graph = build(simple((), (), (ConstantResult(marker),), ()))
    del marker
    gc.collect()
    assert gone() is None


def test_recursive_call(kernels):
    depth = []

    def again(array):
        if len(depth) < 3:
            depth.append(1)
            graph(np.eye(2).ravel())
        return array

    graph = build(pycall_plan(again), kernels)
    assert graph(np.arange(4.0)).tolist() == [1, 11, 21, 31]
