"""Programs over CuPy's arrays, from capture to kernels, without a GPU: see ``cupy_path``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
pytest.importorskip("cupy")


def test_programs_on_a_pretended_gpu() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command.append(str(Path(__file__).with_name("cupy_path.py")))
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-6000:]
