"""Files of tests that need Triton's interpreter, which a process has or has not from its start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_interpreted(name: str, *arguments: str) -> None:
    """Run the tests of a file of this folder in a process with ``TRITON_INTERPRET=1``; they must pass.
    ``arguments`` of pytest: ``-m slow`` for the slow ones."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += [*arguments, str(Path(__file__).with_name(name))]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-6000:]
