"""Reading the memory of many tensors quickly.

DLPack's exchange table gives a view of a tensor in 60 ns, of which most goes into finding out that the object
is a tensor. Guards and launches know that, and call what the table calls, ``at::toDLPackNonOwning``.
"""

from __future__ import annotations

import ctypes
import os
import struct

from ...hook import _hook
from ...runtime import _launch
from .library import torch

# since torch 2.14 it takes a truth value, too, for which false is passed; what takes none ignores that
_VIEWS = tuple(f"_ZN2at17toDLPackNonOwningERKNS_6TensorEP8DLTensor{more}" for more in ("", "b"))
_POINTER = struct.calcsize("P")


def use_direct_views() -> bool:
    """Have guards and launches read tensors directly. False, and nothing changes, where this torch has no
    such function, or what it gives is not what the table gives."""
    samples = (
        torch.empty((3, 2)).t(),
        torch.nn.Parameter(torch.empty(4)),
        torch.empty((), dtype=torch.int64),
    )
    offset = _offset_of_tensor(samples)
    try:
        library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
    except OSError:
        return False
    known = [library[name] for name in _VIEWS if hasattr(library, name)]
    view = ctypes.cast(known[0], ctypes.c_void_p).value if known else None
    if offset is None or view is None:
        return False
    address = _launch.use_direct_view(torch.Tensor, view, offset, samples)
    if address:
        _hook.set_tensor_view(torch.Tensor, address)
    return bool(address)


def _offset_of_tensor(samples: tuple[torch.Tensor, ...]) -> int | None:
    """Where Python's tensors have their ``at::Tensor``: the one place with the address in ``_cdata``."""
    size = torch.Tensor.__basicsize__
    found = set(range(2 * _POINTER, size - size % _POINTER, _POINTER))
    for tensor in samples:
        words = ctypes.string_at(id(tensor), size)
        found = {k for k in found if struct.unpack_from("P", words, k)[0] == tensor._cdata}
    return found.pop() if len(found) == 1 else None
