"""Making NumPy's generators of random numbers from seeds."""

from __future__ import annotations

import numpy as np

from ..random.draws import make_generator
from ..values.base import Tracer, Value
from .registry import HANDLERS


def _default_rng(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    given = [tracer.realize(value) for value in (*args, *kwargs.values())]
    if len(given) == 1 and given[0].pytype is np.random.Generator and set(kwargs) <= {"seed"}:
        return given[0]
    return make_generator(tracer, np.random.default_rng, np.random.Generator, args, kwargs)


def _random_state(tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return make_generator(tracer, np.random.RandomState, np.random.RandomState, args, kwargs)


HANDLERS[np.random.default_rng] = _default_rng
HANDLERS[np.random.RandomState] = _random_state
