"""What captured code knows of autograd: which values require a gradient, and the blocks that turn it off.

A value requires a gradient where it depends on an input that does, by what is computed while grad mode is on.
``detach()``, and all that is read while it is off, goes through ``stop_gradient``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...errors import Unsupported
from ...graph.ir import COPY, Node, Var, same_type
from ...prims.markers import BEGIN, CUSTOM, END, FUNCTION, STOP
from ..base import ArrayRef, Rule, TraceContext, memory_of
from .library import torch
from .operands import tensor

MODE = "torch.grad"
DERIVATIVE = "_gradients"  # the function of ``autograd_grad.py``
_BLOCKS: dict[type, bool] = {torch.no_grad: False, torch.enable_grad: True}


def mode_of(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str, Any] | None:
    """A block that turns grad mode on or off."""
    if kwargs or torch.is_inference_mode_enabled():
        return None
    if cls in _BLOCKS and not args:
        return MODE, "", _BLOCKS[cls]
    if cls is torch.set_grad_enabled and len(args) == 1 and type(args[0]) is bool:
        return MODE, "", args[0]
    return None


def turns_on(setting: tuple[str, str, Any]) -> bool:
    """Whether gradients are recorded in a block, and not around captured code."""
    return setting == (MODE, "", True) and not torch.is_grad_enabled()


def is_on(tx: TraceContext) -> bool:
    """Whether grad mode is on here."""
    return bool(tx.modes.get(MODE, {}).get("", torch.is_grad_enabled()))


# -- values that require a gradient -------------------------------------------------------------------
class Requiring:
    """Which values of a graph that is being captured require a gradient: by name, and memory that holds what
    does. ``roots`` finds the memory of a view; one without derivative counts as memory of its own. ``of``:
    what it depends on, by name; the graph's inputs if ``None``."""

    def __init__(self, of: set[str] | None = None) -> None:
        self.of = of
        self.seen: list[Node] = []
        self.names: set[str] = set()
        self.memory: set[str] = set()
        self.roots: dict[str, str] = {}
        self.quiet: set[str] = set()  # views that were made while grad mode is off
        self.touched: set[str] = set()  # memory of what is computed with while derivatives are recorded

    def update(self, tx: TraceContext) -> None:
        nodes, seen = tx.builder.nodes, self.seen
        while seen and (len(seen) > len(nodes) or nodes[len(seen) - 1] is not seen[-1]):
            if seen.pop().op == COPY:  # rolled back, and more than names that nobody knows any more
                self._forget()
        for node in nodes[len(seen) :]:
            self._note(tx, node)
            seen.append(node)

    def _forget(self) -> None:
        for known in (self.seen, self.names, self.memory, self.roots):
            known.clear()  # type: ignore[attr-defined]

    def _note(self, tx: TraceContext, node: Node) -> None:
        if node.op == COPY:
            target, source = node.inputs
            if self.holds(tx, source):
                self.memory.add(self.root(target))
            return
        if node.op == STOP:
            return
        if getattr(tx.builder.table[node.op], "is_view", False):
            self.roots[node.out.name] = self.root(node.inputs[0])
        if any(self.holds(tx, v) for v in node.inputs):
            self.names.update(v.name for v in node.outputs if v.dtype.is_inexact)

    def root(self, var: Var) -> str:
        return self.roots.get(var.name, var.name)

    def holds(self, tx: TraceContext, var: Var) -> bool:
        name = var.name
        known = tx.builder.differentiated if self.of is None else self.of
        return name in self.names or name in known or self.root(var) in self.memory


def _known(tx: TraceContext) -> Requiring:
    known: Requiring = tx.memo.setdefault(MODE, Requiring())
    known.update(tx)
    return known


def memory(tx: TraceContext, var: Var) -> str:
    """The memory of a value, by name; one without derivative has memory of its own."""
    return _known(tx).root(var)


def requires(tx: TraceContext, var: Var) -> bool:
    """Whether a value requires a gradient."""
    return bool(tx.builder.differentiated) and _known(tx).holds(tx, var)


def is_input(tx: TraceContext, var: Var) -> bool:
    """Whether a value is a tensor of the program as it came, whose history autograd knows."""
    return var.name in tx.builder.differentiated and var.name not in tx.builder.leaves


def become_leaf(tx: TraceContext, var: Var) -> None:
    """Have a value that captured code made require a gradient from here on."""
    tx.builder.leaves.add(var.name)
    tx.builder.differentiated.add(var.name)


def is_leaf_only(tx: TraceContext, var: Var) -> bool:
    """Whether a value requires a gradient for what captured code made a leaf only: outside nobody could
    reach that."""
    leaves = tx.builder.leaves
    if not leaves or not requires(tx, var):
        return False
    if var.name in leaves:
        return True
    known = Requiring(tx.builder.differentiated - leaves)
    known.update(tx)
    return not known.holds(tx, var)


def detached(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    """The tensor as a view that requires no gradient."""
    return tensor(tx.ops.stop_gradient(x.var))


class _Detaching:
    """Arguments of a function that is called while grad mode is off."""

    def __init__(self, tx: TraceContext) -> None:
        self.tx = tx
        self.made: dict[ArrayRef, ArrayRef] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, ArrayRef):
            return self._tensor(value)
        if type(value) in (tuple, list):
            return type(value)(map(self.of, value))
        if type(value) is dict:
            return {key: self.of(item) for key, item in value.items()}
        return value

    def _tensor(self, ref: ArrayRef) -> ArrayRef:
        if ref.kind != "array" or not requires(self.tx, ref.var):
            return ref
        for before, made in self.made.items():
            if made is not None and before == ref:
                return made
        found = replace(ref, var=self.tx.ops.stop_gradient(ref.var))
        self.made[ref] = found
        _known(self.tx).quiet.add(found.var.name)
        return found

    def put_back(self, result: Any) -> Any:
        """What a function returns: arguments, if those were given back."""
        for before, made in self.made.items():
            if result is made:
                return before
        return result


# -- derivatives where torch's own choice is another than the op's -----------------------------------------
def with_gradient(tx: TraceContext, value: Var, *gradients: tuple[Var, Callable[[Var], Var]]) -> Var:
    """``value``, whose gradient by each of some values is made of the cotangent by the function beside it; by
    others it is zero."""
    wanted = [(x, make) for x, make in gradients if requires(tx, x)]
    if not wanted:
        return value
    device = value.type.device
    stand_in = tx.ops.full(shape=value.shape, value=0.0, dtype=value.dtype, device=device)
    made = [make(stand_in) for _, make in wanted]
    (found,) = tx.ops.custom_gradient(value, stand_in, *made, *(x for x, _ in wanted), outputs=1)
    return found  # type: ignore[no-any-return]


def where_true(tx: TraceContext, mask: Var) -> Callable[[Var], Var]:
    """The cotangent where a mask is true, 0 elsewhere."""

    def gradient(cotangent: Var) -> Var:
        zero = tx.ops.full(
            shape=cotangent.shape, value=0.0, dtype=cotangent.dtype, device=cotangent.type.device
        )
        found: Var = tx.ops.where(mask, cotangent, zero)
        return found

    return gradient


def is_differentiated(tx: TraceContext, *values: Var) -> bool:
    """Whether one of the values requires a gradient, here."""
    return is_on(tx) and any(requires(tx, v) for v in values)


# Nodes through which derivatives go in a way of their own, or not at all.
_WAYS = frozenset((STOP, CUSTOM, FUNCTION, BEGIN, END))


# -- rules ------------------------------------------------------------------------------------
# What asks a tensor for its history.
_ASKING = frozenset(
    ("requires_grad", "is_leaf", "grad_fn", "grad", "requires_grad_", "retain_grad", "register_hook")
)


@functools.lru_cache(maxsize=4096)
def under_autograd(rule: Rule, name: str) -> Rule:
    """``rule`` for the function ``name``, where values may require a gradient."""

    @functools.wraps(rule)  # what is known of arguments is told by the rule's names for them
    def recorded(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        if not tx.builder.differentiated or name in _ASKING or (name == DERIVATIVE and not is_on(tx)):
            start = len(tx.builder.nodes)
            result = rule(tx, *args, **kwargs)
            tx.builder.unheard += _unheard(tx, start)
            return result
        if is_on(tx):
            _refuse_spoiled(tx, (args, kwargs))
            start = len(tx.builder.nodes)
            result = rule(tx, *args, **kwargs)
            check(tx, start, name)
            if name in SAVING:
                _note_saving(tx, name, args, result)
            unheard = _unheard(tx, start)
            _note_touched(tx, start)
            _write_behind(tx, start, unheard)
            return result
        detaching = _Detaching(tx)
        args, kwargs = detaching.of(args), detaching.of(kwargs)
        start = len(tx.builder.nodes)
        result = detaching.put_back(rule(tx, *args, **kwargs))
        if len(tx.builder.nodes) == start and detaching.made:  # nothing was computed
            del tx.builder.nodes[start - len(detaching.made) :]
        _write_behind(tx, start, _unheard(tx, start))
        return result

    return recorded


def check(tx: TraceContext, start: int, name: str) -> None:
    """Refuse nodes from ``start`` on without a derivative, or that write where autograd sees too little."""
    if not tx.builder.differentiated or not is_on(tx):
        return
    table = tx.builder.table
    for node in tx.builder.nodes[start:]:
        if node.op == COPY:
            _check_write(tx, node.inputs[0], node.inputs[1], name)
            continue
        row: Any = table[node.op]
        if row.vjp is not None or row.decomp is not None or node.op in _WAYS:
            continue
        exact = not any(v.dtype.is_inexact for v in node.outputs)
        if not exact and any(requires(tx, v) for v in node.inputs):
            raise Unsupported(f"torch's {name} has no derivative in dyncomp: {row.no_derivative}")


def _check_write(tx: TraceContext, target: Var, source: Var, name: str) -> None:
    """A detached tensor that is written to would have the history of what is written, whereas others of its
    memory would not; torch raises for views that were made while grad mode was off."""
    leaves = tx.builder.leaves
    memory = memory_of(tx.builder, target)
    if _unheard_view(tx, target) is not None:
        if _may_be_saved(tx, memory):
            raise Unsupported(f"torch's {name} writes to memory that autograd may have saved, unheard")
        return
    if leaves:
        if any(memory_of(tx.builder, Var(leaf, target.type)) == memory for leaf in leaves):
            raise Unsupported(f"torch's {name} writes to a leaf that requires a gradient")
        if is_leaf_only(tx, source) and tx.builder.producers.get(memory) is None:
            raise Unsupported(f"torch's {name} gives a tensor from outside the history of a leaf made here")
    stopped = _stopped(tx, target)
    if stopped is not None and (requires(tx, source) or stopped.name in _known(tx).quiet):
        raise Unsupported(f"torch's {name} writes to a tensor that is detached from another")


def _may_be_saved(tx: TraceContext, memory: str) -> bool:
    """Whether autograd may have saved a tensor of this memory in captured code: where nobody hears of a write
    that has the new contents in torch, and the old ones in the graph."""
    if memory in tx.builder.leaves or memory in _known(tx).touched:
        return True
    functions = any(type(key) is tuple and key[0] == FUNCTION for key in tx.memo)
    return functions or any(node.op == BEGIN for node in tx.builder.nodes)


def _note_touched(tx: TraceContext, start: int) -> None:
    """Note the memory of all that a rule computed with, which emitted nodes from ``start`` on, if autograd
    records any of it: it may save that."""
    made = tx.builder.nodes[start:]
    if any(requires(tx, v) for node in made for v in (node.outputs or node.inputs[1:])):
        used = {memory_of(tx.builder, v) for node in made for v in (*node.inputs, *node.outputs)}
        _known(tx).touched |= used


# Functions whose derivative reads tensors that autograd saves, whichever gradient is wanted, where one of so
# many first arguments requires a gradient.
SAVING = dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d"), 2)
SAVING |= dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 2)
SAVING["batch_norm"] = 4
SAVED = "torch.saved"  # in the memo: names of their results


def _note_saving(tx: TraceContext, name: str, args: tuple[object, ...], result: object) -> None:
    operands = [x.var for x in args[: SAVING[name]] if isinstance(x, ArrayRef)]
    if name == "linear" and len(args) > 2 and args[2] is not None and operands[0].ndim != 2:
        return  # torch may add the bias in a function of its own
    if isinstance(result, ArrayRef) and any(requires(tx, var) for var in operands):
        tx.memo.setdefault(SAVED, set()).add(result.var.name)


def _unheard_view(tx: TraceContext, var: Var) -> Var | None:
    """The view that autograd does not hear of writes through which a value is, or is a view of."""
    unheard = tx.builder.unheard_views
    while unheard and var.name not in unheard:
        node = tx.builder.producer(var)
        if node is None or not getattr(tx.builder.table[node.op], "is_view", False):
            return None
        var = node.inputs[0]
    return var if unheard else None


def _unheard(tx: TraceContext, start: int) -> list[Node]:
    """The writes among nodes from ``start`` on that autograd does not hear of."""
    if not tx.builder.unheard_views:
        return []
    writes = [node for node in tx.builder.nodes[start:] if node.op == COPY]
    return [
        node
        for node in writes
        if _unheard_view(tx, node.inputs[0]) is not None
        and not _may_be_saved(tx, memory_of(tx.builder, node.inputs[0]))
    ]


def _refuse_spoiled(tx: TraceContext, value: object) -> None:
    """Refuse tensors that have a history in torch by what was written to them, and none in the graph."""
    spoiled = tx.builder.spoiled_views
    if not spoiled:
        return
    if isinstance(value, ArrayRef):
        view = _unheard_view(tx, value.var)
        if view is not None and view.name in spoiled:
            raise Unsupported("x.data, to which something was written that requires a gradient")
    elif isinstance(value, (tuple, list)):
        for item in value:
            _refuse_spoiled(tx, item)
    elif isinstance(value, dict):
        _refuse_spoiled(tx, list(value.values()))


def _write_behind(tx: TraceContext, start: int, unheard: list[Node]) -> None:
    """Have nodes from ``start`` on that write through a view without derivative write to what that views:
    new contents with the derivative of the old ones. ``unheard``: those that autograd does not hear of."""
    nodes = tx.builder.nodes
    if not unheard and not any(n.op == COPY and _stopped(tx, n.inputs[0]) is not None for n in nodes[start:]):
        return
    made = nodes[start:]
    del nodes[start:]
    for node in made:
        if node.op != COPY:
            nodes.append(node)
            continue
        target, source = node.inputs
        is_unheard = any(node is n for n in unheard)
        if is_unheard and requires(tx, source):
            view = _unheard_view(tx, target)
            assert view is not None
            tx.builder.spoiled_views.add(view.name)
            tx.builder.seen_as_views[view.name] = memory_of(tx.builder, view)
            source = tx.ops.stop_gradient(source)
        stopped = _stopped(tx, target)
        whole = tx.builder.root(target)
        if stopped is not None and not same_type(target.type, whole.type, strides=True):
            # the rest of the memory keeps its contents: write there, then have all of it keep its derivative
            old = tx.ops.with_derivative_of(tx.ops.stop_gradient(whole), whole)
            tx.builder.emit(COPY, target, source)
            if is_unheard:
                tx.builder.unheard.append(nodes[-1])
            target, source = whole, tx.ops.with_derivative_of(tx.ops.stop_gradient(whole), old)
        elif stopped is not None:
            target, source = whole, tx.ops.with_derivative_of(source, whole)
        tx.builder.emit(COPY, target, source)
        if is_unheard:
            tx.builder.unheard.append(nodes[-1])


def _stopped(tx: TraceContext, var: Var) -> Var | None:
    """The view without derivative that a value is, or is a view of."""
    while True:
        node = tx.builder.producer(var)
        if node is None or not getattr(tx.builder.table[node.op], "is_view", False):
            return None
        if node.op == STOP:
            return var
        var = node.inputs[0]
