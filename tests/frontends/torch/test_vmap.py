"""``torch.vmap`` in captured code is in the graph, for the whole batch at once, or torch runs it."""

from __future__ import annotations

import pytest

import dyncomp

torch = pytest.importorskip("torch")
F = torch.nn.functional


def dot(a, b):
    return (a * b).sum()


def products(x, y):
    return torch.vmap(dot)(x, y)


def all_pairs(x, y):
    return torch.vmap(torch.vmap(dot, in_dims=(0, None)), in_dims=(None, 0))(x, y)


def along_columns(x, y):
    columns = x.t().contiguous().t()
    return torch.vmap(lambda a: a.softmax(-1) * y[0, 0], in_dims=1, out_dims=1)(columns)


def trees(x, y):
    def both(given, factor):
        return given["a"] * given["b"][0], (given["a"] - 1).sum() * factor

    return torch.vmap(both, in_dims=({"a": 0, "b": [0]}, None), out_dims=(1, 0))({"a": x, "b": [y]}, 3)


def layers(x, y):
    return torch.vmap(lambda a, *, weight: F.linear(a, weight).tanh())(x, weight=y)


def sorted_rows(x, y):
    return torch.func.vmap(lambda a: a.sort().values)(x)


def turned(x, y):
    return torch.vmap(lambda a: ((a @ a).t() + a, a.exp()[:, None].expand(-1, 2, -1)))(
        x[:, :, None] * y[:, None]
    )


def partly(x, y):
    """Of one batch only, and of none."""
    rows, columns = torch.arange(3), torch.arange(4)
    over_columns = torch.vmap(lambda i, j: (i * 2, torch.ones(2), i <= j), in_dims=(None, 0))
    return torch.vmap(over_columns, in_dims=(0, None))(rows, columns)


def mask(x, y):
    """As transformers makes masks of attention."""
    kept = x > 0

    def allowed(row, column):
        return kept[row, column] & (row <= column) & row.new_ones((), dtype=torch.bool)

    over_columns = torch.vmap(allowed, in_dims=(None, 0))
    return torch.vmap(over_columns, in_dims=(0, None))(torch.arange(x.shape[0]), torch.arange(x.shape[1]))


PROGRAMS = [products, all_pairs, along_columns, trees, layers, sorted_rows, turned, partly, mask]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_in_one_graph(program, backend):
    compiled = dyncomp.compile(program, backend=backend, fullgraph=True)
    for rows in (3, 5, 8):
        x, y = torch.randn(rows, 4), torch.randn(rows, 4)
        found, wanted = compiled(x, y), program(x, y)
        torch.testing.assert_close(found, wanted)
        assert strides(found) == strides(wanted)


def strides(result):
    return [t.stride() for t in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_gradients(backend):
    def loss(x, w):
        return torch.vmap(lambda a: (torch.tanh(a @ w) ** 2).sum())(x).mean()

    compiled = dyncomp.compile(loss, backend=backend, fullgraph=True)
    x, w = torch.randn(5, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    found = torch.autograd.grad(compiled(x, w), (x, w))
    torch.testing.assert_close(found, torch.autograd.grad(loss(x, w), (x, w)))


def draws(x, y):
    return torch.vmap(lambda a: a * torch.rand(()), randomness="same")(x)


def writes(x, y):
    return torch.vmap(lambda a: a.mul_(2))(x)


def writes_outside(x, y):
    total = torch.zeros(4)
    torch.vmap(lambda a: y.add_(1).sum() + a)(x)
    return total + y


def branches(x, y):
    try:
        return torch.vmap(lambda a: a * 2 if a.sum() > 0 else a)(x)
    except RuntimeError:
        return y


def keeps(x, y):
    seen = []
    made = torch.vmap(lambda a: (seen.append(a.shape), a + 1)[1])(x)
    return made, len(seen)


def same(x, y):
    made = torch.vmap(lambda a: a[1:])(x)
    made += 1
    return made, torch.vmap(lambda a: y)(x)


def not_in_c_order(x, y):
    turned = torch.vmap(lambda a: a.t()[1:] * 2)(x[:, :, None] * y[:, None])
    return turned, torch.vmap(lambda a: a * 2, in_dims=1)(x), torch.vmap(lambda a: a.exp())(y.t())


def in_chunks(x, y):
    return torch.vmap(dot, chunk_size=2)(x, y)


def escapes(x, y):
    return torch.vmap(dot)


@pytest.mark.parametrize(
    "program", [draws, writes, writes_outside, branches, keeps, same, not_in_c_order, in_chunks]
)
def test_as_torch(program):
    compiled = dyncomp.compile(program, backend="eager")
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    results = []
    for function in (program, compiled):
        torch.manual_seed(0)
        a, b = x.clone(), y.clone()
        results.append((function(a, b), a, b))
    torch.testing.assert_close(results[1], results[0])
    if program not in (branches, keeps):
        assert strides(results[1][0]) == strides(results[0][0])


def test_what_it_returns_is_torchs():
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    made = dyncomp.compile(escapes)(x, y)
    torch.testing.assert_close(made(x, y), products(x, y))


def test_sizes_that_differ():
    x, y = torch.randn(3, 4), torch.randn(5, 4)
    with pytest.raises(ValueError) as wanted:
        products(x, y)
    with pytest.raises(ValueError) as found:
        dyncomp.compile(products)(x, y)
    assert str(found.value) == str(wanted.value)


def test_an_empty_batch():
    x = torch.randn(0, 4)
    torch.testing.assert_close(dyncomp.compile(products)(x, x), products(x, x))
