"""Modules, training and whole steps in a process that finds them on disk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .zygote import Zygote

torch = pytest.importorskip("torch")

START = """
import gc, weakref
import numpy as np
import torch
import dyncomp

class Net(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, width), torch.nn.Linear(width, 3)
        self.norm = torch.nn.BatchNorm1d(width)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, mask=None):
        self.calls += 1
        h = torch.relu(self.norm(self.first(x)))
        return self.second(h if mask is None else h * mask)

def made(seed=0, **kwargs):
    torch.manual_seed(seed)
    return Net(**kwargs)

def x(n=5):
    return torch.sin(torch.arange(4.0 * n)).reshape(n, 4)

def weights(net):
    return [p.detach().numpy().round(5) for p in (*net.parameters(), *net.buffers())]
"""

PROGRAMS = {
    "inference": """
def main():
    net = made().eval()
    fast = dyncomp.compile(net)
    with torch.no_grad():
        return fast(x()), fast(x(7)), fast(x(), torch.ones(8)), fast(x(9))
""",
    "routines": """
def shares(given, adj):
    return torch.logcumsumexp(adj @ torch.tanh(given), 0)

def main():
    adj, given = torch.eye(5)[[1, 0, 3, 4, 2]].to_sparse(), x().requires_grad_()
    found = dyncomp.compile(shares)(given, adj)
    return found.detach(), *torch.autograd.grad(found.square().sum(), given)
""",
    "gradients": """
def main():
    net, given = made(), x().requires_grad_()
    fast = dyncomp.compile(net)
    found = []
    for scale in (1.0, 2.0):
        (fast(given).square().sum() * scale).backward()
        found += [given.grad.clone(), *[p.grad.clone() for p in net.parameters()]]
    frozen = made()
    frozen.first.requires_grad_(False)
    dyncomp.compile(frozen)(x()).sum().backward()
    found += [p.grad for p in frozen.parameters() if p.grad is not None]
    (first,) = torch.autograd.grad(fast(given).pow(3).sum(), given, create_graph=True)
    return [*found, *torch.autograd.grad(first.sum(), given), *weights(net)]
""",
    "checkpoints": """
from torch.utils.checkpoint import checkpoint

class Checkpointed(Net):
    def forward(self, x):
        h = checkpoint(lambda a: torch.relu(self.norm(self.first(a))), x, use_reentrant=False)
        return self.second(h), h

def main():
    torch.manual_seed(0)
    net = Checkpointed()
    fast, found = dyncomp.compile(net, fullgraph=True), []
    for k in range(6):
        given = x().requires_grad_()
        results = fast(given)
        if k % 3:
            results[k % 3 - 1].square().sum().backward()
            found.append(given.grad)
        found += [b.clone() for b in net.buffers()]
    return [*found, *weights(net)]
""",
    "views of data": """
@dyncomp.compile
def f(given, sizes):
    return [part.t() for part in torch.tanh(given).split(sizes.tolist())]

def main():
    given = x().requires_grad_()
    found = []
    for sizes in ((2, 3), (4, 1)):
        parts = f(given, torch.tensor(sizes))
        (parts[0].square().sum() + parts[1].sum()).backward()
        found += [*[part.detach() for part in parts], given.grad.clone()]
    return found
""",
    "training": """
def main():
    net = made()
    fast, optimizer = dyncomp.compile(net), torch.optim.Adam(net.parameters(), lr=0.01, eps=0.1)
    losses = []
    for k in range(4):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(fast(x()), torch.tensor([0, 1, 2, 0, 1]))
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 5))
    return losses, weights(net)
""",
    "whole steps": """
def main():
    net = made()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, eps=0.1)

    @dyncomp.compile
    def step(batch):
        optimizer.zero_grad()
        loss = net(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return [round(step(x()).item(), 5) for _ in range(5)], weights(net)
""",
    "breaks": """
@dyncomp.compile
def f(net, given):
    h = net.first(given)
    if h.sum() > 0:
        h = h * 2
    total = h.sum()
    for k in range(3):
        print(k)
        total = total + (h * k).sum()
    return net.second(torch.relu(h)) + total

def main():
    net = made()
    result = f(net, x())
    result.sum().backward()
    return result, net.first.weight.grad
""",
    "other models": """
def main():
    found = []
    for width in (8, 16):
        net = made(width=width).eval()
        fast = dyncomp.compile(net)
        with torch.no_grad(), torch.autocast("cpu", enabled=width == 16):
            found.append(fast(x()).float().numpy().round(2))
    return found
""",
    "lifetimes": """
def run():
    net = made()
    fast = dyncomp.compile(net)
    fast(x()).sum().backward()
    step = dyncomp.compile(lambda a: torch.tanh(a) * 2)
    step(x())
    return weakref.ref(net), weakref.ref(net.first.weight), weakref.ref(step)

def main():
    refs = run()
    for _ in range(3):
        gc.collect()
    return [ref() is None for ref in refs]
""",
}


def is_close(a: Any, b: Any) -> bool:
    """Whether outcomes are equal but for the last digits of their numbers."""
    if isinstance(a, list):
        return len(a) == len(b) and all(map(is_close, a, b))
    if not isinstance(a, str) or a == b:
        return bool(a == b)
    found = [[float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", text)] for text in (a, b)]
    return len(found[0]) == len(found[1]) > 0 and bool(np.allclose(*found, rtol=1e-4, atol=1e-4))


@pytest.fixture(scope="module")
def zygote() -> Any:
    process = Zygote("torch")
    yield process
    process.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_second_process(zygote: Zygote, tmp_path: Path, name: str) -> None:
    (tmp_path / "program.py").write_text(START + PROGRAMS[name])
    plain = zygote.run(tmp_path, None)["outcome"]
    cold, warm, again = (zygote.run(tmp_path, tmp_path / "cache") for _ in range(3))
    assert is_close(cold["outcome"], plain)
    assert warm["outcome"] == cold["outcome"] == again["outcome"]
    assert cold["stats"]["not_stored"] == 0
    assert warm["stats"]["from_disk"] == warm["stats"]["frames_captured"] > 0
    assert warm["stats"]["internal_errors"] == 0


PRESUMED = """
import json
import torch
import dyncomp

def clamped(x):
    y = torch.exp2(x)
    if torch.isinf(y).any() or torch.isnan(y).any():
        y = torch.clamp(y, max=4.0)
    return y * 2

def main():
    compiled = dyncomp.compile(clamped)
    size = json.load(open(__file__ + ".json"))
    return [compiled(torch.tensor([1.0, 2.0, size])) for _ in range(6)]
"""


def test_branches_that_are_presumed(zygote: Zygote, tmp_path: Path) -> None:
    """A branch goes otherwise than in the process that stored the graph: that is captured anew, and kept."""
    program, found = tmp_path / "program.py", []
    program.write_text(PRESUMED)
    for size in ("3.0", "3.0", "3000.0", "3000.0", "3.0"):
        Path(f"{program}.json").write_text(size)
        answer = zygote.run(tmp_path, tmp_path / "cache")
        assert answer["outcome"] == zygote.run(tmp_path, None)["outcome"]
        found.append(answer["stats"])
    assert [stats["from_disk"] > 0 for stats in found] == [False, True, True, True, True]
    assert [stats["fallbacks"] > 0 for stats in found] == [False, False, True, False, False]
    assert not any(stats["not_stored"] for stats in found)
