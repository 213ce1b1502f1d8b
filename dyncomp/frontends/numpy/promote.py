"""Type promotion, by NumPy's own rules (NEP 50) and NumPy's own functions.

In promotion an operand counts as a *strong* dtype, or as one of the types ``int``, ``float`` and
``complex`` where it is a Python scalar, which is *weak*.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...symbolic.integers import SymInt
from ..base import ArrayRef

Operand = np.dtype[Any] | type  # the type is one of int, float and complex

_DEFAULTS: dict[Any, np.dtype[Any]] = {
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}
_WEAK = {"int": int, "float": float, "complex": complex}


def operand_type(value: object) -> Operand:
    """How ``value`` (an ArrayRef, Python or NumPy scalar, or SymInt) counts in promotion."""
    if isinstance(value, ArrayRef):
        if value.kind == "python":
            return _WEAK.get(value.dtype.kind, value.dtype.numpy)
        return value.dtype.numpy
    if isinstance(value, (bool, np.bool_)):
        return np.dtype(np.bool_)
    if isinstance(value, np.generic):
        return strong(value.dtype)
    if isinstance(value, SymInt):
        return int
    if type(value) in _DEFAULTS:
        return type(value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return strong(np.dtype(np.int64))  # of a subclass, as of enum.IntEnum: these are not weak
    raise Unsupported(f"a {type(value).__name__} as operand of an array operation")


def default_dtype(operand: Operand) -> np.dtype[Any]:
    """The strong dtype of an operand taken alone: ``int`` is int64, ``float`` is float64."""
    return _DEFAULTS[operand] if isinstance(operand, type) else operand


def strong(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype, where dyncomp has one for it."""
    if dtypes.from_numpy(dtype) is None:
        raise Unsupported(f"arrays of dtype {np.dtype(dtype).name} are not compiled", break_id="array-dtype")
    return np.dtype(dtype)


def from_np(dtype: np.dtype[Any]) -> DType:
    """The :class:`DType` of a NumPy dtype; raises ``Unsupported`` where there is none."""
    found = _found(dtype, dtype.num)
    if found is None:
        raise Unsupported(f"arrays of dtype {dtype.name} are not compiled", break_id="array-dtype")
    return found


def converted(dtype: np.dtype[Any]) -> DType:
    """The :class:`DType` to which a loop converts an operand: long long, which comparisons of signed with
    unsigned numbers ask for, is as good as long there."""
    return from_np(np.dtype(dtype.char.replace("q", "l").replace("Q", "L")) if dtype.char in "qQ" else dtype)


@lru_cache(maxsize=64)
def _found(dtype: np.dtype[Any], number: int) -> DType | None:
    """Also by number: the dtypes of long and long long are equal."""
    return dtypes.from_numpy(dtype)


def parse_dtype(spec: Any) -> DType:
    """The element type of a user's ``dtype=`` argument (a dtype, type, or string)."""
    if isinstance(spec, DType):
        return spec
    if spec is None:
        return dtypes.float64
    try:
        dtype = np.dtype(spec)
    except TypeError as error:
        raise Unsupported(f"dtype={spec!r} is not a data type") from error
    return from_np(dtype)


def result_dtype(*values: object) -> DType:
    """``np.result_type`` of the values."""
    return from_np(promote(*map(operand_type, values)))


def promote(*operands: Operand) -> np.dtype[Any]:
    """``np.result_type`` of operand types, all-weak ones included."""
    strong_ones = [o for o in operands if not isinstance(o, type)]
    weak = [o(0) for o in operands if isinstance(o, type)]
    if not strong_ones:
        return np.result_type(*map(default_dtype, operands))
    return np.result_type(*strong_ones, *weak)


def can_cast(source: DType, target: DType, casting: object) -> bool:
    """``np.can_cast``; an unknown rule is ``Unsupported``."""
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise Unsupported(f"casting={casting!r}")
    return bool(np.can_cast(source.numpy, target.numpy, casting))


def resolve(
    ufunc: np.ufunc,
    operands: list[Operand],
    outs: list[np.dtype[Any] | None],
    casting: Any = "same_kind",
    signature: Any = None,
) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the inner loop that ``ufunc`` runs for these operands; casting errors (also into
    ``outs``) become ``Unsupported`` so that the original call raises them."""
    if all(isinstance(o, type) for o in operands):
        operands = [default_dtype(o) for o in operands]
    try:
        more = {} if signature is None else {"signature": signature}
        return ufunc.resolve_dtypes((*operands, *outs), casting=casting, **more)
    except (TypeError, ValueError) as error:
        raise Unsupported(f"numpy.{ufunc.__name__} does not take these dtypes: {error}") from error


def resolve_reduction(
    ufunc: np.ufunc, operand: np.dtype[Any], dtype: DType | None, out: np.dtype[Any] | None
) -> tuple[DType, DType]:
    """The dtypes (of the input elements, of the result) in which ``ufunc.reduce`` computes."""
    more = {} if dtype is None else {"signature": (dtype.numpy, None, None)}
    try:
        found = ufunc.resolve_dtypes((out, operand, None), casting="unsafe", reduction=True, **more)
    except (TypeError, ValueError) as error:
        raise Unsupported(f"numpy.{ufunc.__name__}.reduce does not take these dtypes: {error}") from error
    return from_np(found[1]), from_np(found[2])
