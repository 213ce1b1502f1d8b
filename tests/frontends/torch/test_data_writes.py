"""Writes through ``x.data``, of which autograd does not hear: no version is counted, and what it saved before
has the new contents."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace as Tensors
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402


def buffer_of_what_has_a_history(s: Any) -> Any:
    y = s.x * s.w
    s.b.data.mul_(0.5).add_(y.sum() * 0.25, alpha=0.5)
    return y * s.b


def its_result_is_used(s: Any) -> Any:
    t = s.b.data.mul_(0.5).add_(s.w)
    return t * s.x, t


def masked(s: Any) -> Any:
    s.w.data *= s.m
    return s.x * s.w


def seen_by_others(s: Any) -> Any:
    d, e = s.w.data, s.w.data
    d.mul_(s.m)
    e.add_(1)
    return s.x * s.w * d, d + e


def after_use(s: Any) -> Any:
    y = s.x * s.w
    s.w.data.mul_(2)
    return y + s.x * s.w


def buffer_after_use(s: Any) -> Any:
    y = s.w * s.b
    s.b.data.mul_(2)
    return y


def of_a_result(s: Any) -> Any:
    z = (s.x * s.w).exp()
    z.data.fill_(2)
    return z * s.x


def in_a_block(s: Any) -> Any:
    with torch.no_grad():
        s.w.data.mul_(0.5).add_(s.b.data)
    return s.x * s.w


def in_a_block_after_use(s: Any) -> Any:
    y = s.x * s.w
    with torch.no_grad():
        s.b.data.mul_(0.5).add_(s.w.data)
    return y


def saved_before(s: Any) -> Any:
    s.w.data.mul_(0.5)
    s.b.data.add_(1)
    return s.x + 1


def heard_as_well(s: Any) -> Any:
    s.b.data.add_(1)
    s.b.mul_(2)
    return s.x + 1


def parts(s: Any) -> Any:
    s.w.data.view(2, 2)[1].mul_(3)
    s.w.data[0] = 7
    return s.x * s.w


def parts_in_a_block(s: Any) -> Any:
    """Written for all to hear, what the graph made as well."""
    with torch.no_grad():
        s.b[1:] = 4
        s.b[0].mul_(s.w[2])
    y = s.x * s.w
    with torch.no_grad():
        y[1:3].mul_(2)
        y.view(2, 2).t()[0] = s.w[:2]
    return y * s.w


def parts_and_backward(s: Any) -> Any:
    with torch.no_grad():
        s.w.data[1:3] *= 2
    (s.x * s.w * s.w).sum().backward()
    return s.x * 2


def steps(s: Any) -> Any:
    s.w.data.mul_(2)
    (s.x * s.w).sum().backward()
    s.w.data.sub_(0.5 * s.w.grad.data)
    return s.x * 2


def seen(f: Callable[..., Any], grad: bool) -> list[Any]:
    """Results, tensors, gradients, and whether versions are up."""
    w = torch.tensor([1.0, -2.0, 3.0, 0.5], requires_grad=True)
    s = Tensors(x=torch.arange(4.0), b=torch.full((4,), 2.0), m=torch.tensor([1.0, 0, 1, 1]), w=w)
    other = torch.ones(4, requires_grad=True)
    before = (other * w).sum() + (other * s.b).sum()  # autograd saves both
    versions = w._version, s.b._version
    with torch.set_grad_enabled(grad):
        results = f(s)
    results = results if isinstance(results, tuple) else (results,)
    found: list[Any] = [w._version > versions[0], s.b._version > versions[1]]
    try:
        (before + sum(r.sum() for r in results if r.requires_grad)).backward()
        assert w.grad is not None and other.grad is not None
        found += [w.grad.tolist(), other.grad.tolist()]
    except RuntimeError as error:
        found.append(str(error)[:60])
    return found + [(t.requires_grad, t.tolist()) for t in (*results, w, s.b)]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize(
    "f, breaks",  # with gradients
    [
        (buffer_of_what_has_a_history, 0),
        (its_result_is_used, 1),
        (masked, 0),
        (seen_by_others, 0),
        (after_use, 1),
        (buffer_after_use, 1),
        (of_a_result, 1),
        (in_a_block, 0),
        (in_a_block_after_use, 0),
        (saved_before, 0),
        (heard_as_well, 0),
        (parts, 0),
        (parts_in_a_block, 0),
        (parts_and_backward, 0),
        (steps, 1),
    ],
)
def test_autograd_does_not_hear(f: Callable[..., Any], breaks: int, grad: bool, backend: str) -> None:
    if f in (steps, parts_and_backward) and not grad:
        pytest.skip("without gradients")
    expected = seen(f, grad)
    compiled = dyncomp.compile(f, backend=backend)
    before = dyncomp.stats()
    for _ in range(3):
        assert seen(compiled, grad) == expected
    after = dyncomp.stats()
    assert after["fallbacks"] == before["fallbacks"]
    assert sum(after["breaks"].values()) - sum(before["breaks"].values()) == (breaks if grad else 0)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_detached_without_grad_mode(backend: str) -> None:
    def program(w: Any, x: Any) -> Any:
        return w.detach(), w.data, w[1:].detach(), x.detach(), x * w

    w = torch.ones(4, requires_grad=True)
    compiled = dyncomp.compile(program, backend=backend, fullgraph=True)
    with torch.no_grad():
        for _ in range(2):
            found = compiled(w, torch.zeros(4))
            assert not any(t.requires_grad for t in found)
            found[0][0] += 1
            assert found[1][0] == w[0] and w._version == found[0]._version != found[1]._version
            w.data[0] = 1


def test_detached_is_kept() -> None:
    def program(w: Any, x: Any) -> Any:
        w.grad = x.detach()
        y = w.detach()
        y.label = "kept"
        return y, x * w

    w = torch.ones(4, requires_grad=True)
    compiled = dyncomp.compile(program, fullgraph=True)
    with torch.no_grad():
        for _ in range(2):
            y, _ = compiled(w, x := torch.zeros(4))
            assert y.label == "kept" and not y.requires_grad
            assert w.grad is not x and w.grad.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("mode", [False, True], ids=["no_grad", "grad"])
def test_views_of_what_is_detached_require_no_gradient(mode: bool) -> None:
    def function(w: Any) -> Any:
        return w.detach()[1:], w.data.view(-1), w[1:], w.detach().t(), w.detach()

    w = torch.nn.Parameter(torch.randn(4, 3))
    with torch.set_grad_enabled(mode):
        compiled, plain = dyncomp.compile(function)(w), function(w)
    for ours, theirs in zip(compiled, plain):
        assert (ours.requires_grad, ours.data_ptr()) == (theirs.requires_grad, theirs.data_ptr())
        assert torch.equal(ours, theirs) and ours.stride() == theirs.stride()
