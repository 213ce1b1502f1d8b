"""Packed operands are kept of private anonymous memory alone, and only until it changes, in whatever way."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dyncomp.runtime import _launch
from tests.runtime import memory_ways as ways
from tests.runtime.test_kept import CAN_WATCH, copies, multiply

pytestmark = [
    pytest.mark.skipif(not CAN_WATCH, reason="this system does not tell of writes to memory"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
SIZES = (320, 256)
BYTES = SIZES[0] * SIZES[1] * 4
CALLS = 14  # enough for a second attempt


@pytest.fixture(autouse=True)
def _nothing_kept():
    _launch.release_memory()
    while "VmPin:\t       0 kB" not in Path("/proc/self/status").read_text():
        time.sleep(0.01)  # a ring that was closed goes a little later
    time.sleep(0.001)
    yield
    _launch.release_memory()


def room_of(make):
    try:
        return make(BYTES)
    except (ways.Missing, ImportError) as error:
        pytest.skip(str(error))


def do(way, *arguments):
    try:
        way(*arguments)
    except ways.Missing as error:
        pytest.skip(str(error))


def weights(room):
    rng = np.random.default_rng(0)
    room.array[: BYTES // 4] = rng.integers(1, 9, BYTES // 4)
    return room.array[: BYTES // 4].reshape(SIZES[::-1]).T


def left():
    return np.random.default_rng(1).integers(-9, 9, (32, SIZES[0])).astype(np.float32)


def assert_right(a, b):
    """The kept copy, if any, is used before the memory is read in any other way."""
    got = multiply(a, b)
    assert np.array_equal(got, multiply(a, b, kept=False), equal_nan=True)
    return got


def ring_or_skip():
    try:
        return ways.Ring()
    except ways.Missing as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("way", ways.WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("make", ways.PRIVATE, ids=lambda make: make.__name__)
def test_a_change_of_private_memory_is_seen(make, way):
    if way in ways.REPLACING and make not in (ways.anonymous, ways.huge_pages_wanted):
        pytest.skip("not of memory that something else manages")
    room, a = room_of(make), left()
    b = weights(room)
    for _ in range(4):
        before = multiply(a, b)
    assert copies() == 1
    for _ in range(2):
        do(way, room)
        after = assert_right(a, b)
        assert not np.array_equal(before, after)
        for _ in range(CALLS):
            assert_right(a, b)
        weights(room)
        assert_right(a, b)


@pytest.mark.parametrize("way", ways.HARMLESS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("make", [ways.anonymous, ways.huge_pages_wanted], ids=lambda make: make.__name__)
def test_what_changes_nothing(make, way):
    room, a = room_of(make), left()
    b = weights(room)
    for _ in range(4):
        before = multiply(a, b)
    hits = _launch.kept_copies()["hits"]
    do(way, room)
    assert np.array_equal(before, multiply(a, b))
    assert _launch.kept_copies()["hits"] == hits + 1
    room.array[5] += 1
    assert not np.array_equal(before, assert_right(a, b))


@pytest.mark.parametrize(
    "way",
    [None, *(w for w in ways.WAYS if w not in ways.REPLACING)],
    ids=lambda w: getattr(w, "__name__", "none"),
)
@pytest.mark.parametrize("kind", ways.OTHERS)
def test_other_memory_is_not_kept(kind, way):
    room, a = room_of(ways.OTHERS[kind]), left()
    b = weights(room)
    for _ in range(CALLS):
        assert_right(a, b)
        assert copies() == 0
    if way is None:
        return
    do(way, room)
    for _ in range(4):
        assert_right(a, b)
        assert copies() == 0


@pytest.mark.parametrize("flags", [ways.MAP_SHARED, ways.MAP_PRIVATE])
@pytest.mark.parametrize("advice", [mmap.MADV_DONTNEED, 21], ids=["dropped", "paged out"])
def test_a_file_that_another_process_writes(flags, advice):
    room, a = room_of(ways.mapped_file(flags)), left()
    b = weights(room)
    os.fsync(room.keep.fileno())
    before = [multiply(a, b) for _ in range(CALLS)][-1]
    room.advise(advice)
    ways.in_child(lambda parent: os.pwrite(room.keep.fileno(), room.ones(), 0))
    after = assert_right(a, b)
    assert flags == ways.MAP_PRIVATE or not np.array_equal(before, after)


def test_registered_memory_is_not_kept():
    room, a = room_of(ways.anonymous), left()
    b = weights(room)
    with ring_or_skip() as ring, ways.file_of_ones(room.size) as file:
        ring.register(room)
        before = [multiply(a, b) for _ in range(CALLS)][-1]
        ring.read(file, room, fixed=True)
        assert not np.array_equal(before, assert_right(a, b))
        assert copies() == 0


def test_memory_registered_while_it_is_kept():
    room, a = room_of(ways.anonymous), left()
    b = weights(room)
    before = [multiply(a, b) for _ in range(4)][-1]
    assert copies() == 1
    with ring_or_skip() as ring, ways.file_of_ones(room.size) as file:
        ring.register(room)
        for _ in range(CALLS):
            assert_right(a, b)
        ring.read(file, room, fixed=True)
        assert not np.array_equal(before, assert_right(a, b))


def test_nothing_is_kept_while_the_kernel_has_a_ring():
    room, a = room_of(ways.anonymous), left()
    b = weights(room)
    with ways.requests():
        time.sleep(0.1)  # what is open is looked at now and then
        for _ in range(CALLS):
            assert_right(a, b)
            assert copies() == 0
    time.sleep(0.1)
    for _ in range(200):
        multiply(a, b)
    assert copies() == 1


@pytest.mark.parametrize("make", [*ways.PRIVATE, *ways.OTHERS.values()])
def test_the_kernels_answer_and_its_text_agree(make):
    room = room_of(make)
    for by_text in (False, True):
        assert _launch.private_memory(room.address, room.size, by_text) == (make in ways.PRIVATE)


def test_a_hole_is_no_memory():
    room = ways.anonymous(4 * ways.PAGE)
    ways.libc.munmap(ways.number(room.address + ways.PAGE), ctypes.c_size_t(ways.PAGE))
    for by_text in (False, True):
        assert not _launch.private_memory(room.address, room.size, by_text)
        assert _launch.private_memory(room.address, ways.PAGE, by_text)


UNDER_PRESSURE = """
import os, sys
import numpy as np
from tests.runtime.test_kept import copies, multiply

path, other = sys.argv[1:]
weights = np.memmap(path, np.float32, "r+", shape=(1024, 1024)).T
a = np.ones((32, 1024), np.float32)
for _ in range(20):
    assert multiply(a, weights)[0, 0] == 1024
for value in range(2, 5):
    with open(other, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
    writer = os.fork()
    if writer == 0:
        with open(path, "r+b", buffering=0) as file:
            file.write(np.full((1024, 1024), value, np.float32))
        os._exit(0)
    os.waitpid(writer, 0)
    assert multiply(a, weights)[0, 0] == 1024 * value
print("right")
"""


def test_memory_pressure(tmp_path):
    """A group of 130 MB: pages of the file are reclaimed without anybody's call."""
    group = Path("/sys/fs/cgroup/memory") / f"dyncomp-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group of one's own: {error}")
    try:
        (group / "memory.limit_in_bytes").write_text(str(130 << 20))
        path, other = tmp_path / "weights", tmp_path / "other"
        np.ones((1024, 1024), np.float32).tofile(path)
        with open(other, "wb") as file:
            file.truncate(200 << 20)
        enter = f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        command = [sys.executable, "-c", enter + UNDER_PRESSURE, str(path), str(other)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.stdout.strip() == "right", done.stderr
    finally:
        group.rmdir()
