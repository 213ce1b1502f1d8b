"""``functools.update_wrapper`` (and so ``functools.wraps``) of functions made in the frame."""

from __future__ import annotations

import functools

from ..breaks import Break
from ..values.base import Codegen, Tracer, Value
from ..values.cached import CachedFunctionValue
from ..values.func import FunctionValue, NestedFunctionValue
from .registry import builtin

_COPIED = ("__module__", "__name__", "__qualname__", "__doc__")
_KNOWN = (*_COPIED, "__wrapped__", "__annotations__")


class AnnotationsValue(Value):
    """The very dict of annotations of a function, which its wrapper shares."""

    def __init__(self, function: Value) -> None:
        self.function = function

    @property
    def pytype(self) -> type:
        return dict

    def children(self) -> tuple[Value, ...]:
        return (self.function,)

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.value(self.function)}.__annotations__"


@builtin(functools.update_wrapper)
def _update_wrapper(
    tracer: Tracer,
    wrapper: Value,
    wrapped: Value,
    assigned: Value | None = None,
    updated: Value | None = None,
) -> Value:
    usual = _is_constant(tracer, assigned, functools.WRAPPER_ASSIGNMENTS)
    usual = usual and _is_constant(tracer, updated, functools.WRAPPER_UPDATES)
    if usual and isinstance(wrapper, CachedFunctionValue) and _is_simple(wrapped):
        return _cached(tracer, wrapper, wrapped)
    if not usual or not isinstance(wrapper, NestedFunctionValue) or not _is_simple(wrapped):
        raise Break("unsupported-call", f"update_wrapper of {wrapper.describe()}")
    if isinstance(wrapped, NestedFunctionValue):
        for name in [n for n in wrapped.written if not n.startswith("__")]:
            wrapper.setattr(tracer, name, wrapped.written[name])
    wrapper.annotations = None
    wrapper.written["__annotations__"] = AnnotationsValue(wrapped)
    for name in _COPIED:
        wrapper.setattr(tracer, name, tracer.realize(wrapped.getattr(tracer, name)))
    wrapper.setattr(tracer, "__wrapped__", wrapped)
    return wrapper


def _cached(tracer: Tracer, wrapper: CachedFunctionValue, wrapped: Value) -> Value:
    """As ``lru_cache`` does it: made anew, the object gets all of this again."""
    written = wrapped.written if isinstance(wrapped, NestedFunctionValue) else {}
    if any(not name.startswith("__") for name in written):
        raise Break("unsupported-call", f"lru_cache of {wrapped.describe()} with attributes of its own")
    for name in _COPIED:
        wrapper.setattr(tracer, name, tracer.realize(wrapped.getattr(tracer, name)))
    wrapper.setattr(tracer, "__wrapped__", wrapped)
    return wrapper


def _is_constant(tracer: Tracer, value: Value | None, expected: tuple[str, ...]) -> bool:
    return value is None or tracer.constant_of(value, "an argument of update_wrapper") == expected


def _is_simple(wrapped: Value) -> bool:
    """Whether no more is to be copied from a function than its names, annotations and simple attributes."""
    if isinstance(wrapped, NestedFunctionValue):
        return not any(name.startswith("__") for name in wrapped.written if name not in _KNOWN)
    if not isinstance(wrapped, FunctionValue):
        return False
    return not vars(wrapped.function) and not getattr(wrapped.function, "__type_params__", ())
