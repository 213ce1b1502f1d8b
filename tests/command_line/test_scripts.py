"""``dyncomp run`` and ``dyncomp explain``."""

from __future__ import annotations

import json
import signal

import pytest

PROGRAM = '''"""A program."""
import sys
import numpy as np
import helper


class Model:
    scale = 2.0

    @staticmethod
    def act(x):
        return np.tanh(x) + 1.0

    def step(self, x):
        return self.act(x) * self.scale


def smooth(x):
    y = np.exp(-x)
    return y.sum() + y


def plain(x):
    return np.cos(x)


def main():
    x = np.linspace(0.0, 1.0, 1000)
    for _ in range(3):
        total = smooth(x).sum() + Model().step(x).sum() + helper.twice(x).sum() + plain(x).sum()
    print(round(total, 9), sys.argv[1:])


if __name__ == "__main__":
    main()
'''
FACTS = """
import sys, os, threading, pickle
print(__name__, __file__ == os.path.abspath(sys.argv[0]), sys.argv, __doc__, __spec__, sorted(globals()))
print(sys.path[0], sys.modules["__main__"].__dict__ is globals(), threading.current_thread().name)

class Point: pass
print(type(pickle.loads(pickle.dumps(Point()))) is Point, Point.__module__)
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "helper.py").write_text("def twice(x):\n    return x * 2.0 + x.mean()\n")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_a_script_runs_as_python_would_run_it(python, dyncomp, tmp_path):
    path = tmp_path / "facts.py"
    path.write_text(FACTS)
    for arguments in ((), ("a", "--json", "-x")):
        expected = python(str(path), *arguments)
        found = dyncomp("run", str(path), *arguments)
        assert (found.returncode, found.stdout, found.stderr) == (0, expected.stdout, "")


@pytest.mark.parametrize(
    "body",
    [
        "raise SystemExit(3)",
        "raise SystemExit",
        "raise SystemExit('why')",
        "import sys; sys.exit(300)",
        "def f():\n    1 / 0\nf()",
        "x = (",
        "import atexit; atexit.register(print, 'last'); raise KeyError('k')",
        "import sys; sys.excepthook = lambda *a: print('hook', a[0].__name__); raise KeyError",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('v') from e",
        "import threading; threading.Timer(0.1, print, ['late']).start()",
    ],
)
def test_exit_status_and_tracebacks(python, dyncomp, tmp_path, body):
    (tmp_path / "script.py").write_text(body + "\n")
    expected = python("script.py")
    for more in ((), ("--compile", "f")):
        found = dyncomp("run", *more, "script.py")
        errors = [line for line in found.stderr.splitlines() if not line.startswith("dyncomp: --compile")]
        assert (found.returncode, found.stdout) == (expected.returncode, expected.stdout)
        assert errors == expected.stderr.splitlines()


def test_an_interrupt_ends_it_as_an_interrupt(dyncomp, tmp_path):
    (tmp_path / "script.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    found = dyncomp("run", "--table", "script.py")
    assert found.returncode == -signal.SIGINT and "KeyboardInterrupt" in found.stderr


def test_named_functions_are_compiled(python, dyncomp, script):
    names = ("smooth", "Model.act", "Model.step", "helper:twice")
    options = [word for name in names for word in ("--compile", name)]
    expected = python("program.py", "a")
    found = dyncomp("run", *options, "--table", "program.py", "a")
    assert found.returncode == 0 and found.stdout.startswith(expected.stdout) and not found.stderr
    for name in ("smooth", "Model.step", "twice"):
        assert any(line.startswith(name) for line in found.stdout.splitlines())
    assert "plain" not in found.stdout.partition("left to")[0].replace(expected.stdout, "")
    # what stands before the script is ours, what comes behind it is its own
    found = dyncomp("run", *options, "--json", "--output", "out.json", "program.py", "--table")
    assert "['--table']" in found.stdout
    facts = json.loads((script.parent / "out.json").read_text())
    rows = {row["name"]: row for row in facts["functions"]}
    assert facts["status"] == 0 and rows["smooth"]["graphs"] == 1 and rows["smooth"]["calls"] == 2
    assert rows["twice"]["where"].endswith("helper.py:1") and "plain" not in rows
    assert rows["Model.step"]["where"].endswith("program.py:14") and not rows["smooth"]["plain"]


def test_what_is_decorated_is_compiled_anyway(dyncomp, tmp_path):
    (tmp_path / "script.py").write_text(
        "import dyncomp, numpy as np\n@dyncomp.compile\ndef f(x):\n    dyncomp.graph_break('for a look')\n"
        "    return np.sin(x) + 1\nf(np.ones(9))\ndyncomp.compile(lambda x: np.cos(x) * 2)(np.ones(9))\n"
    )
    found = dyncomp("run", "--table", "script.py")
    assert found.returncode == 0 and "<lambda>" in found.stdout
    assert "left to plain Python, and why:" in found.stdout and "for a look" in found.stdout


def test_names_that_are_none(dyncomp, script):
    found = dyncomp("run", "--compile", "nowhere", "--compile", "helper:no", "program.py")
    assert found.returncode == 0
    for name in ("nowhere", "helper:no"):
        assert f"--compile {name}: no function of this name was defined" in found.stderr
    for name in ("a b", ":f", "f:", "a..b:1x", ""):
        found = dyncomp("run", "--compile", name, "program.py")
        assert found.returncode == 2 and "is no name of a function" in found.stderr and not found.stdout
    found = dyncomp("run", "missing.py")
    assert found.returncode == 2 and "cannot open 'missing.py': No such file" in found.stderr


def test_profiles(dyncomp, script, tmp_path):
    found = dyncomp("run", "--compile", "smooth", "--profile", "--trace", "trace.json", "program.py")
    assert found.returncode == 0 and "guards of smooth" in found.stdout and "self ms" in found.stdout
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any(event.get("cat") == "kernel" and "program.py:19" in event["args"]["where"] for event in events)


def test_explain(dyncomp, script, tmp_path):
    found = dyncomp("explain", "--compile", "smooth", "--compile", "plain", "--html", "r.html", "program.py")
    assert found.returncode == 0 and found.stdout.count("All of the call is compiled.") == 2
    assert "=== smooth at" in found.stdout and "=== plain at" in found.stdout
    assert "smooth" in (tmp_path / "r.html").read_text() and "plain" in (tmp_path / "r-2.html").read_text()
    found = dyncomp("explain", "--compile", "smooth", "--json", "program.py")
    facts = json.loads(found.stdout[found.stdout.index("{") :])
    (function,) = facts["functions"]
    assert function["name"].startswith("smooth at") and function["kernels"][0]["lines"]
    found = dyncomp("explain", "program.py")
    assert found.returncode == 0 and "no compiled function was called" in found.stdout
