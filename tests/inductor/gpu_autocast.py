"""Autocast on a pretended GPU: the types that torch itself gives to tensors on CUDA that have no memory.

Run by ``test_gpu_autocast`` in a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from tests.inductor.gpu_simulator import pretended, r  # noqa: E402, F401

F = torch.nn.functional
HALF, BRAIN = torch.float16, torch.bfloat16


@contextmanager
def autocast(dtype: Any) -> Iterator[None]:
    """As ``torch.autocast("cuda", dtype=dtype)`` where there is no CUDA."""
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", dtype)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", before[0])
        torch.set_autocast_dtype("cuda", before[1])


# functions of a matrix, a square one, a vector, another matrix like the first, and places
CALLS: dict[str, Any] = {
    "linear": lambda x, y, v, z, t: (F.linear(x, y), F.linear(x, y, v)),
    "products": lambda x, y, v, z, t: (
        torch.mm(x, y),
        x @ y,
        x.matmul(v),
        torch.bmm(x.unsqueeze(0), y.unsqueeze(0)),
    ),
    "addmm": lambda x, y, v, z, t: torch.addmm(x, z, y),
    "einsum": lambda x, y, v, z, t: torch.einsum("ij,jk->ik", x, y),
    "losses": lambda x, y, v, z, t: (F.mse_loss(x, z), F.cross_entropy(x, t), x.norm(), F.normalize(x)),
    "convolution": lambda x, y, v, z, t: F.conv2d(x.view(1, 1, *x.shape), y.view(1, 1, *y.shape), padding=4),
    "attention": lambda x, y, v, z, t: F.scaled_dot_product_attention(
        x.unsqueeze(0), y.unsqueeze(0), y.unsqueeze(0)
    ),
    "joined": lambda x, y, v, z, t: (torch.cat([x, y]), torch.stack([x, z]), torch.cat([x, y.float()])),
    "exp": lambda x, y, v, z, t: (torch.exp(x), z.exp(), torch.log(y.abs() + 1), x.abs().rsqrt()),
    "pow": lambda x, y, v, z, t: (x**2, x.pow(3), 2.0**x, torch.pow(y, 2), (y.abs() + 1).reciprocal()),
    "quotients": lambda x, y, v, z, t: (1 / (x.abs() + 1), x / 3, x / (z.abs() + 1), 2 - x, 2 * x),
    "sums": lambda x, y, v, z, t: (x.sum(), y.sum(0), torch.sum(x, 1), x.sum(dtype=torch.float64), x.mean(0)),
    "folds": lambda x, y, v, z, t: (x.prod(), x.cumsum(0), x.amax(1), x.argmax(1), x.std()),
    "softmax": lambda x, y, v, z, t: (x.softmax(-1), F.softmax(y, 0), F.log_softmax(x, 1)),
    "softmax of a type": lambda x, y, v, z, t: (
        x.softmax(-1, dtype=torch.float64),
        F.softmax(y, 0, dtype=torch.float32),
    ),
    "norms": lambda x, y, v, z, t: (F.layer_norm(x, (8,)), F.group_norm(y.unsqueeze(0), 4), F.softplus(x)),
    "parameters": lambda x, y, v, z, t: F.layer_norm(x, (8,), v, v.float()),
    "activations": lambda x, y, v, z, t: (
        F.gelu(x),
        F.relu(y),
        F.silu(x),
        torch.sigmoid(x),
        x.tanh(),
        F.elu(x),
    ),
    "arithmetic": lambda x, y, v, z, t: (x + z, x * 2, x - v, -x, x.abs(), x.maximum(z), x > 0),
    "mixed": lambda x, y, v, z, t: (x + z.float(), torch.where(x > 0, x, z), x.clamp(-1, 1)),
    "batch norm": lambda x, y, v, z, t: F.batch_norm(x, v.float(), v.float().abs() + 1, v.float()),
    "pools": lambda x, y, v, z, t: (
        F.max_pool2d(x.view(1, 1, *x.shape), 2),
        F.avg_pool2d(x.view(1, 1, *x.shape), 2),
    ),
}


def leaves(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def dtypes_on_cuda(function: Any, arguments: Any, dtype: Any) -> list[Any]:
    """What torch says, by tensors without memory."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        given = [torch.empty(a.shape, dtype=a.dtype, device="cuda") for a in arguments]
        with autocast(dtype):
            return [found.dtype for found in leaves(function(*given))]


@pytest.mark.parametrize("lower", [HALF, BRAIN], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, HALF, BRAIN], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_types_are_torchs(name: str, dtype: Any, lower: Any) -> None:
    function = CALLS[name]
    x, y, v, z = (r(*shape, dtype=dtype) for shape in ((4, 8), (8, 8), (8,), (4, 8)))
    arguments = x, y, v, z, torch.arange(4)
    want = dtypes_on_cuda(function, arguments, lower)
    with autocast(lower):
        report = dyncomp.explain(function)(*arguments)
        got = leaves(dyncomp.compile(function)(*arguments))
    assert not report.breaks, [str(b) for b in report.breaks]
    assert [found.dtype for found in got] == want
    values = leaves(function(*(a.float() if a.is_floating_point() else a for a in arguments)))
    for mine, theirs in zip(got, values):
        torch.testing.assert_close(mine.double(), theirs.double(), rtol=5e-2, atol=1e-1)
