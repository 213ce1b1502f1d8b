"""Nothing that Python can pass to the C extension ends the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dyncomp.hook import _hook

ROOT = Path(__file__).parents[2]


def bad_calls(seed, count):
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "tests.hook.bad_calls",
        str(seed),
        str(count),
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "raised" in ran.stdout


def test_bad_calls():
    bad_calls(0, 1500)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 20))
def test_many_bad_calls(seed):
    bad_calls(seed, 8000)


def test_a_tail_call_is_made_once():
    call = _hook.later(max, 1, 2)
    assert _hook.run(call) == 2
    with pytest.raises(RuntimeError, match="made before"):
        _hook.run(call)


def test_a_compiled_function_is_initialised_once():
    config = _hook.HookConfig()
    compiled = _hook.Dispatcher(lambda x: x, config)
    with pytest.raises(TypeError, match="already"):
        compiled.__init__(lambda: 1, config)
    assert compiled(3) == 3


def test_code_of_an_entry_that_is_run_once_must_suit():
    outer = 1

    def wrong(x):
        return x, outer

    config = _hook.HookConfig(lambda func, bound, config: _hook.Entry(None, wrong.__code__, rank=-1))
    with pytest.raises(ValueError, match="same arguments"):
        _hook.Dispatcher(lambda x: x, config)(1)


def test_registers_to_compare_are_plain_numbers():
    class Shifting:
        answers = [0, 10**6]

        def __index__(self):
            self.answers.reverse()
            return self.answers[1]

    instructions = [
        (_hook.OPS["LOAD_ARG"], 0, 0, 0, None, 0),
        (_hook.OPS["DISJOINT"], 0, 0, 0, ((0, Shifting()), (0,)), 0),
    ]
    with pytest.raises(ValueError, match="malformed"):
        _hook.GuardProgram(instructions, 1)
