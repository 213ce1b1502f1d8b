"""``tolist()`` of a small tensor gives numbers of the graph: sizes of pieces, factors, results."""

from __future__ import annotations

import pytest

import dyncomp

torch = pytest.importorskip("torch")


def pieces(x, n):
    return [piece.sum(0) for piece in x.split(n.tolist())]


def joined_pieces(x, n):
    return torch.cat([2 * piece for piece in x.split(n.tolist())])


def lists(x, n):
    return n.reshape(-1, 1).tolist(), (n > 2).tolist(), (n * 0.5).tolist(), n[0].tolist(), x + 1


def factors(x, n):
    a, b = n[:2].tolist()
    return x * a + b


@pytest.mark.parametrize("program", [pieces, joined_pieces, lists, factors])
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_in_one_graph(program, backend):
    compiled = dyncomp.compile(program, backend=backend, fullgraph=True)
    for sizes in ([2, 3], [4, 1], [1, 4, 7], [0, 5, 1], [3, 3, 1, 1, 2]):
        x, n = torch.randn(sum(sizes), 4), torch.tensor(sizes)
        found, wanted = compiled(x, n), program(x, n)
        torch.testing.assert_close(found, wanted)
        if program is lists:
            assert repr(found[:4]) == repr(wanted[:4])  # types, too


def test_pieces_that_do_not_fit():
    compiled = dyncomp.compile(pieces)
    x = torch.randn(5, 4)
    compiled(x, torch.tensor([2, 3]))
    with pytest.raises(RuntimeError, match="sum exactly"):
        compiled(x, torch.tensor([2, 2]))


def test_many_numbers_break():
    def program(x):
        return sum((x + 1).tolist())

    x = torch.arange(500)
    assert dyncomp.compile(program)(x) == program(x)
    with pytest.raises(dyncomp.GraphBreakError, match="many numbers"):
        dyncomp.compile(program, fullgraph=True)(x)


def test_pieces_with_gradients():
    def program(x, n):
        return pieces(torch.tanh(x * 2), n), (x * 3).split(n.tolist())

    compiled = dyncomp.compile(program)
    for sizes in ([2, 3], [1, 4]):
        x, n = torch.randn(5, 4, requires_grad=True), torch.tensor(sizes)
        found, wanted = compiled(x, n), program(x, n)
        torch.testing.assert_close(found, wanted)
        gradients = [torch.autograd.grad(sum(p.sum() for p in (*a, *b)), x) for a, b in (found, wanted)]
        torch.testing.assert_close(*gradients)
    assert dyncomp.stats()["graphs"] > 0
