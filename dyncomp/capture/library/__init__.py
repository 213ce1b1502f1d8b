"""What builtins and the standard library's C functions mean on traced values, by topic."""

from ..folding import fold_call
from . import (
    construct,
    copies,
    functions,
    iteration,
    itertools_calls,
    numbers,
    operator_calls,
    region_calls,
    state,
    text,
    wrapping,
)
from .registry import builtin, find

TOPICS = (
    construct,
    copies,
    functions,
    iteration,
    itertools_calls,
    numbers,
    operator_calls,
    region_calls,
    state,
    text,
    wrapping,
)
__all__ = ["TOPICS", "builtin", "find", "fold_call"]
