"""How compiled functions are pickled: by name where a module has them under their name, else by value.

Functions of ``__main__`` and functions that no module has (local ones, lambdas) travel as cloudpickle sends
them: code, defaults, closure and the globals that the code names. What arrives is a compiled function again.
"""

from __future__ import annotations

import contextlib
import dis
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .hook import _hook
from .python_code.nested import code_within

_checking = threading.local()
# what surely can be pickled, or is cheap to find out about where it is saved
_PLAIN: tuple[type, ...] = (
    int,
    float,
    complex,
    str,
    bytes,
    types.NoneType,
    types.ModuleType,
    types.FunctionType,
    type,
)
_PLAIN += (types.BuiltinFunctionType, _hook.Dispatcher)
_PLAIN_LIBRARIES = frozenset({"numpy", "torch", "scipy", "sklearn"})


def reduce_function(compiled: Any, rebuild: Callable[..., Any], fill: Callable[..., Any]) -> Any:
    """What ``__reduce__`` of a compiled function returns.

    ``rebuild(function, options)`` compiles anew, ``fill(empty, state)`` completes what ``empty()`` made: a
    function may refer to itself.
    """
    pickler = _cloud_pickler()
    if pickler is None or not _goes_by_value(pickler, compiled.__module__):
        if _found(compiled.__module__, compiled.__qualname__) is compiled:
            return _by_name(compiled)
        function = compiled._function
        if _found(function.__module__, function.__qualname__) is function:
            return rebuild, (function, compiled.config.options)
    if pickler is None:
        return pickle.loads, (_cloudpickle(compiled).dumps(compiled),)
    _check_variables(compiled, pickler)
    state = compiled._function, compiled.config.options, dict(compiled.__dict__)
    return empty, (), state, None, None, fill


_MOST_COPIED = 1 << 20


def _by_name(compiled: Any) -> Any:
    """As functions are; with a copy where the program is no file, which a new process could not import."""
    if compiled.__module__ == "__main__" and not hasattr(sys.modules["__main__"], "__file__"):
        with contextlib.suppress(Exception):  # as it may be too large, or hold what cannot be pickled
            copied = _Limited(_MOST_COPIED)
            _cloudpickle(compiled).dump(compiled, copied)
            return named_or_copied, (compiled.__qualname__, copied.data())
    return compiled.__qualname__


def named_or_copied(name: str, data: bytes) -> Any:
    """The compiled function that this process has under the name, if it is the one that was pickled."""
    copied = pickle.loads(data)
    found = _found("__main__", name)
    same = isinstance(found, _hook.Dispatcher) and found._function.__code__ == copied._function.__code__
    return found if same else copied


def empty() -> Any:
    """A compiled function of nothing yet."""
    return _hook.Dispatcher.__new__(_hook.Dispatcher)


def _found(module: str | None, name: str) -> Any:
    """What a module has under a name."""
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _cloud_pickler() -> Any:
    """The pickler at work where it is one of cloudpickle's (joblib and dask derive theirs from it): these
    save functions by value, and share what several functions refer to."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    if frame is None or frame.f_code.co_name != "dump":
        return None
    pickler = frame.f_locals.get("self")
    return pickler if _cloudpickles(pickler) else None


def _cloudpickles(pickler: object) -> list[types.ModuleType]:
    """The module cloudpickle that a pickler comes from: joblib has a copy of its own."""
    if not isinstance(pickler, pickle.Pickler):
        return []
    names = [cls.__module__ for cls in type(pickler).__mro__ if "cloudpickle" in cls.__module__]
    return [sys.modules[name] for name in names if hasattr(sys.modules.get(name), "CloudPickler")]


_OWN = __file__.rpartition("pickling")[0]


def _goes_by_value(pickler: object, module: str | None) -> bool:
    """Whether a pickler of cloudpickle's saves the functions of a module by value."""
    if module == "__main__":
        return True
    names = {name for own in _cloudpickles(pickler) for name in own.list_registry_pickle_by_value()}
    return any(f"{module}.".startswith(f"{name}.") for name in names)


def _cloudpickle(compiled: Any) -> Any:
    try:
        import cloudpickle
    except ImportError:
        raise pickle.PicklingError(
            f"cannot pickle the compiled function {compiled.__qualname__}: no module has it under this name, "
            "and to send it by value cloudpickle must be installed"
        ) from None
    return cloudpickle


# -- errors that name the variable ---------------------------------------------------------------------
def _check_variables(compiled: Any, pickler: Any) -> None:
    """Raise ``PicklingError`` where a variable that the function brings along cannot be pickled."""
    if getattr(_checking, "on", False):
        return
    _checking.on = True
    try:
        for kind, name, value in _variables(compiled._function):
            if _is_plain(value):
                continue
            try:
                type(pickler)(_Nowhere()).dump(value)
            except Exception as error:
                raise pickle.PicklingError(
                    f"cannot pickle the compiled function {compiled.__qualname__}: its {kind} {name!r} "
                    f"cannot be pickled ({type(error).__name__}: {error})"
                ) from error
    finally:
        _checking.on = False


def _is_plain(value: object) -> bool:
    cls = type(value)
    if isinstance(value, np.ndarray):
        return value.dtype != object
    return issubclass(cls, _PLAIN) or cls.__module__.partition(".")[0] in _PLAIN_LIBRARIES


def _variables(function: types.FunctionType) -> Iterator[tuple[str, str, Any]]:
    """What a function refers to: kind, name and value."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            yield "closure variable", name, cell.cell_contents
        except ValueError:
            continue  # not set yet
    for name in sorted(_global_names(code) & function.__globals__.keys()):
        yield "global variable", name, function.__globals__[name]
    for position, value in enumerate(function.__defaults__ or ()):
        first = code.co_argcount - len(function.__defaults__ or ())
        yield "default of argument", code.co_varnames[first + position], value
    for name, value in (function.__kwdefaults__ or {}).items():
        yield "default of argument", name, value
    for name, value in function.__dict__.items():
        yield "attribute", name, value


def _global_names(code: types.CodeType) -> set[str]:
    instructions = (i for part in code_within(code) for i in dis.get_instructions(part))
    return {i.argval for i in instructions if i.opname.endswith("_GLOBAL")}


class _Limited:
    """A file that refuses to hold much."""

    def __init__(self, limit: int) -> None:
        self._parts: list[bytes] = []
        self._left = limit

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._left -= size
        if self._left < 0:
            raise pickle.PicklingError("too large to be copied")
        self._parts.append(bytes(data))
        return size

    def data(self) -> bytes:
        return b"".join(self._parts)


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, data: Any) -> int:
        return len(data)
