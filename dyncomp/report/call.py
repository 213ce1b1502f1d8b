"""What a report remembers of the call that it explains, without keeping the program's objects alive."""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..capture.entries.config import CaptureConfig
from ..capture.entries.records import EntryRecord
from ..dataclass import dataclass
from ..graph.ir import Loc
from ..hook import _hook
from ..options import Options

_PLAIN = (bool, int, float, complex, str, bytes, type(None), range, slice)


class GoneError(LookupError):
    """An argument of the call is not alive any more."""


@dataclass(frozen=True)
class Environment:
    """What the guards of one frame are checked against."""

    args: tuple[Any, ...]
    globals: dict[str, Any]
    builtins: dict[str, Any]
    closure: tuple[Any, ...] | None


class ExplainedCall:
    """One call: ``options`` it was compiled with, the lines that capture ``reached``, the guard ``programs``
    of its entries. The function and its arguments are referred to weakly."""

    def __init__(
        self,
        function: object,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        options: Options,
        reached: frozenset[Loc],
    ) -> None:
        self.options = options
        self.reached = reached
        self.programs: dict[int, _hook.GuardProgram] = {}
        self._codes: dict[int, types.CodeType] = {}
        self._function = _held(function)
        self._args = [_held(arg) for arg in args]
        self._kwargs = {name: _held(arg) for name, arg in kwargs.items()}

    def keep_programs(self, config: CaptureConfig) -> None:
        """Note the guard program of each entry made under ``config``, by the identity of its record."""
        for code, entries in _hook.all_entries(config):
            for entry in entries:
                if entry.guards is not None and isinstance(entry.payload, EntryRecord):
                    self.programs[id(entry.payload)] = entry.guards
                    self._codes[id(entry.payload)] = code

    def environment(self, entry: EntryRecord) -> Environment | None:
        """The call's own arguments, where ``entry`` is of the function called. Raises :class:`GoneError`
        where they are not there any more."""
        code = self._codes.get(id(entry))
        if code is None:
            return None
        found = _plain_function(self._function())
        if found is None or found[0].__code__ is not code:
            return None
        function, leading = found
        args = [held() for held in self._args]
        kwargs = {name: held() for name, held in self._kwargs.items()}
        try:
            bound = inspect.signature(function, follow_wrapped=False).bind(*leading, *args, **kwargs)
        except TypeError:
            return None
        bound.apply_defaults()
        flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]
        builtins = function.__globals__["__builtins__"]
        return Environment(
            tuple(bound.arguments[name] for name in names),
            function.__globals__,
            builtins if isinstance(builtins, dict) else vars(builtins),
            function.__closure__,
        )


def _plain_function(called: object) -> tuple[types.FunctionType, tuple[Any, ...]] | None:
    """The function that runs where ``called`` is called, and the arguments before those given."""
    leading: tuple[Any, ...] = ()
    if isinstance(called, types.MethodType):
        leading = (called.__self__,)
        called = called.__func__
    elif not isinstance(called, (types.FunctionType, _hook.Dispatcher)):
        leading = (called,)
        called = inspect.getattr_static(type(called), "__call__", None)
    if isinstance(called, _hook.Dispatcher):
        called = called._function
    return (called, leading) if isinstance(called, types.FunctionType) else None


def _held(value: Any) -> Callable[[], Any]:
    """What gives ``value`` again as long as somebody else keeps it; lists, tuples and dicts are made anew."""
    kind = type(value)
    if kind in (list, tuple):
        items = [_held(item) for item in value]
        return lambda: kind(item() for item in items)
    if kind is dict:
        pairs = [(_held(key), _held(item)) for key, item in value.items()]
        return lambda: {key(): item() for key, item in pairs}
    if kind in _PLAIN:
        return lambda: value
    try:
        made = weakref.WeakMethod(value) if kind is types.MethodType else weakref.ref(value)
    except TypeError:
        return _gone
    return lambda: _alive(made())


def _alive(value: Any) -> Any:
    if value is None:
        raise GoneError("an argument of the call is gone")
    return value


def _gone() -> Any:
    raise GoneError("an argument of the call was not kept")
