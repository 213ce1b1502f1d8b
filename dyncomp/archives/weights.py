"""Weights as ``safetensors``: arrays by name, of NumPy or PyTorch."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ExportError

# by the names that safetensors has for element types: NumPy's, and PyTorch's
_DTYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4"}
_DTYPES |= {"U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8"}
_TENSORS = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64"}
_TENSORS |= {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64"}


def pack_weights(weights: Mapping[str, Any]) -> bytes:
    """The bytes of a file of weights. Raises :class:`ExportError` without ``safetensors``."""
    _library()
    if all(isinstance(value, np.ndarray) for value in weights.values()):
        from safetensors.numpy import save

        return bytes(save({name: np.ascontiguousarray(value) for name, value in weights.items()}))
    from safetensors.torch import save as save_tensors

    # weights that share memory are saved apart: the graph only reads them
    kept = {name: value.detach().contiguous().clone() for name, value in weights.items()}
    return bytes(save_tensors(kept))


def unpack_weights(data: memoryview, of_torch: bool) -> dict[str, Any]:
    """The arrays of a file of weights, over its memory (which may be written to)."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(bytes(data[8 : 8 + length]))
    header.pop("__metadata__", None)
    found: dict[str, Any] = {}
    for name, facts in header.items():
        begin, end = facts["data_offsets"]
        part = data[8 + length + begin : 8 + length + end]
        if of_torch:
            found[name] = _tensor(part, facts)
        else:
            found[name] = np.frombuffer(part, _DTYPES[facts["dtype"]]).reshape(facts["shape"])
    return found


def _tensor(part: memoryview, facts: dict[str, Any]) -> Any:
    torch = sys.modules["torch"]
    dtype = getattr(torch, _TENSORS[facts["dtype"]])
    if not len(part):
        return torch.empty(facts["shape"], dtype=dtype)
    return torch.frombuffer(part, dtype=dtype).reshape(facts["shape"])


def import_torch() -> None:
    """Import PyTorch, whose tensors an archive works on."""
    try:
        __import__("torch")
    except ImportError as error:
        raise ExportError("this archive works on tensors of PyTorch, which is not installed") from error


def _library() -> None:
    try:
        import safetensors  # noqa: F401
    except ImportError as error:
        text = "archives keep weights by safetensors: pip install 'dyncomp[export]'"
        raise ExportError(text) from error
