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


# -- tensors of computed numbers ----------------------------------------------------------------------------
def discounted(x, n):
    total, found = 0, []
    for reward in (x.detach() * 2).tolist()[::-1]:
        total = reward + 0.99 * total
        found.insert(0, total)
    return torch.tensor(found) * x


def of_items(x, n):
    return torch.tensor([x.sum().item(), 1.0, 2]) * 2, torch.tensor((x[0].item() > 0, True)), n + 1


def nested(x, n):
    a = x.detach()
    return torch.tensor([[a[0], 1], [2, a[1].item()]], dtype=torch.float64), torch.tensor([n[0], 3, len(x)])


def promoted(x, n):
    a = x.detach()
    return torch.tensor([a[0].double(), 1.5]), torch.tensor([a[0].half(), 1]), torch.tensor([n[0] > 1, 2])


@pytest.mark.parametrize("program", [discounted, of_items, nested, promoted])
@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("grad", [False, True])
def test_tensors_of_computed_numbers(program, backend, grad):
    compiled = dyncomp.compile(program, backend=backend, fullgraph=True)
    for _ in range(3):
        x, n = torch.randn(4, requires_grad=grad), torch.tensor([2, 3])
        found, wanted = compiled(x, n), program(x, n)
        torch.testing.assert_close(found, wanted)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, wanted))):
            assert a.requires_grad == b.requires_grad and a.is_leaf == b.is_leaf
        if program is discounted and grad:
            torch.testing.assert_close(*(torch.autograd.grad(r.sum(), x) for r in (found, wanted)))


def ragged(x, n):
    return torch.tensor([[x[0].item()], [1.0, 2.0]])


def too_large(x, n):
    return torch.tensor([n[0] + 300, 1], dtype=torch.uint8)


def fractions(x, n):
    return torch.tensor([x.detach()[0], 1], dtype=torch.int64)


def with_dimensions(x, n):
    return torch.tensor([x.detach()[:1], x.detach()[1:2]])


def with_gradient(x, n):
    return torch.tensor([x[0], 1.0])


@pytest.mark.parametrize("program", [ragged, too_large, fractions, with_dimensions, with_gradient])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.filterwarnings("ignore:Converting a tensor")
def test_what_is_left_to_torch(program, grad):
    """Its errors, and its warning of gradients that get lost."""
    compiled = dyncomp.compile(program, backend="eager")
    x, n = torch.randn(4, requires_grad=grad), torch.tensor([2, 3])
    for _ in range(2):
        outcomes = []
        for function in (program, compiled):
            try:
                outcomes.append(function(x, n).tolist())
            except (TypeError, ValueError, RuntimeError) as error:
                outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1]
