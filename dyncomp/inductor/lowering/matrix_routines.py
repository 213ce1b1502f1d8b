"""Linear algebra of one matrix: the LAPACK routines that NumPy calls, called without Python around them."""

from __future__ import annotations

import functools
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
    plain = operands[0].dtype is float64 and len(operands[0].shape) == 2
    passed = [params[name] for name in kind.passed]
    if not plain or {k: v for k, v in params.items() if k not in kind.passed} != dict(kind.when):
        return None
    function: Callable[..., Any] = getattr(_launch, kind.lapack)
    return functools.partial(function, *passed) if passed else function
