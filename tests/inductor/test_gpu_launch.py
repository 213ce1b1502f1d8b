"""Launching through Triton's own launcher, against a CUDA driver that only writes down what it is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

HERE = Path(__file__).parent
STUB = """
from triton.backends.nvidia.driver import CudaDriver, CudaLauncher, CudaUtils
from triton.runtime import driver

class Stub(CudaDriver):
    def __init__(self):
        self.utils = CudaUtils()
        self.launcher_cls = CudaLauncher
        self.get_device_capability = lambda device=0: (9, 0)
        self.get_current_stream = lambda device=0: 0
        self.get_current_device = lambda: 0
        self.set_current_device = lambda device: None

driver.set_active(Stub())

"""
SCRIPT = """
from dyncomp.dtypes import float32
from dyncomp.inductor.gpu.launch import TritonDriver, Variants, compile_kernel, direct_launch, load_module
from dyncomp.inductor.render.triton.unit import render_triton
from dyncomp.symbolic.integers import ShapeEnv
from tests.inductor.render_util import pointwise

size = ShapeEnv().new_symbol(100_000, low=0)
(kernel,) = render_triton(pointwise("add", [float32, float32], float32, size)).kernels
module = load_module(kernel.name, kernel.source)
variants = Variants(module, kernel, TritonDriver(), 0)
assert direct_launch(compile_kernel(variants.function, kernel, True, driver.active.get_current_target()), ())
variants.get(True)(kernel.grid({str(size): 5000}), 77, 1024, 2048, 4096, 5000)
variants.get(False)(kernel.grid({str(size): 90}), 0, 1028, 2048, 4096, 90)
assert variants.get(True) is variants.get(True)
print(kernel.blocks["XBLOCK"], kernel.num_warps)
"""


DESCRIPTORS = """
from triton.runtime import _allocation
from dyncomp.inductor.gpu.launch import TritonDriver, Variants, load_module
from dyncomp.inductor.gpu.products import Tile, render_product
from tests.inductor.test_gpu_products import product

class Memory:
    def data_ptr(self):
        return 1 << 20

def scratch(size, device):
    print(size, device)
    return Memory()

kernel = render_product(product((), 256, 256, 64), Tile(64, 64, 32, 4, 2), "descriptor", 4)
module = load_module(kernel.name, kernel.source)
variants = Variants(module, kernel, TritonDriver(scratch), 0)
variants.get(True)(kernel.grid(), 77, 1024, 2048, 4096)
assert _allocation._allocator.get() is _allocation._NULL_ALLOCATOR
"""


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    library = tmp_path / "libcuda.so.1"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "stub_cuda.c")]
    subprocess.run(command, check=True)
    (tmp_path / "libcuda.so").symlink_to(library)
    return tmp_path


def run(stub: Path, text: str) -> list[str]:
    """What a script prints."""
    script = stub / "script.py"
    script.write_text(STUB + text)
    env = {
        **os.environ,
        "TRITON_LIBCUDA_PATH": str(stub),
        "LD_LIBRARY_PATH": str(stub),
        "TRITON_CACHE_DIR": str(stub / "cache"),
        "STUB_LOG": str(stub / "log"),
        "STUB_POINTERS": "3",
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def test_kernels_are_launched_with_grid_stream_and_addresses(stub: Path) -> None:
    block, warps = map(int, run(stub, SCRIPT))
    first, second = (stub / "log").read_text().splitlines()
    assert first == f"{-(-5000 // block)} {32 * warps} 0 77 1024 2048 4096"
    assert second == f"{-(-90 // block)} {32 * warps} 0 0 1028 2048 4096"


def test_memory_for_descriptors_is_the_librarys(stub: Path) -> None:
    """Each of four programs has two descriptors of 128 bytes; the program's own allocator stays as it was."""
    assert run(stub, DESCRIPTORS) == ["1024", "0"]
    (launch,) = (stub / "log").read_text().splitlines()
    assert launch.startswith("4 128 ")
    assert launch.endswith(" 77 1024 2048 4096")
