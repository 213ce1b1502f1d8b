"""``run.py`` of a dumped graph: kernels edited by hand are built, compared and timed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyncomp

ROOT = Path(__file__).parents[2]


def scaled(x, y, k):
    x += y
    return (x * y + 1.0).sum(axis=0), np.argmax(x, axis=1), k * 2.0


def window(x):
    return x[::-1, 1::2] * 2.0 + x.T[1::2].T


def folder_of(directory: Path) -> Path:
    (folder,) = directory.iterdir()
    return folder


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "run.py", "--calls", "3"]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120)


@pytest.fixture
def dumped(tmp_path: Path) -> Path:
    x = np.linspace(0.0, 1.0, 12).reshape(3, 4)
    dyncomp.compile(scaled, options={"dump": str(tmp_path)})(x, x * 3.0, 1.5)
    return folder_of(tmp_path)


def test_as_generated(dumped: Path) -> None:
    done = run(dumped)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "result 0: float64[4], error " in done.stdout
    assert "result 1: int64[3], 0 elements differ" in done.stdout
    assert "input 0, written: float64[3, 4]" in done.stdout
    assert "as generated" not in done.stdout
    assert "the best of 3 calls" in done.stdout
    assert not done.stderr


@pytest.mark.parametrize("name", ("edited.cpp", ""))
def test_edited(name: str, dumped: Path) -> None:
    (kernels,) = dumped.glob("*-kernels.cpp")
    text = kernels.read_text()
    assert "1.0" in text
    (dumped / (name or kernels.name)).write_text(text.replace("1.0", "1.25"))
    done = run(dumped)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "of the largest value: WRONG" in done.stdout
    assert "as generated: " in done.stdout


def test_an_edit_that_does_not_compile(dumped: Path) -> None:
    (dumped / "edited.cpp").write_text("not C++")
    done = run(dumped)
    assert done.returncode == 1
    assert "edited.cpp" in done.stdout
    assert "ToolchainError" in done.stderr


@pytest.mark.parametrize("name", ("edited.cpp", "kernels", "graph", "inputs.npz"))
def test_files_of_others_are_not_run(name: str, dumped: Path) -> None:
    used = re.search(rf"{name}='(.*?)'", (dumped / "run.py").read_text())
    path = dumped / (used[1] if used else name)
    path.touch()
    path.chmod(0o666)
    done = run(dumped)
    assert done.returncode == 1
    assert f"{path.name} is not used: other users may write to it" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_without_inputs(dumped: Path) -> None:
    (dumped / "inputs.npz").unlink()
    done = run(dumped)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "was not kept: made up" in done.stdout


def test_strides(tmp_path: Path) -> None:
    x = np.linspace(0.0, 1.0, 60).reshape(6, 10)[::-1, ::1]
    dyncomp.compile(window, options={"dump": str(tmp_path)})(x)
    done = run(folder_of(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_tensors(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    layer = torch.nn.Linear(8, 5)
    with torch.no_grad():
        dyncomp.compile(lambda x: torch.relu(layer(x)) * 2.0, options={"dump": str(tmp_path)})(
            torch.ones(3, 8)
        )
    done = run(folder_of(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "result 0: float32[3, 5]" in done.stdout
