"""What builtins and the standard library's C functions mean on traced values, by topic."""

from ..calls.folding import fold_call
from . import (  # noqa: F401 - importing a topic registers its builtins
    caching,
    clock,
    construct,
    context_variables,
    copies,
    environment,
    frozen_objects,
    functions,
    inspection,
    iteration,
    itertools_calls,
    memory,
    numbers,
    numpy_joins,
    numpy_state,
    operator_calls,
    output,
    pure,
    random_sources,
    region_calls,
    state,
    text,
    typing_calls,
    warning_calls,
    warning_filters,
    wrapping,
)
from .registry import builtin, find

__all__ = ["builtin", "find", "fold_call"]
