"""Plain Python under a tape: what runs where a function is no single graph.

The frames of the program run with their calls of NumPy's functions (``np.zeros``, ``np.array``, ``math.sin``,
``float``) going through stand-ins, so that arrays that the program makes can be written to, and what would
leave for C code is followed.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..capture.entries.config import hook_should_capture
from ..errors import NotDifferentiableError
from ..frontends.derivatives import PLAIN
from ..hook import _hook
from ..python_code.stand_ins import with_stand_ins
from .iterations import with_iterations
from .operations import Array
from .runs import Budget
from .tape import CustomNode, Slot, Tape
from .traced import gradients_of, like, results_of
from .tracked import Named, apply, call, fresh, is_tracked, lost, number, plain_of, slot_of, tracked_in
from .trees import leaves, mapped

Function = Callable[..., Any]


class _Recorder:
    """What ``frontends/derivatives.py`` asks while a tape records."""

    def __init__(self, tape: Tape, keep: bool) -> None:
        self.tape = tape
        self.keep = keep  # for more than one backward pass
        self.opened = 0

    def variable(self, value: Any) -> Any:
        array = np.array(plain_of(value))
        self.opened += 1
        return fresh(self.tape, array, Slot(array.shape, array.dtype))

    def dtype_of(self, value: Any) -> np.dtype[Any]:
        return np.asarray(plain_of(value)).dtype

    def gradient(
        self, values: Sequence[Any], cotangents: Sequence[Any], variables: Sequence[Any]
    ) -> tuple[Array, ...]:
        if len(variables) != self.opened:
            raise lost(self.tape, "a derivative within a function that has no single graph")
        found = [(slot_of(v) if is_tracked(v) else None, ct) for v, ct in zip(values, cotangents)]
        if any(v.storage.version for v in variables):
            raise NotDifferentiableError("the function writes into an argument that it is differentiated by")
        wanted = [slot_of(v) for v in variables]
        slots = [(slot, plain_of(ct)) for slot, ct in found if slot is not None]
        return tuple(self.tape.pull(slots, [s for s in wanted if s is not None], self.keep))

    def custom(
        self, forward: Callable[..., Any], backward: Callable[..., Any], args: tuple[Any, ...], name: str
    ) -> Any:
        tape = self.tape
        # copies: residuals are as they were
        plain = mapped(lambda a: np.array(a.plain)[()] if is_tracked(a) else a, args)
        value, residuals = forward(*plain)
        value, residuals = self._constant(value), self._constant(residuals)
        slots = [slot_of(a) if is_tracked(a) else None for a in leaves(args)]
        outs = [Slot(np.shape(v), np.asarray(v).dtype) for v in results_of(value, name)]

        def pull(cotangents: list[Array]) -> list[Array]:
            found = self._constant(backward(residuals, like(value, [np.asarray(c) for c in cotangents])))
            return gradients_of(found, plain, name)

        if all(slot is None for slot in slots):
            return value
        tape.nodes.append(CustomNode(pull, slots, outs))
        rest = iter(outs)

        def wrapped(leaf: Any) -> Any:
            slot = next(rest)
            return fresh(tape, leaf, slot) if isinstance(leaf, np.ndarray) else number(tape, leaf, slot)

        return mapped(wrapped, value)

    def _constant(self, tree: Any) -> Any:
        """What a function of one's own gives, which must not depend on anything but its arguments."""
        for found in tracked_in(tree, []):
            if slot_of(found) is not None:
                raise lost(self.tape, "a function with a gradient of its own that reads other variables")
        return mapped(plain_of, tree)

    def has_variables(self, values: Any) -> bool:
        return bool(tracked_in(values, []))

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return call(self.tape, Named(function, run=_untaped(function)), args, kwargs)

    def stop_gradient(self, x: Any) -> Any:
        if not is_tracked(x):
            return x
        if x.storage is None:
            return x.plain
        made = x.view()
        made.stopped = True
        return made


def _untaped(function: Function) -> Function:
    """The function, nothing of whose code is recorded: of plain arguments."""

    def run(*args: Any, **kwargs: Any) -> Any:
        recorder, PLAIN.recorder = PLAIN.recorder, None
        active = _hook.set_active(None)
        try:
            return function(*args, **kwargs)
        finally:
            PLAIN.recorder = recorder
            _hook.set_active(active)

    return run


def taped(
    made: Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    memory_budget: int | None = None,
    notes: list[str] | None = None,
) -> Any:
    """``made`` of the arguments, a function that opens variables and asks for their gradient, as plain
    Python. ``memory_budget``: bytes to be saved for the backward pass of loops. ``notes``: gets what was
    recorded, in words. Raises ``NotDifferentiableError`` for what would lose a derivative."""
    tape = Tape(None if memory_budget is None else Budget(memory_budget))
    tape.notes = notes
    try:
        return mapped(plain_of, _run(_Recorder(tape, keep=False), made, args, kwargs))
    finally:
        tape.close()


def taped_pullback(made: Function, args: Sequence[Any]) -> tuple[Any, Function]:
    """As :func:`taped`, where ``made`` gives a value and a function that asks for the gradient: it can be
    called again and again."""
    tape = Tape()
    recorder = _Recorder(tape, keep=True)
    try:
        value, pullback = _run(recorder, made, args, {})
        tape.settle()
    except BaseException:
        tape.close()
        raise

    def pull(cotangent: Any) -> Any:
        return mapped(plain_of, _run(recorder, pullback, (cotangent,), {}))

    return mapped(lambda leaf: np.array(leaf.plain)[()] if is_tracked(leaf) else leaf, value), pull


def _run(recorder: _Recorder, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if PLAIN.recorder is not None:
        raise NotDifferentiableError("a derivative of what has no single graph, within another such")
    tape = recorder.tape
    active = _hook.set_active(None)
    PLAIN.recorder = recorder
    try:
        value = _hook.Dispatcher(function, _config())(*args, **kwargs)  # type: ignore[arg-type]
    except Exception:
        if tape.lost is None:
            raise
    else:
        if tape.lost is None:
            return value
    finally:
        _hook.set_active(active)
        PLAIN.recorder = None
    raise tape.lost  # NumPy made another exception of it, or the program caught it


# -- frames with stand-ins ----------------------------------------------------------------------------
@functools.cache
def _config() -> _hook.HookConfig:
    return _hook.HookConfig(_on_miss, _should_follow)


def _should_follow(code: types.CodeType) -> bool:
    """Also of code without a file."""
    if code.co_filename.startswith("<"):
        return not code.co_filename.startswith(("<frozen", "<tape", "<__array_function__"))
    return hook_should_capture(code)


def _on_miss(function: types.FunctionType, args: object, config: object) -> _hook.Entry:
    code = with_stand_ins(function.__code__, function.__globals__, _FOLLOWED, _stand_in_for)
    code = with_iterations(code, function)
    return _hook.Entry(None, code=code, needs_hook=True)


_FOLLOWED = ("numpy", "math", "cmath", "scipy")


@functools.cache
def _stand_in(function: Any) -> Callable[..., Any]:
    """What is called instead of a function of NumPy's."""
    # SciPy's own code is followed where it is given functions or objects of its own, not in calls that are
    # one operation
    is_followed = isinstance(function, types.FunctionType) and _should_follow(function.__code__)
    untaped = Named(function, run=_untaped(function)) if is_followed else None

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        recorder = PLAIN.recorder
        if recorder is None:
            return function(*args, **kwargs)
        tape: Tape = recorder.tape  # type: ignore[attr-defined]
        if tracked_in((args, kwargs), []):
            if untaped is not None:
                return call(tape, untaped, args, kwargs)
            return apply(tape, function, args, kwargs)
        result = function(*args, **kwargs)
        # an array that nobody else has: the program may write into it what has a derivative
        if type(result) is np.ndarray and result.flags.owndata and sys.getrefcount(result) == 2:
            return fresh(tape, result, None)
        return result

    return stand_in


def _type_of(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and is_tracked(args[0]):
        return type(args[0].plain)
    return type(*args, **kwargs)


def _number(kind: type) -> Callable[..., Any]:
    def make(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and is_tracked(args[0]) and not kwargs and not args[0].tape.closed:
            tape = args[0].tape
            slot = slot_of(args[0])
            if slot is None or slot.shape:
                return kind(plain_of(args[0])) if slot is None else kind(args[0])
            return number(tape, kind(args[0].plain), slot)
        return kind(*args, **kwargs)

    return make


_KINDS = (float, complex, np.half, np.single, np.double, np.longdouble, np.csingle, np.cdouble)
_OWN: dict[Any, Callable[..., Any]] = {type: _type_of, **{kind: _number(kind) for kind in _KINDS}}


def _stand_in_for(value: Any) -> Callable[..., Any] | None:
    try:
        found = _OWN.get(value)
    except TypeError:
        return None
    if found is not None or isinstance(value, type) or not callable(value):
        return found
    module = getattr(value, "__module__", None) or type(value).__module__
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, np.ufunc)) or module == "numpy":
        if str(module).partition(".")[0] in _FOLLOWED or isinstance(value, np.ufunc):
            return _stand_in(value)
    return None
