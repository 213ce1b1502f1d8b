"""``torch.utils.checkpoint.checkpoint``: what is between two markers is computed again for its derivative.

Random numbers are drawn before the graph, so that what is computed again sees the same ones. Buffers that the
function writes to are written again in the backward pass, from what they hold by then, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...dataclass import dataclass
from ...errors import Unsupported
from ...graph.ir import COPY, Var
from ...prims.markers import BEGIN, CUSTOM, END, STOP
from ..base import ArrayRef, TraceContext, memory_of
from .gradients import SAVED, is_on, memory, requires
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


def _end(values: list[Any], number: int, preserves: bool, args: list[Any], reentrant: bool) -> list[Any]:
    """Up to here; these are the results of what began with this number. ``args``: its arguments that are
    tensors; ``reentrant``: the results have derivatives only if one of them has."""
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
    tensors = list(args) if use_reentrant else _tensors((args, kwargs), [])
    return _with(value, _end(_tensors(value, []), number, preserve_rng_state, tensors, bool(use_reentrant)))


STAND_INS = {_library.checkpoint: _checkpointed}


def begin(tx: TraceContext) -> int:
    number = len(tx.builder.nodes)
    tx.memo[BEGIN, number] = Region.begin(tx)
    tx.builder.emit(BEGIN, number=number)
    return number


def end(
    tx: TraceContext, values: list[Any], number: int, preserves: object, args: list[Any], reentrant: object
) -> list[Any]:
    region = tx.memo[BEGIN, number]
    if _library._checkpoint_debug_enabled:
        raise Unsupported("set_checkpoint_debug_enabled")
    region.check_objects(tx, _WHAT)
    if not preserves:
        region.check_draws(tx, f"{_WHAT} with preserve_rng_state=False")
    if reentrant:
        _check_reentrant(tx, values, args)
    if not is_on(tx):
        return values
    made = region.made(tx)
    windows = {k: Window.of(tx, v.var) for k, v in enumerate(values) if _is_plain(v) and requires(tx, v.var)}
    bases = {w.base.name: w.base for w in windows.values() if w.base.name in made}
    writes = region.writes(tx)
    if writes and any(isinstance(v, ArrayRef) and requires(tx, v.var) and not _is_plain(v) for v in values):
        raise Unsupported(f"{_WHAT} writes to a tensor that it did not make, and gives a part of a tensor")
    if not bases:
        return values
    buffers = {var.name: var for var in writes.values()}
    if buffers:
        _check_buffers(tx, region, buffers, args)
        if not reentrant:
            _check_runs_again(tx, region, max(writes), [*bases.values()])
        tx.builder.nodes[region.start] = replace(tx.builder.nodes[region.start], inputs=(*buffers.values(),))
    marked = dict(zip(bases, tx.builder.emit(END, *bases.values(), *buffers.values(), number=number)))
    found = [*values]
    known: dict[ArrayRef, ArrayRef] = {}
    for k, window in windows.items():
        if window.base.name in bases:
            if values[k] not in known:
                known[values[k]] = tensor(window.on(tx, marked[window.base.name]))
            found[k] = known[values[k]]
    return found


def _check_buffers(tx: TraceContext, region: Region, buffers: dict[str, Var], args: list[Any]) -> None:
    """Refuse writes to what the backward pass could not write to again as torch does: it writes to inputs of
    the graph without a derivative, each as a whole tensor of one region."""
    nodes, made = tx.builder.nodes, region.made(tx)
    known = {inp.var.name for inp in tx.builder.inputs if inp.kind == "array"}
    if not buffers.keys() <= known or any(requires(tx, var) for var in buffers.values()):
        raise Unsupported(f"{_WHAT} writes to a tensor that it did not make, and that is no plain buffer")
    inside = nodes[region.start + 1 :]
    read = {v.name: v for node in inside for v in node.inputs if v.name not in made}
    before = [node.inputs[0] for node in nodes[: region.start] if node.op == COPY]
    given = [x.var for x in args if isinstance(x, ArrayRef)]
    views = [v for name, v in read.items() if name not in buffers]
    if any(memory_of(tx.builder, v) in buffers for v in (*before, *given, *views)):
        raise Unsupported(f"{_WHAT} writes to a tensor that is an argument, or was used in other ways before")
    markers = {node.op for node in inside if getattr(tx.builder.table.get(node.op), "is_marker", False)}
    if markers - {CUSTOM}:
        raise Unsupported(f"{_WHAT} writes to a tensor that it did not make, and has derivatives of its own")


def _check_runs_again(tx: TraceContext, region: Region, last: int, results: list[Var]) -> None:
    """Refuse where it is not certain that torch runs a region again up to the node ``last``. It does so once
    a derivative reads a tensor that was saved there, and no further than to where the last one was saved."""
    saving: set[str] = tx.memo.get(SAVED, set())
    nodes = tx.builder.nodes
    later = {v.name for node in nodes[last:] for v in node.outputs}
    ways = _ways(tx, region, saving)
    nothing = _Ways(frozenset(), frozenset())
    found = [ways.get(memory(tx, var), nothing) for var in results]
    if not saving & later or not all(f.read and f.unread <= f.read for f in found):
        raise Unsupported(f"{_WHAT} writes to a tensor that it did not make, torch perhaps only once")


@dataclass(frozen=True)
class _Ways:
    """What is outside of a region that the derivative of a value goes to: where it reads a saved tensor on
    the way, and where it does not."""

    unread: frozenset[str]
    read: frozenset[str]


def _ways(tx: TraceContext, region: Region, saving: set[str]) -> dict[str, _Ways]:
    """The ways from what a region writes to, by memory. What of contents that are replaced in part goes on
    is not known to be read."""
    found: dict[str, _Ways] = {}

    def of(var: Var) -> _Ways:
        name = memory(tx, var)
        outside = frozenset((name,)) if requires(tx, var) else frozenset()
        return found.get(name) or _Ways(outside, frozenset())

    for node in tx.builder.nodes[region.start :]:
        if node.op == COPY:
            target, source = node.inputs
            kept = frozenset() if target.name == memory(tx, target) else of(target).unread | of(target).read
            new = of(source)
            found[memory(tx, target)] = _Ways(new.unread | kept, new.read)
            continue
        through = [of(v) for v in node.inputs]
        unread = frozenset().union(*(w.unread for w in through))
        read = frozenset().union(*(w.read for w in through))
        for out in node.outputs:
            if out.name in saving:
                found[memory(tx, out)] = _Ways(frozenset(), unread | read)
            elif node.op == STOP or not out.dtype.is_inexact:
                found[out.name] = _Ways(frozenset(), frozenset())
            elif memory(tx, out) == out.name:
                found[out.name] = _Ways(unread, read)
    return found


def _is_plain(value: object) -> bool:
    """Whether a value is all of a floating-point tensor."""
    if not isinstance(value, ArrayRef):
        return False
    return value.kind == "array" and value.part is None and value.mask is None and value.dtype.is_inexact


def _check_reentrant(tx: TraceContext, values: list[Any], args: list[Any]) -> None:
    """Refuse where torch gives results without a derivative, or with one that they do not need."""
    if not any(isinstance(x, ArrayRef) and requires(tx, x.var) for x in args):
        raise Unsupported("a reentrant checkpoint of arguments that require no gradient")
    floating = [v for v in values if isinstance(v, ArrayRef) and v.dtype.is_inexact]
    if not all(_is_plain(v) and requires(tx, v.var) for v in floating):
        raise Unsupported("a reentrant checkpoint with a result that requires no gradient")
    if any(isinstance(x, ArrayRef) and v.var == x.var for v in floating for x in args):
        raise Unsupported("a reentrant checkpoint that returns an argument")


TABLE.functions.update({_begin: begin, _end: end})
