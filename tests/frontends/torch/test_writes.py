"""In-place operations: the caller's tensors change as under torch; aliases and identity are kept."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

from .harness import same  # noqa: E402


def add_(x, y):
    return x.add_(y)


def operators(x, y):
    x += y
    x *= 2
    x -= 1
    x /= 4
    return x


def items(x, y):
    x[1:] = 3
    x[:, 0] = y[:5]
    x[2, 3] = 7
    x[x > 2] = 0
    return x.sum()


def through_views(x, y):
    t = x.t()
    t[0].mul_(10)
    x.view(-1)[3:6].fill_(5)
    row = x[4]
    row += y
    return row, t


def methods(x, y):
    x.copy_(y)
    x.relu_().neg_().clamp_(-0.5, 0.5)
    x.masked_fill_(x == 0, 9)
    x[0].zero_()
    y.exp_()
    return x


def scattered(x, y):
    rows = torch.tensor([0, 2])
    x[rows] = y
    x[rows, rows] += 1
    return x


def cast_into(x, y):
    x.copy_(y.double())
    x += torch.ones(6, dtype=torch.float64)
    return x


def read_then_write(x, y):
    before = x + 0
    x.sub_(y)
    return before, x * 2


PROGRAMS = [add_, operators, items, through_views, methods, scattered, cast_into, read_then_write]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_writes(program, backend):
    torch.manual_seed(0)
    fast = dyncomp.compile(program, fullgraph=True, backend=backend)
    for _ in range(2):
        mine = [torch.randn(5, 6), torch.randn(6)]
        theirs = [m.clone() for m in mine]
        versions = [m._version for m in mine]
        expected = program(*theirs)
        before = dyncomp.stats()["fallbacks"]
        found = fast(*mine)
        assert dyncomp.stats()["fallbacks"] == before
        same(found, expected, program.__name__)
        for m, t, version in zip(mine, theirs, versions):
            same(m, t, "argument")
            assert (m._version > version) == (t._version > 0)


def test_result_is_the_argument():
    x = torch.ones(3)
    assert dyncomp.compile(lambda v: v.add_(1), fullgraph=True)(x) is x
    assert dyncomp.compile(lambda v: v.contiguous(), fullgraph=True)(x) is x
    assert dyncomp.compile(lambda v: v.float(), fullgraph=True)(x) is x


def test_views_share_memory():
    x = torch.zeros(2, 6)
    view = dyncomp.compile(lambda v: v[1].view(2, 3), fullgraph=True)(x)
    view += 1
    assert x.tolist() == [[0] * 6, [1] * 6]
    assert view.data_ptr() == x[1].data_ptr()


def test_overlapping_arguments():
    """One argument is written and overlaps another: left to torch."""

    def shift(a, b):
        a.copy_(b * 2)
        return b + 1

    fast = dyncomp.compile(shift)
    x, y = torch.ones(8), torch.ones(8)
    same(fast(x[:4], y[:4]), torch.full((4,), 2.0), "apart")
    same(fast(y[:4], y[:4].view(4)), torch.full((4,), 3.0), "overlapping")
    assert y.tolist() == [2] * 4 + [1] * 4


def test_expanded_target_raises_as_in_torch():
    with pytest.raises(RuntimeError, match="single memory location"):
        dyncomp.compile(lambda v: v.expand(3, 4).add_(1))(torch.ones(4))


def test_saved_tensor_written_by_compiled_code_is_noticed():
    w = torch.ones(3, requires_grad=True)
    x = torch.ones(3)
    loss = (w * x).sum()
    dyncomp.compile(lambda v: v.mul_(2), fullgraph=True)(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def grown(x):
    made = torch.empty(0)
    dyncomp.graph_break()
    torch.add(x, 1, out=made)
    rows = x[:0]
    kept = rows.clone()
    dyncomp.graph_break()
    return made, kept.resize_(2, 2).fill_(1)


def test_what_has_no_elements_can_be_resized():
    x = torch.randn(3, 4)
    same(dyncomp.compile(grown)(x), grown(x), "grown")


def test_write_to_a_view_behind_random_numbers():
    """Autograd's views are written by the original, for which the numbers are put back."""

    def noisy(y, w):
        y += torch.nn.functional.dropout(w, 0.5)
        return y * w

    found = []
    for function in (noisy, dyncomp.compile(noisy, backend="eager")):
        torch.manual_seed(0)
        w = torch.linspace(0, 1, 6, requires_grad=True)
        result = function((w * 2).view(2, 3), w.view(2, 3))
        result.sum().backward()
        found.append((result.detach(), w.grad))
    same(found[1], found[0], "noisy")


@pytest.mark.parametrize("grad", [False, True])
def test_data_put_back(grad):
    """``x.data *= y`` assigns what it wrote to; other memory is assigned in plain Python."""

    def program(conv, mask, x):
        conv.weight.data *= mask
        y = conv(x)
        conv.weight.data = conv.weight.data * 2
        return y

    torch.manual_seed(0)
    mine, mask = torch.nn.Linear(3, 3), torch.eye(3)
    theirs = torch.nn.Linear(3, 3)
    theirs.load_state_dict(mine.state_dict())
    compiled = dyncomp.compile(program)
    with torch.set_grad_enabled(grad):
        for _ in range(2):
            x = torch.randn(2, 3)
            torch.testing.assert_close(compiled(mine, mask, x), program(theirs, mask, x))
            torch.testing.assert_close(mine.weight, theirs.weight)


def test_data_put_back_in_one_graph():
    def program(w, mask):
        w.data *= mask
        w.data += 1
        return w * 2

    w = torch.randn(3, 3)
    v = w.clone()
    with torch.no_grad():
        found = dyncomp.compile(program, fullgraph=True)(w, torch.eye(3))
        torch.testing.assert_close(found, program(v, torch.eye(3)))
    torch.testing.assert_close(w, v)
