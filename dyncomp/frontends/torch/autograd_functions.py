"""``torch.autograd.Function.apply``: ``forward`` is followed and, where an argument requires a gradient,
``backward`` too, of stand-ins for the cotangents (``custom_function`` in ``prims/markers.py``).

What cannot be followed, or would be seen to have run with ``forward``, breaks the graph.
"""

from __future__ import annotations

import enum
import inspect
import types
from collections.abc import Sequence
from typing import Any

from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.markers import FUNCTION
from ..base import ArrayRef, TraceContext
from . import autocast, state
from .gradients import requires
from .library import torch
from .operands import need_tensor, tensor
from .regions import COPIED, Region, Window, windows_of
from .torch_rules import RuleTable

TABLE = RuleTable()
_refuse = TABLE.refusal("an autograd.Function with mark_dirty, or backward with other results than expected")
_refuse_objects = TABLE.refusal("an autograd.Function of objects that may change before its backward")

Function = torch.autograd.Function
_DEFAULT_SETUP = Function.setup_context
_ONCE = torch.autograd.function.once_differentiable(lambda ctx: None).__code__
_DEFAULT_VJP = Function.vjp
# before torch 2.14 Python's part of ``apply`` binds arguments
_BINDS = isinstance(Function.apply, types.BuiltinMethodType)


class Context:
    """What a ``forward`` that is followed writes down for ``backward``."""

    def __init__(self, inputs: tuple[Any, ...]) -> None:
        self.inputs = inputs
        self.dirty_tensors: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.materialize_grads: object = True
        self.to_save: tuple[Any, ...] = ()

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        return tuple([isinstance(x, torch.Tensor) and x.requires_grad for x in self.inputs])

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self.to_save

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
    if _is_in(result, dirty):
        return result
    for argument in args:
        if result is argument:
            return result.view_as(result)
    return result


def _applied(cls: Any) -> Any:
    """``cls.apply`` in Python, which looks its methods up each time, as that does."""

    def apply(*args: Any, **kwargs: Any) -> Any:
        if _BINDS and cls.setup_context is not _DEFAULT_SETUP:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, {}
        context = Context(args)
        is_recorded = torch.is_grad_enabled() and any(context.needs_input_grad)
        number = _begin()
        with torch.no_grad():
            if cls.setup_context is _DEFAULT_SETUP:
                found = cls.forward(context, *args, **kwargs)
            else:
                found = cls.forward(*args, **kwargs)
                cls.setup_context(context, args, found)
            if not is_recorded:
                if type(found) is tuple:
                    return tuple([_given_out(result, args, context.dirty_tensors) for result in found])
                return _given_out(found, args, context.dirty_tensors)
        results = found if type(found) is tuple else (found,)
        marked = _with_gradient(cls, context, results, number)
        return marked if type(found) is tuple else marked[0]

    return apply


def _with_gradient(cls: Any, context: Context, results: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    """The results, with the gradients that ``backward`` gives."""
    if any(_may_change(x) for x in context.inputs):
        _refuse_objects()  # backward sees them as they are when it runs
    chosen = [r for r in results if _is_differentiable(r, context.non_differentiable)]
    if context.dirty_tensors or (not context.materialize_grads and len(chosen) > 1):
        _refuse()
    if not chosen:
        return results
    stand_ins = _stand_ins(chosen, number)
    rest = [*stand_ins]
    cotangents = [None if not _is_in(r, chosen) else rest.pop(0) for r in results]
    given = cls.backward(context, *cotangents)
    gradients = given if type(given) is tuple else (given,)
    count = len(context.inputs)
    if len(gradients) < count or any(g is not None for g in gradients[count:]):
        _refuse()
    marked = _marked(number, [*gradients[:count]], [*context.inputs])
    return tuple([marked.pop(0) if _is_in(r, chosen) else r for r in results])


def _may_change(x: object) -> bool:
    """Whether an argument is an object that is handed on, with attributes or items of its own."""
    if isinstance(x, dict):
        return True
    plain = isinstance(x, (torch.Tensor, type, types.FunctionType, types.ModuleType, enum.Enum))
    return not plain and hasattr(x, "__dict__")


def _is_in(tensor: object, tensors: Sequence[object]) -> bool:
    return any(tensor is other for other in tensors)


def _is_differentiable(result: object, others: tuple[Any, ...]) -> bool:
    if not isinstance(result, torch.Tensor) or _is_in(result, others):
        return False
    return result.is_floating_point() or result.is_complex()


# -- what these are made of ---------------------------------------------------------------------------------
def _begin() -> int:
    """Where ``forward`` begins."""
    return 0


def _stand_ins(results: list[Any], number: int) -> list[Any]:
    """Values that cotangents of the results will take the place of."""
    return results


def _marked(number: int, gradients: list[Any], args: list[Any]) -> list[Any]:
    """The results that there are stand-ins for, with these gradients by the arguments."""
    return gradients


class _Marking:
    """The results of one call: as views of values, and the stand-ins for the cotangents of those."""

    def __init__(self, tx: TraceContext, windows: list[Window]) -> None:
        self.windows = windows
        self.stand_ins = [_zeros(tx, window.base) for window in windows]
        self.backward = Region.begin(tx)


def _zeros(tx: TraceContext, like: Var) -> Var:
    found: Var = tx.ops.full(shape=like.shape, value=0.0, dtype=like.dtype, device=like.type.device)
    return found


def begin(tx: TraceContext) -> int:
    number = len(tx.builder.nodes)
    tx.memo[FUNCTION, number] = Region.begin(tx)
    return number


def stand_ins(tx: TraceContext, results: list[Any], number: int) -> list[ArrayRef]:
    if autocast.is_on(tx):
        raise Unsupported("an autograd.Function under autocast, which is off for its backward as a rule")
    found = [need_tensor(r) for r in results]
    windows = windows_of(tx, found, tx.memo[FUNCTION, number], "forward of an autograd.Function")
    if any(node.op not in _ONE_TO_ONE for window in windows for node in window.views):
        raise Unsupported("forward of an autograd.Function returns a view of something larger")
    made = tx.memo[FUNCTION, number, "marking"] = _Marking(tx, windows)
    given = [tensor(w.on(tx, v)) for w, v in zip(windows, made.stand_ins)]
    made.backward = Region.begin(tx)
    return given


_ONE_TO_ONE = frozenset(("transpose", "reshape", "stop_gradient"))


def marked(tx: TraceContext, number: int, gradients: list[Any], args: list[Any]) -> list[ArrayRef]:
    marking = tx.memo[FUNCTION, number, "marking"]
    what = "backward of an autograd.Function"
    marking.backward.check(tx, what)
    marking.backward.check_draws(tx, what)
    made, by = [], []
    for gradient, argument in zip(gradients, args, strict=True):
        if not isinstance(argument, ArrayRef):
            if gradient is not None:
                raise Unsupported(f"{what} gives a gradient by what is no tensor")
        elif requires(tx, argument.var) and gradient is not None:
            made.append(_like(gradient, argument, what))
            by.append(argument.var)
    values = [window.base for window in marking.windows]
    found = tx.builder.emit(FUNCTION, *values, *marking.stand_ins, *made, *by, outputs=len(values))
    found = found if isinstance(found, tuple) else (found,)
    copies = tx.memo.get(COPIED, set())
    copies.update([v.name for value, v in zip(values, found) if value.name in copies])
    return [tensor(window.on(tx, v)) for window, v in zip(marking.windows, found)]


def _like(gradient: object, argument: ArrayRef, what: str) -> Var:
    found = need_tensor(gradient).var
    wanted = argument.var
    if found.dtype != wanted.dtype or len(found.shape) != len(wanted.shape):
        raise Unsupported(f"{what} gives a gradient of another type or shape")
    if not all(a == b for a, b in zip(found.shape, wanted.shape)):
        raise Unsupported(f"{what} gives a gradient of another shape")
    return found


TABLE.functions.update({_begin: begin, _stand_ins: stand_ins, _marked: marked})


def implementation(fn: object) -> Any:
    """What can be followed in place of ``fn``, if that is ``apply`` of an autograd function's C class."""
    if type(fn) is not types.BuiltinMethodType or fn.__name__ != "apply":
        return None
    cls: Any = fn.__self__
    if type(cls) is not type(Function) or not issubclass(cls, Function) or state.problem(state.read_state()):
        return None
    plain = isinstance(cls.forward, types.FunctionType) and isinstance(cls.setup_context, types.FunctionType)
    if torch.is_grad_enabled():
        backward = cls.backward if cls.vjp is _DEFAULT_VJP else None
        # a second derivative through what is differentiable once raises
        plain = plain and isinstance(backward, types.FunctionType) and backward.__code__ is not _ONCE
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
