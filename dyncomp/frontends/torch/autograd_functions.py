"""``torch.autograd.Function.apply`` where no gradient is asked for: its ``forward`` is followed."""

from __future__ import annotations

import types
from typing import Any

from ...errors import Unsupported
from ..base import TraceContext
from . import state
from .library import torch
from .torch_rules import RuleTable

TABLE = RuleTable()

Function = torch.autograd.Function
_DEFAULT_SETUP = Function.setup_context


class Context:
    """What a ``forward`` that is followed writes down for a ``backward`` that will not be called."""

    def __init__(self, inputs: tuple[Any, ...]) -> None:
        self.inputs = inputs
        self.dirty_tensors: tuple[Any, ...] = ()

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        return tuple([isinstance(x, torch.Tensor) and x.requires_grad for x in self.inputs])

    def save_for_backward(self, *tensors: object) -> None:
        self.to_save = tensors

    def save_for_forward(self, *tensors: object) -> None:
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: object) -> None:
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: object) -> None:
        self.non_differentiable = args

    def set_materialize_grads(self, value: object) -> None:
        self.materialize_grads = value


def _given_out(result: object, args: tuple[Any, ...], dirty: tuple[Any, ...]) -> Any:
    """A result: an argument that was not written to is given back as another tensor over its memory."""
    if not isinstance(result, torch.Tensor):
        return result
    for tensor in dirty:
        if result is tensor:
            return result
    for argument in args:
        if result is argument:
            return result.view_as(result)
    return result


def _applied(cls: Any) -> Any:
    """``cls.apply`` in Python, which looks its methods up each time, as that does."""

    def apply(*args: Any, **kwargs: Any) -> Any:
        context = Context(args)
        if cls.setup_context is _DEFAULT_SETUP:
            found = cls.forward(context, *args, **kwargs)
        else:
            found = cls.forward(*args, **kwargs)
            cls.setup_context(context, args, found)
        if type(found) is tuple:
            return tuple([_given_out(result, args, context.dirty_tensors) for result in found])
        return _given_out(found, args, context.dirty_tensors)

    return apply


def implementation(fn: object) -> Any:
    """What can be followed in place of ``fn``, if that is ``apply`` of an autograd function's C class."""
    if type(fn) is not types.BuiltinMethodType or fn.__name__ != "apply" or torch.is_grad_enabled():
        return None
    cls: Any = fn.__self__
    if type(cls) is not type(Function) or not issubclass(cls, Function) or state.problem(state.read_state()):
        return None
    plain = isinstance(cls.forward, types.FunctionType) and isinstance(cls.setup_context, types.FunctionType)
    return _applied(cls) if plain else None


@TABLE.function("_C._are_functorch_transforms_active")
def transforms_are_active(tx: TraceContext) -> bool:
    """``False``: the tensors of transforms are no tensors to guards (looked for at capture only)."""
    if torch._C._are_functorch_transforms_active():
        raise Unsupported("a transform of functions is active")
    return False


@TABLE.function("_C._functorch.unwrap_if_dead")
def unwrap_if_dead(tx: TraceContext, tensor: object) -> Any:
    """Captured tensors are wrapped by no transform."""
    return tensor
