"""Functions of torch that have no ops of their own, on a pretended GPU: torch's own routine within the graph.

Run by ``test_gpu_routines`` in a process of its own.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from tests.inductor.gpu_simulator import pretended, r  # noqa: E402, F401

F = torch.nn.functional


CALLS: dict[str, Any] = {
    "einsum": lambda x, y: torch.einsum("ij,jk->ik", x, y) + 1,
    "loss": lambda x, y: F.mse_loss(x, x * 2) + x.norm(),
    "distances": lambda x, y: torch.cdist(x, y + 1) * 2,
    "sorted": lambda x, y: torch.sort(x + 1)[0] * 2,
    "largest": lambda x, y: torch.topk(x + 1, 3),
    "linear algebra": lambda x, y: (
        torch.linalg.qr(y),
        torch.linalg.inv(y),
        torch.linalg.solve(y, y.t() * 2) + 1,
    ),
    "pictures": lambda x, y: (F.pixel_shuffle(x.view(1, 4, 2, 4), 2), F.interpolate(x[None], scale_factor=2)),
    "folds": lambda x, y: (torch.median(x, 1)[0], torch.cumprod(x, 1) - 1, torch.logcumsumexp(y, 0)),
}


def check(function: Any, device: str) -> None:
    arguments = r(4, 8).to(device), (r(8, 8) + 4 * torch.eye(8)).to(device)
    report = dyncomp.explain(function)(*arguments)
    assert report.graphs, report.details()
    assert not report.breaks, [str(b) for b in report.breaks]
    compiled = dyncomp.compile(function, fullgraph=True)
    for _ in range(2):
        same(compiled(*arguments), function(*arguments))


def same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if isinstance(want, tuple):
        for a, b in zip(got, want, strict=True):
            same(a, b)
        return
    assert (got.dtype, got.stride()) == (want.dtype, want.stride())
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CALLS)
def test_routines(name: str) -> None:
    check(CALLS[name], "cpu")


def test_a_result_that_lies_otherwise_is_the_originals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Than was found at capture: on tensors that have no memory."""
    from dyncomp.frontends.torch import calls

    on_device = calls._Call.on_device
    seen = []

    def turned(self: Any, tensors: Any, numbers: Any) -> Any:
        seen.append(self.function)
        return tuple(r.t().contiguous().t()[:, :2] for r in on_device(self, tensors, numbers))

    compiled = dyncomp.compile(CALLS["distances"])
    monkeypatch.setattr(calls._Call, "on_device", turned)
    arguments = r(4, 8), r(8, 8)
    same(compiled(*arguments), CALLS["distances"](*arguments))
    assert seen
