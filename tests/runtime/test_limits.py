"""What control groups allow, and forks while other threads allocate."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

import dyncomp
from dyncomp.runtime import _launch, cached_bytes, release_memory, set_cache_limit

MIB = 1 << 20
UNIFIED = "0::/work/job\n"
BY_CONTROLLER = "5:memory:/job\n4:cpuacct,cpu:/job\n0::/\n"


def allowed(folder: Path, groups: str, files: dict[str, str]) -> tuple[float, float]:
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = folder / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return _launch.group_limits(str(folder))


@pytest.mark.parametrize(
    "groups, files, expected",
    [
        (UNIFIED, {"work/job/cpu.max": "150000 100000\n"}, (1.5, 0.0)),
        (UNIFIED, {"work/job/cpu.max": "max 100000\n", "work/cpu.max": "300000 100000\n"}, (3.0, 0.0)),
        (UNIFIED, {"cpu.max": "50000 100000\n", "memory.max": "max\n"}, (0.5, 0.0)),
        (
            UNIFIED,
            {"memory.max": f"{512 * MIB}\n", "work/job/memory.max": f"{64 * MIB}\n"},
            (0.0, 64.0 * MIB),
        ),
        (UNIFIED, {}, (0.0, 0.0)),
        (
            BY_CONTROLLER,
            {"cpu/job/cpu.cfs_quota_us": "200000\n", "cpu/job/cpu.cfs_period_us": "100000\n"},
            (2.0, 0.0),
        ),
        (BY_CONTROLLER, {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, (0.0, 0.0)),
        (BY_CONTROLLER, {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, (0.0, 0.0)),
        (BY_CONTROLLER, {"memory/job/memory.limit_in_bytes": f"{MIB}\n"}, (0.0, 1.0 * MIB)),
        ("nonsense\n::\n1:cpu\n1:cpu:job\n", {"cpu.max": "1 1\n"}, (0.0, 0.0)),
        ("", {"cpu.max": "1 1\n"}, (0.0, 0.0)),
    ],
)
def test_control_groups(
    groups: str, files: dict[str, str], expected: tuple[float, float], tmp_path: Path
) -> None:
    assert allowed(tmp_path, groups, files) == expected


def test_without_control_groups(tmp_path: Path) -> None:
    assert _launch.group_limits(str(tmp_path)) == (0.0, 0.0)
    with pytest.raises(TypeError):
        _launch.group_limits(1)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_while_threads_allocate() -> None:
    """A child that finds the allocator's lock taken by a thread that it has not got would hang."""
    double = dyncomp.compile(lambda x: x * 2.0)
    x = np.arange(300_000.0)
    double(x)
    stop = threading.Event()
    buffers = [np.empty(0)] * 2

    def allocate(number: int) -> None:
        while not stop.is_set():
            buffers[number] = double(x)
            release_memory()

    threads = [threading.Thread(target=allocate, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = 0 if np.array_equal(double(x), x + x) else 2
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_memory_is_bounded_and_given_back() -> None:
    program = dyncomp.compile(lambda x: np.sqrt(x) + 1.0)
    x = np.ones(4 * MIB // 8)
    release_memory()
    try:
        set_cache_limit(3 * MIB)
        for _ in range(3):
            program(x)
        assert cached_bytes() <= 3 * MIB
        set_cache_limit(64 * MIB)
        for _ in range(3):
            program(x)
        assert cached_bytes() >= 4 * MIB
        assert release_memory() >= 4 * MIB
        assert cached_bytes() == 0
    finally:
        set_cache_limit(256 * MIB)
