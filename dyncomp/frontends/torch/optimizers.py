"""``torch.optim`` and ``clip_grad_norm_``: what of their Python is followed in another form.

An optimizer's loop over parameters is followed as the library writes it for single tensors, which one graph
makes as fast as any other form. The state is made by the first step, in plain Python.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from ..base import TraceContext
from .inplace import TABLE as WRITING
from .library import torch
from .torch_rules import RuleTable

TABLE = RuleTable()
_refuse = TABLE.refusal("an optimizer with these settings")
_MODULES = {name: module for name, module in sys.modules.items() if name.startswith("torch.optim.")}
_library = _MODULES["torch.optim.optimizer"]
_groups = torch.utils._foreach_utils


# -- wrappers, known by their code -----------------------------------------------------------------------
def _in_grad_mode(function: Callable[..., Any]) -> Callable[..., Any]:
    """A ``step`` under ``_use_grad_for_differentiable``."""

    def step(*args: Any, **kwargs: Any) -> Any:
        with torch.set_grad_enabled(args[0].defaults["differentiable"]):
            return function(*args, **kwargs)

    return step


def _not_disabled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that another compiler of torch must not see."""
    return function


# By the code of a wrapper: the free variable that holds what it wraps, and what is followed in its place.
_WRAPPERS: dict[types.CodeType, tuple[str, Callable[[Any], Callable[..., Any]]]] = {
    _library._use_grad_for_differentiable(_refuse).__code__: ("func", _in_grad_mode),
    torch._disable_dynamo(_refuse).__code__: ("fn", _not_disabled),
}


def stand_in_for(fn: Any) -> Callable[..., Any] | None:
    """What is followed in the place of a wrapper."""
    known = _WRAPPERS.get(fn.__code__) if type(fn) is types.FunctionType else None
    if known is None:
        return None
    name, make = known
    return make(fn.__closure__[fn.__code__.co_freevars.index(name)].cell_contents)


# -- functions -----------------------------------------------------------------------------------------------
def _current_accelerator() -> Any:
    """The accelerator that is there, or ``None``."""
    return None


def _health_check(self: Any) -> None:
    """In place of the look at whether a device records what it is given."""
    if _current_accelerator() is not None:
        if torch._C._cuda_isCurrentStreamCapturing():
            _refuse()
        if not self._warned_capturable_if_run_uncaptured:
            _refuse()


def current_accelerator(tx: TraceContext) -> Any:
    return torch.accelerator.current_accelerator(check_available=True)


def _grouped(tensorlistlist: Any, with_indices: bool = False) -> Any:
    """In place of the library's function in C++."""
    groups: dict[Any, Any] = {}
    for index, first in enumerate(tensorlistlist[0]):
        key = (first.device, first.dtype)
        if key not in groups:
            groups[key] = ([[] for _ in tensorlistlist], [])
        lists, indices = groups[key]
        for found, given in zip(lists, tensorlistlist):
            if given:
                found.append(given[index])
        if with_indices:
            indices.append(index)
    return groups


def _single_tensor_radam(
    params: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, state_steps: Any, **settings: Any
) -> None:
    """As the library's, whose branch on the number of steps is a choice here."""
    beta1, beta2 = settings["beta1"], settings["beta2"]
    lr, weight_decay, eps = settings["lr"], settings["weight_decay"], settings["eps"]
    if settings["capturable"] or settings["differentiable"] or settings["has_complex"]:
        _refuse()
    lr = _library._to_scalar(lr)
    for i, param in enumerate(params):
        grad = grads[i] if not settings["maximize"] else -grads[i]
        exp_avg, exp_avg_sq = exp_avgs[i], exp_avg_sqs[i]
        state_steps[i].add_(1)
        step = state_steps[i].double()
        if weight_decay != 0:
            if settings["decoupled_weight_decay"]:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        bias_correction2 = 1 - beta2**step
        rho_inf = 2 / (1 - beta2) - 1
        rho_t = rho_inf - 2 * step * (beta2**step) / bias_correction2
        rest = (rho_inf - 4) * (rho_inf - 2) * rho_t
        rect = ((rho_t - 4) * (rho_t - 2) * rho_inf / rest) ** 0.5
        root = exp_avg_sq.sqrt().add_(eps)
        update = exp_avg / (1 - beta1**step).to(exp_avg.dtype) * lr
        adapted = update * (bias_correction2**0.5).to(root.dtype) / root * rect.to(root.dtype)
        param.add_(torch.where(rho_t > 5.0, adapted, update), alpha=-1.0)


def _fused(single: Callable[..., Any]) -> Callable[..., Any]:
    """In place of a kernel of the library's for all parameters: the same step, written for one."""

    def step(*args: Any, grad_scale: Any = None, found_inf: Any = None, **settings: Any) -> Any:
        if grad_scale is not None or found_inf is not None:
            _refuse()
        return single(*args, grad_scale=None, found_inf=None, **settings)

    return step


def _itself(single: Callable[..., Any]) -> Callable[..., Any]:
    return single


_FORMS = {"_multi_tensor": _itself, "_fused": _fused}


def _stand_ins() -> dict[Any, Callable[..., Any]]:
    found: dict[Any, Callable[..., Any]] = {}
    for module in _MODULES.values():
        for name, function in vars(module).items():
            for form, made in _FORMS.items():
                single = vars(module).get(name.replace(form, "_single_tensor"))
                if name.startswith(form) and isinstance(single, types.FunctionType):
                    found[function] = made(single)
    return {**found, _MODULES["torch.optim.radam"]._single_tensor_radam: _single_tensor_radam}


OTHER_FORMS = _stand_ins()  # which round otherwise
STAND_INS = {
    _library.Optimizer._accelerator_graph_capture_health_check: _health_check,
    _groups._group_tensors_by_device_and_dtype: _grouped,
    **OTHER_FORMS,
}


# -- functions of lists of tensors ---------------------------------------------------------------------------
def _each(name: str) -> Callable[..., Any]:
    """``torch._foreach_<name>``: the method of each tensor, with its own of what is given in lists."""
    rule = WRITING.methods[name]

    def of_each(tx: TraceContext, tensors: list[Any], *args: Any) -> None:
        for k, x in enumerate(tensors):
            rule(tx, x, *[a[k] if type(a) in (list, tuple) else a for a in args])

    return of_each


for _name in ("add_", "sub_", "mul_", "div_", "zero_", "clamp_min_", "clamp_max_"):
    TABLE.function(f"_foreach_{_name}")(_each(_name))


TABLE.functions.update({_current_accelerator: current_accelerator})
