"""Other compilers of Python: what they made is called as it is, and nothing is captured below their frames.

C knows their frames by these modules, so that functions which they compile are left to them
(``csrc/foreign.c``).
"""

from __future__ import annotations

from types import MethodType
from typing import Any

from ...hook import _hook

# by package: its modules that compile and run other code; "": all of it
_MODULES = {
    "torch": ("_dynamo",),
    "numba": ("",),
    "llvmlite": ("",),
    "jax": ("",),
    "jaxlib": ("",),
    "tensorflow": ("",),
    "taichi": ("",),
    "tinygrad": ("",),
    "mlx": ("",),
    "pythran": ("",),
}

MODULES = tuple(
    ".".join(filter(None, (package, part))) for package, parts in _MODULES.items() for part in parts
)
PACKAGES = tuple(package for package, parts in _MODULES.items() if "" in parts)


def is_foreign(module: str) -> bool:
    """Whether a module is part of another compiler."""
    return any(module == name or module.startswith(name + ".") for name in MODULES)


def _get(self: Any, obj: Any, owner: type | None = None) -> Any:
    """A compiled function that a class holds, as a method; said in Python for compilers that follow it."""
    return self if obj is None else MethodType(self, obj)


_hook.set_foreign_modules(MODULES)
_hook.show_get(_get)
