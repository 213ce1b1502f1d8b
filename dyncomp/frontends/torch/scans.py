"""``associative_scan``: the tree of calls that torch makes, each of one pair of elements.

torch calls the function for many pairs at once, under ``vmap``; values are combined in the same order here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..base import TraceContext
from .library import torch
from .regions import Region
from .torch_rules import RuleTable

TABLE = RuleTable()
_refuse = TABLE.refusal("associative_scan of many elements, or with these arguments")
_LARGEST = 64  # elements, for each of which there are calls in the graph
_WHERE = "torch._higher_order_ops.associative_scan"
_WHAT = "a function that associative_scan calls"


def _begin() -> int:
    """The function is called from here on: gives a number."""
    return 0


def _end(number: int) -> None:
    """Up to here, since what gave this number."""


def _associative_scan(
    combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """In place of the library's function."""
    leaves = [xs] if isinstance(xs, torch.Tensor) else xs
    if combine_mode != "generic" or type(dim) is not int or type(reverse) is not bool:
        _refuse()
    if (type(leaves) is not tuple and type(leaves) is not list) or not leaves:
        _refuse()
    for x in leaves:
        if not isinstance(x, torch.Tensor) or not -x.dim() <= dim < x.dim() or x.dim() != leaves[0].dim():
            _refuse()
        if x.shape[dim] != leaves[0].shape[dim]:
            _refuse()
    count = leaves[0].shape[dim]
    if not 0 < count <= _LARGEST:
        _refuse()
    columns = [x.unbind(dim) for x in leaves]
    elements = [[column[k] for column in columns] for k in range(count)]
    if reverse:
        elements.reverse()
    number = _begin()

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        if isinstance(xs, torch.Tensor):
            found = [combine_fn(left[0], right[0])]
        else:
            made = combine_fn(type(xs)(left), type(xs)(right))
            if type(made) is not type(xs) or len(made) != len(left):
                _refuse()
            found = list(made)
        for new, old in zip(found, left):
            if not isinstance(new, torch.Tensor) or new.dtype != old.dtype or new.shape != old.shape:
                _refuse()
        return found

    scanned = _scanned(combine, elements)
    _end(number)
    if reverse:
        scanned.reverse()
    stacked = [torch.stack([each[k] for each in scanned], dim) for k in range(len(leaves))]
    return stacked[0] if isinstance(xs, torch.Tensor) else type(xs)(stacked)


def _scanned(combine: Callable[..., Any], elements: list[Any]) -> list[Any]:
    levels = [elements]
    while len(levels[-1]) > 1:
        last = levels[-1]
        levels.append([combine(last[k], last[k + 1]) for k in range(0, len(last) - 1, 2)])
    odd = levels.pop()
    while levels:
        level = levels.pop()
        found = [level[0]]
        for k in range(1, len(level)):
            found.append(odd[k // 2] if k % 2 else combine(odd[k // 2 - 1], level[k]))
        odd = found
    return odd


def stand_in_for(fn: Any) -> Callable[..., Any] | None:
    """The library's module is looked at only where the program has imported it."""
    library = sys.modules.get(_WHERE)
    is_scan = library is not None and fn is vars(library).get("associative_scan")
    return _associative_scan if is_scan and fn.__module__ == _WHERE else None


def begin(tx: TraceContext) -> int:
    number = len(tx.builder.nodes)
    tx.memo[_WHAT, number] = Region.begin(tx)
    return number


def end(tx: TraceContext, number: int) -> None:
    region: Region = tx.memo[_WHAT, number]
    region.check(tx, _WHAT)
    region.check_draws(tx, _WHAT)


TABLE.functions.update({_begin: begin, _end: end})
