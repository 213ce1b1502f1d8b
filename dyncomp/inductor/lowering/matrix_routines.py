"""Linear algebra of one matrix: the LAPACK routines that NumPy calls, called without Python around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...dtypes import float64
from ...prims.opdef import Extern, OpDef
from ...runtime import _launch
from .values import Value


def matrix_routine(
    row: OpDef, params: Mapping[str, Any], operands: Sequence[Value]
) -> Callable[..., Any] | None:
    """The runtime's function for a node with these operands, if there is one."""
    kind = row.lower
    if not isinstance(kind, Extern) or not kind.lapack or not _launch.lapack_available():
        return None
    # NumPy computes float32 in float64 and warns where the result is too large for float32: left to it
    plain = all(v.dtype is float64 for v in operands) and len(operands[0].shape) == 2
    if not plain or dict(params) != dict(kind.when):
        return None
    function: Callable[..., Any] = getattr(_launch, kind.lapack)
    return function
