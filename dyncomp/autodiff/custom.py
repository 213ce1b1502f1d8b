"""Functions that say how they are differentiated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..capture.environment.regions import captured_whole, is_compiling
from ..frontends.derivatives import PLAIN
from . import traced

Function = Callable[..., Any]


class custom_vjp:
    """A function with a gradient of its own: a decorator of ``f``, a function of positional arguments.

    ``defvjp(forward, backward)``: ``forward(*args)`` gives ``(f(*args), residuals)``, ``backward(residuals,
    cotangent)`` a tuple with one gradient for each argument, in its form (``None``: zero). Both are used
    where ``f`` is called in captured code, whose gradients are then these; elsewhere ``f`` runs. There is no
    derivative in forward mode.

    Raises ``TypeError`` and ``ValueError`` where ``backward`` gives gradients of another number or shape.
    """

    def __init__(self, f: Function) -> None:
        functools.update_wrapper(self, f)
        self._function = f
        self._call: Function | None = None
        self._parts: tuple[Function, Function] | None = None

    def defvjp(self, forward: Function, backward: Function) -> None:
        name = getattr(self._function, "__qualname__", "a custom_vjp function")
        self._parts = forward, backward
        self._call = traced.with_own_gradient(forward, backward, name)

    def __call__(self, *args: Any) -> Any:
        if is_compiling() and self._call is not None:
            return self._call(*args)
        recorder = PLAIN.recorder
        if recorder is not None and self._parts is not None:
            return recorder.custom(*self._parts, args, getattr(self, "__qualname__", "a custom_vjp function"))
        return self._function(*args)


@captured_whole
def checkpoint(f: Function) -> Function:
    """``f``, with less memory and more time for its derivative: what ``f`` computes on the way to its results
    is not kept for the backward pass but computed again there. Where ``f`` does not run in captured code,
    it is ``f``. Its results are floating-point arrays or trees of such (else ``TypeError``)."""
    again = traced.computed_again(f, getattr(f, "__qualname__", "a function"))

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return again(*args, **kwargs) if is_compiling() else f(*args, **kwargs)

    return checkpointed if is_compiling() else functools.wraps(f, updated=())(checkpointed)
