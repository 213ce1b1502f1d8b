"""Plain Python under a tape: what runs where a function is no single graph.

The frames of the program run with their calls of NumPy's functions (``np.zeros``, ``np.array``, ``math.sin``,
``float``) going through stand-ins, so that arrays that the program makes can be written to, and what would
leave for C code is followed.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import Counter
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
from .passes import Backward, Forward, OfSlots, Value, inputs_of, outputs_of
from .recording import place
from .runs import Budget
from .tape import CustomNode, Slot, Tape, line_of
from .traced import gradients_of, like, results_of
from .tracked import Named, apply, call, fresh, is_tracked, lost, number, plain_of, slot_of, tracked_in
from .trees import leaves, mapped

Function = Callable[..., Any]
_MOST_TRIED = 2


class _Level:
    """A derivative under way: the number of its first node, and whether it is the outermost."""

    def __init__(self, start: int, outermost: bool = False) -> None:
        self.start = start
        self.outermost = outermost


class _Recorder:
    """What ``frontends/derivatives.py`` asks while a tape records."""

    def __init__(self, tape: Tape, keep: bool) -> None:
        self.tape = tape
        self.keep = keep  # for more than one backward pass
        self.stack = [_Level(0, outermost=True)]
        self.level_of: dict[Slot, _Level] = {}  # of variables
        self.tried: Counter[object] = Counter()  # functions that were captured for an inner derivative

    def variable(self, value: Any) -> Any:
        array = np.array(plain_of(value))
        if is_tracked(value) and slot_of(value) is not None:
            made = call(self.tape, Named(np.array), (value,), {})
        else:
            made = fresh(self.tape, array, Slot(array.shape, array.dtype))
        slot = slot_of(made)
        assert slot is not None
        self.level_of[slot] = self.stack[-1]
        return made

    def dtype_of(self, value: Any) -> np.dtype[Any]:
        return np.asarray(plain_of(value)).dtype

    def _opened(self, variables: Sequence[Any]) -> tuple[list[Slot], _Level]:
        """The slots of variables, and their level."""
        if any(v.storage.version for v in variables):
            raise NotDifferentiableError("the function writes into an argument that it is differentiated by")
        slots = [slot for slot in map(slot_of, variables) if slot is not None]
        return slots, self.level_of[slots[0]]

    def gradient(
        self, values: Sequence[Any], cotangents: Sequence[Any], variables: Sequence[Any]
    ) -> tuple[Value, ...]:
        wanted, level = self._opened(variables)
        found = [(slot_of(v) if is_tracked(v) else None, ct) for v, ct in zip(values, cotangents)]
        seeds = [(slot, ct) for slot, ct in found if slot is not None]
        if level.outermost and not self.tape.always_again:
            plain = [(slot, plain_of(ct)) for slot, ct in seeds]
            return tuple(self.tape.pull(plain, wanted, self.keep))
        backward = Backward(self.tape, level.start, wanted)
        for slot, ct in seeds:
            ct = ct if is_tracked(ct) else np.asarray(ct)
            backward.add(slot, np.broadcast_to(ct, slot.shape).copy())
        backward.run_all()
        made = [backward.cotangents.get(slot) for slot in wanted]
        return tuple([np.zeros(s.shape, s.dtype) if g is None else g for g, s in zip(made, wanted)])

    def directions(self, variables: Sequence[Any], tangents: Sequence[Any]) -> None:
        """Of a derivative in forward mode, before the function runs: the outermost one keeps no nodes."""
        slots, level = self._opened(variables)
        if not level.outermost:
            return
        for slot, tangent in zip(slots, tangents):
            slot.tangent = np.array(plain_of(tangent), slot.dtype)
        self.tape.on_append = Forward(self.tape, OfSlots(), record=False).through

    def tangent(
        self, values: Sequence[Any], tangents: Sequence[Any], variables: Sequence[Any]
    ) -> tuple[Value, ...]:
        slots, level = self._opened(variables)
        if level.outermost and self.tape.on_append is not None:
            forward = Forward(self.tape, OfSlots(), record=False)
        else:
            known: dict[Slot, Value] = {}
            forward = Forward(self.tape, known, record=not level.outermost)
            for slot, t in zip(slots, tangents):
                array = call(self.tape, Named(np.array), (t,), {}) if is_tracked(t) else np.array(t)
                known[slot] = array.astype(slot.dtype)
            for node in self.tape.nodes[level.start :]:
                forward.through(node)
        plain = [np.asarray(plain_of(v)) for v in values]
        return tuple([forward.tangent(v, p.shape, p.dtype) for v, p in zip(values, plain)])

    def rows(self, result: Any, variables: Sequence[Any]) -> list[Value]:
        """The gradients of each element of a result, in the first axis."""
        wanted, level = self._opened(variables)
        shape, size = np.shape(result), np.size(result)
        slot = slot_of(result) if is_tracked(result) else None
        if slot is None or not size:
            return [np.zeros((size, *s.shape), s.dtype) for s in wanted]
        rows = []
        for unit in np.eye(size, dtype=slot.dtype):
            ct = unit.reshape(shape)
            if level.outermost:
                rows.append(self.tape.pull([(slot, ct)], wanted, keep=True))
            else:
                rows.append(list(self.gradient((result,), (ct,), variables)))
        return [np.stack(parts) for parts in zip(*rows)]

    def columns(self, result: Any, variables: Sequence[Any]) -> Value:
        """The derivatives of a result by each element of the variables, in the last axis."""
        columns: list[Value] = []
        for k, variable in enumerate(variables):
            for unit in np.eye(variable.size, dtype=variable.dtype):
                tangents = [np.zeros(v.shape, v.dtype) for v in variables]
                tangents[k] = unit.reshape(variable.shape)
                columns += self.tangent((result,), tangents, variables)
        return np.stack(columns, axis=-1) if columns else np.zeros((*np.shape(result), 0))

    def nested(
        self, made: Function, args: Sequence[Any], kwargs: Mapping[str, Any], stays: bool = False
    ) -> Any:
        """``made`` of the arguments, a function that asks for derivatives, within another. ``stays``: it does
        so later."""
        tape = self.tape
        self.stack.append(_Level(len(tape.nodes)))
        tape.levels += 1
        try:
            return made(*args, **kwargs)
        finally:
            self.stack.pop()
            if not stays:
                tape.levels -= 1
                if not tape.levels and tape.on_append is not None:
                    tape.nodes.clear()

    def custom(
        self, forward: Callable[..., Any], backward: Callable[..., Any], args: tuple[Any, ...], name: str
    ) -> Any:
        tape = self.tape
        slots = [slot_of(a) if is_tracked(a) else None for a in leaves(args)]
        plain = mapped(lambda a: np.array(a.plain)[()] if is_tracked(a) else a, args)
        if tape.on_append is not None and not tape.levels and any(slot is not None for slot in slots):
            raise lost(tape, f"{name}, a custom_vjp function without a derivative in forward mode,")
        # copies: residuals are as they were
        again = tape.again
        copied = mapped(lambda a: +a if is_tracked(a) else a, args) if again else plain
        start, own = len(tape.nodes), [slot_of(a) if is_tracked(a) else None for a in leaves(copied)]
        value, residuals = forward(*copied)
        if again:
            self._check_closed(start, own, [value, residuals])
            value = mapped(lambda a: np.array(a.plain)[()] if is_tracked(a) else a, value)
        else:
            value, residuals = self._constant(value), self._constant(residuals)
        outs = [Slot(np.shape(v), np.asarray(v).dtype) for v in results_of(value, name)]

        def pull(cotangents: list[Array], record: bool) -> list[Array]:
            given = [ct if is_tracked(ct) else np.asarray(ct) for ct in cotangents]
            kept = residuals if record else mapped(plain_of, residuals)
            found = backward(kept, like(value, given))
            return gradients_of(found if record else self._constant(found), plain, name)

        if all(slot is None for slot in slots):
            return value
        tape.append(CustomNode(pull, None, slots, outs, f"{name} at {line_of(place())}"))
        rest = iter(outs)

        def wrapped(leaf: Any) -> Any:
            slot = next(rest)
            return fresh(tape, leaf, slot) if isinstance(leaf, np.ndarray) else number(tape, leaf, slot)

        return mapped(wrapped, value)

    def _check_closed(self, start: int, slots: Sequence[Slot | None], results: object) -> None:
        """Raise if what was computed since node ``start`` depends on anything but these slots."""
        known = {None, *slots}
        for node in self.tape.nodes[start:]:
            if not known.issuperset(inputs_of(node)):
                raise lost(self.tape, "a function with a gradient of its own that reads other variables")
            known.update(outputs_of(node))
        if not known.issuperset([slot_of(found) for found in tracked_in(results, [])]):
            raise lost(self.tape, "a function with a gradient of its own that reads other variables")

    def _constant(self, tree: Any) -> Any:
        """What a function of one's own gives, which must not depend on anything but its arguments."""
        for found in tracked_in(tree, []):
            if slot_of(found) is not None:
                raise lost(self.tape, "a function with a gradient of its own that reads other variables")
        return mapped(plain_of, tree)

    def has_variables(self, values: Any) -> bool:
        return bool(tracked_in(values, []))

    def call(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        compiled: Callable[..., Any] | None = None,
    ) -> Any:
        return call(self.tape, Named(function, run=_untaped(compiled or function)), args, kwargs)

    def is_worth_a_graph(self, code: object) -> bool:
        """Whether to capture an inner derivative of a function with this code: of one that is made again and
        again, it would take longer than it saves."""
        self.tried[code] += 1
        return self.tried[code] <= _MOST_TRIED

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
    again: bool = False,
) -> Any:
    """``made`` of the arguments, a function that opens variables and asks for derivatives, as plain Python.
    ``memory_budget``: bytes to be saved for the backward pass of loops. ``notes``: gets what was recorded, in
    words. ``again``: it asks for more than a single gradient. Raises ``NotDifferentiableError`` for what
    would lose a derivative."""
    tape = Tape(None if memory_budget is None else Budget(memory_budget))
    tape.always_again = again
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
    if _should_follow(function.__code__):  # not of what asks for the derivative, where variables are opened
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
