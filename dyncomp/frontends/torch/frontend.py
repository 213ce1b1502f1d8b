"""The torch frontend: finds the rule of a callable, method, attribute or operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from ...errors import Unsupported
from ..base import ArrayFacts, ArrayRef, Rule, StateGuard, TraceContext
from . import (
    attributes,
    autocast,
    autograd_grad,
    backends,
    backward,
    checkpoints,
    complex_numbers,
    distributions,
    gradients,
    operators,
    optimizers,
    profiling,
    scans,
    sparse,
    state,
    torch_facts,
    transformer,
    vmap,
)
from .autograd_functions import implementation
from .calls import add_routines, routine_in_modes
from .gradients import under_autograd
from .library import torch
from .owner import OWNER
from .placement import placed
from .torch_rules import RuleTable
from .whole_calls import call_whole

_MODULES = (
    "pointwise",
    "reductions",
    "shape",
    "indexing",
    "data_dependent",
    "create",
    "random",
    "dropout",
    "distributions",
    "linear",
    "functional",
    "activations",
    "normalization",
    "pooling",
    "resampling",
    "convolution",
    "inplace",
    "attributes",
    "autograd_functions",
    "autograd_grad",
    "backward",
    "norms",
    "optimizers",
    "checkpoints",
    "packed_sequences",
    "recurrent",
    "scans",
    "sparse",
    "transformer",
    "vmap",
    "losses",
    "complex_numbers",
)
_CONSTANT_TYPES: tuple[type, ...] = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_CONSTANT_TYPES += (torch.finfo, torch.iinfo)
_CONSTANT_TYPES += (type(torch._VF),)  # a module that hands on attributes of another
_CONSTANT_TYPES += (*operators.OPERATORS, *operators.NAMESPACES)
_STAND_INS_OF = f"{__package__}."  # the module names of stand-ins begin so
_STAND_INS = {
    **attributes.STAND_INS,
    **checkpoints.STAND_INS,
    **distributions.STAND_INS,
    **autograd_grad.STAND_INS,
    **backward.STAND_INS,
    **optimizers.STAND_INS,
    **transformer.STAND_INS,
}
_MEMBER_DICTS = ("_parameters", "_buffers", "_modules")


class TorchFrontend:
    """Implements :class:`~dyncomp.frontends.base.Frontend` for ``torch``: dense tensors."""

    name = "torch"
    array_types: tuple[type, ...] = torch_facts.ARRAY_TYPES
    owner = OWNER
    hashes_identity = True  # a tensor's hash is its identity's
    takes_numbers_on_cpu = True  # beside tensors on a GPU

    @cached_property
    def rules(self) -> RuleTable:
        """All rules, collected at first use."""
        collected = RuleTable()
        for name in _MODULES:
            collected.update(import_module(f"{__package__}.{name}").TABLE)
        add_routines(collected)
        return collected

    def describe(self, obj: object) -> ArrayFacts:
        return torch_facts.describe(obj)

    parts_of = staticmethod(sparse.parts_of)
    rule_of_parts = staticmethod(sparse.rule_of_parts)

    def find_function(self, fn: object) -> Rule | None:
        try:
            rule = self.rules.functions.get(fn)
        except TypeError:  # unhashable
            return None
        if rule is not None and getattr(fn, "__module__", "").startswith(__package__):
            return rule  # what functions that stand in for torch's are made of
        rule = complex_numbers.function_rule(rule, fn) or operators.rule_of(fn)
        return None if rule is None else _wrapped(rule, getattr(fn, "__name__", ""), fn)

    def find_method(self, ref: ArrayRef, name: str) -> Rule | None:
        rule = complex_numbers.method_rule(self.rules.methods.get(name), name)
        return None if rule is None else _wrapped(rule, name)

    def find_attribute(self, ref: ArrayRef, name: str) -> Rule | None:
        rule = self.rules.attributes.get(name)
        if rule is None:
            return None
        return under_autograd(placed(complex_numbers.attribute_rule(rule, name), name), name)

    def keeps(self, name: str) -> bool:
        return name == "grad"

    def python_method(self, name: str) -> Any:
        return backward.METHODS.get(name)

    def is_spent(self, tx: TraceContext, ref: ArrayRef) -> bool:
        return backward.is_spent(tx, ref)

    def find_operator(self, name: str) -> Rule | None:
        rule = self.rules.operators.get(name)
        return None if rule is None else _wrapped(complex_numbers.operator_rule(rule, name), name)

    call_whole = staticmethod(call_whole)

    def accepts(self, pytype: type) -> bool:
        return issubclass(pytype, torch.Tensor)

    def selected(self, tx: TraceContext, ref: ArrayRef) -> ArrayRef:
        raise Unsupported("what a mask selects of a tensor")

    def pytype(self, ref: ArrayRef) -> type:
        return torch.Tensor if ref.kind != "python" else type(ref.dtype.numpy.type().item())

    def is_inert_context(self, cls: type, kwargs: dict[str, Any]) -> bool:
        return vmap.has_tensors_as_indices(cls)

    def records(self, setting: tuple[str, str, Any]) -> bool:
        return gradients.turns_on(setting)

    def with_history(self, obj: Any, facts: ArrayFacts) -> ArrayFacts:
        return replace(facts, extra=(("requires_grad", bool(obj.requires_grad)),))

    def requires_gradient(self, tx: TraceContext, ref: ArrayRef) -> bool:
        return gradients.requires(tx, ref.var)

    def stays_inside(self, tx: TraceContext, ref: ArrayRef) -> bool:
        return gradients.is_leaf_only(tx, ref.var)

    def mode_of(
        self, cls: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[str, str, Any] | None:
        if not isinstance(cls, type):
            return backends.mode_of(cls, args, kwargs)
        for block in (profiling, autocast, gradients):
            found = block.mode_of(cls, args, kwargs)
            if found is not None:
                return found
        return None

    def acts_when_made(self, cls: Callable[..., Any]) -> bool:
        return cls is torch.set_grad_enabled or not isinstance(cls, type)

    def enters_as_itself(self, cls: Callable[..., Any]) -> bool:
        return cls in autocast.CLASSES or cls in profiling.CLASSES

    def mode_attributes(self, cls: type) -> tuple[str, ...]:
        return ("device", "fast_dtype", "_enabled", "_cache_enabled") if cls in autocast.CLASSES else ()

    def implementation_of(self, fn: object) -> Any:
        return implementation(fn)

    def stand_in_for(self, fn: object, same_bits: bool = False) -> Any:
        if same_bits and fn in optimizers.OTHER_FORMS:
            return None
        found = _STAND_INS.get(fn) or optimizers.stand_in_for(fn) or scans.stand_in_for(fn)
        return found or vmap.stand_in_for(fn)

    def unrolls(self, module: str) -> bool:
        return module.partition(".")[0] == "torch" or module.startswith(_STAND_INS_OF)

    def varies(self, names: Sequence[str]) -> bool:
        """Learning rates, which schedules set, and the schedules' own counters."""
        return tuple(names[:2]) == ("lr", "param_groups") or names[:1] in (["last_epoch"], ["_step_count"])

    def state_guard(self) -> StateGuard:
        now = state.read_state()
        return StateGuard(state.holds, now, state.describe_state(now))

    def stored_member(self, obj: object, name: str) -> tuple[str, ...] | None:
        """As ``nn.Module.__getattr__`` searches."""
        if not isinstance(obj, torch.nn.Module) or type(obj).__getattr__ is not torch.nn.Module.__getattr__:
            return None
        for count, store in enumerate(_MEMBER_DICTS, 1):
            members = vars(obj).get(store)
            if type(members) is dict and name in members:
                return _MEMBER_DICTS[:count]
        return None

    def module_behind(self, module: ModuleType) -> ModuleType | None:
        return vars(module)["m"] if isinstance(module, torch.backends.PropModule) else None

    def is_constant(self, obj: object) -> bool:
        return issubclass(type(obj), _CONSTANT_TYPES) or obj is torch.Tensor or obj is torch.Size

    def parts_of_constant(self, obj: object) -> tuple[tuple[str, Any], ...]:
        if type(obj) is not torch.device:
            return ()
        return tuple((name, getattr(obj, name)) for name in ("type", "index"))


def _wrapped(rule: Rule, name: str, function: Any = None) -> Rule:
    cast = autocast.under_autocast(rule, name, routine_in_modes, function)
    return under_autograd(_of_machine_integers(placed(cast, name)), name)


def _of_machine_integers(rule: Rule) -> Rule:
    """``rule``, but for the integers that torch itself raises for, or takes for something else."""

    @wraps(rule)  # what is known of arguments is told by the rule's names for them
    def check(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        _check_integers([*args, *kwargs.values()])
        return rule(tx, *args, **kwargs)

    return check


def _check_integers(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise Unsupported("an integer of more than 64 bits")
        if type(value) in (list, tuple):
            _check_integers(value)
