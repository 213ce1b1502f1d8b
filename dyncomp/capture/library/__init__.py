"""What builtins and the standard library's C functions mean on traced values, by topic."""

from . import construct, iteration, itertools_calls, numbers, operator_calls
from .folding import fold_call
from .registry import builtin, find

TOPICS = (construct, iteration, itertools_calls, numbers, operator_calls)
__all__ = ["TOPICS", "builtin", "find", "fold_call"]
