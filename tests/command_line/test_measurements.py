"""``dyncomp demo`` and ``dyncomp bench``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dyncomp.command_line import demo, timing

PROGRAM = """
import sys
import numpy as np

def smooth(x, n, *, shift=0.0):
    x += shift
    return np.exp(-x).sum() * n

def odd(x):
    return np.cumsum(x)

smooth(np.full(1000, 2.0), 3, shift=1.0)
smooth(np.zeros(5), int(sys.argv[1]))
"""


def test_bench_of_a_script(dyncomp, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    found = dyncomp("bench", "program.py", "3", "--compile", "smooth", "--seconds", "0.2", "--json")
    facts = json.loads(found.stdout)
    (times,) = facts["calls"]
    assert found.returncode == 0 and facts["good"] and times["same"] and times["graphs"] == 1
    assert times["name"] == "smooth" and times["turns"] >= 5 and times["first"] > times["compiled"] > 0
    assert times["low"] <= times["ratio"] <= times["high"]
    found = dyncomp("bench", "--compile", "smooth", "--seconds", "0.1", "program.py", "3")
    assert found.returncode == 0 and found.stdout.startswith("function") and "first call" in found.stdout


def test_bench_of_a_named_function(dyncomp):
    setup = "import numpy as np; args = (np.linspace(-1, 1, 1000), np.array([1.0, 0.5, 0.25]))"
    target = "numpy.polynomial.chebyshev:chebval"
    found = dyncomp("bench", target, "--setup", setup, "--seconds", "0.1")
    assert found.returncode == 0 and target in found.stdout and "same" in found.stdout


def test_wrong_use_of_bench(dyncomp, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    for arguments, status, text in (
        (["program.py", "3"], 2, "--compile NAME"),
        (["program.py", "3", "--compile", "absent"], 2, "no function of this name was defined: absent"),
        (["program.py", "3", "--compile", "odd"], 2, "odd was not called"),
        (["program.py", "--compile", "smooth"], 1, "nothing is timed"),
        (["nowhere:f"], 2, "No module named 'nowhere'"),
        (["math:nothing"], 2, "has no attribute 'nothing'"),
        (["chebval"], 2, "say module:function"),
        (["statistics:mean", "--setup", "args = 1"], 2, "must make `args`, a tuple"),
        (["statistics:mean"], 1, "raised TypeError"),
    ):
        found = dyncomp("bench", *arguments)
        assert (found.returncode, text in found.stderr) == (status, True), (arguments, found.stderr)


@pytest.mark.slow
def test_demo(dyncomp):
    found = dyncomp("demo")
    assert found.returncode == 0 and "about" in found.stderr and "seconds" in found.stderr
    assert found.stdout.count("same") == 4 and "Medians" in found.stdout


def test_programs_of_the_demo_on_small_inputs():
    small = {
        "black_scholes": (np.full(9, 100.0), np.full(9, 90.0), np.full(9, 1.0), 0.02, 0.3),
        "heat": (np.eye(8), 3, 0.2),
        "nearest": (np.random.default_rng(2).random((9, 3)), np.random.default_rng(3).random((4, 3))),
        "balance": (np.array([1.0, -3.0, 2.0]), 0.01),
    }
    assert demo.black_scholes(*small["black_scholes"])[0] == pytest.approx(18.07, abs=1e-2)
    assert demo.balance(*small["balance"]) == 2.0
    for name, function, arguments in demo._inputs():
        assert len(arguments) == len(small[name])
        times = timing.compare(function, (small[name], {}), name, 0.0)
        assert times.same and times.turns == 5


def test_differences_are_seen():
    x = np.ones(3)
    for expected, found in (
        (x, x + 1e-3),
        (x, x[:2]),
        (1.0, 1),
        ((x,), [x]),
        (x, x * np.nan),
        ([x, 1], [x, 2]),
    ):
        assert not timing._same(expected, found)[0]
    assert timing._same((x, 2, "a"), (x * (1 + 1e-15), 2, "a")) == (True, pytest.approx(1e-15, rel=0.5))
    assert [timing.shown(t) for t in (2.0, 0.5, 2e-6, 3e-9)] == ["2 s", "500 ms", "2 µs", "3 ns"]
