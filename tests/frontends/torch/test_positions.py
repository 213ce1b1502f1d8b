"""Tensors without dimensions as indices: in torch a view, whose start the data says."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402


def read(x, i):
    return x[i] * 2 + x[i.abs(), i], x[:, i].sum(), x[None, i] + x[..., i]


def written(x, i):
    best, y = x.sum(1).argmax(), x.clone()
    y[best] = x[i] + 1
    y[0, best] = 5.0
    return y * x[best]


def in_a_loop(x, i):
    return sum(x[:, k] * x[k] for k in i.expand(3))


def returned(x, i):
    row = x[i]
    return row, row * 2


def written_behind(x, i):
    row = x[i]
    x[0] = 7
    return row * 2


def written_through(x, i):
    row = x[i]
    row += 1
    return x * 1


def with_others(x, i):
    return x[i, [0, 2]] + x[torch.tensor([1, 0]), i]


@pytest.mark.parametrize("program", [read, written, in_a_loop])
@pytest.mark.parametrize("grad", [False, True])
def test_one_graph(program, grad):
    dyncomp.reset()
    compiled = dyncomp.compile(program, fullgraph=True)
    for k in (1, 0, -1, 2):
        x = torch.randn(3, 3, requires_grad=grad)
        y = x.detach().clone().requires_grad_(grad)
        found, expected = compiled(x, torch.tensor(k)), program(y, torch.tensor(k))
        torch.testing.assert_close(found, expected)
        if grad:
            for value in (found, expected):
                sum(v.pow(2).sum() for v in (value if isinstance(value, tuple) else (value,))).backward()
            torch.testing.assert_close(x.grad, y.grad)
    if program is not written:
        with pytest.raises(IndexError):
            compiled(torch.ones(3, 3), torch.tensor(5))


@pytest.mark.parametrize("program", [returned, written_behind, written_through, with_others])
def test_memory_is_shared(program):
    dyncomp.reset()
    compiled = dyncomp.compile(program)
    for k in (1, 0, -1):
        x = torch.randn(3, 3)
        y = x.clone()
        found, expected = compiled(x, torch.tensor(k)), program(y, torch.tensor(k))
        torch.testing.assert_close((found, x), (expected, y))
        if program is returned:
            found[0].zero_()
            assert not x[k].any()
