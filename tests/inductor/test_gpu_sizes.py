"""Templates for sizes that are known at the call only, see ``gpu_sizes``."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyncomp.inductor.gpu.attention import candidates
from dyncomp.inductor.gpu.products import Processor
from dyncomp.symbolic.integers import ShapeEnv, SymbolInfo
from tests.inductor.interpreted import run_interpreted
from tests.inductor.test_gpu_products import attention, check_resources, compiled

pytest.importorskip("triton")


@pytest.mark.slow
def test_values_on_a_pretended_gpu() -> None:
    pytest.importorskip("torch")
    run_interpreted("gpu_sizes.py")


def test_kernels_fit_the_processor(tmp_path: Path) -> None:
    """As well as those of known sizes."""
    env = ShapeEnv({"s0": SymbolInfo("s0", 1000, 1), "s1": SymbolInfo("s1", 1500, 1)})
    step = attention((16,), env.symbol("s0"), env.symbol("s1"), 64, 64)
    (kernel, *_) = candidates(step, Processor(descriptors=True))
    assert kernel.symbols == ("s0", "s1")
    assert kernel.grid({"s0": 129, "s1": 1}) == 16 * -(-129 // kernel.blocks["ROWS"])
    report = compiled(tmp_path, [kernel], [("cuda", 90, 32)])
    check_resources(report, 232_448)
