"""``torch.autograd.grad`` of what captured code computed: a ``gradient`` marker.

By values of the captured code, or by tensors that were made outside and have no history: through the history
of others torch alone knows the way.
"""

from __future__ import annotations

from typing import Any

from ...errors import Unsupported
from ...graph.ir import COPY, Var
from ...prims.markers import BEGIN, STOP
from ...symbolic.integers import same
from ..base import ArrayRef, TraceContext, memory_of
from .gradients import Requiring, detached, is_input, is_on, requires
from .library import torch
from .operands import need_tensor, tensor
from .torch_rules import RuleTable

TABLE = RuleTable()
_refuse = TABLE.refusal("torch.autograd.grad with these arguments")
_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def _gradients(
    outputs: list[Any], inputs: list[Any], cotangents: list[Any], create_graph: bool, allow_unused: bool
) -> tuple[Any, ...]:
    """The gradients by each of the inputs."""
    return ()


def _grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    only_inputs: Any = True,
    allow_unused: Any = None,
    is_grads_batched: Any = False,
    materialize_grads: Any = False,
) -> Any:
    """In place of the library's function."""
    if is_grads_batched or materialize_grads or not only_inputs:
        _refuse()
    values = [outputs] if isinstance(outputs, torch.Tensor) else [*outputs]
    variables = [inputs] if isinstance(inputs, torch.Tensor) else [*inputs]
    if grad_outputs is None:
        cotangents = [None for _ in values]
    else:
        cotangents = [grad_outputs] if isinstance(grad_outputs, torch.Tensor) else [*grad_outputs]
    return _gradients(values, variables, cotangents, bool(create_graph), bool(allow_unused))


STAND_INS = {torch.autograd.grad: _grad}


def gradients(
    tx: TraceContext,
    outputs: list[Any],
    inputs: list[Any],
    cotangents: list[Any],
    create_graph: bool,
    allow_unused: bool,
) -> tuple[ArrayRef | None, ...]:
    values, variables = ([need_tensor(x).var for x in refs] for refs in (outputs, inputs))
    if (create_graph and not is_on(tx)) or not values or len(cotangents) != len(values):
        raise Unsupported("torch.autograd.grad without grad mode, or of nothing")
    if not all(requires(tx, var) for var in (*values, *variables)):
        raise Unsupported("torch.autograd.grad of what requires no gradient")
    given = [cotangent(tx, ct, value) for ct, value in zip(cotangents, values)]
    written = {memory_of(tx.builder, n.inputs[0]) for n in tx.builder.nodes if n.op == COPY}
    if any(memory_of(tx.builder, variable) in written for variable in variables):
        raise Unsupported("torch.autograd.grad by a tensor that is written to")
    check_history(tx, values, variables)
    used = [any(_by(tx, variable).holds(tx, v) for v in values) for variable in variables]
    if not all(used) and not allow_unused:
        raise Unsupported("torch.autograd.grad by what the outputs do not depend on")
    by = [variable for variable, is_used in zip(variables, used) if is_used]
    if not by:
        return (None,) * len(variables)
    made = tx.builder.emit("gradient", *values, *given, *by, outputs=len(values))
    rest = iter(made if isinstance(made, tuple) else (made,))
    found = [tensor(next(rest)) if is_used else None for is_used in used]
    return tuple([x if x is None or create_graph else detached(tx, x) for x in found])


def _by(tx: TraceContext, variable: Var) -> Requiring:
    """What depends on one value."""
    known = Requiring({variable.name})
    known.update(tx)
    return known


def cotangent(tx: TraceContext, given: object, value: Var) -> Var:
    if given is None:
        if not all(same(size, 1) for size in value.shape) or value.dtype.is_complex:
            raise Unsupported("torch.autograd.grad of more than one number")
        return tx.ops.full(shape=value.shape, value=1.0, dtype=value.dtype, device=value.type.device)  # type: ignore[no-any-return]
    found = need_tensor(given).var
    alike = len(found.shape) == len(value.shape) and all(a == b for a, b in zip(found.shape, value.shape))
    if found.dtype != value.dtype or not alike:
        raise Unsupported("torch.autograd.grad with a cotangent of another type or shape")
    return found


def check_history(tx: TraceContext, values: list[Var], variables: list[Var]) -> None:
    """Refuse variables that values may depend on in ways that torch alone knows, and what would write to
    buffers in the backward pass."""
    if any(node.op == BEGIN and node.inputs for node in tx.builder.nodes):
        raise Unsupported("a gradient beside a checkpoint of a function that writes to buffers")
    for variable in variables:
        if is_input(tx, variable):
            _check_attributes(tx, variable, _HOOKS, None)
    if not any(is_input(tx, variable) for variable in variables):
        return
    behind = _behind(tx, values)
    for inp in tx.builder.inputs:
        if inp.differentiated and inp.var.name in behind:
            _check_attributes(tx, inp.var, ("is_leaf",), True)


def _behind(tx: TraceContext, values: list[Var]) -> set[str]:
    """What the values may depend on, by name."""
    known = Requiring(set())
    known.update(tx)
    found = {name for v in values for name in (v.name, known.root(v))}
    for node in reversed(tx.builder.nodes):
        made = node.inputs[:1] if node.op == COPY else node.outputs
        if node.op != STOP and any(v.name in found or known.root(v) in found for v in made):
            found.update(name for v in node.inputs for name in (v.name, known.root(v)))
    return found


def _check_attributes(tx: TraceContext, var: Var, names: tuple[str, ...], wanted: object) -> None:
    for name in names:
        if tx.attribute(tensor(var), name) is not wanted:
            raise Unsupported(f"torch.autograd.grad by a tensor whose {name} is not {wanted}")


TABLE.functions.update({_gradients: gradients})
