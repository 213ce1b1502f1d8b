"""Linear algebra of one matrix: the LAPACK routines that NumPy calls, called without Python around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...dtypes import float64
from ...prims.linalg import ROWS
from ...prims.opdef import OpDef
from ...runtime import _launch
from .values import Value

# By op: the parameters for which there is one, and the function of the runtime. NumPy computes float32 in
# float64 and warns where the result is too large for float32; that is left to it.
_ROUTINES: Mapping[str, tuple[dict[str, Any], Callable[..., Any]]] = MappingProxyType(
    {
        "solve": ({}, _launch.solve),
        "inv": ({}, _launch.inverse),
        "det": ({}, _launch.determinant),
        "cholesky": ({"upper": False}, _launch.cholesky),
        "qr": ({"mode": "reduced"}, _launch.reduced_qr),
        "eigh": ({"uplo": "L"}, _launch.eigh),
        "eigvalsh": ({"uplo": "L"}, _launch.eigvalsh),
    }
)
_OWN = MappingProxyType({row.name: row for row in ROWS})  # a library's own routines have rows of these names


def matrix_routine(
    row: OpDef, params: Mapping[str, Any], operands: Sequence[Value]
) -> Callable[..., Any] | None:
    """The runtime's function for a node with these operands, if there is one."""
    found = _ROUTINES.get(row.name)
    if found is None or _OWN[row.name].ref is not row.ref or not _launch.lapack_available():
        return None
    wanted, function = found
    plain = all(v.dtype is float64 for v in operands) and len(operands[0].shape) == 2
    return function if plain and dict(params) == wanted else None
