"""The NumPy frontend: finds the rule of a callable, method, attribute or operator."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from ..base import ArrayFacts, ArrayRef, Rule, TraceContext, WithoutDerivatives
from . import scipy_table
from .data_dependent import selected
from .masked_rules import dispatch, with_masked
from .numpy_facts import ARRAY_TYPES, describe
from .numpy_rules import RuleTable
from .ufuncs import takes_numbers, ufunc_rule
from .whole_calls import call_whole

_MODULES = (
    "ufuncs",
    "ufunc_methods",
    "operators",
    "indexing",
    "index_functions",
    "reductions",
    "statistics",
    "nan_functions",
    "creation",
    "ranges",
    "shape",
    "diagonals",
    "repetition",
    "join",
    "linalg",
    "lapack",
    "einsum",
    "fft",
    "sorting",
    "data_dependent",
    "library",
    "routines",
    "math_functions",
    "calculus",
    "methods",
    "attributes",
    "types",
    "derivatives",
    "batching",
)

_SCIPY_MODULES = ("scipy_linalg", "scipy_others")

# methods whose rule is that of the function of the same name
FUNCTION_METHODS = (
    "argpartition",
    "argsort",
    "choose",
    "dot",
    "nonzero",
    "put",
    "searchsorted",
    "take",
    "trace",
)

_CONSTANT_TYPES = (np.dtype, np.finfo, np.iinfo, np.generic, np.ufunc)


class NumpyFrontend(WithoutDerivatives):
    """Implements :class:`~dyncomp.frontends.base.Frontend` for ``numpy``."""

    name = "numpy"
    array_types: tuple[type, ...] = ARRAY_TYPES
    owner: Any = None

    @cached_property
    def rules(self) -> RuleTable:
        """All rules, collected at first use."""
        collected = RuleTable()
        for name in _MODULES:
            collected.update(import_module(f"{__package__}.{name}").TABLE)
        for name in _SCIPY_MODULES:
            import_module(f"{__package__}.{name}")
        for name in FUNCTION_METHODS:
            rule = collected.functions.get(getattr(np, name))
            if rule is not None:
                collected.methods[name] = rule
        return with_masked(collected)

    def describe(self, obj: object) -> ArrayFacts:
        return describe(obj)

    def find_function(self, fn: object) -> Rule | None:
        try:
            found = self.rules.functions.get(fn)
        except TypeError:  # unhashable
            return None
        if found is None and type(fn) is np.ufunc and takes_numbers(fn):
            return dispatch(ufunc_rule(fn), None)
        if found is None:
            rule = scipy_table.find(fn)
            return None if rule is None else dispatch(rule, None)
        return found

    def find_method(self, ref: ArrayRef, name: str) -> Rule | None:
        if ref.kind == "python" and not name.startswith("__"):
            return None
        if ref.kind == "scalar" and not hasattr(ref.dtype.numpy.type, name):
            return None
        return self.rules.methods.get(name)

    def find_attribute(self, ref: ArrayRef, name: str) -> Rule | None:
        if ref.kind == "python" and name not in ("real", "imag"):
            return None
        return self.rules.attributes.get(name)

    def find_operator(self, name: str) -> Rule | None:
        return self.rules.operators.get(name)

    call_whole = staticmethod(call_whole)

    def accepts(self, pytype: type) -> bool:
        return issubclass(pytype, (np.ndarray, np.generic))

    def parts_of(self, obj: object) -> None:
        return None

    def rule_of_parts(self, called: object) -> None:
        return None

    def selected(self, tx: TraceContext, ref: ArrayRef) -> ArrayRef:
        return selected(tx, ref)

    def pytype(self, ref: ArrayRef) -> type:
        if ref.kind in ("array", "masked"):
            return np.ndarray
        scalar = ref.dtype.numpy.type
        return scalar if ref.kind == "scalar" else type(scalar().item())

    def is_inert_context(self, cls: type, kwargs: dict[str, Any]) -> bool:
        return cls is np.errstate and all(mode in ("ignore", "warn") for mode in kwargs.values())

    def implementation_of(self, fn: object) -> Any:
        inner = getattr(fn, "_implementation", None)
        return inner if isinstance(inner, FunctionType) else None

    def state_guard(self) -> None:
        return None

    def is_constant(self, obj: object) -> bool:
        # issubclass: isinstance may run the program's code (``__class__``)
        return (
            obj is np.newaxis
            or obj is np._NoValue
            or issubclass(type(obj), _CONSTANT_TYPES)
            or _is_numpy_type(obj)
            or scipy_table.is_transform(obj)
        )


def _is_numpy_type(obj: Any) -> bool:
    return issubclass(type(obj), type) and (issubclass(obj, np.generic) or obj is np.ndarray)
