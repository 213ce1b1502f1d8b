"""The rules of all rows: one for each kind of row where that says it, and those of rows by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .. import sort
from ..opdef import Contract, Convolve, Extern, OpDef, Pointwise, Reduce, Scan
from .operands import Rule
from .routines import (
    convolution_rule,
    factor_rule,
    interp_rule,
    looped,
    searchsorted_rule,
    solve_factored_rule,
    solve_rule,
    window_rule,
)
from .structure import RULES, along_axes, contraction, elementwise, unchanged

KINDS: dict[type, Callable[[str], Rule]] = {
    Pointwise: elementwise,
    Reduce: along_axes,
    Scan: along_axes,
    Contract: contraction,
    Convolve: convolution_rule,
}

_SEARCHED = next(row for row in sort.ROWS if row.name == "searchsorted")

# Rows of their own; the others are given by their kind, or have none.
ROWS: dict[str, Callable[[OpDef], Rule]] = {
    **{name: lambda row: RULES[row.name] for name in RULES},
    # of any number of dimensions
    **dict.fromkeys(
        ("stop_gradient", "custom_gradient", "custom_function", "ufunc_call", "betainc"),
        lambda row: elementwise(row.name),
    ),
    # on the last two axes: the batch is one more dimension of the stack
    **dict.fromkeys(
        ("inv", "det", "slogdet", "cholesky", "qr", "svd", "svdvals", "eigh", "eigvalsh", "solve_triangular"),
        lambda row: elementwise(row.name),
    ),
    # what is the same for the batch stays so
    **dict.fromkeys(("checkpoint_end", "after", "late"), lambda row: unchanged(row.name)),
    "solve": lambda row: solve_rule,
    "lu_factor": lambda row: factor_rule,
    "solve_factored": lambda row: solve_factored_rule,
    # functions that take no stacks, or of which nothing is known
    **dict.fromkeys(("library_call", "python_call", "routine_call", "for_each"), looped),
    "searchsorted": searchsorted_rule,
    "interp": lambda row: interp_rule(searchsorted_rule(_SEARCHED)),
    "convolve": window_rule,
    "correlate": window_rule,
    "convolution_transpose": lambda row: convolution_rule(row.name),
}

# Rows that have none, and why.
REASONS: dict[str, str] = {
    "item": "a size or an index would depend on the batched data",
    "element": "it is of another batch, outside of which it is used",
}


def with_batching(row: OpDef) -> OpDef:
    """The row with its ``batch``, or with the reason why it has none. Rows without inputs need none."""
    if row.name in ROWS:
        return replace(row, batch=ROWS[row.name](row))
    kind = KINDS.get(type(row.lower))
    if kind is None and isinstance(row.lower, Extern) and "axis" in row.params:
        kind = along_axes
    if kind is None:
        return replace(row, not_batchable=REASONS.get(row.name, ""))
    return replace(row, batch=kind(row.name))
