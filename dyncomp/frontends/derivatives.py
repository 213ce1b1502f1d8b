"""The functions by which derivatives are asked for in captured code; rules make markers of them.

``dyncomp.grad`` and its like are Python functions made of these, which capture follows as any other. Where
such a function runs as plain Python instead, the program's own exceptions come out of it as always, and then
what asks for a derivative raises: there is no graph to differentiate.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from ..errors import NotDifferentiableError

_PLAIN = (
    "the function did not run as one captured graph, and a derivative is of what a graph computes "
    "(dyncomp.explain says more; under a debugger the original runs)"
)


class Recorder(Protocol):
    """What records plain Python for derivatives: ``autodiff/taped.py``."""

    def variable(self, value: Any) -> Any: ...
    def gradient(
        self, values: Sequence[Any], cotangents: Sequence[Any], variables: Sequence[Any]
    ) -> tuple[Any, ...]: ...
    def stop_gradient(self, x: Any) -> Any: ...
    def has_variables(self, values: Any) -> bool: ...
    def call(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        compiled: Callable[..., Any] | None = None,
    ) -> Any: ...
    def is_worth_a_graph(self, code: object) -> bool: ...
    def nested(
        self, made: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], stays: bool = False
    ) -> Any: ...
    def directions(self, variables: Sequence[Any], tangents: Sequence[Any]) -> None: ...
    def tangent(
        self, values: Sequence[Any], tangents: Sequence[Any], variables: Sequence[Any]
    ) -> tuple[Any, ...]: ...
    def rows(self, result: Any, variables: Sequence[Any]) -> list[Any]: ...
    def columns(self, result: Any, variables: Sequence[Any]) -> Any: ...
    def custom(
        self, forward: Callable[..., Any], backward: Callable[..., Any], args: tuple[Any, ...], name: str
    ) -> Any: ...
    def dtype_of(self, value: Any) -> np.dtype[Any]: ...


class _Plain(threading.local):
    """What records the plain Python of this thread."""

    recorder: Recorder | None = None


PLAIN = _Plain()


def variable(value: Any) -> Any:
    """A copy of a floating-point array or number to differentiate by: an array."""
    recorder = PLAIN.recorder
    return np.array(value) if recorder is None else recorder.variable(value)


def is_variable(value: Any) -> bool:
    """Whether there can be a variable of this value: an array or number of a floating-point type."""
    if not isinstance(value, (np.ndarray, np.generic, float, complex)):
        return False
    recorder = PLAIN.recorder
    return (np.asarray(value).dtype if recorder is None else recorder.dtype_of(value)).kind in "fc"


def gradient(values: Sequence[Any], cotangents: Sequence[Any], variables: Sequence[Any]) -> tuple[Any, ...]:
    """The products of cotangents (of the values' shapes; converted to their dtypes) with the derivatives of
    ``values`` by each of the variables."""
    recorder = PLAIN.recorder
    if recorder is None:
        _is_plain()
    return recorder.gradient(values, cotangents, variables)


def tangent(values: Sequence[Any], tangents: Sequence[Any], variables: Sequence[Any]) -> tuple[Any, ...]:
    """The derivatives of each of ``values`` in the direction that has these tangents for the variables."""
    recorder = PLAIN.recorder
    if recorder is None:
        _is_plain()
    return recorder.tangent(values, tangents, variables)


def directions(variables: Sequence[Any], tangents: Sequence[Any]) -> None:
    """In plain Python: :func:`tangent` will be asked for these, and nothing else of these variables."""
    recorder = PLAIN.recorder
    if recorder is not None:
        recorder.directions(variables, tangents)


def rows(result: Any, variables: Sequence[Any]) -> list[Any]:
    """In plain Python: the gradients of each element of a result, in the first axis."""
    recorder = PLAIN.recorder
    if recorder is None:
        _is_plain()
    return recorder.rows(result, variables)


def columns(result: Any, variables: Sequence[Any]) -> Any:
    """In plain Python: the derivatives of a result by each element of the variables, in the last axis."""
    recorder = PLAIN.recorder
    if recorder is None:
        _is_plain()
    return recorder.columns(result, variables)


def custom_gradient(
    values: Sequence[Any], stand_ins: Sequence[Any], gradients: Sequence[Any], arguments: Sequence[Any]
) -> tuple[Any, ...]:
    """``values``, which have ``gradients`` by ``arguments``, made of ``stand_ins`` for their cotangents."""
    _is_plain()


def checkpoint_begin() -> int:
    """What is computed from here on is computed again where its derivative is: gives a number."""
    return 0


def checkpoint_end(values: Sequence[Any], number: int) -> tuple[Any, ...]:
    """Up to here; these are the results of what began with this number."""
    return tuple(values)


def stand_in(value: Any) -> Any:
    """An array of the value's shape and dtype that a cotangent will take the place of."""
    _is_plain()


def stop_gradient(x: Any) -> Any:
    """``x``, as a constant to derivatives. In plain Python, and of what is no array, ``x`` itself."""
    recorder = PLAIN.recorder
    return x if recorder is None else recorder.stop_gradient(x)


def _is_plain() -> NoReturn:
    raise NotDifferentiableError(_PLAIN)
