"""Gradients of ``F.embedding``: what its arguments say of them alone."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

nn, F = torch.nn, torch.nn.functional

import dyncomp  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
    yield
    dyncomp.reset()


POSITIONS = torch.tensor([[0, 1, 4], [0, 2, 0]])


def gradient(function, weight):
    weight.grad = None
    function(POSITIONS, weight).sin().sum().backward()
    return weight.grad


PROGRAMS = {
    "first": lambda i, w: F.embedding(i, w, 0),
    "last, counted from the end": lambda i, w: F.embedding(i, w, -1),
    "one that does not occur": lambda i, w: F.embedding(i, w, 3),
    "used elsewhere too": lambda i, w: F.embedding(i, w, padding_idx=0) @ w.t(),
    "with itself without padding": lambda i, w: F.embedding(i, w, 0) + F.embedding(i, w),
    "one position": lambda i, w: F.embedding(i[0, 0], w, 0) * 2,
    "by frequency": lambda i, w: F.embedding(i, w, 0, scale_grad_by_freq=True),
    "sparse": lambda i, w: F.embedding(i, w, 0, sparse=True),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name, backend):
    weight = torch.randn(5, 3, requires_grad=True)
    expected = gradient(PROGRAMS[name], weight)
    fast = dyncomp.compile(PROGRAMS[name], backend=backend)
    for _ in range(2):
        found = gradient(fast, weight)
        assert found.layout == expected.layout
        torch.testing.assert_close(found.to_dense(), expected.to_dense())


def test_the_padding_row_is_not_trained():
    table = nn.Embedding(5, 3, padding_idx=0)
    fast = dyncomp.compile(table, fullgraph=True)
    optimizer = torch.optim.SGD(table.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (fast(POSITIONS) - 1).square().sum().backward()
        optimizer.step()
    assert (table.weight[0] == 0).all() and (table.weight[1] != 0).all()


def test_in_half_precision():
    table = nn.Embedding(5, 3, padding_idx=2).bfloat16()
    expected = gradient(lambda i, w: F.embedding(i, w, 2), table.weight)
    found = gradient(dyncomp.compile(lambda i, w: F.embedding(i, w, 2), fullgraph=True), table.weight)
    torch.testing.assert_close(found, expected)
