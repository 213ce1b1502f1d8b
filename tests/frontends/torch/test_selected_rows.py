"""Rows chosen by masks and indices, masks made of sizes alone, loops over as many tensors as there are: one
graph for each, also for sizes that change; eager's results and gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

import dyncomp  # noqa: E402


def number_to_rows(x, y):
    z = x * 2
    z[y[:, 0] > 0] = 3.0
    return z


def row_to_rows(x, y):
    z = x + 1
    z[y[:, 0] > 0] = y[0]
    return z * x


def rows_with_step(x, y):
    z = (x * 2).t()
    z[y[0] > 0] = y[0, 0]
    return z


def indices_filled(x, y):
    z = F.log_softmax(x, -1)
    rows = torch.nonzero(y[:, 0] > 0)
    return z.index_fill(1, torch.tensor([0, -1]), 0.5) + z.clone().index_fill_(0, rows.squeeze(-1), 0.0)


def indices_filled_in_order(x, y):
    return x.t().index_fill(0, torch.tensor([1]), y[0, 0].detach())


def off_diagonal(x, y):
    n = x.shape[0]
    similar = x @ x.T
    return similar[~torch.eye(n, dtype=torch.bool)].view(n, -1) * y[:, :1]


def pairs(x, y):
    n = x.shape[0]
    labels = torch.cat([torch.arange(n // 2) for _ in range(2)])
    same = labels[:, None] == labels[None]
    others = ~torch.eye(n, dtype=torch.bool)
    same, similar = same[others].view(n, -1), (x @ y.T)[others].view(n, -1)
    return torch.cat([similar[same].view(n, -1), similar[~same].view(n, -1)], 1)


def squares(x, y):
    k = x @ x.T + 4 * torch.eye(x.shape[0])
    return torch.cholesky_solve(y, torch.linalg.cholesky(k)) + torch.linalg.solve(k, y)


def factories(x, y):
    n = x.shape[0]
    return x * torch.linspace(0, 1, n)[:, None], y * torch.hann_window(n)[:, None], torch.eye(n, 3)


def steps(x, y):
    h, out = torch.zeros(x.shape[1]), []
    for i in range(x.shape[0]):
        h = torch.tanh(h + x[i] * y[0])
        out.append(h)
    for row in y:
        h = h + row
    return torch.stack(out), h


def repeated_by_counts(x, y):
    """As durations in speech, grids of images in vision models."""
    counts = (y[:, 0] > 0).long() + 1
    by_column = torch.repeat_interleave(x.t(), counts.int(), dim=1)
    flat = x[:, :2].repeat_interleave(torch.cat([counts, counts]))
    return (
        torch.tanh(torch.repeat_interleave(x, counts, 0)),
        by_column * 2,
        flat,
        counts.repeat_interleave(counts),
    )


def repeated_alike(x, y):
    n = (y > 0).sum().item() + 1
    return x.repeat_interleave(n, 1), torch.arange(3).repeat_interleave(n) * x[0, 0], y.repeat_interleave(2)


PROGRAMS = [
    *(number_to_rows, row_to_rows, rows_with_step, indices_filled, indices_filled_in_order, off_diagonal),
    *(pairs, squares, factories, steps, repeated_by_counts, repeated_alike),
]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_one_graph_for_sizes_that_change(program, backend):
    compiled = dyncomp.compile(program, fullgraph=True, backend=backend)
    for n in (4, 6, 8, 4):
        torch.manual_seed(n)
        given = [torch.randn(n, 4), torch.randn(n, 4)]
        for grad in (False, True):
            mine, theirs = ([x.clone().requires_grad_(grad) for x in given] for _ in range(2))
            found, expected = compiled(*mine), program(*theirs)
            many = isinstance(expected, tuple)
            for a, b in zip(found if many else [found], expected if many else [expected]):
                assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
                if b.requires_grad:
                    a.square().sum().backward(retain_graph=True)
                    b.square().sum().backward(retain_graph=True)
            for a, b in zip(mine, theirs):
                assert (a.grad is None) == (b.grad is None)
                if a.grad is not None:
                    torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-4)


def test_a_mask_of_another_shape_raises_as_before():
    def f(x, y):
        z = x * 2
        z[y[:, 0] > 0] = y[:3, 0]
        return z

    compiled = dyncomp.compile(f, backend="eager")
    x, y = torch.randn(5, 4), torch.ones(5, 4)
    with pytest.raises(RuntimeError) as expected:
        f(x, y)
    with pytest.raises(RuntimeError) as found:
        compiled(x, y)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("counts", [[1, -2, 1], [1, 2], [0, 0, 0]])
def test_counts_that_are_refused_and_counts_of_nothing(counts):
    def f(x, counts):
        return x.repeat_interleave(counts, 0) * 2

    compiled = dyncomp.compile(f)
    compiled(torch.ones(3, 2), torch.tensor([1, 0, 2]))
    found = []
    for call in (f, compiled):
        try:
            found.append(call(torch.ones(3, 2), torch.tensor(counts)).shape)
        except RuntimeError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_a_bool_is_no_count():
    with pytest.raises(TypeError):
        dyncomp.compile(lambda x: x.repeat_interleave(True, 0))(torch.ones(2, 3))


def test_a_loop_over_many_different_numbers_becomes_one_body():
    def f(x):
        h = torch.zeros(x.shape[1])
        for row in x:
            h = torch.tanh(h + row)
        return h * 2

    compiled = dyncomp.compile(f, backend="eager")
    dyncomp.reset()
    for n in range(2, 14):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(x), f(x))
    graphs = dyncomp.stats()["graphs"]
    compiled(torch.randn(20, 4))
    assert dyncomp.stats()["graphs"] == graphs < 12
