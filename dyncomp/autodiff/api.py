"""``grad``, ``value_and_grad``, ``vjp`` and ``jvp`` of NumPy functions."""

from __future__ import annotations

import contextlib
import functools
import time
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..api import compile_with
from ..capture.entries.config import CaptureConfig
from ..capture.environment.regions import captured_whole, is_compiling
from ..errors import DyncompError, GraphBreakError, NotDifferentiableError
from ..frontends.derivatives import PLAIN, Recorder
from . import traced
from .places import places
from .pullback import forward
from .pullback import pullback as pullback_of
from .record import FEW_OPS, Recorded, Run, described, new_config
from .taped import taped, taped_pullback
from .trees import mapped

Function = Callable[..., Any]
_MOST_KINDS = 64
# Seconds of calls on the tape after which their long loops are unrolled, which takes about as long.
UNROLLED_AFTER = 5.0


# -- gradients ----------------------------------------------------------------------------------
def grad(
    f: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    wrt: str | Sequence[str] | None = None,
    memory_budget: int | None = None,
) -> Function:
    """The gradient of ``f``, a function with a real scalar result.

    ``argnums``: the positional argument to differentiate by, or several of them (then the result is a tuple).
    An argument is a floating-point array or number, or a tree of such: dicts, lists, tuples, named tuples,
    dataclasses and classes given to :func:`register_tree`, nested; its gradient is a tree like it, with
    ``None`` for leaves of other kinds. ``wrt``: what to differentiate by instead, named by an argument and
    the way from there, as ``"model.layers[0].weights"``, or several such names; ``f`` then finds the arrays
    that it is differentiated by in these places while it runs. ``has_aux``: ``f`` gives a pair
    ``(result, more)``; then so does what is returned: ``(gradient, more)``. A gradient has its argument's
    shape and dtype; of a complex argument ``x + iy`` it is ``df/dx + i df/dy``. Where ``f`` is not smooth, it
    is a subgradient: 0 for ``abs`` at 0, equal shares for ties of ``max``.

    Where ``f`` is no single graph, it runs on a tape. Raises
    :class:`~dyncomp.errors.NotDifferentiableError` with the program's line where a derivative would be lost;
    ``TypeError`` for arguments that are no floating-point numbers and results that are no scalars;
    ``ValueError`` for wrong ``argnums`` and ``wrt``. Floating-point warnings are not given.

    ``memory_budget``: about how many bytes loops may save for the backward pass; what exceeds it is computed
    again (see "Loops and memory" in docs/derivatives.md).
    """
    return _gradient(f, argnums, has_aux, wrt, memory_budget, with_value=False)


def value_and_grad(
    f: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    wrt: str | Sequence[str] | None = None,
    memory_budget: int | None = None,
) -> Function:
    """As :func:`grad`, with the result in front: ``(f(x), gradient)``, computed together."""
    return _gradient(f, argnums, has_aux, wrt, memory_budget, with_value=True)


def _gradient(
    f: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    wrt: str | Sequence[str] | None,
    memory_budget: int | None,
    with_value: bool,
) -> Function:
    if memory_budget is not None and (not isinstance(memory_budget, int) or memory_budget <= 0):
        raise ValueError(f"memory_budget is a number of bytes, not {memory_budget!r}")
    key: tuple[object, ...]
    if wrt is None:
        numbers, single = argument_numbers(argnums), isinstance(argnums, int)
        key = ("by arguments", numbers, single, has_aux, with_value)
        both = traced.value_and_gradient(f, numbers, single, has_aux, name_of(f))
    else:
        names, single = (wrt,) if isinstance(wrt, str) else tuple(wrt), isinstance(wrt, str)
        key = ("by places", names, single, has_aux, with_value)
        both = traced.value_and_named_gradient(f, places(f, names), single, has_aux, name_of(f))
    made = both if with_value else traced.only_gradient(both, has_aux)
    return derived(f, (key, memory_budget), made, loops=Loops(memory_budget))


def name_of(f: Function) -> str:
    name: str = getattr(f, "__qualname__", "") or type(f).__qualname__
    return name


@captured_whole
def derived(
    f: Function,
    key: object,
    made: Function,
    refusal: type[DyncompError] = NotDifferentiableError,
    loops: Loops | None = None,
) -> Function:
    """What users get: ``made``, a function around ``f`` that asks for derivatives, as one compiled graph; in
    captured code it is a part of the graph there. ``refusal``: what is raised where there is none. ``loops``:
    how long ones run on a tape (default: there is none, and they are unrolled)."""

    own: dict[object, _Compiled] = {}

    def derivative(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return made(*args, **kwargs)
        recorder = PLAIN.recorder
        if recorder is not None:
            if refusal is NotDifferentiableError:
                return _nested(recorder, derivative, f, _compiled(f, key, made, own, loops), args, kwargs)
            if recorder.has_variables((args, kwargs)):
                return recorder.call(derivative, args, kwargs)
        return _whole(f, made, _compiled(f, key, made, own, loops), args, kwargs, refusal)

    if is_compiling():
        return derivative
    derivative._dyncomp_again = (derivative, lambda: _fresh(f, made, refusal, loops))  # type: ignore[attr-defined]
    return functools.wraps(f, updated=())(derivative)


def _compiled(
    f: Function, key: object, made: Function, own: dict[object, _Compiled], loops: Loops | None = None
) -> _Compiled:
    """``made``, compiled, and kept in ``f``, or in ``own`` where that cannot be."""
    kept = _kept_by(f)
    if kept is None:
        kept = own
    compiled = kept.get(key)
    if compiled is None:
        compiled = kept[key] = _Compiled(made, loops)
    return compiled


def _nested(
    recorder: Recorder,
    derivative: Function,
    f: Function,
    compiled: _Compiled,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A derivative within one that a tape records: a graph, differentiated as any other call, or on the same
    tape."""
    kind = _kind_of(args, kwargs)
    if kind not in compiled.taped and recorder.is_worth_a_graph(getattr(f, "__code__", f)):
        try:
            return recorder.call(derivative, args, kwargs, compiled.call)
        except GraphBreakError as error:
            compiled.note(kind, error)
    return recorder.nested(compiled.made, args, kwargs)


class Loops(NamedTuple):
    """Long loops run on the tape until their graph pays, or, where there is a ``memory_budget``, always.
    ``again``: more than one gradient is asked for, or a tangent."""

    memory_budget: int | None
    again: bool = False

    @property
    def most_ops(self) -> int:
        return FEW_OPS if self.memory_budget is None else 0


class _Compiled:
    """A compiled function, and what kinds of calls are known to be no single graph. Long loops are unrolled
    by ``unrolled``, and by ``call`` where ``loops`` says nothing else."""

    def __init__(self, made: Function, loops: Loops | None = None) -> None:
        self.made = made
        self.loops = loops
        self.config = new_config() if loops is None else new_config(most_ops=loops.most_ops)
        self.call: Function = compile_with(made, self.config)
        self.notes: list[str] | None = None  # for explain()
        self.taped: dict[object, _Taped] = {}

    def note(self, kind: object, error: GraphBreakError) -> _Taped:
        """Calls of this kind are no single graph."""
        if len(self.taped) >= _MOST_KINDS:
            self.taped.clear()
        made = self.taped[kind] = _Taped(error.with_traceback(None), self.loops)
        return made

    @functools.cached_property
    def unrolled(self) -> Function:
        made: Function = compile_with(self.made, new_config())
        return made


class _Taped:
    """Calls that are no single graph, and why. ``spent``: seconds on the tape. ``again``: long loops may be
    unrolled yet; ``is_unrolled``: they are."""

    def __init__(self, problem: GraphBreakError, loops: Loops | None) -> None:
        self.problem = problem
        self.spent = 0.0
        self.again = (
            loops is not None
            and loops.memory_budget is None
            and problem.break_id in ("loop", "loop-not-extracted")
        )
        self.is_unrolled = False

    def unroll(self, compiled: _Compiled, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The call with its loops unrolled; raises ``GraphBreakError`` where that is no graph either."""
        self.again = False
        result = compiled.unrolled(*args, **kwargs)
        self.is_unrolled = True
        return result


def _kind_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> object:
    """What calls that break alike have in common."""
    found: list[object] = [tuple(kwargs)]

    def note(leaf: Any) -> None:
        kind = type(leaf)
        if isinstance(leaf, np.ndarray):
            found.append((leaf.shape, leaf.dtype))
        else:
            found.append((kind, leaf if kind in (int, bool, str) else None))

    mapped(note, [*args, *kwargs.values()])
    return tuple(found)


def _whole(
    f: Function,
    made: Function,
    compiled: _Compiled,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    refusal: type[DyncompError],
) -> Any:
    kind = _kind_of(args, kwargs) if compiled.taped else None
    known = compiled.taped.get(kind)
    if known is None:
        try:
            return compiled.call(*args, **kwargs)
        except GraphBreakError as error:
            kind = _kind_of(args, kwargs)
            known = compiled.note(kind, error)
    elif known.is_unrolled:
        return compiled.unrolled(*args, **kwargs)
    elif known.again and known.spent > UNROLLED_AFTER:
        with contextlib.suppress(GraphBreakError):
            return known.unroll(compiled, args, kwargs)
    if refusal is not NotDifferentiableError:
        return _alone(f, made, args, kwargs, refusal, known.problem)
    start = time.perf_counter()
    try:
        if compiled.notes is not None:
            compiled.notes.append(f"not one graph: {str(known.problem).splitlines()[0]}")
        budget, again = compiled.loops or Loops(None)
        return taped(made, args, kwargs, budget, compiled.notes, again)
    except NotDifferentiableError as error:
        if known.again:
            with contextlib.suppress(GraphBreakError):
                return known.unroll(compiled, args, kwargs)
        compiled.taped.pop(kind, None)
        error.add_note(f"{name_of(f)} is not one graph: {known.problem}")
        raise
    finally:
        known.spent += time.perf_counter() - start


def _alone(
    f: Function,
    made: Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    refusal: type[DyncompError],
    problem: GraphBreakError,
) -> Any:
    """What there is no tape for: the program's own exceptions, else a refusal."""
    if problem.break_id in ("raise", "would-raise"):
        with contextlib.suppress(refusal):
            return made(*args, **kwargs)  # which raises what the program does
    raise refusal(f"{name_of(f)} is not one graph: {problem}") from problem


def _fresh(
    f: Function, made: Function, refusal: type[DyncompError], loops: Loops | None
) -> tuple[Function, CaptureConfig]:
    compiled = _Compiled(made, loops)
    compiled.notes = compiled.config.records.tapes
    return lambda *args, **kwargs: _whole(f, made, compiled, args, kwargs, refusal), compiled.config


def _kept_by(f: Function) -> dict[object, _Compiled] | None:
    """What was compiled of a function for derivatives: kept in the function itself."""
    names = getattr(f, "__dict__", None)
    if not isinstance(f, types.FunctionType) or names is None:
        return None
    owner, known = names.get("_dyncomp_derivatives", (None, {}))
    if owner is not f:  # functools.wraps copied another function's
        known = {}
        names["_dyncomp_derivatives"] = (f, known)
    return known


def _by_argument(run: Run, found: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    """A derivative for each argument of those for the inputs of a run: zero for one that it did not have."""
    known: Mapping[int, Any] = {id(run.inputs[k]): g for k, g in zip(run.piece.wrt, found)}
    return [known[id(array)] if id(array) in known else np.zeros_like(array) for array in wanted]


def _recorded(f: Function, numbers: tuple[int, ...]) -> Recorded:
    """``f`` compiled for derivatives by these arguments. A function keeps it: it is asked again and again."""
    names = getattr(f, "__dict__", None)
    if not isinstance(f, types.FunctionType) or names is None:
        return Recorded(f, numbers, forward)
    made = names.get("_dyncomp_recorded", {})
    if any(known.function is not f for known in made.values()):
        made = {}  # functools.wraps copied another function's
    if numbers not in made:
        names["_dyncomp_recorded"] = made = {**made, numbers: Recorded(f, numbers, forward)}
    found: Recorded = made[numbers]
    return found


def _kept(f: Function, numbers: tuple[int, ...], args: Sequence[Any]) -> tuple[Recorded, Any, Run, list[Any]]:
    """A call whose gradient is asked for later: it may write nothing that it did not make."""
    recorded = _recorded(f, numbers)
    value, run, wanted = recorded.call(args, {})
    if run.piece.graph.mutations:
        raise NotDifferentiableError(f"{recorded.name} writes into arrays that it did not make")
    return recorded, value, run, wanted


# -- products with the Jacobian -------------------------------------------------------------------
@captured_whole
def vjp(f: Function, *primals: Any) -> tuple[Any, Function]:
    """``f(*primals)``, and a function that gives the products of a cotangent with the Jacobian: one for each
    argument, in a tuple. ``f`` gives an array or a tuple of arrays; a cotangent is as the result is.

    Raises as :func:`grad` does; ``TypeError`` or ``ValueError`` for a cotangent of another form or shape.
    """
    if is_compiling():
        return traced.pulled_back(f, name_of(f))(*primals)
    recorder = PLAIN.recorder
    if recorder is not None:
        found: tuple[Any, Function] = recorder.nested(
            traced.pulled_back(f, name_of(f)), primals, {}, stays=True
        )
        return found
    try:
        value, run, wanted, numbers = _run(f, primals)
    except NotDifferentiableError as error:
        if not isinstance(error.__cause__, GraphBreakError):
            raise
        return taped_pullback(traced.pulled_back(f, name_of(f)), primals)
    pull = pullback_of(run, numbers)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        given = _as_results(cotangent, value, "cotangent")
        found = pull(*given)
        return tuple(_like(g, a) for g, a in zip(_by_argument(run, found, wanted), primals))

    return value, pullback


@captured_whole
def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """``f(*primals)``, and the product of its Jacobian with ``tangents``, one for each argument: the
    derivative of the result in that direction, as the result is.

    Raises as :func:`grad` does; ``ValueError`` for tangents of another number or shape.
    """
    if len(primals) != len(tangents):
        raise ValueError(f"{len(primals)} arguments and {len(tangents)} tangents")
    made = traced.pushed_forward(f, name_of(f))
    if is_compiling():
        return made(primals, tangents)
    found: tuple[Any, Any] = derived(f, "jvp", made, loops=Loops(None, again=True))(
        tuple(primals), tuple(tangents)
    )
    return found


def _run(f: Function, primals: Sequence[Any]) -> tuple[Any, Run, list[Any], tuple[int, ...]]:
    """A call of ``f``, and which outputs of the graph its results are."""
    recorded, value, run, wanted = _kept(f, tuple(range(len(primals))), primals)
    numbers = [run.number_of(result) for result in _results(value)]
    if None in numbers or not numbers:
        raise NotDifferentiableError(f"a result of {recorded.name} was made outside of the captured graph")
    for result in _results(value):
        if np.asarray(result).dtype.kind not in "fc":
            raise TypeError(f"a result of {recorded.name} is {described(result)}")
    return value, run, wanted, tuple(k for k in numbers if k is not None)


def _results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _as_results(given: Any, value: Any, what: str) -> list[Any]:
    parts, results = _results(given), _results(value)
    if len(parts) != len(results):
        raise ValueError(f"{len(results)} results and {len(parts)} parts of the {what}")
    return [_shaped(p, r, what) for p, r in zip(parts, results)]


def _shaped(given: Any, like: Any, what: str) -> Any:
    array = np.asarray(given)
    wanted = np.asarray(like)
    if array.shape != wanted.shape:
        raise ValueError(f"a {what} of shape {array.shape} for an array of shape {wanted.shape}")
    return np.ascontiguousarray(array, wanted.dtype).reshape(wanted.shape)


def argument_numbers(argnums: int | Sequence[int]) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not numbers or any(not isinstance(k, int) or isinstance(k, bool) or k < 0 for k in numbers):
        raise ValueError(
            f"argnums is the number of a positional argument or a tuple of such, not {argnums!r}"
        )
    return numbers


def _like(derivative: Any, argument: object) -> Any:
    """A derivative as its argument is: a Python number's is one."""
    if isinstance(argument, (float, complex)) and not isinstance(argument, np.generic):
        return derivative.item()
    return derivative
