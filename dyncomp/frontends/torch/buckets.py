"""Gradients in parts: what ``DistributedDataParallel`` waits for is given while the rest is computed.

One Python function of autograd gives all its gradients at once, so that no bucket of DDP's is sent before the
whole backward graph has run. Where a graph runs inside of DDP, a chain of functions stands for it, one for
each bucket: the first gives the graph's results and, in the backward pass, the gradients of the first bucket;
each has a link, a tensor of no elements, from the function behind it. Autograd hands gradients to DDP between
them. What a part computes for later ones travels with the gradient of the link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..base import BackwardParts, GradientPair
from .library import torch

Call = Callable[..., Sequence[Any]]
# what the function of the whole graph does: gradients by the inputs that want one, from cotangents
Gradients = Callable[[Any, Sequence[bool], Sequence[Any]], Sequence[Any]]


def in_buckets(
    pair: GradientPair, numbers: Sequence[int], whole: Call, forward: Call, gradients: Gradients
) -> Call:
    """``whole``, or in DDP's forward pass a chain that gives the same. ``numbers``: the outputs of the
    forward graph that ``forward(ctx, *args)`` returns."""
    wrapper: Any = getattr(torch.nn.parallel, "DistributedDataParallel", None)
    if not hasattr(wrapper, "_active_ddp_module"):
        return whole
    chains: dict[tuple[int, ...], _Chain | None] = {}

    def apply(*args: Any) -> Sequence[Any]:
        ddp = wrapper._active_ddp_module
        if ddp is None or not ddp.require_backward_grad_sync or not torch.is_grad_enabled():
            return whole(*args)
        limits = _limits(ddp)
        if limits not in chains:
            parts = pair.in_parts(limits)
            chains[limits] = None if parts is None else _Chain(parts, numbers, forward, gradients)
        chain = chains[limits]
        if chain is None or not all(args[k].requires_grad for k in chain.wrt):
            return whole(*args)
        return chain(*args)

    return apply


def _limits(ddp: Any) -> tuple[int, ...]:
    """The bytes of DDP's buckets, in the order in which they are filled once it knows in which order
    gradients come."""
    by_bucket = tuple(getattr(ddp, "bucket_bytes_cap_list", ()))
    if by_bucket:
        return by_bucket
    size = int(ddp.bucket_bytes_cap)
    first = torch.distributed._DEFAULT_FIRST_BUCKET_BYTES if ddp.bucket_bytes_cap_default else size
    return (min(first, size), size)


class _Chain:
    """The functions, in the order of the backward pass. All inputs ``wrt`` require a gradient."""

    def __init__(
        self, parts: BackwardParts, numbers: Sequence[int], forward: Call, gradients: Gradients
    ) -> None:
        self.parts = parts
        self.numbers = numbers
        self.forward = forward
        self.gradients = gradients
        self.wrt = tuple(k for part in parts.parts for k in part.wrt)
        kept: set[int] = set()
        self.kept: list[frozenset[int]] = []  # the values that are read after each part
        for part in reversed(parts.parts):
            self.kept.insert(0, frozenset(kept))
            kept.update(part.reads)
        self.first = self._first()
        self.links = [self._link(number) for number in range(1, len(parts.parts))]

    def __call__(self, *args: Any) -> Sequence[Any]:
        link, self.device = None, args[self.wrt[0]].device
        for part, function in zip(self.parts.parts[:0:-1], reversed(self.links)):
            link = function(link, *[args[k] for k in part.wrt])
        results: Sequence[Any] = self.first(args, link, *[args[k] for k in self.parts.parts[0].wrt])
        return results

    def _first(self) -> Call:
        chain = self

        def forward(ctx: Any, args: Sequence[Any], link: Any, *own: Any) -> Any:
            ctx.inputs = len(args)
            return chain.forward(ctx, *args)

        def backward(ctx: Any, *cotangents: Any) -> Any:
            return (None, *chain._pass(ctx, cotangents)(0))

        return autograd_function(forward, backward)

    def _link(self, number: int) -> Call:
        def forward(ctx: Any, link: Any, *own: Any) -> Any:
            return torch.empty(0, device=self.device)

        def backward(ctx: Any, signal: Any) -> Any:
            return signal.rest(number)

        return autograd_function(forward, backward)

    def _pass(self, ctx: Any, cotangents: Sequence[Any]) -> Callable[[int], Sequence[Any]]:
        """A pass backwards: what a part's function returns, by number. The parts are for all gradients and no
        second derivatives; others are computed at once, and given out."""
        parts = self.parts.parts
        there = dict(zip(self.numbers, cotangents))
        found = tuple(k for k, cotangent in there.items() if cotangent is not None)
        if found != self.parts.given or torch.is_grad_enabled():
            gradients = self.gradients(ctx, [k in self.wrt for k in range(ctx.inputs)], cotangents)
            return partial(self._returned, lambda number: [gradients[k] for k in parts[number].wrt])
        values: list[Any] = [*ctx.saved_tensors, *(there[k].contiguous() for k in found)]
        integers = self.parts.integers(values, getattr(ctx, "symbols", {}))

        def run(number: int) -> Sequence[Any]:
            part, kept = parts[number], self.kept[number]
            results = part.run(*[values[k] for k in part.reads], *integers)
            own = len(part.wrt)
            values.extend(results[own:])
            values[:] = [value if k in kept else None for k, value in enumerate(values)]
            return results[:own]

        return partial(self._returned, run)

    def _returned(self, give: Callable[[int], Sequence[Any]], number: int) -> Sequence[Any]:
        """The gradients that ``give`` gives, behind that of the link, which has the rest of the pass."""
        gradients = give(number)
        if number == len(self.links):
            return (None, *gradients)
        signal = torch.empty(0, device=self.device)
        signal.rest = partial(self._returned, give)
        return (signal, *gradients)


def autograd_function(forward: Callable[..., Any], backward: Callable[..., Any]) -> Call:
    """``apply`` of a function with these methods."""
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made = type("CompiledGraph", (torch.autograd.Function,), members)
    # what Function.apply does besides is for functorch's transforms, under which nothing compiled runs
    apply: Call = super(torch.autograd.Function, made).apply
    return apply
