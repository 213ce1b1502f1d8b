"""``grad`` and ``value_and_grad`` of NumPy functions that are captured whole.

The captured graph and the derivatives of its result are compiled as one joint graph. A part of a program
that is not in this graph would have no derivative: where the graph breaks, or the original runs, the call
raises instead.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import pipeline
from .aot_autograd.functionalize import functionalize
from .aot_autograd.joint import joint
from .api import SESSION, compile_with
from .capture.entries.config import CaptureConfig
from .capture.environment.regions import disable
from .dataclass import dataclass
from .errors import GraphBreakError, NotDifferentiableError
from .frontends.base import ArrayOwner
from .graph.ir import Graph
from .options import Options, make_options
from .pipeline import Compiled

# Loops with known trip counts are unrolled up to these numbers of steps and operations.
MOST_STEPS = 256
MOST_OPS = 20_000


@dataclass(frozen=True)
class _Run:
    """What a graph gave: the result, and gradients by the identity of arguments."""

    result: object
    gradients: Mapping[int, Any]


class _NoScalar(NotDifferentiableError):
    """A graph without a scalar among its outputs."""


class _Call(threading.local):
    """The call of a differentiated function that this thread is in."""

    wanted: Sequence[object] = ()  # the arguments that gradients are asked for
    runs: list[_Run] | None = None


class _Gradient:
    """A function's value and gradients, compiled."""

    def __init__(self, function: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool) -> None:
        self.function = function
        self.name = getattr(function, "__qualname__", repr(function))
        self.single = isinstance(argnums, int)
        self.argnums = _numbers(argnums)
        self.has_aux = has_aux
        self.call = _Call()
        # each call runs the graph: no comparison with the original, no waiting; and loops are in it
        options = {"measure": False, "patience_us": 0, "unroll_limit": MOST_STEPS, "unroll_ops": MOST_OPS}
        config = SESSION.new_config(make_options(fullgraph=True, options=options))
        config.compile_graph = self._compile
        config.make_native = None  # loops over numbers are no nodes
        self.config: CaptureConfig = config
        self.compiled = compile_with(function, config)

    def value_and_grad(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        given = list(args)
        for k in self.argnums:
            given[k] = self._argument(args, k)
        wanted = [given[k] for k in self.argnums]
        runs: list[_Run] = []
        before = self.call.wanted, self.call.runs
        self.call.wanted, self.call.runs = wanted, runs
        try:
            value = self.compiled(*given, **kwargs)
        except _NoScalar:
            raise TypeError(
                f"grad needs a function with a real scalar result, and {self.name} has none"
            ) from None
        except GraphBreakError as error:
            raise NotDifferentiableError(f"{self.name} is not one graph: {error}") from error
        finally:
            self.call.wanted, self.call.runs = before
        gradients = self._gradients_of(self._result(value), runs)
        made = [_like(gradients.get(id(array)), array, args[k]) for array, k in zip(wanted, self.argnums)]
        return value, made[0] if self.single else tuple(made)

    def _argument(self, args: tuple[Any, ...], number: int) -> Any:
        try:
            given = args[number]
        except IndexError:
            raise TypeError(
                f"argnums names argument {number} of {self.name}, which was called with {len(args)}"
            ) from None
        array = np.asarray(given)
        if array.dtype.kind not in "fc":
            raise TypeError(
                f"{self.name} is differentiated by floating-point numbers: argument {number} is "
                f"{_described(given)}"
            )
        # an object of its own: the same array may be another argument, too, or a global of the function
        return array.view()

    def _result(self, value: Any) -> Any:
        if self.has_aux:
            if not isinstance(value, tuple) or len(value) != 2:
                raise TypeError(f"has_aux=True: {self.name} has to return a pair, not {_described(value)}")
            value = value[0]
        if np.ndim(value) != 0 or np.asarray(value).dtype.kind not in "f":
            raise TypeError(
                f"grad needs a function with a real scalar result: {self.name} gives {_described(value)}"
            )
        return value

    def _gradients_of(self, result: object, runs: Sequence[_Run]) -> Mapping[int, Any]:
        if len(runs) != 1:
            raise NotDifferentiableError(
                f"{self.name} ran as {len(runs)} graphs, and a derivative is of what one graph computes "
                f"(dyncomp.explain says more; under a debugger the original runs)"
            )
        if result is not runs[0].result:
            raise NotDifferentiableError(f"the result of {self.name} was made outside of the captured graph")
        return runs[0].gradients

    # -- compilation ----------------------------------------------------------------------------
    def _compile(
        self,
        graph: Graph,
        options: Options,
        examples: tuple[Any, ...],
        owner: ArrayOwner | None,
        on_status: Any,
    ) -> Compiled:
        """What capture calls with the graph of a call."""
        if owner is not None:
            raise NotDifferentiableError(
                f"{self.name} works on arrays of {owner}: gradients are of NumPy functions"
            )
        table = pipeline.op_table()
        whole = functionalize(graph, table)
        wrt = [k for k, e in enumerate(examples) if any(e is a for a in self.call.wanted)]
        scalars = [k for k, out in enumerate(whole.outputs) if not out.var.shape and out.var.dtype.is_float]
        if not scalars:
            raise _NoScalar
        written = {index for index, _ in whole.mutations}
        if written & set(wrt):
            raise NotDifferentiableError(f"{self.name} writes into an argument that it is differentiated by")
        made = joint(whole, table, wrt, scalars[:1], ones=True)
        compiled = pipeline.run_pipeline(made.graph, options, examples, None, None)
        count = len(whole.outputs)
        run = compiled.call
        call = self.call

        def recording(*inputs: Any) -> Any:
            results = run(*inputs)
            results = results if isinstance(results, (tuple, list)) else (results,)
            outputs = results[:count]
            if call.runs is not None:
                gradients = {id(inputs[k]): g for k, g in zip(wrt, results[count:])}
                call.runs.append(_Run(outputs[scalars[0]], gradients))
            return outputs if count != 1 else outputs[0]

        compiled.call = recording
        return compiled


def _numbers(argnums: int | Sequence[int]) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not numbers or any(not isinstance(k, int) or isinstance(k, bool) or k < 0 for k in numbers):
        raise ValueError(
            f"argnums is the number of a positional argument or a tuple of such, not {argnums!r}"
        )
    return numbers


def _described(value: Any) -> str:
    if isinstance(value, (np.ndarray, np.generic)):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"of type {type(value).__name__}"


def _like(gradient: Any, array: Any, argument: object) -> Any:
    """A gradient as its argument is: a Python number's is one; ``None`` is zero."""
    found = np.zeros_like(array) if gradient is None else gradient
    if isinstance(argument, (float, complex)) and not isinstance(argument, np.generic):
        return found.item()
    return found


def grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The gradient of ``f``, a function of NumPy arrays with a real scalar result.

    ``argnums``: the positional argument to differentiate by, or several of them (then the result is a tuple).
    ``has_aux``: ``f`` gives a pair ``(result, more)``; then so does what is returned: ``(gradient, more)``. A
    gradient has its argument's shape and dtype; of a complex argument ``x + iy`` it is ``df/dx + i df/dy``.
    Where ``f`` is not smooth, it is a subgradient: 0 for ``abs`` at 0, equal shares for ties of ``max``.

    ``f`` has to be captured as one graph: raises :class:`~dyncomp.errors.NotDifferentiableError` with the
    program's line where it is not, or where it computes something without a derivative; ``TypeError`` for
    arguments that are no floating-point numbers and results that are no scalars; ``ValueError`` for wrong
    ``argnums``. Floating-point warnings are not given.
    """

    def only_gradient(found: tuple[Any, Any]) -> Any:
        value, gradient = found
        return (gradient, value[1]) if has_aux else gradient

    return _called(f, lambda: _Gradient(f, argnums, has_aux), only_gradient)


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """As :func:`grad`, with the result in front: ``(f(x), gradient)``, computed together."""
    return _called(f, lambda: _Gradient(f, argnums, has_aux), lambda found: found)


def _called(
    f: Callable[..., Any], make: Callable[[], _Gradient], of: Callable[[tuple[Any, Any]], Any]
) -> Callable[..., Any]:
    """``f``'s value and gradient as a function, not looked into by captured code."""
    made = make()

    @functools.wraps(f)
    def gradient(*args: object, **kwargs: object) -> Any:
        return of(made.value_and_grad(*args, **kwargs))

    def again() -> tuple[Callable[..., Any], CaptureConfig]:
        fresh = make()
        return lambda *args, **kwargs: of(fresh.value_and_grad(*args, **kwargs)), fresh.config

    found: Callable[..., Any] = disable(gradient, recursive=False, reason="dyncomp.grad")
    gradient._dyncomp_again = again  # type: ignore[attr-defined]
    return found


def compiled_again(f: object) -> tuple[Callable[..., Any], CaptureConfig] | None:
    """Of what ``grad`` or ``value_and_grad`` made: the same, compiled afresh, and its configuration."""
    again = getattr(f, "_dyncomp_again", None)
    return None if again is None else again()
