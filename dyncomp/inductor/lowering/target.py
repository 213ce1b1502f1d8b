"""What C++ code can be written for; the rest is computed by an op's own reference, as a library call."""

from __future__ import annotations

import functools
import re
from typing import Any

from ...dtypes import DType
from ...prims.opdef import OpDef, Pointwise
from ...prims.scalar import SCALARS, ScalarBuilder
from ..render.cpp.support import sections

_HELPER = re.compile(r"\bdc_\w*\{t\}")
# Short names of dtypes in helpers' names.
_SHORT = {"bool": "b8", "complex64": "c64", "complex128": "c128"}


class _Probe(ScalarBuilder):
    """Writes nothing; remembers which scalar ops are asked for. Values are dtypes."""

    def __init__(self) -> None:
        self.asked: set[tuple[str, DType]] = set()

    def emit(self, op: str, args: tuple[Any, ...], dtype: DType, arg: object = None) -> Any:
        if op in SCALARS:
            self.asked.add((op, SCALARS[op].principal_of(args)))
        return dtype

    def dtype(self, value: Any) -> DType:
        assert isinstance(value, DType)
        return value


def has_code(row: OpDef, dtypes: tuple[DType, ...], params: dict[str, Any]) -> bool:
    """Whether C++ can be written for a pointwise op on inputs of these dtypes."""
    # every scalar op is spelled for real numbers; only complex functions may be missing
    if not any(d.is_complex for d in dtypes):
        return True
    assert isinstance(row.lower, Pointwise)
    probe = _Probe()
    row.lower.expr(probe, *dtypes, **params)
    return all(spelled(op, dtype) for op, dtype in probe.asked)


@functools.cache
def spelled(op: str, dtype: DType) -> bool:
    """Whether a scalar op has a C++ spelling for a dtype, or is written in others that have."""
    row = SCALARS[op]
    text = row.spelling("cpp", dtype)
    if text is not None:
        helpers = [name.replace("{t}", _SHORT.get(dtype.name, "")) for name in _HELPER.findall(text)]
        return not dtype.is_complex or all(name in sections() for name in helpers)
    if row.decomp is None:
        return False
    probe = _Probe()
    row.decomp(probe, *[dtype] * row.arity)
    return all(spelled(*asked) for asked in probe.asked if asked != (op, dtype))
