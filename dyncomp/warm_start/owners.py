"""The array libraries whose arrays stored graphs read and make, by name."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ..frontends.base import ArrayOwner
from ..inductor.launch import TensorOwner, tensor_owner
from .descriptions import NotStorable, Stale

# by the library: the module of its ``OWNER``
_OWNERS = {"torch": "dyncomp.frontends.torch.owner"}


def owner_name(owner: ArrayOwner | TensorOwner) -> str:
    for name, module in _OWNERS.items():
        known = sys.modules.get(module)
        if known is not None and known.OWNER.type is owner.type:
            return name
    raise NotStorable(f"arrays of type {owner.type.__qualname__}")


def owner_named(name: str) -> ArrayOwner:
    if name not in _OWNERS or name not in sys.modules:
        raise Stale(f"arrays of {name}, which is not imported")
    owner: Any = importlib.import_module(_OWNERS[name]).OWNER
    assert isinstance(owner, ArrayOwner)
    return owner


def tensor_owner_named(name: str) -> TensorOwner:
    found = tensor_owner(owner_named(name))
    assert found is not None
    return found
