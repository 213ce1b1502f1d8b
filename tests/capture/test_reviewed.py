"""What a review of the library's rules and of compiled loops found wrong."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, differences

PROGRAMS = {
    "initial comes first": lambda x: np.subtract.reduce(x, initial=5),
    "initial of sums": lambda x: np.add.reduce(x, initial=5),
    "choices of weak types": lambda x: np.choose(x % 2, [x.astype(np.int8), 7]),
    "unsigned positions": lambda x: np.choose((x % 2).astype(np.uint64), [x, x]),
    "axes as an array": lambda x: np.sum(x.reshape(3, 2), axis=np.array([1, 0])),
    "an axis as an array": lambda x: x.sum(axis=np.array(0)),
    "all of flat": lambda x: (x.flat[()], np.shares_memory(x.flat[()], x)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules(name: str) -> None:
    program = PROGRAMS[name]
    compiled = dyncomp.compile(program, backend="eager")
    for _ in range(3):
        expected, found = call(program, (np.arange(6),)), call(compiled, (np.arange(6),))
        assert not differences(expected, found)


def test_a_range_that_the_loop_does_not_go_over_stays_where_it_is() -> None:
    def program(a, it, n):
        i = 0
        total = 0.0
        while i < n:
            a = i
            if i < 0:
                print(it)
            total += i * 0.5
            i += 1
        return a, total

    compiled = dyncomp.compile(program)
    for _ in range(6):
        iterator = iter(range(1000))
        assert compiled(0, iterator, 30_000) == program(0, iterator, 30_000)
        assert iterator.__length_hint__() == 1000


def test_a_key_of_the_programs_own_among_globals() -> None:
    """Looking at what a loop assumed runs no code between the taking of an address and its use."""
    buffer = bytearray(50_000)

    class Key:
        def __hash__(self):
            return hash("SCALE")

        def __eq__(self, other):
            buffer.clear()
            return False

    names = {"__builtins__": __builtins__, "SCALE": 3}
    exec("def fill(buf, n):\n    for i in range(n):\n        buf[i] = SCALE\n    return len(buf)", names)
    compiled = dyncomp.compile(names["fill"])
    for _ in range(4):
        assert compiled(buffer, len(buffer)) == 50_000
    del names["SCALE"]
    names[Key()] = 0
    names["SCALE"] = 3
    buffer[:] = bytes(50_000)
    with pytest.raises(IndexError):
        compiled(buffer, 50_000)  # as plain Python: the key empties it


DAEMONS = """
import threading, time
import numpy as np
from dyncomp.runtime import _launch
a = np.random.default_rng(0).standard_normal((500, 500))
def work():
    while True:
        _launch.solve(a, a)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""


def test_threads_that_outlive_the_interpreter() -> None:
    # at exit OpenBLAS waits for threads of its own, now and then for good (plain NumPy: 9 of 120 runs)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", DAEMONS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
