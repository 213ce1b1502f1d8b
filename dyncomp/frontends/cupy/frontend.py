"""The CuPy frontend: finds the rule of a callable, method, attribute or operator."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from ...errors import Unsupported
from ..base import ArrayFacts, ArrayRef, Rule, StateGuard, TraceContext, WithoutDerivatives
from . import cupy_facts
from .cupy_rules import RuleTable
from .library import cupy
from .owner import OWNER

_MODULES = ("ufuncs", "indexing", "functions")


class CupyFrontend(WithoutDerivatives):
    """Implements :class:`~dyncomp.frontends.base.Frontend` for ``cupy``."""

    name = "cupy"
    array_types: tuple[type, ...] = (cupy.ndarray,)
    owner = OWNER

    @cached_property
    def rules(self) -> RuleTable:
        """All rules, collected at first use."""
        collected = RuleTable()
        for name in _MODULES:
            collected.update(import_module(f"{__package__}.{name}").TABLE)
        return collected

    def describe(self, obj: object) -> ArrayFacts:
        return cupy_facts.describe(obj)

    def find_function(self, fn: object) -> Rule | None:
        try:
            return self.rules.functions.get(fn)
        except TypeError:  # unhashable
            return None

    def find_counterpart(self, fn: object) -> Rule | None:
        """The rule of what a function of NumPy calls for CuPy's arrays (``__array_function__`` and
        ``__array_ufunc__``): CuPy's of the same name."""
        name = getattr(fn, "__name__", "")
        if not name or getattr(np, name, None) is not fn:
            return None
        return self.find_function(getattr(cupy, name, None))

    def find_method(self, ref: ArrayRef, name: str) -> Rule | None:
        return self.rules.methods.get(name)

    def find_attribute(self, ref: ArrayRef, name: str) -> Rule | None:
        return self.rules.attributes.get(name)

    def find_operator(self, name: str) -> Rule | None:
        return self.rules.operators.get(name)

    def accepts(self, pytype: type) -> bool:
        return issubclass(pytype, cupy.ndarray)

    def parts_of(self, obj: object) -> None:
        return None

    def rule_of_parts(self, called: object) -> None:
        return None

    def selected(self, tx: TraceContext, ref: ArrayRef) -> ArrayRef:
        raise Unsupported("what a mask selects of a CuPy array")

    def pytype(self, ref: ArrayRef) -> type:
        return cupy.ndarray if ref.kind != "python" else type(ref.dtype.numpy.type().item())

    def is_inert_context(self, cls: type, kwargs: dict[str, Any]) -> bool:
        return False

    def implementation_of(self, fn: object) -> Any:
        return None

    def state_guard(self) -> StateGuard:
        return cupy_facts.device_guard()

    def is_constant(self, obj: object) -> bool:
        return issubclass(type(obj), cupy.ufunc) or obj is cupy.ndarray or obj is cupy.matmul
