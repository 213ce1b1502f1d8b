"""Compiled graphs in autograd: one ``torch.autograd.Function`` for each graph that has gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base import GradientPair, OutputView, PairBackward
from .buckets import autograd_function, in_buckets
from .library import torch


class _CannotRun(RuntimeError):
    """What makes the original run in place of the graph."""


def function(pair: GradientPair, bare: bool = True) -> Callable[..., Any]:
    """See :class:`~dyncomp.frontends.base.Autograd`. ``bare``: a single result is given as it is."""
    if not pair.differentiable:
        return _returning(pair, pair.forward, bare)
    return _recorded(_returning(pair, _apply(pair), bare))


def _returning(pair: GradientPair, apply: Callable[..., Sequence[Any]], bare: bool) -> Callable[..., Any]:
    """What the graph's caller gets of ``apply``: writes are made, and views of results."""
    returned, count = pair.returned, len(pair.returned)
    single = bare and count == 1
    if returned == tuple(range(count)) and not pair.written:
        if single:
            return lambda *args: apply(*args)[0]
        return lambda *args: apply(*args)[:count]
    targets = tuple(index for index, _ in pair.written)

    def call(*args: Any) -> Any:
        for index in targets:
            _check_writable(args[index])
        results = apply(*args)
        for index, result in pair.written:
            args[index].copy_(results[result])
        made = tuple([results[r] if type(r) is int else _view(r, args, results) for r in returned])
        return made[0] if single else made

    return call


def _recorded(call: Callable[..., Any]) -> Callable[..., Any]:
    """Grad mode may be off around captured code, and on in a block that results have their gradients of."""
    if torch.is_grad_enabled():
        return call

    def recorded(*args: Any) -> Any:
        with torch.enable_grad():
            return call(*args)

    return recorded


def _check_writable(tensor: Any) -> None:
    """The original runs, and raises, where autograd lets nobody write to a tensor; views may be such."""
    if tensor.is_leaf and tensor.requires_grad or tensor._base is not None or tensor.is_inference():
        raise _CannotRun("a write to a leaf that requires grad, or to a view")


def _view(view: Any, args: Sequence[Any], results: Sequence[Any]) -> Any:
    """A result that is a view, made by autograd's own function."""
    assert isinstance(view, OutputView)
    base = (args if view.of_input else results)[view.index]
    if view.stopped:
        base = base.detach()
    shape, strides, offset = view.window(results)
    return base.as_strided(shape, strides, base.storage_offset() + offset)


def _apply(pair: GradientPair) -> Callable[..., Sequence[Any]]:
    """``apply`` of the graph's function: its results, and behind them the saved values with derivatives."""
    run, symbols = pair.forward, pair.symbols
    count = pair.count
    hidden = tuple(k for k in pair.differentiable if k >= count)
    others = tuple(k for k in range(count) if k not in pair.differentiable)
    numbers = (*range(count), *hidden)  # of the outputs of the graph
    saved, rewritten = pair.saved, pair.rewritten
    known: dict[tuple[Any, ...], PairBackward | None] = {}
    again: dict[tuple[Any, ...], Callable[..., Sequence[Any]]] = {}

    def forward(ctx: Any, *args: Any) -> Any:
        found = run(*args)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*[args[k] if is_input else found[k] for is_input, k in saved])
        if others:
            ctx.mark_non_differentiable(*[found[k] for k in others if isinstance(found[k], torch.Tensor)])
        if rewritten:  # whatever is in them by then
            ctx.rewritten = {k: args[k] for k in rewritten}
            ctx.tensors = [k for k, x in enumerate(args) if isinstance(x, torch.Tensor)]
        if symbols is not None:
            ctx.symbols = symbols(args, found)
        return tuple([found[k] for k in numbers])

    def backward(ctx: Any, *cotangents: Any) -> Any:
        wanted = _asked_for(ctx) if rewritten else ctx.needs_input_grad
        return gradients_by(ctx, wanted, cotangents)

    def gradients_by(ctx: Any, wanted: Sequence[bool], cotangents: Sequence[Any]) -> Any:
        key = (*[c is None for c in cotangents], *wanted)
        if key not in known:
            there = dict(zip(numbers, cotangents))
            given = [there.get(k) is not None for k in range(max(numbers) + 1)]
            known[key] = pair.backward(given, wanted)
        chosen = known[key]
        gradients = [None] * len(wanted)
        if chosen is None:
            return tuple(gradients)
        values = ctx.saved_tensors
        inputs = [values[k] for k in chosen.saved]
        inputs += [c.contiguous() for c in cotangents if c is not None]
        inputs += [ctx.rewritten[k] for k in chosen.rewritten]
        if chosen.integers:
            inputs += [ctx.symbols[name] for name in chosen.integers]
        if grad_mode():
            found = differentiable(key, chosen)(*inputs)
        else:
            # unless the engine keeps the graph, only the list holds what is saved from here on
            ctx.maybe_clear_saved_tensors()
            del values
            found = chosen.consume(inputs)
        for k, gradient in zip(chosen.wrt, found):
            gradients[k] = gradient
        return tuple(gradients)

    def differentiable(key: tuple[Any, ...], chosen: PairBackward) -> Callable[..., Sequence[Any]]:
        """The backward graph as one with derivatives (``create_graph=True``)."""
        if key not in again:
            pair = chosen.again()
            again[key] = chosen.run if pair is None else function(pair, bare=False)
        return again[key]

    grad_mode = torch.is_grad_enabled
    whole = autograd_function(forward, backward)
    return in_buckets(pair, numbers, whole, forward, gradients_by)


def _asked_for(ctx: Any) -> list[bool]:
    """The inputs whose gradients this backward pass asks for; ``needs_input_grad`` has all that could be."""
    wanted = list(ctx.needs_input_grad)
    for place, (node, _) in zip(ctx.tensors, ctx.next_functions, strict=True):
        wanted[place] = node is not None and _runs(node)
    return wanted


def _runs(node: Any) -> bool:
    try:
        return bool(torch._C._will_engine_execute_node(node))
    except RuntimeError:  # a leaf that torch.autograd.grad asks for
        return True


class _Spent(torch.autograd.Function):
    """What a ``backward`` leaves of the history of a result: an error."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, anchor: Any) -> Any:
        ctx.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        raise RuntimeError(_FREED)


_FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have "
    "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
    "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or "
    "if you need to access saved tensors after calling backward."
)


def spent(call: Callable[..., Any], places: Sequence[int], count: int) -> Callable[..., Any]:
    """See :class:`~dyncomp.frontends.base.Autograd`."""
    anchor = torch.zeros((), requires_grad=True)
    mark = super(torch.autograd.Function, _Spent).apply

    if count == 1:
        return lambda *args: mark(call(*args), anchor)

    def marking(*args: Any) -> Any:
        results = list(call(*args))
        for place in places:
            results[place] = mark(results[place], anchor)
        return tuple(results)

    return marking
