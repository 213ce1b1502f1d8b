"""The GPU benchmark's report, and its workers where there is no GPU."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench import gpu

CASES = [["a", 2e9, 0.0], ["b", 0.0, 1e12], ["c", 1e9, 0.0]]


def test_report_has_what_is_known() -> None:
    facts = [
        {"case": gpu.COPY, "engine": "torch", "gpu": 1.0, "bandwidth": 2e12, "device": "D", "versions": "v"},
        {"case": "a", "engine": "torch", "gpu": 2e-3, "host": 5e-6, "first": 1.0},
        {"case": "a", "engine": "dyncomp", "gpu": 1e-3, "host": 4e-6, "first": 1.0},
        {"case": "b", "engine": "dyncomp tuned", "gpu": 1e-2, "host": 4e-6, "first": 1.0},
        {"case": "b", "engine": "torch", "failed": "why not"},
    ]
    text = gpu.report(CASES, facts)
    assert "| a | 2.000 (5) | 1.000 (4) | – | – | – | 2.00 | 100% |" in text
    assert "| b | failed | – | 10.000 (4) | – | – | – | 100 TFLOP/s |" in text
    assert "| c | – | – | – | – | – | – | – |" in text
    assert "over 1 programs" in text
    assert "- b, torch: why not" in text


def test_programs_without_a_time_of_torch_compile_are_not_compared() -> None:
    facts = [
        {"case": "a", "engine": "torch", "gpu": 2e-3, "host": 5e-6},
        {"case": "a", "engine": "dyncomp", "gpu": 1e-3, "host": 4e-6},
        {"case": "c", "engine": "torch", "gpu": 8e-3, "host": 5e-6},
        {"case": "c", "engine": "dyncomp", "gpu": 1e-3, "host": 4e-6},
        {"case": "c", "engine": "torch.compile", "gpu": 2e-3, "host": 5e-6},
    ]
    text = gpu.report(CASES, facts, "python -m bench.gpu --jobs 2")
    assert "`python -m bench.gpu --jobs 2`, " in text
    assert "| a | 2.000 (5) | 1.000 (4) | – | – | – | – | – |" in text
    assert "best peer / dyncomp: 2.00 over 1 programs" in text


def test_difference_of_several_results() -> None:
    torch = pytest.importorskip("torch")
    wanted = (torch.tensor([1.0, 2.0]), torch.tensor([4.0]))
    assert gpu.difference((wanted[0], torch.tensor([5.0])), wanted) == 0.25
    assert math.isnan(gpu.difference((wanted[0], torch.tensor([math.nan])), wanted))
    with pytest.raises(ValueError):
        gpu.difference(wanted[:1], wanted)


def test_workers_that_fail_leave_a_report(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    output = tmp_path / "GPU.md"
    gpu.run(60.0, "one element", output)
    assert "one element + 1" in output.read_text()
