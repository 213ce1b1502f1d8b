"""Algebraic simplification by rules that are exact: equal results to the last bit, NaNs, infinities and
signed zeros included (a signalling NaN may become a quiet one, and a NaN's sign another).

A rule is a function ``rule(rewrite, inputs, params)`` registered for ops; it returns ``None`` (does not
apply), a value to use instead, or a :class:`Call` to go on with. A result of another type (dtype, shape
or strides) than the node it replaces is not used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import VerifyError
from ..ir import ArrayType, Graph, Node, OpRow, OpTable, Var, same_type
from ..rewrite import Rebuilder, Transformer

# Rules applied to one node before it is called a cycle.
STEP_LIMIT = 32
# Views looked through in search of a constant.
VIEW_LIMIT = 8


@dataclass(frozen=True)
class Call:
    """What a rule rewrites to: an op applied to values."""

    op: str
    inputs: tuple[Var, ...]
    params: dict[str, Any]


Rule = Callable[["Rewrite", tuple[Var, ...], dict[str, Any]], "Var | Call | None"]


@dataclass(eq=False)
class Rewrite:
    """What rules may look at: the producers of values, how often a value is used in the graph given, and
    an emitter for helper values."""

    builder: Rebuilder
    uses: dict[str, int]
    op: str = ""  # of the node that is looked at
    keeps_copies: bool = False  # those of inputs, which may be written to later

    def made_by(self, var: Var, op: str) -> Node | None:
        """The node that makes ``var`` if its op is ``op``."""
        node = self.builder.producer(var)
        return node if node is not None and node.op == op else None

    def shows_input(self, var: Var) -> bool:
        """Whether ``var`` is an input of the graph, or a view of one."""
        node = self.builder.producer(var)
        while node is not None and self.builder.table[node.op].is_view:
            node = self.builder.producer(node.inputs[0])
        return node is None

    def constant(self, var: Var) -> Any:
        """The number that every element of ``var`` is, or ``None``. Sees through views of ``full``."""
        node = self.builder.producer(var)
        for _ in range(VIEW_LIMIT):
            if node is None or not self.builder.table[node.op].is_view:
                break
            node = self.builder.producer(node.inputs[0])
        if node is None or node.op != "full":
            return None
        value = node.kwargs["value"]
        if not isinstance(value, (int, float, complex)):
            return None
        # the number as the dtype holds it
        return np.asarray(value).astype(node.out.dtype.numpy).item()

    def full_like(self, var: Var, value: object) -> Var:
        """A constant with the shape and the strides' axis order of a uniform operand."""
        scalar = self.builder.emit("full", shape=(), value=value, dtype=var.dtype, device=var.type.device)
        result: Var = self.builder.emit("broadcast_in_dim", scalar, shape=var.shape, dims=())
        return result


class RuleSet:
    """Rules by the op they apply to, in order; those for all ops of a kind come last."""

    def __init__(self) -> None:
        self.by_op: dict[str, list[Rule]] = {}
        self.by_kind: list[tuple[Callable[[OpRow], bool], Rule]] = []

    def on(self, *ops: str) -> Callable[[Rule], Rule]:
        """Decorator: try the rule on nodes of these ops."""

        def register(rule: Rule) -> Rule:
            for op in ops:
                self.by_op.setdefault(op, []).append(rule)
            return rule

        return register

    def on_all(self, is_one: Callable[[OpRow], bool]) -> Callable[[Rule], Rule]:
        """Decorator: try the rule on nodes of the ops of which ``is_one(row)`` is true."""

        def register(rule: Rule) -> Rule:
            self.by_kind.append((is_one, rule))
            return rule

        return register

    def for_op(self, row: OpRow) -> list[Rule]:
        """The rules that apply to an op."""
        return self.by_op.get(row.name, []) + [rule for is_one, rule in self.by_kind if is_one(row)]


def rewrite_graph(graph: Graph, table: OpTable, rules: RuleSet, keeps_copies: bool = False) -> Graph:
    """Apply ``rules`` to every node in one forward walk, each until none applies; ``keeps_copies`` of inputs.

    Raises ``VerifyError`` naming the rules where they go round in a circle.
    """
    if not graph.functional:
        return graph
    return _Simplifier(graph, table, rules, keeps_copies).run()


class _Simplifier(Transformer):
    def __init__(self, graph: Graph, table: OpTable, rules: RuleSet, keeps_copies: bool) -> None:
        super().__init__(graph, table)
        self.rules = functools.cache(lambda op: rules.for_op(table[op]))
        self.rewrite = Rewrite(self.builder, graph.uses(), keeps_copies=keeps_copies)

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        if len(node.outputs) != 1 or not self.rules(node.op):
            return self.keep(node, inputs)
        call = Call(node.op, inputs, node.kwargs)
        applied: list[str] = []
        while True:
            result, name = self._step(call, node.out.type)
            if result is None:
                return self._emit(node, inputs, call, bool(applied))
            if isinstance(result, Var):
                return result
            call = result
            applied.append(name)
            if len(applied) > STEP_LIMIT:
                raise VerifyError(f"simplification rules go round in a circle: {', '.join(applied[-4:])}")

    def _step(self, call: Call, type: ArrayType) -> tuple[Var | Call | None, str]:
        self.rewrite.op = call.op
        for rule in self.rules(call.op):
            start = len(self.builder.nodes)
            result = rule(self.rewrite, call.inputs, call.params)
            if result is not None and self._fits(result, type):
                return result, rule.__name__
            del self.builder.nodes[start:]
        return None, ""

    def _fits(self, result: Var | Call, type: ArrayType) -> bool:
        if isinstance(result, Var):
            return same_type(result.type, type, strides=True)
        try:
            meta = self.table[result.op].meta(*(v.type for v in result.inputs), **result.params)
        except (TypeError, ValueError, IndexError):
            return False
        return same_type(meta, type, strides=True)

    def _emit(self, node: Node, inputs: tuple[Var, ...], call: Call, changed: bool) -> Any:
        if not changed:
            return self.keep(node, inputs)
        params = tuple(call.params.items())
        return self.keep(replace(node, op=call.op, inputs=call.inputs, params=params), call.inputs)

    def finish(self) -> Graph:
        graph = super().finish()
        kept = [(i, var) for i, var in graph.mutations if graph.inputs[i].var.name != var.name]
        return replace(graph, mutations=tuple(kept))


def permuted(values: Sequence[Any], perm: Sequence[int]) -> tuple[Any, ...]:
    """``values`` in the order of ``perm``."""
    return tuple(values[axis] for axis in perm)
