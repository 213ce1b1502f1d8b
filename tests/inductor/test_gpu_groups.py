"""The templates of convolutions of groups: values on a pretended GPU, binaries and their resources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dyncomp.dtypes import float16, float32
from dyncomp.inductor.gpu.convolution import Convolved, candidates
from dyncomp.inductor.schedule import CallBlas, Matrix
from tests.inductor.test_gpu_products import check_resources, compiled

pytest.importorskip("triton")


def grouped(dtype, images, kernels, groups, channels, size, taps, stride=1):
    """A square convolution that keeps an image's size, for a stride of 1."""
    places = size // stride
    depth = channels * taps * taps
    none = Matrix(0, 0, 1, 1, (0,))
    target = Matrix(2, 0, places * places, 1, (kernels * places * places,))
    product = CallBlas(dtype, kernels, places * places, depth, none, none, target, (images,))
    whole = groups * channels
    return Convolved(
        product,
        False,
        groups,
        channels,
        (size, size),
        (places, places),
        (taps, taps),
        (stride, stride),
        (taps // 2, taps // 2),
        (1, 1),
        (whole * size * size, size * size, size, 1),
        (depth, taps * taps, taps, 1),
        images * whole * size * size,
    )


STEPS = (
    grouped(float16, 8, 96, 96, 1, 112, 3, 2),
    grouped(float32, 8, 960, 960, 1, 7, 3),
    grouped(float16, 8, 384, 384, 1, 14, 7),
    grouped(float16, 8, 128, 32, 4, 56, 3),
    grouped(float16, 8, 512, 32, 16, 14, 3),
    grouped(float32, 2, 64, 2, 32, 28, 3),
)


def test_templates_fit_the_processor(tmp_path: Path) -> None:
    kernels = [kernel for step in STEPS for kernel in candidates(step)]
    assert sum("few" in kernel.name for kernel in kernels) >= 8
    few = [kernel for kernel in kernels if "few" in kernel.name]
    check_resources(compiled(tmp_path, few[::4], [("cuda", 90, 32)]), 232_448)


@pytest.mark.slow
def test_all_fit(tmp_path: Path) -> None:
    kernels = [kernel for step in STEPS for kernel in candidates(step)]
    for target, shared in ((80, 166_912), (90, 232_448)):
        check_resources(compiled(tmp_path, kernels, [("cuda", target, 32)]), shared)


@pytest.mark.slow
def test_values_on_a_pretended_gpu() -> None:
    pytest.importorskip("torch")
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command.append(str(Path(__file__).with_name("gpu_groups.py")))
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-6000:]
