"""``torch.utils.checkpoint.checkpoint``: what is between two markers is computed again for its derivative.

Random numbers are drawn before the graph, so that what is computed again sees the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import Unsupported
from ...prims.markers import BEGIN, END
from ..base import ArrayRef, TraceContext
from .gradients import is_on, requires
from .library import torch
from .operands import tensor
from .regions import Region, Window
from .torch_rules import RuleTable

TABLE = RuleTable()
_refuse = TABLE.refusal("torch.utils.checkpoint with these arguments")
_library = torch.utils.checkpoint
_NO_CONTEXTS = _library.noop_context_fn
_WHAT = "a function under torch.utils.checkpoint"


def _begin() -> int:
    """What follows is computed again: gives a number."""
    return 0


def _end(values: list[Any], number: int, preserves: bool, args: tuple[Any, ...] | None) -> list[Any]:
    """Up to here; these are the results of what began with this number. ``args``: the arguments, where the
    results have derivatives only if one of them has."""
    return values


def _tensors(value: Any, found: list[Any]) -> list[Any]:
    """The tensors in tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif type(value) is tuple or type(value) is list:
        for item in value:
            _tensors(item, found)
    elif type(value) is dict:
        for item in value.values():
            _tensors(item, found)
    return found


def _with(value: Any, tensors: list[Any]) -> Any:
    """The same with these tensors, which are taken from the list."""
    if isinstance(value, torch.Tensor):
        return tensors.pop(0)
    if type(value) is tuple:
        return tuple([_with(item, tensors) for item in value])
    if type(value) is list:
        return [_with(item, tensors) for item in value]
    if type(value) is dict:
        return {key: _with(item, tensors) for key, item in value.items()}
    return value


def _checkpointed(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = _NO_CONTEXTS,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """In place of the library's function."""
    if type(use_reentrant) is not bool or context_fn is not _NO_CONTEXTS or debug or kwargs and use_reentrant:
        _refuse()
    if not torch.is_grad_enabled():
        if use_reentrant:
            _refuse()
        return function(*args, **kwargs)
    number = _begin()
    value = function(*args, **kwargs)
    if use_reentrant and type(value) is not tuple and not isinstance(value, torch.Tensor):
        _refuse()
    return _with(
        value, _end(_tensors(value, []), number, preserve_rng_state, args if use_reentrant else None)
    )


STAND_INS = {_library.checkpoint: _checkpointed}


def begin(tx: TraceContext) -> int:
    number = len(tx.builder.nodes)
    tx.memo[BEGIN, number] = Region.begin(tx)
    tx.builder.emit(BEGIN, number=number)
    return number


def end(
    tx: TraceContext, values: list[Any], number: int, preserves: object, args: tuple[Any, ...] | None
) -> list[Any]:
    region = tx.memo[BEGIN, number]
    if _library._checkpoint_debug_enabled:
        raise Unsupported("set_checkpoint_debug_enabled")
    region.check(tx, _WHAT)
    if not preserves:
        region.check_draws(tx, f"{_WHAT} with preserve_rng_state=False")
    if args is not None:
        _check_reentrant(tx, values, args)
    if not is_on(tx):
        return values
    made = region.made(tx)
    windows = {k: Window.of(tx, v.var) for k, v in enumerate(values) if _is_plain(v) and requires(tx, v.var)}
    bases = {w.base.name: w.base for w in windows.values() if w.base.name in made}
    if not bases:
        return values
    marked = dict(zip(bases, tx.builder.emit(END, *bases.values(), number=number)))
    found = [*values]
    known: dict[ArrayRef, ArrayRef] = {}
    for k, window in windows.items():
        if window.base.name in bases:
            if values[k] not in known:
                known[values[k]] = tensor(window.on(tx, marked[window.base.name]))
            found[k] = known[values[k]]
    return found


def _is_plain(value: object) -> bool:
    """Whether a value is all of a floating-point tensor."""
    if not isinstance(value, ArrayRef):
        return False
    return value.kind == "array" and value.part is None and value.mask is None and value.dtype.is_inexact


def _check_reentrant(tx: TraceContext, values: list[Any], args: tuple[Any, ...]) -> None:
    """Refuse where torch gives results without a derivative, or with one that they do not need."""
    if not any(isinstance(x, ArrayRef) and requires(tx, x.var) for x in args):
        raise Unsupported("a reentrant checkpoint of arguments that require no gradient")
    floating = [v for v in values if isinstance(v, ArrayRef) and v.dtype.is_inexact]
    if not all(_is_plain(v) and requires(tx, v.var) for v in floating):
        raise Unsupported("a reentrant checkpoint with a result that requires no gradient")
    if any(isinstance(x, ArrayRef) and v.var == x.var for v in floating for x in args):
        raise Unsupported("a reentrant checkpoint that returns an argument")


TABLE.functions.update({_begin: begin, _end: end})
