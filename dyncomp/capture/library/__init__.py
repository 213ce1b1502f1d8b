"""What builtins and the standard library's C functions mean on traced values, by topic."""

from . import construct, iteration, numbers, operator_calls, region_calls
from .folding import fold_call
from .registry import builtin, find

__all__ = [
    "builtin",
    "construct",
    "find",
    "fold_call",
    "iteration",
    "numbers",
    "operator_calls",
    "region_calls",
]
