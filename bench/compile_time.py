"""``python -m bench.compile_time``: what each pass of a compilation costs as programs get deeper
(``COMPILE_TIME.md``).

Seconds of the Python thread (g++ runs in other processes, its time is in ``build``), of the spans that
:mod:`dyncomp.spans` tells of, each without those inside it. The exponent is the slope of a line through the
logarithms: 1 is linear. ``--count`` counts lines of Python that are executed instead, which is the same on
every run; ``tests/test_compile_time.py`` bounds that.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from dyncomp import spans

from . import machine

REPORT = Path(__file__).with_name("COMPILE_TIME.md")
DEPTHS = (2, 4, 8, 16, 32)
# A program of so many layers, and the arguments of a call.
Program = Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]]
Amounts = dict[str, float]


# -- programs ---------------------------------------------------------------------------------
def layers(depth: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """NumPy: products, softmax, a concatenation and an assignment in each layer."""
    weights, x = _weights(depth, 16)

    def f(x: Any, weights: Any) -> Any:
        x = np.maximum(x @ weights[0][0], 0)
        for w, b in weights:
            h = np.tanh(x @ w + b)
            e = np.exp(h - h.max(axis=1, keepdims=True))
            p = e / e.sum(axis=1, keepdims=True)
            x = x + np.concatenate([p[:, 8:], p[:, :8]], axis=1)
            y = x.copy()
            y[:, 0] = b[0]
            x = np.tanh(y * x)
        return np.maximum(x @ weights[0][0], 0).sum(axis=1)

    return f, (x, weights)


def gradient(depth: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """NumPy: the derivatives of a loss by all weights."""
    import dyncomp

    weights, x = _weights(depth + 2, 16)

    def loss(weights: Any, x: Any) -> Any:
        (first, shift), *inner, (last, offset) = weights
        x = np.tanh(x @ first + shift)
        for w, b in inner:
            x = x + np.tanh(x @ w + b)
        return np.mean(np.square(x @ last + offset))

    def f(weights: Any, x: Any) -> Any:
        return dyncomp.grad(loss)(weights, x)

    return f, (weights, x)


def _weights(depth: int, width: int) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    rng = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    return [(array(width, width), array(width)) for _ in range(depth)], array(24, width)


def encoder(depth: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """PyTorch: a transformer encoder of width 64."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, depth, enable_nested_tensor=False).eval()
    return model.requires_grad_(False), (torch.randn(2, 16, 64),)


def convolutions(depth: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """PyTorch: blocks of convolution, normalisation and activation with a sum around them."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.GELU())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.body(x)  # type: ignore[no-any-return]

    model = nn.Sequential(*(Block() for _ in range(depth))).eval()
    return model.requires_grad_(False), (torch.randn(2, 8, 16, 16),)


def training(depth: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """PyTorch: products and activations with the derivatives by all weights."""
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(24, 16), nn.GELU(), nn.Linear(16, 16), nn.LayerNorm(16))
    for _ in range(depth):
        model.extend([nn.Linear(16, 16, bias=False), nn.Tanh(), nn.LayerNorm(16, elementwise_affine=False)])
    model.extend([nn.Linear(16, 16), nn.Softmax(-1), nn.Linear(16, 12)])

    def f(x: Any) -> Any:
        model(x).square().mean().backward()

    return f, (torch.randn(24, 24),)


PROGRAMS: dict[str, Program] = {
    program.__name__: program for program in (layers, gradient, encoder, convolutions, training)
}


# -- clocks -----------------------------------------------------------------------------------
@contextlib.contextmanager
def heard(clock: Callable[[], int], at_end: Callable[[], object] = lambda: None) -> Iterator[dict[str, int]]:
    """What the clock advanced by in each kind of span, without the spans inside; ``at_end`` is called when a
    compilation ends. The clock must not give 0."""
    found: dict[str, int] = {}
    inside: list[spans.Span] = []  # ended, and what they were part of has not

    def hear(span: spans.Span) -> None:
        own = span.end - span.start
        while inside and inside[-1].start >= span.start:
            part = inside.pop()
            own -= part.end - part.start
        inside.append(span)
        name = span.name if span.kind in ("pass", "inductor") else span.kind
        found[name] = found.get(name, 0) + own
        if span.kind == "compile":
            inside.clear()
            at_end()

    before = spans.now
    spans.now = clock
    spans.listen(hear)
    try:
        yield found
    finally:
        spans.ignore(hear)
        spans.now = before


@contextlib.contextmanager
def counted() -> Iterator[dict[str, int]]:
    """How many lines of Python each pass executes."""
    lines = itertools.count(1)
    reached = 1

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal reached
        reached = next(lines)
        return trace

    def clock() -> int:
        # tracers that are on before keep dyncomp from compiling
        sys.settrace(trace)
        return reached

    try:
        with heard(clock, lambda: sys.settrace(None)) as found:
            yield found
    finally:
        sys.settrace(None)


def timed() -> contextlib.AbstractContextManager[dict[str, int]]:
    """Nanoseconds of this thread in each pass."""
    return heard(lambda: time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID))


# -- measuring --------------------------------------------------------------------------------
def amounts(
    program: Program,
    clock: Callable[[], contextlib.AbstractContextManager[dict[str, int]]],
    depths: Sequence[int] = DEPTHS,
    repeats: int = 1,
) -> dict[str, list[int]]:
    """By pass, what compiling the program costs at each depth: the least of ``repeats``."""
    import dyncomp

    rows: list[dict[str, int]] = []
    for depth in depths:
        tries = []
        for _ in range(repeats):
            f, args = program(depth)
            compiled = dyncomp.compile(f, options={"warm_start": False})
            with clock() as found:
                compiled(*args)
            tries.append(found)
            dyncomp.reset()
        rows.append({name: min(t.get(name, 0) for t in tries) for name in tries[0]})
    names = dict.fromkeys(itertools.chain(*rows))
    return {name: [row.get(name, 0) for row in rows] for name in names}


def exponent(costs: Sequence[float], depths: Sequence[int] = DEPTHS) -> float:
    """The slope of a line through the logarithms of costs over those of depths, by least squares."""
    x = [math.log(depth) for depth in depths]
    y = [math.log(max(cost, 1)) for cost in costs]
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y))
    return above / sum((a - middle_x) ** 2 for a in x)


def table(found: Mapping[str, Sequence[int]], scale: float) -> list[str]:
    lines = [f"|  | {' | '.join(map(str, DEPTHS))} | exponent |", "| --- |" + " ---: |" * (len(DEPTHS) + 1)]
    total = [sum(costs) for costs in zip(*found.values())]
    for name, costs in [*found.items(), ("**all**", total)]:
        cells = [f"{cost * scale:,.1f}" if scale != 1 else f"{cost:,}" for cost in costs]
        lines.append(f"| {name} | {' | '.join(cells)} | {exponent(costs):.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=PROGRAMS, nargs="*", default=list(PROGRAMS))
    parser.add_argument("--count", action="store_true", help="lines of Python instead of milliseconds")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"write {REPORT.name}")
    given = parser.parse_args()
    clock = counted if given.count else timed
    repeats = 1 if given.count else given.repeats
    what = "Lines of Python" if given.count else f"Milliseconds of the thread, the least of {repeats}"
    text = ["# Compile time by pass and depth", ""]
    text += [machine.headline(" ".join(["python -m bench.compile_time", *sys.argv[1:]]), 1), ""]
    text += [f"{what}, for programs of {', '.join(map(str, DEPTHS))} layers. `compile` is what belongs to no"]
    text += ["other row: guards and the replacement's code. `build` does not count g++."]
    for name in given.only:
        amounts(PROGRAMS[name], clock, DEPTHS[:1])  # imports
        found = amounts(PROGRAMS[name], clock, repeats=repeats)
        about = (PROGRAMS[name].__doc__ or "").rstrip(".")
        text += ["", f"## {name}: {about}", "", *table(found, 1 if given.count else 1e-6)]
        print("\n".join(text[-len(found) - 6 :]), flush=True)
    if given.write:
        REPORT.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
