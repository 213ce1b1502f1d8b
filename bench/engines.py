"""How each engine is given a program: the same function, in the form in which that engine takes it.

- ``dyncomp`` and ``torch`` (``torch.compile``) take the function as it is.
- ``numba``: every function of the program's module gets ``numba.njit``; ``numba-parallel``: with
  ``parallel=True`` (and no ``fastmath``).
- ``jax``: the module is loaded once more with ``jax.numpy`` as its ``np``, in double precision, and the
  function gets ``jax.jit`` with its numbers static. What writes into arrays cannot run so; a few of these
  are given in the form a JAX user would write (``bench.jax_forms``). ``jax`` has its arguments as arrays of its own
  before the clock starts, ``jax-numpy`` takes NumPy's.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

ENGINES = ("numpy", "dyncomp", "numba", "numba-parallel", "jax", "jax-numpy", "torch")
VARIANT_OF = {"numba-parallel": "numba", "jax-numpy": "jax"}


# the module name of functions that the bench writes itself
MADE_HERE = "bench.made"


class NotApplicable(Exception):
    """The engine cannot take this program; the message says why."""


def available(engine: str) -> bool:
    return importlib.util.find_spec(package(engine)) is not None


def package(engine: str) -> str:
    """What is imported for an engine."""
    return VARIANT_OF.get(engine, engine)


def placed(engine: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments where the engine has its arrays; not on the clock."""
    if engine != "jax":
        return arguments
    import jax

    return tuple(jax.block_until_ready(jax.device_put(a)) if isinstance(a, np.ndarray) else a for a in arguments)


def prepare(
    engine: str, function: Callable[..., Any], name: str, arguments: tuple[Any, ...]
) -> Callable[..., Any]:
    """The function compiled by ``engine`` (at its first call). Raises :class:`NotApplicable`."""
    return _PREPARE[engine](function, name, arguments)


def _numpy(function: Callable[..., Any], name: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    return function


def _dyncomp(function: Callable[..., Any], name: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    import dyncomp

    compiled: Callable[..., Any] = dyncomp.compile(function)
    return compiled


def _torch(function: Callable[..., Any], name: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    import torch

    compiled: Callable[..., Any] = torch.compile(function)
    return compiled


def _own_module(function: Callable[..., Any]) -> types.ModuleType:
    """A second copy of the module of ``function``, to be changed freely."""
    if function.__module__ == MADE_HERE:
        module = types.ModuleType(MADE_HERE)
        module.__dict__.update(function.__globals__)
        copied = types.FunctionType(function.__code__, module.__dict__, function.__name__)
        copied.__module__ = MADE_HERE
        setattr(module, function.__name__, copied)
        return module
    original = sys.modules[function.__module__]
    if not function.__module__.startswith(("demo.programs.", "bench.micro")):
        raise NotApplicable("a package's function, which cannot be rewritten")
    spec = importlib.util.spec_from_file_location(f"{original.__name__}_copy", original.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__package__ = original.__package__
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _numba(
    function: Callable[..., Any], name: str, arguments: tuple[Any, ...], parallel: bool = False
) -> Callable[..., Any]:
    import numba

    module = _own_module(function)
    for key, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            setattr(module, key, numba.njit(value, parallel=parallel))
    compiled: Callable[..., Any] = getattr(module, function.__name__)
    return compiled


def _jax(function: Callable[..., Any], name: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    from . import jax_forms

    written: Any = jax_forms.FORMS.get(name)
    if written is None:
        module: Any = _own_module(function)
        module.np = jax.numpy
        written = getattr(module, function.__name__)
    if not all(isinstance(a, np.ndarray | int | float) for a in arguments):
        raise NotApplicable("an argument is an object")
    static = [i for i, a in enumerate(arguments) if not isinstance(a, np.ndarray)]
    jitted = jax.jit(written, static_argnums=static)

    def call(*values: Any) -> Any:
        return jax.block_until_ready(jitted(*values))

    return call


_PREPARE: dict[str, Callable[..., Callable[..., Any]]] = {
    "numpy": _numpy,
    "dyncomp": _dyncomp,
    "numba": _numba,
    "numba-parallel": functools.partial(_numba, parallel=True),
    "jax": _jax,
    "jax-numpy": _jax,
    "torch": _torch,
}


def plain(value: Any) -> Any:
    """A result with JAX's arrays made NumPy's, to compare with."""
    if isinstance(value, list | tuple):
        return tuple(plain(part) for part in value)
    if isinstance(value, np.ndarray | np.generic | int | float | complex | bool):
        return np.asarray(value)
    return np.asarray(value) if hasattr(value, "__array__") else value
