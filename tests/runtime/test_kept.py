"""Packed operands kept from call to call: used only while nothing is written to where they came from."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading

import numpy as np
import pytest

from dyncomp import compile as compile_function
from dyncomp.runtime import _launch, num_threads, set_cache_limit, set_num_threads
from tests.runtime.test_gemm import LETTERS, SETS, matrix

CAN_WATCH = _launch.kept_copies()["can_watch"]
pytestmark = pytest.mark.skipif(not CAN_WATCH, reason="this system does not tell of writes to memory")
NO_WINDOWS = (0,) * 16
ENOUGH = 4


@pytest.fixture(autouse=True)
def _nothing_kept():
    _launch.release_memory()
    yield
    _launch.release_memory()


def multiply(a, b, kept=True, name=None):
    out = np.full((a.shape[0], b.shape[1]), np.nan, a.dtype)
    steps = [[s // x.itemsize for s in x.strides] for x in (a, b)]
    sizes = (a.shape[0], b.shape[1], a.shape[1])
    places = (a.ctypes.data, *steps[0], b.ctypes.data, *steps[1], out.ctypes.data, b.shape[1])
    _launch.matrix_product(name, LETTERS[a.dtype.name], *sizes, *places, NO_WINDOWS, int(kept))
    return out


def copies():
    return _launch.kept_copies()["copies"]


def changed():
    return _launch.kept_copies()["changed"]


def operands(rows=32, terms=300, cols=260, dtype="float32"):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((rows, terms)).astype(dtype)
    return a, np.asfortranarray(rng.standard_normal((terms, cols)).astype(dtype))


def keep(a, b):
    """Multiply until the copy of ``b`` is kept."""
    for _ in range(ENOUGH):
        multiply(a, b)
    assert copies() == 1


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["rows", "columns", "padded", "turned"])
@pytest.mark.parametrize("sizes", [(33, 300, 257), (150, 700, 190), (9, 1100, 1000), (200, 600, 64)])
def test_same_bits(name, dtype, layout, sizes):
    m, k, n = sizes
    rng = np.random.default_rng(1)
    a, b = matrix(m, k, dtype, "rows", rng), matrix(k, n, dtype, layout, rng)
    expected = multiply(a, b, kept=False, name=name)
    for _ in range(ENOUGH):
        assert np.array_equal(multiply(a, b, name=name), expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_same_bits_for_any_number_of_threads(threads):
    before = num_threads()
    a, b = operands(100, 900, 400)
    expected = multiply(a, b, kept=False)
    try:
        set_num_threads(threads)
        keep(a, b)
        assert np.array_equal(multiply(a, b), expected)
    finally:
        set_num_threads(before)


@pytest.mark.parametrize("place", [(0, 0), (0, 1), (150, 130), (-1, -1), (-1, -2)])
def test_a_write_is_seen(place):
    a, b = operands()
    keep(a, b)
    b[place] += 100
    assert np.array_equal(multiply(a, b), multiply(a, b, kept=False))
    assert copies() == 0


def test_what_is_written_to_again_and_again_is_copied_ever_less():
    a, b = operands()
    before = changed()
    for call in range(400):
        b[call % 300, call % 260] = call
        if call % 20 == 0:
            assert np.array_equal(multiply(a, b), multiply(a, b, kept=False))
        else:
            multiply(a, b)
    assert changed() - before < 6


def test_the_kernel_writes():
    a, b = operands()
    keep(a, b)
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(np.ones(b.size, b.dtype))
        file.seek(0)
        file.readinto(memoryview(b.T.reshape(-1)).cast("B"))
    assert b[7, 7] == 1
    assert np.array_equal(multiply(a, b), multiply(a, b, kept=False))


def test_memory_that_others_hold_is_not_kept():
    a, b = operands()
    with tempfile.NamedTemporaryFile() as file:
        file.write(np.ascontiguousarray(b.T))
        file.flush()
        mapped = np.memmap(file.name, b.dtype, "r", shape=b.T.shape).T
        private = np.memmap(file.name, b.dtype, "c", shape=b.T.shape).T
        shared = np.frombuffer(mmap.mmap(-1, b.nbytes), b.dtype).reshape(b.T.shape).T
        shared[...] = b
        for operand in (mapped, private, shared):
            for _ in range(2 * ENOUGH):
                assert np.array_equal(multiply(a, operand), multiply(a, b, kept=False))
            assert copies() == 0


def test_memory_that_was_given_back_and_came_again():
    a, b = operands()
    room = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    there = np.frombuffer(room, b.dtype, b.size).reshape(b.T.shape).T
    there[...] = b
    keep(a, there)
    room.madvise(mmap.MADV_DONTNEED)
    assert not there.any()
    assert not multiply(a, there).any()


def test_overlapping_operands():
    """Watching one operand anew does not hide what was written to the other."""
    a, b = operands()
    part = b[:, 20:]
    keep(a, b)
    b[10, 100] = 9  # on pages of both
    for _ in range(2 * ENOUGH):
        assert np.array_equal(multiply(a, part), multiply(a, part, kept=False))
    assert np.array_equal(multiply(a, b), multiply(a, b, kept=False))


def test_two_operands_on_one_page():
    a, b = operands()
    memory = np.empty(2 * b.size + 100, b.dtype)
    first, second = (memory[at : at + b.size].reshape(b.T.shape).T for at in (3, b.size + 50))
    first[...], second[...] = b, 2 * b
    for _ in range(ENOUGH):
        multiply(a, first)
        multiply(a, second)
    assert copies() == 2
    first[-1, -1] += 5
    assert np.array_equal(multiply(a, second), 2 * multiply(a, b, kept=False))
    assert np.array_equal(multiply(a, first), multiply(a, first, kept=False))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_process_starts_without_copies():
    a, b = operands()
    keep(a, b)
    child = os.fork()
    if child == 0:
        b[3, 3] = 50
        good = copies() == 0 and np.array_equal(multiply(a, b), multiply(a, b, kept=False))
        for _ in range(2 * ENOUGH):
            good = good and np.array_equal(multiply(a, b), multiply(a, b, kept=False))
        os._exit(0 if good and copies() == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert copies() == 1
    assert np.array_equal(multiply(a, b), multiply(a, b, kept=False))
    b[4, 4] = 60
    assert np.array_equal(multiply(a, b), multiply(a, b, kept=False))


def test_threads_write_and_multiply():
    """Whatever is read meanwhile: when the writer is done, results are those of what it wrote."""
    a, b = operands()
    for value in range(12):
        writer = threading.Thread(target=lambda v=value: [b.fill(v + k / 8) for k in range(20)])
        readers = [threading.Thread(target=lambda: [multiply(a, b) for _ in range(30)]) for _ in range(2)]
        for thread in (writer, *readers):
            thread.start()
        for thread in (writer, *readers):
            thread.join()
        assert np.array_equal(multiply(a, b), multiply(a, b, kept=False))


def test_bounded_and_released():
    a, b = operands()
    keep(a, b)
    held = _launch.kept_copies()["bytes"]
    assert held >= b.nbytes
    assert _launch.release_memory() >= b.nbytes
    assert copies() == 0
    try:
        set_cache_limit(held - 1)
        for _ in range(2 * ENOUGH):
            assert np.array_equal(multiply(a, b), multiply(a, b, kept=False))
        assert copies() == 0
    finally:
        set_cache_limit(256 << 20)


def weighted(x, w):
    return np.maximum(x @ w.T, 0.0)


def test_compiled_functions_keep_what_they_are_given():
    compiled = compile_function(weighted)
    x, w = operands(40, 300, 300)
    w = w.T
    for _ in range(ENOUGH):
        assert np.allclose(compiled(x, w), weighted(x, w), rtol=1e-4, atol=1e-3)
    assert copies() == 1
    w[7] = 0
    assert np.allclose(compiled(x, w), weighted(x, w), rtol=1e-4, atol=1e-3)


def test_the_option():
    compiled = compile_function(weighted, options={"keep_packed": False})
    x, w = operands(40, 300, 300)
    w = w.T
    for _ in range(ENOUGH):
        compiled(x, w)
    assert copies() == 0


def test_values_of_the_graph_are_not_kept():
    def shares(x, w):
        return x @ (w / w.sum(axis=0)).T

    compiled = compile_function(shares)
    x, w = operands(40, 300, 300)
    w = w.T
    before = _launch.kept_copies()
    for _ in range(4 * ENOUGH):
        compiled(x, w)
    assert _launch.kept_copies() == before


def test_training_a_module():
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(300, 260)
    compiled = compile_function(layer)
    x = torch.randn(40, 300)
    steps = (
        lambda: layer.weight.data.mul_(2),
        lambda: layer.weight.add_(1),
        lambda: layer.load_state_dict({k: v + 1 for k, v in layer.state_dict().items()}),
        lambda: layer.weight.numpy().fill(0.5),
    )
    with torch.no_grad():
        for step in steps:
            for _ in range(6 * ENOUGH):
                assert torch.allclose(compiled(x), layer(x), rtol=1e-4, atol=1e-3)
            step()
            assert torch.allclose(compiled(x), layer(x), rtol=1e-4, atol=1e-3)
