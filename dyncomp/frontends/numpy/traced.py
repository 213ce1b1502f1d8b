"""A traced value with operators, so that rules written in array arithmetic read like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph.ir import Var
from ..base import ArrayRef, TraceContext
from .indexing import getitem
from .operands import as_ref
from .operators import TABLE as OPERATORS
from .ufuncs import call_ufunc


def _operator(name: str) -> Any:
    rule = OPERATORS.operators[name]

    def apply(self: Traced, *others: object) -> Traced:
        return Traced(self.tx, rule(self.tx, self.ref, *map(plain, others)))

    return apply


def _reflected(name: str) -> Any:
    rule = OPERATORS.operators[name]

    def apply(self: Traced, other: object) -> Traced:
        return Traced(self.tx, rule(self.tx, plain(other), self.ref))

    return apply


class Traced:
    """An :class:`ArrayRef` with Python's operators, each emitting what NumPy's would compute."""

    __slots__ = ("tx", "ref")
    __array_ufunc__ = None

    def __init__(self, tx: TraceContext, value: object) -> None:
        self.tx = tx
        self.ref: ArrayRef = as_ref(tx, value)

    @property
    def var(self) -> Var:
        return self.ref.var

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.ref.shape

    @property
    def ndim(self) -> int:
        return self.ref.ndim

    @property
    def dtype(self) -> Any:
        return self.ref.dtype

    def __getitem__(self, key: object) -> Traced:
        return Traced(self.tx, getitem(self.tx, self.ref, key))

    def call(self, ufunc: np.ufunc, *others: object, **kwargs: Any) -> Traced:
        """``ufunc(self, *others)``."""
        rest = [plain(other) for other in others]
        return Traced(self.tx, call_ufunc(self.tx, ufunc, self.ref, *rest, **kwargs))

    def then(self, rule: Callable[..., Any], *args: object, **kwargs: object) -> Traced:
        """``rule(tx, self, *args)``."""
        rest = [plain(arg) for arg in args]
        return Traced(self.tx, rule(self.tx, self.ref, *rest, **kwargs))

    __add__ = _operator("add")
    __radd__ = _reflected("add")
    __sub__ = _operator("sub")
    __rsub__ = _reflected("sub")
    __mul__ = _operator("mul")
    __rmul__ = _reflected("mul")
    __truediv__ = _operator("truediv")
    __rtruediv__ = _reflected("truediv")
    __floordiv__ = _operator("floordiv")
    __rfloordiv__ = _reflected("floordiv")
    __mod__ = _operator("mod")
    __rmod__ = _reflected("mod")
    __pow__ = _operator("pow")
    __rpow__ = _reflected("pow")
    __lt__ = _operator("lt")
    __le__ = _operator("le")
    __gt__ = _operator("gt")
    __ge__ = _operator("ge")
    __eq__ = _operator("eq")
    __ne__ = _operator("ne")
    __neg__ = _operator("neg")
    __abs__ = _operator("abs")
    __invert__ = _operator("invert")
    __and__ = _operator("and_")
    __or__ = _operator("or_")


def plain(value: object) -> Any:
    """The ArrayRef of a traced value; anything else as it is."""
    return value.ref if isinstance(value, Traced) else value
