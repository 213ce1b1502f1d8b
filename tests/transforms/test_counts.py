"""What graphs compute and cost."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.transforms import count

W = np.ones((64, 32), np.float32)


def test_nodes_are_counted_by_op_and_line():
    def f(x):
        h = x @ W + 1
        return np.exp(h) * h.sum()

    g = dyncomp.symbolic_trace(f, (np.ones((16, 64), np.float32),))
    counts = count(g)
    assert counts.by_op()["dot_general"] == 1
    first = f.__code__.co_firstlineno
    assert list(counts.by_line()) == [f"{__file__}:{first + 1}", f"{__file__}:{first + 2}"]
    assert sum(counts.by_line().values()) == len(g.nodes)
    by_name = {node.op: node for node in counts.nodes}
    assert by_name["dot_general"].flops == by_name["dot_general"].product_flops == 2 * 16 * 64 * 32
    assert by_name["dot_general"].bytes == 4 * (16 * 64 + 64 * 32 + 16 * 32)
    assert by_name["exp"].flops == 16 * 32 and by_name["exp"].bytes == 2 * 4 * 16 * 32
    assert by_name["reduce_sum"].flops == 16 * 32
    assert by_name["add"].bytes == 2 * 4 * 16 * 32 + 4  # the number is broadcast
    assert counts.product_flops == 2 * 16 * 64 * 32
    assert counts.flops == counts.product_flops + 4 * 16 * 32
    assert f"{counts.flops:,}" in str(counts)
    assert "x" not in counts.table("line").splitlines()[0] and __file__ in counts.table("line")
    assert "float32[16, 32]" in counts.table("node")
    with pytest.raises(ValueError, match="by='size'"):
        counts.table("size")


def test_composites_count_as_what_they_consist_of():
    torch = pytest.importorskip("torch")
    g = dyncomp.symbolic_trace(lambda x: torch.softmax(x, 1), (torch.ones(10, 10),))
    (node,) = count(g).nodes
    assert node.op == "softmax" and node.flops >= 500


@pytest.mark.parametrize("which", ["cnn", "encoder", "transposed"])
def test_flops_are_those_that_pytorch_counts(which):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    nn = torch.nn
    if which == "cnn":
        x = torch.rand(2, 3, 32, 32)
        convolutions = [nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=2)]
        model = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(8 * 14 * 14, 10))
    elif which == "transposed":
        x, model = torch.rand(2, 3, 8, 8), nn.ConvTranspose2d(3, 4, 3, stride=2)
    else:
        x = torch.rand(2, 9, 32)
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
    with FlopCounterMode(display=False) as counter:
        model(x)  # in training mode: the fast path of an encoder is one op
    g = dyncomp.symbolic_trace(model.eval(), (x,))
    assert count(g).product_flops == counter.get_total_flops() > 0
