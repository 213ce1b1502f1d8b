"""What captured code knows of autograd: which values require a gradient, and the blocks that turn it off.

A value requires a gradient where it depends on an input that does, by what is computed while grad mode is on.
``detach()``, and all that is read while it is off, goes through ``stop_gradient``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import Unsupported
from ...graph.ir import COPY, Node, Var
from ...prims.markers import CUSTOM, STOP
from ..base import ArrayRef, Rule, TraceContext
from .library import torch
from .operands import tensor

MODE = "torch.grad"
_BLOCKS: dict[type, bool] = {torch.no_grad: False, torch.enable_grad: True}


def mode_of(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str, Any] | None:
    """A block that turns grad mode on or off, where it is on around captured code."""
    if not torch.is_grad_enabled():
        if cls is torch.set_grad_enabled and args == (False,) and not kwargs:
            return MODE, "", False
        return None
    if cls in _BLOCKS and not args and not kwargs:
        return MODE, "", _BLOCKS[cls]
    if cls is torch.set_grad_enabled and len(args) == 1 and type(args[0]) is bool and not kwargs:
        return MODE, "", args[0]
    return None


def is_on(tx: TraceContext) -> bool:
    """Whether grad mode is on here."""
    return torch.is_grad_enabled() and bool(tx.modes.get(MODE, {}).get("", True))


# -- values that require a gradient -------------------------------------------------------------------
class _Requiring:
    """Which values of a graph that is being captured require a gradient: by name, and memory that holds what
    does (``roots`` finds the memory of a view)."""

    def __init__(self) -> None:
        self.last: Node | None = None
        self.count = 0
        self.names: set[str] = set()
        self.memory: set[str] = set()
        self.roots: dict[str, str] = {}

    def update(self, tx: TraceContext) -> None:
        nodes = tx.builder.nodes
        if self.count > len(nodes) or (self.count and nodes[self.count - 1] is not self.last):
            self.__init__()  # type: ignore[misc]  # nodes were rolled back
        for node in nodes[self.count :]:
            self._note(tx, node)
        self.count = len(nodes)
        self.last = nodes[-1] if nodes else None

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
        return name in self.names or name in tx.builder.differentiated or self.root(var) in self.memory


def requires(tx: TraceContext, var: Var) -> bool:
    """Whether a value requires a gradient."""
    if not tx.builder.differentiated:
        return False
    known: _Requiring = tx.memo.setdefault(MODE, _Requiring())
    known.update(tx)
    return known.holds(tx, var)


def detached(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    """The tensor as a view that requires no gradient."""
    return tensor(tx.ops.stop_gradient(x.var))


def _all_detached(tx: TraceContext, value: Any) -> Any:
    if isinstance(value, ArrayRef):
        if value.kind == "array" and requires(tx, value.var):
            return detached(tx, value)
        return value
    if type(value) in (tuple, list):
        return type(value)(_all_detached(tx, item) for item in value)
    if type(value) is dict:
        return {key: _all_detached(tx, item) for key, item in value.items()}
    return value


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


# -- rules ------------------------------------------------------------------------------------
def under_autograd(rule: Rule, name: str) -> Rule:
    """``rule`` for the function ``name``, where values may require a gradient."""

    @functools.wraps(rule)  # what is known of arguments is told by the rule's names for them
    def recorded(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        if not tx.builder.differentiated:
            return rule(tx, *args, **kwargs)
        start = len(tx.builder.nodes)
        on = is_on(tx)
        given = (args, kwargs) if on else (_all_detached(tx, args), _all_detached(tx, kwargs))
        result = rule(tx, *given[0], **given[1])
        _check(tx, tx.builder.nodes[start:], name)
        return result

    return recorded


def _check(tx: TraceContext, nodes: Sequence[Node], name: str) -> None:
    """Refuse what has no derivative, and what writes behind autograd's back."""
    table = tx.builder.table
    for node in nodes:
        if node.op == COPY:
            if _is_behind(tx, node.inputs[0]):
                raise Unsupported(f"torch's {name} writes where autograd does not see it")
            continue
        row: Any = table[node.op]
        if row.vjp is not None or row.decomp is not None or node.op in (STOP, CUSTOM):
            continue
        exact = not any(v.dtype.is_inexact for v in node.outputs)
        if not exact and any(requires(tx, v) for v in node.inputs):
            raise Unsupported(f"torch's {name} has no derivative in dyncomp: {row.no_derivative}")


def _is_behind(tx: TraceContext, target: Var) -> bool:
    """Whether a write goes through a detached view to memory that requires a gradient."""
    made = {out.name: node for node in tx.builder.nodes for out in node.outputs}
    var = target
    while var.name in made and getattr(tx.builder.table[made[var.name].op], "is_view", False):
        node = made[var.name]
        var = node.inputs[0]
        if node.op == STOP and requires(tx, var):
            return True
    return False
