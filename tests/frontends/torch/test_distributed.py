"""Training by two processes, over gloo (``distributed_programs.py``)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("torch without gloo", allow_module_level=True)

PROGRAMS = Path(__file__).with_name("distributed_programs.py")
ROOT = Path(__file__).parents[3]
WORLD = 2


def slow(name: str):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "program",
    [
        "ddp",
        "ddp_buckets",
        "ddp_any_gradients",
        slow("ddp_options"),
        slow("ddp_step"),
        "fsdp",
        slow("fsdp_options"),
        slow("tensor_parallel"),
        slow("distributed_tensors"),
        "pipeline",
        slow("collectives"),
        "one_cache",
    ],
)
def test_as_plain_pytorch(program, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    if program == "one_cache":
        environment["DYNCOMP_CACHE_DIR"] = str(tmp_path / "cache")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(PROGRAMS), str(rank), str(WORLD), str(port), program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(WORLD)
    ]
    try:
        for process in processes:
            out, err = process.communicate(timeout=200)
            assert process.returncode == 0, err[-4000:]
            assert out.splitlines()[-1] == "done"
    finally:
        for process in processes:
            process.kill()
            process.wait()
