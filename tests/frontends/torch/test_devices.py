"""``torch.device`` objects: torch makes another one at each look at ``tensor.device``."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402


def filled(x, device):
    return torch.zeros(3, device=device) + x, device


def pieces(x, device):
    x = x + 1
    print("a break")
    return torch.zeros(3, device=device) + x, device


@pytest.fixture(autouse=True)
def _fresh():
    dyncomp.reset()


@pytest.mark.parametrize("function", [filled, pieces])
def test_equal_devices_share_a_graph(function, capsys):
    fast, x = dyncomp.compile(function), torch.randn(3)
    kept = [x.device for _ in range(12)]
    assert len(set(map(id, kept))) == 12
    graphs = []
    for device in kept:
        out, given = fast(x, device)
        assert given is device
        assert torch.equal(out, function(x, device)[0])
        graphs.append(dyncomp.stats()["graphs"])
    assert graphs[0] == graphs[-1]


def test_other_devices_do_not():
    def name(x, device):
        return x + (device.index or 0), str(device), device.type

    fast, x = dyncomp.compile(name), torch.ones(2)
    for device in (torch.device("cpu"), torch.device("cpu", 3), torch.device("meta")):
        out, *words = fast(x, device)
        assert torch.equal(out, x + (device.index or 0)) and words == [str(device), device.type]
    assert dyncomp.stats()["graphs"] == 3
    with pytest.raises(TypeError):
        fast(x, "cpu")  # its ``index`` is a method


def test_identity():
    def compared(x, a, b):
        return x + (1 if a is b else 2), a is b

    fast, x, a = dyncomp.compile(compared), torch.ones(1), torch.device("cpu")
    for b in (a, torch.device("cpu"), a, torch.device("cpu")):
        assert fast(x, a, b)[1] is (a is b)


def test_as_keys():
    def counted(x, table):
        table[x.device] = table.get(x.device, 0) + 1
        return x + table[x.device]

    fast, x = dyncomp.compile(counted), torch.ones(1)
    table, plain = {}, {}
    for _ in range(3):
        assert torch.equal(fast(x, table), counted(x, plain)) and table == plain
