"""Nothing grows while compiled modules are trained."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

nn, F = torch.nn, torch.nn.functional
STEPS = 2000
WRAPPER = torch.nn.parallel.DistributedDataParallel


def model():
    torch.manual_seed(0)
    layers = [nn.Linear(32, 64), nn.LayerNorm(64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, 64), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(64, 8))


def loss_alone():
    net = model()
    loss_of = dyncomp.compile(lambda x, y: F.cross_entropy(net(x), y), dynamic=True)
    optimizer = torch.optim.AdamW(net.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss_of(x, y).backward()
        optimizer.step()

    return step


def whole_step():
    net = model()
    optimizer = torch.optim.AdamW(net.parameters())

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()

    return dyncomp.compile(step, dynamic=True, options={"random": "fused"})


def in_buckets():
    """What runs in the forward pass of DistributedDataParallel, which this one stands for."""
    step = loss_alone()
    wrapper = SimpleNamespace(
        require_backward_grad_sync=True,
        bucket_bytes_cap_list=[],
        bucket_bytes_cap=4096,
        bucket_bytes_cap_default=False,
    )

    def wrapped(x, y):
        WRAPPER._active_ddp_module = wrapper
        try:
            step(x, y)
        finally:
            WRAPPER._active_ddp_module = None

    return wrapped


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.slow
@pytest.mark.parametrize("made", [loss_alone, whole_step, in_buckets], ids=lambda f: f.__name__)
def test_nothing_grows(made):
    dyncomp.reset()
    step = made()
    counts, sizes = [], []
    gc.collect()
    gc.disable()  # cycles count as growth
    try:
        for number in range(STEPS):
            rows = 16 if number % 10 else 12
            step(torch.randn(rows, 32), torch.randint(0, 8, (rows,)))
            if number in (STEPS // 2, STEPS - 1):
                counts.append(len(gc.get_objects()))
                sizes.append(resident())
    finally:
        gc.enable()
    assert counts[1] - counts[0] < STEPS // 20, counts
    assert sizes[1] - sizes[0] < 2 << 20, sizes  # two KiB a step
