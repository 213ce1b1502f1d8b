"""Layers that a drawn number leaves out: no branch where the probability is 0 or 1; the draws are made."""

from __future__ import annotations

import pytest

import dyncomp

torch = pytest.importorskip("torch")


class Layers(torch.nn.Module):
    def __init__(self, layerdrop):
        super().__init__()
        self.layerdrop = layerdrop
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            if self.training:
                drawn = torch.rand([])
                if drawn < self.layerdrop:
                    continue
            x = layer(x).relu()
        return x


@pytest.mark.parametrize("layerdrop", [0.0, -1.0, 1.0, 2, 1e-50, 0.5])
def test_layers(layerdrop):
    model = Layers(layerdrop)
    compiled = dyncomp.compile(model, fullgraph=layerdrop != 0.5)
    x = torch.randn(2, 4)
    for seed in range(4):
        found, states = [], []
        for function in (model, compiled):
            torch.manual_seed(seed)
            found.append(function(x))
            states.append(torch.get_rng_state())
        torch.testing.assert_close(*found)
        assert torch.equal(*states)


COMPARISONS = [
    (lambda x, p: x < p, {0: False, 1: True, -1: False, 2: True}),
    (lambda x, p: x <= p, {0: None, 1: True, -1: False, 2: True}),
    (lambda x, p: x > p, {0: None, 1: False, -1: True, 2: False}),
    (lambda x, p: x >= p, {0: True, 1: False, -1: True, 2: False}),
    (lambda x, p: p > x, {0: False, 1: True, -1: False, 2: True}),
    (lambda x, p: p >= x, {0: None, 1: True, -1: False, 2: True}),
    (lambda x, p: p < x, {0: None, 1: False, -1: True, 2: False}),
    (lambda x, p: p <= x, {0: True, 1: False, -1: True, 2: False}),
    (lambda x, p: x == p, {0: None, 1: None}),
    (lambda x, p: x != p, {0: None, 1: None}),
]


@pytest.mark.parametrize("number", range(len(COMPARISONS)))
def test_comparisons(number):
    compare, wanted = COMPARISONS[number]
    for p, answer in {**wanted, 0.5: None}.items():

        def program(x, p=p):
            return x + 1 if compare(torch.rand(()), p) else x - 1

        breaks = dyncomp.explain(program)(torch.zeros(3)).breaks
        assert (not breaks) is (answer is not None)
        if answer is not None:
            found = dyncomp.compile(program, fullgraph=True)(torch.zeros(3))
            assert (found > 0).all() == answer


def test_normal_numbers_break():
    def program(x):
        return x + 1 if torch.randn(()) < 0 else x - 1

    assert dyncomp.explain(program)(torch.zeros(3)).breaks
