"""``DYNCOMP_REPRO`` and the command ``dyncomp minify``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dyncomp
from dyncomp.command_line.main import main

from .test_minify import arguments, broken_backend, f


def run(fault: str, folder: Path, asked: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "DYNCOMP_REPRO": asked, "DYNCOMP_REPRO_DIR": str(folder)}
    environ.pop("DYNCOMP_STRICT", None)
    command = [sys.executable, "-m", "tests.minifier.program_with_fault", fault]
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=300)


ASKED = [("wrong_spelling", "accuracy")]
ASKED += [("rejected", level) for level in ("after_capture", "after_lowering")]


@pytest.mark.parametrize(("fault", "asked"), ASKED)
def test_failures_leave_a_script(fault: str, asked: str, tmp_path: Path) -> None:
    done = run(fault, tmp_path, asked)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "right\n"
    (script,) = tmp_path.iterdir()
    assert str(script) in done.stderr
    text = script.read_text()
    assert "arctan(in0)" in text
    assert "sum" not in text
    assert subprocess.run([sys.executable, str(script)], capture_output=True, timeout=100).returncode == 0


def test_a_wrong_value_is_told_of(tmp_path: Path) -> None:
    done = run("wrong_cse", tmp_path, "everything")
    assert "DYNCOMP_REPRO must be one of after_capture" in done.stderr


def test_scripts_are_shrunk_further(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = dyncomp.minify(
        f, arguments(), folder=tmp_path, seconds=0.0, progress="off", backend=broken_backend
    )
    assert found is not None
    assert found.stopped
    assert found.operations[0] == found.operations[1]
    assert main(["minify", str(found.path), "--folder", str(tmp_path / "more"), "--json"]) == 1
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert fault["layer"] == "backend"
    assert fault["operations"] == [found.operations[1], 1]
    assert Path(fault["path"]).parent == tmp_path / "more"


def test_of_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "program.py"
    script.write_text("import numpy as np\ndef g(x):\n    return np.sin(x) + 1\ng(np.ones(3))\n")
    assert main(["minify", str(script), "--compile", "g"]) == 0
    assert "Nothing goes wrong" in capsys.readouterr().out
    assert main(["minify", str(script)]) == 2
    assert "is no reproduction script" in capsys.readouterr().err
    assert main(["minify", str(tmp_path / "absent.py")]) == 2
