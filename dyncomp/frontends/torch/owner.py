"""How compiled graphs read and make tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ..base import ArrayOwner, Autograd
from .devices import LIBRARY
from .library import torch
from .profiling import show_graphs
from .routines import ON_ARRAYS, TO_TENSORS
from .tensor_memory import use_direct_views
from .training import function, spent

_USER_DEFINED = 256  # NumPy's own types have smaller numbers (``NPY_USERDEF``)


def _describe(tensor: Any) -> tuple[int, tuple[int, ...], tuple[int, ...], str]:
    name = str(tensor.dtype).removeprefix("torch.")
    return (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), name)


def _empty(shape: Sequence[int], strides: Sequence[int], name: str) -> Any:
    return torch.empty_strided(shape, strides, dtype=getattr(torch, name))


def _as_strided(base: Any, shape: Sequence[int], strides: Sequence[int], offset: int, name: str) -> Any:
    dtype = getattr(torch, name)
    typed = base if base.dtype == dtype else base.view(dtype)
    return typed.as_strided(shape, strides, typed.storage_offset() + offset)


def _to_numpy(value: object) -> Any:
    """A NumPy array over the tensor's memory; other values as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    plain = value.detach() if value.requires_grad else value
    if plain.dtype is torch.bfloat16:
        return plain.view(torch.uint16).numpy().view(dtypes.bfloat16.numpy)
    return plain.numpy()


def _from_numpy(array: object) -> Any:
    """A tensor over the array's memory; other values as they are."""
    if not isinstance(array, (np.ndarray, np.generic)):
        return array
    array = np.asarray(array)
    flags = array.flags
    if not flags.writeable or (not flags.c_contiguous and any(s < 0 for s in array.strides)):
        array = array.copy()
    if array.dtype.num >= _USER_DEFINED and array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _taken(tensor: Any, shape: Sequence[int], strides: Sequence[int], offset: int, name: str) -> Any:
    """The tensor in this layout, if nothing else sees its memory, which it fills."""
    if not _is_alone(tensor):
        return None
    if tuple(tensor.shape) == tuple(shape) and tensor.stride() == tuple(strides):
        return tensor
    return tensor.as_strided(shape, strides, offset).detach()


def _is_alone(tensor: Any) -> bool:
    """Whether nothing else sees the tensor's memory, which it fills; nobody holds it but the caller."""
    storage = tensor.untyped_storage()
    return bool(
        type(tensor) is torch.Tensor
        and tensor._use_count() == 1
        and _storage_uses(storage._cdata) == 2  # by the tensor and by the name `storage`
        and storage.resizable()  # no other library's memory
        and storage.nbytes() == tensor.nbytes
        and not (tensor.requires_grad or tensor.is_conj() or tensor.is_neg())
    )


_storage_uses = getattr(torch._C, "_storage_Use_Count", lambda _: 0)


def _wrote(tensors: Sequence[Any]) -> None:
    """Tell autograd that compiled code has written into tensors (their version counters)."""
    torch.autograd.graph.increment_version([tensor for tensor in tensors if not tensor.is_inference()])


use_direct_views()
show_graphs()

OWNER = ArrayOwner(
    torch.Tensor,
    _describe,
    _empty,
    _as_strided,
    _to_numpy,
    _from_numpy,
    _wrote,
    routines=ON_ARRAYS,
    own_routines=TO_TENSORS,
    taken=_taken,
    devices=LIBRARY,
    threads="torch",
    autograd=Autograd(function, spent),
)
