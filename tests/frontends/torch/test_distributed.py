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


def slow(*names: str):
    return pytest.param(names, marks=pytest.mark.slow, id=" ".join(names))


# Programs that run one after the other in the same processes: starting these takes most of the time.
@pytest.mark.parametrize(
    "programs",
    [
        pytest.param(("ddp", "ddp_buckets", "ddp_any_gradients"), id="ddp"),
        slow("ddp_options"),
        slow("ddp_step"),
        pytest.param(("fsdp", "pipeline"), id="fsdp and pipeline"),
        slow("fsdp_options"),
        slow("tensor_parallel"),
        slow("distributed_tensors"),
        slow("collectives"),
        pytest.param(("one_cache",), id="one_cache"),
    ],
)
def test_as_plain_pytorch(programs, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    if programs == ("one_cache",):
        environment["DYNCOMP_CACHE_DIR"] = str(tmp_path / "cache")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(PROGRAMS), str(rank), str(WORLD), str(port), *programs],
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
