"""The template of products and rows between them (the backward pass of attention): values in a process of
its own (``gpu_rows``), binaries and their resources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.inductor.interpreted import run_interpreted
from tests.inductor.test_gpu_products import check_resources, compiled

pytest.importorskip("triton")
torch = pytest.importorskip("torch")


def test_gradients_on_a_pretended_gpu() -> None:
    run_interpreted("gpu_rows.py")


@pytest.mark.slow
def test_more_gradients_on_a_pretended_gpu() -> None:
    run_interpreted("gpu_rows.py", "-m", "slow")


def kernels_of(monkeypatch: pytest.MonkeyPatch, name: str, dtype: Any, width: int) -> list[list[Any]]:
    """The kernels of each candidate for a program of ``gpu_rows``."""
    import dyncomp
    from dyncomp.inductor.gpu import rows, templates
    from tests.inductor import gpu_rows
    from tests.inductor.gpu_simulator import pretend

    found = []
    original = rows.candidates

    def candidates(step: Any) -> list[Any]:
        found.extend(original(step))
        return []

    pretend(monkeypatch)
    monkeypatch.setattr(rows, "candidates", candidates)
    monkeypatch.setattr(templates, "LARGE_SCORES", 0)
    arguments = gpu_rows.operands(dtype, 2, queries=1024, keys=1024, width=width, values=width)
    with torch.no_grad():
        dyncomp.explain(getattr(gpu_rows, name))(*arguments)
    return [kernel.all for kernel in found]


def test_kernels_fit_the_processors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (first, *_) = kernels_of(monkeypatch, "positions", torch.bfloat16, 64)
    assert "tl.minimum(end, row + (ROWS + 0))" in first[0].body
    assert "start = tl.maximum(col - 0, 0) // ROWS * ROWS" in first[1].body
    check_resources(compiled(tmp_path, first, [("cuda", 80, 32), ("cuda", 90, 32)]), 166_912)


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype, width",
    [(torch.float16, 64), (torch.float16, 128), (torch.float32, 64), (torch.float32, 128)],
    ids=str,
)
def test_all_kernels_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dtype: Any, width: int) -> None:
    """At least the first candidate on each processor."""
    first, *others = kernels_of(monkeypatch, "backward", dtype, width)
    check_resources(compiled(tmp_path, first, [("cuda", 80, 32), ("cuda", 90, 32)]), 166_912)
    others = [kernel for candidate in others for kernel in candidate]
    check_resources(compiled(tmp_path, others, [("cuda", 90, 32)]), 232_448)
    check_resources(compiled(tmp_path, first, [("hip", "gfx942", 64)]), 65_536)
