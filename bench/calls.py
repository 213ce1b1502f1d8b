"""``python -m bench.calls``: what a call of a model with many small parameters costs (``CALLS.md``).

The model computes next to nothing: the time is that of guards, of reading parameters and, with gradients, of
torch's autograd engine. The last row of gradients is an ``autograd.Function`` that computes nothing at all
for as many parameters: what no compiler that leaves the engine in place can go below.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from typing import Any

import torch

import dyncomp

from . import machine

PAGE = pathlib.Path(__file__).resolve().parent / "CALLS.md"
BLOCKS, WIDTH = 33, 8
ROUNDS = 2000


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = x + self.down(torch.relu(self.up(self.norm(x))))
        return made


class Nothing(torch.autograd.Function):
    """Gradients that are there already."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        ctx.gradients = [torch.zeros_like(p) for p in parameters]
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return (None, *ctx.gradients)


def shortest(run: Callable[[], object]) -> float:
    """Microseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def rows(model: torch.nn.Module, x: torch.Tensor) -> list[tuple[str, float, float]]:
    """Name, a call without gradients, forward and backward."""
    parameters = list(model.parameters())

    def step(call: Callable[..., Any]) -> None:
        for parameter in parameters:
            parameter.grad = None
        call(x).sum().backward()

    def measured(name: str, call: Callable[..., Any]) -> tuple[str, float, float]:
        with torch.no_grad():
            for _ in range(8):
                call(x)
            forward = shortest(lambda: call(x))
        for _ in range(8):
            step(call)
        return name, forward, shortest(lambda: step(call))

    found = [
        measured("eager", model),
        measured("dyncomp", dyncomp.compile(model)),
        measured("torch.compile", torch.compile(model)),
    ]
    _, _, floor = measured("", lambda x: Nothing.apply(x, *parameters))
    return [*found, ("an empty autograd.Function", float("nan"), floor)]


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[Block() for _ in range(BLOCKS)])
    count = len(list(model.parameters()))
    lines = [
        "# Calls of models with many parameters",
        "",
        machine.headline("python -m bench.calls", 1),
        "",
        f"{BLOCKS} blocks of width {WIDTH} in a row, {count} parameters, batch of 2; microseconds, the "
        f"shortest of {ROUNDS} calls, one thread. See `bench/calls.py`.",
        "",
        "| | forward without gradients | forward and backward |",
        "|---|---|---|",
    ]
    for name, forward, both in rows(model, torch.randn(2, WIDTH)):
        alone = f"{forward:.1f}" if forward == forward else ""
        lines.append(f"| {name} | {alone} | {both:.0f} |")
    PAGE.write_text("\n".join(lines) + "\n")
    print("\n".join(lines[6:]))


if __name__ == "__main__":
    main()
