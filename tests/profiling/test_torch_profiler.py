"""Kernels in ``torch.profiler``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dyncomp

torch = pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
CPU = [torch.profiler.ProfilerActivity.CPU]


def two_steps(x):
    y = torch.softmax(x, -1)
    return torch.linalg.qr(y)[0], (y @ x).sum(-1)


def shown(prof):
    return {event.key: event.count for event in prof.key_averages() if event.key.startswith("dyncomp ")}


@pytest.mark.parametrize("with_stack", [False, True])
def test_kernels_show_by_name(with_stack):
    fast = dyncomp.compile(two_steps, options={"measure": False})
    x = torch.rand(32, 32)
    expected = fast(x)
    with torch.profiler.profile(activities=CPU, with_stack=with_stack) as prof:
        for _ in range(3):
            found = fast(x)
    names = shown(prof)
    assert names.pop("dyncomp two_steps") == 3
    assert any("_two_steps" in name for name in names) and any("product 32x32x32" in n for n in names)
    assert set(names.values()) == {3}
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    with torch.profiler.profile(activities=CPU) as later:
        torch.ones(3) + 1
    assert not shown(later)


def test_both_profiles_at_once():
    fast = dyncomp.compile(two_steps, options={"measure": False})
    x = torch.rand(16, 16)
    fast(x)
    with torch.profiler.profile(activities=CPU) as theirs, dyncomp.profile() as ours:
        fast(x)
    kernels = [event.name for event in ours.events if event.kind in ("kernel", "product", "library")]
    assert kernels and {f"dyncomp {name}" for name in kernels} <= set(shown(theirs))


def test_large_graphs_let_other_threads_run():
    """Where kernels run without the GIL the ranges are made with it."""

    def large(x):
        y = torch.tanh(x @ x)
        return (y @ x).exp().sum(0), torch.sin(y).sum(1), y.cumsum(0)

    fast = dyncomp.compile(large, options={"measure": False})
    x = torch.rand(300, 300)
    fast(x)
    with torch.profiler.profile(activities=CPU) as prof:
        fast(x)
    assert len(shown(prof)) >= 4


def test_nothing_of_it_costs_without_torch():
    code = "import sys, numpy, dyncomp; dyncomp.profile; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)
