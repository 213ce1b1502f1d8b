"""Type promotion by torch's rules: the dtype category of dimensioned tensors goes before that of
zero-dimensional ones, which goes before that of Python numbers."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...dtypes import DType
from ...errors import Unsupported
from ...symbolic.integers import SymInt
from ..base import ArrayRef
from .library import torch
from .torch_facts import TO_TORCH, from_torch


def default_dtype() -> DType:
    """``torch.get_default_dtype()``; guarded with the rest of torch's state."""
    return from_torch(torch.get_default_dtype())


def scalar_dtype(value: object) -> DType:
    """The dtype of a Python number taken alone."""
    if isinstance(value, complex) or (isinstance(value, ArrayRef) and value.dtype.is_complex):
        return dtypes.complex128 if default_dtype() == dtypes.float64 else dtypes.complex64
    if isinstance(value, ArrayRef):
        return default_dtype() if value.dtype.is_float else value.dtype
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, (int, SymInt)):
        return dtypes.int64
    if isinstance(value, float):
        return default_dtype()
    raise Unsupported(f"a {type(value).__name__} as operand of a tensor operation")


def is_tensor(value: object) -> bool:
    """A traced tensor (numbers that are only known at run time are not tensors)."""
    return isinstance(value, ArrayRef) and value.kind != "python"


def _category(dtype: DType) -> int:
    return {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}[dtype.kind]


def promote_types(a: DType, b: DType) -> DType:
    """``torch.promote_types``."""
    return from_torch(torch.promote_types(TO_TORCH[a], TO_TORCH[b]))


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    if higher is None or lower is None:
        return higher if lower is None else lower
    if higher.is_complex or lower.is_complex:
        return higher if higher.is_complex else promote_types(higher, lower)
    if higher.is_float or (not higher.is_bool and not lower.is_float):
        return higher
    return promote_types(higher, lower)


def result_type(*values: Any) -> DType:
    """``torch.result_type`` of any number of tensors and Python numbers."""
    found: list[DType | None] = [None, None, None]
    for value in values:
        place = 2 if not is_tensor(value) else (0 if value.ndim else 1)
        dtype = value.dtype if place < 2 else scalar_dtype(value)
        known = found[place]
        found[place] = dtype if known is None else promote_types(known, dtype)
    combined = _combine(found[0], _combine(found[1], found[2]))
    assert combined is not None
    return combined


def float_type(dtype: DType) -> DType:
    """What functions of real numbers make of a dtype: integers and bools become the default dtype."""
    return dtype if dtype.is_float else default_dtype()


def parse_dtype(spec: object) -> DType:
    """A ``dtype=`` argument."""
    if spec in (bool, int, float):
        return {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64}[spec]
    if not isinstance(spec, torch.dtype):
        raise Unsupported(f"dtype={spec!r}")
    return from_torch(spec)


def can_cast(source: DType, target: DType) -> bool:
    """``torch.can_cast``: whether an in-place result of ``source`` may be written into ``target``."""
    return _category(source) <= _category(target)
