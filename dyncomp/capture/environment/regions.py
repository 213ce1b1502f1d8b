"""What a program says to capture: break here, do not break here, leave that function alone.

All of these work in plain Python too, where they do nothing; what they mean while capture runs is in
``library/region_calls.py`` and ``calls/call.py``.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar

from ...hook import _hook

F = TypeVar("F", bound=Callable[..., Any])

# a ContextVar of (the innermost region, those around it) or None, which guards read
_REGIONS = _hook.REGIONS


def graph_break(message: str = "") -> None:
    """Break the graph here. In plain Python this does nothing."""


def is_compiling() -> bool:
    """``True`` in captured code, ``False`` where the same line runs as plain Python."""
    return False


def changes_begin() -> tuple[int, ...]:
    """What captured code has changed of the thread's state up to here (see :func:`changes_end`)."""
    return ()


def changes_end(begun: tuple[int, ...]) -> None:
    """Break the graph where context variables or modes were changed since ``changes_begin`` gave ``begun``,
    and not set back: in plain Python these changes are seen in another thread only. In plain Python this does
    nothing."""


class error_on_graph_break:
    """A region in which a graph break raises :class:`~dyncomp.errors.GraphBreakError`, or does not.

    ``with error_on_graph_break():`` or ``@error_on_graph_break()`` makes breaks inside, callees included, an
    error; ``error_on_graph_break(False)`` allows them inside ``fullgraph=True`` or another region. Regions
    nest, the innermost counts. Compiled code with a break serves calls outside of such regions only.
    """

    def __init__(self, enabled: bool = True) -> None:
        if not isinstance(enabled, bool):
            raise TypeError(f"error_on_graph_break takes True or False, not {type(enabled).__name__}")
        self.enabled = enabled

    def __enter__(self) -> error_on_graph_break:
        _REGIONS.set((self.enabled, _REGIONS.get()))
        return self

    def __exit__(self, *exception: object) -> None:
        current = _REGIONS.get()
        _REGIONS.set(current[1] if current is not None else None)

    def __call__(self, function: F) -> F:
        enabled = self.enabled

        @functools.wraps(function)
        def in_region(*args: object, **kwargs: object) -> Any:
            with error_on_graph_break(enabled):
                return function(*args, **kwargs)

        return in_region  # type: ignore[return-value]


def breaks_are_errors() -> bool | None:
    """What the innermost region that was entered in plain Python says; ``None`` outside of all."""
    current = _REGIONS.get()
    return None if current is None else current[0]


# -- functions that capture treats apart ------------------------------------------------------------
def disable(f: object = None, *, recursive: bool = True, reason: str = "") -> Any:
    """Have ``f`` never captured: it runs as plain Python, called from compiled code or compiled itself.

    Works on functions, methods, static and class methods, properties and classes (all methods of the class's
    body), which are marked and returned as they are, and on any other callable, for which a function that
    calls it is returned. Also a decorator, with or without arguments. ``recursive=False`` leaves only ``f``
    itself alone: functions that it calls may be captured. ``reason`` is shown in ``explain``.

    Raises ``TypeError`` for what is not callable.
    """
    if f is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(f, _hook.Dispatcher):
        f = f._function
    if isinstance(f, types.FunctionType):
        return _mark_disabled(f, recursive, reason)
    parts = _functions_of(f)
    for function in parts:
        _mark_disabled(function, recursive, reason)
    if parts or isinstance(f, type):
        return f
    if not callable(f):
        raise TypeError(f"cannot disable an object of type {type(f).__qualname__}: it is not callable")
    return _mark_disabled(calling(f), recursive, reason)


def _mark_disabled(function: types.FunctionType, recursive: bool, reason: str) -> types.FunctionType:
    function._dyncomp_disabled = reason or "dyncomp.disable"  # type: ignore[attr-defined]
    _hook.mark(function.__code__, "disable" if recursive else "skip")
    return function


def _functions_of(f: object) -> list[types.FunctionType]:
    """The Python functions that a descriptor, a method or a class is made of."""
    found: list[Any] = []
    if isinstance(f, (types.MethodType, staticmethod, classmethod)):
        found = [f.__func__]
    elif isinstance(f, property):
        found = [f.fget, f.fset, f.fdel]
    elif isinstance(f, type):
        found = [g for member in vars(f).values() for g in (member, *_members(member))]
    found = [g._function if isinstance(g, _hook.Dispatcher) else g for g in found]
    return [g for g in found if isinstance(g, types.FunctionType)]


def _members(member: object) -> list[types.FunctionType]:
    return [] if isinstance(member, type) else _functions_of(member)


def calling(f: Callable[..., Any]) -> types.FunctionType:
    """A Python function that calls ``f``, named as it."""

    def call(*args: object, **kwargs: object) -> Any:
        return f(*args, **kwargs)

    with contextlib.suppress(AttributeError, TypeError):
        functools.update_wrapper(call, f)
    return call  # type: ignore[return-value]


def disabled_reason(function: object) -> str:
    """Why a function is not to be captured; empty where it may be."""
    return str(getattr(function, "_dyncomp_disabled", ""))


# Code whose calls are captured whole, or not at all (code objects live as long as what was marked here).
_WHOLE: set[types.CodeType] = set()


def captured_whole(function: F) -> F:
    """Have calls of a Python function, and of those defined in it, be captured to their end or not inlined:
    where the graph breaks inside, it breaks at the call."""
    code: types.CodeType = function.__code__  # type: ignore[attr-defined]
    _WHOLE.update((code, *(c for c in code.co_consts if isinstance(c, types.CodeType))))
    return function


def is_captured_whole(code: types.CodeType) -> bool:
    return code in _WHOLE


_FOR_BATCHES: set[types.CodeType] = set()


def for_batches(function: F) -> F:
    """Have captured code know that what is called in functions that a Python function defines runs once for a
    whole batch of elements: it draws no random numbers, which are others for each."""
    code: types.CodeType = function.__code__  # type: ignore[attr-defined]
    _FOR_BATCHES.update(c for c in code.co_consts if isinstance(c, types.CodeType))
    return function


def is_for_batches(code: types.CodeType) -> bool:
    return code in _FOR_BATCHES


_TEMPORARY: set[types.CodeType] = set()


def temporary(function: F) -> F:
    """Have captured code know that what a Python function changes is put back by its caller."""
    _TEMPORARY.add(function.__code__)  # type: ignore[attr-defined]
    return function


def is_temporary(code: types.CodeType) -> bool:
    return code in _TEMPORARY


def assume_constant_result(f: object) -> Any:
    """Promise that ``f`` returns the same for the same arguments, whatever else happens: captured code calls
    it once, when it is captured, and keeps the result. Its arguments there must be constants or objects from
    outside. For functions, and other callables (a function that calls them is returned); a decorator."""
    return _marked_function(f, "constant result")


def allow_in_graph(f: object) -> Any:
    """Have calls of ``f`` be one node of the graph, whatever is inside: no graph break, and nothing of it is
    compiled. It is called with the very arrays at run time.

    ``f`` takes NumPy arrays and constants and returns an array, or a tuple or list of arrays. It must be
    pure: it is called once or more at capture too, to see what it returns, and a call whose result nothing
    uses is left out. It must return memory of its own, of dtypes, shapes and layouts that follow from those
    of its arguments: where it does not, the original program runs from its start. For functions, and other
    callables (a function that calls them is returned); a decorator.
    """
    return _marked_function(f, "in graph")


def mark_of(function: object) -> str:
    """What calls of a function are, by the decorators above; empty for all others."""
    return str(getattr(function, "_dyncomp_call", ""))


def _marked_function(f: object, mark: str) -> Any:
    if isinstance(f, _hook.Dispatcher):
        f = f._function
    if not callable(f) or isinstance(f, type):
        raise TypeError(f"expected a function, not {type(f).__qualname__}")
    function = f if isinstance(f, types.FunctionType) else calling(f)
    function._dyncomp_call = mark  # type: ignore[attr-defined]
    return function
