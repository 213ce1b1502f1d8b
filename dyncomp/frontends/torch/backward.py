"""``tensor.backward()`` and ``torch.autograd.backward`` of what captured code computed: a ``gradient`` marker
by the leaves that it reaches, added to their ``grad`` as autograd adds it.

What autograd frees then is *spent*: a tensor that leaves captured code with such a history requires a
gradient, and refuses to give one (``training.py``).
"""

from __future__ import annotations

from typing import Any

from ...errors import Unsupported
from ...graph.ir import COPY, Node, Var
from ...prims.markers import CUSTOM, FUNCTION, PRESENT, STOP
from ..base import ArrayRef, StateGuard, TraceContext, memory_of
from .autograd_grad import check_history, cotangent
from .gradients import Requiring, requires
from .library import torch
from .operands import in_order, iteration_order, need_tensor, tensor
from .torch_rules import RuleTable

TABLE = RuleTable()
_WHAT = "backward()"
_refuse = TABLE.refusal(f"{_WHAT} with these arguments")
_SPENT = "torch.spent"


def _leaves(values: list[Any], cotangents: list[Any], retain_graph: bool) -> list[tuple[Any, Any]]:
    """The leaves that values depend on, and the gradient by each."""
    return []


def _backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """In place of the library's function."""
    if create_graph or grad_variables is not None or inputs is not None:
        _refuse()
    values = [tensors] if isinstance(tensors, torch.Tensor) else [*tensors]
    if grad_tensors is None:
        cotangents = [None for _ in values]
    else:
        cotangents = [grad_tensors] if isinstance(grad_tensors, torch.Tensor) else [*grad_tensors]
    with torch.no_grad():
        for leaf, gradient in _leaves(values, cotangents, bool(retain_graph)):
            if leaf.grad is None:
                leaf.grad = gradient
            else:
                leaf.grad.add_(gradient)


def _backward_method(
    self: Any, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False, inputs: Any = None
) -> None:
    """In place of the method."""
    _backward(self, gradient, retain_graph, create_graph, None, inputs)


STAND_INS = {torch.autograd.backward: _backward, torch.Tensor.backward: _backward_method}
METHODS = {"backward": torch.Tensor.backward}


_hooks_on_saved = torch._C._autograd._top_saved_tensors_default_hooks


def _is_watched(_: object, expected: bool) -> bool:
    """Whether it is so that the program sees what autograd saves or does, or not."""
    return (torch.is_anomaly_enabled() or _hooks_on_saved(False) is not None) is expected


def leaves(
    tx: TraceContext, values: list[Any], cotangents: list[Any], retain_graph: bool
) -> list[tuple[ArrayRef, ArrayRef]]:
    found = [need_tensor(x).var for x in values]
    if not torch.is_grad_enabled() or not found or len(cotangents) != len(found):
        raise Unsupported(f"{_WHAT} without grad mode, or of nothing")
    if not all(requires(tx, var) for var in found):
        raise Unsupported(f"{_WHAT} of what requires no gradient")
    if any(_spent(tx).holds(tx, var) for var in found):
        raise Unsupported(f"{_WHAT} through what another one freed")
    if _is_watched(None, True):
        raise Unsupported(f"{_WHAT} in anomaly mode, or under hooks on saved tensors")
    words = "torch: anomaly mode is off, and nobody has hooks on saved tensors"
    tx.states["torch-backward"] = StateGuard(_is_watched, False, words)
    given = [cotangent(tx, ct, value) for ct, value in zip(cotangents, found)]
    behind = _connected(tx, found)
    if behind & tx.builder.leaves:
        raise Unsupported(f"{_WHAT} that reaches a leaf made here")
    reached = [inp.var for inp in tx.builder.inputs if inp.differentiated and inp.var.name in behind]
    _check_writes(tx, reached, behind)
    check_history(tx, found, reached)
    made = tx.builder.emit(PRESENT, *found, *given, *reached, outputs=len(found))
    gradients = made if isinstance(made, tuple) else (made,)
    if not retain_graph:
        tx.memo.setdefault(_SPENT, set()).update(behind.difference(v.name for v in reached))
    return [(tensor(leaf), tensor(_own(tx, leaf, g))) for leaf, g in zip(reached, gradients)]


def _own(tx: TraceContext, leaf: Var, gradient: Var) -> Var:
    """The gradient as a tensor of its own without history, laid out as the leaf."""
    made: Var = tx.ops.copy(tx.ops.stop_gradient(gradient))
    return in_order(tx, made, iteration_order(leaf.shape, [leaf.type.strides])) if leaf.ndim > 1 else made


def _check_writes(tx: TraceContext, leaves: list[Var], behind: set[str]) -> None:
    """Refuse leaves that were written after something was computed from them."""
    names = {v.name for v in leaves}
    written: set[str] = set()
    for node in reversed(tx.builder.nodes):
        if node.op == COPY:
            written.update(names.intersection((memory_of(tx.builder, node.inputs[0]),)))
        elif written and any(v.name in behind for v in node.outputs) and not _hands_on(tx, node):
            if any(memory_of(tx.builder, v) in written for v in node.inputs):
                raise Unsupported(f"{_WHAT} by a tensor that was written to since")


def _hands_on(tx: TraceContext, node: Node) -> bool:
    """Whether a node computes nothing: views, and what is written in their place."""
    return node.op == "with_derivative_of" or bool(getattr(tx.builder.table[node.op], "is_view", False))


def _connected(tx: TraceContext, values: list[Var]) -> set[str]:
    """What gradients of the values go through, by name: the inputs are the leaves."""
    known = Requiring()
    known.update(tx)
    found = {name for v in values for name in (v.name, known.root(v))}
    for node in reversed(tx.builder.nodes):
        made = node.inputs[:1] if node.op == COPY else node.outputs
        if node.op != STOP and any(v.name in found or known.root(v) in found for v in made):
            through = [v for v in _differentiated(node) if known.holds(tx, v)]
            found.update(name for v in through for name in (v.name, known.root(v)))
    return found


def _differentiated(node: Node) -> tuple[Var, ...]:
    """The inputs that a node's derivative goes to."""
    if node.op not in (CUSTOM, FUNCTION):
        return node.inputs
    rest = node.inputs[2 * len(node.outputs) :]
    return rest[len(rest) // 2 :]


def _spent(tx: TraceContext) -> Requiring:
    """What depends on what was freed."""
    known = Requiring(tx.memo.get(_SPENT, set()))
    known.update(tx)
    return known


def is_spent(tx: TraceContext, ref: ArrayRef) -> bool:
    return _SPENT in tx.memo and requires(tx, ref.var) and _spent(tx).holds(tx, ref.var)


TABLE.functions.update({_leaves: leaves})
