"""One call of a function: its arguments, what else it can reach, and what it did."""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..python_code.instr import CO_VARARGS, CO_VARKEYWORDS
from ..python_code.nested import names_within
from . import isolated
from .gradients import gradients_of
from .observe import Known, Observation, observe


@dataclass
class Call:
    """``values``: the parameters, as the function's body sees them; ``args`` and ``kwargs``: the same, to
    call it again. ``cells`` and ``namespace``: closure and globals."""

    code: types.CodeType
    values: tuple[Any, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    cells: tuple[types.CellType, ...]
    namespace: dict[str, Any]

    @staticmethod
    def of(
        code: types.CodeType, values: tuple[Any, ...], cells: tuple[Any, ...], namespace: dict[str, Any]
    ) -> Call:
        """A call with the ``values`` of all parameters, in the order of ``co_varnames``."""
        plain, only = code.co_argcount, code.co_kwonlyargcount
        args = values[:plain]
        names = code.co_varnames[plain : plain + only]
        kwargs = dict(zip(names, values[plain : plain + only]))
        rest = list(values[plain + only :])
        if code.co_flags & CO_VARARGS:
            args += tuple(rest.pop(0))
        if code.co_flags & CO_VARKEYWORDS:
            kwargs.update(rest.pop(0))
        return Call(code, values, args, kwargs, cells, namespace)

    @staticmethod
    def to(function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """A call as the program writes it; parameters are known by number, and ``kwargs`` by name."""
        values = (args, kwargs)
        return Call(function.__code__, values, args, kwargs, function.__closure__ or (), function.__globals__)

    def parameters(self) -> Iterator[tuple[str, object]]:
        if len(self.values) == 2 and self.values[0] is self.args and self.values[1] is self.kwargs:
            names = self.code.co_varnames
            for number, value in enumerate(self.args):
                yield names[number] if number < self.code.co_argcount else f"argument {number}", value
            yield from self.kwargs.items()
        else:
            yield from zip(self.code.co_varnames, self.values)


@dataclass
class Done:
    """A call that was made: what came of it, and what was seen of it."""

    seen: Observation
    result: Any = None
    error: BaseException | None = None


def roots_of(call: Call) -> list[tuple[str, object]]:
    """What the call can reach by names: its arguments, closure, and the globals that its code names."""
    roots = list(call.parameters())
    for name, cell in zip(call.code.co_freevars, call.cells):
        roots.append((f"variable {name}", cell))
    for name in names_within(call.code):
        if name in call.namespace:
            value = call.namespace[name]
            if not isinstance(value, (types.ModuleType, types.FunctionType, type, types.BuiltinFunctionType)):
                roots.append((f"global {name}", value))
    return roots


def call_and_observe(
    run: Callable[[], Any], call: Call, known: Known | None = None, keep: bool = False
) -> Any:
    """Make a call by ``run`` and write down what it did: an :class:`Observation`, or where ``keep``, with the
    result or exception itself: a :class:`Done`. Exceptions that end programs pass through in the latter case.
    """
    result: Any = None
    error: BaseException | None = None
    try:
        result = run()
    except Exception as raised:
        error = raised
    except BaseException as raised:
        if keep:
            raise
        error = raised
    roots = [("result", result)] if error is None else [("error", [type(error).__qualname__, _text(error)])]
    roots += roots_of(call)
    seen = observe([*roots, *_random_states()], known)
    if error is None:
        seen_gradients = gradients_of(roots)
        if seen_gradients:
            after = observe(seen_gradients)
            for item in after.items.values():
                item.facts = item.facts[:5]  # how they lie in memory is nobody's promise
            seen.items.update(after.items)
            seen.scale = max(seen.scale, after.scale)
    if keep:
        if error is not None and error.__traceback__ is not None:
            error = error.with_traceback(_own(error.__traceback__))
        return Done(seen, result, error)
    return seen


def _own(trace: types.TracebackType) -> types.TracebackType | None:
    """A traceback without the frames of this package at its beginning."""
    found: types.TracebackType | None = trace
    while found is not None and found.tb_frame.f_globals.get("__package__") == __package__:
        found = found.tb_next
    return found


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _random_states() -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = [("random.getstate()", hash(random.getstate()))]
    state = np.random.get_state(legacy=False)
    assert isinstance(state, dict)
    found.append(("np.random.get_state()", {k: v for k, v in state.items() if k != "bit_generator"}))
    torch = sys.modules.get("torch")
    if torch is not None:
        found.append(("torch.get_rng_state()", torch.get_rng_state()))
    return found


def text_of_ending(ending: isolated.Ending) -> str:
    """A child that gave no observation, in words."""
    if ending.kind == isolated.CRASHED:
        return f"compiled code ended the process ({ending.text})"
    if ending.kind == isolated.HANGS:
        return f"compiled code did not come to an end ({ending.text})"
    return f"the comparison failed:\n{ending.text}"
