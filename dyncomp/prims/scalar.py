"""The table of scalar functions: what one element of a pointwise op, a scan or a reduction computes.

One :class:`ScalarOp` row per function, with its dtype rule and a column per target: ``numpy`` (the
executable definition), ``cpp`` and ``triton`` (spellings). A target without a spelling for a dtype uses
the row's ``decomp``, written in other rows. Special values (NaN, signed zero, overflow, division by zero)
are NumPy's on every target and are stated in the row's ``doc`` where a reader could wonder.

They are declared with the pointwise rows (``pointwise/``); :data:`SCALARS` and :data:`REDUCERS` are the
finished, read-only tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..graph.noted import silently
from .pointwise import arithmetic, bits, complex_numbers, functions, logic, random_bits, special
from .scalar_types import KINDS, Reducer, ScalarOp

__all__ = [
    "COMBINERS",
    "KINDS",
    "REDUCERS",
    "SCALARS",
    "NumpyBuilder",
    "Reducer",
    "ScalarBuilder",
    "ScalarOp",
    "result_dtype",
]


SCALARS: Mapping[str, ScalarOp] = MappingProxyType(
    {
        row.name: row.scalar
        for family in (arithmetic, logic, bits, random_bits, complex_numbers, functions, special)
        for row in family.ROWS
        if row.scalar is not None
    }
)


# -- reducers ---------------------------------------------------------------------------------
def _lowest(dtype: DType) -> Any:
    if dtype.is_bool:
        return False
    if dtype.is_complex:
        return complex(-np.inf, -np.inf)
    return -np.inf if dtype.is_float else int(np.iinfo(dtype.numpy).min)


def _highest(dtype: DType) -> Any:
    if dtype.is_bool:
        return True
    if dtype.is_complex:
        return complex(np.inf, np.inf)
    return np.inf if dtype.is_float else int(np.iinfo(dtype.numpy).max)


_REDUCERS = (
    Reducer("sum", "add", lambda dtype: 0, KINDS),
    Reducer("prod", "multiply", lambda dtype: 1, KINDS),
    Reducer("max", "maximum", _lowest, KINDS),
    Reducer("min", "minimum", _highest, KINDS),
    Reducer("any", "logical_or", lambda dtype: False, "b"),
    Reducer("all", "logical_and", lambda dtype: True, "b"),
    Reducer("argmax", "", _lowest, KINDS, position=True),
    Reducer("argmin", "", _highest, KINDS, position=True),
)
REDUCERS: Mapping[str, Reducer] = MappingProxyType({r.name: r for r in _REDUCERS})

# How a scatter joins what is there to what is written (besides ``set``, which replaces it): scalar functions.
COMBINERS: Mapping[str, str] = MappingProxyType(
    {"add": "add", "multiply": "multiply", "max": "maximum", "min": "minimum"}
)


# -- dtype rule -------------------------------------------------------------------------------
def result_dtype(name: str, args: Sequence[DType]) -> DType:
    """The dtype that row ``name`` gives for arguments of these dtypes.

    Raises ``KeyError`` for an unknown name and ``TypeError`` for dtypes the row does not take.
    """
    row = SCALARS[name]
    if len(args) != row.arity:
        raise TypeError(f"{name} takes {row.arity} arguments, not {len(args)}")
    principal = row.principal_of(args)
    for condition in args[: row.principal]:
        if not condition.is_bool:
            raise TypeError(f"{name} needs a bool condition, not {condition}")
    _check_same(name, row, args)
    if principal.kind not in row.kind_names:
        raise TypeError(f"{name} is not defined for {principal}")
    if row.result == "bool":
        return dtypes.bool_
    if row.result == "real":
        return principal.real
    if row.result == "complex":
        return dtypes.complex64 if principal is dtypes.float32 else dtypes.complex128
    return principal


def _check_same(name: str, row: ScalarOp, args: Sequence[DType]) -> None:
    if row.mixed:
        return
    alike = args[row.principal :]
    if any(a is not alike[0] for a in alike):
        raise TypeError(f"{name} needs arguments of one dtype, not {', '.join(map(str, args))}")


# -- builders ---------------------------------------------------------------------------------
class ScalarBuilder:
    """Writes scalar expressions: every row of :data:`SCALARS` is a method (``s.add(x, y)``), besides
    ``cast``, ``const`` and ``index``. Subclasses say what a value is by ``emit`` and ``dtype``."""

    def emit(self, op: str, args: tuple[Any, ...], dtype: DType, arg: object = None) -> Any:
        """The value ``op(*args)`` of ``dtype``; ``arg``: the constant of ``const``, the axis of ``axis``."""
        raise NotImplementedError

    def dtype(self, value: Any) -> DType:
        """The dtype of a value."""
        raise NotImplementedError

    def cast(self, x: object, dtype: DType) -> Any:
        """``x`` converted as NumPy's ``astype`` does (a C cast; to bool: ``!= 0``)."""
        return x if self.dtype(x) is dtype else self.emit("cast", (x,), dtype)

    def const(self, value: object, dtype: DType) -> Any:
        """A constant of ``dtype``."""
        return self.emit("const", (), dtype, value)

    def index(self, axis: object) -> Any:
        """The position along an axis of the output, int64."""
        return self.emit("axis", (), dtypes.int64, axis)

    def apply(self, name: str, *args: object) -> Any:
        """Row ``name`` on values."""
        return self.emit(name, args, result_dtype(name, [self.dtype(a) for a in args]))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in SCALARS:
            raise AttributeError(f"no scalar op {name!r}")
        return lambda *args: self.apply(name, *args)


class NumpyBuilder(ScalarBuilder):
    """Evaluates expressions on NumPy arrays: how a row's ``decomp`` is checked against its ``numpy``."""

    def emit(self, op: str, args: tuple[Any, ...], dtype: DType, arg: object = None) -> Any:
        return evaluate(op, args, dtype, arg)

    def dtype(self, value: Any) -> DType:
        found = dtypes.from_numpy(np.asarray(value).dtype)
        if found is None:
            raise TypeError(f"no dyncomp dtype for {value!r}")
        return found


def evaluate(op: str, args: Sequence[Any], dtype: DType, arg: object = None) -> Any:
    """``op`` on NumPy arrays by its definition; floating-point warnings are off."""
    with silently():
        if op == "const":
            return np.asarray(arg).astype(dtype.numpy)
        if op == "cast":
            return np.asarray(args[0]).astype(dtype.numpy)
        return np.asarray(SCALARS[op].numpy(*args)).astype(dtype.numpy, copy=False)
