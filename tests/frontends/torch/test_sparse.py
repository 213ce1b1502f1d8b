"""Sparse matrices times dense ones: the matrices are inputs of the graph by their parts; eager's results,
gradients and errors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
BACKENDS = ("eager", "inductor")
LAYOUTS = ("coo", "csr", "csc", "uncoalesced")
PRODUCTS = {
    "mm": lambda adj, x: torch.mm(adj, x),
    "spmm": lambda adj, x: torch.spmm(adj, x),
    "sparse.mm": lambda adj, x: torch.sparse.mm(adj, x),
    "operator": lambda adj, x: adj @ x,
    "method": lambda adj, x: adj.mm(x),
    "matmul": lambda adj, x: adj.matmul(x),
}


def matrix(layout="coo", seed=0, dtype=torch.float32, rows=5, columns=6):
    torch.manual_seed(seed)
    dense = torch.randn(rows, columns, dtype=dtype) * (torch.rand(rows, columns) > 0.6)
    if layout == "csr":
        return dense.to_sparse_csr()
    if layout == "csc":
        return dense.to_sparse_csc()
    coo = dense.to_sparse()
    if layout == "coo":
        return coo
    indices, values = coo.indices(), coo.values()
    twice = torch.cat([indices, indices], 1), torch.cat([values, values * 2])
    return torch.sparse_coo_tensor(*twice, (rows, columns), check_invariants=False)


def compare(fast, plain, adj, x, module=None):
    """Results and gradients."""
    found = []
    for call in (fast, plain):
        given = x.detach().clone().requires_grad_()
        if module is not None:
            module.zero_grad()
        made = call(given, adj)
        made.square().sum().backward()
        grads = [] if module is None else [p.grad.clone() for p in module.parameters()]
        found.append([made, given.grad, *grads])
    for mine, their in zip(*found, strict=True):
        assert (mine.shape, mine.stride(), mine.dtype) == (their.shape, their.stride(), their.dtype)
        torch.testing.assert_close(mine, their, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, layout, backend):
    product = PRODUCTS[name]

    def program(x, adj):
        return torch.tanh(product(adj, x.exp())) * 2

    fast = dyncomp.compile(program, backend=backend, fullgraph=True)
    adj, before = matrix(layout), dyncomp.stats()["fallbacks"]
    for _ in range(2):
        x = torch.randn(6, 3)
        compare(fast, program, adj, x)
        with torch.no_grad():
            torch.testing.assert_close(fast(x, adj), program(x, adj))
        (adj._values() if "co" in layout else adj.values()).mul_(1.5)
    assert dyncomp.stats()["fallbacks"] == before


class Net(nn.Module):
    def __init__(self, adj, norm=False):
        super().__init__()
        self.register_buffer("adj", adj)
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()

    def forward(self, x, adj=None):
        adj = self.adj if adj is None else adj
        x = torch.relu(self.norm(torch.sparse.mm(adj, self.first(x)))) if adj.is_sparse else x
        return torch.log_softmax((adj @ self.second(x))[: adj.shape[0] - 1, : adj.size(0)], 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_buffers(backend):
    module = Net(matrix(rows=6))
    fast = dyncomp.compile(module, backend=backend, fullgraph=True)
    for seed in range(2):
        compare(lambda x, _: fast(x), lambda x, _: module(x), None, torch.randn(6, 4), module)
        module.adj = matrix(rows=6, seed=seed + 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_matrices_that_change(backend):
    """A few get graphs of their own; then they are left to plain Python."""
    module = Net(matrix(rows=6))
    fast = dyncomp.compile(module, backend=backend)
    for seed in range(8):
        adj = matrix(rows=6, seed=seed, layout=("coo", "uncoalesced")[seed % 2])
        compare(fast, module, adj, torch.randn(6, 4), module)


@pytest.mark.parametrize("backend", BACKENDS)
def test_graphs_that_write(backend):
    """Whether parts share memory with what is written is not known: the product is left to plain Python."""
    module, again = (Net(matrix(rows=6), norm=True) for _ in range(2))
    again.load_state_dict(module.state_dict())
    fast = dyncomp.compile(module, backend=backend)
    for _ in range(3):
        x = torch.randn(6, 4)
        torch.testing.assert_close(fast(x), again(x))
        torch.testing.assert_close(module.norm.running_mean, again.norm.running_mean)


def test_values_that_are_written():
    def program(values, adj, x):
        values.mul_(2.0)
        return adj @ x

    fast = dyncomp.compile(program)
    x = torch.randn(6, 3)
    for _ in range(2):
        mine, theirs = matrix(), matrix()
        found, expected = fast(mine._values(), mine, x), program(theirs._values(), theirs, x)
        torch.testing.assert_close(found, expected)


def test_matrices_with_gradients():
    def program(x, adj):
        return torch.sparse.mm(adj, x * 2) + 1

    fast = dyncomp.compile(program)
    x, grads = torch.randn(6, 3), []
    for call in (fast, program):
        adj = matrix().requires_grad_()
        call(x, adj).sum().backward()
        grads.append(adj.grad.to_dense())
    torch.testing.assert_close(*grads)
    compare(fast, program, matrix(), x)


def test_refused_products():
    def program(x, adj):
        return torch.mm(adj, x * 2)

    fast = dyncomp.compile(program)
    for x, adj in ((torch.randn(5, 3), matrix()), (torch.randn(6, 3).double(), matrix())):
        errors = []
        for call in (fast, program):
            with pytest.raises(RuntimeError) as caught:
                call(x, adj)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]


def test_other_functions_break():
    def program(x, adj):
        y = x * 2
        return torch.cat([adj, adj]).to_dense() @ y, torch.mm(y.t(), adj.to_dense().t())

    fast = dyncomp.compile(program)
    x, adj = torch.randn(6, 3), matrix()
    for found, expected in zip(fast(x, adj), program(x, adj)):
        torch.testing.assert_close(found, expected)


def test_autocast():
    def program(x, adj):
        with torch.autocast("cpu", torch.bfloat16):
            return torch.mm(x.t(), x), adj @ x

    fast = dyncomp.compile(program)
    x, adj = torch.randn(6, 6), matrix(rows=6)
    outcomes = []
    for call in (fast, program):
        try:
            outcomes.append(call(x, adj))
        except RuntimeError as error:
            outcomes.append(str(error))
    if isinstance(outcomes[1], str):
        assert outcomes[0] == outcomes[1]
    else:
        assert all(map(torch.equal, *outcomes))
