"""Compiled graphs in autograd: one ``torch.autograd.Function`` for each graph that has gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...symbolic.integers import Dim, SymInt
from ..base import GradientPair, OutputView
from .library import torch


def requires(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled()


def function(pair: GradientPair) -> Callable[..., Any]:
    """See :class:`~dyncomp.frontends.base.Autograd`."""
    apply = _function_class(pair).apply
    returned = pair.returned
    plain = returned == tuple(range(len(returned))) and not pair.written
    written = tuple(index for index, _ in pair.written)

    def call(*args: Any) -> Any:
        for index in written:
            if args[index].is_leaf and args[index].requires_grad:
                raise RuntimeError(
                    "a leaf that requires grad is written to"
                )  # so the original runs and raises
        results = apply(*args)
        if plain:
            return results[0] if len(returned) == 1 else results[: len(returned)]
        views = _Views(pair, args, results)
        made = tuple([results[r] if type(r) is int else views.make(r) for r in returned])
        for index, result in pair.written:
            args[index].copy_(results[result])
        return made[0] if len(made) == 1 else made

    return call


class _Views:
    """Makes results that are views by autograd's own functions."""

    def __init__(self, pair: GradientPair, args: Sequence[Any], results: Sequence[Any]) -> None:
        self.pair = pair
        self.args = args
        self.results = results
        self.symbols: dict[str, int] | None = None

    def make(self, view: Any) -> Any:
        assert isinstance(view, OutputView)
        base = (self.args if view.of_input else self.results)[view.index]
        shape, strides = self._sizes(view.shape), self._sizes(view.strides)
        return base.as_strided(shape, strides, base.storage_offset() + self._sizes((view.offset,))[0])

    def _sizes(self, sizes: Sequence[Dim]) -> tuple[int, ...]:
        if all(type(size) is int for size in sizes):
            return tuple(sizes)  # type: ignore[arg-type]
        if self.symbols is None:
            self.symbols = self.pair.symbols(*self.args)
        found = self.symbols
        return tuple(size.evaluate(found) if isinstance(size, SymInt) else size for size in sizes)


def _function_class(pair: GradientPair) -> Any:
    forward_graph = pair.forward
    backward_graph: list[Callable[..., Sequence[Any]]] = []
    differentiable, wrt, count = pair.differentiable, pair.wrt, pair.count
    from_input = tuple(k for is_input, k in pair.saved if is_input)
    from_output = tuple(k for is_input, k in pair.saved if not is_input)
    order = _order(pair.saved)
    written = frozenset(index for index, _ in pair.written)
    others = tuple(k for k in range(count) if k not in differentiable)

    def forward(ctx: Any, *args: Any) -> Any:
        found = forward_graph(*args)
        held = [args[k] for k in from_input]
        if written:
            held = [x.clone() if k in written else x for k, x in zip(from_input, held)]
        ctx.save_for_backward(*held, *[found[k] for k in from_output])
        if others:
            # zeros in place of cotangents would be made for these too
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*[found[k] for k in others if isinstance(found[k], torch.Tensor)])
            ctx.like = [(found[k].shape, found[k].dtype, found[k].device) for k in differentiable]
        if pair.integers:
            ctx.integers = tuple(_integer(b, args, found, pair.inputs) for b in pair.integers)
        return tuple(found[:count])

    def backward(ctx: Any, *cotangents: Any) -> Any:
        gradients: list[Any] = [None] * len(ctx.needs_input_grad)
        if others:
            given = [cotangents[k] for k in differentiable]
            if all(c is None for c in given):
                return tuple(gradients)
            given = [_filled(c, like) for c, like in zip(given, ctx.like)]
        else:
            given = [c.contiguous() for c in cotangents]
        if torch.is_grad_enabled():
            raise RuntimeError(
                "no second derivative through code that dyncomp compiled (create_graph=True) is there yet: "
                "call it under dyncomp.set_stance('force_eager')"
            )
        saved = ctx.saved_tensors
        if order is not None:
            saved = [saved[k] for k in order]
        if not backward_graph:
            backward_graph.append(pair.backward())
        found = backward_graph[0](*saved, *given, *(ctx.integers if pair.integers else ()))
        for k, gradient in zip(wrt, found):
            gradients[k] = gradient
        return tuple(gradients)

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("CompiledGraph", (torch.autograd.Function,), members)


def _filled(cotangent: Any, like: tuple[Any, Any, Any]) -> Any:
    if cotangent is not None:
        return cotangent.contiguous()
    shape, dtype, device = like
    return torch.zeros(shape, dtype=dtype, device=device)


def _order(saved: Sequence[tuple[bool, int]]) -> tuple[int, ...] | None:
    """Where each saved value lies behind those from inputs and from outputs; ``None`` where they lie so."""
    first = sum(is_input for is_input, _ in saved)
    places = []
    inputs, outputs = 0, first
    for is_input, _ in saved:
        places.append(inputs if is_input else outputs)
        inputs, outputs = inputs + is_input, outputs + (not is_input)
    return None if places == sorted(places) else tuple(places)


def _integer(binding: Any, args: Sequence[Any], found: Sequence[Any], inputs: int) -> int:
    if binding.kind == "int":
        number: int = args[inputs + binding.index]
    elif binding.kind == "output":
        number = found[binding.index]
    elif binding.kind == "dim":
        number = args[binding.index].shape[binding.axis]
    else:
        number = args[binding.index].stride(binding.axis)
    return number
