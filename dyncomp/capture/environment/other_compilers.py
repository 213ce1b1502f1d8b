"""Other compilers of Python: what they made is called as it is, and nothing is captured below their frames.

C knows their frames by these modules, so that functions which they compile are left to them
(``csrc/foreign.c``).
"""

from __future__ import annotations

from types import FunctionType, MethodType
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

# by package: its modules with functions that say whether one of its compilers is at work
_ASKED = {"torch": ("compiler", "_utils", "_dynamo", "_dynamo.external_utils")}
_QUESTIONS = ("is_compiling", "is_dynamo_compiling")
# Who is told of none: who asks for the sake of graphs with collectives in them, which are called between
# graphs here; and where other values come of it (nested tensors are zero where sequences are padded).
_TOLD_OF_NONE = ("torch.distributed", "torch.nn.parallel", "torch.nn.modules.transformer")

MODULES = tuple(
    ".".join(filter(None, (package, part))) for package, parts in _MODULES.items() for part in parts
)
PACKAGES = tuple(package for package, parts in _MODULES.items() if "" in parts)


_MODULES_ASKED = frozenset(f"{package}.{part}" for package, parts in _ASKED.items() for part in parts)


def answer_whether_compiling(function: FunctionType, asking: str) -> bool | None:
    """The answer, where a function is a question of libraries that branch otherwise where a compiler follows
    them. ``asking``: the module that asks."""
    if function.__name__ not in _QUESTIONS or function.__module__ not in _MODULES_ASKED:
        return None
    return not any(asking == name or asking.startswith(name + ".") for name in _TOLD_OF_NONE)


def is_foreign(module: str) -> bool:
    """Whether a module is part of another compiler."""
    return any(module == name or module.startswith(name + ".") for name in MODULES)


def _get(self: Any, obj: Any, owner: type | None = None) -> Any:
    """A compiled function that a class holds, as a method; said in Python for compilers that follow it."""
    return self if obj is None else MethodType(self, obj)


_hook.set_foreign_modules(MODULES)
_hook.show_get(_get)
