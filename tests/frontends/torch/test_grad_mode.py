"""Grad mode that code sets for good (``torch.set_grad_enabled(False)``), or that plain code's block began."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

W = torch.tensor([1.0, -2.0, 3.0, 0.5], requires_grad=True)


def off_and_on(x: Any) -> Any:
    y = x * W
    torch.set_grad_enabled(False)
    z = x * W + 1
    torch.set_grad_enabled(True)
    return y * z, z


def left_off(x: Any) -> Any:
    y = x * W
    torch.set_grad_enabled(False)
    return y, x * W


def ends_of_blocks(x: Any) -> Any:
    with torch.no_grad():
        y = x * W
        dyncomp.graph_break()
        y = y + 1
    return y * W, y


def block_behind_a_break(x: Any) -> Any:
    y = x * W
    torch.set_grad_enabled(False)
    z = y * W
    with torch.enable_grad():
        u = z * W
        dyncomp.graph_break()
        v = u * W
    return y, z, u, v, v * W


def off_at_a_break(x: Any) -> Any:
    torch.set_grad_enabled(False)
    y = x * W
    dyncomp.graph_break()
    z = y * W
    torch.set_grad_enabled(True)
    return y, z, z * W


def in_a_block(x: Any) -> Any:
    with torch.no_grad():
        torch.set_grad_enabled(True)
        y = x * W
    return y, x * W


def written_in_a_block(x: Any) -> Any:
    with torch.enable_grad():
        x.mul_(W)
    return (x * 2,)


def seen(f: Callable[..., Any], start: bool) -> list[Any]:
    """Results, their gradients, and what grad mode is afterwards."""
    x = torch.arange(4.0)
    W.grad = None
    torch.set_grad_enabled(start)
    try:
        results = f(x)
        after = torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    total = sum((r.sum() for r in (*results, x) if r.requires_grad), torch.zeros(()))
    if total.requires_grad:
        total.backward()
    found = [(r.requires_grad, r.tolist()) for r in (*results, x)]
    return [after, None if W.grad is None else W.grad.tolist(), *found]


@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize(
    "f, graphs",
    [
        (off_and_on, 1),
        (left_off, 1),
        (ends_of_blocks, 2),
        (block_behind_a_break, 2),
        (off_at_a_break, 2),
        (in_a_block, None),  # its end puts back what was before: plain code
        (written_in_a_block, 1),
    ],
)
def test_grad_mode_is_what_the_program_sets(f: Callable[..., Any], graphs: int | None, start: bool) -> None:
    expected = seen(f, start)
    compiled = dyncomp.compile(f, backend="eager")
    before = dyncomp.stats()
    for _ in range(3):
        assert seen(compiled, start) == expected
    after = dyncomp.stats()
    assert after["fallbacks"] == before["fallbacks"]
    if graphs is not None:
        assert after["graphs"] - before["graphs"] == graphs


def test_what_blocks_give() -> None:
    """``with torch.no_grad() as x`` gives ``None``, ``torch.autocast`` and ``record_function`` themselves."""

    def function(x: Any) -> Any:
        found = []
        with torch.no_grad() as first, torch.autocast("cpu", dtype=torch.bfloat16) as second:
            found.append((first, type(second)))
        with torch.enable_grad() as first, torch.profiler.record_function("name") as second:
            found.append((first, type(second)))
        with torch.set_grad_enabled(False) as first, torch.inference_mode(False) as second:
            found.append((first, second))
        return x * 2, found

    x = torch.ones(3)
    assert dyncomp.compile(function, backend="eager")(x)[1] == function(x)[1]
