"""What users are told once: compilers that do not work, and variables that nothing reads."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from dyncomp import notices
from dyncomp.options import _FROM_ENVIRONMENT

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = """
import sys
import numpy as np
import dyncomp
from dyncomp.build import compilers, toolchain
compilers._SECONDS = toolchain._SLOW_SECONDS = toolchain._PROBE_SECONDS = 0.5

def f(x):
    return (np.sin(x) * 2 + x).sum()

def g(x):
    return np.cos(x[x > 1]) * 2

def loop(n):
    total = 0
    for k in range(n):
        total += k * k % 7
    return total

x = np.linspace(0, 3, 2000)
for mode in ("default", "max-autotune"):
    for function, argument in ((f, x), (g, x), (loop, 300_000)):
        compiled = dyncomp.compile(function, mode=mode)
        for _ in range(3):
            assert np.allclose(compiled(argument), function(argument))
stats = dyncomp.stats()
print(stats["notices"].get("compiler", 0), stats["internal_errors"], stats["graphs"])
"""
COMPILES = "import dyncomp; dyncomp.compile(lambda x: x + 1)(1); dyncomp.compile(lambda x: x * 2)(1)"
FAKES = {
    "fails": "#!/bin/sh\nexit 1\n",
    "says why": "#!/bin/sh\necho 'no licence today' >&2\nexit 3\n",
    "prints garbage": "#!/bin/sh\nhead -c 200 /dev/urandom\nexit 0\n",
    "hangs": "#!/bin/sh\nexec sleep 1000\n",
    "is killed": "#!/bin/sh\nkill -9 $$\n",
    "compiles little": '#!/bin/sh\ncase $* in *probe*) exec g++ "$@";; *) kill -9 $$;; esac\n',
    "is no program": "no program",
    "has no interpreter": "#!/nowhere/sh\n",
}


def run(tmp_path, program=PROGRAM, **variables):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DYNCOMP_") and k != "CXX"}
    environ = {**kept, "DYNCOMP_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=120)
    assert not done.returncode, done.stderr[-2000:]
    told = [line for line in done.stderr.splitlines() if line.startswith("dyncomp: ")]
    return done.stdout.split(), told


@pytest.mark.parametrize("kind", FAKES)
def test_compilers_that_do_not_work(tmp_path, kind):
    fake = tmp_path / "fake-g++"
    fake.write_text(FAKES[kind])
    fake.chmod(0o755)
    (times, errors, graphs), told = run(tmp_path, CXX=str(fake))
    assert int(times) >= 2 and (errors, graphs) == ("0", "0")
    assert len(told) == 1 and "fake-g++" in told[0] and told[0].endswith("functions run as plain Python")
    if kind == "says why":
        assert "no licence today" in told[0]


def test_a_compiler_that_is_not_there(tmp_path):
    (times, *_), told = run(tmp_path, PATH="/nowhere")
    assert int(times) >= 2
    assert len(told) == 1 and "looked for g++, clang++, c++" in told[0]
    plain = tmp_path / "no-program"
    plain.write_text("text")
    for variable in ("CXX", "DYNCOMP_CXX"):
        _, told = run(tmp_path, **{variable: str(plain)})
        assert len(told) == 1 and variable in told[0]


def test_a_wrong_instruction_set(tmp_path):
    (times, errors, graphs), told = run(tmp_path, DYNCOMP_MARCH="x86-64-v33")
    assert int(times) >= 2 and (errors, graphs) == ("0", "0")
    assert len(told) == 1 and "DYNCOMP_MARCH='x86-64-v33'" in told[0]


def test_instructions_that_the_processor_has_not(tmp_path):
    """They would end the process."""
    program = "from dyncomp.build import toolchain\n"
    program += "toolchain._processor = lambda: 'flags\\t: fpu sse4_2 avx'\n"
    (times, _, graphs), told = run(tmp_path, program + PROGRAM, DYNCOMP_MARCH="x86-64-v3")
    assert int(times) >= 2 and graphs == "0"
    assert len(told) == 1 and "avx2" in told[0]


def test_a_compiler_that_goes_away(tmp_path):
    real = shutil.which("g++")
    if real is None:
        pytest.skip("no g++")
    own = tmp_path / "my-g++"
    own.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    own.chmod(0o755)
    program = """
import os
import numpy as np
import dyncomp
functions = [eval(f"lambda x: (np.sin(x) * {k}.5 + x).sum()") for k in range(6)]
x = np.linspace(0, 3, 2000)
for number, function in enumerate(functions):
    compiled = dyncomp.compile(function)
    for _ in range(2):
        assert np.allclose(compiled(x), function(x))
    if number == 2:
        print(dyncomp.stats()["graphs"])
        os.unlink(os.environ["CXX"])
print(dyncomp.stats()["graphs"], dyncomp.stats()["notices"]["compiler"])
"""
    (before, after, times), told = run(tmp_path, program, CXX=str(own))
    assert (before, after, times) == ("3", "3", "3")
    assert len(told) == 1 and "cannot be started" in told[0]


# -- variables ------------------------------------------------------------------------------------
def test_variables_that_nothing_reads(tmp_path):
    names = {"DYNCOMP_CAHCE_DIR": "/nowhere", "DYNCOMP_NUM_THREAD": "1", "DYNCOMP_XYZZY": "1"}
    _, told = run(tmp_path, COMPILES, DYNCOMP_TIER="best", DYNCOMP_TEST_THING="1", **names)
    assert len(told) == 3
    text = "\n".join(told)
    assert "did you mean DYNCOMP_CACHE_DIR?" in text and "did you mean DYNCOMP_NUM_THREADS?" in text
    assert "DYNCOMP_XYZZY means nothing" in text and "DYNCOMP_TIER" not in text


def test_a_size_that_is_no_number(tmp_path):
    _, told = run(tmp_path, COMPILES, DYNCOMP_CACHE_SIZE_MB="1G")
    assert len(told) == 1 and "'1G'" in told[0]


_READERS = r"(?:environ(?:\.get)?[\[(]|getenv\(|from_environment\(|_ENVIRONMENT = )"


def _read_somewhere() -> set[str]:
    """Variables that Python or C++ code of the package reads."""
    found = set()
    for path in (ROOT / "dyncomp").rglob("*"):
        if path.suffix in (".py", ".cpp", ".c", ".h"):
            text = path.read_text(encoding="utf-8")
            found |= set(re.findall(rf"{_READERS}\"(DYNCOMP_\w+)\"", text))
    return found | {f"DYNCOMP_{name.upper()}" for name in _FROM_ENVIRONMENT}


def test_all_variables_that_are_read_are_known(monkeypatch):
    read = _read_somewhere()
    assert {"DYNCOMP_CXX", "DYNCOMP_NUM_THREADS", "DYNCOMP_OWN_THREADS", "DYNCOMP_LOGS"} <= read
    told: list[str] = []
    monkeypatch.setattr(notices, "warn_once", lambda kind, message: told.append(message))
    notices.check_variables(dict.fromkeys(read, "1"), _FROM_ENVIRONMENT)
    assert not told
    assert set(notices._VARIABLES) <= read


def test_documented_variables_are_known(monkeypatch):
    told: list[str] = []
    monkeypatch.setattr(notices, "warn_once", lambda kind, message: told.append(message))
    for path in (ROOT / "docs").glob("*.md"):
        names = re.findall(r"DYNCOMP_[A-Z_]+[A-Z]", path.read_text(encoding="utf-8"))
        notices.check_variables(dict.fromkeys(names, "1"), _FROM_ENVIRONMENT)
    assert not told
