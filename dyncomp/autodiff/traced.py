"""What ``grad`` and its like are in captured code: Python functions around the user's, which capture follows.

They open variables, call the function and ask for derivatives (``frontends/derivatives.py``), so that a
derivative of what calls ``grad`` is one of the graph in which both are. Exceptions are raised here too: where
capture meets one, the same code runs as plain Python and raises it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..capture.environment.regions import captured_whole, is_compiling
from ..frontends.derivatives import (
    checkpoint_begin,
    checkpoint_end,
    custom_gradient,
    gradient,
    is_variable,
    stand_in,
    tangent,
    variable,
)
from ..frontends.derivatives import directions as chosen_before
from .places import Place, fetch, store
from .trees import leaves, mapped

Function = Callable[..., Any]


class Variables:
    """Variables in the place of what a function is differentiated by. What is no floating-point number stays
    as it is."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def open(self, leaf: Any) -> Any:
        if not is_variable(leaf):
            return leaf
        made = variable(leaf)
        self.all.append(made)
        return made

    def opened(self, tree: Any, what: str) -> Any:
        before = len(self.all)
        made = mapped(self.open, tree)
        if len(self.all) == before:
            raise TypeError(
                f"derivatives are by floating-point numbers or arrays of such: {what} is {described(tree)}"
            )
        return made


def like(tree: Any, derivatives: Sequence[Any]) -> Any:
    """The tree with a derivative in place of each leaf that was a variable, ``None`` for others."""
    rest = iter(derivatives)

    def place(leaf: Any) -> Any:
        if not is_variable(leaf):
            return None
        found = next(rest)
        if type(leaf) is float or type(leaf) is complex:
            return found.item()
        return found if isinstance(leaf, np.ndarray) else found[()]

    return mapped(place, tree)


def with_variables(
    variables: Variables, numbers: tuple[int, ...], args: Sequence[Any], name: str
) -> list[Any]:
    """The arguments, with variables in place of those of these numbers."""
    given = list(args)
    for k in numbers:
        if k >= len(args):
            raise TypeError(f"argnums names argument {k} of {name}, which was called with {len(args)}")
        given[k] = variables.opened(args[k], f"argument {k} of {name}")
    return given


def value_and_gradient(
    f: Function, numbers: tuple[int, ...], single: bool, has_aux: bool, name: str
) -> Function:
    def gradient_of(*args: Any, **kwargs: Any) -> Any:
        variables = Variables()
        value = f(*with_variables(variables, numbers, args, name), **kwargs)
        result = first_of(value, has_aux, name)
        found = gradient((result,), (1.0,), variables.all)
        made = like([args[k] for k in numbers], found)
        return value, made[0] if single else tuple(made)

    return gradient_of


def value_and_named_gradient(
    f: Function, places: Sequence[Place], single: bool, has_aux: bool, name: str
) -> Function:
    """As :func:`value_and_gradient`, by what is at places of the arguments, where ``f`` finds variables."""

    def gradient_of(*args: Any, **kwargs: Any) -> Any:
        variables = Variables()
        given, named = list(args), dict(kwargs)
        found: list[Any] = []
        held: list[Any] = []
        for place in places:
            by_keyword = place.name in kwargs
            if not by_keyword and not 0 <= place.position < len(args):
                raise TypeError(f"wrt={place.text!r}: {name} was called without {place.name}")
            holder = kwargs[place.name] if by_keyword else args[place.position]
            for step in place.steps[:-1]:
                holder = fetch(step, holder)
            old = fetch(place.steps[-1], holder) if place.steps else holder
            new = variables.opened(old, place.text)
            found.append(old)
            if place.steps:
                held.append((place.steps[-1], holder, old))
                store(place.steps[-1], holder, new)
            elif by_keyword:
                named[place.name] = new
            else:
                given[place.position] = new
        try:
            value = f(*given, **named)
        finally:
            for step, holder, old in reversed(held):
                store(step, holder, old)
        result = first_of(value, has_aux, name)
        made = like(found, gradient((result,), (1.0,), variables.all))
        return value, made[0] if single else tuple(made)

    return gradient_of


def first_of(value: Any, has_aux: bool, name: str) -> Any:
    """The result that is differentiated."""
    if has_aux and (not isinstance(value, tuple) or len(value) != 2):
        raise TypeError(f"has_aux=True: {name} has to return a pair, not {described(value)}")
    result = value[0] if has_aux else value
    check_real_scalar(result, name)
    return result


def only_gradient(both: Function, has_aux: bool) -> Function:
    def gradient_of(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient_of


def check_real_scalar(result: Any, name: str) -> None:
    if isinstance(result, float):
        return
    if not isinstance(result, (np.ndarray, np.generic)) or result.ndim != 0 or result.dtype.kind != "f":
        raise TypeError(f"grad needs a function with a real scalar result: {name} gives {described(result)}")


def pushed_forward(f: Function, name: str) -> Function:
    """``jvp`` of ``f``: a function of primals and tangents."""

    def tangents_of(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        variables = Variables()
        given = [variables.opened(primal, f"argument {k} of {name}") for k, primal in enumerate(primals)]
        directions = [
            shaped(t, leaf, "tangent")
            for t, leaf in zip(leaves(tuple(tangents)), leaves(tuple(primals)))
            if is_variable(leaf)
        ]
        if not is_compiling():
            chosen_before(variables.all, directions)
        value = f(*given)
        values = results_of(value, name)
        return value, like(value, tangent(values, directions, variables.all))

    return tangents_of


def pulled_back(f: Function, name: str) -> Function:
    """``vjp`` of ``f``: a function of primals."""

    def result_and_pullback(*primals: Any) -> Any:
        variables = Variables()
        given = [variables.opened(primal, f"argument {k} of {name}") for k, primal in enumerate(primals)]
        value = f(*given)
        values = results_of(value, name)

        def pullback(cotangent: Any) -> Any:
            parts = leaves(cotangent)
            if len(parts) != len(values):
                raise ValueError(f"{len(values)} results and {len(parts)} parts of the cotangent")
            parts = [shaped(p, v, "cotangent") for p, v in zip(parts, values)]
            return tuple(like(list(primals), gradient(values, parts, variables.all)))

        return value, pullback

    return result_and_pullback


def results_of(value: Any, name: str) -> list[Any]:
    found = leaves(value)
    for result in found:
        if not is_variable(result):
            raise TypeError(f"a result of {name} is {described(result)}")
    return found


def shaped(given: Any, wanted: Any, what: str) -> Any:
    if np.shape(given) != np.shape(wanted):
        raise ValueError(f"a {what} of shape {np.shape(given)} for an array of shape {np.shape(wanted)}")
    return given


@captured_whole
def with_own_gradient(forward: Function, backward: Function, name: str) -> Function:
    """``custom_vjp``: ``forward(*args)`` gives the value and residuals; ``backward(residuals, cotangent)`` a
    gradient for each argument."""

    def call(*args: Any) -> Any:
        value, residuals = forward(*args)
        values = results_of(value, name)
        stand_ins = [stand_in(v) for v in values]
        gradients = backward(residuals, like(value, stand_ins))
        parts = gradients_of(gradients, args, name)
        arguments = [leaf for leaf in leaves(args) if is_variable(leaf)]
        found = [part for leaf, part in zip(leaves(args), parts) if is_variable(leaf)]
        if not arguments:
            return value
        return like(value, custom_gradient(values, stand_ins, found, arguments))

    return call


def gradients_of(gradients: Any, args: tuple[Any, ...], name: str) -> list[Any]:
    """What ``backward`` of a ``custom_vjp`` gave, for each leaf of the arguments: checked."""
    if not isinstance(gradients, tuple) or len(gradients) != len(args):
        raise TypeError(
            f"bwd of {name} has to return a tuple of {len(args)} gradients, one for each argument, not "
            f"{described(gradients)}"
        )
    found: list[Any] = []
    for argument, by_argument in zip(args, gradients):
        own = leaves(argument)
        parts = [None] * len(own) if by_argument is None else leaves(by_argument)
        if len(parts) != len(own):
            raise ValueError(f"bwd of {name}: {len(parts)} gradients for {len(own)} arrays of an argument")
        for leaf, part in zip(own, parts):
            found.append(shaped(part, leaf, "gradient") if part is not None and is_variable(leaf) else part)
    return found


def computed_again(f: Function, name: str) -> Function:
    def call(*args: Any, **kwargs: Any) -> Any:
        number = checkpoint_begin()
        value = f(*args, **kwargs)
        return like(value, checkpoint_end(results_of(value, name), number))

    return call


def described(value: object) -> str:
    """A few words on an argument or result."""
    if isinstance(value, (np.ndarray, np.generic)):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"of type {type(value).__name__}"
